//! Typing into the terminals of the real agents: what is ready takes the line once, a draft and a
//! permission dialog are left alone.
//!
//! One session per agent, in which all of it happens.

use crate::sandbox::{LIMIT, rounds, screen_of};
use baton_agents::{Screen, by_name};
use baton_core::process::Process;
use baton_core::wake::line;
use baton_machine::process;
use baton_mail::wake::terminal::{Typed, type_line};
use baton_testkit::agents::{Agent, Program, Session};
use baton_testkit::claude::Claude;
use baton_testkit::codex::Codex;
use baton_testkit::copilot::Copilot;
use baton_testkit::gemini::Gemini;
use baton_testkit::model::{Kind, Request, Source};
use baton_testkit::opencode::OpenCode;
use baton_testkit::pi::Pi;
use baton_testkit::{Model, Sandbox, Script, Step, Tmux, isolated, wait};
use serde_json::json;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const LINE: &str = "[baton] Mail is waiting for you.";

/// Wakes while a dialog is open.
const AT_A_DIALOG: usize = 20;

#[test]
fn claude_is_typed_into_only_where_it_is_safe() {
    isolated(|| story(Agent::Claude));
}

#[test]
fn codex_is_typed_into_only_where_it_is_safe() {
    isolated(|| story(Agent::Codex));
}

#[test]
fn gemini_is_typed_into_only_where_it_is_safe() {
    isolated(|| story(Agent::Gemini));
}

#[test]
fn copilot_is_typed_into_only_where_it_is_safe() {
    isolated(|| story(Agent::Copilot));
}

#[test]
fn opencode_is_typed_into_only_where_it_is_safe() {
    isolated(|| story(Agent::OpenCode));
}

#[test]
fn pi_is_typed_into_only_where_it_is_safe() {
    isolated(|| story(Agent::Pi));
}

fn story(who: Agent) {
    let (sandbox, model) = (Sandbox::new(), Model::start(Script::by(answer)));
    let terminal = program(who, &sandbox, &model).open(Session::New);
    let process = process_in(&terminal, who);
    let pane = Pane { who, terminal, process, model: &model };
    for _ in 0..rounds() {
        pane.a_ready_box_takes_the_line_once();
    }
    pane.a_draft_is_left_alone();
    // Pi asks no permission.
    if who != Agent::Pi {
        for _ in 0..rounds() {
            pane.a_dialog_that_opens_meanwhile_is_not_answered(&sandbox);
        }
        pane.a_dialog_is_not_answered(&sandbox);
    }
    pane.a_ready_box_takes_the_line_once();
    // The footer of OpenCode's narrow box is broken too, so baton does not recognise the box.
    if who != Agent::OpenCode {
        pane.a_narrow_box_takes_a_long_line();
    }
}

/// An agent whose tools ask the person.
fn program<'a>(who: Agent, sandbox: &'a Sandbox, model: &Model) -> Box<dyn Program<'a> + 'a> {
    match who {
        Agent::Claude => Box::new(Claude::new(sandbox, model).asking()),
        Agent::Codex => Box::new(Codex::new(sandbox, model).asking()),
        Agent::OpenCode => Box::new(OpenCode::new(sandbox, model).asking()),
        Agent::Gemini => Box::new(Gemini::new(sandbox, model).asking()),
        Agent::Copilot => Box::new(Copilot::new(sandbox, model).asking()),
        Agent::Pi => Box::new(Pi::new(sandbox, model)),
    }
}

/// Runs a tool if the prompt says so, and otherwise answers a word.
fn answer(request: &Request) -> Step {
    let said = request.said();
    let after_tool = said.last().is_some_and(|last| matches!(last.source, Source::ToolResult { .. }));
    if after_tool || !request.last_user_text().contains("MAKE-A-FILE") {
        return Step::say("fine");
    }
    let command = "touch approved";
    if request.agent == Agent::Codex {
        let outside = json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "It is needed."});
        return Step::tool("exec_command", outside);
    }
    Step::shell(command)
}

