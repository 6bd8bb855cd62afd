//! What SQLite says, in baton's words.

use baton_core::{Code, Error};
use rusqlite::ErrorCode;

/// Turns a failure of SQLite into an error with a code and a way on.
pub(crate) fn failure(error: rusqlite::Error) -> Error {
    let rusqlite::Error::SqliteFailure(failure, text) = &error else {
        return Error::new(Code::Internal, format!("the store gave something unexpected: {error}"));
    };
    let said = text.clone().unwrap_or_else(|| failure.to_string());
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            Error::new(Code::StoreLocked, "the store is locked by another process")
                .hint("try again; `baton doctor` shows who uses it")
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Error::new(Code::StoreCorrupt, format!("the store is damaged: {said}"))
                .hint("move it away and start anew, or restore a backup; `baton doctor` names the file")
        }
        ErrorCode::DiskFull => Error::new(Code::DiskFull, "the disk is full")
            .hint("make room, then try again: nothing was accepted"),
        ErrorCode::ReadOnly => Error::new(Code::StoreReadOnly, "the store can't be written")
            .hint("check the rights and the mount of BATON_HOME"),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::FileLockingProtocolFailed => {
            Error::new(Code::StoreUnavailable, format!("the store can't be opened: {said}"))
                .hint("check the rights of BATON_HOME")
        }
        ErrorCode::SystemIoFailure => Error::new(Code::StoreUnavailable, format!("the disk refused: {said}"))
            .hint("check the disk's room and health, then try again: nothing was accepted"),
        _ => Error::new(Code::Internal, format!("the store refused: {said}")),
    }
}

/// A value in the store that can't be one of ours.
pub(crate) fn foreign(what: &str) -> Error {
    Error::new(Code::StoreCorrupt, format!("the store holds {what} that this version does not know"))
        .hint("was it edited by hand? `baton doctor` checks it")
}
