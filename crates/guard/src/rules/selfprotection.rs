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
    let work = facts.world.project();
    let work = Some(work.trim_end_matches('/')).filter(|work| own.iter().any(|own| is_worktree(work, own)));
    for touch in &facts.touches {
        let opens_database = matches!(touch.by.as_str(), "sqlite3" | "duckdb" | "litecli");
        if !touch.deed.changes() && !opens_database {
            continue;
        }
        let paths = [touch.path.as_deref(), touch.real.as_deref()];
        let hit = paths.into_iter().flatten().any(|path| {
            own.iter().any(|own| {
                path::is_below(path, own)
                    && !work.is_some_and(|work| path != work && path::is_below(path, work))
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

/// Whether a folder is the worktree of a job, which lies below baton's own folder: whoever works in one may change what is in it, and in no other.
fn is_worktree(folder: &str, own: &str) -> bool {
    let inside =
        folder.strip_prefix(own.trim_end_matches('/')).and_then(|rest| rest.strip_prefix("/worktrees/"));
    inside.is_some_and(|job| !job.is_empty() && !job.contains('/'))
}

#[cfg(test)]
mod tests {
    use crate::{Call, Decision, RuleSet, Told, judge};
    use baton_core::tool::{ToolKind, ToolUse};

    #[test]
    fn a_job_changes_its_own_worktree_and_nothing_else_of_batons() {
        let home = "/home/me/.local/share/baton";
        let decision = |project: &str, command: &str| {
            let mut world = Told::new(project, "/home/me");
            world.own = vec![home.to_owned()];
            world.links.insert(format!("{home}/worktrees/j1/out"), format!("{home}/baton.db"));
            let tool = ToolUse { command: Some(command.to_owned()), ..ToolUse::new(ToolKind::Shell, "Bash") };
            judge(&Call::before("claude", &tool), &RuleSet::standard(), &world).verdict.decision
        };
        let mine = format!("{home}/worktrees/j1");
        for command in ["touch made", "echo x > src/a", &format!("touch {mine}/made"), "rm made"] {
            assert_eq!(decision(&mine, command), Decision::Allow, "{command}");
            assert_eq!(decision(&format!("{mine}/"), command), Decision::Allow, "{command}");
        }
        for command in [
            "touch ../j2/made",
            "touch ../../baton.db",
            "echo x > out",
            "touch .baton.toml",
            "rm -rf ../j1",
            "rm -rf ../..",
        ] {
            assert!(matches!(decision(&mine, command), Decision::Deny), "{command}");
        }
        // From elsewhere it is as closed as the rest, and no other folder opens anything.
        for project in ["/home/me/project", home, &format!("{home}/worktrees"), &format!("{home}/jobs/j1")] {
            assert!(matches!(decision(project, &format!("touch {mine}/made")), Decision::Deny), "{project}");
        }
    }
}
