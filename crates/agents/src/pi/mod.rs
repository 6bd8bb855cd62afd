//! Pi: so far, what it calls its tools.

pub mod tools;
