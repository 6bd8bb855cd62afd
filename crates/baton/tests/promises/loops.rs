//! M13 and M17: nothing goes on without end.

use crate::puppet::{Moment, Puppet, Style};
use crate::world::World;

#[test]
fn m13_mail_keeps_a_session_from_stopping_five_times_in_a_row_and_no_more() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Codex, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        puppet.turn_in_peace();
        for _ in 0..2 {
            // A person's prompt starts the count again.
            puppet.event(Moment::Prompt);
            let mut kept_going = 0;
            for n in 0..12 {
                puppet.answer(0);
                sender.send("reader", &format!("and another thing, {n}"));
                let printed = puppet.event(Moment::Stop);
                if printed[0].text.is_empty() {
                    break;
                }
                kept_going += 1;
            }
            assert_eq!(kept_going, 5, "{style:?}");
            let state = puppet.world.who(&puppet.session)["state"].clone();
            assert_eq!(state, "idle", "it has stopped");
        }
        // What came too often for one turn comes with the next.
        puppet.settle_down();
        assert!(world.mail().iter().all(|row| row["deliveries"][0]["state"] == "seen"));
    }
}

#[test]
fn m13_the_cap_is_a_setting_and_zero_means_never() {
    let world = World::talkative();
    world.configure("[limits]\nstops_in_a_row = 0\n");
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    puppet.event(Moment::Prompt);
    puppet.answer(0);
    let message = sender.send("reader", "not now");
    assert_eq!(puppet.event(Moment::Stop)[0].text, "");
    puppet.settle_down();
    puppet.assert_heard_once(&message, "with the next prompt");
}

#[track_caller]
fn reply(from: &Puppet<'_>, message: &str) -> crate::world::Done {
    from.shell(&["reply", message, "and you?", "--json"])
}

/// The id of what a reply sent.
fn id(done: crate::world::Done) -> String {
    done.expect(0).json()["message_id"].as_str().unwrap().to_owned()
}

#[test]
fn m17_a_chain_of_replies_between_agents_is_cut_after_eight() {
    let world = World::new();
    let (ada, lin) =
        (Puppet::start(&world, Style::Claude, "ada"), Puppet::start(&world, Style::Codex, "lin"));
    let mut last = ada.send("lin", "hello");
    for hop in 0..8 {
        last = id(reply(if hop % 2 == 0 { &lin } else { &ada }, &last));
    }
    let hint = reply(&lin, &last).expect_error(3, "budget-exhausted");
    assert!(hint.contains("user"), "{hint}");
    // The same by hand, with a reference, is the same chain.
    lin.shell(&["send", "ada", "and you?", "--reply-to", &last, "--json"])
        .expect_error(3, "budget-exhausted");
    // Something new is no part of it, and neither is a turn that a person began.
    lin.send("ada", "something else");
    let mut prompted = lin.clone();
    prompted.event(Moment::Prompt);
    let mut next = id(reply(&lin, &last));
    for hop in 0..8 {
        next = id(reply(if hop % 2 == 0 { &ada } else { &lin }, &next));
    }
    reply(&ada, &next).expect_error(3, "budget-exhausted");
}

#[test]
fn m17_a_turn_that_only_mail_keeps_going_is_no_turn_of_a_person() {
    let world = World::new();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    let mut lin = Puppet::start(&world, Style::Codex, "lin");
    lin.event(Moment::Prompt);
    let mut last = ada.send("lin", "hello");
    for hop in 0..8 {
        last = id(reply(if hop % 2 == 0 { &lin } else { &ada }, &last));
    }
    lin.answer(1);
    lin.event(Moment::Tools);
    lin.answer(0);
    lin.event(Moment::Stop);
    reply(&lin, &last).expect_error(3, "budget-exhausted");
}

#[test]
fn m17_a_pair_of_agents_has_sixty_messages_in_ten_minutes() {
    let world = World::new();
    let (ada, lin) =
        (Puppet::start(&world, Style::Claude, "ada"), Puppet::start(&world, Style::Codex, "lin"));
    let eve = Puppet::start(&world, Style::Codex, "eve");
    for n in 0..60 {
        if n % 3 == 0 {
            ada.send("lin", "tick")
        } else {
            lin.send("ada", "tock")
        };
    }
    for (from, to) in [(&ada, "lin"), (&lin, "ada"), (&ada, "lin")] {
        let hint = from.shell(&["send", to, "one more", "--json"]).expect_error(3, "budget-exhausted");
        assert!(hint.contains("limits.pair_messages"), "{hint}");
    }
    // Both know why, and are told once.
    for (to, from) in [(&lin, "ada"), (&ada, "lin")] {
        let waits = to.shell(&["inbox", "--peek", "--limit", "100", "--json"]).expect(0).json();
        let bodies = waits.as_array().unwrap().iter().filter_map(|message| message["body"].as_str());
        let notes: Vec<_> = bodies.filter(|body| body.contains("holds back")).collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains(from) && notes[0].contains("60 messages"), "{notes:?}");
    }
    // Others are not held up, in whatever direction.
    eve.send("ada", "hello");
    ada.send("eve", "hello");
}

#[test]
fn m17_scripts_and_the_person_are_never_held_up() {
    let world = World::new();
    world.configure("[limits]\npair_messages = 3\nhops = 1\n");
    let mut ada = Puppet::start(&world, Style::Claude, "ada");
    let mut last = String::new();
    for _ in 0..6 {
        let sent = world.script(&["send", "ada", "hello", "--json"]).expect(0).json();
        last = sent["message_id"].as_str().unwrap().to_owned();
    }
    ada.event(Moment::Prompt);
    // Back and forth with a script has no hops.
    for _ in 0..4 {
        let answer = id(reply(&ada, &last));
        let done = world.script(&["reply", &answer, "again", "--json"]).expect(0).json();
        last = done["message_id"].as_str().unwrap().to_owned();
    }
    for _ in 0..6 {
        ada.shell(&["send", "user", "done"]).expect(0);
    }
    if !world.has_person() {
        return;
    }
    for _ in 0..6 {
        world.person(&["send", "ada", "go on"]).expect(0);
    }
    let read = world.person(&["inbox", "--json"]).expect(0).json();
    let mut last = read[0]["message_id"].as_str().unwrap().to_owned();
    for _ in 0..4 {
        let answer = world.person(&["reply", &last, "and?", "--json"]).expect(0).json();
        last = id(reply(&ada, answer["message_id"].as_str().unwrap()));
    }
}
