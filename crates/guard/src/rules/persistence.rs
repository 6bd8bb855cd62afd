//! What runs later by itself: shell profiles, keys that let others in, schedules, services, hooks.

use super::git::GitCall;
use super::{Example, Finding, Params, Rule, short};
use crate::files::{Arrival, Brings, Deed, Touch};
use crate::judge::{Facts, GuardEvent};
use crate::path;
use crate::shell::{Command, Location};
use crate::tables::persistence::{INSTALLERS, PERSISTENCE_PATHS, Where};
use crate::tables::taken;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "block-persistence",
    on: true,
    event: GuardEvent::Before,
    forbids_commands: true,
    parameters: &["allowPaths"],
    about: "asks before a call installs something that runs later by itself: profiles, keys, schedules, hooks",
    check,
    bad: &[
        Example::Shell("echo 'export PATH=x' >> ~/.bashrc"),
        Example::Shell("cat key.pub >> ~/.ssh/authorized_keys"),
        Example::Shell("(crontab -l; echo '* * * * * x') | crontab -"),
        Example::Shell("crontab jobs.txt"),
        Example::Shell("git config --global core.hooksPath /tmp/hooks"),
        Example::Shell("systemctl --user enable x.service"),
        Example::Shell("launchctl load ~/Library/LaunchAgents/a.plist"),
        Example::Shell("ssh-copy-id host"),
        Example::Write("/home/me/.zshrc", "x"),
        Example::Write("/home/me/project/.git/hooks/pre-commit", "x"),
    ],
    good: &[
        Example::Read("/home/me/.bashrc"),
        Example::Shell("source ~/.bashrc"),
        Example::Shell("crontab -l"),
        Example::Shell("git config core.hooksPath .githooks"),
        Example::Write("/home/me/project/.husky/pre-commit", "npm test"),
        Example::Write("/home/me/project/.bashrc", "x"),
    ],
}];

fn check(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    for touch in
        facts.touches.iter().filter(|touch| touch.location == Location::Here && leaves_something(touch.deed))
    {
        let Some(what) = place_of(touch, facts).or_else(|| brought(touch, facts)) else { continue };
        let is_allowed = touch.real.as_deref().is_some_and(|real| {
            params.allow_paths.iter().any(|allowed| {
                let allowed = super::delete::expand_home(allowed, &facts.home);
                path::is_below(real, &path::join(&facts.project, &allowed))
            })
        });
        if !is_allowed {
            return Finding::ask(format!(
                "{} is {what}. Change only files of the project, or let the person confirm.",
                touch.show()
            ));
        }
    }
    let command = facts.commands().find(|command| installs(command, facts))?;
    Finding::ask(format!(
        "`{}` leaves something that runs later by itself. Let the person confirm.",
        short(&command.show())
    ))
}

fn leaves_something(deed: Deed) -> bool {
    matches!(deed, Deed::Write | Deed::Truncate)
}

