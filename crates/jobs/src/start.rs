//! Starting a job: everything that can be refused is refused before anything is there; then the lock, the record, the worker.

use crate::backend::{self, Backend};
use crate::place::Place;
use crate::request::Request;
use crate::{Host, processes, reconcile, worker, worktree};
use baton_core::id::{JobId, ParticipantId};
use baton_core::job::{Allow, Fault, Status};
use baton_core::time::Span;
use baton_core::{Code, Error, frame};
use baton_mail::identity::Identity;
use baton_mail::{bell, project};
use baton_store::{JobEnd, JobRow, Jobs, NewJob, Store};
use sha2::{Digest as _, Sha256};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The longest prompt.
pub const PROMPT_BYTES: usize = 1 << 20;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// Which agent shall do it.
    pub agent: &'a str,
    /// What it shall do.
    pub prompt: &'a str,
    /// The model to take.
    pub model: Option<&'a str>,
    /// How hard to think.
    pub effort: Option<&'a str>,
    /// Where it shall work.
    pub cwd: &'a Path,
    /// In a worktree of its own.
    pub worktree: bool,
    /// It must not change anything.
    pub read_only: bool,
    /// What it may do without asking.
    pub allow: Allow,
    /// The job whose session shall go on.
    pub resume: Option<&'a str>,
    /// How long the whole may take.
    pub timeout: Span,
    /// Nothing new for so long is a stall.
    pub idle: Span,
    /// Its model may be out of reach for so long.
    pub retry: Span,
    /// So many jobs may stand above one another.
    pub depth: u32,
    /// Whoever starts it waits for its end himself, and gets no mail of it.
    pub told: bool,
    /// The key for retries.
    pub key: Option<&'a str>,
}

/// A job that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The job.
    pub id: JobId,
    /// It was accepted before, under the same key.
    pub again: bool,
}

/// Starts a job: when this returns it is on the disk, and a worker has it.
pub fn start(host: &Host, store: &mut Store, me: &Identity, wish: &Wish<'_>) -> Result<Accepted, Error> {
    check_prompt(wish.prompt)?;
    let backend = backend::of(wish.agent).ok_or_else(|| unknown_agent(wish.agent))?;
    let mut jobs = Jobs::open(&host.home)?;
    let key = wish.key.map(|key| keyed(key, wish)).transpose()?;
    if let Some((key, digest)) = key
        && let Some(id) = jobs.accepted_before(me.participant.id, key, digest)?
    {
        return Ok(Accepted { id, again: true });
    }
    let depth = check_depth(host, wish)?;
    let cwd = check_folder(wish)?;
    let program = find_program(host, backend)?;
    let resume = wish.resume.map(|job| resumable(host, &mut jobs, job, wish)).transpose()?;
    let request = Request {
        program,
        model: wish.model.map(str::to_owned),
        effort: wish.effort.map(str::to_owned),
        read_only: wish.read_only,
        allow: wish.allow,
        worktree: wish.worktree,
        resume: resume.as_ref().map(|(row, session)| (row.id.clone(), session.clone())),
        timeout: wish.timeout,
        idle: wish.idle,
        retry: wish.retry,
        depth,
    };
    let id = JobId::from_random(baton_mail::random());
    let job = NewJob {
        id: id.clone(),
        project: &project::of(&cwd),
        agent: wish.agent,
        prompt: wish.prompt,
        request: &request.to_json().to_string(),
        cwd: &cwd.to_string_lossy(),
        resumes: resume.as_ref().map(|(_, session)| session.as_str()),
        asker: me.participant.id,
        asker_name: &me.participant.name,
        key,
        told: wish.told,
        now: baton_mail::now(),
    };
    backend.check(&worker::task(host, &job.as_row(), &request))?;
    // Before and after: whoever clears the hint in between has looked at too few jobs, and does not see this number again.
    store.bump_jobs(me.participant.id)?;
    let place = Place::of(&host.home, &id);
    let lock = place.make()?;
    match jobs.accept(&job) {
        Ok(None) => {}
        other => {
            std::fs::remove_dir_all(place.folder()).ok();
            let again =
                other?.ok_or_else(|| Error::new(Code::Internal, "a job was neither new nor known"))?;
            return Ok(Accepted { id: again, again: true });
        }
    }
    store.bump_jobs(me.participant.id)?;
    if let Err(error) = hand_over(host, &place, &id, lock) {
        let fault = Fault::new(Code::BackendStart, format!("the worker could not be started: {error}"))
            .hint("is the machine out of memory or processes?");
        let end = JobEnd {
            status: Status::Failed,
            result: None,
            fault: Some(&fault),
            exit: None,
            changes: None,
            elapsed: None,
            now: baton_mail::now(),
        };
        jobs.end(&id, &end)?;
        return Err(fault.error);
    }
    // Its own server, if it has one, watches over the new job too.
    bell::ring(&host.home, me.participant.id);
    Ok(Accepted { id, again: false })
}

