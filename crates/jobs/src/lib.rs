//! Jobs: a task handed to another agent in the background, watched by one process of its own.
//!
//! What may be said about a job is decided in `baton_core::job`; this crate starts and watches real programs. One file per backend in
//! [`backend`], behind one trait.

pub mod backend;
