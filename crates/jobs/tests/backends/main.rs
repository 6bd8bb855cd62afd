//! The backends with the real programs and the scripted model.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod bench;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;
mod pi;
mod promises;
