//! OpenCode as a backend: the real server, the scripted model.

use baton_core::Code;
use baton_core::job::{
    Allow, Answer, Channel, Finish, Observation, Question, QuestionKind, Said, Snapshot, ToolKind, ToolState,
};
use baton_core::time::Moment;
use baton_jobs::backend::opencode::{OpenCode, keeper};
use baton_jobs::backend::{Backend as _, Task, Turn};
use baton_mail::process;
use baton_store::Process;
use baton_testkit::agents::Agent;
use baton_testkit::model::{Model, Request, Script, Step};
use baton_testkit::process::write_program;
use baton_testkit::{Sandbox, isolated, opencode, wait};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For whatever the server does.
const LIMIT: Duration = Duration::from_secs(60);
/// For what has to be at once, with room for a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A home of baton and of OpenCode, and a model that does what the prompt says.
struct Stage {
    // Dropped first: nothing may run in the sandbox when that goes.
    model: Model,
    sandbox: Sandbox,
    jobs: AtomicUsize,
}

impl Stage {
    fn new() -> Stage {
        Stage::with(|_| {})
    }

    /// With the user's configuration changed.
    fn with(change: impl FnOnce(&mut Value)) -> Stage {
        let sandbox = Sandbox::new();
        let model = Model::start(Script::by(obey));
        opencode::OpenCode::new(&sandbox, &model);
        let file = sandbox.path("home/.config/opencode/opencode.json");
        let mut config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        config["provider"]["scripted"]["models"]["main"]["variants"] =
            json!({"low": {"reasoningEffort": "low"}, "high": {"reasoningEffort": "high"}});
        change(&mut config);
        fs::write(file, config.to_string()).unwrap();
        // Our own program is not built here; this binary can keep a server too.
        let this = std::env::current_exe().unwrap();
        let script = format!(
            "#!/bin/sh\n[ \"$1 $2 $4\" = \"{} --folder --program\" ] || exit 64\nKEEP_FOLDER=$3 KEEP_PROGRAM=$5 \
             exec '{}' --exact opencode::keeps_a_server --include-ignored --nocapture --test-threads=2\n",
            keeper::COMMAND,
            this.display()
        );
        write_program(&sandbox.path("bin/baton"), script.as_bytes());
        Stage { model, sandbox, jobs: AtomicUsize::new(0) }
    }

