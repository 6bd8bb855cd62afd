//! M5: output that no process reads. Nothing is marked as seen, and the mail comes later, once.

use crate::puppet::{Moment, Printed, Puppet, Style};
use crate::world::{Done, World, done, program, run};
use baton_testkit::wait;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A pipe that takes nothing any more.
fn full_pipe() -> (PipeReader, PipeWriter, usize) {
    let (reader, mut writer) = pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    let mut filled = 0;
    while let Ok(count) = writer.write(&[b' '; 4096]) {
        filled += count;
    }
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer, filled)
}

/// Runs with output to wherever; gives how it ended.
fn run_into(mut command: Command, input: &[u8], stdout: impl Into<Stdio>) -> Done {
    let mut child = command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    // Its copy of the output must not stay open here.
    drop(command);
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    done(output.status, &output.stdout, &output.stderr)
}

/// `command >&-`
fn without_stdout(world: &World, command: &Command) -> Command {
    let mut shell = world.command("sh");
    shell.args(["-c", "exec \"$@\" >&-", "sh"]).arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Closed,
    BrokenPipe,
    FullPipe,
    FullDevice,
}

const TROUBLES: [Trouble; 4] = [Trouble::Closed, Trouble::BrokenPipe, Trouble::FullPipe, Trouble::FullDevice];

/// Runs a command whose output goes nowhere.
fn in_trouble(world: &World, command: Command, input: &[u8], trouble: Trouble) -> Done {
    match trouble {
        Trouble::Closed => run(without_stdout(world, &command), input),
        Trouble::BrokenPipe => {
            let (reader, writer) = pipe().unwrap();
            drop(reader);
            run_into(command, input, writer)
        }
        Trouble::FullPipe => {
            let (_reader, writer, _) = full_pipe();
            run_into(command, input, writer)
        }
        Trouble::FullDevice => {
            run_into(command, input, OpenOptions::new().write(true).open("/dev/full").unwrap())
        }
    }
}

#[test]
fn m5_a_hook_whose_output_is_not_read_marks_nothing_seen_and_delivers_later_once() {
    for style in Style::BOTH {
        for moment in [Moment::Prompt, Moment::Tools, Moment::Stop] {
            let world = World::talkative();
            let sender = Puppet::start(&world, Style::Claude, "sender");
            let mut puppet = Puppet::start(&world, style, "reader");
            puppet.turn_in_peace();
            let mut messages = Vec::new();
            for trouble in TROUBLES {
                if matches!(trouble, Trouble::FullPipe) && moment != Moment::Tools {
                    // It takes the hook's whole two seconds; once per agent is enough.
                    continue;
                }
                if moment != Moment::Prompt {
                    puppet.event(Moment::Prompt);
                    puppet.answer(usize::from(moment == Moment::Tools));
                }
                let message = sender.send("reader", &format!("{trouble:?}"));
                puppet.paper.flush();
                let payload = puppet.open(moment).remove(0);
                let begun = Instant::now();
                in_trouble(&world, puppet.hook_command(), &payload, trouble).expect(0);
                assert!(begun.elapsed() < wait::HANG, "{trouble:?} took {:?}", begun.elapsed());
                assert_ne!(world.state(&message), "seen", "{style:?}, {moment:?}, {trouble:?}");
                puppet.close(moment, &[Printed::nothing()]);
                puppet.finish_turn();
                puppet.settle_down();
                puppet.assert_heard_once(&message, &format!("{style:?}, {moment:?}, {trouble:?}"));
                messages.push(message);
            }
            // Each trouble is a line in the log.
            assert_eq!(world.hook_log().len(), messages.len(), "{:?}", world.hook_log());
        }
    }
}

#[test]
fn m5_a_slow_reader_gets_everything_once() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    let message = sender.send("reader", &"slow ".repeat(1700));
    let payload = puppet.open(Moment::Prompt).remove(0);
    let (mut reader, writer, filled) = full_pipe();
    let slow = thread::spawn(move || {
        let mut all = Vec::new();
        let mut buffer = [0; 4096];
        thread::sleep(Duration::from_millis(300));
        loop {
            match reader.read(&mut buffer).unwrap() {
                0 => return all,
                count => all.extend_from_slice(&buffer[..count]),
            }
            thread::sleep(Duration::from_millis(10));
        }
    });
    run_into(puppet.hook_command(), &payload, writer).expect(0);
    let text = String::from_utf8(slow.join().unwrap().split_off(filled)).unwrap();
    assert!(text.len() > 8000);
    puppet.close(Moment::Prompt, &[Printed { text, killed: false }]);
    puppet.finish_turn();
    puppet.settle_down();
    puppet.assert_heard_once(&message, "slow reader");
}

