//! Commands with special operands: transfers, archives, git, and those in no table.

use super::arrivals::within;
use super::*;

/// Options of git's subcommands whose value is the next word.
const GIT_VALUED_OPTIONS: &[&str] = &[
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
];

impl Finder<'_> {
    pub(super) fn special(&mut self, command: &Command) {
        let args = command.args();
        match command.name.as_str() {
            "find" | "fd" | "gfind" | "fdfind" => self.find(command),
            "dd" => {
                for arg in args {
                    if let Some(file) = arg.after("if=") {
                        self.touch(Deed::Read, &file, command);
                    }
                    if let Some(file) = arg.after("of=") {
                        // A shell also expands the tilde behind `name=`.
                        let home =
                            file.after("~/").map(|rest| within(&Value::known(self.world.home()), &rest));
                        self.touch(Deed::Truncate, &home.unwrap_or(file), command);
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
                let from = self.out.len();
                self.option_files(command, &["-d"], Deed::Write);
                let folder = self.out.get(from).map(|touch| touch.word.clone());
                if !command.has_short("lptvZ") {
                    self.unpacked(&folder.unwrap_or_else(|| Value::known(".")), command);
                }
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
                // A one-liner reads the files behind it: `perl -pe 1 .env`.
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

    pub(super) fn transfer(&mut self, command: &Command) {
        let args = command.args();
        self.named_by_url(command);
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

    /// Downloads that get the last part of their address as a name.
    fn named_by_url(&mut self, command: &Command) {
        let args = command.args();
        let (option, short) = match command.name.as_str() {
            "curl" => ("--output-dir", None),
            "wget" => ("--directory-prefix", Some("-P")),
            _ => return,
        };
        let folder = args.iter().enumerate().find_map(|(number, arg)| {
            if arg.text == option || short == Some(arg.text.as_str()) {
                return args.get(number + 1).cloned();
            }
            arg.after(&format!("{option}=")).or_else(|| arg.after(short?))
        });
        let keeps_name = match short {
            None => {
                let flags = |arg: &Value| arg.text.starts_with('-') && !arg.text.starts_with("--");
                args.iter().any(|arg| flags(arg) && arg.text.contains('O'))
                    || command.has_long("--remote-name", 10)
                    || command.has_long("--remote-name-all", 10)
            }
            Some(_) => !args.iter().any(|arg| {
                let text = arg.text.as_str();
                (text.starts_with('-') && !text.starts_with("--") && text.contains('O'))
                    || text.starts_with("--output-document")
            }),
        };
        let here = Value::known(".");
        let into = folder.as_ref().unwrap_or(&here);
        if let Some(folder) = folder.as_ref().filter(|_| short.is_none()) {
            let output = args.iter().position(|arg| matches!(arg.text.as_str(), "-o" | "--output"));
            if let Some(file) = output.and_then(|at| args.get(at + 1)) {
                self.touch(Deed::Write, &within(folder, file), command);
            }
        }
        if !keeps_name {
            return;
        }
        let many = if short.is_some() { command.has_short("rmx") } else { command.has_short("J") };
        if many || command.has_long("--content-disposition", 8) || command.has_long("--recursive", 5) {
            self.unpacked(into, command);
        }
        for url in args.iter().filter(|arg| !arg.text.starts_with('-') && arg.text.contains('/')).take(64) {
            if folder.as_ref() != Some(url) {
                self.downloaded(into, url, command);
            }
        }
    }

    /// `@file`, `name=@file`, `name=<file`.
    pub(super) fn attachment(&mut self, value: &Value, command: &Command) {
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

    pub(super) fn tar(&mut self, command: &Command) {
        let args = command.args();
        let flags = args.first().map(|arg| arg.text.trim_start_matches('-').to_owned()).unwrap_or_default();
        let bundled = args.first().is_some_and(|arg| !arg.text.starts_with("--"));
        let creates = (bundled && flags.contains(['c', 'r', 'u'])) || command.has_long("--create", 4);
        let takes_file = bundled && flags.contains('f');
        let takes_folder = args.first().is_some_and(|arg| matches!(arg.text.as_str(), "-C" | "--directory"));
        let mut at = usize::from(!takes_folder);
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
        let extracts = (bundled && flags.contains('x'))
            || args.iter().any(|arg| {
                matches!(arg.text.as_str(), "--extract" | "--get")
                    || arg.text.starts_with('-') && !arg.text.starts_with("--") && arg.text.contains('x')
            });
        if let Some(folder) = folder.filter(|_| !creates) {
            self.unpacked(&folder, command);
        } else if extracts && !creates {
            self.unpacked(&Value::known("."), command);
        }
    }

    pub(super) fn git(&mut self, command: &Command) {
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
        let in_folder = |word: &Value| match &folder {
            Some(folder) if !path::is_absolute(&word.text) => within(folder, word),
            _ => word.clone(),
        };
        let found = operands(rest, GIT_VALUED_OPTIONS);
        let after = rest.iter().position(|arg| arg.text == "--").map(|at| rest.get(at + 1..).unwrap_or(&[]));
        match verb.text.as_str() {
            "add" | "stage" | "blame" | "annotate" | "hash-object" => {
                for word in found {
                    self.touch(Deed::Read, &in_folder(word), command);
                }
            }
            "diff" if rest.iter().any(|arg| arg.text == "--no-index") => {
                self.touch_all(Deed::Read, &found, command)
            }
            "grep" => {
                for word in after.unwrap_or(&[]) {
                    self.touch(Deed::Read, &in_folder(word), command);
                }
            }
            "show" | "diff" | "log" | "cat-file" | "archive" | "difftool" => {
                for word in found.iter().filter_map(|word| word.split_at_sign(':')).map(|(_, path)| path) {
                    self.touch(Deed::Read, &in_folder(&word), command);
                }
                let deed = if shows_content(&verb.text, rest) { Deed::Read } else { Deed::List };
                let named = after.map(|words| words.iter().collect::<Vec<_>>()).unwrap_or_else(|| {
                    found
                        .iter()
                        .copied()
                        .filter(|word| word.text.contains('.') && !word.text.contains(".."))
                        .collect()
                });
                for word in named {
                    self.touch(deed, &in_folder(word), command);
                }
            }
            // This removes files from the index only and leaves them on disk.
            "rm" if rest.iter().any(|arg| arg.text == "--cached") => {}
            "rm" => {
                for word in found {
                    self.touch(Deed::Delete, &in_folder(word), command);
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
                    self.unpacked(&in_folder(word), command);
                } else if let Some(url) = found.first().filter(|_| verb.text == "clone") {
                    let name = url.text.trim_end_matches('/').trim_end_matches(".git");
                    let name = name.rsplit(['/', ':']).next().unwrap_or(name);
                    self.unpacked(&in_folder(&Value::known(name)), command);
                }
            }
            "apply" | "am" => {
                for word in found {
                    self.touch(Deed::Read, &in_folder(word), command);
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
    pub(super) fn unlisted(&mut self, command: &Command) {
        if command.name.is_empty() {
            return;
        }
        self.dashed_files(command);
        // A program that uses a key does not show it.
        let keys: &[&str] = match command.name.as_str() {
            "sftp" | "autossh" | "sshfs" => &["-i"],
            name if name.starts_with("ansible") => &["--private-key", "--key-file"],
            _ => &[],
        };
        for word in operands(command.args(), keys) {
            let names_file = word.text.contains('/') || word.text.starts_with('.') || word.text.contains('.');
            if !word.text.contains("://") && (names_file || looks_outside(word)) {
                self.touch(Deed::Read, word, command);
            }
        }
    }

    /// Operands of an unknown program that are outside the folder.
    pub(super) fn outside_operands(&mut self, command: &Command) {
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
    pub(super) fn patch(&mut self, text: &str, command: &Command) {
        // In this form, a line that begins like this is added or removed.
        let has_headers = !text.contains("*** Begin Patch");
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
            let Some((file, deed, is_diff)) = named.filter(|(_, _, is_diff)| has_headers || !is_diff) else {
                continue;
            };
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

/// Whether git shows what is in the files that a command of it names, and not their names or the
/// commits alone.
fn shows_content(verb: &str, args: &[Value]) -> bool {
    const PATCH: &[&str] = &[
        "-p",
        "-u",
        "-c",
        "--cc",
        "--patch",
        "--patch-with-stat",
        "--patch-with-raw",
        "--word-diff",
        "--full-index",
    ];
    const SUMMARY: &[&str] = &[
        "--stat",
        "--shortstat",
        "--numstat",
        "--dirstat",
        "--summary",
        "--name-only",
        "--name-status",
        "--raw",
        "--quiet",
        "--no-patch",
        "-s",
        "-q",
    ];
    let option = |arg: &Value| arg.text.split('=').next().unwrap_or("").to_owned();
    let options: Vec<String> = args
        .iter()
        .take_while(|arg| arg.text != "--")
        .filter(|arg| arg.text.starts_with('-'))
        .map(option)
        .collect();
    let has = |names: &[&str]| options.iter().any(|option| names.contains(&option.as_str()));
    let shows_lines = options.iter().any(|option| option.starts_with("-L") || option.starts_with("-U"));
    match verb {
        "log" => has(PATCH) || shows_lines,
        "diff" | "show" => has(PATCH) || shows_lines || !has(SUMMARY),
        _ => true,
    }
}
