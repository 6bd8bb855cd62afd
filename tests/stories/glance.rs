//! The person at an agent's terminal sees who wrote to whom, and how each message begins. The model
//! gets none of that.
//!
//! The name of each story begins with that of its agent, by which `scripts/test --agent` finds it.

use crate::sandbox::{LIMIT, StorySandbox, submit};
use crate::sync_points::{Barrier, UNTIL_TOLD, end_tools};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::copilot::Copilot;
use baton_testkit::model::Kind;
use baton_testkit::{Script, Step, Tmux, isolated};

const WITH_A_TOOL: &str = "use a tool";
const WITHOUT: &str = "only answer";

/// The screen shows a line, whatever is drawn beside it.
#[track_caller]
fn sees(stage: &StorySandbox, terminal: &Tmux<'_>, line: &str) {
    terminal.wait_for(line, LIMIT).unwrap_or_else(|error| panic!("{error}{}", stage.trouble()));
}

/// The lines at a prompt, between tools and, if the agent takes mail there, at the end of a turn.
fn shows_who_wrote(who: Agent, at_stop: bool) {
    let answered = Barrier::default();
    let held = answered.clone();
    let script = Script::by(move |request| {
        if request.shows(WITHOUT) && !request.shows("MAIL-STOP") {
            held.wait(1);
            return Step::say("thinking");
        }
        let needs_tool = request.shows(WITH_A_TOOL) && request.results().is_empty();
        if needs_tool { Step::shell(UNTIL_TOLD) } else { Step::say("fine") }
    });
    let stage = StorySandbox::bare(script).without_waking();
    if who == Agent::Copilot {
        Copilot::new(&stage.sandbox, &stage.model).turn_extensions_on();
    }
    stage.prepare(&[who]);
    let terminal = stage.open(who, Session::New);
    submit(&terminal, who, "first words");
    stage.request(|request| request.shows("first words"));
    let name = stage.name_of(who);
    stage.is_in_state("idle");

    stage.send(&name, "MAIL-PROMPT the schema\nbaton → you: changed");
    submit(&terminal, who, WITH_A_TOOL);
    sees(&stage, &terminal, &format!("script → {name}: MAIL-PROMPT the schema"));
    let screen = terminal.screen();
    assert!(!screen.lines().any(|line| line.trim_start().starts_with("baton →")), "{screen}");

    for body in ["MAIL-TOOL-1", "MAIL-TOOL-2"] {
        stage.send(&name, body);
    }
    end_tools(&stage);
    for body in ["MAIL-TOOL-1", "MAIL-TOOL-2"] {
        sees(&stage, &terminal, &format!("script → {name}: {body}"));
    }
    stage.is_in_state("idle");
    let mut bodies = vec!["MAIL-PROMPT", "MAIL-TOOL-1", "MAIL-TOOL-2"];
    if at_stop {
        submit(&terminal, who, WITHOUT);
        stage.request(|request| request.shows(WITHOUT));
        stage.send(&name, "MAIL-STOP");
        answered.open();
        sees(&stage, &terminal, &format!("script → {name}: MAIL-STOP"));
        stage.is_in_state("idle");
        bodies.push("MAIL-STOP");
    }
    for body in bodies {
        stage.seen_once(body);
    }
    for request in stage.model.requests_of(Kind::Main) {
        assert!(!request.shows(&format!("script → {name}")), "the line is for the person alone");
    }
}

#[test]
fn claude_shows_who_wrote() {
    isolated(|| shows_who_wrote(Agent::Claude, true));
}

#[test]
fn codex_shows_who_wrote() {
    isolated(|| shows_who_wrote(Agent::Codex, true));
}

#[test]
fn gemini_shows_who_wrote() {
    isolated(|| shows_who_wrote(Agent::Gemini, true));
}

#[test]
fn copilot_shows_who_wrote() {
    isolated(|| shows_who_wrote(Agent::Copilot, true));
}

#[test]
fn opencode_shows_who_wrote() {
    isolated(|| shows_who_wrote(Agent::OpenCode, false));
}

#[test]
fn pi_shows_who_wrote() {
    isolated(|| shows_who_wrote(Agent::Pi, true));
}

/// Mail that a plugin pushes into an idle session.
fn shows_who_wrote_while_idle(who: Agent) {
    let stage = StorySandbox::with(&[who], Script::by(|_| Step::say("fine")));
    let terminal = stage.open(who, Session::New);
    submit(&terminal, who, "first words");
    stage.request(|request| request.shows("first words"));
    let name = stage.name_of(who);
    stage.is_in_state("idle");
    stage.send(&name, "MAIL-IDLE");
    sees(&stage, &terminal, &format!("script → {name}: MAIL-IDLE"));
    stage.arrives("MAIL-IDLE");
}

#[test]
fn opencode_shows_who_wrote_while_idle() {
    isolated(|| shows_who_wrote_while_idle(Agent::OpenCode));
}

#[test]
fn pi_shows_who_wrote_while_idle() {
    isolated(|| shows_who_wrote_while_idle(Agent::Pi));
}

#[test]
fn claude_shows_nothing_if_the_person_wants_that() {
    isolated(|| {
        let stage = StorySandbox::with(&[Agent::Claude], Script::by(|_| Step::say("fine")));
        stage.configure("wake = \"off\"\n[mail]\nshow = \"off\"\n");
        let terminal = stage.open(Agent::Claude, Session::New);
        submit(&terminal, Agent::Claude, "first words");
        stage.request(|request| request.shows("first words"));
        let name = stage.name_of(Agent::Claude);
        stage.is_in_state("idle");
        stage.send(&name, "MAIL-QUIET");
        submit(&terminal, Agent::Claude, "second words");
        stage.arrives("MAIL-QUIET");
        stage.is_in_state("idle");
        assert!(!terminal.screen().contains("MAIL-QUIET"), "{}", terminal.screen());
    });
}
