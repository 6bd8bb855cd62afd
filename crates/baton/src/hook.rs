//! `baton hook AGENT`: one native payload on stdin, one native answer on stdout.
//!
//! It never fails a tool call and never takes more than two seconds: an error is one line in the
//! log, and exit 0. One deadline limits all waits: for input, for a locked store, for a reader of
//! the output. A thread (`watchdog`) ends the process if it waits for anything else.
//!
//! With `--guard` it only judges a tool call. It opens no store and moves no mail, unless a person
//! has to decide. After an error it still decides: it asks about the call or refuses it, as the
//! person has set. That answer is ready before anything can fail. If the answer can't be printed,
//! the exit code refuses the call, if the agent has such a code.

mod guarded;
mod review;
mod watchdog;

use crate::{entry, environment, guard, plugin, settings};
use baton_agents::asked::AgentQuestion;
use baton_agents::call::Ruling;
use baton_agents::install::plugin::PLUGIN;
use baton_agents::install::{GUARD, HOLD, REVIEW, WAIT};
use baton_agents::wake::{Idle, Route};
use baton_agents::{ALL, Agent};
use baton_approvals::ask::{self, Asker, Rules};
use baton_core::error::Exit;
use baton_core::event::{Event, EventKind};
use baton_core::id::ParticipantId;
use baton_core::limits::{self, Limits};
use baton_core::{Code, Error};
use baton_events::Surface;
use baton_guard_runtime::Guard;
use baton_jobs::Runtime;
use baton_machine::{files, own};
use baton_mail::hook_event::{self, Caller, OpenJobs};
use baton_mail::identity;
use baton_mail::wake::follow;
use baton_mail::wake::waiter::{self, WaiterOutcome};
use baton_store::{HookView, Role, Store};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// The first buffer for a payload. Most payloads fit.
const PAYLOAD_CAPACITY: usize = 8 << 10;
/// Bytes that a ready pipe takes without blocking.
const PIPE_BYTES: usize = 4096;
/// The part of the deadline that the store must leave for the answer.
const ANSWER_RESERVE: Duration = Duration::from_millis(100);

/// Runs the hook. The exit code is 0, except for a command line without an agent, which is a
/// person's mistake.
#[expect(clippy::disallowed_macros, reason = "constant text; a hook does not set up printing")]
pub fn run(arguments: impl Iterator<Item = OsString>) -> u8 {
    let deadline = Instant::now() + limits::HOOK_BUDGET.to_std();
    let Some(args) = HookArgs::read(arguments) else {
        eprintln!("error: usage: baton hook AGENT [EVENT] [--home DIR]");
        eprintln!("hint: the agents call this; `baton setup` installs it");
        return Exit::Usage as u8;
    };
    if matches!(args.mode, HookMode::Answer | HookMode::Judge) {
        // Before any read from a disk, which may not answer.
        watchdog::start(&args.agent, deadline);
    }
    let found = environment::home(args.home.clone());
    let home = match found.and_then(|home| baton_store::usable(&home).map(|()| home)) {
        Ok(home) => home,
        Err(error) => return without_home(&args, &error, deadline),
    };
    if args.of_plugin && plugin::stands_aside(&args.agent, &home) {
        return Exit::Done as u8;
    }
    watchdog::log_to(&home);
    let log = home.clone();
    // A bug in baton must not fail a tool call.
    std::panic::set_hook(Box::new(move |panic| {
        append_log(&log, &format!("internal: {panic}"));
        give_up(deadline);
    }));
    let done = match args.mode {
        HookMode::Answer => answer(&args, &home, deadline).map(|()| 0),
        HookMode::Judge => judge(&args, &home, deadline),
        HookMode::Wait => wait(&args, &home, deadline),
        HookMode::Review => review::run(&args, &home, deadline).map(|()| 0),
    };
    // Exits without closing the store: the kernel does that faster.
    std::process::exit(done.unwrap_or_else(|error| {
        append_log(&home, &format!("{}: {}: {}", args.agent, error.code(), error.message()));
        give_up(deadline)
    }));
}

