//! What Claude Code asks its user, which answers its hook takes, and how baton sees that a question
//! is over.
//!
//! The `PermissionRequest` hook runs beside the dialog. The first answer wins; the other is ignored
//! silently. A question has no id and names no call, so baton finds the call in the transcript by
//! tool and input. The result of a call there says whether it was refused. While a tool runs,
//! nothing is written: baton recognises a command by the shell that runs it, and anything else by
//! the registry, which says `waiting` while a dialog is open. Without a terminal, and for a
//! subagent in the background, the registry never says so.

use crate::asked::{self, AgentQuestion, ProcessProbe, QuestionStatus, RecordedQuestion, fingerprint};
use crate::history::moment;
use crate::payload;
use baton_core::approval::{Answer, Part, Question, QuestionKind, Subject, in_a_list};
use baton_core::event::Event;
use baton_core::time::Span;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The event whose hook can answer.
const QUESTION_EVENT: &str = "PermissionRequest";
/// The tool that asks the user questions. It does not exist without a terminal.
const QUESTION_TOOL: &str = "AskUserQuestion";
/// A hook can only refuse this tool, not allow it.
const PLAN_TOOL: &str = "ExitPlanMode";
/// Within this time after a question, the registry may still describe what came before.
const REGISTRY_DELAY: Span = Span(800);

#[derive(Deserialize)]
struct Payload {
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    permission_suggestions: Vec<Value>,
}

pub(super) fn asked(payload: &[u8], event: &Event) -> Option<AgentQuestion> {
    if event.native != QUESTION_EVENT {
        return None;
    }
    let Payload { tool_name, tool_input, permission_suggestions } = payload::owned(payload).ok()?;
    let always = for_the_session(&permission_suggestions);
    let questions = questions(&tool_name, &tool_input);
    let subject = if questions.is_empty() {
        asked::permission(&super::tools::TOOLS, &tool_name, &tool_input).with_always(in_words(&always))
    } else {
        to_a_person(&tool_name, &questions)
    };
    Some(AgentQuestion {
        question: Question::new("", subject),
        call: event.calls.first().cloned(),
        input: fingerprint(&tool_name, &tool_input),
        native: json!({"input": tool_input, "always": always}),
    })
}

/// The rule for "always" that it suggests, limited to this session: its own suggestion may be to
/// write into the project's settings. A suggestion that can't be shown as an exact rule is not
/// granted. If one has a field that baton does not know, there is no "always" at all.
pub fn for_the_session(suggestions: &[Value]) -> Vec<Value> {
    if suggestions.iter().any(has_unknown_fields) {
        return Vec::new();
    }
    let known: Vec<&Value> = suggestions.iter().filter(|one| rule(one).is_some()).collect();
    let has_rules = known.iter().any(|one| one["type"] == "addRules");
    let chosen = known.into_iter().filter(|one| !has_rules || one["type"] == "addRules");
    chosen
        .map(|one| {
            let mut one = one.clone();
            one["destination"] = "session".into();
            one
        })
        .collect()
}

/// Whether a suggestion of a known type has something that [`rule`] does not show.
fn has_unknown_fields(one: &Value) -> bool {
    let beyond = |value: &Value, known: &[&str]| {
        value.as_object().is_none_or(|fields| fields.keys().any(|name| !known.contains(&name.as_str())))
    };
    match one["type"].as_str() {
        Some("addRules") => {
            let rules = one["rules"].as_array().into_iter().flatten();
            beyond(one, &["type", "rules", "behavior", "destination"])
                || rules.into_iter().any(|rule| beyond(rule, &["toolName", "ruleContent"]))
        }
        Some("addDirectories") => beyond(one, &["type", "directories", "destination"]),
        Some("setMode") => beyond(one, &["type", "mode", "destination"]),
        _ => false,
    }
}

/// The exact rule of a suggestion, as Claude Code applies it; `None` if it allows nothing, or
/// something unknown.
fn rule(one: &Value) -> Option<String> {
    match one["type"].as_str()? {
        "addRules" if one["behavior"] == "allow" => {
            let rules = one["rules"].as_array().filter(|rules| !rules.is_empty())?;
            let words = rules.iter().map(|rule| {
                let is_name = |tool: &&str| {
                    !tool.is_empty() && tool.chars().all(|c| c.is_alphanumeric() || "_-.:/@*".contains(c))
                };
                let tool = rule["toolName"].as_str().filter(is_name)?;
                Some(match rule.get("ruleContent") {
                    Some(Value::String(what)) if !what.is_empty() => format!("{tool}({})", in_a_list(what)),
                    None | Some(Value::Null) => format!("every use of {tool}"),
                    _ => return None,
                })
            });
            Some(words.collect::<Option<Vec<_>>>()?.join(", "))
        }
        "addDirectories" => {
            let folders = one["directories"].as_array().filter(|folders| !folders.is_empty())?;
            let folders: Option<Vec<String>> =
                folders.iter().map(|folder| folder.as_str().map(in_a_list)).collect();
            Some(format!("files in {}", folders?.join(", ")))
        }
        "setMode" if one["mode"] == "acceptEdits" => {
            Some("all changes of files, and commands that only change files (mode acceptEdits)".to_owned())
        }
        _ => None,
    }
}

