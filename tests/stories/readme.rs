//! The four commands of README's "Install", as they stand there: from a package to the first
//! message in another agent's terminal.

use crate::sandbox::{LIMIT, StorySandbox, program};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::Request;
use baton_testkit::sandbox::find_in_path;
use baton_testkit::{Model, Sandbox, Script, Step, Tmux, isolated};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const QUESTION: &str = "which port does the test server use?";
const ANSWER: &str = "the port is 8080";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the tree")
}

/// The commands of the first block of "Install", without their comments.
fn commands() -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let install = readme.split("\n## Install\n").nth(1).expect("the section");
    let block = install.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block");
    let words = |line: &str| line.split("   #").next().unwrap_or(line).trim().to_owned();
    block.lines().map(words).collect()
}

/// What `scripts/package` makes, where README has it. `None` if it can't run here.
fn package(into: &Path) -> Option<()> {
    if find_in_path("python3").is_none() || find_in_path("cargo").is_none() {
        eprintln!("skipped: there is no python3 or no cargo to make a package with");
        return None;
    }
    // Without the debugger's symbols, which make nine tenths of it.
    let stripped = into.join("program");
    fs::create_dir_all(into).expect("a folder");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(program()).status();
    if !strip.is_ok_and(|status| status.success()) {
        fs::copy(program(), &stripped).expect("a copy");
    }
    let made = Command::new(root().join("scripts/package"))
        .args(["--tarball", "--out"])
        .arg(into.join("target/packages"))
        .arg("--program")
        .arg(&stripped)
        .env("CARGO_NET_OFFLINE", "true")
        .status();
    assert!(made.expect("it starts").success());
    Some(())
}

fn script(request: &Request) -> Step {
    let results = request.results();
    if request.agent == Agent::Codex {
        return match results.first() {
            None => Step::mcp("baton", "ask_peer", json!({"to": "agent:claude", "body": QUESTION})),
            Some(result) if result.text.contains(ANSWER) => Step::say("claude says 8080"),
            Some(result) => Step::say(format!("no answer: {}", result.text)),
        };
    }
    // Claude Code folds the call of a tool, so the model says what it did, as models do.
    match request.word_after("with message_id ").filter(|_| results.is_empty()) {
        Some(id) => Step::mcp("baton", "reply_to_message", json!({"message_id": id, "body": ANSWER})),
        None => Step::say(format!("told them that {ANSWER}")),
    }
}

#[test]
fn four_commands_lead_from_a_package_to_a_message_in_another_terminal() {
    isolated(|| {
        let commands = commands();
        assert_eq!(commands.len(), 4, "{commands:?}");
        let mut sandbox = Sandbox::new();
        let Some(()) = package(&sandbox.project()) else { return };
        let own = sandbox.home().join(".local/bin");
        let path = sandbox.environment().find(|(name, _)| *name == "PATH").map(|(_, path)| path.to_owned());
        let path = path.expect("a path");
        sandbox.set("PATH", format!("{}:{}", own.display(), path.to_string_lossy()));
        let stage = StorySandbox { sandbox, model: Model::start(Script::by(script)) };
        stage.claude();
        stage.codex();

        // 1: the package. 2: setup, for the agents that are there.
        for line in &commands[..2] {
            stage.sandbox.run(stage.sandbox.command("sh").args(["-c", line]), LIMIT).expect_ok();
        }
        let settings = fs::read_to_string(stage.sandbox.home().join(".claude/settings.json")).expect("hooks");
        assert!(settings.contains(&*own.join("baton").to_string_lossy()), "{settings}");

        // 3: the first agent, with what makes it run without a network.
        assert_eq!(commands[2], "claude");
        let claude = stage.open(Agent::Claude, Session::New);
        stage.name_of(Agent::Claude);

        // 4: the second agent, with its prompt.
        let prompt = commands[3].strip_prefix("codex \"").and_then(|rest| rest.strip_suffix('"'));
        let mut second = stage.codex().interactive(Session::New);
        second.arg(prompt.expect("codex with a prompt"));
        let codex = Tmux::start(&stage.sandbox, "codex", &second);

        stage.request(|request| request.agent == Agent::Claude && request.shows(QUESTION));
        let shown = claude.wait_for("told them that", LIMIT);
        assert!(shown.is_ok(), "{}{}", claude.screen(), stage.trouble());
        let shown = codex.wait_for("claude says 8080", LIMIT);
        assert!(shown.is_ok(), "{}{}", codex.screen(), stage.trouble());
        for body in [QUESTION, ANSWER] {
            assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
        }
    });
}
