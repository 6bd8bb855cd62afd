//! What Claude Code's transcript tells about the present task.

use crate::activity::{Activity, of_lines, text_of};

/// The model in lines that the program wrote itself.
const SYNTHETIC_MODEL: &str = "<synthetic>";

pub(super) fn read(end: &[u8]) -> Activity {
    of_lines(end, |line, activity| {
        if line["isSidechain"] == true {
            return;
        }
        let message = &line["message"];
        match line["type"].as_str() {
            Some("assistant") if message["model"] != SYNTHETIC_MODEL => {
                activity.model(&message["model"]);
                let usage = &message["usage"];
                let parts = [
                    "input_tokens",
                    "cache_creation_input_tokens",
                    "cache_read_input_tokens",
                    "output_tokens",
                ];
                activity.used(parts.map(|part| &usage[part]));
            }
            Some("user") if line["isMeta"] != true && line["isCompactSummary"] != true => {
                if let Some(text) = text_of(&message["content"]).filter(|_| line["promptId"].is_string()) {
                    activity.prompt(text);
                }
            }
            // The only sign of a prompt whose own line is too far back.
            Some("last-prompt") => activity.prompt(line["lastPrompt"].as_str().unwrap_or_default()),
            _ => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_prompt_the_model_and_its_tokens_are_read() {
        let turn = include_bytes!("../../tests/transcripts/claude-turn.jsonl");
        let activity = read(turn);
        assert_eq!(activity.model.as_deref(), Some("claude-opus-5-5"));
        assert_eq!(activity.context_used, Some(15));
        assert!(activity.task.is_some(), "{activity:?}");
        assert_eq!(read(b"{\"type\":\"user\"\n\nnonsense"), Activity::default());
    }
}
