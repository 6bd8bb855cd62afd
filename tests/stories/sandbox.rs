//! What every story runs in: a sandbox with baton set up for the real agents, and a scripted model.

use baton_agents::{Screen, by_name};
use baton_testkit::agents::{self, Agent, Program, Session};
use baton_testkit::claude::Claude;
use baton_testkit::codex::Codex;
use baton_testkit::model::{Kind, Request};
use baton_testkit::opencode::OpenCode;
use baton_testkit::process::{Finished, Running};
use baton_testkit::{Model, Sandbox, Script, Tmux, wait};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// No step of a story takes longer, on a machine that is busy with others.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A key that did nothing is pressed again after this. Not sooner: the second may mean something
/// else than the first.
const KEY_PATIENCE: Duration = Duration::from_secs(4);

/// As a person presses one key after the other.
const BETWEEN_KEYS: Duration = Duration::from_millis(200);

/// Until what reached the model is proven.
const END_LIMIT: Duration = Duration::from_secs(30);

const BOTH: [Agent; 2] = [Agent::Claude, Agent::Codex];

/// The two, or the one of them that `BATON_ONLY` names, as `scripts/test --agent` does.
pub fn both() -> Vec<Agent> {
    let only = std::env::var("BATON_ONLY").ok().filter(|only| !only.is_empty());
    let wanted = |agent: &Agent| only.as_ref().is_none_or(|only| only == agent.name());
    let chosen: Vec<_> = BOTH.into_iter().filter(wanted).collect();
    assert!(!chosen.is_empty(), "BATON_ONLY={only:?}: the story is not for that agent");
    chosen
}

