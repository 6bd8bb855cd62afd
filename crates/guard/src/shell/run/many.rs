//! Commands that run another command for each of many things: `xargs`, `find`.

use super::*;

impl Shell<'_> {
    pub(super) fn xargs(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        let wrapper = wrappers::Wrapper {
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
        let filtered = is_filtered(args, FILTERS);
        let names = names_found(args);
        let below = |root: &Value| -> Vec<Value> {
            if !filtered {
                return vec![root.clone()];
            }
            if names.is_empty() {
                let mut found = root.clone();
                found.push_text("/");
                found.push(&Value::unknown(Origin::Output(Rc::from("find"))));
                return vec![found];
            }
            names.iter().map(|name| found_below(root, name)).collect()
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
            for found in roots.iter().take(8).flat_map(&below).take(16) {
                let mut argv: Vec<Value> = template.iter().map(|word| replace(word, "{}", &found)).collect();
                if !template.iter().any(|word| word.text.contains("{}")) && arg.text.starts_with("-x") {
                    argv.push(found);
                }
                self.run(argv, Vec::new(), Vec::new(), &context.deeper());
            }
        }
        if context.wants_output {
            let mut found = Value::default();
            for one in roots.iter().take(16).flat_map(&below).take(64) {
                found.push(&one);
                found.push_text("\n");
            }
            return found;
        }
        Value::default()
    }
}

/// Whether one of these tests says what is found. One that says what is left out leaves nearly
/// everything.
pub(crate) fn is_filtered(args: &[Value], tests: &[&str]) -> bool {
    let is_test = |at: usize| args.get(at).is_some_and(|arg| tests.contains(&arg.text.as_str()));
    let is_negated = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        before.is_some_and(|arg| matches!(arg.text.as_str(), "!" | "-not" | "\\!"))
    };
    (0..args.len()).any(|at| is_test(at) && !is_negated(at))
}

/// The names that `find` looks for by its arguments; none if they exclude names.
pub(crate) fn names_found(args: &[Value]) -> Vec<Value> {
    if args.iter().any(|arg| matches!(arg.text.as_str(), "!" | "-not" | "\\!")) {
        return Vec::new();
    }
    let names = args
        .windows(2)
        .filter(|two| matches!(two, [option, _] if matches!(option.text.as_str(), "-name" | "-iname")));
    let names: Vec<Value> = names.filter_map(|two| two.last().cloned()).take(16).collect();
    let apart = args.iter().filter(|arg| matches!(arg.text.as_str(), "-o" | "-or" | ",")).count();
    // It may find other names too.
    if names.iter().all(Value::is_known) && apart < names.len().max(1) { names } else { Vec::new() }
}

/// The value for a name that `find` finds below a folder.
pub(crate) fn found_below(root: &Value, name: &Value) -> Value {
    let mut found = root.clone();
    found.push_text("/");
    let at = found.text.len();
    let signs = name.text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'*' | b'?' | b'['));
    found.globs.extend(signs.map(|(offset, _)| at + offset));
    found.push_text(&name.text);
    found.anywhere = true;
    found
}

pub(super) fn replace(word: &Value, what: &str, with: &Value) -> Value {
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
