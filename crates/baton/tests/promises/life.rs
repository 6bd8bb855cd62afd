//! M24: what happens to mail when a person or a crash changes the course of a session.
//!
//! Each row of the table says where a message is heard afterwards. In every case it is heard
//! exactly once, and the store knows it.

use crate::puppet::{Moment, Printed, Puppet, Style};
use crate::world::World;
use serde_json::json;

/// What happens to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Esc before the first word of the answer.
    Escape,
    /// `/clear`, or the same with a `SessionEnd` hook that never ran.
    Clear,
    ClearAbruptly,
    /// `/compact`
    Compact,
    /// `/rewind` to before the last prompt (Claude Code).
    Rewind,
    /// `/branch` or `fork`: the conversation goes on as a copy; here the original does too.
    Fork,
    /// `resume` in another terminal, while the first still runs.
    SecondTerminal,
    /// An orderly end, then `resume`.
    EndAndResume,
    /// `kill -9`, then `resume`: with everything written, or with the last lines lost.
    Kill,
    KillUnwritten,
}

/// Where the message is when it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mail {
    /// Not offered yet.
    Queued,
    /// Came with the prompt; the model has not answered.
    OfferedAtPrompt,
    /// Came with tools; the model has not answered.
    OfferedAtTools,
    /// The model has answered with it.
    Seen,
}

/// Where it is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// It was heard before; it does not come again.
    Before,
    /// It stays in the conversation, and the next answer is an answer to it.
    Kept,
    /// It comes again, as it was lost.
    Again,
    /// It comes for the first time, with the next turn.
    Next,
}

const CHANGES: [Change; 10] = [
    Change::Escape,
    Change::Clear,
    Change::ClearAbruptly,
    Change::Compact,
    Change::Rewind,
    Change::Fork,
    Change::SecondTerminal,
    Change::EndAndResume,
    Change::Kill,
    Change::KillUnwritten,
];

/// The table.
fn expected(style: Style, change: Change, mail: Mail) -> Option<Heard> {
    use Change::{
        Clear, ClearAbruptly, Compact, EndAndResume, Escape, Fork, Kill, KillUnwritten, Rewind,
        SecondTerminal,
    };
    use Mail::{OfferedAtPrompt, OfferedAtTools, Queued, Seen};
    Some(match (style, change, mail) {
        // A rewind is Claude Code's, only it is late to write, and only a prompt without an answer
        // is taken back by Esc.
        (Style::Codex, Rewind | KillUnwritten, _) | (_, Escape, OfferedAtTools | Seen | Queued) => {
            return None;
        }
        // Nothing is offered yet: it comes with the next turn, whatever happened.
        (_, _, Queued) => Heard::Next,
        // Seen is seen, even if the person then drops the conversation.
        (_, _, Seen) => Heard::Before,
        // Claude Code takes what came with the prompt back; Codex keeps it.
        (Style::Claude, Escape, _) => Heard::Again,
        (Style::Codex, Escape, _) => Heard::Kept,
        // The conversation is gone, unread.
        (_, Clear | ClearAbruptly | Rewind, _) => Heard::Again,
        // The next request goes without it.
        (_, Compact, _) => Heard::Again,
        // It is in the file, and so in the conversation.
        (_, Fork | SecondTerminal | EndAndResume | Kill, _) => Heard::Kept,
        // It was never written down.
        (_, KillUnwritten, OfferedAtPrompt | OfferedAtTools) => Heard::Again,
    })
}

/// Brings the message where it shall be.
fn bring(puppet: &mut Puppet<'_>, sender: &Puppet<'_>, mail: Mail) -> String {
    let send = || sender.send("reader", "mind me");
    match mail {
        Mail::Queued => send(),
        Mail::OfferedAtPrompt => {
            let message = send();
            brought(&puppet.event(Moment::Prompt));
            message
        }
        Mail::OfferedAtTools => {
            puppet.event(Moment::Prompt);
            puppet.answer(1);
            let message = send();
            brought(&puppet.event(Moment::Tools));
            message
        }
        Mail::Seen => {
            let message = send();
            brought(&puppet.event(Moment::Prompt));
            puppet.finish_turn();
            message
        }
    }
}

#[track_caller]
fn brought(printed: &[Printed]) {
    assert!(printed.iter().any(|printed| !printed.text.is_empty()), "the hook brings it");
}

fn change<'w>(puppet: &mut Puppet<'w>, change: Change) -> Option<Puppet<'w>> {
    match change {
        Change::Escape => puppet.escape(),
        Change::Clear => puppet.clear(),
        Change::ClearAbruptly => {
            puppet.paper.flush();
            puppet.succeed();
            let printed = puppet.session_start("clear");
            puppet.started(&printed);
        }
        Change::Compact => {
            puppet.paper.flush();
            puppet.quiet_hook("PreCompact", json!({"trigger": "manual"}));
            puppet.paper.compacted();
            let printed = puppet.session_start("compact");
            puppet.started(&printed);
        }
        Change::Rewind => puppet.paper.rewind(puppet.paper.prompts() - 1),
        Change::Fork => {
            let mut fork = puppet.fork("fork");
            let printed = fork.session_start("fork");
            assert_eq!(printed.text, "", "a fork is a participant of its own");
            fork.turn_in_peace();
            return Some(fork);
        }
        Change::SecondTerminal => {
            puppet.paper.flush();
            // Nobody types in the first one any more.
            let first = puppet.clone();
            puppet.move_on();
            drop(first);
        }
        Change::EndAndResume => {
            puppet.paper.flush();
            puppet.quiet_hook("SessionEnd", json!({"reason": "prompt_input_exit"}));
            puppet.kill();
            puppet.resume();
        }
        Change::Kill => {
            puppet.paper.flush();
            puppet.kill();
            puppet.resume();
        }
        Change::KillUnwritten => {
            puppet.kill();
            puppet.resume();
        }
    }
    None
}

