//! What Copilot asks its person, and what became of it.
//!
//! Two hooks tell. `permissionRequest` comes before the dialog, may answer in its place, and has everything; while it runs, no dialog is shown. It also comes where
//! nobody is asked (see `asks`). `notification` comes with the dialog, has one line, and can't answer. Neither names the call.
//!
//! The transcript tells the rest, 100 ms late: `hook.start` repeats a hook's payload; `hook.end` has what it said; behind that stand the request for the
//! permission (`permission.requested`) and what came of it (`permission.completed`). Esc is an `abort`.

use crate::asked::{Asked, Asking, Look, Standing, fingerprint};
use crate::tools;
use baton_core::approval::{Answer, Question};
use baton_core::event::Event;
use baton_core::tool::ToolUse;
use serde_json::{Value, json};

/// The hook that may answer.
pub(super) const BEFORE_DIALOG: &str = "permissionRequest";
/// The hook that comes with a dialog.
const WITH_DIALOG: &str = "notification";
const SHELL: &str = "bash";
const EDIT: &str = "edit";
/// How its notifications begin, and which tool's input follows, under which name.
const NOTES: [(&str, &str, &str); 2] =
    [("Run command: ", SHELL, "command"), ("Edit file: ", EDIT, "file_path")];

/// What a payload asks.
pub(super) fn asked(payload: &[u8], event: &Event) -> Option<Asked> {
    let payload: Value = crate::payload::owned(payload).ok()?;
    match event.native.as_str() {
        BEFORE_DIALOG => permission(&payload),
        WITH_DIALOG => notified(&payload),
        _ => None,
    }
}

/// What it is known by in payload and transcript.
fn id(hook: &str, payload: &Value, input: u64) -> String {
    // Hooks of parallel calls may run in the same millisecond.
    format!("{hook}-{}-{input:x}", payload["timestamp"])
}

fn permission(payload: &Value) -> Option<Asked> {
    let tool = payload["toolName"].as_str()?;
    let given = &payload["toolInput"];
    let input = fingerprint(tool, &known_by(tool, given));
    let id = id(BEFORE_DIALOG, payload, input);
    let question = match (tool, given["command"].as_str(), given["file_path"].as_str()) {
        (SHELL | "powershell", Some(command), _) => of_command(id, tool, command),
        (_, _, Some(path)) => Question {
            detail: given["diff"].as_str().map(|diff| diff.trim_start_matches('\n').to_owned()),
            ..of_file(id, tool, path)
        },
        _ => Question {
            detail: (!given.is_null()).then(|| format!("{given:#}")),
            tool: Some(tool.to_owned()),
            ..Question::permission(id, tool).about(Some(call(tool, given)))
        },
    };
    Some(Asked { question, call: None, input, native: Value::Null })
}

fn of_command(id: String, tool: &str, command: &str) -> Question {
    let first = command.lines().next().unwrap_or_default();
    Question {
        detail: (first != command).then(|| command.to_owned()),
        tool: Some(tool.to_owned()),
        ..Question::permission(id, format!("{tool}: {first}"))
            .about(Some(call(tool, &json!({ "command": command }))))
    }
}

fn of_file(id: String, tool: &str, path: &str) -> Question {
    Question {
        paths: vec![path.to_owned()],
        tool: Some(tool.to_owned()),
        ..Question::permission(id, format!("{tool}: {path}"))
            .about(Some(call(tool, &json!({ "path": path }))))
    }
}

/// The call, as our rules read it.
fn call(tool: &str, input: &Value) -> ToolUse {
    tools::tool(&super::tools::TOOLS, tool, input, &[])
}

/// The part of an input that all tell: of a change of a file, its path.
fn known_by(tool: &str, input: &Value) -> Value {
    match (tool, &input["file_path"]) {
        (EDIT, Value::String(path)) => json!({ "file_path": path }),
        _ => input.clone(),
    }
}

