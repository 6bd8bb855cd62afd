//! M21: mail that is not taken expires with a note to its sender; what is old is trimmed, unseen
//! mail never, and no hook does any of it.

use crate::puppet::{Moment, Puppet, Style};
use crate::world::World;
use baton_store::Store;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::time::Duration;

/// The store as another program would see it.
fn raw(world: &World) -> Connection {
    Connection::open(Store::path(world.home())).unwrap()
}

fn state_of(raw: &Connection, message: &str) -> i64 {
    let sql = "SELECT d.state FROM delivery d JOIN message m ON m.id = d.message WHERE m.public = ?1";
    raw.query_row(sql, [message], |row| row.get(0)).unwrap()
}

fn send_for(sender: &Puppet<'_>, ttl: &str) -> String {
    let sent = sender.shell(&["send", "reader", "quick", "--ttl", ttl, "--json"]).expect(0).json();
    sent["message_id"].as_str().unwrap().to_owned()
}

#[test]
fn m21_mail_that_is_not_taken_expires_with_a_note_to_its_sender() {
    let world = World::talkative();
    let mut sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, Style::Codex, "reader");
    sender.turn_in_peace();
    let message = send_for(&sender, "1s");
    let kept = send_for(&sender, "1h");
    std::thread::sleep(Duration::from_millis(1100));
    // A hook neither delivers it nor ends it.
    let printed = puppet.event(Moment::Prompt);
    let text = puppet.understood(&printed[0]).unwrap();
    assert!(text.contains(&kept) && !text.contains(&message), "{text}");
    assert_eq!(state_of(&raw(&world), &message), 0, "a hook does no upkeep");
    puppet.finish_turn();
    // Any reading command does.
    assert_eq!(world.state(&message), "expired");
    let printed = sender.event(Moment::Prompt);
    let note = sender.understood(&printed[0]).unwrap();
    let said = format!("| Your message {message} to reader ended as expired: nobody took it in time.\n");
    assert!(note.contains(&said) && note.contains("from=\"baton\" sender=\"baton\""), "{note}");
    assert!(!note.contains("baton reply"), "nobody reads answers to a note: {note}");
    sender.finish_turn();
    let notes: Vec<Value> = world.mail().into_iter().filter(|row| row["from"] == "baton").collect();
    assert_eq!(notes.len(), 1, "once");
    let id = notes[0]["message_id"].as_str().unwrap();
    sender.assert_heard_once(id, "the note");
    sender.shell(&["reply", id, "hello", "--json"]).expect_error(1, "no-reply-address");
    puppet.settle_down();
    assert_eq!(puppet.heard(&message), 0);
    puppet.assert_heard_once(&kept, "in time");
}

#[test]
fn m21_a_note_that_is_not_taken_causes_no_note() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    Puppet::start(&world, Style::Codex, "reader");
    let message = send_for(&sender, "1s");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(world.state(&message), "expired");
    raw(&world).execute("UPDATE message SET expires_at = 1 WHERE verb = 'note'", []).unwrap();
    world.mail();
    let all = world.mail();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all.iter().all(|row| row["deliveries"][0]["state"] == "expired"));
}

/// Everything in the store becomes 40 days old.
fn age(world: &World) {
    let day: i64 = 86_400_000;
    let raw = raw(world);
    for (table, column) in
        [("message", "sent_at"), ("trail", "at"), ("offer", "made_at"), ("delivery", "state_at")]
    {
        raw.execute(&format!("UPDATE {table} SET {column} = {column} - ?1"), [40 * day]).unwrap();
    }
}

#[test]
fn m21_seen_mail_is_kept_thirty_days_and_unseen_mail_until_it_ends() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, Style::Codex, "reader");
    let seen = sender.send("reader", "seen long ago");
    let asked = sender.shell(&["ask", "reader", "and?", "--timeout", "1ms", "--json"]).expect(2).json();
    puppet.settle_down();
    puppet.assert_heard_once(&seen, "long ago");
    puppet.event(Moment::Prompt);
    puppet.answer(1);
    let offered = sender.send("reader", "offered long ago");
    puppet.event(Moment::Tools);
    let queued = sender.send("reader", "queued long ago");
    age(&world);
    // Hooks leave it all alone.
    let payload = puppet.payload("PreToolUse", json!({"tool_name": "Bash", "tool_use_id": "x"}));
    for _ in 0..3 {
        puppet.hook(&payload);
    }
    let rows: i64 = raw(&world).query_row("SELECT count(*) FROM message", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 4);
    let left: Vec<String> =
        world.mail().iter().map(|row| row["message_id"].as_str().unwrap().to_owned()).collect();
    let ask = asked["message_id"].as_str().unwrap().to_owned();
    assert_eq!(
        left,
        [ask, offered.clone(), queued.clone()],
        "seen mail is gone; unseen mail and open asks are not"
    );
    puppet.answer(0);
    puppet.settle_down();
    puppet.assert_heard_once(&offered, "still there");
    puppet.assert_heard_once(&queued, "still there");
    let trail = world.script(&["log", "--limit", "1000"]).expect(0).stdout;
    assert!(!trail.contains("session-start"), "the old trail is gone: {trail}");
}

