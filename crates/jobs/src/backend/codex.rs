//! Codex, with one `app-server` per job.
//!
//! Each job has its own thread in its own program. So its limits apply to that thread, and no
//! configuration of the user is edited. In particular `thread/start` gets no `cwd`, because Codex
//! would then write the folder as trusted into the user's configuration. Codex's own record of the
//! turn (`thread/turns/list`) is the truth, also for a new program after a crash.

mod access;
mod fault;
mod question;
mod server;
mod turn;

use super::{Backend, Capabilities, ReadOnly, Report, Task, Turn};
use baton_core::job::{Fault, Observation, Snapshot};
use baton_core::{Code, Error};
use baton_machine::own::{self, Sharing};
use serde_json::{Value, json};
use server::{Refusal, Server};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use turn::{Running, State};

/// The longest text that `turn/start` takes, in characters. This many bytes are never more
/// characters.
const PROMPT_BYTES: usize = 1 << 20;
/// How long it may take to start, and to take the prompt.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is started if it ends before it has said anything.
const MAX_STARTS: usize = 5;
/// How long a job waits for its turn to start one: as long as another may take.
const START_LOCK_TIMEOUT: Duration = START_TIMEOUT;
/// How long a recall may take.
const RECALL_TIMEOUT: Duration = Duration::from_millis(1900);

#[derive(Clone, Copy, Debug)]
pub struct Codex;

impl Codex {
    pub(super) const NAME: &str = "codex";
}

impl Backend for Codex {
    fn agent(&self) -> &'static str {
        Self::NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            model: true,
            efforts: &["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"],
            read_only: ReadOnly::Sandbox,
            resume: true,
            answers: true,
            prompt_bytes: PROMPT_BYTES,
        }
    }

    fn check(&self, task: &Task) -> Result<(), Error> {
        super::check_options(self, task)?;
        if may_be_logged_in(task) { Ok(()) } else { Err(not_logged_in()) }
    }

    fn start(&self, task: &Task, report: Report) -> Result<Box<dyn Turn>, Fault> {
        let state = Arc::new(State::new(Arc::clone(&report), &task.cwd));
        let server = greeted(task, &state)?;
        let running = Running { server, state };
        let begun = begin(task, &running, &report);
        if begun.is_err() {
            running.close();
        }
        begun.map(|()| Box::new(running) as Box<dyn Turn>)
    }

    fn recall(&self, task: &Task, session: &str) -> Option<Snapshot> {
        let end = Instant::now() + RECALL_TIMEOUT;
        let left = || end.saturating_duration_since(Instant::now());
        let server = Server::start(task, |_| {}, |_| {}).ok()?;
        let turns = match server.greet(left()) {
            Ok(()) => turn::list(&server, session, left()).ok(),
            Err(_) => None,
        };
        if let Some(child) = server.child() {
            child.end(Duration::from_millis(100));
        }
        let ours = client_id(task);
        let turns = turns?;
        let is_ours = |turn: &&Value| {
            let items = turn["items"].as_array().into_iter().flatten();
            items.into_iter().any(|item| item["type"] == "userMessage" && item["clientId"] == ours.as_str())
        };
        // A program that loses its worker interrupts its own turn, so that does not count as an end
        // here.
        turns.iter().find(is_ours).map(turn::snapshot).map(|found| match found.aborted {
            true => Snapshot { idle: None, aborted: false, ..found },
            false => found,
        })
    }
}

/// Starts a program and greets it. The first programs in a new home of Codex make its files at the
/// same time, and some of them end because of that. Such a program has not got the task yet, so
/// another is started; those start one at a time.
fn greeted(task: &Task, state: &Arc<State>) -> Result<Arc<Server>, Fault> {
    let mut alone = None;
    for left in (0..MAX_STARTS).rev() {
        let server = start_server(task, state)?;
        match server.greet(START_TIMEOUT) {
            Ok(()) => {
                state.greeted();
                return Ok(server);
            }
            Err(Refusal::Gone) if left > 0 => alone = alone.or_else(|| take_turns(task)),
            Err(refusal) => {
                if let Some(child) = server.child() {
                    child.end(Duration::ZERO);
                }
                return Err(no_start(&refusal, state));
            }
        }
    }
    Err(no_start(&Refusal::Gone, state))
}

/// The lock of the job whose turn it is. If it can't be had in time, all start at once.
fn take_turns(task: &Task) -> Option<File> {
    let file = own::lock_file(&task.home.join("codex.start")).ok()?;
    own::lock(&file, Sharing::Alone, START_LOCK_TIMEOUT).ok().map(|()| file)
}

/// Starts the program, whose output goes to the turn's state.
fn start_server(task: &Task, state: &Arc<State>) -> Result<Arc<Server>, Fault> {
    // The listener needs its server, which exists before the program says anything that matters.
    let own: Arc<OnceLock<Arc<Server>>> = Arc::default();
    let (its, heard_by, ended_for) = (Arc::clone(&own), Arc::clone(state), Arc::clone(state));
    let server = Server::start(
        task,
        move |heard| {
            if let Some(server) = its.get() {
                heard_by.hear(server, &heard);
            }
        },
        move |how| ended_for.ended(how.in_words()),
    );
    let server = server.map_err(|error| {
        Fault::new(Code::BackendStart, format!("{} could not be started: {error}", task.program.display()))
            .hint("check that `codex --version` works in a terminal")
    })?;
    own.set(Arc::clone(&server)).ok();
    Ok(server)
}

