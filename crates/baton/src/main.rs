//! The program: one binary, two ways in.
//!
//! `baton hook` is on the path of every tool call of every agent, so it is taken before anything else is set up: no argument parser, no
//! settings, no runtime. Everything else goes through the command line in [`cli`].

mod cli;
mod commands;
mod environment;
mod gate;
mod hook;
mod print;
mod settings;
mod started;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == "hook" => hook::run(arguments),
        _ => cli::run(),
    }
}
