//! Claude Code: where its files are and what baton puts into them.

pub mod install;
