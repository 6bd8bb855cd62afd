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
