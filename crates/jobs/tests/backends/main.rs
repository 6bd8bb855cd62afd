//! The backends with the real programs and the scripted model.

mod opencode;
