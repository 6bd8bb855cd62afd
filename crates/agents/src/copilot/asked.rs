//! What Copilot asks its user, and what became of it.
//!
//! Two hooks report a question. `permissionRequest` comes before the dialog, may answer instead of
//! the user, and has all details; while it runs, no dialog is shown. It also comes if Copilot asks
//! no one (see `will_prompt`). `notification` comes with the dialog, has one line, and can't
//! answer. Neither names the call.
//!
//! The transcript shows the rest, 100 ms late: `hook.start` repeats a hook's payload, `hook.end`
//! has its output. After that come the request for the permission (`permission.requested`) and its
//! result (`permission.completed`). Esc is an `abort`.

use crate::asked::{self, AgentQuestion, ProcessProbe, QuestionStatus, RecordedQuestion, fingerprint};
use crate::tools;
use baton_core::approval::{Answer, Extent, Part, Question, Subject};
use baton_core::event::Event;
use baton_core::tool::ToolUse;
use serde_json::{Value, json};

/// The hook that may answer.
pub(super) const BEFORE_DIALOG: &str = "permissionRequest";
/// The hook that comes with a dialog.
const WITH_DIALOG: &str = "notification";
const SHELL_TOOL: &str = "bash";
const EDIT_TOOL: &str = "edit";
/// How its notifications begin, and which tool's input follows, with the name of the field.
const NOTIFICATION_STARTS: [(&str, &str, &str); 2] =
    [("Run command: ", SHELL_TOOL, "command"), ("Edit file: ", EDIT_TOOL, "file_path")];

pub(super) fn asked(payload: &[u8], event: &Event) -> Option<AgentQuestion> {
    let payload: Value = crate::payload::owned(payload).ok()?;
    match event.native.as_str() {
        BEFORE_DIALOG => permission(&payload),
        WITH_DIALOG => notified(&payload),
        _ => None,
    }
}

/// The key of a question in payload and transcript.
fn id(hook: &str, payload: &Value, input: u64) -> String {
    // Hooks of parallel calls may run in the same millisecond.
    format!("{hook}-{}-{input:x}", payload["timestamp"])
}

fn permission(payload: &Value) -> Option<AgentQuestion> {
    let tool = payload["toolName"].as_str()?;
    let given = &payload["toolInput"];
    let input = fingerprint(tool, &known_by(tool, given));
    let id = id(BEFORE_DIALOG, payload, input);
    let subject = match (tool, given["command"].as_str(), given["file_path"].as_str()) {
        (SHELL_TOOL | "powershell", Some(_), _) => asked::permission(&super::tools::TOOLS, tool, given),
        (_, _, Some(path)) => {
            let diff = given["diff"].as_str().map(|diff| diff.trim_start_matches('\n'));
            let extent = if diff.is_some() { Extent::Whole } else { Extent::NoMore };
            let fields = given.as_object().into_iter().flatten();
            let more = fields
                .filter(|(name, value)| !(matches!(name.as_str(), "file_path" | "diff") && value.is_string()))
                .filter(|(_, value)| !value.is_null());
            let more = more.map(|(name, value)| Part::new(name, asked::in_words(value)));
            let parts = std::iter::once(Part::file(path)).chain(diff.map(Part::change)).chain(more);
            Subject::permission(Some(tool), parts.collect(), extent)
        }
        _ => asked::permission(&super::tools::TOOLS, tool, given),
    };
    let about = match given["file_path"].as_str() {
        Some(path) if !given["command"].is_string() => call(tool, &json!({ "path": path })),
        _ => call(tool, given),
    };
    let question = Question::new(id, subject).about(Some(about));
    Some(AgentQuestion { question, call: None, input, native: Value::Null })
}

/// The call as the guard reads it.
fn call(tool: &str, input: &Value) -> ToolUse {
    tools::tool(&super::tools::TOOLS, tool, input, &[])
}

/// The part of an input that every source has: for a change of a file, its path.
fn known_by(tool: &str, input: &Value) -> Value {
    match (tool, &input["file_path"]) {
        (EDIT_TOOL, Value::String(path)) => json!({ "file_path": path }),
        _ => input.clone(),
    }
}

