//! What the host of a repository says about a branch, asked through `gh`. Without an answer in
//! time, nothing is known.

use baton_guard::PullRequest;
use baton_machine::git::QUIET_VARIABLES;
use baton_machine::program::{self, Answer};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of an answer that are read. An answer about one branch is far shorter.
const ANSWER_BYTES: usize = 1 << 20;

/// The variables that `gh` needs: who it is, where its login is, and how it reaches the network.
const KEPT_VARIABLES: [&str; 22] = [
    "HOME",
    "USER",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GH_HOST",
    "GH_CONFIG_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Asks about the branch that is checked out in a folder.
pub(super) fn pull_request(
    folder: &Path,
    project: &Path,
    env: fn(&str) -> Option<OsString>,
    patience: Duration,
) -> PullRequest {
    let arguments = ["pr", "view", "--json", "state,mergeable,statusCheckRollup"];
    match asked(folder, project, env, &arguments, patience) {
        None => PullRequest::default(),
        Some(Answer { said, complaint, .. }) if said.is_empty() => PullRequest {
            // `gh` fails in many ways. Only this message means that it looked and found none.
            open: String::from_utf8_lossy(&complaint).contains("no pull requests found").then_some(false),
            ..PullRequest::default()
        },
        Some(answer) => read(&String::from_utf8_lossy(&answer.said)),
    }
}

fn read(said: &str) -> PullRequest {
    let Ok(said) = serde_json::from_str::<Value>(said) else { return PullRequest::default() };
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    PullRequest {
        // A merged pull request needs nothing more.
        open: text("state").map(|state| state != "CLOSED"),
        green: said["statusCheckRollup"].as_array().and_then(|checks| all_passed(checks)),
        conflicts: match text("mergeable").as_deref() {
            Some("CONFLICTING") => Some(true),
            Some("MERGEABLE") => Some(false),
            _ => None,
        },
    }
}

/// Whether all checks passed. `None` if there are none, or if some still run and none failed.
fn all_passed(checks: &[Value]) -> Option<bool> {
    // A check run has a conclusion once it is complete; a commit status has a state.
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

/// Runs `gh` and ends it at the deadline. `gh` runs git, so it gets the variables that keep git
/// quiet.
fn asked(
    folder: &Path,
    project: &Path,
    env: fn(&str) -> Option<OsString>,
    arguments: &[&str],
    patience: Duration,
) -> Option<Answer> {
    let path = program::search_path(&env("PATH")?, &[folder, project]);
    let gh = program::find("gh", &path)?;
    let mut environment = program::variables(&KEPT_VARIABLES, &env);
    environment.push(("PATH".into(), path));
    let quiet = [("GH_PROMPT_DISABLED", "1"), ("GH_NO_UPDATE_NOTIFIER", "1")];
    environment
        .extend(quiet.iter().chain(&QUIET_VARIABLES).map(|(name, value)| ((*name).into(), (*value).into())));
    let arguments: Vec<OsString> = arguments.iter().map(|argument| (*argument).into()).collect();
    program::ask(&gh, &arguments, folder, &environment, ANSWER_BYTES, Instant::now() + patience)
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
