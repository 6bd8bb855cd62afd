//! The testkit with the real agents: each does one scripted turn with a tool, a hook and no
//! network.

use std::time::Duration;

use baton_testkit::agents::Session;
use baton_testkit::claude::{self, Claude};
use baton_testkit::codex::{self, Codex};
use baton_testkit::gemini::Gemini;
use baton_testkit::model::Kind;
use baton_testkit::{Model, Sandbox, Script, Step, isolated, transcript};
use serde_json::json;

/// A hook that adds a text to the conversation.
fn context_hook(event: &str, text: &str) -> serde_json::Value {
    let output = json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}});
    json!({"type": "command", "command": format!("printf '%s' '{output}'")})
}

/// Runs a command, then ends.
fn one_tool() -> Script {
    Script::by(|request| match request.results().len() {
        0 => Step::shell("echo from-the-tool"),
        _ => Step::say("finished"),
    })
}

#[test]
fn claude_does_a_scripted_tool_turn() {
    isolated(|| {
        let (sandbox, model) = (Sandbox::new(), Model::start(one_tool()));
        let claude = Claude::new(&sandbox, &model);
        claude.add_hook("PostToolBatch", context_hook("PostToolBatch", "NONCE-1"));
        let run = claude.run(Session::New, "PROMPT-1");
        let session = claude::session_id(&run).unwrap();

        let requests = model.requests_of(Kind::Main);
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].session, session);
        assert!(requests[1].results()[0].text.contains("from-the-tool"));
        assert_eq!(model.sightings("PROMPT-1").most, 1);
        let nonce = model.sightings("NONCE-1");
        assert_eq!((nonce.first, nonce.most), (Some(requests[1].index), 1));
        let contexts = transcript::claude_contexts(&claude.transcript(&session));
        assert_eq!(contexts.len(), 1, "{contexts:?}");
        assert_eq!((&*contexts[0].place, &*contexts[0].text), ("PostToolBatch", "NONCE-1"));

        claude.run(Session::Resume(&session), "PROMPT-2");
        let resumed = &model.requests_of(Kind::Main)[2];
        assert_eq!(resumed.count("NONCE-1"), 1, "a resumed session has it still");
        assert_eq!(model.unknown_calls(), [""; 0]);
    });
}

#[test]
fn codex_does_a_scripted_tool_turn() {
    isolated(|| {
        let (sandbox, model) = (Sandbox::new(), Model::start(one_tool()));
        let codex = Codex::new(&sandbox, &model).trusting_hooks();
        codex.add_hook("PostToolUse", context_hook("PostToolUse", "NONCE-1"));
        let run = codex.run(Session::New, "PROMPT-1");
        let thread = codex::thread_id(&run).unwrap();

        let requests = model.requests_of(Kind::Main);
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].session, thread);
        assert!(requests[1].results()[0].text.contains("from-the-tool"));
        let nonce = model.sightings("NONCE-1");
        assert_eq!((nonce.first, nonce.most), (Some(requests[1].index), 1));
        let contexts = transcript::codex_contexts(&codex.rollout(&thread));
        assert_eq!(contexts.len(), 1, "{contexts:?}");

        codex.run(Session::Resume(&thread), "PROMPT-2");
        let resumed = &model.requests_of(Kind::Main)[2];
        assert_eq!(resumed.count("NONCE-1"), 1, "a resumed session has it still");
        assert_eq!(model.unknown_calls(), [""; 0]);
    });
}

#[test]
fn gemini_does_a_scripted_tool_turn() {
    isolated(|| {
        let (sandbox, model) = (Sandbox::new(), Model::start(one_tool()));
        let gemini = Gemini::new(&sandbox, &model);
        gemini.add_hook("AfterTool", context_hook("AfterTool", "NONCE-1"));
        let run = gemini.run(Session::New, "PROMPT-1");
        let session = claude::session_id(&run).unwrap();

        let requests = model.requests_of(Kind::Main);
        assert_eq!(requests.len(), 2);
        assert!(requests[0].offers("run_shell_command"));
        assert!(requests[1].results()[0].text.contains("from-the-tool"));
        let nonce = model.sightings("NONCE-1");
        assert_eq!((nonce.first, nonce.most), (Some(requests[1].index), 1));
        let transcripts = gemini.transcripts();
        assert_eq!(transcripts.len(), 1, "{transcripts:?}");
        assert!(std::fs::read_to_string(&transcripts[0]).unwrap().contains("<hook_context>NONCE-1"));

        gemini.run(Session::Resume(&session), "PROMPT-2");
        let resumed = &model.requests_of(Kind::Main)[2];
        // It sends the results of a resumed session's tools twice, with the text of hooks.
        assert_eq!((resumed.count("NONCE-1"), resumed.count("from-the-tool\n")), (2, 2));
        assert_eq!((resumed.count("PROMPT-1"), resumed.count("PROMPT-2")), (1, 1));
        assert_eq!(model.unknown_calls(), [""; 0]);
    });
}

#[test]
fn both_agents_take_a_prompt_in_a_terminal() {
    isolated(|| {
        let (sandbox, model) = (Sandbox::new(), Model::start(one_tool()));
        let limit = Duration::from_secs(30);
        let (claude, codex) = (Claude::new(&sandbox, &model), Codex::new(&sandbox, &model));
        for terminal in [claude.open("claude", Session::New), codex.open("codex", Session::New)] {
            terminal.submit("please begin");
            terminal.wait_for("finished", limit).unwrap_or_else(|error| panic!("{error}"));
            terminal.kill();
        }
        assert_eq!(model.requests_of(Kind::Main).len(), 4);
        assert_eq!(claude.transcripts().len(), 1);
        assert_eq!(codex.rollouts().len(), 1);
    });
}
