//! Copilot 1.0.102: its payloads, our answers, and what its transcripts mean and prove.

use super::payloads::Recorded;
use super::samples::{Offer, Sample, lines, mark, quoted_mark};
use baton_agents::agent::{HookCodec as _, Identity as _, Transcript as _, Waking as _};
use baton_agents::copilot::Copilot;
use baton_agents::{ContextLimit, McpCaller};
use baton_core::event::EventKind::{
    self, AfterTool, BeforeTool, Blocked, Continued, End, IdleNotice, Other, Prompt, Request, Start, Stop,
    SubagentStart, SubagentStop, Unknown, Woken,
};
use baton_core::event::{Reply, Source};
use baton_core::frame::Unit;
use baton_core::mail::Proof::{self, Held, Open, Passed, Proven};
use baton_core::mail::{Anchor, Item};
use serde_json::{Value, json};
use std::path::Path;

/// A recorded payload and its meaning: kind, turn, subagent, calls; of ids only the end. The
/// session is the same in all of them.
const PAYLOADS: &[(&str, EventKind, &str, &str, &[&str])] = &[
    ("sessionStart", Start(Source::New), "", "", &[]),
    ("userPromptSubmitted", Prompt, "92617143", "", &[]),
    ("userPromptTransformed", Unknown, "", "", &[]),
    ("preToolUse", BeforeTool, "", "", &[]),
    // It comes for every tool, also if Copilot asks no one.
    ("permissionRequest", Blocked, "", "", &[]),
    ("postToolUse", AfterTool, "", "", &["92618294"]),
    ("agentStop", Stop, "", "", &[]),
    ("sessionEnd", End, "", "", &[]),
    ("preMcpToolCall", BeforeTool, "", "", &["call_4_0"]),
    ("subagentStart", SubagentStart, "", "ec5808b1e", &[]),
    ("subagentStop", SubagentStop, "", "ec5808b1e", &[]),
    ("userPromptSubmitted-subagent", Prompt, "92617528", "ec5808b1e", &[]),
    ("postToolUse-subagent", AfterTool, "", "ec5808b1e", &["92618045"]),
    ("preMcpToolCall-subagent", BeforeTool, "", "ec5808b1e", &["call_2_1"]),
    ("agentStop-subagent", Stop, "", "ec5808b1e", &[]),
    // The text of a hook at a stop, and a note about a background task.
    ("userPromptSubmitted-stop", Continued, "", "", &[]),
    ("agentStop-again", Stop, "", "", &[]),
    ("userPromptSubmitted-notification", Continued, "", "", &[]),
    ("notification-shell", Unknown, "", "", &[]),
    // This text reaches the model, but no transcript.
    ("postToolUseFailure", Unknown, "", "", &[]),
];

#[test]
fn every_recorded_payload_means_what_happened() {
    let recorded = Recorded::all("copilot");
    assert_eq!(recorded.len(), PAYLOADS.len(), "one row per payload");
    for (recorded, (name, kind, turn, subagent, calls)) in recorded.iter().zip(PAYLOADS) {
        assert_eq!(recorded.name, *name);
        let event = recorded.event("copilot");
        assert_eq!(event.kind, *kind, "{name}");
        let ends = |text: &Option<String>, end: &str| match text {
            Some(text) => !end.is_empty() && text.ends_with(end),
            None => end.is_empty(),
        };
        assert!(ends(&event.turn, turn), "{name}: {:?}", event.turn);
        assert!(ends(&event.subagent, subagent), "{name}: {:?}", event.subagent);
        assert_eq!(event.calls.len(), calls.len(), "{name}");
        assert!(
            event.calls.iter().zip(*calls).all(|(call, end)| call.ends_with(end)),
            "{name}: {:?}",
            event.calls
        );
        let session = if subagent.is_empty() { "sessionId" } else { "parentAgentId" };
        assert_eq!(event.session_id, recorded.stdin[session], "{name}");
        assert_eq!(event.cwd.as_deref(), Some(Path::new("/home/dev/proj")), "{name}");
        assert_eq!(event.native, *recorded.event.as_ref().unwrap(), "{name}");
        assert_eq!(event.stop_active, *name == "agentStop-again", "{name}");
    }
}

