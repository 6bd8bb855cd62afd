//! What Codex's rollout tells about the present task.

use crate::activity::{Activity, of_lines, text_of};

pub(super) fn read(end: &[u8]) -> Activity {
    of_lines(end, |line, activity| {
        let payload = &line["payload"];
        match (line["type"].as_str(), payload["type"].as_str()) {
            (Some("turn_context"), _) => activity.model(&payload["model"]),
            (Some("token_usage_record"), _) => activity.used([&payload["usage"]["total_tokens"]]),
            (Some("event_msg"), Some("task_started")) => {
                activity.context_window = payload["model_context_window"].as_u64();
            }
            (Some("event_msg"), Some("item_completed")) if payload["item"]["type"] == "UserMessage" => {
                activity.prompt(text_of(&payload["item"]["content"]).unwrap_or_default());
            }
            _ => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_prompt_the_model_and_its_tokens_are_read() {
        let activity = read(include_bytes!("../../tests/transcripts/codex-turn.jsonl"));
        let expected = Activity {
            task: Some("Hello PROMPT1".to_owned()),
            model: Some("mock-model".to_owned()),
            context_used: Some(15),
            context_window: Some(258_400),
        };
        assert_eq!(activity, expected);
    }
}
