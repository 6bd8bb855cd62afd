//! Records events and tools that no table knows, so that `doctor` can show them.
//!
//! Each name is one empty file, `unknown/<agent>/<kind>-<name>` in the home. The file's time is
//! when the name was last recorded. A recorded name costs one check of its file, and is recorded
//! again at most once a day. A known name costs nothing. Errors here are ignored, because the event
//! itself must go on.

use baton_agents::{Agent, tools};
use baton_core::event::{Event, EventKind};
use baton_core::limits;
use baton_core::time::Moment;
use baton_core::tool::ToolKind;
use baton_machine::own;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of baton's own MCP server, which every session has.
const OWN_SERVER: &str = "baton";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// A hook's event.
    Event,
    /// A tool.
    Tool,
}

impl NameKind {
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
    pub kind: NameKind,
    /// The agent's name for it. A long name is cut.
    pub name: String,
    /// When it was last recorded. It was last used within a day of that.
    pub seen: Moment,
}

/// The unknown names that an agent used.
#[derive(Debug, Default)]
pub struct UnknownNames {
    pub names: Vec<Unknown>,
    /// The limit is reached, so the agent may have used more names than are kept.
    pub is_full: bool,
}

/// Records what is unknown about an event.
pub fn record(home: &Path, agent: &dyn Agent, event: &Event) {
    if event.kind == EventKind::Unknown {
        record_name(&folder(home, agent), NameKind::Event, &event.native).ok();
    }
    if let Some(tool) = event.tool.as_deref().filter(|tool| is_unknown_tool(agent, tool)) {
        record_name(&folder(home, agent), NameKind::Tool, tool).ok();
    }
}

/// The names that an agent used and that are still unknown.
pub fn list(home: &Path, agent: &dyn Agent) -> UnknownNames {
    let Ok(entries) = std::fs::read_dir(folder(home, agent)) else { return UnknownNames::default() };
    let all: Vec<_> = entries.flatten().take(limits::MAX_UNKNOWN_NAMES).collect();
    let is_full = all.len() == limits::MAX_UNKNOWN_NAMES;
    let mut names: Vec<Unknown> = all
        .into_iter()
        .filter_map(|entry| {
            let (kind, name) = read_name(entry.file_name().to_str()?)?;
            let since =
                entry.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            let seen = Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
            Some(Unknown { kind, name, seen })
        })
        // A newer version of baton may know it.
        .filter(|unknown| unknown.kind == NameKind::Event || is_unknown_tool(agent, &unknown.name))
        .collect();
    names.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    UnknownNames { names, is_full }
}

/// Deletes the recorded names of an agent.
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
    tools::kind(agent.tools(), name, &[OWN_SERVER]) == ToolKind::Unknown
}

fn record_name(folder: &Path, kind: NameKind, name: &str) -> io::Result<()> {
    let file = folder.join(file_name(kind, name));
    if let Ok(metadata) = std::fs::symlink_metadata(&file) {
        let noted = metadata.modified()?;
        let again = limits::UNKNOWN_NOTE_INTERVAL.to_std();
        if metadata.is_file() && noted.elapsed().is_ok_and(|age| age > again) {
            own::write_existing(&file)?.set_modified(SystemTime::now())?;
        }
        return Ok(());
    }
    own::folder(folder)?;
    // Several hooks with new names at the same instant may exceed the limit, but only by their
    // number.
    if std::fs::read_dir(folder)?.take(limits::MAX_UNKNOWN_NAMES).count() < limits::MAX_UNKNOWN_NAMES {
        own::create_new(&file)?;
    }
    Ok(())
}

/// The name of the file: letters, digits and underscores stay, every other byte becomes `%` and two
/// digits.
fn file_name(kind: NameKind, name: &str) -> String {
    let mut file = format!("{}-", kind.as_str());
    for byte in name.bytes().take(limits::UNKNOWN_NAME_BYTES) {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            file.push(char::from(byte));
        } else {
            file.push_str(&format!("%{byte:02x}"));
        }
    }
    file
}

/// The opposite of [`file_name`]. `None` for a file that it did not make. Leaves out half a
/// character at the end of a cut name.
fn read_name(file: &str) -> Option<(NameKind, String)> {
    let (what, coded) = file.split_once('-')?;
    let kind = [NameKind::Event, NameKind::Tool].into_iter().find(|known| known.as_str() == what)?;
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
    Some((kind, whole.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_round_trips_through_its_file_name() {
        let long = "é".repeat(200);
        for name in ["", "Bash2", "..", "a/b", "a%2f", "\0\n", "\u{202e}x", "-", "a b", &long] {
            let file = file_name(NameKind::Tool, name);
            assert!(file.len() <= 255, "{file}");
            assert!(file.bytes().all(|b| b.is_ascii_alphanumeric() || b"_%-".contains(&b)), "{file}");
            let cut: String = name.chars().take(limits::UNKNOWN_NAME_BYTES / 2).collect();
            let expected = if name.len() > limits::UNKNOWN_NAME_BYTES { cut } else { name.to_owned() };
            assert_eq!(read_name(&file), Some((NameKind::Tool, expected)), "{name:?}");
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
                record(home.path(), *agent, &event(&format!("Tool{n}")));
            }
            let UnknownNames { names, is_full } = list(home.path(), *agent);
            assert_eq!((names.len(), is_full), (limits::MAX_UNKNOWN_NAMES, true), "{}", agent.name());
            let files = std::fs::read_dir(folder(home.path(), *agent)).expect("a folder").count();
            assert_eq!(files, limits::MAX_UNKNOWN_NAMES);
        }
    }

    #[test]
    fn a_name_that_comes_again_is_recorded_once_a_day() {
        let home = tempfile::tempdir().expect("a folder");
        let agent = baton_agents::ALL[0];
        record(home.path(), agent, &event("Teleport"));
        let file = folder(home.path(), agent).join(file_name(NameKind::Tool, "Teleport"));
        let aged = |by: baton_core::time::Span| {
            let then = SystemTime::now() - by.to_std();
            std::fs::File::options()
                .write(true)
                .open(&file)
                .and_then(|file| file.set_modified(then))
                .expect("a time");
            record(home.path(), agent, &event("Teleport"));
            let noted = std::fs::metadata(&file).and_then(|file| file.modified()).expect("a time");
            noted == then
        };
        assert!(aged(baton_core::time::Span::minutes(60)), "noted again within the day");
        assert!(!aged(baton_core::time::Span::days(2)), "not noted again after two days");
    }

    #[test]
    fn a_known_name_leaves_no_file() {
        let home = tempfile::tempdir().expect("a folder");
        for agent in baton_agents::ALL {
            for row in agent.tools().rows {
                row.names.iter().for_each(|name| record(home.path(), *agent, &event(name)));
            }
        }
        assert_eq!(std::fs::read_dir(home.path()).expect("a folder").count(), 0);
    }
}
