//! The worker: one process per job, from its first to its last moment.
//!
//! It holds the job's lock for life, starts the backend, hears what it says and asks it every few seconds, and lets the judges decide. One thread
//! owns the picture; backends, looks and the bell only send it what they have learnt. When the end is written down its lock goes with it, which is
//! how everybody who waits hears of it.

mod work;

use crate::backend::{self, Task};
use crate::place::Place;
use crate::request::{self, Request};
use crate::{Host, processes, tell, worktree};
use baton_core::id::JobId;
use baton_core::job::judge::{self, Verdict};
use baton_core::job::watch::Watch;
use baton_core::job::{Fault, Observation, Status};
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_mail::{bell, process};
use baton_store::{JobEnd, JobRow, Jobs, Progress};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use work::Work;

/// So long is it tried to write the end down, on a full disk for example.
const PERSIST: Duration = Duration::from_secs(60);
/// The longest result that is kept.
pub const RESULT_BYTES: usize = 8 << 20;

/// How a job has come to its end.
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

/// Takes the lock over that the starter has handed us as standard input, so that nothing which we start has it. It is let go with the process.
pub fn take_lock(home: &Path, id: &JobId) -> io::Result<OwnedFd> {
    let lock = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let (given, wanted) = (rustix::fs::fstat(&lock)?, rustix::fs::stat(Place::of(home, id).lock())?);
    if (given.st_dev, given.st_ino) != (wanted.st_dev, wanted.st_ino) {
        return Err(io::Error::other("standard input is not the lock of that job"));
    }
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(lock)
}

/// Works on a job until it has ended. `_lock` is held for as long.
pub fn run(host: &Host, id: &JobId, _lock: OwnedFd) -> Result<(), Error> {
    let mut jobs = Jobs::open(&host.home)?;
    let began = Instant::now();
    if !jobs.begin_work(id, process::this(), baton_mail::now())? {
        return Ok(());
    }
    let Some(row) = jobs.get(id)? else { return Ok(()) };
    let place = Place::of(&host.home, id);
    bell::ring_at(&place.bell());
    log(Duration::ZERO, "starting", &row.agent);
    let (ending, worktree) = match prepare(host, &row) {
        Ok((task, request, worktree)) => {
            if let Some(worktree) = &worktree {
                let path = worktree.path.to_string_lossy();
                jobs.note(id, &Progress { worktree: Some(&path), ..Progress::default() })?;
            }
            let mut work = Work::new(host, &row, task, &request, place.clone(), began, jobs);
            let ending = work.carry_out();
            jobs = work.jobs;
            (ending, worktree)
        }
        Err(fault) => (Ending::failed(fault, None), None),
    };
    let changes = worktree.and_then(|worktree| worktree.finish().ok());
    finish(host, &mut jobs, id, &ending, changes.as_deref(), began);
    bell::ring_at(&place.bell());
    Ok(())
}

/// The task as the backend gets it, from the record.
fn prepare(host: &Host, row: &JobRow) -> Result<(Task, Request, Option<worktree::Worktree>), Fault> {
    let request = Request::parse(&row.request)
        .ok_or_else(|| Fault::new(Code::StoreCorrupt, "the record of the job can't be read"))?;
    let mut task = task(host, row, &request);
    let worktree = match request.worktree {
        true => Some(worktree::Worktree::add(&host.home, &row.id, task.cwd.as_path())?),
        false => None,
    };
    if let Some(worktree) = &worktree {
        task.worktree_of = Some(std::mem::replace(&mut task.cwd, worktree.cwd.clone()));
    }
    let longest = backend::of(&row.agent).map_or(usize::MAX, |backend| backend.capabilities().prompt_bytes);
    if task.prompt.len() > longest {
        let size =
            format!("the prompt has {} bytes and goes as a file: {longest} are the most", task.prompt.len());
        log(Duration::ZERO, "starting", &size);
        task.put_prompt_into_file().map_err(|error| {
            Fault::new(Code::DiskFull, format!("the prompt could not be put into a file: {error}"))
                .hint("check the disk's room")
        })?;
    }
    Ok((task, request, worktree))
}

/// The task of a record, as far as it can be told without starting anything.
pub fn task(host: &Host, row: &JobRow, request: &Request) -> Task {
    let mut environment = host.environment.clone();
    let own: Vec<&str> =
        baton_agents::ALL.iter().flat_map(|agent| agent.facts().variables).copied().collect();
    let marks = [processes::JOB, processes::DEPTH, processes::READ_ONLY];
    environment.retain(|(name, _)| !own.iter().chain(&marks).any(|left_out| name == *left_out));
    environment.push((processes::JOB.into(), row.id.as_str().into()));
    environment.push((processes::DEPTH.into(), request.depth.to_string().into()));
    if request.read_only {
        environment.push((processes::READ_ONLY.into(), "1".into()));
    }
    Task {
        prompt: request::with_header(&row.prompt),
        program: request.program.clone(),
        environment,
        cwd: row.worktree.as_deref().unwrap_or(&row.cwd).into(),
        worktree_of: row.worktree.as_ref().map(|_| PathBuf::from(&row.cwd)),
        folder: Place::of(&host.home, &row.id).folder().to_owned(),
        home: host.home.clone(),
        baton: host.program.clone(),
        title: format!("baton {}: {}", row.id, head(&row.prompt, 60)),
        model: request.model.clone(),
        effort: request.effort.clone(),
        read_only: request.read_only,
        allow: request.allow,
        resume: request.resume.as_ref().map(|(_, session)| session.clone()),
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

/// What a backend has of a session that nobody watches any more, as a verdict.
pub fn recall(task: &Task, agent: &str, session: &str) -> Option<Verdict> {
    let snapshot = backend::of(agent)?.recall(task, session)?;
    let mut watch = Watch::default();
    watch.observe(Observation::Looked(snapshot), Span(0));
    judge::recalled(&watch)
}

/// Writes the end down and tells the asker. On a full disk it is tried for a while; whoever reads later finds no worker and looks for himself.
fn finish(host: &Host, jobs: &mut Jobs, id: &JobId, ending: &Ending, changes: Option<&str>, began: Instant) {
    let words = ending.fault.as_ref().map_or("", |fault| fault.error.message());
    log(began.elapsed(), ending.status.as_str(), words);
    let elapsed = Span(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    let result = ending.result.as_deref().map(cut);
    let deadline = Instant::now() + PERSIST;
    loop {
        let end = JobEnd {
            status: ending.status,
            result: result.as_deref(),
            fault: ending.fault.as_ref(),
            exit: ending.exit.as_deref(),
            changes,
            elapsed: Some(elapsed),
            now: baton_mail::now(),
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
    tell::ended(host, jobs, id);
    jobs.tidy();
}

/// A result that may be kept whole, or its beginning.
fn cut(text: &str) -> String {
    if text.len() <= RESULT_BYTES {
        return text.to_owned();
    }
    let end = (0..=RESULT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n[baton: cut; the result has {} bytes]", &text[..end], text.len())
}

/// One line of the job's log: standard output is that file. A full disk must not stop the work.
fn log(since: Duration, status: &str, words: &str) {
    let line = format!("{} +{}s {status} {words}", baton_mail::now().to_rfc3339(), since.as_secs());
    writeln!(std::io::stdout(), "{}", line.trim_end()).ok();
}
