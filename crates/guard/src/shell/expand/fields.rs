//! The fields that a word is split into.

use crate::shell::value::Value;

#[derive(Default)]
pub(super) struct Fields {
    pub(super) done: Vec<Value>,
    pub(super) current: Value,
    pub(super) started: bool,
}

impl Fields {
    pub(super) fn quoted(&mut self, text: &str) {
        self.current.text.push_str(text);
        self.started = true;
    }

    pub(super) fn value(&mut self, value: &Value) {
        self.current.push(value);
        self.started = true;
    }

    pub(super) fn end(&mut self) {
        if self.started {
            self.done.push(std::mem::take(&mut self.current));
            self.started = false;
        } else {
            self.current = Value::default();
        }
    }

    /// A value that is split where its text has separators.
    pub(super) fn split(&mut self, value: &Value, separators: &str) {
        if value.text.is_empty() {
            if !value.holes.is_empty() {
                self.value(value);
            }
            for variable in &value.variables {
                self.current.note_variable(variable);
            }
            return;
        }
        let mut from = 0;
        for (at, sign) in value.text.char_indices() {
            if separators.contains(sign) {
                if at > from {
                    self.value(&value.slice(from, at));
                }
                self.end();
                from = at + sign.len_utf8();
            }
        }
        if from < value.text.len() {
            self.value(&value.slice(from, value.text.len()));
        }
    }
}
