//! Events and tools that no table knows, so that `doctor` can show them.
//!
//! One empty file per name, `unknown/<agent>/<kind>-<name>` in the home; its time is when the name was last noted. A name that is there
//! already costs one look at its file, and is noted again once a day at most; what is known costs nothing. No failure here
//! is anybody's concern: the event itself goes on.

use baton_agents::{Agent, tools};
use baton_core::event::{Event, EventKind};
use baton_core::limits;
use baton_core::time::Moment;
use baton_core::tool::ToolKind;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The MCP server that every session has: ours.
const OUR_SERVER: &str = "baton";

/// What kind of thing a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A hook's event.
    Event,
    /// A tool.
    Tool,
}

impl What {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Tool => "tool",
        }
    }
}

/// An unknown name that an agent used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What it is of.
    pub what: What,
    /// The agent's name for it; a long one is cut.
    pub name: String,
    /// When it was last noted: within a day of when it was last used.
    pub seen: Moment,
}

/// Notes what is unknown about an event.
pub fn note(home: &Path, agent: &dyn Agent, event: &Event) {
    if event.kind == EventKind::Unknown {
        remember(&folder(home, agent), What::Event, &event.native).ok();
    }
    if let Some(tool) = event.tool.as_deref().filter(|tool| is_unknown_tool(agent, tool)) {
        remember(&folder(home, agent), What::Tool, tool).ok();
    }
}

/// The names that an agent used and that are still unknown, and whether there may be more than were kept.
pub fn list(home: &Path, agent: &dyn Agent) -> (Vec<Unknown>, bool) {
    let Ok(entries) = std::fs::read_dir(folder(home, agent)) else { return (Vec::new(), false) };
    let all: Vec<_> = entries.flatten().take(limits::UNKNOWN_NAMES).collect();
    let full = all.len() == limits::UNKNOWN_NAMES;
    let mut names: Vec<Unknown> = all
        .into_iter()
        .filter_map(|entry| {
            let (what, name) = read_name(entry.file_name().to_str()?)?;
            let since =
                entry.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            let seen = Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
            Some(Unknown { what, name, seen })
        })
        // A newer baton may know it by now.
        .filter(|unknown| unknown.what == What::Event || is_unknown_tool(agent, &unknown.name))
        .collect();
    names.sort_by(|a, b| (a.what, &a.name).cmp(&(b.what, &b.name)));
    (names, full)
}

