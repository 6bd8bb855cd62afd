//! What Codex asks while it works, as questions to a person, and the answers in Codex's words.
//!
//! Every request of it gets an answer: what no person can be asked is declined at once.

use super::server::Heard;
use baton_core::approval::{Answer, Question, QuestionKind};
use baton_core::tool::{ToolKind, ToolUse};
use baton_core::{Code, Error};
use baton_gate::approvals::script_of;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Asked {
    /// A person is asked.
    Person(Request),
    /// This is the answer.
    Answer(Value),
    /// We don't know what it wants.
    Unknown,
}

/// A request that waits for a person.
#[derive(Debug)]
pub(super) struct Request {
    /// Codex's id of it.
    pub(super) id: Value,
    /// The thread that asks, which may be a subagent's.
    pub(super) thread: String,
    /// The turn that asks.
    pub(super) turn: String,
    /// The tool call that waits for it.
    pub(super) item: Option<String>,
    /// What people are asked: one question, or several that are answered together.
    pub(super) questions: Vec<Question>,
    form: Form,
    answers: BTreeMap<String, String>,
}

/// How the answer is written.
#[derive(Debug)]
enum Form {
    /// Yes or no to a command or a patch.
    Decision,
    /// More access, all that was asked for or none.
    Access(Value),
    /// Yes or no to a tool of an MCP server, or to a page to be opened.
    Elicited,
    /// Fields of an MCP server's form, by their schemas.
    Fields(Map<String, Value>),
    /// Codex's own questions, by their ids.
    Words(Vec<String>),
}

/// Reads a request. `known` tells what an item of the turn does.
pub(super) fn read(heard: &Heard, known: impl Fn(&str) -> Option<String>) -> Asked {
    let params = &heard.params;
    let text = |name: &str| params[name].as_str().unwrap_or_default();
    let because = |what: String| match text("reason") {
        "" => what,
        reason => format!("{what} ({reason})"),
    };
    match heard.method.as_str() {
        "item/commandExecution/requestApproval" => {
            let host = params["networkApprovalContext"]["host"].as_str();
            let what = match (host, super::turn::command(params)) {
                (Some(host), _) => format!("network: {host}"),
                (None, command) => format!("shell: {command}"),
            };
            let mut asked = permission(heard, because(what), Form::Decision);
            if let Asked::Person(request) = &mut asked {
                let about = tool_use(params).map(Box::new);
                request.questions.iter_mut().for_each(|question| question.tool_use.clone_from(&about));
            }
            asked
        }
        "item/fileChange/requestApproval" => {
            let what = known(text("itemId")).unwrap_or_else(|| "edit: files".to_owned());
            permission(heard, because(what), Form::Decision)
        }
        "item/permissions/requestApproval" => {
            let access = params["permissions"].clone();
            permission(heard, because(format!("more access: {access}")), Form::Access(access))
        }
        "mcpServer/elicitation/request" => elicitation(heard),
        "item/tool/requestUserInput" => own_questions(heard),
        "applyPatchApproval" | "execCommandApproval" => Asked::Answer(json!({"decision": "denied"})),
        _ => Asked::Unknown,
    }
}

/// The command in full, for rules to be held against; `None` where something else is asked along with it, or it would run in another environment.
fn tool_use(params: &Value) -> Option<ToolUse> {
    let is_command = params["kind"].is_null() || params["kind"] == "command";
    let is_all = params["networkApprovalContext"].is_null() && params["environmentId"].is_null();
    let command = params["command"].as_str().filter(|_| is_command && is_all)?;
    let command = script_of(command).unwrap_or_else(|| command.to_owned());
    let folder = params["cwd"].as_str().map(str::to_owned);
    Some(ToolUse { command: Some(command), folder, ..ToolUse::new(ToolKind::Shell, "shell") })
}

fn permission(heard: &Heard, what: String, form: Form) -> Asked {
    ask(heard, form, vec![(String::new(), QuestionKind::Permission, what, Vec::new())])
}

fn elicitation(heard: &Heard) -> Asked {
    let params = &heard.params;
    let server = params["serverName"].as_str().unwrap_or("an MCP server");
    let what = format!("{server}: {}", params["message"].as_str().unwrap_or_default());
    let fields = params["requestedSchema"]["properties"].as_object();
    match (params["mode"].as_str(), fields) {
        (Some("form"), Some(fields)) if fields.is_empty() => permission(heard, what, Form::Elicited),
        (Some("form"), Some(fields)) => {
            let choices = match fields.values().next() {
                Some(only) if fields.len() == 1 => texts(&only["enum"]),
                _ => Vec::new(),
            };
            let form = Form::Fields(fields.clone());
            ask(heard, form, vec![(String::new(), QuestionKind::Input, what, choices)])
        }
        (Some("url"), _) => {
            let what = format!("{what} {}", params["url"].as_str().unwrap_or_default());
            permission(heard, what, Form::Elicited)
        }
        _ => Asked::Answer(json!({"action": "decline"})),
    }
}

