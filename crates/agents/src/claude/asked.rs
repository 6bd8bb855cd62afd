//! What Claude Code asks its person, the answers that its hook takes, and how one sees that a question is over.
//!
//! The `PermissionRequest` hook runs beside the dialog, and the first answer wins; the other is ignored without a word. A question has no id and names
//! no call, so its call is found in the transcript by tool and input. There the result of a call says whether it was refused. While a tool runs
//! nothing is written: a command is then known by the shell that runs it, anything else by the registry, which says `waiting` as long as a dialog is
//! open. Without a terminal, and for a subagent in the background, the registry never says so.

use crate::asked::{self, Asked, Asking, Look, Standing, fingerprint};
use crate::history::moment;
use crate::payload;
use baton_core::approval::{Answer, Question, QuestionKind};
use baton_core::event::Event;
use baton_core::time::Span;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The event whose hook can answer.
const EVENT: &str = "PermissionRequest";
/// Its questions to the person. There is no such tool without a terminal.
const QUESTIONS: &str = "AskUserQuestion";
/// It takes no yes from a hook, only a no.
const PLAN: &str = "ExitPlanMode";
/// What the registry says sooner after a question may still be about what came before it.
const SETTLED: Span = Span(800);

#[derive(Deserialize)]
struct Payload {
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    permission_suggestions: Vec<Value>,
}

/// Reads a question.
pub(super) fn asked(payload: &[u8], event: &Event) -> Option<Asked> {
    if event.native != EVENT {
        return None;
    }
    let Payload { tool_name, tool_input, permission_suggestions } = payload::owned(payload).ok()?;
    let always = for_the_session(&permission_suggestions);
    let mut question = asked::permission(&super::tools::TOOLS, &tool_name, &tool_input);
    question.always = in_words(&always);
    let questions = questions(&tool_name, &tool_input);
    if !questions.is_empty() {
        question = to_a_person(&tool_name, &questions);
    }
    Some(Asked {
        question,
        call: event.calls.first().cloned(),
        input: fingerprint(&tool_name, &tool_input),
        native: json!({"input": tool_input, "always": always}),
    })
}

/// What it suggests for "always", for the rest of the session only: its own suggestion may be to write into the project's settings.
fn for_the_session(suggestions: &[Value]) -> Vec<Value> {
    let has_rules = suggestions.iter().any(|one| one["type"] == "addRules");
    let chosen = suggestions.iter().filter(|one| !has_rules || one["type"] == "addRules");
    chosen
        .map(|one| {
            let mut one = one.clone();
            one["destination"] = "session".into();
            one
        })
        .collect()
}

fn in_words(always: &[Value]) -> Option<String> {
    let words = |one: &Value| match one["type"].as_str().unwrap_or_default() {
        "addRules" => {
            let rules = one["rules"].as_array().into_iter().flatten().map(|rule| {
                let tool = rule["toolName"].as_str().unwrap_or("any tool");
                rule["ruleContent"].as_str().map_or_else(|| tool.to_owned(), |what| format!("{tool}({what})"))
            });
            rules.collect::<Vec<_>>().join(", ")
        }
        "addDirectories" => {
            let folders = one["directories"].as_array().into_iter().flatten().filter_map(Value::as_str);
            format!("files in {}", folders.collect::<Vec<_>>().join(", "))
        }
        "setMode" if one["mode"] == "acceptEdits" => {
            "all changes of files, and commands that only change files".to_owned()
        }
        "setMode" => format!("the mode {}", one["mode"].as_str().unwrap_or_default()),
        _ => one.to_string(),
    };
    let all: Vec<String> = always.iter().map(words).collect();
    (!all.is_empty()).then(|| format!("for the rest of the session: {}", all.join("; ")))
}

/// The questions of [`QUESTIONS`], each with its choices.
fn questions(tool: &str, input: &Value) -> Vec<(String, Vec<String>)> {
    let list = input["questions"].as_array().filter(|_| tool == QUESTIONS);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let choices =
        |one: &Value| one["options"].as_array().into_iter().flatten().map(|o| text(&o["label"])).collect();
    list.into_iter().flatten().map(|one| (text(&one["question"]), choices(one))).collect()
}

/// Several questions at once are answered a line each.
fn to_a_person(tool: &str, questions: &[(String, Vec<String>)]) -> Question {
    let all: Vec<&str> = questions.iter().map(|(question, _)| question.as_str()).collect();
    let one_each = questions.iter().map(|(question, choices)| format!("{question} [{}]", choices.join(", ")));
    let detail = (questions.len() > 1).then(|| one_each.collect::<Vec<_>>().join("\n"));
    let choices = if let [(_, choices)] = questions { choices.clone() } else { Vec::new() };
    let what = asked::line(&all.join(" "));
    Question { tool: Some(tool.to_owned()), detail, ..Question::input("", what, choices) }
}

