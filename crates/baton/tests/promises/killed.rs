//! M2 and M3: `kill -9` before each system call of a hook or a sender.
//!
//! `strace` counts the calls of one undisturbed run (about 200), then kills at the n-th. By default
//! every eighth point is tried, and the first of each kind of call; `BATON_ALL_POINTS=1` tries all.

use crate::paper::messages_in;
use crate::puppet::{Moment, Printed, Puppet, Style};
use crate::world::World;
use baton_testkit::faults::{self, KillPoint};

/// The points to try.
fn sample(points: Vec<KillPoint>) -> Vec<KillPoint> {
    if std::env::var_os("BATON_ALL_POINTS").is_some() {
        return points;
    }
    let chosen = |at: usize| at.is_multiple_of(8) || points[at].nth == 1;
    (0..points.len()).filter(|at| chosen(*at)).map(|at| points[at].clone()).collect()
}

fn killed_hook_delivers_once(style: Style, moment: Moment) {
    killed_hook_of(style, moment, |_| {});
}

fn killed_hook_of(style: Style, moment: Moment, prepare: fn(&mut Puppet<'_>)) {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, style, "reader");
    prepare(&mut puppet);
    puppet.turn_in_peace();
    if moment != Moment::Prompt {
        puppet.event(Moment::Prompt);
        puppet.answer(usize::from(moment == Moment::Tools));
    }
    let message = sender.send("reader", "never drop it");
    let payload = puppet.open(moment).remove(0);
    puppet.paper.flush();
    let (home, length) = (world.save(), puppet.paper.length());
    let command = puppet.hook_command();
    let points = faults::kill_points(&command, &payload);
    assert!(points.len() > 50, "{points:?}");
    let (mut printed_and_killed, mut unprinted) = (0, 0);
    for point in sample(points) {
        world.restore(&home);
        puppet.paper.cut_to(length);
        let mut puppet = puppet.clone();
        let outcome = faults::run_killed_at(&command, &payload, &point);
        let printed = Printed::from(outcome);
        assert!(printed.killed, "{point} was not reached");
        if printed.text.is_empty() {
            unprinted += 1
        } else {
            printed_and_killed += 1
        }
        puppet.close(moment, &[printed]);
        match moment {
            Moment::Prompt => {
                puppet.answer(1);
                puppet.event(Moment::Tools);
            }
            Moment::Tools | Moment::Stop => {}
        }
        puppet.finish_turn();
        puppet.settle_down();
        puppet.assert_heard_once(&message, &format!("{style:?}, {moment:?}, killed at {point}"));
    }
    assert!(printed_and_killed > 0 && unprinted > 0, "both kinds of kill were tried");
}

#[test]
fn m2_claude_prompt_hook_killed_anywhere_delivers_once() {
    killed_hook_delivers_once(Style::Claude, Moment::Prompt);
}

#[test]
fn m2_claude_batch_hook_killed_anywhere_delivers_once() {
    killed_hook_delivers_once(Style::Claude, Moment::Tools);
}

#[test]
fn m2_claude_stop_hook_killed_anywhere_delivers_once() {
    killed_hook_delivers_once(Style::Claude, Moment::Stop);
}

#[test]
fn m2_codex_prompt_hook_killed_anywhere_delivers_once() {
    killed_hook_delivers_once(Style::Codex, Moment::Prompt);
}

#[test]
fn m2_codex_tool_hook_killed_anywhere_delivers_once() {
    killed_hook_delivers_once(Style::Codex, Moment::Tools);
}

#[test]
fn m2_codex_stop_hook_killed_anywhere_delivers_once() {
    killed_hook_delivers_once(Style::Codex, Moment::Stop);
}

#[test]
fn m2_codex_tool_hook_in_a_script_killed_anywhere_delivers_once() {
    killed_hook_of(Style::Codex, Moment::Tools, |puppet| puppet.code_mode = true);
}

/// The message that is read, and the words that read it.
type Reading = (String, Vec<String>);

/// An agent reads its inbox, or the answer to its ask, in its shell; what the killed command had
/// printed is what the model sees.
fn killed_reading_delivers_once(style: Style, prepare: fn(&Puppet<'_>, &Puppet<'_>) -> Reading) {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, style, "reader");
    puppet.turn_in_peace();
    puppet.event(Moment::Prompt);
    puppet.answer(1);
    puppet.paper.flush();
    let (message, words) = prepare(&sender, &puppet);
    let (home, length) = (world.save(), puppet.paper.length());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let call = puppet.calls()[0].clone();
    let mut command = puppet.shell_command(&words);
    if style == Style::Codex {
        command.env("CODEX_TOOL_CALL_ID", &call);
    }
    let (mut shown, mut unshown) = (0, 0);
    for point in sample(faults::kill_points(&command, b"")) {
        world.restore(&home);
        puppet.paper.cut_to(length);
        let mut puppet = puppet.clone();
        let outcome = faults::run_killed_at(&command, b"", &point);
        assert!(outcome.killed, "{point} was not reached");
        let text = String::from_utf8(outcome.stdout).unwrap();
        let whole = text.contains("[baton-offer ") && text.ends_with("</baton-mail>\n");
        assert!(whole || text.is_empty(), "{point}: cut off: {text}");
        if whole {
            shown += 1
        } else {
            unshown += 1
        }
        puppet.answer_ends(&text, &messages_in(&text));
        puppet.finish_turn();
        puppet.settle_down();
        puppet.assert_heard_once(&message, &format!("{style:?}, {words:?} killed at {point}"));
    }
    assert!(shown > 0 && unshown > 0, "both kinds of kill were tried: {shown}, {unshown}");
}

