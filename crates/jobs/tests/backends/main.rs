//! The backends with the real programs and the scripted model.

mod bench;
mod claude;
mod codex;
mod pi;
mod stream;