/// Waits in the background of a session for a reason to wake it, if there is no other route. The
/// agent defines the exit code that wakes it.
fn wait(args: &HookArgs, home: &Path, deadline: Instant) -> Result<i32, Error> {
    let agent = baton_agents::by_name(&args.agent)?;
    let payload = read_payload(deadline)?;
    if !agent.wants_waiter(&environment::get) || is_foreign(agent, &payload) {
        return Ok(0);
    }
    let event = agent.parse(&payload, None)?;
    let Some(process) = identity::agent_process(agent, &environment::get) else { return Ok(0) };
    let arguments = baton_machine::process::arguments(process.pid);
    let idle = Idle {
        session_id: &event.session_id,
        transcript: event.transcript.as_deref(),
        cwd: event.cwd.as_deref(),
        pid: Some(process.pid),
        arguments: &arguments,
        line: baton_core::wake::line::PLAIN,
    };
    let routes = agent.routes(&idle, &|file| files::read(file, limits::AGENT_FILE_BYTES).ok());
    if event.subagent.is_some() || routes.first() != Some(&Route::Waiter) {
        return Ok(0);
    }
    let Some(view) = registered(home, agent, &event.session_id, deadline)? else { return Ok(0) };
    hook_event::check_comes_from_session(&Store::open(home, Role::Hook)?, agent, &view, &event)?;
    Ok(match waiter::wait(home, view.session, view.participant, process, &|| limits_in(&event))? {
        WaiterOutcome::Exit => 0,
        WaiterOutcome::Wake(line) => {
            tell_agent(&line);
            2
        }
    })
}

/// Prints a line that the agent reads as an error of its hook.
#[expect(clippy::disallowed_macros, reason = "a wake line, for a program")]
fn tell_agent(line: &str) {
    eprintln!("{line}");
}

/// The answer for a tool call that can't be judged. Unset if there is no tool call.
static UNJUDGED: OnceLock<String> = OnceLock::new();

/// Whether an answer about the tool call is already on its way.
static JUDGED: AtomicBool = AtomicBool::new(false);

/// The exit code that refuses a call if no answer can be printed. Zero if the agent has none.
static REFUSING_EXIT: AtomicU8 = AtomicU8::new(0);

/// Prints the answer for a tool call that can't be judged, and exits.
fn give_up(deadline: Instant) -> ! {
    std::process::exit(say_unjudged(deadline))
}

/// Prints the answer for a tool call that can't be judged. Returns the exit code, which refuses the
/// call if the answer could not be printed.
fn say_unjudged(deadline: Instant) -> i32 {
    let answer = UNJUDGED.get().filter(|_| !JUDGED.swap(true, Ordering::Relaxed));
    // A second is more than any agent takes to read a line.
    let said = answer.map(|answer| print(answer, deadline.max(Instant::now() + Duration::from_secs(1))));
    if matches!(said, Some(Ok(()))) { 0 } else { refusing_exit() }
}

/// The exit code that refuses a call. Also prints a reason, for agents that show it.
#[expect(clippy::disallowed_methods, reason = "a constant, for a program")]
fn refusing_exit() -> i32 {
    let code = REFUSING_EXIT.load(Ordering::Relaxed);
    if code != 0 {
        // The agent reads the code even if not this text.
        writeln!(io::stderr(), "{UNSAID_REASON}").ok();
    }
    code.into()
}

/// The reason that goes with a refusing exit code.
const UNSAID_REASON: &str = "baton's guard refused this call, and could not print the reason";

/// There is no home, or other users can write to it. So nothing is read or written there, and a
/// call is answered as one that can't be judged.
fn without_home(args: &HookArgs, error: &Error, deadline: Instant) -> u8 {
    let Ok(agent) = baton_agents::by_name(&args.agent) else { return 0 };
    if args.mode != HookMode::Judge {
        return 0;
    }
    // This reads only the configuration, which is not in the home.
    let guard = guard::open(Path::new("/"));
    let named = args.event.clone().or_else(|| {
        let payload = read_payload(deadline).ok()?;
        Some(agent.call(&payload, None).ok()??.native)
    });
    let Some(answer) = named.and_then(|named| guard.unjudged(agent, &named, Some(error))) else { return 0 };
    REFUSING_EXIT.store(agent.facts().calls.refusing_exit.unwrap_or(0), Ordering::Relaxed);
    UNJUDGED.get_or_init(|| answer);
    u8::try_from(say_unjudged(deadline)).unwrap_or_default()
}

