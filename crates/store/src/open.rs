//! Opening and creating the store.
//!
//! A new store is made in a draft file and then linked into place. So forty processes that start at
//! the same instant get one complete store, and none meets SQLite's refusal to switch a busy file
//! to WAL. A store of a newer version is left untouched.
//!
//! Neither SQLite nor the closing of a connection folds the WAL. Commands and servers fold it after
//! they have answered, past 256 KiB; hooks only past 1 MiB. They try it without waiting. If it is
//! refused, the next process does it.
//!
//! How long a connection waits is set when it is opened and by [`Store::set_deadline`], nowhere
//! else. What must not wait has a connection of its own.

use crate::failure::failure;
use crate::schema::{Layout, MAIL_LAYOUT};
use crate::shape;
use baton_core::limits;
use baton_core::{Code, Error};
use baton_machine::own;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What opens the store. It decides how long to wait and how durably to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A hook. It waits two seconds at most in all. What it writes survives kill -9; a power cut
    /// may undo a claim, but never a message.
    Hook,
    /// A command or server. What it accepts is on the disk before it says so.
    Command,
}

#[derive(Debug)]
pub struct Store {
    pub(crate) conn: Connection,
    role: Role,
    file: PathBuf,
    wal: PathBuf,
    layout: &'static Layout,
}

impl Store {
    /// Opens the store of a home. Creates both if they are missing.
    pub fn open(home: &Path, role: Role) -> Result<Self, Error> {
        Self::open_as(home, role, &MAIL_LAYOUT)
    }

    /// An empty store in memory, for a command that needs none but asks who calls.
    pub fn nowhere() -> Result<Self, Error> {
        let conn = Connection::open_in_memory().map_err(failure)?;
        let nowhere = PathBuf::new();
        let layout = &MAIL_LAYOUT;
        step_up(&conn, 0, layout)?;
        Ok(Self { conn, role: Role::Command, file: nowhere.clone(), wal: nowhere, layout })
    }

    /// Opens the file of a layout.
    pub(crate) fn open_as(home: &Path, role: Role, layout: &'static Layout) -> Result<Self, Error> {
        let file = home.join(layout.file);
        let wal = home.join(format!("{}-wal", layout.file));
        usable(home)?;
        shape::check(&file, &wal)?;
        let mut conn = match connect(&file) {
            Err(error) if error.code() == Code::StoreUnavailable => found_or_made(home, layout)?,
            // If SQLite can't open the file for writing, it opens it for reading. Perhaps another
            // process only made it between the two attempts.
            Ok(conn) if conn.is_readonly(rusqlite::MAIN_DB).map_err(failure)? => connect(&file)?,
            other => other?,
        };
        let wait = match role {
            Role::Hook => limits::HOOK_LOCK_WAIT,
            Role::Command => limits::COMMAND_LOCK_WAIT,
        };
        conn.busy_handler(Some(patience(wait.to_std(), None))).map_err(failure)?;
        let mut store = Self { conn, role, file, wal, layout };
        store.prepare()?;
        Ok(store)
    }

    /// The path of a home's store.
    pub fn path(home: &Path) -> PathBuf {
        home.join(MAIL_LAYOUT.file)
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failure)?;
        // A plan never depends on the bound values. Otherwise SQLite compiles most of these
        // statements twice: when they are prepared, and when they first run with values.
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
        // Another process may have been faster.
        let version: i32 = tx.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failure)?;
        if version > layout.version() {
            return Err(newer(version, layout));
        }
        step_up(&tx, version, layout)?;
        tx.commit().map_err(failure)?;
        if version == 0 {
            // It was an empty file, not one that `create` has made.
            self.conn.execute_batch("PRAGMA journal_mode = WAL").map_err(failure)?;
        }
        Ok(())
    }

    /// Sets the time after which no wait for another writer goes on.
    pub fn set_deadline(&mut self, deadline: Instant) {
        let patience = patience(limits::HOOK_LOCK_WAIT.to_std(), Some(deadline));
        // SQLite only stores the handler. If it could not, the handler of the role would stay.
        self.conn.busy_handler(Some(patience)).ok();
    }

    /// Begins a transaction that will write.
    pub(crate) fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)
    }

    /// Folds the WAL into the store if it has grown past the limit of this role. To be called after
    /// the caller has answered.
    pub fn tidy(&mut self) {
        let limit = match self.role {
            Role::Hook => limits::WAL_BYTES_HOOK,
            Role::Command => limits::WAL_BYTES_COMMAND,
        };
        if self.wal_bytes() > limit {
            // Refused while another process reads or writes; then the next command does it.
            self.fold().ok();
        }
    }

    /// Folds the WAL on a connection that waits for no other process.
    fn fold(&self) -> Result<(), Error> {
        let conn = connect(&self.file).or_else(|_| connect(&canonical(&self.file)))?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failure)?;
        conn.execute_batch("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)").map_err(failure)
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

    /// Bytes of the WAL that are not folded yet.
    pub fn wal_bytes(&self) -> u64 {
        std::fs::metadata(&self.wal).map_or(0, |wal| wal.len())
    }
}

