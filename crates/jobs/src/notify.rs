//! Starts the process that tells people that something waits. It decides by itself whether there is still anything to tell, and nobody waits for it.

use crate::Host;
use baton_core::id::JobId;
use std::path::Path;
use std::process::{Command, Stdio};

/// The hidden command that does it.
pub const COMMAND: &str = "tell-waiting";

/// Tells of a question by its id. Best effort: the question is in the inbox, told or not.
pub fn of(program: &Path, home: &Path, id: &str) {
    let mut command = Command::new(program);
    command.arg(COMMAND).arg("--home").arg(home).arg(id);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    if let Ok(mut child) = command.spawn() {
        // Whoever lives long has to take note of its end.
        std::thread::spawn(move || child.wait().ok());
    }
}

/// Tells of what a job waits for, if the person wants to be told.
pub fn of_job(host: &Host, id: &JobId) {
    if host.gate().approvals().is_ok_and(|policy| policy.notify.is_set()) {
        of(&host.program, &host.home, id.as_str());
    }
}
