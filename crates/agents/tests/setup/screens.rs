//! Recorded screens of the real programs, and what they are recognised as:
//! `tests/screens/AGENT-CASE-WIDTH.screen`, as `tmux capture-pane -e -p` printed them.

use baton_agents::{Screen, by_name};
use std::path::Path;

/// The line that is typed to wake an agent.
const LINE: &str = "[baton] Mail is waiting for you.";

type Case = (&'static str, fn() -> Screen);

/// What each case shows, for every agent that has it.
const CASES: &[Case] = &[
    ("start", || Screen::Ready),
    ("ready", || Screen::Ready),
    ("clear", || Screen::Ready),
    ("sent", || Screen::Ready),
    ("truecolour", || Screen::Ready),
    // Faint words in an empty box: an example, and a suggestion for the next prompt.
    ("hint", || Screen::Ready),
    ("suggestion", || Screen::Ready),
    ("line", || draft(LINE)),
    ("draft", || draft("hello there")),
    ("truecolour_draft", || draft("hello there\n\nmore")),
    ("menu", || draft("/")),
    // There a line is a shell command.
    ("shell", || draft("!")),
    ("busy", || Screen::Busy),
    ("busy_draft", || Screen::Busy),
    ("dialog", || Screen::Dialog),
    ("new", || Screen::Dialog),
    ("model", || Screen::Dialog),
    ("permissions", || Screen::Dialog),
    ("settings", || Screen::Dialog),
    ("palette", || Screen::Unknown),
    ("tab", || Screen::Unknown),
    ("transcript", || Screen::Unknown),
];

/// Screens that are recognised as something else, but never as ready.
const OTHERWISE: &[Case] = &[
    ("claude-search", || Screen::Dialog),
    ("gemini-search", || draft("(r:) Type your message or @path/to/file")),
    ("gemini-shell", || draft("! Type your shell command")),
    ("copilot-shell", || draft("! Execute shell command")),
];

fn draft(text: &str) -> Screen {
    Screen::Draft(text.to_owned())
}

fn expected(agent: &str, case: &str) -> Option<Screen> {
    let whole = format!("{agent}-{case}");
    let find = |table: &[Case], name: &str| {
        table.iter().find(|(known, _)| *known == name).map(|(_, screen)| screen())
    };
    find(OTHERWISE, &whole).or_else(|| find(CASES, case))
}

/// All recordings: agent, case, width, and the screen.
fn recordings() -> Vec<(String, String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens");
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let parts: Vec<&str> = name.split('-').collect();
        let [agent, case, width] = parts[..] else { panic!("{name} is no AGENT-CASE-WIDTH") };
        let screen = std::fs::read_to_string(&path).unwrap();
        found.push((agent.to_owned(), case.to_owned(), width.to_owned(), screen));
    }
    found.sort();
    found
}

/// A narrow pane breaks our line, so blanks don't count. A menu may complete what is typed, or be
/// drawn next to it.
fn joined(screen: Screen) -> Screen {
    match screen {
        Screen::Draft(text) if text.starts_with('/') => draft("/"),
        Screen::Draft(text) => draft(&text.split_whitespace().collect::<Vec<_>>().join(" ")),
        other => other,
    }
}

#[test]
fn recorded_screens_are_taken_for_what_they_show() {
    let mut wrong = Vec::new();
    for (agent, case, width, screen) in recordings() {
        let expected = expected(&agent, &case).unwrap_or_else(|| panic!("what is {case} of {agent}?"));
        let taken = by_name(&agent).unwrap().screen(&screen);
        if joined(taken.clone()) != joined(expected.clone()) {
            wrong.push(format!("{agent}-{case}-{width}: {taken:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_agent_that_is_typed_into_has_its_screens_recorded() {
    let all = recordings();
    // The others have no real program in the tests, and are never typed into.
    for agent in baton_agents::ALL.iter().filter(|agent| agent.verified().is_some()).map(|agent| agent.name())
    {
        for case in ["start", "ready", "line", "draft", "menu", "shell", "busy", "busy_draft"] {
            assert!(all.iter().any(|known| known.0 == agent && known.1 == case), "{agent} {case}");
        }
        for width in ["160", "80", "44"] {
            assert!(all.iter().any(|known| known.0 == agent && known.2 == width), "{agent} {width}");
        }
    }
}

#[test]
fn no_agent_is_ready_on_the_screen_of_another_or_on_a_part_of_its_own() {
    for (agent, case, width, screen) in recordings() {
        for other in baton_agents::ALL.iter().filter(|other| other.name() != agent) {
            assert_ne!(other.screen(&screen), Screen::Ready, "{agent}-{case}-{width} for {}", other.name());
        }
        // A dialog whose upper or lower half is not drawn yet must not be answered either.
        if matches!(expected(&agent, &case), Some(Screen::Dialog)) {
            let lines: Vec<&str> = screen.lines().collect();
            for at in 0..lines.len() {
                let own = by_name(&agent).unwrap();
                for part in [&lines[..at], &lines[at..]] {
                    assert_ne!(own.screen(&part.join("\n")), Screen::Ready, "{agent}-{case}-{width} at {at}");
                }
            }
        }
    }
}

#[test]
fn an_agent_without_recorded_screens_is_never_ready() {
    let cursor = by_name("cursor").unwrap();
    for (_, _, _, screen) in recordings() {
        assert_eq!(cursor.screen(&screen), Screen::Unknown);
    }
    for agent in baton_agents::ALL {
        assert_eq!(agent.screen(""), Screen::Unknown, "{}", agent.name());
        assert_eq!(agent.screen("$ \n"), Screen::Unknown, "{}", agent.name());
    }
}
