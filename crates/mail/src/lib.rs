//! Mail as every surface uses it: events, send, ask, reply, inbox, who.
//!
//! This crate connects the decisions (`baton-core`), the store and the agents' adapters to the
//! world: it reads transcripts, inspects processes and rings bells. The command line, the MCP
//! server and the hooks are thin callers of it.

pub mod ask;
pub mod caller;
mod claim;
pub mod directory;
pub mod evidence;
pub mod fate;
pub mod hook_event;
pub mod identity;
pub mod inbox;
pub mod post;
mod presence;
pub mod reconcile;
pub mod reference;
pub mod unknown_events;
pub mod wake;
