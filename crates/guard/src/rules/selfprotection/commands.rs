//! Commands of baton, read as baton reads them, and commands that end it or hide where a process
//! comes from.

use super::files::Own;
use super::{operands, turns_off};
use crate::judge::Facts;
use crate::path;
use crate::rules::Finding;
use crate::shell::{self, Command};
use baton_core::guard::OwnLine;

const PROGRAM_NAME: &str = "baton";
/// Programs that type a text into a terminal or a window, or store it to run later.
const TYPING_PROGRAMS: &[&str] = &[
    "tmux",
    "screen",
    "socat",
    "crontab",
    "xdotool",
    "ydotool",
    "wtype",
    "dotool",
    "kitty",
    "kitten",
    "wezterm",
    "expect",
    "autoexpect",
    "dtach",
    "abduco",
    "ttyecho",
    "osascript",
    "cliclick",
];
/// Variables by which baton knows the processes of a job.
const JOB_VARIABLES: &[&str] = &["BATON_JOB", "BATON_JOB_DEPTH", "BATON_SERVER", "BATON_READ_ONLY"];
/// Signs of a pattern that is a part of the program's name, at the least.
const MIN_PART_SIGNS: usize = 2;
/// How deep typed texts that type other texts are followed.
const MAX_TYPED_DEPTH: usize = 3;

pub(super) fn check(facts: &Facts<'_>, own: &Own<'_>) -> Option<Finding> {
    let commands: Vec<&Command> = facts.commands_anywhere().collect();
    commands_check(facts, own, &commands, MAX_TYPED_DEPTH)
}

fn commands_check(facts: &Facts<'_>, own: &Own<'_>, commands: &[&Command], depth: usize) -> Option<Finding> {
    let looks_for_baton = commands.iter().any(|command| finds_baton(command));
    let reads_own =
        || facts.touches.iter().any(|touch| touch.real.as_deref().is_some_and(|real| own.holds(real)));
    for command in commands {
        if is_baton(command, facts) {
            if let Some(found) = judge(command, facts) {
                return Some(found);
            }
        } else if ends_baton(command)
            || (acts_on_processes(command) && (looks_for_baton || reads_own()))
            || clears_marks(command)
            || (clears_everything(command) && runs_baton(command, commands, facts))
        {
            return turns_off(&command.show());
        } else if depth > 0 && TYPING_PROGRAMS.contains(&command.name.as_str()) {
            let found = typed(command, facts, own, depth);
            if found.is_some() {
                return found;
            }
        }
    }
    let text = facts.request.tool.and_then(|tool| tool.command.as_deref()).unwrap_or("");
    // The kernel limit that marks what an agent has started.
    (text.contains("RLIMIT_LOCKS")).then(|| turns_off("RLIMIT_LOCKS"))?
}

fn is_baton(command: &Command, facts: &Facts<'_>) -> bool {
    if command.name == PROGRAM_NAME {
        return true;
    }
    let Some(word) = command.words.first().filter(|word| word.text.contains('/')) else { return false };
    let path = path::join(command.cwd.as_deref().unwrap_or("/"), &word.text);
    let copied = facts.analysis.as_ref().and_then(|analysis| analysis.links.get(&path));
    path::file_name(&crate::files::real(&path, facts.world)) == PROGRAM_NAME
        || copied.is_some_and(|from| path::file_name(from) == PROGRAM_NAME)
        || facts.world.is_own_program(&path)
}

/// Checks a command line of baton with baton's own parser.
fn judge(command: &Command, facts: &Facts<'_>) -> Option<Finding> {
    // The value of a variable counts as one word. baton itself refuses a value that is not allowed.
    let words: Vec<String> = command
        .args()
        .iter()
        .map(|value| if value.is_known() { value.text.clone() } else { format!("{}x", value.text) })
        .collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    match facts.world.own_line(&texts) {
        OwnLine::Free => None,
        OwnLine::Refused(_) => turns_off(&command.show()),
        OwnLine::Unreadable if command.args().iter().any(|value| !value.is_known()) => Finding::ask(format!(
            "`{}` is a command of baton's that can't be read before it runs.",
            super::short(&command.show())
        )),
        OwnLine::Unreadable => Finding::deny(format!(
            "Blocked: `{}` is not a command of baton. `baton --help` lists them.",
            super::short(&command.show())
        )),
    }
}

/// Judges a typed text as a command.
fn typed(command: &Command, facts: &Facts<'_>, own: &Own<'_>, depth: usize) -> Option<Finding> {
    let mut texts: Vec<&str> = command.texts().filter(|text| text.contains(PROGRAM_NAME)).collect();
    texts.extend(command.stdin.as_deref().map(|stdin| stdin.text.as_str()));
    texts.into_iter().find_map(|text| {
        let text = text.replace("\\n", "\n").replace("\\r", "\n");
        let from = text.find(PROGRAM_NAME)?;
        let analysis = shell::analyse(text.get(from..)?.trim_end_matches(['"', '\'', '}']), facts.world);
        let commands: Vec<&Command> = analysis.commands.iter().collect();
        commands_check(facts, own, &commands, depth - 1)
    })
}