fn own_questions(heard: &Heard) -> Asked {
    let questions = heard.params["questions"].as_array().map_or(&[][..], Vec::as_slice);
    let id = |question: &Value| question["id"].as_str().unwrap_or_default().to_owned();
    let asked = questions.iter().map(|question| {
        let choices = question["options"].as_array().into_iter().flatten();
        let choices = choices.filter_map(|choice| Some(choice["label"].as_str()?.to_owned())).collect();
        let what = question["question"].as_str().unwrap_or_default().to_owned();
        (id(question), QuestionKind::Input, what, choices)
    });
    let form = Form::Words(questions.iter().map(id).collect());
    if questions.is_empty() {
        Asked::Answer(json!({"answers": {}}))
    } else {
        ask(heard, form, asked.collect())
    }
}

fn ask(heard: &Heard, form: Form, asked: Vec<(String, QuestionKind, String, Vec<String>)>) -> Asked {
    let text = |name: &str| heard.params[name].as_str().map(str::to_owned);
    let id = heard.id.clone().unwrap_or_default();
    let name = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let several = asked.len() > 1;
    let questions = asked.into_iter().map(|(part, kind, what, choices)| {
        let id = if several { format!("{name}/{part}") } else { name.clone() };
        Question { id, kind, what, choices, ..Question::default() }
    });
    let questions = questions.collect();
    let (thread, turn) = (text("threadId").unwrap_or_default(), text("turnId").unwrap_or_default());
    Asked::Person(Request {
        id,
        thread,
        turn,
        item: text("itemId"),
        questions,
        form,
        answers: BTreeMap::new(),
    })
}

impl Request {
    /// Takes an answer to one of the questions. With the last one, all is said, and this is what Codex gets.
    pub(super) fn answer(&mut self, question: &str, answer: &Answer) -> Result<Option<Value>, Error> {
        let yes = matches!(answer, Answer::Allow | Answer::AllowAlways);
        let always = *answer == Answer::AllowAlways;
        match (&self.form, answer) {
            (Form::Decision, Answer::Words(_))
            | (Form::Access(_), Answer::Words(_))
            | (Form::Elicited, Answer::Words(_)) => Err(unfit("it wants a yes or a no")),
            (Form::Fields(_) | Form::Words(_), Answer::Allow | Answer::AllowAlways) => {
                Err(unfit("it wants words"))
            }
            (Form::Decision, _) => {
                let decision = if always {
                    "acceptForSession"
                } else if yes {
                    "accept"
                } else {
                    "decline"
                };
                Ok(Some(json!({"decision": decision})))
            }
            (Form::Access(wanted), _) => {
                let granted = if yes { wanted.clone() } else { json!({}) };
                Ok(Some(json!({"permissions": granted, "scope": if always { "session" } else { "turn" }})))
            }
            (Form::Elicited, _) => {
                let mut reply = json!({"action": if yes { "accept" } else { "decline" }});
                if always {
                    reply["_meta"] = json!({"persist": "session"});
                }
                Ok(Some(reply))
            }
            (Form::Fields(_), Answer::Deny(_)) => Ok(Some(json!({"action": "decline"}))),
            (Form::Fields(fields), Answer::Words(words)) => {
                Ok(Some(json!({"action": "accept", "content": filled(fields, words)?})))
            }
            (Form::Words(_), Answer::Deny(_)) => Ok(Some(json!({"answers": {}}))),
            (Form::Words(ids), Answer::Words(words)) => {
                let part = question.rsplit_once('/').map_or(ids[0].as_str(), |(_, part)| part);
                self.answers.insert(part.to_owned(), words.clone());
                if self.answers.len() < ids.len() {
                    return Ok(None);
                }
                let all = self.answers.iter().map(|(id, words)| (id.clone(), json!({"answers": [words]})));
                Ok(Some(json!({"answers": all.collect::<Map<_, _>>()})))
            }
        }
    }
}

