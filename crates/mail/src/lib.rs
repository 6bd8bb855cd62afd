//! Mail as every surface uses it: the hook line, send, ask, reply, inbox, who.
//!
//! Here decisions (`baton-core`), the store and the agents' adapters meet the world: transcripts are read, processes looked at, doorbells
//! rung. The command line, the MCP server and the hooks are thin callers of this crate; none of them has a way of its own.

pub mod ask;
pub mod bell;
pub mod directory;
pub mod evidence;
pub mod identity;
pub mod inbox;
pub mod line;
pub mod post;
pub mod process;
pub mod project;
pub mod reconcile;
mod rim;
pub mod unknown;
pub mod wake;

pub use rim::{now, random};
