//! Settings: the defaults, the user's file, and the project's, which may only lower limits.
//!
//! A setting is a row of [`TABLE`]: its key, what it means, and its field in [`Limits`]. Everything
//! that shows or reads settings goes through the table, so a new one is one row. [`edit`] changes
//! the person's file.

pub mod edit;

use crate::environment;
use baton_core::job::Allow;
use baton_core::limits::Limits;
use baton_core::time::Span;
use baton_core::{Code, Error};
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item, Value};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// The user's file.
    User(PathBuf),
    /// The project's file.
    Project(PathBuf),
}

/// A setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Setting {
    Count(u64),
    /// Bytes.
    Size(u64),
    Length(Span),
    /// Off or on, and the word for the latter.
    Switch(bool, &'static str),
    /// One of some words, the tightest first.
    Word(usize, &'static [&'static str]),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Size(bytes) => match SIZES.into_iter().find(|(unit, _)| bytes % unit == 0 && *bytes > 0) {
                Some((unit, name)) => write!(f, "{} {name}", bytes / unit),
                None => write!(f, "{bytes}"),
            },
            Self::Length(span) => f.write_str(&span.exact()),
            Self::Switch(on, word) => f.write_str(if *on { word } else { "off" }),
            Self::Word(at, words) => f.write_str(words[*at]),
        }
    }
}

/// Units of sizes, the largest first.
const SIZES: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

/// `200 MiB`, or bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let count: u64 = text[..digits].parse().ok()?;
    match text[digits..].trim() {
        "" => Some(count),
        name => {
            SIZES.into_iter().find(|(_, known)| *known == name).and_then(|(unit, _)| count.checked_mul(unit))
        }
    }
}

/// Who may set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setter {
    /// The user, and a project that lowers it.
    Anybody,
    /// The user alone: nothing that a repository says counts.
    User,
}

/// One row: key, meaning, smallest and largest allowed, how to read it out of and put it into the
/// limits.
struct Row {
    key: &'static str,
    meaning: &'static str,
    range: (Setting, Setting),
    setter: Setter,
    /// Whether more of it gives agents more rights.
    is_right: bool,
    get: fn(&Limits) -> Setting,
    set: fn(&mut Limits, Setting),
}

macro_rules! count {
    ($key:literal, $field:ident, $type:ty, $range:expr, $meaning:literal) => {
        Row {
            key: $key,
            meaning: $meaning,
            range: (Setting::Count($range.0 as u64), Setting::Count($range.1 as u64)),
            setter: Setter::Anybody,
            is_right: false,
            get: |limits| Setting::Count(limits.$field as u64),
            set: |limits, value| {
                if let Setting::Count(count) = value {
                    limits.$field = <$type>::try_from(count).unwrap_or(<$type>::MAX);
                }
            },
        }
    };
}

macro_rules! length {
    ($key:literal, $field:ident, $range:expr, $meaning:literal) => {
        Row {
            key: $key,
            meaning: $meaning,
            range: (Setting::Length($range.0), Setting::Length($range.1)),
            setter: Setter::Anybody,
            is_right: false,
            get: |limits| Setting::Length(limits.$field),
            set: |limits, value| {
                if let Setting::Length(span) = value {
                    limits.$field = span;
                }
            },
        }
    };
}

macro_rules! switch {
    ($key:literal, $field:ident, $word:literal, $meaning:literal) => {
        Row {
            key: $key,
            meaning: $meaning,
            range: (Setting::Switch(false, $word), Setting::Switch(true, $word)),
            setter: Setter::User,
            is_right: false,
            get: |limits| Setting::Switch(limits.$field, $word),
            set: |limits, value| {
                if let Setting::Switch(on, _) = value {
                    limits.$field = on;
                }
            },
        }
    };
}

/// The words of [`Allow`], the tightest first.
const ALLOW: &[&str] = &["ask", "edits", "all"];

/// Any other agent, and then each by its name: who may review at the stop gate.
const REVIEWERS: &[&str] = baton_jobs::backend::OTHER_AND_NAMES;

