//! The worker: one process per job, from its start to its end.
//!
//! It holds the job's lock for life. It starts the backend, reads its output, asks it every few
//! seconds, and lets the judges decide. One thread owns the picture of the job; backends, looks and
//! the bell only send it what they have learnt. When the end is written, the process ends and its
//! lock is released, which wakes everyone who waits for the job.

mod work;

use crate::backend::{self, Task};
use crate::place::Place;
use crate::request::{self, Request};
use crate::{Runtime, asker_mail, processes, worktree};
use baton_core::id::JobId;
use baton_core::job::judge::{self, JobVerdict};
use baton_core::job::watch::Watch;
use baton_core::job::{Allow, Fault, Observation, Status};
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_machine::{bell, process};
use baton_store::{JobEnd, JobRow, Jobs, Progress};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use work::Work;

/// How long the worker tries to write the end, for example on a full disk.
const WRITE_END_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest result that is kept.
pub const RESULT_BYTES: usize = 8 << 20;

/// How a job has ended.
struct Ending {
    status: Status,
    result: Option<String>,
    fault: Option<Fault>,
    exit: Option<String>,
}

impl Ending {
    fn failed(fault: Fault, said: Option<String>) -> Self {
        Self { status: Status::Failed, result: said, fault: Some(fault), exit: None }
    }
}

/// Takes over the lock that the starter has handed over as standard input, so that child processes
/// don't inherit it. The lock is released with the process.
pub fn take_lock(home: &Path, id: &JobId) -> io::Result<OwnedFd> {
    let lock = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let (given, wanted) = (rustix::fs::fstat(&lock)?, rustix::fs::stat(Place::of(home, id).lock())?);
    if (given.st_dev, given.st_ino) != (wanted.st_dev, wanted.st_ino) {
        return Err(io::Error::other("standard input is not the lock of that job"));
    }
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(lock)
}

/// Works on a job until it has ended, and holds `_lock` until then.
pub fn run(runtime: &Runtime, id: &JobId, _lock: OwnedFd) -> Result<(), Error> {
    let mut jobs = Jobs::open(&runtime.home)?;
    let began = Instant::now();
    if !jobs.begin_work(id, process::this(), baton_machine::clock::now())? {
        return Ok(());
    }
    let Some(row) = jobs.get(id)? else { return Ok(()) };
    // Before anything is started, so that no process of a job is ever taken for the person, or for
    // one that no job has started.
    process::mark::set_job(process::this());
    let place = Place::of(&runtime.home, id);
    bell::ring_at(&place.bell());
    log(Duration::ZERO, "starting", &row.agent);
    let (ending, worktree) = match prepare(runtime, &row) {
        Ok(Prepared { task, request, worktree }) => {
            if let Some(worktree) = &worktree {
                let path = worktree.path.to_string_lossy();
                jobs.record_progress(id, &Progress { worktree: Some(&path), ..Progress::default() })?;
            }
            let mut work = Work::new(runtime, &row, task, &request, began, jobs);
            let ending = work.carry_out();
            jobs = work.jobs;
            (ending, worktree)
        }
        Err(fault) => (Ending::failed(fault, None), None),
    };
    let changes = worktree.and_then(|worktree| worktree.finish().ok());
    finish(runtime, &mut jobs, id, &ending, changes.as_deref(), began);
    bell::ring_at(&place.bell());
    bell::ring_at(&bell::inbox(&runtime.home));
    Ok(())
}

/// What a job is begun with.
struct Prepared {
    task: Task,
    request: Request,
    worktree: Option<worktree::Worktree>,
}

/// The task as the backend gets it, from the record, with the worktree that it needs.
fn prepare(runtime: &Runtime, row: &JobRow) -> Result<Prepared, Fault> {
    let request = Request::parse(&row.request)
        .ok_or_else(|| Fault::new(Code::StoreCorrupt, "the record of the job can't be read"))?;
    let mut task = task(runtime, row, &request);
    let worktree = match request.worktree {
        true => Some(worktree::Worktree::add(&runtime.home, &row.id, task.cwd.as_path())?),
        false => None,
    };
    if let Some(worktree) = &worktree {
        task.worktree_of = Some(std::mem::replace(&mut task.cwd, worktree.cwd.clone()));
    }
    let longest = backend::of(&row.agent).map_or(usize::MAX, |backend| backend.capabilities().prompt_bytes);
    if task.prompt.len() > longest {
        let size = format!(
            "the prompt has {} bytes and goes into a file: this agent takes at most {longest}",
            task.prompt.len()
        );
        log(Duration::ZERO, "starting", &size);
        task.put_prompt_into_file().map_err(|error| {
            Fault::new(Code::DiskFull, format!("the prompt could not be put into a file: {error}"))
                .hint("check the free space of the disk")
        })?;
    }
    Ok(Prepared { task, request, worktree })
}

