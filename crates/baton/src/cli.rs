//! The command line: what can be said, and who does it.

use crate::commands::{self, Session};
use crate::print::Out;
use baton_core::error::Exit;
use baton_core::{Code, Error};
use clap::error::ErrorKind;
use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Never drop the baton: mail between coding agents that is never lost and never doubled.
#[derive(Debug, Parser)]
#[command(
    name = "baton",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Global {
    // What every command takes, below what only one does.
    /// Print one JSON document instead of text
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,
    /// Where the store lies (else BATON_HOME, else ~/.local/share/baton)
    #[arg(long, global = true, value_name = "DIR", display_order = 901)]
    pub home: Option<PathBuf>,
    /// Act as this participant (only the person at a terminal may)
    #[arg(long = "as", global = true, value_name = "NAME", display_order = 902)]
    pub acting_as: Option<String>,
}

// Deferred: what the other commands take is not built.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Who is there, what they do, and how much mail waits for them
    Who(commands::who::Who),
    /// Who I am
    Whoami,
    /// Give myself another name
    Name(commands::who::Name),
    /// Put a tag on myself, or take it off
    Tag(commands::who::Tag),
    /// Send a message
    Send(commands::send::Send),
    /// Send a message and wait for the answer
    Ask(commands::ask::Ask),
    /// Answer a message
    Reply(commands::send::Reply),
    /// Read what waits for me
    Inbox(commands::inbox::Inbox),
    /// One message in full, or the history with the state of every delivery
    Mail(commands::mail::Mail),
    /// Make an idle session notice its mail now
    Wake(commands::wake::Wake),
    /// Let mail for a session wait, or come again
    Dnd(commands::wake::Dnd),
    /// Hand tasks to other agents, and look after them
    #[command(subcommand)]
    Job(commands::job::Job),
    /// Hand a task to another agent and wait for its result
    Run(commands::job::Run),
    /// Have another agent review what has changed; it may only read
    Review(commands::review::Review),
    /// What waits for an answer
    Approvals(commands::approve::Approvals),
    /// Say yes to what waits for an answer
    Approve(commands::approve::Approve),
    /// Say no to what waits for an answer
    Deny(commands::approve::Deny),
    /// The trail of everything that happened
    Log(commands::log::Log),
    /// The rules that tool calls are judged by
    Guard(commands::guard::Guard),
    /// Every setting, its value and where it came from
    Config,
    /// Check the installation; exit 1 if something fails
    Doctor(commands::doctor::Doctor),
    /// Install hooks and MCP entry for the named or all detected agents, or remove them
    Setup(commands::setup::Setup),
    /// Show what baton does, with two scripted agents on a throw-away home
    Demo,
    /// MCP server on stdio, one per agent session
    Mcp(commands::mcp::Mcp),
    /// Called by the agents' plugins: events and answers as JSON lines
    Link(commands::link::Link),
    /// The process that watches a job; started by `baton job start`
    #[command(hide = true)]
    JobWorker(commands::job::JobWorker),
    /// The process that keeps the server which jobs of OpenCode share
    #[command(hide = true)]
    KeepServer(commands::job::KeepServer),
    /// Tells people that a question waits; started by whoever records it
    #[command(hide = true)]
    TellWaiting(commands::approve::TellWaiting),
    /// Called by the agents: one native payload on stdin, one native answer on stdout
    Hook,
}

/// Reads the command line and runs it; gives the exit code.
pub fn run() -> u8 {
    let json = std::env::args_os().any(|argument| argument == "--json");
    let (command, global) = match parse() {
        Ok(parsed) => parsed,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            // Help goes to stdout; nobody is left to tell if that is closed.
            error.print().ok();
            return 0;
        }
        Err(error) => return Out::new(json).fail(&usage(&error)),
    };
    let out = Out::new(global.json);
    match dispatch(command, global, &out) {
        Ok(exit) => exit as u8,
        Err(error) => out.fail(&error),
    }
}

