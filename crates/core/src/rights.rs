//! Who may do what: one table for every command, every MCP tool and every message of the link.
//!
//! Each surface asks [`may`] in one place before it acts. docs/trust.md is written from the table,
//! and the guard checks baton's own command lines by it. A row says who may call it at all. What
//! depends on more than the caller (whose job, whose question) is decided where that is known.

use crate::event::EventKind;
use crate::{Code, Error};
use std::fmt::Write as _;

/// The kinds of callers that rights tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// The person, proven.
    Person,
    /// A program with no agent anywhere above it.
    Script,
    /// An agent's session.
    Agent,
    /// A subagent of a session.
    Subagent,
    /// A process of a job.
    Job,
    /// A caller that can't be recognised for certain. It may never do more than a script.
    Stranger,
}

impl Caller {
    /// Every caller, in the order of the table's columns.
    pub const ALL: &[Caller] =
        &[Self::Person, Self::Script, Self::Agent, Self::Subagent, Self::Job, Self::Stranger];

    /// The caller in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Script => "script",
            Self::Agent => "agent",
            Self::Subagent => "subagent",
            Self::Job => "job",
            Self::Stranger => "stranger",
        }
    }

    /// How an error addresses it.
    fn named(self) -> &'static str {
        match self {
            Self::Person => "the person",
            Self::Script => "a script",
            Self::Agent => "an agent",
            Self::Subagent => "a subagent",
            Self::Job => "a job",
            Self::Stranger => "a caller that baton can't recognise",
        }
    }
}

/// Where a call comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// The command line.
    Command,
    /// The MCP server.
    Tool,
    /// The link between a plugin and baton.
    Link,
}

/// Who may use a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// These callers.
    Callers(&'static [Caller]),
    /// The programs that setup installs: an agent, its plugin, or baton itself. No model and no
    /// person types it.
    Programs,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// Where it is called.
    pub surface: Surface,
    /// The command with its subcommands, the tool, or the event; empty for what every command
    /// takes.
    pub action: &'static str,
    /// The argument that needs its own right, by its name in the parser. Empty if the value
    /// decides; then the command asks for the right.
    pub argument: Option<&'static str>,
    /// How the argument reads in the table.
    pub shown: &'static str,
    pub who: Who,
    /// A further condition, for docs/trust.md.
    pub note: &'static str,
}

use Caller::{Agent, Job, Person, Script, Stranger, Subagent};

const ANYONE: Who = Who::Callers(Caller::ALL);
const NO_SUBAGENT: Who = Who::Callers(&[Person, Script, Agent, Job, Stranger]);
const ONLY_PERSON: Who = Who::Callers(&[Person]);
const PERSON_OR_SCRIPT: Who = Who::Callers(&[Person, Script]);
const PERSON_OR_AGENT: Who = Who::Callers(&[Person, Agent]);
const ANY_SESSION: Who = Who::Callers(&[Agent, Subagent, Job]);
const SESSION_OR_JOB: Who = Who::Callers(&[Agent, Job]);

const fn command(action: &'static str, who: Who, note: &'static str) -> Right {
    Right { surface: Surface::Command, action, argument: None, shown: "", who, note }
}

const fn argument(
    action: &'static str,
    argument: &'static str,
    shown: &'static str,
    who: Who,
    note: &'static str,
) -> Right {
    Right { surface: Surface::Command, action, argument: Some(argument), shown, who, note }
}

const fn tool(action: &'static str, who: Who, note: &'static str) -> Right {
    Right { surface: Surface::Tool, action, argument: None, shown: "", who, note }
}

const fn event(action: &'static str) -> Right {
    Right { surface: Surface::Link, action, argument: None, shown: "", who: Who::Programs, note: "" }
}

/// Act as another participant.
pub const ACT_AS: Right = argument("", "acting_as", "--as", ONLY_PERSON, "");
/// Pause or resume mail for another session.
pub const DISTURB_OTHERS: Right =
    argument("dnd", "", "NAME of another", ONLY_PERSON, "`wake --on` and `--off` too");
