//! Commands that run with more rights than the agent has.

use super::{Example, Finding, Params, Rule, is_allowed, short};
use crate::judge::{Facts, GuardEvent};
use crate::shell::Command;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "block-sudo",
    on: true,
    event: GuardEvent::Before,
    forbids_commands: true,
    parameters: &["allowPatterns"],
    about: "blocks commands that take more rights: sudo, doas, pkexec, su -c, sudoedit, runas",
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
        "Blocked: `{}` takes more rights than you have. Do it without them, or ask the person to run it.",
        short(&command.show())
    ))
}

fn gains_rights(command: &Command) -> bool {
    match command.name.as_str() {
        "please" if builds(command) => false,
        "sudo" | "sudo-rs" | "doas" | "pkexec" | "sudoedit" | "dzdo" | "please" | "gksudo" | "kdesudo"
        | "gksu" | "kdesu" | "visudo" | "run0" | "gosu" | "su-exec" => {
            let asks_version = matches!(
                command.words.get(1..),
                Some([only]) if matches!(only.text.as_str(), "--version" | "-V" | "--help" | "-h" | "-k" | "-K")
            );
            !asks_version
        }
        "su" | "runuser" | "sg" | "pfexec" | "calife" | "lxqt-sudo" | "machinectl-shell" | "super"
        | "op-sudo" | "sudosh" => true,
        "machinectl" => command.has("shell"),
        "chpst" => command.has_short("uU"),
        "runas" | "gsudo" => true,
        "Start-Process" | "start-process" | "saps" | "start" => {
            command.texts().any(|arg| arg.eq_ignore_ascii_case("runas"))
                && command.texts().any(|arg| arg.to_ascii_lowercase().starts_with("-v"))
        }
        "osascript" => command.texts().any(|arg| arg.contains("with administrator privileges")),
        "systemd-run" => {
            let sets_user = command.texts().any(|arg| arg.contains("User=") || arg.contains("DynamicUser="));
            (command.has_long("--uid", 5) || sets_user) && !command.has("--user")
        }
        _ => false,
    }
}

/// Whether `please` is the build tool of that name here: `please build //...`.
fn builds(command: &Command) -> bool {
    const VERBS: &[&str] = &[
        "build", "test", "run", "query", "clean", "fmt", "init", "update", "watch", "cover", "hash",
        "export", "gc", "help", "tool", "generate", "rebuild", "plugin", "codegen",
    ];
    let mut words = command.texts().filter(|arg| !arg.starts_with('-'));
    let is_verb = words.next().is_some_and(|word| VERBS.contains(&word));
    is_verb && words.all(|word| word.starts_with(['/', ':']) || !word.contains('/'))
}
