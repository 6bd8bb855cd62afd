//! What the tests of a backend stand on: a task in a sandbox, what was observed of it, and prompts that are hard to pass on.

use baton_core::job::{Allow, Fault, Observation, Question, Said, Snapshot};
use baton_jobs::backend::{Backend, Task, Turn};
use baton_testkit::{Sandbox, wait};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a real program may take on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A task for the program of that name in the sandbox, with its environment and some variables more.
pub fn task(sandbox: &Sandbox, program: &str, prompt: &str, more: &[(&str, &Path)]) -> Task {
    let folder = sandbox.path(format!("log/job-{program}"));
    fs::create_dir_all(&folder).expect("a folder for the job");
    let mut environment: Vec<_> =
        sandbox.environment().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    environment.extend(more.iter().map(|(name, value)| (name.into(), value.as_os_str().to_owned())));
    Task {
        prompt: prompt.to_owned(),
        program: sandbox.path("bin").join(program),
        environment,
        cwd: sandbox.project().canonicalize().expect("the project exists"),
        folder,
        home: sandbox.path("home/.baton"),
        baton: PathBuf::new(),
        title: "a job".to_owned(),
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
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    all: Mutex<Vec<(Instant, Observation)>>,
    grown: Condvar,
}

impl Seen {
    fn all(&self) -> MutexGuard<'_, Vec<(Instant, Observation)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Starts it.
    #[track_caller]
    pub fn start(backend: &dyn Backend, task: &Task) -> Job {
        Job::try_start(backend, task).unwrap_or_else(|fault| panic!("{fault:?}"))
    }

    /// Starts it, if it can be.
    pub fn try_start(backend: &dyn Backend, task: &Task) -> Result<Job, Fault> {
        let seen = Arc::new(Seen::default());
        let told = Arc::clone(&seen);
        let report = Arc::new(move |observation| {
            told.all().push((Instant::now(), observation));
            told.grown.notify_all();
        });
        Ok(Job { turn: backend.start(task, report)?, seen })
    }

    /// Everything until now.
    pub fn all(&self) -> Vec<Observation> {
        self.seen.all().iter().map(|(_, observation)| observation.clone()).collect()
    }

    /// Waits for an observation, also one that came before.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, limit: Duration, wanted: impl Fn(&Observation) -> Option<T>) -> T {
        let end = Instant::now() + limit;
        let mut all = self.seen.all();
        loop {
            if let Some(found) = all.iter().find_map(|(_, observation)| wanted(observation)) {
                return found;
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                panic!("no {what} within {limit:?}: {:#?}", *all);
            };
            all = self.seen.grown.wait_timeout(all, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The id of its session.
    #[track_caller]
    pub fn session(&self) -> String {
        self.wait("session", LIMIT, |observation| match observation {
            Observation::Session(id) => Some(id.clone()),
            _ => None,
        })
    }

    /// Waits until it says that its turn is over.
    #[track_caller]
    pub fn idle(&self, limit: Duration) {
        self.wait("idle", limit, |observation| (*observation == Observation::Idle).then_some(()));
    }

    /// Its last word, once it is idle.
    #[track_caller]
    pub fn said(&self) -> Said {
        self.idle(LIMIT);
        let said = self.all().into_iter().rev().find_map(|observation| match observation {
            Observation::Said(said) => Some(said),
            _ => None,
        });
        said.unwrap_or_else(|| panic!("it said nothing: {:#?}", self.all()))
    }

    /// Waits for a question.
    #[track_caller]
    pub fn question(&self) -> Question {
        self.wait("question", LIMIT, |observation| match observation {
            Observation::Asked(question) => Some(question.clone()),
            _ => None,
        })
    }

    /// Waits for a fault.
    #[track_caller]
    pub fn fault(&self, limit: Duration) -> Fault {
        self.wait("fault", limit, |observation| match observation {
            Observation::Fault(fault) => Some(fault.clone()),
            _ => None,
        })
    }

    /// What it has, by asking it.
    #[track_caller]
    pub fn look(&self) -> Snapshot {
        self.turn.look().expect("it can be asked").unwrap_or_else(|error| panic!("{error}"))
    }

    /// The process of the program.
    #[track_caller]
    pub fn pid(&self) -> i32 {
        self.turn.root().expect("its process can be seen").pid
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.turn.close();
    }
}

/// The living processes below that one, and itself.
pub fn tree(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let parents: Vec<(i32, i32)> = processes().into_iter().map(|(pid, parent, _)| (pid, parent)).collect();
    let mut at = 0;
    while at < found.len() {
        let children = parents.iter().filter(|(_, parent)| *parent == found[at]).map(|(pid, _)| *pid);
        found.extend(children.collect::<Vec<_>>());
        at += 1;
    }
    found
}

/// The living processes whose command line holds that.
pub fn running(words: &str) -> Vec<i32> {
    let with = |pid: &i32| {
        let line = fs::read(PathBuf::from(format!("/proc/{pid}/cmdline"))).unwrap_or_default();
        let line: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        line.join(" ").contains(words)
    };
    processes().into_iter().filter(|(_, _, state)| *state != 'Z').map(|(pid, ..)| pid).filter(with).collect()
}

/// Waits until none of these is alive.
#[track_caller]
pub fn all_gone(pids: &[i32]) {
    let alive = || -> Vec<i32> {
        let living = processes().into_iter().filter(|(_, _, state)| *state != 'Z').map(|(pid, ..)| pid);
        living.filter(|pid| pids.contains(pid)).collect()
    };
    assert!(wait::until(Duration::from_secs(20), || alive().is_empty()), "left behind: {:?}", alive());
}

/// Process, parent, state.
fn processes() -> Vec<(i32, i32, char)> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let read = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some((pid, fields.next()?.parse().ok()?, state))
    };
    pids.filter_map(read).collect()
}

/// Text that is hard to pass on: quotes, control characters, line ends of all kinds, what shells and templates expand.
pub fn hard_text(bytes: usize, mut seed: u64) -> String {
    const PIECES: &[&str] = &[
        "\"",
        "'",
        "\\",
        "$&",
        "$(x)",
        "`y`",
        "--flag",
        "\r\n",
        "\r",
        "\n",
        "\u{2028}",
        "\u{2029}",
        "😀",
        "é",
        "a\u{301}",
        "\u{85}",
        "\u{feff}",
        "@file",
        "/command",
        "!shell",
        "\u{1}",
        "\u{1b}[31m",
        "\u{7f}",
        "\u{10ffff}",
        "\u{e000}",
        "{{x}}",
        "%s",
        " ",
        "\t",
        "word",
        "中文",
        "\u{200b}",
        "<tag>",
        "&amp;",
        "</x>",
    ];
    let mut text = String::new();
    while text.len() < bytes {
        // xorshift: the same for a seed, on every machine.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        text.push_str(PIECES[usize::try_from(seed % PIECES.len() as u64).expect("an index")]);
    }
    text
}
