//! Where the output of a command goes that prints a secret: to the reader, or into a program that
//! only uses it.

use crate::judge::Facts;
use crate::shell::syntax::RedirectOp;
use crate::shell::{Command, FILTERS, Origin, Value};

/// Commands that print their words.
const PRINTING_COMMANDS: &[&str] =
    &["echo", "printf", "print", "Write-Output", "Write-Host", "logger", "wall", "say", "notify-send", ":"];
/// Commands that send their words or their input to another machine.
const SENDING_COMMANDS: &[&str] =
    &["curl", "wget", "http", "https", "xh", "curlie", "nc", "ncat", "netcat", "socat", "telnet"];
/// Options that say that a password is read from the input.
const PASSWORD_OPTIONS: &[&str] =
    &["--password-stdin", "--with-token", "--token-stdin", "--passphrase-fd", "--passwd-stdin", "--passin"];
/// Commands that keep what they read, with the words that they need for that.
const KEEPING_COMMANDS: &[(&str, &[&str])] = &[
    ("gh", &["secret", "set"]),
    ("glab", &["variable", "set"]),
    ("wrangler", &["secret", "put"]),
    ("vercel", &["env", "add"]),
    ("fly", &["secrets", "import"]),
    ("flyctl", &["secrets", "import"]),
    ("kubectl", &["create", "secret"]),
    ("vault", &["login", "-"]),
    ("op", &["item", "create"]),
    ("docker", &["secret", "create"]),
    ("podman", &["secret", "create"]),
    ("wc", &[]),
    ("sha256sum", &[]),
    ("ssh-add", &[]),
];

/// Whether a reader sees what a command prints.
pub(super) fn is_seen(command: &Command, facts: &Facts<'_>) -> bool {
    let all = facts.analysis.as_ref().map_or(&[][..], |analysis| &analysis.commands);
    if goes_nowhere(command) || is_taken_in(command, all) {
        return false;
    }
    let later: Vec<&Command> = command.piped_at.iter().filter_map(|at| all.get(*at)).collect();
    if later.iter().any(|command| SENDING_COMMANDS.contains(&command.name.as_str())) {
        return true;
    }
    let is_captured = later.last().map_or(command.captured, |last| last.captured);
    let is_passed_on = later.iter().all(|other| FILTERS.contains(&other.name.as_str()));
    !is_captured || !is_passed_on || all.iter().any(|other| shows_captured(other, command, all))
}

/// Whether its output is thrown away.
fn goes_nowhere(command: &Command) -> bool {
    command.redirects.iter().any(|redirect| {
        matches!(redirect.fd, None | Some(1))
            && matches!(
                redirect.op,
                RedirectOp::Write | RedirectOp::WriteBoth | RedirectOp::Append | RedirectOp::AppendBoth
            )
            && redirect.target.literal() == Some("/dev/null")
    })
}

/// Whether a command behind it in the pipe keeps what it reads, and shows none of it.
fn is_taken_in(command: &Command, all: &[Command]) -> bool {
    command.piped_at.iter().filter_map(|at| all.get(*at)).any(|other| {
        let is_quiet_search = matches!(other.name.as_str(), "grep" | "egrep" | "rg") && other.has_short("qc");
        is_quiet_search
            || other.texts().any(|arg| PASSWORD_OPTIONS.contains(&arg))
            || KEEPING_COMMANDS
                .iter()
                .any(|(name, words)| other.name == *name && words.iter().all(|word| other.has(word)))
    })
}

/// Whether a command prints or sends what a substitution took from a command that prints a secret.
fn shows_captured(command: &Command, secret: &Command, all: &[Command]) -> bool {
    let holds = |value: &Value| {
        value.holes.iter().any(|(_, origin)| match origin {
            Origin::Output(name) => **name == *secret.name,
            Origin::Decoded | Origin::Download => true,
            _ => false,
        })
    };
    let name = command.name.as_str();
    if SENDING_COMMANDS.contains(&name) {
        let args = command.args();
        return args.iter().enumerate().any(|(number, arg)| {
            let option = number.checked_sub(1).and_then(|before| args.get(before));
            holds(arg) && !is_login(arg, option.map_or("", |option| option.text.as_str()))
        });
    }
    let is_text = |redirect: &&crate::shell::Redirection| {
        matches!(redirect.op, RedirectOp::HereString | RedirectOp::HereDocument)
    };
    let prints = PRINTING_COMMANDS.contains(&name) && command.args().iter().any(holds);
    let passes_on = FILTERS.contains(&name)
        && command.redirects.iter().filter(is_text).any(|redirect| holds(&redirect.target));
    (prints || passes_on)
        && !command.captured
        && !goes_nowhere(command)
        && !is_taken_in(command, all)
        && command.piped_to.iter().all(|name| FILTERS.contains(&name.as_str()))
}

/// Whether a word is a login for the address that is asked: a header, or a name and password.
fn is_login(arg: &Value, option: &str) -> bool {
    let is_short =
        |option: &str| option.starts_with('-') && !option.starts_with("--") && option.ends_with(['H', 'u']);
    is_short(option)
        || matches!(option, "--header" | "--user" | "--oauth2-bearer" | "--password")
        || ["--header=", "--user=", "--password=", "-H", "-u", "Authorization:"]
            .iter()
            .any(|start| arg.text.starts_with(start))
}
