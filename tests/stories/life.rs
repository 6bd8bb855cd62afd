//! Clear, kill, interrupt.
