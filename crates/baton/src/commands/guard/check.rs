//! `guard check`: judges a native payload as a hook would, without a context, a log or an effect.

use super::{CommandContext, rule};
use crate::guard;
use crate::print::{Out, done};
use baton_agents::Agent;
use baton_core::error::Exit;
use baton_core::event::EventKind;
use baton_core::guard::Decision;
use baton_core::{Code, Error, limits};
use baton_guard::RuleSet;
use baton_guard_runtime::Guard;
use clap::Args;
use serde_json::{Value, json};
use std::io::Read as _;

// `baton guard check`
#[derive(Debug, Args)]
pub struct Check {
    /// The agent that the payload comes from
    #[arg(long, default_value = "claude")]
    agent: String,
    /// The agent's own name of the event, if the payload does not have it
    #[arg(long)]
    event: Option<String>,
    /// Judge by this rule alone, whether or not it is on
    #[arg(long, value_name = "RULE")]
    only: Option<String>,
    /// The parameters of that rule
    #[arg(long, value_name = "JSON", requires = "only")]
    params: Option<String>,
}

impl Check {
    /// Says what would be decided; exit 0 whatever that is.
    pub fn run(self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let agent = baton_agents::by_name(&self.agent)?;
        let payload = payload()?;
        let guard = guard::open(&context.home);
        let Some(mut call) = agent.call(&payload, self.event.as_deref())? else {
            return self.check_stop(agent, &payload, &guard, out);
        };
        let rules = match &self.only {
            Some(id) => self.only(id)?,
            None => guard.policy(&guard.cwd_of(&call))?.rules,
        };
        let verdict = guard.judge(agent, &mut call, &rules).verdict;
        let rule = Some(&verdict.rule).filter(|rule| !rule.is_empty());
        let mut document = json!({
            "decision": verdict.decision.as_str(), "rule": rule, "reason": verdict.reason,
            "tool": call.tool.native, "kind": call.tool.kind.as_str(),
        });
        if let Decision::Redact(_) = verdict.decision {
            document["output"] = call.output.unwrap_or_default();
        }
        out.data(&document, || {
            let words = [verdict.decision.as_str(), &verdict.rule, &verdict.reason];
            words.join("  ").trim_end().to_owned()
        })?;
        done()
    }

    /// A payload without a tool call: the end of a turn, or nothing to judge. Nobody has counted
    /// how often it was held.
    fn check_stop(&self, agent: &dyn Agent, payload: &[u8], guard: &Guard, out: &Out) -> Result<Exit, Error> {
        let stop =
            agent.parse(payload, self.event.as_deref()).ok().filter(|event| event.kind == EventKind::Stop);
        let Some(event) = stop else {
            let document = json!({"decision": "allow", "rule": null, "reason": "it shows no tool call"});
            out.data(&document, || "allow  it shows no tool call".to_owned())?;
            return done();
        };
        let cwd = event.cwd.unwrap_or_else(|| guard.cwd().to_owned());
        let rules = match &self.only {
            Some(id) => self.only(id)?,
            None => guard.policy(&cwd)?.rules,
        };
        let verdict = guard.judge_stop(agent, &cwd, None, event.stop_active, &rules);
        let rule = Some(&verdict.rule).filter(|rule| !rule.is_empty());
        let document = json!({"decision": verdict.decision.as_str(), "rule": rule, "reason": verdict.reason, "kind": "stop"});
        out.data(&document, || {
            let words = [verdict.decision.as_str(), &verdict.rule, &verdict.reason];
            words.join("  ").trim_end().to_owned()
        })?;
        done()
    }

    /// One rule with the parameters that were given.
    fn only(&self, id: &str) -> Result<RuleSet, Error> {
        let rule = rule(id)?;
        let params: Value = match &self.params {
            None => json!({}),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| Error::new(Code::Usage, format!("--params is not JSON: {error}")))?,
        };
        RuleSet::only(rule.id, baton_guard::config::params_of(&params))
            .ok_or_else(|| Error::new(Code::Internal, "a known rule can't be found"))
    }
}

fn payload() -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let most = limits::PAYLOAD_BYTES as u64 + 1;
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::new(Code::Usage, format!("the payload could not be read: {error}")))?;
    if bytes.len() > limits::PAYLOAD_BYTES {
        return Err(Error::new(Code::Usage, "the payload is too large"));
    }
    Ok(bytes)
}
