//! What Claude Code's transcripts prove about an offer: in places where its text counts, and in
//! places where it does not.

use super::samples::{Offer, Sample, mark, quoted_mark};
use baton_core::mail::Anchor;
use baton_core::mail::Proof::{self, Held, Open, Passed, Proven};

/// The line that shows what the model has in its context.
fn is_context(line: &str) -> bool {
    line.contains("\"type\":\"hook_additional_context\"")
}

/// The record of a request's content.
fn is_record(line: &str) -> bool {
    line.starts_with("{\"type\":\"api-request")
}

fn tools(calls: &[&str]) -> Anchor {
    Anchor::Tools(calls.iter().map(|&call| call.to_owned()).collect())
}

fn call(id: &str) -> Anchor {
    Anchor::Call(id.to_owned())
}

/// An offer at each kind of event, by the text of its hook, with the response to it, and the
/// conclusion if the transcript does not contain the offer. A stop hook that left no trace may
/// still be running.
fn offers() -> Vec<(Offer<'static>, &'static str, Vec<Proof>)> {
    let turn = "4b06c055";
    let offer = |anchor, before| Offer { anchor, turn, before };
    vec![
        (offer(Anchor::Start, "CTX-SessionStart-1"), "msg_0001", vec![Open, Passed]),
        (offer(Anchor::Prompt, "CTX-UserPromptSubmit-1"), "msg_0001", vec![Open, Passed]),
        (offer(tools(&["toolu_0002", "toolu_0003"]), "CTX-PostToolBatch-1"), "msg_0004", vec![Open, Passed]),
        // Through MCP, only the first call is named.
        (offer(tools(&["toolu_0002"]), "CTX-PostToolBatch-1"), "msg_0004", vec![Open, Passed]),
        (offer(tools(&["toolu_0005"]), "CTX-PostToolBatch-2"), "msg_0006", vec![Open, Passed]),
        (offer(Anchor::Stop, "CTX-Stop-1"), "msg_0007", vec![Open]),
    ]
}

/// Puts the mark where the sample has this offer's text, and looks for proof.
fn assert_proven(sample: &str, anchor: Anchor, turn: &str, text: &str, response: &str) {
    let marked = Sample::named(sample).with(text, &mark());
    let course = marked.course(&Offer { anchor, turn, before: &mark() });
    let looks: Vec<Proof> = course.iter().map(|(look, _)| *look).collect();
    assert_eq!(looks, [Open, Held, Proven], "{sample}: {text}");
    assert!(course[2].1.contains(response), "{sample}: {text} was proven by {}", course[2].1);
}

#[test]
fn text_in_the_context_is_proven_by_the_response_to_it() {
    for (offer, response, _) in offers() {
        assert_proven("claude-turn", offer.anchor, offer.turn, offer.before, response);
    }
}

#[test]
fn an_offer_that_left_no_trace_is_passed_by_the_next_response() {
    for (offer, _, without) in offers() {
        assert_eq!(Sample::named("claude-turn").looks(&offer), without, "{}", offer.before);
    }
}

#[test]
fn raw_output_of_a_hook_and_words_of_the_person_do_not_count() {
    let sample = Sample::named("claude-turn");
    for (offer, _, _) in offers() {
        // For a prompt's hook, only what the model has is recorded. In this case the user says it.
        let text = if matches!(offer.anchor, Anchor::Prompt) { "Hello PROMPT1" } else { offer.before };
        let elsewhere = sample.with_in(
            |line| !is_context(line) && (text != offer.before || !is_record(line)),
            text,
            &mark(),
        );
        assert_eq!(elsewhere.looks(&offer), [Open, Passed], "{}", offer.before);
    }
}

#[test]
fn the_record_of_the_answered_request_decides() {
    let sample = Sample::named("claude-turn");
    for (offer, response, _) in offers() {
        let recorded = sample.with_in(is_record, offer.before, &mark());
        let course = recorded.course(&offer);
        let last = course.last().unwrap();
        assert!(last.0 == Proven && last.1.contains(response), "{}: {course:?}", offer.before);
        let dropped = sample.with_in(is_context, offer.before, &mark());
        let offer = Offer { before: &mark(), ..offer };
        assert_eq!(dropped.looks(&offer), [Open, Held, Passed], "it was taken back");
    }
}

