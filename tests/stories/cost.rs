//! What a hook costs the agent, by its own count: as a process, and as a call of the session's MCP
//! server. Printed for `scripts/bench`.

use crate::sandbox::StorySandbox;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::{Script, Step, isolated, transcript};
use serde_json::{Value, json};

/// Batches of tools in one run.
const BATCHES: usize = 15;

fn tools() -> Script {
    Script::by(
        |request| if request.results().len() < BATCHES { Step::shell("true") } else { Step::say("finished") },
    )
}

/// The milliseconds that Claude Code noted for each hook of an event; it leaves zeros out.
fn durations(stage: &StorySandbox, event: &str) -> Vec<u64> {
    let lines: Vec<Value> =
        stage.claude().transcripts().iter().flat_map(|file| transcript::lines(file)).collect();
    let ran = |line: &&Value| {
        line["attachment"]["type"] == "hook_success" && line["attachment"]["hookEvent"] == event
    };
    lines.iter().filter(ran).map(|line| line["attachment"]["durationMs"].as_u64().unwrap_or(0)).collect()
}

fn report(form: &str, mut durations: Vec<u64>) {
    durations.sort_unstable();
    assert!(durations.len() >= BATCHES, "{form}: only {} of {BATCHES} hooks ran", durations.len());
    println!(
        "hook between tools, {form}: median {} ms, longest {} ms, {} hooks, as Claude Code counts",
        durations[durations.len() / 2],
        durations[durations.len() - 1],
        durations.len()
    );
}

#[test]
fn both_forms_of_a_hook_run_after_each_batch_and_the_agent_counts_them() {
    isolated(|| {
        let stage = StorySandbox::new(tools());
        stage.run(Agent::Claude, Session::New, "please begin");
        report("as an MCP call", durations(&stage, "PostToolBatch"));

        let stage = StorySandbox::bare(tools());
        // A hook that prints nothing leaves no line, so its shell prints for it.
        let command = json!({"type": "command", "command": "baton hook claude; printf '{}'"});
        stage.claude().add_hook("PostToolBatch", command);
        stage.run(Agent::Claude, Session::New, "please begin");
        report("as a process  ", durations(&stage, "PostToolBatch"));
    });
}
