//! Files with environment variables, and the environment itself.

use super::{Example, Finding, Params, Rule, operands, short};
use crate::files::{Deed, is_harmless_device};
use crate::judge::{Facts, Moment};
use crate::secrets::{is_env_file, is_secret_name};
use crate::shell::syntax::RedirectOp;
use crate::shell::{Command, FILTERS, Origin, Value};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "block-env-files",
        on: true,
        event: Moment::Before,
        forbids_commands: true,
        parameters: &[],
        about: "no .env, .env.*, .envrc; examples and templates are free",
        check: env_files,
        bad: &[
            Example::Read(".env"),
            Example::Read("/app/.env.local"),
            Example::Write("/home/me/project/.envrc", "export A=1"),
            Example::Shell("cat .e*"),
            Example::Shell("ln -s .env x; cat x"),
            Example::Shell("find . -name .env -exec cat {} +"),
            Example::Shell("while read l; do echo $l; done < .env"),
            Example::Shell("git show HEAD:.env"),
        ],
        good: &[
            Example::Read(".env.example"),
            Example::Read("src/env.ts"),
            Example::Shell("grep -rn import.meta.env src"),
            Example::Shell("git commit -m 'read .env'"),
            Example::Shell("test -f .env"),
            Example::Shell("ls -la .env"),
        ],
    },
    Rule {
        id: "protect-env-vars",
        on: true,
        event: Moment::Before,
        forbids_commands: true,
        parameters: &[],
        about: "no dump of the environment, no printing of variables that look like secrets",
        check: env_vars,
        bad: &[
            Example::Shell("env | sort"),
            Example::Shell("echo \"$GITHUB_TOKEN\""),
            Example::Shell("printenv AWS_SECRET_ACCESS_KEY"),
            Example::Shell("cat /proc/self/environ"),
            Example::Shell("x=$API_KEY; printf %s $x | base64"),
            Example::Shell("node -e 'console.log(process.env)'"),
            Example::Shell("declare -p"),
        ],
        good: &[
            Example::Shell("echo $HOME $PATH"),
            Example::Shell("env FOO=1 npm test"),
            Example::Shell("export TOKEN=abc"),
            Example::Shell("curl -H \"Authorization: Bearer $TOKEN\" https://example.com"),
            Example::Shell("echo \"$PASSWORD\" | docker login -u me --password-stdin"),
            Example::Shell("[ -n \"$API_KEY\" ] && echo set"),
            Example::Shell("node -p process.env.HOME"),
        ],
    },
];

/// Commands that show a file's name and nothing in it.
const LISTERS: &[&str] = &[
    "ls",
    "dir",
    "vdir",
    "tree",
    "du",
    "find",
    "fd",
    "stat",
    "file",
    "exa",
    "eza",
    "lsd",
    "Get-ChildItem",
    "gci",
    "gls",
];

fn env_files(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    const NAMES: &[&str] =
        &[".env", ".envrc", ".env.local", ".env.production", ".env.development", ".env.test"];
    let touch = facts.touches.iter().find(|touch| {
        let counts = touch.deed != Deed::List || !LISTERS.contains(&touch.by.as_str());
        counts && touch.may_be_named(NAMES, is_env_file)
    })?;
    Finding::deny(format!(
        "Blocked: {} of {}, which holds secrets. Use .env.example, or ask the person for the value that you need.",
        touch.deed.as_str(),
        touch.show()
    ))
}

fn env_vars(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    if let Some(touch) = facts.touches.iter().find(|touch| {
        touch.deed == Deed::Read
            && touch
                .path
                .as_deref()
                .is_some_and(|path| path.starts_with("/proc/") && path.ends_with("/environ"))
    }) {
        return Finding::deny(format!(
            "Blocked: {} is the whole environment, with its secrets. Name the one variable that you need.",
            touch.show()
        ));
    }
    for command in facts.commands() {
        if dumps(command) {
            return Finding::deny(format!(
                "Blocked: `{}` prints the whole environment, with its secrets. Name the one variable that you need.",
                short(&command.show())
            ));
        }
        if let Some(name) = printed_secret(command) {
            return Finding::deny(format!(
                "Blocked: this would print ${name}, which looks like a secret. Use it without showing it."
            ));
        }
    }
    None
}

