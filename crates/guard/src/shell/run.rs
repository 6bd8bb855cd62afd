//! One simple command: what it changes in the shell, and what else it runs.

mod builtins;
mod escapes;
mod fetched;
mod functions;
mod hidden;
mod loaded;
mod many;
mod options;
mod places;
mod program;
mod runners;
mod shells;
mod walks;

pub(crate) use many::{found_below, is_filtered, names_found};
pub(super) use options::value_of;

use super::eval::{Context, Shell, ShellState};
use super::outputs::{self, DOWNLOADERS};
use super::parse::MAX_DEPTH;
use super::value::{Origin, Value};
use super::wrappers;
use super::{Command, Location, REMOTE_CWD, Redirection, code, container, windows};
use crate::path;
use crate::tables::runners::RunnerForm;
use options::{glued, values_of};
use std::rc::Rc;

const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "ksh93", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "yash",
    "posh", "nu", "elvish", "xonsh",
];

/// Variables whose value programs run as a command.
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
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CMAKE_C_COMPILER_LAUNCHER",
    "CMAKE_CXX_COMPILER_LAUNCHER",
    "GIT_SSH",
    "GIT_PROXY_COMMAND",
    "SSH_ASKPASS",
    "FZF_DEFAULT_COMMAND",
    "XDG_OPEN",
];

/// Whether a program runs the value of a variable as a command.
fn is_run_variable(name: &str) -> bool {
    RUN_VARIABLES.contains(&name) || (name.starts_with("CARGO_TARGET_") && name.ends_with("_RUNNER"))
}

/// Longest script file that is read. This bounds the work of one command.
const SCRIPT_BYTES: usize = 65_536;
/// How many scripts and tasks of one command are read, however they call each other.
const MAX_SCRIPTS: usize = 16;
/// Whether a name is that of a shell.
pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

impl Shell<'_> {
    /// Runs a command: notes it and follows what it runs in turn. Returns what it prints.
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
            self.unknown("the command is nested more than 32 times", context);
            return Value::unknown(Origin::Input);
        }
        let Some(first) = argv.first() else { return Value::default() };
        self.note_samples(&argv, context);
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
            piped_at: Vec::new(),
            captured: context.captured,
            background: context.background,
            location: context.location,
            mounts: context.mounts.clone(),
            traced: context.traced || self.state.traced,
            from_file: context.from_file,
            in_code: context.in_code,
        };
        self.analysis.commands.push(command);
        for (variable, value) in &assignments {
            self.prompt_variable(variable, Some(value), context);
            self.load_by_variable(variable, value, context);
            if is_run_variable(variable) && value.is_known() {
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
}

/// The program that the first line of a script names.
pub(super) fn interpreter_of(text: &str) -> Option<String> {
    let line = text.lines().next()?.strip_prefix("#!")?;
    let word =
        line.split_whitespace().map(path::file_name).find(|word| *word != "env" && !word.starts_with('-'))?;
    Some(word.to_owned())
}

fn names_a_shell(text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    first.starts_with("#!") && SHELLS.iter().any(|shell| first.trim_end().ends_with(shell))
}
