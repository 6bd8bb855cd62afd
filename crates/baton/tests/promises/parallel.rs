//! M1 and M22: many processes at the same instant.

use crate::paper::messages_in;
use crate::puppet::{Moment, Printed, Puppet, Style};
use crate::world::{World, program, rounds, run};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

/// Starts all, each waiting for its input, then lets all go at once.
fn at_once(commands: Vec<(Command, Vec<u8>)>) -> Vec<Printed> {
    let mut children: Vec<(Child, Vec<u8>)> = Vec::new();
    for (mut command, input) in commands {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        children.push((command.spawn().unwrap(), input));
    }
    for (child, input) in &mut children {
        child.stdin.take().unwrap().write_all(input).unwrap();
    }
    let mut printed = Vec::new();
    for (child, _) in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        printed.push(Printed { text: String::from_utf8(output.stdout).unwrap(), killed: false });
    }
    printed
}

fn times_printed(printed: &[Printed], message: &str) -> usize {
    printed
        .iter()
        .flat_map(|printed| messages_in(&printed.text.replace("\\\"", "\"")))
        .filter(|id| id == message)
        .count()
}

fn parallel_hooks_print_once(style: Style, hooks: usize) {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    let mut puppet = Puppet::start(&world, style, "reader");
    puppet.event(Moment::Prompt);
    for round in 0..rounds(20) {
        let message = sender.send("reader", &format!("round {round}"));
        puppet.answer(hooks);
        puppet.paper.flush();
        let mut payloads = puppet.open(Moment::Tools);
        puppet.paper.flush();
        // Claude Code has one such hook per batch; installed twice or more, they run at once.
        payloads.resize(hooks, payloads[0].clone());
        let commands = payloads.into_iter().map(|payload| (puppet.hook_command(), payload)).collect();
        let printed = at_once(commands);
        assert_eq!(times_printed(&printed, &message), 1, "round {round}: {printed:#?}");
        puppet.close(Moment::Tools, &printed);
    }
    puppet.finish_turn();
    puppet.settle_down();
    for row in world.mail() {
        assert_eq!(row["deliveries"][0]["state"], "seen");
        assert_eq!(puppet.heard(row["message_id"].as_str().unwrap()), 1);
    }
}

#[test]
fn m1_two_hooks_at_one_instant_print_once() {
    parallel_hooks_print_once(Style::Claude, 2);
}

#[test]
fn m1_eight_hooks_at_one_instant_print_once() {
    parallel_hooks_print_once(Style::Codex, 8);
}

/// Hooks of different events of one session, at the same instant.
#[test]
fn m1_prompt_tools_and_stop_at_one_instant_print_once() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Claude, "sender");
        let mut puppet = Puppet::start(&world, style, "reader");
        puppet.turn_in_peace();
        for round in 0..rounds(10) {
            let message = sender.send("reader", "for one of you");
            let prompt = puppet.open(Moment::Prompt).remove(0);
            puppet.answer(1);
            let mut payloads = puppet.open(Moment::Tools);
            payloads.extend(puppet.open(Moment::Stop));
            payloads.push(prompt);
            let commands = payloads.into_iter().map(|payload| (puppet.hook_command(), payload)).collect();
            let printed = at_once(commands);
            assert_eq!(times_printed(&printed, &message), 1, "{style:?}, round {round}: {printed:#?}");
            // Which one it was is the agent's business; here it was the prompt's.
            puppet.close(Moment::Prompt, &printed);
            puppet.finish_turn();
            puppet.settle_down();
            puppet.assert_heard_once(&message, "settled");
        }
    }
}

