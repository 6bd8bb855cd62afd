//! The floor under a hook that delivers and under a send: the least work of any program that writes
//! something durably.
//!
//! `floor-write STORE KEY` opens a store, inserts one row with `synchronous = FULL`, and exits
//! without closing it.
//!
//! The comparison is fair: it works on a copy of baton's own store, so SQLite parses the same
//! schema. The row goes into a table of baton that is a single b-tree (`subagent_call`), so it
//! writes one page and no index, and no program can write less. Its WAL is emptied before each
//! round like those of the others, and it never folds one. It waits for other writers as long as a
//! command of baton does.

use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::process::exit;
use std::time::Duration;

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [store, key] = &arguments[..] else {
        eprintln!("error: usage: floor-write STORE KEY");
        exit(64);
    };
    let written = Connection::open_with_flags(
        store,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .and_then(|store| {
        store.busy_timeout(Duration::from_secs(10))?;
        store.execute_batch("PRAGMA synchronous = FULL")?;
        let count =
            store.execute("INSERT INTO subagent_call (call, at) VALUES (?1, 0)", [key.to_string_lossy()]);
        std::mem::forget(store);
        count
    });
    match written {
        Ok(_) => exit(0),
        Err(error) => {
            eprintln!("error: {error}");
            exit(1);
        }
    }
}
