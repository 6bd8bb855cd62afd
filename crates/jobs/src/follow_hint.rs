//! The hint that tells an agent how to follow a job. It comes once when the job's id appears in a
//! tool's result, and once when a subagent that should bring the result only says that it waits for
//! one (J26).
//!
//! This is on the path of each tool call, so the text is checked first. Only a text with an id in
//! it, or with such an announcement, opens a store. Only an asker whose jobs may run has its jobs
//! looked up.

use crate::place::Place;
use baton_agents::{Agent, ToolCall};
use baton_core::Error;
use baton_core::id::JobId;
use baton_core::job::notice::{ids, is_announcement};
use baton_core::tool::ToolKind;
use baton_store::{JobFilter, JobRow, Jobs, Role, Store};
use serde_json::Value;
use std::path::Path;

/// The file that says that the asker was told how to follow a job.
pub const FOLLOW_FILE: &str = "told-to-follow";
/// The file that says that the asker was told that what it got is not the result.
const FETCH_FILE: &str = "told-to-fetch";

/// Records that a hint about a job is given, and returns whether it is the first time. It makes a
/// file in the job's folder, so of two callers at once one is first.
pub fn record_first_time(home: &Path, id: &JobId, what: &str) -> bool {
    let file = Place::of(home, id).folder().join(what);
    baton_machine::own::create_new(&file).is_ok()
}

/// What to tell an agent after a tool call; mostly nothing. An error here is no reason to disturb
/// the call.
pub fn after_tool(home: &Path, agent: &dyn Agent, call: &ToolCall) -> Option<String> {
    let sign = Sign::of(call)?;
    told(home, agent, call, &sign).ok().flatten()
}

/// What a tool's result shows.
#[derive(Debug, PartialEq, Eq)]
enum Sign {
    Named(Vec<JobId>),
    /// A subagent says that it waits for jobs. Those that it names.
    Waiting(Vec<JobId>),
}

impl Sign {
    fn of(call: &ToolCall) -> Option<Self> {
        let output = call.output.as_ref()?;
        match call.tool.kind {
            ToolKind::Task => {
                let answer = answer(output)?;
                is_announcement(answer).then(|| Self::Waiting(ids(answer)))
            }
            ToolKind::Shell | ToolKind::TypedInput | ToolKind::Mcp { .. } => {
                // An agent that waits for it needs no hint.
                let waits = call.tool.command.as_ref().is_some_and(|command| command.contains("job wait"));
                let mut found = Vec::new();
                each_text(output, &mut |text| found.extend(ids(text)));
                (!found.is_empty() && !waits).then_some(Self::Named(found))
            }
            _ => None,
        }
    }
}

/// The answer of a subagent: the only text in its result. The prompt beside it does not count, nor
/// do notes of its program, which are one tag each.
fn answer(output: &Value) -> Option<&str> {
    match output {
        Value::String(text) => Some(text),
        Value::Array(parts) => {
            let mut said = parts.iter().filter_map(answer).filter(|text| !is_note(text));
            said.next().filter(|_| said.next().is_none())
        }
        Value::Object(fields) => {
            ["content", "text", "output"].iter().find_map(|key| fields.get(*key)).and_then(answer)
        }
        _ => None,
    }
}

fn is_note(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('<') && text.ends_with('>')
}

fn each_text(output: &Value, see: &mut dyn FnMut(&str)) {
    match output {
        Value::String(text) => see(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, see)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, see)),
        _ => {}
    }
}

fn told(home: &Path, agent: &dyn Agent, call: &ToolCall, sign: &Sign) -> Result<Option<String>, Error> {
    let Some(session) = call.session_id.as_deref().filter(|_| Store::path(home).exists()) else {
        return Ok(None);
    };
    let view = Store::open(home, Role::Hook)?.hook_view(agent.name(), session)?;
    let Some(view) = view.filter(|view| view.jobs_generation != 0) else { return Ok(None) };
    let Some(jobs) = Jobs::open_if_any(home)? else { return Ok(None) };
    let mut open = jobs.list(JobFilter::Owed(view.participant), 1000)?;
    open.retain(|row| !row.status.is_end());
    let (named, what) = match sign {
        Sign::Named(named) => (named, FOLLOW_FILE),
        Sign::Waiting(named) => (named, FETCH_FILE),
    };
    let any = named.is_empty();
    open.retain(|row| (any || named.contains(&row.id)) && record_first_time(home, &row.id, what));
    Ok(in_words(&open, what == FETCH_FILE))
}

