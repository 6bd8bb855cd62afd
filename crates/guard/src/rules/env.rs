//! Files with environment variables, and the environment itself.

use super::{Example, Finding, Params, Rule, operands, short};
use crate::files::{Deed, Touch, is_harmless_device};
use crate::judge::{Facts, GuardEvent};
use crate::secrets::{is_env_file, is_secret_name};
use crate::shell::syntax::RedirectOp;
use crate::shell::{Command, FILTERS, Location, Origin, Value};
use crate::tables::environment::DUMPS;
use crate::tables::taken;
use baton_core::tool::ToolKind;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "block-env-files",
        on: true,
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &[],
        about: "blocks .env, .env.* and .envrc; allows examples and templates",
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
            Example::Shell("direnv exec . env"),
            Example::Shell("dotenv -f .env -- printenv"),
            Example::Shell("uv run --env-file .env env"),
            Example::Shell("docker run --env-file=.env alpine env"),
            Example::Shell("node --env-file=.env -p process.env"),
        ],
        good: &[
            Example::Read(".env.example"),
            Example::Read("src/env.ts"),
            Example::Shell("grep -rn import.meta.env src"),
            Example::Shell("git commit -m 'read .env'"),
            Example::Shell("test -f .env"),
            Example::Shell("ls -la .env"),
            Example::Shell("direnv exec . npm test"),
            Example::Shell("dotenv -- npm start"),
            Example::Shell("direnv exec . printenv PATH"),
            Example::Shell("eval \"$(direnv export bash)\""),
            Example::Shell("direnv exec . env | cut -d= -f1"),
        ],
    },
    Rule {
        id: "protect-env-vars",
        on: true,
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &[],
        about: "blocks printing the environment, or variables that look like secrets",
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

/// Commands that show only a file's name.
const NAME_ONLY_COMMANDS: &[&str] = &[
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
    "git",
];

/// Programs that load a file of environment variables and run a command with them, each with the
/// word that does it.
const ENV_LOADERS: &[(&str, &str)] = &[
    ("direnv", "exec"),
    ("direnv", "export"),
    ("dotenv", ""),
    ("dotenvx", ""),
    ("dotenv-run", ""),
    ("env-cmd", ""),
    ("godotenv", ""),
    ("foreman", "run"),
    ("honcho", "run"),
    ("heroku", "local:run"),
    ("pipenv", "run"),
];

/// Whether a command loads such a file, by its name or by an option.
fn loads_env_file(command: &Command) -> bool {
    let is_loader = ENV_LOADERS
        .iter()
        .any(|(name, word)| command.name == *name && (word.is_empty() || command.has(word)));
    is_loader || command.texts().any(|arg| arg == "--env-file" || arg.starts_with("--env-file="))
}

/// `direnv exec . env`: a command that runs with an environment file and shows what it holds.
fn loaded_and_shown(facts: &Facts<'_>) -> Option<String> {
    let commands = &facts.analysis.as_ref()?.commands;
    let loader = commands.iter().find(|command| loads_env_file(command))?;
    let shows = |command: &Command| {
        let lists = matches!(command.name.as_str(), "dotenv" | "dotenvx")
            && command.texts().next().is_some_and(|verb| matches!(verb, "list" | "get" | "decrypt" | "-p"));
        let exports = lists || command.name == "direnv" && command.has("export") && !command.captured;
        let hidden = || command.piped_at.iter().filter_map(|at| commands.get(*at)).any(hides_values);
        ((dumps(command) || exports) && !hidden())
            || (command.piped_to.is_empty() && printed_secret(command).is_some())
    };
    commands.iter().any(shows).then(|| loader.show())
}

fn env_files(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    if let Some(loader) = loaded_and_shown(facts) {
        return Finding::deny(format!(
            "Blocked: `{}` loads a file of secret variables and shows them. Name the one variable that you need.",
            short(&loader)
        ));
    }
    const NAMES: &[&str] =
        &[".env", ".envrc", ".env.local", ".env.production", ".env.development", ".env.test"];
    let touch = facts.touches.iter().find(|touch| {
        // A script that loads its settings does not show them.
        if touch.from_file && matches!(touch.by.as_str(), "source" | ".") {
            return false;
        }
        let lists = facts.request.tool.is_some_and(|tool| tool.kind == ToolKind::Glob)
            || NAME_ONLY_COMMANDS.contains(&touch.by.as_str());
        if copies_example(touch, facts) || hides_content(touch, facts) {
            return false;
        }
        let counts = touch.deed != Deed::List || !lists;
        counts && touch.may_be_named(facts.world, NAMES, is_env_file)
    })?;
    Finding::deny(format!(
        "Blocked: {} of {}, which holds secrets. Use .env.example, or ask the person for the value that you need.",
        touch.deed.as_str(),
        touch.show()
    ))
}

/// Whether what is in the file stays hidden: the command tells the names in it, or how many they
/// are, or changes only who may read it.
fn hides_content(touch: &Touch, facts: &Facts<'_>) -> bool {
    let is_new = || touch.real.as_deref().is_some_and(|real| facts.world.exists(real) == Some(false));
    match touch.deed {
        Deed::Read => facts.commands().any(|command| {
            command.name == touch.by
                && command.args().contains(&touch.word)
                && (hides_values(command) || command.name.ends_with("grep") && command.has_short("l"))
        }),
        Deed::Write => touch.by == "chmod" || touch.by == "touch" && is_new(),
        _ => false,
    }
}

/// `cp .env.example .env` where there is no `.env` yet, or where the command looks first.
fn copies_example(touch: &Touch, facts: &Facts<'_>) -> bool {
    if !matches!(touch.deed, Deed::Write | Deed::Truncate)
        || !matches!(touch.by.as_str(), "cp" | "install" | "copy" | "Copy-Item" | "cat")
        || touch.is_pattern
    {
        return false;
    }
    let is_example = |touch: &Touch| {
        let name = touch.path.as_deref().map_or("", crate::path::file_name);
        touch.deed == Deed::Read && name.starts_with(".env") && !is_env_file(name)
    };
    let mut sources = facts.touches.iter().filter(|other| other.by == touch.by && other.deed == Deed::Read);
    let from_example = sources.clone().next().is_some() && sources.all(is_example);
    let looks_first = facts.commands().any(|command| {
        let keeps = command.name == "cp" && (command.has_short("n") || command.has("--no-clobber"));
        let tests = matches!(command.name.as_str(), "test" | "[")
            && (command.has("-f") || command.has("-e") || command.has("-s"))
            && command.has(&touch.word.text);
        keeps || tests
    });
    let is_new = touch.real.as_deref().is_some_and(|real| facts.world.exists(real) == Some(false));
    from_example && (is_new || looks_first)
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
            "Blocked: {} holds the whole environment, with its secrets. Name the one variable that you need.",
            touch.show()
        ));
    }
    if let Some(name) = dumped_in_container(facts) {
        return Finding::deny(format!(
            "Blocked: this would print ${name}, which looks like a secret, from a container. Use it without showing it."
        ));
    }
    for command in facts.commands() {
        let later = || {
            let all = facts.analysis.as_ref().map_or(&[][..], |analysis| &analysis.commands);
            command.piped_at.iter().filter_map(|at| all.get(*at))
        };
        if dumps(command) && !later().any(hides_values) && !later().any(picks_variables) {
            return Finding::deny(format!(
                "Blocked: `{}` prints the whole environment, with its secrets. Name the one variable that you need.",
                short(&command.show())
            ));
        }
        if later().any(takes_in) {
            continue;
        }
        if let Some(name) = printed_secret(command) {
            return Finding::deny(format!(
                "Blocked: this would print ${name}, which looks like a secret. Use it without showing it."
            ));
        }
    }
    None
}

