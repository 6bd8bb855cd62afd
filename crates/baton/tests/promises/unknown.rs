//! Events and tools that no table knows leave a trace that `doctor` shows, and cost a write only
//! when they are new.

use crate::puppet::{Puppet, Style};
use crate::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// What `doctor` says about unknown names.
fn shown(world: &World, arguments: &[&str]) -> Vec<(String, String)> {
    let done = world.script(arguments).expect(0).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = done.as_array().unwrap().iter();
    rows.filter(|row| text(&row["check"]).ends_with("unknown"))
        .map(|row| {
            assert_eq!(row["verdict"], "warn", "{row}");
            assert!(text(&row["hint"]).contains("baton doctor --fix"), "{row}");
            let detail = text(&row["detail"]);
            (text(&row["check"]), detail.split(", seen on ").next().unwrap().to_owned())
        })
        .collect()
}

fn row(check: &str, detail: &str) -> (String, String) {
    (check.to_owned(), detail.to_owned())
}

/// Every file of the home with its size and time, but for SQLite's shared memory, which readers
/// touch.
fn files(folder: &Path) -> BTreeMap<String, (u64, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        if metadata.is_dir() {
            all.extend(files(&path));
        }
        if !path.to_string_lossy().ends_with("-shm") {
            all.insert(path.to_string_lossy().into_owned(), (metadata.len(), metadata.modified().unwrap()));
        }
    }
    all
}

#[test]
fn unknown_events_and_tools_are_shown_by_doctor_until_they_are_forgotten() {
    let world = World::new();
    let claude = Puppet::start(&world, Style::Claude, "birch");
    let codex = Puppet::start(&world, Style::Codex, "otter");
    assert_eq!(shown(&world, &["doctor", "--json"]), []);
    for _ in 0..3 {
        claude.quiet_hook("FutureEvent", json!({}));
        claude.quiet_hook("PermissionRequest", json!({"tool_name": "Teleport"}));
        // A subagent's are recorded too.
        codex.quiet_hook("PermissionRequest", json!({"tool_name": "warp", "agent_id": "sub"}));
    }
    // Known: a tool of an agent, of an MCP server, and an event that is nothing to us.
    claude.quiet_hook("PermissionRequest", json!({"tool_name": "Bash"}));
    claude.quiet_hook("PermissionRequest", json!({"tool_name": "mcp__git__log"}));
    claude.quiet_hook("MessageDisplay", json!({}));
    let expected = [
        row("claude unknown", "event FutureEvent"),
        row("claude unknown", "tool Teleport"),
        row("codex unknown", "tool warp"),
    ];
    assert_eq!(shown(&world, &["doctor", "--json"]), expected);
    let text = world.script(&["doctor"]).expect(0).stdout;
    assert!(text.contains("tool Teleport, seen on 2"), "{text}");
    assert_eq!(shown(&world, &["doctor", "--fix", "--json"]), []);
    claude.quiet_hook("FutureEvent", json!({}));
    assert_eq!(shown(&world, &["doctor", "--json"]), [row("claude unknown", "event FutureEvent")]);
}

#[test]
fn a_hook_writes_an_unknown_name_once_and_a_known_one_never() {
    let world = World::new();
    let puppet = Puppet::start(&world, Style::Claude, "birch");
    puppet.quiet_hook("PreToolUse", json!({"tool_name": "Bash"}));
    let before = files(world.home());
    puppet.quiet_hook("PreToolUse", json!({"tool_name": "Bash"}));
    assert_eq!(files(world.home()), before);
    puppet.quiet_hook("PreToolUse", json!({"tool_name": "Teleport"}));
    let after = files(world.home());
    let new: Vec<&String> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert_eq!(new.len(), 3, "two folders and a file: {new:?}");
    puppet.quiet_hook("PreToolUse", json!({"tool_name": "Teleport"}));
    assert_eq!(files(world.home()), after);
}

#[test]
fn hostile_names_stay_names() {
    let world = World::new();
    let puppet = Puppet::start(&world, Style::Claude, "birch");
    puppet.quiet_hook("PermissionRequest", json!({"tool_name": "Bash"}));
    let before = files(&world.path(""));
    let long = "\u{1f600}".repeat(5_000);
    let names = ["", "..", "../../x", "/etc/passwd", "a\nb", "\u{1b}[31mred", "\u{202e}", "a\u{0}b", &long];
    for name in names {
        puppet.quiet_hook(name, json!({}));
        puppet.quiet_hook("PermissionRequest", json!({"tool_name": name}));
    }
    let folder = world.home().join("unknown");
    let inside = |path: &String| Path::new(path).starts_with(&folder);
    let stray: Vec<String> = files(&world.path(""))
        .into_keys()
        .filter(|path| !before.contains_key(path) && !inside(path))
        .collect();
    assert_eq!(stray, Vec::<String>::new());
    // A tool without a name is no tool.
    let rows = shown(&world, &["doctor", "--json"]);
    assert_eq!(rows.len(), 2 * names.len() - 1, "{rows:?}");
    for (_, detail) in &rows {
        assert!(!detail.chars().any(|c| c.is_control() || c == '\u{202e}'), "{detail:?}");
        assert!(detail.chars().count() < 200, "{detail:?}");
    }
    assert!(rows.contains(&row("claude unknown", "event ../../x")), "{rows:?}");
}
