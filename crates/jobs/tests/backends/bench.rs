//! The base of the backend tests: a task for a real program in a sandbox, what was observed of it,
//! and prompts that are hard to pass on.

use baton_core::approval::Question;
use baton_core::job::{Allow, Fault, Finish, Observation, Said, Snapshot, Tool, ToolKind, ToolState};
use baton_jobs::backend::{self, Backend, Task, Turn};
use baton_machine::process;
use baton_testkit::agents::{Agent, Session, program};
use baton_testkit::model::{Kind, Request};
use baton_testkit::{Model, Sandbox, Script, Step, wait};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Until a real program must have done something, on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);
/// For what has to be at once, with room for a busy machine.
pub const AT_ONCE: Duration = wait::HANG;

/// A sandbox, a model, and a task for the real program.
pub struct Stage {
    // Dropped first: nothing may run in the sandbox when that goes.
    pub model: Model,
    pub sandbox: Sandbox,
    pub agent: Agent,
    pub task: Task,
    jobs: AtomicUsize,
}

impl Stage {
    pub fn new(agent: Agent, script: Script) -> Self {
        Self::on(Sandbox::new(), agent, script)
    }

    pub fn steps(agent: Agent, steps: impl IntoIterator<Item = Step>) -> Self {
        Self::new(agent, Script::steps(steps))
    }

    /// The same sandbox with another model, for an agent that learns of its model by its
    /// environment: steps can name files of the project.
    pub fn again(self, steps: impl IntoIterator<Item = Step>) -> Self {
        Self::on(self.sandbox, self.agent, Script::steps(steps))
    }

    fn on(sandbox: Sandbox, agent: Agent, script: Script) -> Self {
        let model = Model::start(script);
        let command = program(agent, &sandbox, &model).headless(Session::New, "");
        let set = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let task = task(&sandbox, agent.name(), set.collect());
        Self { model, sandbox, agent, task, jobs: AtomicUsize::new(0) }
    }

    pub fn backend(&self) -> &'static dyn Backend {
        backend::of(self.agent.name()).unwrap()
    }

    /// Its task with that prompt, and a folder of its own.
    pub fn task(&self, prompt: &str) -> Task {
        let folder = self.sandbox.path(format!("job{}", self.jobs.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&folder).unwrap();
        Task { prompt: prompt.to_owned(), folder, ..self.task.clone() }
    }

    #[track_caller]
    pub fn start(&self, task: &Task) -> Job {
        Job::start(self.backend(), task)
    }

    /// Starts its task with that prompt.
    #[track_caller]
    pub fn ask(&self, prompt: &str) -> Job {
        self.start(&self.task(prompt))
    }

    /// Why a task can't be started.
    #[track_caller]
    pub fn refusal(&self, task: &Task) -> Fault {
        self.backend().start(task, Arc::new(drop)).err().expect("it is refused")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.task.cwd.join(name)
    }

    /// The requests of the conversation itself.
    pub fn asked(&self) -> Vec<Arc<Request>> {
        self.model.requests_of(Kind::Main)
    }
}

/// A task for the program of that name in the sandbox.
pub fn task(sandbox: &Sandbox, program: &str, environment: Vec<(OsString, OsString)>) -> Task {
    let folder = sandbox.path("job");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(sandbox.path("baton-home")).unwrap();
    Task {
        prompt: "do it".to_owned(),
        program: sandbox.path("bin").join(program),
        environment,
        cwd: sandbox.project().canonicalize().unwrap(),
        worktree_of: None,
        folder,
        home: sandbox.path("baton-home"),
        baton: sandbox.path("bin/baton"),
        label: "baton j".to_owned(),
        title: "a scripted job".to_owned(),
        model: None,
        effort: None,
        read_only: false,
        allow: Allow::All,
        resume: None,
    }
}

/// A job at work, with all that was observed of it. Closed on drop.
pub struct Job {
    pub turn: Box<dyn Turn>,
    pub task: Task,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    all: Mutex<Vec<Observation>>,
    grown: Condvar,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.turn.close();
    }
}

