//! A call that the guard wants a person to decide, in the hook before it: in the agent's own terminal where one sits there and it can ask, else in the
//! inbox. Where nobody is there, and nobody watches, the agent is told what it was told before there was an inbox.
//!
//! A yes lets the call go on as if nothing had been said, so that the agent still asks what it asks itself.

use super::{note, output_closed, print};
use crate::{environment, gate, settings};
use baton_agents::Agent;
use baton_agents::asked;
use baton_agents::call::{Call, Ruling, said_no};
use baton_approvals::ask::{self, Asker, Rules, Taken};
use baton_core::Error;
use baton_core::approval::Answer;
use baton_core::limits::{self, Limits};
use baton_store::{Role, Store};
use std::path::Path;
use std::time::Instant;

/// A call that the guard wants a person to decide.
pub(super) struct Asked<'a> {
    pub(super) home: &'a Path,
    pub(super) agent: &'a dyn Agent,
    /// The agent's own name of the event.
    pub(super) event: Option<&'a str>,
    pub(super) payload: &'a [u8],
    pub(super) call: &'a Call,
    pub(super) why: &'a str,
}

impl Asked<'_> {
    /// Has a person decide, and says what came of it.
    pub(super) fn decide(&self) -> Result<(), Error> {
        let (agent, env) = (self.agent, &environment::get);
        let refused = agent.render_ruling(self.call, &Ruling::Ask(self.why.to_owned()));
        // What a job's agent asks, its worker has from the backend.
        if ask::is_a_jobs(env) {
            return say(&refused);
        }
        if let Some(own) = agent.render_ask(self.call, self.why).filter(|_| ask::is_at_terminal(agent, env)) {
            return say(&own);
        }
        let taken = self.hold().unwrap_or_else(|error| {
            note(self.home, &format!("{}: {}: {}", agent.name(), error.code(), error.message()));
            None
        });
        let Some(taken) = taken else { return say(&refused) };
        say(&taken.text).inspect_err(|_| {
            // Whether that is known or not, the agent does not have it.
            ask::give_back(self.home, &taken).ok();
        })
    }

    /// Holds the call until somebody answers. `None`: nobody did.
    fn hold(&self) -> Result<Option<Taken>, Error> {
        let Self { home, agent, call, .. } = *self;
        let env = &environment::get;
        let mut event = agent.parse(self.payload, self.event)?;
        if event.transcript.is_none() {
            event.transcript = agent.transcript_path(&event.session_id, env);
        }
        let cwd = event.cwd.as_deref().unwrap_or(Path::new("/"));
        let limits =
            settings::Settings::load(cwd).map_or_else(|_| Limits::default(), |settings| settings.limits);
        let rules = Rules::of_call(&gate::open(home), self.why, environment::own_program().ok());
        let asker = Asker { home, agent, env, hold: limits.approval_hold, rules };
        let asked = asked::of_call(agent.tools(), call, std::process::id());
        let mut store = Store::open(home, Role::Hook)?;
        let render = |answer: &Answer| match answer {
            Answer::Allow => Some(agent.render_go_on().to_owned()),
            Answer::Deny(words) => Some(agent.render_ruling(call, &Ruling::Deny(said_no(words).to_owned()))),
            Answer::AllowAlways | Answer::Words(_) => None,
        };
        ask::hold_call(&mut store, &asker, &event, &asked, &render)
    }
}

fn say(text: &str) -> Result<(), Error> {
    print(text, Instant::now() + limits::HOOK_BUDGET.to_std()).map_err(|error| output_closed(&error))
}