/// The answer, as the hook prints it.
pub(super) fn render(asked: &Asked, answer: &Answer) -> Option<String> {
    let allow = json!({"behavior": "allow"});
    let decision = match (answer, asked.question.kind) {
        (Answer::Deny(why), _) => {
            let why = if why.trim().is_empty() { "A person said no to that." } else { why };
            json!({"behavior": "deny", "message": why})
        }
        (Answer::Allow | Answer::AllowAlways, QuestionKind::Permission)
            if asked.question.tool.as_deref() == Some(PLAN) =>
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
    Some(json!({"hookSpecificOutput": {"hookEventName": EVENT, "decision": decision}}).to_string())
}

fn with(mut decision: Value, name: &str, value: Value) -> Value {
    decision[name] = value;
    decision
}

/// The input with an answer to each question: a line each where there are as many, else the whole for each.
fn answered(input: &Value, words: &str) -> Value {
    let questions = questions(QUESTIONS, input);
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

/// Whether nobody sits in front of it. With a tool for permissions somebody else asks, and may well show it to a person.
pub(super) fn is_headless(args: &[String], attended: Option<&str>) -> bool {
    let flag = |name: &str| option(args, name).is_some();
    !flag("--permission-prompt-tool") && (attended == Some("0") || flag("-p") || flag("--print"))
}

/// Whether nobody is to be asked: its hook runs all the same.
pub(super) fn asks_nobody(args: &[String]) -> bool {
    option(args, "--permission-prompts") == Some("none")
}

/// The value of an option, as `--option value` or `--option=value`; empty where there is none.
fn option<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix(name)? {
        "" => Some(args.get(at + 1).map_or("", String::as_str)),
        rest => rest.strip_prefix('='),
    })
}

/// How a question stands.
pub(super) fn standing(asking: &Asking<'_>, registry: Option<PathBuf>, look: Look<'_>) -> Option<Standing> {
    let conversation = asking.transcript.and_then(|main| (look.read)(&conversation(main, asking.subagent)));
    conversation
        .and_then(|lines| by_transcript(&String::from_utf8_lossy(&lines), asking))
        .or_else(|| by_process(asking, look))
        .or_else(|| by_registry(&(look.read)(&registry?)?, asking))
}

/// A subagent's is beside its parent's, which is what its payloads name.
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

/// By the result of the call, which stands below it. Where several calls are alike, only by what all of them have come to.
fn by_transcript(lines: &str, asking: &Asking<'_>) -> Option<Standing> {
    // By the call's id; `None` for what ended before this was asked.
    let mut ends: HashMap<String, Option<Standing>> = HashMap::new();
    let mut found: Vec<Option<Standing>> = Vec::new();
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
            let end = if refused { Standing::Refused } else { Standing::Ran };
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

fn agreed(found: &[Option<Standing>]) -> Option<Standing> {
    let first = *found.first()?;
    found.iter().all(|one| *one == first).then_some(first)?
}

/// A command runs in a shell below it, which has been given the command in quotes.
fn by_process(asking: &Asking<'_>, look: Look<'_>) -> Option<Standing> {
    if matches!(asking.handed, Some(Answer::Deny(_))) {
        // It would be another call of the same, or that of somebody who was faster: the transcript will tell.
        return None;
    }
    let command =
        asking.question.detail.as_deref().filter(|_| asking.question.tool.as_deref() == Some("Bash"))?;
    let run = format!("eval '{}'", command.replace('\'', r#"'"'"'"#));
    let started = (look.started_below)(asking.pid?);
    started.iter().flatten().any(|argument| argument.contains(&run)).then_some(Standing::Ran)
}

/// It says `waiting` as long as any dialog is open, so once it does not, none is. Who has closed it is not said: what was denied may run.
fn by_registry(entry: &[u8], asking: &Asking<'_>) -> Option<Standing> {
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
    let is_later = entry.status_updated_at >= asking.since.plus(SETTLED).0;
    if entry.session_id != asking.session_id || !is_later {
        return None;
    }
    match (entry.status.as_str(), asking.handed) {
        ("waiting", _) => Some(Standing::Open),
        ("busy" | "idle", None) => Some(Standing::Over),
        ("busy", Some(answer)) if !matches!(answer, Answer::Deny(_)) => Some(Standing::Ran),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
