//! Identifies a process for longer than its number does.

/// A process. Its start time tells it from a later process with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: i32,
    /// When it started, in the kernel's ticks.
    pub start: u64,
}