fn notified(payload: &Value) -> Option<AgentQuestion> {
    let message = payload["message"].as_str()?;
    // The transcript spells it differently.
    let kind = payload["notification_type"].as_str().or(payload["notificationType"].as_str());
    if kind == Some("elicitation_dialog") {
        let input = fingerprint("", &json!(message));
        let subject = Subject::input(None, vec![Part::question(message, &[])], Vec::new());
        let question = Question::new(id(WITH_DIALOG, payload, input), subject);
        return Some(AgentQuestion { question, call: None, input, native: Value::Null });
    }
    let found = NOTIFICATION_STARTS
        .iter()
        .find_map(|(begin, tool, field)| Some((tool, field, message.strip_prefix(begin)?)));
    let Some((tool, field, value)) = found else {
        let input = fingerprint("", &json!(message));
        let question = Question::new(id(WITH_DIALOG, payload, input), Subject::told_only(message));
        return Some(AgentQuestion { question, call: None, input, native: Value::Null });
    };
    let input = fingerprint(tool, &json!({ *field: value }));
    let id = id(WITH_DIALOG, payload, input);
    // A notification has one line, even if the dialog shows more.
    let part = if *tool == SHELL_TOOL { Part::command(value) } else { Part::file(value) };
    let subject = Subject::permission(Some(tool), vec![part], Extent::NoMore);
    let name = if *tool == SHELL_TOOL { "command" } else { "path" };
    let question = Question::new(id, subject).about(Some(call(tool, &json!({ name: value }))));
    Some(AgentQuestion { question, call: None, input, native: Value::Null })
}

/// The answer that the hook before the dialog prints. It counts for this call only.
pub(super) fn answer(event: &Event, answer: &Answer) -> Option<String> {
    let behavior = match answer {
        _ if event.native != BEFORE_DIALOG => return None,
        Answer::Allow => json!({ "behavior": "allow" }),
        Answer::Deny(why) => json!({ "behavior": "deny", "message": why }),
        Answer::AllowAlways | Answer::Words(_) => return None,
    };
    Some(behavior.to_string())
}

/// The whole command of the question.
pub(super) fn command(question: &Question) -> Option<&str> {
    let subject = &question.subject;
    subject.as_command().filter(|_| matches!(subject.tool(), Some(SHELL_TOOL | "powershell")))
}

pub(super) fn question_status(
    asking: &RecordedQuestion<'_>,
    probe: ProcessProbe<'_>,
) -> Option<QuestionStatus> {
    let written =
        asking.transcript.and_then(|file| (probe.read)(file)).and_then(|bytes| in_transcript(asking, &bytes));
    if written.is_some_and(|standing| standing != QuestionStatus::Open) {
        return written;
    }
    // Copilot passes a command to its own shell as an argument. That shows before the transcript is
    // written.
    let runs = |command: &str, pid: i32| {
        (probe.started_below)(pid).iter().any(|args| args.last().is_some_and(|last| last == command))
    };
    match (command(asking.question), asking.pid) {
        (Some(command), Some(pid)) if asking.handed == Some(&Answer::Allow) && runs(command, pid) => {
            Some(QuestionStatus::Ran)
        }
        _ => written,
    }
}

/// What the transcript shows.
fn in_transcript(asking: &RecordedQuestion<'_>, bytes: &[u8]) -> Option<QuestionStatus> {
    let text = String::from_utf8_lossy(bytes);
    let is_event = |line: &&str| EVENTS.iter().any(|kind| line.contains(kind));
    let lines: Vec<Value> =
        text.lines().filter(is_event).filter_map(|line| serde_json::from_str(line).ok()).collect();
    let asked_at = lines.iter().rposition(|line| is_asked(asking, line))?;
    let hook = &lines[asked_at]["data"]["hookType"];
    let after = &lines[asked_at + 1..];
    let over = after.iter().any(|line| line["type"] == "abort").then_some(QuestionStatus::Over);
    if hook == WITH_DIALOG {
        let before = &lines[..asked_at];
        let request =
            before.iter().rev().find(|line| is_request(asking, line)).or_else(|| unanswered(before));
        return Some(
            outcome(request, after).or(over).or_else(|| turn_over(after)).unwrap_or(QuestionStatus::Open),
        );
    }
    let invocation = &lines[asked_at]["data"]["hookInvocationId"];
    let ended = after
        .iter()
        .position(|line| line["type"] == "hook.end" && line["data"]["hookInvocationId"] == *invocation);
    let Some(ended) = ended else { return Some(over.unwrap_or(QuestionStatus::Open)) };
    let said = &after[ended]["data"]["output"]["behavior"];
    let after = &after[ended + 1..];
    // Of several equal requests, the one whose result fits the output of this hook.
    let fits = |line: &&Value| {
        let by_hook = line["data"]["resolvedByHook"] == true;
        let came_to = outcome(Some(line), after);
        is_request(asking, line)
            && match said.as_str() {
                Some("allow") => by_hook && came_to != Some(QuestionStatus::Refused),
                Some("deny") => by_hook && came_to != Some(QuestionStatus::Ran),
                _ => !by_hook,
            }
    };
    let request = after.iter().find(fits);
    Some(outcome(request, after).or(over).or_else(|| turn_over(after)).unwrap_or(QuestionStatus::Open))
}

