//! What is wrong with a command line: one sentence, and a hint with the nearest command or option.
//!
//! clap knows what is wrong. Its text has several lines and tips; errors of baton have a message
//! and a hint, so both are written here from the facts in clap's error.

use baton_core::{Code, Error};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The error for a command line that clap refuses; `named` are the words of its command.
pub fn usage(error: &clap::Error, named: &[String]) -> Error {
    let facts = Facts(error);
    let command =
        std::iter::once("baton").chain(named.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let options = format!("`baton help{}` shows its options", command.trim_start_matches("baton"));
    let (message, hint) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = facts.text(ContextKind::InvalidSubcommand);
            let near = facts.texts(ContextKind::SuggestedSubcommand);
            (format!("`{command}` has no command {}", shown(&word)), nearest(&near, &command))
        }
        ErrorKind::UnknownArgument => {
            let argument = facts.text(ContextKind::InvalidArg);
            let near = facts.texts(ContextKind::SuggestedArg);
            let message = match argument.starts_with('-') {
                true => format!("`{command}` has no option {}", shown(&argument)),
                false => format!("`{command}` takes no further argument, and {} is one", shown(&argument)),
            };
            match near.last() {
                Some(near) => (message, format!("did you mean {}? {options}", near.trim())),
                None => (message, options),
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = facts.texts(ContextKind::InvalidArg).join(", ");
            (format!("`{command}` needs {missing}"), options)
        }
        ErrorKind::ArgumentConflict => {
            let (one, other) =
                (facts.text(ContextKind::InvalidArg), facts.texts(ContextKind::PriorArg).join(", "));
            let message = match one == other || other.is_empty() {
                true => format!("`{command}` takes {} once", shown(&one)),
                false => format!("`{command}` does not take {} together with {other}", shown(&one)),
            };
            (message, options)
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let (argument, value) =
                (facts.text(ContextKind::InvalidArg), facts.text(ContextKind::InvalidValue));
            let valid = facts.texts(ContextKind::ValidValue);
            if value.is_empty() {
                return Error::new(Code::Usage, format!("{argument} needs a value")).hint(options);
            }
            let why = std::error::Error::source(error).map(|why| format!(": {why}")).unwrap_or_default();
            let message = format!("{} is no value for {argument}{why}", shown(&value));
            let hint = match valid.is_empty() {
                true => options,
                false => format!("use one of {}; {options}", valid.join(", ")),
            };
            (message, hint)
        }
        ErrorKind::InvalidUtf8 => ("an argument is not UTF-8 text".to_owned(), options),
        _ => (first_line(error), options),
    };
    Error::new(Code::Usage, message).hint(hint)
}

/// The hint for a word that is no command: the nearest one, and where all are listed.
pub fn meant(word: &str, names: &[String], above: &str) -> String {
    let near = names.iter().filter(|name| is_near(word, name)).min_by_key(|name| distance(word, name));
    nearest(&near.cloned().into_iter().collect::<Vec<_>>(), above)
}

fn nearest(near: &[String], above: &str) -> String {
    let below = above.trim_start_matches("baton");
    let all = format!("`baton help{below}` lists the commands");
    // clap's best guess is its last.
    match near.last() {
        Some(name) => format!("did you mean `{above} {name}`? {all}"),
        None => all,
    }
}

/// Whether a word may be a slip of the other: it is the beginning of it, or few letters differ.
pub fn is_near(word: &str, name: &str) -> bool {
    let begins = word.chars().count() >= 2 && name.starts_with(word);
    begins || distance(word, name) <= 1 + name.chars().count() / 4
}

/// How many letters must be put in, taken out, changed or swapped with the next.
pub fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) =
        (one.chars().take(64).collect(), other.chars().take(64).collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    rows[0] = (0..=other.len()).collect();
    for i in 1..=one.len() {
        for j in 1..=other.len() {
            let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}

fn shown(word: &str) -> String {
    baton_core::frame::shown(word, 60)
}

/// What clap knows about an error.
struct Facts<'e>(&'e clap::Error);

impl Facts<'_> {
    fn texts(&self, kind: ContextKind) -> Vec<String> {
        match self.0.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    fn text(&self, kind: ContextKind) -> String {
        self.texts(kind).into_iter().next().unwrap_or_default()
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("wrong usage");
    first.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        for (word, name) in [("snd", "send"), ("sned", "send"), ("approvls", "approvals"), ("conf", "config")]
        {
            assert!(is_near(word, name), "{word} {name}");
        }
        for (word, name) in [("fly", "send"), ("", "who"), ("x", "mail"), ("otter", "birch")] {
            assert!(!is_near(word, name), "{word} {name}");
        }
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
