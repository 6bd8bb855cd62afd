//! M10, M11, M15 (who may be whom) and M18.

use crate::paper::messages_in;
use crate::puppet::{Moment, Puppet, Style};
use crate::world::{Done, World, program, quoted, run};
use baton_testkit::process::write_program;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Everything below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        found.push(entry.path().display().to_string());
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn m10_hostile_session_ids_stay_data() {
    let hostile = [
        "../../../../tmp/evil".to_owned(),
        "/etc/passwd".to_owned(),
        "a/../../b".to_owned(),
        "'; DROP TABLE session; --".to_owned(),
        "\"quoted\" `back` $(touch evil) %s %n".to_owned(),
        "line\nbreak\ttab\r".to_owned(),
        "bell\u{7}\u{1b}[2Jescape".to_owned(),
        "😀👩‍👩‍👧".to_owned(),
        "\u{202e}dlrow\u{202c}\u{200f}".to_owned(),
        "-rf".to_owned(),
        "--json".to_owned(),
        "user".to_owned(),
        "agent:codex".to_owned(),
        " ".to_owned(),
        "x".repeat(512),
    ];
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let before = files(&world.path(""));
    for (n, id) in hostile.iter().enumerate() {
        // Its transcript has a plain name; only the id is hostile.
        let mut puppet = Puppet::begin(&world, Style::Claude, &format!("plain{n}"), "");
        puppet.session.clone_from(id);
        puppet.session_start("startup");
        let name = format!("hostile{n}");
        puppet.shell(&["name", &name]).expect(0);
        assert_eq!(world.who(id)["name"], json!(name));
        let message = sender.send(&name, "hello");
        puppet.settle_down();
        puppet.assert_heard_once(&message, id);
        // Nothing of it reaches a terminal raw.
        let shown = world.script(&["who"]).expect(0).stdout
            + &world.script(&["log", "--limit", "20"]).expect(0).stdout;
        assert!(
            !shown
                .chars()
                .any(|c| c.is_control() && !"\n\t".contains(c) || "\u{202e}\u{202c}\u{200f}".contains(c)),
            "{shown:?}"
        );
    }
    let known: Vec<String> =
        files(&world.path("")).into_iter().filter(|file| !before.contains(file)).collect();
    let expected =
        |file: &String| ["/claude/plain", "/log/", "/baton/baton.db"].iter().any(|part| file.contains(part));
    assert!(known.iter().all(expected), "{known:?}");
}

#[test]
fn m10_ids_that_are_too_long_or_empty_are_refused_without_harm() {
    let world = World::new();
    for id in ["x".repeat(10_240), String::new()] {
        let puppet = Puppet::begin(&world, Style::Claude, "long", "long");
        let mut long = puppet.clone();
        long.session = id;
        assert_eq!(long.session_start("startup").text, "");
        assert_eq!(long.hook(&long.payload("Stop", json!({}))).text, "");
    }
    assert_eq!(world.script(&["who", "--all", "--json"]).expect(0).json(), json!([]));
    let log = world.hook_log();
    assert!(log.len() == 4 && log.iter().all(|line| line.len() < 800), "{log:?}");
}

#[test]
fn m10_hostile_names_and_tags_are_refused_and_echoed_harmlessly() {
    let world = World::new();
    let puppet = Puppet::start(&world, Style::Claude, "plain");
    let long = "n".repeat(10_240);
    let hostile = [
        "",
        "../up",
        "/abs",
        "a b",
        "A",
        "é",
        "😀",
        "\u{202e}x",
        "a\nb",
        "a\u{7}",
        "'; --",
        "user",
        "script",
        "baton",
        "all",
        "-x",
        &long,
    ];
    for name in hostile {
        for words in [&["name", "--json", "--", name][..], &["tag", "add", "--json", "--", name]] {
            let refused = puppet.shell(words);
            if words[0] == "tag" && ["user", "script", "baton", "all"].contains(&name) {
                refused.expect(0);
                continue;
            }
            let shown = refused.stderr.clone();
            refused.expect_error(1, "bad-name");
            assert!(
                shown.len() < 500 && !shown.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'),
                "{shown:?}"
            );
        }
    }
    assert_eq!(puppet.shell(&["whoami", "--json"]).expect(0).json()["name"], "plain");
}

