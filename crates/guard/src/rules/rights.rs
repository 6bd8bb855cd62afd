//! Other rights than the agent was given.

use super::{Example, Finding, Params, Rule, is_allowed, short};
use crate::judge::{Facts, Moment};
use crate::shell::Command;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "block-sudo",
    on: true,
    event: Moment::Before,
    forbids_commands: true,
    parameters: &["allowPatterns"],
    about: "no other rights: sudo, doas, pkexec, su -c, sudoedit, runas",
    check,
    bad: &[
        Example::Shell("sudo apt install jq"),
        Example::Shell("env FOO=1 su\\do -n true"),
        Example::Shell("x=do; su$x ls"),
        Example::Shell("su -c 'make install'"),
        Example::Shell("find . -exec doas rm {} +"),
        Example::Shell("echo c3VkbyBscwo= | base64 -d | sh"),
        Example::Shell("python3 -c 'import os; os.system(\"sudo ls\")'"),
    ],
    good: &[
        Example::Shell("echo sudo"),
        Example::Shell("git commit -m 'run it with sudo'"),
        Example::Shell("man sudo"),
        Example::Shell("cat <<E > notes.md\nsudo make install\nE"),
    ],
}];

fn check(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let command = facts
        .commands_anywhere()
        .find(|command| gains_rights(command) && !is_allowed(command, &params.allow_patterns))?;
    Finding::deny(format!(
        "Blocked: `{}` asks for other rights than you were given. Do it without them, or ask the person to run it.",
        short(&command.show())
    ))
}

fn gains_rights(command: &Command) -> bool {
    match command.name.as_str() {
        "sudo" | "sudo-rs" | "doas" | "pkexec" | "sudoedit" | "dzdo" | "please" | "gksudo" | "kdesudo"
        | "gksu" | "kdesu" | "visudo" | "run0" | "gosu" | "su-exec" => {
            let asks_version = matches!(
                command.words.get(1..),
                Some([only]) if matches!(only.text.as_str(), "--version" | "-V" | "--help" | "-h" | "-k" | "-K")
            );
            !asks_version
        }
        "su" | "runuser" => true,
        "runas" | "gsudo" => true,
        "Start-Process" | "start-process" | "saps" | "start" => {
            command.texts().any(|arg| arg.eq_ignore_ascii_case("runas"))
                && command.texts().any(|arg| arg.to_ascii_lowercase().starts_with("-v"))
        }
        "osascript" => command.texts().any(|arg| arg.contains("with administrator privileges")),
        "systemd-run" => command.has_long("--uid", 5) && !command.has("--user"),
        _ => false,
    }
}
