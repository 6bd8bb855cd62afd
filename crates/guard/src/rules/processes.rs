//! Processes that keep running, large files, repeated calls.

use super::{Example, Finding, Params, Rule, operands};
use crate::judge::{Facts, GuardEvent};
use crate::shell::Command;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "warn-background-process",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes that a process is left running",
        check: background,
        bad: &[
            Example::Shell("npm start &"),
            Example::Shell("nohup server"),
            Example::Shell("docker compose up -d"),
            Example::Shell("tmux new -d -s a"),
            Example::Shell("(sleep 1; server) & disown"),
        ],
        good: &[
            Example::Shell("npm test 2>&1"),
            Example::Shell("a && b"),
            Example::Shell("docker run --rm x"),
            Example::Shell("echo 'a & b'"),
        ],
    },
    Rule {
        id: "warn-large-file-write",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &["thresholdKb"],
        about: "notes that a large file is written",
        check: large,
        bad: &[],
        good: &[Example::Write("a.txt", "small")],
    },
    Rule {
        id: "warn-repeated-tool-calls",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &["times"],
        about: "notes that the same call is repeated",
        check: repeated,
        bad: &[],
        good: &[Example::Shell("ls")],
    },
];

fn background(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    facts.commands_anywhere().find(|command| stays(command))?;
    Finding::note("This leaves a process running. Note how to stop it, and stop it when you are done.")
}

fn stays(command: &Command) -> bool {
    let words: Vec<&str> = operands(command.args(), &[]).iter().map(|value| value.text.as_str()).collect();
    let detached = command.has_long("--detach", 5)
        || command.args().iter().take_while(|arg| arg.text != "--").any(|arg| {
            arg.text.strip_prefix('-').is_some_and(|flags| {
                !flags.starts_with('-')
                    && flags.len() <= 4
                    && flags.contains('d')
                    && flags.chars().all(|sign| "ditPqm".contains(sign))
            })
        });
    if command.background {
        return true;
    }
    match command.name.as_str() {
        "nohup" | "setsid" | "disown" | "at" | "batch" | "daemonize" | "daemon" | "start-stop-daemon"
        | "systemd-run" | "Start-Job" | "bg" => true,
        "screen" => command.texts().any(|arg| arg.starts_with("-d") || arg.starts_with("-D")),
        "tmux" => {
            words.first().is_some_and(|word| matches!(*word, "new" | "new-session" | "neww" | "new-window"))
                && command.has_short("d")
        }
        "docker" | "podman" | "nerdctl" | "docker-compose" => {
            words.iter().any(|word| matches!(*word, "run" | "up" | "exec" | "start"))
                && (detached || words.first() == Some(&"start"))
        }
        "pm2" | "forever" | "supervisorctl" => {
            words.first().is_some_and(|word| matches!(*word, "start" | "restart"))
        }
        "start" => command.texts().any(|arg| arg.eq_ignore_ascii_case("/b")),
        _ => false,
    }
}

fn large(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let limit = params.threshold_kb.unwrap_or(1024).saturating_mul(1024);
    let tool = facts.request.tool;
    let sizes = [tool.and_then(|tool| tool.content.as_deref()), tool.and_then(|tool| tool.patch.as_deref())]
        .into_iter()
        .flatten()
        .map(str::len);
    let written =
        facts.analysis.iter().flat_map(|analysis| analysis.files.values()).map(|value| value.text.len());
    let size = sizes.chain(written).max()? as u64;
    if size <= limit {
        return None;
    }
    Finding::note(format!(
        "This writes {} KiB into one file. Split it, or generate it with a program.",
        size / 1024
    ))
}

fn repeated(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let times = params.times.unwrap_or(3).max(1);
    if facts.request.repeats < times {
        return None;
    }
    Finding::note(format!(
        "You already made the same call {} times. Its result won't change. Try something else.",
        facts.request.repeats
    ))
}
