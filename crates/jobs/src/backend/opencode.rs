//! OpenCode over its own server, with HTTP and events.
//!
//! All jobs of a home share one server ([`keeper`]). A job is a session of it, with its own rules
//! ([`rules`]). The prompt is one message with an id that baton chooses, so that sending it twice
//! is the same as sending it once. It names agent and model: without them a session may switch to
//! its default.

mod api;
pub mod keeper;
mod listener;
mod read;
mod recall;
mod rules;
mod turn;

use super::{Backend, Capabilities, ReadOnly, Report, Task, Turn};
use api::{Api, Failure};
use baton_core::job::{Fault, Observation, Snapshot};
use baton_core::{Code, Error};
use baton_machine::{clock::now, random};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::Duration;

/// The efforts that models of its providers have. The server knows which ones a model has.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// The oldest version whose sessions take rules.
const OLDEST_VERSION: (u64, u64) = (1, 1);
/// The first call for a folder loads its plugins and tools.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
/// For a call to a server that is ready.
const CALL_LIMIT: Duration = Duration::from_secs(20);
/// Eight mebibytes arrive byte for byte. A model takes much less.
const PROMPT_BYTES: usize = 8 << 20;
/// How many names an error lists.
const MAX_NAMES_LISTED: usize = 12;
/// The file of the job that holds the id of its prompt.
const PROMPT_FILE: &str = "opencode-prompt";

#[derive(Debug)]
pub struct OpenCode;

impl OpenCode {
    pub(super) const NAME: &str = "opencode";
}

impl Backend for OpenCode {
    fn agent(&self) -> &'static str {
        Self::NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            model: true,
            efforts: EFFORTS,
            read_only: ReadOnly::Rules,
            resume: true,
            answers: true,
            prompt_bytes: PROMPT_BYTES,
        }
    }

    fn check(&self, task: &Task) -> Result<(), Error> {
        if let Some(model) = &task.model {
            parts_of(model)?;
        }
        match &task.effort {
            Some(effort) if !EFFORTS.contains(&effort.as_str()) => {
                Err(Error::new(Code::UnsupportedOption, format!("OpenCode has no effort `{effort}`"))
                    .hint(format!("--effort is one of {}", EFFORTS.join(", "))))
            }
            _ => Ok(()),
        }
    }

    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault> {
        self.check(task)?;
        let cwd = task
            .cwd
            .to_str()
            .ok_or_else(|| Error::new(Code::BadFolder, format!("{} is not UTF-8", task.cwd.display())))?;
        let held = keeper::hold(task)?;
        check_version(&held.version)?;
        let api = Api::new(held.server.port, &held.server.password, cwd);
        let choice = choose(&api, task)?;
        let session = open_session(&api, task, &choice)?;
        report(Observation::Session(session.clone()));
        let prompt = id("msg");
        note_prompt(task, &prompt)
            .map_err(|error| Error::new(Code::BackendStart, format!("{}: {error}", task.folder.display())))?;
        let turn = turn::Running::listen(api.clone(), &session, &prompt, task.allow, held, report);
        let mut body = json!({
            "messageID": prompt,
            "agent": choice.agent["name"],
            "model": {"providerID": choice.provider, "modelID": choice.model},
            "parts": [{"id": id("prt"), "type": "text", "text": task.prompt}],
        });
        if let Some(effort) = &task.effort {
            body["variant"] = effort.as_str().into();
        }
        let path = format!("/session/{session}/prompt_async");
        // If the answer was lost, the second request changes nothing.
        let sent = match api.post(&path, &body, CALL_LIMIT) {
            Err(Failure::Broken(_)) => api.post(&path, &body, CALL_LIMIT),
            sent => sent,
        };
        sent.map_err(|failure| not_started(&failure))?;
        Ok(Box::new(turn))
    }

    fn abandon(&self, task: &Task, session: Option<&str>) {
        keeper::abandon(task, session);
    }

    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot> {
        recall::recall(task, session)
    }
}

/// What the prompt will name.
struct Choice {
    agent: Value,
    provider: String,
    model: String,
}

