//! `guard`: the rules that tool calls are judged by.

mod check;
mod explain;
mod list;
mod log;
mod replay;
mod switch;

use super::CommandContext;
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
    /// What a rule means, with examples; or what a command would do, and which rules refuse it
    Explain(explain::Explain),
    /// Judge the tool call of a native payload on stdin; nothing is logged
    Check(check::Check),
    /// What was refused, asked about or redacted, and what ran unjudged
    Log(log::Log),
    /// What the rules would have decided about calls of past conversations
    Replay(replay::ReplayPast),
}

impl Guard {
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        match self.what {
            What::List => list::run(context, out),
            What::Enable(switch) => switch.run(switch::To::On, context, out),
            What::Disable(switch) => switch.run(switch::To::Off, context, out),
            What::Explain(explain) => explain.run(context, out),
            What::Check(check) => check.run(context, out),
            What::Log(log) => log.run(context, out),
            What::Replay(replay) => replay.run(context, out),
        }
    }
}

/// The rule with this id, or an error for a person.
fn rule(id: &str) -> Result<&'static Rule, Error> {
    baton_guard::rules::by_id(id).ok_or_else(|| {
        Error::new(Code::Usage, format!("there is no rule {}", shown(id, 60)))
            .hint("`baton guard list` shows every rule")
    })
}
