//! Codex runs a hook only if the user's `config.toml` holds the hash of its definition under the
//! hook's position: `[hooks.state."<hooks.json>:<event>:<group>:<handler>"] trusted_hash =
//! "sha256:…"`. We write the hashes of our own hooks. The key is a position, so a change of
//! positions must also move the trust of other tools' hooks. This module decides that, from the two
//! states of the file. Hash and clamping were checked against `hooks/list` of Codex 0.166.0.

use serde_json::{Map, Value, json};
use std::path::Path;

use crate::config::json::Json;
use crate::config::toml::{Block, Change, Scalar, Toml, TomlError};
use crate::install::hooks::{Found, events, handlers};
use crate::install::sha256;

/// The timeout in seconds that Codex gives a hook without one.
const DEFAULT_TIMEOUT_SECONDS: u64 = 600;
/// The same for hooks that run while a session ends.
const DEFAULT_ENDING_TIMEOUT_SECONDS: u64 = 1;
/// The longest timeout of those. Codex shortens longer ones, with a warning, before it hashes them.
const MAX_ENDING_TIMEOUT_SECONDS: u64 = 3;

/// The handlers of a hooks file, as far as trust needs them.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions {
    /// Position and hash of our handlers.
    pub ours: Vec<(Position, String)>,
    /// Positions of the other handlers.
    others: Vec<Position>,
}

/// The position of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    event: String,
    group: usize,
    handler: usize,
}

impl Position {
    fn key(&self, hooks_path: &str) -> String {
        format!("{hooks_path}:{}:{}:{}", snake(&self.event), self.group, self.handler)
    }
}

impl Positions {
    pub fn of(json: &Json<'_>, ours: &[Found]) -> Self {
        let mut positions = Self::default();
        for (event, groups) in events(json) {
            for (group, value) in groups.iter().enumerate() {
                for handler in 0..handlers(value).len() {
                    let position = Position { event: event.clone(), group, handler };
                    match ours.iter().find(|f| f.event == event && f.group == group && f.handler == handler) {
                        Some(found) => positions.ours.push((position, hash(found))),
                        None => positions.others.push(position),
                    }
                }
            }
        }
        positions
    }

    fn others_of(&self, event: &str) -> impl Iterator<Item = &Position> {
        self.others.iter().filter(move |p| p.event == event)
    }
}

/// Changes the trust in `config` to fit the next state of the hooks file. `stale` are hashes of
/// ours that may be left at positions where we no longer are.
pub(super) fn carry(
    config: &Path,
    bytes: &[u8],
    hooks_path: &str,
    (before, after): (&Positions, &Positions),
    stale: &[String],
) -> Result<(Vec<u8>, usize), TomlError> {
    let toml = Toml::parse(bytes, config)?;
    let wanted: Vec<(String, &String)> = after.ours.iter().map(|(p, h)| (p.key(hooks_path), h)).collect();
    let is_wanted = |key: &str| wanted.iter().any(|(k, _)| k == key);
    let were_ours: Vec<String> = before.ours.iter().map(|(p, _)| p.key(hooks_path)).collect();
    let moves = moves(before, after, hooks_path);

    let mut changes = Vec::new();
    let prefix = format!("{hooks_path}:");
    for key in toml.keys(&["hooks", "state"]).into_iter().filter(|key| key.starts_with(&prefix)) {
        let hash = toml.get(&["hooks", "state", &key, "trusted_hash"]).and_then(|item| item.as_str());
        let left_behind = hash.is_some_and(|hash| stale.iter().any(|s| s == hash));
        match moves.iter().find(|(from, _)| *from == key) {
            Some((_, to)) if !left_behind => changes.push(Change::Rename(entry(&key), to.clone())),
            _ if is_wanted(&key) => {}
            _ if left_behind || were_ours.contains(&key) => changes.push(Change::Cut(entry(&key))),
            _ => {}
        }
    }
    let mut touched = changes.len();
    let bytes = toml.change(&changes)?;

    let toml = Toml::parse(&bytes, config)?;
    let (mut changes, mut blocks) = (Vec::new(), Vec::new());
    for (key, hash) in wanted {
        let value = Scalar::Text(hash.clone());
        let name = [entry(&key), vec!["trusted_hash".to_owned()]].concat();
        match toml.get(&name) {
            Some(item) if value.is(item) => {}
            Some(_) => changes.push(Change::Set(name, value)),
            None if toml.get(&entry(&key)).is_some() => changes.push(Change::Set(name, value)),
            None => blocks.push(Block { table: entry(&key), values: vec![("trusted_hash", value)] }),
        }
    }
    touched += changes.len() + blocks.len();
    let bytes = toml.change(&changes)?;
    Ok((Toml::parse(&bytes, config)?.append(&blocks)?, touched))
}

