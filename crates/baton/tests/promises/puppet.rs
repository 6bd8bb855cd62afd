//! A scripted agent, one step at a time: it calls the real hooks as Claude Code 2.1.325 and Codex
//! 0.166.0 do, and takes, drops and writes down what they print as those do.
//!
//! What differs: Claude Code writes its transcript about 100 ms late (here: when the test says so),
//! runs one hook per batch of tools, takes what a killed hook had printed if it is complete, and
//! loses unwritten lines when it is killed. Codex writes at once, runs one hook per tool, all at
//! the same time, and drops what a killed hook had printed.
//!
//! Each event is two calls: [`Puppet::open`] does what the agent does before its hooks and gives
//! their payloads, [`Puppet::close`] what it does with their output. In between a test may run,
//! kill, double or forget the hooks.

pub use crate::moments::{Moment, Printed, Style};
use crate::paper::{self, Paper};
use crate::processes::{Shepherd, agent_process};
use crate::world::{Done, World, run};
use baton_testkit::Running;
use serde_json::{Value, json};
use std::cell::Cell;
use std::process::Command;
use std::rc::Rc;

/// A scripted session. Cloning gives a second puppet of the same session in the same state.
#[derive(Clone)]
pub struct Puppet<'w> {
    pub world: &'w World,
    pub style: Style,
    pub session: String,
    pub name: String,
    /// Its transcript.
    pub paper: Paper,
    /// The process that stands for the agent. Codex in its daemon has none that names a session.
    process: Option<Rc<Running>>,
    /// A process that runs the hooks and the shell commands: Claude Code, or Codex without its
    /// daemon.
    runner: Option<Rc<Shepherd>>,
    turn: Option<String>,
    counter: Rc<Cell<u32>>,
    calls: Vec<String>,
    /// The calls as the transcript has them.
    written: Vec<String>,
    stop_active: bool,
    /// A terminal session writes its request down before the prompt that it sends.
    pub interactive: bool,
    /// Codex's model writes a script that calls tools: the names that their hooks use are never in
    /// the transcript.
    pub code_mode: bool,
    /// Codex's tools run while the response is still coming in: the hook of one may run before the
    /// next call is written.
    pub streaming: bool,
}

impl<'w> Puppet<'w> {
    /// A session that has just started, under this id and name.
    pub fn start(world: &'w World, style: Style, name: &str) -> Puppet<'w> {
        let puppet = Self::begin(world, style, &format!("{}-{name}", style.name()), name);
        puppet.session_start("startup");
        puppet.shell(&["name", name]).expect(0);
        puppet
    }

    /// The same, with a process of its own for Codex too: without its daemon, the program is an
    /// ancestor of its hooks.
    pub fn start_in_process(world: &'w World, style: Style, name: &str) -> Puppet<'w> {
        let mut puppet = Self::begin(world, style, &format!("{}-{name}", style.name()), name);
        puppet.process = None;
        puppet.runner = Some(Rc::new(Shepherd::start(world, style.name())));
        puppet.session_start("startup");
        puppet.shell(&["name", name]).expect(0);
        puppet
    }

    /// A session whose hooks have not run yet.
    pub fn begin(world: &'w World, style: Style, session: &str, name: &str) -> Puppet<'w> {
        let process = (style == Style::Claude).then(|| agent_process(world));
        let paper = Paper::new(style, world.path(style.name()).join(format!("{session}.jsonl")));
        Puppet {
            world,
            style,
            session: session.to_owned(),
            name: name.to_owned(),
            paper,
            process,
            runner: None,
            turn: None,
            counter: Rc::default(),
            calls: Vec::new(),
            written: Vec::new(),
            stop_active: false,
            interactive: true,
            code_mode: false,
            streaming: false,
        }
    }

    fn fresh(&self, what: &str) -> String {
        self.counter.set(self.counter.get() + 1);
        format!("{}-{what}-{}", self.session, self.counter.get())
    }

    /// The environment of its shell commands.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        match self.style {
            Style::Claude => {
                let mut environment =
                    vec![("CLAUDECODE", "1".to_owned()), ("CLAUDE_CODE_SESSION_ID", self.session.clone())];
                environment.extend(self.pid().map(|pid| ("CLAUDE_PID", pid.to_string())));
                environment
            }
            Style::Codex => {
                vec![("CODEX_SESSION_ID", self.session.clone()), ("CODEX_THREAD_ID", self.session.clone())]
            }
        }
    }

    /// A command of baton in its shell.
    pub fn shell_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.baton(arguments);
        command.envs(self.environment());
        command
    }

