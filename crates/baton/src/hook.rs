//! `baton hook AGENT`: one native payload on stdin, one native answer on stdout.
//!
//! It never fails a tool call and never takes more than two seconds: whatever goes wrong is one line in the log, and exit 0. All waiting is
//! bounded by one deadline: for input, for a locked store, for a reader of the output.
//!
//! With `--guard` it judges a tool call and does nothing else: no store is opened, and no mail travels, but where a person has to decide. There, what goes wrong is a decision too:
//! the call is asked about, or refused, as the person has set it. The answer for that is ready before anything can go wrong.

mod guarded;
mod review;

use crate::{environment, gate, settings};
use baton_agents::asked::Asked;
use baton_agents::call::Ruling;
use baton_agents::install::{GUARD, HOLD, REVIEW, WAIT};
use baton_agents::wake::{Idle, Route};
use baton_agents::{ALL, Agent};
use baton_approvals::ask::{self, Asker, Rules};
use baton_approvals::settle;
use baton_core::error::Exit;
use baton_core::event::{Event, EventKind, Reply};
use baton_core::id::ParticipantId;
use baton_core::limits::{self, Limits};
use baton_core::{Code, Error};
use baton_jobs::Host;
use baton_mail::line::{self, Caller, Outcome};
use baton_mail::wake::waiter::{self, Waited};
use baton_mail::{bell, identity, unknown};
use baton_store::{HookView, Role, Store};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Room for a payload at first; most need no more.
const PIECE: usize = 8 << 10;
/// A payload up to this size is judged so fast that nobody need look at the clock.
const QUICKLY_JUDGED: usize = 64 << 10;
/// Bytes that a pipe takes without blocking once it says that it takes any.
const CHUNK: usize = 4096;

/// Runs the hook. Always exit 0, but for a command line that names no agent: that is a mistake of a person.
pub fn run(arguments: impl Iterator<Item = OsString>) -> u8 {
    let deadline = Instant::now() + limits::HOOK_BUDGET.to_std();
    let Some(call) = Call::read(arguments) else {
        eprintln!("error: usage: baton hook AGENT [EVENT] [--home DIR]");
        eprintln!("hint: this is called by the agents; `baton setup` installs it");
        return Exit::Usage as u8;
    };
    let home = match environment::home(call.home.clone()) {
        Ok(home) => home,
        Err(_) => return 0,
    };
    let log = home.clone();
    // A bug of ours must not become a failed tool call.
    std::panic::set_hook(Box::new(move |panic| {
        note(&log, &format!("internal: {panic}"));
        give_up(deadline);
    }));
    let done = match call.job {
        Job::Answer => answer(&call, &home, deadline).map(|()| 0),
        Job::Judge => judge(&call, &home, deadline).map(|()| 0),
        Job::Wait => wait(&call, &home, deadline),
        Job::Review => review::run(&call, &home, deadline).map(|()| 0),
    };
    // Skips the closing of the store: the kernel does that faster.
    std::process::exit(done.unwrap_or_else(|error| {
        note(&home, &format!("{}: {}: {}", call.agent, error.code(), error.message()));
        give_up(deadline)
    }));
}

/// Waits in the background of a session for a reason to wake it, where nothing else can. The exit code that wakes it is its agent's.
fn wait(call: &Call, home: &Path, deadline: Instant) -> Result<i32, Error> {
    let agent = baton_agents::by_name(&call.agent)?;
    let payload = read_payload(deadline)?;
    if !agent.wants_waiter(&environment::get) || is_foreign(agent, &payload) {
        return Ok(0);
    }
    let event = agent.parse(&payload, None)?;
    let Some(process) = identity::agent_process(agent, &environment::get) else { return Ok(0) };
    let arguments = baton_mail::process::arguments(process.pid);
    let idle = Idle {
        session_id: &event.session_id,
        transcript: event.transcript.as_deref(),
        cwd: event.cwd.as_deref(),
        pid: Some(process.pid),
        arguments: &arguments,
    };
    let routes = agent.routes(&idle, &|file| std::fs::read(file).ok());
    if event.subagent.is_some() || routes.first() != Some(&Route::Waiter) {
        return Ok(0);
    }
    let Some(view) = registered(home, agent, &event.session_id, deadline)? else { return Ok(0) };
    Ok(match waiter::wait(home, view.session, view.participant, process)? {
        Waited::Leave => 0,
        Waited::Wake => {
            eprintln!("{}", baton_core::wake::LINE);
            2
        }
    })
}

