//! What the lines of Claude Code's transcripts mean.

use super::samples::{Sample, lines};

fn assert_reads(sample: &str, expected: &str) {
    assert_eq!(Sample::named(sample).sketch(), lines(expected), "{sample}");
}

/// Requests, snapshots and bookkeeping between the lines mean nothing.
#[test]
fn a_turn_reads_as_it_happened() {
    assert_reads(
        "claude-turn",
        "
            hook printed CTX-SessionStart-1
            injected CTX-SessionStart-1
            prompt 4b06c055
            injected CTX-UserPromptSubmit-1
            response msg_0001
            response msg_0001 calls toolu_0002
            response msg_0001 calls toolu_0003
            result toolu_0002: one
            hook printed CTX-PostToolUse-1
            injected CTX-PostToolUse-1
            result toolu_0003: two
            hook printed CTX-PostToolUse-2
            injected CTX-PostToolUse-2
            hook printed CTX-PostToolBatch-1
            injected CTX-PostToolBatch-1
            response msg_0004 calls toolu_0005
            result toolu_0005: three
            hook printed CTX-PostToolUse-3
            injected CTX-PostToolUse-3
            hook printed CTX-PostToolBatch-2
            injected CTX-PostToolBatch-2
            response msg_0006
            hook printed CTX-Stop-1
            injected CTX-Stop-1
            stop handled
            response msg_0007
            stop handled
        ",
    );
}

#[test]
fn pieces_of_one_response_share_its_id_around_the_hooks_of_its_tools() {
    assert_reads(
        "claude-streaming",
        "
            prompt 66263013
            response msg_0001
            response msg_0001 calls toolu_0002
            hook printed CTX-PreToolUse-1
            injected CTX-PreToolUse-1
            result toolu_0002: one
            hook printed CTX-PostToolUse-1
            injected CTX-PostToolUse-1
            response msg_0001 calls toolu_0003
            hook printed CTX-PreToolUse-2
            injected CTX-PreToolUse-2
            result toolu_0003: two
            hook printed CTX-PostToolUse-2
            injected CTX-PostToolUse-2
            hook printed CTX-PostToolBatch-1
            injected CTX-PostToolBatch-1
            response msg_0004
        ",
    );
}