fn parse() -> Result<(Command, Global), clap::Error> {
    let mut arguments = std::env::args_os().skip(1);
    let named = arguments.next();
    let wants_help = arguments.any(|argument| argument == "-h" || argument == "--help");
    let parser = match named.as_deref().and_then(OsStr::to_str) {
        Some(name) if !wants_help => parser_of(name),
        _ => None,
    };
    let matches = parser.unwrap_or_else(whole_parser).try_get_matches()?;
    Ok((Command::from_arg_matches(&matches)?, Global::from_arg_matches(&matches)?))
}

fn whole_parser() -> clap::Command {
    Command::augment_subcommands(Global::command())
}

/// A parser that knows one command only, for those that agents call all the time: clap prepares each command that it knows of, and all of them take
/// longer than to send a message.
fn parser_of(name: &str) -> Option<clap::Command> {
    let one = match name {
        "send" => commands::send::Send::augment_args(clap::Command::new("send")),
        "reply" => commands::send::Reply::augment_args(clap::Command::new("reply")),
        "inbox" => commands::inbox::Inbox::augment_args(clap::Command::new("inbox")),
        "whoami" => clap::Command::new("whoami"),
        _ => return None,
    };
    Some(Global::command().subcommand(one))
}

fn dispatch(command: Command, global: Global, out: &Out) -> Result<Exit, Error> {
    let session = Session::new(global)?;
    let done = match command {
        Command::Guard(guard) => guard.run(&session, out),
        Command::Config => return commands::config::run(&session, out),
        Command::Doctor(doctor) => return doctor.run(&session, out),
        Command::Setup(setup) => return setup.run(&session, out),
        Command::Demo => return commands::demo::run(&session, out),
        Command::Mcp(mcp) => return mcp.run(&session),
        Command::Link(link) => return link.run(&session),
        Command::JobWorker(worker) => return worker.run(&session),
        Command::KeepServer(keeper) => return keeper.run(),
        Command::TellWaiting(tell) => return tell.run(&session),
        Command::Approvals(approvals) => approvals.run(&session, out),
        Command::Approve(approve) => approve.run(&session, out),
        Command::Deny(deny) => deny.run(&session, out),
        Command::Job(job) => job.run(&session, out),
        Command::Run(run) => run.run(&session, out),
        Command::Review(review) => review.run(&session, out),
        Command::Who(who) => who.run(&session, out),
        Command::Whoami => commands::who::whoami(&session, out),
        Command::Name(name) => name.run(&session, out),
        Command::Tag(tag) => tag.run(&session, out),
        Command::Send(send) => send.run(&session, out),
        Command::Ask(ask) => ask.run(&session, out),
        Command::Reply(reply) => reply.run(&session, out),
        Command::Inbox(inbox) => inbox.run(&session, out),
        Command::Mail(mail) => mail.run(&session, out),
        Command::Wake(wake) => wake.run(&session, out),
        Command::Dnd(dnd) => dnd.run(&session, out),
        Command::Log(log) => log.run(&session, out),
        Command::Hook => Err(Error::new(Code::Usage, "baton hook takes no option before the agent")),
    };
    done.map_err(commands::sandboxed)
}

fn usage(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("wrong usage").trim_start_matches("error: ").to_owned();
    let details: Vec<_> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")).collect();
    let message = if details.is_empty() || first.ends_with('.') {
        first
    } else {
        format!("{first} {}", details.join(" "))
    };
    Error::new(Code::Usage, message)
        .hint("`baton --help` lists the commands, `baton COMMAND --help` their options")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_command_line_is_consistent() {
        whole_parser().debug_assert();
    }

    #[test]
    fn a_command_alone_is_the_same_as_among_all() {
        let mut whole = whole_parser();
        whole.build();
        let mut known = 0;
        for among in whole.get_subcommands() {
            let Some(mut alone) = parser_of(among.get_name()) else { continue };
            known += 1;
            alone.build();
            let alone = alone.find_subcommand(among.get_name()).expect("it");
            let all = |command: &clap::Command| -> BTreeSet<String> {
                command.get_arguments().map(|argument| format!("{argument:?}")).collect()
            };
            assert_eq!(all(alone), all(among));
            let usage = |command: &clap::Command| command.clone().render_usage().to_string();
            assert_eq!(usage(alone), usage(among));
        }
        assert_eq!(known, 4);
        assert!(parser_of("sned").is_none(), "what is meant is guessed from all of them");
    }
}