/// Every setting.
const TABLE: &[Row] = &[
    count!(
        "limits.messages_per_event",
        messages_per_event,
        usize,
        (1, 100),
        "messages that one event may bring into a context"
    ),
    count!(
        "limits.chars_per_event",
        chars_per_event,
        usize,
        (1500, 60_000),
        "characters that one event may bring, if the agent accepts that many"
    ),
    count!(
        "limits.stops_in_a_row",
        stops_in_a_row,
        u32,
        (0, 8),
        "times in a row that mail may keep a session from stopping"
    ),
    count!(
        "limits.hops",
        hops,
        u32,
        (1, 100),
        "replies in a chain between agents without a turn of a person"
    ),
    count!(
        "limits.pair_messages",
        pair_messages,
        u32,
        (1, 10_000),
        "messages between two agents within limits.pair_window"
    ),
    length!(
        "limits.pair_window",
        pair_window,
        (Span::seconds(10), Span::days(1)),
        "the time in which limits.pair_messages are counted"
    ),
    count!("limits.mailbox", mailbox, u32, (1, 100_000), "messages that may wait in one mailbox"),
    length!(
        "mail.ttl",
        ttl,
        (Span::seconds(1), Span::days(365)),
        "how long mail waits for its recipient before it expires"
    ),
    switch!(
        "mail.show",
        show_mail,
        "on",
        "whether the person at a session's terminal sees a line for each message that comes"
    ),
    length!(
        "store.keep",
        keep,
        (Span::days(1), Span::days(3650)),
        "how long seen mail and the trail are kept"
    ),
    Row {
        key: "store.keep_bytes",
        meaning: "size of the store above which seen mail is trimmed early",
        range: (Setting::Size(1 << 20), Setting::Size(1 << 40)),
        setter: Setter::Anybody,
        is_right: false,
        get: |limits| Setting::Size(limits.keep_bytes),
        set: |limits, value| {
            if let Setting::Size(bytes) = value {
                limits.keep_bytes = bytes;
            }
        },
    },
    switch!("wake", wake, "auto", "whether idle sessions are woken when mail comes"),
    switch!(
        "wake_unattended",
        wake_unattended,
        "on",
        "whether a session may be woken if no person sits in front of it"
    ),
    count!(
        "limits.wakes_per_hour",
        wakes_per_hour,
        u32,
        (0, 3600),
        "automatic wakes of one session within an hour"
    ),
    Row {
        key: "jobs.allow",
        meaning: "what a job may do without asking: ask, edits or all; denied calls stay denied",
        range: (Setting::Word(0, ALLOW), Setting::Word(ALLOW.len() - 1, ALLOW)),
        setter: Setter::Anybody,
        is_right: true,
        get: |limits| {
            Setting::Word(
                ALLOW.iter().position(|word| *word == limits.job_allow.as_str()).unwrap_or(0),
                ALLOW,
            )
        },
        set: |limits, value| {
            if let Setting::Word(at, words) = value {
                limits.job_allow = Allow::parse(words[at]).unwrap_or(Allow::Ask);
            }
        },
    },
    length!(
        "jobs.timeout",
        job_timeout,
        (Span::seconds(1), Span::days(7)),
        "how long a job may take in all; then its turn is stopped"
    ),
    length!(
        "jobs.idle",
        job_idle,
        (Span::seconds(10), Span::days(1)),
        "how long nothing may happen in a job before it has stalled; a living tool extends it three times"
    ),
    length!(
        "jobs.retry",
        job_retry,
        (Span::seconds(10), Span::days(1)),
        "how long a job waits for a model that can't be reached"
    ),
    Row {
        is_right: true,
        ..count!(
            "jobs.depth",
            job_depth,
            u32,
            (0, 5),
            "how deep jobs can be nested; with 1 a job can't start jobs"
        )
    },
    length!("jobs.keep", job_keep, (Span::minutes(60), Span::days(3650)), "how long prune keeps ended jobs"),
    Row {
        setter: Setter::User,
        ..length!(
            "approvals.hold",
            approval_hold,
            (Span::seconds(1), Span::minutes(10)),
            "how long a question waits for an answer if no person sits at the terminal, or someone watches"
        )
    },
    switch!(
        "review.gate",
        review_gate,
        "on",
        "whether another agent reviews changes before a session may stop; `baton setup` installs it"
    ),
    Row {
        key: "review.agent",
        meaning: "which agent reviews at the stop gate: other than the one that stops, or one by its name",
        range: (Setting::Word(0, REVIEWERS), Setting::Word(REVIEWERS.len() - 1, REVIEWERS)),
        setter: Setter::User,
        is_right: false,
        get: |limits| {
            let at = limits.review_agent.and_then(|agent| REVIEWERS.iter().position(|word| *word == agent));
            Setting::Word(at.unwrap_or(0), REVIEWERS)
        },
        set: |limits, value| {
            if let Setting::Word(at, words) = value {
                limits.review_agent = words.get(at).copied().filter(|_| at > 0);
            }
        },
    },
    Row {
        setter: Setter::User,
        ..count!(
            "review.rounds",
            review_rounds,
            u32,
            (0, 2),
            "how often in a row a review may keep a session from stopping"
        )
    },
    Row {
        setter: Setter::User,
        ..length!(
            "review.timeout",
            review_timeout,
            (Span::seconds(10), Span::minutes(9)),
            "how long a review at the stop gate may take; then the session stops"
        )
    },
];