    /// Runs a command of baton in its shell.
    pub fn shell(&self, arguments: &[&str]) -> Done {
        match &self.runner {
            Some(runner) => runner.run(&self.shell_command(arguments), b""),
            None => run(self.shell_command(arguments), b""),
        }
    }

    /// Runs any command below its process.
    pub fn below(&self, command: &Command) -> Done {
        self.runner.as_ref().expect("a process of its own").run(command, b"")
    }

    /// Sends a message from its shell; gives the id.
    #[track_caller]
    pub fn send(&self, to: &str, body: &str) -> String {
        let done = self.shell(&["send", to, body, "--json"]).expect(0);
        done.json()["message_id"].as_str().expect("an id").to_owned()
    }

    /// The command that its hooks run. Only Claude Code tells a hook whose it is.
    pub fn hook_command(&self) -> Command {
        let mut command = self.world.baton(&["hook", self.style.name()]);
        if self.style == Style::Claude {
            command.envs(self.environment());
        }
        command
    }

    /// A payload of this session.
    pub fn payload(&self, event: &str, mut more: Value) -> Vec<u8> {
        more["hook_event_name"] = json!(event);
        more["session_id"] = json!(self.session);
        more["transcript_path"] = json!(self.paper.file);
        more["cwd"] = json!(self.world.project());
        more["permission_mode"] = json!("bypassPermissions");
        if let Some(turn) = &self.turn {
            let key = if self.style == Style::Claude { "prompt_id" } else { "turn_id" };
            more[key] = json!(turn);
        }
        more.to_string().into_bytes()
    }

    /// Runs a hook.
    #[track_caller]
    pub fn hook(&self, payload: &[u8]) -> Printed {
        match &self.runner {
            Some(runner) => runner.run(&self.hook_command(), payload).into(),
            None => run(self.hook_command(), payload).into(),
        }
    }

    /// Runs the hook of an event that brings no mail; it must be silent.
    #[track_caller]
    pub fn quiet_hook(&self, event: &str, more: Value) {
        let printed = self.hook(&self.payload(event, more));
        assert_eq!(printed.text, "", "{event} brought something");
    }

    /// What the agent passes on of a hook's output.
    pub fn understood(&self, printed: &Printed) -> Option<String> {
        if printed.killed && self.style == Style::Codex {
            return None;
        }
        let answer: Value = serde_json::from_str(&printed.text).ok()?;
        let text = answer["hookSpecificOutput"]["additionalContext"].as_str();
        text.or(answer["reason"].as_str()).map(str::to_owned)
    }

    /// A session starts, is resumed, cleared, compacted or forked; gives what its hook brought.
    #[track_caller]
    pub fn session_start(&self, source: &str) -> Printed {
        self.hook(&self.payload("SessionStart", json!({"source": source})))
    }

    /// Writes down what the hook of a start brought.
    pub fn started(&mut self, printed: &Printed) {
        if let Some(text) = self.understood(printed) {
            self.paper.context("SessionStart", "SessionStart", &text);
        }
    }

    /// What the agent does before the hooks of an event; gives their payloads.
    pub fn open(&mut self, moment: Moment) -> Vec<Vec<u8>> {
        match moment {
            Moment::Prompt => {
                self.turn = Some(self.fresh("turn"));
                self.stop_active = false;
                self.paper.turn_begins(self.turn.as_deref());
                vec![self.payload("UserPromptSubmit", json!({"prompt": "go on"}))]
            }
            Moment::Tools => match self.style {
                Style::Claude => {
                    for call in &self.calls {
                        self.paper.tool_result(self.turn.as_deref(), call, "ok", &[]);
                    }
                    let calls: Vec<_> = self
                        .calls
                        .iter()
                        .map(|call| json!({"tool_name": "Bash", "tool_use_id": call}))
                        .collect();
                    vec![self.payload("PostToolBatch", json!({"tool_calls": calls}))]
                }
                Style::Codex => {
                    let payload =
                        |call| self.payload("PostToolUse", json!({"tool_name": "Bash", "tool_use_id": call}));
                    self.calls.iter().map(payload).collect()
                }
            },
            Moment::Stop => vec![self.payload("Stop", json!({"stop_hook_active": self.stop_active}))],
        }
    }

