//! What the backends with JSON lines share: describing a tool call in a few words, and making a
//! fault from a program's error text.

use baton_core::job::{Fault, Tool, ToolKind, ToolState};
use baton_core::time::{Moment, Span};
use baton_core::{Code, frame, tool};
use serde_json::Value;

/// How much of a tool call is shown.
const WHAT_CHARS: usize = 80;
/// How much of a program's error text is kept.
const MESSAGE_CHARS: usize = 2000;

/// A tool call in a few words, by the agent's table of tools.
pub fn tool(agent: &str, call: &str, name: &str, input: &Value, state: ToolState) -> Tool {
    let native = baton_agents::by_name(agent).map(|agent| {
        let tools = agent.tools();
        baton_agents::tools::tool(tools, name, input, &[])
    });
    let (kind, detail) = match &native {
        Ok(tool::ToolUse { kind: tool::ToolKind::Shell, command, .. }) => (ToolKind::Shell, command.clone()),
        Ok(known) => {
            let detail = known.command.as_deref().or(known.path()).or(known.url.as_deref());
            (ToolKind::Other, detail.or_else(|| any_text(input)).map(str::to_owned))
        }
        Err(_) => (ToolKind::Other, any_text(input).map(str::to_owned)),
    };
    let what = match detail.as_deref().map(str::trim).filter(|detail| !detail.is_empty()) {
        Some(detail) => format!("{}: {}", name.to_lowercase(), line(detail)),
        None => name.to_lowercase(),
    };
    Tool { call: call.to_owned(), kind, what, state, output: 0 }
}

/// The call in full, for rules to be checked against it; `None` if nothing is known about the tool.
pub fn tool_use(agent: &str, name: &str, input: &Value) -> Option<tool::ToolUse> {
    let agent = baton_agents::by_name(agent).ok()?;
    Some(baton_agents::tools::tool(agent.tools(), name, input, &[baton_agents::install::SERVER]))
}

/// The first text in a tool's input, for tools without a better one.
fn any_text(input: &Value) -> Option<&str> {
    input.as_object()?.values().find_map(Value::as_str)
}

/// The beginning of a text, in one line.
pub fn line(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    if first.is_empty() { String::new() } else { frame::shown(first, WHAT_CHARS) }
}

/// The fault for an error, by the HTTP status that the program names, or by its text.
pub fn fault(agent: &str, status: Option<u64>, message: &str, now: Moment) -> Fault {
    let message = message.trim();
    let cut = message.char_indices().nth(MESSAGE_CHARS).map_or(message, |(end, _)| &message[..end]);
    let words = if cut.is_empty() { "the turn failed, without a reason" } else { cut };
    let code = code(status, &cut.to_lowercase());
    let mut fault = Fault::new(code, words);
    match code {
        Code::NotLoggedIn => {
            fault = fault.hint(format!("log in: run `{agent}` in a terminal once, or set its key"));
        }
        Code::RateLimited => {
            fault.again_at = again_at(cut, now);
            fault = fault.hint("wait until the limit is reset, or choose another agent or model");
        }
        Code::UnsupportedOption => {
            fault = fault.hint(format!("choose a model that `{agent}` offers, with --model"));
        }
        _ => {
            fault = fault.hint("`baton job logs` shows what it said; start the job again, or resume it");
        }
    }
    fault
}

fn code(status: Option<u64>, words: &str) -> Code {
    let says = |marks: &[&str]| marks.iter().any(|mark| words.contains(mark));
    match status {
        Some(401) => return Code::NotLoggedIn,
        Some(429 | 402) => return Code::RateLimited,
        Some(500..) => return Code::BackendError,
        _ => {}
    }
    if says(&["rate limit", "rate_limit", "usage limit", "quota", "too many requests", "resource_exhausted"])
    {
        Code::RateLimited
    } else if says(&[
        "invalid api key",
        "api key not valid",
        "please run /login",
        "not logged in",
        "unauthorized",
        "unauthenticated",
        "authentication failed",
        "no authentication",
        "401",
    ]) {
        Code::NotLoggedIn
    } else if says(&["model"])
        && says(&["not found", "not_found", "not exist", "not available", "unknown model"])
    {
        Code::UnsupportedOption
    } else {
        Code::BackendError
    }
}

