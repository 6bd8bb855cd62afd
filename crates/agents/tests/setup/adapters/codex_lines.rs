//! What the lines of Codex's rollouts mean.

use super::samples::{Sample, lines};

fn assert_reads(sample: &str, expected: &str) {
    assert_eq!(Sample::named(sample).sketch(), lines(expected), "{sample}");
}

/// Two calls at once, and the text of a stop hook, which comes as a prompt.
#[test]
fn a_turn_reads_as_it_happened() {
    assert_reads(
        "codex-turn",
        "
            prompt 389a9af2
            injected CTX-SessionStart-1
            injected CTX-UserPromptSubmit-1
            response 1
            response 1 calls call_0004
            response 1 calls call_0006
            injected CTX-PreToolUse-1
            injected CTX-PreToolUse-2
            injected CTX-PostToolUse-1
            result call_0004: Chunk ID: a5e3ee/Wall time: 0.0000 seconds/Process exited wi
            injected CTX-PostToolUse-2
            result call_0006: Chunk ID: 280ef0/Wall time: 0.0566 seconds/Process exited wi
            response 2
            injected <hook_prompt hook_run_id=\"stop:5:/home/dev/.codex/hooks.json
            response 3
        ",
    );
}

/// Results come after the last piece.
#[test]
fn a_tool_that_ends_while_the_response_streams_does_not_split_it() {
    assert_reads(
        "codex-streaming",
        "
            prompt 47a25511
            response 1
            response 1 calls call_0004
            injected CTX-PreToolUse-1
            injected CTX-PostToolUse-1
            response 1 calls call_0006
            injected CTX-PreToolUse-2
            injected CTX-PostToolUse-2
            result call_0004: Chunk ID: f4a534/Wall time: 0.0000 seconds/Process exited wi
            result call_0006: Chunk ID: 2432b9/Wall time: 0.0000 seconds/Process exited wi
            response 2
        ",
    );
}

#[test]
fn results_of_mcp_tools_read_as_the_model_sees_them() {
    assert_reads(
        "codex-mcp",
        "
            prompt b37f1be7
            response 1 calls call_0003
            response 1 calls call_0005
            result call_0003: Wall time: 0.0042 seconds/Output:/{\"structured\":\"STRUCT hi\"}
            result call_0005: Wall time: 0.0028 seconds/Output:/TEXTONLY
            response 2 calls call_0008
            result call_0008: Wall time: 0.0033 seconds/Output:/BOOMTEXT
            response 3
        ",
    );
}

#[test]
fn calls_inside_a_script_leave_only_the_scripts_result() {
    assert_reads(
        "codex-code-mode",
        "
            prompt bfef8dfb
            injected CTX-SessionStart-1
            injected CTX-UserPromptSubmit-1
            response 1 calls call_0003
            injected CTX-PostToolUse-1
            injected CTX-PostToolUse-2
            result call_0003: Script completed/Wall time 0.1 seconds/Output://{\"chunk_id\":
            response 2
        ",
    );
}

#[test]
fn an_aborted_turn_and_a_prompt_typed_ahead_are_no_turns_of_their_own() {
    assert_reads(
        "codex-aborted",
        "
            prompt b24a1e0c
            injected CTX-SessionStart-1
            injected CTX-UserPromptSubmit-1
            prompt b7981a70
            injected CTX-UserPromptSubmit-2
            response 1
            prompt 13d2fb52
            injected CTX-UserPromptSubmit-3
            response 2 calls call_0005
            injected CTX-PostToolUse-1
            result call_0005: Chunk ID: 2b3285/Wall time: 1.8518 seconds/Process exited wi
            injected CTX-UserPromptSubmit-4
            response 3
        ",
    );
}

#[test]
fn a_compaction_on_request_is_a_turn_without_response() {
    assert_reads(
        "codex-compacted",
        "
            replaced
            prompt 954e6d11
            injected <collaboration_mode># Collaboration Mode: Default//You are n
            prompt 013970f6
            injected CTX-SessionStart-1
            injected CTX-SessionStart-2
            injected CTX-UserPromptSubmit-1
            response 1
        ",
    );
}

#[test]
fn a_compaction_amid_a_turn_is_no_response() {
    assert_reads(
        "codex-compacted-midway",
        "
            prompt c3e0d530
            injected CTX-SessionStart-1
            injected CTX-UserPromptSubmit-1
            response 1 calls call_0003
            injected CTX-PostToolUse-1
            result call_0003: Chunk ID: c26bc1/Wall time: 0.0000 seconds/Process exited wi
            replaced
            prompt c3e0d530
            injected CTX-SessionStart-2
            response 2
        ",
    );
}

#[test]
fn half_characters_in_a_line_do_not_hide_it() {
    let sample = Sample::named("codex-mcp");
    let halves = sample
        .with("TEXTONLY", r"cut \ud83d")
        .with("BOOMTEXT", r"\ude00 cut")
        .with("\"Use the tools\"", r#""\ud83d""#);
    let expected: Vec<String> = sample
        .sketch()
        .into_iter()
        .map(|item| item.replace("TEXTONLY", "cut \u{fffd}").replace("BOOMTEXT", "\u{fffd} cut"))
        .collect();
    assert_eq!(halves.sketch(), expected);
}

#[test]
fn lines_that_are_torn_or_strange_say_nothing() {
    let mut read = baton_agents::by_name("codex").unwrap().transcript();
    for line in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"type\":1}",
        "{\"type\":\"response_item\"}",
        "{\"type\":\"turn_context\",\"payload\":{}}",
    ] {
        assert_eq!(read(line), [], "{line}");
    }
}