fn notified(payload: &Value) -> Option<Asked> {
    let message = payload["message"].as_str()?;
    // The transcript spells it otherwise.
    let kind = payload["notification_type"].as_str().or(payload["notificationType"].as_str());
    if kind == Some("elicitation_dialog") {
        let input = fingerprint("", &json!(message));
        let question = Question::input(id(WITH_DIALOG, payload, input), message, Vec::new());
        return Some(Asked { question, call: None, input, native: Value::Null });
    }
    let found =
        NOTES.iter().find_map(|(begin, tool, field)| Some((tool, field, message.strip_prefix(begin)?)));
    let Some((tool, field, value)) = found else {
        let input = fingerprint("", &json!(message));
        let question = Question::permission(id(WITH_DIALOG, payload, input), message);
        return Some(Asked { question, call: None, input, native: Value::Null });
    };
    let input = fingerprint(tool, &json!({ *field: value }));
    let id = id(WITH_DIALOG, payload, input);
    let question = if *tool == SHELL { of_command(id, tool, value) } else { of_file(id, tool, value) };
    Some(Asked { question, call: None, input, native: Value::Null })
}

/// The answer that the hook before the dialog prints. What it says counts for this one call.
pub(super) fn answer(event: &Event, answer: &Answer) -> Option<String> {
    let behavior = match answer {
        _ if event.native != BEFORE_DIALOG => return None,
        Answer::Allow => json!({ "behavior": "allow" }),
        Answer::Deny(why) => json!({ "behavior": "deny", "message": why }),
        Answer::AllowAlways | Answer::Words(_) => return None,
    };
    Some(behavior.to_string())
}

/// The whole command that is asked about.
pub(super) fn command(question: &Question) -> Option<&str> {
    let tool = question.tool.as_deref()?;
    let what = question.what.strip_prefix(tool)?.strip_prefix(": ")?;
    matches!(tool, SHELL | "powershell").then(|| question.detail.as_deref().unwrap_or(what))
}

/// How a question stands.
pub(super) fn standing(asking: &Asking<'_>, look: Look<'_>) -> Option<Standing> {
    let written =
        asking.transcript.and_then(|file| (look.read)(file)).and_then(|bytes| in_transcript(asking, &bytes));
    if written.is_some_and(|standing| standing != Standing::Open) {
        return written;
    }
    // It runs a command as an argument of a shell of its own, and that is seen sooner than the transcript is written.
    let runs = |command: &str, pid: i32| {
        (look.started_below)(pid).iter().any(|args| args.last().is_some_and(|last| last == command))
    };
    match (command(asking.question), asking.pid) {
        (Some(command), Some(pid)) if asking.handed == Some(&Answer::Allow) && runs(command, pid) => {
            Some(Standing::Ran)
        }
        _ => written,
    }
}

/// What the transcript says.
fn in_transcript(asking: &Asking<'_>, bytes: &[u8]) -> Option<Standing> {
    let text = String::from_utf8_lossy(bytes);
    let is_event = |line: &&str| EVENTS.iter().any(|kind| line.contains(kind));
    let lines: Vec<Value> =
        text.lines().filter(is_event).filter_map(|line| serde_json::from_str(line).ok()).collect();
    let asked_at = lines.iter().rposition(|line| is_asked(asking, line))?;
    let hook = &lines[asked_at]["data"]["hookType"];
    let after = &lines[asked_at + 1..];
    let over = after.iter().any(|line| line["type"] == "abort").then_some(Standing::Over);
    if hook == WITH_DIALOG {
        let before = &lines[..asked_at];
        let request =
            before.iter().rev().find(|line| is_request(asking, line)).or_else(|| unanswered(before));
        return Some(outcome(request, after).or(over).or_else(|| turn_over(after)).unwrap_or(Standing::Open));
    }
    let invocation = &lines[asked_at]["data"]["hookInvocationId"];
    let ended = after
        .iter()
        .position(|line| line["type"] == "hook.end" && line["data"]["hookInvocationId"] == *invocation);
    let Some(ended) = ended else { return Some(over.unwrap_or(Standing::Open)) };
    let said = &after[ended]["data"]["output"]["behavior"];
    let after = &after[ended + 1..];
    // Of the same requests at once, the one that came to what this hook said.
    let fits = |line: &&Value| {
        let by_hook = line["data"]["resolvedByHook"] == true;
        let came_to = outcome(Some(line), after);
        is_request(asking, line)
            && match said.as_str() {
                Some("allow") => by_hook && came_to != Some(Standing::Refused),
                Some("deny") => by_hook && came_to != Some(Standing::Ran),
                _ => !by_hook,
            }
    };
    let request = after.iter().find(fits);
    Some(outcome(request, after).or(over).or_else(|| turn_over(after)).unwrap_or(Standing::Open))
}

