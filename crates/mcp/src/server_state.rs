//! What all calls of one server share: the options, the open stores, and what is known about the
//! session that it serves.
//!
//! The server opens each store when it first needs it. It opens it again after a failure, or if
//! another file has replaced it: mail that is written to a deleted file would be lost.

use crate::Options;
use crate::bells::Bells;
use crate::job_watcher::Askers;
use baton_agents::Agent;
use baton_core::id::SessionRow;
use baton_core::limits;
use baton_core::process::Process;
use baton_core::rights::Caller;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_jobs::Runtime;
use baton_machine::process;
use baton_mail::identity;
use baton_store::{Role, Store};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The time from a write to the check of the WAL. By then the answer is out.
const TIDY_DELAY: Duration = Duration::from_millis(100);

pub(crate) struct ServerState {
    pub(crate) options: Options,
    /// The processes above this one that may run the session, nearest first.
    pub(crate) lineage: Vec<Process>,
    /// The nearest agent above is of the kind that this server serves, or none is above by any
    /// sign.
    pub(crate) may_serve_unknown: bool,
    /// Who calls while no session is known: by the processes above.
    pub(crate) unbound: Caller,
    /// True once the client has closed stdin.
    pub(crate) client_gone: watch::Receiver<bool>,
    pub(crate) bells: Bells,
    /// The participants whose jobs are watched.
    pub(crate) askers: Askers,
    /// The agent's id of the session that a hook named on this connection last.
    hook_named: Mutex<Option<String>>,
    claimed: Mutex<Option<SessionRow>>,
    mail: Mutex<Option<OpenStore>>,
    hooks: Mutex<Option<OpenStore>>,
    tidying: AtomicBool,
}

/// Identifies a file, whatever its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// An open store and which file it is.
struct OpenStore {
    store: Store,
    file: Option<FileId>,
}

impl ServerState {
    pub(crate) fn new(options: Options, client_gone: watch::Receiver<bool>) -> Self {
        Self {
            lineage: lineage(options.agent),
            may_serve_unknown: identity::may_serve(options.agent),
            unbound: identity::unbound_caller(options.agent),
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

    /// Works with the store as a command does: when this returns, the writes are on the disk.
    pub(crate) fn with_store<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with_slot(&self.mail, Role::Command, limits::COMMAND_LOCK_WAIT, work)
    }

    /// Works on another thread with its own store, for work that takes longer than another call may
    /// wait.
    pub(crate) async fn in_background<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Store, &ServerState) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let server = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let mut store = Store::open(&server.options.home, Role::Command)?;
            work(&mut store, &server)
        });
        done.await.map_err(|error| Error::new(Code::Internal, format!("background work failed: {error}")))?
    }

    /// What jobs run with, by the settings that apply now.
    pub(crate) fn runtime(&self) -> Runtime {
        let options = &self.options;
        Runtime {
            home: options.home.clone(),
            program: options.program.clone(),
            environment: options.environment.clone(),
            limits: (options.limits)(),
            guard: options.guard,
        }
    }

    /// Works with the store as a hook does.
    pub(crate) fn with_hook_store<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with_slot(&self.hooks, Role::Hook, limits::HOOK_BUDGET, work)
    }

    /// Works with an open store, with a deadline. A command has one too, because with a deadline no
    /// single wait for another writer is longer than a hook's, and hooks that come meanwhile wait
    /// behind it.
    fn with_slot<T>(
        &self,
        slot: &Mutex<Option<OpenStore>>,
        role: Role,
        timeout: Span,
        work: impl FnOnce(&mut Store) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + timeout.to_std();
        let mut slot = lock(slot);
        let file = file_of(&self.options.home);
        let mut open = match slot.take().filter(|open| open.file.is_some() && open.file == file) {
            Some(open) => open,
            None => {
                let store = Store::open(&self.options.home, role)?;
                OpenStore { store, file: file_of(&self.options.home) }
            }
        };
        open.store.set_deadline(deadline);
        let outcome = work(&mut open.store);
        if !outcome.as_ref().is_err_and(is_store_error) {
            *slot = Some(open);
        }
        outcome
    }

    pub(crate) fn hook_named(&self) -> Option<String> {
        lock(&self.hook_named).clone()
    }

    pub(crate) fn set_hook_named(&self, session_id: &str) {
        let mut named = lock(&self.hook_named);
        if named.as_deref() != Some(session_id) {
            *named = Some(session_id.to_owned());
        }
    }

    pub(crate) fn claimed(&self) -> Option<SessionRow> {
        *lock(&self.claimed)
    }

    /// Claims a session for this server. The caller has checked that it may.
    pub(crate) fn claim(&self, session: SessionRow) {
        *lock(&self.claimed) = Some(session);
    }

    /// Folds a long WAL a moment later, when the answer to the present call is out.
    pub(crate) fn tidy_soon(self: &Arc<Self>) {
        if !self.tidying.swap(true, Ordering::Relaxed) {
            let server = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(TIDY_DELAY).await;
                server.tidying.store(false, Ordering::Relaxed);
                server.tidy();
            });
        }
    }

    pub(crate) fn tidy(&self) {
        let tidied = self.with_store(|store| {
            store.tidy();
            Ok(())
        });
        if let Err(error) = tidied {
            self.log(&format!("mcp: the store can't be tidied: {error}"));
        }
    }

    pub(crate) fn log(&self, line: &str) {
        (self.options.log)(line);
    }
}

/// Ignores a poisoned lock: each of these values is replaced in one step, so a panic leaves it
/// valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file that is the store of a home now.
fn file_of(home: &Path) -> Option<FileId> {
    std::fs::metadata(Store::path(home)).ok().map(|file| FileId { device: file.dev(), inode: file.ino() })
}

/// Whether the open store may cause the error, so that opening it again may help.
fn is_store_error(error: &Error) -> bool {
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

/// The processes above this one, up to the agent's own. Above that may be another session of the
/// same agent, in whose shell this one was started.
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