/// Whether it lists the processes of baton.
fn finds_baton(command: &Command) -> bool {
    let valued: &[&str] = match command.name.as_str() {
        "lsof" | "fuser" => &["-u", "-g", "-p"],
        _ => &["-u", "-U", "-g", "-P", "-s", "-t"],
    };
    let names = operands(command.args(), valued);
    matches!(command.name.as_str(), "pgrep" | "pidof" | "grep" | "awk" | "ps" | "lsof" | "fuser")
        && names.iter().any(|name| may_match(&name.text))
}

/// Whether it signals, traces or changes processes that it does not name.
fn acts_on_processes(command: &Command) -> bool {
    match command.name.as_str() {
        "kill" | "gdb" | "lldb" | "strace" | "ltrace" | "prlimit" | "reptyr" | "renice" | "criu" => true,
        "xargs" => command.texts().any(|word| word == "kill"),
        _ => false,
    }
}

fn ends_baton(command: &Command) -> bool {
    let words: Vec<&str> = operands(command.args(), &["-s", "--signal", "-u", "-t"])
        .iter()
        .map(|value| value.text.as_str())
        .collect();
    match command.name.as_str() {
        "killall5" => true,
        // Every process that the person has.
        "kill" => command.args().iter().skip(1).any(|arg| arg.text == "-1") || is_only_all(command),
        "pkill" => words.iter().any(|name| may_match(name) || is_part_of_name(name)),
        "killall" | "skill" | "taskkill" | "Stop-Process" | "fuser" => {
            words.iter().any(|name| may_match(name))
        }
        "cargo" | "brew" | "npm" | "pnpm" | "pip" | "pip3" | "pipx" | "uv" | "apt" | "apt-get" | "dnf"
        | "yum" | "pacman" | "apk" | "snap" | "nix-env" | "port" | "scoop" | "winget" | "choco" | "mise"
        | "asdf" => {
            const TAKES: &[&str] =
                &["uninstall", "remove", "rm", "purge", "unlink", "autoremove", "-R", "-Rs", "-e"];
            command.texts().any(|word| TAKES.contains(&word)) && words.contains(&PROGRAM_NAME)
        }
        "systemctl" | "launchctl" | "service" | "rc-service" => {
            const ENDS: &[&str] = &[
                "stop",
                "kill",
                "disable",
                "mask",
                "restart",
                "unload",
                "bootout",
                "remove",
                "reset-failed",
            ];
            words.iter().any(|word| ENDS.contains(word))
                && words.iter().any(|word| word.contains(PROGRAM_NAME))
        }
        "ulimit" => {
            command.texts().any(|word| word.starts_with('-') && word.contains('x')) && !words.is_empty()
        }
        "prlimit" => command
            .texts()
            .any(|word| word.starts_with("--locks=") || (word.starts_with("-x") && word.len() > 2)),
        _ => false,
    }
}

/// `kill -- -1`.
fn is_only_all(command: &Command) -> bool {
    let words: Vec<&str> = command.texts().collect();
    matches!(words[..], ["--", "-1"])
}

/// Whether a pattern is a part of the program's name, which is enough for `pkill`.
fn is_part_of_name(pattern: &str) -> bool {
    let plain = pattern.trim_start_matches('^').trim_end_matches(".*").to_ascii_lowercase();
    plain.len() >= MIN_PART_SIGNS && PROGRAM_NAME.contains(&plain)
}

/// Whether a pattern of process names or command lines matches baton.
fn may_match(pattern: &str) -> bool {
    let plain: String = pattern.chars().filter(|sign| !"[]^$\\()?+".contains(*sign)).collect();
    let plain = plain.replace(".*", "").replace('*', "");
    let signs: Vec<char> = plain.to_ascii_lowercase().chars().collect();
    signs.windows(PROGRAM_NAME.len()).any(|part| {
        part.iter().zip(PROGRAM_NAME.chars()).all(|(sign, wanted)| *sign == wanted || *sign == '.')
            && part.iter().any(|sign| *sign != '.')
    })
}

/// Whether the program that it starts gets an empty environment, and so none of the job's
/// variables.
fn clears_everything(command: &Command) -> bool {
    let has = |sign: char| {
        command
            .texts()
            .take_while(|word| word.starts_with('-') || word.contains('='))
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(sign))
    };
    match command.name.as_str() {
        "env" | "genv" => {
            has('i') || command.texts().any(|word| word == "-" || word == "--ignore-environment")
        }
        "exec" => has('c'),
        _ => false,
    }
}

/// Whether one of these commands is baton's and is in the words of this one.
fn runs_baton(command: &Command, commands: &[&Command], facts: &Facts<'_>) -> bool {
    commands.iter().filter(|other| is_baton(other, facts)).any(|baton| {
        let program = baton.words.first().map_or(PROGRAM_NAME, |word| word.text.as_str());
        command.texts().filter(|word| !is_assignment(word)).any(|word| word.contains(program))
    })
}

/// Whether a word of `env` sets a variable. Its value, such as a search path, runs nothing.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_')
            && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Whether it removes the variables of a job from what it starts.
fn clears_marks(command: &Command) -> bool {
    let names = |word: &str| JOB_VARIABLES.contains(&word.split('=').next().unwrap_or(word));
    match command.name.as_str() {
        "unset" | "export" | "declare" | "typeset" | "env" | "genv" => command.texts().any(|word| {
            names(word)
                || word.strip_prefix("-u").is_some_and(names)
                || word.strip_prefix("--unset=").is_some_and(names)
        }),
        _ => command.assignments.iter().any(|(name, _)| JOB_VARIABLES.contains(&name.as_str())),
    }
}