/// The lines that matter, by their content.
const EVENTS: [&str; 5] = [
    "\"type\":\"hook.",
    "\"type\":\"permission.",
    "\"type\":\"abort\"",
    "\"type\":\"assistant.turn_",
    "\"type\":\"session.shutdown\"",
];

/// Whether a line is about the hook that asked this question.
fn is_asked(asking: &RecordedQuestion<'_>, line: &Value) -> bool {
    let (kind, data) = (&line["type"], &line["data"]);
    let told = match data["hookType"].as_str() {
        _ if kind != "hook.start" => None,
        Some(BEFORE_DIALOG) => permission(&data["input"]),
        Some(WITH_DIALOG) => notified(&data["input"]),
        _ => None,
    };
    told.is_some_and(|told| told.question.id == asking.question.id)
}

/// Whether a line is a request for this question.
fn is_request(asking: &RecordedQuestion<'_>, line: &Value) -> bool {
    let request = &line["data"]["permissionRequest"];
    let text = |name: &str| request[name].as_str();
    let subject = &asking.question.subject;
    let tool = subject.tool();
    line["type"] == "permission.requested"
        && match (command(asking.question), tool) {
            (Some(command), _) => text("fullCommandText") == Some(command),
            (None, Some(EDIT_TOOL)) => text("fileName").is_some_and(|file| subject.paths().contains(&file)),
            (None, Some(tool)) => {
                let server = text("serverName").zip(text("toolName"));
                server.is_some_and(|(server, name)| tool == format!("{server}/{name}"))
            }
            (None, None) => text("hookMessage").is_some_and(|said| subject.part("it says") == Some(said)),
        }
}

/// The last request without an answer.
fn unanswered(lines: &[Value]) -> Option<&Value> {
    lines.iter().enumerate().rev().find_map(|(at, line)| {
        let open = line["type"] == "permission.requested" && outcome(Some(line), &lines[at..]).is_none();
        open.then_some(line)
    })
}

/// The result of a request.
fn outcome(request: Option<&Value>, after: &[Value]) -> Option<QuestionStatus> {
    let id = request?["data"]["requestId"].as_str()?;
    let completed = |line: &&Value| line["type"] == "permission.completed" && line["data"]["requestId"] == id;
    let result = after.iter().find(completed)?["data"]["result"]["kind"].as_str()?;
    Some(match result {
        "cancelled" => QuestionStatus::Over,
        _ if result.starts_with("approved") => QuestionStatus::Ran,
        _ => QuestionStatus::Refused,
    })
}

