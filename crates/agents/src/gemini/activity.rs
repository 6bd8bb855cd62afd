//! What Gemini CLI's conversation tells about the present task.

use crate::activity::{Activity, of_lines, text_of};

pub(super) fn read(end: &[u8]) -> Activity {
    of_lines(end, |line, activity| match line["type"].as_str() {
        Some("user") => {
            let typed = text_of(&line["displayContent"]).or_else(|| text_of(&line["content"]));
            activity.prompt(typed.unwrap_or_default());
        }
        Some("gemini") => {
            activity.model(&line["model"]);
            activity.used([&line["tokens"]["total"]]);
        }
        _ => {}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_prompt_the_model_and_its_tokens_are_read() {
        let activity = read(include_bytes!("../../tests/transcripts/gemini-turn.jsonl"));
        assert_eq!(activity.task.as_deref(), Some("Hello PROMPT1"));
        assert_eq!(activity.model.as_deref(), Some("gemini-2.5-flash"));
        assert_eq!(activity.context_used, Some(110));
    }
}
