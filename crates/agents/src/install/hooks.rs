//! The `hooks` part of a JSON file, in the format that Claude Code introduced and others adopted:
//! event → groups with an optional matcher → handlers. Our groups go to the end of each event's
//! array. A second run updates them in place, and a removal removes only our handlers. They are
//! recognised by value, not by position: a command that runs `<anything> hook AGENT --home HOME`,
//! or a tool call to our MCP server.

use serde_json::{Map, Value, json};
use std::path::Path;

use super::plugin::PLUGIN;
use super::{InstallError, SERVER, shell};
use crate::config::json::{Container, Json, Made, Reader, Step, Tree};

/// Makes a hook wait in the background.
pub const WAIT: &str = "--wait";
/// Makes a hook judge a call, and deliver nothing.
pub const GUARD: &str = "--guard";
/// Tells such a hook, before a tool, that its agent lets it wait for a person's answer.
pub const HOLD: &str = "--hold";
/// The timeout in seconds of a hook that waits for a person's answer. It is longer than the longest
/// hold that can be set, so that the hook ends by itself.
pub const HELD_SECONDS: u32 = 630;
/// Makes a hook the stop gate.
pub const REVIEW: &str = "--review";
/// The timeout of the stop gate in seconds: longer than any review that it asks for.
pub const REVIEW_SECONDS: u32 = 600;

/// Whether a command is one of our hooks for this agent and home: `<anything> hook AGENT [--wait |
/// --review | [EVENT] [--guard [--hold]]] --home HOME`.
pub(crate) fn is_our_command(words: &[String], agent: &str, home: &str) -> bool {
    let Some((_, words)) = words.split_first() else { return false };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["hook", a, between @ .., "--home", h] if *a == agent && *h == home => match between {
            [] | [_] => true,
            [_, last] | [_, last, HOLD] => *last == GUARD,
            _ => false,
        },
        _ => false,
    }
}

/// One hook to install.
#[derive(Clone, Debug)]
pub struct HookRow {
    /// The agent's name for the event.
    pub event: &'static str,
    /// The tools that it is for; `None` for all.
    pub matcher: Option<&'static str>,
    pub form: Form,
}

/// What a hook calls.
#[derive(Clone, Debug)]
pub enum Form {
    /// Our program, with the payload on stdin.
    Command {
        /// In the agent's unit, seconds or milliseconds.
        timeout: u32,
    },
    /// Our program in the background of the session. It waits until there is a reason to wake the
    /// session.
    Waiter {
        /// In seconds.
        timeout: u32,
    },
    /// Our program, which only judges a tool call. Its command names the event, so that it can
    /// answer even a payload that it can't read.
    Guard {
        /// In the agent's unit, seconds or milliseconds.
        timeout: u32,
        /// What else the handler says: what happens if it fails.
        more: Vec<(&'static str, &'static str)>,
        /// Whether it may wait for a person. Then this is the time for it.
        holds: bool,
    },
    /// Our program, which has another agent review before the session stops.
    Review {
        /// In seconds.
        timeout: u32,
    },
    /// A tool of our MCP server in the same session.
    McpTool {
        tool: &'static str,
        /// Its arguments; the agent fills in `${field}`.
        input: Vec<(&'static str, &'static str)>,
        /// In seconds.
        timeout: u32,
    },
}

/// Who owns the MCP server called `baton`, and the tool hooks that call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// baton owns it, or there is none.
    Ours,
    /// Another program, or a baton with another home.
    Others,
}

/// One of our handlers in a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub event: String,
    /// The index of its group in the event.
    pub group: usize,
    /// Its index in the group.
    pub handler: usize,
    pub matcher: Option<String>,
    pub value: Value,
}

/// All hooks of one agent, ready to be written.
#[derive(Clone, Debug)]
pub struct HookSet<'a> {
    /// The agent's name in `baton hook NAME`.
    pub agent: &'static str,
    pub baton: &'a str,
    /// `None` in a plugin.
    pub home: Option<&'a str>,
    /// What the agent calls the hooks where it shows what they say, if a handler can say that.
    /// Otherwise it shows their command.
    pub title: Option<&'static str>,
    pub rows: &'a [HookRow],
    /// The reader of the file.
    pub reader: &'a Reader,
}

/// New bytes of a file and what changed in it.
#[derive(Clone, Debug)]
pub struct Edited {
    pub bytes: Vec<u8>,
    /// The containers that had to be made.
    pub made: Vec<Container>,
    /// Entries that are new.
    pub added: usize,
    /// Entries that were updated.
    pub updated: usize,
    /// Old entries of ours that are not wanted any more.
    pub dropped: usize,
}

