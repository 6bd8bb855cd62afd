//! The `[guard]` section of the person's file, and of the project's file, which may only tighten.
//!
//! This module reads the two settings that are not about a single rule. Crate `guard` reads the
//! rest of the section.

use baton_core::{Code, Error};
use baton_guard::config::{self, Layer, Merged};
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item};

/// The hint for a file with a mistake.
const MALFORMED_HINT: &str = "`baton config` lists every setting, `baton guard list` every rule";

/// Whether the guard judges calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    On,
    Off,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// What happens to a call that could not be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The person is asked.
    #[default]
    Ask,
    /// It does not run.
    Deny,
}

impl OnFailure {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A setting, with the file that its value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set<T> {
    pub value: T,
    /// `None` for the default.
    pub file: Option<PathBuf>,
}

/// The settings that are not about a single rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub mode: Set<Mode>,
    /// What happens to a call that could not be judged.
    pub on_failure: Set<OnFailure>,
}

/// Each setting for people: key, default, meaning.
pub const MEANINGS: [(&str, &str, &str); 2] = [
    ("guard.mode", "on", "whether the guard judges tool calls"),
    ("guard.on_failure", "ask", "what happens to a call that could not be judged: ask or deny"),
];

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The person's.
    User,
    /// The project's, which may only tighten.
    Project,
}

impl Settings {
    /// Takes the settings of a file. Returns the file's text with their lines made comments, so
    /// that the rules keep their line numbers.
    pub(crate) fn read(&mut self, file: &Path, text: &str, owner: Owner) -> Result<String, Error> {
        let document = parsed(file, text)?;
        let mut rest = text.to_owned();
        let section = match document.get("guard") {
            None => return Ok(rest),
            Some(Item::Table(section)) => section,
            Some(other) => {
                let at = other.span().unwrap_or_default().start;
                return Err(malformed(file, text, at, "guard must be a section: [guard]"));
            }
        };
        for (name, item) in section.iter() {
            let span = item.span().unwrap_or_default();
            let wrong =
                |words: &str| malformed(file, text, span.start, &format!("guard.{name} must be {words}"));
            match name {
                "mode" => {
                    let value = match item.as_str() {
                        Some("on") => Mode::On,
                        Some("off") => Mode::Off,
                        _ => return Err(wrong("\"on\" or \"off\"")),
                    };
                    if owner == Owner::User || value == Mode::On {
                        self.mode = Set { value, file: Some(file.to_owned()) };
                    }
                }
                "on_failure" => {
                    let value = match item.as_str() {
                        Some("ask") => OnFailure::Ask,
                        Some("deny") => OnFailure::Deny,
                        _ => return Err(wrong("\"ask\" or \"deny\"")),
                    };
                    if owner == Owner::User || value == OnFailure::Deny {
                        self.on_failure = Set { value, file: Some(file.to_owned()) };
                    }
                }
                _ => continue,
            }
            blank_line(&mut rest, span.start);
        }
        Ok(rest)
    }
}

/// The text of a file; `None` if there is none.
pub(crate) fn text(file: &Path) -> Result<Option<String>, Error> {
    match baton_machine::files::text(file, baton_core::limits::CONFIG_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(Error::new(Code::ConfigMalformed, format!("{}: can't be read: {error}", file.display())))
        }
    }
}

/// Checks what a person's file says about the guard and its rules, before it is written.
pub fn check(file: &Path, text: &str) -> Result<(), Error> {
    let text = Settings::default().read(file, text, Owner::User)?;
    rules(&[RuleFile { path: file.to_owned(), text, owner: Owner::User }]).map(drop)
}

/// A file with rules.
#[derive(Clone, Debug)]
pub(crate) struct RuleFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) owner: Owner,
}

/// The rules of these files.
pub(crate) fn rules(files: &[RuleFile]) -> Result<Merged, Error> {
    let (mut user, mut tightening) = (Layer::default(), Vec::new());
    for RuleFile { path, text, owner } in files {
        let layer = config::load(text).map_err(|error| {
            Error::new(Code::ConfigMalformed, format!("{}: {error}", path.display())).hint(MALFORMED_HINT)
        })?;
        match owner {
            Owner::User => user = layer,
            Owner::Project => tightening.push(layer),
        }
    }
    Ok(config::merge(&user, &tightening))
}

pub(crate) fn parsed<'t>(file: &Path, text: &'t str) -> Result<Document<&'t str>, Error> {
    Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        malformed(file, text, at, error.message())
    })
}

/// Makes a comment of the line at an offset, so that all other text keeps its position.
fn blank_line(text: &mut String, at: usize) {
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let end = text.get(at..).and_then(|after| after.find('\n')).map_or(text.len(), |end| at + end);
    text.replace_range(start..end, &"#".repeat(end - start));
}

pub(crate) fn malformed(file: &Path, text: &str, at: usize, why: &str) -> Error {
    let line = text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    Error::new(Code::ConfigMalformed, format!("{}: line {line}: {why}", file.display())).hint(MALFORMED_HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, owner: Owner) -> Result<(Settings, String), Error> {
        let mut settings = Settings::default();
        let rest = settings.read(Path::new("/c.toml"), text, owner)?;
        Ok((settings, rest))
    }

    #[test]
    fn the_person_sets_both_and_a_project_only_tightens() {
        let loose = "[guard]\nmode = \"off\"\non_failure = \"ask\"\n";
        let tight = "[guard]\nmode = \"on\"\non_failure = \"deny\"\n";
        let (settings, _) = read(loose, Owner::User).unwrap();
        assert_eq!(settings.mode.value, Mode::Off);
        let (settings, _) = read(loose, Owner::Project).unwrap();
        assert_eq!(settings, Settings::default());
        let (settings, _) = read(tight, Owner::Project).unwrap();
        assert_eq!((settings.mode.value, settings.on_failure.value), (Mode::On, OnFailure::Deny));
    }

    #[test]
    fn the_rules_keep_their_places() {
        let text = "[guard]\nmode = \"on\" # here\nenable = [\"a\"]\n";
        let (_, rest) = read(text, Owner::User).unwrap();
        assert_eq!(rest.len(), text.len());
        assert_eq!(rest.lines().nth(2), Some("enable = [\"a\"]"));
        assert!(!rest.contains("mode"), "{rest}");
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        for bad in ["[guard]\nmode = 1", "[guard]\non_failure = \"allow\"", "[guard]\n[guard", "\nguard = {}"]
        {
            let error = read(bad, Owner::User).unwrap_err();
            assert_eq!(error.code(), Code::ConfigMalformed);
            assert!(error.message().contains("line 2"), "{}", error.message());
        }
    }
}
