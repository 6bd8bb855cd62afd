//! The write-ahead log stays short, whichever role writes.

use crate::post::{NOW, claim, send, session};
use baton_core::limits;
use baton_core::mail::Settle;
use baton_store::{Role, Store};

/// The log may be one transaction longer than the limit when its writer looks.
const ONE_MORE: u64 = 128 << 10;

#[test]
fn two_thousand_sends_by_as_many_connections_leave_a_short_wal() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Store::open(home.path(), Role::Command).unwrap();
    let (sender, _) = session(&mut store, "sender");
    let (me, _) = session(&mut store, "me");
    drop(store);
    let mut longest = 0;
    for n in 0..2000 {
        let mut store = Store::open(home.path(), Role::Command).unwrap();
        send(&mut store, sender, &[me], &format!("number {n}"));
        longest = longest.max(store.wal_bytes());
        store.tidy();
    }
    let store = Store::open(home.path(), Role::Command).unwrap();
    assert!(longest <= limits::WAL_BYTES_COMMAND + ONE_MORE, "it was {longest} long");
    assert!(store.wal_bytes() <= limits::WAL_BYTES_COMMAND + ONE_MORE);
    let peeked = store.peek(me, NOW, 1, &|_| false).unwrap();
    assert_eq!((peeked.letters.len(), peeked.waiting), (1, 2000));
}

#[test]
fn a_hook_folds_past_a_megabyte_and_not_before() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Store::open(home.path(), Role::Hook).unwrap();
    let (sender, _) = session(&mut store, "sender");
    let me = session(&mut store, "me");
    let mut lengths = vec![store.wal_bytes()];
    while lengths.len() < 400 {
        send(&mut store, sender, &[me.0], "hello");
        let offer = claim(&mut store, me, 20).unwrap().offer;
        store.settle(offer, Settle::Seen, NOW).unwrap();
        store.tidy();
        lengths.push(store.wal_bytes());
        store = Store::open(home.path(), Role::Hook).unwrap();
    }
    let folded: Vec<u64> = lengths.windows(2).filter(|pair| pair[1] < pair[0]).map(|pair| pair[0]).collect();
    assert!(!folded.is_empty(), "it was folded: {lengths:?}");
    assert!(
        folded.iter().all(|length| *length > limits::WAL_BYTES_HOOK - ONE_MORE),
        "not before: {folded:?}"
    );
    assert!(
        lengths.iter().all(|length| *length <= limits::WAL_BYTES_HOOK + ONE_MORE),
        "nor much later: {lengths:?}"
    );
}

/// A reader with an old snapshot keeps the log from being folded. No writer waits for it, and
/// afterwards the log is folded.
#[test]
fn a_reader_in_the_way_is_not_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let mut store = Store::open(home.path(), Role::Command).unwrap();
    let (sender, _) = session(&mut store, "sender");
    let (me, _) = session(&mut store, "me");
    let reader = rusqlite::Connection::open(Store::path(home.path())).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM message", [], |row| row.get::<_, i64>(0)).unwrap();
    let mut quickest = std::time::Duration::MAX;
    for _ in 0..60 {
        send(&mut store, sender, &[me], &"x".repeat(8000));
        let begun = std::time::Instant::now();
        store.tidy();
        quickest = quickest.min(begun.elapsed());
    }
    // A store that waits for the reader waits each time, on any machine.
    assert!(quickest < limits::COMMAND_LOCK_WAIT.to_std(), "{quickest:?}");
    assert!(store.wal_bytes() > limits::WAL_BYTES_COMMAND);
    reader.execute_batch("COMMIT").unwrap();
    store.tidy();
    assert_eq!(store.wal_bytes(), 0);
}

/// A fold leaves the connection as it was, even if it is refused: the next write still waits for
/// another writer.
#[test]
fn e1_a_connection_that_has_folded_still_waits_for_others() {
    for refused in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(home.path(), Role::Command).unwrap();
        let (sender, _) = session(&mut store, "sender");
        let (me, _) = session(&mut store, "me");
        let reader = rusqlite::Connection::open(Store::path(home.path())).unwrap();
        if refused {
            reader.execute_batch("BEGIN; SELECT count(*) FROM message").unwrap();
        }
        while store.wal_bytes() <= limits::WAL_BYTES_COMMAND {
            send(&mut store, sender, &[me], &"x".repeat(8000));
        }
        store.tidy();
        let writer = rusqlite::Connection::open(Store::path(home.path())).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        let held = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            writer.execute_batch("COMMIT").unwrap();
        });
        send(&mut store, sender, &[me], "after the fold");
        held.join().unwrap();
    }
}
