//! The backends with the real agent programs, against the scripted model.

mod bench;
mod codex;
