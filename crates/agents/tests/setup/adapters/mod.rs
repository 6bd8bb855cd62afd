//! The adapters against what the real programs wrote: their payloads, their answers, their
//! transcripts.

mod answers;
mod claude_lines;
mod claude_looks;
mod codex_lines;
mod codex_looks;
mod copilot;
mod cursor;
mod gemini_lines;
mod gemini_looks;
mod payloads;
mod rulings;
mod samples;
mod tools;
