//! Odd machines: whatever is in the place of a file, whoever owns the home, and whatever takes no
//! answer. A hook ends, and no call runs that was not judged.

use crate::puppet::{Moment, Puppet, Style};
use crate::world::{Done, World, program, run};
use baton_testkit::wait;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs something that must end by itself, in time.
#[track_caller]
fn in_time(command: Command, input: &[u8], what: &str) -> Done {
    let begun = Instant::now();
    let done = run(command, input);
    assert!(begun.elapsed() < wait::HANG, "{what} took {:?}", begun.elapsed());
    done
}

/// What may be in the place of a file.
const STRANGE: [&str; 6] = ["pipe", "folder", "socket", "/dev/zero", "/dev/full", "/dev/tty"];

/// Puts something strange in the place of a file.
fn put(what: &str, file: &Path) {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).unwrap();
    }
    remove(file);
    match what {
        "pipe" => assert!(Command::new("mkfifo").arg(file).status().unwrap().success()),
        "folder" => fs::create_dir(file).unwrap(),
        "socket" => {
            // A path of a socket is short.
            let short = tempfile::tempdir().unwrap();
            let bound = short.path().join("s");
            drop(std::os::unix::net::UnixListener::bind(&bound).unwrap());
            fs::rename(&bound, file).or_else(|_| fs::create_dir(file)).unwrap();
        }
        device => symlink(device, file).unwrap(),
    }
}

fn remove(file: &Path) {
    if fs::remove_file(file).is_err() {
        fs::remove_dir_all(file).ok();
    }
}

fn guard(world: &World) -> Command {
    world.baton(&["hook", "claude", "PreToolUse", "--guard"])
}

fn call(world: &World, command: &str) -> Vec<u8> {
    json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": world.project(), "tool_name": "Bash",
        "tool_use_id": "t", "tool_input": {"command": command},
        "transcript_path": world.path("claude/s.jsonl"), "permission_mode": "default",
    })
    .to_string()
    .into_bytes()
}

