//! What changes the shell, and shells that are run: folders, environments, scripts, copies that are run later.

use super::*;

impl Shell<'_> {
    pub(super) fn change_folder(&mut self, name: &str, args: &[Value]) -> Value {
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

    pub(super) fn env(&mut self, args: &[Value], context: &Context) -> Value {
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

    pub(super) fn shell(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
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
    pub(super) fn script(&mut self, file: &Value, args: &[Value], by: &str, context: &Context) -> Value {
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

    pub(super) fn copy(&mut self, name: &str, args: &[Value]) -> Value {
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
}
