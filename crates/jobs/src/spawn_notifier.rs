//! Starts the process that notifies people of a question (`baton_approvals::notify`). That process
//! checks itself whether the question still waits, and the caller does not wait for it.

use crate::Runtime;
use baton_core::id::JobId;
use std::path::Path;
use std::process::{Command, Stdio};

/// The hidden command of that process.
const NOTIFIER_COMMAND: &str = "tell-waiting";

/// Notifies of a question by its id. Best effort: the question is in the inbox in any case.
pub fn for_question(program: &Path, home: &Path, id: &str) {
    let mut command = Command::new(program);
    command.arg(NOTIFIER_COMMAND).arg("--home").arg(home).arg(id);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    if let Ok(mut child) = command.spawn() {
        // A process that lives long must reap its children.
        std::thread::spawn(move || child.wait().ok());
    }
}

/// Notifies of a job's questions, if the user has set any notification.
pub fn for_job(runtime: &Runtime, id: &JobId) {
    if runtime.guard().approvals().is_ok_and(|policy| policy.notify.is_set()) {
        for_question(&runtime.program, &runtime.home, id.as_str());
    }
}
