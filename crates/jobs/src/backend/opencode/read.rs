//! OpenCode's documents as baton's types: messages, parts, errors and questions.
//!
//! Pure. A message of the assistant is complete once it has a completion time. If the server was
//! killed it never gets one, and that is no end. The ids of messages grow with time, so what came
//! after the prompt has a greater id.

use baton_core::job::{Fault, Finish, Said, Snapshot, Tool, ToolKind, ToolState};
use baton_core::time::{Moment, Span};
use baton_core::{Code, Error};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// How much of a tool call is shown.
const WHAT_CHARS: usize = 80;
/// Words by which a provider says that the account has nothing left, whatever its status.
const LIMIT_WORDS: [&str; 6] =
    ["rate limit", "too many requests", "quota", "usage limit", "insufficient", "credit balance"];

/// What the last messages of a session say about the turn that the prompt began. Whether the
/// session is idle is known elsewhere.
pub(super) fn turn(messages: &Value, prompt: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut version = DefaultHasher::new();
    for message in messages.as_array().into_iter().flatten() {
        let info = &message["info"];
        if !is_after(info, prompt) {
            continue;
        }
        message.to_string().hash(&mut version);
        if info["role"] != "assistant" {
            continue;
        }
        let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        snapshot.tools.extend(parts.iter().filter_map(tool).filter(|tool| tool.state != ToolState::Ended));
        snapshot.said = said(info, &text(parts));
        let error = &info["error"];
        snapshot.aborted = is_abort(error);
        snapshot.fault = fault_of_message(info);
    }
    snapshot.version = version.finish();
    snapshot
}

/// Whether a message came after the prompt: it answers it, or it was made later.
pub(super) fn is_after(info: &Value, prompt: &str) -> bool {
    info["parentID"] == prompt || info["id"].as_str().is_some_and(|id| id > prompt)
}

