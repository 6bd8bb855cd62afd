//! What Claude Code asks, how it is answered, and how baton sees that a question is over.

use super::*;
use crate::agent::{HookCodec as _, Questions as _};
use crate::claude::Claude;
use proptest::prelude::*;

const SINCE: &str = "2026-11-16T10:15:01.000Z";
const BEFORE: &str = "2026-11-16T10:15:00.500Z";
const AFTER: &str = "2026-11-16T10:15:02.920Z";

fn payload(tool: &str, input: &Value, suggestions: &Value) -> Vec<u8> {
    json!({
        "session_id": "s", "transcript_path": "/c/projects/p/s.jsonl", "cwd": "/p", "prompt_id": "t",
        "hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": input,
        "permission_suggestions": suggestions,
    })
    .to_string()
    .into_bytes()
}

fn ask(tool: &str, input: &Value, suggestions: &Value) -> AgentQuestion {
    let payload = payload(tool, input, suggestions);
    Claude.asked(&payload, &Claude.parse(&payload, None).unwrap()).unwrap()
}

fn bash(command: &str) -> AgentQuestion {
    ask("Bash", &json!({"command": command, "description": "x"}), &json!([]))
}

/// The decision that an answer becomes.
fn decision(asked: &AgentQuestion, answer: &Answer) -> Option<Value> {
    let said: Value = serde_json::from_str(&render(asked, answer)?).unwrap();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], QUESTION_EVENT);
    Some(said["hookSpecificOutput"]["decision"].clone())
}

#[test]
fn a_question_says_what_exactly() {
    let command = bash("touch a\nrm b").question.subject;
    assert_eq!((command.as_command(), command.tool()), (Some("touch a\nrm b"), Some("Bash")));
    let edit = json!({"file_path": "/p/a.txt", "old_string": "one\ntwo", "new_string": "three"});
    let edit = ask("Edit", &edit, &json!([])).question.subject;
    assert_eq!((edit.paths(), edit.as_change()), (vec!["/p/a.txt"], Some("-one\n-two\n+three\n")));
    let write = ask("Write", &json!({"file_path": "/p/a", "content": "text"}), &json!([])).question.subject;
    assert_eq!((write.paths(), write.part("content")), (vec!["/p/a"], Some("text")));
    let fetch =
        ask("WebFetch", &json!({"url": "http://h.example/x", "prompt": "p"}), &json!([])).question.subject;
    assert_eq!((fetch.part("address"), fetch.part("prompt")), (Some("http://h.example/x"), Some("p")));
    let other = ask("mcp__probe__x", &json!({"a": 1}), &json!([])).question.subject;
    assert_eq!((other.tool(), other.part("a")), (Some("mcp__probe__x"), Some("1")));
    assert_eq!(ask(PLAN_TOOL, &json!({}), &json!([])).question.subject.head(), PLAN_TOOL);
}

