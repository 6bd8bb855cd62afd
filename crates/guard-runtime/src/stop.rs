//! The guard at the end of a turn: it can keep the turn going, with a reason for the model.

use crate::journal::RecordKind;
use crate::policy::Mode;
use crate::{Guard, log};
use baton_agents::Agent;
use baton_core::Error;
use baton_core::event::Event;
use baton_core::guard::Verdict;
use baton_guard::{GuardEvent, RuleSet};
use std::path::Path;

impl Guard {
    /// Why a turn must not end yet, for the model to read; `None` if it may end. What is not known
    /// never keeps a turn going.
    pub fn holds(&self, agent: &dyn Agent, event: &Event) -> Result<Option<String>, Error> {
        if event.subagent.is_some() {
            return Ok(None);
        }
        let cwd = event.cwd.as_deref().unwrap_or(&self.places.cwd);
        let policy = self.policy(cwd)?;
        if policy.settings.mode.value == Mode::Off || !looks_at_stops(&policy.rules) {
            return Ok(None);
        }
        let memory = self.memory(agent, Some(&event.session_id));
        let is_told = agent.quirks().reports_held_stops;
        let held = memory.times_held(event.stop_active, is_told);
        let verdict = self.judge_stop(agent, cwd, Some(held), event.stop_active, &policy.rules);
        if !verdict.decision.holds() {
            // Another hook may keep this turn going, and then it ends here again. It has used up
            // its blocks.
            let is_over = if is_told { !event.stop_active } else { held > 0 };
            if is_over {
                memory.record_turn(RecordKind::Ended);
            }
            return Ok(None);
        }
        let kind = if event.stop_active { RecordKind::HeldAgain } else { RecordKind::Held };
        // If the block can't be counted, the turn ends. Otherwise it could be blocked without end.
        if !memory.record_turn(kind) {
            return Ok(None);
        }
        log::append(
            &self.places.home,
            &log::Entry {
                at: (self.places.now)(),
                agent: agent.name().to_owned(),
                session: Some(event.session_id.clone()),
                event: event.native.clone(),
                tool: String::new(),
                rule: verdict.rule.clone(),
                decision: verdict.decision.as_str().to_owned(),
            },
        );
        Ok(Some(crate::why(&verdict)))
    }

    /// Judges the end of a turn.
    pub fn judge_stop(
        &self,
        agent: &dyn Agent,
        cwd: &Path,
        stops_blocked: Option<u32>,
        stop_active: bool,
        rules: &RuleSet,
    ) -> Verdict {
        let own = |_: &Path| Vec::new();
        let machine = self.machine(cwd, cwd, &own);
        let request =
            baton_guard::Request { stops_blocked, stop_active, ..baton_guard::Request::stop(agent.name()) };
        baton_guard::judge(&request, rules, &machine).verdict
    }
}

fn looks_at_stops(rules: &RuleSet) -> bool {
    rules.active(GuardEvent::Stop).next().is_some()
        || rules.custom.iter().any(|rule| rule.event == GuardEvent::Stop)
}
