//! Opening and creating the store.
//!
//! A new store is made in a file of its own and linked into place, so that forty processes which start at the same instant get one
//! complete store and never SQLite's refusal to switch a busy file to WAL. A store of a newer version is left untouched.
//!
//! Who folds the WAL: never the closing of a connection, never SQLite by itself. Commands and servers do it after they have answered,
//! past 256 KiB; hooks only past 1 MiB. It is tried without waiting: whoever is refused leaves it to the next.

use crate::failure::failure;
use crate::schema::{Layout, MAIL};
use baton_core::limits;
use baton_core::{Code, Error};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What opens the store; it decides how long to wait and how hard to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A hook: two seconds at most in all. What it writes survives kill -9; a power cut may undo a claim, never a message.
    Hook,
    /// A command or server: what it accepts is on the disk before it says so.
    Command,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    pub(crate) conn: Connection,
    role: Role,
    deadline: Option<Instant>,
    wal: PathBuf,
    layout: &'static Layout,
}

impl Store {
    /// Opens the store of a home, creating both where they are missing.
    pub fn open(home: &Path, role: Role) -> Result<Self, Error> {
        Self::open_as(home, role, &MAIL)
    }

    /// Opens a file of that layout.
    pub(crate) fn open_as(home: &Path, role: Role, layout: &'static Layout) -> Result<Self, Error> {
        let file = home.join(layout.file);
        let mut conn = match connect(&file) {
            Err(error) if error.code() == Code::StoreUnavailable => found_or_made(home, layout)?,
            // What can't be opened for writing SQLite opens for reading: perhaps only because somebody made it between the two.
            Ok(conn) if conn.is_readonly(rusqlite::MAIN_DB).map_err(failure)? => connect(&file)?,
            other => other?,
        };
        let wait = match role {
            Role::Hook => limits::HOOK_LOCK_WAIT,
            Role::Command => limits::COMMAND_LOCK_WAIT,
        };
        conn.busy_handler(Some(patience(wait.to_std()))).map_err(failure)?;
        let wal = home.join(format!("{}-wal", layout.file));
        let mut store = Self { conn, role, deadline: None, wal, layout };
        store.prepare()?;
        Ok(store)
    }

    /// Where the store of a home lies.
    pub fn path(home: &Path) -> PathBuf {
        home.join(MAIL.file)
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failure)?;
        // A plan never depends on what is bound. Without it SQLite compiles most of our statements twice: once when they are prepared, and once
        // more when they are first run with values.
        self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(failure)?;
        let version: i32 =
            self.conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failure)?;
        if version > self.layout.version() {
            return Err(newer(version, self.layout));
        }
        let synchronous = match self.role {
            Role::Hook => "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0",
            Role::Command => "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0",
        };
        self.conn.execute_batch(synchronous).map_err(failure)?;
        if version < self.layout.version() {
            self.migrate()?;
        }
        Ok(())
    }

    fn migrate(&mut self) -> Result<(), Error> {
        let layout = self.layout;
        let tx = self.begin()?;
        // Somebody else may have been faster.
        let version: i32 = tx.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failure)?;
        if version > layout.version() {
            return Err(newer(version, layout));
        }
        step_up(&tx, version, layout)?;
        tx.commit().map_err(failure)?;
        if version == 0 {
            // It was an empty file, which nobody has made a store of as we do.
            self.conn.execute_batch("PRAGMA journal_mode = WAL").map_err(failure)?;
        }
        Ok(())
    }

    /// From now on, no wait for another writer goes past this.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Begins a transaction that will write.
    pub(crate) fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            self.conn
                .busy_handler(Some(patience(left.min(limits::HOOK_LOCK_WAIT.to_std()))))
                .map_err(failure)?;
        }
        self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)
    }

    /// Folds the WAL into the store if it has grown past what this role tolerates. To be called after the answer is out.
    pub fn tidy(&mut self) {
        let limit = match self.role {
            Role::Hook => limits::WAL_BYTES_HOOK,
            Role::Command => limits::WAL_BYTES_COMMAND,
        };
        if std::fs::metadata(&self.wal).is_ok_and(|wal| wal.len() > limit)
            && self.conn.busy_timeout(Duration::ZERO).is_ok()
        {
            // Refused when somebody reads or writes just now; the next one will do it.
            self.conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").ok();
        }
    }

    /// Whether the file is sound, by SQLite's own check.
    pub fn check(&self) -> Result<(), Error> {
        let said: String =
            self.conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failure)?;
        if said == "ok" {
            Ok(())
        } else {
            Err(Error::new(Code::StoreCorrupt, format!("the store is damaged: {said}")))
        }
    }

    /// Bytes of the WAL that wait to be folded.
    pub fn wal_bytes(&self) -> u64 {
        std::fs::metadata(&self.wal).map_or(0, |wal| wal.len())
    }
}

