//! M19 and retries: many senders at once to one recipient that reads meanwhile.

use crate::paper::heard;
use crate::puppet::{Moment, Printed, Puppet, Style};
use crate::world::{World, rounds};
use serde_json::json;
use std::collections::HashMap;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Eight processes send to one recipient whose hooks run meanwhile, some of them killed: each
/// message once, in order per sender.
fn storm(style: Style) {
    let each = rounds(25).min(100);
    let world = World::talkative();
    world.configure("[limits]\npair_messages = 10000\nmessages_per_event = 7\n");
    let mut puppet = Puppet::start(&world, style, "reader");
    let senders: Vec<Puppet<'_>> =
        (0..8).map(|n| Puppet::start(&world, Style::Codex, &format!("sender{n}"))).collect();
    let commands: Vec<Vec<std::process::Command>> = senders
        .iter()
        .map(|sender| {
            (0..each)
                .map(|n| sender.shell_command(&["send", "reader", &format!("{} {n}", sender.name)]))
                .collect()
        })
        .collect();
    let sending = AtomicBool::new(true);
    thread::scope(|scope| {
        let threads: Vec<_> = commands
            .into_iter()
            .map(|commands| {
                scope.spawn(move || {
                    for mut command in commands {
                        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
                        assert!(status.success(), "{command:?}: {status}");
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for thread in threads {
                thread.join().unwrap();
            }
            sending.store(false, Ordering::Release);
        });
        puppet.event(Moment::Prompt);
        let mut step = 0;
        while sending.load(Ordering::Acquire) {
            step += 1;
            puppet.answer(1);
            puppet.paper.flush();
            let payload = puppet.open(Moment::Tools).remove(0);
            puppet.paper.flush();
            let printed =
                if step % 5 == 0 { kill_early(&puppet, &payload, step) } else { puppet.hook(&payload) };
            puppet.close(Moment::Tools, &[printed]);
            if step % 17 == 0 {
                puppet.finish_turn();
                puppet.event(Moment::Prompt);
            }
        }
    });
    puppet.answer(0);
    for _ in 0..8 * each / 7 + 5 {
        puppet.answer(1);
        puppet.event(Moment::Tools);
    }
    puppet.finish_turn();
    puppet.settle_down();
    let bodies: HashMap<String, String> = world
        .mail()
        .iter()
        .map(|row| {
            assert_eq!(row["deliveries"][0]["state"], "seen", "{row}");
            (row["message_id"].as_str().unwrap().to_owned(), row["body"].as_str().unwrap().to_owned())
        })
        .collect();
    let heard: Vec<&String> = heard(&world).iter().map(|id| &bodies[id]).collect::<Vec<_>>();
    assert_eq!(heard.len(), 8 * each, "each once");
    for sender in &senders {
        let from: Vec<&String> =
            heard.iter().copied().filter(|body| body.starts_with(&format!("{} ", sender.name))).collect();
        let sent: Vec<String> = (0..each).map(|n| format!("{} {n}", sender.name)).collect();
        assert_eq!(from, sent.iter().collect::<Vec<_>>(), "in order");
    }
}

/// A hook that is killed at some moment of its short life; what it printed until then is what the
/// agent has.
fn kill_early(puppet: &Puppet<'_>, payload: &[u8], step: u64) -> Printed {
    let mut command = puppet.hook_command();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Killed before it read its input, it breaks the pipe.
    child.stdin.take().unwrap().write_all(payload).ok();
    thread::sleep(std::time::Duration::from_micros(step * 397 % 9000));
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    Printed { text: String::from_utf8_lossy(&output.stdout).into_owned(), killed: !output.status.success() }
}

#[test]
fn m19_eight_senders_and_a_reader_whose_hooks_are_killed_claude() {
    storm(Style::Claude);
}

#[test]
fn m19_eight_senders_and_a_reader_whose_hooks_are_killed_codex() {
    storm(Style::Codex);
}

/// An offer on its way holds back what came later: if it is lost, the later one must not have
/// overtaken it.
#[test]
fn m19_nothing_overtakes_an_offer_that_is_on_its_way() {
    for style in Style::BOTH {
        for moment in [Moment::Prompt, Moment::Tools, Moment::Stop] {
            let world = World::talkative();
            let sender = Puppet::start(&world, Style::Codex, "sender");
            let mut puppet = Puppet::start(&world, style, "reader");
            puppet.turn_in_peace();
            if moment != Moment::Prompt {
                puppet.event(Moment::Prompt);
                puppet.answer(usize::from(moment == Moment::Tools));
            }
            let first = sender.send("reader", "first");
            puppet.paper.flush();
            let payload = puppet.open(moment).remove(0);
            puppet.paper.flush();
            // Its hook prints, and another one of the same event runs before anybody knows what
            // became of it.
            assert!(!puppet.hook(&payload).text.is_empty());
            let second = sender.send("reader", "second");
            let row = format!("{style:?}, {moment:?}");
            assert_eq!(puppet.hook(&payload).text, "", "{row}: overtaken");
            // The first one's output is lost.
            puppet.close(moment, &[Printed::nothing(), Printed::nothing()]);
            puppet.finish_turn();
            puppet.settle_down();
            assert_eq!(heard(&world), [first, second], "{row}");
        }
    }
}

#[test]
fn m3_the_same_key_gives_the_same_result_and_other_content_is_an_error() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let other = Puppet::start(&world, Style::Codex, "other");
    Puppet::start(&world, Style::Codex, "reader");
    let send =
        |puppet: &Puppet<'_>, body: &str| puppet.shell(&["send", "reader", body, "--key", "job 7", "--json"]);
    let first = send(&sender, "once").expect(0).json();
    assert_eq!(send(&sender, "once").expect(0).json()["message_id"], first["message_id"]);
    send(&sender, "twice").expect_error(1, "key-conflict");
    sender.shell(&["send", "other", "once", "--key", "job 7", "--json"]).expect_error(1, "key-conflict");
    // A key is the sender's own, and belongs to a verb.
    assert_ne!(send(&other, "once").expect(0).json()["message_id"], first["message_id"]);
    sender.shell(&["ask", "reader", "once", "--key", "job 7", "--timeout", "1ms", "--json"]).expect(2);
    assert_eq!(world.mail().len(), 3);
}

/// Eight retries of one send at the same instant are one message.
#[test]
fn m3_retries_at_one_instant_are_one_message() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    Puppet::start(&world, Style::Codex, "reader");
    for round in 0..rounds(5) {
        let key = format!("round {round}");
        let start = || {
            let mut command = sender.shell_command(&["send", "reader", "once", "--key", &key, "--json"]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<_> = (0..8).map(|_| start()).collect();
        let printed: Vec<serde_json::Value> = children
            .into_iter()
            .map(|child| serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap())
            .collect();
        assert!(printed.iter().all(|told| told["message_id"] == printed[0]["message_id"]), "{printed:?}");
        assert_eq!(world.mail().len(), round + 1);
    }
}

#[test]
fn what_became_of_waking_several_is_one_word_where_they_agree_and_a_list_where_not() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut team: Vec<Puppet<'_>> =
        ["ada", "bob", "eve"].map(|name| Puppet::start(&world, Style::Codex, name)).into();
    for puppet in &mut team {
        puppet.shell(&["tag", "add", "team"]).expect(0);
        puppet.turn_in_peace();
    }
    let send = |more: &[&str]| {
        let arguments = [&["send", "#team", "hello", "--json"], more].concat();
        sender.shell(&arguments).expect(0).json()["wake"].clone()
    };
    assert_eq!(send(&[]), "no_client", "nobody sits in front of these threads");
    assert_eq!(send(&["--wake", "off"]), "skipped_disabled");
    team[1].event(Moment::Prompt);
    assert_eq!(send(&[]), json!(["no_client", "pending_turn_end", "no_client"]));
    assert_eq!(send(&["--wake", "off"]), "skipped_disabled");
}
