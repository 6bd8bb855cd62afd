//! What can stand at a place of a command line, for the completions of shells.
//!
//! The parser itself says which commands, options and values there are. So nothing here names a
//! command: an argument is recognised by its name ([`KINDS`]). Which names, jobs and questions
//! exist is looked up by the command `complete`.

use clap::{Arg, Command};

/// What is looked up for an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Participant,
    Job,
    Question,
    Rule,
    Agent,
    Setting,
    /// The words of a command, after `help`.
    Command,
}

/// Arguments by their names in the parser. A command is named where its argument means something
/// else.
const KINDS: &[(&str, &str, Kind)] = &[
    ("", "to", Kind::Participant),
    ("send", "words", Kind::Participant),
    ("", "with", Kind::Participant),
    ("log", "who", Kind::Participant),
    ("", "acting_as", Kind::Participant),
    ("wake", "name", Kind::Participant),
    ("dnd", "name", Kind::Participant),
    ("job", "job", Kind::Job),
    ("job", "jobs", Kind::Job),
    ("job", "resume", Kind::Job),
    ("run", "resume", Kind::Job),
    ("approvals", "id", Kind::Question),
    ("approve", "id", Kind::Question),
    ("deny", "id", Kind::Question),
    ("guard", "rule", Kind::Rule),
    ("guard", "only", Kind::Rule),
    ("", "agent", Kind::Agent),
    ("", "agents", Kind::Agent),
    ("config", "key", Kind::Setting),
    ("config", "unset", Kind::Setting),
    ("help", "words", Kind::Command),
];

/// What can be typed, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub word: String,
    pub about: String,
}

/// What is possible at the last word.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// What the parser knows.
    pub candidates: Vec<Candidate>,
    /// What must be looked up.
    pub kind: Option<Kind>,
}

/// The place at the end of these words, of which the last is unfinished.
pub fn place(whole: Command, words: &[String]) -> Place {
    let mut whole = whole;
    whole.build();
    let Some((current, before)) = words.split_last() else { return Place::default() };
    let (mut command, mut path) = (&whole, String::new());
    let (mut positionals, mut pending, mut only_words) = (0, None, false);
    for word in before {
        if pending.take().is_some() {
            continue;
        }
        match word.strip_prefix("--") {
            Some("") => only_words = true,
            Some(long) if !only_words => pending = option(command, long).filter(|_| !long.contains('=')),
            None if word.starts_with('-') && !only_words => {}
            _ => match command.find_subcommand(word).filter(|_| positionals == 0 && !only_words) {
                Some(below) => {
                    command = below;
                    path = format!("{path} {word}").trim().to_owned();
                }
                None => positionals += 1,
            },
        }
    }
    if let Some(option) = pending {
        return of_argument(option, &path);
    }
    if current.starts_with('-') && !only_words {
        return Place { candidates: options(command), kind: None };
    }
    let mut place =
        positional(command, positionals).map_or_else(Place::default, |one| of_argument(one, &path));
    if positionals == 0 {
        place.candidates.extend(commands(command));
    }
    place
}

/// The commands below a command, as candidates.
pub fn commands(command: &Command) -> Vec<Candidate> {
    let public = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    let help = command.find_subcommand("help").filter(|help| help.get_arguments().next().is_some());
    let candidate = |below: &Command| Candidate {
        word: below.get_name().to_owned(),
        about: below.get_about().map(ToString::to_string).unwrap_or_default(),
    };
    public.chain(help).map(candidate).collect()
}

fn option<'c>(command: &'c Command, long: &str) -> Option<&'c Arg> {
    let takes_value = |one: &&Arg| one.get_long() == Some(long) && one.get_action().takes_values();
    command.get_arguments().find(takes_value)
}

fn options(command: &Command) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|one| !one.is_hide_set());
    let candidate = |one: &Arg| {
        let about = one.get_help().map(ToString::to_string).unwrap_or_default();
        Some(Candidate { word: format!("--{}", one.get_long()?), about })
    };
    shown.filter_map(candidate).collect()
}

/// The argument at a place; the last one takes all further words if it takes many.
fn positional(command: &Command, at: usize) -> Option<&Arg> {
    let all: Vec<&Arg> = command.get_positionals().collect();
    let last =
        all.last().copied().filter(|last| last.get_num_args().is_some_and(|many| many.max_values() > 1));
    all.get(at).copied().or(last)
}

fn of_argument(argument: &Arg, path: &str) -> Place {
    let value = |value: &clap::builder::PossibleValue| Candidate {
        word: value.get_name().to_owned(),
        about: value.get_help().map(ToString::to_string).unwrap_or_default(),
    };
    let candidates = match argument.get_action().takes_values() {
        true => argument.get_possible_values().iter().map(value).collect(),
        false => Vec::new(),
    };
    let name = argument.get_id().as_str();
    let is_it = |(command, known, _): &&(&str, &str, Kind)| {
        *known == name && (command.is_empty() || path.split(' ').next() == Some(command))
    };
    Place { candidates, kind: KINDS.iter().find(is_it).map(|(.., kind)| *kind) }
}
