//! What Copilot's events tell about the present task. They name no tokens.

use crate::activity::{Activity, of_lines};

pub(super) fn read(end: &[u8]) -> Activity {
    of_lines(end, |line, activity| {
        let data = &line["data"];
        match line["type"].as_str() {
            Some("user.message") => activity.prompt(data["content"].as_str().unwrap_or_default()),
            Some("assistant.message") => activity.model(&data["model"]),
            _ => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_prompt_and_the_model_are_read() {
        let activity = read(include_bytes!("../../tests/transcripts/copilot-turn.jsonl"));
        assert!(activity.task.is_some());
        assert_eq!((activity.model.as_deref(), activity.context_used), (Some("fake-1"), None));
    }
}
