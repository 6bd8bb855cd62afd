//! Starting a job: first every check that can refuse it, then the lock, the record and the worker.
//!
//! On its way a task takes these forms:
//!
//! | form | what it holds | made by |
//! |---|---|---|
//! | arguments | what the caller typed or sent | `baton job start`, `baton review`, the MCP tool `start_job` |
//! | [`JobSpec`] | what the caller wants | each of those |
//! | [`Request`] | the checked options; kept as JSON in the record, so that any process can look after the job later | [`start()`] |
//! | [`NewJob`] | the row to insert, with the request in it | [`start()`] |
//! | [`JobRow`] | the row as it is now | the store |
//! | [`Task`] | what a backend gets: prompt, program, environment, folders, options | [`worker::task`] |
//!
//! A new option goes through `JobSpec`, `Request` (with its JSON), `keyed` and `Task`.

use crate::backend::{self, Backend, Task};
use crate::place::Place;
use crate::request::{Request, Resume};
use crate::{Runtime, processes, reconcile, worker, worktree};
use baton_core::id::JobId;
use baton_core::job::{Allow, Fault, Status};
use baton_core::rights::{self, Caller};
use baton_core::time::Span;
use baton_core::{Code, Error, frame};
use baton_machine::{bell, project};
use baton_mail::caller;
use baton_mail::identity::Identity;
use baton_store::{JobEnd, JobFilter, JobRow, Jobs, NewJob, RetryKey, Store};
use sha2::{Digest as _, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The longest prompt.
pub const PROMPT_BYTES: usize = 1 << 20;

/// What a caller wants done.
#[derive(Clone, Debug)]
pub struct JobSpec<'a> {
    pub agent: &'a str,
    pub prompt: &'a str,
    pub model: Option<&'a str>,
    pub effort: Option<&'a str>,
    pub cwd: &'a Path,
    /// It works in a worktree of its own.
    pub worktree: bool,
    pub read_only: bool,
    /// What it may do without asking.
    pub allow: Allow,
    /// The job whose session to resume.
    pub resume: Option<&'a str>,
    /// How long the job may take.
    pub timeout: Span,
    /// How long it may do nothing new before it counts as stalled.
    pub idle: Span,
    /// How long its model may be out of reach.
    pub retry: Span,
    /// How deep jobs may be nested.
    pub depth: u32,
    /// The caller waits for its end, and gets no mail about it.
    pub told: bool,
    /// The key for retries.
    pub key: Option<&'a str>,
}

/// A job that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub id: JobId,
    /// It was accepted before, under the same key.
    pub again: bool,
}

