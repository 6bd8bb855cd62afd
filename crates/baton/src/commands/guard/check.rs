//! `guard check`: judges a native payload as a hook would, without a session, a log or an effect.

use super::{Session, rule};
use crate::gate;
use crate::print::{Out, done};
use baton_core::error::Exit;
use baton_core::guard::Decision;
use baton_core::{Code, Error, limits};
use baton_guard::RuleSet;
use clap::Args;
use serde_json::{Value, json};
use std::io::Read as _;

// `baton guard check`
#[derive(Debug, Args)]
pub struct Check {
    /// Whose payload it is
    #[arg(long, default_value = "claude")]
    agent: String,
    /// The agent's own name of the event, where the payload does not say it
    #[arg(long)]
    event: Option<String>,
    /// Judge by this rule alone, whether it is on or not
    #[arg(long, value_name = "RULE")]
    only: Option<String>,
    /// The parameters of that rule
    #[arg(long, value_name = "JSON", requires = "only")]
    params: Option<String>,
}

impl Check {
    /// Says what would be decided; exit 0 whatever that is.
    pub fn run(self, session: &Session, out: &Out) -> Result<Exit, Error> {
        let agent = baton_agents::by_name(&self.agent)?;
        let payload = payload()?;
        let gate = gate::open(&session.home);
        let Some(mut call) = agent.call(&payload, self.event.as_deref())? else {
            let document = json!({"decision": "allow", "rule": null, "reason": "it shows no tool call"});
            out.data(&document, || "allow  it shows no tool call".to_owned())?;
            return done();
        };
        let rules = match &self.only {
            Some(id) => self.only(id)?,
            None => gate.policy(&gate.cwd_of(&call))?.rules,
        };
        let verdict = gate.judge(agent, &mut call, &rules).verdict;
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

    /// One rule with the parameters that were given.
    fn only(&self, id: &str) -> Result<RuleSet, Error> {
        let rule = rule(id)?;
        let params: Value = match &self.params {
            None => json!({}),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| Error::new(Code::Usage, format!("--params is no JSON: {error}")))?,
        };
        RuleSet::only(rule.id, params::read(&params)?)
            .ok_or_else(|| Error::new(Code::Internal, "a rule that is there is not there"))
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

/// The parameters of a rule as JSON.
mod params {
    use baton_core::{Code, Error};
    use baton_guard::Params;
    use baton_guard::rules::Pattern;
    use serde_json::Value;

    /// Reads them. A name that no rule has is a mistake.
    pub(super) fn read(given: &Value) -> Result<Params, Error> {
        let Value::Object(given) = given else { return Err(wrong("must be an object")) };
        let mut params = Params::default();
        for (name, value) in given {
            match name.as_str() {
                "allowPatterns" => params.allow_patterns = texts(name, value)?,
                "allowPaths" => params.allow_paths = texts(name, value)?,
                "protectedBranches" => params.protected_branches = Some(texts(name, value)?),
                "allowed" => params.allowed = texts(name, value)?,
                "blocked" => params.blocked = texts(name, value)?,
                "additionalPatterns" => params.additional_patterns = patterns(value)?,
                "thresholdKb" => params.threshold_kb = Some(number(name, value)?),
                "times" => params.times = Some(u32::try_from(number(name, value)?).unwrap_or(u32::MAX)),
                "remote" => params.remote = Some(text(name, value)?),
                "baseBranch" => params.base_branch = Some(text(name, value)?),
                "hint" => params.hint = Some(text(name, value)?),
                _ => return Err(wrong(&format!("has no {}", baton_core::frame::shown(name, 60)))),
            }
        }
        Ok(params)
    }

    fn wrong(why: &str) -> Error {
        Error::new(Code::Usage, format!("--params {why}"))
    }

    fn text(name: &str, value: &Value) -> Result<String, Error> {
        value.as_str().map(str::to_owned).ok_or_else(|| wrong(&format!("{name} must be a text")))
    }

    fn number(name: &str, value: &Value) -> Result<u64, Error> {
        value.as_u64().ok_or_else(|| wrong(&format!("{name} must be a whole number")))
    }

    fn texts(name: &str, value: &Value) -> Result<Vec<String>, Error> {
        let list = value.as_array().ok_or_else(|| wrong(&format!("{name} must be a list")))?;
        list.iter().map(|value| text(name, value)).collect()
    }

    /// Regular expressions with labels, or plain texts.
    fn patterns(value: &Value) -> Result<Vec<Pattern>, Error> {
        let name = "additionalPatterns";
        let list = value.as_array().ok_or_else(|| wrong(&format!("{name} must be a list")))?;
        let pattern = |value: &Value| match value {
            Value::String(text) => Ok(Pattern { text: text.clone(), label: text.clone() }),
            value => {
                let pattern = text(name, &value["regex"])?;
                let label = value["label"].as_str().unwrap_or(&pattern).to_owned();
                Ok(Pattern { text: pattern, label })
            }
        };
        list.iter().map(pattern).collect()
    }
}