/// The text of the rule that [`for_the_session`] chose.
pub fn in_words(always: &[Value]) -> Option<String> {
    let all: Vec<String> = always.iter().filter_map(rule).collect();
    (!all.is_empty()).then(|| format!("for the rest of the session: {}", all.join("; ")))
}

/// One question of `QUESTION_TOOL`, with its choices and their meanings.
pub type Choice = (String, Vec<(String, String)>);

/// The questions of `QUESTION_TOOL`, each with its choices.
pub fn questions(tool: &str, input: &Value) -> Vec<Choice> {
    let list = input["questions"].as_array().filter(|_| tool == QUESTION_TOOL);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let choices = |one: &Value| {
        let options = one["options"].as_array().into_iter().flatten();
        options.map(|option| (text(&option["label"]), text(&option["description"]))).collect()
    };
    list.into_iter().flatten().map(|one| (text(&one["question"]), choices(one))).collect()
}

/// The hint for several questions: one line answers each.
pub fn to_a_person(tool: &str, questions: &[Choice]) -> Subject {
    let parts = questions.iter().map(|(words, choices)| Part::question(words, choices)).collect();
    let choices = match questions {
        [(_, choices)] => choices.iter().map(|(label, _)| label.clone()).collect(),
        _ => Vec::new(),
    };
    Subject::input(Some(tool), parts, choices)
}

/// The answer as the hook prints it.
pub(super) fn render(asked: &AgentQuestion, answer: &Answer) -> Option<String> {
    let allow = json!({"behavior": "allow"});
    let decision = match (answer, asked.question.kind()) {
        (Answer::Deny(why), _) => {
            let why = if why.trim().is_empty() { "A person said no to that." } else { why };
            json!({"behavior": "deny", "message": why})
        }
        (Answer::Allow | Answer::AllowAlways, QuestionKind::Permission)
            if asked.question.subject.tool() == Some(PLAN_TOOL) =>
        {
            return None;
        }
        (Answer::Allow, QuestionKind::Permission) => allow,
        (Answer::AllowAlways, QuestionKind::Permission) => {
            let always = &asked.native["always"];
            always.as_array().filter(|always| !always.is_empty())?;
            with(allow, "updatedPermissions", always.clone())
        }
        (Answer::Words(words), QuestionKind::Input) => {
            with(allow, "updatedInput", answered(&asked.native["input"], words))
        }
        _ => return None,
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": QUESTION_EVENT, "decision": decision}}).to_string())
}

fn with(mut decision: Value, name: &str, value: Value) -> Value {
    decision[name] = value;
    decision
}

/// The input with an answer to each question: one line each if there are as many lines as
/// questions, else the whole text for each.
fn answered(input: &Value, words: &str) -> Value {
    let questions = questions(QUESTION_TOOL, input);
    let lines: Vec<&str> = words.trim().lines().collect();
    let one_each = lines.len() == questions.len();
    let answers: Map<String, Value> = questions
        .into_iter()
        .enumerate()
        .map(|(number, (question, _))| {
            let answer = lines.get(number).filter(|_| one_each).map_or(words.trim(), |line| line.trim());
            (question, answer.into())
        })
        .collect();
    with(input.clone(), "answers", answers.into())
}

/// Whether no user sits in front of it. If it has a tool for permissions, another program asks, and
/// may show the question to a person.
pub(super) fn is_headless(args: &[String], attended: Option<&str>) -> bool {
    let flag = |name: &str| option(args, name).is_some();
    !flag("--permission-prompt-tool") && (attended == Some("0") || flag("-p") || flag("--print"))
}

/// Whether it asks no one. Its hook runs in any case.
pub(super) fn asks_nobody(args: &[String]) -> bool {
    option(args, "--permission-prompts") == Some("none")
}

/// The value of an option, as `--option value` or `--option=value`; empty if there is none.
fn option<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix(name)? {
        "" => Some(args.get(at + 1).map_or("", String::as_str)),
        rest => rest.strip_prefix('='),
    })
}

