//! Hooks without a process: the agent calls a tool of this server instead of starting a program.
//!
//! The tool is in no list, and a call by a model is refused. The metadata that the agent adds to a
//! call shows which of the two it is. A hook call never fails: after an error the answer is empty,
//! in the agent's own form, and the log gets a line.

use crate::binding;
use crate::server_state::ServerState;
use baton_agents::asked::AgentQuestion;
use baton_agents::{Agent, McpCaller};
use baton_core::event::{Event, EventKind};
use baton_core::frame::shown;
use baton_core::{Code, Error};
use baton_events::Surface;
use baton_guard_runtime::Guard;
use baton_machine::clock;
use baton_mail::hook_event::{Caller, OpenJobs};
use baton_store::Store;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::Path;

/// The tool's name, as the installed hooks call it.
pub(crate) const NAME: &str = "hook_event";

pub(crate) struct Answer {
    /// The text for the agent.
    pub(crate) text: String,
    /// The answer is not empty, so the store was written to.
    pub(crate) speaks: bool,
}

/// Handles a call. The only error is that the call did not come from a hook.
pub(crate) fn run(
    server: &ServerState,
    meta: &Map<String, Value>,
    arguments: Map<String, Value>,
) -> Result<Answer, Error> {
    let agent = server.options.agent;
    if !agent.is_hook_call(meta) {
        return Err(Error::new(
            Code::NotASession,
            format!("{NAME} is for the hooks of {}, not for its model", agent.title()),
        )
        .hint("read_messages reads your mail"));
    }
    let caller = agent.mcp_caller(meta);
    let answer = read(server, &caller, arguments).and_then(|(event, payload)| {
        server.with_hook_store(|store| handle(server, store, &caller, event, &payload))
    });
    Ok(answer.unwrap_or_else(|error| {
        server.log(&format!("mcp hook {}: {}: {error}", agent.name(), error.code()));
        silent_answer(server)
    }))
}

fn silent_answer(server: &ServerState) -> Answer {
    Answer { text: server.options.agent.empty_mcp_reply().to_owned(), speaks: false }
}

/// The event, and the payload that it was read from.
fn read(
    server: &ServerState,
    caller: &McpCaller,
    arguments: Map<String, Value>,
) -> Result<(Event, Vec<u8>), Error> {
    let payload = serde_json::to_vec(&Value::Object(arguments))
        .map_err(|error| Error::new(Code::Internal, format!("arguments that can't be written: {error}")))?;
    let mut event = server.options.agent.parse(&payload, None)?;
    if let Some(id) = caller.session_id.as_ref().filter(|id| **id != event.session_id) {
        // The call comes from another context below the session: a subagent, which takes no mail.
        event.subagent.get_or_insert_with(|| id.clone());
    }
    Ok((event, payload))
}

fn handle(
    server: &ServerState,
    store: &mut Store,
    caller: &McpCaller,
    mut event: Event,
    payload: &[u8],
) -> Result<Answer, Error> {
    if caller.session_id.is_none() && !is_own_session(server, store, &event)? {
        let detail = format!(
            "{} of {} session {}, which another process runs",
            event.native,
            server.options.agent.name(),
            shown(&event.session_id, 80)
        );
        store.note(clock::now(), "hook-ignored", None, &detail)?;
        return Ok(silent_answer(server));
    }
    let mut call = HookCall { server, store, answer: silent_answer(server) };
    baton_events::handle(&mut call, &mut event, payload)?;
    let answer = call.answer;
    if event.subagent.is_none() {
        server.set_hook_named(&event.session_id);
    }
    Ok(answer)
}

/// A call of the hook tool, as the surface of one event.
struct HookCall<'a> {
    server: &'a ServerState,
    store: &'a mut Store,
    answer: Answer,
}

impl Surface for HookCall<'_> {
    fn home(&self) -> &Path {
        &self.server.options.home
    }

    fn agent(&self) -> &'static dyn Agent {
        self.server.options.agent
    }

    /// A server's environment is older than the event, so it does not count.
    fn variable(&self, _name: &str) -> Option<OsString> {
        None
    }

    /// The guard has separate command hooks, which can refuse a call.
    fn guards(&self, _kind: EventKind) -> bool {
        false
    }

    fn guard(&self) -> Guard {
        (self.server.options.guard)(&self.server.options.home)
    }

    fn with_store<T>(
        &mut self,
        _event: &Event,
        work: impl FnOnce(&mut Store, &Caller<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let options = &self.server.options;
        let caller = Caller { agent: options.agent, env: &|_| None, limits: &*options.limits };
        work(self.store, &caller)
    }

    /// The server writes the answer later. The transcript shows whether the agent took it.
    fn answer(&mut self, answer: Option<&str>) -> Result<(), Error> {
        if let Some(text) = answer {
            self.answer = Answer { text: text.to_owned(), speaks: true };
        }
        Ok(())
    }

    /// No question comes through this surface: it needs a hook that can wait.
    fn ask(&mut self, _event: &Event, _payload: &[u8], _asked: AgentQuestion) -> Result<(), Error> {
        Ok(())
    }

    /// The job watcher's thread does this, so that the agent need not wait.
    fn look_after(&mut self, _event: &Event, jobs: OpenJobs) {
        self.server.askers.look_after(jobs.asker);
    }

    fn log(&self, what: &str) {
        self.server.log(&format!("mcp hook {}: {what}", self.server.options.agent.name()));
    }
}

/// Whether the session that the event names is this server's, if the call itself does not name it.
/// That is a session that hooks named here before, a new one, or one of a process above this
/// server.
fn is_own_session(server: &ServerState, store: &Store, event: &Event) -> Result<bool, Error> {
    if server.hook_named().as_deref() == Some(event.session_id.as_str()) {
        return Ok(true);
    }
    let agent = server.options.agent.name();
    let Some((_, session)) = store.participant_of(Some(agent), &event.session_id)? else { return Ok(true) };
    let process = store.session(session)?.and_then(|info| info.process);
    Ok(binding::may_be_ours(server, process))
}
