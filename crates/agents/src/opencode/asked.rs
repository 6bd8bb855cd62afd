//! What OpenCode asks its user, as our plugin forwards it, and the answer in the plugin's form. A
//! call that the plugin holds because a guard rule wants it confirmed is one of these questions.

use super::adapter::is_program;
use super::tools::{CALLS, TOOLS};
use crate::asked::{
    AgentQuestion, QuestionOutcome, QuestionReport, fingerprint, in_words, question_about_call,
};
use crate::call;
use baton_core::approval::{Answer, Extent, Part, Question, QuestionKind, Subject, in_a_list};
use baton_core::event::Event;
use baton_core::tool::{ToolKind, ToolUse};
use serde_json::{Value, json};

/// Where a permission spells out what it is about, and what baton calls that.
const SUBJECT_FIELDS: [(&str, &str); 5] = [
    ("command", "command"),
    ("filepath", "file"),
    ("parentDir", "file"),
    ("url", "address"),
    ("query", "query"),
];

/// The event with which our plugin reports a held call.
const HELD_CALL_EVENT: &str = "call.asked";

/// Commands of OpenCode without a user in front of the process.
const HEADLESS_COMMANDS: [&str; 5] = ["acp", "github", "run", "serve", "web"];

/// Options before a command that take the next argument as their value.
const OPTIONS_WITH_VALUE: [&str; 11] = [
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

/// Whether no user sits in front of a process with these arguments.
pub fn is_headless(args: &[String]) -> bool {
    let own = args.iter().take(2).position(|arg| is_program(arg)).map_or(0, |at| at + 1);
    let mut rest = args[own.min(args.len())..].iter().map(String::as_str);
    let mut command = None;
    while let Some(arg) = rest.next() {
        if OPTIONS_WITH_VALUE.contains(&arg) {
            rest.next();
        } else if !arg.starts_with('-') {
            command = Some(arg);
            break;
        }
    }
    let interactive = command == Some("run") && rest.any(|arg| matches!(arg, "-i" | "--interactive"));
    command.is_some_and(|command| HEADLESS_COMMANDS.contains(&command)) && !interactive
}

/// The question of an event.
pub fn asked(payload: &[u8], event: &Event) -> Option<AgentQuestion> {
    let read = match event.native.as_str() {
        HELD_CALL_EVENT => return held(payload),
        "permission.asked" => permission,
        "question.asked" => question,
        _ => return None,
    };
    let payload: Value = serde_json::from_slice(payload).ok()?;
    let about = &payload["asked"];
    let question = told_in_part(read(about)?, about);
    let call = about["tool"]["callID"].as_str().map(str::to_owned);
    let input = fingerprint(
        question.subject.tool().unwrap_or_default(),
        &json!([about["patterns"], about["metadata"], about["questions"]]),
    );
    Some(AgentQuestion { question, call, input, native: Value::Null })
}

/// A call that our plugin holds, in the fields of the event before it.
fn held(payload: &[u8]) -> Option<AgentQuestion> {
    let call = call::read(payload, CALLS.before.first().copied(), &CALLS, &TOOLS).ok()??;
    let told: Value = serde_json::from_slice(payload).ok()?;
    let asked = question_about_call(&TOOLS, &call, told["request"].as_str()?.to_owned());
    let why = told["why"].as_str().unwrap_or_default().to_owned();
    let question = Question { why: Some(why), ..asked.question };
    Some(AgentQuestion { question: told_in_part(question, &told), ..asked })
}

/// The same, with how much of it our plugin left out.
fn told_in_part(question: Question, told: &Value) -> Question {
    let left_out = told["left_out"].as_u64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
    Question { subject: question.subject.without(left_out), ..question }
}

/// Reads a permission from an event or from `GET /permission`. Old servers name the kind of the
/// tool `type`.
pub fn permission(about: &Value) -> Option<Question> {
    let name = about["permission"].as_str().or_else(|| about["type"].as_str())?;
    let (patterns, metadata) = (texts(&about["patterns"]), &about["metadata"]);
    let is_shell = name == "bash";
    let mut parts = Vec::new();
    // The subject comes first, then the change, then everything else.
    for (field, part) in SUBJECT_FIELDS {
        parts.extend(
            metadata[field].as_str().filter(|text| !text.is_empty()).map(|text| Part::new(part, text)),
        );
    }
    parts.extend(metadata["diff"].as_str().map(Part::change));
    let fields = metadata.as_object().into_iter().flatten();
    let shown = |name: &str| name == "diff" || SUBJECT_FIELDS.iter().any(|(field, _)| *field == name);
    let more = fields.filter(|(name, value)| {
        let words = is_shell && name.as_str() == "description" && value.is_string();
        !(words || value.is_null() || shown(name) && value.is_string())
    });
    parts.extend(more.map(|(name, value)| Part::new(name, in_words(value))));
    // The patterns only repeat a command or a file that is already shown in full.
    let is_said = parts.iter().any(|part| matches!(part.name(), "command" | "file" | "address"));
    if !is_said {
        let name = if matches!(name, "edit" | "read" | "external_directory") { "file" } else { "pattern" };
        parts.splice(..0, patterns.into_iter().map(|pattern| Part::new(name, pattern)));
    }
    let has = |field: &str| metadata[field].is_string();
    let tells_all = match name {
        "bash" => has("command"),
        "edit" => has("diff"),
        "webfetch" => has("url"),
        "websearch" | "codesearch" => has("query"),
        "read" | "glob" | "grep" | "list" | "skill" => !parts.is_empty(),
        // OpenCode does not tell the arguments of an MCP tool, the task of a subagent, or why it
        // needs a folder.
        _ => false,
    };
    let extent = if tells_all { Extent::Whole } else { Extent::NoMore };
    parts.extend(about["title"].as_str().filter(|_| !is_said).map(|title| Part::new("title", title)));
    let subject = Subject::permission(Some(name), parts, extent)
        .with_note(metadata["description"].as_str().filter(|_| is_shell))
        .with_always(always(about));
    Some(Question::new(about["id"].as_str()?, subject).about(tool_use(name, metadata)))
}

/// What is asked about in full, for rules to check: a command, or one changed file.
fn tool_use(name: &str, metadata: &Value) -> Option<ToolUse> {
    let text = |field: &str| metadata[field].as_str().map(str::to_owned);
    match name {
        "bash" => Some(ToolUse { command: Some(text("command")?), ..ToolUse::new(ToolKind::Shell, name) }),
        // A patch names several files, all of them in one text.
        "edit" if metadata["files"].is_null() => {
            Some(ToolUse { paths: vec![text("filepath")?], ..ToolUse::new(ToolKind::Edit, name) })
        }
        _ => None,
    }
}

/// The rule that OpenCode suggests for "always", by its own patterns.
pub fn rule(about: &Value) -> Option<String> {
    let name = about["permission"].as_str().or_else(|| about["type"].as_str())?;
    let patterns = texts(&about["always"]);
    // A pattern that is no text can't be shown.
    if about["always"].as_array().map_or(0, Vec::len) != patterns.len() {
        return None;
    }
    match patterns.as_slice() {
        [] => None,
        [all] if all == "*" => Some(format!("every {}", in_a_list(name))),
        patterns => {
            let patterns: Vec<String> = patterns.iter().map(|pattern| in_a_list(pattern)).collect();
            Some(format!("{}: {}", in_a_list(name), patterns.join(", ")))
        }
    }
}

/// What OpenCode means by "always": until it ends, in all its sessions of that project.
fn always(about: &Value) -> Option<String> {
    rule(about).map(|rule| format!("{rule}; in all sessions of this project, until OpenCode ends"))
}

/// Reads a question to the user.
pub fn question(about: &Value) -> Option<Question> {
    let questions = about["questions"].as_array()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let part = |question: &Value| {
        let options = question["options"].as_array().into_iter().flatten();
        let options: Vec<_> =
            options.map(|option| (text(&option["label"]), text(&option["description"]))).collect();
        let several = if question["multiple"] == true { " (one or more, with commas)" } else { "" };
        Part::question(&format!("{}{several}", text(&question["question"])), &options)
    };
    let choices = match questions.as_slice() {
        [one] => labels(one),
        _ => Vec::new(),
    };
    let subject = Subject::input(Some("question"), questions.iter().map(part).collect(), choices);
    Some(Question::new(about["id"].as_str()?, subject))
}

fn labels(question: &Value) -> Vec<String> {
    let options = question["options"].as_array().into_iter().flatten();
    options.filter_map(|option| option["label"].as_str()).map(str::to_owned).collect()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// An answer for the plugin to give.
pub fn answer(payload: &[u8], event: &Event, asked: &AgentQuestion, answer: &Answer) -> Option<Value> {
    let kind = match asked.question.kind() {
        _ if event.native == HELD_CALL_EVENT => "call",
        QuestionKind::Permission => "permission",
        QuestionKind::Input => "question",
    };
    let mut reply = json!({"request": asked.question.id, "kind": kind, "session_id": event.session_id});
    match (asked.question.kind(), answer) {
        (_, Answer::AllowAlways) if event.native == HELD_CALL_EVENT => return None,
        // The plugin throws it, and the model reads it.
        (_, Answer::Deny(words)) if event.native == HELD_CALL_EVENT => {
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
        // A question can only be dismissed without a text, so the text is given as its answer.
        (QuestionKind::Input, Answer::Words(words) | Answer::Deny(words)) => {
            let payload: Value = serde_json::from_slice(payload).ok()?;
            reply["answers"] = answers(words, payload["asked"]["questions"].as_array()?);
        }
        _ => return None,
    }
    Some(reply)
}

/// One line for each question if there are as many lines as questions; else the whole text for
/// each.
fn answers(words: &str, questions: &[Value]) -> Value {
    let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    let each = questions.len() > 1 && lines.len() == questions.len();
    let one = |(at, question): (usize, &Value)| chosen(if each { lines[at] } else { words }.trim(), question);
    Value::from_iter(questions.iter().enumerate().map(one))
}

/// The chosen labels of a question, in any capitalization. Other words stay unchanged.
fn chosen(words: &str, question: &Value) -> Value {
    let labels = labels(question);
    let label = |words: &str| labels.iter().find(|label| label.to_lowercase() == words.trim().to_lowercase());
    if let Some(label) = label(words) {
        return json!([label]);
    }
    let several: Option<Vec<&String>> = words.split(',').map(label).collect();
    several.filter(|_| question["multiple"] == true).map_or_else(|| json!([words]), |several| json!(several))
}

/// What the plugin reports about a question that it reported before.
pub fn question_outcome(payload: &[u8], event: &Event) -> Option<QuestionReport> {
    let is_answered =
        matches!(event.native.as_str(), "permission.replied" | "question.replied" | "question.rejected");
    if !is_answered && !matches!(event.native.as_str(), "approval.gone" | "approval.outcome") {
        return None;
    }
    let payload: Value = serde_json::from_slice(payload).ok()?;
    let detail = payload["detail"].as_str().unwrap_or_default().to_owned();
    let outcome = match payload["outcome"].as_str() {
        _ if is_answered => QuestionOutcome::Answered(how(&payload)),
        None => QuestionOutcome::Dropped("its turn has ended".into()),
        Some("effective") => QuestionOutcome::Effective,
        Some("gone") => QuestionOutcome::Gone(detail),
        Some("refused") => QuestionOutcome::Refused(detail),
        Some(_) => QuestionOutcome::Unsure(detail),
    };
    Some(QuestionReport { question: payload["request"].as_str()?.to_owned(), outcome })
}

/// How the question was answered, in words.
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

    /// As OpenCode 1.18.33 asks, and as our plugin forwards it.
    fn told(permission: &str, patterns: Value, metadata: Value, always: Value) -> AgentQuestion {
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
        assert_eq!(shell.question.subject.as_command(), Some(command), "all of it");
        assert!(!shell.question.subject.head_is_whole());
        assert_eq!(shell.call.as_deref(), Some("call_1"));
        let always = shell.question.subject.always().expect("it may be allowed for good").to_owned();
        assert!(always.starts_with("bash: rm *; in all sessions"), "{always}");

        let metadata = json!({"filepath": "/p/a.txt", "diff": "+hello"});
        let edit = told("edit", json!(["a.txt"]), metadata, json!(["*"])).question.subject;
        assert_eq!((edit.paths(), edit.as_change()), (vec!["/p/a.txt"], Some("+hello")));
        assert!(edit.always().expect("so").starts_with("every edit;"), "a star is everything");

        let metadata = json!({"filepath": "/etc/hostname", "parentDir": "/etc"});
        let outside = told("external_directory", json!(["/etc/*"]), metadata, json!([])).question.subject;
        assert_eq!(outside.paths(), ["/etc/hostname", "/etc"]);
        assert_eq!(outside.always(), None, "no rule to show");

        let other = told("doom_loop", json!(["bash"]), json!({}), json!(["bash"])).question.subject;
        assert_eq!(other.head(), "doom_loop: bash … (the agent does not say more)");
        let odd = told("odd", json!(["a", "b"]), json!({"deep": {"x": 1}}), json!([])).question.subject;
        assert_eq!(odd.text(), "pattern: a\npattern: b\ndeep: {\"x\":1}");
    }

    #[test]
    fn s1_a_permission_without_the_arguments_says_that_it_tells_no_more() {
        for (permission, patterns, metadata) in [
            ("files_delete", json!(["*"]), json!({})),
            ("task", json!(["general"]), json!({"description": "look around", "subagent_type": "general"})),
            ("edit", json!(["a.txt"]), json!({"filepath": "/p/a.txt"})),
            ("bash", json!(["rm *"]), json!({"description": "lists files"})),
        ] {
            let subject = told(permission, patterns, metadata, json!([])).question.subject;
            assert!(!subject.head_is_whole(), "{}", subject.head());
            assert!(subject.head().contains("the agent does not say more"), "{}", subject.head());
        }
        let task = told("task", json!([]), json!({"description": "do it"}), json!([])).question.subject;
        assert_eq!((task.part("description"), task.notes()), (Some("do it"), &[][..]));
    }

    #[test]
    fn s1_what_the_plugin_cut_can_not_be_approved_here() {
        let about =
            json!({"id": "per_1", "permission": "bash", "metadata": {"command": "ls"}, "left_out": 7});
        let payload = json!({"hook_event_name": "permission.asked", "session_id": "ses_1", "asked": about});
        let event = Event { native: "permission.asked".into(), ..Event::new(EventKind::Blocked, "ses_1") };
        let cut = asked(payload.to_string().as_bytes(), &event).expect("a question").question.subject;
        assert_eq!((cut.beyond(), cut.head_is_whole()), (7, false), "{}", cut.head());
        let held = json!({"hook_event_name": HELD_CALL_EVENT, "session_id": "ses_1", "request": "held-1", "tool": "bash",
            "callID": "call_1", "args": {"command": "ls"}, "why": "so", "left_out": 7});
        let event = Event { native: HELD_CALL_EVENT.into(), ..Event::new(EventKind::Blocked, "ses_1") };
        assert_eq!(
            asked(held.to_string().as_bytes(), &event).expect("a question").question.subject.beyond(),
            7
        );
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
        let event = Event { native: HELD_CALL_EVENT.into(), ..Event::new(EventKind::Blocked, "ses_1") };
        let asked = asked(payload.as_bytes(), &event).expect("a question");
        assert_eq!(
            (asked.question.id.as_str(), asked.call.as_deref()),
            ("held-ses_1-call_1", Some("call_1"))
        );
        assert_eq!(asked.question.subject.as_command(), Some("cd src\nrm -r build"), "all of it");
        assert_eq!(asked.question.why.as_deref(), Some("Files are counted."));
        assert_eq!(asked.question.subject.always(), None);
        let reply = |given: Answer| answer(payload.as_bytes(), &event, &asked, &given);
        let yes =
            json!({"request": "held-ses_1-call_1", "kind": "call", "session_id": "ses_1", "answer": "once"});
        assert_eq!(reply(Answer::Allow), Some(yes));
        assert_eq!(reply(Answer::Deny("use trash".into())).expect("a no")["message"], "use trash");
        assert_eq!(reply(Answer::Deny(" ".into())).expect("a no")["message"], "A person said no to this.");
        assert_eq!((reply(Answer::AllowAlways), reply(Answer::Words("so".into()))), (None, None));
    }

    #[test]
    fn no_user_sits_in_front_of_a_server_or_a_run() {
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
            (asked.question.kind(), asked.question.subject.choices()),
            (QuestionKind::Input, &["A".to_owned()][..])
        );
        let reply = |given: Answer| answer(payload.as_bytes(), &event, &asked, &given);
        assert_eq!(reply(Answer::Deny(" ".into())).expect("a no")["answer"], "reject");
        let no = reply(Answer::Deny("ask me later".into())).expect("a no with words");
        assert_eq!((&no["answers"], &no["answer"]), (&json!([["ask me later"]]), &Value::Null));
        assert_eq!(reply(Answer::Words("a".into())).expect("words")["answers"], json!([["A"]]));
        assert_eq!(reply(Answer::Allow), None, "it waits for words");
    }
}