#[test]
fn words_of_the_model_and_results_of_tools_do_not_count() {
    let sample = Sample::named("claude-turn");
    let words =
        ["\"thinking aloud\"", "\"DONE2\"", "\"DONE3\"", "\"one\"", "\"two\"", "\"three\"", "\"echo one\""];
    for text in words {
        let saying = sample.with(text, &format!("\"I read {}\"", mark()));
        for (offer, _, without) in offers() {
            assert_eq!(saying.looks(&offer), without, "{text}, {}", offer.before);
        }
    }
}

#[test]
fn a_mark_that_a_message_quotes_does_not_count() {
    for (offer, _, without) in offers() {
        let quoting = Sample::named("claude-turn").with(offer.before, &quoted_mark());
        let offer = Offer { before: &quoted_mark(), ..offer };
        assert_eq!(quoting.looks(&offer), without, "{:?}", offer.anchor);
    }
}

#[test]
fn a_further_piece_of_the_response_under_way_proves_nothing() {
    assert_proven("claude-streaming", tools(&["toolu_0002"]), "66263013", "CTX-PostToolUse-1", "msg_0004");
}

#[test]
fn results_of_our_own_tools_count_for_their_call_alone() {
    let turn = "305d5366";
    assert_proven("claude-mcp", call("toolu_0004"), turn, "STRUCT hi", "msg_0006");
    assert_proven("claude-mcp", call("toolu_0005"), turn, "TEXTONLY", "msg_0006");
    assert_proven("claude-mcp", Anchor::Shell, turn, "TEXTONLY", "msg_0006");
    let failed =
        Sample::named("claude-mcp").looks(&Offer { anchor: call("toolu_0007"), turn, before: "BOOMTEXT" });
    assert_eq!(failed, [Open, Passed]);
    let other = Sample::named("claude-mcp").with("TEXTONLY", &mark());
    assert_eq!(other.looks(&Offer { anchor: call("toolu_0004"), turn, before: "STRUCT hi" }), [Open, Passed]);
    let quoting = Sample::named("claude-mcp").with("TEXTONLY", &quoted_mark());
    assert_eq!(quoting.looks(&Offer { anchor: Anchor::Shell, turn, before: &quoted_mark() }), [Open]);
}

#[test]
fn a_prompt_that_was_taken_back_passes_and_the_next_one_does_not() {
    let (sample, first, second) = ("claude-taken-back", "29de872c", "0ea6b080");
    let marked = Sample::named(sample).with("CTX-UserPromptSubmit-1", &mark());
    let course = marked.course(&Offer { anchor: Anchor::Prompt, turn: first, before: &mark() });
    assert_eq!(course.iter().map(|(look, _)| *look).collect::<Vec<_>>(), [Open, Held, Passed]);
    assert!(course[2].1.contains("msg_0011"), "the next prompt is answered without it");
    assert_proven(sample, Anchor::Prompt, second, "CTX-UserPromptSubmit-2", "msg_0011");
    assert_proven(sample, Anchor::Stop, "before the sample", "CTX-Stop-1", "msg_0009");
}

#[test]
fn going_back_to_an_earlier_prompt_takes_nothing_from_the_next_one() {
    assert_proven("claude-compacted", Anchor::Prompt, "57f8f22e", "CTX-UserPromptSubmit-2", "msg_0016");
    assert_proven("claude-compacted", Anchor::Prompt, "cc39549f", "CTX-UserPromptSubmit-3", "msg_0017");
}

/// As recorded, the request after the compaction contains the context of the last tools.
#[test]
fn a_compaction_between_tools_and_response_takes_nothing_away() {
    let (sample, anchor) = ("claude-compacted-midway", tools(&["toolu_0004"]));
    assert_proven(sample, anchor.clone(), "17c8f031", "CTX-PostToolBatch-2", "msg_0006");
    let untaken =
        Sample::named(sample).looks(&Offer { anchor, turn: "17c8f031", before: "CTX-PostToolBatch-2" });
    assert_eq!(untaken, [Open, Passed]);
}

#[test]
fn a_prompt_that_a_running_turn_absorbs_does_not_end_it() {
    assert_proven("claude-absorbed", tools(&["toolu_0003"]), "3fb1d5dc", "CTX-PostToolBatch-1", "msg_0004");
}

