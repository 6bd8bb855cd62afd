//! The real server as a process, spoken to over its stdin and stdout as the agents do.

mod agents;
mod asks;
mod binding;
mod client;
mod faults;
mod hooks;
mod mail;
mod protocol;
mod world;
