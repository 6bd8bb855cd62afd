//! A task for a real program in a sandbox, and the promises that hold for each program that speaks in lines.

use baton_core::Code;
use baton_core::job::{Allow, Fault, Finish, Observation, Question, Said, Tool, ToolKind, ToolState};
use baton_jobs::backend::{self, Backend, Task, Turn};
use baton_mail::process;
use baton_testkit::agents::{Agent, Session, program};
use baton_testkit::model::{Kind, Request};
use baton_testkit::{Model, Sandbox, Script, Step, wait};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Until a program with a scripted model must have done something.
pub const LIMIT: Duration = Duration::from_secs(40);

/// A sandbox, a model and a backend.
pub struct Stage {
    pub sandbox: Sandbox,
    pub model: Model,
    pub agent: Agent,
}

impl Stage {
    pub fn new(agent: Agent, script: Script) -> Self {
        let stage = Self { sandbox: Sandbox::new(), model: Model::start(script), agent };
        fs::create_dir(stage.sandbox.path("job")).unwrap();
        stage
    }

    pub fn backend(&self) -> &'static dyn Backend {
        backend::of(self.agent.name()).unwrap()
    }

    pub fn task(&self, prompt: &str) -> Task {
        let prepared = program(self.agent, &self.sandbox, &self.model);
        let command = prepared.headless(Session::New, "");
        let set = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        Task {
            prompt: prompt.to_owned(),
            program: command.get_program().into(),
            environment: set.collect(),
            cwd: self.sandbox.project().canonicalize().unwrap(),
            folder: self.sandbox.path("job"),
            home: self.sandbox.path("job"),
            baton: self.sandbox.path("bin/baton"),
            title: "a scripted job".to_owned(),
            model: None,
            effort: None,
            read_only: false,
            allow: Allow::All,
            resume: None,
        }
    }

    pub fn start(&self, task: &Task) -> Job {
        Job::start(self.backend(), task)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.sandbox.project().canonicalize().unwrap().join(name)
    }

    /// The requests of the conversation itself.
    pub fn asked(&self) -> Vec<Arc<Request>> {
        self.model.requests_of(Kind::Main)
    }
}

type Seen = Arc<(Mutex<Vec<(Instant, Observation)>>, Condvar)>;

/// A started task, and all that was reported about it.
pub struct Job {
    pub turn: Box<dyn Turn>,
    seen: Seen,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.turn.close();
    }
}

impl Job {
    pub fn start(backend: &dyn Backend, task: &Task) -> Self {
        let seen: Seen = Arc::default();
        let sink = Arc::clone(&seen);
        let report = Arc::new(move |observation: Observation| {
            sink.0.lock().unwrap().push((Instant::now(), observation));
            sink.1.notify_all();
        });
        let turn = backend.start(task, report).map_err(|fault| format!("{fault:?}")).expect("it starts");
        Self { turn, seen }
    }

    pub fn seen(&self) -> Vec<Observation> {
        self.seen.0.lock().unwrap().iter().map(|(_, observation)| observation.clone()).collect()
    }

