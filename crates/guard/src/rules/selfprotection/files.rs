//! Files of baton: its configuration, its state, its program, and the agents' files that hold its
//! entries.

use super::{belongs, operands};
use crate::files::{Arrival, Brings, Deed, Touch};
use crate::judge::Facts;
use crate::path;
use crate::rules::Finding;
use crate::shell::{Command, Origin, Value};
use std::cell::OnceCell;

/// Programs that change the files that they get: editors, and one-liners that edit in place.
const EDITING_PROGRAMS: &[&str] =
    &["ed", "ex", "vi", "vim", "nvim", "gvim", "nano", "emacs", "pico", "micro", "kak", "hx"];
/// Languages whose one-liners take files.
const LANGUAGE_PROGRAMS: &[&str] =
    &["python", "python3", "perl", "ruby", "node", "php", "deno", "bun", "lua", "tclsh", "osascript"];
/// Clients that write databases.
const DATABASE_CLIENTS: &[&str] =
    &["sqlite3", "sqlite", "duckdb", "litecli", "sqlite-utils", "sqldiff", "dbhub"];
/// Words of code that change files.
const CHANGING_WORDS: &[&str] = &[
    "'w",
    "\"w",
    "'a",
    "\"a",
    "'r+",
    "\"r+",
    "write",
    "unlink",
    "remove",
    "rename",
    "replace",
    "rmtree",
    "rmSync",
    "connect",
    "symlink",
    "link",
    "chmod",
    "truncate",
    "copy",
    "move",
    "delete",
    "FileUtils",
    "Database",
    "O_",
];
/// Longest patch file that is read. This bounds the work of one rule.
const PATCH_BYTES: usize = 256 << 10;

/// The paths of baton. They are looked up on first use, because most calls change nothing.
pub(super) struct Own<'a> {
    facts: &'a Facts<'a>,
    known: OnceCell<Known>,
}

struct Known {
    /// Clean paths, and where their links lead.
    paths: Vec<String>,
    /// The worktree of the job that the agent works in. The agent may change what is in it.
    work: Option<String>,
}

impl<'a> Own<'a> {
    pub(super) fn of(facts: &'a Facts<'a>) -> Self {
        Self { facts, known: OnceCell::new() }
    }

    fn known(&self) -> &Known {
        self.known.get_or_init(|| {
            let world = self.facts.world;
            let mut paths = Vec::new();
            for own in world.own_paths().iter().chain(&world.own_program()) {
                let clean = path::join("/", own);
                let real = crate::files::real(&clean, world);
                if real != clean {
                    paths.push(real);
                }
                paths.push(clean);
            }
            let work = world.project().trim_end_matches('/').to_owned();
            let work = Some(work).filter(|work| paths.iter().any(|own| is_worktree(work, own)));
            Known { paths, work }
        })
    }

    fn paths(&self) -> &[String] {
        &self.known().paths
    }

    /// Whether a path belongs to baton.
    pub(super) fn holds(&self, path: &str) -> bool {
        let at_work =
            || self.known().work.as_ref().is_some_and(|work| path != work && path::is_below(path, work));
        path::file_name(path) == ".baton.toml"
            || (self.paths().iter().any(|own| path::is_below(path, own)) && !at_work())
    }

    /// Whether a folder holds files of baton and is neither the home nor above the project. Files
    /// come and go in those every day.
    fn is_near(&self, folder: &str) -> bool {
        let (home, project) = (&self.facts.home, &self.facts.project);
        folder != home
            && path::is_below(folder, home)
            && !path::is_below(project, folder)
            && self.paths().iter().any(|own| path::is_below(own, folder))
    }

    /// Whether a folder exists only for a file of baton.
    fn is_own_folder(&self, folder: &str) -> bool {
        path::file_name(folder) == "baton"
            && !path::is_below(&self.facts.project, folder)
            && self.paths().iter().any(|own| path::parent(own) == folder)
    }

    fn leads_to(&self, path: &str) -> bool {
        self.holds(path) || self.holds(&crate::files::real(path, self.facts.world))
    }
}