/// The lines that matter, by what they contain.
const EVENTS: [&str; 5] = [
    "\"type\":\"hook.",
    "\"type\":\"permission.",
    "\"type\":\"abort\"",
    "\"type\":\"assistant.turn_",
    "\"type\":\"session.shutdown\"",
];

/// Whether a line tells of the hook that asked this.
fn is_asked(asking: &Asking<'_>, line: &Value) -> bool {
    let (kind, data) = (&line["type"], &line["data"]);
    let told = match data["hookType"].as_str() {
        _ if kind != "hook.start" => None,
        Some(BEFORE_DIALOG) => permission(&data["input"]),
        Some(WITH_DIALOG) => notified(&data["input"]),
        _ => None,
    };
    told.is_some_and(|told| told.question.id == asking.question.id)
}

/// Whether a line is a request for what was asked.
fn is_request(asking: &Asking<'_>, line: &Value) -> bool {
    let request = &line["data"]["permissionRequest"];
    let text = |name: &str| request[name].as_str();
    let tool = asking.question.tool.as_deref();
    line["type"] == "permission.requested"
        && match (command(asking.question), tool) {
            (Some(command), _) => text("fullCommandText") == Some(command),
            (None, Some(EDIT)) => {
                text("fileName").is_some_and(|file| asking.question.paths.iter().any(|path| path == file))
            }
            (None, Some(tool)) => {
                let server = text("serverName").zip(text("toolName"));
                server.is_some_and(|(server, name)| tool == format!("{server}/{name}"))
            }
            (None, None) => text("hookMessage") == Some(asking.question.what.as_str()),
        }
}

/// The last request that was not answered so far.
fn unanswered(lines: &[Value]) -> Option<&Value> {
    lines.iter().enumerate().rev().find_map(|(at, line)| {
        let open = line["type"] == "permission.requested" && outcome(Some(line), &lines[at..]).is_none();
        open.then_some(line)
    })
}

/// What came of a request.
fn outcome(request: Option<&Value>, after: &[Value]) -> Option<Standing> {
    let id = request?["data"]["requestId"].as_str()?;
    let completed = |line: &&Value| line["type"] == "permission.completed" && line["data"]["requestId"] == id;
    let result = after.iter().find(completed)?["data"]["result"]["kind"].as_str()?;
    Some(match result {
        "cancelled" => Standing::Over,
        _ if result.starts_with("approved") => Standing::Ran,
        _ => Standing::Refused,
    })
}