#[test]
fn s2_only_what_is_shown_as_a_rule_is_granted_for_good() {
    let of = |suggestion: Value| ask("Bash", &json!({"command": "ls"}), &json!([suggestion]));
    for (suggestion, shown) in [
        (
            json!({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "WebSearch"}]}),
            Some("every use of WebSearch"),
        ),
        (json!({"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Bash"}]}), None),
        (json!({"type": "addRules", "behavior": "allow", "rules": []}), None),
        (
            json!({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": {"x": 1}}]}),
            None,
        ),
        (json!({"type": "setMode", "mode": "bypassPermissions"}), None),
        // Each rule is distinct from the next one.
        (
            json!({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": "ls), every use of Edit, Bash(x"}]}),
            Some(": Bash(\"ls), every use of Edit, Bash(x\")"),
        ),
        (
            json!({"type": "addRules", "behavior": "allow", "rules": [
                {"toolName": "Bash", "ruleContent": "ls"}, {"toolName": "Bash", "ruleContent": "a \"b\""}]}),
            Some(": Bash(ls), Bash(\"a \\\"b\\\"\")"),
        ),
        (
            json!({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash(ls), every use of Edit"}]}),
            None,
        ),
        (json!({"type": "addDirectories", "directories": ["/p/a, /p/b"]}), Some(": files in \"/p/a, /p/b\"")),
        // What is not shown is not granted.
        (
            json!({"type": "addRules", "behavior": "allow", "destination": "session", "mode": "bypassPermissions",
                "rules": [{"toolName": "Bash", "ruleContent": "ls"}]}),
            None,
        ),
        (
            json!({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": "ls", "scope": "ANYTHING"}]}),
            None,
        ),
        (json!({"type": "addDirectories", "directories": ["/p"], "recursive": true}), None),
        (json!({"type": "setMode", "mode": "acceptEdits", "rules": [{"toolName": "Bash"}]}), None),
        (json!({"type": "replaceRules", "behavior": "allow", "rules": [{"toolName": "Bash"}]}), None),
    ] {
        let asked = of(suggestion.clone());
        let always = asked.question.subject.always();
        assert_eq!(
            always.map(|rule| rule.ends_with(shown.unwrap_or("-"))),
            shown.map(|_| true),
            "{suggestion}"
        );
        assert_eq!(decision(&asked, &Answer::AllowAlways).is_some(), shown.is_some(), "{suggestion}");
    }
}

#[test]
fn s2_a_suggestion_with_an_unknown_field_makes_no_wider_one_the_rule() {
    let strange = json!({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": "ls"}], "x": 1});
    let wider = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let asked = ask("Bash", &json!({"command": "ls"}), &json!([strange, wider]));
    assert_eq!(asked.question.subject.always(), None);
    assert_eq!(decision(&asked, &Answer::AllowAlways), None);
}

#[test]
fn what_is_no_question_is_none() {
    let note = json!({"session_id": "s", "hook_event_name": "Notification", "notification_type": "permission_prompt"});
    let note = note.to_string().into_bytes();
    assert_eq!(Claude.asked(&note, &Claude.parse(&note, None).unwrap()), None);
}

#[test]
fn always_is_for_the_session_and_said_in_words() {
    let rule = json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "curl http://x/"}],
        "behavior": "allow", "destination": "localSettings"});
    let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let folder = json!({"type": "addDirectories", "directories": ["/p"], "destination": "session"});
    let asked = ask("Bash", &json!({"command": "curl http://x/"}), &json!([rule, mode]));
    assert_eq!(asked.question.subject.always(), Some("for the rest of the session: Bash(curl http://x/)"));
    let said = decision(&asked, &Answer::AllowAlways).unwrap();
    assert_eq!(said["updatedPermissions"].as_array().unwrap().len(), 1);
    assert_eq!(said["updatedPermissions"][0]["destination"], "session", "no file of the project is written");
    assert_eq!(decision(&asked, &Answer::Allow), Some(json!({"behavior": "allow"})));
    let files = ask("Write", &json!({"file_path": "/p/a"}), &json!([folder, mode])).question.subject;
    let files = files.always().unwrap();
    assert!(files.contains("files in /p; all changes of files"), "{files}");
    // Nothing is suggested if a rule wants the user to be asked each time.
    assert_eq!(bash("ls").question.subject.always(), None);
    assert_eq!(decision(&bash("ls"), &Answer::AllowAlways), None);
}

#[test]
fn a_no_carries_its_reason() {
    let said = decision(&bash("ls"), &Answer::Deny("not now".into())).unwrap();
    assert_eq!(said, json!({"behavior": "deny", "message": "not now"}));
    let silent = decision(&bash("ls"), &Answer::Deny(" ".into())).unwrap();
    assert_eq!(silent["message"], "A person said no to that.");
}

#[test]
fn a_plan_takes_no_yes_from_a_hook() {
    let plan = ask(PLAN_TOOL, &json!({}), &json!([]));
    assert_eq!(decision(&plan, &Answer::Allow), None);
    assert!(decision(&plan, &Answer::Deny("no".into())).is_some());
}

#[test]
fn questions_are_answered_with_words() {
    let one = |question: &str| json!({"question": question, "header": "h", "options": [{"label": "Red"}, {"label": "Blue"}]});
    let asked = ask(QUESTION_TOOL, &json!({"questions": [one("Which colour?")]}), &json!([]));
    assert_eq!(asked.question.kind(), QuestionKind::Input);
    assert_eq!(
        (asked.question.subject.text().as_str(), asked.question.subject.choices()),
        ("Which colour?\n  Red\n  Blue", &["Red".into(), "Blue".into()][..])
    );
    let said = decision(&asked, &Answer::Words("Blue\n".into())).unwrap();
    assert_eq!(said["updatedInput"]["answers"], json!({"Which colour?": "Blue"}));
    assert_eq!(said["updatedInput"]["questions"], json!([one("Which colour?")]));
    assert_eq!(decision(&asked, &Answer::Allow), None, "a yes is no answer");

    let both = ask(QUESTION_TOOL, &json!({"questions": [one("First?"), one("Second?")]}), &json!([]));
    assert!(
        both.question.subject.choices().is_empty()
            && both.question.subject.text().contains("  | Second?\n  |   Red\n  |   Blue")
    );
    let answers = |words: &str| {
        decision(&both, &Answer::Words(words.into())).unwrap()["updatedInput"]["answers"].clone()
    };
    assert_eq!(answers("Red\nBlue"), json!({"First?": "Red", "Second?": "Blue"}));
    assert_eq!(answers("whatever"), json!({"First?": "whatever", "Second?": "whatever"}));
}

#[test]
fn no_user_sits_in_front_of_a_run_without_a_terminal() {
    let headless = |args: &[&str], attended| {
        is_headless(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), attended)
    };
    assert!(headless(&["claude", "-p", "go"], None) && headless(&["claude", "--print", "go"], Some("1")));
    assert!(headless(&["claude"], Some("0")));
    assert!(!headless(&["claude"], Some("1")) && !headless(&["claude", "go"], None));
    assert!(
        !headless(&["claude", "-p", "--permission-prompt-tool", "stdio"], Some("0")),
        "somebody else asks"
    );
    assert!(!headless(&["claude", "--permission-prompt-tool=mcp__a__b", "-p"], Some("0")));
    let nobody = |args: &[&str]| asks_nobody(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
    assert!(
        nobody(&["claude", "-p", "--permission-prompts", "none"])
            && nobody(&["claude", "--permission-prompts=none"])
    );
    assert!(!nobody(&["claude", "--permission-prompts", "host"]) && !nobody(&["claude", "-p", "none"]));
}

fn call(id: &str, asked: &AgentQuestion) -> String {
    let (tool, input) = (asked.question.subject.tool().unwrap(), &asked.native["input"]);
    let block = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
    json!({"type": "assistant", "timestamp": BEFORE, "message": {"content": [block]}}).to_string()
}

fn result(id: &str, at: &str, more: &Value) -> String {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
    let mut line = json!({"type": "user", "timestamp": at, "message": {"content": [block]}});
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    line.to_string()
}

fn refusal() -> Value {
    json!({"toolDenialKind": "permission-rule", "permissionDecision": {"decision": "reject", "source": "hook"}})
}

/// The files and processes that show a question.
#[derive(Default)]
struct Shown {
    lines: Vec<String>,
    registry: Option<Value>,
    running: Vec<String>,
    subagent: Option<&'static str>,
}

impl Shown {
    fn lines(lines: &[String]) -> Self {
        Self { lines: lines.to_vec(), ..Self::default() }
    }

    fn question_status(&self, asked: &AgentQuestion, handed: Option<&Answer>) -> Option<QuestionStatus> {
        let asking = RecordedQuestion {
            session_id: "s",
            subagent: self.subagent,
            pid: Some(7),
            transcript: Some(Path::new("/c/projects/p/s.jsonl")),
            question: &asked.question,
            call: None,
            input: asked.input,
            since: moment(SINCE).unwrap(),
            handed,
        };
        let read = |file: &Path| match file.to_str().unwrap() {
            "/c/projects/p/s.jsonl" if self.subagent.is_none() => Some(self.lines.join("\n").into_bytes()),
            "/c/projects/p/s/subagents/agent-a1.jsonl" => Some(self.lines.join("\n").into_bytes()),
            "/c/sessions/7.json" => self.registry.as_ref().map(|entry| entry.to_string().into_bytes()),
            _ => None,
        };
        let below = |pid: i32| {
            assert_eq!(pid, 7);
            vec![self.running.clone()]
        };
        Claude.question_status(&asking, ProcessProbe { read: &read, started_below: &below })
    }
}

fn no() -> Answer {
    Answer::Deny("no".into())
}

#[test]
fn the_result_of_the_call_tells_what_became_of_it() {
    let asked = bash("touch a");
    let open = [call("t1", &asked)];
    assert_eq!(Shown::lines(&open).question_status(&asked, Some(&Answer::Allow)), None);
    let end = |at: &str, more: &Value| {
        Shown::lines(&[call("t1", &asked), result("t1", at, more)]).question_status(&asked, None)
    };
    assert_eq!(end(AFTER, &json!({})), Some(QuestionStatus::Ran));
    assert_eq!(end(AFTER, &refusal()), Some(QuestionStatus::Refused));
    assert_eq!(end(AFTER, &json!({"toolDenialKind": "user-rejected"})), Some(QuestionStatus::Refused));
    assert_eq!(end(BEFORE, &json!({})), None, "that was the same call, before");
}

#[test]
fn another_call_tells_nothing() {
    let (asked, other) = (bash("touch a"), bash("touch b"));
    let lines = [call("t1", &asked), call("t2", &other), result("t2", AFTER, &json!({}))];
    assert_eq!(Shown::lines(&lines).question_status(&asked, Some(&no())), None);
    assert_eq!(Shown::lines(&lines).question_status(&other, Some(&no())), Some(QuestionStatus::Ran));
}

#[test]
fn calls_that_are_alike_tell_only_together() {
    let asked = bash("touch a");
    let both = |more: &[String]| {
        let lines = [&[call("t1", &asked), call("t2", &asked)], more].concat();
        Shown::lines(&lines).question_status(&asked, None)
    };
    let (ran, refused) = (result("t1", AFTER, &json!({})), result("t2", AFTER, &refusal()));
    assert_eq!(both(std::slice::from_ref(&ran)), None, "the other may still be asked about");
    assert_eq!(both(&[ran.clone(), refused]), None);
    assert_eq!(both(&[ran, result("t2", AFTER, &json!({}))]), Some(QuestionStatus::Ran));
}

#[test]
fn the_transcript_of_a_subagent_shows_its_question() {
    let asked = bash("touch a");
    let lines = vec![call("t1", &asked), result("t1", AFTER, &json!({}))];
    let idle = json!({"sessionId": "s", "status": "busy", "statusUpdatedAt": i64::MAX});
    let shown = Shown { lines, subagent: Some("a1"), registry: Some(idle.clone()), ..Shown::default() };
    assert_eq!(shown.question_status(&asked, None), Some(QuestionStatus::Ran));
    let shown = Shown { subagent: Some("a1"), registry: Some(idle), ..Shown::default() };
    assert_eq!(shown.question_status(&asked, None), None, "the registry says nothing about subagents");
}

#[test]
fn a_command_that_runs_is_seen_in_its_shell() {
    let asked = bash("echo 'it''s'; sleep 9");
    let shell = r#"source /x 2>/dev/null || true && eval 'echo '"'"'it'"'"''"'"'s'"'"'; sleep 9' < /dev/null && pwd -P >| /tmp/c"#;
    let shown = Shown { running: vec!["/bin/bash".into(), "-c".into(), shell.into()], ..Shown::default() };
    assert_eq!(shown.question_status(&asked, Some(&Answer::Allow)), Some(QuestionStatus::Ran));
    assert_eq!(shown.question_status(&asked, None), Some(QuestionStatus::Ran), "its own dialog was answered");
    assert_eq!(shown.question_status(&asked, Some(&no())), None);
    assert_eq!(shown.question_status(&bash("echo"), Some(&Answer::Allow)), None);
}

#[test]
fn the_registry_tells_that_no_dialog_is_left() {
    let asked = ask("WebFetch", &json!({"url": "http://x"}), &json!([]));
    let since = moment(SINCE).unwrap();
    let says = |status: &str, after: i64, handed: Option<&Answer>| {
        let entry = json!({"sessionId": "s", "status": status, "statusUpdatedAt": since.0 + after});
        Shown { registry: Some(entry), ..Shown::default() }.question_status(&asked, handed)
    };
    assert_eq!(says("waiting", 2000, None), Some(QuestionStatus::Open));
    assert_eq!(says("busy", 2000, None), Some(QuestionStatus::Over));
    assert_eq!(says("idle", 2000, None), Some(QuestionStatus::Over));
    assert_eq!(says("busy", 100, None), None, "it may say so of what came before");
    assert_eq!(says("busy", 2000, Some(&Answer::Allow)), Some(QuestionStatus::Ran));
    assert_eq!(says("busy", 2000, Some(&no())), None, "what was denied may have been allowed there");
    assert_eq!(says("idle", 2000, Some(&Answer::Allow)), None, "it may have been taken back");
}

proptest! {
    /// Whatever else a conversation contains: only the end of a call with the same tool and input,
    /// after the question, ends the question.
    #[test]
    fn only_the_end_of_its_own_call_ends_a_question(
        calls in prop::collection::vec((0usize..3, 0u8..4), 0..8),
        mine in 0usize..3,
    ) {
        let all = ["touch a", "touch b", "touch c"].map(bash);
        let mut lines = Vec::new();
        for (number, (which, _)) in calls.iter().enumerate() {
            lines.push(call(&format!("t{number}"), &all[*which]));
        }
        for (number, (_, end)) in calls.iter().enumerate() {
            let id = format!("t{number}");
            match end {
                0 => {}
                1 => lines.push(result(&id, AFTER, &json!({}))),
                2 => lines.push(result(&id, AFTER, &refusal())),
                _ => lines.push(result(&id, BEFORE, &json!({}))),
            }
        }
        let ends: Vec<u8> = calls.iter().filter(|(which, _)| *which == mine).map(|(_, end)| *end).collect();
        match Shown::lines(&lines).question_status(&all[mine], Some(&Answer::Allow)) {
            Some(QuestionStatus::Ran) => prop_assert!(ends.contains(&1) && !ends.ends_with(&[0]) && !ends.ends_with(&[2])),
            Some(QuestionStatus::Refused) => prop_assert!(ends.contains(&2) && !ends.ends_with(&[0]) && !ends.ends_with(&[1])),
            other => prop_assert_eq!(other, None),
        }
    }

    #[test]
    fn any_payload_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let event = Claude.parse(&payload("Bash", &json!({}), &json!([])), None).unwrap();
        Claude.asked(&bytes, &event);
    }
}