/// What a hook does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HookMode {
    /// Handles an event: mail, questions, the state of the session.
    Answer,
    /// Judges a tool call.
    Judge,
    /// Waits in the background to wake the session.
    Wait,
    /// The stop gate.
    Review,
}

struct HookArgs {
    agent: String,
    event: Option<String>,
    home: Option<PathBuf>,
    mode: HookMode,
    /// The agent lets this hook wait for a person. Older entries in its files don't: there, a call
    /// runs unjudged if the hook takes too long.
    may_wait: bool,
    /// A plugin of the agent installed this hook.
    of_plugin: bool,
}

impl HookArgs {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut args = Self {
            agent: arguments.next()?.into_string().ok()?,
            event: None,
            home: None,
            mode: HookMode::Answer,
            may_wait: false,
            of_plugin: false,
        };
        while let Some(argument) = arguments.next() {
            if argument == "--home" {
                args.home = Some(PathBuf::from(arguments.next()?));
            } else if argument == WAIT {
                args.mode = HookMode::Wait;
            } else if argument == REVIEW {
                args.mode = HookMode::Review;
            } else if argument == GUARD {
                args.mode = HookMode::Judge;
            } else if argument == PLUGIN {
                args.of_plugin = true;
            } else if argument == HOLD {
                args.may_wait = true;
            } else {
                args.event = Some(argument.into_string().ok()?);
            }
        }
        Some(args)
    }
}

/// What the store knows about a session. At the start of a session, a parallel hook records it.
/// Nothing announces that, so this polls until the deadline.
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

/// Judges a tool call, and returns the exit code.
fn judge(args: &HookArgs, home: &Path, deadline: Instant) -> Result<i32, Error> {
    let agent = baton_agents::by_name(&args.agent)?;
    let guard = guard::open(home);
    let named = args.event.as_deref();
    if let Some(answer) = named.and_then(|named| guard.unjudged(agent, named, None)) {
        UNJUDGED.get_or_init(|| answer);
        REFUSING_EXIT.store(agent.facts().calls.refusing_exit.unwrap_or(0), Ordering::Relaxed);
    }
    let payload = read_payload(deadline)?;
    if is_foreign(agent, &payload) {
        return Ok(0);
    }
    let ruled = guard.ruling(agent, &payload, named)?;
    if JUDGED.swap(true, Ordering::Relaxed) {
        // The watchdog was faster, and ends this process.
        std::thread::park();
    }
    watchdog::stop();
    let Some(baton_guard_runtime::RuledCall { call: judged, ruling }) = ruled else { return Ok(0) };
    let stops = judged.kind == EventKind::BeforeTool && matches!(ruling, Ruling::Ask(_) | Ruling::Deny(_));
    let said = match &ruling {
        Ruling::Ask(why) if args.may_wait && judged.kind == EventKind::BeforeTool => {
            let payload = &payload;
            guarded::HeldToolCall { home, agent, event: named, payload, call: &judged, why }.decide()
        }
        _ => print(&agent.render_ruling(&judged, &ruling), deadline).map_err(|error| output_closed(&error)),
    };
    match said {
        Err(error) if stops => {
            append_log(home, &format!("{}: {}: {}", args.agent, error.code(), error.message()));
            REFUSING_EXIT.store(agent.facts().calls.refusing_exit.unwrap_or(0), Ordering::Relaxed);
            Ok(refusing_exit())
        }
        said => {
            // This answer does not refuse the call, so its failure must not either.
            REFUSING_EXIT.store(0, Ordering::Relaxed);
            said.map(|()| 0)
        }
    }
}

/// Whether another agent runs this hook, which was installed for this one. A repository can set
/// variables and fields, so those only say when to check. The nearest agent process above decides.
fn is_foreign(agent: &dyn Agent, payload: &[u8]) -> bool {
    ALL.iter().any(|other| {
        other.name() != agent.name()
            && other.runs_foreign_hook(payload, &environment::get)
            && identity::is_run_by(*other)
    })
}