/// The agent's process that is nearest to its hooks, as baton knows it; most agents are started by
/// a launcher.
fn process_in(terminal: &Tmux<'_>, who: Agent) -> Process {
    let agent = by_name(who.name()).expect("we know it");
    let first = terminal.pid().cast_signed();
    let tty = terminal.command(&["display-message", "-p", "-t", "test", "#{pane_tty}"]);
    let tty = Path::new(tty.trim());
    let nearest = || {
        let entries = std::fs::read_dir("/proc").expect("the processes").flatten();
        let running = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let below = |pid: i32| process::lineage(pid).contains(&first) && process::is_foreground(pid, tty);
        let its = running.filter(|pid| below(*pid) && agent.is_process(&process::arguments(*pid)));
        its.max_by_key(|pid| process::lineage(*pid).len())
    };
    // A child that is about to become another program has its name for a moment.
    let mut last = (None, Instant::now());
    let found = wait::poll(LIMIT, || {
        let now = nearest();
        if now != last.0 {
            last = (now, Instant::now());
        }
        now.filter(|_| last.1.elapsed() > Duration::from_millis(500))
    });
    found.and_then(process::find).expect("the agent runs")
}

struct Pane<'a> {
    who: Agent,
    terminal: Tmux<'a>,
    process: Process,
    model: &'a Model,
}

