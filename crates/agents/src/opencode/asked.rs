//! What OpenCode asks its person, as our plugin forwards it, and the answer in the plugin's words. A call that the plugin holds because a rule of ours wants
//! it asked about is one of these questions.

use super::adapter::is_program;
use super::tools::{CALLS, TOOLS};
use crate::asked::{Asked, Settled, Settlement, about_call, fingerprint};
use crate::call;
use baton_core::approval::{Answer, Question, QuestionKind};
use baton_core::event::Event;
use baton_core::tool::{ToolKind, ToolUse};
use serde_json::{Value, json};

/// Where a permission says in so many words what it is about.
const ABOUT: [&str; 4] = ["command", "filepath", "url", "query"];

/// What our plugin says when it holds a call.
const HELD: &str = "call.asked";

/// Commands of OpenCode in which nobody sits in front of its process.
const HEADLESS: [&str; 5] = ["acp", "github", "run", "serve", "web"];

/// Its options before a command that have a value in the next argument.
const VALUED: [&str; 11] = [
    "--agent",
    "--cors",
    "--hostname",
    "--log-level",
    "--mdns-domain",
    "--model",
    "--port",
    "--prompt",
    "--session",
    "-m",
    "-s",
];

/// Whether nobody sits in front of a process with these arguments.
pub fn is_headless(args: &[String]) -> bool {
    let own = args.iter().take(2).position(|arg| is_program(arg)).map_or(0, |at| at + 1);
    let mut rest = args[own.min(args.len())..].iter().map(String::as_str);
    let mut command = None;
    while let Some(arg) = rest.next() {
        if VALUED.contains(&arg) {
            rest.next();
        } else if !arg.starts_with('-') {
            command = Some(arg);
            break;
        }
    }
    let interactive = command == Some("run") && rest.any(|arg| matches!(arg, "-i" | "--interactive"));
    command.is_some_and(|command| HEADLESS.contains(&command)) && !interactive
}

/// What is asked with an event.
pub fn asked(payload: &[u8], event: &Event) -> Option<Asked> {
    let read = match event.native.as_str() {
        HELD => return held(payload),
        "permission.asked" => permission,
        "question.asked" => question,
        _ => return None,
    };
    let payload: Value = serde_json::from_slice(payload).ok()?;
    let about = &payload["asked"];
    let question = read(about)?;
    let call = about["tool"]["callID"].as_str().map(str::to_owned);
    let tool = question.tool.as_deref().unwrap_or_default();
    let input = fingerprint(tool, &json!([about["patterns"], about["metadata"], about["questions"]]));
    Some(Asked { question, call, input, native: Value::Null })
}

/// A call that our plugin holds, in the fields of the event before it.
fn held(payload: &[u8]) -> Option<Asked> {
    let call = call::read(payload, CALLS.before.first().copied(), &CALLS, &TOOLS).ok()??;
    let told: Value = serde_json::from_slice(payload).ok()?;
    let asked = about_call(&TOOLS, &call, told["request"].as_str()?.to_owned());
    let why = told["why"].as_str().unwrap_or_default().to_owned();
    Some(Asked { question: Question { why: Some(why), ..asked.question }, ..asked })
}

/// Reads a permission, as events and `GET /permission` have it. Old servers name the kind of the tool `type`.
pub fn permission(about: &Value) -> Option<Question> {
    let name = about["permission"].as_str().or_else(|| about["type"].as_str())?;
    let patterns = texts(&about["patterns"]);
    let metadata = &about["metadata"];
    let said = ABOUT.iter().find_map(|field| metadata[*field].as_str()).filter(|said| !said.is_empty());
    let what = said.map_or_else(|| patterns.join(", "), str::to_owned);
    let what = if what.is_empty() { about["title"].as_str().unwrap_or_default().to_owned() } else { what };
    let line = what.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let detail = metadata["diff"].as_str().or_else(|| said.filter(|said| *said != line));
    let mut paths: Vec<String> = ["filepath", "parentDir"]
        .iter()
        .filter_map(|field| metadata[*field].as_str())
        .map(str::to_owned)
        .collect();
    if paths.is_empty() && matches!(name, "edit" | "read" | "external_directory") {
        paths = patterns;
    }
    Some(Question {
        id: about["id"].as_str()?.to_owned(),
        kind: QuestionKind::Permission,
        tool: Some(name.to_owned()),
        what: if line.is_empty() { name.to_owned() } else { format!("{name}: {line}") },
        detail: detail.map(str::to_owned),
        paths,
        always: always(name, &texts(&about["always"])),
        tool_use: tool_use(name, metadata).map(Box::new),
        ..Question::default()
    })
}

