//! Changes of the shell itself, and shells that run: folders, environments, scripts, copies that
//! run later.

use super::*;

/// How many traps wait for their shell to end. More are not followed.
const MAX_TRAPS: usize = 32;

impl Shell<'_> {
    pub(super) fn change_folder(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        let before = self.state.cwd.clone();
        if name != "popd" && context.location == Location::Here && self.may_fail(args) {
            if self.cds_fail {
                return Value::default();
            }
            self.failed_cd = Some(self.state.clone());
        }
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

    /// Whether the folder does not exist and nothing in the text may have made it. Then a shell
    /// stays where it is.
    fn may_fail(&self, args: &[Value]) -> bool {
        const MAKERS: &[&str] =
            &["tar", "unzip", "git", "gh", "npx", "npm", "pnpm", "yarn", "bun", "cargo", "curl", "wget"];
        let Some(target) = args.iter().find(|arg| !arg.text.starts_with('-')) else { return false };
        let Some(folder) = self.absolute(target).filter(|_| target.globs.is_empty()) else { return false };
        if self.analysis.links.contains_key(&folder) || self.world.exists(&folder) != Some(false) {
            return false;
        }
        let first = folder.strip_prefix(self.state.cwd.as_deref().unwrap_or("/")).unwrap_or(&folder);
        let first = first.trim_start_matches('/').split('/').next().unwrap_or("");
        let stops =
            |command: &Command| command.name == "set" && (command.has_short("e") || command.has("errexit"));
        !self.analysis.commands.iter().any(|command| {
            let makes = command.name != "cd" && command.texts().any(|arg| arg.contains(first));
            makes || MAKERS.contains(&command.name.as_str()) || stops(command)
        })
    }

    /// A trap runs later, with the values that variables have then. It is also run now if all of
    /// its variables are set.
    pub(super) fn set_trap(&mut self, text: &Value, context: &Context) {
        let body = self.state.functions.get(text.text.trim()).map(|body| body.to_string());
        let later = body.as_deref().unwrap_or(&text.text);
        let is_fixed = variables_of(later).next().is_none();
        if !text.is_known() || variables_of(later).all(|name| self.state.variables.contains_key(name)) {
            self.in_subshell(|shell| shell.source_value(text, "trap", &context.deeper()));
        }
        if is_fixed {
            return;
        }
        if self.traps.len() < MAX_TRAPS {
            self.traps.push((text.clone(), context.deeper()));
        } else {
            self.unknown("the command sets too many traps", context);
        }
    }

    /// Runs the traps that were set since their number was this.
    pub(in crate::shell) fn run_traps(&mut self, from: usize) {
        for (text, context) in self.traps.split_off(from.min(self.traps.len())) {
            self.source_value(&text, "trap", &context);
        }
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
        let wrapper = wrappers::Wrapper { short: "uC", long: &["--unset", "--chdir"], skip: 0 };
        let start = wrappers::command_start(&wrapper, args);
        let folder = value_of(args, &["-C", "--chdir"]);
        let Some(rest) = start.and_then(|start| args.get(start..)) else {
            return self.printed("env", args, context);
        };
        let assignments = outputs::leading_assignments(args.get(..start.unwrap_or(0)).unwrap_or(&[]));
        self.in_subshell(|shell| {
            if let Some(folder) = folder {
                shell.change_folder("cd", &[folder], context);
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
        self.startup_files(args, context);
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
        let lists = |line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some("set") && words.all(|word| word.starts_with('-'))
        };
        if name == "fish" && text.as_ref().is_some_and(|text| text.text.split([';', '\n']).any(lists)) {
            self.run(vec![Value::known("printenv")], Vec::new(), Vec::new(), &inner);
        }
        match (text, rest.first()) {
            (Some(text), _) => self.in_subshell(|shell| {
                shell.state.called_as = rest.first().cloned();
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

    /// Runs a file: the content that the text wrote, or the file on disk.
    pub(super) fn script(&mut self, file: &Value, args: &[Value], by: &str, context: &Context) -> Value {
        let content = self.content(file);
        let Some(path) = self.absolute(file) else {
            if self.analysis.files.get(&format!("?{}", file.show())).is_some_and(Value::is_download) {
                self.ran(Origin::Download, by, context);
            }
            for (_, origin) in file.holes.iter().take(4) {
                // `"$0"` or `$dir/setup.sh`: the folder is unknown, the script is known.
                if file.text.is_empty() && !matches!(origin, Origin::Output(_)) {
                    self.ran(origin.clone(), by, context);
                } else if matches!(origin, Origin::Download) {
                    self.ran(Origin::Download, by, context);
                }
            }
            return Value::unknown(Origin::Input);
        };
        let path = self.analysis.links.get(&path).cloned().unwrap_or(path);
        if self.is_fetched(&path) {
            self.ran(Origin::Download, by, context);
        }
        // A copy of a file that was there before is that file.
        let copied = match &content.holes[..] {
            [(_, Origin::File(source))] if content.text.is_empty() => Some(source.to_string()),
            _ => None,
        };
        let path = copied.unwrap_or(path);
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
                shell.name_script(file, by);
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
        if let Some(text) = self.script_text(&path) {
            let inner = Context { from_file: true, wants_output: false, ..context.deeper() };
            let interpreter = interpreter_of(&text).filter(|name| code::is_interpreter(name));
            if is_shell(by) || by == "source" || by == "." || names_a_shell(&text) {
                self.in_subshell(|shell| {
                    shell.name_script(file, by);
                    shell.state.arguments = args.to_vec();
                    shell.within_file_budget(true, |shell| drop(shell.source(&text, &inner)));
                });
            } else if let Some(interpreter) = interpreter {
                self.within_file_budget(true, |shell| {
                    code::scan_file(shell, &interpreter, &Value::known(text), &inner);
                });
            }
        }
        Value::unknown(Origin::Output(Rc::from(by)))
    }

    /// Sets `$0` and `BASH_SOURCE` for a script. A sourced file keeps `$0`.
    fn name_script(&mut self, file: &Value, by: &str) {
        let file = Value::known(file.text.clone());
        if !matches!(by, "source" | ".") {
            self.state.called_as = Some(file.clone());
        }
        self.state.variables.insert("BASH_SOURCE".to_owned(), vec![file]);
    }

    /// The text of a file that a command runs, if it is small, new and not one of the system's.
    pub(in crate::shell) fn script_text(&mut self, path: &str) -> Option<String> {
        let is_new =
            !self.scripts_read.iter().any(|read| read == path) && self.scripts_read.len() < MAX_SCRIPTS;
        if !is_new || ["/usr/", "/bin/", "/opt/", "/nix/"].iter().any(|folder| path.starts_with(folder)) {
            return None;
        }
        let text = self.world.read_file(path, SCRIPT_BYTES).filter(|text| text.len() < SCRIPT_BYTES)?;
        self.scripts_read.push(path.to_owned());
        Some(text)
    }

    /// A file whose content a shell gets as its input.
    pub(in crate::shell) fn shell_file(&mut self, path: &str, by: &str, context: &Context) {
        let Some(text) = self.script_text(path) else { return };
        let inner = Context { from_file: true, wants_output: false, stdin: None, ..context.deeper() };
        if is_shell(by) || matches!(by, "ssh" | "at" | "batch" | "crontab" | "eval") {
            self.in_subshell(|shell| {
                shell.within_file_budget(true, |shell| drop(shell.source(&text, &inner)));
            });
        }
    }

    pub(super) fn copy(&mut self, name: &str, args: &[Value]) -> Value {
        let files: Vec<&Value> = args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
        let is_link =
            name == "ln" && args.iter().any(|arg| arg.text.starts_with('-') && arg.text.contains('s'));
        if let [from, to] = files[..] {
            let source = self.absolute(from);
            let target = self.absolute(to);
            if let (Some(source), Some(target)) = (source, target) {
                self.note_program(&source, &target, to);
                if name == "ln" {
                    let source = if is_link && !path::is_absolute(&from.text) {
                        path::join(path::parent(&target), &from.text)
                    } else {
                        source
                    };
                    if self.analysis.links.len() < 64 {
                        self.analysis.links.insert(target, source);
                    }
                } else if let Some(content) = self.copied_content(&source) {
                    if to.text.ends_with('/') || matches!(to.text.as_str(), "." | "..") {
                        self.write_file(path::join(&target, path::file_name(&source)), content);
                    } else {
                        self.write_file(target, content);
                    }
                }
            }
        }
        Value::default()
    }
}

impl Shell<'_> {
    /// What a copy of a file has in it: what the text wrote, or a script that was there before.
    fn copied_content(&self, source: &str) -> Option<Value> {
        let written = self.analysis.files.get(source).cloned();
        let is_script = || {
            super::loaded::interpreter_by_ending(source).is_some() && self.world.exists(source) == Some(true)
        };
        written.or_else(|| is_script().then(|| Value::unknown(Origin::File(Rc::from(source)))))
    }
}

/// The names of the variables that a text expands.
fn variables_of(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end =
            rest.find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_')).unwrap_or(rest.len());
        rest.get(..end)
            .filter(|name| name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_'))
    })
}
