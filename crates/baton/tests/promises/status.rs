//! `baton` alone: who is here, what waits, and what to do next. It makes nothing and is never an
//! error.

use crate::puppet::{Puppet, Style};
use crate::world::{World, run};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn baton_alone_without_a_home_says_how_to_begin_and_makes_nothing() {
    let world = World::new();
    let shown = world.script(&[]).expect(0);
    assert!(shown.stdout.contains("baton demo"), "{}", shown.stdout);
    assert_eq!(shown.stderr, "");
    assert_eq!(world.script(&["status"]).expect(0).stdout, shown.stdout);
    let document = world.script(&["--json"]).expect(0).json();
    assert_eq!(
        (&document["sessions"], &document["name"]),
        (&serde_json::json!([]), &serde_json::Value::Null)
    );
    assert!(!world.home().exists());
    let mut missing = world.baton(&["--home", "/nonexistent/x"]);
    missing.env_remove("BATON_HOME");
    run(missing, b"").expect(0);
    if world.has_person() {
        assert!(world.person(&[]).expect(0).stdout.contains("baton demo"));
    }
}

#[test]
fn baton_alone_names_what_is_next_before_and_after_setup() {
    let world = World::new();
    let bin = world.path("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("claude"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let baton = |words: &[&str]| {
        let mut command = world.baton(words);
        command.env("PATH", &path);
        run(command, b"").expect(0)
    };
    let next = || baton(&["--json"]).json()["next"][0]["command"].clone();
    assert_eq!(next(), "baton setup");
    baton(&["setup", "claude"]);
    assert_eq!(next(), "claude");
}

#[test]
fn baton_alone_shows_sessions_and_what_waits_for_the_caller() {
    let world = World::talkative();
    let (ada, lin) =
        (Puppet::start(&world, Style::Claude, "ada"), Puppet::start(&world, Style::Codex, "lin"));
    ada.send("lin", "hello");
    let document = lin.shell(&["--json"]).expect(0).json();
    assert_eq!((&document["name"], &document["unread"]), (&"lin".into(), &1.into()));
    let names: Vec<_> = document["sessions"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["ada", "lin"]);
    let text = lin.shell(&[]).expect(0).stdout;
    for part in ["ada", "lin", "1 message waits for you", "baton inbox"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A mistake in the configuration is said, and stops nothing.
    world.configure("[limits]\nhops = many\n");
    let done = lin.shell(&[]).expect(0);
    let first = "  baton config --edit    mend the mistake in your settings\n";
    assert!(done.stdout.contains(first), "{}", done.stdout);
    assert_eq!(done.stdout.replace(first, ""), text, "the rest is the same");
    assert!(done.stderr.contains("line 2"), "{}", done.stderr);
}