/// Whether a command at the end of a pipe shows only the names or the number of the `NAME=value`
/// lines that it gets.
fn hides_values(command: &Command) -> bool {
    let has = |text: &str| command.has(text);
    let separates = |option: &str| {
        has(&format!("{option}=")) || has(&format!("{option}'='")) || (has(option) && has("="))
    };
    match command.name.as_str() {
        "wc" | "sha256sum" | "md5sum" | "shasum" | "cksum" => true,
        "grep" | "egrep" | "fgrep" | "rg" => {
            command.has_short("cq") || command.has_long("--count", 7) || command.has_long("--quiet", 7)
        }
        "cut" => {
            (separates("-d") || has("--delimiter=="))
                && (has("-f1") || has("--fields=1") || (has("-f") && has("1")))
        }
        "awk" | "gawk" | "mawk" => {
            separates("-F") && command.texts().any(|arg| arg.replace(' ', "") == "{print$1}")
        }
        "sed" | "gsed" => command.texts().any(|arg| matches!(arg, "s/=.*//" | "s/=.*$//" | "s/=.*/=/")),
        _ => false,
    }
}

/// Names of variables that many people have, and that hold secrets.
const COMMON_SECRETS: &[&str] = &[
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITLAB_TOKEN",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "NPM_TOKEN",
    "DATABASE_URL",
    "POSTGRES_PASSWORD",
    "MYSQL_PASSWORD",
    "REDIS_PASSWORD",
    "DB_PASSWORD",
    "PGPASSWORD",
    "DOCKER_PASSWORD",
    "SLACK_BOT_TOKEN",
    "STRIPE_SECRET_KEY",
    "AZURE_CLIENT_SECRET",
    "ARM_CLIENT_SECRET",
    "HF_TOKEN",
    "VAULT_TOKEN",
    "CLOUDFLARE_API_TOKEN",
    "DIGITALOCEAN_ACCESS_TOKEN",
    "SENTRY_AUTH_TOKEN",
    "HEROKU_API_KEY",
    "JWT_SECRET",
    "APP_SECRET",
    "SECRET_KEY_BASE",
    "SSH_PRIVATE_KEY",
];
/// Signs of a pattern that name a variable, at the least.
const MIN_PATTERN_SIGNS: usize = 3;