/// A store that has grown past its limit gives up old seen mail, and then stops giving up.
#[test]
fn m21_a_store_past_its_size_is_trimmed_and_no_further() {
    let world = World::talkative();
    world.configure("[limits]\npair_messages = 10000\n[store]\nkeep_bytes = 1048576\n");
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, Style::Codex, "reader");
    let body = "b".repeat(60_000);
    let sent: Vec<String> = (0..30).map(|_| sender.send("reader", &body)).collect();
    puppet.event(Moment::Prompt);
    for _ in &sent {
        puppet.answer(1);
        puppet.event(Moment::Tools);
    }
    puppet.finish_turn();
    let unseen = sender.send("reader", &body);
    let mut left: Vec<usize> = (0..8).map(|_| world.mail().len()).collect();
    assert!(left[7] >= 8, "what fits is kept: {left:?}");
    assert!(left[7] < 25, "what does not fit is not: {left:?}");
    left.dedup();
    assert!(left.is_sorted_by(|a, b| a > b), "{left:?}");
    assert_eq!(world.state(&unseen), "queued");
}

/// If no mail is sent, only hooks write: what sessions do. Their log of writes stays short all the
/// same.
#[test]
fn m21_hooks_alone_keep_the_log_of_writes_short() {
    let world = World::new();
    let mut puppet = Puppet::start(&world, Style::Codex, "alone");
    let mut longest = 0;
    for _ in 0..220 {
        for moment in [Moment::Prompt, Moment::Stop] {
            let payload = puppet.open(moment).remove(0);
            assert_eq!(puppet.hook(&payload).text, "");
        }
        let length = std::fs::metadata(world.home().join("baton.db-wal")).map_or(0, |wal| wal.len());
        longest = longest.max(length);
    }
    assert!(longest > 500_000, "it was long enough to matter: {longest}");
    assert!(longest < 1_300_000, "it grew to {longest}");
}

/// A session took it, ended before it answered, and never came back: that is an end too, and the
/// sender gets a note.
#[test]
fn m21_mail_that_a_session_took_to_its_grave_expires() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Claude, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        puppet.turn_in_peace();
        let message = send_for(&sender, "1s");
        let printed = puppet.event(Moment::Prompt);
        assert!(!printed[0].text.is_empty());
        puppet.paper.flush();
        std::thread::sleep(Duration::from_millis(1100));
        // It is alive, and may still answer.
        assert_eq!(world.state(&message), "offered", "{style:?}");
        puppet.quiet_hook("SessionEnd", json!({"reason": "other"}));
        puppet.kill();
        assert_eq!(world.state(&message), "expired", "{style:?}");
        let notes = world.mail().into_iter().filter(|row| row["from"] == "baton").count();
        assert_eq!(notes, 1, "{style:?}");
    }
}

/// Nobody else can read what baton keeps, whatever the umask: the store, the bells, the log.
#[test]
fn every_file_of_the_home_is_the_users_own() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let line = "umask 0; printf '%s' \"$2\" | \"$1\" hook claude; printf bad | \"$1\" hook claude; \"$1\" inbox --wait 1ms; \"$1\" send user hi";
    let mut shell = world.command("sh");
    let start = json!({"session_id": "s", "cwd": world.project(), "hook_event_name": "SessionStart", "source": "startup"});
    shell.args(["-c", line, "sh", crate::world::program(), &start.to_string()]);
    shell.envs([("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "s")]);
    crate::world::run(shell, b"").expect(0);
    let mut folders = vec![world.home().to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path())
            }
            files.push(entry.path());
        }
    }
    assert!(
        files.iter().any(|file| file.ends_with("hook.log"))
            && files.iter().any(|file| file.parent().unwrap().ends_with("bell"))
    );
    files.push(world.home().to_owned());
    for file in files {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has {mode:o}", file.display());
    }
}

/// Everything that waits is past its time.
fn expire(world: &World) {
    raw(world).execute("UPDATE message SET expires_at = 1", []).unwrap();
}

#[test]
fn an_ask_that_is_not_taken_in_time_says_so_and_a_late_reply_still_arrives() {
    let world = World::talkative();
    let peer = Puppet::start(&world, Style::Codex, "peer");
    let asked = world.script(&["ask", "peer", "well?", "--timeout", "1ms", "--json"]).expect(2).json();
    let (message, request) = (asked["message_id"].as_str().unwrap(), asked["request_id"].as_str().unwrap());
    expire(&world);
    assert_eq!(world.state(message), "expired");
    let resume = ["ask", "--resume", request, "--timeout", "1ms", "--json"];
    let hint = world.script(&resume).expect_error(1, "ask-expired");
    assert!(hint.contains("ask again") && hint.contains(&format!("baton mail {message}")), "{hint}");
    let text = world.script(&resume[..5]).expect(1).stderr;
    assert!(
        text.starts_with(&format!(
            "error: the ask {request} expired: the recipient did not take it in time\n"
        )),
        "{text}"
    );
    // Whoever finds it in its history may answer all the same.
    peer.shell(&["reply", message, "well.", "--json"]).expect(0);
    assert_eq!(world.script(&resume).expect(0).json()["body"], "well.");
}