/// What is answered about a tool call if it can't be judged; empty where none is.
static UNJUDGED: OnceLock<String> = OnceLock::new();

/// Whether something is being said about a tool call already.
static JUDGED: AtomicBool = AtomicBool::new(false);

/// Ends with what is to be said about a tool call that can't be judged.
fn give_up(deadline: Instant) -> ! {
    if let Some(answer) = UNJUDGED.get().filter(|_| !JUDGED.swap(true, Ordering::Relaxed)) {
        // A second is more than any agent takes to read a line. Whether it did, nobody is left to be told.
        print(answer, deadline.max(Instant::now() + Duration::from_secs(1))).ok();
    }
    std::process::exit(0)
}

/// What a hook is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Job {
    /// Mail, and what the session does.
    Answer,
    /// Tool calls.
    Judge,
    /// Waking, in the background.
    Wait,
    /// The stop gate.
    Review,
}

struct Call {
    agent: String,
    event: Option<String>,
    home: Option<PathBuf>,
    job: Job,
    /// The agent lets this hook wait for a person. Older entries in its files don't, and what takes too long there runs unjudged.
    may_wait: bool,
}

impl Call {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut call = Self {
            agent: arguments.next()?.into_string().ok()?,
            event: None,
            home: None,
            job: Job::Answer,
            may_wait: false,
        };
        while let Some(argument) = arguments.next() {
            if argument == "--home" {
                call.home = Some(PathBuf::from(arguments.next()?));
            } else if argument == WAIT {
                call.job = Job::Wait;
            } else if argument == REVIEW {
                call.job = Job::Review;
            } else if argument == GUARD {
                call.job = Job::Judge;
            } else if argument == HOLD {
                call.may_wait = true;
            } else {
                call.event = Some(argument.into_string().ok()?);
            }
        }
        Some(call)
    }
}

