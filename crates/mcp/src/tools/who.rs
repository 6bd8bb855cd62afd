//! `who`: the sessions that the model can write to.

use super::{Call, Effect};
use baton_core::frame::defuse;
use baton_core::session::State;
use baton_core::wake::Outcome;
use baton_core::{Code, Error, limits};
use baton_machine::project;
use baton_mail::directory;
use baton_mail::wake::{self, WakeRequest};
use baton_store::Participant;
use rmcp::model::Tool;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const NAME: &str = "who";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Input {
    /// List every project, and sessions that have ended.
    #[serde(default)]
    all: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Output {
    sessions: Vec<Entry>,
    /// How many sessions did not fit into this list. `baton who` in a shell prints all.
    left_out: usize,
    /// Your own name. Null while this server does not know whose session it serves.
    you: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct Entry {
    /// What to write in `to`.
    name: String,
    session_id: Option<String>,
    /// claude, codex, …; `user` for the person.
    agent: String,
    cwd: Option<String>,
    project: String,
    /// busy, idle, blocked (waits for its user) or gone.
    state: &'static str,
    state_since: String,
    /// How many messages wait for it.
    unread: u32,
    pid: Option<i32>,
    /// Null for this machine.
    machine: Option<String>,
    /// What would become of a wake: pushed, typed, pending_turn_end, no_route, skipped_dialog,
    /// no_client, …
    wake: &'static str,
}

pub(super) fn tool() -> Tool {
    super::tool::<Input, Output>(
        NAME,
        "List sessions",
        Effect::Reads,
        "List the agent sessions of this project that you can write to, with their names and what they are doing. all: every project.",
    )
}

pub(super) fn run(call: &Call<'_>, input: &Input) -> Result<Output, Error> {
    let all = input.all.unwrap_or(false);
    call.server.with_store(|store| {
        let (you, here) = match call.identity(store) {
            Ok(identity) => (Some(identity.participant.name), identity.project),
            // A caller that has to claim its session must be able to find it.
            Err(error) if error.code() == Code::UnboundSession => {
                (None, project::of(&call.server.options.cwd))
            }
            Err(error) => return Err(error),
        };
        let found = directory::who(store, (!all).then_some(&*here), all)?;
        let rules = (call.server.options.limits)();
        let request = WakeRequest {
            home: &call.server.options.home,
            rules: &rules,
            wanted: true,
            by_hand: false,
            follower: None,
        };
        let ShownSessions { sessions, left_out } = bounded(found, &|participant| {
            wake::forecast(store, participant, &request).map_or(Outcome::NoRoute, |forecast| forecast.outcome)
        });
        Ok(Output { sessions, left_out, you })
    })
}

struct ShownSessions {
    sessions: Vec<Entry>,
    left_out: usize,
}

/// As many sessions as fit into a context, running ones first.
fn bounded(mut found: Vec<Participant>, wake: &dyn Fn(&Participant) -> Outcome) -> ShownSessions {
    found.sort_by_key(|participant| participant.state == State::Gone);
    let total = found.len();
    let mut room = limits::WHO_BYTES;
    let sessions: Vec<Entry> = found
        .into_iter()
        .map(|participant| entry(wake(&participant), participant))
        .take(limits::MAX_WHO_SESSIONS)
        .take_while(|entry| {
            let size = serde_json::to_string(entry).map_or(usize::MAX, |text| text.len());
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        })
        .collect();
    let left_out = total - sessions.len();
    ShownSessions { sessions, left_out }
}

fn entry(wake: Outcome, participant: Participant) -> Entry {
    Entry {
        wake: wake.as_str(),
        session_id: participant.native.as_deref().map(defuse),
        cwd: participant.cwd.as_deref().map(defuse),
        project: defuse(&participant.project),
        state: participant.state.as_str(),
        state_since: participant.state_since.to_rfc3339(),
        unread: participant.unread,
        pid: participant.process.map(|process| process.pid),
        machine: None,
        name: participant.name,
        agent: participant.agent,
    }
}
