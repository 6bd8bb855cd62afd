//! What Codex's rollouts prove about an offer: in places where its text counts, and in places where
//! it does not.

use super::samples::{Offer, Sample, mark, quoted_mark};
use baton_core::mail::Anchor;
use baton_core::mail::Proof::{self, Held, Open, Passed, Proven};

fn tools(calls: &[&str]) -> Anchor {
    Anchor::Tools(calls.iter().map(|&call| call.to_owned()).collect())
}

fn call(id: &str) -> Anchor {
    Anchor::Call(id.to_owned())
}

/// An offer at each kind of event, by the text of its hook, with words of the response to it, and
/// the conclusion if the rollout does not contain the offer. Nothing shows that a stop hook has
/// ended.
fn offers() -> Vec<(Offer<'static>, &'static str, Vec<Proof>)> {
    let turn = "389a9af2";
    let offer = |anchor, before| Offer { anchor, turn, before };
    vec![
        (offer(Anchor::Start, "CTX-SessionStart-1"), "aloud", vec![Open, Passed]),
        (offer(Anchor::Prompt, "CTX-UserPromptSubmit-1"), "aloud", vec![Open, Passed]),
        (offer(tools(&["call_0004"]), "CTX-PostToolUse-1"), "DONE4", vec![Open, Passed]),
        (offer(tools(&["call_0006"]), "CTX-PostToolUse-2"), "DONE4", vec![Open, Passed]),
        (offer(Anchor::Stop, "CTX-Stop-1"), "DONE5", vec![Open]),
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
        assert_proven("codex-turn", offer.anchor, offer.turn, offer.before, response);
    }
}

#[test]
fn an_offer_that_left_no_trace_is_passed_by_the_next_response() {
    for (offer, _, without) in offers() {
        assert_eq!(Sample::named("codex-turn").looks(&offer), without, "{}", offer.before);
    }
}

/// As recorded: the program escapes the text of a stop hook, except for the mark, before it goes
/// into the context.
#[test]
fn an_offer_at_a_stop_is_proven_among_its_escapes() {
    let earlier = |line: &str| line.contains("\"role\":\"developer\"");
    let sample = Sample::named("codex-stop").with_in(earlier, &mark(), "earlier mail");
    let offer = Offer { anchor: Anchor::Stop, turn: "8ed6ae88", before: "&lt;/baton-mail&gt;</hook_prompt>" };
    assert_eq!(sample.looks(&offer), [Open, Held, Proven]);
    assert_eq!(sample.with(&mark(), &quoted_mark()).looks(&offer), [Open]);
}

#[test]
fn words_of_the_model_and_results_of_tools_do_not_count() {
    let sample = Sample::named("codex-turn");
    for text in ["aloud", "DONE4", "DONE5", "echo one", "\\none\\n", "\\ntwo\\n", "Hello PROMPT1"] {
        let saying = sample.with(text, &format!("I read {}", mark()));
        for (offer, _, without) in offers() {
            assert_eq!(saying.looks(&offer), without, "{text}, {}", offer.before);
        }
    }
}

#[test]
fn a_mark_that_a_message_quotes_does_not_count() {
    for (offer, _, without) in offers() {
        let quoting = Sample::named("codex-turn").with(offer.before, &quoted_mark());
        assert_eq!(quoting.looks(&Offer { before: &quoted_mark(), ..offer }), without);
    }
}

#[test]
fn a_further_call_of_the_response_under_way_proves_nothing() {
    assert_proven("codex-streaming", tools(&["call_0004"]), "47a25511", "CTX-PostToolUse-1", "DONE1");
}

#[test]
fn results_of_our_own_tools_count_for_their_call_alone() {
    let (sample, turn) = (Sample::named("codex-mcp"), "b37f1be7");
    for (id, text) in [("call_0003", "STRUCT hi"), ("call_0005", "TEXTONLY")] {
        let result = |line: &str| line.contains("function_call_output");
        let marked = sample.with_in(result, text, &mark());
        let course = marked.course(&Offer { anchor: call(id), turn, before: &mark() });
        assert_eq!(course.iter().map(|(look, _)| *look).collect::<Vec<_>>(), [Open, Held, Proven], "{id}");
        assert!(course[2].1.contains("call_0008"), "{id} was proven by {}", course[2].1);
        assert_eq!(
            marked.looks(&Offer { anchor: call("call_0008"), turn, before: &mark() }),
            [Open, Passed],
            "{id}"
        );
    }
}

/// Calls inside a script have ids that appear nowhere.
#[test]
fn offers_in_code_mode_are_proven_without_ids() {
    let (sample, turn) = ("codex-code-mode", "bfef8dfb");
    assert_proven(sample, tools(&[]), turn, "CTX-PostToolUse-1", "ANS1");
    assert_proven(sample, tools(&[]), turn, "CTX-PostToolUse-2", "ANS1");
    let untaken =
        Sample::named(sample).looks(&Offer { anchor: tools(&[]), turn, before: "CTX-PostToolUse-1" });
    assert_eq!(untaken, [Open, Passed]);
    let read =
        Sample::named(sample).with_in(|line| line.contains("custom_tool_call_output"), "STRUCT cm", &mark());
    assert_eq!(read.looks(&Offer { anchor: Anchor::Shell, turn, before: &mark() }), [Open, Held, Proven]);
}

/// As recorded, the contexts of an aborted turn stay in the conversation, so the next turn's
/// response proves them.
#[test]
fn an_aborted_turn_proves_nothing_and_takes_nothing_away() {
    let (sample, turn) = ("codex-aborted", "b24a1e0c");
    assert_proven(sample, Anchor::Start, turn, "CTX-SessionStart-1", "ANS2");
    assert_proven(sample, Anchor::Prompt, turn, "CTX-UserPromptSubmit-1", "ANS2");
    let untaken = Sample::named(sample).looks(&Offer {
        anchor: Anchor::Prompt,
        turn,
        before: "CTX-UserPromptSubmit-1",
    });
    assert_eq!(untaken, [Open, Passed]);
}

#[test]
fn a_prompt_typed_ahead_is_taken_in_its_turn() {
    let (sample, turn) = ("codex-aborted", "13d2fb52");
    assert_proven(sample, tools(&["call_0005"]), turn, "CTX-PostToolUse-1", "ANS4");
    assert_proven(sample, Anchor::Prompt, turn, "CTX-UserPromptSubmit-4", "ANS4");
}

#[test]
fn a_compaction_is_no_answer_to_what_comes_with_the_next_prompt() {
    let turn = "013970f6";
    for (anchor, text) in [(Anchor::Start, "CTX-SessionStart-1"), (Anchor::Prompt, "CTX-UserPromptSubmit-1")]
    {
        assert_proven("codex-compacted", anchor, turn, text, "ANS6");
    }
    assert_proven("codex-compacted-midway", Anchor::Start, "c3e0d530", "CTX-SessionStart-2", "ANS2");
}

#[test]
fn what_a_compaction_drops_before_the_answer_was_not_taken() {
    let marked = Sample::named("codex-compacted-midway").with("CTX-PostToolUse-1", &mark());
    let offer = Offer { anchor: tools(&["call_0003"]), turn: "c3e0d530", before: &mark() };
    let looks: Vec<Proof> = marked.course(&offer).iter().map(|(look, _)| *look).collect();
    assert_eq!(looks, [Open, Held, Passed]);
}