pub(super) fn check(facts: &Facts<'_>, own: &Own<'_>) -> Option<Finding> {
    if let Some(touch) = facts.touches.iter().find(|touch| is_change_of_own(touch, facts, own)) {
        return belongs(&touch.show());
    }
    if let Some(finding) = facts.touches.iter().find_map(|touch| brought(touch, facts, own)) {
        return Some(finding);
    }
    facts.commands().find_map(|command| {
        if let Some(named) = named_otherwise(command, own) {
            return belongs(&named);
        }
        let folder = unpacked_into(command)?;
        let folder = crate::files::real(&folder, facts.world);
        if own.leads_to(&folder) || own.is_own_folder(&folder) {
            return belongs(&folder);
        }
        let is_home = folder == facts.home && facts.project != facts.home && is_archive(command);
        (is_home || own.is_near(&folder)).then(|| {
            Finding::ask(format!(
                "`{}` may replace files of baton's below {folder}.",
                super::short(&command.show())
            ))
        })?
    })
}

/// Files that arrive in a folder that holds files of baton, or that replace it.
fn brought(touch: &Touch, facts: &Facts<'_>, own: &Own<'_>) -> Option<Finding> {
    if touch.brings == Brings::Nothing || touch.location != crate::shell::Location::Here {
        return None;
    }
    let mut paths = touch.path.iter().chain(&touch.real);
    if paths.any(|path| own.is_own_folder(path) || own.is_own_folder(path::parent(path))) {
        return belongs(&touch.show());
    }
    let arrivals = || own.paths().iter().map(|path| touch.brings_to(path, &facts.touches, facts.world));
    let project = || Some(path::join(&facts.project, ".baton.toml"));
    let in_project = || project().map(|path| touch.brings_to(&path, &facts.touches, facts.world));
    if arrivals().chain(in_project()).any(|arrival| arrival == Arrival::Yes) {
        return belongs(&touch.show());
    }
    let mut paths = touch.path.iter().chain(&touch.real);
    let is_home = |path: &String| *path == facts.home && facts.project != facts.home;
    let may = paths.any(|path| is_home(path) || own.is_near(path))
        && arrivals().any(|arrival| arrival == Arrival::Perhaps);
    may.then(|| Finding::ask(format!("{} may overwrite files of baton.", touch.show())))?
}

fn is_archive(command: &Command) -> bool {
    !matches!(command.name.as_str(), "git" | "hub" | "patch")
}

fn is_change_of_own(touch: &Touch, facts: &Facts<'_>, own: &Own<'_>) -> bool {
    let edits = || {
        EDITING_PROGRAMS.contains(&touch.by.as_str())
            || (touch.deed == Deed::Read && edits_in_place(touch, facts))
    };
    if !touch.deed.changes() && !DATABASE_CLIENTS.contains(&touch.by.as_str()) && !edits() {
        return false;
    }
    if touch.deed.changes() && own.paths().iter().any(|own| touch.may_hold(own)) {
        return true;
    }
    let named = touch.named.as_deref().filter(|_| !touch.is_pattern);
    let folder =
        touch.real.as_deref().filter(|folder| own.paths().iter().any(|own| path::is_below(folder, own)));
    let is_deleted = matches!(touch.deed, Deed::DeleteTree | Deed::Delete) && !is_some_of(touch);
    touch.reached(facts.world).into_iter().chain(folder).chain(named).any(|path| {
        own.holds(path)
            || (is_deleted && path != "/" && own.paths().iter().any(|own| path::is_below(own, path)))
            || (!touch.is_pattern && !is_deleted && facts.world.is_same_file(path, own.paths()))
    })
}

/// Whether it means files of a folder that only `find` knows.
fn is_some_of(touch: &Touch) -> bool {
    let by_find = |origin: &Origin| matches!(origin, Origin::Output(name) if name.as_ref() == "find");
    touch.is_unknown && touch.word.holes.iter().all(|(_, origin)| by_find(origin))
}

/// Whether the program edits the files that it reads: `perl -i`, `ruby -i`.
fn edits_in_place(touch: &Touch, facts: &Facts<'_>) -> bool {
    let is_flag = |arg: &str| {
        arg.strip_prefix('-').is_some_and(|flags| {
            !flags.starts_with('-')
                && flags.chars().take_while(char::is_ascii_alphanumeric).any(|sign| sign == 'i')
        })
    };
    matches!(touch.by.as_str(), "perl" | "ruby" | "php")
        && facts.commands().any(|command| command.name == touch.by && command.texts().any(is_flag))
}

