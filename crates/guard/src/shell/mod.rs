//! Shell text to the simple commands that would run, with resolved words.
//!
//! [`analyse`] reads a text as a shell would, follows wrappers, `-c` strings, substitutions and pipes, and keeps what is not known as
//! unknown. It runs nothing and asks only its [`World`](crate::World). What is allowed is not decided here.

mod code;
pub mod container;
mod escape;
mod eval;
mod expand;
mod outputs;
pub mod parse;
mod run;
pub mod syntax;
pub mod value;
pub mod windows;
mod wrappers;

pub use eval::{MAX_STEPS, analyse};
pub(crate) use outputs::{FILTERS, MADE_TEMPORARY};
pub use value::{Origin, Value};

use std::collections::HashMap;
use std::rc::Rc;

/// Where a command would run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// On this machine.
    #[default]
    Here,
    /// In a container, whose files are its own.
    Container,
    /// On another machine.
    Elsewhere,
}

/// One simple command. A wrapper and what it runs are two commands.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program's name without its folder; empty for bare redirections and assignments.
    pub name: String,
    /// The name and the arguments.
    pub words: Vec<Value>,
    /// Variables that are set for it, or by it.
    pub assignments: Vec<(String, Value)>,
    /// Its redirections.
    pub redirects: Vec<Redirection>,
    /// The folder at that point; `None` where it is not known.
    pub cwd: Option<String>,
    /// What it reads from its standard input, where that is not the terminal.
    pub stdin: Option<Rc<Value>>,
    /// The names of the commands that its output is piped through.
    pub piped_to: Vec<String>,
    /// Whether its output is taken by a substitution.
    pub captured: bool,
    /// Whether it is left running.
    pub background: bool,
    /// Where it runs.
    pub place: Place,
    /// In a container: the folders of this machine that it has.
    pub mounts: Option<Rc<[container::Mount]>>,
    /// Whether the shell prints it as it runs.
    pub traced: bool,
    /// Whether it stands in a script file, of which only what is certain counts.
    pub from_file: bool,
    /// Whether it stands in the code of another language.
    pub in_code: bool,
}

/// A redirection after expansion.
#[derive(Clone, Debug)]
pub struct Redirection {
    /// The descriptor.
    pub fd: Option<u32>,
    /// What it does.
    pub op: syntax::RedirectOp,
    /// The file or the text.
    pub target: Value,
}

impl Command {
    /// The arguments.
    pub fn args(&self) -> &[Value] {
        self.words.get(1..).unwrap_or(&[])
    }

    /// The texts of the arguments, as if what is unknown were empty.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.args().iter().map(|value| value.text.as_str())
    }

    /// Whether one of the arguments is this text.
    pub fn has(&self, text: &str) -> bool {
        self.texts().any(|arg| arg == text)
    }

    /// Whether one of these letters is among the short options, glued or not.
    pub fn has_short(&self, letters: &str) -> bool {
        self.texts().take_while(|arg| *arg != "--").any(|arg| {
            arg.strip_prefix('-')
                .is_some_and(|rest| !rest.starts_with('-') && rest.chars().any(|sign| letters.contains(sign)))
        })
    }

    /// Whether this long option, or an unambiguous start of it of that length, is there.
    pub fn has_long(&self, option: &str, shortest: usize) -> bool {
        self.texts().take_while(|arg| *arg != "--").any(|arg| {
            let arg = arg.split('=').next().unwrap_or(arg);
            arg.len() >= shortest && option.starts_with(arg) && arg.starts_with("--")
        })
    }

    /// How it reads in a message.
    pub fn show(&self) -> String {
        let words: Vec<String> = self.words.iter().take(64).map(Value::show).collect();
        words.join(" ")
    }
}

/// Text that something runs as a program, and that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Where it comes from.
    pub origin: Origin,
    /// The command that runs it.
    pub by: String,
    /// Whether a script file says so.
    pub from_file: bool,
}

/// What a text would do.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// The commands, in the order in which they are met.
    pub commands: Vec<Command>,
    /// Unknown text that would run.
    pub ran: Vec<Ran>,
    /// Why the text was not understood to its end, or something in it.
    pub unknown: Vec<String>,
    /// Files that the text itself writes, with their content.
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
        self.commands.iter().filter(|command| command.place == Place::Here)
    }

    /// The commands that do not run in a container.
    pub fn outside_containers(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| command.place != Place::Container)
    }
}
