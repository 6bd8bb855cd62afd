//! The floor under a hook that finds nothing pending: the least work of any program that reads a
//! SQLite store.
//!
//! `floor-read STORE AGENT SESSION` opens the same store as baton, reads one row through an index,
//! and exits without closing it, as baton does: the kernel closes it faster. It is linked like
//! baton, against the same SQLite. It reads no input, waits for nothing and decides nothing.
//! Everything that a hook does on top of this is baton's own cost.

use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::process::exit;

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [store, agent, session] = &arguments[..] else {
        eprintln!("error: usage: floor-read STORE AGENT SESSION");
        exit(64);
    };
    let found = Connection::open_with_flags(
        store,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .and_then(|store| {
        let row = store.query_row(
            "SELECT id FROM session WHERE agent = ?1 AND native = ?2",
            (agent.to_string_lossy(), session.to_string_lossy()),
            |row| row.get::<_, i64>(0),
        );
        std::mem::forget(store);
        row
    });
    match found {
        Ok(_) => exit(0),
        Err(error) => {
            eprintln!("error: {error}");
            exit(1);
        }
    }
}
