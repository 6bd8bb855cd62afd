//! Waking Claude Code.
//!
//! Each session listens on a socket that its registry entry names. A line there begins a turn and
//! does not touch what the user is typing. But a session that bypasses permissions shows such a
//! line to its user as a dialog, unless the user's settings accept it. If the session was started
//! with that mode, a key can switch it on at any time. For such sessions a hook in the background
//! is better: its exit code 2 begins a turn too, without a dialog.

use crate::wake::{Idle, Read, Route};
use baton_core::wake::line;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The routes of a session, best first.
pub(super) fn routes(registry: Option<PathBuf>, idle: &Idle<'_>, read: Read<'_>) -> Vec<Route> {
    let mut routes = Vec::new();
    if let Some(path) = registry.and_then(|file| inbox(&read(&file)?, idle.session_id))
        && !may_hold(idle, read)
    {
        routes.push(Route::Socket { path, line: message(idle.line) });
    }
    routes.extend([Route::Waiter, Route::Terminal]);
    routes
}

/// The session's own socket, by its registry entry.
fn inbox(entry: &[u8], session_id: &str) -> Option<PathBuf> {
    let entry: Value = serde_json::from_slice(entry).ok()?;
    (entry["sessionId"] == session_id).then_some(())?;
    Some(PathBuf::from(entry["messagingSocketPath"].as_str()?))
}

fn message(line: &str) -> Vec<u8> {
    let message = json!({"type": "user", "message": {"role": "user", "content": line}});
    format!("{message}\n").into_bytes()
}

/// Whether the session may show our line to its user as a dialog.
fn may_hold(idle: &Idle<'_>, read: Read<'_>) -> bool {
    let settings = |file: PathBuf| read(&file).and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    // <config>/projects/<project>/<session>.jsonl
    let config = idle.transcript.and_then(|file| file.ancestors().nth(3)).map(Path::to_owned);
    let user = config.and_then(|folder| settings(folder.join("settings.json"))).unwrap_or_default();
    if user["crossSessionInbound"] == "accept" {
        return false;
    }
    let by_default = |settings: &Value| settings["permissions"]["defaultMode"] == "bypassPermissions";
    let project = ["settings.json", "settings.local.json"].into_iter().any(|name| {
        let file = idle.cwd.map(|cwd| cwd.join(".claude").join(name));
        file.and_then(settings).is_some_and(|settings| by_default(&settings))
    });
    // Without its arguments, nothing is known.
    idle.arguments.is_empty()
        || by_default(&user)
        || project
        || idle.arguments.iter().any(|argument| bypasses(argument))
}

fn bypasses(argument: &str) -> bool {
    matches!(
        argument,
        "--dangerously-skip-permissions" | "--allow-dangerously-skip-permissions" | "bypassPermissions"
    ) || argument.ends_with("=bypassPermissions")
}

/// Whether a prompt is the line of a background hook that woke the session, with the text that
/// Claude Code puts around it.
pub(super) fn is_wrapped_line(prompt: &str) -> bool {
    prompt.trim_start().starts_with("<task-notification>")
        && prompt.contains("hook feedback</summary>")
        && prompt.lines().any(line::ends_with_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        r#"{"pid":13,"sessionId":"s","messagingSocketPath":"/tmp/cc-socks/13.sock","status":"idle"}"#;

    fn found(arguments: &[&str], files: &[(&str, &str)]) -> Vec<Route> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let transcript = Path::new("/h/.claude/projects/p/s.jsonl");
        let idle = Idle {
            session_id: "s",
            transcript: Some(transcript),
            cwd: Some(Path::new("/p")),
            pid: Some(13),
            arguments: &arguments,
            line: line::PLAIN,
        };
        let read = |path: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| text.as_bytes().to_vec())
        };
        routes(Some(PathBuf::from("/h/.claude/sessions/13.json")), &idle, &read)
    }

    #[test]
    fn the_socket_is_used_only_if_no_dialog_would_open() {
        let entry = ("/h/.claude/sessions/13.json", ENTRY);
        let first = |arguments: &[&str], files: &[(&str, &str)]| found(arguments, files)[0].kind().as_str();
        assert_eq!(first(&["claude"], &[entry]), "socket");
        assert_eq!(first(&["claude"], &[]), "waiter", "without an entry there is no socket");
        let other = ("/h/.claude/sessions/13.json", r#"{"sessionId":"t","messagingSocketPath":"/x"}"#);
        assert_eq!(first(&["claude"], &[other]), "waiter", "another session's");
        for held in [
            &["claude", "--dangerously-skip-permissions"][..],
            &["claude", "--permission-mode", "bypassPermissions"],
            &["claude", "--permission-mode=bypassPermissions"],
            &[],
        ] {
            assert_eq!(first(held, &[entry]), "waiter", "{held:?}");
        }
        let bypassing =
            ("/h/.claude/settings.json", r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#);
        assert_eq!(first(&["claude"], &[entry, bypassing]), "waiter");
        let local = ("/p/.claude/settings.local.json", bypassing.1);
        assert_eq!(first(&["claude"], &[entry, local]), "waiter");
        let accepting = ("/h/.claude/settings.json", r#"{"crossSessionInbound":"accept"}"#);
        assert_eq!(first(&["claude", "--dangerously-skip-permissions"], &[entry, accepting]), "socket");
    }

    #[test]
    fn the_line_is_found_in_what_claude_code_puts_around_it() {
        let prompt = format!(
            "<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n<system-reminder>\nStop hook blocking error from command \"Stop\": {}\n\n</system-reminder>",
            line::line(&["otter".to_owned()], 3)
        );
        assert!(is_wrapped_line(&prompt));
        assert!(!is_wrapped_line(&format!("what does \"{}\" mean?", line::PLAIN)));
        assert!(!is_wrapped_line(&prompt.replace("[baton]", "lint failed")));
    }
}
