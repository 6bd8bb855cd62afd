//! Package managers.

use super::{Example, Finding, Params, Rule, operands};
use crate::judge::{Facts, GuardEvent};
use crate::shell::Command;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "warn-package-publish",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes that a package is published",
        check: publish,
        bad: &[
            Example::Shell("npm publish"),
            Example::Shell("yarn npm publish"),
            Example::Shell("cargo +stable publish"),
            Example::Shell("python -m twine upload dist/*"),
            Example::Shell("pnpm --filter a publish"),
        ],
        good: &[
            Example::Shell("npm run publish-docs"),
            Example::Shell("npm publish --dry-run"),
            Example::Shell("npm install"),
        ],
    },
    Rule {
        id: "warn-global-package-install",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: false,
        parameters: &[],
        about: "notes that something is installed for the whole machine",
        check: global,
        bad: &[
            Example::Shell("npm i -g typescript"),
            Example::Shell("yarn global add x"),
            Example::Shell("pip install --break-system-packages x"),
            Example::Shell("npm install --location=global x"),
        ],
        good: &[
            Example::Shell("npm install typescript"),
            Example::Shell("npm ls -g"),
            Example::Shell("pip install -r requirements.txt"),
        ],
    },
    Rule {
        id: "prefer-package-manager",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &["allowed", "blocked"],
        about: "blocks package managers that the project does not use",
        check: prefer,
        bad: &[
            Example::Shell("npm install"),
            Example::Shell("python -m pip install x"),
            Example::Shell("bash -c 'yarn add x'"),
        ],
        good: &[
            Example::Shell("pnpm install"),
            Example::Shell("uv add x"),
            Example::Shell("uv pip install x"),
            Example::Shell("cat npm-debug.log"),
            Example::Shell("npm --version"),
        ],
    },
];

fn words(command: &Command) -> Vec<&str> {
    const VALUED: &[&str] = &[
        "--filter",
        "-F",
        "-C",
        "--dir",
        "-w",
        "--workspace",
        "--prefix",
        "--cwd",
        "--registry",
        "--access",
        "--tag",
        "-p",
        "--package",
        "--manifest-path",
        "--token",
        "--directory",
        "--otp",
    ];
    let valued: &[&str] = match command.name.as_str() {
        "npm" | "pnpm" | "yarn" | "bun" | "cargo" | "uv" | "poetry" => VALUED,
        _ => &[],
    };
    operands(command.args(), valued)
        .iter()
        .map(|value| value.text.as_str())
        .filter(|word| !word.starts_with('+'))
        .collect()
}

/// A command with `python -m tool …` read as `tool …`.
fn tool(command: &Command) -> (&str, Vec<&str>) {
    let name = command.name.as_str();
    let is_python = matches!(
        name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.'),
        "python" | "py" | "pypy"
    );
    if is_python
        && let Some(at) = command.args().iter().position(|arg| arg.text == "-m")
        && let Some(module) = command.args().get(at + 1)
    {
        let rest = command.args().get(at + 2..).unwrap_or(&[]);
        return (module.text.as_str(), rest.iter().map(|value| value.text.as_str()).collect());
    }
    (name, words(command))
}

fn publish(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    let command = facts.commands().find(|command| publishes(command))?;
    Finding::note(format!(
        "`{}` publishes to everybody, and can't be taken back. Make sure that the person wants it now.",
        super::short(&command.show())
    ))
}

fn publishes(command: &Command) -> bool {
    if command.has_long("--dry-run", 5) || command.has("--help") {
        return false;
    }
    let (name, words) = tool(command);
    let first = words.first().copied().unwrap_or("");
    let second = words.get(1).copied().unwrap_or("");
    match name {
        "npm" | "pnpm" | "bun" | "cargo" | "poetry" | "flit" | "hatch" | "pdm" | "uv" | "rye" | "lerna"
        | "jsr" | "deno" | "vsce" | "ovsx" | "wasm-pack" | "maturin" | "changeset" | "nx" => {
            first == "publish"
                || (name == "maturin" && first == "upload")
                || (name == "npm" && matches!(first, "pub" | "publ" | "publi" | "publis"))
        }
        "yarn" => {
            first == "publish"
                || (first == "npm" && second == "publish")
                || first == "workspaces" && words.contains(&"publish")
        }
        "twine" => first == "upload",
        "gem" => first == "push",
        "mvn" | "mvnw" => words.iter().any(|word| *word == "deploy" || word.ends_with(":deploy")),
        "gradle" | "gradlew" => words.iter().any(|word| {
            word.rsplit(':')
                .next()
                .is_some_and(|task| task.starts_with("publish") && !task.ends_with("ToMavenLocal"))
        }),
        "dotnet" => first == "nuget" && second == "push",
        "nuget" | "choco" => first == "push",
        "mix" => first == "hex.publish",
        "dart" | "flutter" => first == "pub" && second == "publish",
        "pod" => first == "trunk" && second == "push",
        "cabal" | "stack" | "luarocks" | "anaconda" => first == "upload",
        "goreleaser" => first == "release",
        "semantic-release" | "np" | "cpan-upload" => true,
        "python" | "python3" => {
            words.contains(&"upload") && words.iter().any(|word| word.ends_with("setup.py"))
        }
        "helm" => first == "push",
        "snapcraft" => first == "upload" || first == "release",
        _ => false,
    }
}

