//! Which commands only read: a table of programs, each with the options that it must not have.
//!
//! A command that is not in the table does not count as reading. A row names the options with which
//! its program would write a file or run another program. A prefix of a long option counts too,
//! because most programs accept one. A short option counts anywhere in a cluster. A word that is
//! not known could be such an option, so it is refused unless the program has none or `--` is
//! before it. The examples of each row are its test.

mod git;
mod scripts;
mod table;

use crate::shell::{Command, Value};
use table::{How, PROGRAMS, ReadOnlyPrograms};

/// A word of a command; `None` if it is not known.
type MaybeWord<'a> = Option<&'a str>;

/// Variables that only change how a program formats its output.
const HARMLESS_VARIABLES: &[&str] =
    &["LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"];

/// Parts of the names of variables that choose programs, search paths or libraries.
const ACTING_VARIABLES: &[&str] = &[
    "PATH", "GIT", "LD_", "DYLD", "BASH", "ENV", "PAGER", "EDITOR", "VISUAL", "LESS", "PROMPT", "IFS",
    "HOME", "XDG", "PYTHON", "PERL", "RUBY", "NODE", "RIPGREP", "OPT", "FLAGS", "BROWSER", "SHELL",
    "ZDOTDIR", "GCONV", "MAN", "GREP", "FZF", "BAT", "SSH", "ASKPASS", "PS0", "PS1", "PS2", "PS4", "CMD",
    "COMMAND",
];

/// Whether a command of a shell text only reads. Its redirections are not checked here.
pub fn command_reads(command: &Command) -> bool {
    let bare = command.words.is_empty();
    let harmless = |name: &str| if bare { !acts(name) } else { is_harmless_variable(name) };
    if !command.assignments.iter().all(|(name, _)| harmless(name)) {
        return false;
    }
    let words: Vec<MaybeWord<'_>> = command.words.iter().map(known).collect();
    bare || words_read(&words)
}

/// Whether these words are a command that only reads.
pub fn reads(words: &[&str]) -> bool {
    let words: Vec<MaybeWord<'_>> = words.iter().copied().map(Some).collect();
    words_read(&words)
}

/// A pattern at the beginning of a word could become an option.
fn known(value: &Value) -> MaybeWord<'_> {
    value.literal().filter(|_| value.globs.first() != Some(&0))
}

fn is_harmless_variable(name: &str) -> bool {
    HARMLESS_VARIABLES.contains(&name) || name.starts_with("LC_")
}

fn acts(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ACTING_VARIABLES.iter().any(|part| name.contains(part))
}

fn words_read(words: &[MaybeWord<'_>]) -> bool {
    let Some((Some(program), rest)) = words.split_first() else { return false };
    let name = match program.rsplit_once('/') {
        None => program,
        Some(("/bin" | "/usr/bin", name)) => name,
        Some(_) => return false,
    };
    if name == "git" {
        return git::reads(rest);
    }
    let is_version = matches!(rest, [Some("--version")]) || matches!(rest, [Some("--help")]);
    match PROGRAMS.iter().find(|row| row.names.contains(&name)) {
        Some(row) => is_version || row_reads(row, rest),
        None => is_version && table::VERSION_PROGRAMS.contains(&name),
    }
}

fn row_reads(row: &ReadOnlyPrograms, rest: &[MaybeWord<'_>]) -> bool {
    match row.how {
        How::Always => true,
        How::Without { short, long } => all_known(rest) && !has_option(rest, short, long),
        How::WithoutWords(words) => {
            let is_bad = |word: &str| words.iter().any(|bad| word.starts_with(bad));
            rest.iter().all(|word| word.is_some_and(|word| !is_bad(word)))
        }
        How::Operands { short, long, most } => {
            all_known(rest) && !has_option(rest, short, long) && operands(rest).count() <= most
        }
        How::Only(allowed) => rest.iter().all(|word| word.is_some_and(|word| allowed.contains(&word))),
        How::By(check) => {
            let words: Option<Vec<&str>> = rest.iter().copied().collect();
            words.is_some_and(|words| check(&words))
        }
    }
}

/// Whether each word that could be an option is known.
fn all_known(words: &[MaybeWord<'_>]) -> bool {
    words.iter().take_while(|word| **word != Some("--")).all(Option::is_some)
}

/// Whether one of these short options is present, or one of these long options or a prefix of it.
fn has_option(words: &[MaybeWord<'_>], short: &str, long: &[&str]) -> bool {
    let before = words.iter().flatten().take_while(|word| **word != "--");
    let mut options = before.filter(|word| word.len() > 1 && word.starts_with('-'));
    options.any(|option| match option.strip_prefix("--") {
        Some(_) => {
            let name = option.split('=').next().unwrap_or(option);
            long.iter().any(|bad| bad.starts_with(name))
        }
        None => option.chars().skip(1).any(|letter| short.contains(letter)),
    })
}

/// The words that are neither options nor numbers. Numbers are values of options.
fn operands<'a>(words: &'a [MaybeWord<'a>]) -> impl Iterator<Item = &'a str> {
    let is_number = |word: &str| word.bytes().all(|sign| sign.is_ascii_digit());
    words
        .iter()
        .flatten()
        .copied()
        .filter(move |word| (!word.starts_with('-') || *word == "-") && !is_number(word))
}

#[cfg(test)]
mod tests;
