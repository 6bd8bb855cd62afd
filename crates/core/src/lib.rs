//! The nouns of baton and the decisions about them.
//!
//! Everything here is pure: no I/O, no clock, no environment, no randomness and no agent's name.
//! Callers pass in what a decision needs and carry out what it returns. So tests can play millions
//! of interleavings for each promise of the contract, without a file or a process. The store
//! executes each decision in one transaction.

pub mod address;
pub mod approval;
pub mod body;
pub mod bytes;
pub mod error;
pub mod event;
pub mod foreign;
pub mod frame;
pub mod guard;
pub mod id;
pub mod installed;
pub mod job;
pub mod limits;
pub mod loops;
pub mod mail;
pub mod name;
pub mod notice;
pub mod process;
pub mod review;
pub mod rights;
pub mod ring;
pub mod session;
pub mod silence;
pub mod time;
pub mod tool;
pub mod wake;
pub mod words;

pub use error::{Code, Error};
