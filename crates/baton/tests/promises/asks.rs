//! M8 and M9: asking, answering, and who may answer what.

use crate::paper::{heard, messages_in};
use crate::puppet::{Moment, Puppet, Style};
use crate::world::{Done, World, done};
use baton_testkit::wait;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Starts an ask and waits until it is accepted; gives it and the message's id.
fn asking(world: &World, mut command: Command) -> (Child, String) {
    let known = world.mail().len();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ask = wait::poll(wait::HANG, || {
        let mail = world.mail();
        (mail.len() > known).then(|| mail.last().unwrap()["message_id"].as_str().unwrap().to_owned())
    });
    (child, ask.expect("the ask is accepted"))
}

fn ended(child: Child) -> Done {
    let output = child.wait_with_output().unwrap();
    done(output.status, &output.stdout, &output.stderr)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Two agents: one who asks from its shell, one who is asked.
fn pair(world: &World, style: Style) -> (Puppet<'_>, Puppet<'_>) {
    let mut asker = Puppet::start(world, style, "asker");
    let mut peer = Puppet::start(world, Style::Claude, "peer");
    asker.turn_in_peace();
    peer.turn_in_peace();
    asker.event(Moment::Prompt);
    asker.answer(1);
    asker.paper.flush();
    (asker, peer)
}

/// The asker's shell command has ended and showed this.
fn shown(asker: &mut Puppet<'_>, printed: &str) {
    let call = asker.calls()[0].clone();
    let turn = asker.turn().map(str::to_owned);
    asker.paper.tool_result(turn.as_deref(), &call, printed, &messages_in(printed));
}

#[test]
fn m8_an_ask_is_satisfied_by_its_own_reply_only_and_other_mail_keeps_its_order() {
    for style in Style::BOTH {
        let world = World::talkative();
        let (mut asker, mut peer) = pair(&world, style);
        let other = Puppet::start(&world, Style::Codex, "other");
        let (child, ask) =
            asking(&world, asker.shell_command(&["ask", "peer", "which port?", "--timeout", "30s"]));
        let mut child = child;
        peer.event(Moment::Prompt);
        // Chatter from the peer, chatter in the same thread, an answer to something else, another's
        // mail: none of it is the answer.
        let mut sent = vec![peer.send("asker", "by the way"), other.send("asker", "hello")];
        let loud = peer
            .shell(&["send", "asker", "8080?", "--reply-to", &ask, "--thread", &ask, "--json"])
            .expect(0)
            .json();
        sent.push(text(&loud["message_id"]));
        assert!(child.try_wait().unwrap().is_none(), "it still waits");
        let reply = text(&peer.shell(&["reply", &ask, "8081", "--json"]).expect(0).json()["message_id"]);
        sent.push(other.send("asker", "late"));
        let answer = ended(child).expect(0).stdout;
        assert_eq!(messages_in(&answer), [reply.as_str()], "exactly the answer");
        assert!(answer.contains("\n| 8081\n") && answer.contains(&format!("reply-to=\"{ask}\"")), "{answer}");
        shown(&mut asker, &answer);
        let printed = asker.hook(&asker.payload("Notification", json!({})));
        assert_eq!(printed.text, "");
        asker.paper.request(false);
        asker.finish_turn();
        asker.settle_down();
        let heard: Vec<String> = heard(&world).into_iter().filter(|id| *id != ask).collect();
        assert_eq!(heard.iter().filter(|id| **id == reply).count(), 1, "{style:?}");
        let rest: Vec<&String> = heard.iter().filter(|id| **id != reply).collect();
        assert_eq!(rest, sent.iter().collect::<Vec<_>>(), "{style:?}: the rest, once, in order");
        assert_eq!(world.state(&reply), "seen");
    }
}

#[test]
fn m8_the_first_reply_closes_and_the_second_is_mail() {
    let world = World::talkative();
    let (mut asker, mut peer) = pair(&world, Style::Claude);
    let (child, ask) =
        asking(&world, asker.shell_command(&["ask", "peer", "well?", "--timeout", "30s", "--json"]));
    peer.event(Moment::Prompt);
    let first = text(&peer.shell(&["reply", &ask, "first", "--json"]).expect(0).json()["message_id"]);
    let answer = ended(child).expect(0).json();
    assert_eq!((&answer["body"], &answer["message_id"]), (&json!("first"), &json!(first)));
    assert_eq!(answer["request_id"], json!(ask.replacen('m', "r", 1)));
    let second = text(&peer.shell(&["reply", &ask, "second", "--json"]).expect(0).json()["message_id"]);
    let call = asker.calls()[0].clone();
    let turn = asker.turn().map(str::to_owned);
    asker.paper.tool_result(turn.as_deref(), &call, &answer.to_string(), std::slice::from_ref(&first));
    asker.paper.request(false);
    asker.finish_turn();
    asker.settle_down();
    for message in [&first, &second] {
        asker.assert_heard_once(message, "two replies");
    }
    let closed = world.script(&["mail", &ask, "--json"]).expect(0).json();
    assert_eq!(closed["closed_by"], json!(first));
}

#[test]
fn m8_a_late_reply_comes_as_mail_and_can_be_waited_for_again() {
    for style in Style::BOTH {
        let world = World::talkative();
        let (mut asker, mut peer) = pair(&world, style);
        let mut late = Vec::new();
        for resumed in [false, true] {
            let out = asker.shell(&["ask", "peer", "well?", "--timeout", "10ms", "--json"]).expect(2);
            let document = out.json();
            assert_eq!(document["reason"], "waits", "{document}");
            let (ask, request) = (text(&document["message_id"]), text(&document["request_id"]));
            assert_eq!(ask[1..], request[1..]);
            let again = asker.shell(&["ask", "--resume", &request, "--timeout", "10ms"]).expect(2);
            assert!(
                again.stdout.is_empty() && again.stderr.contains(&format!("baton ask --resume {request}")),
                "{again:?}"
            );
            peer.event(Moment::Prompt);
            peer.finish_turn();
            let reply =
                text(&peer.shell(&["reply", &ask, "at last", "--json"]).expect(0).json()["message_id"]);
            if resumed {
                let answer = asker.shell(&["ask", "--resume", &request]).expect(0).stdout;
                assert_eq!(messages_in(&answer), [reply.as_str()]);
                shown(&mut asker, &answer);
                asker.paper.request(false);
                asker.answer(1);
            } else {
                asker.event(Moment::Tools);
                asker.answer(1);
            }
            asker.paper.flush();
            late.push((reply, request));
        }
        asker.finish_turn();
        asker.settle_down();
        for (reply, request) in late {
            asker.assert_heard_once(&reply, "late");
            // Asked for once more, it is printed again, and proves nothing.
            let told = asker.shell(&["ask", "--resume", &request, "--json"]).expect(0).json();
            assert_eq!((&told["message_id"], &told["state"]), (&json!(reply), &json!("seen")));
            assert_eq!((&told["body"], told.get("offer")), (&json!("at last"), None));
            let told = asker.shell(&["ask", "--resume", &request]).expect(0).stdout;
            assert!(told.contains(&reply) && told.ends_with("\n\nat last\n"), "{told}");
        }
    }
}

#[test]
fn m8_an_asker_killed_while_it_waits_gets_the_reply_as_mail() {
    for style in Style::BOTH {
        let world = World::talkative();
        let (mut asker, mut peer) = pair(&world, style);
        for replied_first in [false, true] {
            let (mut child, ask) =
                asking(&world, asker.shell_command(&["ask", "peer", "well?", "--timeout", "30s"]));
            peer.event(Moment::Prompt);
            peer.finish_turn();
            let answer =
                || text(&peer.shell(&["reply", &ask, "here", "--json"]).expect(0).json()["message_id"]);
            let reply = if replied_first {
                // It may have printed already, but no one reads that.
                let reply = answer();
                child.kill().unwrap();
                reply
            } else {
                child.kill().unwrap();
                child.wait().unwrap();
                answer()
            };
            child.wait().unwrap();
            asker.event(Moment::Tools);
            asker.finish_turn();
            asker.settle_down();
            asker.assert_heard_once(&reply, &format!("{style:?}, replied first: {replied_first}"));
            asker.event(Moment::Prompt);
            asker.answer(1);
            asker.paper.flush();
        }
    }
}

/// While the asker waits, its hooks leave the answer to it.
#[test]
fn m8_a_hook_leaves_the_answer_to_the_ask_that_waits_for_it() {
    let world = World::talkative();
    let (asker, mut peer) = pair(&world, Style::Codex);
    let mut stopped = asker.shell_command(&["ask", "peer", "well?", "--timeout", "30s"]);
    let (mut child, ask) = asking(&world, std::mem::replace(&mut stopped, Command::new("true")));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    peer.event(Moment::Prompt);
    let plain = peer.send("asker", "plain");
    let reply = text(&peer.shell(&["reply", &ask, "the answer", "--json"]).expect(0).json()["message_id"]);
    let payload = asker.clone().open(Moment::Tools).remove(0);
    let brought = asker.understood(&asker.hook(&payload)).unwrap();
    assert_eq!(messages_in(&brought), [plain.as_str()]);
    assert!(child.try_wait().unwrap().is_none());
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(messages_in(&ended(child).expect(0).stdout), [reply.as_str()]);
}

#[test]
fn m8_an_ask_that_expires_ends_and_says_so() {
    let world = World::talkative();
    world.configure("[mail]\nttl = \"1s\"\n");
    let (asker, _peer) = pair(&world, Style::Claude);
    let asked = asker.shell(&["ask", "peer", "well?", "--timeout", "10ms", "--json"]).expect(2).json();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(world.state(asked["message_id"].as_str().unwrap()), "expired");
    let ended = asker.shell(&["ask", "--resume", asked["request_id"].as_str().unwrap(), "--json"]);
    ended.expect_error(1, "ask-expired");
    // And it is no longer among the open ones.
    let reminder = asker.hook(&asker.payload("SessionStart", json!({"source": "compact"})));
    assert_eq!(reminder.text, "");
}

#[test]
fn m8_ask_by_a_script_prints_the_body_alone() {
    let world = World::talkative();
    let mut peer = Puppet::start(&world, Style::Claude, "peer");
    peer.turn_in_peace();
    let (child, ask) = asking(&world, world.as_script(&["ask", "peer", "well?", "--timeout", "30s"]));
    peer.event(Moment::Prompt);
    peer.shell(&["reply", &ask, "two\nlines"]).expect(0);
    assert_eq!(ended(child).expect(0).stdout, "two\nlines\n");
    assert_eq!(world.script(&["inbox", "--json"]).expect(0).json(), json!([]), "it was read once");
}

#[test]
fn m8_a_retry_with_the_same_key_waits_for_the_same_ask() {
    let world = World::talkative();
    let (asker, mut peer) = pair(&world, Style::Claude);
    let first =
        asker.shell(&["ask", "peer", "well?", "--key", "k", "--timeout", "10ms", "--json"]).expect(2).json();
    let again =
        asker.shell(&["ask", "peer", "well?", "--key", "k", "--timeout", "10ms", "--json"]).expect(2).json();
    assert_eq!(first, again);
    asker.shell(&["ask", "peer", "something else?", "--key", "k", "--json"]).expect_error(1, "key-conflict");
    peer.event(Moment::Prompt);
    peer.shell(&["reply", first["message_id"].as_str().unwrap(), "yes", "--key", "a"]).expect(0);
    peer.shell(&["reply", first["message_id"].as_str().unwrap(), "yes", "--key", "a"]).expect(0);
    let answer = asker.shell(&["ask", "peer", "well?", "--key", "k", "--json"]).expect(0).json();
    assert_eq!(answer["body"], "yes");
    assert_eq!(world.mail().len(), 2);
}

#[test]
fn m9_only_the_recipient_of_a_message_can_answer_it() {
    let world = World::talkative();
    let (asker, mut peer) = pair(&world, Style::Codex);
    let stranger = Puppet::start(&world, Style::Claude, "stranger");
    let plain = asker.send("peer", "plain");
    let asked = asker.shell(&["ask", "peer", "well?", "--timeout", "10ms", "--json"]).expect(2).json();
    let scripted =
        text(&world.script(&["send", "peer", "from a script", "--json"]).expect(0).json()["message_id"]);
    // Before it was ever shown, it does not exist for a stranger, and its sender gets the error for
    // its own message.
    stranger.shell(&["reply", &plain, "me too", "--json"]).expect_error(1, "message-not-found");
    asker.shell(&["reply", &plain, "me too", "--json"]).expect_error(3, "not-recipient");
    let printed = peer.event(Moment::Prompt);
    let seen = messages_in(&peer.understood(&printed[0]).unwrap());
    assert_eq!(seen.len(), 3);
    // As soon as it is shown, before anything is proven, and again later; by message and by request
    // id; with blanks around it.
    for id in
        seen.iter().map(String::as_str).chain([asked["request_id"].as_str().unwrap(), &format!(" {plain} ")])
    {
        peer.shell(&["reply", id, "yes"]).expect(0);
    }
    peer.finish_turn();
    peer.shell(&["reply", &plain, "yes again"]).expect(0);
    let read = world.script(&["inbox", "--json"]).expect(0).json();
    assert_eq!((&read[0]["body"], &read[0]["reply_to"]), (&json!("yes"), &json!(scripted)));
    for unknown in [
        "m000000000000",
        "r000000000000",
        "",
        "..",
        "m00000000000",
        "n000000000000",
        &"m".repeat(10_000),
        "m\u{202e}",
    ] {
        peer.shell(&["reply", unknown, "hello", "--json"]).expect_error(1, "message-not-found");
    }
}

#[test]
fn m8_a_time_out_says_what_the_other_does() {
    let world = World::talkative();
    let asker = Puppet::start(&world, Style::Claude, "asker");
    let mut peer = Puppet::start(&world, Style::Claude, "peer");
    peer.turn_in_peace();
    let ask = |body: &str, reason: &str, words: &str| {
        let out = asker.shell(&["ask", "peer", body, "--timeout", "10ms", "--json"]).expect(2).json();
        assert_eq!(out["reason"], reason, "{out}");
        assert!(out["meaning"].as_str().unwrap().contains(words), "{out}");
        let request = text(&out["request_id"]);
        let plain = asker.shell(&["ask", "--resume", &request, "--timeout", "10ms"]).expect(2);
        assert!(plain.stderr.contains(words) && plain.stderr.contains(&request), "{plain:?}");
        request
    };
    ask("at rest", "waits", "it can't be woken");
    peer.shell(&["dnd", "on"]).expect(0);
    ask("undisturbed", "waits", "do not disturb");
    peer.shell(&["dnd", "off"]).expect(0);
    peer.event(Moment::Prompt);
    ask("at work", "works_unseen", "works, and has not seen the question yet");
    peer.answer(1);
    peer.event(Moment::Tools);
    peer.answer(0);
    peer.paper.flush();
    let request = ask("more", "works_unseen", "works");
    peer.finish_turn();
    peer.settle_down();
    let ended = asker.shell(&["ask", "--resume", &request, "--timeout", "10ms", "--json"]).expect(2).json();
    assert_eq!(ended["reason"], "ended_without_reply", "{ended}");
    peer.hook(
        &peer.payload("PermissionRequest", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}})),
    );
    ask("at a dialog", "dialog", "a dialog is open");
    peer.hook(&peer.payload("SessionEnd", json!({"reason": "other"})));
    ask("gone", "not_running", "peer is not running");
    let person = asker.shell(&["ask", "user", "you?", "--timeout", "10ms", "--json"]).expect(2).json();
    assert_eq!(
        (&person["reason"], &person["meaning"]),
        (&json!("person"), &json!("user has not answered yet"))
    );
}

#[test]
fn m8_a_wait_on_a_terminal_shows_what_the_other_does() {
    let world = World::talkative();
    let mut peer = Puppet::start(&world, Style::Claude, "peer");
    peer.turn_in_peace();
    if !world.has_person() {
        return;
    }
    peer.event(Moment::Prompt);
    let shown = world.person(&["ask", "peer", "well?", "--timeout", "1s"]).expect(2).stdout;
    assert!(shown.contains("peer works, and has not seen the question yet"), "{shown:?}");
}
