//! Careful edits of configuration files that belong to other programs. `json` and `toml` are pure:
//! bytes in, bytes out, and every other byte stays. `file` is the only part that touches the disk:
//! whole reads, atomic writes, backups. `diff` shows a person what would change.

pub mod diff;
pub mod file;
pub mod json;
mod text;
pub mod toml;

pub use text::{Place, Position};
