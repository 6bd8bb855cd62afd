//! Decides whether a person may be typing in this terminal, by the processes that opened it.
//!
//! A terminal alone proves nothing, because any program can open one. Every program has three known
//! ways to get a terminal without an agent above, and each shows in the processes:
//!
//! - A server that already runs starts the command: tmux, screen, cron, systemd, ssh to this
//!   machine. So the first process of the terminal must be a shell at its prompt, and the command
//!   must run below it.
//! - A program that makes terminals (script, expect, socat) loses its parent.
//! - Such a program is the first process of a new namespace.
//!
//! A program can still type into a shell that waits at its prompt.

use crate::identity::Doubt;
use baton_core::process::Process;
use baton_machine::process;
use std::path::Path;

/// Programs that start commands for other programs, each in its own terminal.
const SERVERS: &[&str] = &[
    "tmux",
    "tmux:",
    "screen",
    "SCREEN",
    "zellij",
    "dtach",
    "abduco",
    "systemd",
    "init",
    "launchd",
    "runsvdir",
    "supervisord",
    "cron",
    "crond",
    "atd",
    "anacron",
    "sshd",
    "sshd:",
    "sshd-session",
    "sshd-session:",
    "dropbear",
    "mosh-server",
];

/// Servers that adopt processes without a parent. A terminal emulator may be directly below them.
const MANAGERS: &[&str] = &["systemd", "init", "launchd", "runsvdir", "supervisord"];

/// Servers that run command lines through a shell.
const SCHEDULERS: &[&str] = &["cron", "CRON", "crond", "atd", "anacron", "systemd"];

/// Programs that make a terminal for a given command.
const TERMINAL_MAKERS: &[&str] =
    &["script", "expect", "unbuffer", "socat", "faketty", "empty", "reptyr", "ptyget"];

/// Programs that make a terminal if they run given code. With a file, they may be a terminal
/// emulator.
const INTERPRETERS: &[&str] = &["python", "perl", "ruby", "node", "php"];

const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "tcsh", "csh", "nu", "elvish", "xonsh", "pwsh",
];

/// What the decision knows about a process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenProcess {
    pid: i32,
    args: Vec<String>,
}

impl SeenProcess {
    fn of(process: Process) -> Self {
        Self { pid: process.pid, args: process::arguments(process.pid) }
    }

    /// The program's name, without a path and without the dash of a login shell. Some programs
    /// overwrite their arguments with a title: `sshd: ada@pts/0`.
    fn name(&self) -> &str {
        let first = self.args.first().map_or("", |arg| arg.split(' ').next().unwrap_or_default());
        Path::new(first)
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
            .trim_start_matches('-')
    }

    /// It starts commands for other programs.
    fn serves_others(&self) -> bool {
        SERVERS.contains(&self.name())
    }

    /// It only starts terminals for others, so the process directly below it was typed or
    /// requested.
    fn serves_terminals(&self) -> bool {
        self.serves_others() && !MANAGERS.contains(&self.name())
    }

    /// It adopts processes that have lost their parent. The first process of a system or container
    /// always does.
    fn adopts(&self) -> bool {
        self.pid == 1 || self.serves_others()
    }

    fn makes_terminals(&self) -> bool {
        let name = self.name().trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_given_code = || self.args.get(1).is_none_or(|arg| arg.starts_with('-'));
        TERMINAL_MAKERS.contains(&name) || (INTERPRETERS.contains(&name) && is_given_code())
    }

    fn is_shell(&self) -> bool {
        SHELLS.contains(&self.name())
    }

    /// A shell without a command and without a file, so it waits at its prompt.
    fn is_at_its_prompt(&self) -> bool {
        let harmless = |arg: &String| {
            let long = arg.starts_with("--");
            arg.starts_with('-')
                && (long || !arg.contains('c'))
                && !["--rcfile", "--init-file"].contains(&&**arg)
                && !arg.starts_with("--command")
                && !arg.starts_with("--init-command")
        };
        self.is_shell() && self.args.iter().skip(1).all(harmless)
    }
}

/// Why no person may be typing here, or `None` if there is no reason for doubt. `above` are all
/// processes above this one.
pub(crate) fn doubt(above: &[Process]) -> Option<Doubt> {
    let Some(leader) = process::session_leader() else { return Some(Doubt::Lost) };
    let this = process::this();
    let line: Vec<Process> = std::iter::once(this).chain(above.iter().copied()).collect();
    // A leader that is not above this process passed its terminal on. What opened that terminal is
    // unknown.
    let Some(at) = line.iter().position(|process| *process == leader) else { return Some(Doubt::NoPrompt) };
    let openers: Vec<SeenProcess> = line[at + 1..].iter().copied().map(SeenProcess::of).collect();
    judge(&SeenProcess::of(leader), leader != this, &openers)
}