#[track_caller]
fn decision(done: &Done) -> String {
    assert_eq!(done.code, Some(0), "{done:?}");
    if done.stdout.is_empty() {
        return String::new();
    }
    let answer: Value = serde_json::from_str(&done.stdout).unwrap();
    answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn s16_nothing_in_the_place_of_a_configuration_hangs_a_hook_and_the_call_is_asked_about() {
    let world = World::new();
    let user = world.path("home/.config/baton/config.toml");
    let project = world.project().join(".baton.toml");
    for what in STRANGE {
        for file in [&user, &project] {
            put(what, file);
            let done = in_time(guard(&world), &call(&world, "ls"), what);
            assert_eq!(decision(&done), "ask", "{what} as {}: {done:?}", file.display());
            remove(file);
        }
        let mut named = guard(&world);
        let place = world.path("named.toml");
        put(what, &place);
        named.env("BATON_CONFIG", &place);
        assert_eq!(decision(&in_time(named, &call(&world, "ls"), what)), "ask", "{what} as BATON_CONFIG");
    }
    let mut named = guard(&world);
    named.env("BATON_CONFIG", "/dev/full");
    assert_eq!(decision(&in_time(named, &call(&world, "ls"), "/dev/full")), "ask");
}

#[test]
fn s16_a_configuration_of_any_size_is_refused_at_once() {
    let world = World::new();
    let file = fs::File::create(world.project().join(".baton.toml")).unwrap();
    file.set_len(200 << 20).unwrap();
    let done = in_time(guard(&world), &call(&world, "ls"), "200 MB");
    assert_eq!(decision(&done), "ask");
    assert!(done.stdout.contains("larger than"), "{}", done.stdout);
    in_time(world.as_script(&["approvals"]), b"", "approvals");
    let puppet = Puppet::start(&world, Style::Claude, "reader");
    in_time(puppet.hook_command(), &puppet.payload("UserPromptSubmit", json!({"prompt": "x"})), "mail");
}

#[test]
fn s16_nothing_in_the_place_of_a_file_of_the_home_hangs_a_hook() {
    let world = World::new();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    puppet.turn_in_peace();
    sender.send("reader", "hello");
    puppet.open(Moment::Prompt);
    let files = [
        "hook.log",
        "guard.log",
        "guard.calls",
        "guard.calls.1",
        "bell",
        "bell/1",
        "bell/2",
        "bell/2.attended",
        "asking",
        "unknown",
        "baton.db-wal",
        "baton.db-shm",
        "baton.db",
        "jobs.db",
        "approvals.db",
        "jobs",
        "reviews",
        "waiter",
    ];
    let saved = world.save();
    for name in files {
        for what in ["pipe", "folder", "/dev/zero"] {
            world.restore(&saved);
            let shown = format!("{what} as {name}");
            let file = world.home().join(name);
            if name.contains('/') {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
            }
            put(what, &file);
            for command in ["ls", "sudo ls"] {
                let done = in_time(guard(&world), &call(&world, command), &shown);
                let expected = if command == "ls" { "" } else { "deny" };
                assert_eq!(decision(&done), expected, "{shown}: {done:?}");
            }
            let payload = puppet.payload("UserPromptSubmit", json!({"prompt": "x"}));
            let done = in_time(puppet.hook_command(), &payload, &shown);
            assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{shown}");
            for command in [&["approvals", "--json"][..], &["who", "--json"], &["guard", "log", "--json"]] {
                in_time(world.as_script(command), b"", &shown);
            }
        }
    }
}

#[test]
fn s16_nothing_in_the_place_of_a_transcript_hangs_a_hook() {
    let world = World::new();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut puppet = Puppet::start(&world, Style::Claude, "reader");
    puppet.turn_in_peace();
    sender.send("reader", "hello");
    let payload = puppet.open(Moment::Prompt).remove(0);
    assert!(puppet.understood(&puppet.hook(&payload)).is_some());
    for what in STRANGE {
        put(what, &puppet.paper.file);
        for event in ["UserPromptSubmit", "PostToolBatch", "Stop", "SessionEnd"] {
            let done = in_time(puppet.hook_command(), &puppet.payload(event, json!({})), what);
            assert_eq!(done.code, Some(0), "{what}: {done:?}");
        }
    }
}

/// A disk that does not answer: strace holds each open of a file for five seconds.
#[test]
fn s16_a_disk_that_does_not_answer_holds_no_hook_up() {
    let world = World::new();
    let puppet = Puppet::start(&world, Style::Claude, "reader");
    let slow = |arguments: &[&str]| {
        let mut command = world.command("strace");
        let inject = "inject=openat,newfstatat,statx,pread64:delay_enter=5000000";
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", inject, "--"]).arg(program()).args(arguments);
        command
    };
    let begun = Instant::now();
    let done = run(slow(&["hook", "claude", "PreToolUse", "--guard"]), &call(&world, "ls"));
    // The kernel lets go of a stopped process at its next step: one delay, and not one for each of
    // dozens of calls.
    assert!(begun.elapsed() < wait::HANG, "{:?}", begun.elapsed());
    assert!(["ask", ""].contains(&decision(&done).as_str()), "{done:?}");
    let begun = Instant::now();
    let done = run(slow(&["hook", "claude"]), &puppet.payload("UserPromptSubmit", json!({"prompt": "x"})));
    assert!(begun.elapsed() < wait::HANG, "{:?}", begun.elapsed());
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{done:?}");
}

#[test]
fn s20_no_log_is_written_through_a_link_or_a_second_name() {
    let world = World::new();
    Puppet::start(&world, Style::Claude, "reader");
    let victim = world.path("home/.bashrc");
    for name in ["hook.log", "guard.log", "guard.calls", "bell/1", "bell/1.attended"] {
        for link in ["symbolic", "hard"] {
            fs::write(&victim, "export A=1\n").unwrap();
            let file = world.home().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            remove(&file);
            match link {
                "symbolic" => symlink(&victim, &file).unwrap(),
                _ => fs::hard_link(&victim, &file).unwrap(),
            }
            in_time(world.baton(&["hook", "claude"]), b"$(touch attack)", name);
            in_time(guard(&world), b"$(touch attack)", name);
            in_time(guard(&world), &call(&world, "sudo touch attack"), name);
            in_time(world.as_script(&["send", "reader", "x"]), b"", name);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "export A=1\n", "{link} link as {name}");
            remove(&file);
        }
    }
}

