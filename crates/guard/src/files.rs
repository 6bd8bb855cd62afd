//! Which files a call touches, and how: by the operands of its commands, its redirections, a tool's paths, a patch.
//!
//! What a command does with its operands is a table; a command that is in no table is taken to read every operand that looks like a path.

mod table;

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

    fn search(&mut self, command: &Command) {
        let name = command.name.as_str();
        let args = command.args();
        let is_grep = !matches!(name, "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk" | "jq" | "yq" | "sd");
        let valued: &[&str] = if is_grep {
            &[
                "-e",
                "-f",
                "-m",
                "-A",
                "-B",
                "-C",
                "-d",
                "-D",
                "--regexp",
                "--file",
                "-g",
                "-t",
                "-T",
                "--glob",
                "--type",
                "--include",
                "--exclude",
                "--exclude-dir",
                "-j",
                "--max-count",
                "-E",
                "-M",
            ]
        } else if name.contains("awk") {
            &["-f", "-v", "-F", "--file", "--assign"]
        } else if name.contains("sed") {
            &["-e", "-f", "--expression", "--file", "-l"]
        } else {
            &["--arg", "--argjson", "-f", "--from-file", "--slurpfile", "--rawfile", "--indent"]
        };
        // grep's `-E` takes no value, ripgrep's does.
        let valued: Vec<&str> = valued
            .iter()
            .copied()
            .filter(|option| name == "rg" || !matches!(*option, "-E" | "-M" | "-g" | "-t" | "-T" | "-j"))
            .collect();
        let given = args.iter().any(|arg| {
            matches!(
                arg.text.as_str(),
                "-e" | "-f" | "--regexp" | "--file" | "--expression" | "--from-file" | "--files"
            ) || arg.text.starts_with("--regexp=")
                || arg.text.starts_with("--file=")
                || arg.text.starts_with("--expression=")
                || (arg.text.len() > 2
                    && (arg.text.starts_with("-e") || (arg.text.starts_with("-f") && !is_grep)))
                || (is_grep
                    && arg.text.len() > 2
                    && !arg.text.starts_with("--")
                    && arg.text.starts_with('-')
                    && arg.text.ends_with(['e', 'f'])
                    && !arg.text.contains('='))
        });
        let found = operands(args, &valued);
        let files = if given { &found[..] } else { found.get(1..).unwrap_or(&[]) };
        let in_place = name.contains("sed") && (command.has_short("i") || command.has_long("--in-place", 4))
            || name.contains("awk") && args.iter().any(|arg| arg.text == "inplace")
            || name == "yq" && command.has_short("i")
            || name == "sd";
        for file in files {
            if name.contains("awk") && file.text.contains('=') && !file.text.contains('/') {
                continue;
            }
            self.touch(if in_place { Deed::Write } else { Deed::Read }, file, command);
        }
        self.option_files(command, &["-f", "--file", "--from-file"], Deed::Read);
        let recursive = is_grep
            && (matches!(name, "rg" | "ag" | "ack" | "ugrep")
                || command.has_short("rR")
                || command.has_long("--recursive", 5));
        if files.is_empty() && recursive && command.stdin.is_none() {
            self.touch(Deed::List, &Value::known("."), command);
        }
    }

    fn copy(&mut self, command: &Command, source: Deed) {
        let args = command.args();
        let name = command.name.as_str();
        let folder = args.iter().enumerate().find_map(|(number, arg)| {
            if matches!(arg.text.as_str(), "-t" | "--target-directory") {
                args.get(number + 1).cloned()
            } else {
                arg.after("--target-directory=")
            }
        });
        let valued: &[&str] = if name == "rsync" {
            &["-e", "--rsh", "--exclude", "--include", "-f"]
        } else {
            &["-t", "--target-directory", "-m", "-o", "-g", "-S", "--suffix", "-i", "-P"]
        };
        let found = operands(args, valued);
        let is_remote = |word: &Value| {
            matches!(name, "scp" | "rsync")
                && word.text.split('/').next().is_some_and(|head| head.contains(':'))
        };
        let (sources, target) = match (&folder, found.split_last()) {
            (Some(_), _) => (&found[..], folder.as_ref()),
            (None, Some((last, rest))) if !rest.is_empty() => (rest, Some(*last)),
            (None, _) => (&found[..], None),
        };
        for word in sources.iter().filter(|word| !is_remote(word)) {
            // A link does not read, but what is reached through it is known by its target.
            self.touch(
                if name == "install" && command.has_short("d") { Deed::Write } else { source },
                word,
                command,
            );
            if source == Deed::Delete {
                self.touch(Deed::Read, word, command);
            }
        }
        if let Some(target) = target.filter(|word| !is_remote(word)) {
            let deletes = name == "rsync" && args.iter().any(|arg| arg.text.starts_with("--del"));
            let empties = sources.iter().any(|word| word.text == "/dev/null")
                && matches!(name, "cp" | "install" | "gcp");
            let deed = match (deletes, empties) {
                (true, _) => Deed::DeleteTree,
                (_, true) => Deed::Truncate,
                _ => Deed::Write,
            };
            self.touch(deed, target, command);
        }
    }

    fn delete(&mut self, command: &Command) {
        let name = command.name.as_str();
        let lower: Vec<String> = command.texts().map(str::to_ascii_lowercase).collect();
        let is_windows = matches!(name, "Remove-Item" | "ri" | "del" | "erase" | "rd")
            || (name == "rmdir" && lower.iter().any(|arg| arg == "/s"));
        if is_windows {
            let tree = lower.iter().any(|arg| {
                arg == "/s"
                    || arg == "-r"
                    || (arg.len() >= 4 && "-recurse".starts_with(arg.as_str()))
                    || arg == "-rf"
                    || arg == "-fr"
            });
            for word in command.args() {
                let text = word.text.as_str();
                let is_switch = text.starts_with('-')
                    || (text.starts_with('/') && text.len() <= 3 && !text.contains("//") && text.len() > 1);
                // A shell has eaten the backslash of `C:\\Windows`.
                let mut word = word.clone();
                if path::is_drive(text.get(..2).unwrap_or("")) && !path::is_drive(text) {
                    word.text.insert(2, '/');
                }
                if !is_switch {
                    let word = &word;
                    self.touch(if tree { Deed::DeleteTree } else { Deed::Delete }, word, command);
                }
            }
            return;
        }
        let tree = matches!(name, "trash" | "trash-put" | "rimraf" | "del-cli" | "wipe" | "srm")
            || (name != "shred" && (command.has_short("rR") || command.has_long("--recursive", 5)))
            || (command.has_long("--no-preserve-root", 6));
        let deed = match name {
            "shred" => Deed::Truncate,
            _ if tree => Deed::DeleteTree,
            _ => Deed::Delete,
        };
        let plain = operands(
            command.args(),
            if name == "shred" { &["-n", "-s", "--iterations", "--size"] } else { &[] },
        );
        self.touch_all(deed, &plain, command);
    }

    fn special(&mut self, command: &Command) {
        let args = command.args();
        match command.name.as_str() {
            "find" | "fd" => self.find(command),
            "dd" => {
                for arg in args {
                    if let Some(file) = arg.after("if=") {
                        self.touch(Deed::Read, &file, command);
                    }
                    if let Some(file) = arg.after("of=") {
                        self.touch(Deed::Truncate, &file, command);
                    }
                }
            }
            "curl" | "wget" | "iwr" | "irm" | "http" | "https" | "xh" => self.transfer(command),
            "tar" => self.tar(command),
            "zip" => {
                self.touch_all(Deed::Read, operands(args, &["-x", "-P"]).get(1..).unwrap_or(&[]), command)
            }
            "unzip" => {
                self.touch_all(
                    Deed::Read,
                    operands(args, &["-d", "-x", "-P"]).get(..1).unwrap_or(&[]),
                    command,
                );
                self.option_files(command, &["-d"], Deed::Write);
            }
            "git" | "hub" => self.git(command),
            "openssl" => {
                self.option_files(command, &["-in", "-inkey", "-key", "-CAfile"], Deed::Read);
                self.option_files(command, &["-out", "-keyout"], Deed::Write);
            }
            "stat" | "file" => {
                self.touch_all(Deed::List, &operands(args, &["-c", "--format", "-f"]), command)
            }
            "sqlite3" | "duckdb" => self.touch_all(
                Deed::Read,
                operands(args, &["-cmd", "-separator"]).get(..1).unwrap_or(&[]),
                command,
            ),
            "psql" | "mysql" | "mariadb" => self.option_files(command, &["-f", "--file"], Deed::Read),
            "bash" | "sh" | "zsh" | "dash" | "ksh" | "fish" | "python" | "python3" | "node" | "ruby"
            | "perl" | "php" => {
                let has_text = args.iter().any(|arg| {
                    arg.text.starts_with('-')
                        && !arg.text.starts_with("--")
                        && arg.text.contains(['c', 'e', 'p', 'r', 'm'])
                });
                if !has_text && let Some(file) = operands(args, &["-o", "-O", "-r", "--require"]).first() {
                    self.touch(Deed::Execute, file, command);
                    self.touch(Deed::Read, file, command);
                }
                // Files behind a one-liner are what it reads: `perl -pe 1 .env`.
                if has_text && matches!(command.name.as_str(), "perl" | "ruby") {
                    let rest = operands(
                        args,
                        &[
                            "-e", "-E", "-ne", "-pe", "-i", "-lne", "-lpe", "-nle", "-ple", "-p", "-n",
                            "-0777ne", "-pie",
                        ],
                    );
                    self.touch_all(Deed::Read, &rest, command);
                }
                self.outside_operands(command);
            }
            "patch" | "apply_patch" | "applypatch" => {
                if let Some(text) = command.stdin.as_deref().or(args.first()).and_then(Value::literal) {
                    let text = text.to_owned();
                    self.patch(&text, command);
                }
                if command.name == "patch" {
                    self.option_files(command, &["-i", "--input"], Deed::Read);
                    self.touch_all(
                        Deed::Write,
                        operands(args, &["-p", "-i", "-d"]).get(..1).unwrap_or(&[]),
                        command,
                    );
                }
            }
            "ssh" => self.option_files(command, &["-i"], Deed::Execute),
            "docker" | "podman" => {}
            "crontab" => self.touch_all(Deed::Read, &operands(args, &["-u"]), command),
            "pip" | "pip3" | "uv" => self.option_files(command, &["-r", "--requirement"], Deed::Read),
            "make" | "gmake" => self.option_files(command, &["-f", "--file"], Deed::Read),
            _ => {}
        }
    }

    fn find(&mut self, command: &Command) {
        let args = command.args();
        let roots: Vec<&Value> = if command.name == "fd" {
            operands(args, &["-e", "-t", "-E", "-d", "-x", "-X"]).into_iter().skip(1).collect()
        } else {
            args.iter()
                .skip_while(|arg| matches!(arg.text.as_str(), "-H" | "-L" | "-P"))
                .take_while(|arg| !arg.text.starts_with('-') && arg.text != "(" && arg.text != "!")
                .collect()
        };
        let here = Value::known(".");
        let roots = if roots.is_empty() { vec![&here] } else { roots };
        let deletes = args.iter().any(|arg| arg.text == "-delete");
        self.touch_all(Deed::List, &roots, command);
        if deletes {
            const NAMES: &[&str] = &[
                "-name",
                "-iname",
                "-path",
                "-ipath",
                "-wholename",
                "-regex",
                "-iregex",
                "-empty",
                "-mtime",
                "-mmin",
                "-size",
                "-newer",
                "-atime",
                "-ctime",
                "-lname",
                "-perm",
                "-samefile",
            ];
            let filtered = args.iter().any(|arg| NAMES.contains(&arg.text.as_str()));
            for root in roots {
                let mut word = root.clone();
                if filtered {
                    word.push_text("/");
                    word.push(&Value::unknown(Origin::Output("find".into())));
                }
                self.touch(Deed::DeleteTree, &word, command);
            }
        }
        for (number, arg) in args.iter().enumerate() {
            if matches!(arg.text.as_str(), "-fprint" | "-fprintf" | "-fls" | "-fprint0")
                && let Some(file) = args.get(number + 1)
            {
                self.touch(Deed::Truncate, file, command);
            }
        }
    }

    fn transfer(&mut self, command: &Command) {
        let args = command.args();
        let is_curl = command.name == "curl";
        for (number, arg) in args.iter().enumerate() {
            let next = || args.get(number + 1);
            match arg.text.as_str() {
                "-o" | "--output" | "-OutFile" | "--download" => {
                    if let Some(file) = next() {
                        self.touch(Deed::Write, file, command);
                    }
                }
                "-O" | "--output-document" if command.name == "wget" => {
                    if let Some(file) = next() {
                        self.touch(Deed::Write, file, command);
                    }
                }
                "-T" | "--upload-file" | "-K" | "--config" | "--netrc-file" | "-E" | "--cert" | "--key"
                    if is_curl =>
                {
                    if let Some(file) = next() {
                        self.touch(Deed::Read, file, command);
                    }
                }
                "--post-file" | "--body-file" | "-i" | "--input-file" if command.name == "wget" => {
                    if let Some(file) = next() {
                        self.touch(Deed::Read, file, command);
                    }
                }
                "-d" | "--data" | "--data-binary" | "--data-ascii" | "--data-urlencode" | "-F" | "--form"
                | "-H" | "--header" | "--json"
                    if is_curl =>
                {
                    if let Some(value) = next() {
                        self.attachment(value, command);
                    }
                }
                text => {
                    if text.starts_with("--post-file=") || text.starts_with("--upload-file=") {
                        if let Some((_, file)) = arg.split_at_sign('=') {
                            self.touch(Deed::Read, &file, command);
                        }
                    } else if let Some(file) = arg.after("file://") {
                        self.touch(Deed::Read, &file, command);
                    } else if text.starts_with("-d@")
                        || text.starts_with("-F")
                        || text.starts_with("--data")
                        || text.starts_with("-T")
                        || text.contains("@") && !text.contains("://")
                    {
                        self.attachment(arg, command);
                    }
                }
            }
        }
    }

    /// `@file`, `name=@file`, `name=<file`.
    fn attachment(&mut self, value: &Value, command: &Command) {
        let text = value.text.as_str();
        let at = text.find('@').or_else(|| text.find("=<").map(|at| at + 1));
        if let Some(at) = at
            && (at == 0 || matches!(text.as_bytes().get(at - 1), Some(b'=' | b'd' | b'F' | b'T')))
        {
            let end =
                text.get(at + 1..).and_then(|rest| rest.find(';')).map_or(text.len(), |end| at + 1 + end);
            self.touch(Deed::Read, &value.slice(at + 1, end), command);
        }
    }

    fn tar(&mut self, command: &Command) {
        let args = command.args();
        let flags = args.first().map(|arg| arg.text.trim_start_matches('-').to_owned()).unwrap_or_default();
        let bundled = args.first().is_some_and(|arg| !arg.text.starts_with("--"));
        let creates = (bundled && flags.contains(['c', 'r', 'u'])) || command.has_long("--create", 4);
        let takes_file = bundled && flags.contains('f');
        let mut at = 1;
        if takes_file && let Some(file) = args.get(at) {
            self.touch(if creates { Deed::Write } else { Deed::Read }, file, command);
            at += 1;
        }
        let mut folder: Option<Value> = None;
        while let Some(arg) = args.get(at) {
            at += 1;
            match arg.text.as_str() {
                "-C" | "--directory" => {
                    folder = args.get(at).cloned();
                    at += 1;
                }
                "-f" | "--file" => {
                    if let Some(file) = args.get(at) {
                        self.touch(if creates { Deed::Write } else { Deed::Read }, file, command);
                    }
                    at += 1;
                }
                "-T" | "--files-from" | "-X" | "--exclude-from" => {
                    if let Some(file) = args.get(at) {
                        self.touch(Deed::Read, file, command);
                    }
                    at += 1;
                }
                "--exclude" | "--transform" => at += 1,
                text if text.starts_with('-') => {}
                _ if creates => {
                    let word = match &folder {
                        Some(folder) if !path::is_absolute(&arg.text) => {
                            let mut word = folder.clone();
                            word.push_text("/");
                            word.push(arg);
                            word
                        }
                        _ => arg.clone(),
                    };
                    self.touch(Deed::Read, &word, command);
                    if command.has_long("--remove-files", 8) {
                        self.touch(Deed::DeleteTree, &word, command);
                    }
                }
                _ => {}
            }
        }
        if let Some(folder) = folder.filter(|_| !creates) {
            self.touch(Deed::Write, &folder, command);
        }
    }

    fn git(&mut self, command: &Command) {
        let args = command.args();
        let mut at = 0;
        let mut folder = None;
        while let Some(arg) = args.get(at) {
            match arg.text.as_str() {
                "-C" | "--work-tree" | "--git-dir" => {
                    folder = args.get(at + 1).cloned();
                    at += 2;
                }
                "-c" | "--namespace" => at += 2,
                text if text.starts_with('-') => at += 1,
                _ => break,
            }
        }
        if let Some(folder) = &folder {
            self.touch(Deed::List, folder, command);
        }
        let Some(verb) = args.get(at) else { return };
        let rest = args.get(at + 1..).unwrap_or(&[]);
        let within = |word: &Value| match &folder {
            Some(folder) if !path::is_absolute(&word.text) => {
                let mut whole = folder.clone();
                whole.push_text("/");
                whole.push(word);
                whole
            }
            _ => word.clone(),
        };
        let found = operands(
            rest,
            &[
                "-m",
                "--message",
                "-F",
                "-b",
                "-n",
                "--depth",
                "--branch",
                "-o",
                "--author",
                "--format",
                "--since",
                "--until",
                "-S",
                "-G",
                "-L",
            ],
        );
        let after = rest.iter().position(|arg| arg.text == "--").map(|at| rest.get(at + 1..).unwrap_or(&[]));
        match verb.text.as_str() {
            "add" | "stage" | "blame" | "annotate" | "hash-object" => {
                for word in found {
                    self.touch(Deed::Read, &within(word), command);
                }
            }
            "diff" if rest.iter().any(|arg| arg.text == "--no-index") => {
                self.touch_all(Deed::Read, &found, command)
            }
            "grep" => {
                for word in after.unwrap_or(&[]) {
                    self.touch(Deed::Read, &within(word), command);
                }
            }
            "show" | "diff" | "log" | "cat-file" | "archive" | "difftool" => {
                for word in found.iter().filter_map(|word| word.split_at_sign(':')).map(|(_, path)| path) {
                    self.touch(Deed::Read, &within(&word), command);
                }
                let named = after.map(|words| words.iter().collect::<Vec<_>>()).unwrap_or_else(|| {
                    found
                        .iter()
                        .copied()
                        .filter(|word| word.text.contains('.') && !word.text.contains(".."))
                        .collect()
                });
                for word in named {
                    self.touch(Deed::Read, &within(word), command);
                }
            }
            "rm" => {
                for word in found {
                    self.touch(Deed::Delete, &within(word), command);
                }
            }
            "mv" => self.copy(
                &Command {
                    words: std::iter::once(Value::known("mv")).chain(rest.iter().cloned()).collect(),
                    name: "mv".to_owned(),
                    ..command.clone()
                },
                Deed::Delete,
            ),
            "clone" | "init" | "worktree" => {
                let target = found.get(usize::from(verb.text != "init"));
                if let Some(word) = target {
                    self.touch(Deed::Write, &within(word), command);
                }
            }
            "apply" | "am" => {
                for word in found {
                    self.touch(Deed::Read, &within(word), command);
                }
                if let Some(text) = command.stdin.as_deref().and_then(Value::literal) {
                    let text = text.to_owned();
                    self.patch(&text, command);
                }
            }
            "commit" => self.option_files(command, &["-F", "--file"], Deed::Read),
            _ => {}
        }
    }

    /// A command that is in no table.
    fn unlisted(&mut self, command: &Command) {
        if command.name.is_empty() {
            return;
        }
        self.dashed_files(command);
        for word in operands(command.args(), &[]) {
            let names_file = word.text.contains('/') || word.text.starts_with('.') || word.text.contains('.');
            if !word.text.contains("://") && (names_file || looks_outside(word)) {
                self.touch(Deed::Read, word, command);
            }
        }
    }

    /// Operands of a program of unknown meaning that lie outside of the folder.
    fn outside_operands(&mut self, command: &Command) {
        let has_text = command
            .args()
            .iter()
            .position(|arg| matches!(arg.text.as_str(), "-c" | "-e" | "-p" | "-r" | "-m"));
        let rest = command.args().get(has_text.map_or(0, |at| at + 2)..).unwrap_or(&[]);
        for word in operands(rest, &[]) {
            if looks_outside(word) {
                self.touch(Deed::Read, word, command);
            }
        }
    }

    /// The files that a patch names, in the form of `apply_patch` and of diffs.
    fn patch(&mut self, text: &str, command: &Command) {
        for line in text.lines().filter(|line| line.len() < 4096) {
            let named = [
                ("*** Add File: ", Deed::Write),
                ("*** Update File: ", Deed::Write),
                ("*** Delete File: ", Deed::Delete),
                ("*** Move to: ", Deed::Write),
                ("rename from ", Deed::Delete),
                ("rename to ", Deed::Write),
                ("+++ ", Deed::Write),
                ("--- ", Deed::Write),
            ]
            .iter()
            .find_map(|(mark, deed)| Some((line.strip_prefix(mark)?, *deed, mark.starts_with(['+', '-']))));
            let Some((file, deed, is_diff)) = named else { continue };
            let file = file.split('\t').next().unwrap_or(file).trim();
            let file = if is_diff {
                file.strip_prefix("a/").or(file.strip_prefix("b/")).unwrap_or(file)
            } else {
                file
            };
            if file == "/dev/null" {
                continue;
            }
            self.touch(deed, &Value::known(file), command);
            if self.out.len() > MAX_TOUCHES {
                return;
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
