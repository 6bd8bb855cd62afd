//! What an agent asks its user, and how baton learns what became of the question.

use crate::agent::Agent;
use crate::call::ToolCall;
use crate::history::Past;
use crate::tools::{self, Tools};
use crate::wake::Read;
use baton_core::approval::{Answer, Extent, Part, Question, Subject};
use baton_core::event::EventKind;
use baton_core::time::Moment;
use baton_core::tool::ToolKind;
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::path::Path;

/// A question that an agent asks its user, read from the payload of a hook or of our plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentQuestion {
    /// The question. Its id is the agent's own, or empty.
    pub question: Question,
    /// The agent's id of the tool call.
    pub call: Option<String>,
    /// Distinguishes this tool and input from others: `fingerprint`.
    pub input: u64,
    /// What the answer needs from the payload, in a form that only the agent's adapter knows.
    pub native: Value,
}

/// A question as it was recorded. baton checks it against the agent's files and processes.
#[derive(Clone, Copy, Debug)]
pub struct RecordedQuestion<'a> {
    /// The agent's own session id.
    pub session_id: &'a str,
    /// The subagent that asks.
    pub subagent: Option<&'a str>,
    /// The agent's process.
    pub pid: Option<i32>,
    pub transcript: Option<&'a Path>,
    pub question: &'a Question,
    /// The agent's id of the tool call.
    pub call: Option<&'a str>,
    /// Distinguishes this tool and input from others.
    pub input: u64,
    pub since: Moment,
    /// The answer that baton has already handed over.
    pub handed: Option<&'a Answer>,
}

/// The files and processes that show what became of a question.
#[derive(Clone, Copy)]
pub struct ProcessProbe<'a> {
    /// Reads a file, or the end of a long one.
    pub read: Read<'a>,
    /// The arguments of each process below this one that started since the question was asked, or
    /// since the answer was handed over.
    pub started_below: &'a dyn Fn(i32) -> Vec<Vec<String>>,
}

/// The status of a question, by the agent's own files and processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionStatus {
    /// The agent still asks.
    Open,
    /// The tool runs, or has run.
    Ran,
    /// The tool was refused.
    Refused,
    /// The question is gone, and nothing shows how it ended.
    Over,
}

/// What our plugin reports about a question that it reported before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionReport {
    /// The agent's own id of the question.
    pub question: String,
    pub outcome: QuestionOutcome,
}

/// What became of a question, as our plugin saw it. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionOutcome {
    /// The agent says that it was answered. The answer may have come from anyone.
    Answered(String),
    /// The agent no longer waits for an answer.
    Dropped(String),
    /// Our answer was accepted, and the effect shows.
    Effective,
    /// The question was answered or dropped before our answer came.
    Gone(String),
    /// Our answer certainly did not reach the agent, which still waits.
    Refused(String),
    /// It is unknown what became of our answer.
    Unsure(String),
}

/// A number that distinguishes a tool and its input from others. The order of the fields does not
/// matter.
pub(crate) fn fingerprint(tool: &str, input: &Value) -> u64 {
    // FNV-1a is the same in each process and version. A collision would only be with a question of
    // the same agent, so forging one gains nothing.
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(tool.as_bytes());
    add_value(input, &mut add);
    hash
}

fn add_value(value: &Value, add: &mut impl FnMut(&[u8])) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            add(b"{");
            for name in names {
                add(name.as_bytes());
                add(b"\0");
                add_value(&fields[name], add);
            }
            add(b"}");
        }
        Value::Array(items) => {
            add(b"[");
            for item in items {
                add_value(item, add);
                add(b",");
            }
            add(b"]");
        }
        other => add(other.to_string().as_bytes()),
    }
}

/// Fields in which an agent explains a call in its own words. Nothing in them runs.
const EXPLANATION_FIELDS: [&str; 3] = ["description", "justification", "explanation"];
/// Fields that limit a command but don't change what it does.
const LIMIT_FIELDS: [&str; 5] = ["timeout", "timeout_ms", "timeoutMs", "yield_time_ms", "max_output_tokens"];