    /// Waits for the first observation of which this says something.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, found: impl Fn(&Observation) -> Option<T>) -> T {
        self.wait_at(what, found).1
    }

    #[track_caller]
    pub fn wait_at<T>(&self, what: &str, found: impl Fn(&Observation) -> Option<T>) -> (Instant, T) {
        let end = Instant::now() + LIMIT;
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            if let Some(it) = seen.iter().find_map(|(at, one)| Some((*at, found(one)?))) {
                return it;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "no {what} in {LIMIT:?}, but {:#?}",
                seen.iter().map(|(_, o)| o).collect::<Vec<_>>()
            );
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    #[track_caller]
    pub fn session(&self) -> String {
        self.wait("session", |one| match one {
            Observation::Session(id) => Some(id.clone()),
            _ => None,
        })
    }

    /// Waits for the end, and gives the last message.
    #[track_caller]
    pub fn done(&self) -> Said {
        self.wait("end", |one| match one {
            Observation::Idle | Observation::Fault(_) | Observation::Gone(_) | Observation::Aborted => {
                Some(())
            }
            _ => None,
        });
        let seen = self.seen();
        assert!(seen.contains(&Observation::Idle), "{seen:#?}");
        let said = seen.into_iter().rev().find_map(|one| match one {
            Observation::Said(said) => Some(said),
            _ => None,
        });
        said.expect("something was said")
    }

    #[track_caller]
    pub fn fault(&self) -> Fault {
        self.wait("fault", |one| match one {
            Observation::Fault(fault) => Some(fault.clone()),
            _ => None,
        })
    }

    #[track_caller]
    pub fn question(&self) -> Question {
        self.wait("question", |one| match one {
            Observation::Asked(question) => Some(question.clone()),
            _ => None,
        })
    }

    /// Waits until a tool is in that state.
    #[track_caller]
    pub fn tool(&self, kind: ToolKind, state: ToolState) -> Tool {
        self.wait("tool", |one| match one {
            Observation::Tool(tool) if tool.kind == kind && tool.state == state => Some(tool.clone()),
            _ => None,
        })
    }

    /// Waits for an observation that is equal to this one.
    #[track_caller]
    pub fn wait_for(&self, one: &Observation) -> Instant {
        self.wait_at(&format!("{one:?}"), |seen| (seen == one).then_some(())).0
    }

    /// Tools that were not reported as ended.
    pub fn open_tools(&self) -> Vec<Tool> {
        let mut open: Vec<Tool> = Vec::new();
        for one in self.seen() {
            if let Observation::Tool(tool) = one {
                open.retain(|other| other.call != tool.call);
                open.extend((tool.state != ToolState::Ended).then_some(tool));
            }
        }
        open
    }
}

fn end(text: &str) -> Said {
    Said { text: text.to_owned(), finish: Finish::End }
}

/// A command that runs until somebody ends it, and writes its number into a file.
pub fn endless(file: &str) -> String {
    format!("echo $$ > {file}; while :; do sleep 0.2; done")
}

#[track_caller]
pub fn pid_in(path: &std::path::Path) -> i32 {
    let read = || fs::read_to_string(path).ok()?.trim().parse().ok();
    wait::poll(LIMIT, read).unwrap_or_else(|| panic!("no number in {}", path.display()))
}

#[track_caller]
pub fn is_gone(pid: i32) -> bool {
    wait::until(Duration::from_secs(20), || process::find(pid).is_none_or(|found| !process::is_alive(found)))
}

/// So many bytes that any careless layer would change.
pub fn wild_prompt(bytes: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    const SPICE: &[&str] = &[
        "\r\n",
        "\n",
        "\\",
        "\"",
        "'",
        "$&",
        "$(x)",
        "`",
        "--flag",
        "\u{2028}",
        "🦦",
        "é",
        "\t",
        "\u{1b}[31m",
        "\u{7}",
        "@file",
        "/cmd",
        "!ls",
        "<tag>",
        "&amp;",
        "%s",
        "{{x}}",
        "\u{feff}",
        "  ",
        "\u{202e}",
        "#",
        "\\u0041",
        "\\@x",
    ];
    let mut prompt = String::from("-- task\r\n");
    while prompt.len() < bytes - 16 {
        match next(4) {
            0 => prompt.push_str(SPICE[usize::try_from(next(SPICE.len() as u64)).unwrap()]),
            1 => {
                prompt.extend(char::from_u32(u32::try_from(next(0x10_ffff)).unwrap()).filter(|c| *c != '\0'))
            }
            _ => prompt.extend(char::from_u32(u32::try_from(next(94) + 33).unwrap())),
        }
    }
    prompt.push_str(" end\n");
    prompt
}

