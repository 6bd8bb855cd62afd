//! Codex's errors as faults.

use crate::backend::describe;
use baton_core::Code;
use baton_core::job::Fault;
use baton_core::time::Moment;
use serde_json::Value;

/// The fault of a turn: `message`, and `codexErrorInfo`, which is a word, or a word with an HTTP
/// status. `resets_at` is when the account's limit ends, by Codex's last report.
pub(super) fn of_turn(error: &Value, resets_at: Option<Moment>, now: Moment) -> Fault {
    let message = error["message"].as_str().filter(|words| !words.trim().is_empty());
    let mut said = message.unwrap_or("the turn failed, and Codex says no more").to_owned();
    if let Some(details) = error["additionalDetails"].as_str() {
        said = format!("{said}: {details}");
    }
    let info = &error["codexErrorInfo"];
    let kind = info.as_str().or_else(|| info.as_object()?.keys().next().map(String::as_str));
    let status = info.as_object().and_then(|info| info.values().next()?["httpStatusCode"].as_u64());
    match (kind.unwrap_or_default(), status) {
        ("unauthorized", _) | (_, Some(401)) => Fault::new(Code::NotLoggedIn, said)
            .hint("run `codex login`, or set the key of its model provider, and start the job again"),
        ("usageLimitExceeded" | "rateLimitExceeded" | "sessionBudgetExceeded", _) | (_, Some(429)) => {
            let again_at = describe::again_at(&said, now).or(resets_at);
            let fault = Fault::new(Code::RateLimited, said)
                .hint("wait until the limit is over, or choose another model with --model, or another agent");
            Fault { again_at, ..fault }
        }
        ("modelNotFound", _) => Fault::new(Code::UnsupportedOption, said)
            .hint("choose a model that this account has with --model; `codex` lists them with /model"),
        ("contextWindowExceeded", _) => Fault::new(Code::BackendError, said)
            .hint("start a new job instead of resuming this one, or ask for less at once"),
        _ => Fault::new(Code::BackendError, said)
            .hint("`baton job logs` shows what it did; `--resume` continues its session"),
    }
}

/// When the account's limits end, from `account/rateLimits/updated`: the latest end of a limit that
/// is used up.
pub(super) fn resets_at(limits: &Value) -> Option<Moment> {
    let windows = [&limits["primary"], &limits["secondary"]];
    let used_up = windows.into_iter().filter(|window| window["usedPercent"].as_f64() >= Some(100.0));
    used_up.filter_map(|window| window["resetsAt"].as_i64()).max().map(|seconds| Moment(seconds * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Errors of Codex 0.166.0.
    #[test]
    fn errors_get_their_codes() {
        let limited = "Rate limit reached. Please try again in 3.5s.";
        for (message, info, code) in [
            (
                "unexpected status 401 Unauthorized: bad key",
                json!({"httpConnectionFailed": {"httpStatusCode": 401}}),
                Code::NotLoggedIn,
            ),
            (
                "exceeded retry limit",
                json!({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}),
                Code::RateLimited,
            ),
            ("You’ve hit your usage limit.", json!("usageLimitExceeded"), Code::RateLimited),
            (limited, json!("rateLimitExceeded"), Code::RateLimited),
            ("high demand", json!("internalServerError"), Code::BackendError),
            ("stream disconnected", json!("other"), Code::BackendError),
            (
                "stream disconnected",
                json!({"responseStreamDisconnected": {"httpStatusCode": null}}),
                Code::BackendError,
            ),
            ("no such model", json!("modelNotFound"), Code::UnsupportedOption),
            ("whatever", Value::Null, Code::BackendError),
        ] {
            let fault = of_turn(&json!({"message": message, "codexErrorInfo": info}), None, Moment(0));
            assert_eq!(fault.error.code(), code, "{message} {info}");
            assert!(fault.error.message().contains(message) && fault.error.hint_text().is_some());
        }
    }

    #[test]
    fn the_end_of_a_limit_comes_from_the_words_or_from_the_account() {
        let usage = json!({"message": "hit your usage limit, try again at 7:58 AM", "codexErrorInfo": "usageLimitExceeded"});
        let limits = json!({"primary": {"usedPercent": 100, "resetsAt": 1_794_900_000}, "secondary": {"usedPercent": 3, "resetsAt": 1_795_000_000}});
        let fault = of_turn(&usage, resets_at(&limits), Moment(5));
        assert_eq!(fault.again_at, Some(Moment(1_794_900_000_000)));
        let rate = json!({"message": "try again in 3.5s.", "codexErrorInfo": "rateLimitExceeded"});
        assert_eq!(of_turn(&rate, None, Moment(5)).again_at, Some(Moment(3505)));
        assert_eq!(resets_at(&json!({"primary": null})), None);
    }
}
