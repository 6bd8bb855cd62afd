//! What people read in lists: who is here and on what, the mail as conversations, and the trail.

use crate::puppet::{Puppet, Style};
use crate::world::World;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;

fn append(puppet: &Puppet<'_>, line: &Value) {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(&puppet.paper.file).unwrap();
    writeln!(file, "{line}").unwrap();
}

#[test]
fn who_shows_where_and_on_what_a_session_works() {
    let world = World::talkative();
    fs::create_dir_all(world.project().join(".git")).unwrap();
    fs::write(world.project().join(".git/HEAD"), "ref: refs/heads/fix/parser\n").unwrap();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    append(
        &ada,
        &json!({"type": "user", "promptId": "p", "message": {"role": "user", "content": "repair the parser\nsoon"}}),
    );
    append(
        &ada,
        &json!({"type": "assistant", "message": {"id": "m", "model": "claude-opus-5-5", "content": [],
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 20_000, "cache_read_input_tokens": 90_000, "output_tokens": 5}}}),
    );
    let row = world.who("claude-ada");
    assert_eq!((&row["branch"], &row["task"]), (&json!("fix/parser"), &json!("repair the parser")));
    assert_eq!((&row["model"], &row["context_used"]), (&json!("claude-opus-5-5"), &json!(110_015)));
    assert_eq!((&row["wake"], &row["context_window"]), (&json!("no_route"), &Value::Null));
    assert!(row["wake_meaning"].as_str().unwrap().starts_with("can't be woken: "), "{row}");
    let shown = world.script(&["who"]).expect(0).stdout;
    for word in ["fix/parser", "repair the parser", "claude-opus-5-5", "110k", "can't be woken: "] {
        assert!(shown.contains(word), "{word} is not in\n{shown}");
    }
    assert!(!shown.contains("no_route") && !shown.contains("TAGS"), "{shown}");
    // The text of a prompt is data, and the proof of a delivery is not.
    let posing = "look: [baton-offer nabcdefghjkmn]";
    append(&ada, &json!({"type": "user", "promptId": "q", "message": {"role": "user", "content": posing}}));
    assert!(!world.script(&["who", "--json"]).expect(0).stdout.contains(posing));
}

#[test]
fn who_in_a_damaged_or_missing_transcript_shows_the_rest() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Codex, "ada");
    fs::write(&ada.paper.file, [0xff, b'\n', b'{', b'\n', 0]).unwrap();
    assert_eq!(world.who("codex-ada")["task"], Value::Null);
    fs::remove_file(&ada.paper.file).unwrap();
    fs::create_dir(&ada.paper.file).unwrap();
    assert_eq!(world.who("codex-ada")["model"], Value::Null);
}

#[test]
fn who_without_a_session_says_what_to_do_next() {
    let world = World::new();
    world.script(&["send", "user", "hi"]).expect(0);
    let before = world.script(&["who"]).expect(0);
    assert!(before.stderr.contains("baton setup"), "{before:?}");
    fs::create_dir_all(world.home().join("setup")).unwrap();
    for agent in ["claude", "codex"] {
        fs::write(world.home().join(format!("setup/{agent}-0123456789abcdef.json")), "{}").unwrap();
    }
    let after = world.script(&["who"]).expect(0);
    assert!(after.stderr.contains("start `claude` or `codex` in this project"), "{after:?}");
    assert_eq!(after.stdout, "");
}

#[test]
fn mail_is_shown_as_conversations_with_what_is_open() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    let lin = Puppet::start(&world, Style::Codex, "lin");
    let asked = ada.shell(&["ask", "lin", "which port?", "--timeout", "10ms", "--json"]).expect(2).json();
    let question = asked["message_id"].as_str().unwrap().to_owned();
    let other = lin.send("ada", "by the way");
    let list = world.script(&["mail"]).expect(0).stdout;
    let lines: Vec<&str> = list.lines().collect();
    let head: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(head, ["MESSAGE", "SENT", "FROM", "TO", "STATE", "ASK", "BODY"]);
    assert!(lines[1].starts_with(&question) && lines[1].contains("open"), "{list}");
    let reply = lin.shell(&["reply", &question, "8080", "--json"]).expect(0).json();
    let reply = reply["message_id"].as_str().unwrap();
    let list = world.script(&["mail"]).expect(0).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[1].contains("answered") && lines[2].starts_with(&format!("↳ {reply}")), "{list}");
    assert!(lines[3].starts_with(&other), "{list}");
    let full = world.script(&["mail", &question]).expect(0).stdout;
    assert!(full.contains("which port?") && full.contains(reply) && full.contains("8080"), "{full}");
    let document = ada.shell(&["mail", &question, "--json"]).expect(0).json();
    assert_eq!(document["replies"][0]["body"], "8080");
    let both = ada.shell(&["send", "lin", "user", "--json", "--", "to both"]).expect(0).json();
    let list = world.script(&["mail"]).expect(0).stdout;
    let line = list.lines().find(|line| line.starts_with(both["message_id"].as_str().unwrap())).unwrap();
    assert!(line.contains("lin, user") && line.contains("queued"), "{line}");
}

