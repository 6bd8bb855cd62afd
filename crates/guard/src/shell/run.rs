//! One simple command: what it changes in the shell, and what else it runs.

use super::eval::{Context, Shell};
use super::outputs::{self, DOWNLOADERS};
use super::parse::MAX_DEPTH;
use super::value::{Origin, Value};
use super::wrappers::{self, SUBCOMMANDS, WRAPPERS};
use super::{Command, Place, Redirection, code, container, windows};
use crate::path;
use std::rc::Rc;

const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "ksh93", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "yash",
    "posh", "nu", "elvish", "xonsh",
];

/// Variables whose value a program runs as a command.
const RUN_VARIABLES: &[&str] = &[
    "PAGER",
    "GIT_PAGER",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "PROMPT_COMMAND",
    "MANPAGER",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SUDO_ASKPASS",
    "LESSOPEN",
    "BROWSER",
];

/// Bytes of a script file that are read.
const SCRIPT_BYTES: usize = 65_536;

/// Whether a name is that of a shell.
pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

impl Shell<'_> {
    /// Runs a command: notes it, and follows what it runs in turn. Returns what it prints.
    pub(super) fn run(
        &mut self,
        argv: Vec<Value>,
        assignments: Vec<(String, Value)>,
        redirects: Vec<Redirection>,
        context: &Context,
    ) -> Value {
        let length: usize = argv.iter().map(|word| word.text.len()).sum();
        if !self.step(10 + argv.len() + length / 64) {
            return Value::unknown(Origin::Input);
        }
        if context.depth > MAX_DEPTH {
            self.unknown("the command is nested too deeply to be read", context);
            return Value::unknown(Origin::Input);
        }
        let Some(first) = argv.first() else { return Value::default() };
        let Some(name) = self.program(first, context) else { return Value::unknown(Origin::Input) };
        if let Some(text) = self.state.aliases.get(&name).cloned()
            && !self.active.contains(&name)
        {
            return self.expand_alias(&name, &text, argv, context);
        }
        if let Some(body) = self.state.functions.get(&name).cloned() {
            return self.call(&name, &body, argv, context);
        }
        let command = Command {
            name: name.clone(),
            words: argv.clone(),
            assignments: assignments.clone(),
            redirects,
            cwd: self.state.cwd.clone(),
            stdin: context.stdin.clone(),
            piped_to: Vec::new(),
            captured: context.captured,
            background: context.background,
            place: context.place,
            mounts: context.mounts.clone(),
            traced: context.traced,
            from_file: context.from_file,
            in_code: context.in_code,
        };
        self.analysis.commands.push(command);
        for (variable, value) in &assignments {
            if RUN_VARIABLES.contains(&variable.as_str()) && value.is_known() {
                self.in_subshell(|shell| shell.source_value(value, variable, &context.deeper()));
            }
        }
        if assignments.is_empty() {
            return self.dispatch(&name, &argv, context);
        }
        self.in_subshell(|shell| {
            for (variable, value) in assignments {
                shell.state.variables.insert(variable, vec![value]);
            }
            shell.dispatch(&name, &argv, context)
        })
    }

    /// The name of the program that a word stands for; `None` where it is not known, which is noted.
    fn program(&mut self, word: &Value, context: &Context) -> Option<String> {
        let text = word.text.as_str();
        let name = path::file_name(text);
        let tail = text.len() - text.rsplit(['/', '\\']).next().unwrap_or("").len();
        let is_clear = word.holes.iter().all(|(at, _)| *at < tail.max(1) && tail > 0);
        if !word.holes.is_empty() && !is_clear {
            let mut unset_only = true;
            for (_, origin) in &word.holes {
                match origin {
                    Origin::Variable(name) if name.as_ref() == "SHELL" => return Some("sh".to_owned()),
                    Origin::Variable(_) => {}
                    _ => unset_only = false,
                }
            }
            if name.is_empty() || !unset_only {
                let known_tool = |origin: &Origin| matches!(origin, Origin::Variable(name) if matches!(name.as_ref(), "EDITOR" | "VISUAL" | "PAGER" | "BROWSER" | "CC" | "CXX" | "LD" | "AR" | "PYTHON" | "MAKE" | "CARGO" | "NODE" | "NPM" | "GO" | "JAVA"));
                for (_, origin) in word.holes.iter().filter(|(_, origin)| !known_tool(origin)).take(4) {
                    self.ran(origin.clone(), "the shell", context);
                }
                return None;
            }
        }
        if !word.globs.is_empty() && name.contains(['*', '?']) {
            return Some(self.globbed_program(word));
        }
        let name = name.strip_suffix(".exe").or(name.strip_suffix(".EXE")).unwrap_or(name);
        Some(if name.is_empty() { text.to_owned() } else { name.to_owned() })
    }

    /// `/usr/bin/s?do`: the dangerous program that a pattern would find.
    fn globbed_program(&self, word: &Value) -> String {
        const NAMES: &[&str] = &[
            "sudo",
            "doas",
            "rm",
            "cat",
            "env",
            "curl",
            "wget",
            "bash",
            "sh",
            "git",
            "kubectl",
            "terraform",
            "aws",
            "dd",
            "mkfs",
            "shred",
            "find",
            "printenv",
            "su",
            "pkexec",
            "gcloud",
            "az",
            "helm",
            "gh",
        ];
        let pattern = word.pattern();
        let pattern = pattern.rsplit('/').next().unwrap_or(&pattern);
        let found = NAMES.iter().find(|name| super::value::pattern_matches(pattern, name));
        found.map_or_else(|| path::file_name(&word.text).to_owned(), |name| (*name).to_owned())
    }

    fn expand_alias(&mut self, name: &str, text: &str, argv: Vec<Value>, context: &Context) -> Value {
        let saved = std::mem::replace(&mut self.state.arguments, argv.into_iter().skip(1).collect());
        self.active.push(name.to_owned());
        let printed = self.source(&format!("{text} \"$@\""), &context.deeper());
        self.active.pop();
        self.restore_arguments(saved);
        printed
    }

    fn call(&mut self, name: &str, body: &str, argv: Vec<Value>, context: &Context) -> Value {
        if self.active.iter().any(|active| active == name) {
            let multiplies =
                context.background || context.stdin.is_some() || (context.wants_output && !context.captured);
            if multiplies
                && !self.analysis.recursive.iter().any(|other| other == name)
                && self.analysis.recursive.len() < 16
            {
                self.analysis.recursive.push(name.to_owned());
            }
            return Value::unknown(Origin::Input);
        }
        let saved = std::mem::replace(&mut self.state.arguments, argv.into_iter().skip(1).collect());
        self.active.push(name.to_owned());
        let printed = self.source(body, &context.deeper());
        self.active.pop();
        self.restore_arguments(saved);
        printed
    }

    fn dispatch(&mut self, name: &str, argv: &[Value], context: &Context) -> Value {
        let args = argv.get(1..).unwrap_or(&[]);
        match name {
            "cd" | "chdir" | "Set-Location" | "pushd" | "popd" => self.change_folder(name, args),
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for (variable, value) in outputs::leading_assignments(args) {
                    self.state.variables.insert(variable, vec![value]);
                }
                Value::default()
            }
            "unset" => {
                for arg in args {
                    self.state.variables.remove(&arg.text);
                    self.state.functions.remove(&arg.text);
                }
                Value::default()
            }
            "read" | "mapfile" | "readarray" | "vared" => {
                for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
                    let value = match context.stdin.as_deref() {
                        Some(stdin) if stdin.is_known() && !stdin.text.contains('\n') => stdin.clone(),
                        Some(stdin) if stdin.is_known() => {
                            Value::known(stdin.text.lines().next().unwrap_or(""))
                        }
                        Some(stdin) if stdin.is_download() => stdin.clone(),
                        _ => Value::unknown(Origin::Variable(Rc::from(arg.text.as_str()))),
                    };
                    self.state.variables.insert(arg.text.clone(), vec![value]);
                }
                Value::default()
            }
            "set" => {
                if let Some(at) = args.iter().position(|arg| arg.text == "--") {
                    self.state.arguments = args.get(at + 1..).unwrap_or(&[]).to_vec();
                }
                Value::default()
            }
            "shift" => {
                if !self.state.arguments.is_empty() {
                    self.state.arguments.remove(0);
                }
                Value::default()
            }
            "alias" => {
                for (variable, value) in args.iter().filter_map(|arg| arg.split_at_sign('=')) {
                    if value.is_known() {
                        self.state.aliases.insert(variable.text, Rc::from(value.text.as_str()));
                    }
                }
                Value::default()
            }
            "unalias" => {
                for arg in args {
                    self.state.aliases.remove(&arg.text);
                }
                Value::default()
            }
            "printf" if args.first().is_some_and(|arg| arg.text == "-v") => {
                let wants = Context { wants_output: true, ..context.clone() };
                let value = self.printed(name, args, &wants);
                if let Some(variable) = args.get(1) {
                    self.state.variables.insert(variable.text.clone(), vec![value]);
                }
                Value::default()
            }
            "eval" | "iex" | "Invoke-Expression" | "invoke-expression" => {
                let mut text = Value::default();
                for (number, arg) in args.iter().enumerate() {
                    if number > 0 {
                        text.push_text(" ");
                    }
                    text.push(arg);
                }
                if args.is_empty()
                    && name != "eval"
                    && let Some(stdin) = context.stdin.as_deref()
                {
                    text = stdin.clone();
                }
                self.source_value(&text, name, &context.deeper())
            }
            "source" | "." => match args.first() {
                Some(file) => self.script(file, args.get(1..).unwrap_or(&[]), name, context),
                None => Value::default(),
            },
            "trap" => match args.first() {
                Some(text) if !text.text.starts_with('-') => self.source_value(text, name, &context.deeper()),
                _ => Value::default(),
            },
            "command" if args.first().is_some_and(|arg| arg.text.eq_ignore_ascii_case("-v")) => {
                args.get(1).cloned().unwrap_or_default()
            }
            "command" => self.run_rest(args.iter().position(|arg| !arg.text.starts_with('-')), args, context),
            "type" if args.first().is_some_and(|arg| arg.text == "-p" || arg.text == "-P") => {
                args.get(1).cloned().unwrap_or_default()
            }
            "env" | "genv" => self.env(args, context),
            "cp" | "mv" | "ln" | "install" => self.copy(name, args),
            name if is_shell(name) => self.shell(name, args, context),
            name => self.follow(name, argv, args, context),
        }
    }

    /// Everything that runs other commands by its arguments.
    fn follow(&mut self, name: &str, argv: &[Value], args: &[Value], context: &Context) -> Value {
        if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
            let start = wrappers::command_start(wrapper, args);
            if wrappers::fetches(name, args, start.and_then(|start| args.get(start))) {
                self.ran(Origin::Download, name, context);
            }
            if self.leaves_container(name, args, context) {
                let inner = Context { place: Place::Here, mounts: None, ..context.clone() };
                return self.in_subshell(|shell| {
                    shell.state.cwd = Some("/".to_owned());
                    shell.run_rest(start, args, &inner)
                });
            }
            let is_shell_line = matches!(name, "npx" | "bunx")
                && args.iter().any(|arg| arg.text == "-c" || arg.text == "--call");
            if is_shell_line && let Some(text) = value_of(args, &["-c", "--call"]) {
                return self.source_value(&text, name, &context.deeper());
            }
            return self.run_rest(start, args, context);
        }
        if let Some((_, subcommands)) = SUBCOMMANDS.iter().find(|(command, _)| *command == name)
            && let Some(at) = args.iter().position(|arg| subcommands.contains(&arg.text.as_str()))
            && args.iter().take(at).all(|arg| arg.text.starts_with('-'))
        {
            let rest = args.get(at + 1..).unwrap_or(&[]);
            let separator = rest.iter().position(|arg| arg.text == "--").map(|found| found + 1);
            let start = separator.or_else(|| rest.iter().position(|arg| !arg.text.starts_with('-')));
            if wrappers::fetches(name, rest, start.and_then(|start| rest.get(start))) {
                self.ran(Origin::Download, name, context);
            }
            return self.run_rest(start, rest, context);
        }
        match name {
            "xargs" | "gxargs" | "parallel" => self.xargs(name, args, context),
            "find" | "gfind" | "fd" | "fdfind" => self.find(args, context),
            "watch" | "viddy" => {
                let start = wrappers::command_start(
                    &wrappers::Wrapper { names: &[], short: "ns", long: &["--interval"], skip: 0 },
                    args,
                );
                self.run_joined(start, args, name, context)
            }
            "script" => match value_of(args, &["-c", "--command"]).or_else(|| glued(args, "c")) {
                Some(text) => self.source_value(&text, name, &context.deeper()),
                // BSD: script file command…
                None => {
                    let start = args.iter().position(|arg| !arg.text.starts_with('-')).map(|at| at + 1);
                    self.run_rest(start, args, context)
                }
            },
            "su" | "runuser" | "sg" | "newgrp" | "flock" | "nix-shell" | "nix" | "ksh-c" => {
                let text = value_of(args, &["-c", "--command", "--run", "--session-command"])
                    .or_else(|| glued(args, "c"));
                match text {
                    Some(text) if name != "nix" => self.source_value(&text, name, &context.deeper()),
                    _ if name == "nix" || name == "runuser" => {
                        let at = args
                            .iter()
                            .position(|arg| matches!(arg.text.as_str(), "--" | "-c" | "--command"));
                        self.run_rest(at.map(|at| at + 1), args, context)
                    }
                    _ if name == "flock" => {
                        let file = args.iter().position(|arg| !arg.text.starts_with('-'));
                        self.run_rest(file.map(|at| at + 1), args, context)
                    }
                    _ => Value::default(),
                }
            }
            "ssh" | "mosh" | "slogin" => self.remote(args, context),
            "tmux" | "screen" | "byobu" | "zellij" => self.terminal(name, args, context),
            "docker" | "podman" | "nerdctl" | "docker-compose" | "lxc" | "kubectl" | "oc" | "k3s"
            | "microk8s" | "crictl" | "finch" => self.container(name, args, context),
            "at" | "batch" => {
                if let Some(stdin) = context.stdin.as_deref() {
                    self.source_value(stdin, name, &context.deeper());
                }
                Value::default()
            }
            "git" | "hub" => self.git(args, context),
            "pwsh" | "powershell" | "pwsh-preview" => {
                windows::powershell_program(self, args, context);
                Value::unknown(Origin::Output(Rc::from(name)))
            }
            "cmd" | "cmd.exe" | "Cmd" => {
                let at = args
                    .iter()
                    .position(|arg| matches!(arg.text.to_ascii_lowercase().as_str(), "/c" | "/k" | "//c"));
                if let Some(at) = at {
                    let words: Vec<&str> = args.iter().skip(at + 1).map(|arg| arg.text.as_str()).collect();
                    windows::cmd(self, &words.join(" "), &context.deeper());
                }
                Value::unknown(Origin::Output(Rc::from("cmd")))
            }
            "Start-Process" | "start-process" | "saps" => {
                let start = args.iter().position(|arg| !arg.text.starts_with('-'));
                self.run_rest(start, args, context)
            }
            "ex" | "vi" | "vim" | "nvim" | "gvim" | "view" | "emacs" => self.editor(args, context),
            name if code::is_interpreter(name) => {
                let script = args
                    .iter()
                    .position(|arg| arg.text == "run")
                    .and_then(|at| args.get(at + 1..)?.iter().find(|arg| !arg.text.starts_with('-')));
                if script.is_some_and(|script| wrappers::is_address(&script.text)) {
                    self.ran(Origin::Download, name, context);
                }
                code::run(self, name, args, context)
            }
            name => {
                if DOWNLOADERS.contains(&name) && self.note_downloads(name, args) {
                    return Value::default();
                }
                let is_path = argv.first().is_some_and(|word| word.text.contains('/'));
                if is_path && let Some(word) = argv.first() {
                    self.script(word, args, name, context);
                }
                self.printed(name, args, context)
            }
        }
    }

    /// Whether a command in a container runs the rest of its words on the machine itself: its root is mounted there, or its processes are.
    fn leaves_container(&self, name: &str, args: &[Value], context: &Context) -> bool {
        if context.place != Place::Container {
            return false;
        }
        let root = args.iter().find(|arg| !arg.text.starts_with('-')).and_then(|arg| self.absolute(arg));
        let mounts = context.mounts.as_deref().unwrap_or(&[]);
        let is_root =
            root.and_then(|root| container::outside(mounts, &root)).is_some_and(|(path, _)| path == "/");
        (name == "chroot" && is_root) || container::enters_machine(name, args)
    }

    fn run_rest(&mut self, start: Option<usize>, args: &[Value], context: &Context) -> Value {
        match start.and_then(|start| args.get(start..)) {
            Some(rest) if !rest.is_empty() => {
                self.run(rest.to_vec(), Vec::new(), Vec::new(), &context.deeper())
            }
            _ => Value::default(),
        }
    }

    /// Words that are joined and given to a shell.
    fn run_joined(&mut self, start: Option<usize>, args: &[Value], by: &str, context: &Context) -> Value {
        let Some(rest) = start.and_then(|start| args.get(start..)) else { return Value::default() };
        let mut text = Value::default();
        for (number, arg) in rest.iter().enumerate() {
            if number > 0 {
                text.push_text(" ");
            }
            text.push(arg);
        }
        self.source_value(&text, by, &context.deeper())
    }

    fn change_folder(&mut self, name: &str, args: &[Value]) -> Value {
        let before = self.state.cwd.clone();
        if name == "popd" {
            if let Some(folder) = self.state.folders.pop() {
                self.state.cwd = folder;
            }
        } else {
            if name == "pushd" {
                self.state.folders.push(before.clone());
            }
            let target = args.iter().find(|arg| arg.text == "-" || !arg.text.starts_with('-'));
            self.state.cwd = match target {
                None => Some(path::join("/", &self.world.home())),
                Some(value) if value.text == "-" => self.state.old_cwd.clone(),
                Some(value) if value.is_known() && value.globs.is_empty() => {
                    let joined = match &before {
                        Some(cwd) => Some(path::join(cwd, &value.text)),
                        None if path::is_absolute(&value.text) => Some(path::join("/", &value.text)),
                        None => None,
                    };
                    joined.map(|path| self.analysis.links.get(&path).cloned().unwrap_or(path))
                }
                Some(_) => None,
            };
        }
        self.state.old_cwd = before;
        Value::default()
    }

    fn env(&mut self, args: &[Value], context: &Context) -> Value {
        if let Some(text) = value_of(args, &["-S", "--split-string"]).or_else(|| {
            let arg = args
                .iter()
                .find(|arg| arg.text.starts_with("-S") || arg.text.starts_with("--split-string="))?;
            arg.after("-S").or_else(|| arg.after("--split-string="))
        }) {
            return self.source_value(&text, "env", &context.deeper());
        }
        let wrapper = wrappers::Wrapper { names: &[], short: "uC", long: &["--unset", "--chdir"], skip: 0 };
        let start = wrappers::command_start(&wrapper, args);
        let folder = value_of(args, &["-C", "--chdir"]);
        let Some(rest) = start.and_then(|start| args.get(start..)) else {
            return self.printed("env", args, context);
        };
        let assignments = outputs::leading_assignments(args.get(..start.unwrap_or(0)).unwrap_or(&[]));
        self.in_subshell(|shell| {
            if let Some(folder) = folder {
                shell.change_folder("cd", &[folder]);
            }
            shell.run(rest.to_vec(), assignments, Vec::new(), &context.deeper())
        })
    }

    fn shell(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        let mut at = 0;
        let mut text = None;
        let mut traced = context.traced;
        let mut wants_text = false;
        let mut reads_input = false;
        while let Some(arg) = args.get(at) {
            let flag = arg.text.as_str();
            if flag == "--" || flag == "-" {
                at += 1;
                break;
            }
            if matches!(
                flag,
                "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" | "-C" | "--init-command"
            ) {
                at += 2;
                continue;
            }
            if matches!(flag, "--command" | "--commands") {
                wants_text = true;
                at += 1;
                continue;
            }
            if let Some(letters) = flag.strip_prefix(['-', '+']) {
                if !letters.starts_with('-') {
                    wants_text |= letters.contains('c') && !letters.contains('=');
                    traced |= letters.contains('x');
                    reads_input |= letters.contains('s');
                } else if let Some(value) = arg.after("--command=") {
                    text = Some(value);
                }
                at += 1;
                continue;
            }
            break;
        }
        if wants_text {
            text = args.get(at).cloned();
            at += 1;
        }
        let rest = args.get(at..).unwrap_or(&[]).to_vec();
        let inner = Context { traced, ..context.deeper() };
        match (text, rest.first()) {
            (Some(text), _) => self.in_subshell(|shell| {
                shell.state.arguments = rest.into_iter().skip(1).collect();
                shell.state.functions.clear();
                shell.source_value(&text, name, &inner)
            }),
            (None, Some(file)) if !reads_input => {
                let file = file.clone();
                self.in_subshell(|shell| shell.script(&file, rest.get(1..).unwrap_or(&[]), name, &inner))
            }
            _ => match context.stdin.clone() {
                Some(stdin) => self.in_subshell(|shell| {
                    shell.state.arguments = rest;
                    let inner = Context { stdin: None, ..inner };
                    shell.source_value(&stdin, name, &inner)
                }),
                None => Value::default(),
            },
        }
    }

    /// Runs a file: what the text wrote into it, or what stands on disk.
    fn script(&mut self, file: &Value, args: &[Value], by: &str, context: &Context) -> Value {
        let content = self.content(file);
        let Some(path) = self.absolute(file) else {
            for (_, origin) in file.holes.iter().take(4) {
                // `"$0"` or `$dir/setup.sh`: an unknown folder, a known script.
                if file.text.is_empty() && !matches!(origin, Origin::Output(_)) {
                    self.ran(origin.clone(), by, context);
                } else if matches!(origin, Origin::Download) {
                    self.ran(Origin::Download, by, context);
                }
            }
            return Value::unknown(Origin::Input);
        };
        if self.analysis.files.contains_key(&path) {
            let first = content.text.lines().next().unwrap_or("");
            let interpreter = first
                .strip_prefix("#!")
                .map(|line| path::file_name(line.trim().rsplit([' ', '/']).next().unwrap_or("")).to_owned());
            if let Some(interpreter) = interpreter.filter(|name| code::is_interpreter(name)) {
                code::scan_file(self, &interpreter, &content, context);
                return Value::unknown(Origin::Output(Rc::from(by)));
            }
            return self.in_subshell(|shell| {
                shell.state.arguments = args.to_vec();
                shell.source_value(&content, by, &context.deeper())
            });
        }
        if path == "/dev/stdin" {
            if let Some(stdin) = context.stdin.clone() {
                return self.source_value(&stdin, by, &context.deeper());
            }
            return Value::default();
        }
        let is_new = !self.scripts_read.contains(&path) && self.scripts_read.len() < 8 && !context.from_file;
        if is_new
            && !path.starts_with("/usr/")
            && !path.starts_with("/bin/")
            && let Some(text) = self.world.read_file(&path, SCRIPT_BYTES)
            && (is_shell(by) || by == "source" || by == "." || names_a_shell(&text))
            && text.len() < SCRIPT_BYTES
        {
            self.scripts_read.push(path);
            let inner = Context { from_file: true, wants_output: false, ..context.deeper() };
            self.in_subshell(|shell| {
                shell.state.arguments = args.to_vec();
                shell.source(&text, &inner)
            });
        }
        Value::unknown(Origin::Output(Rc::from(by)))
    }

    fn copy(&mut self, name: &str, args: &[Value]) -> Value {
        let files: Vec<&Value> = args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
        let is_link =
            name == "ln" && args.iter().any(|arg| arg.text.starts_with('-') && arg.text.contains('s'));
        if let [from, to] = files[..] {
            let source = self.absolute(from);
            let target = self.absolute(to);
            if let (Some(source), Some(target)) = (source, target) {
                if name == "ln" {
                    let source = if is_link && !path::is_absolute(&from.text) {
                        path::join(path::parent(&target), &from.text)
                    } else {
                        source
                    };
                    if self.analysis.links.len() < 64 {
                        self.analysis.links.insert(target, source);
                    }
                } else if let Some(content) = self.analysis.files.get(&source).cloned() {
                    self.write_file(target, content);
                }
            }
        }
        Value::default()
    }

    fn xargs(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        let wrapper = wrappers::Wrapper {
            names: &[],
            short: if name == "parallel" { "jNnIaSdL" } else { "IiEdanPsLJRS" },
            long: &[
                "--max-args",
                "--max-procs",
                "--arg-file",
                "--delimiter",
                "--replace",
                "--jobs",
                "--max-lines",
                "--colsep",
            ],
            skip: 0,
        };
        let Some(start) = wrappers::command_start(&wrapper, args) else {
            let stdin = context.stdin.as_deref().cloned();
            return stdin.unwrap_or_else(|| Value::unknown(Origin::Output(Rc::from("xargs"))));
        };
        let mut rest: Vec<Value> = args.get(start..).unwrap_or(&[]).to_vec();
        let mut inputs = match context.stdin.as_deref() {
            Some(stdin) => outputs::words_of(stdin),
            None => vec![Value::unknown(Origin::Input)],
        };
        if name == "parallel"
            && let Some(at) = rest.iter().position(|arg| arg.text.starts_with(":::"))
        {
            inputs = rest.get(at + 1..).unwrap_or(&[]).to_vec();
            rest.truncate(at);
        }
        let replaced = value_of(args.get(..start).unwrap_or(&[]), &["-I", "-J"])
            .map(|value| value.text)
            .or_else(|| glued(args.get(..start).unwrap_or(&[]), "I").map(|value| value.text))
            .unwrap_or_else(|| "{}".to_owned());
        let inner = Context { stdin: None, ..context.deeper() };
        if rest.iter().any(|arg| arg.text.contains(&replaced)) {
            let mut printed = Value::default();
            for input in inputs.iter().take(16) {
                let argv = rest.iter().map(|arg| replace(arg, &replaced, input)).collect::<Vec<_>>();
                printed = self.run_maybe_line(name, argv, &inner);
            }
            return printed;
        }
        rest.extend(inputs);
        self.run_maybe_line(name, rest, &inner)
    }

    /// `parallel` gives its words to a shell; `xargs` does not.
    fn run_maybe_line(&mut self, name: &str, argv: Vec<Value>, context: &Context) -> Value {
        if name == "parallel" {
            self.run_joined(Some(0), &argv, name, context)
        } else {
            self.run(argv, Vec::new(), Vec::new(), context)
        }
    }

    fn find(&mut self, args: &[Value], context: &Context) -> Value {
        const FILTERS: &[&str] = &[
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-wholename",
            "-regex",
            "-iregex",
            "-mtime",
            "-mmin",
            "-size",
            "-newer",
            "-empty",
            "-atime",
            "-ctime",
            "-lname",
            "-inum",
            "-perm",
            "-user",
            "-links",
            "-samefile",
        ];
        let filtered = args.iter().any(|arg| FILTERS.contains(&arg.text.as_str()));
        let named = value_of(args, &["-name", "-iname"]).filter(|name| name.is_known());
        let below = |found: &mut Value| {
            found.push_text("/");
            match &named {
                Some(name) => {
                    let at = found.text.len();
                    let signs =
                        name.text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'*' | b'?' | b'['));
                    found.globs.extend(signs.map(|(offset, _)| at + offset));
                    found.push_text(&name.text);
                }
                None => found.push(&Value::unknown(Origin::Output(Rc::from("find")))),
            }
        };
        let roots: Vec<Value> = args
            .iter()
            .skip_while(|arg| matches!(arg.text.as_str(), "-H" | "-L" | "-P"))
            .take_while(|arg| !arg.text.starts_with('-') && arg.text != "(" && arg.text != "!")
            .cloned()
            .collect();
        let roots = if roots.is_empty() { vec![Value::known(".")] } else { roots };
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            at += 1;
            let is_exec = matches!(
                arg.text.as_str(),
                "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
            );
            if !is_exec {
                continue;
            }
            let rest = args.get(at..).unwrap_or(&[]);
            let length = rest.iter().position(|arg| arg.text == ";" || arg.text == "+").unwrap_or(rest.len());
            let template = rest.get(..length).unwrap_or(&[]);
            at += length;
            for root in roots.iter().take(8) {
                let mut found = root.clone();
                if filtered {
                    below(&mut found);
                }
                let mut argv: Vec<Value> = template.iter().map(|word| replace(word, "{}", &found)).collect();
                if !template.iter().any(|word| word.text.contains("{}")) && arg.text.starts_with("-x") {
                    argv.push(found);
                }
                self.run(argv, Vec::new(), Vec::new(), &context.deeper());
            }
        }
        if context.wants_output {
            let mut found = Value::default();
            for root in roots.iter().take(16) {
                let mut one = root.clone();
                if filtered {
                    below(&mut one);
                }
                found.push(&one);
                found.push_text("\n");
            }
            return found;
        }
        Value::default()
    }

    fn remote(&mut self, args: &[Value], context: &Context) -> Value {
        let wrapper =
            wrappers::Wrapper { names: &[], short: "bcDEeFIiJLlmOopQRSWwB", long: &["--ssh"], skip: 0 };
        let Some(host) = wrappers::command_start(&wrapper, args) else { return Value::default() };
        let is_local = args.get(host).is_some_and(|value| {
            let host = value.text.rsplit('@').next().unwrap_or("");
            matches!(host, "localhost" | "127.0.0.1" | "::1" | "0.0.0.0")
        });
        let place = if is_local { context.place } else { Place::Elsewhere };
        let mut inner = Context { place, stdin: None, ..context.deeper() };
        let command = args.get(host + 1..).unwrap_or(&[]);
        self.in_subshell(|shell| {
            shell.state.cwd = Some(if is_local { shell.world.home() } else { "/remote".to_owned() });
            if command.is_empty() {
                if let Some(stdin) = context.stdin.as_deref() {
                    shell.source_value(stdin, "ssh", &inner);
                }
            } else {
                inner.stdin.clone_from(&context.stdin);
                shell.run_joined(Some(0), command, "ssh", &inner);
            }
        });
        if is_local { Value::default() } else { Value::unknown(Origin::Output(Rc::from("ssh"))) }
    }

    fn terminal(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        const KEYS: &[&str] = &["Enter", "C-m", "C-c", "KPEnter", "Escape", "Space", "Tab"];
        if name == "screen" || name == "zellij" {
            if let Some(at) = args.iter().position(|arg| arg.text == "stuff" || arg.text == "write-chars") {
                let mut text = args.get(at + 1).cloned().unwrap_or_default();
                text.text = text.text.replace("\\n", "\n").replace("^M", "\n").replace('\r', "\n");
                return self.source_value(&text, name, &context.deeper());
            }
            let wrapper = wrappers::Wrapper { names: &[], short: "STtscehp", long: &[], skip: 0 };
            return self.run_rest(wrappers::command_start(&wrapper, args), args, context);
        }
        let Some(at) = args.iter().position(|arg| {
            matches!(
                arg.text.as_str(),
                "send-keys"
                    | "send"
                    | "new"
                    | "new-session"
                    | "neww"
                    | "new-window"
                    | "splitw"
                    | "split-window"
                    | "run"
                    | "run-shell"
                    | "respawn-pane"
                    | "respawn-window"
                    | "respawnw"
                    | "respawnp"
                    | "pipe-pane"
                    | "pipep"
                    | "if-shell"
                    | "popup"
                    | "display-popup"
            )
        }) else {
            return Value::default();
        };
        let keys = args.get(at).is_some_and(|arg| arg.text.starts_with("send"));
        let wrapper = wrappers::Wrapper {
            names: &[],
            short: if keys { "tNc" } else { "tsncxyFlpeEThwdST" },
            long: &[],
            skip: 0,
        };
        // A detached session has `-d`, which takes no value there.
        let wrapper = if keys { wrapper } else { wrappers::Wrapper { short: "tsncxyFlpeEThwS", ..wrapper } };
        let rest = args.get(at + 1..).unwrap_or(&[]);
        let Some(start) = wrappers::command_start(&wrapper, rest) else { return Value::default() };
        let words: Vec<Value> = rest
            .get(start..)
            .unwrap_or(&[])
            .iter()
            .filter(|arg| !keys || !KEYS.contains(&arg.text.as_str()))
            .cloned()
            .collect();
        self.run_joined(Some(0), &words, name, context)
    }

    fn git(&mut self, args: &[Value], context: &Context) -> Value {
        let inner = context.deeper();
        for (number, arg) in args.iter().enumerate() {
            let next = || args.get(number + 1).cloned().unwrap_or_default();
            match arg.text.as_str() {
                "-c" | "--config-env" => {
                    if let Some((key, value)) = next().split_at_sign('=') {
                        let key = key.text.to_ascii_lowercase();
                        if let Some(text) = value.after("!").filter(|_| key.starts_with("alias.")) {
                            self.source_value(&text, "git", &inner);
                        } else if matches!(
                            key.as_str(),
                            "core.pager"
                                | "core.editor"
                                | "core.sshcommand"
                                | "sequence.editor"
                                | "core.fsmonitor"
                                | "diff.external"
                                | "credential.helper"
                        ) {
                            self.source_value(&value, "git", &inner);
                        }
                    }
                }
                "--exec" | "-x" | "--tree-filter" | "--index-filter" | "--env-filter" | "--msg-filter"
                | "--upload-pack" | "--receive-pack"
                    if args.iter().any(|arg| {
                        matches!(arg.text.as_str(), "rebase" | "filter-branch" | "clone" | "fetch")
                    }) =>
                {
                    self.source_value(&next(), "git", &inner);
                }
                "foreach" if args.first().is_some_and(|arg| arg.text == "submodule") => {
                    let start = (number + 1..args.len())
                        .find(|at| args.get(*at).is_some_and(|arg| !arg.text.starts_with('-')));
                    self.run_joined(start, args, "git", context);
                }
                "run" if args.first().is_some_and(|arg| arg.text == "bisect") => {
                    self.run_rest(Some(number + 1), args, context);
                }
                "config" if number == 0 => {
                    let values: Vec<&Value> =
                        args.iter().skip(1).filter(|arg| !arg.text.starts_with('-')).collect();
                    if let [key, value, ..] = values[..]
                        && key.text.to_ascii_lowercase().starts_with("alias.")
                        && let Some(text) = value.after("!")
                    {
                        self.source_value(&text, "git", &inner);
                    }
                }
                _ => {}
            }
        }
        self.printed("git", args, context)
    }

    fn editor(&mut self, args: &[Value], context: &Context) -> Value {
        for (number, arg) in args.iter().enumerate() {
            let line = match arg.text.as_str() {
                "-c" | "--cmd" => args.get(number + 1).cloned(),
                text if text.starts_with("+") => arg.after("+"),
                _ => None,
            };
            let Some(line) = line else { continue };
            let text = line.text.trim_start_matches(':').trim_start_matches("silent").trim_start();
            if let Some(text) =
                text.strip_prefix('!').or(text.strip_prefix("r !")).or(text.strip_prefix("r!"))
            {
                let text = Value::known(text);
                self.source_value(&text, "vim", &context.deeper());
            }
        }
        Value::default()
    }
}