pub(super) fn question_status(
    asking: &RecordedQuestion<'_>,
    registry: Option<PathBuf>,
    probe: ProcessProbe<'_>,
) -> Option<QuestionStatus> {
    let conversation = asking.transcript.and_then(|main| (probe.read)(&conversation(main, asking.subagent)));
    conversation
        .and_then(|lines| by_transcript(&String::from_utf8_lossy(&lines), asking))
        .or_else(|| by_process(asking, probe))
        .or_else(|| by_registry(&(probe.read)(&registry?)?, asking))
}

/// The transcript of a subagent is beside its parent's, which the payloads name.
fn conversation(main: &Path, subagent: Option<&str>) -> PathBuf {
    match subagent {
        Some(subagent) => main.with_extension("").join("subagents").join(format!("agent-{subagent}.jsonl")),
        None => main.to_owned(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    message: Message,
    #[serde(default)]
    tool_denial_kind: Option<Value>,
    #[serde(default)]
    permission_decision: Value,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    content: Value,
}

/// By the result of the call, which is below it. If several calls are alike, only by an end that
/// all of them share.
fn by_transcript(lines: &str, asking: &RecordedQuestion<'_>) -> Option<QuestionStatus> {
    // By the call's id; `None` for a call that ended before the question.
    let mut ends: HashMap<String, Option<QuestionStatus>> = HashMap::new();
    let mut found: Vec<Option<QuestionStatus>> = Vec::new();
    for line in
        lines.rsplit('\n').filter(|line| line.contains("\"tool_result\"") || line.contains("\"tool_use\""))
    {
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        let blocks = line.message.content.as_array().into_iter().flatten();
        if line.kind == "user" {
            if !found.is_empty() {
                break;
            }
            let refused = line.tool_denial_kind.is_some() || line.permission_decision["decision"] == "reject";
            let end = if refused { QuestionStatus::Refused } else { QuestionStatus::Ran };
            let is_later = moment(&line.timestamp).is_some_and(|at| at >= asking.since);
            let ended = blocks
                .filter(|block| block["type"] == "tool_result")
                .filter_map(|b| b["tool_use_id"].as_str());
            ends.extend(ended.map(|id| (id.to_owned(), is_later.then_some(end))));
        } else if line.kind == "assistant" {
            for block in blocks.filter(|block| block["type"] == "tool_use") {
                let tool = block["name"].as_str().unwrap_or_default();
                if fingerprint(tool, &block["input"]) != asking.input {
                    continue;
                }
                match block["id"].as_str().and_then(|id| ends.get(id)) {
                    Some(None) => return agreed(&found),
                    Some(end) => found.push(*end),
                    None => found.push(None),
                }
            }
        }
    }
    agreed(&found)
}

fn agreed(found: &[Option<QuestionStatus>]) -> Option<QuestionStatus> {
    let first = *found.first()?;
    found.iter().all(|one| *one == first).then_some(first)?
}

/// A command runs in a shell below Claude Code, which gets the command in quotes.
fn by_process(asking: &RecordedQuestion<'_>, probe: ProcessProbe<'_>) -> Option<QuestionStatus> {
    if matches!(asking.handed, Some(Answer::Deny(_))) {
        // It would be another call of the same command, or an answer that was faster than ours. The
        // transcript will show it.
        return None;
    }
    let subject = &asking.question.subject;
    let command = subject.as_command().filter(|_| subject.tool() == Some("Bash"))?;
    let run = format!("eval '{}'", command.replace('\'', r#"'"'"'"#));
    let started = (probe.started_below)(asking.pid?);
    started.iter().flatten().any(|argument| argument.contains(&run)).then_some(QuestionStatus::Ran)
}

/// The registry says `waiting` while any dialog is open, so without it none is open. It does not
/// say who closed the dialog: a call that we denied may still run.
fn by_registry(entry: &[u8], asking: &RecordedQuestion<'_>) -> Option<QuestionStatus> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        session_id: String,
        status: String,
        status_updated_at: i64,
    }
    if asking.subagent.is_some() {
        return None;
    }
    let entry: Entry = serde_json::from_slice(entry).ok()?;
    let is_later = entry.status_updated_at >= asking.since.plus(REGISTRY_DELAY).0;
    if entry.session_id != asking.session_id || !is_later {
        return None;
    }
    match (entry.status.as_str(), asking.handed) {
        ("waiting", _) => Some(QuestionStatus::Open),
        ("busy" | "idle", None) => Some(QuestionStatus::Over),
        ("busy", Some(answer)) if !matches!(answer, Answer::Deny(_)) => Some(QuestionStatus::Ran),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
