//! `guard`: the rules that tool calls are judged by.

mod check;
mod explain;
mod list;
mod log;
mod replay;
mod switch;

use super::Session;
use crate::print::Out;
use baton_core::error::Exit;
use baton_core::frame::shown;
use baton_core::{Code, Error};
use baton_guard::Rule;
use clap::{Args, Subcommand};

// `baton guard`
#[derive(Debug, Args)]
pub struct Guard {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Every rule, and whether it is on here
    List,
    /// Switch a rule on (only the person at a terminal may)
    Enable(switch::Switch),
    /// Switch a rule off (only the person at a terminal may)
    Disable(switch::Switch),
    /// What a rule means, with examples; or what a command would do and which rules speak against it
    Explain(explain::Explain),
    /// Judge the tool call of a native payload on stdin; nothing is logged and nobody is told
    Check(check::Check),
    /// What was refused, asked about or taken out, and what ran without having been judged
    Log(log::Log),
    /// What the rules would have said about the calls of past conversations
    Replay(replay::ReplayPast),
}

impl Guard {
    /// Does what is asked.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        match self.what {
            What::List => list::run(session, out),
            What::Enable(switch) => switch.run(switch::To::On, session, out),
            What::Disable(switch) => switch.run(switch::To::Off, session, out),
            What::Explain(explain) => explain.run(session, out),
            What::Check(check) => check.run(session, out),
            What::Log(log) => log.run(session, out),
            What::Replay(replay) => replay.run(session, out),
        }
    }
}

/// The rule of a name that somebody has written.
fn rule(id: &str) -> Result<&'static Rule, Error> {
    baton_guard::rules::by_id(id).ok_or_else(|| {
        Error::new(Code::Usage, format!("there is no rule {}", shown(id, 60)))
            .hint("`baton guard list` shows every rule")
    })
}
