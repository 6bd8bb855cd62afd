//! Codex's requests as questions to a person, and the answers in Codex's format.
//!
//! Every request gets an answer: what no person can be asked is declined at once.

use super::super::no_rule;
use super::server::Heard;
use baton_agents::asked::in_words;
use baton_core::approval::{Answer, Extent, Part, Question, Subject, in_a_list};
use baton_core::tool::{ToolKind, ToolUse};
use baton_core::{Code, Error};
use baton_guard_runtime::approvals::script_of;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug)]
pub(super) enum Asked {
    /// A person is asked.
    Person(Request),
    /// This is the answer.
    Answer(Value),
    /// The request is not known.
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

/// Reads a request of a job that works in `cwd`. `known` gives an item of the turn, as Codex
/// reported it.
pub(super) fn read(heard: &Heard, cwd: &str, known: impl Fn(&str) -> Option<Value>) -> Asked {
    let params = &heard.params;
    let text = |name: &str| params[name].as_str().unwrap_or_default();
    match heard.method.as_str() {
        "item/commandExecution/requestApproval" => {
            let mut asked = permission(heard, of_command(params, cwd), Form::Decision);
            if let Asked::Person(request) = &mut asked {
                let about = tool_use(params).map(Box::new);
                request.questions.iter_mut().for_each(|question| question.tool_use.clone_from(&about));
            }
            asked
        }
        "item/fileChange/requestApproval" => {
            let subject = of_change(params, known(text("itemId")).as_ref());
            permission(heard, subject, Form::Decision)
        }
        "item/permissions/requestApproval" => {
            let access = params["permissions"].clone();
            let rule = format!("more access for the rest of this job: {access}");
            let parts = vec![Part::new("more access", access.to_string())];
            let subject = Subject::permission(
                Some("permissions"),
                with_rest(parts, params, &["permissions"]),
                Extent::Whole,
            );
            permission(heard, subject.with_always(Some(rule)), Form::Access(access))
        }
        "mcpServer/elicitation/request" => elicitation(heard),
        "item/tool/requestUserInput" => own_questions(heard),
        "applyPatchApproval" | "execCommandApproval" => Asked::Answer(json!({"decision": "denied"})),
        _ => Asked::Unknown,
    }
}

/// Fields of a request that say where it belongs, or only repeat the rest.
const HIDDEN_FIELDS: [&str; 10] = [
    "threadId",
    "turnId",
    "itemId",
    "approvalId",
    "startedAtMs",
    "reason",
    "availableDecisions",
    "commandActions",
    "proposedExecpolicyAmendment",
    "proposedNetworkPolicyAmendments",
];

/// Codex's name for its own machine, where commands run unless another one is set up.
const LOCAL_ENVIRONMENT: &str = "local";

/// Adds every other field of a request that asks for something.
fn with_rest(mut parts: Vec<Part>, params: &Value, shown: &[&str]) -> Vec<Part> {
    let fields = params.as_object().into_iter().flatten();
    let is_new = |name: &str| !shown.contains(&name) && !HIDDEN_FIELDS.contains(&name);
    let more = fields.filter(|(name, value)| is_new(name) && !value.is_null());
    parts.extend(more.map(|(name, value)| Part::new(name, in_words(value))));
    parts
}

/// A command as it will run, because Codex's summary leaves things out. The other fields become
/// parts of their own, except the job's own folder and a kind that says nothing new.
fn of_command(params: &Value, cwd: &str) -> Subject {
    let native = params["command"].as_str().unwrap_or_default();
    let command = script_of(native).unwrap_or_else(|| native.to_owned());
    let host = params["networkApprovalContext"]["host"].as_str();
    let folder = params["cwd"].as_str();
    let mut parts: Vec<Part> = Vec::new();
    parts.extend(host.map(|host| Part::new("network", host)));
    parts.extend((!command.is_empty()).then(|| Part::command(&*command)));
    let extent = if parts.is_empty() { Extent::NoMore } else { Extent::Whole };
    let mut shown = vec!["command", "cwd"];
    shown.extend((params["kind"] == "command").then_some("kind"));
    shown.extend((params["environmentId"] == LOCAL_ENVIRONMENT).then_some("environmentId"));
    let elsewhere = folder.filter(|folder| Path::new(folder) != Path::new(cwd));
    parts.extend(elsewhere.map(|folder| Part::new("in folder", folder)));
    let usual_parts = parts.len();
    let parts = with_rest(parts, params, &shown);
    // Codex keeps a yes for the session by the exact command and its folder. Its
    // `availableDecisions` are those of its own dialog; it also takes others, as a no.
    let is_plain = host.is_none() && !command.is_empty();
    let rule = folder
        .filter(|_| is_plain && parts.len() == usual_parts)
        .map(|folder| format!("exactly this command in {folder}, for the rest of this job: {command}"));
    Subject::permission(Some("shell"), parts, extent).with_note(params["reason"].as_str()).with_always(rule)
}

/// A change of files, by Codex's report of the item.
fn of_change(params: &Value, item: Option<&Value>) -> Subject {
    let changes = item.and_then(|item| item["changes"].as_array()).map_or(&[][..], Vec::as_slice);
    let named = |change: &Value| {
        [&change["path"], &change["kind"]["move_path"]].map(|path| path.as_str().map(Part::file))
    };
    let mut parts: Vec<Part> = changes.iter().flat_map(named).flatten().collect();
    let files: Vec<String> = parts.iter().map(|part| part.text().to_owned()).collect();
    for change in changes {
        let kind = change["kind"]["type"].as_str().or_else(|| change["kind"].as_str()).unwrap_or("update");
        let moved =
            change["kind"]["move_path"].as_str().map(|to| format!(" (moved to {to})")).unwrap_or_default();
        let (path, diff) = (in_words(&change["path"]), change["diff"].as_str().unwrap_or_default());
        parts.push(Part::change(format!("{kind} {path}{moved}\n{diff}")));
    }
    let all_told = !changes.is_empty() && changes.iter().all(|change| change["diff"].is_string());
    let extent = if all_told { Extent::Whole } else { Extent::NoMore };
    if parts.is_empty() {
        parts.push(Part::new("it says", "a change of files"));
    }
    // Codex keeps a yes for the session by the files.
    let rule = (all_told && params["grantRoot"].is_null()).then(|| {
        format!(
            "changes of exactly these files, for the rest of this job: {}",
            files.iter().map(|file| in_a_list(file)).collect::<Vec<_>>().join(", ")
        )
    });
    Subject::permission(Some("edit"), with_rest(parts, params, &[]), extent)
        .with_note(params["reason"].as_str())
        .with_always(rule)
}

/// The command in full, for rules to be checked against it; `None` if something else is asked with
/// it, or it would run in another environment.
fn tool_use(params: &Value) -> Option<ToolUse> {
    let is_command = params["kind"].is_null() || params["kind"] == "command";
    let is_here = params["environmentId"].is_null() || params["environmentId"] == LOCAL_ENVIRONMENT;
    let is_all = params["networkApprovalContext"].is_null() && is_here;
    let command = params["command"].as_str().filter(|_| is_command && is_all)?;
    let command = script_of(command).unwrap_or_else(|| command.to_owned());
    let folder = params["cwd"].as_str().map(str::to_owned);
    Some(ToolUse { command: Some(command), folder, ..ToolUse::new(ToolKind::Shell, "shell") })
}

fn permission(heard: &Heard, subject: Subject, form: Form) -> Asked {
    ask(heard, form, vec![(String::new(), subject)])
}

fn elicitation(heard: &Heard) -> Asked {
    let params = &heard.params;
    let server = params["serverName"].as_str().unwrap_or("an MCP server");
    let message = params["message"].as_str().unwrap_or_default();
    let fields = params["requestedSchema"]["properties"].as_object();
    let shown = ["serverName", "message", "mode", "requestedSchema", "url", "elicitationId"];
    let yes = |parts| Subject::permission(Some(server), with_rest(parts, params, &shown), Extent::Whole);
    match (params["mode"].as_str(), fields) {
        (Some("form"), Some(fields)) if fields.is_empty() => {
            permission(heard, yes(vec![Part::new("it says", message)]), Form::Elicited)
        }
        (Some("form"), Some(fields)) => {
            let choices = match fields.values().next() {
                Some(only) if fields.len() == 1 => texts(&only["enum"]),
                _ => Vec::new(),
            };
            let form = Form::Fields(fields.clone());
            let parts = vec![
                Part::question(message, &[]),
                Part::new("fields", params["requestedSchema"].to_string()),
            ];
            let subject = Subject::input(Some(server), with_rest(parts, params, &shown), choices);
            ask(heard, form, vec![(String::new(), subject)])
        }
        (Some("url"), _) => {
            let url = params["url"].as_str().unwrap_or_default();
            permission(
                heard,
                yes(vec![Part::new("address", url), Part::new("it says", message)]),
                Form::Elicited,
            )
        }
        _ => Asked::Answer(json!({"action": "decline"})),
    }
}

fn own_questions(heard: &Heard) -> Asked {
    let questions = heard.params["questions"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let asked = questions.iter().map(|question| {
        let choices = question["options"].as_array().into_iter().flatten();
        let choices: Vec<(String, String)> =
            choices.map(|choice| (text(&choice["label"]), text(&choice["description"]))).collect();
        let labels = choices.iter().map(|(label, _)| label.clone()).collect();
        let part = Part::question(&text(&question["question"]), &choices);
        (text(&question["id"]), Subject::input(None, vec![part], labels))
    });
    let form = Form::Words(questions.iter().map(|question| text(&question["id"])).collect());
    if questions.is_empty() {
        Asked::Answer(json!({"answers": {}}))
    } else {
        ask(heard, form, asked.collect())
    }
}

fn ask(heard: &Heard, form: Form, asked: Vec<(String, Subject)>) -> Asked {
    let text = |name: &str| heard.params[name].as_str().map(str::to_owned);
    let id = heard.id.clone().unwrap_or_default();
    let name = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let several = asked.len() > 1;
    let questions = asked.into_iter().map(|(part, subject)| {
        let id = if several { format!("{name}/{part}") } else { name.clone() };
        Question::new(id, subject)
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
    /// Takes an answer to one of the questions. With the last one, returns Codex's answer.
    pub(super) fn answer(&mut self, question: &str, answer: &Answer) -> Result<Option<Value>, Error> {
        let yes = matches!(answer, Answer::Allow | Answer::AllowAlways);
        let always = *answer == Answer::AllowAlways;
        let rule =
            self.questions.iter().find(|asked| asked.id == question).and_then(|asked| asked.subject.always());
        match (&self.form, answer) {
            (Form::Decision, Answer::Words(_))
            | (Form::Access(_), Answer::Words(_))
            | (Form::Elicited, Answer::Words(_)) => Err(unfit("it needs a yes or a no")),
            (Form::Fields(_) | Form::Words(_), Answer::Allow | Answer::AllowAlways) => {
                Err(unfit("it needs an answer in words"))
            }
            (_, Answer::AllowAlways) if rule.is_none() => Err(no_rule()),
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
            (Form::Elicited, _) => Ok(Some(json!({"action": if yes { "accept" } else { "decline" }}))),
            (Form::Fields(_), Answer::Deny(_)) => Ok(Some(json!({"action": "decline"}))),
            (Form::Fields(fields), Answer::Words(words)) => {
                Ok(Some(json!({"action": "accept", "content": filled(fields, words)?})))
            }
            (Form::Words(_), Answer::Deny(_)) => Ok(Some(json!({"answers": {}}))),
            (Form::Words(ids), Answer::Words(words)) => {
                // By its position, because Codex's own id may contain any character.
                let at = self.questions.iter().position(|asked| asked.id == question);
                let part =
                    at.and_then(|at| ids.get(at)).ok_or_else(|| unfit("it asks nothing of that name"))?;
                self.answers.insert(part.clone(), words.clone());
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
        match read(&Heard { id: Some(json!(7)), method: method.to_owned(), params }, "/p", |_| None) {
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
        assert_eq!(about(json!({"environmentId": "local"})), plain);
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
    fn s1_a_command_is_asked_as_it_runs_and_not_as_it_is_summed_up() {
        let params = json!({"threadId": "t", "turnId": "u", "itemId": "i", "cwd": "/p", "reason": "needs it",
            "command": "/bin/bash -lc 'echo harmless\nrm -rf /important'", "commandActions": [{"type": "unknown", "command": "echo harmless"}],
            "additionalPermissions": {"network": true}});
        let subject = asked("item/commandExecution/requestApproval", params).questions.remove(0).subject;
        let shown = subject.in_full().join("\n");
        assert!(shown.contains("| rm -rf /important") && shown.contains("additionalPermissions"), "{shown}");
        assert_eq!((subject.always(), subject.notes()), (None, &["needs it".to_owned()][..]));
    }

    #[test]
    fn s1_a_change_of_files_is_asked_whole_or_says_that_it_is_not() {
        let change = json!({"changes": [{"path": "/p/a", "kind": {"type": "update", "move_path": "/p/b"}, "diff": "-1\n+2"}]});
        let heard = Heard {
            id: Some(json!(7)),
            method: "item/fileChange/requestApproval".into(),
            params: json!({"itemId": "i"}),
        };
        let of = |item: Option<Value>| match read(&heard, "/p", |_| item.clone()) {
            Asked::Person(mut request) => request.questions.remove(0).subject,
            other => panic!("{other:?}"),
        };
        let known = of(Some(change));
        assert_eq!(known.as_change(), Some("update /p/a (moved to /p/b)\n-1\n+2"));
        assert_eq!(known.paths(), ["/p/a", "/p/b"]);
        assert!(known.always().is_some_and(|rule| rule.ends_with("/p/a, /p/b")));
        assert!(of(None).head().ends_with("(the agent does not say more)") && of(None).always().is_none());
    }

    #[test]
    fn s1_a_command_that_runs_in_another_folder_says_in_which() {
        let of = |cwd: &str| {
            let params = json!({"command": "/bin/bash -lc 'rm -rf *'", "cwd": cwd});
            asked("item/commandExecution/requestApproval", params).questions.remove(0).subject
        };
        assert!(of("/p").head_is_whole() && of("/p/").head_is_whole());
        let elsewhere = of("/home/me");
        assert!(!elsewhere.head_is_whole(), "{}", elsewhere.head());
        assert!(elsewhere.in_full().contains(&"in folder: /home/me".to_owned()), "{:?}", elsewhere.in_full());
    }

    #[test]
    fn s3_an_answer_lands_on_its_question_whatever_that_is_called() {
        let questions = json!([{"id": "x/a", "question": "Delete?"}, {"id": "y/a", "question": "Keep?"}]);
        let mut request = asked("item/tool/requestUserInput", json!({"questions": questions}));
        assert_eq!(request.answer("7/x/a", &Answer::Words("no".into())).unwrap(), None);
        let all = request.answer("7/y/a", &Answer::Words("yes".into())).unwrap().unwrap();
        assert_eq!(all, json!({"answers": {"x/a": {"answers": ["no"]}, "y/a": {"answers": ["yes"]}}}));
    }

    #[test]
    fn s2_always_is_for_a_rule_that_is_shown() {
        let plain = json!({"command": "/bin/bash -lc 'git push'", "cwd": "/p"});
        let mut request = asked("item/commandExecution/requestApproval", plain.clone());
        let rule = request.questions[0].subject.always().unwrap().to_owned();
        assert!(rule.contains("exactly this command in /p") && rule.ends_with("git push"), "{rule}");
        assert_eq!(
            request.answer("7", &Answer::AllowAlways).unwrap(),
            Some(json!({"decision": "acceptForSession"}))
        );
        for more in [
            json!({"networkApprovalContext": {"host": "h"}}),
            json!({"additionalPermissions": {"network": true}}),
        ] {
            let mut params = plain.clone();
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut request = asked("item/commandExecution/requestApproval", params);
            assert_eq!(
                request.answer("7", &Answer::AllowAlways).unwrap_err().code(),
                Code::NoSuchRule,
                "{more}"
            );
        }
        let empty = json!({"mode": "form", "message": "Run x?", "requestedSchema": {"properties": {}}});
        let mut tool = asked("mcpServer/elicitation/request", empty);
        assert_eq!(tool.answer("7", &Answer::AllowAlways).unwrap_err().code(), Code::NoSuchRule);
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
            (ids.as_slice(), request.questions[0].subject.choices()),
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
    fn a_question_without_anyone_to_ask_is_declined() {
        let read = |method: &str, params| {
            read(&Heard { id: Some(json!(7)), method: method.to_owned(), params }, "/p", |_| None)
        };
        let strange = read("mcpServer/elicitation/request", json!({"mode": "openai/userVerification"}));
        assert!(matches!(strange, Asked::Answer(answer) if answer["action"] == "decline"));
        assert!(matches!(read("item/tool/call", json!({})), Asked::Unknown));
    }
}
