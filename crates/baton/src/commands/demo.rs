//! `demo`: what baton does, shown with two scripted agents on a throw-away home.
//!
//! The two agents are scripts, and the demo says so. Everything else is real: each step runs this
//! same program the way an agent or a person would, with hooks and commands below a process of the
//! agent, native payloads on stdin, transcripts as the agents write them, a job with its worker,
//! and a held hook. Nothing outside of the throw-away home is written.

mod actor;
mod chapters;
mod show;
mod stage;
mod stand_in;

use super::CommandContext;
use crate::print::{Out, done};
use baton_core::error::Exit;
use baton_core::{Code, Error};
use clap::Args;
use show::Show;
use stage::Stage;

// `baton demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// Without pauses, as it runs anyway where standard output is no terminal
    #[arg(long)]
    fast: bool,
    /// Stand in for an agent: carry out orders from stdin
    #[arg(long, hide = true)]
    stand_in: bool,
}

impl Demo {
    /// Plays all chapters, up to the first that fails.
    pub fn run(self, _context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        if self.stand_in {
            return stand_in::run();
        }
        let stage = Stage::build()?;
        let mut show = Show::new(*out, self.fast);
        chapters::play(&stage, &mut show).map_err(|error| {
            let message = format!("the demo stopped in \"{}\": {}", show.chapter_name(), error.message());
            let hint = error.hint_text().unwrap_or("run it again; if it stops there again, please report it");
            Error::new(error.code(), message).hint(hint)
        })?;
        done()
    }
}

fn broken(what: &str, error: impl std::fmt::Display) -> Error {
    Error::new(Code::Internal, format!("the demo can't {what}: {error}"))
}