/// Starts a job. When this returns, the job is on the disk and a worker has it.
pub fn start(
    runtime: &Runtime,
    store: &mut Store,
    me: &Identity,
    spec: &JobSpec<'_>,
) -> Result<Accepted, Error> {
    check_prompt(spec.prompt)?;
    let backend = backend::of(spec.agent).ok_or_else(|| unknown_agent(spec.agent))?;
    let mut jobs = Jobs::open(&runtime.home)?;
    let key = spec.key.map(|key| keyed(key, spec)).transpose()?;
    if let Some(key) = key
        && let Some(id) = jobs.accepted_before(me.participant.id, key)?
    {
        return Ok(Accepted { id, again: true });
    }
    let above = jobs_above(runtime, &jobs)?;
    let depth = check_depth(runtime, spec, &above)?;
    check_rights(runtime, me, spec, &above)?;
    let cwd = check_folder(spec)?;
    let program = find_program(runtime, backend)?;
    let resume = spec.resume.map(|job| resumable(runtime, &mut jobs, job, spec)).transpose()?;
    let request = Request {
        program,
        model: spec.model.map(str::to_owned),
        effort: spec.effort.map(str::to_owned),
        read_only: spec.read_only,
        allow: spec.allow,
        worktree: spec.worktree,
        resume,
        timeout: spec.timeout,
        idle: spec.idle,
        retry: spec.retry,
        depth,
    };
    let id = JobId::from_random(baton_machine::random::id());
    backend.check(&worker::new_task(runtime, &id, spec.prompt, &cwd, &request))?;
    let job = NewJob {
        id: id.clone(),
        project: &project::of(&cwd),
        agent: spec.agent,
        prompt: spec.prompt,
        request: &request.to_json().to_string(),
        cwd: &cwd.to_string_lossy(),
        resumes: request.resume.as_ref().map(|resume| resume.session.as_str()),
        asker: me.participant.id,
        asker_name: &me.participant.name,
        key,
        told: spec.told,
        now: baton_machine::clock::now(),
    };
    // The generation is raised before and after the job is recorded. A process that clears it in
    // between has not seen this job; its compare-and-set fails, because the generation has changed
    // again.
    store.bump_jobs_generation(me.participant.id)?;
    let place = Place::of(&runtime.home, &id);
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
    // From here on the job is accepted. If the generation can't be raised, the asker's events look
    // after the job later, and the job still runs.
    store.bump_jobs_generation(me.participant.id).ok();
    if let Err(error) = hand_over(runtime, &place, &id, lock) {
        let fault = Fault::new(Code::BackendStart, format!("the worker could not be started: {error}"))
            .hint("the machine may be out of memory or processes");
        let end = JobEnd {
            status: Status::Failed,
            result: None,
            fault: Some(&fault),
            exit: None,
            changes: None,
            elapsed: None,
            now: baton_machine::clock::now(),
        };
        // If the end can't be written, the next reader finds that no process holds the lock.
        jobs.end(&id, &end).ok();
        return Err(fault.error);
    }
    // The asker's MCP server, if it has one, watches the new job too.
    bell::ring(&runtime.home, me.participant.id);
    Ok(Accepted { id, again: false })
}