#[test]
fn a_dialog_blocks() {
    let mut payload = Recorded::named("copilot", "notification-shell").stdin;
    for (kind, expected) in
        [("permission_prompt", Blocked), ("elicitation_dialog", Blocked), ("agent_idle", Unknown)]
    {
        payload["notification_type"] = json!(kind);
        let event = Copilot.parse(payload.to_string().as_bytes(), Some("notification")).unwrap();
        assert_eq!(event.kind, expected, "{kind}");
    }
}

#[test]
fn a_payload_of_no_named_event_is_never_acted_on() {
    for recorded in Recorded::all("copilot") {
        let event = Copilot.parse(recorded.stdin.to_string().as_bytes(), None).unwrap();
        assert_eq!(event.kind, Unknown, "{}", recorded.name);
    }
}

#[test]
fn the_transcript_is_found_where_payloads_do_not_name_it() {
    let stop = Recorded::named("copilot", "agentStop").event("copilot");
    let named = stop.transcript.unwrap();
    let home = |key: &str| (key == "HOME").then(|| "/home/dev".into());
    assert_eq!(Copilot.transcript_path(&stop.session_id, &home), Some(named.clone()));
    let own = |key: &str| (key == "COPILOT_HOME").then(|| "/home/dev/.copilot".into());
    assert_eq!(Copilot.transcript_path(&stop.session_id, &own), Some(named));
    for hostile in ["../../x", "/etc", "a/b", "a\0b"] {
        assert_eq!(Copilot.transcript_path(hostile, &home), None, "{hostile:?}");
    }
}

#[test]
fn answers_are_flat() {
    let event = Recorded::named("copilot", "postToolUse").event("copilot");
    let says = |reply| serde_json::from_str::<Value>(&Copilot.render(&event, &reply, None)).unwrap();
    assert_eq!(says(Reply::Context("a \"b\"".to_owned())), json!({ "additionalContext": "a \"b\"" }));
    assert_eq!(says(Reply::Continue("a".to_owned())), json!({ "decision": "block", "reason": "a" }));
    assert_eq!(says(Reply::Block("a".to_owned())), json!({ "decision": "block", "reason": "a" }));
    assert_eq!(Copilot.render(&event, &Reply::Silent, None), "");
}

/// The extension names its events in the payload; a hook has them in its command.
#[test]
fn what_the_extension_tells_is_read() {
    let said = |event: &str, processing: bool| {
        let payload = json!({"sessionId": "s", "cwd": "/p", "extensionEvent": event, "processing": processing, "model": "m"});
        Copilot.parse(payload.to_string().as_bytes(), None).unwrap()
    };
    assert_eq!(said("extension.joined", false).kind, Start(Source::New));
    assert_eq!(said("extension.joined", true).kind, BeforeTool);
    assert_eq!(said("assistant.turn_start", false).kind, BeforeTool);
    assert_eq!(said("assistant.message", false).kind, Request);
    let made_up = json!({"sessionId": "s", "extensionEvent": "assistant.message"});
    assert_eq!(Copilot.parse(made_up.to_string().as_bytes(), None).unwrap().kind, Other);
    assert_eq!(said("assistant.idle", false).kind, IdleNotice);
    assert_eq!(said("assistant.something", false).kind, Unknown);
    assert_eq!(said("assistant.idle", false).native, "assistant.idle");
}

