//! Which files a call touches, and how: by the operands of its commands, its redirections, a tool's
//! paths, a patch.
//!
//! A table says what a command does with its operands. A command that is in no table counts as
//! reading every operand that looks like a path.

mod arrivals;
mod copies;
mod patterns;
mod table;
mod transfers;

pub use self::arrivals::{Arrival, Brings};
pub use self::patterns::MAX_NAMES;
use self::table::USES;
use crate::path;
use crate::rules::operands;
use crate::shell::container::{self, HostPath, Mount};
use crate::shell::syntax::RedirectOp;
use crate::shell::value::pattern_matches;
use crate::shell::{Analysis, Command, Location, Origin, Value};
use crate::tables::options::{Names, OPTIONS};
use crate::tables::taken;
use crate::world::World;
use baton_core::tool::{ToolKind, ToolUse};
use std::cell::OnceCell;

/// How many files of one call are checked. A command that names more is not understood.
pub const MAX_TOUCHES: usize = 4096;
/// Longest path that a system can open. Windows has the longest.
const MAX_PATH_BYTES: usize = 32 << 10;

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Its content is read.
    Read,
    /// A folder's names are listed, or a tree is searched.
    List,
    /// It is created or changed.
    Write,
    /// It is created again, and its old content is lost.
    Truncate,
    /// It is deleted.
    Delete,
    /// It and everything below it is deleted.
    DeleteTree,
    /// It is run.
    Execute,
}

impl Deed {
    /// The deed in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Write | Self::Truncate => "write",
            Self::Delete | Self::DeleteTree => "delete",
            Self::Execute => "execute",
        }
    }

    /// Whether it changes something.
    pub fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Truncate | Self::Delete | Self::DeleteTree)
    }
}

/// One file or folder, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    pub deed: Deed,
    /// The clean absolute path, with patterns still in it; `None` if nothing of it is known.
    pub path: Option<String>,
    /// The path before links that the text itself makes are followed.
    pub named: Option<String>,
    /// The same with links resolved. For a pattern it is the folder before the pattern.
    pub real: Option<String>,
    /// Whether unknown parts could make it another path.
    pub is_unknown: bool,
    /// Whether it is a pattern.
    pub is_pattern: bool,
    /// The word in the call.
    pub word: Value,
    /// The command's name.
    pub by: String,
    /// Whether it is in a script file, of which only what is certain counts.
    pub from_file: bool,
    pub location: Location,
    /// What arrives below its path.
    pub brings: Brings,
    /// The pattern, if it can be looked up.
    pattern: Option<String>,
    /// Whether its wildcards also find hidden files.
    takes_hidden: bool,
    /// What the pattern finds, after the first lookup.
    found: OnceCell<Option<Vec<String>>>,
}

impl Touch {
    /// The last part of its path, as a pattern if it is one.
    pub fn name(&self) -> &str {
        path::file_name(self.path.as_deref().unwrap_or(&self.word.text))
    }

    /// Whether its last part is, or could be, a name that passes a test.
    pub fn may_be_named(&self, world: &dyn World, candidates: &[&str], fits: impl Fn(&str) -> bool) -> bool {
        let name = self.name();
        if let Some(found) = self.found(world) {
            return found.iter().any(|path| fits(path::file_name(path)));
        }
        // `*.test` does not mean `.env.test`, but `*.env` means `.env`.
        let stems = candidates.iter().filter(|candidate| candidate.matches('.').count() == 1);
        if self.word.anywhere && stems.into_iter().any(|stem| self.names_on_purpose(stem)) {
            return true;
        }
        if !self.is_pattern && !self.is_unknown {
            return fits(name) || self.real.as_deref().is_some_and(|real| fits(path::file_name(real)));
        }
        if fits(name) {
            return true;
        }
        let pattern = self.word.pattern();
        let pattern = pattern.rsplit('/').next().unwrap_or(&pattern);
        // A pattern must begin like the name: `*` alone finds no hidden file.
        let anchored = pattern.chars().take(2).filter(|sign| !matches!(sign, '*' | '?' | '\\')).count() >= 1
            && pattern.starts_with('.')
            && pattern != ".*";
        anchored && candidates.iter().any(|candidate| pattern_matches(pattern, candidate))
    }

