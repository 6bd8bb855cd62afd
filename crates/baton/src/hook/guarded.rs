//! A tool call that the guard wants a person to decide, in the hook before the call. If a person is
//! at the agent's terminal and the agent can ask, the agent asks there. Otherwise the question goes
//! to the inbox. If no person answers there either, the call is refused with the rule's reason.
//!
//! A yes gives no ruling, so that the agent still asks its own questions.

use super::{append_log, output_closed, print};
use crate::{environment, guard, settings};
use baton_agents::Agent;
use baton_agents::asked;
use baton_agents::call::{Ruling, ToolCall, said_no};
use baton_approvals::ask::{self, Asker, Rules, Taken};
use baton_core::Error;
use baton_core::approval::Answer;
use baton_core::limits::{self, Limits};
use baton_mail::hook_event;
use baton_store::{Role, Store};
use std::path::Path;
use std::time::Instant;

pub(super) struct HeldToolCall<'a> {
    pub(super) home: &'a Path,
    pub(super) agent: &'a dyn Agent,
    /// The agent's own name of the event.
    pub(super) event: Option<&'a str>,
    pub(super) payload: &'a [u8],
    pub(super) call: &'a ToolCall,
    pub(super) why: &'a str,
}

impl HeldToolCall<'_> {
    /// Has a person decide, and prints the answer for the agent.
    pub(super) fn decide(&self) -> Result<(), Error> {
        let (agent, env) = (self.agent, &environment::get);
        let refused = agent.render_ruling(self.call, &Ruling::Ask(self.why.to_owned()));
        // A job's worker gets the questions of its agent from the backend.
        if ask::is_a_jobs(env) {
            return say(&refused);
        }
        if let Some(own) = agent.render_ask(self.call, self.why).filter(|_| ask::is_at_terminal(agent, env)) {
            return say(&own);
        }
        let taken = self.hold().unwrap_or_else(|error| {
            append_log(self.home, &format!("{}: {}: {}", agent.name(), error.code(), error.message()));
            None
        });
        let Some(taken) = taken else { return say(&refused) };
        say(&taken.text).inspect_err(|_| {
            // If this fails too, the answer still did not reach the agent.
            ask::give_back(self.home, &taken).ok();
        })
    }

    /// Holds the call until there is an answer. `None` if none came.
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
        let rules = Rules::of_call(&guard::open(home), self.why, environment::own_program().ok());
        let asker = Asker { home, agent, env, hold: limits.approval_hold, rules };
        let asked = asked::guard_question(agent.tools(), call, std::process::id());
        let mut store = Store::open(home, Role::Hook)?;
        match store.hook_view(agent.name(), &event.session_id)? {
            Some(view) => hook_event::check_comes_from_session(&store, agent, &view, &event)?,
            None => hook_event::check_comes_from_no_other_agent(agent, &event)?,
        }
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