/// The decision, by the first process of the terminal, whether that is another process than this
/// one (`above_us`), and the processes above it.
fn judge(leader: &SeenProcess, above_us: bool, openers: &[SeenProcess]) -> Option<Doubt> {
    if leader.serves_others() {
        // The command runs directly in a server, which has no terminal of its own.
        return Some(Doubt::NoPrompt);
    }
    let opener = openers.first()?;
    // All processes above count: a program that makes its own terminal does not hide the server
    // that started it.
    let between = |number: usize| number.checked_sub(1).map_or(leader, |below| &openers[below]);
    let was_asked_for = openers.iter().enumerate().any(|(number, server)| {
        let first = between(number);
        server.serves_terminals() && !first.is_at_its_prompt() && !first.serves_terminals()
    });
    if was_asked_for {
        return Some(Doubt::NoPrompt);
    }
    if opener.makes_terminals() {
        let left_behind = match &openers[1..] {
            // The opener is itself the first process.
            [] => true,
            [parent, rest @ ..] => {
                parent.adopts()
                    || (parent.is_shell() && rest.first().is_some_and(|by| SCHEDULERS.contains(&by.name())))
            }
        };
        return left_behind.then_some(Doubt::NoPrompt);
    }
    let prompted = above_us && leader.is_at_its_prompt();
    (opener.serves_others() && !prompted).then_some(Doubt::NoPrompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is `pid: words`, the nearest process first. `baton` as the first one means this
    /// process.
    fn judged(line: &[&str]) -> Option<Doubt> {
        let seen = |text: &&str| {
            let (pid, words) = text.split_once(": ").unwrap();
            SeenProcess { pid: pid.parse().unwrap(), args: words.split('|').map(str::to_owned).collect() }
        };
        let seen: Vec<SeenProcess> = line.iter().map(seen).collect();
        judge(&seen[0], seen[0].name() != "baton", &seen[1..])
    }

    #[test]
    fn a_person_may_type_at_a_shell_or_in_a_terminal_emulator() {
        let persons: [&[&str]; 18] = [
            &["50: sh|-c|baton approve x", "40: script|-qc|x", "30: -bash", "20: tmux|new", "1: /sbin/init"],
            &[
                "50: bash",
                "40: /usr/libexec/gnome-terminal-server",
                "30: /usr/lib/systemd/systemd|--user",
                "1: /sbin/init",
            ],
            &["50: -bash", "40: sshd: ada@pts/0", "30: sshd: ada [priv]", "1: /sbin/init"],
            &["50: -zsh", "40: sshd-session: ada@pts/0", "1: /sbin/init"],
            &["50: -bash", "40: tmux|new|-s|work", "1: /sbin/init"],
            &["50: zsh|-l", "40: /usr/bin/tmux", "1: /sbin/init"],
            &["50: -bash", "40: SCREEN|-S|x", "1: /sbin/init"],
            &["50: -bash", "40: /bin/login|-p|--", "1: /sbin/init"],
            &[
                "50: bash|--init-file|/usr/share/code/shell.sh",
                "40: /usr/share/code/code|--type=utility",
                "1: init",
            ],
            &["50: zsh", "40: kitty", "1: /sbin/init"],
            &["50: fish", "40: /usr/bin/wezterm-gui", "30: systemd|--user", "1: /sbin/init"],
            &["50: baton|approve|x", "40: xterm|-e|baton", "30: bash", "1: /sbin/init"],
            &["50: bash", "40: /usr/bin/python3|/usr/bin/terminator", "30: systemd|--user", "1: init"],
            // In containers: the first process, and what `docker exec` starts.
            &["1: bash"],
            &["7: bash"],
            &["7: baton|approve|x"],
            &["9: bash|-l", "1: /sbin/docker-init"],
            // Tests.
            &[
                "50: sh|-c|baton approve x",
                "40: script|-qec|baton approve x|/dev/null",
                "30: promises",
                "20: cargo",
                "1: init",
            ],
        ];
        for line in persons {
            assert_eq!(judged(line), None, "{line:?}");
        }
        let test = ["50: baton|approve|x", "40: python3|-c|import pty", "30: bash|run.sh", "1: init"];
        assert_eq!(judged(&test), None);
    }

    #[test]
    fn a_command_that_a_program_had_a_server_start_is_not_a_persons() {
        let programs: [&[&str]; 17] = [
            &["50: tmux|new|-s|work", "1: /process-one"],
            &["50: sh|-c|baton approve x", "40: script|-qc|x", "30: sh|-c|script", "20: tmux|new", "1: init"],
            &[
                "50: sh|-c|baton approve x",
                "40: script|-qc|x",
                "30: bash|--norc|-c|script",
                "20: tmux",
                "1: init",
            ],
            &["50: baton|approve|x", "40: tmux|new|-s|work", "1: init"],
            &["50: sh|-c|baton approve x; sleep 9", "40: tmux|new", "1: init"],
            &["50: bash|-ic|baton approve x", "40: tmux|new", "1: init"],
            &["50: bash|evil.sh", "40: SCREEN|-dm", "1: init"],
            &["50: bash|--rcfile|evil", "40: tmux", "1: init"],
            &["50: baton|approve|x", "40: /usr/lib/systemd/systemd|--user", "1: init"],
            &["50: baton|approve|x", "1: init"],
            &["50: bash|-c|baton approve x", "40: sshd: ada@pts/3", "1: init"],
            &["50: sh|-c|baton approve x", "40: script|-qc|baton approve x|/dev/null", "1: init"],
            &[
                "50: sh|-c|baton approve x",
                "40: script|-qc|baton approve x|/dev/null",
                "30: systemd|--user",
                "1: init",
            ],
            &[
                "50: sh|-c|baton approve x",
                "40: script|-qc|x",
                "30: /bin/sh|-c|script",
                "20: cron|-f",
                "1: init",
            ],
            &["50: sh|-c|baton approve x", "1: script|-qc|baton approve x|/dev/null"],
            &["50: baton|approve|x", "40: python3.11|-c|import pty", "1: init"],
            &["50: baton|approve|x", "40: socat|-|EXEC:baton,pty,ctty,setsid", "1: init"],
        ];
        for line in programs {
            assert_eq!(judged(line), Some(Doubt::NoPrompt), "{line:?}");
        }
    }
}
