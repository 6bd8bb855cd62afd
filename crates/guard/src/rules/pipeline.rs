//! The forge's pipelines: merges, releases, workflows, secrets.

use super::{Example, Finding, Params, Rule, is_allowed, operands, short};
use crate::judge::{Facts, GuardEvent};
use crate::shell::Command;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "block-gh-pipeline",
    on: false,
    event: GuardEvent::Before,
    forbids_commands: true,
    parameters: &["allowPatterns"],
    about: "blocks merges, releases, workflow runs and secrets through gh or its API",
    check,
    bad: &[
        Example::Shell("gh pr merge 1 --squash"),
        Example::Shell("gh -R o/r workflow run ci.yml"),
        Example::Shell("gh api -X PUT repos/o/r/pulls/1/merge"),
        Example::Shell("gh api repos/o/r/actions/workflows/1/dispatches -f ref=main"),
        Example::Shell("gh secret remove A"),
        Example::Shell("curl -X PUT https://api.github.com/repos/o/r/pulls/1/merge"),
    ],
    good: &[
        Example::Shell("gh pr list"),
        Example::Shell("gh run view 1"),
        Example::Shell("gh api repos/o/r/pulls/1"),
        Example::Shell("gh pr create --body 'gh pr merge'"),
        Example::Shell("gh release list"),
    ],
}];

fn check(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let command = facts.commands_anywhere().find(|command| {
        let hit = match command.name.as_str() {
            "gh" => subcommand(command) || api(command),
            "hub" => {
                operands(command.args(), &[]).first().is_some_and(|word| word.text == "release")
                    && command.texts().any(|arg| matches!(arg, "create" | "delete" | "edit"))
            }
            "curl" | "wget" | "http" | "xh" => {
                command.texts().any(|arg| arg.contains("api.github.com")) && api(command)
            }
            _ => false,
        };
        hit && !is_allowed(command, &params.allow_patterns)
    })?;
    Finding::deny(format!(
        "Blocked: `{}` changes what others build and release from. Ask the person to do it.",
        short(&command.show())
    ))
}

fn subcommand(command: &Command) -> bool {
    let words: Vec<&str> = operands(command.args(), &["-R", "--repo", "--hostname"])
        .iter()
        .map(|value| value.text.as_str())
        .collect();
    matches!(
        &words[..],
        ["workflow", "run" | "enable" | "disable", ..]
            | ["run", "rerun" | "cancel" | "delete", ..]
            | ["pr", "merge", ..]
            | ["release", "create" | "new" | "delete" | "edit" | "upload" | "delete-asset", ..]
            | ["cache", "delete", ..]
            | ["secret", "set" | "delete" | "remove", ..]
    )
}

fn api(command: &Command) -> bool {
    let args: Vec<&str> = command.texts().collect();
    let given = args.iter().enumerate().find_map(|(number, arg)| match *arg {
        "-X" | "--method" | "--request" => args.get(number + 1).map(|method| method.to_ascii_uppercase()),
        arg => arg
            .strip_prefix("-X")
            .or(arg.strip_prefix("--method="))
            .or(arg.strip_prefix("--request="))
            .filter(|rest| !rest.is_empty())
            .map(str::to_ascii_uppercase),
    });
    let sends = args.iter().any(|arg| {
        matches!(
            *arg,
            "-f" | "-F" | "--field" | "--raw-field" | "--input" | "-d" | "--data" | "--json" | "--data-raw"
        ) || arg.starts_with("--field=")
            || arg.starts_with("--raw-field=")
    });
    let method = given.unwrap_or_else(|| if sends { "POST".to_owned() } else { "GET".to_owned() });
    if command.name == "gh" && !args.contains(&"api") {
        return false;
    }
    if args.iter().any(|arg| arg.ends_with("graphql")) {
        return args.iter().any(|arg| {
            [
                "mergePullRequest",
                "enablePullRequestAutoMerge",
                "mergeBranch",
                "createRef",
                "updateRef",
                "deleteRef",
                "rerequestCheckSuite",
            ]
            .iter()
            .any(|word| arg.contains(word))
        });
    }
    if method == "GET" || method == "HEAD" {
        return false;
    }
    args.iter().any(|arg| {
        let path = arg.trim_end_matches('/').split('?').next().unwrap_or(arg);
        path.contains("/pulls/") && path.ends_with("/merge")
            || path.ends_with("/merges")
            || path.ends_with("/dispatches")
            || path.contains("/actions/workflows/")
            || path.contains("/actions/runs/")
            || path.contains("/actions/jobs/")
            || path.contains("/actions/caches")
            || path.contains("/actions/secrets")
            || path.contains("/dependabot/secrets")
            || path.contains("/releases")
            || path.ends_with("/deployments")
    })
}