/// Waits for another writer for up to `longest`, and never past the deadline. SQLite's own handler
/// sleeps 1, 2, 5, 10 … 100 ms, but a commit takes a third of a millisecond: with eight senders the
/// store would be idle half of the time.
fn patience(longest: Duration, deadline: Option<Instant>) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut begun = Instant::now();
    // So that waiting processes don't try in step.
    let own = u64::from(std::process::id() % 8) * 25;
    move |tries| {
        if tries == 0 {
            begun = Instant::now();
        }
        let now = Instant::now();
        let waits = now.duration_since(begun) < longest && deadline.is_none_or(|deadline| now < deadline);
        if waits {
            std::thread::sleep(Duration::from_micros(
                150 + own + 50 * u64::from(tries.clamp(0, 17).unsigned_abs()),
            ));
        }
        waits
    }
}

/// Refuses a home that other users can write to: they could replace the store or read the mail.
pub fn usable(home: &Path) -> Result<(), Error> {
    baton_machine::home::check(home).map_err(|fault| {
        let folder = fault.folder.display();
        Error::new(Code::HomeUnsafe, format!("{} is not safe: {folder} {}", home.display(), fault.why))
            .hint(format!("`ls -ld {folder}` shows its owner and rights; `chmod go-w {folder}` takes them from others, or set BATON_HOME to a folder of your own"))
    })
}

fn connect(file: &Path) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(file, flags).map_err(failure)
}

/// Opens a store that could not be opened by its name: it does not exist, or another process has
/// just made it, or the path to its folder has a symbolic link, which SQLite does not follow with
/// this flag.
fn found_or_made(home: &Path, layout: &Layout) -> Result<Connection, Error> {
    let file = home.join(layout.file);
    if !canonical(&file).exists() {
        create(home, layout)?;
    }
    connect(&canonical(&file))
}

/// The file in its folder, with symbolic links to the folder resolved.
fn canonical(file: &Path) -> PathBuf {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(file.file_name()).map_or_else(|| file.to_owned(), |(folder, name)| folder.join(name))
}

fn newer(version: i32, layout: &Layout) -> Error {
    let known = layout.version();
    Error::new(
        Code::StoreNewer,
        format!("{} has version {version}, and this baton knows versions up to {known}", layout.file),
    )
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
    own::folder(home).map_err(|error| refused("create", error))?;
    let home = &home.canonicalize().map_err(|error| refused("use", error))?;
    let draft = new_draft(home, layout).map_err(|error| refused("write to", error))?;
    let made = fill(&draft, layout);
    let linked = made.and_then(|()| match std::fs::hard_link(&draft, home.join(layout.file)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(refused("write to", error)),
        _ => Ok(()),
    });
    // A draft that is left behind is harmless, and doctor removes it.
    std::fs::remove_file(&draft).ok();
    linked?;
    // The new name must survive a power cut before anything in the store is promised.
    std::fs::File::open(home).and_then(|dir| dir.sync_all()).map_err(|error| refused("write to", error))
}

/// A new empty file with a random name. A process id would not do: containers that share a home
/// have the same ones.
fn new_draft(home: &Path, layout: &Layout) -> io::Result<PathBuf> {
    loop {
        let random = baton_machine::random::bytes()?;
        let draft = home.join(format!(".{}.{:016x}", layout.file, u64::from_le_bytes(random)));
        match own::create_new(&draft) {
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
    // Closing folds and removes the draft's own WAL, so the file that is linked into place is
    // complete.
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
