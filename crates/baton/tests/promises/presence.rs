//! S6, S7, S8, S11, S12: processes decide who calls. Here a real process represents each agent, and
//! the attacks come from below it.

use crate::processes::Shepherd;
use crate::puppet::{Puppet, Style};
use crate::world::{Done, World, program, quoted, run};
use baton_testkit::process::write_program;
use baton_testkit::{sandbox, wait};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = wait::HANG;

/// `whoami` written into a file, as words of a shell.
fn whoami(world: &World, file: &str) -> (String, PathBuf) {
    let file = world.path(file);
    let draft = quoted(&format!("{}.draft", file.display()));
    let home = quoted(&world.home().display().to_string());
    let to = quoted(&file.display().to_string());
    (format!("{} --home {home} whoami --json > {draft}; mv {draft} {to}", quoted(program())), file)
}

fn kind(file: &PathBuf) -> Value {
    let text = wait::poll(LIMIT, || fs::read_to_string(file).ok()).expect("it ran");
    serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))["kind"].clone()
}

fn shell(world: &World, line: &str) -> Command {
    let mut command = world.command("sh");
    command.args(["-c", line]);
    command
}

/// On a busy machine the parents may still live when it asks. Then it is plainly below the session.
fn assert_is_below_an_agent(kind: &Value) {
    assert!(kind == "stranger" || kind == "session", "{kind}");
}

#[test]
fn s7_a_process_that_was_born_below_an_agent_is_never_the_person() {
    let world = World::new();
    let agent = Shepherd::start(&world, "claude");
    let payload = json!({"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": world.project()});
    agent.run(&world.baton(&["hook", "claude"]), payload.to_string().as_bytes()).expect(0);
    let (words, file) = whoami(&world, "detached");
    let line = format!("env -i PATH=/usr/bin:/bin setsid -f script -qc {} /dev/null", quoted(&words));
    agent.run(&shell(&world, &line), b"").expect(0);
    assert_is_below_an_agent(&kind(&file));
    // A further parent that stays, so that only the mark tells.
    let (words, file) = whoami(&world, "kept");
    let kept = format!("script -qc {} /dev/null; sleep 0", quoted(&words));
    let line = format!(
        "env -i PATH=/usr/bin:/bin setsid -f sh -c {}",
        quoted(&format!("sh -c {}; :", quoted(&kept)))
    );
    agent.run(&shell(&world, &line), b"").expect(0);
    assert_is_below_an_agent(&kind(&file));
}

#[test]
fn s8_neither_forty_shells_nor_a_namespace_make_a_person() {
    let world = World::new();
    let agent = Shepherd::start(&world, "claude");
    // No hook has run: the ancestors alone.
    let (words, file) = whoami(&world, "nested");
    let script = world.path("nest.sh");
    write_program(&script, b"#!/bin/sh\nif [ \"$1\" -gt 0 ]; then \"$0\" $(($1 - 1)) \"$2\"; exit $?; fi\nscript -qc \"$2\" /dev/null\nexit 0\n");
    let mut command = world.command(&script);
    command.args(["40", &words]);
    agent.run(&command, b"");
    assert_eq!(kind(&file), "stranger");
    let spaced = ["unshare", "--pid", "--fork", "--mount-proc"];
    let works = run(shell(&world, &format!("{} true", spaced.join(" "))), b"").code == Some(0);
    if !works {
        eprintln!("skipped: no pid namespaces here");
        return;
    }
    let (words, file) = whoami(&world, "spaced");
    let line = format!("{} script -qc {} /dev/null", spaced.join(" "), quoted(&words));
    agent.run(&shell(&world, &line), b"");
    assert_eq!(kind(&file), "stranger");
}

#[test]
fn s7_a_command_that_a_program_puts_into_a_tmux_server_is_not_the_persons() {
    let world = World::new();
    if sandbox::find_in_path("tmux").is_none() || !world.has_person() {
        return;
    }
    let socket = world.path("tmux.sock").display().to_string();
    let tmux = |words: &[&str]| {
        let mut command = world.command("tmux");
        command.args(["-f", "/dev/null", "-S", &socket]).args(words);
        run(command, b"").expect(0)
    };
    tmux(&["new-session", "-d", "-s", "t", "sh -i"]);
    tmux(&["set", "-g", "default-shell", "/bin/sh"]);
    let (words, typed) = whoami(&world, "typed");
    tmux(&["new-window", "-t", "t:"]);
    tmux(&["send-keys", "-t", "t:", &words, "Enter"]);
    let person = kind(&typed);
    let (words, asked) = whoami(&world, "asked");
    tmux(&["new-window", "-t", "t:", &words]);
    let program = kind(&asked);
    // A terminal of its own does not hide the server, nor does the person's.
    let (words, scripted) = whoami(&world, "scripted");
    tmux(&["run-shell", "-b", &format!("script -qc {} /dev/null", quoted(&words))]);
    let hidden = kind(&scripted);
    let (words, piped) = whoami(&world, "piped");
    let terminal = tmux(&["display", "-p", "-t", "t:0", "#{pane_tty}"]).stdout;
    tmux(&["pipe-pane", "-t", "t:0", &format!("({words}) < {}", terminal.trim())]);
    let borrowed = kind(&piped);
    tmux(&["kill-server"]);
    assert_eq!((person, program), (json!("person"), json!("stranger")));
    assert_ne!(hidden, "person");
    assert_ne!(borrowed, "person");
}

