//! The command line: its parser, and the dispatch to the commands. What help says is in [`help`],
//! what a wrong line is told in [`wrong`].

pub mod complete;
pub mod help;
pub mod wrong;

use crate::commands::{self, CommandContext, Missing};
use crate::print::{self, Colour, Out};
use baton_core::error::Exit;
use baton_core::guard::OwnLine;
use baton_core::rights::{self, Right, Surface};
use baton_core::{Code, Error};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Never drop the baton: mail between coding agents that is never lost and never doubled.
#[derive(Debug, Parser)]
#[command(name = "baton", version = crate::version::LINE, disable_help_subcommand = true, max_term_width = 100)]
pub struct Global {
    // The help lists these options below those of the command itself.
    /// Print one JSON document instead of text
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,
    /// Baton's home folder (default: BATON_HOME or ~/.local/share/baton)
    #[arg(long, global = true, value_name = "DIR", display_order = 901)]
    pub home: Option<PathBuf>,
    /// Act as this participant (only the person at a terminal may)
    #[arg(long = "as", global = true, value_name = "NAME", display_order = 902)]
    pub acting_as: Option<String>,
    /// Use colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true,
        display_order = 903
    )]
    pub color: Colour,
}

// Deferred: clap does not build the arguments of the other commands.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Show who is here, what waits for you, and what to do next
    Status,
    /// List participants, what they do, and how much mail waits for them
    Who(commands::who::Who),
    /// Show who I am
    Whoami,
    /// Change my name
    Name(commands::who::Name),
    /// Add a tag to myself, or remove it
    Tag(commands::who::Tag),
    /// Send a message
    Send(commands::send::Send),
    /// Send a message and wait for the answer
    Ask(commands::ask::Ask),
    /// Answer a message
    Reply(commands::send::Reply),
    /// Read the mail that waits for me
    Inbox(commands::inbox::Inbox),
    /// Show one message in full, or the history with the state of every delivery
    Mail(commands::mail::Mail),
    /// Make an idle session notice its mail now
    Wake(commands::wake::Wake),
    /// Do not disturb: pause or resume mail for a session
    Dnd(commands::wake::Dnd),
    /// Hand tasks to other agents, and manage those jobs
    #[command(subcommand)]
    Job(commands::job::Job),
    /// Hand a task to another agent and wait for its result
    Run(commands::job::Run),
    /// Have another agent review the changes; it may only read
    Review(commands::review::Review),
    /// List the questions that wait for an answer
    Approvals(commands::approve::Approvals),
    /// Say yes to a question
    Approve(commands::approve::Approve),
    /// Say no to a question
    Deny(commands::approve::Deny),
    /// Show the trail of everything that happened
    Log(commands::log::Log),
    /// Show and change the rules that the guard checks tool calls against
    Guard(commands::guard::Guard),
    /// Show every setting and where it comes from, or change one
    Config(commands::config::Config),
    /// Check the installation; exit 1 if something fails
    Doctor(commands::doctor::Doctor),
    /// Install hooks and the MCP entry for the named or all detected agents, or remove them
    Setup(commands::setup::Setup),
    /// Show how this copy was installed, and the command that installs a newer one
    Update,
    /// Show what baton does, with two scripted agents in a temporary home
    Demo(commands::demo::Demo),
    /// Show the commands, or one of them with examples
    Help {
        /// The command, such as `job start`
        #[arg(value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// Show which baton this is
    Version,
    /// Print the completions of a shell
    Completions(commands::completions::Completions),
    /// What can stand at the end of a line; called by the completions
    #[command(hide = true)]
    Complete(commands::completions::Complete),
    /// Run the MCP server on stdio, one per agent session
    #[command(hide = true)]
    Mcp(commands::mcp::Mcp),
    /// For the agents' plugins: events and answers as JSON lines
    #[command(hide = true)]
    Link(commands::link::Link),
    /// The process that watches a job; started by `baton job start`
    #[command(hide = true)]
    JobWorker(commands::job::JobWorker),
    /// The process that keeps the server that OpenCode jobs share
    #[command(hide = true)]
    KeepServer(commands::job::KeepServer),
    /// Notifies people that a question waits; started by the process that records it
    #[command(hide = true)]
    TellWaiting(commands::approve::TellWaiting),
    /// Follows mail that waits for a session; started by the process that could not wake it
    #[command(hide = true)]
    FollowMail(commands::wake::FollowMail),
    /// For the agents' hooks: one native payload on stdin, one native answer on stdout
    #[command(hide = true)]
    Hook,
}