impl Job {
    #[track_caller]
    pub fn start(backend: &dyn Backend, task: &Task) -> Self {
        let seen = Arc::new(Seen::default());
        let told = Arc::clone(&seen);
        let report = move |observation| {
            told.all.lock().unwrap().push(observation);
            told.grown.notify_all();
        };
        let turn = backend.start(task, Arc::new(report)).unwrap_or_else(|fault| panic!("{fault:?}"));
        Self { turn, task: task.clone(), seen }
    }

    /// Everything until now.
    pub fn all(&self) -> Vec<Observation> {
        self.seen.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn has(&self, found: impl Fn(&Observation) -> bool) -> bool {
        self.all().iter().any(found)
    }

    /// Waits until there is something to be found in all that was observed.
    #[track_caller]
    pub fn wait_in_all<T>(&self, what: &str, found: impl Fn(&[Observation]) -> Option<T>) -> T {
        let end = Instant::now() + LIMIT;
        let mut all = self.seen.all.lock().unwrap();
        loop {
            if let Some(found) = found(&all) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what} within {LIMIT:?}, but {all:#?}");
            all = self.seen.grown.wait_timeout(all, left).unwrap().0;
        }
    }

    /// Waits for an observation of which this says something, also one that came before.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, found: impl Fn(&Observation) -> Option<T>) -> T {
        self.wait_in_all(what, |all| all.iter().find_map(&found))
    }

    /// Waits for an observation that is equal to this one.
    #[track_caller]
    pub fn wait_for(&self, one: &Observation) {
        self.wait(&format!("{one:?}"), |seen| (seen == one).then_some(()));
    }

    /// The id of its session.
    #[track_caller]
    pub fn session(&self) -> String {
        self.wait("session", |seen| match seen {
            Observation::Session(id) => Some(id.clone()),
            _ => None,
        })
    }

    /// Waits for a good end, and gives the last message.
    #[track_caller]
    pub fn said(&self) -> Said {
        self.wait_in_all("end", |all| {
            let bad = |seen: &&Observation| {
                matches!(seen, Observation::Fault(_) | Observation::Gone(_) | Observation::Aborted)
            };
            assert!(!all.iter().any(|seen| bad(&seen)), "no good end: {all:#?}");
            let said = all.iter().rposition(|seen| matches!(seen, Observation::Said(_)))?;
            match &all[said] {
                Observation::Said(last)
                    if last.finish == Finish::End && all[said..].contains(&Observation::Idle) =>
                {
                    Some(last.clone())
                }
                _ => None,
            }
        })
    }

    #[track_caller]
    pub fn fault(&self) -> Fault {
        self.wait("fault", |seen| match seen {
            Observation::Fault(fault) => Some(fault.clone()),
            _ => None,
        })
    }

    /// What the program said when it went away.
    #[track_caller]
    pub fn gone(&self) -> String {
        self.wait("end of the program", |seen| match seen {
            Observation::Gone(words) => Some(words.clone()),
            _ => None,
        })
    }

    /// Every question until now.
    pub fn questions(&self) -> Vec<Question> {
        let asked = |seen| match seen {
            Observation::Asked(question) => Some(question),
            _ => None,
        };
        self.all().into_iter().filter_map(asked).collect()
    }

    /// Waits for the first question.
    #[track_caller]
    pub fn question(&self) -> Question {
        self.question_after(&[])
    }

    /// Waits for a question other than these.
    #[track_caller]
    pub fn question_after(&self, known: &[&Question]) -> Question {
        self.wait("question", |seen| match seen {
            Observation::Asked(question) if known.iter().all(|known| known.id != question.id) => {
                Some(question.clone())
            }
            _ => None,
        })
    }

    /// Waits until a tool is in that state.
    #[track_caller]
    pub fn tool(&self, kind: ToolKind, state: ToolState) -> Tool {
        self.wait("tool", |seen| match seen {
            Observation::Tool(tool) if tool.kind == kind && tool.state == state => Some(tool.clone()),
            _ => None,
        })
    }