/// One setting with where its value came from, for showing.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its key.
    pub key: &'static str,
    /// Its value, as one would write it.
    pub value: String,
    /// Where that came from.
    pub origin: Origin,
    /// What it means.
    pub meaning: &'static str,
}

/// The settings in force for a folder.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits.
    pub limits: Limits,
    origins: Vec<Origin>,
}

impl Settings {
    /// What counts if no file says anything.
    pub fn defaults() -> Self {
        Self { limits: Limits::default(), origins: vec![Origin::Default; TABLE.len()] }
    }

    /// Reads the user's file and the project's.
    pub fn load(cwd: &Path) -> Result<Self, Error> {
        let mut settings = Self::defaults();
        settings.read_users_files()?;
        if let Some(file) = baton_guard_runtime::project_file(cwd) {
            settings.read(&file, true)?;
        }
        Ok(settings)
    }

    /// The user's own file, or the one that the environment names in its place. What would give
    /// agents more counts only from the person's own file: a repository can set an agent's
    /// environment, and an agent's shell can set it in front of a command.
    fn read_users_files(&mut self) -> Result<(), Error> {
        let own = environment::own_config_file()?;
        match environment::named_config_file() {
            Some(named) => {
                self.read(&named, false)?;
                self.cap_rights(own.as_deref())?;
            }
            None => own.map_or(Ok(()), |file| self.read(&file, false))?,
        }
        // The processes above are looked at only where something is to be had.
        let defaults = Limits::default();
        let gives = |row: &Row| row.is_right && (row.get)(&self.limits) > (row.get)(&defaults);
        if TABLE.iter().any(gives)
            && let Some(file) = environment::config_file_above_agent()
        {
            self.cap_rights(file.as_deref())?;
        }
        Ok(())
    }

    /// Lowers what gives agents more to what this file says.
    fn cap_rights(&mut self, file: Option<&Path>) -> Result<(), Error> {
        let mut given = Self::defaults();
        if let Some(file) = file {
            given.read(file, false)?;
        }
        for (at, row) in TABLE.iter().enumerate().filter(|(_, row)| row.is_right) {
            let most = (row.get)(&given.limits);
            if (row.get)(&self.limits) > most {
                (row.set)(&mut self.limits, most);
                self.origins[at] = given.origins[at].clone();
            }
        }
        Ok(())
    }

