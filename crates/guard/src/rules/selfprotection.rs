//! What an agent must not change or turn off in baton itself.
//!
//! Three questions, each in its own file: does the call change a file of baton ([`files`]), does it
//! run or end baton in a way that agents may not ([`commands`]), does it turn an agent's hooks off
//! ([`switches`])? All three go by what a command means and where its paths lead.

mod commands;
mod files;
mod switches;

use super::{Example, Finding, Params, Rule, operands, short};
use crate::judge::{Facts, GuardEvent};

pub(super) const RULES: &[Rule] = &[Rule {
    id: "protect-baton",
    on: true,
    event: GuardEvent::Before,
    forbids_commands: true,
    parameters: &[],
    about: "blocks agents from changing baton's state, rules, hooks and plugins",
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
        Example::Shell("baton --home /tmp/x guard disable block-sudo"),
        Example::Shell("tmux send-keys -t %1 'baton approve a1b2' Enter"),
        Example::Shell("ln -sf /dev/null ~/.config/baton/config.toml"),
        Example::Shell("kill $(pgrep baton)"),
        Example::Shell("sqlite3 :memory: \"attach '/home/me/.local/share/baton/baton.db' as b\""),
        Example::Shell("cd ~/.config/baton && unzip -o /tmp/x.zip"),
        Example::Shell("ulimit -x unlimited"),
    ],
    good: &[
        Example::Shell("baton send otter hello"),
        Example::Shell("baton guard list"),
        Example::Shell("cat ~/.config/baton/config.toml"),
        Example::Shell("baton setup --dry-run"),
        Example::Shell("baton approvals"),
        Example::Shell("baton job start codex 'write the tests'"),
        Example::Shell("baton send otter 'run it --as root'"),
        Example::Shell("baton guard disable --help"),
        Example::Shell("git checkout main"),
        Example::Shell("tar xzf src.tar.gz"),
        Example::Shell("kill $(pgrep node)"),
    ],
}];

fn check(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    let own = files::Own::of(facts);
    files::check(facts, &own).or_else(|| commands::check(facts, &own)).or_else(|| switches::check(facts))
}

fn belongs(what: &str) -> Option<Finding> {
    Finding::deny(format!(
        "Blocked: {} belongs to baton, and agents may not change it. Ask the person.",
        short(what)
    ))
}

fn turns_off(what: &str) -> Option<Finding> {
    Finding::deny(format!(
        "Blocked: `{}` would turn off the checks on agents. Only the person may do that.",
        short(what)
    ))
}

#[cfg(test)]
mod tests {
    use crate::{Decision, FakeWorld, Request, RuleSet, judge};
    use baton_core::tool::{ToolKind, ToolUse};

    #[test]
    fn a_job_changes_its_own_worktree_and_no_other_file_of_baton() {
        let home = "/home/me/.local/share/baton";
        let decision = |project: &str, command: &str| {
            let mut world = FakeWorld::new(project, "/home/me");
            world.own = vec![home.to_owned()];
            world.links.insert(format!("{home}/worktrees/j1/out"), format!("{home}/baton.db"));
            let tool = ToolUse { command: Some(command.to_owned()), ..ToolUse::new(ToolKind::Shell, "Bash") };
            judge(&Request::before("claude", &tool), &RuleSet::standard(), &world).verdict.decision
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
        // From elsewhere the worktree is as closed as the rest, and no other folder opens anything.
        for project in ["/home/me/project", home, &format!("{home}/worktrees"), &format!("{home}/jobs/j1")] {
            assert!(matches!(decision(project, &format!("touch {mine}/made")), Decision::Deny), "{project}");
        }
    }
}
