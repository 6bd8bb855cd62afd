//! Programs that are loaded another way than by their name: modules, files that options and
//! variables name, copies.

use super::*;

/// Options by which an interpreter loads a file before its program.
const LOAD_OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["node", "nodejs", "tsx", "ts-node", "bun"],
        &["-r", "--require", "--import", "--loader", "--experimental-loader", "--preload"],
    ),
    (&["ruby"], &["-r"]),
    (&["deno"], &["--preload", "--import"]),
];
/// Variables that name what a program loads, with the interpreter that reads it; none for a
/// library.
const LOAD_VARIABLES: &[(&str, &str)] = &[
    ("LD_PRELOAD", ""),
    ("DYLD_INSERT_LIBRARIES", ""),
    ("NODE_OPTIONS", "node"),
    ("RUBYOPT", "ruby"),
    ("PYTHONSTARTUP", "python3"),
];
/// Endings of scripts, with their interpreters.
const ENDINGS: &[(&str, &str)] = &[
    (".py", "python3"),
    (".js", "node"),
    (".mjs", "node"),
    (".cjs", "node"),
    (".ts", "node"),
    (".mts", "node"),
    (".rb", "ruby"),
    (".pl", "perl"),
    (".php", "php"),
    (".sh", "sh"),
    (".bash", "bash"),
];

/// The interpreter of a script, by the ending of its name.
pub(in crate::shell) fn interpreter_by_ending(name: &str) -> Option<&'static str> {
    ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, interpreter)| *interpreter)
}

impl Shell<'_> {
    /// What an interpreter loads before its program, by its options.
    pub(super) fn load_by_options(&mut self, name: &str, args: &[Value], context: &Context) {
        let stem = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
        if matches!(stem, "python" | "pypy") {
            self.load_by_module(args, context);
        }
        let Some((_, options)) = LOAD_OPTIONS.iter().find(|(names, _)| names.contains(&stem)) else { return };
        let mut files = values_of(args, options);
        files.extend(args.iter().take(64).filter_map(|arg| arg.after("-r")));
        for file in files.iter().take(8) {
            self.load_file(file, stem, context);
        }
    }

    /// `python3 -m module`, and the script that a module such as `pdb` runs.
    fn load_by_module(&mut self, args: &[Value], context: &Context) {
        let Some(at) = args.iter().position(|arg| arg.text == "-m") else { return };
        let Some(module) = args.get(at + 1).filter(|module| module.is_known()) else { return };
        self.import(&module.text, "python3", context);
        let script = args.iter().skip(at + 2).find(|arg| arg.text.ends_with(".py"));
        if let Some(script) = script.filter(|_| RUNNING_MODULES.contains(&module.text.as_str())) {
            code::run(self, "python3", std::slice::from_ref(script), context);
        }
    }

    /// A module of the folder that a program runs in.
    pub(in crate::shell) fn import(&mut self, module: &str, interpreter: &str, context: &Context) {
        let path = module.trim_start_matches('.').replace('.', "/");
        if path.is_empty() || path.len() > MAX_MODULE_BYTES {
            return;
        }
        for file in [format!("{path}.py"), format!("{path}/__main__.py"), format!("{path}/__init__.py")] {
            if self.is_there(&Value::known(file.as_str())) {
                code::run(self, interpreter, &[Value::known(file)], context);
                return;
            }
        }
    }

    /// A file that a program names without its ending.
    pub(in crate::shell) fn load_file(&mut self, file: &Value, interpreter: &str, context: &Context) {
        if !file.is_known() || !file.text.contains(['/', '.']) {
            return;
        }
        let plain = file.text.strip_prefix("file://").unwrap_or(&file.text);
        for ending in ["", ".js", ".ts", ".rb", ".php", "/index.js"] {
            let file = Value::known(format!("{plain}{ending}"));
            if self.is_there(&file) {
                code::run(self, interpreter, &[file], context);
                return;
            }
        }
    }

    /// Whether a file is written by the text, or was there before.
    fn is_there(&self, file: &Value) -> bool {
        let Some(path) = self.absolute(file) else { return false };
        self.analysis.files.contains_key(&path)
            || self.analysis.links.contains_key(&path)
            || (self.world.exists(&path) == Some(true)
                && self.world.exists(&format!("{path}/.")) != Some(true))
    }

    /// `LD_PRELOAD=./x.so`, `NODE_OPTIONS='--require ./x.js'`.
    pub(super) fn load_by_variable(&mut self, name: &str, value: &Value, context: &Context) {
        let Some((_, interpreter)) = LOAD_VARIABLES.iter().find(|(variable, _)| *variable == name) else {
            return;
        };
        for word in value.text.split([' ', ':', '=']).filter(|word| word.contains(['/', '.'])).take(8) {
            let file = Value::known(word.strip_prefix("-r").unwrap_or(word));
            if self.content(&file).is_download() {
                self.ran(Origin::Download, name, context);
            } else if !interpreter.is_empty() {
                self.load_file(&file, interpreter, context);
            }
        }
    }

    /// A script in the folder that a runner is given by its name alone: `uv run a.py`.
    pub(super) fn named_script(&mut self, name: &str, args: &[Value], context: &Context) -> Option<Value> {
        let interpreter = interpreter_by_ending(name)?;
        let file = Value::known(name);
        if !self.is_there(&file) {
            return None;
        }
        let mut words = vec![Value::known(interpreter), file];
        words.extend_from_slice(args);
        Some(self.run(words, Vec::new(), Vec::new(), &context.deeper()))
    }
}

/// Modules of Python that run the script that they are given.
const RUNNING_MODULES: &[&str] = &[
    "pdb",
    "cProfile",
    "profile",
    "trace",
    "coverage",
    "runpy",
    "timeit",
    "debugpy",
    "IPython",
    "memory_profiler",
    "line_profiler",
    "viztracer",
    "asyncio",
];
/// The longest name of a module that is looked for.
const MAX_MODULE_BYTES: usize = 256;
