//! The program: one binary with two entry points.
//!
//! Every tool call of every agent runs `baton hook`, so it starts before anything else is set up:
//! no argument parser, no settings, no runtime. All other commands go through the command line in
//! [`cli`].

#![cfg_attr(not(test), no_main)]

mod cli;
mod commands;
mod entry;
mod environment;
mod guard;
mod hook;
mod keys;
mod plugin;
mod print;
mod settings;
mod started;
mod version;

/// The test harness has its own `main`. This one only keeps the code used.
#[cfg(test)]
fn main() {
    std::process::exit(entry::begin().into())
}

/// Runs what the arguments say, and returns the exit code.
fn run() -> u8 {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == "hook" => hook::run(arguments),
        _ => cli::run(),
    }
}