/// A permission for a call of one of an agent's tools, with every field of its input.
pub fn permission(table: &Tools, tool: &str, input: &Value) -> Subject {
    let Some(fields) = tools::fields(table, tool) else { return of_unknown(tool, input) };
    let call = tools::tool(table, tool, input, &[]);
    let is_shell = matches!(call.kind, ToolKind::Shell | ToolKind::TypedInput);
    let named_by_patch = call.patch.as_deref().map(patched).unwrap_or_default();
    let paths = if call.paths.is_empty() { named_by_patch } else { call.paths.clone() };
    let changed = input["old_string"].as_str().zip(input["new_string"].as_str());
    let change = call.patch.clone().or_else(|| changed.map(|(old, new)| change(old, new)));
    let mut parts: Vec<Part> = call.command.iter().map(Part::command).collect();
    if !is_shell || call.command.is_none() {
        parts.extend(paths.iter().map(Part::file));
    }
    parts.extend(call.url.iter().map(|url| Part::new("address", url)));
    parts.extend(change.map(Part::change));
    parts.extend(call.content.iter().map(|content| Part::new("content", content)));
    let known: Vec<&str> = [&call.command, &call.patch, &call.url, &call.content]
        .into_iter()
        .filter_map(Option::as_deref)
        .chain(call.paths.iter().map(String::as_str))
        .chain(changed.iter().flat_map(|(old, new)| [*old, *new]))
        .collect();
    let is_new = |name: &str, value: &Value| {
        let bounds = is_shell && LIMIT_FIELDS.contains(&name) && value.is_number();
        let words = is_shell && EXPLANATION_FIELDS.contains(&name) && value.is_string();
        // The name must match too: another field with the same text means something else.
        let has_place =
            matches!(name, "old_string" | "new_string") || fields.iter().any(|(_, key)| *key == name);
        let shown = has_place && value.as_str().is_some_and(|text| known.contains(&text));
        !bounds && !words && !value.is_null() && !shown
    };
    match input {
        Value::Object(fields) => {
            let more = fields.iter().filter(|(name, value)| is_new(name, value));
            parts.extend(more.map(|(name, value)| Part::new(name, in_words(value))));
        }
        Value::Null => {}
        other => parts.push(Part::new("input", in_words(other))),
    }
    let subject = Subject::permission(Some(tool), parts, Extent::Whole);
    let said = EXPLANATION_FIELDS.iter().filter(|_| is_shell).map(|name| input[*name].as_str());
    said.fold(subject, Subject::with_note)
}

/// A permission for a tool that is in no table, such as that of an MCP server. Each field keeps its
/// name, because only the tool knows what it means.
fn of_unknown(tool: &str, input: &Value) -> Subject {
    let parts = match input {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| Part::new(name, in_words(value))).collect()
        }
        Value::Null => Vec::new(),
        other => vec![Part::new("input", in_words(other))],
    };
    Subject::permission(Some(tool), parts, Extent::Whole)
}

/// A value as people read it: a text unchanged, everything else as JSON.
pub fn in_words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How the id of a question begins that a guard rule asks, not the agent.
const GUARD_QUESTION_PREFIX: &str = "call-";

/// Whether a guard rule asks this question, by its id.
pub fn is_guard_question(id: &str) -> bool {
    id.starts_with(GUARD_QUESTION_PREFIX)
}

/// The question about a call that a guard rule wants confirmed. `process` is the process that asks.
pub fn guard_question(table: &Tools, call: &ToolCall, process: u32) -> AgentQuestion {
    question_about_call(table, call, format!("{GUARD_QUESTION_PREFIX}{process}"))
}

/// The same with another id.
pub(crate) fn question_about_call(table: &Tools, call: &ToolCall, id: String) -> AgentQuestion {
    let question = Question::new(id, permission(table, &call.tool.native, &call.input));
    let input = fingerprint(&call.tool.native, &call.input);
    AgentQuestion { question, call: call.id.clone(), input, native: Value::Null }
}