/// Give a job more than `jobs.allow`.
pub const ALLOW_MORE: Right = argument(
    "job start",
    "",
    "--allow above jobs.allow",
    PERSON_OR_SCRIPT,
    "below a job never more than that job may",
);
/// Approve what an agent asks.
pub const APPROVE: Right =
    command("approve", PERSON_OR_AGENT, "an agent as reviewer, never its own questions");
/// Also allow similar requests from now on.
pub const ALLOW_ALWAYS: Right = argument("approve", "always", "--always", ONLY_PERSON, "");
/// Take a reviewer's name.
pub const REVIEWERS_NAME: Right = argument("name", "", "NEW, if a reviewer has that name", ONLY_PERSON, "");
/// Let agents use baton's own tools without a question.
pub const ALLOW_OWN_TOOLS: Right = argument("setup", "allow_own_tools", "--allow-own-tools", ONLY_PERSON, "");
/// Send mail that wakes a session that does not want to be disturbed.
pub const SEND_URGENT: Right = argument("send", "urgent", "--urgent", ONLY_PERSON, "");

/// Every right there is.
pub const TABLE: &[Right] = &[
    ACT_AS,
    command("status", ANYONE, "`baton` alone too"),
    command("who", ANYONE, ""),
    command("whoami", ANYONE, ""),
    command("name", NO_SUBAGENT, "for a session"),
    REVIEWERS_NAME,
    command("tag add", NO_SUBAGENT, "for a session"),
    command("tag rm", NO_SUBAGENT, "for a session"),
    command("send", ANYONE, ""),
    SEND_URGENT,
    command("ask", NO_SUBAGENT, ""),
    command("reply", NO_SUBAGENT, "to mail of its own"),
    command("inbox", NO_SUBAGENT, "its own"),
    command("mail", ANYONE, "a session sees its own"),
    command("wake", ANYONE, ""),
    command("dnd on", NO_SUBAGENT, "its own"),
    command("dnd off", NO_SUBAGENT, "its own"),
    command("dnd until", NO_SUBAGENT, "its own"),
    DISTURB_OTHERS,
    command("job start", ANYONE, "not deeper than jobs.depth"),
    ALLOW_MORE,
    command("job list", ANYONE, ""),
    command("job status", ANYONE, ""),
    command("job wait", ANYONE, ""),
    command("job result", ANYONE, ""),
    command("job logs", ANYONE, ""),
    command("job cancel", ANYONE, ""),
    command("job heal", ANYONE, ""),
    command("job prune", ANYONE, ""),
    command("run", ANYONE, "as job start"),
    command("review", ANYONE, "its job only reads"),
    command("approvals", ANYONE, ""),
    APPROVE,
    ALLOW_ALWAYS,
    command("deny", PERSON_OR_AGENT, "an agent as reviewer, never its own questions"),
    command("log", ANYONE, ""),
    command("guard list", ANYONE, ""),
    command("guard enable", ONLY_PERSON, ""),
    command("guard disable", ONLY_PERSON, ""),
    command("guard explain", ANYONE, ""),
    command("guard check", ANYONE, ""),
    command("guard log", ANYONE, ""),
    command("guard replay", ANYONE, ""),
    command("config", ANYONE, ""),
    argument("config", "value", "KEY VALUE", ONLY_PERSON, ""),
    argument("config", "unset", "--unset", ONLY_PERSON, ""),
    argument("config", "edit", "--edit", ONLY_PERSON, ""),
    command("doctor", ANYONE, ""),
    argument("doctor", "fix", "--fix", PERSON_OR_SCRIPT, ""),
    command("setup", PERSON_OR_SCRIPT, ""),
    argument("setup", "dry_run", "--dry-run", ANYONE, "changes nothing"),
    ALLOW_OWN_TOOLS,
    argument("setup", "purge", "--purge", ONLY_PERSON, ""),
    command("update", ANYONE, "fetches nothing"),
    command("demo", ANYONE, "in a home of its own"),
    command("help", ANYONE, ""),
    command("version", ANYONE, ""),
    command("completions", ANYONE, ""),
    command("complete", ANYONE, "for the completions of shells"),
    command("mcp", Who::Programs, ""),
    command("link", Who::Programs, ""),
    command("hook", Who::Programs, ""),
    command("job-worker", Who::Programs, ""),
    command("keep-server", Who::Programs, ""),
    command("tell-waiting", Who::Programs, ""),
    command("follow-mail", Who::Programs, ""),
    tool("who", ANY_SESSION, ""),
    tool("send_message", ANY_SESSION, ""),
    tool("read_messages", SESSION_OR_JOB, "its own"),
    tool("ask_peer", SESSION_OR_JOB, ""),
    tool("reply_to_message", SESSION_OR_JOB, "to mail of its own"),
    tool("claim_session", SESSION_OR_JOB, "where nothing speaks against it"),
    tool("start_job", ANY_SESSION, "never above jobs.allow; not deeper than jobs.depth"),
    tool("job_status", ANY_SESSION, ""),
    tool("wait_job", ANY_SESSION, ""),
    tool("cancel_job", ANY_SESSION, ""),
    tool("list_approvals", ANY_SESSION, ""),
    tool("answer_approval", Who::Callers(&[Agent]), "as reviewer, never its own questions"),
    tool("hook_event", Who::Programs, "hidden; a model's call is refused"),
    event("start"),
    event("prompt"),
    event("woken"),
    event("continued"),
    event("before-tool"),
    event("after-tool"),
    event("after-tools"),
    event("request"),
    event("stop"),
    event("blocked"),
    event("question-settled"),
    event("idle-notice"),
    event("interrupted"),
    event("compacting"),
    event("subagent-start"),
    event("subagent-stop"),
    event("push-failed"),
    event("end"),
    event("other"),
    event("unknown"),
];

