//! M6: more waiting than an event may bring.

use crate::paper::{heard, messages_in};
use crate::puppet::{Moment, Puppet, Style};
use crate::world::World;

/// As each agent counts.
fn size(style: Style, text: &str) -> usize {
    match style {
        Style::Claude => text.encode_utf16().count(),
        Style::Codex => text.len(),
    }
}

#[track_caller]
fn text_of(puppet: &mut Puppet<'_>, moment: Moment) -> String {
    let printed = puppet.event(moment);
    let text = printed.iter().find_map(|printed| puppet.understood(printed)).unwrap_or_default();
    assert!(size(puppet.style, &text) <= 10_000, "{} at {moment:?}", size(puppet.style, &text));
    text
}

#[test]
fn m6_twenty_messages_an_event_and_the_text_says_how_many_wait() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Claude, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        let sent: Vec<String> = (0..46).map(|n| sender.send("reader", &format!("number {n}"))).collect();
        let first = text_of(&mut puppet, Moment::Prompt);
        assert_eq!(messages_in(&first), sent[..20]);
        assert!(first.contains("\n26 more messages wait; ") && first.contains("`baton inbox`"), "{first}");
        puppet.answer(1);
        let second = text_of(&mut puppet, Moment::Tools);
        assert_eq!(messages_in(&second), sent[20..40]);
        assert!(second.contains("\n6 more messages wait; "), "{second}");
        puppet.finish_turn();
        puppet.settle_down();
        assert_eq!(heard(&world), sent, "all, once, in order");
    }
}

#[test]
fn m6_a_long_text_is_cut_within_the_agents_own_count_and_can_be_read_in_full() {
    // ASCII, two bytes, three bytes, two UTF-16 units; with line breaks and tags that grow when
    // they are defused.
    let bodies = [
        "x".repeat(30_000),
        "é".repeat(20_000),
        "漢\n".repeat(9_000),
        "😀".repeat(12_000),
        "<system>\n".repeat(3_000),
    ];
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Claude, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        puppet.turn_in_peace();
        for body in &bodies {
            let message = sender.send("reader", body);
            let text = text_of(&mut puppet, Moment::Prompt);
            assert_eq!(messages_in(&text), [message.as_str()]);
            assert!(size(style, &text) > 9_000, "the room is used: {}", size(style, &text));
            assert!(
                text.contains(&format!(
                    "(cut here, {} bytes in all; in full: `baton mail {message}`)",
                    body.len()
                )),
                "{text}"
            );
            puppet.finish_turn();
            // Its shell shows the whole of it; what means something to a host is defused there too.
            let shown = puppet.shell(&["mail", &message]).expect(0).stdout;
            assert!(
                shown.contains(&body.replace("<system>", "&lt;system>")),
                "{} of {}",
                shown.len(),
                body.len()
            );
            puppet.assert_heard_once(&message, "cut");
        }
    }
}

/// Sizes around the limit: whatever is left over waits, and comes.
#[test]
fn m6_nothing_is_dropped_at_any_size() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Claude, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        let sizes = [
            10, 9_000, 9_300, 9_400, 9_500, 10_000, 4_000, 4_000, 4_000, 1, 60_000, 1, 9_999, 12_000, 500,
            3_000,
        ];
        let sent: Vec<String> = sizes.iter().map(|size| sender.send("reader", &"y".repeat(*size))).collect();
        text_of(&mut puppet, Moment::Prompt);
        for _ in 0..sizes.len() {
            puppet.answer(1);
            text_of(&mut puppet, Moment::Tools);
        }
        puppet.finish_turn();
        puppet.settle_down();
        assert_eq!(heard(&world), sent);
        assert!(world.mail().iter().all(|row| row["deliveries"][0]["state"] == "seen"));
    }
}

/// What an agent reads in its shell must fit into what its shell tool shows: Claude Code shows
/// 30,000 characters.
#[test]
fn m6_an_inbox_in_an_agents_shell_fits_into_a_tool_result() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Claude, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        puppet.turn_in_peace();
        let mut sent: Vec<String> = (0..120).map(|n| sender.send("reader", &format!("number {n}"))).collect();
        sent.push(sender.send("reader", &"z".repeat(65_536)));
        sent.push(sender.send("reader", "the last one"));
        puppet.event(Moment::Prompt);
        for form in [&["inbox", "--limit", "1000"][..], &["inbox", "--limit", "1000", "--json"]]
            .into_iter()
            .cycle()
            .take(12)
        {
            puppet.answer(1);
            puppet.paper.flush();
            let call = puppet.calls()[0].clone();
            let shown = puppet.shell(form).expect(0).stdout;
            assert!(shown.chars().count() <= 30_000, "{form:?} printed {}", shown.chars().count());
            let turn = puppet.turn().map(str::to_owned);
            let taken = taken_in(&shown);
            puppet.paper.tool_result(turn.as_deref(), &call, &shown, &taken);
            puppet.paper.request(false);
        }
        puppet.finish_turn();
        puppet.settle_down();
        assert!(world.mail().iter().all(|row| row["deliveries"][0]["state"] == "seen"));
        assert_eq!(heard(&world), sent);
    }
}

/// The messages that a reading printed, in either form.
fn taken_in(shown: &str) -> Vec<String> {
    match serde_json::from_str::<Vec<serde_json::Value>>(shown) {
        Ok(list) => list.iter().map(|letter| letter["message_id"].as_str().unwrap().to_owned()).collect(),
        Err(_) => messages_in(shown),
    }
}
