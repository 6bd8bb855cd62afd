//! Hooks without a process: the agent calls a tool of ours where it would start a program.
//!
//! The tool is in no list, and a model's call of it is refused: what tells the two apart is what the agent adds to a call. A hook is
//! never failed: whatever goes wrong, the answer is this agent's way of saying nothing, and the log has a line.

use crate::binding;
use crate::desk::Desk;
use baton_agents::McpCaller;
use baton_approvals::settle;
use baton_core::event::{Event, Reply};
use baton_core::frame::shown;
use baton_core::{Code, Error};
use baton_mail::{bell, line, unknown};
use baton_store::Store;
use serde_json::{Map, Value};

/// The tool's name, as the installed hooks call it.
pub(crate) const NAME: &str = "hook_event";

/// What a hook's call came to.
pub(crate) struct Answer {
    /// The text for the agent.
    pub(crate) text: String,
    /// Whether it carries mail.
    pub(crate) delivers: bool,
}

/// Handles a call. The only error is that it was no hook's.
pub(crate) fn run(
    desk: &Desk,
    meta: &Map<String, Value>,
    arguments: Map<String, Value>,
) -> Result<Answer, Error> {
    let agent = desk.options.agent;
    if !agent.is_hook_call(meta) {
        return Err(Error::new(
            Code::NotASession,
            format!("{NAME} is for the hooks of {}, not for its model", agent.title()),
        )
        .hint("read_messages reads your mail"));
    }
    let caller = agent.mcp_caller(meta);
    let answer = event(desk, &caller, arguments)
        .and_then(|event| desk.hooks(|store| handle(desk, store, &caller, &event)));
    Ok(answer.unwrap_or_else(|error| {
        desk.log(&format!("mcp hook {}: {}: {error}", agent.name(), error.code()));
        silence(desk)
    }))
}

fn silence(desk: &Desk) -> Answer {
    Answer { text: desk.options.agent.quiet().to_owned(), delivers: false }
}

fn event(desk: &Desk, caller: &McpCaller, arguments: Map<String, Value>) -> Result<Event, Error> {
    let payload = serde_json::to_vec(&Value::Object(arguments))
        .map_err(|error| Error::new(Code::Internal, format!("arguments that can't be written: {error}")))?;
    let mut event = desk.options.agent.parse(&payload, None)?;
    if let Some(id) = caller.session_id.as_ref().filter(|id| **id != event.session_id) {
        // The call comes from a context of its own below the session: a subagent, which takes no mail.
        event.subagent.get_or_insert_with(|| id.clone());
    }
    Ok(event)
}

fn handle(desk: &Desk, store: &mut Store, caller: &McpCaller, event: &Event) -> Result<Answer, Error> {
    let agent = desk.options.agent;
    unknown::note(&desk.options.home, agent, event);
    if caller.session_id.is_none() && !is_own(desk, store, event)? {
        let detail = format!(
            "{} of {} session {}, which another process runs",
            event.native,
            agent.name(),
            shown(&event.session_id, 80)
        );
        store.note(baton_mail::now(), "hook-ignored", None, &detail)?;
        return Ok(silence(desk));
    }
    let caller = line::Caller { agent, env: &|_| None, limits: &*desk.options.limits };
    let outcome = line::handle(store, &caller, event)?;
    if let Some(participant) = outcome.rings {
        bell::ring(&desk.options.home, participant);
    }
    settle::by_event(&desk.options.home, agent.name(), event)?;
    if event.subagent.is_none() {
        desk.name_by_hook(&event.session_id);
    }
    Ok(match outcome.reply {
        Reply::Silent => silence(desk),
        reply => Answer { text: agent.render(event, &reply), delivers: outcome.offer.is_some() },
    })
}

/// Whether the session that the event names is this server's, where the call itself does not say so: one that hooks named here before, a
/// new one, or one of a process above us.
fn is_own(desk: &Desk, store: &Store, event: &Event) -> Result<bool, Error> {
    if desk.hook_named().as_deref() == Some(event.session_id.as_str()) {
        return Ok(true);
    }
    let agent = desk.options.agent.name();
    let Some((_, session)) = store.participant_of(Some(agent), &event.session_id)? else { return Ok(true) };
    let process = store.session(session)?.and_then(|info| info.process);
    Ok(binding::may_be_ours(desk, process))
}
