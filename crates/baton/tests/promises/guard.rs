//! The guard's hooks: judged without a store, held where nothing can be judged, loosened only by
//! the person.

use crate::world::{Done, World, run};
use baton_testkit::wait;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Every agent with hooks, its event before a tool, and a payload of a command.
const HOOKED: [(&str, &str); 5] = [
    ("claude", "PreToolUse"),
    ("codex", "PreToolUse"),
    ("gemini", "BeforeTool"),
    ("copilot", "preToolUse"),
    ("cursor", "preToolUse"),
];

fn payload(world: &World, agent: &str, event: &str, command: &str) -> Vec<u8> {
    let cwd = world.project();
    let payload = match agent {
        "copilot" => {
            json!({"sessionId": "s", "cwd": cwd, "toolName": "bash", "toolArgs": {"command": command}})
        }
        "cursor" => json!({
            "conversation_id": "s", "cwd": cwd, "hook_event_name": event, "tool_name": "Shell",
            "tool_input": {"command": command},
        }),
        _ => {
            let tool = if agent == "gemini" { "run_shell_command" } else { "Bash" };
            json!({
                "session_id": "s", "cwd": cwd, "hook_event_name": event, "tool_name": tool,
                "tool_input": {"command": command},
            })
        }
    };
    payload.to_string().into_bytes()
}

fn hook(world: &World, agent: &str, event: &str) -> Command {
    world.baton(&["hook", agent, event, "--guard"])
}

fn claude(world: &World, command: &str) -> Done {
    run(hook(world, "claude", "PreToolUse"), &payload(world, "claude", "PreToolUse", command)).expect(0)
}

/// The answer to Claude Code: the decision and its reason.
fn decision(done: &Done) -> (String, String) {
    if done.stdout.is_empty() {
        return ("allow".to_owned(), String::new());
    }
    let said = &done.json()["hookSpecificOutput"];
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    (text("permissionDecision"), text("permissionDecisionReason"))
}

fn log(world: &World) -> Vec<Value> {
    let printed = world.script(&["guard", "log", "--json"]).expect(0).json();
    printed.as_array().unwrap().clone()
}

/// An entry of an older version gives the hook less time than a person needs, and in most agents
/// what takes too long runs.
#[test]
fn only_a_hook_that_may_wait_waits_for_the_person_and_then_says_what_it_said_before() {
    let world = World::new();
    world.configure("[approvals]\nhold = \"1s\"\n");
    let asks = |hold: &[&str]| {
        let mut command = world.baton(&[&["hook", "claude", "PreToolUse", "--guard"], hold].concat());
        command.env("CLAUDE_CODE_SESSION_ATTENDED", "0");
        let began = Instant::now();
        let done = run(command, &payload(&world, "claude", "PreToolUse", "eval \"$NOT_SET\"")).expect(0);
        (decision(&done), began.elapsed() >= Duration::from_secs(1))
    };
    let ((said, why), waited) = asks(&[]);
    assert_eq!((said.as_str(), waited), ("ask", false), "{why}");
    assert!(!world.home().join("approvals.db").exists(), "nothing was asked");
    assert_eq!(asks(&["--hold"]), (("ask".to_owned(), why), true));
    assert_eq!(
        world.script(&["approvals", "--json"]).expect(0).json(),
        json!([]),
        "and nothing waits any more"
    );
}

