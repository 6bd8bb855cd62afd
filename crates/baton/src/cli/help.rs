//! What help says beyond clap: commands in groups, examples, exit codes and environment variables.
//!
//! The tables here are the only place for these words. A test walks them: each public command is in
//! one group and has an example, and each example is a line that the parser takes.

use baton_core::{Code, Error};
use clap::Command;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The groups of the main help, in its order.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("Mail", &["send", "ask", "reply", "inbox", "mail", "wake", "dnd"]),
    ("Sessions", &["status", "who", "whoami", "name", "tag", "log"]),
    ("Jobs", &["run", "review", "job"]),
    ("Approvals and guard", &["approvals", "approve", "deny", "guard"]),
    ("Set-up", &["setup", "doctor", "config", "update", "demo"]),
    ("Other", &["help", "version", "completions"]),
];

/// Lines to type, by command: the words after `baton`, and what they do.
pub const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "",
        &[
            ("setup", "connect the agents on your PATH"),
            ("who", "who is here, and what they do"),
            ("send otter 'the schema changed'", "mail for a session"),
            ("run codex 'why is the parser test flaky?'", "a task for another agent"),
        ],
    ),
    (
        "send",
        &[
            ("send otter 'the schema changed'", "to a session of this project"),
            ("send agent:codex 'run the tests'", "to the only Codex here"),
            ("send '#backend' -", "to each session with the tag, read from standard input"),
        ],
    ),
    (
        "ask",
        &[
            ("ask otter 'which port does the test server use?'", "wait up to 45 seconds"),
            ("ask otter 'may I rename it?' --timeout 10m", "wait longer"),
        ],
    ),
    ("reply", &[("reply m1k2qx9abcd3e '8080'", "answer a message")]),
    (
        "inbox",
        &[
            ("inbox", "read what waits"),
            ("inbox --peek", "look without taking it"),
            ("inbox --wait 5m", "wait for mail"),
        ],
    ),
    (
        "mail",
        &[
            ("mail", "the history"),
            ("mail m1k2qx9abcd3e", "one message in full"),
            ("mail --search schema", "messages with a word"),
        ],
    ),
    ("wake", &[("wake otter", "let an idle session read its mail now")]),
    ("dnd", &[("dnd on otter", "its mail waits"), ("dnd until 2h otter", "until later")]),
    ("dnd on", &[("dnd on otter", "mail for otter waits")]),
    ("dnd off", &[("dnd off otter", "it comes again")]),
    ("dnd until", &[("dnd until 2h otter", "for two hours")]),
    ("status", &[("status", "the same as `baton` alone"), ("status --json", "for programs")]),
    ("who", &[("who", "in this project"), ("who --all", "everywhere, and those that have ended")]),
    ("whoami", &[("whoami", "your name, and what you are")]),
    ("name", &[("name parser", "in an agent's shell"), ("name parser --as otter", "for a session, by you")]),
    ("tag", &[("tag add backend --as otter", "then `baton send '#backend' …`")]),
    ("tag add", &[("tag add backend", "in an agent's shell")]),
    ("tag rm", &[("tag rm backend", "in an agent's shell")]),
    ("log", &[("log", "the last lines"), ("log --follow", "as things happen")]),
    (
        "run",
        &[
            ("run codex 'why is the parser test flaky?' --read-only", "it may not change anything"),
            ("run claude 'add a test for it' --worktree", "in a worktree of its own"),
        ],
    ),
    ("review", &[("review", "what is not committed"), ("review --base main", "since a commit")]),
    (
        "job",
        &[("job start codex 'update the changelog'", "returns at once"), ("job list", "what became of them")],
    ),
    ("job start", &[("job start codex 'update the changelog'", "prints the job's id")]),
    ("job list", &[("job list", "in this project"), ("job list --all", "everywhere")]),
    ("job status", &[("job status", "all that run"), ("job status jq2", "one, by the beginning of its id")]),
    ("job wait", &[("job wait jq2 --max-wait 8m", "exit 2 if it goes on")]),
    ("job result", &[("job result jq2", "what the agent answered")]),
    ("job logs", &[("job logs jq2 --follow", "until it has ended")]),
    ("job cancel", &[("job cancel jq2", "stop it, with its processes")]),
    ("job heal", &[("job heal --dry-run", "list jobs whose worker is gone")]),
    ("job prune", &[("job prune --older-than 7d", "remove what was read")]),
    (
        "approvals",
        &[
            ("approvals", "the questions that wait"),
            ("approvals ak2", "all of one"),
            ("approvals --watch", "keep watching, and hold new ones for you"),
        ],
    ),
    (
        "approve",
        &[("approve ak2", "after you have seen it"), ("approve ak2 --always", "and what is like it")],
    ),
    ("deny", &[("deny ak2 --reason 'keep build/'", "the agent gets the reason")]),
    (
        "guard",
        &[
            ("guard list", "every rule"),
            ("guard explain -- git push -f origin main", "what a command would meet"),
            ("guard disable block-sudo", "switch a rule off"),
        ],
    ),
    ("guard list", &[("guard list", "with on and off")]),
    (
        "guard enable",
        &[("guard enable block-kubectl", "for you"), ("guard enable block-kubectl --project", "for all")],
    ),
    ("guard disable", &[("guard disable block-sudo", "only you may")]),
    (
        "guard explain",
        &[("guard explain block-sudo", "a rule"), ("guard explain -- rm -rf build", "a command")],
    ),
    ("guard check", &[("guard check --agent claude", "with a native payload on standard input")]),
    ("guard log", &[("guard log", "what was refused or asked")]),
    ("guard replay", &[("guard replay --since 7d", "over past conversations")]),
    (
        "setup",
        &[
            ("setup --dry-run", "what would change"),
            ("setup", "connect every agent on your PATH"),
            ("setup claude codex", "only these"),
            ("setup --remove", "take it out again"),
            ("setup --remove --purge", "and delete mail, jobs and settings"),
        ],
    ),
    ("doctor", &[("doctor", "check the installation")]),
    ("update", &[("update", "how this copy was installed, and what to run")]),
    (
        "config",
        &[
            ("config", "every setting"),
            ("config limits.hops", "one"),
            ("config limits.hops 4", "set it in your file"),
            ("config --unset limits.hops", "back to the default"),
        ],
    ),
    ("demo", &[("demo", "15 seconds, in a temporary home")]),
    ("help", &[("help", "the commands"), ("help job start", "one command")]),
    (
        "completions",
        &[
            ("completions bash", "for eval in ~/.bashrc"),
            ("completions fish", "for a file of fish's completions"),
        ],
    ),
    ("version", &[("version", "which baton this is")]),
];

