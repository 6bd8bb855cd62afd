//! What Gemini CLI's transcripts prove about an offer.

use super::samples::{Offer, Sample, mark, quoted_mark};
use baton_core::mail::Anchor;
use baton_core::mail::Proof::{self, Held, Open, Passed, Proven};

fn offer(anchor: Anchor, before: &str) -> Offer<'_> {
    Offer { anchor, turn: "", before }
}

/// Payloads name no calls.
fn tools() -> Anchor {
    Anchor::Tools(Vec::new())
}

/// An offer at each kind of event, by the text of its hook, with words of the answer to it.
fn offers() -> Vec<(Anchor, &'static str, &'static str)> {
    vec![
        (Anchor::Prompt, "CTX-BeforeAgent-1", "aloud"),
        (tools(), "CTX-AfterTool-1", "DONE1"),
        (tools(), "CTX-AfterTool-2", "DONE1"),
        (Anchor::Stop, "CTX-AfterAgent-1", "DONE2"),
    ]
}

fn looks(sample: &Sample, anchor: Anchor, before: &str) -> Vec<Proof> {
    sample.looks(&offer(anchor, before))
}

#[test]
fn text_in_geminis_context_is_proven_by_the_answer_to_it() {
    for (anchor, text, answer) in offers() {
        let marked = Sample::named("gemini-turn").with(text, &mark());
        let course = marked.course(&offer(anchor, &mark()));
        let looks: Vec<Proof> = course.iter().map(|(look, _)| *look).collect();
        assert_eq!(looks, [Open, Held, Proven], "{text}");
        assert!(course[2].1.contains(answer), "{text} was proven by {}", course[2].1);
    }
}

/// All except the stop: its text would be a prompt, and any other prompt must be a later one.
#[test]
fn what_gemini_did_not_take_is_passed_by_the_next_answer() {
    for (anchor, text, _) in offers() {
        let untaken = Sample::named("gemini-turn").with(text, "nothing");
        let before = if anchor == Anchor::Stop { "DONE2" } else { "nothing" };
        let expected = if anchor == Anchor::Stop { vec![Open] } else { vec![Open, Passed] };
        assert_eq!(looks(&untaken, anchor, before), expected, "{text}");
    }
    let resumed = Sample::named("gemini-resumed").with("CTX-AfterAgent-1", "nothing");
    assert_eq!(looks(&resumed, Anchor::Stop, "DONE2"), [Open, Passed], "another prompt came");
}

#[test]
fn words_of_the_model_results_of_tools_and_quotes_do_not_count_in_gemini() {
    let sample = Sample::named("gemini-turn");
    for text in ["aloud", "DONE1", "echo one", "Output: one", "sessions", "Hello PROMPT1"] {
        let saying = sample.with(text, &format!("I read {}", mark()));
        for (anchor, before, _) in offers() {
            let expected = if anchor == Anchor::Stop { vec![Open] } else { vec![Open, Passed] };
            assert_eq!(looks(&saying, anchor, before), expected, "{text}, {before}");
        }
    }
    for (anchor, text, _) in offers() {
        let expected = if anchor == Anchor::Stop { vec![Open] } else { vec![Open, Passed] };
        let quoting = sample.with(text, &quoted_mark());
        assert_eq!(looks(&quoting, anchor, &quoted_mark()), expected, "{text}");
    }
}

/// By shell or by MCP: neither names its call.
#[test]
fn results_of_commands_and_tools_count_in_gemini_where_they_were_read() {
    for text in ["Output: one", "sessions"] {
        let marked = Sample::named("gemini-turn").with(text, &mark());
        assert_eq!(looks(&marked, Anchor::Shell, &mark()), [Open, Held, Proven], "{text}");
        assert_eq!(looks(&marked, tools(), &mark()), [Open, Passed], "{text}");
    }
    let untaken = Sample::named("gemini-resumed");
    assert_eq!(looks(&untaken, Anchor::Shell, "CTX-AfterTool-1"), [Open, Passed], "another prompt came");
}

/// Killed before the answer: what is in the file is in the resumed conversation, also if a second
/// head was written into it.
#[test]
fn what_gemini_had_not_answered_is_proven_after_its_resume() {
    let sample = Sample::named("gemini-resumed").with("CTX-AfterAgent-1", &mark()).without("DONE2");
    assert_eq!(looks(&sample, Anchor::Stop, &mark()), [Open, Held, Proven]);
    let sample =
        Sample::named("gemini-resumed").with("CTX-AfterTool-1", &mark()).without("DONE1").without("DONE2");
    assert_eq!(looks(&sample, tools(), &mark()), [Open, Held, Proven]);
}

#[test]
fn what_gemini_took_back_before_the_answer_was_not_taken() {
    let sample = Sample::named("gemini-interrupted");
    for (anchor, text) in [
        (Anchor::Prompt, "CTX-BeforeAgent-1"),
        (tools(), "CTX-AfterTool-1"),
        (Anchor::Stop, "CTX-AfterAgent-1"),
    ] {
        let marked = sample.with(text, &mark());
        let before = if anchor == Anchor::Stop { "Agent execution blocked" } else { &*mark() };
        assert_eq!(looks(&marked, anchor, before), [Open, Held, Passed], "{text}");
    }
}

/// The user interrupted another tool of the same answer; the results stay in the conversation.
#[test]
fn what_came_with_a_tool_that_had_ended_is_proven_by_the_next_turn() {
    let marked = Sample::named("gemini-interrupted").with("CTX-AfterTool-2", &mark());
    assert_eq!(looks(&marked, tools(), &mark()), [Open, Held, Proven]);
    // The hook of the cancelled tool runs too, and its text goes nowhere.
    let untaken = Sample::named("gemini-interrupted");
    assert_eq!(looks(&untaken, tools(), "CTX-AfterTool-2"), [Open, Passed]);
}

#[test]
fn what_a_rewind_of_gemini_cuts_off_before_the_answer_was_not_taken() {
    let sample = Sample::named("gemini-turn").with("CTX-AfterAgent-1", &mark()).without("DONE2");
    let rewound = |to: &str| sample.clone().and(&format!(r#"{{"$rewindTo":"{to}"}}"#));
    let stop = "c6273632-6990-49f7-8c10-28d903ec269a";
    assert_eq!(looks(&rewound(stop), Anchor::Stop, &mark()), [Open, Held, Passed]);
    assert_eq!(looks(&rewound("unknown"), Anchor::Stop, &mark()), [Open, Held, Passed]);
    let earlier = sample.with(stop, "an-earlier-one").and(&format!(r#"{{"id":"{stop}","type":"info"}}"#));
    let kept = earlier.and(&format!(r#"{{"$rewindTo":"{stop}"}}"#));
    assert_eq!(looks(&kept, Anchor::Stop, &mark()), [Open, Held]);
}