    /// What the agent does with what its hooks printed. True if the turn goes on because of a stop
    /// hook.
    pub fn close(&mut self, moment: Moment, printed: &[Printed]) -> bool {
        let texts: Vec<String> = printed.iter().filter_map(|printed| self.understood(printed)).collect();
        match moment {
            Moment::Prompt => {
                self.paper.prompt(self.turn.as_deref(), "go on");
                for text in &texts {
                    self.paper.context("UserPromptSubmit", &self.fresh("hook"), text);
                }
            }
            Moment::Tools => {
                let place = self.fresh("hook");
                for text in &texts {
                    self.paper.context(
                        if self.style == Style::Claude { "PostToolBatch" } else { "PostToolUse" },
                        &place,
                        text,
                    );
                }
                if self.style == Style::Codex {
                    for call in std::mem::take(&mut self.written) {
                        self.paper.tool_result(None, &call, "ok", &[]);
                    }
                }
                self.calls.clear();
            }
            Moment::Stop => {
                let place = self.fresh("stop");
                for printed in printed.iter().filter(|printed| !printed.text.is_empty()) {
                    self.paper.hook_ran("Stop", &place, &printed.text);
                }
                for text in &texts {
                    self.paper.context("Stop", &place, text);
                }
                self.paper.stop_handled(&place);
                self.stop_active = !texts.is_empty();
            }
        }
        let goes_on = moment != Moment::Stop || self.stop_active;
        if goes_on {
            self.paper.request(self.interactive && moment == Moment::Prompt);
        }
        moment == Moment::Stop && goes_on
    }

    /// An event from beginning to end, with the transcript written before; gives what its hooks
    /// printed.
    #[track_caller]
    pub fn event(&mut self, moment: Moment) -> Vec<Printed> {
        self.paper.flush();
        let payloads = self.open(moment);
        let printed: Vec<Printed> = payloads.iter().map(|payload| self.hook(payload)).collect();
        self.close(moment, &printed);
        printed
    }

    /// The model answers, with this many tool calls.
    pub fn answer(&mut self, tools: usize) {
        let response = self.fresh("msg");
        self.calls = (0..tools).map(|_| self.fresh(if self.code_mode { "exec" } else { "call" })).collect();
        if self.code_mode {
            self.calls.iter_mut().for_each(|call| call.insert_str(0, "exec-"));
            self.written = if tools > 0 { vec![self.fresh("script")] } else { Vec::new() };
        } else {
            self.written.clone_from(&self.calls);
        }
        let now = if self.streaming { self.written.len().min(1) } else { self.written.len() };
        self.paper.response(&response, &self.written[..now]);
    }

    /// The hooks of a batch of Codex's tools, one by one as the response comes in; gives what is
    /// still to be closed.
    pub fn tools_one_by_one(&mut self, hook: &mut dyn FnMut(&Self, &[u8]) -> Vec<Printed>) {
        for (at, payload) in self.open(Moment::Tools).into_iter().enumerate() {
            if self.streaming && at > 0 && at < self.written.len() {
                self.paper.further_call(&self.written[at]);
            }
            for printed in hook(self, &payload) {
                if let Some(text) = self.understood(&printed) {
                    self.paper.context("PostToolUse", "hook", &text);
                }
            }
        }
        self.close(Moment::Tools, &[]);
    }

    /// The answer's only tool call has ended, without a hook, and the model gets to see this.
    pub fn answer_ends(&mut self, shown: &str, mail: &[String]) {
        let call = self.calls[0].clone();
        let turn = self.turn.clone();
        self.paper.tool_result(turn.as_deref(), &call, shown, mail);
        self.paper.request(false);
        self.calls.clear();
        self.written.clear();
    }

    /// The answer's tool calls that have not ended.
    pub fn calls(&self) -> &[String] {
        &self.calls
    }

    /// The agent's id of the present turn.
    pub fn turn(&self) -> Option<&str> {
        self.turn.as_deref()
    }