/// Steps are steps, tools are told with their calls, and the end is the model's last word.
#[track_caller]
pub fn a_turn_with_tools_ends_with_what_the_model_said(agent: Agent) {
    let script = Script::steps([Step::shell("echo one > made; sleep 1"), Step::say("all done\nreally")]);
    let stage = Stage::new(agent, script);
    let job = stage.start(&stage.task("make a file"));
    assert_eq!(job.done(), end("all done\nreally"));
    let ran = job.tool(ToolKind::Shell, ToolState::Running);
    assert!(ran.what.contains("echo one"), "{}", ran.what);
    assert_eq!(job.tool(ToolKind::Shell, ToolState::Ended).call, ran.call);
    assert!(job.open_tools().is_empty());
    assert_eq!(fs::read_to_string(stage.file("made")).unwrap(), "one\n");
    let session = job.session();
    let snapshot = wait::poll(Duration::from_secs(20), || {
        let snapshot = stage.backend().recall(&stage.task("make a file"), &session)?;
        (snapshot.idle == Some(true)).then_some(snapshot)
    });
    let snapshot = snapshot.expect("the turn is recalled");
    assert_eq!((snapshot.said, snapshot.tools), (Some(end("all done\nreally")), Vec::new()));
    let root = job.turn.root();
    job.turn.close();
    assert!(is_gone(root.map_or(0, |root| root.pid)));
    assert!(!job.seen().iter().any(|one| matches!(one, Observation::Gone(_))));
}

/// The prompt arrives byte for byte.
#[track_caller]
pub fn a_prompt_arrives_whole(agent: Agent, prompt: &str) {
    let stage = Stage::new(agent, Script::steps([Step::say("ok")]));
    let job = stage.start(&stage.task(prompt));
    job.done();
    let asked = stage.asked();
    let texts: Vec<_> = asked[0].shown().filter(|said| said.text.contains("-- task")).collect();
    let at = texts.iter().position(|said| said.text == prompt);
    if at.is_none() {
        let near = texts.first().map_or("", |said| &said.text);
        let differs = near.bytes().zip(prompt.bytes()).position(|(a, b)| a != b);
        panic!(
            "{} texts, {} of {} bytes, first difference at {differs:?}",
            texts.len(),
            near.len(),
            prompt.len()
        );
    }
}

/// A second turn goes on with the first, and is told from it when it is recalled.
#[track_caller]
pub fn a_resumed_session_knows_what_was_said(agent: Agent) {
    let script = Script::by(|request| {
        if request.shows("second question") {
            assert!(request.shows("first question"));
            Step::Hang
        } else {
            Step::say("first answer")
        }
    });
    let stage = Stage::new(agent, script);
    let first = stage.start(&stage.task("the first question"));
    first.done();
    let session = first.session();
    drop(first);
    let task = Task { resume: Some(session.clone()), ..stage.task("the second question") };
    let second = stage.start(&task);
    assert!(wait::until(LIMIT, || stage.asked().len() == 2), "{:#?}", second.seen());
    assert_eq!(second.session(), session);
    let said: Vec<_> = stage.asked()[1].said().iter().map(|said| said.text.clone()).collect();
    assert!(said.iter().any(|text| text == "first answer"), "{said:?}");
    // Killed in the middle, nothing of the second turn has ended.
    kill(&second);
    second.wait("end", |one| matches!(one, Observation::Gone(_)).then_some(()));
    let recalled = stage.backend().recall(&task, &session);
    assert!(recalled.is_none_or(|snapshot| snapshot.said.is_none() && snapshot.fault.is_none()));
}

