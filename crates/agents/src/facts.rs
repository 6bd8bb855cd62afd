//! An agent in short: its names, its tools, and for people what it can and can't do, one column of `docs/agents.md`. What mail does is not here; that
//! follows from the adapter itself.

use crate::call::Shape;
use crate::tools::Tools;

/// The facts about one agent.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its name on our command line.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The program's name on the search path.
    pub program: &'static str,
    /// The version that all of this was verified with; `None` where only its documentation was.
    pub verified: Option<&'static str>,
    /// What it calls its tools.
    pub tools: &'static Tools,
    /// Where its payloads say what a tool call is.
    pub calls: &'static Shape,
    /// What runs our code.
    pub runs: &'static str,
    /// What proves that the model was shown mail.
    pub proof: &'static str,
    /// Where the session's id comes from: in hooks, in a shell, in an MCP call.
    pub session: &'static str,
    /// How a subagent is told from its parent.
    pub subagents: &'static str,
    /// What happens when a hook fails, takes too long, or is not there.
    pub failing: &'static str,
    /// Whether a tool call can be refused.
    pub deny: &'static str,
    /// Whether a person can be asked about it.
    pub ask: &'static str,
    /// Whether its input can be changed.
    pub rewrite: &'static str,
    /// Whether its output can be replaced.
    pub redact: &'static str,
    /// What makes an idle session wakeable where it is not: `doctor` says so.
    pub wakeable: &'static str,
    /// What it puts into the environment of what it runs, by which that is known as its own: another agent that is started from there must not have it.
    pub variables: &'static [&'static str],
    /// What it leaves open, a short line each: `doctor` shows them too.
    pub holes: &'static [&'static str],
}
