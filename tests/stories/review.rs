//! The stop gate with the real agents: one wants to stop, the other reviews, the findings come into
//! its context, it mends them and stops.

use crate::sandbox::{LIMIT, StorySandbox, rounds};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::{Script, Step, isolated};
use std::fs;

const ASKED: &str = "Review the change below as a careful";
const TOLD: &str = "has reviewed your change and asks for changes";

fn script() -> Script {
    Script::by(|request| {
        if request.shows(ASKED) {
            return Step::say(if request.shows("+broken") {
                r#"{"verdict":"request-changes","summary":"it is broken","findings":[{"severity":"high","file":"work.txt","lines":"1","confidence":0.9,"title":"FINDING-ONE","body":"it says broken","recommendation":"mend it"}]}"#
            } else {
                r#"{"verdict":"approve","summary":"fine","findings":[]}"#
            });
        }
        match (request.shows(TOLD), request.results().len()) {
            (true, 0) => Step::shell("echo mended > work.txt"),
            _ => Step::say("finished"),
        }
    })
}

fn is_gated(who: Agent, reviewer: Agent) {
    let mut stage = StorySandbox::with(&[who, reviewer], script());
    // What a person has exported, each agent's hooks pass on to the review.
    let claude = stage.model.url_for(Agent::Claude);
    for (name, value) in [
        ("ANTHROPIC_BASE_URL", claude.as_str()),
        ("ANTHROPIC_API_KEY", "fake-key-of-a-test"),
        ("SCRIPTED_KEY", "fake-key-of-a-test"),
    ] {
        stage.sandbox.set(name, value);
    }
    let project = stage.sandbox.project();
    let git = |arguments: &[&str]| {
        let mut command = stage.sandbox.command("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@example.invalid"]).args(arguments);
        stage.sandbox.run(&mut command, LIMIT).expect_ok();
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
    fs::write(project.join("work.txt"), "broken\n").expect("a file in the project");
    let folder = stage.sandbox.path("home/.config/baton");
    fs::create_dir_all(&folder).expect("a folder in the home");
    let gate = format!("[review]\ngate = \"on\"\nagent = \"{}\"\n", reviewer.name());
    fs::write(folder.join("config.toml"), gate).expect("the settings");
    stage.baton(&["setup", who.name()]).expect_ok();
    stage.run(who, Session::New, "please begin");
    stage.shown_once("FINDING-ONE");
    let work = fs::read_to_string(project.join("work.txt")).expect("a file in the project");
    assert_eq!(work, "mended\n", "{}", stage.trouble());
    let jobs = stage.json(&["job", "list", "--all"]);
    let rows = jobs.as_array().expect("a list");
    assert_eq!(rows.len(), 2, "one review that asked for changes, one that approved: {jobs}");
    assert!(rows.iter().all(|row| row["status"] == "completed" && row["agent"] == reviewer.name()), "{jobs}");
    let log = fs::read_to_string(stage.sandbox.path("home/.local/share/baton/hook.log")).unwrap_or_default();
    assert!(!log.contains("could not run"), "{log}");
}

#[test]
fn claude_is_reviewed_by_codex_before_it_stops() {
    isolated(|| (0..rounds()).for_each(|_| is_gated(Agent::Claude, Agent::Codex)));
}

#[test]
fn codex_is_reviewed_by_claude_before_it_stops() {
    isolated(|| (0..rounds()).for_each(|_| is_gated(Agent::Codex, Agent::Claude)));
}
