//! Commands that the shell itself runs. All others go to [`Shell::follow`].

use super::*;

/// Whether `iex` is Elixir's shell here, and not PowerShell's word for `eval`.
fn is_elixir(args: &[Value]) -> bool {
    const OPTIONS: &[&str] = &[
        "-S",
        "-e",
        "-r",
        "-pr",
        "-pa",
        "-pz",
        "-v",
        "-h",
        "--eval",
        "--name",
        "--sname",
        "--cookie",
        "--remsh",
        "--version",
        "--help",
        "--no-halt",
        "--dot-iex",
        "--dbg",
        "--erl",
        "--werl",
    ];
    args.first().is_some_and(|first| OPTIONS.contains(&first.text.as_str()))
}

impl Shell<'_> {
    pub(super) fn dispatch(&mut self, name: &str, argv: &[Value], context: &Context) -> Value {
        let args = argv.get(1..).unwrap_or(&[]);
        match name {
            "cd" | "chdir" | "Set-Location" | "pushd" | "popd" => self.change_folder(name, args, context),
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(args, context),
            "unset" => {
                for arg in args {
                    self.state.variables.remove(&arg.text);
                    self.state.functions.remove(&arg.text);
                }
                Value::default()
            }
            "read" | "mapfile" | "readarray" | "vared" => self.read(name, args, context),
            "set" => self.set(args),
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
            "iex" if is_elixir(args) => code::run(self, "elixir", args, context),
            "eval" | "iex" | "Invoke-Expression" | "invoke-expression" => self.evaluate(name, args, context),
            "source" | "." => match args.first() {
                Some(file) => self.script(file, args.get(1..).unwrap_or(&[]), name, context),
                None => Value::default(),
            },
            "trap" => self.trap(args, context),
            "hash" => {
                self.remember_program(args);
                Value::default()
            }
            "command" if args.first().is_some_and(|arg| arg.text.eq_ignore_ascii_case("-v")) => {
                self.found_program(args.get(1))
            }
            "command" => self.run_rest(args.iter().position(|arg| !arg.text.starts_with('-')), args, context),
            "type" if args.first().is_some_and(|arg| arg.text == "-p" || arg.text == "-P") => {
                self.found_program(args.get(1))
            }
            "env" | "genv" => self.env(args, context),
            "cp" | "mv" | "ln" | "install" => self.copy(name, args),
            name if is_shell(name) => self.shell(name, args, context),
            name => self.follow(name, argv, args, context),
        }
    }

    fn declare(&mut self, args: &[Value], context: &Context) -> Value {
        for (variable, value) in outputs::leading_assignments(args) {
            self.prompt_variable(&variable, Some(&value), context);
            self.state.variables.insert(variable, vec![value]);
        }
        Value::default()
    }

    /// `read x`: the variable gets the first line of the input, as far as it is known.
    fn read(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        if let Some(text) = value_of(args, &["-C"]).filter(|_| name != "read") {
            self.in_subshell(|shell| shell.source_value(&text, name, &context.deeper()));
        }
        for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
            let value = match context.stdin.as_deref() {
                Some(stdin) if stdin.is_known() && !stdin.text.contains('\n') => stdin.clone(),
                Some(stdin) if stdin.is_known() => Value::known(stdin.text.lines().next().unwrap_or("")),
                Some(stdin) if stdin.is_download() => stdin.clone(),
                _ => Value::unknown(Origin::Variable(Rc::from(arg.text.as_str()))),
            };
            self.state.variables.insert(arg.text.clone(), vec![value]);
        }
        Value::default()
    }

    /// `set -x` prints what runs; `set -- …` replaces the arguments.
    fn set(&mut self, args: &[Value]) -> Value {
        for arg in args.iter().take_while(|arg| arg.text != "--") {
            let is_short = |sign: char| {
                arg.text.starts_with(sign) && !arg.text.starts_with("--") && arg.text.contains('x')
            };
            if is_short('-') || arg.text == "xtrace" {
                self.state.traced = !args.iter().any(|arg| arg.text == "+o");
            } else if is_short('+') {
                self.state.traced = false;
            }
        }
        if let Some(at) = args.iter().position(|arg| arg.text == "--") {
            self.state.arguments = args.get(at + 1..).unwrap_or(&[]).to_vec();
        }
        Value::default()
    }

    fn evaluate(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
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

    fn trap(&mut self, args: &[Value], context: &Context) -> Value {
        let ends_options = args.first().is_some_and(|arg| arg.text == "--");
        let args = args.get(usize::from(ends_options)..).unwrap_or(&[]);
        if let [text, _, ..] = args
            && !text.text.starts_with('-')
        {
            self.set_trap(text, context);
        }
        Value::default()
    }
}
