//! `docs/agents.md` is made from the table of agents: what mail can do by the adapters' own answers, the rest by their facts.

use baton_agents::agent::Push;
use baton_agents::{ALL, Agent};
use baton_core::event::{EventKind, Source};
use baton_core::frame::Unit;
use baton_core::id::Nonce;
use baton_core::time::Moment;
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "\
# What each agent can and can't do

Made from the table of agents in `crates/agents` (`BATON_WRITE_REFERENCE=1 cargo test -p baton-agents matrix`); a test keeps it true.

## Mail

How much text an event takes at most; more waits for the next. A dash: nothing is delivered there.

";

const FACTS: &str = "
## How it works there

";

const CONTROL: &str = "
## What a hook can do to a tool call

Found by experiment with the versions above, and run with the real programs in `tests/stories/guard.rs`. baton's guard refuses, asks and replaces; it changes no input.
Where an agent can't do what the guard says, it gets the nearest stronger thing.

";

const HOLES: &str = "
## What they leave open

";

const NOTES: &str = "
Cursor is set up by its documented format and has not been verified with the real program, which can't run without its own service.

The stories in `tests/stories` run the other six, offline, against a scripted model: `scripts/test`. Whether newer versions still behave so: `scripts/drift`.
";

fn takes(agent: &dyn Agent, events: &[EventKind]) -> String {
    let found = events.iter().find_map(|event| agent.takes(*event));
    match found {
        None => "–".to_owned(),
        Some((size, unit)) => {
            let unit = match unit {
                Unit::Utf16 | Unit::Chars => "characters",
                Unit::Bytes => "bytes",
            };
            let thousands = format!("{},{:03}", size / 1000, size % 1000);
            format!("{thousands} {unit}")
        }
    }
}

/// Whether a push carries the mail.
fn carries(agent: &dyn Agent) -> bool {
    let nonce = Nonce::from_random([7; 8]);
    agent.push(&Push { session_id: "s", text: "t", nonce: &nonce, made_at: Moment(1) }).is_some()
}

fn pushes(agent: &dyn Agent) -> bool {
    carries(agent) || agent.wake("s").is_some()
}

type Cell<'a> = &'a dyn Fn(&dyn Agent) -> String;

fn table(rows: &[(&str, Cell<'_>)]) -> String {
    let mut text = "| |".to_owned();
    for agent in ALL {
        write!(text, " {} |", agent.title()).unwrap();
    }
    write!(text, "\n|---|{}\n", "---|".repeat(ALL.len())).unwrap();
    for (name, cell) in rows {
        write!(text, "| {name} |").unwrap();
        for agent in ALL {
            write!(text, " {} |", cell(*agent)).unwrap();
        }
        text.push('\n');
    }
    text
}

fn page() -> String {
    let fact = |which: fn(&baton_agents::facts::Facts) -> &'static str| {
        move |agent: &dyn Agent| which(agent.facts()).to_owned()
    };
    let mail = table(&[
        ("at the start", &|agent| takes(agent, &[EventKind::Start(Source::Startup)])),
        ("with a prompt", &|agent| takes(agent, &[EventKind::Prompt])),
        ("between tools", &|agent| takes(agent, &[EventKind::AfterTools, EventKind::AfterTool])),
        ("at a stop, which then goes on", &|agent| takes(agent, &[EventKind::Stop])),
        ("while it is idle", &|agent| {
            if pushes(agent) { takes(agent, &[EventKind::IdleNotice]) } else { "–".to_owned() }
        }),
    ]);
    let how = table(&[
        ("verified with", &|agent| agent.verified().unwrap_or("its documentation alone").to_owned()),
        ("what runs", &fact(|facts| facts.runs)),
        ("proof that mail was shown", &fact(|facts| facts.proof)),
        ("session id", &fact(|facts| facts.session)),
        ("subagents, which take no mail", &fact(|facts| facts.subagents)),
    ]);
    let control = table(&[
        ("refuse it", &fact(|facts| facts.deny)),
        ("ask a person", &fact(|facts| facts.ask)),
        ("change its input", &fact(|facts| facts.rewrite)),
        ("replace its output", &fact(|facts| facts.redact)),
        ("when the hook fails", &fact(|facts| facts.failing)),
    ]);
    let holes: String = ALL
        .iter()
        .flat_map(|agent| agent.facts().holes.iter().map(|hole| format!("- {}: {hole}\n", agent.title())))
        .collect();
    [HEAD, &mail, FACTS, &how, CONTROL, &control, HOLES, &holes, NOTES].concat()
}

#[test]
fn the_page_of_agents_is_what_the_table_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    if std::env::var_os("BATON_WRITE_REFERENCE").is_some() {
        std::fs::write(&file, page()).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page(),
        "docs/agents.md is out of date: BATON_WRITE_REFERENCE=1 cargo test -p baton-agents matrix"
    );
}

/// An idle session takes pushes exactly where its agent says how much of one.
#[test]
fn whoever_is_pushed_says_how_much_it_takes() {
    for agent in ALL {
        assert_eq!(pushes(*agent), agent.takes(EventKind::IdleNotice).is_some(), "{}", agent.name());
        assert!(
            !carries(*agent) || agent.shows_requests(),
            "{}: a push that carries mail needs proof by requests",
            agent.name()
        );
        let woken = agent.wake("s").is_some();
        assert!(!(woken && carries(*agent)), "{}: one of the two", agent.name());
        assert!(
            !woken || agent.takes(EventKind::Woken).is_some(),
            "{}: its prompt hook brings it",
            agent.name()
        );
        assert_eq!(
            agent.takes(EventKind::Woken).is_some(),
            agent.takes(EventKind::Prompt).is_some() && !carries(*agent),
            "{}: a woken session's prompt is a prompt",
            agent.name()
        );
    }
}