fn dumps(command: &Command) -> bool {
    let args = command.args();
    let flags_only = args.iter().all(|arg| arg.text.starts_with('-'));
    let asks_help = args.iter().any(|arg| matches!(arg.text.as_str(), "--help" | "--version"));
    if asks_help {
        return false;
    }
    match command.name.as_str() {
        "env" | "genv" => {
            let mut rest = args.iter();
            while let Some(arg) = rest.next() {
                match arg.text.as_str() {
                    "-u" | "--unset" | "-C" | "--chdir" => drop(rest.next()),
                    "-S" | "--split-string" | "-i" | "--ignore-environment" | "-" => return false,
                    text if text.starts_with("-S") || text.starts_with("--split-string=") => return false,
                    text if text.starts_with('-') || text.contains('=') => {}
                    _ => return false,
                }
            }
            true
        }
        "printenv" => operands(args, &[]).is_empty(),
        "set" => args.is_empty() && !command.in_code,
        "export" => {
            args.is_empty() && command.assignments.is_empty() || (flags_only && command.has_short("p"))
        }
        "declare" | "typeset" | "readonly" => {
            args.is_empty() && command.assignments.is_empty()
                || (flags_only && !args.is_empty() && !command.has_short("fF"))
        }
        "Get-ChildItem" | "gci" | "dir" | "ls" | "Get-Item" | "gi" | "get-childitem" | "Get-Content" => {
            args.iter().any(|arg| {
                let lower = arg.text.to_ascii_lowercase();
                matches!(lower.as_str(), "env:" | "env:*" | "env:\\" | "env:\\*" | "env:/" | "env:\\\\")
                    || (lower.starts_with("env:") && is_secret_name(&lower.to_ascii_uppercase()))
            })
        }
        "[Environment]::GetEnvironmentVariables" => true,
        "ps" => args.iter().enumerate().any(|(number, arg)| {
            let text = arg.text.as_str();
            let bsd = number == 0
                && !text.starts_with('-')
                && text.contains('e')
                && text.chars().all(|sign| sign.is_ascii_alphabetic());
            bsd || text == "-E" || text == "-Eww" || text == "eww" || text == "e"
        }),
        "jq" | "yq" | "gojq" => args.iter().any(|arg| shows_environment(&arg.text)),
        "systemctl" => command.has("show-environment"),
        "launchctl" => command.has("export"),
        "tmux" => command.has("show-environment") || command.has("showenv"),
        "sh" | "bash" | "zsh" => false,
        name => name.contains("GetEnvironmentVariables"),
    }
}

/// Whether a program of `jq` shows the environment.
fn shows_environment(program: &str) -> bool {
    if program.contains("$ENV") || program.contains("strenv") || program.contains("envsubst") {
        let name: String = program
            .split("$ENV.")
            .nth(1)
            .unwrap_or("")
            .chars()
            .take_while(|sign| sign.is_ascii_alphanumeric() || *sign == '_')
            .collect();
        return name.is_empty() || is_secret_name(&name);
    }
    let Some(at) = program.find("env") else { return false };
    let before = program.get(..at).unwrap_or("").chars().next_back();
    let after = program.get(at + 3..).unwrap_or("");
    let alone = before
        .is_none_or(|sign| !(sign.is_ascii_alphanumeric() || matches!(sign, '_' | '.' | '/' | '-' | '"')));
    let name: String = after
        .strip_prefix('.')
        .unwrap_or("")
        .chars()
        .take_while(|sign| sign.is_ascii_alphanumeric() || *sign == '_')
        .collect();
    let ends = after
        .chars()
        .next()
        .is_none_or(|sign| !(sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '/' | ':' | '=')));
    alone && ends && (name.is_empty() || is_secret_name(&name))
}

/// The secret that a command would show.
fn printed_secret(command: &Command) -> Option<String> {
    let secret_in = |value: &Value| {
        let hole = value.holes.iter().find_map(|(_, origin)| match origin {
            Origin::Variable(name) if is_secret_name(name) => Some(name.to_string()),
            _ => None,
        });
        hole.or_else(|| value.variables.iter().find(|name| is_secret_name(name)).map(|name| name.to_string()))
    };
    if command.name == "printenv" {
        return command.args().iter().map(|arg| arg.text.clone()).find(|name| is_secret_name(name));
    }
    if matches!(command.name.as_str(), "declare" | "typeset" | "export") && command.has_short("p") {
        return command
            .args()
            .iter()
            .map(|arg| arg.text.clone())
            .find(|name| !name.starts_with('-') && is_secret_name(name));
    }
    let to_nowhere = command.redirects.iter().any(|redirect| {
        redirect.fd.unwrap_or(1) == 1
            && matches!(redirect.op, RedirectOp::Write | RedirectOp::WriteBoth | RedirectOp::Append)
            && is_harmless_device(&redirect.target.text)
            && redirect.target.text == "/dev/null"
    });
    let is_consumed = command.piped_to.iter().any(|name| !FILTERS.contains(&name.as_str()))
        || command.captured
        || to_nowhere;
    if command.traced {
        return command.args().iter().find_map(secret_in);
    }
    if is_consumed {
        return None;
    }
    let is_filter = FILTERS.contains(&command.name.as_str()) || command.name.is_empty();
    match command.name.as_str() {
        "echo" | "printf" | "print" | "Write-Output" | "Write-Host" | "write-output" | "write-host"
        | "logger" | "wall" | "say" | "banner" | "figlet" | "cowsay" | "notify-send" => {
            command.args().iter().find_map(secret_in)
        }
        _ if is_filter && !matches!(command.name.as_str(), "sh" | "bash" | "zsh" | "xargs" | "env") => {
            let direct = command
                .redirects
                .iter()
                .filter(|redirect| matches!(redirect.op, RedirectOp::HereString | RedirectOp::HereDocument))
                .find_map(|redirect| secret_in(&redirect.target));
            // What a pipe brings was printed by an earlier command, which is judged by where it goes.
            direct.or_else(|| command.stdin.as_deref().filter(|_| command.name == "tee").and_then(secret_in))
        }
        _ => None,
    }
}