/// Starts the worker and gives it the lock, as its standard input. It goes through a process that ends at once, so the worker is nobody's child: neither
/// does anybody have to wait for it, nor does it end with the tree that it came from.
fn hand_over(host: &Host, place: &Place, id: &JobId, lock: File) -> io::Result<()> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(place.log())?;
    let status = Command::new(&host.program)
        .args(["job-worker", "--detach", "--home"])
        .arg(&host.home)
        .arg(id.as_str())
        .stdin(lock)
        .stdout(log.try_clone()?)
        .stderr(log)
        .current_dir(place.folder())
        // It belongs to no job: where jobs may start jobs, the end of one is not the end of the other's worker.
        .env_remove(processes::JOB)
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

/// What the process between the starter and the worker does: starts the worker with what it has, and is done.
pub fn detach(host: &Host, id: &JobId) -> io::Result<()> {
    // It has no group of its own yet, so this can't be refused.
    rustix::process::setsid()?;
    Command::new(&host.program)
        .args(["job-worker", "--home"])
        .arg(&host.home)
        .arg(id.as_str())
        .stdin(Stdio::inherit())
        .spawn()
        .map(drop)
}

/// Whether an agent could be given a task here: its program is there, and it has a login as far as files and variables tell.
pub fn ready(host: &Host, backend: &dyn Backend, cwd: &Path) -> Result<(), Error> {
    let request = Request {
        program: find_program(host, backend)?,
        model: None,
        effort: None,
        // What it may do is another question.
        read_only: true,
        allow: Allow::Ask,
        worktree: false,
        resume: None,
        timeout: host.limits.job_timeout,
        idle: host.limits.job_idle,
        retry: host.limits.job_retry,
        depth: 1,
    };
    let job = NewJob {
        id: JobId::from_random(baton_mail::random()),
        project: "",
        agent: backend.agent(),
        prompt: "",
        request: "",
        cwd: &cwd.to_string_lossy(),
        resumes: None,
        asker: ParticipantId(0),
        asker_name: "",
        key: None,
        told: false,
        now: baton_mail::now(),
    };
    backend.check(&worker::task(host, &job.as_row(), &request))
}

fn check_prompt(prompt: &str) -> Result<(), Error> {
    if prompt.trim().is_empty() {
        return Err(Error::new(Code::EmptyBody, "there is no prompt")
            .hint("write it as the last argument, pipe it in with -, or name a file with --prompt-file"));
    }
    if prompt.contains('\0') {
        return Err(Error::new(Code::BodyHasNul, "the prompt has a NUL character").hint("no agent takes one"));
    }
    if prompt.len() > PROMPT_BYTES {
        let size = format!("the prompt has {} bytes, at most {PROMPT_BYTES} are taken", prompt.len());
        return Err(
            Error::new(Code::BodyTooLarge, size).hint("put it into a file and name that in the prompt")
        );
    }
    Ok(())
}

fn unknown_agent(name: &str) -> Error {
    let known: Vec<&str> = backend::ALL.iter().map(|backend| backend.agent()).collect();
    Error::new(Code::UnknownAgent, format!("no agent is called {}", frame::shown(name, 40)))
        .hint(format!("one of {}", known.join(", ")))
}

