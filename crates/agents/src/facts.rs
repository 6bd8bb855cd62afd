//! What an agent can and can't do, for people: one column of `docs/agents.md`. What mail does is not here; that follows from the adapter itself.

/// The facts about one agent.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
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
    /// What it leaves open, a short line each: `doctor` shows them too.
    pub holes: &'static [&'static str],
}