fn place_of(touch: &Touch, facts: &Facts<'_>) -> Option<&'static str> {
    let paths = [touch.path.as_deref(), touch.real.as_deref()];
    let world_home = path::join("/", &facts.world.home());
    paths.into_iter().flatten().find_map(|path| {
        let from_home = [facts.home.as_str(), world_home.as_str(), "/root"]
            .iter()
            .find_map(|home| path.strip_prefix(home.trim_end_matches('/'))?.strip_prefix('/'));
        PERSISTENCE_PATHS.iter().find_map(|place| {
            let fits = match place.at {
                Where::Home(at) => from_home.is_some_and(|rest| path::is_below(rest, at)),
                Where::System(at) => path::is_below(path, at),
                // Only in a repository itself: `.git/hooks` must directly follow its folder.
                Where::Repository(".git/hooks") if path.contains("/.git/modules/") => {
                    path.contains("/hooks/")
                }
                Where::Repository(at) => path.match_indices(at).any(|(found, _)| {
                    found > 0
                        && path.as_bytes().get(found - 1) == Some(&b'/')
                        && path
                            .get(found + at.len()..)
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                }),
                Where::Name(end) => {
                    from_home.is_some_and(|rest| rest.ends_with(end)) && !path::is_below(path, &facts.project)
                }
            };
            (fits && !(touch.by == "git" && matches!(place.at, Where::Repository(_)))).then_some(place.what)
        })
    })
}

/// Files that arrive in a folder that has such paths below it.
fn brought(touch: &Touch, facts: &Facts<'_>) -> Option<&'static str> {
    if touch.brings == Brings::Nothing {
        return None;
    }
    let home = facts.home.trim_end_matches('/');
    // Archives are rarely unpacked here, and their content is not known.
    let is_close = |path: &str| {
        let rest = path.strip_prefix(home);
        facts.project != facts.home
            && rest.is_some_and(|rest| {
                rest.is_empty() || path::is_below(rest, "/.config") || path::is_below(rest, "/.ssh")
            })
    };
    let close = touch.path.iter().chain(&touch.real).any(|path| is_close(path));
    PERSISTENCE_PATHS.iter().find_map(|place| {
        let path = match place.at {
            Where::Home(at) => format!("{home}/{at}"),
            Where::System(at) => at.to_owned(),
            // A copy of a whole repository has hooks too. Only the project's hooks run here.
            Where::Repository(at) if touch.by != "git" => path::join(&facts.project, at),
            Where::Repository(_) | Where::Name(_) => return None,
        };
        match touch.brings_to(&path, &facts.touches, facts.world) {
            Arrival::Yes => Some(place.what),
            Arrival::Perhaps if close && matches!(place.at, Where::Home(_)) => {
                Some("a folder with files that run later by themselves")
            }
            _ => None,
        }
    })
}

/// Commands that install something without naming a file.
fn installs(command: &Command, facts: &Facts<'_>) -> bool {
    let has = |word: &str| command.has(word);
    if is_installer(command, facts) {
        return true;
    }
    match command.name.as_str() {
        "fish" => command.texts().any(|text| {
            let mut words = text.split_whitespace();
            matches!(words.next(), Some("set")) && words.next().is_some_and(|word| word.contains('U'))
                || text.contains("alias --save")
                || text.contains("funcsave")
        }),
        "osascript" => command
            .texts()
            .any(|text| text.contains("make login item") || text.contains("make new login item")),
        "reg" => has("add") && command.texts().any(|text| text.contains("CurrentVersion\\Run")),
        "stow" => {
            let home = |text: &str| text.trim_end_matches('/') == facts.home || text == "~";
            command.texts().any(|text| home(text.strip_prefix("--target=").unwrap_or(text)))
        }
        "crontab" => {
            !command.texts().any(|arg| matches!(arg, "-l" | "-V" | "--version" | "--help"))
                && (command.stdin.is_some()
                    || command
                        .texts()
                        .any(|arg| !arg.starts_with('-') || arg == "-" || arg == "-e" || arg == "-r"))
        }
        "at" | "batch" => command.stdin.is_some() || command.has_short("f"),
        "systemctl" => ["enable", "link", "edit", "preset", "reenable"].iter().any(|verb| has(verb)),
        "launchctl" => ["load", "bootstrap", "submit", "enable"].iter().any(|verb| has(verb)),
        "systemd-run" => command.texts().any(|arg| arg.starts_with("--on-")),
        "ssh-copy-id" | "update-rc.d" | "chkconfig" => true,
        "loginctl" => has("enable-linger"),
        "schtasks" => command.texts().any(|arg| arg.eq_ignore_ascii_case("/create")),
        "Register-ScheduledTask" | "New-Service" => true,
        "chsh" => command.has_short("s") || has("--shell"),
        "pm2" => has("startup") || has("save"),
        "git" => runs_hooks(command, facts),
        _ => false,
    }
}

/// Whether it is a command of the table.
fn is_installer(command: &Command, facts: &Facts<'_>) -> bool {
    let args = command.args();
    INSTALLERS.iter().filter(|row| row.call.starts_with(command.name.as_str())).any(|row| {
        let Some(at) = taken(row.call, &command.name, args) else { return false };
        let rest = args.get(at..).unwrap_or(&[]);
        // A template within the project is what its people chose.
        let inside = |text: &str| {
            let path = text.split_once('=').map_or("", |(_, path)| path);
            !path.is_empty() && path::is_below(&path::join(&facts.project, path), &facts.project)
        };
        row.with.is_empty()
            || rest.iter().any(|arg| {
                let text = arg.text.as_str();
                row.with.iter().any(|word| {
                    text.strip_prefix(word).is_some_and(|left| left.is_empty() || left.starts_with('='))
                }) && !inside(text)
            })
    })
}

/// Settings of git that make it run something, for every repository or from outside of this one.
fn runs_hooks(command: &Command, facts: &Facts<'_>) -> bool {
    const RUN: &[&str] = &[
        "core.hookspath",
        "core.fsmonitor",
        "core.sshcommand",
        "core.pager",
        "core.editor",
        "init.templatedir",
        "credential.helper",
        "core.askpass",
        "include.path",
        "gpg.program",
        "diff.external",
        "sequence.editor",
    ];
    let Some(call) = GitCall::of(command).filter(|call| call.verb == "config") else { return false };
    let asks = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--unset",
        "--unset-all",
        "--list",
        "-l",
        "get",
        "unset",
        "list",
    ];
    if asks.iter().any(|word| call.has(word)) {
        return false;
    }
    let words: Vec<_> =
        call.operands(&["-f", "--file", "--type"]).into_iter().filter(|word| word.text != "set").collect();
    let [key, value, ..] = &words[..] else { return false };
    let key = key.text.to_ascii_lowercase();
    let everywhere = call.has("--global") || call.has("--system");
    let named = RUN.contains(&key.as_str())
        || key.starts_with("filter.")
        || key.starts_with("alias.") && value.text.starts_with('!');
    if !named {
        return false;
    }
    // The project's people chose a folder of hooks inside the project.
    let folder = call.folder(command).unwrap_or_else(|| facts.project.clone());
    let inside = path::is_below(&path::join(&folder, &value.text), &facts.project) && value.is_known();
    match key.as_str() {
        "core.hookspath" | "init.templatedir" => everywhere || !inside,
        "include.path" => !inside && value.is_known() && !value.text.starts_with("../"),
        "credential.helper" | "core.pager" | "core.editor" | "sequence.editor" => {
            everywhere && value.text.contains([' ', '!', '/']) || value.text.starts_with('!')
        }
        _ => true,
    }
}