/// Whether the turn of the question has ended.
fn turn_over(after: &[Value]) -> Option<QuestionStatus> {
    let ends = ["assistant.turn_end", "assistant.turn_start", "session.shutdown"];
    // A subagent's turn does not count.
    let mut own = after.iter().filter(|line| line["agentId"].is_null());
    let ended = own.any(|line| line["type"].as_str().is_some_and(|kind| ends.contains(&kind)));
    ended.then_some(QuestionStatus::Over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::HookCodec as _;
    use baton_core::event::EventKind;
    use baton_core::time::Moment;
    use std::path::Path;

    fn event(native: &str) -> Event {
        let payload = json!({"sessionId": "s", "notification_type": "permission_prompt"}).to_string();
        let event = crate::copilot::Copilot.parse(payload.as_bytes(), Some(native)).unwrap();
        assert_eq!(event.kind, EventKind::Blocked);
        event
    }

    fn before_dialog(at: u64, tool: &str, input: &Value) -> Value {
        json!({"hookName": "permissionRequest", "sessionId": "s", "timestamp": at, "cwd": "/p", "toolName": tool,
            "toolInput": input, "permissionSuggestions": []})
    }

    fn with_dialog(at: u64, message: &str) -> Value {
        json!({"sessionId": "s", "timestamp": at, "cwd": "/p", "message": message, "title": "Permission needed",
            "hook_event_name": "Notification", "notification_type": "permission_prompt"})
    }

    fn read(native: &str, payload: &Value) -> AgentQuestion {
        asked(payload.to_string().as_bytes(), &event(native)).unwrap()
    }

    fn touch(at: u64) -> AgentQuestion {
        read(BEFORE_DIALOG, &before_dialog(at, "bash", &json!({"command": "touch a"})))
    }

    #[test]
    fn a_question_is_reported_in_full() {
        let input = json!({"command": "touch a\ntouch b"});
        let told = read(BEFORE_DIALOG, &before_dialog(1, "bash", &input)).question;
        assert!(!told.subject.head_is_whole());
        assert_eq!(command(&told), Some("touch a\ntouch b"));
        assert_eq!(told.tool_use.unwrap().command.as_deref(), Some("touch a\ntouch b"));
        assert_eq!(command(&touch(1).question), Some("touch a"));
        let change = json!({"file_path": "/p/x", "diff": "\ndiff --git a/p/x b/p/x\n+1\n"});
        let told = read(BEFORE_DIALOG, &before_dialog(1, "edit", &change)).question;
        assert_eq!(told.subject.paths(), ["/p/x"]);
        assert_eq!(told.subject.as_change(), Some("diff --git a/p/x b/p/x\n+1\n"));
        assert_eq!(command(&told), None);
        assert_eq!(told.tool_use.unwrap().paths, ["/p/x"]);
        let told = read(BEFORE_DIALOG, &before_dialog(1, "issues/close", &json!({"id": 3}))).question.subject;
        assert_eq!((told.tool(), told.part("id"), told.always()), (Some("issues/close"), Some("3"), None));
    }

    #[test]
    fn a_dialog_is_that_of_the_hook_before_it() {
        let note = |message: &str| read(WITH_DIALOG, &with_dialog(9, message));
        assert_eq!(note("Run command: touch a").input, touch(1).input);
        assert_ne!(note("Run command: touch b").input, touch(1).input);
        let change = json!({"file_path": "/p/x", "diff": "+1"});
        let edit = read(BEFORE_DIALOG, &before_dialog(1, "edit", &change));
        assert_eq!(note("Edit file: /p/x").input, edit.input);
        assert_eq!(note("Edit file: /p/x").question.subject.paths(), ["/p/x"]);
        assert_eq!(
            note("Path permission needed: /etc").question.subject.text(),
            "Path permission needed: /etc"
        );
    }

    #[test]
    fn only_the_hook_before_the_dialog_answers_and_only_this_once() {
        let (hook, dialog) = (event(BEFORE_DIALOG), event(WITH_DIALOG));
        assert_eq!(answer(&hook, &Answer::Allow).unwrap(), r#"{"behavior":"allow"}"#);
        let deny = answer(&hook, &Answer::Deny("not \"now\"".into())).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&deny).unwrap(),
            json!({"behavior": "deny", "message": "not \"now\""})
        );
        assert_eq!(answer(&hook, &Answer::AllowAlways), None);
        assert_eq!(answer(&dialog, &Answer::Allow), None);
    }

    /// Lines of a transcript, as 1.0.102 writes them.
    fn hook_start(kind: &str, invocation: &str, input: &Value) -> Value {
        json!({"type": "hook.start", "data": {"hookInvocationId": invocation, "hookType": kind, "input": input}})
    }
    fn hook_end(kind: &str, invocation: &str, output: &Value) -> Value {
        json!({"type": "hook.end", "data": {"hookInvocationId": invocation, "hookType": kind, "success": true, "output": output}})
    }
    fn requested(id: &str, command: &str, by_hook: bool) -> Value {
        json!({"type": "permission.requested", "data": {"requestId": id, "resolvedByHook": by_hook,
            "permissionRequest": {"kind": "shell", "toolCallId": "c", "fullCommandText": command}}})
    }
    fn completed(id: &str, kind: &str) -> Value {
        json!({"type": "permission.completed", "data": {"requestId": id, "result": {"kind": kind}}})
    }

    fn stands(asked: &AgentQuestion, lines: &[Value], running: &[&str]) -> Option<QuestionStatus> {
        let asking = RecordedQuestion {
            session_id: "s",
            subagent: None,
            pid: Some(7),
            transcript: Some(Path::new("/t")),
            question: &asked.question,
            call: None,
            input: asked.input,
            since: Moment(0),
            handed: Some(&Answer::Allow),
        };
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let running = vec![running.iter().map(|arg| (*arg).to_owned()).collect()];
        question_status(
            &asking,
            ProcessProbe { read: &|_| Some(text.clone().into_bytes()), started_below: &|_| running.clone() },
        )
    }

    fn started(at: u64, invocation: &str) -> Value {
        hook_start(BEFORE_DIALOG, invocation, &before_dialog(at, "bash", &json!({"command": "touch a"})))
    }
    fn said(invocation: &str, behavior: &str) -> Value {
        hook_end(BEFORE_DIALOG, invocation, &json!({ "behavior": behavior }))
    }

    #[test]
    fn an_answer_is_seen_to_take_effect() {
        let (start, question) = (started(5, "h"), touch(5));
        assert_eq!(stands(&question, &[], &[]), None);
        assert_eq!(stands(&question, std::slice::from_ref(&start), &[]), Some(QuestionStatus::Open));
        let allowed =
            [start.clone(), said("h", "allow"), requested("r", "touch a", true), completed("r", "approved")];
        assert_eq!(stands(&question, &allowed[..3], &[]), Some(QuestionStatus::Open));
        assert_eq!(stands(&question, &allowed, &[]), Some(QuestionStatus::Ran));
        let denied = "denied-by-permission-request-hook";
        let denied =
            [start.clone(), said("h", "deny"), requested("r", "touch a", true), completed("r", denied)];
        assert_eq!(stands(&question, &denied, &[]), Some(QuestionStatus::Refused));
        // Before it is written.
        let shell = ["/bin/bash", "--norc", "-c", "touch a"];
        assert_eq!(stands(&question, std::slice::from_ref(&start), &shell), Some(QuestionStatus::Ran));
        assert_eq!(stands(&question, &[start], &["/bin/bash", "-c", "touch ab"]), Some(QuestionStatus::Open));
    }

    #[test]
    fn what_the_dialog_came_to_is_seen() {
        let silent = hook_end(BEFORE_DIALOG, "h", &Value::Null);
        let note = with_dialog(8, "Run command: touch a");
        let shown =
            [started(5, "h"), silent, requested("r", "touch a", false), hook_start(WITH_DIALOG, "n", &note)];
        let with = |more: &[Value]| [&shown[..], more].concat();
        for question in [touch(5), read(WITH_DIALOG, &note)] {
            assert_eq!(stands(&question, &shown, &[]), Some(QuestionStatus::Open), "{question:?}");
            let yes = with(&[completed("r", "approved-for-location")]);
            assert_eq!(stands(&question, &yes, &[]), Some(QuestionStatus::Ran));
            let no = with(&[completed("r", "denied-interactively-by-user")]);
            assert_eq!(stands(&question, &no, &[]), Some(QuestionStatus::Refused));
            let other = with(&[requested("q", "touch a", false), completed("q", "approved")]);
            assert_eq!(stands(&question, &other, &[]), Some(QuestionStatus::Open));
            let escape = with(&[json!({"type": "abort", "data": {"reason": "user_abort"}})]);
            assert_eq!(stands(&question, &escape, &[]), Some(QuestionStatus::Over));
            let of_subagent = with(&[json!({"type": "assistant.turn_end", "agentId": "a", "data": {}})]);
            assert_eq!(stands(&question, &of_subagent, &[]), Some(QuestionStatus::Open));
            let ended = with(&[json!({"type": "assistant.turn_end", "data": {}})]);
            assert_eq!(stands(&question, &ended, &[]), Some(QuestionStatus::Over));
        }
    }

    #[test]
    fn of_two_like_calls_each_has_its_own_answer() {
        let lines = [
            started(5, "one"),
            started(6, "two"),
            said("two", "deny"),
            said("one", "allow"),
            requested("r2", "touch a", true),
            completed("r2", "denied-by-permission-request-hook"),
            requested("r1", "touch a", true),
            completed("r1", "approved"),
        ];
        assert_eq!(stands(&touch(5), &lines, &[]), Some(QuestionStatus::Ran));
        assert_eq!(stands(&touch(6), &lines, &[]), Some(QuestionStatus::Refused));
        assert_ne!(touch(5).question.id, touch(6).question.id);
    }
}