/// Whether the turn in which it was asked has ended.
fn turn_over(after: &[Value]) -> Option<Standing> {
    let ends = ["assistant.turn_end", "assistant.turn_start", "session.shutdown"];
    // Not that of a subagent.
    let mut own = after.iter().filter(|line| line["agentId"].is_null());
    let ended = own.any(|line| line["type"].as_str().is_some_and(|kind| ends.contains(&kind)));
    ended.then_some(Standing::Over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::event::EventKind;
    use baton_core::time::Moment;
    use std::path::Path;

    fn event(native: &str) -> Event {
        let payload = json!({"sessionId": "s", "notification_type": "permission_prompt"}).to_string();
        let event = crate::Agent::parse(&crate::copilot::Copilot, payload.as_bytes(), Some(native)).unwrap();
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

    fn read(native: &str, payload: &Value) -> Asked {
        asked(payload.to_string().as_bytes(), &event(native)).unwrap()
    }

    fn touch(at: u64) -> Asked {
        read(BEFORE_DIALOG, &before_dialog(at, "bash", &json!({"command": "touch a"})))
    }

    #[test]
    fn the_whole_of_a_question_is_told() {
        let input = json!({"command": "touch a\ntouch b"});
        let told = read(BEFORE_DIALOG, &before_dialog(1, "bash", &input)).question;
        assert_eq!((told.what.as_str(), told.detail.as_deref()), ("bash: touch a", Some("touch a\ntouch b")));
        assert_eq!(command(&told), Some("touch a\ntouch b"));
        assert_eq!(told.tool_use.unwrap().command.as_deref(), Some("touch a\ntouch b"));
        assert_eq!(command(&touch(1).question), Some("touch a"));
        let change = json!({"file_path": "/p/x", "diff": "\ndiff --git a/p/x b/p/x\n+1\n"});
        let told = read(BEFORE_DIALOG, &before_dialog(1, "edit", &change)).question;
        assert_eq!((told.what.as_str(), told.paths.as_slice()), ("edit: /p/x", &["/p/x".to_owned()][..]));
        assert_eq!(told.detail.as_deref(), Some("diff --git a/p/x b/p/x\n+1\n"));
        assert_eq!(command(&told), None);
        assert_eq!(told.tool_use.unwrap().paths, ["/p/x"]);
        let told = read(BEFORE_DIALOG, &before_dialog(1, "issues/close", &json!({"id": 3}))).question;
        assert_eq!((told.what.as_str(), told.always), ("issues/close", None));
        assert!(told.detail.unwrap().contains("\"id\": 3"));
    }

    #[test]
    fn a_dialog_is_that_of_the_hook_before_it() {
        let note = |message: &str| read(WITH_DIALOG, &with_dialog(9, message));
        assert_eq!(note("Run command: touch a").input, touch(1).input);
        assert_ne!(note("Run command: touch b").input, touch(1).input);
        let change = json!({"file_path": "/p/x", "diff": "+1"});
        let edit = read(BEFORE_DIALOG, &before_dialog(1, "edit", &change));
        assert_eq!(note("Edit file: /p/x").input, edit.input);
        assert_eq!(note("Edit file: /p/x").question.paths, ["/p/x"]);
        assert_eq!(note("Path permission needed: /etc").question.what, "Path permission needed: /etc");
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

    fn stands(asked: &Asked, lines: &[Value], running: &[&str]) -> Option<Standing> {
        let asking = Asking {
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
        standing(
            &asking,
            Look { read: &|_| Some(text.clone().into_bytes()), started_below: &|_| running.clone() },
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
        assert_eq!(stands(&question, std::slice::from_ref(&start), &[]), Some(Standing::Open));
        let allowed =
            [start.clone(), said("h", "allow"), requested("r", "touch a", true), completed("r", "approved")];
        assert_eq!(stands(&question, &allowed[..3], &[]), Some(Standing::Open));
        assert_eq!(stands(&question, &allowed, &[]), Some(Standing::Ran));
        let denied = "denied-by-permission-request-hook";
        let denied =
            [start.clone(), said("h", "deny"), requested("r", "touch a", true), completed("r", denied)];
        assert_eq!(stands(&question, &denied, &[]), Some(Standing::Refused));
        // Sooner than it is written.
        let shell = ["/bin/bash", "--norc", "-c", "touch a"];
        assert_eq!(stands(&question, std::slice::from_ref(&start), &shell), Some(Standing::Ran));
        assert_eq!(stands(&question, &[start], &["/bin/bash", "-c", "touch ab"]), Some(Standing::Open));
    }

    #[test]
    fn what_the_dialog_came_to_is_seen() {
        let silent = hook_end(BEFORE_DIALOG, "h", &Value::Null);
        let note = with_dialog(8, "Run command: touch a");
        let shown =
            [started(5, "h"), silent, requested("r", "touch a", false), hook_start(WITH_DIALOG, "n", &note)];
        let with = |more: &[Value]| [&shown[..], more].concat();
        for question in [touch(5), read(WITH_DIALOG, &note)] {
            assert_eq!(stands(&question, &shown, &[]), Some(Standing::Open), "{question:?}");
            let yes = with(&[completed("r", "approved-for-location")]);
            assert_eq!(stands(&question, &yes, &[]), Some(Standing::Ran));
            let no = with(&[completed("r", "denied-interactively-by-user")]);
            assert_eq!(stands(&question, &no, &[]), Some(Standing::Refused));
            let other = with(&[requested("q", "touch a", false), completed("q", "approved")]);
            assert_eq!(stands(&question, &other, &[]), Some(Standing::Open));
            let escape = with(&[json!({"type": "abort", "data": {"reason": "user_abort"}})]);
            assert_eq!(stands(&question, &escape, &[]), Some(Standing::Over));
            let of_subagent = with(&[json!({"type": "assistant.turn_end", "agentId": "a", "data": {}})]);
            assert_eq!(stands(&question, &of_subagent, &[]), Some(Standing::Open));
            let ended = with(&[json!({"type": "assistant.turn_end", "data": {}})]);
            assert_eq!(stands(&question, &ended, &[]), Some(Standing::Over));
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
        assert_eq!(stands(&touch(5), &lines, &[]), Some(Standing::Ran));
        assert_eq!(stands(&touch(6), &lines, &[]), Some(Standing::Refused));
        assert_ne!(touch(5).question.id, touch(6).question.id);
    }
}