#[test]
fn g1_a_forbidden_call_is_refused_in_every_agent_without_a_store() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    for (agent, event) in HOOKED {
        let done = run(hook(&world, agent, event), &payload(&world, agent, event, "sudo id")).expect(0);
        let said = done.json().to_string();
        assert!(said.contains("deny") && said.contains("block-sudo"), "{agent}: {said}");
        assert!(
            said.contains("only the person can switch it off: `baton guard disable block-sudo`"),
            "{said}"
        );
        let done = run(hook(&world, agent, event), &payload(&world, agent, event, "ls -l")).expect(0);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""), "{agent}");
    }
    let mut left: Vec<_> =
        fs::read_dir(world.home()).unwrap().flatten().map(|file| file.file_name()).collect();
    left.sort();
    assert_eq!(left, ["guard.calls", "guard.log"], "no store was made");
    for file in &left {
        let mode = fs::metadata(world.home().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
    let agents: Vec<_> = log(&world).iter().map(|entry| entry["agent"].clone()).collect();
    assert_eq!(agents, HOOKED.map(|(agent, _)| json!(agent)));
    let entry = &log(&world)[0];
    assert_eq!(
        [&entry["session"], &entry["tool"], &entry["rule"], &entry["decision"]],
        ["s", "Bash", "block-sudo", "deny"]
    );
    assert!(!entry.to_string().contains("sudo id"), "what was called may hold a secret: {entry}");
}

/// A call may say where it runs. That makes another folder no part of the project.
#[test]
fn g1_a_command_is_judged_where_it_runs() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    for (folder, expected) in [("other", "deny"), ("project/sub", "allow")] {
        let payload = json!({
            "session_id": "s", "cwd": world.project(), "hook_event_name": "BeforeTool",
            "tool_name": "run_shell_command",
            "tool_input": {"command": "rm -rf build", "dir_path": world.path(folder)},
        });
        let done = run(hook(&world, "gemini", "BeforeTool"), payload.to_string().as_bytes()).expect(0);
        let said = if done.stdout.is_empty() { "allow" } else { "deny" };
        assert_eq!(said, expected, "{folder}: {}", done.stdout);
    }
}

#[test]
fn g2_what_can_t_be_read_does_not_simply_run() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    let good = payload(&world, "claude", "PreToolUse", "ls");
    let mut deep = vec![b'['; 200_000];
    deep.extend(vec![b']'; 200_000]);
    let bad: [(&str, Vec<u8>); 8] = [
        ("nothing", Vec::new()),
        ("no JSON", b"hello".to_vec()),
        ("half", good[..good.len() / 2].to_vec()),
        ("null", b"null".to_vec()),
        ("no tool", b"{\"session_id\":\"s\"}".to_vec()),
        ("bytes", vec![0xff; 1000]),
        ("deep", deep),
        ("huge", vec![b' '; 17 << 20]),
    ];
    for (set, expected) in [("ask", "ask"), ("deny", "deny")] {
        world.configure(&format!("[guard]\non_failure = \"{set}\"\n"));
        for (what, payload) in &bad {
            let done = run(hook(&world, "claude", "PreToolUse"), payload).expect(0);
            assert_eq!(decision(&done).0, expected, "{what}");
        }
    }
    assert_eq!(world.hook_log().len(), 2 * bad.len(), "{:?}", world.hook_log());
    for (agent, event) in HOOKED {
        let done = run(hook(&world, agent, event), b"hello").expect(0);
        assert!(done.json().to_string().contains("deny"), "{agent}: {}", done.stdout);
    }
    // After a tool there is nothing to hold.
    let done = run(hook(&world, "claude", "PostToolUse"), b"hello").expect(0);
    assert_eq!(done.stdout, "");
}

#[test]
fn g3_only_the_person_s_own_file_loosens() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    let off = "[guard]\nmode = \"off\"\n";
    fs::write(world.project().join(".baton.toml"), off).unwrap();
    assert_eq!(decision(&claude(&world, "sudo id")).0, "deny", "a repository");
    let named = world.path("named.toml");
    fs::write(&named, off).unwrap();
    let mut command = hook(&world, "claude", "PreToolUse");
    command.env("BATON_CONFIG", &named);
    let done = run(command, &payload(&world, "claude", "PreToolUse", "sudo id")).expect(0);
    assert_eq!(decision(&done).0, "deny", "the environment, which a repository can set");
    world.configure(off);
    fs::remove_file(world.project().join(".baton.toml")).unwrap();
    assert_eq!(decision(&claude(&world, "sudo id")).0, "allow", "the person");
    // A file with a mistake loosens nothing either.
    world.configure("[guard]\nmode = \"of\"\n");
    let (held, why) = decision(&claude(&world, "ls"));
    assert_eq!(held, "ask");
    assert!(why.contains("line 2"), "{why}");
    assert_eq!(log(&world).last().unwrap()["rule"], "");
    world.script(&["guard", "list", "--json"]).expect_error(1, "config-malformed");
}