#[test]
fn s20_a_home_that_others_can_write_to_is_refused_and_no_call_runs_unjudged() {
    let world = World::new();
    let puppet = Puppet::start(&world, Style::Claude, "reader");
    let prompt = puppet.payload("UserPromptSubmit", json!({"prompt": "x"}));
    let set = |mode: u32| fs::set_permissions(world.home(), fs::Permissions::from_mode(mode)).unwrap();
    let link = world.path("link");
    symlink(world.home(), &link).unwrap();
    for mode in [0o777, 0o770, 0o702] {
        set(mode);
        for home in [world.home(), link.as_path()] {
            let with_home = |mut command: Command| {
                command.env("BATON_HOME", home);
                command
            };
            let hint = in_time(with_home(world.as_script(&["who", "--json"])), b"", "who")
                .expect_error(3, "home-unsafe");
            assert!(hint.contains("chmod"), "{hint}");
            let done = in_time(with_home(puppet.hook_command()), &prompt, "mail");
            assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
            let done = in_time(with_home(guard(&world)), &call(&world, "ls"), "guard");
            assert_eq!(decision(&done), "ask", "{mode:o}");
            assert!(done.stdout.contains("not safe"), "{}", done.stdout);
        }
    }
    assert!(world.hook_log().is_empty(), "nothing is written there");
    set(0o700);
    world.script(&["who", "--json"]).expect(0);
}

/// Only root can give a folder to another user.
#[test]
fn s20_a_home_of_another_user_is_refused() {
    let world = World::new();
    Puppet::start(&world, Style::Claude, "reader");
    if std::os::unix::fs::chown(world.home(), Some(12_345), None).is_err() {
        eprintln!("skipped: only root can give a folder to another user");
        return;
    }
    in_time(world.as_script(&["who", "--json"]), b"", "who").expect_error(3, "home-unsafe");
    assert_eq!(decision(&in_time(guard(&world), &call(&world, "ls"), "guard")), "ask");
}

#[test]
fn s25_without_any_home_the_guard_answers_as_set_and_mail_is_silent() {
    let world = World::new();
    let bare = |arguments: &[&str]| {
        let mut command = world.baton(arguments);
        for name in ["HOME", "BATON_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
            command.env_remove(name);
        }
        command
    };
    for arguments in [
        &["hook", "claude", "PreToolUse", "--guard"][..],
        &["hook", "claude", "--guard", "PreToolUse", "--hold"],
        &["hook", "claude", "--guard"],
    ] {
        let done = in_time(bare(arguments), &call(&world, "ls"), "guard");
        assert_eq!(decision(&done), "ask", "{arguments:?}: {done:?}");
        assert!(done.stdout.contains("no home"), "{}", done.stdout);
    }
    for agent in ["codex", "gemini", "copilot", "cursor"] {
        let event = baton_agents::by_name(agent).unwrap().facts().calls.before[0];
        let done = in_time(bare(&["hook", agent, event, "--guard"]), &call(&world, "ls"), agent);
        assert!(done.stdout.contains("could not judge"), "{agent}: {done:?}");
    }
    let done = in_time(bare(&["hook", "claude"]), &call(&world, "ls"), "mail");
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
    world.configure("[guard]\non_failure = \"deny\"\n");
    let mut denying = bare(&["hook", "claude", "PreToolUse", "--guard"]);
    denying.env("XDG_CONFIG_HOME", world.path("home/.config"));
    assert_eq!(decision(&in_time(denying, &call(&world, "ls"), "deny")), "deny");
}

/// Runs a guard's hook whose output goes to a shell's redirection.
fn with_output(world: &World, agent: &str, event: &str, redirection: &str, input: &[u8]) -> Done {
    let mut command = world.command("sh");
    let line = format!("exec \"$0\" hook {agent} {event} --guard {redirection}");
    command.args(["-c", &line, program()]);
    in_time(command, input, redirection)
}

