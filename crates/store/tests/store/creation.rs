//! Making a store: many at once, with which rights, and what is left behind.

use crate::post::{send, session};
use baton_core::Code;
use baton_store::{Role, Store, VERSION};
use rustix::fs::Mode;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Barrier;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn sixteen_that_create_at_one_instant_get_one_store() {
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("deep/home");
        let start = Barrier::new(16);
        let rows: Vec<i64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|n| {
                    let (home, start) = (&home, &start);
                    scope.spawn(move || {
                        start.wait();
                        let role = if n % 2 == 0 { Role::Hook } else { Role::Command };
                        let mut store = Store::open(home, role).unwrap();
                        session(&mut store, &format!("session {n}")).0.0
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(rows.iter().collect::<HashSet<_>>().len(), 16, "round {round}: one store for all");
        let left: HashSet<String> = fs::read_dir(&home)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let known = ["baton.db", "baton.db-wal", "baton.db-shm"].map(str::to_owned);
        assert!(left.iter().all(|name| known.contains(name)), "round {round}: {left:?}");
    }
}

/// Whatever the umask, no other user can read the mail.
#[test]
fn home_and_files_are_the_users_own() {
    // The umask belongs to the whole process, and the other tests need theirs.
    const ALONE: &str = "BATON_TEST_WITHOUT_UMASK";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "creation::home_and_files_are_the_users_own"]).env(ALONE, "1");
        let done = alone.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("a/b/home");
    let before = rustix::process::umask(Mode::empty());
    let mut store = Store::open(&home, Role::Command).unwrap();
    let (sender, _) = session(&mut store, "sender");
    let (me, _) = session(&mut store, "me");
    send(&mut store, sender, &[me], "secret");
    rustix::process::umask(before);
    assert_eq!(mode(&home), 0o700);
    let files: Vec<_> = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_store_is_in_wal_mode_however_it_came_to_be() {
    let folder = tempfile::tempdir().unwrap();
    // An empty file, as `touch` or a broken copy leaves it.
    fs::write(Store::path(folder.path()), "").unwrap();
    drop(Store::open(folder.path(), Role::Command).unwrap());
    let made = tempfile::tempdir().unwrap();
    drop(Store::open(made.path(), Role::Hook).unwrap());
    for home in [folder.path(), made.path()] {
        let raw = rusqlite::Connection::open(Store::path(home)).unwrap();
        let text = |sql: &str| raw.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(text("PRAGMA journal_mode"), "wal");
        assert_eq!(text("SELECT CAST(user_version AS TEXT) FROM pragma_user_version()"), VERSION.to_string());
    }
}

#[test]
fn a_link_in_the_place_of_the_store_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    drop(Store::open(elsewhere.path(), Role::Command).unwrap());
    let before = fs::read(Store::path(elsewhere.path())).unwrap();
    std::os::unix::fs::symlink(Store::path(elsewhere.path()), Store::path(folder.path())).unwrap();
    assert_eq!(Store::open(folder.path(), Role::Command).unwrap_err().code(), Code::StoreUnavailable);
    assert_eq!(fs::read(Store::path(elsewhere.path())).unwrap(), before);
}

/// Containers that share a home have the same process ids: another's draft may look like ours.
#[test]
fn a_new_store_leaves_drafts_of_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let thread = std::thread::current().id();
    let draft = folder.path().join(format!(".baton.db.{}.{thread:?}", std::process::id()));
    fs::write(&draft, "somebody is writing this").unwrap();
    Store::open(folder.path(), Role::Command).unwrap();
    assert_eq!(fs::read_to_string(&draft).unwrap(), "somebody is writing this");
}
