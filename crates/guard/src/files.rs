//! Which files a call touches, and how: by the operands of its commands, its redirections, a tool's paths, a patch.
//!
//! What a command does with its operands is a table; a command that is in no table is taken to read every operand that looks like a path.

mod copies;
mod table;
mod transfers;

use self::table::USES;
use crate::path;
use crate::rules::operands;
use crate::shell::container::{self, Mount};
use crate::shell::syntax::RedirectOp;
use crate::shell::value::pattern_matches;
use crate::shell::{Analysis, Command, Origin, Place, Value};
use crate::world::World;
use baton_core::tool::{ToolKind, ToolUse};

/// Most files of one call that are looked at.
pub const MAX_TOUCHES: usize = 4096;
/// Longest path that can be opened; Windows has the longest.
const MAX_PATH: usize = 32 << 10;

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Its content is read.
    Read,
    /// A folder's names are listed, or a tree is searched.
    List,
    /// It is made or changed.
    Write,
    /// It is made anew, and what was in it is lost.
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

    /// Whether something is changed by it.
    pub fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Truncate | Self::Delete | Self::DeleteTree)
    }
}

/// One file or folder, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// What happens.
    pub deed: Deed,
    /// The clean absolute path as far as it is known, with patterns still in it; `None` where nothing is known.
    pub path: Option<String>,
    /// The same with links resolved; where there is a pattern, the folder before it.
    pub real: Option<String>,
    /// Whether unknown parts could make it another path.
    pub is_unknown: bool,
    /// Whether it is a pattern.
    pub is_pattern: bool,
    /// The word as it stands in the call.
    pub word: Value,
    /// The command's name.
    pub by: String,
    /// Whether it stands in a script file, of which only what is certain counts.
    pub from_file: bool,
    /// Where it happens.
    pub place: Place,
}

impl Touch {
    /// The last part of its path, as a pattern where it is one.
    pub fn name(&self) -> &str {
        path::file_name(self.path.as_deref().unwrap_or(&self.word.text))
    }

    /// Whether its last part is, or could be, a name that fits.
    pub fn may_be_named(&self, candidates: &[&str], fits: impl Fn(&str) -> bool) -> bool {
        let name = self.name();
        if !self.is_pattern && !self.is_unknown {
            return fits(name) || self.real.as_deref().is_some_and(|real| fits(path::file_name(real)));
        }
        if fits(name) {
            return true;
        }
        let pattern = self.word.pattern();
        let pattern = pattern.rsplit('/').next().unwrap_or(&pattern);
        // A pattern must begin as the name does: `*` alone finds no hidden file.
        let anchored = pattern.chars().take(2).filter(|sign| !matches!(sign, '*' | '?' | '\\')).count() >= 1
            && pattern.starts_with('.')
            && pattern != ".*";
        anchored && candidates.iter().any(|candidate| pattern_matches(pattern, candidate))
    }

    /// How it reads in a message.
    pub fn show(&self) -> String {
        crate::rules::short(&self.word.show())
    }
}

/// Paths that hold nothing, or what is there already.
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

/// A path with its links resolved, as far as the world knows.
pub fn real(path: &str, world: &dyn World) -> String {
    let clean = path::join("/", path);
    world.real_path(&clean).unwrap_or(clean)
}

