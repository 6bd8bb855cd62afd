//! E9, S5: setup records the person's configuration file; what setup made, and nothing else, is
//! gone when all of it is removed.

use crate::puppet::{Puppet, Style};
use crate::world::{World, program, quoted, run};
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

#[test]
fn setup_says_before_what_changes_and_after_what_that_means() {
    let world = World::new();
    let said = world.script(&["setup", "claude", "codex"]).expect(0);
    assert_eq!(said.stdout, "");
    let at = |part: &str| said.stderr.find(part).unwrap_or_else(|| panic!("{part}: {}", said.stderr));
    assert!(at("settings.json") < at("connected"), "{}", said.stderr);
    for part in ["add 13 hooks", "the MCP server", "restart them", "first prompt", "block-sudo", "baton who"]
    {
        at(part);
    }
    let before = &said.stderr[..at("connected")];
    for block in before.split("Codex\n") {
        assert!(block.lines().count() <= 5, "{block}");
    }
    at("--allow-own-tools");
    let again = world.script(&["setup", "claude", "codex"]).expect(0).stderr;
    assert_eq!(again.lines().count(), 1, "twice is quiet: {again}");
    let removed = world.script(&["setup", "--remove"]).expect(0).stderr;
    assert!(
        removed.contains("baton is out of Claude Code, Codex") && removed.contains("settings.json"),
        "{removed}"
    );
    let nothing = world.script(&["setup", "--remove"]).expect(0).stderr;
    assert!(nothing.starts_with("nothing of baton is set up"), "{nothing}");
}

#[test]
fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let world = World::new();
    let planned = world.script(&["setup", "claude", "--dry-run"]).expect(0);
    assert!(planned.stdout.starts_with("--- /dev/null\n+++ "), "{}", planned.stdout);
    assert!(planned.stderr.starts_with("Claude Code\n"), "{}", planned.stderr);
    let document = world.script(&["setup", "claude", "--dry-run", "--json"]).expect(0).json();
    assert_eq!((&document[0]["changed"], &document[0]["would_change"]), (&false.into(), &true.into()));
    assert_eq!(document[0]["changes"].as_array().unwrap().len(), 4);
    assert!(!world.home().join("setup").exists());
    world.script(&["setup", "claude"]).expect(0);
    let document = world.script(&["setup", "claude", "--dry-run", "--json"]).expect(0).json();
    assert_eq!(document[0]["would_change"], false);
    if world.has_person() {
        let line = format!("{} setup claude --remove --dry-run --color always", quoted(program()));
        let shown = world.on_terminal(&line, &[]).expect(0).stdout;
        assert!(shown.contains("\u{1b}[31m-"), "a coloured diff: {shown}");
    }
}

#[test]
fn only_the_person_lets_agents_use_batons_tools_without_a_question() {
    let world = World::new();
    world.configure("# mine\n[approvals]\nauto_approve = [\"bash: git status\"]\n");
    let file = world.path("home/.config/baton/config.toml");
    let before = fs::read_to_string(&file).unwrap();
    world.script(&["setup", "claude", "--allow-own-tools", "--json"]).expect_error(3, "not-a-person");
    world.script(&["setup", "claude"]).expect(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    if !world.has_person() {
        return;
    }
    for _ in 0..2 {
        world.person(&["setup", "claude", "--allow-own-tools"]).expect(0);
        let wanted = before.replace("status\"]", "status\", \"mcp: baton/*\"]");
        assert_eq!(fs::read_to_string(&file).unwrap(), wanted, "once");
    }
    // Asked on a terminal, it is the person's word that counts.
    world.configure("");
    for (answer, is_written) in [("n", false), ("y", true)] {
        world.script(&["setup", "claude", "--remove"]).expect(0);
        let line = format!("{} setup claude", quoted(program()));
        typed(&world, &line, answer);
        assert_eq!(fs::read_to_string(&file).unwrap().contains("mcp: baton/*"), is_written, "{answer}");
    }
}

/// Runs a line on a terminal where the person types an answer.
fn typed(world: &World, line: &str, answer: &str) -> crate::world::Done {
    let mut command = world.command("script");
    command.args(["--quiet", "--return", "--command", line, "/dev/null"]);
    run(command, format!("{answer}\n").as_bytes())
}

#[test]
fn a_purge_deletes_what_baton_made_and_follows_no_link() {
    let world = World::new();
    world.configure("wake = \"off\"\n");
    world.script(&["setup", "claude"]).expect(0);
    world.script(&["setup", "--remove", "--purge", "--yes", "--json"]).expect_error(3, "not-a-person");
    world.script(&["setup", "--purge", "--json"]).expect_error(64, "usage");
    let mut ada = Puppet::start(&world, Style::Claude, "ada");
    ada.turn_in_peace();
    let other = world.path("other-folder");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mine"), "x").unwrap();
    std::os::unix::fs::symlink(&other, world.home().join("setup/link")).unwrap();
    std::os::unix::fs::symlink(&other, world.home().join("jobs")).unwrap();
    fs::write(world.home().join("notes.txt"), "mine").unwrap();
    if !world.has_person() {
        return;
    }
    let refused = world.person(&["setup", "--remove", "--purge", "--yes"]).expect(1);
    assert!(refused.stdout.contains("ada"), "a session runs: {}", refused.stdout);
    assert!(world.home().join("baton.db").exists() && world.home().join("setup").exists());
    ada.quiet_hook("SessionEnd", serde_json::json!({"reason": "other"}));
    let refused = typed(&world, &format!("{} setup --remove --purge", quoted(program())), "n").expect(1);
    assert!(refused.stdout.contains("nothing was removed"), "{}", refused.stdout);
    assert!(world.home().join("setup").exists());
    let done = world.person(&["setup", "--remove", "--purge", "--yes"]).expect(0);
    let left: Vec<_> = fs::read_dir(world.home()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["notes.txt"], "{}", done.stdout);
    assert_eq!(fs::read_to_string(other.join("mine")).unwrap(), "x");
    assert!(!world.path("home/.config/baton").exists());
    let again = world.person(&["setup", "--remove", "--purge", "--yes"]).expect(1);
    assert!(again.stdout.contains("no home") && world.home().join("notes.txt").exists(), "{}", again.stdout);
}

#[test]
fn a_purge_deletes_nothing_of_another_folder_project_or_home() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    world.configure("wake = \"off\"\n");
    let folder = world.path("work");
    fs::create_dir_all(folder.join("jobs")).unwrap();
    fs::write(folder.join("jobs/work.rb"), "mine").unwrap();
    let purge = |home: &std::path::Path| {
        world.person(&["--home", home.to_str().unwrap(), "setup", "--remove", "--purge", "--yes"])
    };
    let refused = purge(&folder).expect(1);
    assert!(refused.stdout.contains("no home"), "{}", refused.stdout);
    assert!(folder.join("jobs/work.rb").exists());
    // A home without settings of its own.
    let second = world.path("second");
    world.script(&["--home", second.to_str().unwrap(), "send", "user", "hello"]).expect(0);
    purge(&second).expect(0);
    assert!(!second.exists());
    assert!(world.path("home/.config/baton/config.toml").exists());
    // The record of a project's setup is needed to take it out.
    world.script(&["setup", "claude", "--project"]).expect(0);
    let refused = purge(world.home()).expect(1);
    assert!(refused.stdout.contains("a project is set up too"), "{}", refused.stdout);
    world.script(&["setup", "claude", "--project", "--remove"]).expect(0);
}