fn outcome(style: Style, what: Change, mail: Mail) {
    let Some(expected) = expected(style, what, mail) else { return };
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start_in_process(&world, style, "reader");
    puppet.turn_in_peace();
    let message = bring(&mut puppet, &sender, mail);
    let row = format!("{style:?}, {what:?}, {mail:?}");
    let before = puppet.offers(&message);
    let fork = change(&mut puppet, what);
    // Where a session starts, it brings what is known to be lost, and does not wait for the next
    // prompt.
    let at_start = matches!(what, Change::Clear | Change::ClearAbruptly | Change::KillUnwritten);
    if at_start && expected == Heard::Again {
        assert_eq!(puppet.offers(&message), before + 1, "{row}: it comes with the start");
    }
    assert_eq!(world.who(&puppet.session)["name"], "reader", "{row}: it is the same participant");
    puppet.settle_down();
    if what == Change::SecondTerminal || what == Change::Fork {
        puppet.settle_down();
    }
    puppet.assert_heard_once(&message, &row);
    let again = puppet.offers(&message) - before;
    let wanted = match expected {
        Heard::Before | Heard::Kept => 0,
        Heard::Again | Heard::Next => 1,
    };
    assert_eq!(again, wanted, "{row}: offered again");
    drop(fork);
}

#[test]
fn m24_the_fate_of_mail_in_claude_code() {
    for what in CHANGES {
        for mail in [Mail::Queued, Mail::OfferedAtPrompt, Mail::OfferedAtTools, Mail::Seen] {
            outcome(Style::Claude, what, mail);
        }
    }
}

#[test]
fn m24_the_fate_of_mail_in_codex() {
    for what in CHANGES {
        for mail in [Mail::Queued, Mail::OfferedAtPrompt, Mail::OfferedAtTools, Mail::Seen] {
            outcome(Style::Codex, what, mail);
        }
    }
}

/// Asks on both sides stay open through every change; after a clear or a compaction they are listed
/// again, and that is no delivery.
#[test]
fn m24_the_fate_of_asks() {
    for style in Style::BOTH {
        for what in CHANGES {
            if expected(style, what, Mail::Seen).is_none() && what != Change::Escape {
                continue;
            }
            let world = World::talkative();
            let peer = Puppet::start(&world, Style::Claude, "peer");
            let mut puppet = Puppet::start_in_process(&world, style, "reader");
            let asked =
                peer.shell(&["ask", "reader", "which port?", "--timeout", "1ms", "--json"]).expect(2).json();
            puppet.turn_in_peace();
            let mine =
                puppet.shell(&["ask", "peer", "which host?", "--timeout", "1ms", "--json"]).expect(2).json();
            let (theirs, mine) =
                (asked["message_id"].as_str().unwrap(), mine["message_id"].as_str().unwrap());
            let row = format!("{style:?}, {what:?}");
            if what == Change::Escape {
                puppet.event(Moment::Prompt);
            }
            match what {
                Change::Clear | Change::Compact => {
                    let source = if what == Change::Clear { "clear" } else { "compact" };
                    if what == Change::Clear {
                        puppet.quiet_hook("SessionEnd", json!({"reason": "clear"}));
                        puppet.succeed();
                    }
                    let text = puppet.understood(&puppet.session_start(source)).expect("a reminder");
                    assert!(text.starts_with("<baton-asks>") && !text.contains("<message"), "{row}: {text}");
                    assert!(text.contains(&format!("asked you in {theirs}: which port?")), "{row}: {text}");
                    assert!(
                        text.contains(&format!("you asked in {mine} and have no answer yet: which host?")),
                        "{row}: {text}"
                    );
                    // Mail that waits comes with it, within the same budget.
                    if what == Change::Clear {
                        peer.send("reader", &"long ".repeat(3000));
                        let both = puppet.understood(&puppet.session_start(source)).expect("mail");
                        assert!(
                            both.starts_with("<baton-asks>")
                                && both.contains("<baton-mail")
                                && both.len() <= 10_000,
                            "{row}"
                        );
                    }
                }
                _ => drop(change(&mut puppet, what)),
            }
            // Both can be answered still, whatever session it is.
            puppet.shell(&["reply", theirs, "8080"]).expect(0);
            let mut other = peer.clone();
            other.event(Moment::Prompt);
            let answer = peer.shell(&["reply", mine, "localhost", "--json"]).expect(0).json();
            puppet.settle_down();
            puppet.settle_down();
            puppet.assert_heard_once(answer["message_id"].as_str().unwrap(), &row);
            puppet.assert_heard_once(theirs, &row);
            assert_eq!(
                peer.shell(&["ask", "--resume", asked["request_id"].as_str().unwrap(), "--json"])
                    .expect(0)
                    .code,
                Some(0)
            );
        }
    }
}