fn check_depth(host: &Host, wish: &Wish<'_>) -> Result<u32, Error> {
    let above = processes::depth(host.variable(processes::DEPTH).map(|value| value.as_os_str()));
    if above >= wish.depth {
        return Err(Error::new(
            Code::TooDeep,
            format!("you are in a job already, and at most {} may stand above one another", wish.depth),
        )
        .hint("do the task yourself; jobs.depth is the setting"));
    }
    Ok(above + 1)
}

fn check_folder(wish: &Wish<'_>) -> Result<PathBuf, Error> {
    let cwd = wish.cwd.canonicalize().ok().filter(|cwd| cwd.is_dir()).ok_or_else(|| {
        Error::new(Code::BadFolder, format!("{} is not a folder", wish.cwd.display()))
            .hint("--cwd names the folder that the job works in")
    })?;
    if wish.worktree {
        worktree::check(&cwd)?;
    }
    Ok(cwd)
}

fn find_program(host: &Host, backend: &dyn Backend) -> Result<PathBuf, Error> {
    let agent = baton_agents::by_name(backend.agent())?;
    let path = host.variable("PATH").map(|path| path.as_os_str()).unwrap_or(OsStr::new(""));
    let runs = |file: &PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).map(|folder| folder.join(agent.program())).find(runs).ok_or_else(|| {
        Error::new(Code::AgentMissing, format!("{} is not installed here", agent.title()))
            .hint(format!("`{}` is not on the search path; `baton doctor` shows what is", agent.program()))
    })
}

/// The job whose session shall go on, and that session.
fn resumable(host: &Host, jobs: &mut Jobs, job: &str, wish: &Wish<'_>) -> Result<(JobRow, String), Error> {
    let row = find(host, jobs, job)?;
    if !row.status.is_end() {
        return Err(Error::new(Code::JobRunning, format!("job {} is {}", row.id, row.status))
            .hint(format!("wait for it (`baton job wait {}`) or cancel it first", row.id)));
    }
    if row.agent != wish.agent {
        return Err(Error::new(Code::UnsupportedOption, format!("job {} was done by {}", row.id, row.agent))
            .hint(format!("start it with {} again: a session can't change its agent", row.agent)));
    }
    match row.session.clone() {
        Some(session) => Ok((row, session)),
        None => Err(Error::new(
            Code::NothingToResume,
            format!("job {} ended before its agent had a session", row.id),
        )
        .hint("start it anew")),
    }
}

/// A job by its id or the beginning of it, as it really stands.
pub fn find(host: &Host, jobs: &mut Jobs, text: &str) -> Result<JobRow, Error> {
    let unknown = || {
        Error::new(Code::UnknownJob, format!("no job {}", frame::shown(text, 40)))
            .hint("`baton job list --all` lists them")
    };
    let typed = text.trim();
    let known = (2..=13).contains(&typed.len()) && typed.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let found = if known { jobs.beginning_with(typed, 6)? } else { Vec::new() };
    match found.as_slice() {
        [] => Err(unknown()),
        [id] => jobs.get(id)?.map(|row| reconcile::one(host, jobs, row)).ok_or_else(unknown),
        several => {
            let ids: Vec<&str> = several.iter().map(JobId::as_str).collect();
            Err(Error::new(
                Code::AmbiguousJob,
                format!("several jobs begin with {typed}: {}", ids.join(", ")),
            )
            .hint("write more of the id"))
        }
    }
}

fn keyed<'a>(key: &'a str, wish: &Wish<'_>) -> Result<(&'a str, [u8; 32]), Error> {
    baton_store::check_label("key", key)?;
    let mut digest = Sha256::new();
    let cwd = wish.cwd.to_string_lossy();
    let flags = format!("{}{}{}", wish.worktree, wish.read_only, wish.allow.as_str());
    for part in [
        wish.agent,
        wish.prompt,
        wish.model.unwrap_or(""),
        wish.effort.unwrap_or(""),
        &cwd,
        &flags,
        wish.resume.unwrap_or(""),
    ] {
        digest.update(part.len().to_le_bytes());
        digest.update(part.as_bytes());
    }
    Ok((key, digest.finalize().into()))
}