#[test]
fn a_refusal_that_can_not_be_printed_is_an_exit_code_that_refuses() {
    let world = World::new();
    let payload = |agent: &str, event: &str, command: &str| {
        let mut payload: Value = serde_json::from_slice(&call(&world, command)).unwrap();
        payload["hook_event_name"] = json!(event);
        let tool = match agent {
            "gemini" => "run_shell_command",
            "copilot" => "bash",
            _ => "Bash",
        };
        payload["tool_name"] = json!(tool);
        payload["toolName"] = json!(tool);
        payload["toolArgs"] = json!({"command": command});
        payload["sessionId"] = json!("s");
        payload.to_string().into_bytes()
    };
    for agent in ["claude", "codex", "gemini", "copilot"] {
        let event = baton_agents::by_name(agent).unwrap().facts().calls.before[0];
        for redirection in ["> /dev/full", ">&-", "1</dev/null"] {
            let refused = with_output(&world, agent, event, redirection, &payload(agent, event, "sudo ls"));
            assert_eq!(refused.code, Some(2), "{agent} {redirection}: {refused:?}");
            assert!(refused.stderr.contains("guard"), "{refused:?}");
            let unjudged = with_output(&world, agent, event, redirection, b"nonsense");
            assert_eq!(unjudged.code, Some(2), "{agent} {redirection}: {unjudged:?}");
            let allowed = with_output(&world, agent, event, redirection, &payload(agent, event, "ls"));
            assert_eq!(allowed.code, Some(0), "{agent} {redirection}: {allowed:?}");
        }
    }
    // After a call there is nothing to refuse, and mail never refuses.
    let after = with_output(
        &world,
        "claude",
        "PostToolUse",
        "> /dev/full",
        &payload("claude", "PostToolUse", "sudo ls"),
    );
    assert_eq!(after.code, Some(0));
}

/// A reader that takes nothing: the pipe is full.
#[test]
fn a_refusal_into_a_pipe_without_a_reader_refuses_too() {
    let world = World::new();
    let (reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    let mut command = guard(&world);
    command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &call(&world, "sudo ls")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(begun.elapsed() < wait::HANG);
    drop(reader);
}

fn fill(pipe: &std::io::PipeWriter) {
    use rustix::fs::OFlags;
    let flags = rustix::fs::fcntl_getfl(pipe).unwrap();
    rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK).unwrap();
    while rustix::io::write(pipe, &[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(pipe, flags).unwrap();
}

/// The kernel gives no more watches: strace refuses them.
#[test]
fn s21_without_watches_an_ask_is_answered_and_never_said_to_be_unsent() {
    let world = World::new();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    Puppet::start(&world, Style::Codex, "reader");
    for inject in ["inject=inotify_init1:error=EMFILE", "inject=inotify_add_watch:error=ENOSPC"] {
        for arguments in [
            &["ask", "reader", "question", "--timeout", "1s", "--json"][..],
            &["inbox", "--wait", "1s", "--json"],
        ] {
            let mut command = world.command("strace");
            command.envs(sender.environment());
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", inject, "--"]).arg(program()).args(arguments);
            let done = in_time(command, b"", inject);
            assert_eq!(done.code, Some(2), "{inject}: {arguments:?}: {done:?}");
            assert!(!done.stdout.contains("nothing was sent"), "{done:?}");
        }
    }
    assert_eq!(world.mail().len(), 2, "both questions were sent");
}

/// A store that was cut anywhere: what `send` accepts, `mail` shows.
#[test]
fn s22_what_is_accepted_into_a_store_that_was_cut_can_be_read() {
    let world = World::new();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    Puppet::start(&world, Style::Codex, "reader");
    for n in 0..20 {
        sender.send("reader", &format!("{n} {}", "x".repeat(2000)));
    }
    let store = world.home().join("baton.db");
    let saved = world.save();
    let length = fs::metadata(&store).unwrap().len();
    let mut cuts = vec![0, 1, 99, 100, 512, 4095, 4096, 5000, length - 1, length];
    cuts.extend((1..length / 4096).map(|page| page * 4096));
    for cut in cuts {
        world.restore(&saved);
        fs::OpenOptions::new().write(true).open(&store).unwrap().set_len(cut).unwrap();
        let sent = in_time(sender.shell_command(&["send", "reader", "more", "--json"]), b"", "send");
        if sent.code != Some(0) {
            continue;
        }
        let id = sent.json()["message_id"].as_str().unwrap().to_owned();
        for arguments in [&["mail", &id, "--json"][..], &["who", "--all", "--json"]] {
            world.script(arguments).expect(0);
        }
    }
}