fn global(facts: &Facts<'_>, _: &Params) -> Option<Finding> {
    let command = facts.commands().find(|command| installs_globally(command))?;
    Finding::note(format!(
        "`{}` installs for the whole machine. Add it to the project instead.",
        super::short(&command.show())
    ))
}

fn installs_globally(command: &Command) -> bool {
    let (name, words) = tool(command);
    let first = words.first().copied().unwrap_or("");
    let second = words.get(1).copied().unwrap_or("");
    let installs = |word: &str| {
        matches!(
            word,
            "install"
                | "i"
                | "add"
                | "in"
                | "ins"
                | "inst"
                | "insta"
                | "instal"
                | "isnt"
                | "isntall"
                | "ci"
                | "update"
                | "up"
                | "upgrade"
                | "link"
        )
    };
    let is_global = command.has_short("g")
        || command.has("--global")
        || command.has("--location=global")
        || command.has("--location") && command.has("global");
    match name {
        "npm" | "pnpm" | "bun" => {
            is_global
                && words.iter().any(|word| installs(word))
                && !matches!(first, "ls" | "list" | "config" | "root" | "bin" | "prefix" | "outdated")
        }
        "yarn" => first == "global" && matches!(second, "add" | "upgrade") || (is_global && installs(first)),
        "pip" | "pip3" => {
            first == "install" && (command.has("--break-system-packages") || command.has("--user"))
        }
        "pipx" => first == "install",
        "uv" => first == "tool" && second == "install",
        "cargo" | "go" | "gem" | "brew" | "choco" | "scoop" | "winget" | "snap" | "port" => {
            first == "install" && !command.has_long("--path", 6) && !command.has("--root")
        }
        "apt" | "apt-get" | "dnf" | "yum" | "zypper" | "aptitude" => first == "install",
        "apk" => first == "add",
        "pacman" => command.has_short("S"),
        "dotnet" => first == "tool" && second == "install" && is_global,
        "composer" => first == "global" && second == "require",
        "easy_install" | "cpan" | "cpanm" => true,
        "deno" => first == "install" && (is_global || command.has_short("g")),
        _ => false,
    }
}

const ECOSYSTEMS: &[&[&str]] = &[
    &["pip", "uv", "poetry", "pipenv", "pdm", "conda", "mamba", "rye", "hatch", "easy_install", "pipx"],
    &["npm", "yarn", "pnpm", "bun", "deno"],
    &["brew", "apt", "apt-get", "dnf", "yum", "pacman", "apk", "snap", "port"],
    &["mvn", "gradle"],
    &["bundle", "gem"],
];

/// The package manager behind a command's name.
fn manager(command: &Command) -> Option<&str> {
    let (name, _) = tool(command);
    Some(match name {
        "pip" | "pip3" => "pip",
        name if name.starts_with("pip3.") || name.starts_with("pip2") => "pip",
        "npx" => "npm",
        "bunx" => "bun",
        "pnpx" => "pnpm",
        "uvx" => "uv",
        "yarnpkg" => "yarn",
        "gradlew" => "gradle",
        "mvnw" => "mvn",
        name => ECOSYSTEMS.iter().flat_map(|names| names.iter()).find(|other| **other == name)?,
    })
}

fn prefer(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    if params.allowed.is_empty() && params.blocked.is_empty() {
        return None;
    }
    for command in facts.commands() {
        let Some(used) = manager(command) else { continue };
        let asks = !command.args().is_empty()
            && command.texts().all(|arg| matches!(arg, "--version" | "-v" | "-V" | "--help" | "-h"));
        if asks {
            continue;
        }
        let blocked = params.blocked.iter().any(|name| name == used || *name == command.name);
        let ecosystem = ECOSYSTEMS.iter().find(|names| names.contains(&used));
        let right: Vec<&str> = params
            .allowed
            .iter()
            .map(String::as_str)
            .filter(|name| ecosystem.is_some_and(|names| names.contains(name)))
            .collect();
        let allowed = right.contains(&used);
        if blocked || (!right.is_empty() && !allowed) {
            let instead = if right.is_empty() { params.allowed.join(" or ") } else { right.join(" or ") };
            let instead = if instead.is_empty() { "what the project uses".to_owned() } else { instead };
            return Finding::deny(format!("Blocked: this project does not use {used}. Use {instead}."));
        }
    }
    None
}