/// The status of such a question after its answer was handed over: by the shell that runs the
/// command, or by the result of the call in the transcript. An agent that was told to refuse a call
/// gives the reason as the result.
pub fn guard_question_status(
    agent: &dyn Agent,
    asking: &RecordedQuestion<'_>,
    probe: ProcessProbe<'_>,
) -> Option<QuestionStatus> {
    let allowed = !matches!(asking.handed?, Answer::Deny(_));
    let is_shell =
        |tool: &str| matches!(tools::kind(agent.tools(), tool, &[]), ToolKind::Shell | ToolKind::TypedInput);
    // The input of another tool is in no process's arguments, except by chance.
    let subject = &asking.question.subject;
    let command = subject
        .as_command()
        .filter(|command| allowed && !command.trim().is_empty() && subject.tool().is_some_and(is_shell));
    if let Some((command, pid)) = command.zip(asking.pid)
        && (probe.started_below)(pid).iter().flatten().any(|argument| argument.contains(command))
    {
        return Some(QuestionStatus::Ran);
    }
    let file = asking.transcript?;
    let written = (probe.read)(file)?;
    let mut reader = agent.history_reader(file);
    let past: Vec<Past> = String::from_utf8_lossy(&written).lines().flat_map(&mut reader).collect();
    let is_made = |past: &&Past| {
        let same_id = asking.call.is_some() && past.call.id.as_deref() == asking.call;
        let same = fingerprint(&past.call.tool.native, &past.call.input) == asking.input;
        past.call.kind == EventKind::BeforeTool && (same_id || same)
    };
    let made = past.iter().rev().find(is_made)?;
    let is_later = |past: &Past| past.at.is_none_or(|at| at >= asking.since);
    let is_its = |past: &&Past| past.call.kind == EventKind::AfterTool && past.call.id == made.call.id;
    let gave = past.iter().rev().filter(|past| is_later(past)).find(is_its)?;
    let output = gave.call.output.as_ref().map(Value::to_string).unwrap_or_default();
    let refused = match asking.handed {
        // As it is written inside a JSON text.
        Some(Answer::Deny(why)) => output.contains(json!(why).to_string().trim_matches('"')),
        _ => false,
    };
    Some(if refused { QuestionStatus::Refused } else { QuestionStatus::Ran })
}

/// A change as lines that go (`-`) and lines that come (`+`).
pub fn change(old: &str, new: &str) -> String {
    let ends_alike = old.is_empty() || new.is_empty() || old.ends_with('\n') == new.ends_with('\n');
    let side = |mark: char, text: &str| -> String {
        let lines = text.split_inclusive('\n').map(|line| format!("{mark}{}\n", line.trim_end_matches('\n')));
        let no_end = if ends_alike || text.ends_with('\n') { "" } else { "\\ No newline at the end\n" };
        lines.collect::<String>() + no_end
    };
    side('-', old) + &side('+', new)
}

/// The files that a patch in the format of `apply_patch` names.
pub fn patched(patch: &str) -> Vec<String> {
    let marks = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let named =
        |line: &str| marks.iter().find_map(|mark| line.strip_prefix(mark)).map(|file| file.trim().to_owned());
    patch.lines().filter_map(named).collect()
}

/// A question in the form that the store keeps.
pub fn to_json(question: &Question) -> Value {
    json!({"id": question.id, "subject": question.subject})
}

