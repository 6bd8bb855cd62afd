//! What an agent asks its person, and how one sees that the question is over.

use crate::agent::Agent;
use crate::call::Call;
use crate::history::Past;
use crate::tools::{self, Tools};
use crate::wake::Read;
use baton_core::approval::{Answer, Question, QuestionKind};
use baton_core::event::EventKind;
use baton_core::time::Moment;
use baton_core::tool::ToolKind;
use serde_json::{Value, json};
use std::path::Path;

/// What an agent asks its person, read from the payload of a hook or of our plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What is asked. Its id is the agent's own, or empty.
    pub question: Question,
    /// The agent's id of the tool call.
    pub call: Option<String>,
    /// Tells the tool and its input from others: [`fingerprint`].
    pub input: u64,
    /// What the answer will need of the payload, in whatever form its agent likes.
    pub native: Value,
}

/// A question that was recorded, for the agent's own files and processes to be asked about it.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The agent's own session id.
    pub session_id: &'a str,
    /// The subagent that asks.
    pub subagent: Option<&'a str>,
    /// The agent's process.
    pub pid: Option<i32>,
    /// Where it writes the conversation down.
    pub transcript: Option<&'a Path>,
    /// What was asked.
    pub question: &'a Question,
    /// The agent's id of the tool call.
    pub call: Option<&'a str>,
    /// Tells the tool and its input from others.
    pub input: u64,
    /// When it was asked.
    pub since: Moment,
    /// The answer that has left our hands.
    pub handed: Option<&'a Answer>,
}

/// What can be looked at.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Reads a file, or its end where it is long.
    pub read: Read<'a>,
    /// The arguments of each process below one that has started since the question was asked, or since the answer left our hands.
    pub started_below: &'a dyn Fn(i32) -> Vec<Vec<String>>,
}

/// How a question stands, as its agent's own files and processes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The agent still asks.
    Open,
    /// The tool runs, or has run.
    Ran,
    /// The tool was refused.
    Refused,
    /// The question is gone; nothing says how.
    Over,
}

/// What our plugin says about a question that it has told of before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The agent's own id of the question.
    pub question: String,
    /// What became of it.
    pub how: Settlement,
}

/// What became of a question, as our plugin saw it. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The agent says that it was answered, by whomever.
    Answered(String),
    /// The agent does not wait for it any more.
    Dropped(String),
    /// Our answer was taken, and shows.
    Effective,
    /// It was answered or dropped before our answer came.
    Gone(String),
    /// Our answer did not reach the agent, for certain, and it still waits.
    Refused(String),
    /// Nobody knows what became of our answer.
    Unsure(String),
}

/// Tells a tool and its input from others, in whatever order its fields come.
pub fn fingerprint(tool: &str, input: &Value) -> u64 {
    // FNV-1a: the same in each process and version, and nobody gains anything by a collision with his own question.
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

/// The most of a command or a change that is kept, in characters.
const DETAIL: usize = 20_000;
/// The most that is said in the one line, in characters.
const LINE: usize = 200;

/// A permission for a call of one of an agent's tools. The detail of a command is the command.
pub fn permission(table: &Tools, tool: &str, input: &Value) -> Question {
    let call = tools::tool(table, tool, input, &[]);
    let named_by_patch = call.patch.as_deref().map(patched).unwrap_or_default();
    let paths = if call.paths.is_empty() { named_by_patch } else { call.paths.clone() };
    let plain = input.as_object().is_none_or(|fields| !fields.is_empty()).then(|| input.to_string());
    let about = match call.kind {
        ToolKind::Shell | ToolKind::TypedInput => call.command.clone(),
        _ => (!paths.is_empty()).then(|| paths.join(", ")),
    };
    let about = about.or_else(|| call.command.clone()).or_else(|| call.url.clone()).or_else(|| plain.clone());
    let changed = input["old_string"].as_str().zip(input["new_string"].as_str());
    let detail = call.command.or(call.patch).or_else(|| changed.map(|(old, new)| change(old, new)));
    let detail = detail.or(call.content).or(plain);
    Question {
        tool: Some(tool.to_owned()),
        what: about.map_or_else(|| tool.to_owned(), |about| format!("{tool}: {}", line(&about))),
        detail: detail.map(|detail| detail.chars().take(DETAIL).collect()),
        paths,
        ..Question::default()
    }
}

/// How the ids of questions begin that a rule of ours asks, not the agent.
const OF_CALL: &str = "call-";

/// Whether a rule of ours asks a question, by its id.
pub fn is_of_call(id: &str) -> bool {
    id.starts_with(OF_CALL)
}

/// What is asked about a call where a rule of ours wants that, by a process of ours.
pub fn of_call(table: &Tools, call: &Call, process: u32) -> Asked {
    about_call(table, call, format!("{OF_CALL}{process}"))
}

/// The same under an id of the caller's.
pub fn about_call(table: &Tools, call: &Call, id: String) -> Asked {
    let question = Question { id, ..permission(table, &call.tool.native, &call.input) };
    let input = fingerprint(&call.tool.native, &call.input);
    Asked { question, call: call.id.clone(), input, native: Value::Null }
}

/// How such a question stands once its answer has left our hands: by the shell that runs the command, or by what the transcript says that the call gave back. An agent that was told to
/// refuse it gives back why.
pub fn standing_of_call(agent: &dyn Agent, asking: &Asking<'_>, look: Look<'_>) -> Option<Standing> {
    let allowed = !matches!(asking.handed?, Answer::Deny(_));
    let is_shell = |tool: &String| {
        matches!(tools::kind(agent.tools(), tool, &[]), ToolKind::Shell | ToolKind::TypedInput)
    };
    // What another tool is given stands in no process's arguments, unless by chance.
    let command = asking.question.detail.as_deref().filter(|command| {
        allowed && !command.trim().is_empty() && asking.question.tool.as_ref().is_some_and(is_shell)
    });
    if let Some((command, pid)) = command.zip(asking.pid)
        && (look.started_below)(pid).iter().flatten().any(|argument| argument.contains(command))
    {
        return Some(Standing::Ran);
    }
    let file = asking.transcript?;
    let written = (look.read)(file)?;
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
        // As it stands inside of a text.
        Some(Answer::Deny(why)) => output.contains(json!(why).to_string().trim_matches('"')),
        _ => false,
    };
    Some(if refused { Standing::Refused } else { Standing::Ran })
}