    /// Every setting, in the table's order.
    pub fn shown(&self) -> Vec<Shown> {
        let row = |(row, origin): (&Row, &Origin)| Shown {
            key: row.key,
            value: (row.get)(&self.limits).to_string(),
            origin: origin.clone(),
            meaning: row.meaning,
        };
        TABLE.iter().zip(&self.origins).map(row).collect()
    }

    fn read(&mut self, file: &Path, only_lower: bool) -> Result<(), Error> {
        let text = match baton_machine::files::text(file, baton_core::limits::CONFIG_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(malformed(file, &format!("can't be read: {error}"))),
        };
        self.take(file, &text, only_lower)
    }

    /// Takes what a file says.
    fn take(&mut self, file: &Path, text: &str, only_lower: bool) -> Result<(), Error> {
        let document: Document<&str> = Document::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            malformed(file, &format!("line {}: {}", line_of(text, at), error.message()))
        })?;
        // What is set about the guard, and who may answer what, is read where it is used, and
        // checked there.
        for (section, item) in document.iter().filter(|(section, _)| *section != "guard") {
            let items: Vec<(String, &Item)> = match item {
                Item::Table(table) => {
                    table.iter().map(|(name, item)| (format!("{section}.{name}"), item)).collect()
                }
                item => vec![(section.to_owned(), item)],
            };
            for (key, item) in items {
                if baton_guard_runtime::approvals::is_key(&key) {
                    continue;
                }
                let Some(at) = TABLE.iter().position(|row| row.key == key) else {
                    return Err(unknown(file, text, item, &key));
                };
                let value = value_of(&TABLE[at], item)
                    .map_err(|why| malformed(file, &format!("line {}: {key} {why}", place(text, item))))?;
                self.apply(at, value, file, only_lower);
            }
        }
        Ok(())
    }

    fn apply(&mut self, at: usize, value: Setting, file: &Path, only_lower: bool) {
        let row = &TABLE[at];
        // A repository may tighten, never loosen, and some things are not its business.
        if only_lower && (row.setter == Setter::User || value >= (row.get)(&self.limits)) {
            return;
        }
        (row.set)(&mut self.limits, value);
        self.origins[at] =
            if only_lower { Origin::Project(file.to_owned()) } else { Origin::User(file.to_owned()) };
    }
}