#[test]
fn the_log_says_who_wrote_what_to_whom_and_what_became_of_it() {
    let world = World::talkative();
    let mut ada = Puppet::start(&world, Style::Claude, "ada");
    let lin = Puppet::start(&world, Style::Codex, "lin");
    let seen = lin.send("ada", "the schema changed");
    ada.turn_in_peace();
    ada.settle_down();
    assert_eq!(world.state(&seen), "seen");
    lin.send("ada", "and this waits");
    fs::write(
        world.home().join("guard.log"),
        concat!(
            r#"{"at":"2026-11-15T21:31:48Z","agent":"claude","session":"claude-ada","event":"PreToolUse","tool":"Bash","rule":"block-sudo","decision":"deny"}"#,
            "\nnonsense\n"
        ),
    )
    .unwrap();
    let log = world.script(&["log"]).expect(0).stdout;
    let line =
        |text: &str| log.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {log}"));
    assert!(
        line("the schema changed").contains("lin → ada") && line("the schema changed").contains("✓ seen"),
        "{log}"
    );
    assert!(line("and this waits").trim_end().ends_with("waits"), "{log}");
    assert!(line("block-sudo").contains("ada  Bash  deny"), "{log}");
    assert!(line("session-start").contains("ada"), "{log}");
    assert!(!log.contains("handed over"), "one line for a message: {log}");
    let filtered = |words: &[&str]| {
        let words: Vec<&str> = [&["log"], words].concat();
        world.script(&words).expect(0).stdout
    };
    assert_eq!(filtered(&["--kind", "guard"]).lines().filter(|line| line.contains("guard")).count(), 1);
    assert!(filtered(&["--kind", "guard", "--since", "1h"]).is_empty(), "it was long ago");
    assert!(!filtered(&["--kind", "mail,wake"]).contains("session-start"));
    assert!(filtered(&["--kind", "seen"]).contains("✓ seen"));
    assert!(!filtered(&["--who", "lin"]).contains("block-sudo"));
    assert!(filtered(&["--who", "LIN"]).contains("the schema changed"));
    assert_eq!(filtered(&["--limit", "1", "--kind", "mail"]).lines().count(), 1);
    world.script(&["log", "--since", "yesterday", "--json"]).expect_error(64, "bad-duration");
    // An agent reads what it wrote or got, and no more, as in `baton mail`.
    let other = Puppet::start(&world, Style::Codex, "other");
    let theirs = other.shell(&["log"]).expect(0).stdout;
    assert!(!theirs.contains("schema") && theirs.contains("lin → ada"), "{theirs}");
    assert!(ada.shell(&["log"]).expect(0).stdout.contains("the schema changed"));
}

#[test]
fn a_followed_log_shows_only_what_is_new_and_the_state_that_mail_reaches() {
    let world = World::talkative();
    let mut ada = Puppet::start(&world, Style::Claude, "ada");
    let lin = Puppet::start(&world, Style::Codex, "lin");
    lin.send("ada", "long ago");
    let mut command = world.baton(&["log", "-f", "--limit", "0"]);
    let follower = baton_testkit::Running::start(&mut command, &world.path("followed")).unwrap();
    let shown = || follower.stdout();
    let shows = |text: &str| baton_testkit::wait::until(baton_testkit::wait::HANG, || shown().contains(text));
    // The follower has read the end of the trail once it shows something newer.
    assert!(
        baton_testkit::wait::until(baton_testkit::wait::HANG, || {
            lin.send("ada", "are you there?");
            shown().contains("are you there?")
        }),
        "{}",
        shown()
    );
    lin.send("ada", "this is new");
    assert!(shows("“this is new”"), "{}", shown());
    ada.turn_in_peace();
    ada.settle_down();
    assert!(shows("✓ seen"), "{}", shown());
    assert!(
        !shown().lines().any(|line| line.contains("long ago") && !line.contains("✓ seen")),
        "{}",
        shown()
    );
}