/// The beginning of a text, in one line.
pub fn line(text: &str) -> String {
    let text = text.trim();
    let first = text.lines().next().unwrap_or_default();
    let mut line: String = first.chars().filter(|c| !c.is_control()).take(LINE).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    line
}

fn change(old: &str, new: &str) -> String {
    let side =
        |mark: char, text: &str| -> String { text.lines().map(|line| format!("{mark}{line}\n")).collect() };
    side('-', old) + &side('+', new)
}

/// The files that a patch names, as `apply_patch` has them.
pub fn patched(patch: &str) -> Vec<String> {
    let marks = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let named =
        |line: &str| marks.iter().find_map(|mark| line.strip_prefix(mark)).map(|file| file.trim().to_owned());
    patch.lines().filter_map(named).collect()
}

/// A question as it is kept and shown.
pub fn to_json(question: &Question) -> Value {
    let kind = match question.kind {
        QuestionKind::Permission => "permission",
        QuestionKind::Input => "input",
    };
    json!({
        "id": question.id,
        "kind": kind,
        "tool": question.tool,
        "what": question.what,
        "detail": question.detail,
        "paths": question.paths,
        "always": question.always,
        "choices": question.choices,
    })
}

/// Reads [`to_json`]; what an older version did not write is empty.
pub fn from_json(value: &Value) -> Option<Question> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let list = |name: &str| {
        let items = value[name].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Some(Question {
        id: text("id")?,
        kind: if value["kind"] == "input" { QuestionKind::Input } else { QuestionKind::Permission },
        tool: text("tool"),
        what: text("what")?,
        detail: text("detail"),
        paths: list("paths"),
        always: text("always"),
        choices: list("choices"),
        ..Question::default()
    })
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
    fn only_a_command_is_seen_to_run_by_a_process() {
        let started = |_: i32| vec![vec!["bash".to_owned(), "-c".to_owned(), "make x".to_owned()]];
        let stands = |tool: &str, detail: &str, answer: &Answer| {
            let question =
                Question { tool: Some(tool.into()), detail: Some(detail.into()), ..Question::default() };
            let asking = Asking {
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
            let look = Look { read: &|_| None, started_below: &started };
            standing_of_call(&crate::pi::Pi, &asking, look)
        };
        assert_eq!(stands("bash", "make x", &Answer::Allow), Some(Standing::Ran));
        assert_eq!(stands("bash", "make y", &Answer::Allow), None);
        assert_eq!(stands("bash", "make x", &Answer::Deny("no".into())), None);
        assert_eq!(stands("bash", " ", &Answer::Allow), None);
        assert_eq!(stands("write", "x", &Answer::Allow), None, "the text of a file, by chance");
    }

    #[test]
    fn questions_read_back() {
        let question = Question {
            id: "per_1".into(),
            kind: QuestionKind::Input,
            what: "which \"one\"?".into(),
            choices: vec!["a".into(), "b".into()],
            tool: Some("bash".into()),
            detail: Some("a\nb".into()),
            paths: vec!["/x".into()],
            always: Some("bash *".into()),
            ..Question::default()
        };
        assert_eq!(from_json(&to_json(&question)), Some(question));
        assert_eq!(from_json(&json!({"id": "1", "what": "x"})), Some(Question::permission("1", "x")));
        assert_eq!(from_json(&json!({"id": "1"})), None);
    }
}
