//! What all calls of one server share: the options, the open stores, and what is known about whose server this is.
//!
//! The stores are opened when they are first needed and opened anew after a failure, or when somebody put another file in their place:
//! writing to a file that no longer has a name would accept mail that nobody can read.

use crate::Options;
use crate::bells::Bells;
use crate::overseer::Askers;
use baton_agents::Agent;
use baton_core::id::SessionRow;
use baton_core::limits;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_jobs::Host;
use baton_mail::process;
use baton_store::{Process, Role, Store};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// After a write, the WAL is looked at this much later, when the answer is out.
const TIDY_AFTER: Duration = Duration::from_millis(100);

/// The shared state.
pub(crate) struct Desk {
    pub(crate) options: Options,
    /// The processes above this one that may run the session, the nearest first.
    pub(crate) lineage: Vec<Process>,
    /// True once the client has closed stdin.
    pub(crate) client_gone: watch::Receiver<bool>,
    pub(crate) bells: Bells,
    /// Whose jobs are watched over.
    pub(crate) askers: Askers,
    /// The agent's id of the session that a hook named on this connection last.
    hook_named: Mutex<Option<String>>,
    claimed: Mutex<Option<SessionRow>>,
    mail: Mutex<Option<Held>>,
    hooks: Mutex<Option<Held>>,
    tidying: AtomicBool,
}

/// An open store and which file it is.
struct Held {
    store: Store,
    file: Option<(u64, u64)>,
}

impl Desk {
    /// A desk with nothing open yet.
    pub(crate) fn new(options: Options, client_gone: watch::Receiver<bool>) -> Self {
        Self {
            lineage: lineage(options.agent),
            options,
            client_gone,
            bells: Bells::default(),
            askers: Askers::default(),
            hook_named: Mutex::default(),
            claimed: Mutex::default(),
            mail: Mutex::default(),
            hooks: Mutex::default(),
            tidying: AtomicBool::new(false),
        }
    }

    /// Works with the store as a command does: what it writes is on the disk when this returns.
    pub(crate) fn mail<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        self.with(&self.mail, Role::Command, limits::COMMAND_LOCK_WAIT, work)
    }

    /// Works with a store of its own beside everything else: for what takes longer than another call may wait.
    pub(crate) async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Store, &Desk) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let desk = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let mut store = Store::open(&desk.options.home, Role::Command)?;
            work(&mut store, &desk)
        });
        done.await
            .map_err(|error| Error::new(Code::Internal, format!("work beside the calls broke: {error}")))?
    }

    /// Where jobs run, by the settings of this moment.
    pub(crate) fn host(&self) -> Host {
        let options = &self.options;
        Host {
            home: options.home.clone(),
            program: options.program.clone(),
            environment: options.environment.clone(),
            limits: (options.limits)(),
            gate: options.gate,
        }
    }

    /// Works with the store as a hook does.
    pub(crate) fn hooks<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        self.with(&self.hooks, Role::Hook, limits::HOOK_BUDGET, work)
    }

    /// A deadline, also for a command's work: with one, no single wait for another writer is longer than a hook's, and the hooks that
    /// come meanwhile wait behind it.
    fn with<T>(
        &self,
        slot: &Mutex<Option<Held>>,
        role: Role,
        longest: Span,
        work: impl FnOnce(&mut Store) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + longest.to_std();
        let mut slot = lock(slot);
        let file = identity(&self.options.home);
        let mut held = match slot.take().filter(|held| held.file.is_some() && held.file == file) {
            Some(held) => held,
            None => {
                let store = Store::open(&self.options.home, role)?;
                Held { store, file: identity(&self.options.home) }
            }
        };
        held.store.set_deadline(deadline);
        let outcome = work(&mut held.store);
        if !outcome.as_ref().is_err_and(is_of_the_store) {
            *slot = Some(held);
        }
        outcome
    }

    /// The session that a hook named last on this connection.
    pub(crate) fn hook_named(&self) -> Option<String> {
        lock(&self.hook_named).clone()
    }

    /// Notes the session that a hook named.
    pub(crate) fn name_by_hook(&self, session_id: &str) {
        let mut named = lock(&self.hook_named);
        if named.as_deref() != Some(session_id) {
            *named = Some(session_id.to_owned());
        }
    }

    /// The session that was claimed for this server.
    pub(crate) fn claimed(&self) -> Option<SessionRow> {
        *lock(&self.claimed)
    }

    /// Claims a session for this server; whether it may was decided by the caller.
    pub(crate) fn claim(&self, session: SessionRow) {
        *lock(&self.claimed) = Some(session);
    }

    /// Folds a long WAL a moment later, when the answer to the present call is out.
    pub(crate) fn tidy_soon(self: &Arc<Self>) {
        if !self.tidying.swap(true, Ordering::Relaxed) {
            let desk = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(TIDY_AFTER).await;
                desk.tidying.store(false, Ordering::Relaxed);
                desk.tidy();
            });
        }
    }

    /// Folds the WAL if it is long. By a connection of its own, because `tidy` leaves one that no longer waits for others.
    pub(crate) fn tidy(&self) {
        let tidied = self.mail(|store| {
            if store.wal_bytes() > limits::WAL_BYTES_COMMAND {
                Store::open(&self.options.home, Role::Command)?.tidy();
            }
            Ok(())
        });
        if let Err(error) = tidied {
            self.log(&format!("mcp: the store can't be tidied: {error}"));
        }
    }

    /// Writes a line to the log.
    pub(crate) fn log(&self, line: &str) {
        (self.options.log)(line);
    }
}

/// What a panic left behind is still whole: each of these values is replaced in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which file the store of a home is now.
fn identity(home: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(Store::path(home)).ok().map(|file| (file.dev(), file.ino()))
}

/// Whether the fault may lie with the connection, so that a new one is worth trying.
fn is_of_the_store(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::StoreUnavailable
            | Code::StoreCorrupt
            | Code::StoreNewer
            | Code::StoreReadOnly
            | Code::DiskFull
            | Code::Internal
    )
}

/// The processes above this one, up to the agent's own. What lies beyond may be another session of the same agent, in whose shell
/// this one was started.
fn lineage(agent: &dyn Agent) -> Vec<Process> {
    let mut line = Vec::new();
    let mut reached = false;
    for above in process::ancestors() {
        let is_agent = agent.is_process(&process::arguments(above.pid));
        // An agent may run as a launcher and its child, with nothing in between.
        if reached && !is_agent {
            break;
        }
        reached |= is_agent;
        line.push(above);
    }
    line
}