/// Structured content hides the text beside it.
#[test]
fn results_of_mcp_tools_read_as_the_model_sees_them() {
    assert_reads(
        "claude-mcp",
        "
            prompt 305d5366
            response msg_0001 calls toolu_0002
            result toolu_0002:
            response msg_0003 calls toolu_0004
            response msg_0003 calls toolu_0005
            result toolu_0004: {\"structured\":\"STRUCT hi\"}
            result toolu_0005: TEXTONLY
            response msg_0006 calls toolu_0007
            result toolu_0007: BOOMTEXT
            response msg_0008
        ",
    );
}

/// We never block; another hook may.
#[test]
fn what_a_blocking_stop_hook_says_is_no_prompt_and_no_context() {
    assert_reads(
        "claude-stop-blocked",
        "
            hook printed CTX-PostToolBatch-1
            injected CTX-PostToolBatch-1
            response msg_0013
            stop handled
            response msg_0014
            stop handled
        ",
    );
}

/// The note about it comes after the next prompt, and must not count as one about that.
#[test]
fn the_note_about_a_prompt_that_was_taken_back_says_nothing() {
    assert_reads(
        "claude-taken-back",
        "
            hook printed CTX-Stop-1
            injected CTX-Stop-1
            stop handled
            response msg_0009
            stop handled
            prompt 29de872c
            injected CTX-UserPromptSubmit-1
            prompt 0ea6b080
            injected CTX-UserPromptSubmit-2
            response msg_0011
            stop handled
            prompt e7dfa8a9
            injected CTX-UserPromptSubmit-3
            response msg_0012
        ",
    );
}

#[test]
fn a_prompt_that_a_running_turn_absorbed_is_no_prompt_of_another_turn() {
    assert_reads(
        "claude-absorbed",
        "
            prompt 3fb1d5dc
            injected CTX-UserPromptSubmit-1
            response msg_0002 calls toolu_0003
            result toolu_0003: (Bash completed with no output)
            hook printed CTX-PostToolBatch-1
            injected CTX-PostToolBatch-1
            injected CTX-UserPromptSubmit-2
            response msg_0004
            stop handled
        ",
    );
}

#[test]
fn the_note_about_an_interrupted_tool_is_no_prompt() {
    assert_reads(
        "claude-interrupted",
        "
            prompt b95a50ec
            injected CTX-UserPromptSubmit-1
            response msg_0010 calls toolu_0011
            result toolu_0011: (Bash completed with no output)
            hook printed CTX-PostToolBatch-1
            injected CTX-PostToolBatch-1
            response msg_0012 calls toolu_0013
            result toolu_0013: The user doesn't want to proceed with this tool use. The too
            prompt 998766f9
            injected CTX-UserPromptSubmit-2
            response msg_0014
            stop handled
        ",
    );
}

#[test]
fn the_note_about_an_interrupted_answer_is_no_prompt() {
    assert_reads(
        "claude-cut-short",
        "
            prompt 4c60ed2d
            injected CTX-UserPromptSubmit-1
            response msg_0002
            prompt 7dfb5600
            injected CTX-UserPromptSubmit-2
            response msg_0003
            response msg_0003
            stop handled
        ",
    );
}

/// The user typed `/compact`, went on, and went back with `/rewind`.
#[test]
fn a_compaction_is_neither_prompt_nor_response() {
    assert_reads(
        "claude-compacted",
        "
            prompt 998766f9
            injected CTX-UserPromptSubmit-1
            response msg_0014
            stop handled
            hook printed CTX-SessionStart-1
            injected CTX-SessionStart-1
            prompt 57f8f22e
            injected CTX-UserPromptSubmit-2
            response msg_0016
            stop handled
            prompt cc39549f
            injected CTX-UserPromptSubmit-3
            response msg_0017
            stop handled
        ",
    );
}

#[test]
fn a_compaction_amid_a_turn_is_neither_prompt_nor_response() {
    assert_reads(
        "claude-compacted-midway",
        "
            response msg_0003 calls toolu_0004
            result toolu_0004: t2
            hook printed CTX-PostToolBatch-2
            injected CTX-PostToolBatch-2
            hook printed CTX-SessionStart-1
            injected CTX-SessionStart-1
            response msg_0006
            stop handled
        ",
    );
}

/// Three failed requests; a custom command; a shell command of the user, after which the model is
/// asked; `/model`.
#[test]
fn errors_are_no_responses_and_commands_for_the_model_are_prompts() {
    assert_reads(
        "claude-errors",
        "
            prompt 876d2694
            injected CTX-UserPromptSubmit-1
            prompt b7f4d211
            prompt b7f4d211
            prompt 95107204
            injected CTX-UserPromptSubmit-5
            response msg_0004 calls toolu_0005
            result toolu_0005: (Bash completed with no output)
            hook printed CTX-PostToolBatch-1
            injected CTX-PostToolBatch-1
            prompt b1373a3b
            injected CTX-UserPromptSubmit-6
            response msg_0006
            stop handled
        ",
    );
}

#[test]
fn what_the_program_says_in_the_models_name_on_resuming_is_no_response() {
    assert_reads(
        "claude-resumed",
        "
            response msg_0001 calls toolu_0002
            result toolu_0002: [Tool call interrupted: the session ended before this call's
            hook printed CTX-SessionStart-2
            injected CTX-SessionStart-2
            prompt 5582e60e
            injected CTX-UserPromptSubmit-2
            response msg_0003
            stop handled
        ",
    );
}

/// The copies have the id of the fork's first prompt, too.
#[test]
fn responses_that_a_fork_copied_are_none_of_its_own() {
    assert_reads(
        "claude-forked",
        "
            prompt 48c7adb9
            injected CTX-UserPromptSubmit-1
            prompt 48c7adb9
            injected CTX-UserPromptSubmit-2
            stop handled
            prompt 48c7adb9
            injected CTX-UserPromptSubmit-3
            stop handled
            hook printed CTX-SessionStart-1
            injected CTX-SessionStart-1
            prompt 48c7adb9
            injected CTX-UserPromptSubmit-4
            response msg_0007
            stop handled
        ",
    );
}

#[test]
fn responses_that_a_branch_copied_are_none_of_its_own() {
    assert_reads(
        "claude-branched",
        "
            prompt e7dfa8a9
            injected CTX-UserPromptSubmit-1
            stop handled
            prompt 7ee44b10
            injected CTX-UserPromptSubmit-2
            response msg_0016
            stop handled
        ",
    );
}

#[test]
fn lines_of_a_subagent_say_nothing() {
    assert_reads("claude-subagent", "");
}