#[test]
fn g4_hooks_at_once_say_the_same_and_all_are_written_down() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    thread::scope(|scope| {
        let calls: Vec<_> = (0..16)
            .map(|n| {
                let command = if n % 2 == 0 { "sudo id" } else { "ls" };
                let world = &world;
                scope.spawn(move || (n, decision(&claude(world, command)).0))
            })
            .collect();
        for call in calls {
            let (n, said) = call.join().unwrap();
            assert_eq!(said, if n % 2 == 0 { "deny" } else { "allow" });
        }
    });
    assert_eq!(log(&world).len(), 8);
}

#[test]
fn g5_a_secret_is_taken_out_and_the_form_of_the_output_stays() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    let secret = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    let payload = |out: &str| {
        json!({
            "session_id": "s", "cwd": world.project(), "hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_input": {"command": "cat x"},
            "tool_response": {"stdout": out, "stderr": "", "interrupted": false, "isImage": false},
        })
        .to_string()
        .into_bytes()
    };
    let done = run(hook(&world, "claude", "PostToolUse"), &payload(&format!("a {secret} b"))).expect(0);
    let new = &done.json()["hookSpecificOutput"]["updatedToolOutput"];
    let out = new["stdout"].as_str().unwrap();
    assert!(out.starts_with("a ") && out.ends_with(" b") && !out.contains(secret), "{out}");
    assert_eq!((&new["interrupted"], &new["stderr"]), (&json!(false), &json!("")));
    assert!(!fs::read_to_string(world.home().join("guard.log")).unwrap().contains(secret));
    let done = run(hook(&world, "claude", "PostToolUse"), &payload("nothing")).expect(0);
    assert_eq!(done.stdout, "");
}

