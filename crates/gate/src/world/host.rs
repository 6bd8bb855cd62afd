//! What the host of a repository says about a branch, asked through its own command line, `gh`. No answer in time is no answer.

use baton_guard::PullRequest;
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Asks about the branch that is checked out in a folder.
pub(super) fn pull_request(folder: &Path, patience: Duration) -> PullRequest {
    let arguments = ["pr", "view", "--json", "state,mergeable,statusCheckRollup"];
    match asked(folder, &arguments, patience) {
        None => PullRequest::default(),
        Some(Answer { said, complaint, .. }) if said.is_empty() => PullRequest {
            // It fails in many ways, and says it so only where it has looked.
            open: complaint.contains("no pull requests found").then_some(false),
            ..PullRequest::default()
        },
        Some(answer) => read(&answer.said),
    }
}

fn read(said: &str) -> PullRequest {
    let Ok(said) = serde_json::from_str::<Value>(said) else { return PullRequest::default() };
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    PullRequest {
        // One that was merged is done with.
        open: text("state").map(|state| state != "CLOSED"),
        green: said["statusCheckRollup"].as_array().and_then(|checks| all_passed(checks)),
        conflicts: match text("mergeable").as_deref() {
            Some("CONFLICTING") => Some(true),
            Some("MERGEABLE") => Some(false),
            _ => None,
        },
    }
}

/// Whether all have passed; `None` where there are none, or some still run and none has failed.
fn all_passed(checks: &[Value]) -> Option<bool> {
    // A check has a conclusion once it is complete, a status of a commit a state.
    let results: Vec<&str> = checks
        .iter()
        .map(|check| check["conclusion"].as_str().or_else(|| check["state"].as_str()).unwrap_or_default())
        .collect();
    let failed = ["FAILURE", "ERROR", "TIMED_OUT", "CANCELLED", "ACTION_REQUIRED", "STARTUP_FAILURE"];
    if results.iter().any(|result| failed.contains(result)) {
        return Some(false);
    }
    let passed = ["SUCCESS", "NEUTRAL", "SKIPPED"];
    (!results.is_empty() && results.iter().all(|result| passed.contains(result))).then_some(true)
}

struct Answer {
    said: String,
    complaint: String,
}

/// What it says within the time; it is ended then.
fn asked(folder: &Path, arguments: &[&str], patience: Duration) -> Option<Answer> {
    let mut child = Command::new("gh")
        .args(arguments)
        .current_dir(folder)
        .envs([("GH_PROMPT_DISABLED", "1"), ("GH_NO_UPDATE_NOTIFIER", "1"), ("GIT_TERMINAL_PROMPT", "0")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let (send, receive) = mpsc::channel();
    let (mut out, mut err) = (child.stdout.take()?, child.stderr.take()?);
    std::thread::spawn(move || {
        let (mut said, mut complaint) = (String::new(), String::new());
        let read = out.read_to_string(&mut said).and_then(|_| err.read_to_string(&mut complaint));
        // Nobody waits any more where this fails.
        send.send(read.ok().map(|_| Answer { said, complaint })).ok();
    });
    let answer = receive.recv_timeout(patience).ok().flatten();
    end(&mut child);
    answer
}

/// Ends it, where it has not ended.
fn end(child: &mut Child) {
    child.kill().ok();
    child.wait().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_counts() {
        let green = r#"{"state":"OPEN","mergeable":"MERGEABLE","statusCheckRollup":[{"conclusion":"SUCCESS"},{"state":"SUCCESS"}]}"#;
        assert_eq!(read(green), PullRequest { open: Some(true), green: Some(true), conflicts: Some(false) });
        let red = r#"{"state":"CLOSED","mergeable":"CONFLICTING","statusCheckRollup":[{"conclusion":"FAILURE"},{"conclusion":""}]}"#;
        assert_eq!(read(red), PullRequest { open: Some(false), green: Some(false), conflicts: Some(true) });
        let running = r#"{"state":"OPEN","mergeable":"UNKNOWN","statusCheckRollup":[{"conclusion":"","status":"IN_PROGRESS"}]}"#;
        assert_eq!(read(running), PullRequest { open: Some(true), green: None, conflicts: None });
        assert_eq!(read("hello"), PullRequest::default());
    }
}
