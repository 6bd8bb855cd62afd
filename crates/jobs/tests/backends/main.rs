//! The backends with the real programs and the scripted model.

mod claude;
mod copilot;
mod cursor;
mod gemini;
mod stream;
