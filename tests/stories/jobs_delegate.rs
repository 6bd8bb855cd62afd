//! A task handed to another agent through what setup writes: the caller ends with the real result.

use crate::sandbox::StorySandbox;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Kind, Request};
use baton_testkit::{Script, Step, isolated};
use serde_json::json;

const RESULT: &str = "THE-RESULT-OF-THE-JOB";
const TASK: &str = "TASK-FOR-THE-OTHER";
/// What every job's prompt begins with.
const WORKER: &str = "[baton] You are the worker";

/// The command that an instruction of ours shows, with the agent and the task in their places.
fn command(request: &Request, agent: &str) -> Option<String> {
    let shown = request.showing(" run AGENT --max-wait 8m");
    let text = &shown.first()?.text;
    let begin = text.find("```sh\n")? + "```sh\n".len();
    let end = begin + text[begin..].find("```")?;
    Some(text[begin..end].replace("AGENT", agent).replace("\nTASK\n", &format!("\n{TASK}\n")))
}

fn dispatch(request: &Request) -> Step {
    match command(request, "claude") {
        // The mail about the job's end may stand beside the command's output.
        _ if request.shows(RESULT) => Step::say(format!("it printed {RESULT}")),
        Some(command) => Step::tool("Bash", json!({"command": command, "timeout": 600_000})),
        None => Step::say("there are no instructions"),
    }
}

#[test]
fn a_slash_command_brings_the_result() {
    isolated(|| {
        let stage = StorySandbox::with(
            &[Agent::Claude],
            Script::by(|request| match request.shows(WORKER) {
                true => Step::say(RESULT),
                false => dispatch(request),
            }),
        );
        let run = stage.run(Agent::Claude, Session::New, &format!("/baton-run claude {TASK}"));
        assert!(run.stdout.contains("it printed"), "{}{}", run.stdout, stage.trouble());
        let asked = stage.request(|request| request.shows(WORKER));
        assert!(asked.shows(TASK));
    });
}

#[test]
fn a_subagent_brings_the_result() {
    isolated(|| {
        let main = |request: &Request| match request.shows(RESULT) {
            _ if request.shows(WORKER) => Step::say(RESULT),
            true => Step::say("it has come back"),
            false => Step::tool(
                "Agent",
                json!({"subagent_type": "baton-worker", "description": "delegate", "prompt": format!("claude: {TASK}"), "run_in_background": false}),
            ),
        };
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(main).subagents(dispatch));
        let run = stage.run(Agent::Claude, Session::New, "go");
        assert!(run.stdout.contains("it has come back"), "{}{}", run.stdout, stage.trouble());
    });
}

#[test]
fn a_subagent_that_only_says_that_it_waits_is_noticed() {
    isolated(|| {
        let worker = |request: &Request| match request.results().is_empty() {
            true => Step::tool("Bash", json!({"command": "while [ ! -e go ]; do sleep 0.1; done"})),
            false => Step::say(RESULT),
        };
        let main = move |request: &Request| match request.word_after("`baton job wait ") {
            _ if request.shows(WORKER) => worker(request),
            Some(_) if request.shows(RESULT) => Step::say("now I have it"),
            Some(job) => Step::tool(
                "Bash",
                json!({"command": format!("touch go; baton job wait {job} --max-wait 8m"), "timeout": 600_000}),
            ),
            None if request.results().is_empty() => Step::tool(
                "Agent",
                json!({"subagent_type": "baton-worker", "description": "delegate", "prompt": "claude: x", "run_in_background": false}),
            ),
            None => Step::say("nobody told me"),
        };
        let wrapper = |request: &Request| match request.results().is_empty() {
            true => Step::tool(
                "Bash",
                json!({"command": format!("baton job start claude --allow all {TASK} >/dev/null 2>&1")}),
            ),
            false => Step::say("The job was started in the background. I am waiting for it."),
        };
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(main).subagents(wrapper));
        // No agent gives a job more than its person has set.
        stage.configure("[jobs]\nallow = \"all\"\n");
        let run = stage.run(Agent::Claude, Session::New, "go");
        assert!(run.stdout.contains("now I have it"), "{}{}", run.stdout, stage.trouble());
        stage.shown_once("is not the result");
    });
}

#[test]
fn codex_knows_the_skill_and_has_the_tools() {
    isolated(|| {
        let stage = StorySandbox::with(
            &[Agent::Codex],
            Script::by(|request| match request.results().is_empty() {
                true => Step::mcp("baton", "start_job", json!({"agent": "nobody", "prompt": TASK})),
                false => Step::say("done"),
            }),
        );
        stage.run(Agent::Codex, Session::New, "go");
        let asked = stage.model.requests_of(Kind::Main);
        assert!(asked.iter().any(|request| request.shows("baton-jobs")), "the skill is not named");
        let results: Vec<String> =
            asked.iter().flat_map(|request| request.results()).map(|result| result.text.clone()).collect();
        assert!(results.iter().any(|result| result.contains("unknown-agent")), "{results:?}");
    });
}

#[test]
fn codex_brings_the_result_through_its_skill() {
    isolated(|| {
        let script = Script::by(move |request| match command(request, "codex") {
            _ if request.shows(WORKER) => Step::say(RESULT),
            _ if request.shows(RESULT) => Step::say(format!("it printed {RESULT}")),
            // Long enough for the whole command, as the skill says.
            Some(command) if request.results().is_empty() => {
                Step::tool("exec_command", json!({"cmd": command, "yield_time_ms": 600_000}))
            }
            _ => Step::say("there is no skill, or no result"),
        });
        let stage = StorySandbox::with(&[Agent::Codex], script);
        // It runs commands in a login shell, whose search path the person's profile sets.
        let path = stage.sandbox.environment().find(|(name, _)| *name == "PATH").expect("a search path").1;
        let profile = format!("export PATH='{}'\n", path.to_string_lossy());
        std::fs::write(stage.sandbox.home().join(".profile"), profile).expect("a profile");
        let run = stage.run(Agent::Codex, Session::New, "$baton-jobs let codex do it");
        assert!(run.stdout.contains("it printed"), "{}{}", run.stdout, stage.trouble());
        let asked = stage.request(|request| request.shows(WORKER));
        assert!(asked.shows(TASK));
    });
}
