//! Programs that run other commands by their arguments.

use super::*;

/// The words of a runner that are the command it runs.
struct RunWords {
    /// How many words the runner's own name and subcommand take.
    taken: usize,
    /// Where the command begins.
    start: usize,
    /// Whether the words are joined and given to a shell.
    is_line: bool,
}

impl Shell<'_> {
    /// Follows programs that run other commands by their arguments.
    pub(super) fn follow(&mut self, name: &str, argv: &[Value], args: &[Value], context: &Context) -> Value {
        let prints_fetched = self.note_fetches(name, args);
        if self.task(name, args, context) {
            return Value::unknown(Origin::Output(Rc::from(name)));
        }
        if let Some(printed) = self.run_other(name, args, context) {
            return printed;
        }
        match name {
            "xargs" | "gxargs" | "parallel" => self.xargs(name, args, context),
            "find" | "gfind" => self.find(args, context),
            "fd" | "fdfind" => self.fd(args, context),
            "script" => self.recorded(args, context),
            "su" | "runuser" | "sg" | "newgrp" | "flock" => self.run_as(name, args, context),
            "ssh" | "mosh" | "slogin" => self.remote(args, context),
            "tmux" | "screen" | "byobu" | "zellij" => self.terminal(name, args, context),
            "docker" | "podman" | "nerdctl" | "docker-compose" | "lxc" | "kubectl" | "oc" | "k3s"
            | "microk8s" | "crictl" | "finch" => {
                let printed = self.container(name, args, context);
                if prints_fetched { Value::unknown(Origin::Download) } else { printed }
            }
            "crontab" => {
                self.crontab(args, context);
                Value::default()
            }
            "at" | "batch" => {
                if let Some(stdin) = context.stdin.as_deref() {
                    self.source_value(stdin, name, &context.deeper());
                }
                Value::default()
            }
            "git" | "hub" => {
                let printed = self.git(args, context);
                if prints_fetched { Value::unknown(Origin::Download) } else { printed }
            }
            "pwsh" | "powershell" | "pwsh-preview" => {
                windows::powershell_program(self, args, context);
                Value::unknown(Origin::Output(Rc::from(name)))
            }
            "cmd" | "cmd.exe" | "Cmd" => self.cmd(args, context),
            "Start-Process" | "start-process" | "saps" => {
                let start = args.iter().position(|arg| !arg.text.starts_with('-'));
                self.run_rest(start, args, context)
            }
            "ex" | "vi" | "vim" | "nvim" | "gvim" | "view" | "emacs" => self.editor(args, context),
            name if code::is_interpreter(name) => self.interpreter(name, args, context),
            "tar" | "gtar" => {
                for action in values_of(args, &["--checkpoint-action"]) {
                    if let Some(text) = action.after("exec=") {
                        self.in_subshell(|shell| shell.source_value(&text, name, &context.deeper()));
                    }
                }
                self.note_unpacked(name, args, context);
                self.printed(name, args, context)
            }
            "unzip" | "7z" | "7za" | "bsdtar" => {
                self.note_unpacked(name, args, context);
                self.printed(name, args, context)
            }
            "pytest" | "py.test" => {
                for module in values_of(args, &["-p"]) {
                    self.import(&module.text, "python3", context);
                }
                self.printed(name, args, context)
            }
            "sed" | "gsed" => {
                self.sed(args, context);
                self.printed(name, args, context)
            }
            "dd" => self.dd(args, context),
            "java" | "kotlin" | "scala" | "wasmtime" | "wasmer" | "mono" | "dotnet" | "wine"
            | "installer" | "msiexec" => {
                let runs = args.iter().any(|arg| self.content(arg).is_download());
                if runs {
                    self.ran(Origin::Download, name, context);
                }
                self.printed(name, args, context)
            }
            _ if prints_fetched => Value::unknown(Origin::Download),
            "aws" | "gsutil" | "gcloud" | "rclone" | "scp" | "rsync" | "gh" => {
                self.note_copies(args);
                self.printed(name, args, context)
            }
            name => {
                if DOWNLOADERS.contains(&name) && self.note_downloads(name, args) {
                    return Value::default();
                }
                let is_path =
                    argv.first().is_some_and(|word| word.text.contains('/') || word.text.starts_with(".\\"));
                if is_path && let Some(word) = argv.first() {
                    self.script(word, args, name, context);
                } else if let Some(printed) = self.named_script(name, args, context) {
                    return printed;
                }
                self.printed(name, args, context)
            }
        }
    }

    /// `su -c text`, `runuser -- command`, `flock file command`.
    fn run_as(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        let text =
            value_of(args, &["-c", "--command", "--run", "--session-command"]).or_else(|| glued(args, "c"));
        match text {
            Some(text) => self.source_value(&text, name, &context.deeper()),
            _ if name == "runuser" => {
                let at = args.iter().position(|arg| matches!(arg.text.as_str(), "--" | "-c" | "--command"));
                self.run_rest(at.map(|at| at + 1), args, context)
            }
            _ if name == "flock" => {
                let file = args.iter().position(|arg| !arg.text.starts_with('-'));
                self.run_rest(file.map(|at| at + 1), args, context)
            }
            _ => Value::default(),
        }
    }

    fn cmd(&mut self, args: &[Value], context: &Context) -> Value {
        let at =
            args.iter().position(|arg| matches!(arg.text.to_ascii_lowercase().as_str(), "/c" | "/k" | "//c"));
        if let Some(at) = at {
            let words: Vec<&str> = args.iter().skip(at + 1).map(|arg| arg.text.as_str()).collect();
            windows::cmd(self, &words.join(" "), &context.deeper());
        }
        Value::unknown(Origin::Output(Rc::from("cmd")))
    }

    fn interpreter(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        let script = args
            .iter()
            .position(|arg| arg.text == "run")
            .and_then(|at| args.get(at + 1..)?.iter().find(|arg| !arg.text.starts_with('-')));
        if script.is_some_and(|script| wrappers::is_address(&script.text)) {
            self.ran(Origin::Download, name, context);
        }
        self.load_by_options(name, args, context);
        code::run(self, name, args, context)
    }

    fn dd(&mut self, args: &[Value], context: &Context) -> Value {
        let target = args.iter().find_map(|arg| arg.after("of="));
        let input = args.iter().find_map(|arg| arg.after("if=")).map(|file| self.content(&file));
        let content = input.or_else(|| context.stdin.as_deref().cloned());
        if let (Some(path), Some(content)) = (target.and_then(|file| self.absolute(&file)), content) {
            self.write_file(path, content);
        }
        self.printed("dd", args, context)
    }

    /// `script -c text`, and `script file command` of BSD.
    fn recorded(&mut self, args: &[Value], context: &Context) -> Value {
        match value_of(args, &["-c", "--command"]).or_else(|| glued(args, "c")) {
            Some(text) => self.source_value(&text, "script", &context.deeper()),
            // BSD: script file command…
            None => {
                let start = args.iter().position(|arg| !arg.text.starts_with('-')).map(|at| at + 1);
                self.run_rest(start, args, context)
            }
        }
    }

    /// Notes a copy from another machine: `aws s3 cp s3://b/i.sh .`.
    fn note_copies(&mut self, args: &[Value]) {
        let words: Vec<&Value> = args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
        let [.., from, to] = &words[..] else { return };
        let is_remote =
            from.text.contains("://") || from.text.split('/').next().is_some_and(|head| head.contains(':'));
        let name = path::file_name(&from.text);
        let name = name.rsplit(':').next().unwrap_or(name);
        if let Some(target) = self.absolute(to).filter(|_| is_remote && to.text != "-") {
            self.write_file(path::join(&target, name), Value::unknown(Origin::Download));
            self.write_file(target, Value::unknown(Origin::Download));
        }
    }

    /// Follows a program of the table of runners. `None` if it is none, or runs nothing with these
    /// words.
    fn run_other(&mut self, name: &str, args: &[Value], context: &Context) -> Option<Value> {
        let mut found = None;
        let mut by_words: Option<RunWords> = None;
        for (row, taken) in wrappers::rows(name, args) {
            let rest = args.get(taken..).unwrap_or(&[]);
            let wrapper = wrappers::Wrapper { short: row.short, long: row.long, skip: row.skip };
            match row.form {
                RunnerForm::Options(options) => {
                    for text in values_of(rest, options) {
                        self.in_subshell(|shell| shell.source_value(&text, name, &context.deeper()));
                        if matches!(options, ["-c", "--call"]) {
                            found = Some(Value::unknown(Origin::Output(Rc::from(name))));
                        }
                    }
                }
                RunnerForm::Each => {
                    let options = wrappers::Options { short: row.short, long: row.long };
                    for line in options.operands(rest).into_iter().take(16) {
                        self.in_subshell(|shell| shell.source_value(line, name, &context.deeper()));
                    }
                    found = Some(Value::unknown(Origin::Output(Rc::from(name))));
                }
                RunnerForm::Escapes { options, marks } => {
                    self.run_escapes(name, rest, options, marks, context)
                }
                RunnerForm::After(marks) => {
                    let at = rest.iter().position(|arg| marks.contains(&arg.text.as_str()));
                    if let Some(at) = at {
                        by_words.get_or_insert(RunWords { taken, start: taken + at + 1, is_line: false });
                    }
                }
                RunnerForm::Words | RunnerForm::Line => {
                    let start = wrappers::command_start(&wrapper, rest).map(|start| taken + start);
                    by_words.get_or_insert(RunWords {
                        taken,
                        start: start.unwrap_or(args.len()),
                        is_line: row.form == RunnerForm::Line,
                    });
                }
            }
        }
        let Some(RunWords { taken, start, is_line }) = by_words.filter(|_| found.is_none()) else {
            return found;
        };
        if wrappers::fetches(name, args.get(taken..).unwrap_or(&[]), args.get(start)) {
            self.ran(Origin::Download, name, context);
        }
        if self.leaves_container(name, args, context) {
            let inner = Context { location: Location::Here, mounts: None, ..context.clone() };
            return Some(self.in_subshell(|shell| {
                shell.state.cwd = Some("/".to_owned());
                shell.run_rest(Some(start), args, &inner)
            }));
        }
        Some(if is_line {
            self.run_joined(Some(start), args, name, context)
        } else {
            self.run_rest(Some(start), args, context)
        })
    }

    /// Whether a command in a container runs its words on the machine itself: in its mounted root,
    /// or in its namespaces.
    pub(super) fn leaves_container(&self, name: &str, args: &[Value], context: &Context) -> bool {
        if context.location != Location::Container {
            return false;
        }
        let root = args.iter().find(|arg| !arg.text.starts_with('-')).and_then(|arg| self.absolute(arg));
        let mounts = context.mounts.as_deref().unwrap_or(&[]);
        let is_root =
            root.and_then(|root| container::outside(mounts, &root)).is_some_and(|host| host.path == "/");
        (name == "chroot" && is_root) || container::enters_machine(name, args)
    }

    pub(super) fn run_rest(&mut self, start: Option<usize>, args: &[Value], context: &Context) -> Value {
        match start.and_then(|start| args.get(start..)) {
            Some(rest) if !rest.is_empty() => {
                self.run(rest.to_vec(), Vec::new(), Vec::new(), &context.deeper())
            }
            _ => Value::default(),
        }
    }

    /// Joins words and gives them to a shell.
    pub(super) fn run_joined(
        &mut self,
        start: Option<usize>,
        args: &[Value],
        by: &str,
        context: &Context,
    ) -> Value {
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
