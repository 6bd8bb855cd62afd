//! What a session works on, as its agent's own file tells: for lists that people read.
//!
//! Only the end of a file is read, so what was said long ago is missing. Nothing here proves
//! anything, and no hook uses it.

use baton_core::wake;
use serde_json::Value;

/// How much of a transcript's end is read.
pub const END_BYTES: u64 = 256 << 10;
/// How much of a prompt is kept.
const TASK_CHARS: usize = 200;

/// What the end of a transcript tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The beginning of the person's last prompt.
    pub task: Option<String>,
    pub model: Option<String>,
    /// The tokens of the last request and its answer.
    pub context_used: Option<u64>,
    /// How many tokens the model takes.
    pub context_window: Option<u64>,
}

impl Activity {
    /// Takes a prompt, if a person may have written it.
    pub(crate) fn prompt(&mut self, text: &str) {
        let line = text.trim().lines().next().unwrap_or_default();
        let is_of_program = line.starts_with('<') || line.starts_with("[Request interrupted by user");
        if !line.is_empty() && !is_of_program && !wake::line::is_line(text) {
            self.task = Some(line.chars().take(TASK_CHARS).collect());
        }
    }

    /// Takes the model's name, if there is one.
    pub(crate) fn model(&mut self, name: &Value) {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            self.model = Some(name.to_owned());
        }
    }

    /// Takes the sum of these numbers of tokens, if one is there.
    pub(crate) fn used<'a>(&mut self, tokens: impl IntoIterator<Item = &'a Value>) {
        let known: Vec<u64> = tokens.into_iter().filter_map(Value::as_u64).collect();
        if !known.is_empty() {
            self.context_used = Some(known.iter().sum());
        }
    }
}

/// Reads the end of a file with one JSON document per line. Lines that are cut or no JSON say
/// nothing.
pub(crate) fn of_lines(end: &[u8], mut read: impl FnMut(&Value, &mut Activity)) -> Activity {
    let mut activity = Activity::default();
    for line in end.split(|byte| *byte == b'\n') {
        if let Ok(line) = serde_json::from_slice(line) {
            read(&line, &mut activity);
        }
    }
    activity
}

/// The text of a message: a string, or the text of its blocks.
pub(crate) fn text_of(content: &Value) -> Option<&str> {
    match content {
        Value::String(text) => Some(text),
        Value::Array(blocks) => blocks.iter().find_map(|block| block["text"].as_str()),
        _ => None,
    }
}