pub fn kill(job: &Job) {
    let root = job.turn.root().expect("it runs");
    let pid = rustix::process::Pid::from_raw(root.pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Whatever the program does when its model does not answer, it can be aborted.
#[track_caller]
pub fn a_model_that_hangs_is_left_by_an_abort(agent: Agent) {
    let stage = Stage::new(agent, Script::by(|_| Step::Hang));
    let job = stage.start(&stage.task("hello"));
    assert!(wait::until(LIMIT, || stage.asked().len() == 1));
    job.wait_for(&Observation::Busy);
    let ends =
        |one: &Observation| matches!(one, Observation::Idle | Observation::Gone(_) | Observation::Aborted);
    assert!(!job.seen().iter().any(ends), "{:#?}", job.seen());
    let asked_at = Instant::now();
    job.turn.abort().unwrap();
    let took = job.wait_for(&Observation::Aborted) - asked_at;
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// A command that never returns is seen as running below the root, and an abort ends it too.
#[track_caller]
pub fn an_abort_ends_the_command_that_runs(agent: Agent) {
    let stage = Stage::new(agent, Script::steps([Step::shell(endless("pid")), Step::say("never")]));
    let job = stage.start(&stage.task("run it"));
    job.tool(ToolKind::Shell, ToolState::Running);
    let command = pid_in(&stage.file("pid"));
    let root = job.turn.root().expect("it has processes");
    assert!(process::lineage(command).contains(&root.pid), "the command runs below the root");
    let asked_at = Instant::now();
    job.turn.abort().unwrap();
    let took = job.wait_for(&Observation::Aborted) - asked_at;
    assert!(took < Duration::from_secs(20), "{took:?}");
    job.turn.close();
    assert!(is_gone(command) && is_gone(root.pid));
    assert_eq!(stage.asked().len(), 1);
}

/// `kill -9` in the middle is told within a second, and recalled as no end.
#[track_caller]
pub fn a_killed_program_is_gone(agent: Agent) {
    let stage = Stage::new(agent, Script::by(|_| Step::Hang));
    let task = stage.task("hello");
    let job = stage.start(&task);
    assert!(wait::until(LIMIT, || stage.asked().len() == 1));
    let session = job.session();
    let killed_at = Instant::now();
    kill(&job);
    let (at, words) = job.wait_at("end", |one| match one {
        Observation::Gone(words) => Some(words.clone()),
        _ => None,
    });
    assert!(at - killed_at < Duration::from_secs(20), "{:?}", at - killed_at);
    assert!(words.contains("signal 9"), "{words}");
    let recalled = stage.backend().recall(&task, &session);
    assert!(recalled.is_none_or(|snapshot| snapshot.said.is_none()));
}

/// A fault of the provider has our code, and the words of the program.
#[track_caller]
pub fn a_refused_request_is_a_fault(agent: Agent, status: u16, code: Code) -> Fault {
    let stage = Stage::new(agent, Script::by(move |_| Step::error(status, "scripted refusal")));
    let job = stage.start(&stage.task("hello"));
    let fault = job.fault();
    assert_eq!(fault.error.code(), code, "{fault:?}");
    assert!(fault.error.hint_text().is_some());
    assert!(!job.seen().contains(&Observation::Idle));
    fault
}

/// A read-only job can't write, by the shell or by a tool, whatever it may do without asking.
#[track_caller]
pub fn a_read_only_job_changes_nothing(agent: Agent) {
    let stage = Stage::new(agent, Script::by(|_| Step::say("later")));
    let file = stage.file("kept").to_string_lossy().into_owned();
    fs::write(&file, "as it was").unwrap();
    let made = stage.file("made").to_string_lossy().into_owned();
    let steps = [
        Step::shell(format!("echo x > {file}; touch {made}")),
        Step::write(&file, "other"),
        Step::write(&made, "new"),
        Step::read(&file),
        Step::say("tried"),
    ];
    let stage = Stage { model: Model::start(Script::steps(steps)), ..stage };
    let task = Task { read_only: true, ..stage.task("try") };
    let job = stage.start(&task);
    assert_eq!(job.done().text, "tried");
    assert_eq!(fs::read_to_string(&file).unwrap(), "as it was");
    assert!(!stage.file("made").exists());
    let last = stage.asked().last().cloned().unwrap();
    assert!(last.shows("as it was"), "it could read: {:#?}", last.results());
}