fn value_of(row: &Row, item: &Item) -> Result<Setting, String> {
    let value = match (row.range.0, item.as_value()) {
        (Setting::Count(_), Some(Value::Integer(number))) => {
            Setting::Count(u64::try_from(*number.value()).map_err(|_| "must not be negative".to_owned())?)
        }
        (Setting::Size(_), Some(Value::Integer(bytes))) => {
            Setting::Size(u64::try_from(*bytes.value()).map_err(|_| "must not be negative".to_owned())?)
        }
        (Setting::Size(_), Some(Value::String(text))) => {
            Setting::Size(size(text.value()).ok_or("must be a size such as \"200 MiB\"")?)
        }
        (Setting::Length(_), Some(Value::String(text))) => Setting::Length(
            Span::parse(text.value()).map_err(|_| "must be a duration such as \"10m\"".to_owned())?,
        ),
        (Setting::Switch(_, word), Some(Value::String(text))) if text.value() == word => {
            Setting::Switch(true, word)
        }
        (Setting::Switch(_, word), Some(Value::String(text))) if text.value() == "off" => {
            Setting::Switch(false, word)
        }
        (Setting::Switch(_, word), _) => return Err(format!("must be \"{word}\" or \"off\"")),
        (Setting::Word(_, words), item) => {
            let text = item.and_then(Value::as_str);
            let at = text.and_then(|text| words.iter().position(|word| *word == text));
            Setting::Word(at.ok_or_else(|| format!("must be one of {}", words.join(", ")))?, words)
        }
        (Setting::Size(_), _) => return Err("must be a size such as \"200 MiB\"".to_owned()),
        (Setting::Count(_), _) => return Err("must be a whole number".to_owned()),
        (Setting::Length(_), _) => return Err("must be a duration such as \"10m\"".to_owned()),
    };
    if value < row.range.0 || value > row.range.1 {
        return Err(format!("must be between {} and {}", row.range.0, row.range.1));
    }
    Ok(value)
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

fn place(text: &str, item: &Item) -> usize {
    line_of(text, item.span().map_or(0, |span| span.start))
}

fn unknown(file: &Path, text: &str, item: &Item, key: &str) -> Error {
    malformed(
        file,
        &format!("line {}: there is no setting {}", place(text, item), baton_core::frame::shown(key, 60)),
    )
}

fn malformed(file: &Path, why: &str) -> Error {
    Error::new(Code::ConfigMalformed, format!("{}: {why}", file.display()))
        .hint("`baton config` lists every setting")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, only_lower: bool) -> Result<Settings, Error> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let mut settings = Settings::defaults();
        settings.read(&file, only_lower)?;
        Ok(settings)
    }

    #[test]
    fn values_are_read_and_checked() {
        let settings = read("[limits]\nhops = 3\n[mail]\nttl = \"2h\"\n", false).unwrap();
        assert_eq!(settings.limits.hops, 3);
        assert_eq!(settings.limits.ttl, Span::minutes(120));
        for text in ["\"300 MiB\"", "\"300MiB\"", "314572800"] {
            let settings = read(&format!("[store]\nkeep_bytes = {text}\n"), false).unwrap();
            assert_eq!(settings.limits.keep_bytes, 300 << 20);
            let row = TABLE.iter().find(|row| row.key == "store.keep_bytes").unwrap();
            assert_eq!((row.get)(&settings.limits).to_string(), "300 MiB");
        }
        for bad in [
            "[limits]\nhops = \"3\"",
            "[limits]\nhops = 0",
            "[limits]\nhop = 3",
            "x = 1",
            "[mail]\nttl = 5",
            "[mail]\nttl = \"-1s\"",
            "wake = true",
            "wake = \"never\"",
            "[store]\nkeep_bytes = \"200 MB\"",
            "[store]\nkeep_bytes = \"1 KiB\"",
            "[limits",
        ] {
            let error = read(bad, false).unwrap_err();
            assert_eq!(error.code(), Code::ConfigMalformed, "{bad}");
            assert!(error.message().contains("line "), "{}", error.message());
        }
    }

    #[test]
    fn the_page_lists_every_setting_with_its_default() {
        let page = include_str!("../../../docs/settings.md");
        let limits = Limits::default();
        for row in TABLE {
            let line = format!("| `{}` | {} | {} |", row.key, (row.get)(&limits), row.meaning);
            assert!(page.contains(&line), "docs/settings.md lacks: {line}");
        }
        let read_elsewhere =
            baton_guard_runtime::policy::MEANINGS.into_iter().chain(baton_guard_runtime::approvals::MEANINGS);
        for (key, default, meaning) in read_elsewhere {
            let line = format!("| `{key}` | {default} | {meaning} |");
            assert!(page.contains(&line), "docs/settings.md lacks: {line}");
        }
    }

    #[test]
    fn a_project_only_tightens() {
        assert_eq!(read("[limits]\nhops = 3\n", true).unwrap().limits.hops, 3);
        assert_eq!(read("[limits]\nhops = 30\n", true).unwrap().limits.hops, 8);
        // Not its business, either way.
        assert!(read("wake = \"off\"\n", true).unwrap().limits.wake);
        assert!(!read("wake_unattended = \"on\"\n", true).unwrap().limits.wake_unattended);
        assert!(!read("wake = \"off\"\n", false).unwrap().limits.wake);
    }

    #[test]
    fn every_default_lies_in_its_own_range_and_reads_back() {
        let limits = Limits::default();
        for row in TABLE {
            let value = (row.get)(&limits);
            assert!(value >= row.range.0 && value <= row.range.1, "{}", row.key);
            let mut changed = limits;
            (row.set)(&mut changed, row.range.0);
            assert_eq!((row.get)(&changed), row.range.0, "{}", row.key);
        }
    }
}