/// Agent and model: those of the task, else those of the user's configuration, else the server's
/// default.
fn choose(api: &Api, task: &Task) -> Result<Choice, Fault> {
    let get = |path, limit| api.get(path, limit).map_err(|failure| not_started(&failure));
    let config = get("/config", BOOT_LIMIT)?;
    let agent = choose_agent(&get("/agent", BOOT_LIMIT)?, config["default_agent"].as_str())?;
    let known = get("/config/providers", BOOT_LIMIT)?;
    let (provider, model) = match (&task.model, agent["model"].as_object(), config["model"].as_str()) {
        (Some(model), _, _) => parts_of(model)?,
        (None, Some(model), _) => {
            let word = |name: &str| model.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            (word("providerID"), word("modelID"))
        }
        (None, None, Some(model)) => parts_of(model)?,
        (None, None, None) => first_default(&known).ok_or_else(no_provider)?,
    };
    check_model(&known, &provider, &model, task.effort.as_deref())?;
    Ok(Choice { agent, provider, model })
}

fn choose_agent(agents: &Value, wanted: Option<&str>) -> Result<Value, Fault> {
    let agents = agents.as_array().map(Vec::as_slice).unwrap_or_default();
    let can = |agent: &&Value| agent["mode"] != "subagent" && agent["hidden"] != true;
    let named = |name: &str| agents.iter().filter(can).find(|agent| agent["name"] == name);
    let agent = wanted.and_then(named).or_else(|| named("build")).or_else(|| agents.iter().find(can));
    agent.cloned().ok_or_else(|| Fault::new(Code::BackendStart, "OpenCode has no primary agent"))
}

fn first_default(known: &Value) -> Option<(String, String)> {
    let providers = known["providers"].as_array()?;
    providers.iter().find_map(|provider| {
        let id = provider["id"].as_str()?;
        Some((id.to_owned(), known["default"][id].as_str()?.to_owned()))
    })
}

fn check_model(known: &Value, provider: &str, model: &str, effort: Option<&str>) -> Result<(), Fault> {
    let providers = known["providers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if providers.is_empty() {
        return Err(no_provider());
    }
    let Some(its) = providers.iter().find(|known| known["id"] == provider) else {
        let names: Vec<&str> = providers.iter().filter_map(|provider| provider["id"].as_str()).collect();
        let error = Error::new(Code::NotLoggedIn, format!("OpenCode has no login for `{provider}`"));
        let hint = format!("run `opencode auth login`, or take a --model of {}", listed(&names));
        return Err(error.hint(hint).into());
    };
    let Some(its) = its["models"].get(model) else {
        let names: Vec<&str> = names_of(&its["models"]);
        let error =
            Error::new(Code::UnsupportedOption, format!("OpenCode has no model `{provider}/{model}`"));
        return Err(error.hint(format!("--model {provider}/… is one of {}", listed(&names))).into());
    };
    let efforts = names_of(&its["variants"]);
    match effort {
        Some(effort) if !efforts.contains(&effort) => {
            let message = format!("{provider}/{model} has no effort `{effort}`");
            let hint = match efforts.is_empty() {
                true => "it knows none: leave --effort out".to_owned(),
                false => format!("--effort is one of {} for it", listed(&efforts)),
            };
            Err(Error::new(Code::UnsupportedOption, message).hint(hint).into())
        }
        _ => Ok(()),
    }
}

fn names_of(map: &Value) -> Vec<&str> {
    map.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn listed(names: &[&str]) -> String {
    let more = if names.len() > MAX_NAMES_LISTED { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(MAX_NAMES_LISTED)].join(", "))
}

fn no_provider() -> Fault {
    let error = Error::new(Code::NotLoggedIn, "OpenCode has no provider that it could ask");
    error.hint("run `opencode auth login`").into()
}

/// `provider/model`; a model's own name may contain slashes.
fn parts_of(model: &str) -> Result<(String, String), Error> {
    let parts = model.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty());
    let (provider, model) = parts.ok_or_else(|| {
        Error::new(Code::UnsupportedOption, format!("`{model}` is not a model of OpenCode"))
            .hint("--model is PROVIDER/MODEL; `opencode models` lists them")
    })?;
    Ok((provider.to_owned(), model.to_owned()))
}

fn check_version(version: &str) -> Result<(), Error> {
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse::<u64>().ok());
    let found = (numbers.next(), numbers.next());
    match found {
        (Some(major), Some(minor)) if (major, minor) < OLDEST_VERSION && (major, minor) != (0, 0) => {
            let (major, minor) = OLDEST_VERSION;
            let message = format!("OpenCode {version} is too old for jobs");
            Err(Error::new(Code::UnsupportedVersion, message)
                .hint(format!("{major}.{minor} or newer is needed")))
        }
        // A build from source says 0.0 or a word.
        _ => Ok(()),
    }
}