/// Claude Code makes its transcript only with the first prompt's lines: there is nothing to look at
/// yet, and that is no reason to repeat.
#[test]
fn m1_two_hooks_at_the_first_prompt_of_all_print_once() {
    for style in Style::BOTH {
        for round in 0..rounds(3) {
            let world = World::talkative();
            let sender = Puppet::start(&world, Style::Codex, "sender");
            let mut puppet = Puppet::start(&world, style, "reader");
            let message = sender.send("reader", "for one of you");
            let payload = puppet.open(Moment::Prompt).remove(0);
            let printed =
                at_once(vec![(puppet.hook_command(), payload.clone()), (puppet.hook_command(), payload)]);
            assert_eq!(times_printed(&printed, &message), 1, "{style:?}, round {round}: {printed:#?}");
            puppet.close(Moment::Prompt, &printed);
            puppet.answer(1);
            assert_eq!(puppet.event(Moment::Tools)[0].text, "", "{style:?}, round {round}");
            puppet.finish_turn();
            puppet.assert_heard_once(&message, "at the first prompt");
        }
    }
}

#[test]
fn m22_forty_sessions_that_start_at_one_instant_without_a_store_are_all_registered() {
    for round in 0..rounds(5) {
        let world = World::new();
        let ids: Vec<String> = (0..40).map(|n| format!("session-{round}-{n}")).collect();
        let start = |id: &String| {
            let payload = json!({"session_id": id, "transcript_path": world.path("claude").join(id), "cwd": world.project(),
                "hook_event_name": "SessionStart", "source": "startup"});
            (world.baton(&["hook", "claude"]), payload.to_string().into_bytes())
        };
        let printed = at_once(ids.iter().map(start).collect());
        assert!(printed.iter().all(|printed| printed.text.is_empty()));
        assert_eq!(world.hook_log(), Vec::<String>::new(), "round {round}");
        let who: Vec<Value> =
            serde_json::from_str(&world.script(&["who", "--json"]).expect(0).stdout).unwrap();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let registered: HashSet<String> = who.iter().map(|row| text(row, "session_id")).collect();
        let names: HashSet<String> = who.iter().map(|row| text(row, "name")).collect();
        assert_eq!(registered, ids.iter().cloned().collect(), "round {round}");
        assert_eq!(names.len(), 40, "round {round}: {names:?}");
    }
}

/// SQLite looks twice for a file, first to write and then to read; baton once more. Somebody else
/// makes the store after each of these looks.
#[cfg(target_os = "linux")]
#[test]
fn m22_a_store_that_another_process_makes_meanwhile_is_opened() {
    for look in 1..=3 {
        let world = World::new();
        let payload = |id: &str| {
            json!({"session_id": id, "cwd": world.project(), "hook_event_name": "SessionStart", "source": "startup"})
                .to_string()
                .into_bytes()
        };
        let mut slow = world.command("strace");
        slow.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=openat", "-e"]);
        slow.arg(format!("inject=openat:delay_exit=400000:when={look}"))
            .arg("-P")
            .arg(world.home().join("baton.db"));
        slow.args([program(), "hook", "claude"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut slow = slow.spawn().unwrap();
        slow.stdin.take().unwrap().write_all(&payload("slow")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(150));
        run(world.baton(&["hook", "claude"]), &payload("quick")).expect(0);
        assert!(slow.wait().unwrap().success());
        assert_eq!(world.hook_log(), Vec::<String>::new(), "look {look}");
        for id in ["slow", "quick"] {
            assert_eq!(world.who(id)["state"], "idle", "look {look}");
        }
    }
}

/// A home behind a link: a person's folder on another disk, a temporary folder on macOS.
#[test]
fn m22_a_home_behind_a_link_works() {
    let world = World::talkative();
    let (real, link) = (world.path("real"), world.path("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    for home in [link.join("below/baton"), link] {
        let baton = |arguments: &[&str]| {
            let mut command = world.baton(arguments);
            command.env("BATON_HOME", &home).env("CODEX_SESSION_ID", "one").env("CODEX_THREAD_ID", "one");
            run(command, b"")
        };
        baton(&["whoami"]).expect(0);
        baton(&["send", "user", "hello"]).expect(0);
        assert_eq!(baton(&["mail", "--json"]).expect(0).json()[0]["body"], "hello");
    }
}