/// A file of baton that a command changes or renames without writing it as an operand.
fn named_otherwise(command: &Command, own: &Own<'_>) -> Option<String> {
    let name = command.name.as_str();
    let plain = operands(command.args(), &[]);
    let texts = || plain.iter().map(|value| value.text.as_str());
    match name {
        // Another name of the same file: a write there is a write here.
        "ln" if !command.has_short("s") && !command.has_long("--symbolic", 3) => {
            own_operand(command, own, texts())
        }
        "cp" | "gcp" if command.has_short("l") || command.has_long("--link", 4) => {
            own_operand(command, own, texts())
        }
        // A copy of the program does what the program does.
        "cp" | "gcp" | "ln" | "install" | "rsync" | "mv" | "dd" => own_program(command, own),
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => own_operand(command, own, command.texts()),
        "mount" | "umount" | "fusermount" | "bwrap" => {
            let near = || texts().find(|text| own.is_own_folder(&path::join("/", text))).map(str::to_owned);
            own_operand(command, own, texts()).or_else(near)
        }
        "git" | "hub" => {
            own_operand(command, own, git_paths(command).into_iter()).or_else(|| patched(command, own))
        }
        "patch" => patched(command, own),
        "tar" | "bsdtar" | "unzip" | "7z" | "cpio" | "pax" => {
            let folder = unpacked_into(command)?;
            texts().map(|text| path::join(&folder, text)).find(|path| own.leads_to(path))
        }
        _ if DATABASE_CLIENTS.contains(&name) => mentioned(command, own, &[]),
        _ if LANGUAGE_PROGRAMS
            .contains(&name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.')) =>
        {
            mentioned(command, own, CHANGING_WORDS)
        }
        _ => None,
    }
}

fn own_operand<'t>(
    command: &Command,
    own: &Own<'_>,
    mut texts: impl Iterator<Item = &'t str>,
) -> Option<String> {
    let cwd = command.cwd.as_deref().unwrap_or("/");
    texts.find(|text| !text.is_empty() && own.leads_to(&path::join(cwd, text))).map(str::to_owned)
}

fn own_program(command: &Command, own: &Own<'_>) -> Option<String> {
    let cwd = command.cwd.as_deref().unwrap_or("/");
    let texts = command.texts().map(|text| text.strip_prefix("if=").unwrap_or(text));
    let mut paths = texts.filter(|text| text.contains('/')).map(|text| path::join(cwd, text));
    paths.find(|path| own.facts.world.is_own_program(path))
}

/// The paths that a git command would write from its history.
fn git_paths(command: &Command) -> Vec<&str> {
    let words: Vec<&str> = command.texts().collect();
    let writes =
        ["checkout", "restore", "reset", "rm", "mv", "clean", "stash", "update-index", "checkout-index"];
    let Some(verb) = words.iter().position(|word| writes.contains(word)) else { return Vec::new() };
    words.into_iter().skip(verb + 1).filter(|word| !word.starts_with('-') && *word != ".").collect()
}

/// A file of baton that a patch file changes.
fn patched(command: &Command, own: &Own<'_>) -> Option<String> {
    let applies = command.name == "patch" || command.texts().any(|word| matches!(word, "apply" | "am"));
    let cwd = command.cwd.as_deref()?;
    if !applies {
        return None;
    }
    let folder = folder_option(command, &["-d", "--directory", "-C"], cwd);
    let files = command
        .args()
        .iter()
        .filter_map(Value::literal)
        .chain(command.redirects.iter().filter_map(|redirect| redirect.target.literal()));
    files.filter(|word| !word.is_empty()).find_map(|word| {
        let text = own.facts.world.read_file(&path::join(cwd, word.trim_start_matches("-i")), PATCH_BYTES)?;
        text.lines().filter_map(|line| line.strip_prefix("+++ ").or(line.strip_prefix("--- "))).find_map(
            |line| {
                let file = line.split('\t').next().unwrap_or(line).trim();
                let parts = std::iter::successors(Some(file), |file| Some(file.split_once('/')?.1));
                parts.take(6).map(|file| path::join(&folder, file)).find(|file| own.leads_to(file))
            },
        )
    })
}