impl Command {
    /// What the command does to a home that is not there.
    fn missing_home(&self) -> Missing {
        match self {
            // What waits for something to come has a home to wait in.
            Self::Approvals(approvals) if approvals.waits() => Missing::Create,
            Self::Log(log) if log.waits() => Missing::Create,
            // A mistyped folder may have a `jobs` or a `setup` of its own.
            Self::Setup(setup) if setup.purges() => Missing::Refuse,
            Self::Inbox(inbox) if inbox.waits() => Missing::Create,
            Self::Who(_)
            | Self::Name(_)
            | Self::Tag(_)
            | Self::Reply(_)
            | Self::Inbox(_)
            | Self::Mail(_)
            | Self::Wake(_)
            | Self::Dnd(_)
            | Self::Approvals(_)
            | Self::Approve(_)
            | Self::Deny(_)
            | Self::Log(_) => Missing::Refuse,
            Self::Job(job) if !job.starts_a_job() => Missing::Refuse,
            Self::Whoami | Self::Status | Self::Update | Self::Complete(_) => Missing::Ignore,
            _ => Missing::Create,
        }
    }

    /// Whether it matters who calls.
    fn acts_for_a_participant(&self) -> bool {
        !matches!(
            self,
            Self::Guard(_)
                | Self::Config(_)
                | Self::Help { .. }
                | Self::Version
                | Self::Completions(_)
                | Self::Complete(_)
                | Self::Update
                | Self::Doctor(_)
                | Self::Setup(_)
                | Self::Demo(_)
                | Self::Mcp(_)
                | Self::Link(_)
        )
    }

    /// Whether a person at a terminal hears of unread mail after it. Reading it is another way, and
    /// programs have no person.
    fn mentions_mail(&self) -> bool {
        !matches!(
            self,
            Self::Inbox(_)
                | Self::Demo(_)
                // It says so itself.
                | Self::Status
                | Self::Complete(_)
                | Self::Mcp(_)
                | Self::Link(_)
                | Self::JobWorker(_)
                | Self::KeepServer(_)
                | Self::TellWaiting(_)
                | Self::FollowMail(_)
                | Self::Hook
        )
    }
}

/// Parses the command line and runs it. Returns the exit code.
pub fn run() -> u8 {
    print::announce_panics();
    let json = std::env::args_os().any(|argument| argument == "--json");
    let (command, global, needed) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => return unparsed(&error, &Out::new(json, Colour::Auto)),
    };
    let out = Out::new(global.json, global.color);
    match dispatch(command, global, &needed, &out) {
        Ok(exit) => exit as u8,
        Err(error) => out.fail(&error),
    }
}

/// The answer to a line that names no command to run: help, the version, or what is wrong.
fn unparsed(error: &clap::Error, out: &Out) -> u8 {
    let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let named = help::named(whole_parser(), &arguments.collect::<Vec<_>>());
    let shown = match error.kind() {
        // A group of commands alone shows them, as `gh` and `cargo` do.
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::MissingSubcommand => show_help(&named, out),
        ErrorKind::DisplayVersion => show_version(out),
        _ => Err(wrong::usage(error, &named)),
    };
    match shown {
        Ok(exit) => exit as u8,
        Err(error) => out.fail(&error),
    }
}

fn show_help(words: &[String], out: &Out) -> Result<Exit, Error> {
    let help = help::of(whole_parser(), words)?;
    out.help(&help.document, help.text);
    print::done()
}

fn show_version(out: &Out) -> Result<Exit, Error> {
    let line = Global::command().render_version();
    let version = line.trim().trim_start_matches("baton ").to_owned();
    out.data(&serde_json::json!({"version": version}), || line.clone())?;
    print::done()
}

fn parse() -> Result<(Command, Global, Vec<&'static Right>), clap::Error> {
    let named: Option<OsString> = std::env::args_os().nth(1);
    let parser = named.as_deref().and_then(OsStr::to_str).and_then(parser_of);
    let matches = parser.unwrap_or_else(whole_parser).try_get_matches()?;
    let needed = needed(&matches);
    let command = match matches.subcommand_name() {
        Some(_) => Command::from_arg_matches(&matches)?,
        None => Command::Status,
    };
    Ok((command, Global::from_arg_matches(&matches)?, needed))
}

/// The rights that these words need as baton's command line; see [`rights`]. `None` if baton would
/// not run them.
fn needed_by_words(words: &[&str]) -> Option<Vec<&'static Right>> {
    // `baton hook` does not use this parser.
    if words.first() == Some(&"hook") {
        return rights::needed(Surface::Command, "hook", &|_| false);
    }
    match whole_parser().try_get_matches_from(std::iter::once("baton").chain(words.iter().copied())) {
        Ok(matches) => Some(needed(&matches)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::MissingSubcommand => Some(Vec::new()),
            _ => None,
        },
    }
}

