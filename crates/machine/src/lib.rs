//! Access to the machine for code that must not hang, must not run foreign code and must not trust
//! a foreign file.
//!
//! [`files`] opens files of others: an agent's transcript, a configuration, a script. [`own`] opens
//! the files of baton's home. [`home`] says whether that home is safe to use. [`git`] and
//! [`program`] ask other programs, with a deadline.
//!
//! A test (`tests/only_here.rs`) finds every place in the tree that opens a file without this
//! crate.

pub mod bell;
pub mod clock;
pub mod files;
pub mod git;
pub mod home;
pub mod own;
pub mod process;
pub mod program;
pub mod project;
pub mod random;
pub mod tty;