/// What is asked about in full, for rules to be held against: a command, or one file that is changed.
fn tool_use(name: &str, metadata: &Value) -> Option<ToolUse> {
    let text = |field: &str| metadata[field].as_str().map(str::to_owned);
    match name {
        "bash" => Some(ToolUse { command: Some(text("command")?), ..ToolUse::new(ToolKind::Shell, name) }),
        // A patch names several files, and asks with all of them in one text.
        "edit" if metadata["files"].is_null() => {
            Some(ToolUse { paths: vec![text("filepath")?], ..ToolUse::new(ToolKind::Edit, name) })
        }
        _ => None,
    }
}

/// What OpenCode takes "always" for: until it ends, in all sessions that it runs in that project.
fn always(name: &str, patterns: &[String]) -> Option<String> {
    let what = match patterns {
        [] => return None,
        [all] if all == "*" => format!("every {name}"),
        patterns => format!("{name}: {}", patterns.join(", ")),
    };
    Some(format!("{what}; in all sessions of this project, until OpenCode ends"))
}

/// Reads a question to a person.
pub fn question(about: &Value) -> Option<Question> {
    let questions = about["questions"].as_array()?;
    let words = |question: &Value| question["question"].as_str().unwrap_or_default().to_owned();
    let choices = match questions.as_slice() {
        [one] => labels(one),
        _ => Vec::new(),
    };
    let told: Vec<String> = questions.iter().map(|one| in_full(&words(one), one)).collect();
    Some(Question {
        id: about["id"].as_str()?.to_owned(),
        kind: QuestionKind::Input,
        tool: Some("question".into()),
        what: questions.iter().map(words).collect::<Vec<_>>().join(" / "),
        detail: Some(told.join("\n")),
        choices,
        ..Question::default()
    })
}

/// A question with what may be chosen, a line each.
fn in_full(words: &str, question: &Value) -> String {
    let option = |option: &Value| {
        let (label, about) = (option["label"].as_str()?, option["description"].as_str().unwrap_or_default());
        Some(if about.is_empty() { format!("\n  {label}") } else { format!("\n  {label}: {about}") })
    };
    let options = question["options"].as_array().into_iter().flatten().filter_map(option);
    let several = if question["multiple"] == true { " (one or more, with commas)" } else { "" };
    format!("{words}{several}{}", options.collect::<String>())
}