fn answer(args: &HookArgs, home: &Path, deadline: Instant) -> Result<(), Error> {
    let agent = baton_agents::by_name(&args.agent)?;
    let payload = read_payload(deadline)?;
    if is_foreign(agent, &payload) {
        return Ok(());
    }
    let mut event = agent.parse(&payload, args.event.as_deref())?;
    if args.event.as_ref().is_some_and(|named| *named != event.native) {
        return Err(Error::new(
            Code::Usage,
            format!("the hook was called for another event than the payload's {}", event.native),
        ));
    }
    if event.kind == EventKind::Stop {
        // The guard may query the repository's host.
        watchdog::extend();
    }
    let mut surface = HookProcess { home, agent, deadline, store: None };
    let handled = baton_events::handle(&mut surface, &mut event, &payload);
    // The answer is out.
    watchdog::stop();
    if let Some(mut store) = surface.store {
        // Even without an answer: if no mail is sent, the states of sessions are all that is
        // written.
        store.tidy();
        std::mem::forget(store);
    }
    handled.map(|_| ())
}

/// A hook process, as the surface of one event.
struct HookProcess<'a> {
    home: &'a Path,
    agent: &'static dyn Agent,
    deadline: Instant,
    store: Option<Store>,
}

/// The limits in the folder of an event. A malformed file must not stop the mail, and doctor shows
/// it.
fn limits_in(event: &Event) -> Limits {
    settings::Settings::load(event.cwd.as_deref().unwrap_or(Path::new("/")))
        .map_or_else(|_| Limits::default(), |settings| settings.limits)
}

impl Surface for HookProcess<'_> {
    fn home(&self) -> &Path {
        self.home
    }

    fn agent(&self) -> &'static dyn Agent {
        self.agent
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        environment::get(name)
    }

    fn guards(&self, kind: EventKind) -> bool {
        // Before a tool, a separate hook with `--guard` does.
        matches!(kind, EventKind::AfterTool | EventKind::Stop)
    }

    fn guard(&self) -> Guard {
        guard::open(self.home)
    }

    fn with_store<T>(
        &mut self,
        event: &Event,
        work: impl FnOnce(&mut Store, &Caller<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.store.is_none() {
            let mut store = Store::open(self.home, Role::Hook)?;
            if event.kind == EventKind::Stop {
                // The guard may have waited for a remote host before.
                self.deadline = self.deadline.max(Instant::now() + limits::HOOK_BUDGET.to_std() / 2);
            }
            store.set_deadline(self.deadline.checked_sub(ANSWER_RESERVE).unwrap_or(self.deadline));
            self.store = Some(store);
        }
        let limits = || limits_in(event);
        let caller = Caller { agent: self.agent, env: &environment::get, limits: &limits };
        let Some(store) = &mut self.store else {
            return Err(Error::new(Code::Internal, "the store that was just opened is not there"));
        };
        work(store, &caller)
    }

    fn answer(&mut self, answer: Option<&str>) -> Result<(), Error> {
        answer.map_or(Ok(()), |text| print(text, self.deadline)).map_err(|error| output_closed(&error))
    }

    /// Records the question, and prints the answer if it comes in time.
    fn ask(&mut self, event: &Event, payload: &[u8], asked: AgentQuestion) -> Result<(), Error> {
        // A person may take a minute to answer.
        watchdog::stop();
        let (home, agent) = (self.home, self.agent);
        let rules = rules_for(home, agent, event, payload, &asked);
        let asker =
            Asker { home, agent, env: &environment::get, hold: limits_in(event).approval_hold, rules };
        let Some(taken) = self.with_store(event, |store, _| ask::hold(store, &asker, event, &asked))? else {
            return Ok(());
        };
        print(&taken.text, Instant::now() + limits::HOOK_BUDGET.to_std()).map_err(|error| {
            // If this fails too, the answer still did not reach the agent.
            ask::give_back(home, &taken).ok();
            output_closed(&error)
        })
    }

    fn follow(&mut self, event: &Event, participant: ParticipantId) {
        let home = self.home;
        let followed = self.with_store(event, |store, caller| {
            let program = environment::own_program()?;
            follow::start_if_needed(store, participant, home, &(caller.limits)(), &program)
        });
        if let Err(error) = followed {
            self.log(&format!("{}: mail is not followed: {error}", event.native));
        }
    }

    fn look_after(&mut self, event: &Event, jobs: OpenJobs) {
        watchdog::stop();
        let home = self.home;
        // The next event checks again.
        self.with_store(event, |store, caller| look_after_jobs(home, store, jobs, (caller.limits)())).ok();
    }

    fn log(&self, what: &str) {
        append_log(self.home, &format!("{}: {what}", self.agent.name()));
    }
}

