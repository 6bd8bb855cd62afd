//! The backends with the real programs and the scripted model.

mod bench;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;
mod pi;
mod stream;