/// How often a story is repeated; one by default, more under `scripts/prove`.
pub fn rounds() -> usize {
    std::env::var("BATON_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

pub struct StorySandbox {
    pub sandbox: Sandbox,
    pub model: Model,
}

impl StorySandbox {
    /// A stage with Claude Code and Codex prepared and baton set up for them.
    pub fn new(script: Script) -> Self {
        Self::with(&BOTH, script)
    }

    /// A stage with these agents prepared and baton set up for them.
    pub fn with(agents: &[Agent], script: Script) -> Self {
        let stage = Self::bare(script);
        stage.prepare(agents);
        stage
    }

    /// Sets baton up for these agents.
    pub fn prepare(&self, agents: &[Agent]) {
        // The agents' own configuration is there first, as on a real machine.
        for agent in agents {
            self.program(*agent);
        }
        let names: Vec<_> = agents.iter().map(|agent| agent.name()).collect();
        self.baton(&[&["setup"], &names[..]].concat()).expect_ok();
    }

    /// The same, but idle sessions are not woken: for stories in which a person does something with
    /// one.
    pub fn without_waking(self) -> Self {
        self.configure("wake = \"off\"\n");
        self
    }

    /// Takes the MCP server out of Claude Code's files, as in a session that runs since before
    /// `baton setup`: its hooks come in while it runs, its servers don't.
    pub fn without_server(&self) {
        let file = self.sandbox.path("home/.claude.json");
        let text = std::fs::read_to_string(&file).expect("Claude Code's settings");
        let mut settings: Value = serde_json::from_str(&text).expect("JSON");
        let servers = settings["mcpServers"].as_object_mut().expect("setup has added the server");
        assert!(servers.remove("baton").is_some(), "{servers:?}");
        std::fs::write(&file, settings.to_string()).expect("the settings");
    }

    /// Writes the person's settings.
    pub fn configure(&self, text: &str) {
        let folder = self.sandbox.path("home/.config/baton");
        std::fs::create_dir_all(&folder).expect("a folder in the home");
        std::fs::write(folder.join("config.toml"), text).expect("the settings");
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

    pub fn opencode(&self) -> OpenCode<'_> {
        OpenCode::new(&self.sandbox, &self.model)
    }

    pub fn program(&self, who: Agent) -> Box<dyn Program<'_> + '_> {
        agents::program(who, &self.sandbox, &self.model)
    }

    /// Starts an agent without a terminal.
    pub fn start(&self, who: Agent, session: Session<'_>, prompt: &str) -> Running {
        self.sandbox.start(&mut self.program(who).headless(session, prompt))
    }

    /// Runs an agent without a terminal to its end.
    pub fn run(&self, who: Agent, session: Session<'_>, prompt: &str) -> Finished {
        self.sandbox.run(&mut self.program(who).headless(session, prompt), LIMIT).expect_ok()
    }

    /// Opens an agent in a terminal.
    pub fn open(&self, who: Agent, session: Session<'_>) -> Tmux<'_> {
        self.program(who).open(session)
    }

    /// The agent's own id of the session of a headless run.
    pub fn session_id(&self, who: Agent, run: &Finished) -> String {
        self.program(who).session_id(run).unwrap_or_else(|| panic!("no session id in {}", run.stdout))
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
    pub fn name_of(&self, who: Agent) -> String {
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
        wait::until(END_LIMIT, || {
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

    /// The only session that is not gone. The person, if there is one, is listed before it.
    fn session(&self) -> Value {
        let who = self.json(&["who"]);
        who.as_array()
            .into_iter()
            .flatten()
            .find(|row| !row["session_id"].is_null())
            .cloned()
            .unwrap_or_default()
    }

    /// Waits until the only session that is not gone is in that state.
    #[track_caller]
    pub fn is_in_state(&self, state: &str) {
        let is = wait::until(LIMIT, || self.session()["state"] == state);
        assert!(is, "it is never {state}: {}{}", self.json(&["who"]), self.trouble());
    }

    /// Waits until a wake of the only session that is not gone would come to this.
    #[track_caller]
    pub fn would_be(&self, outcome: &str) {
        let would = wait::until(LIMIT, || self.session()["wake"] == outcome);
        assert!(would, "a wake is never {outcome}: {}{}", self.json(&["who"]), self.trouble());
    }

    /// Checks that it came to the model, once, and that its sender can see that.
    #[track_caller]
    pub fn arrives(&self, body: &str) {
        self.request(|request| request.shows(body));
        self.seen_once(body);
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

    /// Checks that baton knew every event and every tool that the agents' hooks named.
    pub fn nothing_unknown(&self) {
        // Without a search path no agent is asked for its version, which takes some of them
        // seconds.
        let mut command = self.sandbox.command(program());
        let printed =
            self.sandbox.run(command.args(["doctor", "--json"]).env("PATH", ""), LIMIT).expect_ok().stdout;
        let checks: Value = serde_json::from_str(&printed).unwrap_or_default();
        assert!(checks.is_array(), "{printed}");
        let unknown: Vec<&Value> = checks
            .as_array()
            .into_iter()
            .flatten()
            .filter(|check| check["check"].as_str().is_some_and(|name| name.ends_with("unknown")))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    /// Checks that it was shown once, and that its sender can see that.
    pub fn seen_once(&self, body: &str) {
        self.shown_once(body);
        assert_eq!(self.end_of(body), "seen", "{body}: {}", self.trouble());
    }

    /// What a failed story wants to know.
    pub fn trouble(&self) -> String {
        let log = std::fs::read_to_string(self.sandbox.home().join(".local/share/baton/hook.log"))
            .unwrap_or_default();
        let who = self.baton(&["who", "--all"]).stdout;
        let trail = self.baton(&["log"]).stdout;
        format!("\nhook.log:\n{log}\nwho:\n{who}\ntrail:\n{trail}")
    }
}

/// Presses keys until the screen shows that they were heard: a dialog that has just opened ignores
/// them.
#[track_caller]
pub fn press_until(terminal: &Tmux<'_>, keys: &[&str], heard: impl Fn(&str) -> bool) {
    let done = wait::until(LIMIT, || {
        for key in keys {
            terminal.press(&[key]);
            std::thread::sleep(BETWEEN_KEYS);
        }
        wait::until(KEY_PATIENCE, || heard(&terminal.screen()))
    });
    assert!(done, "{keys:?} is not heard:\n{}", terminal.screen());
}

/// Types a prompt and sends it off. Gemini CLI misses an Enter while it starts: then the prompt is
/// still in its box.
#[track_caller]
pub fn submit(terminal: &Tmux<'_>, who: Agent, text: &str) {
    terminal.submit(text);
    let left = Screen::Draft(text.to_owned());
    let sent = wait::until(LIMIT, || {
        let sent = wait::until(KEY_PATIENCE, || screen_of(terminal, who) != left);
        if !sent {
            terminal.press(&["Enter"]);
        }
        sent
    });
    assert!(sent, "{text} is still in the box:\n{}", terminal.screen());
}

/// What an agent's adapter takes its screen for.
pub fn screen_of(terminal: &Tmux<'_>, who: Agent) -> Screen {
    let agent = by_name(who.name()).expect("we know it");
    agent.screen(&terminal.command(&["capture-pane", "-e", "-p", "-t", "test"]))
}

/// Waits until an agent's screen is this.
#[track_caller]
pub fn wait_for_screen(terminal: &Tmux<'_>, who: Agent, wanted: &Screen) {
    let came = wait::until(LIMIT, || screen_of(terminal, who) == *wanted);
    assert!(came, "{wanted:?} never came, but {:?}:\n{}", screen_of(terminal, who), terminal.screen());
}

/// The program under test, built by the same cargo run.
pub fn program() -> PathBuf {
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