/// Whether an agent may run these words after baton's name, for the guard.
pub fn own_line(words: &[&str]) -> OwnLine {
    match needed_by_words(words) {
        None => OwnLine::Unreadable,
        Some(needed) => needed
            .iter()
            .find(|right| !right.is_for_agents_shells())
            .map_or(OwnLine::Free, |right| OwnLine::Refused(right.name())),
    }
}

/// The command that `baton` alone means.
const ALONE: &str = "status";

/// The rights that a command line needs. If the table does not name an action, only the person may
/// do it.
fn needed(matches: &ArgMatches) -> Vec<&'static Right> {
    let mut words = Vec::new();
    let mut last = matches;
    while let Some((name, below)) = last.subcommand() {
        words.push(name);
        last = below;
    }
    let has = |name: &str| {
        last.ids().any(|id| id.as_str() == name) && last.value_source(name) == Some(ValueSource::CommandLine)
    };
    let action = if words.is_empty() { ALONE.to_owned() } else { words.join(" ") };
    rights::needed(Surface::Command, &action, &has).unwrap_or_else(|| vec![&rights::ACT_AS])
}

fn whole_parser() -> clap::Command {
    Command::augment_subcommands(Global::command())
}

/// A parser with one command only, for the commands that agents call often. clap prepares every
/// command that it knows, and to prepare all of them takes longer than to send a message.
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

fn dispatch(command: Command, global: Global, needed: &[&Right], out: &Out) -> Result<Exit, Error> {
    match command {
        Command::Help { words } => return show_help(&words, out),
        Command::Version => return show_version(out),
        Command::Completions(completions) => return completions.run(out),
        _ => {}
    }
    let context = CommandContext::new(global, command.missing_home())?;
    context.refuse_missing_home()?;
    context.permit(needed).map_err(commands::sandboxed)?;
    if context.is_acting() && !command.acts_for_a_participant() {
        return Err(Error::new(
            Code::Usage,
            "--as has no effect on this command: it acts for no participant",
        )
        .hint("leave --as out"));
    }
    let mentions = command.mentions_mail();
    let done = carry_out(command, &context, out);
    if mentions && done.is_ok() {
        commands::inbox::mention_unread(&context, out);
    }
    done
}