    /// Tools that were not reported as ended.
    pub fn open_tools(&self) -> Vec<Tool> {
        let mut open: Vec<Tool> = Vec::new();
        for seen in self.all() {
            if let Observation::Tool(tool) = seen {
                open.retain(|other| other.call != tool.call);
                open.extend((tool.state != ToolState::Ended).then_some(tool));
            }
        }
        open
    }

    /// What it has, by asking it.
    #[track_caller]
    pub fn look(&self) -> Snapshot {
        self.turn.look().expect("it can be asked").unwrap_or_else(|error| panic!("{error}"))
    }

    /// Aborts it, which takes effect at once.
    #[track_caller]
    pub fn abort(&self) {
        let begun = Instant::now();
        self.turn.abort().unwrap();
        self.wait_for(&Observation::Aborted);
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    }

    /// The process of the program.
    #[track_caller]
    pub fn pid(&self) -> i32 {
        self.turn.root().expect("its process can be seen").pid
    }
}

pub fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// The living processes below that one, and itself.
pub fn tree(root: i32) -> Vec<i32> {
    let all = process::all().into_iter().map(|(process, _)| process.pid);
    all.filter(|pid| process::lineage(*pid).contains(&root)).collect()
}

/// The living processes whose command line holds that.
pub fn running(words: &str) -> Vec<i32> {
    let all = process::all().into_iter().map(|(process, _)| process.pid);
    all.filter(|pid| process::arguments(*pid).join(" ").contains(words)).collect()
}

/// Waits until none of these is alive.
#[track_caller]
pub fn all_gone(pids: &[i32]) {
    let is_alive = |pid: &i32| process::find(*pid).is_some_and(process::is_alive);
    let alive = || pids.iter().copied().filter(is_alive).collect::<Vec<_>>();
    assert!(wait::until(AT_ONCE, || alive().is_empty()), "left behind: {:?}", alive());
}

/// A command that runs until it is ended, and writes its process id into a file.
pub fn endless(file: &str) -> String {
    format!("echo $$ > {file}; while :; do sleep 0.2; done")
}

#[track_caller]
pub fn pid_in(path: &Path) -> i32 {
    let read = || fs::read_to_string(path).ok()?.trim().parse().ok();
    wait::poll(LIMIT, read).unwrap_or_else(|| panic!("no number in {}", path.display()))
}

/// So many bytes, or a few less, of text that any careless layer would change: quotes, control
/// characters, line ends of all kinds, what shells and templates expand, any character but NUL.
pub fn hard_text(bytes: usize) -> String {
    const SPICE: &str = "\r\n|\r|\n\n|\\|\"|'|$&|$(x)|`y`|--flag|\u{2028}|\u{2029}|\u{85}|🦦|é|a\u{301}|\t| |\u{1b}[31m|\u{7}|\u{1}|\u{7f}|@file|/cmd|!ls|<tag>|</x>|&amp;|%s|{{x}}|\u{feff}|\u{200b}|\u{202e}|\u{10ffff}|\u{e000}|中文|#|\\u0041|\\@x";
    const END: &str = " end \r\n";
    let spice: Vec<&str> = SPICE.split('|').collect();
    // xorshift: the same each time, on every machine.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut text = String::from("-- task @README.md /init !ls\r\n");
    while text.len() + END.len() + 8 < bytes {
        match next(4) {
            0 => text.push_str(spice[next(spice.len())]),
            1 => text.extend(char::from_u32(u32::try_from(next(0x10_ffff)).unwrap() + 1)),
            _ => text.extend(char::from_u32(u32::try_from(next(94)).unwrap() + 33)),
        }
    }
    text + END
}

/// A question that no backend asks.
pub fn unknown(id: &str) -> baton_core::approval::Question {
    baton_core::approval::Question::new(id, baton_core::approval::Subject::command("bash", "ls"))
}
