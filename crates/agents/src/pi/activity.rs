//! What Pi's session file tells about the present task.

use crate::activity::{Activity, of_lines, text_of};

pub(super) fn read(end: &[u8]) -> Activity {
    of_lines(end, |line, activity| {
        let message = &line["message"];
        match (line["type"].as_str(), message["role"].as_str()) {
            (Some("model_change"), _) => activity.model(&line["modelId"]),
            (Some("message"), Some("user")) => {
                activity.prompt(text_of(&message["content"]).unwrap_or_default());
            }
            (Some("message"), Some("assistant")) => {
                activity.model(&message["model"]);
                activity.used([&message["usage"]["totalTokens"]]);
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
        let lines = concat!(
            r#"{"type":"model_change","id":"b","modelId":"fake-0"}"#,
            "\n",
            r#"{"type":"message","message":{"role":"user","content":[{"type":"text","text":"FIRST\nline"}]}}"#,
            "\n",
            r#"{"type":"message","message":{"role":"assistant","content":[],"model":"fake-1","usage":{"input":10,"output":5,"totalTokens":15}}}"#,
            "\n",
            r#"{"type":"message","message":{"role":"user","content":"[baton] Mail is waiting for you."}}"#,
            "\n",
        );
        let expected = Activity {
            task: Some("FIRST".to_owned()),
            model: Some("fake-1".to_owned()),
            context_used: Some(15),
            context_window: None,
        };
        assert_eq!(read(lines.as_bytes()), expected);
    }
}
