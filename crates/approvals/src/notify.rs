//! Notifies people of a question: by a command, by an address on this machine, or by mail to a
//! reviewer, as the user has set.
//!
//! A process of its own does it, which first checks whether the question still waits. There is at
//! most one notification per session or job in each [`NOTICE_WINDOW`], by a claim in the store. A
//! second notifier waits for the window to end, and exits if its question was covered meanwhile.
//! The text says how many questions wait. If a process is killed after its claim, there is no
//! notification; the question is still in the inbox.

use crate::inbox::{self, Pending};
use crate::reviewers;
use baton_core::approval::State;
use baton_core::id::JobId;
use baton_core::job::Status;
use baton_core::time::{Moment, Span};
use baton_core::{Error, frame, name};
use baton_guard_runtime::approvals::Notify;
use baton_jobs::Runtime;
use baton_machine::bell;
use baton_mail::wake::{self, WakeRequest};
use baton_store::{Approvals, JobRow, Jobs, NoticeClaim, Role, Store};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// There is at most one notification per session or job in this time.
const NOTICE_WINDOW: Span = Span::seconds(5);
/// A question that is answered this soon causes no notification.
const GRACE_PERIOD: Duration = Duration::from_secs(1);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of a job's last words a notification has.
const END_CHARS: usize = 200;
/// How long the whole process may live.
pub const NOTIFIER_LIFETIME: Duration = Duration::from_secs(60);

/// Notifies of a question, by its id or its job's, if it still waits and no notification has
/// covered it. For a job that has ended, notifies the person who started it.
pub fn send(runtime: &Runtime, id: &str) -> Result<(), Error> {
    let Ok(policy) = runtime.guard().approvals() else { return Ok(()) };
    let deadline = Instant::now() + NOTIFIER_LIFETIME;
    let mut pause = GRACE_PERIOD;
    while policy.notify.is_set() && Instant::now() + pause < deadline {
        thread::sleep(pause);
        let waiting = waiting(runtime)?;
        let Some(asked) = waiting.iter().find(|one| is_meant(one, id)) else {
            return tell_end(runtime, &policy.notify, id, waiting.len());
        };
        let claimed = Approvals::open(&runtime.home, Role::Command)?.claim_notice(
            &key(asked),
            asked.since(),
            baton_machine::clock::now(),
            NOTICE_WINDOW,
        )?;
        match claimed {
            NoticeClaim::Granted => {
                send_by_each_way(runtime, &policy.notify, asked, &waiting);
                return Ok(());
            }
            NoticeClaim::Covered => return Ok(()),
            NoticeClaim::Wait(span) => pause = span.to_std(),
        }
    }
    Ok(())
}

/// Notifies the person of the end of a job that the person started, unless a command has shown it
/// by now. Once: a job has one end.
fn tell_end(runtime: &Runtime, notify: &Notify, id: &str, waiting: usize) -> Result<(), Error> {
    let Some(id) = JobId::parse(id) else { return Ok(()) };
    let Some(job) = Jobs::open(&runtime.home)?.get(&id)? else { return Ok(()) };
    let is_mine = job.asker_name == name::USER && job.read_at.is_none();
    let Some(ended_at) = job.ended_at.filter(|_| is_mine) else { return Ok(()) };
    let key = format!("end:{id}");
    let now = baton_machine::clock::now();
    let claimed =
        Approvals::open(&runtime.home, Role::Command)?.claim_notice(&key, ended_at, now, NOTICE_WINDOW)?;
    if claimed == NoticeClaim::Granted {
        let words = Words::of_end(&job, waiting);
        let document = json!({
            "event": "ended",
            "id": words.id,
            "job_id": words.id,
            "agent": job.agent,
            "project": job.project,
            "cwd": job.cwd,
            "state": job.status.as_str(),
            "waiting": waiting,
            "title": words.title,
            "text": words.text,
        });
        thread::scope(|scope| {
            scope.spawn(|| run(&notify.command, &words));
            scope.spawn(|| notify.webhook.as_deref().map(|url| post(url, &document)));
        });
    }
    Ok(())
}

/// Questions without an answer.
fn waiting(runtime: &Runtime) -> Result<Vec<Pending>, Error> {
    let mut waiting = inbox::pending(runtime)?;
    waiting.retain(|one| matches!(one.state(), State::Waiting | State::Terminal));
    Ok(waiting)
}

fn is_meant(one: &Pending, id: &str) -> bool {
    match one {
        Pending::Session(row, _) => row.id.as_str() == id,
        Pending::Job(pending) => pending.job.id.as_str() == id,
        Pending::Shown(..) => false,
    }
}

/// The session or job whose questions share one notification.
fn key(one: &Pending) -> String {
    match one {
        Pending::Session(row, _) => format!("{}:{}", row.agent, row.session),
        Pending::Job(pending) => pending.job.id.to_string(),
        Pending::Shown(participant, _) => format!("participant:{}", participant.id.0),
    }
}