#[test]
fn the_wake_line_is_distinguished_from_a_users_prompt() {
    let prompt = |text: &str| {
        let mut payload = Recorded::named("copilot", "userPromptSubmitted").stdin;
        payload["prompt"] = json!(text);
        Copilot.parse(payload.to_string().as_bytes(), Some("userPromptSubmitted")).unwrap()
    };
    let wake = Copilot.wake("s", "[baton] Mail is waiting for you.").unwrap();
    let woken = prompt(wake["prompt"].as_str().unwrap());
    assert_eq!(woken.kind, Woken);
    assert_eq!(woken.turn, prompt("hello").turn, "it begins a turn as any other");
    assert_eq!(prompt(&format!("{} Really.", wake["prompt"].as_str().unwrap())).kind, Prompt);
}

#[test]
fn the_process_of_an_extension_runs_no_session() {
    let is =
        |args: &[&str]| Copilot.is_process(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
    assert!(is(&["/opt/copilot", "--experimental"]) && is(&["node", "/opt/copilot"]));
    assert!(!is(&["/opt/copilot", "/cache/copilot/preloads/extension_bootstrap.mjs"]));
}

#[test]
fn text_is_offered_only_where_the_transcript_will_show_it() {
    let taken: Vec<&str> = PAYLOADS
        .iter()
        .filter(|(_, kind, _, subagent, _)| Copilot.context_limit(*kind).is_some() && subagent.is_empty())
        .map(|(name, ..)| *name)
        .collect();
    assert_eq!(taken, ["userPromptSubmitted", "postToolUse", "agentStop", "agentStop-again"]);
    assert_eq!(Copilot.context_limit(AfterTool), Some(ContextLimit::new(10_000, Unit::Bytes)));
}

/// The hook before a call names the caller, and the call then carries that.
#[test]
fn calls_of_our_tools_are_signed() {
    let signed = |name: &str, server: &str| {
        let mut recorded = Recorded::named("copilot", name);
        recorded.stdin["serverName"] = json!(server);
        let answer = Copilot.sign_call(&recorded.event("copilot"))?;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        Some(Copilot.mcp_caller(answer["metaToUse"].as_object().unwrap()))
    };
    let session = Recorded::named("copilot", "agentStop").event("copilot").session_id;
    for (name, call, subagent) in
        [("preMcpToolCall", "call_4_0", false), ("preMcpToolCall-subagent", "call_2_1", true)]
    {
        let caller = McpCaller { session_id: Some(session.clone()), call: Some(call.to_owned()), subagent };
        assert_eq!(signed(name, "baton"), Some(caller));
        assert_eq!(signed(name, "probe"), None);
    }
    assert_eq!(Copilot.sign_call(&Recorded::named("copilot", "postToolUse").event("copilot")), None);
    assert_eq!(Copilot.mcp_caller(json!({ "progressToken": 1 }).as_object().unwrap()), McpCaller::default());
}

#[test]
fn hooks_that_copilot_runs_for_others_are_distinguished_from_its_shells() {
    for recorded in Recorded::all("copilot") {
        let env = |key: &str| recorded.env.get(key).map(Into::into);
        assert!(Copilot.runs_foreign_hook(b"{}", &env), "{}", recorded.name);
        assert_eq!(Copilot.shell(&env), None);
    }
    let shell = |key: &str| match key {
        "COPILOT_CLI" => Some("1".into()),
        "COPILOT_AGENT_SESSION_ID" => Some("s".into()),
        _ => None,
    };
    assert!(!Copilot.runs_foreign_hook(b"{}", &shell));
    assert_eq!(Copilot.shell(&shell).unwrap().session_id, "s");
}

#[test]
fn a_turn_reads_as_it_happened() {
    let expected = "
            injected <current_datetime>2026-11-16T01:28:35.476+00:00</current_dat
            prompt 92515396
            response 4a4460ae-06c0-40a2-882e-2426d91722f5 calls call_1_0, call_1_1
            response 4a4460ae-06c0-40a2-882e-2426d91722f5 calls hook-1794792515819
            result hook-1794792515819:
            result call_1_1: two/<shellId: 0 completed with exit code 0>//Tool \"bash\" suc
            injected CTX-postToolUse-0
            response 4a4460ae-06c0-40a2-882e-2426d91722f5 calls hook-1794792516325
            result hook-1794792516325:
            result call_1_0: one/******/COPILOT_CLI_RESOLVED_DIST_DIR=/home/dev/.cache/co
            injected CTX-postToolUse-1
            response ec45cb13-aa96-4ab0-bf1b-24d7af79d6cb calls call_2_0
            response ec45cb13-aa96-4ab0-bf1b-24d7af79d6cb calls hook-1794792516537
            result hook-1794792516537:
            result call_2_0: three/<shellId: 2 completed with exit code 0>//Tool \"bash\" s
            injected CTX-postToolUse-2
            response f44e84da-ca5b-45ac-9092-bae09b0cc3e1
            injected CTX-agentStop-0 [baton-offer n0123456789ab]
            response 1e015997-d77b-42d9-9478-71e01e86392a
        ";
    assert_eq!(Sample::named("copilot-turn").sketch(), lines(expected));
}

/// The subagent's conversation is between the parent's lines.
#[test]
fn nothing_of_a_subagent_counts() {
    let expected = "
            injected <current_datetime>2026-11-16T01:30:17.223+00:00</current_dat
            prompt 92617143
            response 62423786-c61e-4366-9030-214d94dc6a54 calls call_1_0, call_1_1
            response 62423786-c61e-4366-9030-214d94dc6a54 calls hook-1794792618294
            result hook-1794792618294:
            result call_1_0: sub answer//Tool \"task\" succeeded.
            injected CTX-postToolUse-2
            response 62423786-c61e-4366-9030-214d94dc6a54 calls hook-1794792618587
            result hook-1794792618587:
            result call_1_1: par/<shellId: 0 completed with exit code 0>//Tool \"bash\" suc
            injected CTX-postToolUse-3
            response 145eff32-6432-47f3-9abb-ee59efbc9d50 calls call_4_0
            response 145eff32-6432-47f3-9abb-ee59efbc9d50 calls hook-1794792618786
            result hook-1794792618786:
            result call_4_0: me 19889//Tool \"probe-whoami\" succeeded.
            injected CTX-postToolUse-4
            response 27b5072b-c751-414c-8df7-c4445ea65ff4
        ";
    assert_eq!(Sample::named("copilot-subagent").sketch(), lines(expected));
}

fn tools(moment: &str) -> Anchor {
    Anchor::Tools(vec![format!("hook-{moment}")])
}

/// An offer at each kind of event, by the text of its hook, with the response to it, and the
/// conclusion if the transcript does not contain it.
fn offers() -> Vec<(Offer<'static>, &'static str)> {
    let offer = |anchor, before| Offer { anchor, turn: "92515396", before };
    vec![
        (offer(Anchor::Prompt, "CTX-userPromptSubmitted-0"), "4a4460ae"),
        (offer(tools("1794792515819"), "CTX-postToolUse-0"), "ec45cb13"),
        (offer(tools("1794792516325"), "CTX-postToolUse-1"), "ec45cb13"),
        (offer(tools("1794792516537"), "CTX-postToolUse-2"), "f44e84da"),
    ]
}

#[test]
fn text_in_the_context_is_proven_by_the_response_to_it() {
    for (offer, response) in offers() {
        let marked = Sample::named("copilot-turn").with(offer.before, &mark());
        let course = marked.course(&Offer { before: &mark(), ..offer });
        let looks: Vec<Proof> = course.iter().map(|(look, _)| *look).collect();
        assert_eq!(looks, [Open, Held, Proven], "{}", offer.before);
        assert!(course[2].1.contains(response), "{} was proven by {}", offer.before, course[2].1);
    }
}

/// Also if the hook's raw output has it, but the agent did not use it.
#[test]
fn an_offer_that_was_not_taken_is_passed_by_the_next_response() {
    for (offer, response) in offers() {
        let raw = |line: &str| line.contains("hook.end");
        let sample = Sample::named("copilot-turn").with_in(raw, offer.before, &mark());
        let course = sample.course(&Offer { before: &mark(), ..offer });
        assert_eq!(
            course.iter().map(|(look, _)| *look).collect::<Vec<_>>(),
            [Open, Passed],
            "{}",
            offer.before
        );
        assert!(course[1].1.contains(response), "{} was passed by {}", offer.before, course[1].1);
    }
}

#[test]
fn a_mark_that_a_message_quotes_does_not_count() {
    for (offer, _) in offers() {
        let quoting = Sample::named("copilot-turn").with(offer.before, &quoted_mark());
        assert_eq!(quoting.looks(&Offer { before: &quoted_mark(), ..offer }), [Open, Passed]);
    }
}

#[test]
fn words_of_the_model_and_results_of_tools_do_not_count() {
    for text in ["let me", "echo three", "three\\n<shellId", "two\\n<shellId"] {
        let saying = Sample::named("copilot-turn").with(text, &format!("I read {} {text}", mark()));
        for (offer, _) in offers() {
            assert_eq!(saying.looks(&offer), [Open, Passed], "{text}, {}", offer.before);
        }
    }
}

#[test]
fn what_was_said_at_a_stop_is_proven_as_the_next_prompt() {
    let offer = Offer { anchor: Anchor::Stop, turn: "92515396", before: "CTX-agentStop-0" };
    assert_eq!(Sample::named("copilot-turn").looks(&offer), [Open, Held, Proven]);
}

/// What the user typed while the turn ended is answered first, and proves nothing about it.
#[test]
fn what_was_typed_ahead_goes_before_what_was_said_at_a_stop() {
    let sample =
        Sample::named("copilot-typed-ahead").with(&format!("CTX-agentStop-1 {}", mark()), "earlier mail");
    let offer = Offer { anchor: Anchor::Stop, turn: "92753598", before: "CTX-agentStop-0" };
    let course = sample.course(&offer);
    assert_eq!(course.iter().map(|(look, _)| *look).collect::<Vec<_>>(), [Open, Held, Proven]);
    assert!(course[2].1.contains("305df301"), "proven by {}", course[2].1);
    // A killed hook said nothing: the next prompt belongs to a later turn.
    let killed = sample.with(&mark(), "nothing");
    assert_eq!(killed.looks(&offer), [Open, Passed]);
}

#[test]
fn results_of_our_own_tools_count_for_their_call_alone() {
    let sample = Sample::named("copilot-turn").with("two\\n<shellId", &format!("{} <shellId", mark()));
    let offer = |call: &str| Offer {
        anchor: Anchor::Call(call.to_owned()),
        turn: "92515396",
        before: "CTX-postToolUse-0",
    };
    assert_eq!(sample.looks(&offer("call_1_1")), [Open, Held, Proven]);
    assert_eq!(sample.looks(&offer("call_1_0")), [Open, Passed]);
    let shell = Offer { anchor: Anchor::Shell, ..offer("") };
    assert_eq!(sample.looks(&shell), [Open, Held, Proven]);
}

#[test]
fn a_summary_counts_once_it_is_there() {
    let line = |success: bool, agent: Value| {
        let data = json!({"success": success, "outcome": "applied", "preCompactionMessagesLength": 2, "messagesRemoved": 1});
        json!({"type": "session.compaction_complete", "data": data, "agentId": agent}).to_string()
    };
    let mut read = Copilot.transcript();
    assert_eq!(read(&line(true, Value::Null)), [Item::Summarized]);
    assert_eq!(read(&line(false, Value::Null)), [], "it failed");
    assert_eq!(read(&line(true, json!("a-subagent"))), [], "it is a subagent's");
}
