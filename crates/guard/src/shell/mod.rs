//! Turns shell text into the simple commands that would run, with their words resolved.
//!
//! [`analyse`] reads a text as a shell would, follows wrappers, `-c` strings, substitutions and
//! pipes, and marks what is not known as unknown. It runs nothing and asks only its
//! [`World`](crate::World). It does not decide what is allowed.

mod code;
pub mod container;
mod escape;
mod eval;
mod expand;
pub(crate) mod git_settings;
mod outputs;
pub mod parse;
mod run;
pub mod syntax;
mod tasks;
pub mod value;
pub mod windows;
mod wrappers;

pub use eval::{MAX_STEPS, analyse};
pub(crate) use outputs::{FILTERS, MADE_TEMPORARY};
pub(crate) use run::{found_below, is_filtered, names_found};
pub use value::{Origin, Value};

use std::collections::HashMap;
use std::rc::Rc;

/// Stands for the unknown folder in which a command on another machine starts.
pub(crate) const REMOTE_CWD: &str = "/remote";

/// Where a command would run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    #[default]
    Here,
    /// In a container, which has its own files.
    Container,
    /// On another machine.
    Elsewhere,
}

/// One simple command. A wrapper and the command that it runs are two commands.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program's name without its folder; empty for bare redirections and assignments.
    pub name: String,
    /// The name and the arguments.
    pub words: Vec<Value>,
    /// Variables that are set for it, or by it.
    pub assignments: Vec<(String, Value)>,
    pub redirects: Vec<Redirection>,
    /// The current folder; `None` if it is not known.
    pub cwd: Option<String>,
    /// Its standard input, if that is not the terminal.
    pub stdin: Option<Rc<Value>>,
    /// The names of the commands that its output is piped through.
    pub piped_to: Vec<String>,
    /// The positions of those commands in the analysis.
    pub piped_at: Vec<usize>,
    /// Whether a substitution takes its output.
    pub captured: bool,
    /// Whether it is left running.
    pub background: bool,
    pub location: Location,
    /// In a container: the mounted folders of this machine.
    pub mounts: Option<Rc<[container::Mount]>>,
    /// Whether the shell prints it as it runs.
    pub traced: bool,
    /// Whether it is in a script file, of which only what is certain counts.
    pub from_file: bool,
    /// Whether it is in the code of another language.
    pub in_code: bool,
}

/// A redirection after expansion.
#[derive(Clone, Debug)]
pub struct Redirection {
    pub fd: Option<u32>,
    pub op: syntax::RedirectOp,
    /// The file or the text.
    pub target: Value,
}

impl Command {
    pub fn args(&self) -> &[Value] {
        self.words.get(1..).unwrap_or(&[])
    }

    /// The texts of the arguments, with unknown parts empty.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.args().iter().map(|value| value.text.as_str())
    }

    /// Whether one of the arguments is this text.
    pub fn has(&self, text: &str) -> bool {
        self.texts().any(|arg| arg == text)
    }

    /// Whether one of these letters is a short option, alone or in a cluster.
    pub fn has_short(&self, letters: &str) -> bool {
        self.texts().take_while(|arg| *arg != "--").any(|arg| {
            arg.strip_prefix('-')
                .is_some_and(|rest| !rest.starts_with('-') && rest.chars().any(|sign| letters.contains(sign)))
        })
    }

    /// Whether this long option is present, or a prefix of it with at least this length.
    pub fn has_long(&self, option: &str, shortest: usize) -> bool {
        self.texts().take_while(|arg| *arg != "--").any(|arg| {
            let arg = arg.split('=').next().unwrap_or(arg);
            arg.len() >= shortest && option.starts_with(arg) && arg.starts_with("--")
        })
    }

    /// The command for a message.
    pub fn show(&self) -> String {
        let words: Vec<String> = self.words.iter().take(64).map(Value::show).collect();
        words.join(" ")
    }
}

/// Unknown text that is run as a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Where it comes from.
    pub origin: Origin,
    /// The command that runs it.
    pub by: String,
    /// Whether a script file runs it.
    pub from_file: bool,
}

/// What a text would do.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// The commands, in the order in which the walk reaches them.
    pub commands: Vec<Command>,
    /// Unknown text that would run.
    pub ran: Vec<Ran>,
    /// Why the text, or a part of it, was not understood.
    pub unknown: Vec<String>,
    /// Files that the text itself writes, and their content.
    pub files: HashMap<String, Value>,
    /// Symbolic links that the text itself makes.
    pub links: HashMap<String, String>,
    /// Functions that call themselves.
    pub recursive: Vec<String>,
    /// How much work it was.
    pub steps: u64,
}

impl Analysis {
    /// The commands that run on this machine.
    pub fn here(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| command.location == Location::Here)
    }

    /// The commands that do not run in a container.
    pub fn outside_containers(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| command.location != Location::Container)
    }
}