#[test]
fn m10_two_processes_with_one_id_are_one_recipient() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut one = Puppet::start(&world, Style::Claude, "reader");
    one.turn_in_peace();
    // The same session, resumed in another terminal while the first still runs.
    let mut other = Puppet::begin(&world, Style::Claude, &one.session, "reader");
    assert_ne!(one.pid(), other.pid());
    other.paper = one.paper.clone();
    other.session_start("resume");
    let who: Vec<Value> = serde_json::from_str(&world.script(&["who", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(who.iter().filter(|row| row["session_id"] == json!(one.session)).count(), 1);
    let message = sender.send("reader", "for whoever comes first");
    let brought: Vec<bool> = [&mut one, &mut other]
        .map(|puppet| {
            let payload = puppet.open(Moment::Prompt).remove(0);
            puppet
                .understood(&puppet.hook(&payload))
                .is_some_and(|text| messages_in(&text) == [message.as_str()])
        })
        .to_vec();
    assert_eq!(brought, [true, false]);
}

#[test]
fn m10_a_known_session_keeps_its_participant_whatever_its_process_says() {
    let world = World::talkative();
    let (mut ada, lin) =
        (Puppet::start(&world, Style::Claude, "ada"), Puppet::start(&world, Style::Claude, "lin"));
    // Its shell names another session's process: the id is the truth.
    let mut command = world.baton(&["whoami", "--json"]);
    command.envs(ada.environment()).env("CLAUDE_PID", lin.pid().unwrap().to_string());
    assert_eq!(run(command, b"").expect(0).json()["name"], "ada");
    // A resume in lin's process does not make it lin.
    let mut hook = world.baton(&["hook", "claude"]);
    hook.envs(lin.environment());
    run(hook, &ada.payload("SessionStart", json!({"source": "resume"}))).expect(0);
    assert_eq!(world.who(&ada.session)["name"], "ada");
    let message = lin.send("ada", "hello");
    ada.settle_down();
    ada.assert_heard_once(&message, "ada stays ada");
}

#[test]
fn m11_hooks_of_a_subagent_never_take_the_parents_mail() {
    for style in Style::BOTH {
        let world = World::talkative();
        let sender = Puppet::start(&world, Style::Codex, "sender");
        let mut puppet = Puppet::start(&world, style, "parent");
        puppet.turn_in_peace();
        puppet.event(Moment::Prompt);
        puppet.answer(1);
        let message = sender.send("parent", "for the parent");
        let events = [
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolBatch",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "SessionEnd",
        ];
        for event in events {
            puppet.quiet_hook(event, json!({"agent_id": "sub-1", "agent_type": "general-purpose", "source": "startup",
                "tool_name": "Bash", "tool_use_id": "toolu_sub", "tool_calls": [{"tool_use_id": "toolu_sub"}], "prompt": "x"}));
        }
        assert_eq!(
            (world.state(&message), world.who(&puppet.session)["state"].clone()),
            ("queued".to_owned(), json!("busy"))
        );
        puppet.event(Moment::Tools);
        puppet.finish_turn();
        puppet.settle_down();
        puppet.assert_heard_once(&message, "the parent");
    }
}

/// A subagent's shell: Codex says so; Claude Code's can't be told apart, and what it takes goes
/// back to its parent.
#[test]
fn m11_a_subagents_inbox_never_keeps_the_parents_mail() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut codex = Puppet::start(&world, Style::Codex, "parent");
    let mut claude = Puppet::start(&world, Style::Claude, "other");
    let (to_codex, to_claude) =
        (sender.send("parent", "for the parent"), sender.send("other", "for the other"));
    for words in [&["inbox", "--json"][..], &["inbox", "--peek", "--json"], &["ask", "other", "x", "--json"]]
    {
        let mut command = codex.shell_command(words);
        command.env("CODEX_THREAD_ID", "the subagent's own");
        run(command, b"").expect_error(3, "subagent");
    }
    codex.settle_down();
    codex.assert_heard_once(&to_codex, "codex");
    claude.turn_in_peace();
    assert_eq!(claude.heard(&to_claude), 1);
    let next = sender.send("other", "taken by a subagent");
    claude.event(Moment::Prompt);
    claude.answer(0);
    claude.paper.flush();
    let second = sender.send("other", "taken by a subagent too");
    let taken = claude.shell(&["inbox"]).expect(0).stdout;
    assert_eq!(messages_in(&taken), [second.as_str()]);
    // It is in the subagent's own transcript, and on a side chain of its parent's.
    let result = json!({"type": "user", "isSidechain": true, "message": {"content": [{"type": "tool_result", "tool_use_id": "sub", "content": taken}]}});
    claude.paper.raw(result);
    claude.finish_turn();
    claude.settle_down();
    claude.assert_heard_once(&next, "claude");
    claude.assert_heard_once(&second, "claude");
}

/// Runs words of baton below a program that is called like an agent, with an empty environment but
/// for the home.
fn below(world: &World, agent: &str, words: &str) -> Done {
    let fake = world.path("bin").join(agent);
    // It must stay the parent, so it may not end with the command.
    write_program(&fake, b"#!/bin/sh\nsh -c \"$1\"\nexit $?\n");
    let line = format!(
        "env -i BATON_HOME={} {} {words}",
        quoted(&world.home().display().to_string()),
        quoted(program())
    );
    run(world.command(fake).arg(line), b"")
}

trait Argument {
    fn arg(self, word: String) -> Self;
}

impl Argument for std::process::Command {
    fn arg(mut self, word: String) -> Self {
        std::process::Command::arg(&mut self, word);
        self
    }
}

#[test]
fn m15_no_caller_below_an_agent_is_the_person_even_on_a_terminal() {
    let world = World::talkative();
    let person = world.has_person();
    for style in Style::BOTH {
        let puppet = Puppet::start(&world, style, &format!("{}er", style.name()));
        let environment = puppet.environment();
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let tries = ["--as user", "--as codexer", "--as claudeer", "--as user --json"];
        for claim in tries {
            let plain: Vec<&str> = ["send", "user", "hi"].into_iter().chain(claim.split(' ')).collect();
            let refused = puppet.shell(&plain);
            assert_eq!(refused.code, Some(3), "{style:?}, {claim}: {refused:?}");
            let refused =
                world.on_terminal(&format!("{} send user hi {claim}", quoted(program())), &environment);
            assert_eq!(refused.code, Some(3), "{style:?} on a terminal, {claim}: {refused:?}");
            assert!(refused.stdout.contains("--as is for the person"), "{refused:?}");
        }
        // Without a claim it is itself, terminal or not.
        let sent =
            world.on_terminal(&format!("{} send user hi --json", quoted(program())), &environment).expect(0);
        let mail =
            world.script(&["mail", sent.json()["message_id"].as_str().unwrap(), "--json"]).expect(0).json();
        assert_eq!((&mail["sender"], &mail["from_name"]), (&json!(style.name()), &json!(puppet.name)));
        // An environment that was wiped does not help: the process tree has the agent.
        let terminal = format!(
            "-V >/dev/null; script --quiet --return --command {} /dev/null",
            quoted(&format!("{} whoami --json", program()))
        );
        let told = below(&world, style.name(), &terminal);
        let kind = serde_json::from_str::<Value>(told.stdout.trim()).unwrap()["kind"].clone();
        assert_eq!(kind, "stranger", "{style:?}: {told:?}");
        let refused = below(&world, style.name(), "send user hi --as user");
        assert_eq!(refused.code, Some(3), "{refused:?}");
    }
    assert_eq!(
        world.script(&["send", "user", "hi", "--as", "user", "--json"]).expect_error(3, "not-a-person"),
        "leave --as out"
    );
    if person {
        assert_eq!(
            world.person(&["whoami", "--as", "codexer", "--json"]).expect(0).json()["name"],
            "codexer"
        );
        let sent = world.person(&["send", "codexer", "from me", "--json"]).expect(0).json();
        let mail = world.script(&["mail", sent["message_id"].as_str().unwrap(), "--json"]).expect(0).json();
        assert_eq!((&mail["from"], &mail["from_name"]), (&json!("user"), &json!("user")));
    }
    let from_user = world.mail().into_iter().filter(|row| row["from_name"] == "user").count();
    assert_eq!(from_user, usize::from(person), "only the person's own mail is from the person");
}

/// One agent that runs the other in its shell: the inner one's environment has both.
#[test]
fn m10_an_agent_inside_another_agents_shell_is_itself() {
    let world = World::talkative();
    let (claude, codex) =
        (Puppet::start(&world, Style::Claude, "outer"), Puppet::start(&world, Style::Codex, "inner"));
    for (inner, name) in [(&codex, "codex"), (&claude, "claude")] {
        let fake = world.path("bin").join(name);
        write_program(&fake, b"#!/bin/sh\n\"$@\"\nexit $?\n");
        let mut command = world.command(&fake);
        command.args([program(), "whoami", "--json"]).envs(claude.environment()).envs(codex.environment());
        let told = run(command, b"").expect(0).json();
        assert_eq!(told["name"], json!(inner.name), "below {name}");
    }
}

#[test]
fn m18_two_projects_do_not_see_each_other_unless_asked_for() {
    let world = World::talkative();
    let here = Puppet::start(&world, Style::Claude, "here");
    let mut there = Puppet::begin(&world, Style::Codex, "codex-there", "there");
    let cwd = world.path("other");
    let mut payload: Value =
        serde_json::from_slice(&there.payload("SessionStart", json!({"source": "startup"}))).unwrap();
    payload["cwd"] = json!(cwd);
    there.hook(payload.to_string().as_bytes());
    there.shell(&["name", "there"]).expect(0);
    let names = |done: Done| -> Vec<String> {
        done.expect(0)
            .json()
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(here.shell(&["who", "--json"])), ["here"]);
    assert_eq!(names(here.shell(&["who", "--all", "--json"])).len(), 2);
    let hint = here.shell(&["send", "there", "hi", "--json"]).expect_error(1, "other-project");
    assert_eq!(hint, "write other:there");
    let full = format!("{}:there", world.who("codex-there")["project"].as_str().unwrap());
    assert!(full.ends_with("/other:there"), "{full}");
    here.shell(&["send", "codex-there", "hi", "--json"]).expect_error(1, "other-project");
    here.shell(&["send", "agent:codex", "hi", "--json"]).expect_error(1, "unknown-recipient");
    here.shell(&["ask", "there", "hi", "--json"]).expect_error(1, "other-project");
    // Asked for by its full address, or by the folder's name, it works, and says where it comes
    // from.
    let sent = [here.send(&full, "by path"), here.send("other:there", "by name")];
    let printed = there.event(Moment::Prompt);
    let text = there.understood(&printed[0]).unwrap();
    assert_eq!(messages_in(&text), sent);
    assert!(
        text.contains(&format!(" project=\"{}\"", world.project().canonicalize().unwrap().display())),
        "{text}"
    );
    // The answer needs no address.
    let reply = there.shell(&["reply", &sent[0], "back", "--json"]).expect(0).json();
    let mut here = here;
    here.settle_down();
    here.assert_heard_once(reply["message_id"].as_str().unwrap(), "across projects");
    // What a script sees is its project's, and everything if it asks; a session sees its own mail
    // wherever it went.
    let inside = there.shell(&["send", "user", "for you", "--json"]).expect(0).json();
    let bodies = |done: Done| -> Vec<String> {
        let rows = done.expect(0).json();
        rows.as_array().unwrap().iter().map(|row| row["body"].as_str().unwrap().to_owned()).collect()
    };
    let both = ["by path", "by name", "back"];
    assert_eq!(bodies(world.script(&["mail", "--json"])), both);
    let everything = ["by path", "by name", "back", "for you"];
    assert_eq!(bodies(world.script(&["mail", "--all", "--json"])), everything);
    let mut command = world.as_script(&["mail", "--json"]);
    command.current_dir(&cwd);
    assert_eq!(bodies(run(command, b"")), everything, "each has a side there");
    assert_eq!(bodies(here.shell(&["mail", "--json"])), both);
    assert_eq!(bodies(here.shell(&["mail", "--all", "--json"])), both, "not other sessions' mail");
    world.script(&["mail", inside["message_id"].as_str().unwrap(), "--json"]).expect(0);
    // A participant without a project is in every project.
    let noted = world.script(&["send", "user", "no project", "--json"]).expect(0).json();
    assert_eq!(bodies(world.script(&["mail", "--json"])), ["by path", "by name", "back", "no project"]);
    assert_eq!(noted["to"][0]["name"], "user");
    // Tags end at the project's border too.
    there.shell(&["tag", "add", "backend"]).expect(0);
    here.shell(&["send", "#backend", "hi", "--json"]).expect_error(1, "unknown-recipient");
}
