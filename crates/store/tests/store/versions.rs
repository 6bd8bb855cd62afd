//! M20: stores of other versions. What an older release wrote opens with its mail; what a newer one
//! wrote is refused, untouched.

use crate::post::{NOW, claim, send, session};
use baton_core::Code;
use baton_core::id::MessageId;
use baton_core::mail::{Delivery, Settle};
use baton_store::{Counts, MailFilter, Role, Store, VERSION};
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(version: i32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}.db"))
}

/// A store with a message in each state that mail can wait in, and one that has ended. How the
/// fixture was made; run by hand, with `BATON_WRITE_FIXTURE=1`, once for each new version, and
/// never again for an old one.
#[test]
fn the_fixture_of_this_version_exists() {
    if std::env::var_os("BATON_WRITE_FIXTURE").is_some() {
        assert!(!fixture(VERSION).exists(), "a fixture is written once");
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(home.path(), Role::Command).unwrap();
        let (sender, _) = session(&mut store, "sender");
        let me = session(&mut store, "reader");
        send(&mut store, sender, &[me.0], "seen");
        let offer = claim(&mut store, me, 5).unwrap().offer;
        store.settle(offer, Settle::Seen, NOW).unwrap();
        send(&mut store, sender, &[me.0], "offered");
        claim(&mut store, me, 5).unwrap();
        send(&mut store, sender, &[me.0], "queued");
        drop(store);
        let raw = Connection::open(Store::path(home.path())).unwrap();
        raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(raw);
        fs::copy(Store::path(home.path()), fixture(VERSION)).unwrap();
    }
    assert!(
        fixture(VERSION).exists(),
        "BATON_WRITE_FIXTURE=1 cargo test -p baton-store --test store fixture"
    );
}

#[test]
fn m20_a_store_of_every_version_so_far_opens_with_its_mail() {
    for version in 1..=VERSION {
        for role in [Role::Hook, Role::Command] {
            let home = tempfile::tempdir().unwrap();
            fs::copy(fixture(version), Store::path(home.path())).unwrap();
            let mut store = Store::open(home.path(), role).unwrap();
            store.check().unwrap();
            let history = store.history(&MailFilter { most: 100, ..MailFilter::default() }).unwrap();
            let states: Vec<(String, Delivery)> =
                history.iter().map(|mail| (mail.body.clone(), mail.deliveries[0].state)).collect();
            let expected =
                [("seen", Delivery::Seen), ("offered", Delivery::Offered), ("queued", Delivery::Queued)];
            assert_eq!(states, expected.map(|(body, state)| (body.to_owned(), state)), "version {version}");
            // And goes on: what was offered comes back, and is first again.
            let view = store.hook_view("claude", "reader").unwrap().unwrap();
            let me = (view.participant, view.session);
            assert!(claim(&mut store, me, 5).is_none(), "an offer is open");
            store.settle(view.mail_offer.unwrap(), Settle::Return, NOW).unwrap();
            let letters = claim(&mut store, me, 5).unwrap().letters;
            let bodies: Vec<(&str, bool)> =
                letters.iter().map(|letter| (&*letter.body, letter.by_person)).collect();
            assert_eq!(bodies, [("offered", false), ("queued", false)], "nothing old is the person's");
            let (id, _) = send(&mut store, view.participant, &[view.participant], "new");
            assert!(MessageId::parse(id.as_str()).is_some());
        }
    }
}

#[test]
fn m20_a_store_of_a_newer_version_is_refused_untouched() {
    for version in [VERSION + 1, VERSION + 1000, i32::MAX] {
        let home = tempfile::tempdir().unwrap();
        let file = Store::path(home.path());
        fs::copy(fixture(VERSION), &file).unwrap();
        let raw = Connection::open(&file).unwrap();
        raw.pragma_update(None, "user_version", version).unwrap();
        raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(raw);
        let before = fs::read(&file).unwrap();
        for role in [Role::Hook, Role::Command] {
            let error = Store::open(home.path(), role).unwrap_err();
            assert_eq!(error.code(), Code::StoreNewer);
            assert!(
                error.message().contains(&version.to_string())
                    && error.hint_text().unwrap().contains("update"),
                "{error:?}"
            );
        }
        assert_eq!(fs::read(&file).unwrap(), before);
        let wal = fs::metadata(home.path().join("baton.db-wal")).map_or(0, |wal| wal.len());
        assert_eq!(wal, 0, "nothing was written beside it either");
    }
}

/// The first process migrates, and the others find it done.
#[test]
fn m20_many_that_migrate_at_one_instant_migrate_once() {
    for _ in 0..10 {
        let home = tempfile::tempdir().unwrap();
        let raw = Connection::open(Store::path(home.path())).unwrap();
        raw.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        drop(raw);
        std::thread::scope(|scope| {
            for n in 0..8 {
                let home = home.path();
                scope.spawn(move || {
                    let role = if n % 2 == 0 { Role::Hook } else { Role::Command };
                    session(&mut Store::open(home, role).unwrap(), &format!("session {n}"))
                });
            }
        });
        let store = Store::open(home.path(), Role::Command).unwrap();
        store.check().unwrap();
        assert_eq!(store.counts().unwrap(), Counts { messages: 0, sessions: 8 });
    }
}

#[test]
fn m20_a_store_of_no_version_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = Store::path(home.path());
    fs::copy(fixture(VERSION), &file).unwrap();
    let raw = Connection::open(&file).unwrap();
    raw.pragma_update(None, "user_version", -1).unwrap();
    drop(raw);
    assert_eq!(Store::open(home.path(), Role::Command).unwrap_err().code(), Code::StoreCorrupt);
}
