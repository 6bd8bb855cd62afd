//! Commands that run another one for each of many things: `xargs`, `find`.

use super::*;

impl Shell<'_> {
    pub(super) fn xargs(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
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
    pub(super) fn run_maybe_line(&mut self, name: &str, argv: Vec<Value>, context: &Context) -> Value {
        if name == "parallel" {
            self.run_joined(Some(0), &argv, name, context)
        } else {
            self.run(argv, Vec::new(), Vec::new(), context)
        }
    }

    pub(super) fn find(&mut self, args: &[Value], context: &Context) -> Value {
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
}