    fn task(&self, prompt: &str) -> Task {
        let folder = self.sandbox.path(format!("job{}", self.jobs.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&folder).unwrap();
        let command = opencode::OpenCode::new(&self.sandbox, &self.model).command();
        let set = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let mut environment: Vec<_> = set.collect();
        environment.push(("BATON_JOB_DEPTH".into(), "1".into()));
        environment.push(("BATON_JOB".into(), "j-of-the-first".into()));
        Task {
            prompt: prompt.to_owned(),
            program: self.sandbox.path("bin/opencode"),
            environment,
            cwd: self.sandbox.project(),
            folder,
            home: self.sandbox.path("baton-home"),
            baton: self.sandbox.path("bin/baton"),
            title: "a job".to_owned(),
            model: None,
            effort: None,
            read_only: false,
            allow: Allow::All,
            resume: None,
        }
    }

    fn start(&self, prompt: &str) -> Job {
        Job::start(self.task(prompt))
    }

    /// The folder of the server, once there is one.
    fn server_folder(&self) -> PathBuf {
        let mut folders = fs::read_dir(self.sandbox.path("baton-home/opencode")).unwrap();
        folders.next().expect("one server").unwrap().path()
    }

    fn server(&self) -> Value {
        serde_json::from_slice(&fs::read(self.server_folder().join("server.json")).unwrap()).unwrap()
    }

    /// The requests that belong to the conversation of a job.
    fn requests(&self, job: &Job) -> Vec<Arc<Request>> {
        let session = job.session();
        let all = self.model.requests().into_iter();
        all.filter(|request| request.session == session && !request.body["tools"].is_null()).collect()
    }
}

/// The model does what the last prompt says, then says `done` and what came of it.
fn obey(request: &Request) -> Step {
    let prompt = request.last_user_text();
    if let Some(result) = request.results().last() {
        return Step::say(format!("done: {}", result.text));
    }
    let (verb, rest) = prompt.split_once(' ').unwrap_or((prompt, ""));
    match verb {
        "run" => Step::shell(rest),
        "write" => Step::write(rest, "changed"),
        "delegate" => {
            Step::tool("task", json!({"description": "a part", "prompt": rest, "subagent_type": "general"}))
        }
        "question" => Step::tool(
            "question",
            json!({"questions": [{"question": "Which port?", "header": "port", "options": [
                {"label": "80", "description": "a"}, {"label": "8080", "description": "b"}]}]}),
        ),
        "refuse" => Step::error(401, "no such key"),
        "limit" => Step::limited(7200, "Too Many Requests"),
        "fail" => Step::error(500, "the provider is ill"),
        "bad" => Step::error(400, "the request is bad"),
        "hang" => Step::Hang,
        _ => Step::say("hello"),
    }
}

/// A started job and what was heard of it.
struct Job {
    turn: Box<dyn Turn>,
    heard: Arc<Heard>,
    task: Task,
}

#[derive(Default)]
struct Heard {
    all: Mutex<Vec<Observation>>,
    grown: Condvar,
}

impl Heard {
    #[track_caller]
    fn wait<T>(&self, limit: Duration, what: &str, found: impl Fn(&[Observation]) -> Option<T>) -> T {
        let end = Instant::now() + limit;
        let mut all = self.all.lock().unwrap();
        loop {
            if let Some(found) = found(&all) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} did not come: {all:#?}");
            all = self.grown.wait_timeout(all, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Job {
    #[track_caller]
    fn start(task: Task) -> Job {
        let heard = Arc::new(Heard::default());
        let ear = Arc::clone(&heard);
        let report = move |observation| {
            ear.all.lock().unwrap().push(observation);
            ear.grown.notify_all();
        };
        let turn = OpenCode.start(&task, Arc::new(report)).unwrap_or_else(|fault| panic!("{fault:?}"));
        Job { turn, heard, task }
    }

    fn session(&self) -> String {
        match self.heard.all.lock().unwrap().first() {
            Some(Observation::Session(id)) => id.clone(),
            other => panic!("the session comes first, not {other:?}"),
        }
    }

    /// Waits for the proof of the end, and gives the last words.
    #[track_caller]
    fn result(&self) -> String {
        self.heard.wait(LIMIT, "the end", |all| {
            let end = all
                .iter()
                .rposition(|seen| matches!(seen, Observation::Said(Said { finish: Finish::End, .. })))?;
            let idle = all[end..].contains(&Observation::Idle);
            match &all[end] {
                Observation::Said(said) if idle => Some(said.text.clone()),
                _ => None,
            }
        })
    }

    #[track_caller]
    fn question(&self) -> Question {
        self.heard.wait(LIMIT, "a question", |all| {
            all.iter().find_map(|seen| match seen {
                Observation::Asked(question) => Some(question.clone()),
                _ => None,
            })
        })
    }

    #[track_caller]
    fn fault(&self) -> (Code, Option<Moment>) {
        self.heard.wait(LIMIT, "a fault", |all| {
            all.iter().find_map(|seen| match seen {
                Observation::Fault(fault) => Some((fault.error.code(), fault.again_at)),
                _ => None,
            })
        })
    }

    #[track_caller]
    fn wait_for(&self, limit: Duration, wanted: &Observation) {
        self.heard.wait(limit, &format!("{wanted:?}"), |all| all.contains(wanted).then_some(()));
    }

    #[track_caller]
    fn wait_for_shell(&self) {
        self.heard.wait(LIMIT, "a running shell", |all| {
            all.iter().find_map(|seen| match seen {
                Observation::Tool(tool) if tool.state == ToolState::Running => {
                    assert_eq!(tool.kind, ToolKind::Shell);
                    Some(())
                }
                _ => None,
            })
        });
    }

    fn look(&self) -> Snapshot {
        self.turn.look().expect("it can be asked").unwrap()
    }

    fn has(&self, found: impl Fn(&Observation) -> bool) -> bool {
        self.heard.all.lock().unwrap().iter().any(found)
    }
}

/// A process by the number in a document.
fn process_of(server: &Value) -> Process {
    let pid = i32::try_from(server["pid"].as_i64().unwrap()).unwrap();
    Process { pid, start: server["start"].as_u64().unwrap() }
}

fn kill(process: Process) {
    rustix::process::kill_process(Pid::from_raw(process.pid).unwrap(), Signal::KILL).unwrap();
}

/// The one that started the server.
fn keeper_of(server: Process) -> Process {
    process::find(process::lineage(server.pid)[1]).expect("the keeper runs")
}

#[track_caller]
fn assert_ends(process: Process) {
    assert!(wait::until(Duration::from_secs(15), || !process::is_alive(process)), "{process:?} goes on");
}

#[test]
#[ignore = "not a test: the tests run it as the keeper of their server"]
fn keeps_a_server() {
    if let (Some(folder), Some(program)) = (std::env::var_os("KEEP_FOLDER"), std::env::var_os("KEEP_PROGRAM"))
    {
        keeper::run(folder.as_ref(), program.as_ref()).unwrap();
    }
}

#[test]
fn a_job_is_told_from_its_session_to_its_last_word_and_leaves_nothing_running() {
    isolated(|| {
        let stage = Stage::new();
        let mut task = stage.task("run echo one; sleep 0.2; echo two");
        task.effort = Some("high".to_owned());
        let job = Job::start(task);
        let server = process_of(&stage.server());
        assert_eq!(job.turn.root(), Some(server));
        let result = job.result();
        assert!(result.starts_with("done: one\ntwo"), "{result}");
        let all = job.heard.all.lock().unwrap().clone();
        let place = |what: &str, found: &dyn Fn(&Observation) -> bool| {
            all.iter().position(found).unwrap_or_else(|| panic!("no {what} in {all:#?}"))
        };
        let tool = |state| move |seen: &Observation| matches!(seen, Observation::Tool(tool) if tool.state == state && tool.kind == ToolKind::Shell && tool.what == "bash: echo one; sleep 0.2; echo two");
        let said = |finish| move |seen: &Observation| matches!(seen, Observation::Said(said) if said.finish == finish);
        let order = [
            place("session", &|seen| matches!(seen, Observation::Session(_))),
            place("begin", &|seen| *seen == Observation::Busy),
            place("running tool", &tool(ToolState::Running)),
            place("ended tool", &tool(ToolState::Ended)),
            place("step", &said(Finish::ToolCalls)),
            place("end", &said(Finish::End)),
            place("idle", &|seen| *seen == Observation::Idle),
        ];
        assert!(order.is_sorted(), "{order:?} in {all:#?}");
        let look = job.look();
        assert_eq!((look.idle, look.tools.len(), look.fault, look.aborted), (Some(true), 0, None, false));
        assert_eq!(look.said, Some(Said { text: result, finish: Finish::End }));
        let requests = stage.requests(&job);
        assert_eq!(requests.len(), 2);
        assert_eq!(
            (&requests[0].body["model"], &requests[0].body["reasoning_effort"]),
            (&json!("main"), &json!("high"))
        );
        // The server belongs to no single job, but knows that it is for jobs; nobody else can read how to reach it.
        assert_eq!(process::variable(server.pid, "BATON_JOB_DEPTH"), Some("1".into()));
        assert_eq!(process::variable(server.pid, "BATON_JOB"), None);
        for file in ["server.json", "server.log", "users"] {
            let mode = fs::metadata(stage.server_folder().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        let keeper = keeper_of(server);
        job.turn.close();
        assert_ends(server);
        assert_ends(keeper);
        assert!(!stage.server_folder().join("server.json").exists());
        // What it left is found again without a server.
        let left = OpenCode.recall(&job.task, &job.session()).expect("its store has it");
        assert_eq!((left.idle, left.said.map(|said| said.finish)), (Some(true), Some(Finish::End)));
    });
}