impl HookSet<'_> {
    /// The command that every command hook runs.
    pub fn command(&self) -> String {
        self.command_with("")
    }

    fn waiter(&self) -> String {
        self.command_with(&format!(" {WAIT}"))
    }

    /// The command of a hook that judges.
    fn guard_command(&self, event: &str, holds: bool) -> String {
        let hold = if holds { format!(" {HOLD}") } else { String::new() };
        self.command_with(&format!(" {event} {GUARD}{hold}"))
    }

    fn command_with(&self, words: &str) -> String {
        let home = match self.home {
            Some(home) => format!("--home {}", shell::quote(home)),
            None => PLUGIN.to_owned(),
        };
        format!("{} hook {}{words} {home}", shell::quote(self.baton), self.agent)
    }

    /// The handler of a row as the file has it.
    pub fn handler(&self, row: &HookRow) -> Value {
        let mut handler = self.untitled_handler(row);
        if let Some(title) = self.title {
            handler["name"] = json!(title);
        }
        handler
    }

    fn untitled_handler(&self, row: &HookRow) -> Value {
        match &row.form {
            Form::Guard { timeout, more, holds } => {
                let command = self.guard_command(row.event, *holds);
                let mut handler = json!({ "type": "command", "command": command, "timeout": timeout });
                for (key, value) in more {
                    handler[*key] = json!(value);
                }
                handler
            }
            Form::Command { timeout } => {
                json!({ "type": "command", "command": self.command(), "timeout": timeout })
            }
            Form::Review { timeout } => {
                let command = self.command_with(&format!(" {REVIEW}"));
                json!({ "type": "command", "command": command, "timeout": timeout })
            }
            Form::Waiter { timeout } => json!({
                "type": "command", "command": self.waiter(), "async": true, "asyncRewake": true, "timeout": timeout
            }),
            Form::McpTool { tool, input, timeout } => {
                let input: Map<_, _> = input.iter().map(|(k, v)| (k.to_string(), json!(v))).collect();
                let input = Value::Object(input);
                json!({ "type": "mcp_tool", "server": SERVER, "tool": tool, "input": input, "timeout": timeout })
            }
        }
    }

    /// Adds what is missing and updates the rest.
    pub fn install(&self, path: &Path, bytes: &[u8]) -> Result<Edited, InstallError> {
        let json = Json::parse(bytes, path, self.reader)?;
        self.check_unique(&json)?;
        let matched = self.matched(&self.find(&json, Server::Ours));
        let updates: Vec<(Vec<Step>, Value)> = matched.updates;
        let replaced = json.replace(&updates);

        let mut events: Vec<(String, Tree)> = Vec::new();
        let added = matched.missing.len();
        for row in matched.missing {
            let group = self.group(row);
            match events.iter_mut().find(|(event, _)| event == row.event) {
                Some((_, Tree::Append(groups))) => groups.push(group),
                _ => events.push((row.event.to_owned(), Tree::Append(vec![group]))),
            }
        }
        let (bytes, made) = if events.is_empty() {
            (replaced, Vec::new())
        } else {
            let tree = Tree::Keys(vec![("hooks".to_owned(), Tree::Keys(events))]);
            Json::parse(&replaced, path, self.reader)?.add(&tree)?
        };

        let json = Json::parse(&bytes, path, self.reader)?;
        let dropped = self.matched(&self.find(&json, Server::Ours)).extra;
        let ways = cut_ways(&json, &dropped);
        let bytes = match json.cut(&ways, Made::Unknown) {
            Some(cut) if !ways.is_empty() => cut,
            _ => bytes,
        };
        Ok(Edited { bytes, made, added, updated: updates.len(), dropped: dropped.len() })
    }

    /// Removes our handlers, and returns how many there were. `None` means that the file is
    /// removed.
    pub fn remove(
        &self,
        path: &Path,
        bytes: &[u8],
        made: Made<'_>,
        server: Server,
    ) -> Result<(Option<Vec<u8>>, usize), InstallError> {
        let json = Json::parse(bytes, path, self.reader)?;
        self.check_unique(&json)?;
        let found = self.find(&json, server);
        if found.is_empty() {
            return Ok((Some(bytes.to_vec()), 0));
        }
        Ok((json.cut(&cut_ways(&json, &found), made), found.len()))
    }

    /// Our handlers in a document, in its order.
    pub fn find(&self, json: &Json<'_>, server: Server) -> Vec<Found> {
        let mut found = Vec::new();
        for (event, groups) in events(json) {
            for (group, value) in groups.iter().enumerate() {
                let matcher = value.get("matcher").and_then(Value::as_str).map(str::to_owned);
                for (handler, value) in handlers(value).iter().enumerate() {
                    if self.is_ours(value, server) {
                        let (event, matcher, value) = (event.clone(), matcher.clone(), value.clone());
                        found.push(Found { event, group, handler, matcher, value });
                    }
                }
            }
        }
        found
    }

    fn is_ours(&self, handler: &Value, server: Server) -> bool {
        let text = |key| handler.get(key).and_then(Value::as_str);
        match text("type") {
            Some("command") => {
                let words = text("command").and_then(shell::words).unwrap_or_default();
                self.home.is_some_and(|home| is_our_command(&words, self.agent, home))
            }
            Some("mcp_tool") => server == Server::Ours && text("server") == Some(SERVER),
            _ => false,
        }
    }

    fn group(&self, row: &HookRow) -> Value {
        let handlers = json!([self.handler(row)]);
        match row.matcher {
            Some(matcher) => json!({ "matcher": matcher, "hooks": handlers }),
            None => json!({ "hooks": handlers }),
        }
    }

    fn matched<'r>(&'r self, found: &[Found]) -> Matched<'r> {
        let mut free: Vec<&Found> = found.iter().collect();
        let mut matched = Matched { updates: Vec::new(), missing: Vec::new(), extra: Vec::new() };
        for row in self.rows {
            let wanted = self.handler(row);
            let purpose = |handler: &Value| {
                let command = handler["command"].as_str().unwrap_or_default();
                [GUARD, REVIEW].map(|word| command.contains(word))
            };
            let fits = |f: &&Found| {
                f.event == row.event
                    && f.matcher.as_deref() == row.matcher
                    && f.value["type"] == wanted["type"]
                    && f.value["async"] == wanted["async"]
                    && purpose(&f.value) == purpose(&wanted)
            };
            match free.iter().position(fits) {
                Some(i) => {
                    let found = free.remove(i);
                    if found.value != wanted {
                        matched.updates.push((found.way(), wanted));
                    }
                }
                None => matched.missing.push(row),
            }
        }
        matched.extra = free.into_iter().cloned().collect();
        matched
    }

    fn check_unique(&self, json: &Json<'_>) -> Result<(), InstallError> {
        let rows = self.rows.iter().map(|row| row.event.to_owned());
        for event in events(json).into_iter().map(|(event, _)| event).chain(rows) {
            json.unique(&["hooks", &event])?;
        }
        Ok(())
    }
}