/// When a limit ends, by the text about it: seconds since 1970 after a bar, as Claude Code writes
/// it, or a number of seconds.
pub fn again_at(words: &str, now: Moment) -> Option<Moment> {
    let since_1970 = words.rsplit_once('|').and_then(|(_, number)| number.trim().parse::<i64>().ok());
    if let Some(seconds) = since_1970.filter(|seconds| *seconds > 1_000_000_000) {
        return Some(Moment(seconds.saturating_mul(1000)));
    }
    for mark in ["retry after ", "retry in ", "reset after ", "retry-after: ", "try again in "] {
        let Some((_, rest)) =
            words.to_lowercase().split_once(mark).map(|(a, b)| (a.to_owned(), b.to_owned()))
        else {
            continue;
        };
        if let Some(span) = spoken(&rest) {
            return Some(now.plus(span));
        }
    }
    None
}

/// `7s`, `1h2m3s`, `7.5s`, `7 seconds`, `2 days 3 hours`, `7`.
fn spoken(text: &str) -> Option<Span> {
    let mut rest = text.trim_start();
    let mut total = None;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..end].trim_end_matches('.').parse::<f64>() else { break };
        rest = rest[end..].trim_start();
        let unit = match rest.chars().next() {
            Some('d') => 86_400.0,
            Some('h') => 3600.0,
            Some('m') if rest.starts_with("ms") => 0.001,
            Some('m') => 60.0,
            _ => 1.0,
        };
        #[expect(clippy::cast_possible_truncation, reason = "a span that a person waits for")]
        let millis = (number * unit * 1000.0) as i64;
        total = Some(total.unwrap_or(0) + millis);
        rest = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start();
    }
    total.map(Span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_told_by_what_it_does() {
        let what = |agent: &str, name: &str, input: Value| {
            let tool = tool(agent, "c", name, &input, ToolState::Running);
            (tool.kind, tool.what)
        };
        let bash = what("claude", "Bash", json!({"description": "d", "command": "cargo test\nls"}));
        assert_eq!(bash, (ToolKind::Shell, "bash: cargo test".to_owned()));
        let read = what("claude", "Read", json!({"file_path": "/a/b"}));
        assert_eq!(read, (ToolKind::Other, "read: /a/b".to_owned()));
        assert_eq!(what("gemini", "nobody", json!({})), (ToolKind::Other, "nobody".to_owned()));
        let shell = what("gemini", "run_shell_command", json!({"command": "ls"}));
        assert_eq!(shell, (ToolKind::Shell, "run_shell_command: ls".to_owned()));
    }

    #[test]
    fn a_fault_is_known_by_its_status_or_by_its_words() {
        let code = |status, words: &str| fault("claude", status, words, Moment(0)).error.code();
        assert_eq!(code(Some(401), "x"), Code::NotLoggedIn);
        assert_eq!(code(Some(429), "x"), Code::RateLimited);
        assert_eq!(code(Some(500), "rate limit"), Code::BackendError);
        assert_eq!(code(None, "Invalid API key · Please run /login"), Code::NotLoggedIn);
        assert_eq!(code(None, "You have exhausted your quota"), Code::RateLimited);
        assert_eq!(code(Some(404), "model: nope not found"), Code::UnsupportedOption);
        assert_eq!(code(None, ""), Code::BackendError);
    }

    #[test]
    fn the_end_of_a_limit_is_read_from_the_words() {
        let at = |words: &str| fault("claude", Some(429), words, Moment(1000)).again_at;
        assert_eq!(at("usage limit reached|1794900000"), Some(Moment(1_794_900_000_000)));
        assert_eq!(at("Please retry in 7.5s."), Some(Moment(8500)));
        assert_eq!(at("Your quota will reset after 1h2m3s."), Some(Moment(1000 + 3_723_000)));
        assert_eq!(at("try again in 2 minutes"), Some(Moment(121_000)));
        assert_eq!(at("Try again in 2 days 3 hours."), Some(Moment(1000 + 183_600_000)));
        assert_eq!(at("slow down"), None);
    }
}