/// A new session with its rules, or an old one with new rules.
fn open_session(api: &Api, task: &Task, choice: &Choice) -> Result<String, Fault> {
    let read_only = if task.read_only { rules::ReadOnly::Yes } else { rules::ReadOnly::No };
    let rules = rules::of(&choice.agent["permission"], task.allow, read_only);
    let session = match &task.resume {
        None => api.post("/session", &json!({"title": task.title, "permission": rules}), CALL_LIMIT),
        Some(session) => api.patch(&format!("/session/{session}"), &json!({"permission": rules}), CALL_LIMIT),
    };
    let session = match (session, &task.resume) {
        (Err(Failure::Status(404, words)), Some(_)) => {
            return Err(Fault::new(Code::NothingToResume, format!("OpenCode: {words}")));
        }
        (session, _) => session.map_err(|failure| not_started(&failure))?,
    };
    if session["permission"].as_array().is_none_or(|kept| kept.len() < rules.len()) {
        let error = Error::new(Code::UnsupportedVersion, "this OpenCode does not take rules for a session");
        return Err(error.hint("update OpenCode").into());
    }
    let id = session["id"].as_str().map(ToOwned::to_owned);
    id.ok_or_else(|| Fault::new(Code::BackendStart, "OpenCode made no session"))
}

fn not_started(failure: &Failure) -> Fault {
    Fault::new(Code::BackendStart, failure.in_words())
}

/// An id in OpenCode's format: they sort by their time.
fn id(kind: &str) -> String {
    let time = (u64::try_from(now().0).unwrap_or_default() << 12) & 0xffff_ffff_ffff;
    let random: String = random::id().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}_{time:012x}{:0<14.14}", random)
}

fn note_prompt(task: &Task, prompt: &str) -> std::io::Result<()> {
    let file = task.folder.join(PROMPT_FILE);
    let mut file = baton_machine::own::rewrite(&file)?;
    file.write_all(prompt.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_refused_and_the_others_taken() {
        for (version, taken) in [
            ("1.18.33", true),
            ("1.1.0", true),
            ("2.0.0", true),
            ("0.0.0-dev", true),
            ("local", true),
            ("1.0.220", false),
            ("0.15.3", false),
        ] {
            assert_eq!(check_version(version).is_ok(), taken, "{version}");
        }
    }

    #[test]
    fn ids_are_as_long_as_opencodes_own_and_sort_by_time() {
        let (first, second) = (id("msg"), id("msg"));
        assert_eq!(first.len(), "msg_1e090452c001i3VPvSpVtF6yIw".len());
        assert!(first[..16] <= second[..16] && first != second);
        assert!(first.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    }

    #[test]
    fn what_cannot_be_honoured_names_what_can() {
        let known = json!({
            "providers": [{"id": "a", "models": {"m": {"variants": {"low": {}, "high": {}}}, "n/o": {}}}],
            "default": {"a": "m"},
        });
        let code = |provider: &str, model: &str, effort| {
            let fault = check_model(&known, provider, model, effort).err()?;
            Some((fault.error.code(), fault.error.hint_text().unwrap_or_default().to_owned()))
        };
        assert_eq!(code("a", "m", Some("high")), None);
        assert_eq!(code("a", "n/o", None), None);
        let (refused, hint) = code("a", "m", Some("max")).unwrap();
        assert!(refused == Code::UnsupportedOption && hint.contains("low, high"), "{hint}");
        let (refused, hint) = code("a", "x", None).unwrap();
        assert!(refused == Code::UnsupportedOption && hint.contains("m, n/o"), "{hint}");
        assert_eq!(code("b", "m", None).unwrap().0, Code::NotLoggedIn);
        assert_eq!(first_default(&known), Some(("a".to_owned(), "m".to_owned())));
        assert!(parts_of("m").is_err() && parts_of("/m").is_err() && parts_of("a/n/o").is_ok());
    }

    #[test]
    fn the_users_default_agent_is_taken_unless_it_can_not_be_one() {
        let agents = json!([
            {"name": "build", "mode": "primary"},
            {"name": "mine", "mode": "all"},
            {"name": "explore", "mode": "subagent"},
        ]);
        let name = |wanted| choose_agent(&agents, wanted).unwrap()["name"].as_str().unwrap().to_owned();
        assert_eq!(name(None), "build");
        assert_eq!(name(Some("mine")), "mine");
        assert_eq!(name(Some("explore")), "build");
    }
}