/// Waits for another writer, so long at most. SQLite's own way sleeps 1, 2, 5, 10 … 100 ms, and a commit takes a third of one: with eight
/// senders the store would stand idle half of the time.
fn patience(longest: Duration) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut begun = Instant::now();
    // Not all in step.
    let own = u64::from(std::process::id() % 8) * 25;
    move |tries| {
        if tries == 0 {
            begun = Instant::now();
        }
        let waits = begun.elapsed() < longest;
        if waits {
            std::thread::sleep(Duration::from_micros(
                150 + own + 50 * u64::from(tries.clamp(0, 17).unsigned_abs()),
            ));
        }
        waits
    }
}

fn connect(file: &Path) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(file, flags).map_err(failure)
}

/// A store that could not be opened as it was named: it is not there, or somebody has made it just now, or a link leads to its folder, which
/// SQLite does not follow where it may not follow one to the file.
fn found_or_made(home: &Path, layout: &Layout) -> Result<Connection, Error> {
    let real = |home: &Path| home.canonicalize().unwrap_or_else(|_| home.to_owned()).join(layout.file);
    if !real(home).exists() {
        create(home, layout)?;
    }
    connect(&real(home))
}

fn newer(version: i32, layout: &Layout) -> Error {
    let known = layout.version();
    Error::new(Code::StoreNewer, format!("{} has version {version}, this baton knows {known}", layout.file))
        .hint("update baton; the store was not touched")
}

fn step_up(conn: &Connection, from: i32, layout: &Layout) -> Result<(), Error> {
    let from = usize::try_from(from).map_err(|_| crate::failure::foreign("a version"))?;
    for step in &layout.steps[from..] {
        conn.execute_batch(step).map_err(failure)?;
    }
    conn.pragma_update(None, "user_version", layout.version()).map_err(failure)
}

fn create(home: &Path, layout: &Layout) -> Result<(), Error> {
    let refused = |what: &str, error: io::Error| unusable(what, home, &error);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home)
        .map_err(|error| refused("create", error))?;
    let home = &home.canonicalize().map_err(|error| refused("use", error))?;
    let draft = new_draft(home, layout).map_err(|error| refused("write to", error))?;
    let made = fill(&draft, layout);
    let linked = made.and_then(|()| match std::fs::hard_link(&draft, home.join(layout.file)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(refused("write to", error)),
        _ => Ok(()),
    });
    // A draft that stays behind is harmless, and doctor removes it.
    std::fs::remove_file(&draft).ok();
    linked?;
    // The new name must survive a power cut before anything in it is promised.
    std::fs::File::open(home).and_then(|dir| dir.sync_all()).map_err(|error| refused("write to", error))
}

/// An empty file of nobody else's. By chance and not by process: containers that share a home have the same process ids.
fn new_draft(home: &Path, layout: &Layout) -> io::Result<PathBuf> {
    loop {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let draft = home.join(format!(".{}.{:016x}", layout.file, u64::from_le_bytes(random)));
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft) {
            Ok(_) => return Ok(draft),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn fill(draft: &Path, layout: &Layout) -> Result<(), Error> {
    let conn = connect(draft)?;
    conn.execute_batch("PRAGMA synchronous = FULL; BEGIN").map_err(failure)?;
    step_up(&conn, 0, layout)?;
    conn.execute_batch("COMMIT; PRAGMA journal_mode = WAL").map_err(failure)?;
    // Closing folds and removes the draft's own WAL: what is linked into place is complete.
    conn.close().map_err(|(_, error)| failure(error))
}

fn unusable(what: &str, home: &Path, error: &io::Error) -> Error {
    let code = match error.raw_os_error() {
        Some(raw) if raw == rustix::io::Errno::NOSPC.raw_os_error() => Code::DiskFull,
        Some(raw) if raw == rustix::io::Errno::ROFS.raw_os_error() => Code::StoreReadOnly,
        _ => Code::StoreUnavailable,
    };
    Error::new(code, format!("can't {what} {}: {error}", home.display()))
        .hint("set BATON_HOME to a folder that you may write to")
}
