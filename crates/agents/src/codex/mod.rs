//! Codex: where its files are, what baton puts into them, and how its hooks become trusted.

pub mod install;
mod trust;