/// Starts the worker and gives it the lock as its standard input. It goes through a process that
/// ends at once. So the worker is not the starter's child: the starter need not wait for it, and it
/// does not end with the starter's process tree.
fn hand_over(runtime: &Runtime, place: &Place, id: &JobId, lock: File) -> io::Result<()> {
    let log = baton_machine::own::append(&place.log())?;
    let status = Command::new(&runtime.program)
        .args(["job-worker", "--detach", "--home"])
        .arg(&runtime.home)
        .arg(id.as_str())
        .stdin(lock)
        .stdout(log.try_clone()?)
        .stderr(log)
        .current_dir(place.folder())
        // The worker belongs to no job. If jobs may start jobs, the end of one must not end the
        // worker of the other.
        .env_remove(processes::JOB_VARIABLE)
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

/// The process between the starter and the worker: starts the worker with the same standard input,
/// and ends.
pub fn detach(runtime: &Runtime, id: &JobId) -> io::Result<()> {
    // This process leads no group yet, so this can't fail.
    rustix::process::setsid()?;
    Command::new(&runtime.program)
        .args(["job-worker", "--home"])
        .arg(&runtime.home)
        .arg(id.as_str())
        .stdin(Stdio::inherit())
        .spawn()
        .map(drop)
}

/// Whether an agent could be given a task here: its program exists, and it has a login as far as
/// files and variables show.
pub fn ready(runtime: &Runtime, backend: &dyn Backend, cwd: &Path) -> Result<(), Error> {
    let id = JobId::from_random(baton_machine::random::id());
    let program = find_program(runtime, backend)?;
    // Read-only, because what it may do is another question.
    backend.check(&Task { read_only: true, ..worker::bare_task(runtime, &id, program, cwd.to_owned()) })
}

fn check_prompt(prompt: &str) -> Result<(), Error> {
    if prompt.trim().is_empty() {
        return Err(Error::new(Code::EmptyBody, "there is no prompt")
            .hint("write it as the last argument, pipe it in with -, or name a file with --prompt-file"));
    }
    if prompt.contains('\0') {
        return Err(Error::new(Code::BodyHasNul, "the prompt has a NUL character")
            .hint("agents don't take that character: remove it"));
    }
    if prompt.len() > PROMPT_BYTES {
        let size = format!("the prompt has {} bytes, and at most {PROMPT_BYTES} are allowed", prompt.len());
        return Err(
            Error::new(Code::BodyTooLarge, size).hint("put it into a file, and name the file in the prompt")
        );
    }
    Ok(())
}

fn unknown_agent(name: &str) -> Error {
    let known: Vec<&str> = backend::ALL.iter().map(|backend| backend.agent()).collect();
    Error::new(Code::UnknownAgent, format!("no agent is called {}", frame::shown(name, 40)))
        .hint(format!("one of {}", known.join(", ")))
}

/// A job that this process belongs to.
struct JobAbove {
    id: JobId,
    request: Request,
}

/// The jobs that this process belongs to, as their records have them: by the processes above it,
/// and by the marks in its environment and in theirs. A process that started below a job and has
/// left it starts none, because nothing that it says about itself can be checked.
fn jobs_above(runtime: &Runtime, jobs: &Jobs) -> Result<Vec<JobAbove>, Error> {
    let running = processes::running_above(jobs.list(JobFilter::Open, usize::MAX)?).ok_or_else(|| {
        Error::new(Code::TooDeep, "a job has started this process, and baton can't tell which one")
            .hint("start it from the job's own process, not from one that has detached itself")
    })?;
    let mut above: Vec<JobAbove> = Vec::new();
    let marked =
        processes::jobs_above(runtime.variable(processes::JOB_VARIABLE).map(|value| value.as_os_str()));
    let marked: Vec<JobRow> =
        marked.iter().map(|id| jobs.get(id)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    for row in running.into_iter().chain(marked) {
        let is_known = above.iter().any(|known| known.id == row.id);
        if let Some(request) = Request::parse(&row.request).filter(|_| !is_known) {
            above.push(JobAbove { id: row.id, request });
        }
    }
    Ok(above)
}

fn check_depth(runtime: &Runtime, spec: &JobSpec<'_>, above: &[JobAbove]) -> Result<u32, Error> {
    let marked = processes::depth(runtime.variable(processes::DEPTH_VARIABLE).map(|value| value.as_os_str()));
    let above = above.iter().map(|job| job.request.depth).fold(marked, u32::max);
    if above >= spec.depth {
        return Err(Error::new(
            Code::TooDeep,
            format!(
                "jobs can be nested at most {} deep (jobs.depth), and this already runs inside a job",
                spec.depth
            ),
        )
        .hint("do the task yourself"));
    }
    Ok(above + 1)
}

/// Refuses a job that could do more than its asker: more than the user's setting, or more than a
/// job that asks for it.
fn check_rights(
    runtime: &Runtime,
    me: &Identity,
    spec: &JobSpec<'_>,
    above: &[JobAbove],
) -> Result<(), Error> {
    let env = |name: &str| runtime.variable(name).cloned();
    let caller = caller::of(&me.kind, &env);
    if spec.allow > runtime.limits.job_allow {
        rights::may(caller, &rights::ALLOW_MORE)?;
    }
    let refused = |what: &str, hint: &str| Err(Error::new(Code::NotPermitted, what).hint(hint));
    if caller == Caller::Stranger && !spec.read_only && spec.allow > Allow::Ask {
        return refused(
            "baton can't tell who asks for this job, so it may do nothing without asking",
            "give --allow ask or --read-only, or use start_job of baton's MCP server",
        );
    }
    let mut only_reads = processes::only_reads(runtime.variable(processes::READ_ONLY_VARIABLE).is_some());
    for JobAbove { id, request } in above {
        only_reads |= request.read_only;
        if spec.allow > request.allow && !spec.read_only {
            return refused(
                &format!("the new job may do more without asking than job {id}, which starts it"),
                &format!("give --allow {}", request.allow.as_str()),
            );
        }
    }
    if only_reads && !spec.read_only {
        return refused("a read-only job can only start read-only jobs", "give --read-only");
    }
    Ok(())
}

fn check_folder(spec: &JobSpec<'_>) -> Result<PathBuf, Error> {
    let cwd = spec.cwd.canonicalize().ok().filter(|cwd| cwd.is_dir()).ok_or_else(|| {
        Error::new(Code::BadFolder, format!("{} is not a folder", spec.cwd.display()))
            .hint("--cwd names the folder that the job works in")
    })?;
    if spec.worktree {
        worktree::check(&cwd)?;
    }
    Ok(cwd)
}

fn find_program(runtime: &Runtime, backend: &dyn Backend) -> Result<PathBuf, Error> {
    let agent = baton_agents::by_name(backend.agent())?;
    let path = runtime.variable("PATH").map(|path| path.as_os_str()).unwrap_or(OsStr::new(""));
    let runs = |file: &PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).map(|folder| folder.join(agent.program())).find(runs).ok_or_else(|| {
        Error::new(Code::AgentMissing, format!("{} is not installed here", agent.title()))
            .hint(format!("`{}` is not on the search path; `baton doctor` shows what is", agent.program()))
    })
}

/// The session to resume, by the job that had it.
fn resumable(runtime: &Runtime, jobs: &mut Jobs, job: &str, spec: &JobSpec<'_>) -> Result<Resume, Error> {
    let row = find(runtime, jobs, job)?;
    if !row.status.is_end() {
        return Err(Error::new(Code::JobRunning, format!("job {} is {}", row.id, row.status))
            .hint(format!("wait for it (`baton job wait {}`) or cancel it first", row.id)));
    }
    if row.agent != spec.agent {
        return Err(Error::new(Code::UnsupportedOption, format!("job {} was done by {}", row.id, row.agent))
            .hint(format!("start it with {} again: a session can't change its agent", row.agent)));
    }
    match row.session {
        Some(session) => Ok(Resume { job: row.id, session }),
        None => Err(Error::new(
            Code::NothingToResume,
            format!("job {} ended before its agent had a session", row.id),
        )
        .hint("start it as a new job, without --resume")),
    }
}

/// A job by its id or the beginning of it, reconciled.
pub fn find(runtime: &Runtime, jobs: &mut Jobs, text: &str) -> Result<JobRow, Error> {
    let unknown = || {
        Error::new(Code::UnknownJob, format!("no job {}", frame::shown(text, 40)))
            .hint("`baton job list --all` lists them")
    };
    let typed = text.trim();
    let known = (2..=13).contains(&typed.len()) && typed.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let found = if known { jobs.beginning_with(typed, 6)? } else { Vec::new() };
    match found.as_slice() {
        [] => Err(unknown()),
        [id] => jobs.get(id)?.map(|row| reconcile::one(runtime, jobs, row)).ok_or_else(unknown),
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

fn keyed<'a>(key: &'a str, spec: &JobSpec<'_>) -> Result<RetryKey<'a>, Error> {
    baton_store::check_label("key", key)?;
    let mut digest = Sha256::new();
    let cwd = spec.cwd.to_string_lossy();
    let flags = format!("{}{}{}", spec.worktree, spec.read_only, spec.allow.as_str());
    for part in [
        spec.agent,
        spec.prompt,
        spec.model.unwrap_or(""),
        spec.effort.unwrap_or(""),
        &cwd,
        &flags,
        spec.resume.unwrap_or(""),
    ] {
        digest.update(part.len().to_le_bytes());
        digest.update(part.as_bytes());
    }
    Ok(RetryKey { text: key, digest: digest.finalize().into() })
}