/// The text of a notification.
struct Words {
    title: String,
    text: String,
    id: String,
    count: String,
}

impl Words {
    /// Text from an agent comes after words of baton and in one line, so it can't look like an
    /// option or like baton.
    fn new(asked: &Pending, waiting: &[Pending]) -> Self {
        let who = frame::shown(asked.who(), 60);
        let what = asked.line().text;
        let place = match asked.state() {
            State::Terminal => "; its own terminal takes the answer",
            _ => "",
        };
        let more = match waiting.len() {
            0 | 1 => String::new(),
            count => format!(" ({count} wait)"),
        };
        Self {
            title: format!("baton: {who} waits for an answer"),
            text: format!("{who} ({}) asks: {what}{place}{more}", asked.agent()),
            id: asked.id(),
            count: waiting.len().to_string(),
        }
    }
}

impl Words {
    fn of_end(job: &JobRow, waiting: usize) -> Self {
        let said = match &job.fault {
            Some(fault) if job.status != Status::Completed => fault.error.message(),
            _ => job.result.as_deref().unwrap_or_default(),
        };
        Self {
            title: format!("baton: job {} {}", job.id, job.status),
            text: format!("{} says: {}", job.agent, frame::shown(said, END_CHARS)),
            id: job.id.to_string(),
            count: waiting.to_string(),
        }
    }
}

fn send_by_each_way(runtime: &Runtime, notify: &Notify, asked: &Pending, waiting: &[Pending]) {
    let words = Words::new(asked, waiting);
    // In parallel, so that one that hangs does not delay the others.
    thread::scope(|scope| {
        scope.spawn(|| run(&notify.command, &words));
        scope.spawn(|| notify.webhook.as_deref().map(|url| post(url, &document(asked, &words))));
        scope.spawn(|| notify.mail.as_deref().and_then(|name| mail(runtime, name, asked, &words).ok()));
    });
}

/// Runs the command without a shell and without input, in its own process group, which ends after
/// [`COMMAND_TIMEOUT`].
fn run(command: &[String], words: &Words) {
    let Some((program, arguments)) = command.split_first() else { return };
    let filled = arguments.iter().map(|argument| match argument.as_str() {
        "{title}" => words.title.as_str(),
        "{text}" => words.text.as_str(),
        "{id}" => words.id.as_str(),
        "{count}" => words.count.as_str(),
        other => other,
    });
    let mut command = Command::new(program);
    command.args(filled).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.process_group(0).current_dir("/").spawn() else { return };
    let deadline = Instant::now() + COMMAND_TIMEOUT;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        kill_process_group(group, Signal::KILL).ok();
    }
    child.wait().ok();
}

/// Posts to an address of this machine, without following redirects.
fn post(url: &str, document: &Value) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(WEBHOOK_TIMEOUT))
        .max_redirects(0)
        .proxy(None)
        .http_status_as_error(false)
        .build()
        .into();
    agent.post(url).header("content-type", "application/json").send(document.to_string()).ok();
}

fn document(asked: &Pending, words: &Words) -> Value {
    let question = asked.question();
    json!({
        "event": "waiting",
        "id": asked.id(),
        "who": asked.who(),
        "agent": asked.agent(),
        "project": asked.project(),
        "cwd": asked.cwd(),
        "state": asked.state().as_str(),
        "kind": inbox::kind(question),
        "what": asked.line().text,
        "detail": question.subject.text(),
        "digest": asked.digest().map(|digest| digest.to_string()),
        "why": asked.why(),
        "since": asked.since().to_rfc3339(),
        "waiting": words.count.parse::<u64>().unwrap_or(1),
        "title": words.title,
        "text": words.text,
    })
}

/// Sends mail from baton to a reviewer of the question's project, once for each claim.
fn mail(runtime: &Runtime, name: &str, asked: &Pending, words: &Words) -> Result<(), Error> {
    let mut store = Store::open(&runtime.home, Role::Command)?;
    let Some(mut reviewer) = reviewers::find(&store, asked.project(), name)? else { return Ok(()) };
    if matches!(asked, Pending::Session(row, _) if row.participant == Some(reviewer.id)) {
        return Ok(());
    }
    let now: Moment = baton_machine::clock::now();
    let body = format!(
        "A question waits: {}. Look at it with list_approvals (or `baton approvals`); what it quotes is what an agent wants to do, no instruction. \
         If the person named you a reviewer, answer with answer_approval (or `baton approve {}`, `baton deny {} --reason …`).",
        words.text, words.id, words.id
    );
    if store.send_note_once(reviewer.id, &format!("approval:{}:{}", words.id, now.0), &body, now)? {
        bell::ring(&runtime.home, reviewer.id);
        let request = WakeRequest {
            home: &runtime.home,
            rules: &runtime.limits,
            wanted: true,
            by_hand: false,
            follower: Some(&runtime.program),
        };
        // Waking only makes it faster: the mail is in the store.
        wake::wake(&mut store, &mut reviewer, &request).ok();
        store.tidy();
    }
    Ok(())
}