/// Reads the output of [`to_json`]. Older versions wrote only a line of text, or a line and
/// details.
pub fn from_json(value: &Value) -> Option<Question> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let id = text("id")?;
    if let Some(subject) = value.get("subject") {
        return Some(Question::new(id, Subject::deserialize(subject).ok()?));
    }
    let words = text("detail").or_else(|| text("what"))?;
    let parts = vec![Part::new("it says", words)];
    let subject = match value["kind"].as_str() {
        Some("input") => Subject::input(text("tool").as_deref(), parts, Vec::new()),
        _ => Subject::permission(text("tool").as_deref(), parts, Extent::NoMore),
    };
    Some(Question::new(id, subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_goes_by_content() {
        let one = json!({"command": "ls", "timeout": 5});
        let turned = json!({"timeout": 5, "command": "ls"});
        assert_eq!(fingerprint("Bash", &one), fingerprint("Bash", &turned));
        for (tool, other) in [
            ("Read", one.clone()),
            ("Bash", json!({"command": "ls -l", "timeout": 5})),
            ("Bash", json!({"command": ["ls"], "timeout": 5})),
            ("Bash", json!({"command": "ls"})),
        ] {
            assert_ne!(fingerprint("Bash", &one), fingerprint(tool, &other), "{tool} {other}");
        }
        assert_ne!(fingerprint("t", &json!(["a", "b"])), fingerprint("t", &json!(["ab"])));
    }

    #[test]
    fn s1_every_field_of_a_call_is_asked_about() {
        let table = &crate::claude::tools::TOOLS;
        let input = json!({"command": "make\nrm x", "description": "builds", "timeout": 5, "dangerouslyDisableSandbox": true});
        let asked = permission(table, "Bash", &input);
        assert_eq!(asked.as_command(), Some("make\nrm x"));
        assert_eq!(asked.part("dangerouslyDisableSandbox"), Some("true"));
        assert_eq!((asked.notes(), asked.part("timeout")), (&["builds".to_owned()][..], None));
        let edit = json!({"file_path": "/p/a", "old_string": "a\nb", "new_string": "c", "replace_all": true});
        let asked = permission(table, "Edit", &edit);
        assert_eq!((asked.paths(), asked.as_change()), (vec!["/p/a"], Some("-a\n-b\n+c\n")));
        assert_eq!(asked.part("replace_all"), Some("true"));
        let other = permission(table, "mcp__files__drop", &json!({"name": "x", "more": {"deep": [1, 2]}}));
        assert_eq!((other.part("name"), other.part("more")), (Some("x"), Some(r#"{"deep":[1,2]}"#)));
    }

    #[test]
    fn s1_no_field_hides_behind_another_with_the_same_text() {
        let table = &crate::claude::tools::TOOLS;
        let shell = permission(table, "Bash", &json!({"command": "ls", "shell": "ls", "timeout": "rm -r /"}));
        assert_eq!((shell.part("shell"), shell.part("timeout")), (Some("ls"), Some("rm -r /")));
        // Only the tool itself knows which field matters, so each keeps its name.
        let copy = json!({"source": "/a", "destination": "/a", "description": "x", "to": {"path": "/a"}, "force": null});
        let asked = permission(table, "mcp__files__copy", &copy);
        let shown: Vec<&str> = asked.parts().iter().map(Part::name).collect();
        assert_eq!(shown.len(), 5, "{shown:?}");
        assert_eq!((asked.part("source"), asked.part("destination")), (Some("/a"), Some("/a")));
        assert_eq!(
            (asked.part("description"), asked.notes()),
            (Some("x"), &[][..]),
            "it may be what is sent"
        );
        let empty = permission(table, "Write", &json!({"file_path": "/p/a", "content": ""}));
        assert!(!empty.head_is_whole(), "{}", empty.head());
        let words = json!({"command": "ls", "description": "one", "justification": "two"});
        assert_eq!(permission(table, "Bash", &words).notes(), ["one", "two"]);
    }

    #[test]
    fn s1_a_change_shows_each_end_of_a_line() {
        assert_eq!(change("a\nb", "c"), "-a\n-b\n+c\n");
        assert_eq!(change("a\r\nb", "a\nb"), "-a\r\n-b\n+a\n+b\n");
        assert_eq!(change("a", "a\n"), "-a\n\\ No newline at the end\n+a\n");
        assert_eq!(change("", "a\n\n"), "+a\n+\n");
    }

    #[test]
    fn only_a_command_is_seen_to_run_by_a_process() {
        let started = |_: i32| vec![vec!["bash".to_owned(), "-c".to_owned(), "make x".to_owned()]];
        let stands = |tool: &str, detail: &str, answer: &Answer| {
            let question = Question::new("", Subject::command(tool, detail));
            let asking = RecordedQuestion {
                session_id: "s",
                subagent: None,
                pid: Some(1),
                transcript: None,
                question: &question,
                call: None,
                input: 0,
                since: Moment(0),
                handed: Some(answer),
            };
            let probe = ProcessProbe { read: &|_| None, started_below: &started };
            guard_question_status(&crate::pi::Pi, &asking, probe)
        };
        assert_eq!(stands("bash", "make x", &Answer::Allow), Some(QuestionStatus::Ran));
        assert_eq!(stands("bash", "make y", &Answer::Allow), None);
        assert_eq!(stands("bash", "make x", &Answer::Deny("no".into())), None);
        assert_eq!(stands("bash", " ", &Answer::Allow), None);
        assert_eq!(stands("write", "x", &Answer::Allow), None, "the text of a file, by chance");
    }

    #[test]
    fn questions_read_back() {
        let parts = vec![Part::question("which \"one\"?", &[("a".into(), "the first".into())])];
        let subject = Subject::input(Some("bash"), parts, vec!["a".into(), "b".into()]);
        let question = Question::new("per_1", subject.with_always(Some("bash *".into())));
        assert_eq!(from_json(&to_json(&question)), Some(question));
        let old = from_json(&json!({"id": "1", "what": "x", "kind": "permission", "tool": "bash"}));
        assert_eq!(old.map(|old| old.subject.head_is_whole()), Some(false), "it may have been cut");
        assert_eq!(from_json(&json!({"id": "1"})), None);
    }
}