/// The folder that an archive is unpacked into, or that a repository or a patch writes to.
fn unpacked_into(command: &Command) -> Option<String> {
    let cwd = command.cwd.as_deref()?;
    let words: Vec<&str> = command.texts().collect();
    let first = words.first().copied().unwrap_or("");
    match command.name.as_str() {
        "tar" | "bsdtar" | "gtar" => {
            let extracts = (!first.starts_with("--") && first.contains('x'))
                || words.iter().any(|word| {
                    matches!(*word, "--extract" | "--get")
                        || (word.starts_with('-') && !word.starts_with("--") && word.contains('x'))
                });
            extracts.then(|| folder_option(command, &["-C", "--directory"], cwd))
        }
        "unzip" if !command.has_short("lptvZ") => Some(folder_option(command, &["-d"], cwd)),
        "7z" | "7za" | "7zr" if matches!(first, "x" | "e") => Some(folder_option(command, &["-o"], cwd)),
        "cpio" if command.has_short("i") || command.has_long("--extract", 5) => {
            Some(folder_option(command, &["-D", "--directory"], cwd))
        }
        "pax" if command.has_short("r") => Some(cwd.to_owned()),
        "git" | "hub" => {
            let writes = [
                "checkout", "restore", "reset", "stash", "apply", "am", "pull", "merge", "clean", "switch",
                "clone",
            ];
            words
                .iter()
                .any(|word| writes.contains(word))
                .then(|| folder_option(command, &["-C", "--work-tree"], cwd))
        }
        "patch" => Some(folder_option(command, &["-d", "--directory"], cwd)),
        _ => None,
    }
}

/// The folder that an option names, attached or not, else the command's folder.
fn folder_option(command: &Command, options: &[&str], cwd: &str) -> String {
    let words: Vec<&str> = command.texts().collect();
    let named = words.iter().enumerate().find_map(|(at, word)| {
        if options.contains(word) {
            return words.get(at + 1).copied();
        }
        options.iter().find_map(|option| {
            let rest = word.strip_prefix(option).filter(|rest| !rest.is_empty())?;
            if option.starts_with("--") { rest.strip_prefix('=') } else { Some(rest) }
        })
    });
    named.map_or_else(|| cwd.to_owned(), |folder| path::join(cwd, folder))
}

/// A path of baton in the arguments or the input of a command that also has one of these words.
/// Without words, any command counts.
fn mentioned(command: &Command, own: &Own<'_>, words: &[&str]) -> Option<String> {
    let cwd = command.cwd.as_deref().unwrap_or("/");
    let home = &own.facts.home;
    let texts = command.texts().chain(command.stdin.as_deref().map(|stdin| stdin.text.as_str()));
    texts.filter(|text| words.is_empty() || words.iter().any(|word| text.contains(word))).find_map(|text| {
        let parts = text.split(|sign: char| sign.is_whitespace() || "'\"`();,=<>|&{}[]".contains(sign));
        parts.filter(|part| part.contains(['/', '.']) && part.len() < 4096).find_map(|part| {
            let part = part.strip_prefix("file:").unwrap_or(part).split('?').next().unwrap_or("");
            let part = part
                .strip_prefix("//")
                .map_or(part.to_owned(), |rest| format!("/{}", rest.trim_start_matches('/')));
            let below = part.strip_prefix("~/").or(part.strip_prefix("$HOME/")).unwrap_or(&part);
            let places = [path::join(cwd, &part), path::join(home, below)];
            places.into_iter().find(|path| own.leads_to(path))
        })
    })
}

/// Whether a folder is the worktree of a job, which is inside baton's own folder. An agent that
/// works in one may change that one and no other.
fn is_worktree(folder: &str, own: &str) -> bool {
    let inside =
        folder.strip_prefix(own.trim_end_matches('/')).and_then(|rest| rest.strip_prefix("/worktrees/"));
    inside.is_some_and(|job| !job.is_empty() && !job.contains('/'))
}
