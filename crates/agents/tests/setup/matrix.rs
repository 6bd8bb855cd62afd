//! `docs/agents.md` is made from the table of agents: mail by the adapters' own limits, the rest by
//! their facts.

use baton_agents::agent::Push;
use baton_agents::{ALL, Agent, ContextLimit};
use baton_core::event::{EventKind, Source};
use baton_core::frame::Unit;
use baton_core::id::Nonce;
use baton_core::time::Moment;
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "\
# What each agent can and can't do

This page is made from the table of agents in `crates/agents`, and a test keeps it true. To write it
again: `BATON_WRITE_REFERENCE=1 cargo test -p baton-agents matrix`.

## How much mail an event brings

More mail than this waits for the next event. A dash means that no mail comes at that event.

";

const CONTROL: &str = "
## What a hook can do to a tool call

These facts were found by experiment with the versions below. The stories in
`tests/stories/guard.rs` check them with the real programs. baton's guard refuses, asks and replaces
output; it changes no input. If an agent can't do what the guard says, the guard does the nearest
stronger thing.

";

const NOTES: &str = "
## How this was verified

Cursor is set up by its documented format. It can't run without its own service, so nothing about it
was tried. The stories in `tests/stories` run the other six offline, against a scripted model:
`scripts/test`. `scripts/drift` checks whether newer versions still behave like this.
";

/// The longest line of prose.
const COLUMNS: usize = 100;

/// An item of a list, wrapped.
fn item(words: &str) -> String {
    let (mut text, mut taken) = ("-".to_owned(), 1);
    for word in words.split(' ') {
        if taken + 1 + word.chars().count() > COLUMNS {
            text.push_str("\n ");
            taken = 1;
        }
        text.push(' ');
        text.push_str(word);
        taken += 1 + word.chars().count();
    }
    text.push('\n');
    text
}

fn takes(agent: &dyn Agent, events: &[EventKind]) -> String {
    let found = events.iter().find_map(|event| agent.context_limit(*event));
    match found {
        None => "–".to_owned(),
        Some(ContextLimit { size, unit }) => {
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
    agent
        .push(&Push { session_id: "s", text: "t", glance: None, nonce: &nonce, made_at: Moment(1) })
        .is_some()
}

fn pushes(agent: &dyn Agent) -> bool {
    carries(agent) || agent.wake("s", "[baton] Mail is waiting for you.").is_some()
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
        ("when a plugin or extension wakes it", &|agent| {
            if pushes(agent) { takes(agent, &[EventKind::IdleNotice]) } else { "–".to_owned() }
        }),
        ("where you see who wrote what", &|agent| short(agent.facts().shows)),
    ]);
    let control = table(&[
        ("refuse it", &fact(|facts| facts.deny)),
        ("ask a person", &|agent| short(agent.facts().ask)),
        ("change its input", &fact(|facts| facts.rewrite)),
        ("replace its output", &|agent| short(agent.facts().redact)),
        ("when the hook fails", &|agent| short(agent.facts().failing)),
    ]);
    let agents: String = ALL.iter().map(|agent| section(*agent)).collect();
    [HEAD, &mail, CONTROL, &control, "\nThe section of each agent has the details.\n", &agents, NOTES]
        .concat()
}

/// What a fact says in a few words; the section of the agent has all of it.
fn short(fact: &str) -> String {
    let few = fact.split([';', ':', ',']).next().unwrap_or(fact);
    if few.len() < fact.len() { format!("{few} …") } else { few.to_owned() }
}

fn section(agent: &dyn Agent) -> String {
    let facts = agent.facts();
    let mut text = format!("\n## {}\n\n", agent.title());
    for (name, fact) in [
        ("Verified with", agent.verified().unwrap_or("its documentation alone")),
        ("What runs", facts.runs),
        ("Where you see who wrote what", facts.shows),
        ("Proof that mail was shown", facts.proof),
        ("Session id", facts.session),
        ("How subagents are known, which get no mail", facts.subagents),
        ("To ask a person", facts.ask),
        ("To replace a tool's output", facts.redact),
        ("When the guard's hook fails", facts.failing),
    ] {
        text.push_str(&item(&format!("{name}: {fact}.")));
    }
    for hole in facts.holes {
        text.push_str(&item(&format!("Hole: {hole}.")));
    }
    text
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

/// An idle session takes pushes exactly if its agent has a limit for them.
#[test]
fn an_agent_that_can_be_pushed_has_a_limit_for_it() {
    for agent in ALL {
        assert_eq!(pushes(*agent), agent.context_limit(EventKind::IdleNotice).is_some(), "{}", agent.name());
        assert!(
            !carries(*agent) || agent.quirks().shows_requests,
            "{}: a push that carries mail needs proof by requests",
            agent.name()
        );
        let woken = agent.wake("s", "[baton] Mail is waiting for you.").is_some();
        assert!(!(woken && carries(*agent)), "{}: one of the two", agent.name());
        assert!(
            !woken || agent.context_limit(EventKind::Woken).is_some(),
            "{}: its prompt hook brings it",
            agent.name()
        );
        assert_eq!(
            agent.context_limit(EventKind::Woken).is_some(),
            agent.context_limit(EventKind::Prompt).is_some() && !carries(*agent),
            "{}: a woken session's prompt is a prompt",
            agent.name()
        );
    }
}
