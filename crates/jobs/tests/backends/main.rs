//! The backends with the real programs and the scripted model.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod claude;
mod copilot;
mod cursor;
mod gemini;
mod stream;
