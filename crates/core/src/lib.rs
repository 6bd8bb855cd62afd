//! The nouns of baton and the decisions about them.
//!
//! Everything here is pure: no I/O, no clock, no environment, no randomness and no agent's name. What a decision
//! needs is passed in, what it wants is returned, so that each promise of the contract can be tested by playing
//! millions of interleavings without a file or a process. The store executes what is decided here, one transaction
//! per decision.

pub mod address;
pub mod approval;
pub mod body;
pub mod bytes;
pub mod error;
pub mod event;
pub mod frame;
pub mod guard;
pub mod id;
pub mod job;
pub mod limits;
pub mod loops;
pub mod mail;
pub mod name;
pub mod review;
pub mod session;
pub mod time;
pub mod tool;
pub mod wake;

pub use error::{Code, Error};
