//! SQLite's errors as errors of baton.

use baton_core::{Code, Error};
use rusqlite::ErrorCode;

/// Turns an error of SQLite into one with a code and a hint.
pub(crate) fn failure(error: rusqlite::Error) -> Error {
    let rusqlite::Error::SqliteFailure(failure, text) = &error else {
        return Error::new(Code::Internal, format!("the store returned something unexpected: {error}"));
    };
    let said = text.clone().unwrap_or_else(|| failure.to_string());
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            Error::new(Code::StoreLocked, "the store is locked by another process")
                .hint("try again; `baton doctor` shows who uses it")
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Error::new(Code::StoreCorrupt, format!("the store is damaged: {said}")).hint(
                "restore a backup, or move it away to start with an empty one; `baton doctor` names the file",
            )
        }
        ErrorCode::DiskFull => Error::new(Code::DiskFull, "the disk is full")
            .hint("make room, then try again: nothing was accepted"),
        ErrorCode::ReadOnly => Error::new(Code::StoreReadOnly, "the store can't be written")
            .hint("check the rights and the mount of BATON_HOME"),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::FileLockingProtocolFailed => {
            Error::new(Code::StoreUnavailable, format!("the store can't be opened: {said}"))
                .hint("check the rights of BATON_HOME")
        }
        ErrorCode::SystemIoFailure => {
            Error::new(Code::StoreUnavailable, format!("the disk reported an error: {said}"))
                .hint("check the disk's room and health, then try again: nothing was accepted")
        }
        _ => Error::new(Code::Internal, format!("the store refused: {said}")),
    }
}

/// The error for a value in the store that this program never writes.
pub(crate) fn foreign(what: &str) -> Error {
    Error::new(Code::StoreCorrupt, format!("the store holds {what} that this version does not know"))
        .hint("was it edited by hand? `baton doctor` checks it")
}
