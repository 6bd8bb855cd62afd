//! Rule files.