fn labels(question: &Value) -> Vec<String> {
    let options = question["options"].as_array().into_iter().flatten();
    options.filter_map(|option| option["label"].as_str()).map(str::to_owned).collect()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// An answer, for the plugin to give.
pub fn answer(payload: &[u8], event: &Event, asked: &Asked, answer: &Answer) -> Option<Value> {
    let kind = match asked.question.kind {
        _ if event.native == HELD => "call",
        QuestionKind::Permission => "permission",
        QuestionKind::Input => "question",
    };
    let mut reply = json!({"request": asked.question.id, "kind": kind, "session_id": event.session_id});
    match (asked.question.kind, answer) {
        (_, Answer::AllowAlways) if event.native == HELD => return None,
        // The plugin throws it, and the model reads it.
        (_, Answer::Deny(words)) if event.native == HELD => {
            reply["answer"] = json!("reject");
            reply["message"] = json!(call::said_no(words));
        }
        (QuestionKind::Permission, Answer::Allow) => reply["answer"] = json!("once"),
        (QuestionKind::Permission, Answer::AllowAlways) => reply["answer"] = json!("always"),
        (_, Answer::Deny(words)) if words.trim().is_empty() => reply["answer"] = json!("reject"),
        (QuestionKind::Permission, Answer::Deny(words)) => {
            reply["answer"] = json!("reject");
            reply["message"] = json!(words);
        }
        // A question can only be dismissed without a word; the words are its answer.
        (QuestionKind::Input, Answer::Words(words) | Answer::Deny(words)) => {
            let payload: Value = serde_json::from_slice(payload).ok()?;
            reply["answers"] = answers(words, payload["asked"]["questions"].as_array()?);
        }
        _ => return None,
    }
    Some(reply)
}

/// One line for each question, if there are as many; else all of it for each.
fn answers(words: &str, questions: &[Value]) -> Value {
    let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    let each = questions.len() > 1 && lines.len() == questions.len();
    let one = |(at, question): (usize, &Value)| chosen(if each { lines[at] } else { words }.trim(), question);
    Value::from_iter(questions.iter().enumerate().map(one))
}

/// What was chosen of a question's labels, however it was capitalized; words that are none of them stay as they are.
fn chosen(words: &str, question: &Value) -> Value {
    let labels = labels(question);
    let label = |words: &str| labels.iter().find(|label| label.to_lowercase() == words.trim().to_lowercase());
    if let Some(label) = label(words) {
        return json!([label]);
    }
    let several: Option<Vec<&String>> = words.split(',').map(label).collect();
    several.filter(|_| question["multiple"] == true).map_or_else(|| json!([words]), |several| json!(several))
}

/// What the plugin says about a question that it has told of.
pub fn settled(payload: &[u8], event: &Event) -> Option<Settled> {
    let is_answered =
        matches!(event.native.as_str(), "permission.replied" | "question.replied" | "question.rejected");
    if !is_answered && !matches!(event.native.as_str(), "approval.gone" | "approval.outcome") {
        return None;
    }
    let payload: Value = serde_json::from_slice(payload).ok()?;
    let detail = payload["detail"].as_str().unwrap_or_default().to_owned();
    let how = match payload["outcome"].as_str() {
        _ if is_answered => Settlement::Answered(how(&payload)),
        None => Settlement::Dropped("its turn has ended".into()),
        Some("effective") => Settlement::Effective,
        Some("gone") => Settlement::Gone(detail),
        Some("refused") => Settlement::Refused(detail),
        Some(_) => Settlement::Unsure(detail),
    };
    Some(Settled { question: payload["request"].as_str()?.to_owned(), how })
}

/// How somebody answered, in words.
fn how(payload: &Value) -> String {
    match (payload["reply"].as_str(), &payload["answers"]) {
        (Some(reply), _) => format!("answered in OpenCode: {reply}"),
        (None, Value::Null) => "dismissed in OpenCode".into(),
        (None, answers) => format!("answered in OpenCode: {answers}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::event::EventKind;

    /// As OpenCode 1.18.33 asks, and our plugin forwards it.
    fn told(permission: &str, patterns: Value, metadata: Value, always: Value) -> Asked {
        let about = json!({
            "id": "per_1e0a1cd500011cCeLC6ULiLamc", "sessionID": "ses_1", "permission": permission, "patterns": patterns,
            "metadata": metadata, "always": always, "tool": {"messageID": "msg_1", "callID": "call_1"},
        });
        let payload = json!({"hook_event_name": "permission.asked", "session_id": "ses_1", "asked": about});
        let event = Event { native: "permission.asked".into(), ..Event::new(EventKind::Blocked, "ses_1") };
        asked(payload.to_string().as_bytes(), &event).expect("a question")
    }

    #[test]
    fn a_permission_says_what_it_is_about_and_what_always_would_mean() {
        let command = "cd src\nrm -r build";
        let shell =
            told("bash", json!(["cd src", "rm -r build"]), json!({ "command": command }), json!(["rm *"]));
        assert_eq!(shell.question.what, "bash: cd src");
        assert_eq!(shell.question.detail.as_deref(), Some(command), "all of it");
        assert_eq!(shell.call.as_deref(), Some("call_1"));
        let always = shell.question.always.expect("it may be allowed for good");
        assert!(always.starts_with("bash: rm *; in all sessions"), "{always}");

        let metadata = json!({"filepath": "/p/a.txt", "diff": "+hello"});
        let edit = told("edit", json!(["a.txt"]), metadata, json!(["*"])).question;
        assert_eq!((edit.what.as_str(), edit.detail.as_deref()), ("edit: /p/a.txt", Some("+hello")));
        assert_eq!(edit.paths, ["/p/a.txt"]);
        assert!(edit.always.expect("so").starts_with("every edit;"), "a star is everything");

        let metadata = json!({"filepath": "/etc/hostname", "parentDir": "/etc"});
        let outside = told("external_directory", json!(["/etc/*"]), metadata, json!([])).question;
        assert_eq!(outside.what, "external_directory: /etc/hostname");
        assert_eq!(outside.always, None);

        let other = told("doom_loop", json!(["bash"]), json!({}), json!(["bash"])).question;
        assert_eq!((other.what.as_str(), other.detail), ("doom_loop: bash", None));
    }

    #[test]
    fn the_same_call_has_the_same_fingerprint_and_others_have_others() {
        let of =
            |command: &str| told("bash", json!([command]), json!({ "command": command }), json!([])).input;
        assert_eq!(of("ls"), of("ls"));
        assert_ne!(of("ls"), of("ls -l"));
    }

    #[test]
    fn a_held_call_says_what_it_is_about_and_why_and_takes_a_yes_or_a_no() {
        let payload = json!({
            "hook_event_name": "call.asked", "session_id": "ses_1", "request": "held-ses_1-call_1", "tool": "bash",
            "callID": "call_1", "args": {"command": "cd src\nrm -r build", "workdir": "/p"}, "why": "Files are counted.",
        });
        let payload = payload.to_string();
        let event = Event { native: HELD.into(), ..Event::new(EventKind::Blocked, "ses_1") };
        let asked = asked(payload.as_bytes(), &event).expect("a question");
        assert_eq!(
            (asked.question.id.as_str(), asked.call.as_deref()),
            ("held-ses_1-call_1", Some("call_1"))
        );
        assert_eq!(asked.question.what, "bash: cd src…");
        assert_eq!(asked.question.detail.as_deref(), Some("cd src\nrm -r build"), "all of it");
        assert_eq!(asked.question.why.as_deref(), Some("Files are counted."));
        assert_eq!(asked.question.always, None);
        let reply = |given: Answer| answer(payload.as_bytes(), &event, &asked, &given);
        let yes =
            json!({"request": "held-ses_1-call_1", "kind": "call", "session_id": "ses_1", "answer": "once"});
        assert_eq!(reply(Answer::Allow), Some(yes));
        assert_eq!(reply(Answer::Deny("use trash".into())).expect("a no")["message"], "use trash");
        assert_eq!(reply(Answer::Deny(" ".into())).expect("a no")["message"], "A person said no to this.");
        assert_eq!((reply(Answer::AllowAlways), reply(Answer::Words("so".into()))), (None, None));
    }

    #[test]
    fn nobody_sits_in_front_of_a_server_or_a_run() {
        let headless =
            |line: &str| is_headless(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        for line in [
            "opencode serve --port 0",
            "/usr/bin/opencode run --format json please begin",
            "node /usr/bin/opencode --print-logs --log-level INFO web",
            "opencode acp",
            "opencode --port 0 serve",
        ] {
            assert!(headless(line), "{line}");
        }
        for line in [
            "opencode",
            "opencode /p",
            "opencode --session run",
            "opencode --prompt serve --port 0",
            "opencode attach http://127.0.0.1:4096",
            "opencode run -i",
            "opencode ./run",
            "",
        ] {
            assert!(!headless(line), "{line}");
        }
    }

    #[test]
    fn a_question_is_dismissed_without_words_and_answered_by_those_of_a_no() {
        let about =
            json!({"id": "que_1", "questions": [{"question": "Which?", "options": [{"label": "A"}]}]});
        let payload = json!({ "asked": about }).to_string();
        let event = Event { native: "question.asked".into(), ..Event::new(EventKind::Blocked, "ses_1") };
        let asked = asked(payload.as_bytes(), &event).expect("a question");
        assert_eq!(
            (asked.question.kind, &asked.question.choices),
            (QuestionKind::Input, &vec!["A".to_owned()])
        );
        let reply = |given: Answer| answer(payload.as_bytes(), &event, &asked, &given);
        assert_eq!(reply(Answer::Deny(" ".into())).expect("a no")["answer"], "reject");
        let no = reply(Answer::Deny("ask me later".into())).expect("a no with words");
        assert_eq!((&no["answers"], &no["answer"]), (&json!([["ask me later"]]), &Value::Null));
        assert_eq!(reply(Answer::Words("a".into())).expect("words")["answers"], json!([["A"]]));
        assert_eq!(reply(Answer::Allow), None, "it waits for words");
    }
}