#[test]
fn an_interruption_proves_nothing_and_takes_nothing_away() {
    assert_proven(
        "claude-interrupted",
        tools(&["toolu_0011"]),
        "b95a50ec",
        "CTX-PostToolBatch-1",
        "msg_0012",
    );
    assert_proven("claude-interrupted", Anchor::Prompt, "998766f9", "CTX-UserPromptSubmit-2", "msg_0014");
    assert_proven("claude-cut-short", Anchor::Prompt, "4c60ed2d", "CTX-UserPromptSubmit-1", "msg_0002");
    assert_proven("claude-cut-short", Anchor::Prompt, "7dfb5600", "CTX-UserPromptSubmit-2", "msg_0003");
}

/// As recorded, the content of a failed request is in the next one.
#[test]
fn a_failed_request_proves_nothing_and_takes_nothing_away() {
    assert_proven("claude-errors", Anchor::Prompt, "876d2694", "CTX-UserPromptSubmit-1", "msg_0004");
    assert_proven("claude-errors", tools(&["toolu_0005"]), "95107204", "CTX-PostToolBatch-1", "msg_0006");
}

#[test]
fn a_killed_session_that_is_resumed_answers_only_after_its_start() {
    let sample = Sample::named("claude-resumed");
    assert_proven("claude-resumed", Anchor::Prompt, "5582e60e", "CTX-UserPromptSubmit-2", "msg_0003");
    // Only what came after the resume is after the offer.
    let marked = sample.with("CTX-SessionStart-2", &mark()).without_before("P-resume");
    assert_eq!(
        marked.looks(&Offer { anchor: Anchor::Start, turn: "none", before: &mark() }),
        [Open, Held, Proven]
    );
    let untaken = sample.without_before("P-resume");
    assert_eq!(
        untaken.looks(&Offer { anchor: Anchor::Start, turn: "none", before: "CTX-SessionStart-2" }),
        [Open, Passed]
    );
}

#[test]
fn copies_in_a_fork_neither_prove_nor_pass_what_the_fork_is_offered() {
    let turn = "48c7adb9";
    for (anchor, text) in [(Anchor::Start, "CTX-SessionStart-1"), (Anchor::Prompt, "CTX-UserPromptSubmit-4")]
    {
        let offer = Offer { anchor: anchor.clone(), turn, before: text };
        assert_eq!(Sample::named("claude-forked").looks(&offer), [Open, Passed]);
        assert_proven("claude-forked", anchor, turn, text, "msg_0007");
    }
    assert_proven("claude-branched", Anchor::Prompt, "7ee44b10", "CTX-UserPromptSubmit-2", "msg_0016");
}

/// We never block, because the model would read the text twice. But it would read it.
#[test]
fn what_a_blocking_hook_says_counts_by_the_record_alone() {
    let blocked = Sample::named("claude-stop-blocked").with("CTX-Stop-1", &mark());
    assert_eq!(
        blocked.looks(&Offer { anchor: Anchor::Stop, turn: "7b79c986", before: &mark() }),
        [Open, Proven]
    );
}

#[test]
fn what_a_subagent_takes_does_not_count() {
    let sample =
        Sample::named("claude-subagent").with("CTX-PostToolBatch-1", &mark()).with("STRUCT fromsub", &mark());
    for anchor in [tools(&["toolu_0004"]), call("toolu_0004"), Anchor::Shell] {
        assert_eq!(sample.looks(&Offer { anchor, turn: "9b2656af", before: &mark() }), [Open]);
    }
}

#[test]
fn half_characters_in_a_line_do_not_hide_it() {
    let sample = Sample::named("claude-turn");
    let halves = sample
        .with("\"one\"", r#""cut \ud83d""#)
        .with("\"DONE2\"", r#""\ude00 cut""#)
        .with("\"Hello PROMPT1\"", r#""\ud83d""#);
    let mut expected = sample.sketch();
    let result = expected.iter().position(|item| item == "result toolu_0002: one").unwrap();
    expected[result] = "result toolu_0002: cut \u{fffd}".to_owned();
    assert_eq!(halves.sketch(), expected);
}

#[test]
fn lines_that_are_torn_or_strange_say_nothing() {
    let mut read = baton_agents::by_name("claude").unwrap().transcript();
    let blob = format!("{{\"type\":\"api-request-blob\",\"message\":\"{}", mark().repeat(10_000));
    for line in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"type\":1}",
        "{\"type\":\"user\"}",
        "{\"type\":\"assistant\",\"message\":{}}",
        &blob,
    ] {
        assert_eq!(read(line), [], "{}", &line[..line.len().min(60)]);
    }
}
