//! E9, S5: setup records the person's configuration file; what setup made, and nothing else, is
//! gone when all of it is removed.

use crate::world::{World, program, run};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        found.push(entry.path());
        if entry.path().is_dir() {
            found.extend(all_below(&entry.path()));
        }
    }
    found.sort();
    found
}

fn setup(world: &World, home: &Path, arguments: &[&str]) {
    let mut command = world.command(program());
    command.arg("setup").args(arguments).env("HOME", home).env_remove("BATON_HOME");
    for name in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"] {
        command.env_remove(name);
    }
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", world.path("bin").display()));
    run(command, b"").expect(0);
}

/// A plugin's server has the tools of setup's server, which must not be there twice.
#[test]
fn a_plugins_server_offers_no_tools_where_setup_has_been() {
    let world = World::new();
    let offered = || {
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            "",
        ];
        let server = world.baton(&["mcp", "--agent", "gemini", "--plugin"]);
        let said = run(server, lines.join("\n").as_bytes()).expect(0).stdout;
        assert!(said.contains("serverInfo") && said.contains("\"tools\":["), "{said}");
        (said.contains("send_message"), said.contains("instructions"))
    };
    assert_eq!(offered(), (true, true));
    // A repository can't switch a plugin off.
    world.script(&["setup", "gemini", "--project"]).expect(0);
    assert_eq!(offered(), (true, true));
    world.script(&["setup", "gemini"]).expect(0);
    assert_eq!(offered(), (false, false));
    world.script(&["setup", "gemini", "--remove"]).expect(0);
    assert_eq!(offered(), (true, true));
}

#[test]
fn e9_a_removal_leaves_nothing_that_setup_made() {
    let world = World::new();
    fs::create_dir_all(world.path("bin")).unwrap();
    for agent in ["codex", "gemini", "opencode", "pi"] {
        let file = world.path("bin").join(agent);
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for own in [&[][..], &["./.local"], &["./.local/share/baton"], &["./.codex"]] {
        let home = world.path("empty");
        fs::create_dir(&home).unwrap();
        own.iter().for_each(|folder| fs::create_dir_all(home.join(folder)).unwrap());
        let before = all_below(&home);
        for agent in ["codex", "gemini", "opencode", "pi"] {
            setup(&world, &home, &[agent]);
        }
        assert!(all_below(&home).len() > before.len() + 4, "it was set up");
        let recorded = fs::read_to_string(home.join(".local/share/baton/config-path")).unwrap();
        assert_eq!(recorded, format!("{}\n", home.join(".config/baton/config.toml").display()));
        for agent in ["gemini", "codex", "pi", "opencode"] {
            setup(&world, &home, &["--remove", agent]);
        }
        assert_eq!(all_below(&home), before, "with {own:?}");
        fs::remove_dir_all(&home).unwrap();
    }
}

#[test]
fn setup_names_the_rules_that_are_for_the_person_to_switch_on() {
    let world = World::new();
    let said = world.script(&["setup", "claude"]).expect(0).stderr;
    let line = said.lines().find(|line| line.contains("baton guard enable")).expect("a line about the rules");
    let rules: Vec<&str> = line
        .split([' ', ',', '.'])
        .filter(|word| word.starts_with("block-") || word.starts_with("warn-"))
        .collect();
    assert!(rules.len() >= 5, "{line}");
    for rule in rules {
        // Each is a rule, and off.
        let explained = world.script(&["guard", "explain", rule]).expect(0).stdout;
        assert!(explained.contains("off"), "{rule}: {explained}");
    }
    let removed = world.script(&["setup", "claude", "--remove"]).expect(0).stderr;
    assert!(!removed.contains("guard enable"), "{removed}");
}