/// How the wanted rows and the existing entries fit together.
struct Matched<'r> {
    updates: Vec<(Vec<Step>, Value)>,
    missing: Vec<&'r HookRow>,
    extra: Vec<Found>,
}

impl Found {
    fn group_way(&self) -> Vec<Step> {
        vec![Step::Key("hooks".to_owned()), Step::Key(self.event.clone()), Step::Index(self.group)]
    }

    fn way(&self) -> Vec<Step> {
        let mut way = self.group_way();
        way.extend([Step::Key("hooks".to_owned()), Step::Index(self.handler)]);
        way
    }
}

/// The events of a document with their groups.
pub(crate) fn events(json: &Json<'_>) -> Vec<(String, Vec<Value>)> {
    let hooks = json.get(&[Step::Key("hooks".to_owned())]);
    let Some(Value::Object(hooks)) = hooks else { return Vec::new() };
    let arrays = hooks.into_iter().filter_map(|(event, groups)| match groups {
        Value::Array(groups) => Some((event, groups)),
        _ => None,
    });
    arrays.collect()
}

/// The handlers of a group.
pub(crate) fn handlers(group: &Value) -> &[Value] {
    group.get("hooks").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A group with only such handlers is removed as a whole.
fn cut_ways(json: &Json<'_>, found: &[Found]) -> Vec<Vec<Step>> {
    let events = events(json);
    let whole = |f: &Found| {
        let groups = events.iter().find(|(event, _)| *event == f.event).map(|(_, groups)| groups);
        let all = groups.map_or(0, |groups| handlers(&groups[f.group]).len());
        all == found.iter().filter(|o| o.event == f.event && o.group == f.group).count()
    };
    let mut ways: Vec<Vec<Step>> =
        found.iter().map(|f| if whole(f) { f.group_way() } else { f.way() }).collect();
    ways.dedup();
    ways
}