/// Forgets them.
pub fn forget(home: &Path, agent: &dyn Agent) -> io::Result<()> {
    match std::fs::remove_dir_all(folder(home, agent)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn folder(home: &Path, agent: &dyn Agent) -> PathBuf {
    home.join("unknown").join(agent.name())
}

fn is_unknown_tool(agent: &dyn Agent, name: &str) -> bool {
    tools::kind(agent.tools(), name, &[OUR_SERVER]) == ToolKind::Unknown
}

fn remember(folder: &Path, what: What, name: &str) -> io::Result<()> {
    let file = folder.join(file_name(what, name));
    if let Ok(metadata) = std::fs::symlink_metadata(&file) {
        let noted = metadata.modified()?;
        let again = limits::UNKNOWN_AGAIN.to_std();
        if metadata.is_file() && noted.elapsed().is_ok_and(|age| age > again) {
            File::options().write(true).open(&file)?.set_modified(SystemTime::now())?;
        }
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Hooks that meet new names at the same instant may go over the limit by their own number, and no further.
    if std::fs::read_dir(folder)?.take(limits::UNKNOWN_NAMES).count() < limits::UNKNOWN_NAMES {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
    }
    Ok(())
}

/// The name as a file's: letters, digits and underscores as they are, every other byte as `%` and two digits.
fn file_name(what: What, name: &str) -> String {
    let mut file = format!("{}-", what.as_str());
    for byte in name.bytes().take(limits::UNKNOWN_NAME_BYTES) {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            file.push(char::from(byte));
        } else {
            file.push_str(&format!("%{byte:02x}"));
        }
    }
    file
}

/// The opposite of [`file_name`]; `None` for a file that it never made. Half a character at the end of a cut name is left out.
fn read_name(file: &str) -> Option<(What, String)> {
    let (what, coded) = file.split_once('-')?;
    let what = [What::Event, What::Tool].into_iter().find(|known| known.as_str() == what)?;
    let mut bytes = Vec::new();
    let mut rest = coded;
    while let Some(first) = rest.chars().next() {
        if first == '%' {
            bytes.push(u8::from_str_radix(rest.get(1..3)?, 16).ok()?);
            rest = &rest[3..];
        } else if first.is_ascii() {
            bytes.push(first as u8);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    let whole = match std::str::from_utf8(&bytes) {
        Ok(name) => name,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
    };
    Some((what, whole.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_from_its_file() {
        let long = "é".repeat(200);
        for name in ["", "Bash2", "..", "a/b", "a%2f", "\0\n", "\u{202e}x", "-", "a b", &long] {
            let file = file_name(What::Tool, name);
            assert!(file.len() <= 255, "{file}");
            assert!(file.bytes().all(|b| b.is_ascii_alphanumeric() || b"_%-".contains(&b)), "{file}");
            let cut: String = name.chars().take(limits::UNKNOWN_NAME_BYTES / 2).collect();
            let expected = if name.len() > limits::UNKNOWN_NAME_BYTES { cut } else { name.to_owned() };
            assert_eq!(read_name(&file), Some((What::Tool, expected)), "{name:?}");
        }
        for file in ["", "x", "other-a", "tool-%", "tool-%x", "tool-é", "tool-%é"] {
            assert_eq!(read_name(file), None, "{file}");
        }
    }

    fn event(tool: &str) -> Event {
        let mut event = Event::new(EventKind::AfterTool, "s");
        event.tool = Some(tool.to_owned());
        event
    }

    #[test]
    fn ten_thousand_names_stay_bounded() {
        let home = tempfile::tempdir().expect("a folder");
        for agent in baton_agents::ALL {
            for n in 0..10_000 {
                note(home.path(), *agent, &event(&format!("Tool{n}")));
            }
            let (names, full) = list(home.path(), *agent);
            assert_eq!((names.len(), full), (limits::UNKNOWN_NAMES, true), "{}", agent.name());
            let files = std::fs::read_dir(folder(home.path(), *agent)).expect("a folder").count();
            assert_eq!(files, limits::UNKNOWN_NAMES);
        }
    }

    #[test]
    fn a_name_that_keeps_coming_is_noted_once_a_day() {
        let home = tempfile::tempdir().expect("a folder");
        let agent = baton_agents::ALL[0];
        note(home.path(), agent, &event("Teleport"));
        let file = folder(home.path(), agent).join(file_name(What::Tool, "Teleport"));
        let aged = |by: baton_core::time::Span| {
            let then = SystemTime::now() - by.to_std();
            File::options().write(true).open(&file).and_then(|file| file.set_modified(then)).expect("a time");
            note(home.path(), agent, &event("Teleport"));
            let noted = std::fs::metadata(&file).and_then(|file| file.modified()).expect("a time");
            noted == then
        };
        assert!(aged(baton_core::time::Span::minutes(60)), "noted again within the day");
        assert!(!aged(baton_core::time::Span::days(2)), "not noted again after two days");
    }

    #[test]
    fn what_is_known_leaves_nothing() {
        let home = tempfile::tempdir().expect("a folder");
        for agent in baton_agents::ALL {
            for row in agent.tools().rows {
                row.names.iter().for_each(|name| note(home.path(), *agent, &event(name)));
            }
        }
        assert_eq!(std::fs::read_dir(home.path()).expect("a folder").count(), 0);
    }
}