    /// A whole turn in peace, with one batch of tools; goes on for as long as mail keeps it going.
    #[track_caller]
    pub fn turn_in_peace(&mut self) {
        self.event(Moment::Prompt);
        self.answer(1);
        self.event(Moment::Tools);
        self.finish_turn();
    }

    /// The rest of a turn: answers and stops until a stop is silent.
    #[track_caller]
    pub fn finish_turn(&mut self) {
        for _ in 0..20 {
            self.answer(0);
            let printed = self.event(Moment::Stop);
            if printed.iter().all(|printed| self.understood(printed).is_none()) {
                self.paper.flush();
                return;
            }
        }
        panic!("{} never stops", self.name);
    }

    /// Turns in peace until nothing of the message's way is left to go.
    #[track_caller]
    pub fn settle_down(&mut self) {
        for _ in 0..2 {
            self.turn_in_peace();
        }
    }

    /// The person presses Esc before the first word of the answer: Claude Code takes the prompt and
    /// what came with it back.
    pub fn escape(&mut self) {
        match self.style {
            Style::Claude => self.paper.take_back(),
            Style::Codex => {
                self.quiet_hook("Interrupt", json!({}));
                self.paper.aborted();
            }
        }
    }

    /// `kill -9` of the agent: what it had not written is lost. Its process is gone.
    pub fn kill(&mut self) {
        self.paper.forget_unwritten();
        self.process = None;
        self.runner = None;
    }

    /// The same session in a new process, while the old one may still run.
    #[track_caller]
    pub fn move_on(&mut self) {
        let (process, runner) = (self.process.take(), self.runner.take());
        self.resume();
        drop((process, runner));
    }

    /// The same session goes on in a new process.
    #[track_caller]
    pub fn resume(&mut self) {
        self.process = None;
        self.runner = Some(Rc::new(Shepherd::start(self.world, self.style.name())));
        self.turn = None;
        self.calls.clear();
        self.paper.reopen();
        let printed = self.session_start("resume");
        self.started(&printed);
    }

    /// `/clear`: the same process, a new session.
    #[track_caller]
    pub fn clear(&mut self) {
        self.paper.flush();
        self.quiet_hook("SessionEnd", json!({"reason": "clear"}));
        self.succeed();
        let printed = self.session_start("clear");
        self.started(&printed);
    }

    /// Makes this the next session of the same process, without any hook.
    pub fn succeed(&mut self) {
        self.session = self.fresh("next");
        self.paper =
            Paper::new(self.style, self.paper.file.with_file_name(format!("{}.jsonl", self.session)));
        self.turn = None;
        self.calls.clear();
    }

    /// `/branch` or `--fork-session`: a copy of the conversation under a new id.
    pub fn fork(&mut self, name: &str) -> Puppet<'w> {
        self.paper.flush();
        let mut fork = self.clone();
        name.clone_into(&mut fork.name);
        fork.session = format!("{}-{name}", self.style.name());
        fork.process = None;
        fork.runner = Some(Rc::new(Shepherd::start(self.world, self.style.name())));
        fork.paper = self.paper.copy_to(self.paper.file.with_file_name(format!("{}.jsonl", fork.session)));
        fork.turn = None;
        fork
    }

    /// The process that stands for the agent.
    pub fn pid(&self) -> Option<u32> {
        let runner = self.runner.as_ref().map(|runner| runner.pid());
        runner.or(self.process.as_ref().map(|process| process.pid()))
    }

    /// How often a message was offered to it so far, by the trail.
    pub fn offers(&self, message: &str) -> usize {
        let trail = self.world.script(&["log", "--limit", "100000", "--json"]).expect(0).stdout;
        let rows = trail.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row"));
        rows.filter(|row| row["kind"] == "offered" && row["message_id"] == message).count()
    }

    /// How often the model has heard each of these messages, by every transcript of the world.
    pub fn heard(&self, message: &str) -> usize {
        paper::heard(self.world).iter().filter(|heard| *heard == message).count()
    }

    /// The message was heard exactly once, and the store knows it.
    #[track_caller]
    pub fn assert_heard_once(&self, message: &str, when: &str) {
        assert_eq!(self.heard(message), 1, "{when}: {message} in the transcripts of {}", self.name);
        assert_eq!(self.world.state(message), "seen", "{when}");
    }
}