/// The files that commands touch.
pub fn of_commands(analysis: &Analysis, world: &dyn World) -> Vec<Touch> {
    let mut finder = Finder { analysis, world, out: Vec::new() };
    for command in &analysis.commands {
        match (command.place, &command.mounts) {
            (Place::Container, Some(mounts)) if !mounts.is_empty() => finder.in_container(command, mounts),
            (Place::Container, _) => {}
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
    let mut finder = Finder { analysis: &analysis, world, out: Vec::new() };
    let command =
        Command { name: tool.native.clone(), cwd: Some(path::join("/", &world.cwd())), ..Command::default() };
    let native = tool.native.to_ascii_lowercase();
    let writes = ["write", "edit", "create", "delete", "move", "append", "replace", "save", "put"]
        .iter()
        .any(|verb| native.contains(verb));
    let deed = match tool.kind {
        ToolKind::Read | ToolKind::Fetch => Deed::Read,
        ToolKind::Write | ToolKind::Edit | ToolKind::Patch => Deed::Write,
        ToolKind::Delete => Deed::Delete,
        ToolKind::List | ToolKind::Glob | ToolKind::Grep => Deed::List,
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
        finder.touch(deed, &Value::known(text), &command);
    }
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

/// What a command does with its operands.
#[derive(Clone, Copy)]
enum Use {
    /// All are read.
    Read,
    /// All are listed; none means the folder.
    List,
    /// The first is a pattern or a program unless one of these options gives it; the others are read.
    Search,
    /// The last is written, the others are read.
    Copy,
    /// As a copy, and the others are gone.
    Move,
    /// All are written.
    Write,
    /// The first says how; the others are written.
    Change,
    /// All are deleted.
    Delete,
    /// No operand is a file of this machine that matters.
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
    out: Vec<Touch>,
}

impl Finder<'_> {
    fn touch(&mut self, deed: Deed, word: &Value, command: &Command) {
        if (word.text.is_empty() && word.holes.is_empty()) || self.out.len() > MAX_TOUCHES {
            return;
        }
        // No system opens such a path.
        if word.text.len() > MAX_PATH {
            return;
        }
        let is_pattern = !word.globs.is_empty();
        let cwd = command.cwd.as_deref();
        let joined = |text: &str| {
            if path::is_absolute(text) || text.starts_with('\\') {
                Some(path::join("/", text))
            } else {
                cwd.map(|cwd| path::join(cwd, text))
            }
        };
        let mut path = if word.is_opaque() { None } else { joined(&word.text) };
        if let Some(found) = path.as_mut() {
            for _ in 0..4 {
                if self.analysis.links.is_empty() {
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
            if command.place == Place::Here { self.world.real_path(&path).unwrap_or(path) } else { path }
        });
        self.out.push(Touch {
            deed,
            path,
            real,
            is_unknown: !word.holes.is_empty(),
            is_pattern,
            word: word.clone(),
            by: command.name.clone(),
            from_file: command.from_file,
            place: command.place,
        });
    }

    /// What a command in a container touches of this machine: what is below a mount, and what holds one where all of it goes.
    fn in_container(&mut self, command: &Command, mounts: &[Mount]) {
        let from = self.out.len();
        self.command(command);
        for mut touch in self.out.split_off(from.min(self.out.len())) {
            let Some(inside) = touch.path.take() else { continue };
            let held = mounts
                .iter()
                .find(|mount| touch.deed == Deed::DeleteTree && path::is_below(&mount.at, &inside));
            let here = container::outside(mounts, &inside)
                .or_else(|| held.map(|mount| (mount.from.clone(), mount.read_only)))
                .filter(|(_, read_only)| !read_only || !touch.deed.changes());
            let Some((path, _)) = here else { continue };
            let solid =
                touch.real.as_deref().and_then(|real| container::outside(mounts, real)).map(|(real, _)| real);
            let real = if touch.is_pattern { solid.unwrap_or_else(|| path.clone()) } else { path.clone() };
            touch.real = Some(self.world.real_path(&real).unwrap_or(real));
            touch.path = Some(path);
            touch.place = Place::Here;
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
                    arg.after(option)
                };
                glued.filter(|value| !value.text.is_empty() || !value.holes.is_empty())
            }) {
                self.touch(deed, &file, command);
            }
        }
    }

    /// `--file=/etc/passwd`, `-f/etc/passwd`: paths that are glued to options.
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

/// Whether a word looks like a path that leaves the folder.
fn looks_outside(word: &Value) -> bool {
    let text = word.text.as_str();
    (text.starts_with('/') && !text.starts_with("//"))
        || text.starts_with("../")
        || text == ".."
        || text.starts_with("~/")
        || path::is_drive(text) && text.len() > 2
}
