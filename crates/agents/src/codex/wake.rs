//! Waking Codex: `codex queue` puts a line before a thread, whoever runs it. It waits for the end of a turn and of a dialog, and leaves what the person
//! is typing alone.

use crate::wake::{Idle, Route};
use baton_core::wake::LINE;
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
        arguments: ["queue", "--thread", idle.session_id, "--message", LINE].map(OsString::from).to_vec(),
        environment: home.map(|home| ("CODEX_HOME", home.to_owned())).into_iter().collect(),
    };
    vec![queue, Route::Terminal]
}

/// Whether a process is a Codex that a person sits in front of: the program itself, without one of the commands that end by themselves or serve others.
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
        };
        let Route::Queue { program, arguments, environment } = routes(&idle).remove(0) else { panic!() };
        assert_eq!(program, "/opt/bin/codex");
        assert_eq!(arguments, ["queue", "--thread", "t", "--message", LINE]);
        assert_eq!(environment, [("CODEX_HOME", Path::new("/h/.codex").to_owned())]);
        let daemon = Idle { arguments: &[], transcript: None, ..idle };
        let Route::Queue { program, environment, .. } = routes(&daemon).remove(0) else { panic!() };
        assert_eq!((program, environment.len()), (OsString::from("codex"), 0));
    }

    #[test]
    fn a_person_sits_in_front_of_the_program_itself() {
        let is = |text: &str| is_client(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(is("/x/codex") && is("/x/codex resume abc") && is("/x/codex --no-daemon"));
        assert!(!is("/x/codex app-server --listen unix://") && !is("/x/codex queue --thread t"));
        assert!(!is("/x/codex exec hello"));
    }
}