/// How many of our hooks Codex skips: those without the trust that they need, and those that the
/// user switched off.
pub(super) fn skipped(
    config: &Path,
    bytes: &[u8],
    hooks_path: &str,
    now: &Positions,
) -> Result<(usize, usize), TomlError> {
    let toml = Toml::parse(bytes, config)?;
    let (mut untrusted, mut off) = (0, 0);
    for (position, hash) in &now.ours {
        let value =
            |name: &str| toml.get(&[entry(&position.key(hooks_path)), vec![name.to_owned()]].concat());
        if value("trusted_hash").and_then(|item| item.as_str()) != Some(hash) {
            untrusted += 1;
        } else if value("enabled").and_then(|item| item.as_bool()) == Some(false) {
            off += 1;
        }
    }
    Ok((untrusted, off))
}

fn entry(key: &str) -> Vec<String> {
    ["hooks", "state", key].map(str::to_owned).to_vec()
}

/// The keys of other tools' handlers whose position changes. Their order never changes.
fn moves(before: &Positions, after: &Positions, hooks_path: &str) -> Vec<(String, String)> {
    let mut events: Vec<&str> = before.others.iter().map(|p| p.event.as_str()).collect();
    events.dedup();
    let pairs = events.into_iter().flat_map(|e| before.others_of(e).zip(after.others_of(e)));
    pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| (from.key(hooks_path), to.key(hooks_path)))
        .collect()
}

/// The hash that Codex computes for one of our handlers: that of its canonical JSON, with defaults
/// filled in.
pub(super) fn hash(found: &Found) -> String {
    let ending = matches!(found.event.as_str(), "SessionEnd" | "Interrupt");
    let timeout = match (found.value.get("timeout").and_then(Value::as_u64), ending) {
        (Some(seconds), true) => seconds.min(MAX_ENDING_TIMEOUT_SECONDS),
        (Some(seconds), false) => seconds,
        (None, true) => DEFAULT_ENDING_TIMEOUT_SECONDS,
        (None, false) => DEFAULT_TIMEOUT_SECONDS,
    };
    let mut handler = found.value.as_object().cloned().unwrap_or_default();
    handler.insert("timeout".to_owned(), json!(timeout));
    if found.value["type"] == "command" {
        handler.entry("async").or_insert(json!(false));
    }
    let mut hook = json!({ "event_name": snake(&found.event), "hooks": [handler] });
    if let Some(matcher) = &found.matcher {
        hook["matcher"] = json!(matcher);
    }
    format!("sha256:{}", sha256(sorted(&hook).to_string().as_bytes()))
}

/// `SessionStart` as `session_start`.
fn snake(event: &str) -> String {
    let mut out = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            Value::Object(pairs.into_iter().map(|(k, v)| (k.clone(), sorted(v))).collect::<Map<_, _>>())
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(event: &str, matcher: Option<&str>, value: Value) -> Found {
        Found { event: event.into(), group: 0, handler: 0, matcher: matcher.map(Into::into), value }
    }

    /// The hashes are those that `hooks/list` of Codex 0.166.0 showed for these handlers.
    #[test]
    fn hashes_are_those_that_codex_computes() {
        let command = "'/usr/bin/true' hook codex --home '/h'";
        let handler = json!({ "type": "command", "command": command, "timeout": 10 });
        assert_eq!(
            hash(&found("SessionStart", None, handler)),
            "sha256:2aba0823f86765952f5dc09b92d04955fcc1378fd5a4e5a5f341faed2199594b"
        );
        let input = json!({ "event": "PreToolUse", "session_id": "${session_id}" });
        let handler = json!({ "type": "mcp_tool", "server": "baton", "tool": "hook_event", "input": input });
        assert_eq!(
            hash(&found("PreToolUse", Some("mcp__baton__.*"), handler)),
            "sha256:9ea5a32f40d462a5f420b299c736b2c7e834ec46789939aa22e49424225572a3"
        );
        // Longer than Codex allows for this event.
        let handler = json!({ "type": "command", "command": "true", "timeout": 10 });
        assert_eq!(
            hash(&found("SessionEnd", None, handler)),
            "sha256:0408973db4c606ef0b942b13de03431201c09e7746a6fbf2d078370f1af83d68"
        );
        let handler = json!({ "type": "command", "command": "true" });
        assert_eq!(
            hash(&found("Interrupt", None, handler)),
            "sha256:fb1ffe26e8dbd2e7fb8855d602d1545f7e1b53854ebfb71aead8f18db9e7607a"
        );
    }
}