/// From a new program to a turn that has the prompt.
fn begin(task: &Task, running: &Running, report: &Report) -> Result<(), Fault> {
    let server = &running.server;
    let no_start = |refusal: &Refusal| no_start(refusal, &running.state);
    check_account(task, running)?;
    let config = json!({"cwd": task.cwd.to_string_lossy(), "includeLayers": false});
    let config = server.call("config/read", &config, START_TIMEOUT).map_err(|refusal| no_start(&refusal))?;
    let mut wanted = access::parameters(task, &config["config"]);
    if let Some(model) = &task.model {
        wanted.insert("model".to_owned(), model.as_str().into());
    }
    let method = match &task.resume {
        Some(thread) => {
            wanted.insert("threadId".to_owned(), thread.as_str().into());
            wanted.insert("excludeTurns".to_owned(), true.into());
            "thread/resume"
        }
        None => "thread/start",
    };
    let opened = server.call(method, &wanted.into(), START_TIMEOUT).map_err(|refusal| {
        match (&task.resume, refusal) {
            (Some(thread), Refusal::No(words)) => Fault::new(Code::NothingToResume, words)
                .hint(format!("Codex has no session {thread} any more; start a new job without --resume")),
            (_, refusal) => no_start(&refusal),
        }
    })?;
    check_opened(task, &opened)?;
    let thread = opened["thread"]["id"].as_str().unwrap_or_default();
    running.state.set_thread(thread);
    report(Observation::Session(thread.to_owned()));
    if task.resume.is_none() {
        // Best effort: it is only a name.
        server.call("thread/name/set", &json!({"threadId": thread, "name": task.title}), START_TIMEOUT).ok();
    }
    let mut turn = json!({
        "threadId": thread,
        "cwd": task.cwd.to_string_lossy(),
        "clientUserMessageId": client_id(task),
        "input": [{"type": "text", "text": task.prompt}],
    });
    if let Some(effort) = &task.effort {
        turn["effort"] = effort.as_str().into();
    }
    let begun = server.call("turn/start", &turn, START_TIMEOUT).map_err(|refusal| no_start(&refusal))?;
    running.state.set_turn(begun["turn"]["id"].as_str().unwrap_or_default());
    Ok(())
}

/// The mark by which this job's turn is found again in its thread.
fn client_id(task: &Task) -> String {
    let folder = task.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    format!("baton-{}", folder.unwrap_or_default())
}

/// Whether there is a login, and the model has the effort.
fn check_account(task: &Task, running: &Running) -> Result<(), Fault> {
    let server = &running.server;
    let account = server.call("account/read", &json!({}), START_TIMEOUT);
    let account = account.map_err(|refusal| no_start(&refusal, &running.state))?;
    if account["account"].is_null() && account["requiresOpenaiAuth"] == true {
        return Err(not_logged_in().into());
    }
    let (Some(model), Some(effort)) = (&task.model, &task.effort) else { return Ok(()) };
    // A model that is not listed may belong to another provider.
    let Ok(models) = server.call("model/list", &json!({"includeHidden": true}), START_TIMEOUT) else {
        return Ok(());
    };
    let mut listed = models["data"].as_array().into_iter().flatten();
    let Some(known) = listed.find(|known| known["model"] == model.as_str() || known["id"] == model.as_str())
    else {
        return Ok(());
    };
    let efforts = known["supportedReasoningEfforts"].as_array().into_iter().flatten();
    let efforts: Vec<_> = efforts.filter_map(|effort| effort["reasoningEffort"].as_str()).collect();
    if efforts.contains(&effort.as_str()) {
        return Ok(());
    }
    Err(Fault::new(Code::UnsupportedOption, format!("{model} has no effort {effort}"))
        .hint(format!("it knows {}", efforts.join(", "))))
}

/// Whether the thread is as wanted. An administrator's requirements may have changed it.
fn check_opened(task: &Task, opened: &Value) -> Result<(), Fault> {
    if task.read_only && opened["sandbox"]["type"] != access::READ_ONLY_SANDBOX {
        let got = &opened["sandbox"]["type"];
        return Err(Fault::new(
            Code::UnsupportedOption,
            format!("--read-only: Codex opened its sandbox as {got}"),
        )
        .hint("requirements of this machine may choose another sandbox; see `codex doctor`"));
    }
    match &task.model {
        Some(model) if opened["model"] != model.as_str() => Err(Fault::new(
            Code::UnsupportedOption,
            format!("--model {model}: Codex takes {} instead", opened["model"]),
        )
        .hint("choose a model that Codex lists with /model")),
        _ => Ok(()),
    }
}

/// Whether files or variables show a login or another provider. Their content is not read.
fn may_be_logged_in(task: &Task) -> bool {
    let set = |name: &str| task.variable(name).is_some_and(|value| !value.is_empty());
    if set("OPENAI_API_KEY") || set("CODEX_API_KEY") || set("CODEX_ACCESS_TOKEN") {
        return true;
    }
    let home = task.variable("CODEX_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| task.user_home().map(|home| home.join(".codex"))) else { return true };
    // Another provider, or a keyring, may be named there.
    home.join("auth.json").exists() || home.join("config.toml").exists()
}

fn not_logged_in() -> Error {
    Error::new(Code::NotLoggedIn, "Codex has no login").hint("run `codex login` in a terminal")
}

fn no_start(refusal: &Refusal, state: &State) -> Fault {
    match refusal {
        Refusal::No(words) if words.contains("unknown variant") => {
            Fault::new(Code::UnsupportedVersion, "this version of Codex does not know what a job needs").hint(
                format!(
                    "update it (`npm install -g @openai/codex`); {} is known to work",
                    super::verified(Codex::NAME)
                ),
            )
        }
        refusal => {
            let last = state.last_words().map(|words| format!(": {words}")).unwrap_or_default();
            Fault::new(Code::BackendStart, format!("Codex took no task: {}{last}", refusal.in_words()))
                .hint("check that `codex` works in a terminal")
        }
    }
}