/// `grep PATH`: whether a search picks variables by names that are no secrets.
fn picks_variables(command: &Command) -> bool {
    if !matches!(command.name.as_str(), "grep" | "egrep" | "fgrep" | "rg") || command.has_short("vf") {
        return false;
    }
    let ignores_case = command.has_short("i") || command.has("--ignore-case");
    let [patterns] = &operands(command.args(), &["-m", "-A", "-B", "-C"])[..] else { return false };
    let Some(patterns) = patterns.literal() else { return false };
    patterns.replace("\\|", "|").split('|').all(|pattern| {
        let pattern = pattern.trim_matches(['(', ')', '^', '$', '\\', '.', '*', '=']);
        let is_name = pattern.len() >= MIN_PATTERN_SIGNS
            && pattern.bytes().all(|sign| sign.is_ascii_alphanumeric() || sign == b'_');
        let wanted = if ignores_case { pattern.to_ascii_uppercase() } else { pattern.to_owned() };
        let is_part = |secret: &&str| secret.contains(&wanted);
        is_name
            && !is_secret_name(pattern)
            && !is_secret_name(&format!("A_{pattern}"))
            && !COMMON_SECRETS.iter().any(is_part)
    })
}

/// Whether a command keeps what it reads and shows none of it.
fn takes_in(command: &Command) -> bool {
    match command.name.as_str() {
        "gpg" | "gpg2" => command.has_long("--import", 5) || command.has_long("--fast-import", 8),
        "ssh-add" | "gpg-connect-agent" => true,
        _ => false,
    }
}

/// `docker run -e API_KEY alpine env`: a secret for a container whose environment is printed.
fn dumped_in_container(facts: &Facts<'_>) -> Option<String> {
    let commands = &facts.analysis.as_ref()?.commands;
    commands.iter().find(|command| command.location == Location::Container && dumps(command))?;
    commands.iter().find_map(|command| {
        let args = command.args();
        args.iter().enumerate().find_map(|(number, arg)| {
            let value = match arg.text.as_str() {
                "-e" | "--env" => args.get(number + 1)?.text.as_str(),
                text => text.strip_prefix("--env=").or_else(|| text.strip_prefix("-e"))?,
            };
            let name = value.split('=').next().unwrap_or(value);
            is_secret_name(name).then(|| name.to_owned())
        })
    })
}

/// The secret that a template with `$NAME` would show once it is filled in.
fn filled_in(text: &str) -> Option<String> {
    text.split('$').skip(1).find_map(|rest| {
        let rest = rest.trim_start_matches('{');
        let name: String =
            rest.chars().take_while(|sign| sign.is_ascii_alphanumeric() || *sign == '_').collect();
        is_secret_name(&name).then_some(name)
    })
}

fn dumps(command: &Command) -> bool {
    let args = command.args();
    let flags_only = args.iter().all(|arg| arg.text.starts_with('-'));
    let asks_help = args.iter().any(|arg| matches!(arg.text.as_str(), "--help" | "--version"));
    if asks_help {
        return false;
    }
    if !command.captured && is_table_dump(command) {
        return true;
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
        "printenv" => operands(args, &[]).iter().all(|name| name.is_opaque()),
        "set" => args.is_empty() && !command.in_code,
        "export" => {
            args.is_empty() && command.assignments.is_empty() || (flags_only && command.has_short("p"))
        }
        "declare" | "typeset" | "readonly" => {
            command.assignments.is_empty() && flags_only && !command.has_short("fF")
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
        "docker" | "podman" | "nerdctl" => {
            command.has("inspect") && command.texts().any(|arg| arg.contains("Config.Env"))
        }
        "systemctl" => command.has("show-environment"),
        "launchctl" => {
            command.has("export") || (command.has("getenv") && command.texts().any(is_secret_name))
        }
        "tmux" => command.has("show-environment") || command.has("showenv"),
        "sh" | "bash" | "zsh" => false,
        name => name.contains("GetEnvironmentVariables"),
    }
}

/// Whether it is a command of the table of those that print the environment.
fn is_table_dump(command: &Command) -> bool {
    let args = command.args();
    DUMPS.iter().filter(|row| row.call.starts_with(command.name.as_str())).any(|row| {
        let Some(at) = taken(row.call, &command.name, args) else { return false };
        let mut rest = args.get(at..).unwrap_or(&[]).iter();
        row.with.is_empty() || rest.any(|arg| row.with.contains(&arg.text.as_str()))
    })
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
    if command.name == "envsubst" {
        return command.stdin.as_deref().and_then(|stdin| filled_in(&stdin.text));
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
            // An earlier command printed what comes through a pipe, and that command is judged by
            // where its output goes.
            direct.or_else(|| command.stdin.as_deref().filter(|_| command.name == "tee").and_then(secret_in))
        }
        _ => None,
    }
}
