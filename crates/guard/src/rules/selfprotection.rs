//! baton itself: what an agent must not change or turn off.

use super::{Example, Finding, Params, Rule, operands, short};
use crate::files::Deed;
use crate::judge::{Facts, Moment};
use crate::path;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "protect-baton",
    on: true,
    event: Moment::Before,
    forbids_commands: true,
    parameters: &[],
    about: "baton's state, rules, hooks and plugins are not changed by agents",
    check,
    bad: &[
        Example::Shell("baton setup --remove"),
        Example::Shell("baton guard disable block-sudo"),
        Example::Shell("rm -rf ~/.config/baton"),
        Example::Shell("sqlite3 ~/.local/share/baton/baton.db 'delete from x'"),
        Example::Write("/home/me/.config/baton/config.toml", ""),
        Example::Write(".baton.toml", ""),
        Example::Shell("pkill -f baton"),
        Example::Shell("baton approve a1b2"),
        Example::Shell("baton job start claude --as ann 'go on'"),
        Example::Shell("rm ~/.local/share/baton/guard.calls"),
        Example::Shell("script -qc 'baton guard disable block-sudo' /dev/null"),
    ],
    good: &[
        Example::Shell("baton send otter hello"),
        Example::Shell("baton guard list"),
        Example::Shell("cat ~/.config/baton/config.toml"),
        Example::Shell("baton setup --dry-run"),
        Example::Shell("baton approvals"),
        Example::Shell("baton job start codex 'write the tests'"),
        Example::Shell("baton send otter 'run it --as root'"),
    ],
}];

fn check(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    let own: Vec<String> = facts.world.own_paths().iter().map(|own| path::join("/", own)).collect();
    for touch in &facts.touches {
        let opens_database = matches!(touch.by.as_str(), "sqlite3" | "duckdb" | "litecli");
        if !touch.deed.changes() && !opens_database {
            continue;
        }
        let paths = [touch.path.as_deref(), touch.real.as_deref()];
        let hit = paths.into_iter().flatten().any(|path| {
            own.iter().any(|own| {
                path::is_below(path, own)
                    || (matches!(touch.deed, Deed::DeleteTree | Deed::Delete)
                        && path::is_below(own, path)
                        && path != "/")
            }) || (touch.deed.changes() && path::file_name(path) == ".baton.toml")
        });
        if hit {
            return Finding::deny(format!(
                "Blocked: {} belongs to baton, and agents don't change it. Ask the person.",
                touch.show()
            ));
        }
    }
    let command = facts.commands().find(|command| {
        let words: Vec<&str> =
            operands(command.args(), &[]).iter().map(|value| value.text.as_str()).collect();
        match (command.name.as_str(), &words[..]) {
            ("baton", ["setup", ..]) => command.has_long("--remove", 5) && !command.has("--dry-run"),
            ("baton", ["guard", "disable", ..] | ["approve", ..]) => true,
            // Who somebody is, only the person says.
            ("baton", _) if command.texts().any(|arg| arg == "--as" || arg.starts_with("--as=")) => true,
            ("baton", ["config", "set" | "unset", key, ..]) => {
                key.starts_with("guard") || key.starts_with("approvals")
            }
            ("pkill" | "killall" | "taskkill", names) => names
                .iter()
                .any(|name| *name == "baton" || name.starts_with("baton ") || *name == "baton.exe"),
            _ => false,
        }
    })?;
    Finding::deny(format!(
        "Blocked: `{}` would turn off what watches over agents. Only the person does that.",
        short(&command.show())
    ))
}