#[test]
fn g6_only_the_person_switches_rules() {
    let world = World::new();
    let config = world.path("home/.config/baton/config.toml");
    for words in [["guard", "disable", "block-sudo", "--json"], ["guard", "enable", "block-sudo", "--json"]] {
        world.script(&words).expect_error(3, "not-a-person");
    }
    // An agent's shell, even on a terminal.
    let line = format!("{} guard disable block-sudo", crate::world::quoted(crate::world::program()));
    let done = world.on_terminal(&line, &[("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "s")]);
    assert_eq!(done.code, Some(3), "{}", done.stdout);
    assert!(!config.exists());
    if !world.has_person() {
        return;
    }
    world.person(&["guard", "disable", "block-sudo"]).expect(0);
    assert_eq!(decision(&claude(&world, "sudo id")).0, "allow");
    assert_eq!(world.person(&["guard", "disable", "block-sudo", "--project"]).code, Some(1));
    world.person(&["guard", "enable", "block-sudo", "--project"]).expect(0);
    assert_eq!(decision(&claude(&world, "sudo id")).0, "deny", "a project may tighten");
    assert_eq!(world.person(&["guard", "disable", "no-such-rule"]).code, Some(64));
}

fn git(world: &World, words: &[&str]) {
    let mut command = world.command("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]).args(words);
    run(command, b"").expect(0);
}

/// The end of a turn of every agent with hooks.
fn stop(world: &World, agent: &str, active: bool) -> Done {
    let (cwd, transcript) = (world.project(), world.path("transcript.jsonl"));
    fs::write(&transcript, "").unwrap();
    let (event, payload) = match agent {
        "copilot" => (
            "agentStop",
            json!({
                "sessionId": "s", "cwd": cwd, "transcriptPath": transcript, "stopReason": "end_turn",
                "timestamp": 1_794_770_912_660_u64, "stop_hook_active": active,
            }),
        ),
        "cursor" => (
            "stop",
            json!({
                "conversation_id": "s", "cwd": cwd, "hook_event_name": "stop", "status": "completed",
                "loop_count": u8::from(active),
            }),
        ),
        _ => {
            let event = if agent == "gemini" { "AfterAgent" } else { "Stop" };
            let payload = json!({
                "session_id": "s", "cwd": cwd, "hook_event_name": event, "transcript_path": transcript,
                "stop_hook_active": active, "turn_id": "t", "prompt_id": "t", "prompt": "p",
            });
            (event, payload)
        }
    };
    run(world.baton(&["hook", agent, event]), payload.to_string().as_bytes()).expect(0)
}

#[test]
fn g7_a_turn_is_held_three_times_and_then_let_go() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    world.configure("[guard]\nenable = [\"require-commit-before-stop\"]\n");
    fs::write(world.project().join("new.txt"), "x").unwrap();
    for (agent, _) in HOOKED {
        let said: Vec<bool> = [false, true, true, true, true]
            .map(|active| stop(&world, agent, active).stdout.contains("require-commit-before-stop"))
            .to_vec();
        // Gemini CLI does not always say that it was held, so it is let go for good until a turn
        // has ended.
        let expected = if agent == "gemini" {
            vec![true, true, true, false, true]
        } else {
            vec![true, true, true, false, false]
        };
        assert_eq!(said, expected, "{agent}: {:?}", world.hook_log());
    }
    // A new turn is a new count, whatever became of the last; mail or another hook that held it is
    // none of ours.
    assert!(stop(&world, "claude", false).stdout.contains("in no commit"));
    assert!(stop(&world, "claude", false).stdout.contains("in no commit"));
    git(&world, &["add", "new.txt"]);
    git(&world, &["commit", "-qm", "x"]);
    for (agent, _) in HOOKED {
        assert_eq!(stop(&world, agent, false).stdout, "", "{agent}: all is committed");
    }
    fs::write(world.project().join("newer.txt"), "x").unwrap();
    assert!(stop(&world, "claude", true).stdout.contains("in no commit"), "mail had kept it going");
    let entry = log(&world)[0].clone();
    assert_eq!(
        [&entry["rule"], &entry["decision"], &entry["event"]],
        ["require-commit-before-stop", "deny", "Stop"]
    );
}

#[test]
fn g7_what_can_t_be_found_out_holds_no_turn() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    let rules = ["commit", "push", "pr", "no-conflicts", "ci-green"]
        .map(|rule| format!("\"require-{rule}-before-stop\""));
    world.configure(&format!("[guard]\nenable = [{}]\n", rules.join(", ")));
    fs::remove_dir_all(world.project().join(".git")).unwrap();
    assert_eq!(stop(&world, "claude", false).stdout, "", "no repository");
    git(&world, &["init", "-q"]);
    assert_eq!(stop(&world, "claude", false).stdout, "", "no commit, no remote, no tool that knows more");
    // A rule file that can't be read holds nothing either.
    world.configure("[guard]\nenable = 3\n");
    assert_eq!(stop(&world, "claude", false).stdout, "");
    assert!(world.hook_log().last().unwrap().contains("config-malformed"), "{:?}", world.hook_log());
}

/// A `gh` that says this and ends with this code, or takes its time.
fn gh(world: &World, script: &str) {
    let file = world.path("bin/gh");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn g7_what_the_host_says_holds_a_turn_and_its_silence_does_not() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    world.configure("[guard]\nenable = [\"require-pr-before-stop\", \"require-ci-green-before-stop\", \"require-push-before-stop\"]\n");
    git(&world, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    git(&world, &["checkout", "-qb", "feature"]);
    let held = |active| {
        let said = stop(&world, "claude", active).stdout;
        ["require-push", "require-pr", "require-ci-green"].into_iter().find(|rule| said.contains(rule))
    };
    gh(&world, "echo 'no pull requests found for branch \"feature\"' >&2; exit 1");
    assert_eq!(held(false), Some("require-pr"));
    gh(&world, "echo '{\"state\":\"OPEN\",\"statusCheckRollup\":[{\"conclusion\":\"FAILURE\"}]}'");
    assert_eq!(held(false), Some("require-ci-green"));
    gh(&world, "echo '{\"state\":\"OPEN\",\"statusCheckRollup\":[{\"conclusion\":\"SUCCESS\"}]}'");
    assert_eq!(held(false), None);
    gh(&world, "echo 'HTTP 502' >&2; exit 1");
    assert_eq!(held(false), None);
    let began = std::time::Instant::now();
    gh(&world, "exec sleep 600");
    assert_eq!(held(false), None);
    assert!(began.elapsed() < wait::HANG, "{:?}", began.elapsed());
    git(&world, &["commit", "-qm", "y", "--allow-empty"]);
    assert_eq!(held(false), Some("require-push"));
}

#[test]
fn g8_a_call_that_comes_again_and_again_is_noted() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    world.configure("[guard]\nenable = [\"warn-repeated-tool-calls\"]\n");
    let noted = |command: &str| claude(&world, command).stdout.contains("warn-repeated-tool-calls");
    let said: Vec<bool> = ["ls", "ls", "ls", "ls", "pwd", "ls"].map(noted).to_vec();
    assert_eq!(said, [false, false, false, true, false, false]);
    // Where an agent takes no note before a call, it comes with the result.
    let gemini = |event: &str| {
        let payload = json!({
            "session_id": "s", "cwd": world.project(), "hook_event_name": event, "tool_name": "run_shell_command",
            "tool_input": {"command": "ls"}, "tool_response": {"llmContent": "x"},
            "transcript_path": world.path("t.jsonl"),
        });
        let words = ["hook", "gemini", event, "--guard"];
        let words = if event == "BeforeTool" { &words[..] } else { &words[..3] };
        run(world.baton(words), payload.to_string().as_bytes()).expect(0).stdout
    };
    for round in 0..4 {
        assert_eq!(gemini("BeforeTool"), "");
        assert_eq!(gemini("AfterTool").contains("warn-repeated-tool-calls"), round == 3, "round {round}");
    }
}

#[test]
fn g9_a_call_that_ran_without_a_decision_is_written_down() {
    let world = World::new();
    fs::create_dir(world.home()).unwrap();
    let call = |agent: &str, event: &str, id: &str, command: &str| {
        let after = !event.to_lowercase().starts_with("pre") && !event.starts_with("Before");
        let payload = match agent {
            "copilot" => json!({
                "sessionId": "s", "cwd": world.project(), "toolName": "bash", "toolArgs": {"command": command},
                "toolResult": {"resultType": "success", "textResultForLlm": "x"}, "timestamp": 1_794_770_912_660_u64,
            }),
            "cursor" => json!({
                "conversation_id": "s", "cwd": world.project(), "hook_event_name": event, "tool_name": "Shell",
                "tool_input": {"command": command}, "tool_output": "x", "tool_use_id": id,
            }),
            "gemini" => json!({
                "session_id": "s", "cwd": world.project(), "hook_event_name": event, "tool_name": "run_shell_command",
                "tool_input": {"command": command}, "tool_response": {"llmContent": "x"},
                "transcript_path": world.path("t.jsonl"),
            }),
            _ => json!({
                "session_id": "s", "cwd": world.project(), "hook_event_name": event, "tool_name": "Bash",
                "tool_input": {"command": command}, "tool_response": {"stdout": "x"}, "tool_use_id": id,
            }),
        };
        let words = ["hook", agent, event, "--guard"];
        let of_mail = after && ["gemini", "copilot", "cursor"].contains(&agent);
        let words = if of_mail { &words[..3] } else { &words[..] };
        run(world.baton(words), payload.to_string().as_bytes()).expect(0);
    };
    for (agent, before) in HOOKED {
        let after = match agent {
            "gemini" => "AfterTool",
            "claude" | "codex" => "PostToolUse",
            _ => "postToolUse",
        };
        let unjudged = || log(&world).iter().filter(|entry| entry["decision"] == "unjudged").count();
        let already = unjudged();
        // Both at once, and again.
        call(agent, before, "one", "ls");
        call(agent, before, "two", "ls");
        call(agent, after, "two", "ls");
        call(agent, after, "one", "ls");
        assert_eq!(unjudged(), already, "{agent}: both were judged");
        call(agent, after, "three", "ls");
        assert_eq!(unjudged(), already + 1, "{agent}: its hook did not run");
        let entry = log(&world).last().unwrap().clone();
        assert_eq!([&entry["agent"], &entry["rule"], &entry["session"]], [agent, "", "s"]);
        // A call that was refused and ran is not looked for; one that was refused does not stand
        // for another.
        call(agent, before, "four", "sudo id");
        call(agent, after, "five", "sudo id");
        assert_eq!(unjudged(), already + 2, "{agent}");
    }
    world.configure("[guard]\nmode = \"off\"\n");
    let lines = log(&world).len();
    call("claude", "PostToolUse", "six", "ls");
    assert_eq!(log(&world).len(), lines, "where nobody judges, nothing is missing");
    world.configure("");
    let doctor = world.script(&["doctor", "--json"]).json();
    let guard = doctor.as_array().unwrap().iter().find(|check| check["check"] == "guard").unwrap().clone();
    assert_eq!(guard["verdict"], "warn", "{guard}");
    assert!(guard["detail"].as_str().unwrap().contains("10 calls ran without having been judged"), "{guard}");
}
