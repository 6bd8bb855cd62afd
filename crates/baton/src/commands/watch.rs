//! `approvals --watch`: each question when it comes, once, and how it ended. On the person's
//! terminal with keys that answer it.

use super::CommandContext;
use super::approve::{Extent, in_full};
use super::asking::{Asking, Numbers};
use crate::keys::Interrupts;
use crate::print::{Out, done, stderr_is_terminal, stdout_is_terminal, text};
use baton_approvals::inbox::{self, Pending};
use baton_approvals::watch::Watcher;
use baton_core::approval::State;
use baton_core::error::Exit;
use baton_core::id::JobId;
use baton_core::time::Moment;
use baton_core::{Code, Error, limits, name};
use baton_jobs::Runtime;
use baton_machine::tty::{self, Tty};
use baton_store::{JobFilter, JobRow, Jobs};
use serde_json::json;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// The bell of the terminal rings this often at most.
const BELL_INTERVAL: Duration = Duration::from_secs(5);
/// No more jobs than this begin and end between two looks.
const NEW_JOBS: usize = 20;

/// Shows each question when it comes and when it is over. A document a line for programs.
pub fn watch(context: &CommandContext, host: &Runtime, out: &Out) -> Result<Exit, Error> {
    let mut bell = baton_approvals::listen(&host.home)?;
    let _watcher = Watcher::begin(&host.home)
        .map_err(|error| Error::new(Code::StoreUnavailable, format!("can't watch: {error}")))?;
    // Where no key can come, or a file takes the output, the questions are printed.
    let mut asking = match stdout_is_terminal() && Tty::of_stderr().is_some() {
        true => Asking::of_person(context, host, *out, Numbers::Shown)?,
        false => None,
    };
    let interrupts = asking.as_ref().and_then(|_| Interrupts::listen());
    let mut known: Vec<Pending> = Vec::new();
    let mut rung: Option<Instant> = None;
    let mut own = OwnJobs::new();
    let mut is_first = true;
    loop {
        let waiting = inbox::pending(host)?;
        if std::mem::take(&mut is_first) && waiting.is_empty() {
            out.say("nothing waits; watching… (Ctrl-C ends it)");
        }
        let is_new = |one: &Pending| !known.iter().any(|old| old.id() == one.id());
        let has_new = waiting.iter().any(is_new);
        if has_new && rung.is_none_or(|rung| rung.elapsed() >= BELL_INTERVAL) && rings(host) {
            rung = Some(Instant::now());
            out.ring();
        }
        tell(host, out, asking.as_ref(), &known, &waiting)?;
        known = waiting;
        if let Some(asking) = &mut asking {
            asking.look(&known);
            own.tell_ended(host, asking)?;
        }
        let mut fds = vec![bell.watch().as_fd()];
        fds.extend(asking.as_ref().and_then(Asking::fd));
        fds.extend(interrupts.map(Interrupts::fd));
        let longest = asking.as_ref().map_or(limits::SWEEP_INTERVAL.to_std(), Asking::longest);
        tty::readable(&fds, longest);
        bell.drain();
        if let Some(asking) = &mut asking {
            if interrupts.is_some_and(Interrupts::take) {
                asking.close();
                return done();
            }
            asking.take_keys();
        }
    }
}

/// The jobs that the person started: which of them run, and whose end was said.
struct OwnJobs {
    since: Moment,
    open: Vec<JobId>,
    told: Vec<JobId>,
}

impl OwnJobs {
    fn new() -> Self {
        Self { since: baton_machine::clock::now(), open: Vec::new(), told: Vec::new() }
    }

    /// Says which of them have ended since the last look: those that ran then, and new ones that
    /// were faster than a look.
    fn tell_ended(&mut self, host: &Runtime, asking: &mut Asking<'_>) -> Result<(), Error> {
        let Some(jobs) = Jobs::open_if_any(&host.home)? else { return Ok(()) };
        let is_own = |row: &JobRow| row.asker_name == name::USER;
        let open = jobs.list(JobFilter::Open, usize::MAX)?;
        let open = open.into_iter().filter(is_own).map(|row| row.id).collect();
        let before = std::mem::replace(&mut self.open, open);
        let mut ended =
            before.iter().filter_map(|id| jobs.get(id).transpose()).collect::<Result<Vec<_>, _>>()?;
        ended.extend(jobs.list(JobFilter::Everywhere, NEW_JOBS)?.into_iter().filter(is_own));
        ended.retain(|row| row.ended_at.is_some_and(|at| at >= self.since));
        for row in ended {
            if !self.told.contains(&row.id) {
                self.told.push(row.id.clone());
                asking.job_ended(&row);
            }
        }
        Ok(())
    }
}

/// Prints what is new, what changed for programs, and what is over.
fn tell(
    host: &Runtime,
    out: &Out,
    asking: Option<&Asking<'_>>,
    known: &[Pending],
    waiting: &[Pending],
) -> Result<(), Error> {
    for one in waiting {
        let before = known.iter().find(|old| old.id() == one.id());
        if before.is_some_and(|before| before.state() == one.state()) {
            continue;
        }
        if out.is_json() {
            let mut document = inbox::describe(one);
            document["event"] = json!(if before.is_none() { "asked" } else { "changed" });
            out.data(&document, String::new)?;
        } else if before.is_none() && asking.is_none() {
            out.data(&json!({}), || in_full(out, one, Extent::WithDigest))?;
        } else if one.state() == State::Terminal {
            let head = asking.map_or_else(
                || text![format_args!("{}  its own terminal takes the answer", one.id())],
                |asking| asking.head(one),
            );
            out.say(head);
        }
    }
    for gone in known.iter().filter(|old| !waiting.iter().any(|one| one.id() == old.id())) {
        match asking {
            // What was on the screen is told there.
            Some(asking) if asking.has_told(gone) => {}
            Some(asking) => asking.say_end(gone),
            None => {
                let end = inbox::end_of(host, gone)?;
                let state = end.as_ref().map(|end| end.state.as_str());
                let by = end.as_ref().and_then(|end| end.by.as_deref());
                out.data(&json!({"event": "over", "id": gone.id(), "state": state, "by": by}), || {
                    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
                    text![
                        out.tone(crate::print::Tone::Bold, &gone.id()),
                        "  ",
                        format_args!("{}{by}", state.unwrap_or("over"))
                    ]
                })?;
            }
        }
    }
    Ok(())
}

/// Whether the bell is wanted, and stderr is a terminal.
fn rings(host: &Runtime) -> bool {
    stderr_is_terminal() && host.guard().approvals().is_ok_and(|policy| policy.notify.bell)
}