/// Two sessions, each with a process of its own, and a message that waits for the second.
fn two(world: &World) -> (Puppet<'_>, Puppet<'_>, String) {
    let (ada, lin) = (
        Puppet::start_in_process(world, Style::Claude, "ada"),
        Puppet::start_in_process(world, Style::Claude, "lin"),
    );
    let message = ada.send("lin", "for lin alone");
    (ada, lin, message)
}

#[test]
fn s11_a_peers_id_in_the_environment_names_no_one_else() {
    let world = World::talkative();
    let (ada, lin, message) = two(&world);
    let below = |words: &[&str]| -> Done {
        let mut command = world.baton(words);
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", &lin.session);
        ada.below(&command)
    };
    assert_eq!(below(&["whoami", "--json"]).expect(0).json()["name"], "ada");
    assert!(!below(&["inbox", "--json"]).stdout.contains("for lin alone"));
    // Outside of both it is neither.
    let mut outside = world.as_script(&["inbox", "--json"]);
    outside.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", &lin.session);
    run(outside, b"").expect_error(3, "identity-uncertain");
    assert_eq!(world.state(&message), "queued");
    assert_eq!(lin.shell(&["whoami", "--json"]).expect(0).json()["name"], "lin");
}

#[test]
fn s12_a_hook_for_a_peers_session_brings_nothing_and_changes_nothing() {
    let world = World::talkative();
    let (ada, lin, message) = two(&world);
    let before = world.who(&lin.session)["state"].clone();
    for (event, more) in [
        ("UserPromptSubmit", json!({"prompt": "go on"})),
        ("SessionStart", json!({"source": "resume"})),
        ("SessionEnd", json!({"reason": "other"})),
    ] {
        assert_eq!(ada.hook(&lin.payload(event, more)).text, "", "{event}");
        assert_eq!(
            (world.state(&message), world.who(&lin.session)["state"].clone()),
            ("queued".to_owned(), before.clone()),
            "{event}"
        );
    }
    let log = world.hook_log();
    assert!(log.len() == 3 && log.iter().all(|line| line.contains("not-your-session")), "{log:?}");
    // Its own hook still brings it.
    let printed = lin.hook(&lin.payload("UserPromptSubmit", json!({"prompt": "go on"})));
    assert!(printed.text.contains("for lin alone"), "{}", printed.text);
}