#[test]
fn m5_half_an_answer_at_the_deadline_goes_back_and_is_logged() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Claude, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        let message = sender.send("reader", &"half ".repeat(1700));
        let payload = puppet.open(Moment::Prompt).remove(0);
        // Room for one piece, and then the reader stops.
        let (mut reader, writer, _) = full_pipe();
        reader.read_exact(&mut [0; 4096]).unwrap();
        run_into(puppet.hook_command(), &payload, writer).expect(0);
        assert_eq!(world.state(&message), "queued", "{style:?}");
        let log = world.hook_log();
        assert_eq!(log.len(), 1, "{log:?}");
        assert!(log[0].contains("output-closed") && log[0].contains("after 4096 of "), "{log:?}");
        puppet.close(Moment::Prompt, &[Printed::nothing()]);
        puppet.finish_turn();
        puppet.settle_down();
        puppet.assert_heard_once(&message, &format!("{style:?}"));
    }
}

#[test]
fn m5_a_small_answer_is_one_write() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    sender.send("reader", &"small\n".repeat(150));
    let payload = puppet.open(Moment::Prompt).remove(0);
    // Of such a pipe, a read gives what one write put in.
    let (reader, writer) = pipe_with(PipeFlags::DIRECT).unwrap();
    run_into(puppet.hook_command(), &payload, writer).expect(0);
    let mut packet = [0; 4096];
    let count = PipeReader::from(reader).read(&mut packet).unwrap();
    assert!(count > 1500, "{count}");
    serde_json::from_slice::<serde_json::Value>(&packet[..count]).expect("a whole answer");
}

#[test]
fn m5_an_inbox_whose_output_is_not_read_stays_full() {
    for trouble in TROUBLES {
        if matches!(trouble, Trouble::FullPipe) {
            // A command waits for its reader, as every command does.
            continue;
        }
        let world = World::talkative();
        let puppet = Puppet::start(&world, Style::Claude, "sender");
        // A script's mailbox is filled by answers.
        let sent = world.script(&["send", "sender", "hello", "--json"]).expect(0).json();
        let mut reader = puppet.clone();
        reader.turn_in_peace();
        puppet.shell(&["reply", sent["message_id"].as_str().unwrap(), "hi yourself"]).expect(0);
        let failed = in_trouble(&world, world.as_script(&["inbox"]), b"", trouble).expect(1);
        assert!(failed.stderr.contains("nothing was marked as read"), "{trouble:?}: {failed:?}");
        let read = world.script(&["inbox", "--json"]).expect(0).json();
        assert_eq!(read[0]["body"], "hi yourself", "{trouble:?}");
        assert_eq!(world.script(&["inbox", "--json"]).expect(0).json(), json!([]), "{trouble:?}: read once");
    }
}

#[test]
fn m5_an_agents_inbox_whose_output_is_not_read_goes_back_to_the_queue() {
    for style in Style::BOTH {
        for trouble in [Trouble::Closed, Trouble::BrokenPipe, Trouble::FullDevice] {
            let world = World::talkative();
            let sender = Puppet::start(&world, Style::Claude, "sender");
            let mut puppet = Puppet::start(&world, style, "reader");
            puppet.turn_in_peace();
            puppet.event(Moment::Prompt);
            puppet.answer(1);
            let message = sender.send("reader", "read me");
            in_trouble(&world, puppet.shell_command(&["inbox"]), b"", trouble);
            assert_ne!(world.state(&message), "seen", "{style:?}, {trouble:?}");
            puppet.event(Moment::Tools);
            puppet.finish_turn();
            puppet.settle_down();
            puppet.assert_heard_once(&message, &format!("{style:?}, {trouble:?}"));
        }
    }
}

#[test]
fn m5_an_answer_whose_output_is_not_read_comes_as_mail() {
    for trouble in [Trouble::Closed, Trouble::BrokenPipe, Trouble::FullDevice] {
        let world = World::talkative();
        let mut puppet = Puppet::start(&world, Style::Claude, "peer");
        let asked = world.script(&["ask", "peer", "well?", "--timeout", "1ms", "--json"]).expect(2).json();
        puppet.turn_in_peace();
        puppet.shell(&["reply", asked["message_id"].as_str().unwrap(), "well."]).expect(0);
        let request = asked["request_id"].as_str().unwrap().to_owned();
        in_trouble(&world, world.as_script(&["ask", "--resume", &request]), b"", trouble).expect(1);
        let read = world.script(&["inbox", "--json"]).expect(0).json();
        assert_eq!(read[0]["body"], "well.", "{trouble:?}");
    }
}

#[test]
fn m5_help_into_a_closed_pipe_does_not_panic() {
    let world = World::new();
    for trouble in [Trouble::Closed, Trouble::BrokenPipe, Trouble::FullDevice] {
        for arguments in [&["--help"][..], &["who"], &["config"], &["whoami", "--json"]] {
            let mut command = world.command(program());
            command.args(arguments);
            let ended = in_trouble(&world, command, b"", trouble);
            assert!(!ended.stderr.contains("panicked"), "{arguments:?}: {}", ended.stderr);
            assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        }
    }
}
