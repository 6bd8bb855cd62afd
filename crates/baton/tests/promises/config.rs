//! `config`: settings are shown, set and taken out; a mistake in the file stops no one from
//! looking.

use crate::world::{World, quoted, run};
use std::fs;

const FILE: &str = "home/.config/baton/config.toml";

#[test]
fn config_shows_one_setting_and_where_the_file_is() {
    let world = World::new();
    world.configure("[limits]\nhops = 3\n\n[store]\nkeep_bytes = \"300 MiB\"\n");
    assert_eq!(world.script(&["config", "limits.hops"]).expect(0).stdout, "3\n");
    assert_eq!(world.script(&["config", "store.keep_bytes"]).expect(0).stdout, "300 MiB\n");
    assert_eq!(world.script(&["config", "mail.ttl"]).expect(0).stdout, "7d\n");
    let file = world.path(FILE).display().to_string();
    assert_eq!(world.script(&["config", "--path"]).expect(0).stdout, format!("{file}\n"));
    let shown = world.script(&["config", "limits.hops", "--json"]).expect(0).json();
    assert_eq!((&shown["value"], &shown["origin"]), (&"3".into(), &file.into()));
    assert_eq!(world.script(&["config", "home", "--json"]).expect(0).json()["origin"], "BATON_HOME");
    let flag = world.path("elsewhere");
    let flag = world.script(&["--home", flag.to_str().unwrap(), "config", "home", "--json"]).expect(0).json();
    assert_eq!(flag["origin"], "--home");
    let mut unset = world.baton(&["config", "home", "--json"]);
    unset.env_remove("BATON_HOME").env_remove("XDG_DATA_HOME");
    assert_eq!(run(unset, b"").expect(0).json()["origin"], "default");
    let hint = world.script(&["config", "limits.hop", "--json"]).expect_error(64, "usage");
    assert!(hint.contains("limits.hops"), "{hint}");
    assert!(!world.home().join("baton.db").exists(), "to look makes no store");
}

#[test]
fn a_mistake_in_a_file_is_shown_with_its_line_and_then_what_is_in_force() {
    let world = World::new();
    for (text, line, key) in [
        ("[limits]\nhops = many\n", "line 2", "limits.hops"),
        ("wake = \"off\"\nhops = 3\n", "line 2", "wake"),
        ("[guard]\n\nmode = \"maybe\"\n", "line 3", "guard.mode"),
        ("[approvals]\nauto_approve = 3\n", "line 2", "approvals.auto_approve"),
    ] {
        world.configure(text);
        let shown = world.script(&["config"]).expect(0);
        assert!(shown.stderr.starts_with("warning: ") && shown.stderr.contains(line), "{}", shown.stderr);
        assert!(shown.stdout.contains(key), "{}", shown.stdout);
        let document = world.script(&["config", "--json"]).expect(0).json();
        assert!(document.as_array().unwrap().len() > 30);
    }
}

#[test]
fn only_the_person_changes_settings_and_the_rest_of_the_file_stays() {
    let world = World::new();
    let text = "# mine\n[limits]\nhops = 3 # few\n";
    world.configure(text);
    for words in [&["config", "wake", "off", "--json"][..], &["config", "--unset", "wake", "--json"]] {
        world.script(words).expect_error(3, "not-a-person");
    }
    assert_eq!(fs::read_to_string(world.path(FILE)).unwrap(), text);
    if !world.has_person() {
        return;
    }
    world.person(&["config", "limits.hops", "5"]).expect(0);
    assert_eq!(fs::read_to_string(world.path(FILE)).unwrap(), text.replace('3', "5"));
    world.person(&["config", "limits.hops", "many"]).expect(64);
    world.person(&["config", "limits.hops", "0"]).expect(64);
    assert_eq!(fs::read_to_string(world.path(FILE)).unwrap(), text.replace('3', "5"));
    let set =
        world.person(&["config", "approvals.auto_approve", "bash: git status", "mcp: baton/*"]).expect(0);
    assert!(set.stdout.contains("mcp: baton/*"), "{}", set.stdout);
    world.person(&["config", "--unset", "limits.hops"]).expect(0);
    assert_eq!(world.script(&["config", "limits.hops"]).expect(0).stdout, "8\n");
    // A file with another mistake is not made worse.
    world.configure("[limits]\nhops = many\n");
    world.person(&["config", "wake", "off"]).expect(1);
    assert_eq!(fs::read_to_string(world.path(FILE)).unwrap(), "[limits]\nhops = many\n");
    world.person(&["config", "limits.hops", "4"]).expect(1);
}

#[test]
fn an_edited_file_counts_only_without_a_mistake() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    world.configure("wake = \"auto\"\n");
    let edit = |script: &str, answer: &str| {
        let editor = world.path("editor");
        baton_testkit::process::write_program(&editor, format!("#!/bin/sh\n{script}\n").as_bytes());
        let line = format!("echo {answer} | {} config --edit", quoted(crate::world::program()));
        world.on_terminal(&line, &[("EDITOR", &format!("{} --wait", editor.display()))])
    };
    // `$1` is the option, `$2` the file.
    edit("echo 'wake = \"off\"' > \"$2\"", "n").expect(0);
    assert_eq!(fs::read_to_string(world.path(FILE)).unwrap(), "wake = \"off\"\n");
    let refused = edit("echo 'wake = \"never\"' > \"$2\"", "n").expect(1);
    assert!(refused.stdout.contains("line 1"), "{}", refused.stdout);
    assert_eq!(fs::read_to_string(world.path(FILE)).unwrap(), "wake = \"off\"\n");
    edit("exit 1", "n").expect(1);
    let files = || fs::read_dir(world.path("home/.config/baton")).unwrap().flatten();
    let draft = files().find(|file| file.file_name() != "config.toml").expect("what was written is kept");
    assert_eq!(fs::read_to_string(draft.path()).unwrap(), "wake = \"never\"\n");
    assert_eq!(files().count(), 2, "an editor that failed leaves no draft");
}
