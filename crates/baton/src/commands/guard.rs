//! `guard`: the rules that tool calls are judged by.

mod check;
mod log;

use super::Session;
use crate::print::Out;
use baton_core::Error;
use baton_core::error::Exit;
use clap::{Args, Subcommand};

// `baton guard`
#[derive(Debug, Args)]
pub struct Guard {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Judge the tool call of a native payload on stdin; decides nothing for anybody
    Check(check::Check),
    /// What was refused, asked about or taken out
    Log(log::Log),
}

impl Guard {
    /// Does what is asked.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        match self.what {
            What::Check(check) => check.run(session, out),
            What::Log(log) => log.run(session, out),
        }
    }
}
