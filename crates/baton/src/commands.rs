//! The commands, one file each. They read, call `baton-mail`, and print; they decide nothing.

pub mod approve;
pub mod ask;
mod asking;
pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod guard;
pub mod inbox;
pub mod job;
pub mod link;
pub mod log;
pub mod mail;
pub mod mcp;
mod notices;
pub mod review;
pub mod send;
pub mod setup;
pub mod status;
pub mod update;
pub mod wake;
mod watch;
pub mod who;

use crate::cli::Global;
use crate::environment;
use crate::print;
use crate::settings::Settings;
use baton_agents::install::CONFIG_RECORD;
use baton_core::body::{self, Body};
use baton_core::limits::{self, Limits};
use baton_core::rights::{self, Caller, Right};
use baton_core::{Code, Error};
use baton_mail::caller;
use baton_mail::identity::{self, Identity};
use baton_store::{Role, Store};
use std::cell::{OnceCell, RefCell};
use std::io::{IsTerminal as _, Read as _};
use std::mem::ManuallyDrop;
use std::path::PathBuf;

/// What a command does to a home that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It makes the home: it has something to keep there.
    Create,
    /// It has nothing to show, so it says that there is no home. A mistyped path makes no folders.
    Refuse,
    /// It needs none.
    Ignore,
}

/// What a command runs in: the home, the folder, the flags.
#[derive(Debug)]
pub struct CommandContext {
    /// Where the store is.
    pub home: PathBuf,
    /// What decided that, for people.
    pub home_from: &'static str,
    /// The folder in which the command runs.
    pub cwd: PathBuf,
    acting_as: Option<String>,
    missing: Missing,
    /// The store that was opened to find out who calls; the command goes on with it.
    opened: RefCell<Option<ManuallyDrop<Store>>>,
    identity: OnceCell<Identity>,
}

impl CommandContext {
    /// From the flags and the environment.
    pub fn new(global: Global, missing: Missing) -> Result<Self, Error> {
        let cwd = std::env::current_dir()
            .map_err(|error| Error::new(Code::Usage, format!("the present folder can't be used: {error}")))?;
        let home_from = environment::home_from(global.home.as_deref());
        let home = environment::home(global.home)?;
        Ok(Self {
            home,
            home_from,
            cwd,
            acting_as: global.acting_as,
            missing,
            opened: RefCell::default(),
            identity: OnceCell::new(),
        })
    }

    /// Refuses a command line that needs rights which its caller does not have. Nothing is opened
    /// for what every caller may do.
    pub fn permit(&self, needed: &[&Right]) -> Result<(), Error> {
        if needed.iter().all(|right| right.is_open()) {
            return Ok(());
        }
        let is_inside = caller::is_inside_an_agent(&environment::get);
        let outside = [Caller::Person, Caller::Script];
        if !is_inside && needed.iter().all(|right| outside.iter().all(|caller| right.allows(*caller))) {
            return Ok(());
        }
        let inside = [Caller::Agent, Caller::Subagent, Caller::Job, Caller::Stranger];
        let for_no_agent = |right: &&&Right| !inside.iter().any(|caller| right.allows(*caller));
        if is_inside && let Some(right) = needed.iter().find(for_no_agent) {
            return rights::may(Caller::Agent, right);
        }
        let mut store = self.store()?;
        let me = self.identity(&mut store)?;
        self.opened.replace(Some(store));
        let caller = caller::of(&me.kind, &environment::get);
        needed.iter().try_for_each(|right| rights::may(caller, right))
    }

    /// Whether baton keeps anything in the home.
    fn has_home(&self) -> bool {
        let kept = [baton_store::FILES, &[CONFIG_RECORD]];
        kept.iter().copied().flatten().any(|file| self.home.join(file).exists())
    }

    /// Refuses a command that only reads, if there is nothing to read.
    pub fn refuse_missing_home(&self) -> Result<(), Error> {
        if self.missing != Missing::Refuse || self.has_home() {
            return Ok(());
        }
        // A home that can't be looked into is another error, which the store reports.
        baton_store::usable(&self.home)?;
        Err(Error::new(Code::NoHome, format!("baton has no home in {}", self.home.display()))
            .hint("`baton setup` makes it; is --home or BATON_HOME right?"))
    }

    /// Whether `--as` is given.
    pub fn is_acting(&self) -> bool {
        self.acting_as.is_some()
    }

    /// The store, only if it is there already.
    pub fn store_to_look_into(&self) -> Option<ManuallyDrop<Store>> {
        Store::path(&self.home).exists().then(|| self.store().ok()).flatten()
    }

    /// Opens the store, for as long as the process runs: it ends with its command, and to close a
    /// store costs as much as to open it.
    pub fn store(&self) -> Result<ManuallyDrop<Store>, Error> {
        match self.opened.take() {
            Some(store) => Ok(store),
            None if self.missing == Missing::Ignore && !self.has_home() => {
                Store::nowhere().map(ManuallyDrop::new)
            }
            None => Store::open(&self.home, Role::Command).map(ManuallyDrop::new),
        }
    }

    /// Who calls.
    pub fn identity(&self, store: &mut Store) -> Result<Identity, Error> {
        if let Some(known) = self.identity.get() {
            return Ok(known.clone());
        }
        let found = self.identify(store)?;
        Ok(self.identity.get_or_init(|| found).clone())
    }

    fn identify(&self, store: &mut Store) -> Result<Identity, Error> {
        let terminal = || {
            std::io::stdin().is_terminal()
                || print::stdout_is_terminal()
                || print::stderr_is_terminal()
                || std::fs::File::open("/dev/tty").is_ok()
        };
        identity::identify(store, &environment::get, &self.cwd, &terminal, self.acting_as.as_deref())
    }

    /// The limits in force here.
    pub fn limits(&self) -> Result<Limits, Error> {
        Settings::load(&self.cwd).map(|settings| settings.limits)
    }
}

/// A store that can't be used from an agent's shell is most likely behind its sandbox, which may
/// still let it be read. Says which way works there.
pub fn sandboxed(error: Error) -> Error {
    let in_agent_shell = baton_agents::ALL.iter().any(|agent| agent.shell(&environment::get).is_some());
    let kept_out = matches!(error.code(), Code::StoreReadOnly | Code::StoreUnavailable);
    if in_agent_shell && kept_out {
        return Error::new(
            Code::Sandboxed,
            "this shell's sandbox keeps baton from its store; nothing was sent or read",
        )
        .hint("use baton's MCP tools instead: send_message, ask_peer, reply_to_message, read_messages, who");
    }
    error
}

/// The body of a message: the argument, or stdin for `-` or where no argument is given.
pub fn body(argument: Option<String>) -> Result<Body, Error> {
    match argument.as_deref() {
        Some(text) if text != "-" => Body::from_text(text.to_owned()),
        None if std::io::stdin().is_terminal() => Err(Error::new(Code::EmptyBody, "there is no body")
            .hint("write it as the last argument, or pipe it in with -")),
        _ => {
            let mut bytes = Vec::new();
            let longest = limits::BODY_BYTES as u64 + 1;
            std::io::stdin().lock().take(longest).read_to_end(&mut bytes).map_err(|error| {
                Error::new(Code::BodyUnreadable, format!("the body could not be read: {error}"))
                    .hint("nothing was sent; try again")
            })?;
            if bytes.len() > limits::BODY_BYTES {
                return Err(body::too_large(bytes.len()));
            }
            Body::from_bytes(bytes)
        }
    }
}