/// The right for an action, or for one argument of it; `None` if the table names none.
pub fn of(surface: Surface, action: &str, argument: Option<&str>) -> Option<&'static Right> {
    TABLE
        .iter()
        .find(|right| right.surface == surface && right.action == action && right.argument == argument)
}

/// The right for a call with these arguments. An argument that makes a call harmless replaces the
/// right of its action.
pub fn needed(surface: Surface, action: &str, has: &dyn Fn(&str) -> bool) -> Option<Vec<&'static Right>> {
    let whole = of(surface, action, None)?;
    let given = |right: &&'static Right| {
        right.surface == surface
            && (right.action == action || right.action.is_empty())
            && right.argument.is_some_and(has)
    };
    let own: Vec<&'static Right> = TABLE.iter().filter(given).collect();
    let is_replaced = own.iter().any(|right| right.action == action && right.is_open());
    Some(if is_replaced { own } else { std::iter::once(whole).chain(own).collect() })
}

/// The name of an event in the table.
pub fn event_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Start(_) => "start",
        EventKind::Prompt => "prompt",
        EventKind::Woken => "woken",
        EventKind::Continued => "continued",
        EventKind::BeforeTool => "before-tool",
        EventKind::AfterTool => "after-tool",
        EventKind::AfterTools => "after-tools",
        EventKind::Request => "request",
        EventKind::Stop => "stop",
        EventKind::Blocked => "blocked",
        EventKind::QuestionSettled => "question-settled",
        EventKind::IdleNotice => "idle-notice",
        EventKind::Interrupted => "interrupted",
        EventKind::Compacting => "compacting",
        EventKind::SubagentStart => "subagent-start",
        EventKind::SubagentStop => "subagent-stop",
        EventKind::PushFailed => "push-failed",
        EventKind::End => "end",
        EventKind::Other => "other",
        EventKind::Unknown => "unknown",
    }
}

/// Checks that a caller has a right. The error says who has it.
pub fn may(caller: Caller, right: &Right) -> Result<(), Error> {
    if right.allows(caller) { Ok(()) } else { Err(right.refusal(caller)) }
}

impl Right {
    /// Whether a caller has this right. Rows for programs allow every caller: other checks
    /// recognise those programs.
    pub fn allows(&self, caller: Caller) -> bool {
        match self.who {
            Who::Callers(callers) => callers.contains(&caller),
            Who::Programs => true,
        }
    }

    /// Whether an agent may run it in its shell. A reviewer approves only through the MCP tool,
    /// which names the question that it was shown.
    pub fn is_for_agents_shells(&self) -> bool {
        matches!(self.who, Who::Callers(callers) if callers.contains(&Agent)) && *self != APPROVE
    }

