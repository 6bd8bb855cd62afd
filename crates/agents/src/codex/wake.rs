//! Waking Codex: `codex queue` gives a line to a thread, whichever process runs it. The line waits
//! for the end of a turn or a dialog, and does not touch what the user is typing.

use crate::history::moment;
use crate::wake::{Idle, Route};
use baton_core::time::Moment;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::Path;

/// The routes of a thread, best first.
pub(super) fn routes(idle: &Idle<'_>) -> Vec<Route> {
    // <CODEX_HOME>/sessions/<year>/<month>/<day>/rollout-….jsonl
    let home = idle.transcript.and_then(|file| file.ancestors().nth(5));
    let its_own = idle.arguments.first().map(Path::new).filter(|program| program.is_absolute());
    let program = its_own.filter(|program| program.file_name().is_some_and(|name| name == "codex"));
    let queue = Route::Queue {
        program: program.map_or_else(|| OsString::from("codex"), |program| program.as_os_str().to_owned()),
        arguments: ["queue", "--thread", idle.session_id, "--message", idle.line]
            .map(OsString::from)
            .to_vec(),
        environment: home.map(|home| ("CODEX_HOME", home.to_owned())).into_iter().collect(),
    };
    vec![queue, Route::Terminal]
}

#[derive(Deserialize)]
struct Line<'a> {
    timestamp: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    payload: Payload<'a>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(rename = "type", default)]
    kind: &'a str,
}

/// When the user interrupted the last turn of a rollout, also at a dialog; `None` if it goes on or
/// ended by itself.
pub(super) fn interrupted_at(rollout_end: &str) -> Option<Moment> {
    const ABORTED: &str = "turn_aborted";
    const OTHERS: [&str; 2] = ["task_started", "task_complete"];
    let speaks = |line: &&str| line.contains(ABORTED) || OTHERS.iter().any(|word| line.contains(word));
    let mut events = rollout_end.rsplit('\n').filter(speaks).filter_map(|line| {
        let line: Line<'_> = serde_json::from_str(line).ok()?;
        (line.kind == "event_msg").then_some((line.payload.kind, line.timestamp))
    });
    let (kind, at) = events.find(|(kind, _)| *kind == ABORTED || OTHERS.contains(kind))?;
    if kind == ABORTED { moment(at) } else { None }
}

/// Whether a process is a Codex that a user sits in front of: the program itself, without a command
/// that ends by itself or serves others.
pub(super) fn is_client(arguments: &[String]) -> bool {
    const NO_CLIENT: [&str; 12] = [
        "app-server",
        "queue",
        "exec",
        "e",
        "mcp",
        "login",
        "logout",
        "doctor",
        "completion",
        "sandbox",
        "apply",
        "features",
    ];
    !arguments.iter().skip(1).any(|argument| NO_CLIENT.contains(&argument.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_woken_by_its_own_program_in_its_own_home() {
        let arguments = ["/opt/bin/codex".to_owned(), "--no-daemon".to_owned()];
        let idle = Idle {
            session_id: "t",
            transcript: Some(Path::new("/h/.codex/sessions/2026/11/16/rollout-x.jsonl")),
            cwd: None,
            pid: Some(3),
            arguments: &arguments,
            line: "[baton] x",
        };
        let Route::Queue { program, arguments, environment } = routes(&idle).remove(0) else { panic!() };
        assert_eq!(program, "/opt/bin/codex");
        assert_eq!(arguments, ["queue", "--thread", "t", "--message", "[baton] x"]);
        assert_eq!(environment, [("CODEX_HOME", Path::new("/h/.codex").to_owned())]);
        let daemon = Idle { arguments: &[], transcript: None, ..idle };
        let Route::Queue { program, environment, .. } = routes(&daemon).remove(0) else { panic!() };
        assert_eq!((program, environment.len()), (OsString::from("codex"), 0));
    }

    #[test]
    fn e5_the_rollout_tells_that_the_last_turn_was_interrupted() {
        let event = |kind: &str, second: u8| {
            format!(
                r#"{{"timestamp":"2026-11-18T02:25:{second:02}.784Z","ordinal":1,"type":"event_msg","payload":{{"type":"{kind}","turn_id":"t"}}}}"#
            )
        };
        // The same words in a message prove nothing.
        let said = r#"{"timestamp":"2026-11-18T02:25:59Z","type":"response_item","payload":{"type":"message","content":"turn_aborted task_started"}}"#;
        let of = |lines: &[String]| interrupted_at(&(lines.join("\n") + "\n"));
        let (begun, aborted) = (event("task_started", 10), event("turn_aborted", 11));
        let at = Moment::parse("2026-11-18T02:25:11Z").map(|at| at.plus(baton_core::time::Span(784)));
        assert!(at.is_some());
        assert_eq!(of(&[begun.clone(), aborted.clone()]), at);
        assert_eq!(of(&[begun.clone(), aborted.clone(), said.to_owned()]), at);
        assert_eq!(of(&["cut off".to_owned(), aborted.clone()]), at, "the end of a longer file");
        assert_eq!(of(&[begun.clone(), aborted.clone(), event("task_started", 12)]), None);
        assert_eq!(of(&[aborted, event("task_complete", 12)]), None);
        assert_eq!(of(&[begun, said.to_owned()]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_person_sits_in_front_of_the_program_itself() {
        let is = |text: &str| is_client(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(is("/x/codex") && is("/x/codex resume abc") && is("/x/codex --no-daemon"));
        assert!(!is("/x/codex app-server --listen unix://") && !is("/x/codex queue --thread t"));
        assert!(!is("/x/codex exec hello"));
    }
}
