//! What baton knows about each agent CLI: one folder per CLI, and the only place where one is named.
//! `config` edits other people's JSON and TOML files without disturbing a byte of theirs;
//! `install` turns an agent's wishes into a plan of such edits, applies it, and takes it back.

pub mod claude;
pub mod codex;
pub mod config;
pub mod install;