/// The person's rules for a question. None in a job: its worker gets the questions from the
/// backend.
fn rules_for(home: &Path, agent: &dyn Agent, event: &Event, payload: &[u8], asked: &AgentQuestion) -> Rules {
    if ask::is_a_jobs(&environment::get) {
        return Rules::default();
    }
    let (guard, program) = (guard::open(home), environment::own_program().ok());
    if asked.question.tool_use.is_some() {
        let cwd = event.cwd.as_deref().unwrap_or(Path::new("/"));
        Rules::of_asked(&guard, agent, cwd, asked, program)
    } else {
        Rules::of_question(&guard, agent, payload, program)
    }
}

/// Checks the jobs that a participant asked for, and ends those whose worker has died.
pub fn look_after_jobs(home: &Path, store: &mut Store, jobs: OpenJobs, limits: Limits) -> Result<(), Error> {
    let runtime = Runtime {
        home: home.to_owned(),
        program: environment::own_program()?,
        environment: environment::all(),
        limits,
        guard: guard::open,
    };
    baton_jobs::reconcile::look_after(&runtime, store, jobs.asker, jobs.generation)
}

fn output_closed(error: &io::Error) -> Error {
    Error::new(Code::OutputClosed, format!("the agent did not take the answer: {error}"))
}

/// Writes the text in pieces, each as soon as the reader has room. A text that fits into one piece
/// takes one write. After the deadline the agent has half an answer, without the mark at its end.
#[expect(clippy::disallowed_methods, reason = "an answer for a program, made by its adapter")]
fn print(text: &str, deadline: Instant) -> io::Result<()> {
    if !text.is_empty() && !entry::has_output() {
        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "there is no standard output"));
    }
    let stdout = io::stdout();
    let mut rest = text.as_bytes();
    let told = |error: io::Error, rest: &[u8]| {
        let written = text.len() - rest.len();
        io::Error::new(error.kind(), format!("{error}, after {written} of {} bytes", text.len()))
    };
    while !rest.is_empty() {
        let piece = &rest[..rest.len().min(PIPE_BYTES)];
        wait_for(&stdout, PollFlags::OUT, deadline).map_err(|error| told(error, rest))?;
        // Bypasses the buffer of `io::stdout`, which would split a piece at its last line break.
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
    // Reads without a second buffer: each touched page costs more than a system call.
    let mut payload = Vec::with_capacity(PAYLOAD_CAPACITY);
    let mut total = 0;
    loop {
        let unread =
            |error: io::Error| Error::new(Code::Usage, format!("the payload could not be read: {error}"));
        wait_for(&stdin, PollFlags::IN, deadline).map_err(unread)?;
        if payload.capacity() - payload.len() < PAYLOAD_CAPACITY / 2 {
            payload.reserve(payload.len().max(PAYLOAD_CAPACITY));
        }
        let count = match rustix::io::read(&stdin, rustix::buffer::spare_capacity(&mut payload)) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other.map_err(|error| unread(error.into()))?,
        };
        if count == 0 {
            break;
        }
        total += count;
        // Even a payload that is too long is read to its end: the agent must not find its pipe
        // closed.
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

/// Appends a line to the log of the home. A log that is too long is moved aside first.
pub fn append_log(home: &Path, what: &str) {
    let file = home.join("hook.log");
    if file.symlink_metadata().is_ok_and(|log| log.len() > limits::LOG_BYTES) {
        // Another hook may have moved it at the same time.
        std::fs::rename(&file, home.join("hook.log.1")).ok();
    }
    let line =
        format!("{} {}\n", baton_machine::clock::now().to_rfc3339(), baton_core::frame::shown(what, 600));
    if let Ok(mut log) = own::append(&file) {
        // There is no other place to report this.
        log.write_all(line.as_bytes()).ok();
    }
}