/// A prompt that is typed into a running turn may be held for minutes or taken back without a
/// trace: it brings nothing.
#[test]
fn m24_a_prompt_typed_ahead_brings_nothing_in_claude_code() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    puppet.turn_in_peace();
    puppet.event(Moment::Prompt);
    puppet.answer(1);
    puppet.paper.flush();
    let message = sender.send("reader", "hello");
    // The hook of a queued prompt carries the running turn's id.
    puppet.quiet_hook("UserPromptSubmit", json!({"prompt": "and also"}));
    brought(&puppet.event(Moment::Tools));
    puppet.finish_turn();
    puppet.assert_heard_once(&message, "with the tools");
}

/// A prompt that another program's hook blocked is never written down; what came with it was not
/// taken.
#[test]
fn m24_a_blocked_prompt_does_not_take_mail() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Codex, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        puppet.turn_in_peace();
        let message = sender.send("reader", "hello");
        let payload = puppet.open(Moment::Prompt).remove(0);
        brought(&[puppet.hook(&payload)]);
        puppet.settle_down();
        puppet.assert_heard_once(&message, &format!("{style:?}, blocked"));
    }
}

/// The transcript is written 100 ms late: a stop waits for the proof of what came before it, and
/// brings the rest.
#[test]
fn m24_a_stop_waits_for_a_late_transcript() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    puppet.turn_in_peace();
    puppet.event(Moment::Prompt);
    puppet.answer(1);
    let first = sender.send("reader", "first");
    brought(&puppet.event(Moment::Tools));
    puppet.answer(0);
    let second = sender.send("reader", "second");
    let payload = puppet.open(Moment::Stop).remove(0);
    let mut paper = puppet.paper.clone();
    let late = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        paper.flush();
        paper
    });
    let printed = puppet.hook(&payload);
    puppet.paper = late.join().unwrap();
    assert_eq!(crate::paper::messages_in(&puppet.understood(&printed).unwrap()), [second.as_str()]);
    puppet.close(Moment::Stop, &[printed]);
    puppet.finish_turn();
    puppet.assert_heard_once(&first, "first");
    puppet.assert_heard_once(&second, "second");
}

/// A transcript that is shorter than it was is another file: there is nothing to look at, and the
/// mail behind the offer must not wait without end.
#[test]
fn m24_a_transcript_that_was_replaced_does_not_hold_the_mail_up() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Codex, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        for _ in 0..3 {
            puppet.turn_in_peace();
        }
        let first = sender.send("reader", "offered before");
        brought(&puppet.event(Moment::Prompt));
        puppet.paper.flush();
        puppet.paper.cut_to(0);
        let second = sender.send("reader", "sent after");
        puppet.finish_turn();
        puppet.settle_down();
        puppet.assert_heard_once(&second, &format!("{style:?}"));
        assert_ne!(world.state(&first), "offered", "{style:?}: it has an end");
    }
}

/// In Codex's daemon no process tells which thread a new one follows: after `/clear` it is a
/// participant of its own, and what waits for the old one waits until that thread is resumed, or
/// expires with a note. A guess would hand mail to a stranger.
#[test]
fn m24_a_clear_in_codexs_daemon_leaves_the_mail_with_the_old_thread() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, Style::Codex, "reader");
    puppet.turn_in_peace();
    let message = sender.send("reader", "hello");
    let mut next = puppet.clone();
    next.succeed();
    let printed = next.session_start("clear");
    assert_eq!(printed.text, "");
    assert_ne!(world.who(&next.session)["name"], "reader");
    next.settle_down();
    assert_eq!((next.heard(&message), world.state(&message)), (0, "queued".to_owned()));
    puppet.resume();
    puppet.settle_down();
    puppet.assert_heard_once(&message, "the old thread, resumed");
}

/// A turn of a hundred screenshots: its transcript is larger than one look reads, and mail that
/// comes late in it is proven all the same.
#[test]
fn m24_mail_late_in_a_huge_turn_is_proven() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    puppet.turn_in_peace();
    puppet.event(Moment::Prompt);
    puppet.answer(1);
    let screenshot = "x".repeat(1 << 20);
    for n in 0..80 {
        puppet.paper.raw(
            json!({"type": "api-request-blob", "hash": n.to_string(), "message": {"content": screenshot}}),
        );
        puppet.paper.flush();
    }
    let first = sender.send("reader", "late in the turn");
    brought(&puppet.event(Moment::Tools));
    puppet.answer(1);
    let second = sender.send("reader", "later still");
    brought(&puppet.event(Moment::Tools));
    puppet.finish_turn();
    puppet.assert_heard_once(&first, "huge");
    puppet.assert_heard_once(&second, "huge");
}
