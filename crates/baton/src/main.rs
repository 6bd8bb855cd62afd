//! The program: one binary, two ways in.
//!
//! `baton hook` is on the path of every tool call of every agent, so it is taken before anything else is set up: no argument parser, no
//! settings, no runtime. Everything else goes through the command line in [`cli`].

#![cfg_attr(not(test), no_main)]

mod cli;
mod commands;
mod entry;
mod environment;
mod gate;
mod hook;
mod print;
mod settings;
mod started;

/// A test's beginning is the harness's; this one only says what belongs to the program.
#[cfg(test)]
fn main() {
    std::process::exit(entry::begin().into())
}

/// Runs what the arguments say; gives the exit code.
fn run() -> u8 {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == "hook" => hook::run(arguments),
        _ => cli::run(),
    }
}