/// The text of a message.
pub(super) fn text(parts: &[Value]) -> String {
    let texts = parts.iter().filter(|part| part["type"] == "text" && part["synthetic"] != true);
    texts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// An assistant's message that is complete and did not fail.
pub(super) fn said(info: &Value, text: &str) -> Option<Said> {
    let complete = info["time"]["completed"].is_number() && info["error"].is_null();
    complete.then(|| Said { text: text.to_owned(), finish: finish(info) })
}

fn finish(info: &Value) -> Finish {
    if info["summary"] == true || info["mode"] == "compaction" {
        return Finish::Summary;
    }
    match info["finish"].as_str() {
        Some("stop") => Finish::End,
        Some("length") => Finish::Length,
        Some("tool-calls") => Finish::ToolCalls,
        Some(_) => Finish::Unknown,
        None => Finish::Absent,
    }
}

/// How a message failed, if it did, other than by an abort.
pub(super) fn fault_of_message(info: &Value) -> Option<Fault> {
    let error = &info["error"];
    if !error.is_null() && !is_abort(error) {
        return Some(fault(error, Moment(info["time"]["created"].as_i64().unwrap_or_default())));
    }
    let stopped = match info["finish"].as_str() {
        Some("content-filter") => "a filter of the provider stopped the answer",
        Some("error") => "the provider ended the answer with an error",
        _ => return None,
    };
    Some(Fault::new(Code::BackendError, stopped))
}

/// Whether an error is only that the turn was aborted.
pub(super) fn is_abort(error: &Value) -> bool {
    error["name"] == "MessageAbortedError"
}

/// A fault from one of OpenCode's errors. A time to wait counts from `now`.
pub(super) fn fault(error: &Value, now: Moment) -> Fault {
    let data = &error["data"];
    let name = error["name"].as_str().unwrap_or("an error without a name");
    // If a stack follows, the first line has the message.
    let words =
        data["message"].as_str().and_then(|words| words.lines().next()).filter(|words| !words.is_empty());
    let words = words.unwrap_or(name);
    let status = data["statusCode"].as_u64();
    if is_limit(status, words) {
        let header = |name: &str| data["responseHeaders"][name].as_str()?.trim().parse::<f64>().ok();
        let wait = header("retry-after-ms").or_else(|| header("retry-after").map(|seconds| seconds * 1000.0));
        let again_at = wait.filter(|wait| (0.0..1e12).contains(wait)).map(|wait| now.plus(Span(wait as i64)));
        return limit(words, again_at);
    }
    if status == Some(401) || name == "ProviderAuthError" {
        let error = Error::new(Code::NotLoggedIn, format!("OpenCode's provider refused the key: {words}"));
        return error.hint("run `opencode auth login`, or set the key of the provider").into();
    }
    if words.contains("odel not found") {
        return Error::new(Code::UnsupportedOption, words)
            .hint("`opencode models` lists what there is for --model")
            .into();
    }
    let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
    Fault::new(Code::BackendError, format!("OpenCode: {words}{status}"))
}

/// Whether an error means that the account has nothing left for now.
pub(super) fn is_limit(status: Option<u64>, words: &str) -> bool {
    let words = words.to_lowercase();
    matches!(status, Some(402 | 429)) || LIMIT_WORDS.iter().any(|limit| words.contains(limit))
}

/// The account has nothing left for now.
pub(super) fn limit(words: &str, again_at: Option<Moment>) -> Fault {
    let when = again_at.map_or_else(|| "later".to_owned(), |at| format!("after {}", at.to_rfc3339()));
    let error = Error::new(Code::RateLimited, format!("OpenCode's provider: {words}"));
    Fault { error: error.hint(format!("go on {when}, or with another --model")), again_at }
}

/// A tool call.
pub(super) fn tool(part: &Value) -> Option<Tool> {
    if part["type"] != "tool" {
        return None;
    }
    let (name, state) = (part["tool"].as_str()?, &part["state"]);
    let output = state["metadata"]["output"].as_str().or_else(|| state["output"].as_str());
    Some(Tool {
        call: part["callID"].as_str()?.to_owned(),
        kind: if name == "bash" { ToolKind::Shell } else { ToolKind::Other },
        what: what(name, &state["input"]),
        state: match state["status"].as_str() {
            Some("completed" | "error") => ToolState::Ended,
            Some("running") => ToolState::Running,
            _ => ToolState::Pending,
        },
        output: output.map_or(0, |output| output.len() as u64),
    })
}

/// `bash: cargo test`.
fn what(name: &str, input: &Value) -> String {
    let fields = ["command", "filePath", "path", "pattern", "url", "query", "description", "name"];
    let field = fields.iter().find_map(|field| input[*field].as_str());
    field.map_or_else(|| name.to_owned(), |field| format!("{name}: {}", head(field)))
}

/// The beginning, in one line.
fn head(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(WHAT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn assistant(id: &str, rest: Value, parts: Value) -> Value {
        let mut info = json!({"id": id, "role": "assistant", "time": {"created": 1000}});
        for (name, value) in rest.as_object().unwrap() {
            info[name] = value.clone();
        }
        json!({"info": info, "parts": parts})
    }

    #[test]
    fn only_what_came_after_our_prompt_counts() {
        let done = json!({"time": {"completed": 2}, "finish": "stop"});
        let parts = |text| json!([{"type": "text", "text": text}]);
        let old = assistant("msg_1", done.clone(), parts("old"));
        let prompt = json!({"info": {"id": "msg_2", "role": "user"}, "parts": []});
        let snapshot = turn(&json!([old, prompt]), "msg_2");
        assert_eq!((snapshot.said, snapshot.tools.len()), (None, 0));
        let new = assistant("msg_3", done, parts("new"));
        let snapshot = turn(&json!([old, prompt, new]), "msg_2");
        assert_eq!(snapshot.said, Some(Said { text: "new".to_owned(), finish: Finish::End }));
    }

    #[test]
    fn a_step_a_summary_and_a_broken_message_are_no_end() {
        let completed = json!({"completed": 2});
        for (info, finish) in [
            (json!({"time": completed, "finish": "tool-calls"}), Some(Finish::ToolCalls)),
            (json!({"time": completed, "finish": "stop", "summary": true}), Some(Finish::Summary)),
            (json!({"time": completed, "finish": "unknown"}), Some(Finish::Unknown)),
            (json!({"time": completed, "finish": "length"}), Some(Finish::Length)),
            (json!({"time": completed}), Some(Finish::Absent)),
            (json!({"finish": "stop"}), None),
            (json!({}), None),
        ] {
            let snapshot = turn(&json!([assistant("msg_3", info.clone(), json!([]))]), "msg_2");
            assert_eq!(snapshot.said.map(|said| said.finish), finish, "{info}");
        }
    }

    #[test]
    fn errors_have_codes_and_the_time_to_go_on() {
        let api = |status: u64, message: &str| json!({"name": "APIError", "data": {"message": message, "statusCode": status, "responseHeaders": {"retry-after": "30"}}});
        for (error, code) in [
            (api(401, "bad key"), Code::NotLoggedIn),
            (json!({"name": "ProviderAuthError", "data": {"message": "x"}}), Code::NotLoggedIn),
            (api(429, "slow down"), Code::RateLimited),
            (api(402, "pay"), Code::RateLimited),
            (api(400, "You exceeded your current quota"), Code::RateLimited),
            (api(400, "bad"), Code::BackendError),
            (api(500, "oops"), Code::BackendError),
            (
                json!({"name": "UnknownError", "data": {"message": "Model not found: a/b.\n at x"}}),
                Code::UnsupportedOption,
            ),
            (json!({"name": "UnknownError"}), Code::BackendError),
        ] {
            let fault = fault(&error, Moment(1000));
            assert_eq!(fault.error.code(), code, "{error}");
            assert_eq!(fault.again_at, (code == Code::RateLimited).then_some(Moment(31_000)), "{error}");
            assert!(!fault.error.message().contains('\n'));
        }
    }

    #[test]
    fn an_error_inside_a_good_answer_is_a_fault_and_an_abort_is_none() {
        let error = json!({"name": "APIError", "data": {"message": "no", "statusCode": 400}});
        let info = json!({"time": {"completed": 2}, "finish": "stop", "error": error});
        let snapshot = turn(&json!([assistant("msg_3", info, json!([]))]), "msg_2");
        assert_eq!(snapshot.fault.map(|fault| fault.error.code()), Some(Code::BackendError));
        assert_eq!((snapshot.said, snapshot.aborted), (None, false));
        let info = json!({"time": {"completed": 2}, "error": {"name": "MessageAbortedError"}});
        let snapshot = turn(&json!([assistant("msg_3", info, json!([]))]), "msg_2");
        assert!(snapshot.aborted && snapshot.fault.is_none() && snapshot.said.is_none());
    }

    #[test]
    fn tools_show_what_they_do_and_how_far_they_are() {
        let part = |status: &str| json!({"type": "tool", "tool": "bash", "callID": "c", "state": {"status": status, "input": {"command": "cargo test\nx"}, "metadata": {"output": "ab"}}});
        let running = tool(&part("running")).unwrap();
        assert_eq!(
            (running.what.as_str(), running.kind, running.output),
            ("bash: cargo test", ToolKind::Shell, 2)
        );
        for (status, state) in [
            ("pending", ToolState::Pending),
            ("running", ToolState::Running),
            ("completed", ToolState::Ended),
            ("error", ToolState::Ended),
        ] {
            assert_eq!(tool(&part(status)).unwrap().state, state);
        }
        let open =
            turn(&json!([assistant("msg_3", json!({}), json!([part("completed"), part("running")]))]), "");
        assert_eq!(open.tools.len(), 1);
    }
}