    /// Whether every caller has this right.
    pub fn is_open(&self) -> bool {
        matches!(self.who, Who::Callers(callers) if callers.len() == Caller::ALL.len())
            || self.who == Who::Programs
    }

    /// The right as people read it: the action and its argument.
    pub fn name(&self) -> String {
        format!("{} {}", self.action, self.shown).trim().to_owned()
    }

    fn refusal(&self, caller: Caller) -> Error {
        let name = self.name();
        let Who::Callers(callers) = self.who else {
            return Error::new(Code::NotPermitted, format!("{name} is for the programs that setup installs"))
                .hint("call another command; `baton --help` lists them");
        };
        if caller == Subagent && callers.contains(&Agent) {
            return Error::new(Code::Subagent, format!("{name} is for your parent; you are a subagent"))
                .hint("finish, and let your parent do it; you may call who and send");
        }
        let hint = match caller {
            Script | Stranger => "run it yourself, in a terminal that no agent started",
            _ => "tell your person what you need, and why",
        };
        let code = if callers.contains(&Person) { Code::NotAPerson } else { Code::NotPermitted };
        let names: Vec<&str> = callers.iter().map(|caller| caller.named()).collect();
        Error::new(code, format!("{name} is for {}; you are {}", names.join(" and "), caller.named()))
            .hint(hint)
    }
}

/// The table for docs/trust.md.
pub fn table() -> String {
    let mut text = String::new();
    for (surface, title) in [
        (Surface::Command, "### Commands"),
        (Surface::Tool, "### MCP tools"),
        (Surface::Link, "### Messages of the link"),
    ] {
        let rows: Vec<&Right> = TABLE.iter().filter(|right| right.surface == surface).collect();
        if rows.iter().all(|right| right.who == Who::Programs) {
            let names: Vec<String> = rows.iter().map(|right| format!("`{}`", right.action)).collect();
            // Writing to a String can't fail.
            _ = write!(
                text,
                "{title}\n\nOnly the plugins that setup installs send them: {}.\n",
                names.join(", ")
            );
            continue;
        }
        _ = writeln!(
            text,
            "{title}\n\n| | person | script | agent | subagent | job | stranger | |\n|---|---|---|---|---|---|---|---|"
        );
        for right in rows {
            let cells: Vec<&str> = match right.who {
                Who::Programs => vec!["–"; Caller::ALL.len()],
                Who::Callers(callers) => {
                    Caller::ALL.iter().map(|c| if callers.contains(c) { "yes" } else { "–" }).collect()
                }
            };
            let note = match right.who {
                Who::Programs if right.note.is_empty() => "programs that setup installs",
                _ => right.note,
            };
            _ = writeln!(text, "| `{}` | {} | {note} |", right.name(), cells.join(" | "));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_never_has_more_than_a_script() {
        for right in TABLE {
            assert!(!right.allows(Stranger) || right.allows(Script) || right.surface != Surface::Command);
            assert!(!right.allows(Subagent) || right.allows(Agent), "{}", right.name());
            assert!(!right.allows(Job) || right.allows(Agent), "{}", right.name());
        }
    }

    #[test]
    fn every_refusal_has_exit_three_a_code_and_a_hint() {
        for right in TABLE {
            for caller in Caller::ALL {
                let Err(error) = may(*caller, right) else { continue };
                assert_eq!(error.code().exit(), crate::error::Exit::Refused, "{}", right.name());
                assert!(error.hint_text().is_some());
            }
        }
    }

    #[test]
    fn a_harmless_argument_replaces_the_right_and_another_adds_to_it() {
        let names = |action: &str, given: &[&str]| -> Vec<String> {
            let rights = needed(Surface::Command, action, &|name| given.contains(&name)).unwrap();
            rights.iter().map(|right| right.name()).collect()
        };
        assert_eq!(names("setup", &["remove"]), ["setup"]);
        assert_eq!(names("setup", &["dry_run", "remove"]), ["setup --dry-run"]);
        assert_eq!(names("setup", &["dry_run", "acting_as"]), ["--as", "setup --dry-run"]);
        assert_eq!(names("send", &["urgent", "acting_as"]), ["send", "--as", "send --urgent"]);
        assert!(needed(Surface::Command, "nothing", &|_| false).is_none());
    }
}