/// The task of a record, as far as it is known without starting anything.
pub fn task(runtime: &Runtime, row: &JobRow, request: &Request) -> Task {
    let task = new_task(runtime, &row.id, &row.prompt, Path::new(&row.cwd), request);
    match &row.worktree {
        Some(worktree) => Task { cwd: worktree.into(), worktree_of: Some(task.cwd), ..task },
        None => task,
    }
}

/// The task of a job that has no record yet.
pub fn new_task(runtime: &Runtime, id: &JobId, prompt: &str, cwd: &Path, request: &Request) -> Task {
    let mut task = bare_task(runtime, id, request.program.clone(), cwd.to_owned());
    task.environment.push((processes::DEPTH_VARIABLE.into(), request.depth.to_string().into()));
    if request.read_only {
        task.environment.push((processes::READ_ONLY_VARIABLE.into(), "1".into()));
    }
    Task {
        prompt: request::with_header(prompt),
        title: format!("{}: {}", task.label, head(prompt, 60)),
        model: request.model.clone(),
        effort: request.effort.clone(),
        read_only: request.read_only,
        allow: request.allow,
        resume: request.resume.as_ref().map(|resume| resume.session.clone()),
        ..task
    }
}

/// A task without a prompt and without options: enough for a backend to check its program and its
/// login.
pub fn bare_task(runtime: &Runtime, id: &JobId, program: PathBuf, cwd: PathBuf) -> Task {
    let mut environment = runtime.environment.clone();
    let own: Vec<&str> =
        baton_agents::ALL.iter().flat_map(|agent| agent.facts().variables).copied().collect();
    let marks = [processes::JOB_VARIABLE, processes::DEPTH_VARIABLE, processes::READ_ONLY_VARIABLE];
    environment.retain(|(name, _)| !own.iter().chain(&marks).any(|left_out| name == *left_out));
    environment.push((processes::JOB_VARIABLE.into(), id.as_str().into()));
    let label = format!("baton {id}");
    Task {
        prompt: String::new(),
        program,
        environment,
        cwd,
        worktree_of: None,
        folder: Place::of(&runtime.home, id).folder().to_owned(),
        home: runtime.home.clone(),
        baton: runtime.program.clone(),
        title: label.clone(),
        label,
        model: None,
        effort: None,
        read_only: false,
        allow: Allow::Ask,
        resume: None,
    }
}

/// The beginning of a text, in one line.
pub fn head(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

/// What a backend knows of a session without a worker, as a verdict.
pub fn recall(task: &Task, agent: &str, session: &str) -> Option<JobVerdict> {
    let snapshot = backend::of(agent)?.recall(task, session)?;
    let mut watch = Watch::default();
    watch.observe(Observation::Looked(snapshot), Span(0));
    judge::recalled(&watch)
}

/// Writes the end, and tells the asker. On a full disk it tries for a while. If that fails, a later
/// reader finds no worker and reconciles the job.
fn finish(
    runtime: &Runtime,
    jobs: &mut Jobs,
    id: &JobId,
    ending: &Ending,
    changes: Option<&str>,
    began: Instant,
) {
    let words = ending.fault.as_ref().map_or("", |fault| fault.error.message());
    log(began.elapsed(), ending.status.as_str(), words);
    let elapsed = Span(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    let result = ending.result.as_deref().map(cut);
    let deadline = Instant::now() + WRITE_END_TIMEOUT;
    loop {
        let end = JobEnd {
            status: ending.status,
            result: result.as_deref(),
            fault: ending.fault.as_ref(),
            exit: ending.exit.as_deref(),
            changes,
            elapsed: Some(elapsed),
            now: baton_machine::clock::now(),
        };
        match jobs.end(id, &end) {
            Ok(_) => break,
            Err(error) if Instant::now() >= deadline => {
                log(began.elapsed(), "unwritten", error.message());
                return;
            }
            Err(_) => thread::sleep(Duration::from_secs(1)),
        }
    }
    asker_mail::send_end(runtime, jobs, id);
    jobs.tidy();
}

/// A result, cut to the length that is kept.
fn cut(text: &str) -> String {
    if text.len() <= RESULT_BYTES {
        return text.to_owned();
    }
    let end = (0..=RESULT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n[baton: cut; the result has {} bytes]", &text[..end], text.len())
}

/// Writes one line of the job's log, which is standard output. A full disk must not stop the work.
#[expect(clippy::disallowed_methods, reason = "a file, which `job logs` shows with care")]
fn log(since: Duration, status: &str, words: &str) {
    let line = format!("{} +{}s {status} {words}", baton_machine::clock::now().to_rfc3339(), since.as_secs());
    writeln!(std::io::stdout(), "{}", line.trim_end()).ok();
}
