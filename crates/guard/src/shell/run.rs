//! One simple command: what it changes in the shell, and what else it runs.

mod many;
mod places;
mod shells;

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