impl Pane<'_> {
    fn wake(&self) -> Typed {
        type_line(by_name(self.who.name()).expect("we know it"), self.process, LINE)
    }

    /// Waits until the screen is taken for this.
    fn wait_for(&self, wanted: &str, is_it: impl Fn(&Screen) -> bool) {
        let screen = || screen_of(&self.terminal, self.who);
        let came = wait::until(LIMIT, || is_it(&screen()));
        assert!(came, "{wanted} never came:\n{}\n{:?}", self.terminal.screen(), screen());
    }

    /// How often the model was asked; for a title it may be asked at any time.
    fn requests(&self) -> usize {
        self.model.requests_of(Kind::Main).len()
    }

    /// How often the line is in the conversation, by the latest request.
    fn lines_sent(&self) -> usize {
        let requests = self.model.requests_of(Kind::Main);
        requests.last().map_or(0, |request| request.count(LINE))
    }

    fn a_ready_box_takes_the_line_once(&self) {
        self.wait_for("an empty box", |screen| *screen == Screen::Ready);
        let (before, requests) = (self.lines_sent(), self.requests());
        // A box is empty for a moment before the turn is shown that its last prompt began.
        let outcome = wait::poll(LIMIT, || Some(self.wake()).filter(|outcome| *outcome != Typed::Busy));
        assert_eq!(outcome, Some(Typed::Typed), "{}", self.terminal.screen());
        // Gemini CLI misses an Enter while it starts. The next wake finds the line in the box, and
        // sends it off.
        let left = Screen::Draft(LINE.to_owned());
        let came = wait::until(LIMIT, || {
            let asked = || self.requests() > requests;
            wait::until(Duration::from_secs(10), asked) || {
                if screen_of(&self.terminal, self.who) == left {
                    self.wake();
                }
                asked()
            }
        });
        assert!(came, "no request came:\n{}", self.terminal.screen());
        self.wait_for("an empty box", |screen| *screen == Screen::Ready);
        assert_eq!(self.lines_sent(), before + 1);
        assert_eq!(self.requests(), requests + 1);
    }

    /// The box breaks the line. What an earlier wake has left in it is sent off as it is.
    fn a_narrow_box_takes_a_long_line(&self) {
        self.terminal.command(&["resize-window", "-t", "test", "-x", "44", "-y", "40"]);
        let long = line::line(&["reviewer".to_owned(), "birch".to_owned()], 12);
        let agent = by_name(self.who.name()).expect("we know it");
        let in_box = |screen: &Screen| matches!(screen, Screen::Draft(text) if line::is_line_in_box(text));
        let short = self.lines_sent();
        for left in [false, true] {
            self.wait_for("an empty box", |screen| *screen == Screen::Ready);
            let requests = self.requests();
            if left {
                self.terminal.type_text(&long);
                self.wait_for("the line in the box", in_box);
            }
            let typed = if left { LINE } else { &long };
            let outcome = wait::poll(LIMIT, || {
                Some(type_line(agent, self.process, typed)).filter(|outcome| *outcome != Typed::Busy)
            });
            assert_eq!(outcome, Some(Typed::Typed), "{}", self.terminal.screen());
            let came = wait::until(LIMIT, || {
                let asked = || self.requests() > requests;
                wait::until(Duration::from_secs(10), asked) || {
                    if in_box(&screen_of(&self.terminal, self.who)) {
                        self.wake();
                    }
                    asked()
                }
            });
            assert!(came, "no request came:\n{}", self.terminal.screen());
        }
        let last = self.model.requests_of(Kind::Main).pop().expect("a request");
        assert_eq!((last.count(&long), self.lines_sent()), (2, short), "{:?}", last.said());
    }

    fn a_draft_is_left_alone(&self) {
        let requests = self.requests();
        self.terminal.type_text("half a thought");
        let is_draft = |screen: &Screen| *screen == Screen::Draft("half a thought".to_owned());
        self.wait_for("the draft", is_draft);
        assert_eq!(self.wake(), Typed::Draft);
        self.wait_for("the same draft", is_draft);
        assert_eq!(self.requests(), requests);
        for _ in 0.."half a thought".len() {
            self.terminal.press(&["BSpace"]);
        }
        self.wait_for("an empty box", |screen| *screen == Screen::Ready);
    }

    /// Wakes all the time while a prompt is sent off, the turn begins and the dialog opens.
    fn a_dialog_that_opens_meanwhile_is_not_answered(&self, sandbox: &Sandbox) {
        self.terminal.type_text("please MAKE-A-FILE now");
        self.wait_for("the prompt", |screen| matches!(screen, Screen::Draft(_)));
        // An Enter that follows too soon is taken for a part of the text.
        thread::sleep(Duration::from_millis(300));
        self.terminal.press(&["Enter"]);
        let mut outcomes = Vec::new();
        let opened = wait::until(LIMIT, || {
            outcomes.push(self.wake());
            outcomes.last() == Some(&Typed::Dialog)
        });
        assert!(opened, "no dialog came: {outcomes:?}\n{}", self.terminal.screen());
        let failed = outcomes.iter().any(|outcome| matches!(outcome, Typed::Failed(_) | Typed::NoPane));
        assert!(!failed, "{outcomes:?}");
        self.empty_the_box();
        assert!(!sandbox.path("project/approved").exists(), "approved by one of {outcomes:?}");
    }

    /// Ends whatever is left, and takes out what was left in the box or put back into it.
    fn empty_the_box(&self) {
        let emptied = wait::until(LIMIT, || {
            match screen_of(&self.terminal, self.who) {
                Screen::Ready => return true,
                Screen::Draft(text) => {
                    for _ in 0..text.chars().count() {
                        self.terminal.press(&["BSpace"]);
                    }
                }
                Screen::Dialog => {
                    // One that has just opened does not hear the first keys.
                    self.terminal.press(&["Escape"]);
                    thread::sleep(Duration::from_millis(500));
                }
                Screen::Busy | Screen::Unknown => {}
            }
            false
        });
        assert!(emptied, "the box is not empty:\n{}", self.terminal.screen());
    }

    fn a_dialog_is_not_answered(&self, sandbox: &Sandbox) {
        let approved = || sandbox.path("project/approved").exists();
        self.terminal.submit("please MAKE-A-FILE now");
        self.wait_for("the dialog", |screen| *screen == Screen::Dialog);
        let requests = self.requests();
        for _ in 0..AT_A_DIALOG {
            assert_eq!(self.wake(), Typed::Dialog, "{}", self.terminal.screen());
        }
        // Even if one were opened between the look and the paste: the paste by itself answers
        // nothing.
        for _ in 0..AT_A_DIALOG {
            self.terminal.command(&["set-buffer", "-b", "line", "--", LINE]);
            self.terminal.command(&["paste-buffer", "-p", "-d", "-b", "line", "-t", "test"]);
        }
        let answered = wait::until(Duration::from_secs(1), || approved() || self.requests() > requests);
        assert!(!answered, "the dialog was answered:\n{}", self.terminal.screen());
        self.wait_for("the same dialog", |screen| *screen == Screen::Dialog);
        self.terminal.press(&["Enter"]);
        assert!(wait::until(LIMIT, approved), "the person was not heard:\n{}", self.terminal.screen());
    }
}
