//! The guard as an agent's hook runs it: all rules at once, in a home and a project on the disk.

#![cfg(unix)]

mod everyday;
mod folders;
mod second_cases;
mod test_home;
mod third_cases;