#[test]
fn s6_no_variable_and_no_field_makes_a_hook_another_agents() {
    let world = World::new();
    let agent = Shepherd::start(&world, "claude");
    let guard = |environment: &[(&str, &str)], more: Value| {
        let mut payload = json!({"session_id": "s", "hook_event_name": "PreToolUse", "cwd": world.project(), "tool_name": "Bash",
            "tool_input": {"command": "git push --force origin main"}, "tool_use_id": "t"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut command = world.baton(&["hook", "claude", "PreToolUse", "--guard"]);
        command.envs(environment.iter().copied());
        agent.run(&command, payload.to_string().as_bytes()).expect(0).stdout
    };
    let plain = guard(&[], json!({}));
    assert!(plain.contains("permissionDecision"), "{plain}");
    assert_eq!(guard(&[("COPILOT_CLI", "1"), ("COPILOT_PROJECT_DIR", "x")], json!({})), plain);
    assert_eq!(guard(&[], json!({"conversation_id": "c", "cursor_version": "1"})), plain);
}

#[test]
fn s12_a_hook_of_one_agent_below_another_makes_no_participant_and_no_question() {
    let world = World::new();
    let claude = Shepherd::start(&world, "claude");
    let payload = |event: &str, session: &str| {
        json!({"session_id": session, "hook_event_name": event, "source": "startup", "cwd": world.project(), "tool_name": "Bash",
            "tool_input": {"command": "git push --force origin main"}, "tool_use_id": "t", "turn_id": "u"})
        .to_string()
    };
    let there = |agent: &str| {
        let all = world.script(&["who", "--all", "--json"]).expect(0).json();
        all.as_array().unwrap().iter().filter(|one| one["agent"] == agent).count()
    };
    let logged = || world.hook_log().iter().filter(|line| line.contains("another agent")).count();
    claude.run(&world.baton(&["hook", "claude"]), payload("SessionStart", "own").as_bytes()).expect(0);
    for event in ["SessionStart", "PermissionRequest"] {
        claude.run(&world.baton(&["hook", "codex"]), payload(event, "phantom").as_bytes());
    }
    claude.run(
        &world.baton(&["hook", "copilot", "sessionStart"]),
        b"{\"sessionId\":\"p\",\"timestamp\":1,\"cwd\":\"/\"}",
    );
    assert_eq!((there("claude"), there("codex"), there("copilot")), (1, 0, 0), "{:?}", world.hook_log());
    assert_eq!(world.script(&["approvals", "--json"]).expect(0).json(), json!([]));
    assert_eq!(logged(), 3, "{:?}", world.hook_log());
    // The guard judges all the same.
    let judged = claude.run(
        &world.baton(&["hook", "codex", "PreToolUse", "--guard"]),
        payload("PreToolUse", "phantom").as_bytes(),
    );
    assert!(judged.stdout.contains("deny"), "{judged:?}");
    // A Codex that Claude Code runs is one.
    let codex = world.path("bin/codex");
    write_program(&codex, b"#!/bin/sh\n\"$@\"\nexit $?\n");
    let mut nested = world.command(&codex);
    nested.arg(crate::world::program()).args(["hook", "codex"]);
    nested.env("BATON_HOME", world.home());
    claude.run(&nested, payload("SessionStart", "nested").as_bytes()).expect(0);
    assert_eq!(there("codex"), 1, "{:?}", world.hook_log());
}

#[test]
fn s5_the_environment_of_an_agent_chooses_no_configuration() {
    let world = World::new();
    world.configure("");
    fs::create_dir_all(world.home()).unwrap();
    let recorded = world.path("home/.config/baton/config.toml");
    fs::write(world.home().join("config-path"), format!("{}\n", recorded.display())).unwrap();
    for folder in ["evil/baton", "evil/.config/baton"] {
        fs::create_dir_all(world.path(folder)).unwrap();
        fs::write(world.path(folder).join("config.toml"), "[guard]\nmode = \"off\"\n").unwrap();
    }
    let evil = world.path("evil").display().to_string();
    let judged = |variable: &str| {
        let payload = json!({"session_id": "s", "hook_event_name": "PreToolUse", "cwd": world.project(), "tool_name": "Bash",
            "tool_input": {"command": "git push --force origin main"}, "tool_use_id": "t"});
        let mut command = world.as_script(&["hook", "claude", "PreToolUse", "--guard"]);
        command.env(variable, &evil);
        run(command, payload.to_string().as_bytes()).expect(0).stdout
    };
    for variable in ["XDG_CONFIG_HOME", "HOME"] {
        assert!(judged(variable).contains("permissionDecision"), "{variable}: {}", judged(variable));
    }
}

#[test]
fn s5_a_damaged_record_lets_no_environment_choose_the_configuration() {
    let world = World::new();
    world.configure("");
    fs::create_dir_all(world.home()).unwrap();
    fs::create_dir_all(world.path("evil/.config/baton")).unwrap();
    let loose =
        "[guard]\nmode = \"off\"\n[approvals]\nauto_approve = [\"bash: git *\"]\n[jobs]\nallow = \"all\"\n";
    let evil = world.path("evil/.config/baton/config.toml");
    fs::write(&evil, loose).unwrap();
    let record = world.home().join("config-path");
    type Damage<'a> = &'a dyn Fn(&Path);
    let written = |text: &'static [u8]| move |record: &Path| fs::write(record, text).unwrap();
    let link = |record: &Path| std::os::unix::fs::symlink(&evil, record).unwrap();
    let folder = |record: &Path| fs::create_dir(record).unwrap();
    let pipe = |record: &Path| {
        let made = std::process::Command::new("mkfifo").arg(record).status().expect("mkfifo");
        assert!(made.success());
    };
    let (empty, garbage, relative) =
        (written(b""), written(b"\xff\x00\n\x01"), written(b"evil/.config/baton/config.toml\n"));
    let long = |record: &Path| fs::write(record, "/x".repeat(1 << 20)).unwrap();
    let kinds: [(&str, Damage<'_>); 7] = [
        ("empty", &empty),
        ("garbage", &garbage),
        ("relative", &relative),
        ("a link", &link),
        ("a folder", &folder),
        ("a pipe", &pipe),
        ("long", &long),
    ];
    for (kind, damage) in kinds {
        damage(&record);
        let payload = json!({"session_id": "s", "hook_event_name": "PreToolUse", "cwd": world.project(), "tool_name": "Bash",
            "tool_input": {"command": "git push --force origin main"}, "tool_use_id": "t"});
        let mut hook = world.as_script(&["hook", "claude", "PreToolUse", "--guard"]);
        hook.env("HOME", world.path("evil"));
        let said = run(hook, payload.to_string().as_bytes()).expect(0).stdout;
        assert!(said.contains("permissionDecision") && said.contains("config-path"), "{kind}: {said}");
        for words in [&["config", "--path", "--json"][..], &["guard", "list", "--json"]] {
            let mut command = world.as_script(words);
            command.env("HOME", world.path("evil"));
            let refused = run(command, b"");
            refused.expect_error(1, "config-malformed");
        }
        // Setup writes it again, whatever is there; a folder is left to the person.
        if kind != "a folder" {
            world.script(&["setup", "claude"]).expect(0);
            world.script(&["config", "--json"]).expect(0);
            fs::remove_file(&record).unwrap();
        } else {
            fs::remove_dir(&record).unwrap();
        }
    }
}

#[test]
fn s5_no_variable_in_front_of_a_command_gives_an_agents_job_more() {
    let world = World::new();
    world.configure("[jobs]\nallow = \"ask\"\n");
    let agent = Shepherd::start(&world, "claude");
    let payload = json!({"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": world.project()});
    agent.run(&world.baton(&["hook", "claude"]), payload.to_string().as_bytes()).expect(0);
    for folder in ["evil/baton", "evil/.config/baton"] {
        fs::create_dir_all(world.path(folder)).unwrap();
        fs::write(world.path(folder).join("config.toml"), "[jobs]\nallow = \"all\"\ndepth = 5\n").unwrap();
    }
    // A home of the agent's own names a configuration of its own.
    let home = world.path("evil/home");
    fs::create_dir_all(&home).unwrap();
    let own = world.path("evil/baton/config.toml");
    fs::write(home.join("config-path"), format!("{}\n", own.display())).unwrap();
    let evil = world.path("evil");
    for (variable, value) in
        [("XDG_CONFIG_HOME", &evil), ("HOME", &evil), ("BATON_HOME", &home), ("BATON_CONFIG", &own)]
    {
        let mut command = world.baton(&["job", "start", "claude", "x", "--allow", "all", "--json"]);
        command.env(variable, value);
        agent.run(&command, b"").expect_error(3, "not-a-person");
        let mut command = world.baton(&["config", "--json"]);
        command.env(variable, value);
        let shown = agent.run(&command, b"").expect(0).stdout;
        assert!(!shown.contains("\"all\""), "{variable}: {shown}");
    }
}

/// A child that has left its session is marked, and neither removes the hooks nor reads what peers
/// write to each other.
#[test]
fn s10_what_was_born_below_an_agent_runs_no_setup_and_reads_no_mail_of_others() {
    let world = World::new();
    let agent = Shepherd::start(&world, "claude");
    let payload = json!({"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": world.project()});
    agent.run(&world.baton(&["hook", "claude"]), payload.to_string().as_bytes()).expect(0);
    let ada = Puppet::start(&world, Style::Codex, "ada");
    Puppet::start(&world, Style::Codex, "lin");
    ada.send("lin", "BETWEEN-US");
    let home = quoted(&world.home().display().to_string());
    for (words, expected) in [("setup claude --remove", "3"), ("doctor --fix", "3"), ("mail --all", "0")] {
        let (out, code) = (world.path("said"), world.path("code"));
        let line = format!(
            "setsid -f sh -c {}",
            quoted(&format!(
                "sleep 0.2; {} --home {home} {words} > {} 2>&1; echo $? > {}.draft; mv {}.draft {}",
                quoted(program()),
                out.display(),
                code.display(),
                code.display(),
                code.display()
            ))
        );
        agent.run(&shell(&world, &line), b"").expect(0);
        let ended = wait::poll(LIMIT, || fs::read_to_string(&code).ok()).expect("it ran");
        let said = fs::read_to_string(&out).unwrap();
        assert_eq!(ended.trim(), expected, "{words}: {said}");
        assert!(!said.contains("BETWEEN-US"), "{words}: {said}");
        fs::remove_file(&code).unwrap();
    }
}
