//! Gemini CLI: so far, what it calls its tools.

pub mod tools;