fn carry_out(command: Command, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
    let done = match command {
        // Each ran above, without a home.
        Command::Help { .. } | Command::Version | Command::Completions(_) => return print::done(),
        Command::Complete(complete) => return complete.run(context, whole_parser(), out),
        Command::Status => commands::status::run(context, out),
        Command::Guard(guard) => guard.run(context, out),
        Command::Config(config) => return config.run(context, out),
        Command::Doctor(doctor) => return doctor.run(context, out),
        Command::Setup(setup) => return setup.run(context, out),
        Command::Update => return commands::update::run(out),
        Command::Demo(demo) => return demo.run(context, out),
        Command::Mcp(mcp) => return mcp.run(context),
        Command::Link(link) => return link.run(context),
        Command::JobWorker(worker) => return worker.run(context),
        Command::KeepServer(keeper) => return keeper.run(),
        Command::TellWaiting(tell) => return tell.run(context),
        Command::FollowMail(follow) => return follow.run(context),
        Command::Approvals(approvals) => approvals.run(context, out),
        Command::Approve(approve) => approve.run(context, out),
        Command::Deny(deny) => deny.run(context, out),
        Command::Job(job) => job.run(context, out),
        Command::Run(run) => run.run(context, out),
        Command::Review(review) => review.run(context, out),
        Command::Who(who) => who.run(context, out),
        Command::Whoami => commands::who::whoami(context, out),
        Command::Name(name) => name.run(context, out),
        Command::Tag(tag) => tag.run(context, out),
        Command::Send(send) => send.run(context, out),
        Command::Ask(ask) => ask.run(context, out),
        Command::Reply(reply) => reply.run(context, out),
        Command::Inbox(inbox) => inbox.run(context, out),
        Command::Mail(mail) => mail.run(context, out),
        Command::Wake(wake) => wake.run(context, out),
        Command::Dnd(dnd) => dnd.run(context, out),
        Command::Log(log) => log.run(context, out),
        Command::Hook => Err(Error::new(Code::Usage, "`baton hook` takes no option before the agent's name")),
    };
    done.map_err(commands::sandboxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::rights::Caller;
    use std::collections::BTreeSet;

    #[test]
    fn the_command_line_is_consistent() {
        whole_parser().debug_assert();
    }

    fn leaves(command: &clap::Command, above: &str, found: &mut Vec<(String, clap::Command)>) {
        for below in command.get_subcommands() {
            let path = format!("{above} {}", below.get_name()).trim().to_owned();
            if below.has_subcommands() {
                leaves(below, &path, found);
            } else {
                found.push((path, below.clone()));
            }
        }
    }

    #[test]
    fn every_public_command_is_in_one_group_of_the_help_and_has_examples_that_parse() {
        let mut whole = whole_parser();
        whole.build();
        let grouped: Vec<&str> = help::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let public = whole.get_subcommands().filter(|command| !command.is_hide_set());
        let mut public: Vec<&str> = public.map(clap::Command::get_name).collect();
        let mut sorted = grouped.clone();
        public.sort_unstable();
        sorted.sort_unstable();
        assert_eq!(sorted, public);
        let mut found = Vec::new();
        leaves(&whole, "", &mut found);
        let groups = found.iter().filter_map(|(path, _)| Some(path.split_once(' ')?.0.to_owned()));
        let named: BTreeSet<String> = found.iter().map(|(path, _)| path.clone()).chain(groups).collect();
        for path in named.iter().filter(|path| grouped.contains(&path.split(' ').next().unwrap_or_default()))
        {
            assert!(help::EXAMPLES.iter().any(|(known, _)| known == path), "`{path}` has no example");
        }
        for (path, lines) in help::EXAMPLES {
            assert!(path.is_empty() || named.contains(*path), "no command is `{path}`");
            for (line, _) in *lines {
                assert!(line.starts_with(path), "`{line}` is no example of `{path}`");
                // Quotes hold words together.
                let words: Vec<&str> = line
                    .split('\'')
                    .enumerate()
                    .flat_map(
                        |(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() },
                    )
                    .collect();
                assert!(needed_by_words(&words).is_some(), "`{line}` does not parse");
            }
        }
    }

    #[test]
    fn the_table_of_rights_names_every_command_and_no_other() {
        let mut whole = whole_parser();
        whole.build();
        let mut found = Vec::new();
        leaves(&whole, "", &mut found);
        assert!(found.len() > 35, "{}", found.len());
        for (path, _) in &found {
            assert!(rights::of(Surface::Command, path, None).is_some(), "`{path}` has no right");
        }
        for right in rights::TABLE.iter().filter(|right| right.surface == Surface::Command) {
            let Some(argument) = right.argument.filter(|argument| !argument.is_empty()) else {
                let is_part = right.argument.is_some();
                let known = found.iter().any(|(path, _)| {
                    path == right.action || (is_part && path.starts_with(&format!("{} ", right.action)))
                });
                assert!(known, "no command is `{}`", right.action);
                continue;
            };
            let takes = |command: &clap::Command| command.get_arguments().any(|one| one.get_id() == argument);
            let taken = found
                .iter()
                .any(|(path, command)| (right.action.is_empty() || path == right.action) && takes(command));
            assert!(taken, "`{}` takes no {argument}", right.action);
        }
    }

    #[test]
    fn each_caller_gets_what_the_table_says_for_a_whole_command_line() {
        let allowed = |line: &str| -> Vec<&str> {
            let words: Vec<&str> = line.split(' ').collect();
            let needed = needed_by_words(&words).unwrap_or_else(|| panic!("{line}"));
            let may = |caller: &&Caller| needed.iter().all(|right| rights::may(**caller, right).is_ok());
            Caller::ALL.iter().filter(may).map(|caller| caller.as_str()).collect()
        };
        assert_eq!(allowed("--home /x --json guard disable block-sudo"), ["person"]);
        assert_eq!(allowed("guard --home=/x disable block-sudo"), ["person"]);
        assert_eq!(allowed("approve --as user x"), ["person"]);
        assert_eq!(allowed("approve x"), ["person", "agent"]);
        assert_eq!(allowed("config wake").len(), Caller::ALL.len());
        for line in ["config wake auto", "config --unset wake", "config --edit"] {
            assert_eq!(allowed(line), ["person"], "{line}");
        }
        assert_eq!(allowed("setup --remove"), ["person", "script"]);
        assert_eq!(allowed("setup --remove --dry-run").len(), Caller::ALL.len());
        assert_eq!(allowed("who").len(), Caller::ALL.len());
        assert_eq!(allowed("--json").len(), Caller::ALL.len(), "`baton` alone");
        assert_eq!(allowed("--as user"), ["person"]);
        assert_eq!(allowed("inbox"), ["person", "script", "agent", "job", "stranger"]);
        assert!(needed_by_words(&["aprove", "x"]).is_none());
        assert_eq!(needed_by_words(&["approve", "--help"]), Some(Vec::new()));
        assert!(needed_by_words(&["hook", "claude"]).is_some_and(|needed| !needed[0].is_for_agents_shells()));
    }

    #[test]
    fn a_parser_of_one_command_has_the_same_arguments_as_the_whole_parser() {
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
        assert!(parser_of("sned").is_none(), "a suggestion for a typo needs all commands");
    }
}