    /// The touch for a message.
    pub fn show(&self) -> String {
        crate::rules::short(&self.word.show())
    }
}

/// Devices that store nothing.
pub fn is_harmless_device(path: &str) -> bool {
    matches!(
        path,
        "/dev/null"
            | "/dev/stdin"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/tty"
            | "/dev/zero"
            | "/dev/random"
            | "/dev/urandom"
            | "/dev/full"
    ) || path.starts_with("/dev/fd/")
        || path.starts_with("/dev/tcp/")
        || path.starts_with("/dev/udp/")
        || path == "/dev/fd"
        || path.starts_with("/proc/self/fd")
        || path.eq_ignore_ascii_case("nul")
}

/// A path with its links resolved, as far as the world knows them.
pub fn real(path: &str, world: &dyn World) -> String {
    let clean = path::join("/", path);
    world.real_path(&clean).unwrap_or(clean)
}

/// The files that commands touch.
pub fn of_commands(analysis: &Analysis, world: &dyn World) -> Vec<Touch> {
    // A shell option can make patterns find hidden files.
    let takes_hidden =
        analysis.commands.iter().any(|command| matches!(command.name.as_str(), "shopt" | "setopt"));
    let mut finder = Finder { analysis, world, takes_hidden, out: Vec::new() };
    for command in &analysis.commands {
        match (command.location, &command.mounts) {
            (Location::Container, Some(mounts)) if !mounts.is_empty() => finder.in_container(command, mounts),
            (Location::Container, _) => {}
            _ => finder.command(command),
        }
        if finder.out.len() > MAX_TOUCHES {
            break;
        }
    }
    finder.out
}

/// The files that a tool touches by its paths and its patch.
pub fn of_tool(tool: &ToolUse, world: &dyn World) -> Vec<Touch> {
    let analysis = Analysis::default();
    let mut finder = Finder { analysis: &analysis, world, takes_hidden: false, out: Vec::new() };
    let command =
        Command { name: tool.native.clone(), cwd: Some(path::join("/", &world.cwd())), ..Command::default() };
    let native = tool.native.to_ascii_lowercase();
    let writes = ["write", "edit", "create", "delete", "move", "append", "replace", "save", "put"]
        .iter()
        .any(|verb| native.contains(verb));
    let deed = match tool.kind {
        // A search shows the content of files.
        ToolKind::Read | ToolKind::Fetch | ToolKind::Grep => Deed::Read,
        ToolKind::Write | ToolKind::Edit | ToolKind::Patch => Deed::Write,
        ToolKind::Delete => Deed::Delete,
        ToolKind::List | ToolKind::Glob => Deed::List,
        _ if writes => Deed::Write,
        _ => Deed::Read,
    };
    for text in &tool.paths {
        let home = world.home();
        let text = match text.strip_prefix("~") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => text.clone(),
        };
        let text = text.strip_prefix("file://").map(str::to_owned).unwrap_or(text);
        // Tools that read many files accept patterns too.
        let word = if tool.kind == ToolKind::Read { pattern_of(&text) } else { Value::known(text) };
        finder.touch(deed, &word, &command);
    }
    finder.globs(tool, deed, &command);
    if tool.paths.is_empty() && matches!(tool.kind, ToolKind::List | ToolKind::Glob | ToolKind::Grep) {
        finder.touch(Deed::List, &Value::known("."), &command);
    }
    if let Some(file) = tool.url.as_deref().and_then(|url| url.strip_prefix("file://")) {
        finder.touch(Deed::Read, &Value::known(file), &command);
    }
    if let Some(patch) = &tool.patch {
        finder.patch(patch, &command);
    }
    finder.out
}

/// A text as a pattern, if it has wildcards.
fn pattern_of(text: &str) -> Value {
    let mut word = Value::known(text);
    let signs = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'*' | b'?' | b'['));
    word.globs.extend(signs.map(|(at, _)| at));
    word
}

/// What a command does with its operands.
#[derive(Clone, Copy)]
enum Use {
    /// All are read.
    Read,
    /// All are listed. Without operands the current folder is.
    List,
    /// The first is a pattern or a program unless one of these options gives it; the others are
    /// read.
    Search,
    /// The last is written, the others are read.
    Copy,
    /// Like a copy, and the others are deleted.
    Move,
    /// All are written.
    Write,
    /// The first is the mode or owner; the others are written.
    Change,
    /// All are deleted.
    Delete,
    /// No operand is a file that matters.
    Nothing,
}