/// What is known of a session. At its very start the hook beside this one registers it; nothing announces that, so it is looked for until the deadline.
fn registered(
    home: &Path,
    agent: &dyn Agent,
    session_id: &str,
    deadline: Instant,
) -> Result<Option<HookView>, Error> {
    loop {
        let view = Store::open(home, Role::Hook)?.hook_view(agent.name(), session_id)?;
        if view.is_some() || Instant::now() >= deadline {
            return Ok(view);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Judges a tool call. The store is not opened.
fn judge(call: &Call, home: &Path, deadline: Instant) -> Result<(), Error> {
    let agent = baton_agents::by_name(&call.agent)?;
    let gate = gate::open(home);
    let named = call.event.as_deref();
    if let Some(answer) = named.and_then(|named| gate.unjudged(agent, named)) {
        UNJUDGED.get_or_init(|| answer);
    }
    let payload = read_payload(deadline)?;
    if is_foreign(agent, &payload) {
        return Ok(());
    }
    if payload.len() > QUICKLY_JUDGED {
        // Judging is bounded by steps; this is for what nobody has thought of.
        std::thread::spawn(move || {
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
            give_up(deadline);
        });
    }
    let ruled = gate.ruling(agent, &payload, named)?;
    if JUDGED.swap(true, Ordering::Relaxed) {
        // The clock was faster, and ends this process.
        std::thread::park();
    }
    let Some((judged, ruling)) = ruled else { return Ok(()) };
    match &ruling {
        Ruling::Ask(why) if call.may_wait && judged.kind == EventKind::BeforeTool => {
            let payload = &payload;
            guarded::Asked { home, agent, event: named, payload, call: &judged, why }.decide()
        }
        _ => print(&agent.render_ruling(&judged, &ruling), deadline).map_err(|error| output_closed(&error)),
    }
}

/// Whether another agent runs this hook, which was installed for this one.
fn is_foreign(agent: &dyn Agent, payload: &[u8]) -> bool {
    ALL.iter()
        .any(|other| other.name() != agent.name() && other.runs_foreign_hook(payload, &environment::get))
}

fn answer(call: &Call, home: &Path, deadline: Instant) -> Result<(), Error> {
    let agent = baton_agents::by_name(&call.agent)?;
    let payload = read_payload(deadline)?;
    if is_foreign(agent, &payload) {
        return Ok(());
    }
    let mut event = agent.parse(&payload, call.event.as_deref())?;
    if call.event.as_ref().is_some_and(|named| *named != event.native) {
        return Err(Error::new(
            Code::Usage,
            format!("called for another event than the payload's {}", event.native),
        ));
    }
    unknown::note(home, agent, &event);
    if let Some(signed) = agent.sign_call(&event) {
        return print(&signed, deadline).map_err(|error| output_closed(&error));
    }
    if event.kind == EventKind::AfterTool {
        match gate::open(home).answer(agent, &payload, call.event.as_deref()) {
            // Mail waits for the next event.
            Ok(Some(judged)) => return print(&judged, deadline).map_err(|error| output_closed(&error)),
            Ok(None) => {}
            Err(error) => note(home, &format!("{}: {}: {}", call.agent, error.code(), error.message())),
        }
    }
    let mut deadline = deadline;
    if event.kind == EventKind::Stop {
        match gate::open(home).holds(agent, &event) {
            // The turn goes on; mail waits for the next event.
            Ok(Some(why)) => {
                return print(&agent.render(&event, &Reply::Continue(why)), deadline)
                    .map_err(|error| output_closed(&error));
            }
            Ok(None) => {}
            Err(error) => note(home, &format!("{}: {}: {}", call.agent, error.code(), error.message())),
        }
        // Somebody far away may have been asked.
        deadline = deadline.max(Instant::now() + limits::HOOK_BUDGET.to_std() / 2);
    }
    if event.transcript.is_none() {
        event.transcript = agent.transcript_path(&event.session_id, &environment::get);
    }
    let asked = if event.kind == EventKind::Blocked { agent.asked(&payload, &event) } else { None };
    if asked.as_ref().is_some_and(|asked| !ask::is_certain(agent, &environment::get, &event, asked)) {
        return Ok(());
    }
    let mut store = Store::open(home, Role::Hook)?;
    store.set_deadline(deadline.checked_sub(Duration::from_millis(100)).unwrap_or(deadline));
    let cwd = event.cwd.clone();
    let limits = || -> Limits {
        // A malformed file must not stop the mail; doctor shows it.
        settings::Settings::load(cwd.as_deref().unwrap_or(Path::new("/")))
            .map_or_else(|_| Limits::default(), |settings| settings.limits)
    };
    let caller = Caller { agent, env: &environment::get, limits: &limits };
    let outcome = line::handle(&mut store, &caller, &event)?;
    if outcome.reply != Reply::Silent {
        deliver(&mut store, &agent.render(&event, &outcome.reply), &outcome, deadline)?;
    }
    if let Some(participant) = outcome.rings {
        bell::ring(home, participant);
    }
    if event.kind == EventKind::Blocked {
        let rules = match &asked {
            Some(asked) if !ask::is_a_jobs(&environment::get) => {
                let (gate, program) = (gate::open(home), environment::own_program().ok());
                if asked.question.tool_use.is_some() {
                    let cwd = event.cwd.as_deref().unwrap_or(Path::new("/"));
                    Rules::of_asked(&gate, agent, cwd, asked, program)
                } else {
                    Rules::of_question(&gate, agent, &payload, program)
                }
            }
            _ => Rules::default(),
        };
        let asker = Asker { home, agent, env: &environment::get, hold: limits().approval_hold, rules };
        ask(&mut store, &asker, &event, asked.as_ref())?;
    } else {
        settle::by_event(home, agent.name(), &event)?;
    }
    if let Some((asker, seen)) = outcome.jobs {
        // The answer is out; what goes wrong here is found by the next one who looks.
        look_after_jobs(home, &mut store, asker, seen, limits()).ok();
    }
    // Also after silence: where nobody sends anything, what sessions do is all that is ever written.
    store.tidy();
    std::mem::forget(store);
    Ok(())
}

/// The agent asks its person for something: that is recorded, and answered where an answer comes in time.
fn ask(store: &mut Store, asker: &Asker<'_>, event: &Event, asked: Option<&Asked>) -> Result<(), Error> {
    let Some(asked) = asked else { return Ok(()) };
    let Some(taken) = ask::hold(store, asker, event, asked)? else { return Ok(()) };
    print(&taken.text, Instant::now() + limits::HOOK_BUDGET.to_std()).map_err(|error| {
        // Whether that is known or not, the agent does not have it.
        ask::give_back(asker.home, &taken).ok();
        output_closed(&error)
    })
}

/// Looks after the jobs that somebody asked for.
pub fn look_after_jobs(
    home: &Path,
    store: &mut Store,
    asker: ParticipantId,
    seen: i64,
    limits: Limits,
) -> Result<(), Error> {
    let host = Host {
        home: home.to_owned(),
        program: environment::own_program()?,
        environment: environment::all(),
        limits,
        gate: gate::open,
    };
    baton_jobs::reconcile::look_after(&host, store, asker, seen)
}

/// Prints the answer. What could not be printed whole was not delivered, and goes back to the queue.
fn deliver(store: &mut Store, text: &str, outcome: &Outcome, deadline: Instant) -> Result<(), Error> {
    let Err(error) = print(text, deadline) else { return Ok(()) };
    if let Some(offer) = outcome.offer {
        line::give_back(store, offer)?;
    }
    Err(output_closed(&error))
}

fn output_closed(error: &io::Error) -> Error {
    Error::new(Code::OutputClosed, format!("the agent did not take the answer: {error}"))
}

/// Writes it piece by piece, each as soon as the reader has room for it, and what fits into one piece in one write. What was written when
/// the deadline comes can't be taken back: an agent gets half an answer then, without the mark that stands at its end.
fn print(text: &str, deadline: Instant) -> io::Result<()> {
    let stdout = io::stdout();
    let mut rest = text.as_bytes();
    let told = |error: io::Error, rest: &[u8]| {
        let written = text.len() - rest.len();
        io::Error::new(error.kind(), format!("{error}, after {written} of {} bytes", text.len()))
    };
    while !rest.is_empty() {
        let piece = &rest[..rest.len().min(CHUNK)];
        wait_for(&stdout, PollFlags::OUT, deadline).map_err(|error| told(error, rest))?;
        // Past the buffer of `io::stdout`, which would cut a piece at its last line break.
        match rustix::io::write(&stdout, piece) {
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(told(error.into(), rest)),
        }
    }
    Ok(())
}

fn read_payload(deadline: Instant) -> Result<Vec<u8>, Error> {
    let stdin = io::stdin();
    // Read into its own room, not through a buffer: each page that is touched costs more than a system call.
    let mut payload = Vec::with_capacity(PIECE);
    let mut total = 0;
    loop {
        let unread =
            |error: io::Error| Error::new(Code::Usage, format!("the payload could not be read: {error}"));
        wait_for(&stdin, PollFlags::IN, deadline).map_err(unread)?;
        if payload.capacity() - payload.len() < PIECE / 2 {
            payload.reserve(payload.len().max(PIECE));
        }
        let count = match rustix::io::read(&stdin, rustix::buffer::spare_capacity(&mut payload)) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other.map_err(|error| unread(error.into()))?,
        };
        if count == 0 {
            break;
        }
        total += count;
        // Beyond the limit it is read to its end all the same: an agent must not find its pipe closed.
        if total > limits::PAYLOAD_BYTES {
            payload.clear();
        }
    }
    if total > limits::PAYLOAD_BYTES {
        return Err(Error::new(Code::Usage, format!("a payload of {total} bytes is too large")));
    }
    Ok(payload)
}

/// Waits until a stream is ready, or the deadline has passed.
fn wait_for(stream: &impl AsFd, what: PollFlags, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
    let mut fds = [PollFd::new(stream, what)];
    match poll(&mut fds, Some(&timeout)) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// One line in the log of the home, which is started anew when it has grown too long.
pub fn note(home: &Path, what: &str) {
    let file = home.join("hook.log");
    if std::fs::metadata(&file).is_ok_and(|log| log.len() > limits::LOG_BYTES) {
        // Two hooks at once: the second finds it moved already.
        std::fs::rename(&file, home.join("hook.log.1")).ok();
    }
    let line = format!("{} {}\n", baton_mail::now().to_rfc3339(), baton_core::frame::shown(what, 600));
    if let Ok(mut log) = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&file) {
        // Nothing is left to tell it to.
        log.write_all(line.as_bytes()).ok();
    }
}
