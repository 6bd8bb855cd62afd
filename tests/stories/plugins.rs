//! The plugins in `plugins/`, installed by the agents' own programs: mail comes once with a plugin
//! alone, and once with a plugin beside setup.

use crate::sandbox::{LIMIT, StorySandbox};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::{Script, Step, isolated};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn plugins(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(below).canonicalize().expect("plugins")
}

/// Runs the agent's own command, offline, with a yes for what it asks.
fn own_command(stage: &StorySandbox, command: &mut Command) -> String {
    let running = stage.sandbox.start_with_input(command, b"y\ny\n");
    let done = running.finish(LIMIT).expect_ok();
    format!("{}{}", done.stdout, done.stderr)
}

fn claude_command(stage: &StorySandbox, words: &[&str]) -> Command {
    let mut command = stage.sandbox.command(stage.sandbox.path("bin/claude"));
    for switch in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"] {
        command.env(switch, "1");
    }
    command.args(words);
    command
}

fn codex_command(stage: &StorySandbox, words: &[&str]) -> Command {
    let mut command = stage.sandbox.command(stage.sandbox.path("bin/codex"));
    command.env("CODEX_HOME", stage.sandbox.path("home/.codex")).args(words);
    command
}

/// A turn of a session with a prompt.
fn turn(stage: &StorySandbox, who: Agent, session: Session<'_>, prompt: &str) -> String {
    let mut command = match who {
        // Codex runs the hooks of a plugin once the person has trusted them.
        Agent::Codex => stage.codex().trusting_hooks().headless(session, prompt),
        _ => stage.program(who).headless(session, prompt),
    };
    let run = stage.sandbox.run(&mut command, LIMIT).expect_ok();
    stage.session_id(who, &run)
}

/// Mail comes once through the plugin, and once again when setup has been run too.
fn mail_comes_once(stage: &StorySandbox, who: Agent) {
    let id = turn(stage, who, Session::New, "please begin");
    let all = stage.json(&["who", "--all"]);
    let row = all.as_array().into_iter().flatten().find(|row| row["session_id"] == id.as_str());
    let row = row.unwrap_or_else(|| panic!("the plugin's hooks did not run: {all}{}", stage.trouble()));
    let name = row["name"].as_str().expect("a name").to_owned();
    let checks = stage.baton(&["doctor", "--json"]).stdout;
    assert!(checks.contains("by the plugin, which the agent itself has installed"), "{checks}");
    stage.send(&name, "through-the-plugin-alone");
    turn(stage, who, Session::Resume(&id), "go on");
    stage.seen_once("through-the-plugin-alone");
    let request = stage.request(|request| request.shows("through-the-plugin-alone"));
    assert!(request.body.to_string().contains("claim_session"), "the plugin's server offers no tools");

    stage.baton(&["setup", who.name()]).expect_ok();
    stage.send(&name, "with-both-set-up");
    turn(stage, who, Session::Resume(&id), "go on again");
    stage.seen_once("with-both-set-up");
    // The tools are there once, not once for each way.
    let request = stage.request(|request| request.shows("with-both-set-up"));
    let offered = request.body.to_string().matches("claim_session\"").count();
    assert!(offered <= 1, "baton's tools are offered {offered} times");

    stage.baton(&["setup", who.name(), "--remove"]).expect_ok();
    stage.send(&name, "through-the-plugin-again");
    turn(stage, who, Session::Resume(&id), "and once more");
    stage.seen_once("through-the-plugin-again");
}

fn stage() -> StorySandbox {
    StorySandbox::bare(Script::by(|_| Step::say("finished"))).without_waking()
}

#[test]
fn claude_installs_the_plugin_and_has_mail_once() {
    isolated(|| {
        let stage = stage();
        stage.claude();
        let market = plugins("");
        let add = ["plugin", "marketplace", "add", market.to_str().expect("UTF-8")];
        own_command(&stage, &mut claude_command(&stage, &add));
        own_command(&stage, &mut claude_command(&stage, &["plugin", "install", "baton@baton"]));
        let listed = own_command(&stage, &mut claude_command(&stage, &["plugin", "list"]));
        assert!(listed.contains("baton@baton") && listed.contains("enabled"), "{listed}");
        mail_comes_once(&stage, Agent::Claude);
    });
}

#[test]
fn codex_installs_the_plugin_and_has_mail_once() {
    isolated(|| {
        let stage = stage();
        stage.codex();
        let file = stage.sandbox.path("home/.codex/config.toml");
        let config = fs::read_to_string(&file).expect("a configuration");
        fs::write(&file, config.replace("plugins = false", "plugins = true")).expect("it is written");
        let market = plugins("");
        let add = ["plugin", "marketplace", "add", market.to_str().expect("UTF-8")];
        own_command(&stage, &mut codex_command(&stage, &add));
        own_command(&stage, &mut codex_command(&stage, &["plugin", "add", "baton@baton"]));
        mail_comes_once(&stage, Agent::Codex);
    });
}

#[test]
fn gemini_installs_the_extension_and_has_mail_once() {
    isolated(|| {
        let stage = stage();
        stage.program(Agent::Gemini);
        let extension = plugins("gemini");
        let mut install = stage.sandbox.command(stage.sandbox.path("bin/gemini"));
        install.args(["extensions", "install", "--consent"]).arg(&extension);
        own_command(&stage, &mut install);
        mail_comes_once(&stage, Agent::Gemini);
    });
}
