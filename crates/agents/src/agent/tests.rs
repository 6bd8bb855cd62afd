//! The smallest agent that baton can serve, and the table of all of them.

use super::*;
use crate::asked::RecordedQuestion;
use crate::call::{Ruling, SHAPE, ToolCall};
use crate::facts::{Facts, Quirks};
use crate::history::History;
use crate::install::{Install, InstallError, Target};
use crate::screen::Screen;
use crate::wake::Idle;
use baton_core::approval::{Answer, Extent, Question, Subject};
use baton_core::event::{Event, EventKind, Reply, Shown};
use baton_core::frame::Unit;
use baton_core::guard::HookSwitch;
use baton_core::mail::Anchor;
use baton_core::time::Moment;
use std::path::Path;

#[test]
fn the_holes_of_an_agent_are_short_lines() {
    for agent in ALL {
        assert!(!agent.facts().holes.is_empty(), "{} leaves something open too", agent.name());
        for hole in agent.facts().holes {
            assert!(!hole.is_empty() && hole.len() <= 120 && !hole.contains('\n'), "{hole}");
        }
    }
}

/// The least that an agent has to say about itself.
struct Minimal;

impl Profile for Minimal {
    fn facts(&self) -> &'static Facts {
        const FACTS: Facts = Facts {
            name: "minimal",
            title: "Minimal",
            program: "minimal",
            verified: None,
            tools: &crate::cursor::tools::TOOLS,
            calls: &SHAPE,
            quirks: Quirks::USUAL,
            runs: "",
            shows: "",
            proof: "",
            session: "",
            subagents: "",
            failing: "",
            deny: "",
            ask: "",
            rewrite: "",
            redact: "",
            wakeable: "",
            after_setup: "",
            variables: &[],
            logins: &[],
            switch: HookSwitch {
                program: "minimal",
                files: &[],
                words: &[],
                options: &[],
                sources: &[],
                homes: &[],
            },
            holes: &[],
        };
        &FACTS
    }
}

impl Setup for Minimal {
    fn target(
        &self,
        install: Install,
        user_home: &Path,
        _env: Env<'_>,
    ) -> Result<Box<dyn Target>, InstallError> {
        Ok(Box::new(crate::cursor::install::Cursor::new(install, user_home)?))
    }
}

impl HookCodec for Minimal {
    fn parse(&self, _payload: &[u8], _named: Option<&str>) -> Result<Event, Error> {
        Ok(prompt())
    }

    fn render(&self, _event: &Event, _reply: &Reply, _glance: Option<&str>) -> String {
        String::new()
    }

    fn context_limit(&self, event: EventKind) -> Option<ContextLimit> {
        (event == EventKind::Prompt).then_some(ContextLimit::new(1_000, Unit::Bytes))
    }

    fn render_ruling(&self, _call: &ToolCall, _ruling: &Ruling) -> String {
        String::new()
    }
}

impl Identity for Minimal {
    fn shell(&self, _env: Env<'_>) -> Option<Shell> {
        None
    }

    fn is_process(&self, args: &[String]) -> bool {
        args.first().is_some_and(|program| program == "minimal")
    }
}

impl Transcript for Minimal {}
impl PastCalls for Minimal {}
impl Questions for Minimal {}
impl Waking for Minimal {}

fn prompt() -> Event {
    Event {
        kind: EventKind::Prompt,
        native: "prompt".to_owned(),
        session_id: "s".to_owned(),
        transcript: None,
        cwd: None,
        subagent: None,
        tool: None,
        calls: Vec::new(),
        turn: None,
        prompt: None,
        stop_active: false,
        shown: Shown::default(),
    }
}

#[test]
fn a_minimal_agent_takes_mail_and_nothing_more() {
    let agent: &dyn Agent = &Minimal;
    let (nothing, event) = (&|_: &str| None, prompt());
    assert!(agent.context_limit(EventKind::Prompt).is_some());
    assert!(agent.runs_hooks(&["minimal".to_owned()]) && !agent.runs_foreign_hook(b"{}", nothing));

    assert_eq!(agent.asked(b"{}", &event), None);
    assert!(!agent.is_headless(&[], nothing));
    let subject = Subject::permission(Some("Shell"), Vec::new(), Extent::Whole);
    let question = Question::new("q", subject);
    let asking = RecordedQuestion {
        session_id: "s",
        subagent: None,
        pid: Some(1),
        transcript: None,
        question: &question,
        call: None,
        input: 0,
        since: Moment(0),
        handed: Some(&Answer::Allow),
    };
    let probe = crate::asked::ProcessProbe { read: &|_| None, started_below: &|_| Vec::new() };
    assert_eq!(agent.question_status(&asking, probe), None);

    let idle = Idle { session_id: "s", transcript: None, cwd: None, pid: None, arguments: &[], line: "x" };
    assert_eq!(agent.routes(&idle, &|_| None), []);
    assert_eq!(
        (agent.wake("s", "[baton] Mail is waiting for you."), agent.wants_waiter(nothing)),
        (None, false)
    );
    assert_eq!((agent.screen(""), agent.registry(1, "/t")), (Screen::Unknown, None));

    assert_eq!(agent.transcript()("{}"), []);
    assert_eq!(agent.call_anchor("c"), Anchor::Call("c".to_owned()));
    assert!(matches!(agent.history(Path::new("/home/dev"), None, nothing), History::Unreadable(_)));
    assert_eq!(agent.mcp_caller(&serde_json::Map::new()), McpCaller::default());
}
