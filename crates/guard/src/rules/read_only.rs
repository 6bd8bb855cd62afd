//! The rule for jobs that only read: nothing may be changed.

use super::{Example, Finding, Params, Rule};
use crate::files::is_harmless_device;
use crate::judge::{Facts, GuardEvent};
use crate::reading;
use crate::shell::Location;

/// The rule that is on in a job with `--read-only`, whatever the files say.
pub const RULE_ID: &str = "block-writes";

pub(super) const RULES: &[Rule] = &[Rule {
    id: RULE_ID,
    on: false,
    event: GuardEvent::Before,
    forbids_commands: true,
    parameters: &[],
    about: "blocks every change: files by tools or redirections, and commands that are not known to only read; on in jobs with --read-only",
    check,
    bad: &[
        Example::Write("src/a.rs", "x"),
        Example::Shell("echo x > a.txt"),
        Example::Shell("sed -i s/a/b/ src/main.rs"),
        Example::Shell("rm -rf target"),
        Example::Shell("git commit -am x"),
        Example::Shell("git branch -D old"),
        Example::Shell("git branch -a -D old"),
        Example::Shell("git stash"),
        Example::Shell("cat a | tee b"),
        Example::Shell("git grep --open-files-in-page=./evil.sh x"),
        Example::Shell("git log --output=a"),
        Example::Shell("git format-patch -1"),
        Example::Shell("perl -i -pe s/a/b/ a"),
        Example::Shell("unzip a.zip"),
        Example::Shell("GIT_PAGER=./evil.sh git log"),
        Example::Shell("cargo test"),
    ],
    good: &[
        Example::Read("src/main.rs"),
        Example::Shell("git log --oneline | head"),
        Example::Shell("git diff main...HEAD"),
        Example::Shell("git branch --list"),
        Example::Shell("grep -rn todo src 2> /dev/null"),
        Example::Shell("cat a b | sort | uniq -c"),
    ],
}];

fn check(facts: &Facts<'_>, _params: &Params) -> Option<Finding> {
    let deny = |what: String| {
        Finding::deny(format!("Blocked: {what}. This job may only read. Describe the change instead."))
    };
    let changes = facts.touches.iter().find(|touch| {
        let harmless = touch.real.as_deref().is_some_and(is_harmless_device);
        touch.deed.changes() && touch.location == Location::Here && !harmless
    });
    if let Some(touch) = changes {
        return deny(format!("{} of {}", touch.deed.as_str(), touch.show()));
    }
    let commands = facts.analysis.iter().flat_map(|analysis| &analysis.commands);
    let other = commands.into_iter().find(|command| !reading::command_reads(command))?;
    deny(format!("{} is not known to only read", other.show()))
}