fn use_of(name: &str) -> Option<Use> {
    let listed = |name: &str| {
        let find = |names: &str| {
            names.match_indices(name).any(|(at, _)| {
                let before = at.checked_sub(1).and_then(|before| names.as_bytes().get(before));
                before == Some(&b' ') && names.as_bytes().get(at + name.len()) == Some(&b' ')
            })
        };
        (!name.is_empty() && name.len() < 40 && !name.contains(' '))
            .then(|| USES.iter().find(|(_, names)| find(names)).map(|(what, _)| *what))
            .flatten()
    };
    let name = name.strip_prefix("mkfs.").map_or(name, |_| "mkfs");
    let stem = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    listed(name).or_else(|| listed(stem))
}

struct Finder<'a> {
    analysis: &'a Analysis,
    world: &'a dyn World,
    takes_hidden: bool,
    out: Vec<Touch>,
}

impl Finder<'_> {
    fn touch(&mut self, deed: Deed, word: &Value, command: &Command) {
        if (word.text.is_empty() && word.holes.is_empty()) || self.out.len() > MAX_TOUCHES {
            return;
        }
        // No system opens a path this long.
        if word.text.len() > MAX_PATH_BYTES {
            return;
        }
        let is_pattern = !word.globs.is_empty();
        let cwd = command.cwd.as_deref();
        if is_pattern && !self.analysis.links.is_empty() {
            self.links_of(deed, word, command);
        }
        let joined = |text: &str| {
            if path::is_absolute(text) || text.starts_with('\\') {
                Some(path::join("/", text))
            } else {
                cwd.map(|cwd| path::join(cwd, text))
            }
        };
        let mut path = if word.is_opaque() { None } else { joined(&word.text) };
        let named = path.clone();
        if let Some(found) = path.as_mut() {
            for _ in 0..4 {
                if self.analysis.links.is_empty() || command.name == "ln" {
                    break;
                }
                let link = self.analysis.links.iter().find(|(link, _)| path::is_below(found, link));
                let Some((link, target)) = link else { break };
                *found = format!("{target}{}", found.get(link.len()..).unwrap_or(""));
            }
        }
        let solid = match (&path, is_pattern) {
            (Some(path), false) => Some(path.clone()),
            (Some(path), true) => {
                let end = path.find(['*', '?', '[', '(']).unwrap_or(path.len());
                let folder = path.get(..end).unwrap_or("");
                Some(path::join("/", folder.rsplit_once('/').map_or("/", |(folder, _)| folder)))
            }
            (None, _) => None,
        };
        let real = solid.map(|path| {
            if command.location == Location::Here {
                self.world.real_path(&path).unwrap_or(path)
            } else {
                path
            }
        });
        self.out.push(Touch {
            deed,
            path,
            named,
            real,
            is_unknown: !word.holes.is_empty(),
            is_pattern,
            word: word.clone(),
            by: command.name.clone(),
            from_file: command.from_file,
            location: command.location,
            brings: Brings::Nothing,
            pattern: (is_pattern && command.location == Location::Here)
                .then(|| patterns::absolute(word, cwd))
                .flatten(),
            takes_hidden: word.anywhere || self.takes_hidden,
            found: OnceCell::new(),
        });
    }

    /// The files that the patterns of a search tool name, below the folders that it searches.
    fn globs(&mut self, tool: &ToolUse, deed: Deed, command: &Command) {
        let home = self.world.home();
        let here = ".".to_owned();
        let roots = if tool.paths.is_empty() { std::slice::from_ref(&here) } else { &tool.paths[..] };
        for root in roots.iter().take(16) {
            let root = root.strip_prefix('~').map_or_else(|| root.clone(), |rest| format!("{home}{rest}"));
            for glob in tool.globs.iter().take(16).flat_map(|glob| in_braces(glob)) {
                let glob =
                    glob.strip_prefix('~').map_or_else(|| glob.clone(), |rest| format!("{home}{rest}"));
                self.searched(deed, &Value::known(root.as_str()), &glob, command);
            }
        }
    }

    /// The files of a pattern as ripgrep reads it: without a slash it is a name at any depth. A
    /// pattern that excludes files names none.
    fn searched(&mut self, deed: Deed, root: &Value, glob: &str, command: &Command) {
        if glob.starts_with('!') || glob.is_empty() {
            return;
        }
        if path::is_absolute(glob) || glob.starts_with("../") {
            return self.touch(deed, &pattern_of(glob), command);
        }
        let name = glob.trim_start_matches("**/").trim_start_matches("./");
        let inside = name.strip_suffix("/**").or(name.strip_suffix("/*")).filter(|_| deed == Deed::Read);
        let mut word = crate::shell::found_below(root, &Value::known(name));
        word.anywhere = !name.contains('/') || glob.starts_with("**/");
        self.touch(deed, &word, command);
        // All files of a folder are the folder.
        if let Some(folder) = inside.filter(|folder| !folder.contains(['*', '?', '['])) {
            self.touch(deed, &crate::shell::found_below(root, &Value::known(folder)), command);
        }
    }

    /// The links that the text itself makes and that a pattern finds.
    fn links_of(&mut self, deed: Deed, word: &Value, command: &Command) {
        let pattern = word.pattern();
        let Some(pattern) = command.cwd.as_deref().map(|cwd| path::join(cwd, &pattern)) else { return };
        let links = self.analysis.links.iter().take(64);
        let targets: Vec<String> = links
            .filter(|(link, _)| pattern_matches(&pattern, link))
            .map(|(_, target)| target.clone())
            .collect();
        for target in targets {
            self.touch(deed, &Value::known(target), command);
        }
    }

    /// What a command in a container touches on this machine: paths below a mount, and mounts below
    /// a tree that is deleted.
    fn in_container(&mut self, command: &Command, mounts: &[Mount]) {
        let from = self.out.len();
        self.command(command);
        for mut touch in self.out.split_off(from.min(self.out.len())) {
            let Some(inside) = touch.path.take() else { continue };
            let held = mounts
                .iter()
                .find(|mount| touch.deed == Deed::DeleteTree && path::is_below(&mount.at, &inside));
            let here = container::outside(mounts, &inside)
                .or_else(|| {
                    held.map(|mount| HostPath { path: mount.from.clone(), read_only: mount.read_only })
                })
                .filter(|host| !host.read_only || !touch.deed.changes());
            let Some(HostPath { path, .. }) = here else { continue };
            let solid =
                touch.real.as_deref().and_then(|real| container::outside(mounts, real)).map(|host| host.path);
            let real = if touch.is_pattern { solid.unwrap_or_else(|| path.clone()) } else { path.clone() };
            touch.real = Some(self.world.real_path(&real).unwrap_or(real));
            touch.path = Some(path);
            touch.pattern = None;
            touch.location = Location::Here;
            self.out.push(touch);
        }
    }

    fn touch_all(&mut self, deed: Deed, words: &[&Value], command: &Command) {
        for word in words {
            self.touch(deed, word, command);
        }
    }

    fn command(&mut self, command: &Command) {
        self.redirects(command);
        let args = command.args();
        let plain = operands(args, &[]);
        match use_of(&command.name) {
            Some(Use::Read) => {
                self.touch_all(Deed::Read, &plain, command);
                if matches!(command.name.as_str(), "sort" | "uniq") {
                    self.option_files(command, &["-o", "--output"], Deed::Truncate);
                }
                self.packed(command);
                self.dashed_files(command);
            }
            Some(Use::List) => {
                if plain.is_empty() {
                    self.touch(Deed::List, &Value::known("."), command);
                }
                let plain: Vec<&Value> =
                    plain.into_iter().filter(|word| !word.text.eq_ignore_ascii_case("env:")).collect();
                self.touch_all(Deed::List, &plain, command);
            }
            Some(Use::Search) => self.search(command),
            Some(Use::Copy) => self.copy(command, Deed::Read),
            Some(Use::Move) => self.copy(command, Deed::Delete),
            Some(Use::Write) => {
                let deed = match command.name.as_str() {
                    "truncate" | "Set-Content" | "Out-File" => Deed::Truncate,
                    "tee" if !command.has_short("a") => Deed::Truncate,
                    _ => Deed::Write,
                };
                let plain = operands(
                    args,
                    &["-s", "--size", "-r", "--reference", "-m", "--mode", "-d", "-t", "-Value"],
                );
                self.touch_all(deed, &plain, command);
            }
            Some(Use::Change) => {
                self.touch_all(Deed::Write, plain.get(1..).unwrap_or(&[]), command);
            }
            Some(Use::Delete) => self.delete(command),
            Some(Use::Nothing) => self.special(command),
            None => self.unlisted(command),
        }
        self.table_options(command);
        if command.words.first().is_some_and(|word| word.text.contains('/')) && !command.in_code {
            let word = command.words.first().cloned().unwrap_or_default();
            self.touch(Deed::Execute, &word, command);
        }
    }

    fn redirects(&mut self, command: &Command) {
        for redirect in &command.redirects {
            let deed = match redirect.op {
                RedirectOp::Read => Deed::Read,
                RedirectOp::Write | RedirectOp::WriteBoth => Deed::Truncate,
                RedirectOp::Append | RedirectOp::AppendBoth | RedirectOp::ReadWrite => Deed::Write,
                RedirectOp::Duplicate | RedirectOp::HereDocument | RedirectOp::HereString => continue,
            };
            self.touch(deed, &redirect.target, command);
        }
    }

    fn option_files(&mut self, command: &Command, options: &[&str], deed: Deed) {
        let args = command.args();
        for (number, arg) in args.iter().enumerate() {
            if options.contains(&arg.text.as_str()) {
                if let Some(file) = args.get(number + 1) {
                    self.touch(deed, file, command);
                }
            } else if let Some(file) = options.iter().find_map(|option| {
                let glued = if option.starts_with("--") {
                    arg.after(&format!("{option}="))
                } else {
                    arg.after(option).map(|value| value.after("=").unwrap_or(value))
                };
                glued.filter(|value| !value.text.is_empty() || !value.holes.is_empty())
            }) {
                self.touch(deed, &file, command);
            }
        }
    }

    /// Files that the table of options names.
    fn table_options(&mut self, command: &Command) {
        let args = command.args();
        for row in OPTIONS.iter().filter(|row| row.call.starts_with(command.name.as_str())) {
            let Some(at) = taken(row.call, &command.name, args) else { continue };
            let rest = operands(args.get(at..).unwrap_or(&[]), &[]);
            let words = match row.names {
                Names::Options(options) => {
                    self.option_files(command, options, row.deed);
                    continue;
                }
                Names::Operands => &rest[..],
                Names::First => rest.get(..1).unwrap_or(&[]),
                Names::Last if rest.len() > 1 => rest.get(rest.len() - 1..).unwrap_or(&[]),
                Names::Last => &[],
                Names::Sources => rest.get(..rest.len().saturating_sub(1)).unwrap_or(&[]),
                Names::Rest => rest.get(1..).unwrap_or(&[]),
            };
            for word in words.iter().filter(|word| !word.text.contains("://")) {
                self.touch(row.deed, word, command);
            }
        }
    }

    /// `--file=/etc/passwd`, `-f/etc/passwd`: paths that are attached to options.
    fn dashed_files(&mut self, command: &Command) {
        for arg in command.args().iter().filter(|arg| arg.text.starts_with('-')) {
            let value = match arg.split_at_sign('=') {
                Some((_, value)) => value,
                None if arg.text.len() > 3 && !arg.text.starts_with("--") => arg.slice(2, arg.text.len()),
                None => continue,
            };
            if looks_outside(&value) {
                self.touch(Deed::Read, &value, command);
            }
        }
    }
}

/// The patterns that the braces of a search pattern make, one level deep.
fn in_braces(glob: &str) -> Vec<String> {
    let braces = glob.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match braces {
        Some((before, (inside, after))) => {
            inside.split(',').take(32).map(|one| format!("{before}{one}{after}")).collect()
        }
        None => vec![glob.to_owned()],
    }
}

/// Whether a word looks like a path that leaves the folder.
fn looks_outside(word: &Value) -> bool {
    let text = word.text.as_str();
    (text.starts_with('/') && !text.starts_with("//"))
        || text.starts_with("../")
        || text == ".."
        || text.starts_with("~/")
        || path::is_drive(text) && text.len() > 2
}