/// The word after one of these options.
pub(super) fn value_of(args: &[Value], options: &[&str]) -> Option<Value> {
    for (number, arg) in args.iter().enumerate() {
        if options.contains(&arg.text.as_str()) {
            return args.get(number + 1).cloned();
        }
        if let Some((option, value)) = arg.split_at_sign('=')
            && option.text.starts_with("--")
            && options.contains(&option.text.as_str())
        {
            return Some(value);
        }
    }
    None
}

/// The value of a short option that is last among glued ones (`-qc text`), or glued to it (`-Itext`).
fn glued(args: &[Value], letter: &str) -> Option<Value> {
    for (number, arg) in args.iter().enumerate() {
        let Some(rest) = arg.text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { continue };
        if rest.len() > 1 && rest.ends_with(letter) {
            return args.get(number + 1).cloned();
        }
        if rest.len() > 1 && rest.starts_with(letter) {
            return Some(arg.slice(2, arg.text.len()));
        }
    }
    None
}

fn replace(word: &Value, what: &str, with: &Value) -> Value {
    let mut out = Value::default();
    let mut from = 0;
    while let Some(at) = word.text.get(from..).and_then(|rest| rest.find(what)) {
        out.push(&word.slice(from, from + at));
        out.push(with);
        from += at + what.len();
    }
    if from == 0 {
        return word.clone();
    }
    out.push(&word.slice(from, word.text.len()));
    out
}

fn names_a_shell(text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    first.starts_with("#!") && SHELLS.iter().any(|shell| first.trim_end().ends_with(shell))
}
