//! The stage of every story: a sandbox with baton set up for the real agents, and a scripted model.

use baton_testkit::agents::Session;
use baton_testkit::claude::Claude;
use baton_testkit::codex::Codex;
use baton_testkit::model::{Kind, Request};
use baton_testkit::process::{Finished, Running};
use baton_testkit::{Model, Sandbox, Script, Tmux, wait};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// No step of a story takes longer.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Which agent plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Claude,
    Codex,
}

pub const BOTH: [Who; 2] = [Who::Claude, Who::Codex];

impl Who {
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// How often a story is repeated; one by default, more under `scripts/prove`.
pub fn rounds() -> usize {
    std::env::var("BATON_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

pub struct Stage {
    pub sandbox: Sandbox,
    pub model: Model,
}

impl Stage {
    /// A stage with both agents prepared and baton set up for them.
    pub fn new(script: Script) -> Self {
        let stage = Self::bare(script);
        // The agents write their own configuration first, as on a real machine.
        stage.claude();
        stage.codex();
        stage.baton(&["setup", "claude", "codex"]).expect_ok();
        stage
    }

    /// A stage without baton in the agents' files.
    pub fn bare(script: Script) -> Self {
        let (sandbox, model) = (Sandbox::new(), Model::start(script));
        sandbox.install("baton", &program());
        Self { sandbox, model }
    }

    pub fn claude(&self) -> Claude<'_> {
        Claude::new(&self.sandbox, &self.model)
    }

    pub fn codex(&self) -> Codex<'_> {
        Codex::new(&self.sandbox, &self.model)
    }

    fn headless_command(&self, who: Who, session: Session<'_>, prompt: &str) -> Command {
        match who {
            Who::Claude => self.claude().headless(session, prompt),
            Who::Codex => self.codex().headless(session, prompt),
        }
    }

    /// Starts an agent without a terminal.
    pub fn start(&self, who: Who, session: Session<'_>, prompt: &str) -> Running {
        self.sandbox.start(&mut self.headless_command(who, session, prompt))
    }

    /// Runs an agent without a terminal to its end.
    pub fn run(&self, who: Who, session: Session<'_>, prompt: &str) -> Finished {
        self.sandbox.run(&mut self.headless_command(who, session, prompt), LIMIT).expect_ok()
    }

    /// Opens an agent in a terminal.
    pub fn open(&self, who: Who, session: Session<'_>) -> Tmux<'_> {
        match who {
            Who::Claude => self.claude().open("claude", session),
            Who::Codex => self.codex().open("codex", session),
        }
    }

    /// Runs baton as a script would.
    pub fn baton(&self, arguments: &[&str]) -> Finished {
        self.sandbox.run(self.sandbox.command("baton").args(arguments), LIMIT)
    }

    /// What a command prints as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.baton(&[arguments, &["--json"]].concat()).expect_ok().stdout;
        serde_json::from_str(&printed)
            .unwrap_or_else(|error| panic!("{arguments:?} printed {printed}: {error}"))
    }

    /// The name of the only session of an agent that is not gone, once it is registered.
    pub fn name_of(&self, who: Who) -> String {
        let found = wait::poll(LIMIT, || {
            let here = self.json(&["who"]);
            here.as_array()?.iter().find(|row| row["agent"] == who.name())?["name"]
                .as_str()
                .map(str::to_owned)
        });
        found.unwrap_or_else(|| panic!("no {} session registered: {}", who.name(), self.trouble()))
    }

    pub fn send(&self, to: &str, body: &str) {
        self.baton(&["send", to, body]).expect_ok();
    }

    /// The state of the delivery of the message with that body, once it has reached an end.
    pub fn end_of(&self, body: &str) -> String {
        let mut last = String::new();
        wait::until(Duration::from_secs(10), || {
            last = self.state_of(body);
            !matches!(last.as_str(), "queued" | "offered")
        });
        last
    }

    /// The state of the delivery of the message with that body.
    pub fn state_of(&self, body: &str) -> String {
        let mail = self.json(&["mail", "--search", body]);
        mail[0]["deliveries"][0]["state"].as_str().unwrap_or("none").to_owned()
    }

    /// Waits for the first request to the model that fits.
    pub fn request(&self, fits: impl Fn(&Request) -> bool) -> std::sync::Arc<Request> {
        self.model
            .wait_for(LIMIT, |request| request.kind == Kind::Main && fits(request))
            .unwrap_or_else(|| panic!("no such request reached the model: {}", self.trouble()))
    }

    /// Checks that a text came to the model, and never twice in one request.
    pub fn shown_once(&self, text: &str) {
        let seen = self.model.sightings(text);
        assert!(seen.first.is_some(), "{text} never reached a model: {}", self.trouble());
        assert_eq!(seen.most, 1, "{text} was shown {} times in one request", seen.most);
    }

    /// What a failed story wants to know.
    pub fn trouble(&self) -> String {
        let log = std::fs::read_to_string(self.sandbox.home().join(".local/share/baton/hook.log"))
            .unwrap_or_default();
        let trail = self.baton(&["log"]).stdout;
        format!("\nhook.log:\n{log}\ntrail:\n{trail}")
    }
}

/// The program under test, built by the same cargo run.
fn program() -> PathBuf {
    let mut folder = std::env::current_exe().expect("a test has a path");
    folder.pop();
    if folder.ends_with("deps") {
        folder.pop();
    }
    let program = folder.join("baton");
    assert!(
        program.is_file(),
        "{} is not built; run `cargo build -p baton` or scripts/test",
        program.display()
    );
    program
}

/// The agent's own id of the session of a headless run.
pub fn session_id(who: Who, run: &Finished) -> String {
    match who {
        Who::Claude => baton_testkit::claude::session_id(run),
        Who::Codex => baton_testkit::codex::thread_id(run),
    }
    .unwrap_or_else(|| panic!("no session id in {}", run.stdout))
}