#[test]
fn m2_an_inbox_killed_anywhere_delivers_once() {
    for style in Style::BOTH {
        killed_reading_delivers_once(style, |sender, _| {
            (sender.send("reader", "read me"), vec!["inbox".to_owned()])
        });
    }
}

#[test]
fn m8_an_ask_killed_anywhere_delivers_its_answer_once() {
    for style in Style::BOTH {
        killed_reading_delivers_once(style, |peer, puppet| {
            let asked =
                puppet.shell(&["ask", "sender", "well?", "--timeout", "1ms", "--json"]).expect(2).json();
            let reply = peer
                .shell(&["reply", asked["message_id"].as_str().unwrap(), "well.", "--json"])
                .expect(0)
                .json();
            let resume =
                ["ask", "--resume", asked["request_id"].as_str().unwrap()].map(str::to_owned).to_vec();
            (reply["message_id"].as_str().unwrap().to_owned(), resume)
        });
    }
}

/// Either the caller got an id and the message arrives once, or a retry with the same key makes it
/// exactly one.
#[test]
fn m3_sender_killed_anywhere_and_a_retry_with_the_same_key_give_one_message() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    puppet.turn_in_peace();
    let (home, length) = (world.save(), puppet.paper.length());
    let command = sender.shell_command(&["send", "reader", "once", "--key", "k1", "--json"]);
    let points = faults::kill_points(&command, b"");
    assert!(points.len() > 50, "{points:?}");
    let (mut told, mut untold) = (0, 0);
    for point in sample(points) {
        world.restore(&home);
        puppet.paper.cut_to(length);
        let mut puppet = puppet.clone();
        let outcome = faults::run_killed_at(&command, b"", &point);
        assert!(outcome.killed, "{point} was not reached");
        let first: Option<serde_json::Value> = serde_json::from_slice(&outcome.stdout).ok();
        if first.is_some() {
            told += 1
        } else {
            untold += 1
        }
        if let Some(first) = &first {
            // Whoever got the id need not retry.
            assert_eq!(world.state(first["message_id"].as_str().unwrap()), "queued", "{point}");
        }
        let retried = sender.shell(&["send", "reader", "once", "--key", "k1", "--json"]).expect(0).json();
        if let Some(first) = &first {
            assert_eq!(first["message_id"], retried["message_id"], "{point}");
        }
        assert_eq!(world.mail().len(), 1, "{point}");
        puppet.settle_down();
        puppet.assert_heard_once(retried["message_id"].as_str().unwrap(), &point.to_string());
    }
    assert!(told > 0 && untold > 0, "both kinds of kill were tried");
}