fn in_words(open: &[JobRow], fetch: bool) -> Option<String> {
    let which: Vec<String> =
        open.iter().map(|row| format!("{} ({}, {})", row.id, row.agent, row.status)).collect();
    let ids: Vec<&str> = open.iter().map(|row| row.id.as_str()).collect();
    let begin = match (which.as_slice(), fetch) {
        ([], _) => return None,
        (_, true) => {
            format!("[baton] What you were given is not the result: {} has not ended.", which.join(", "))
        }
        (_, false) => format!("[baton] {} works in the background.", which.join(", ")),
    };
    Some(format!(
        "{begin} `baton job wait {} --max-wait 8m` waits for the result: give the command a time-out of 600000 ms; exit 2 means not yet, so run it again. \
         The tool wait_job does the same. If you have other work, do that: the result also comes to you as a message. Don't report that it was started as if that \
         were the result.",
        ids.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::event::EventKind;
    use baton_core::tool::ToolUse;
    use serde_json::json;

    fn call(kind: ToolKind, command: Option<&str>, output: Value) -> ToolCall {
        let tool = ToolUse { command: command.map(str::to_owned), ..ToolUse::new(kind, "x") };
        ToolCall {
            kind: EventKind::AfterTool,
            native: String::new(),
            session_id: Some("s".to_owned()),
            cwd: None,
            id: None,
            tool,
            input: Value::Null,
            output: Some(output),
        }
    }

    #[test]
    fn what_a_result_shows() {
        let id = JobId::from_random([9; 8]);
        let named = Some(Sign::Named(vec![id.clone()]));
        let bash = |text: &str| json!({"stdout": text, "stderr": "", "interrupted": false});
        let agent = |text: &str| json!({"status": "completed", "prompt": "Say: Started, waiting.", "content": [{"type": "text", "text": text}]});
        for (kind, command, output, sign) in [
            (ToolKind::Shell, Some("baton job start codex x"), bash(&format!("{id}\n")), named),
            (ToolKind::Shell, Some("ls"), bash("Started, waiting."), None),
            (ToolKind::Shell, Some("baton job wait j"), bash(&format!("job {id} is running")), None),
            (ToolKind::Read, None, json!(format!("{id}")), None),
            (ToolKind::Task, None, agent("Started, waiting."), Some(Sign::Waiting(vec![]))),
            (
                ToolKind::Task,
                None,
                agent(&format!("Job {id} started, waiting.")),
                Some(Sign::Waiting(vec![id.clone()])),
            ),
            (ToolKind::Task, None, json!("Started, waiting."), Some(Sign::Waiting(vec![]))),
            (
                ToolKind::Task,
                None,
                json!([{"type": "text", "text": "<tools-used>Bash</tools-used>\n"}, {"type": "text", "text": "Started, waiting."}]),
                Some(Sign::Waiting(vec![])),
            ),
            (
                ToolKind::Task,
                None,
                json!([{"type": "text", "text": "Line 3."}, {"type": "text", "text": "Started, waiting."}]),
                None,
            ),
            (ToolKind::Task, None, agent("The parser has a bug in line 3."), None),
            (ToolKind::Task, None, json!({"status": "async_launched", "prompt": "Started, waiting."}), None),
            (ToolKind::Write, None, agent("Started, waiting."), None),
        ] {
            assert_eq!(Sign::of(&call(kind.clone(), command, output.clone())), sign, "{kind:?} {output}");
        }
    }

    #[test]
    fn a_thing_is_said_once() {
        let home = tempfile::tempdir().unwrap();
        let id = JobId::from_random([9; 8]);
        assert!(!record_first_time(home.path(), &id, FOLLOW_FILE), "a job without a folder is no job");
        Place::of(home.path(), &id).make().unwrap();
        assert!(record_first_time(home.path(), &id, FOLLOW_FILE));
        assert!(!record_first_time(home.path(), &id, FOLLOW_FILE));
        assert!(record_first_time(home.path(), &id, FETCH_FILE));
    }
}