/// What the main help says at its end.
const ENDING: &str = "\
Exit codes:
  0   done
  1   failed; `error:` and `hint:` are on standard error
  2   not yet: a wait ran out, and what it waited for goes on
  3   refused by a rule or a missing permission
  64  wrong usage

Environment:
  BATON_HOME       the folder with baton's state (default: ~/.local/share/baton)
  BATON_CONFIG     another config.toml; it can only make the guard stricter
  NO_COLOR         no colours
  CLICOLOR_FORCE   colours in files and pipes too

`baton help COMMAND` says more about one command. `--json` prints documents for programs.";

/// Help for a command: the text, and a document that says the same.
pub struct Help {
    pub text: String,
    pub document: Value,
}

/// Help for the command with these words.
pub fn of(whole: Command, words: &[String]) -> Result<Help, Error> {
    let groups = groups(&whole);
    let mut whole = whole.help_template(format!(
        "{{about}}\n\nUsage: {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ));
    whole.build();
    let mut path = String::new();
    let mut command = whole;
    for word in words {
        let names: Vec<String> = public(&command).map(|below| below.get_name().to_owned()).collect();
        let Some(below) = command.find_subcommand(word).cloned() else {
            let above = format!("baton {path}").trim_end().to_owned();
            let message = format!("`{above}` has no command {}", baton_core::frame::shown(word, 40));
            return Err(Error::new(Code::Usage, message).hint(super::wrong::meant(word, &names, &above)));
        };
        path = format!("{path} {word}").trim().to_owned();
        command = below;
    }
    let ending = match (examples(&path), path.as_str()) {
        (examples, "") => format!("{examples}\n\n{ENDING}"),
        (examples, _) => examples,
    };
    let mut command = command.after_help(ending);
    Ok(Help { text: command.render_help().to_string(), document: document(&command, &path) })
}

/// The command that these arguments name, as far as they name one.
pub fn named(whole: Command, arguments: &[String]) -> Vec<String> {
    let mut whole = whole;
    whole.build();
    let (mut command, mut words) = (&whole, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument.starts_with('-') {
            let takes_value = |option: &clap::Arg| {
                option.get_action().takes_values()
                    && option.get_long().is_some_and(|long| argument.strip_prefix("--") == Some(long))
            };
            if command.get_arguments().any(takes_value) {
                arguments.next();
            }
            continue;
        }
        let Some(below) = command.find_subcommand(argument) else { break };
        words.push(argument.clone());
        command = below;
    }
    words
}

fn examples(path: &str) -> String {
    let Some((_, lines)) = EXAMPLES.iter().find(|(known, _)| *known == path) else { return String::new() };
    let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    let mut text = "Examples:".to_owned();
    for (line, what) in *lines {
        // Writing to a String can't fail.
        _ = write!(text, "\n  baton {line:width$}  # {what}");
    }
    text
}

fn groups(whole: &Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (title, names) in GROUPS {
        _ = writeln!(text, "{title}:");
        for name in *names {
            let about = whole.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            _ = writeln!(text, "  {name:width$}  {about}");
        }
        text.push('\n');
    }
    text
}

/// What a program may want of a command's help. Internals are left out.
fn document(command: &Command, path: &str) -> Value {
    let about = |command: &Command| command.get_about().map(ToString::to_string);
    let commands: Vec<Value> =
        public(command).map(|below| json!({"name": below.get_name(), "about": about(below)})).collect();
    let usage = command.clone().render_usage().to_string();
    json!({
        "command": format!("baton {path}").trim_end(),
        "about": about(command),
        "usage": usage.trim_start_matches("Usage: ").trim(),
        "commands": commands,
    })
}

fn public(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}