/// The content of a form: the words are its only field, or an object with all of them.
fn filled(fields: &Map<String, Value>, words: &str) -> Result<Value, Error> {
    if let Ok(Value::Object(content)) = serde_json::from_str(words) {
        return Ok(content.into());
    }
    let mut all = fields.iter();
    let (Some((name, schema)), None) = (all.next(), all.next()) else {
        let names = fields.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(unfit(&format!("it wants a JSON object with {names}")));
    };
    let value = match schema["type"].as_str() {
        Some("boolean" | "number" | "integer") => serde_json::from_str(words.trim()).map_err(|_| {
            unfit(&format!("{name} must be a {}", schema["type"].as_str().unwrap_or_default()))
        })?,
        _ => Value::from(words),
    };
    Ok(json!({name: value}))
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}

fn unfit(why: &str) -> Error {
    Error::new(Code::Usage, format!("the question can't be answered like that: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, params: Value) -> Request {
        match read(&Heard { id: Some(json!(7)), method: method.to_owned(), params }, |_| None) {
            Asked::Person(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_command_and_nothing_else_is_held_against_rules() {
        let about = |more: Value| {
            let mut params = json!({"threadId": "t", "turnId": "u", "itemId": "i", "command": "/bin/bash -lc 'git status'", "cwd": "/p"});
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let question = asked("item/commandExecution/requestApproval", params).questions.remove(0);
            question.tool_use.map(|tool| (tool.command.unwrap(), tool.folder.unwrap()))
        };
        let plain = Some(("git status".to_owned(), "/p".to_owned()));
        assert_eq!(about(json!({})), plain);
        assert_eq!(about(json!({"kind": "command", "environmentId": null})), plain);
        for more in [
            json!({"kind": "writeStdin"}),
            json!({"environmentId": "elsewhere"}),
            json!({"networkApprovalContext": {"host": "example.com"}}),
            json!({"command": null}),
        ] {
            assert_eq!(about(more.clone()), None, "{more}");
        }
    }

    #[test]
    fn questions_of_codex_are_answered_together() {
        let questions = json!([
            {"id": "a", "question": "Which?", "options": [{"label": "X"}, {"label": "Y"}]},
            {"id": "b", "question": "Why?", "options": null},
        ]);
        let mut request = asked("item/tool/requestUserInput", json!({"questions": questions}));
        let ids: Vec<_> = request.questions.iter().map(|question| question.id.clone()).collect();
        assert_eq!(
            (ids.as_slice(), &request.questions[0].choices[..]),
            (&["7/a".into(), "7/b".into()][..], &["X".into(), "Y".into()][..])
        );
        assert_eq!(request.answer("7/b", &Answer::Words("so".into())).unwrap(), None);
        assert!(request.answer("7/a", &Answer::Allow).is_err());
        let all = request.answer("7/a", &Answer::Words("X".into())).unwrap().unwrap();
        assert_eq!(all, json!({"answers": {"a": {"answers": ["X"]}, "b": {"answers": ["so"]}}}));
    }

    #[test]
    fn a_form_takes_its_only_field_or_an_object() {
        let form = |fields: Value| {
            let schema = json!({"type": "object", "properties": fields});
            asked(
                "mcpServer/elicitation/request",
                json!({"mode": "form", "message": "Name?", "requestedSchema": schema}),
            )
        };
        let words = |text: &str| Answer::Words(text.to_owned());
        let content = |mut request: Request, text: &str| {
            request.answer("7", &words(text)).map(|reply| reply.unwrap()["content"].take())
        };
        let name = json!({"name": {"type": "string"}});
        assert_eq!(content(form(name.clone()), "bob").unwrap(), json!({"name": "bob"}));
        assert_eq!(content(form(json!({"n": {"type": "integer"}})), "3").unwrap(), json!({"n": 3}));
        assert!(content(form(json!({"n": {"type": "integer"}})), "many").is_err());
        assert!(content(form(json!({"a": {}, "b": {}})), "bob").is_err());
        assert_eq!(content(form(json!({"a": {}, "b": {}})), r#"{"a":1}"#).unwrap(), json!({"a": 1}));
        assert_eq!(
            form(name).answer("7", &Answer::Deny("no".into())).unwrap(),
            Some(json!({"action": "decline"}))
        );
    }

    #[test]
    fn what_nobody_can_be_asked_is_declined() {
        let read = |method: &str, params| {
            read(&Heard { id: Some(json!(7)), method: method.to_owned(), params }, |_| None)
        };
        let strange = read("mcpServer/elicitation/request", json!({"mode": "openai/userVerification"}));
        assert!(matches!(strange, Asked::Answer(answer) if answer["action"] == "decline"));
        assert!(matches!(read("item/tool/call", json!({})), Asked::Unknown));
    }
}
