//! Gemini CLI: the moments at which mail comes, and what it does differently from the others.

use crate::moments;
use crate::sandbox::{self, LIMIT, StorySandbox, press_until};
use crate::sync_points::{Barrier, UNTIL_TOLD, end_tools};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::gemini::Gemini;
use baton_testkit::model::Kind;
use baton_testkit::{Script, Step, Tmux, isolated, wait};
use serde_json::json;
use std::fs;
use std::time::Duration;

const WHO: Agent = Agent::Gemini;
/// The default of `mail.stops_in_a_row`.
const STOPS_IN_A_ROW: usize = 5;

fn stage(script: Script) -> StorySandbox {
    StorySandbox::with(&[WHO], script).without_waking()
}

fn wait_for(terminal: &Tmux<'_>, text: &str) {
    terminal.wait_for(text, LIMIT).unwrap_or_else(|error| panic!("{error}"));
}

/// Types a line once the input takes it: not while a turn ends or the screen is cleared.
fn submit(stage: &StorySandbox, terminal: &Tmux<'_>, text: &str) {
    stage.is_in_state("idle");
    wait_for(terminal, "Type your message");
    sandbox::submit(terminal, WHO, text);
}

/// Gives a command once its description is there: before, Enter only completes what was typed.
fn command(stage: &StorySandbox, terminal: &Tmux<'_>, name: &str, description: &str) {
    stage.is_in_state("idle");
    wait_for(terminal, "Type your message");
    terminal.type_text(name);
    wait_for(terminal, description);
    let typed = format!("* {name}");
    let given = wait::until(LIMIT, || {
        terminal.press(&["Enter"]);
        wait::until(Duration::from_secs(1), || !terminal.screen().contains(&typed))
    });
    assert!(given, "{}", terminal.screen());
}

const CLEARS: &str = "Clear the screen";
const REWINDS: &str = "Jump back";

#[test]
fn gemini_has_mail_sent_while_a_tool_runs_in_the_next_request() {
    isolated(|| moments::while_a_tool_runs(WHO));
}

#[test]
fn gemini_has_it_once_from_parallel_tools() {
    isolated(|| moments::parallel_tools(WHO));
}

/// Its limit is on a result and the mail together, and each angle bracket of the mail becomes four
/// characters.
#[test]
fn gemini_has_long_mail_whole_behind_a_long_result() {
    isolated(|| {
        let stage = stage(Script::by(|request| match request.results().len() {
            0 => Step::shell(format!("{UNTIL_TOLD}; seq 20000")),
            _ => Step::say("finished"),
        }));
        let agent = stage.start(WHO, Session::New, "please begin");
        stage.request(|_| true);
        let name = stage.name_of(WHO);
        let brackets = "<".repeat(6_000);
        stage.send(&name, &format!("MAIL-LONG-BEGIN {brackets} MAIL-LONG-END"));
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        let requests = stage.model.requests_of(Kind::Main);
        assert!(requests[1].shows("characters omitted"), "the result was too long to begin with");
        for text in ["MAIL-LONG-BEGIN", "MAIL-LONG-END"] {
            assert_eq!(requests[1].count(text), 1, "{text}: {}", stage.trouble());
        }
        assert_eq!(stage.end_of("MAIL-LONG-BEGIN"), "seen", "{}", stage.trouble());
    });
}

#[test]
fn gemini_goes_on_with_mail_that_came_before_the_turn_ended() {
    isolated(|| moments::before_the_turn_ends(WHO));
}

/// Mail waits at each stop, so that only the limit ends the turn.
#[test]
fn gemini_is_kept_from_stopping_five_times_in_a_row_and_no_more() {
    isolated(|| {
        let sent = Barrier::default();
        let before = sent.clone();
        let stage = stage(Script::by(move |request| {
            before.wait(request.index + 1);
            Step::say("and on")
        }));
        let agent = stage.start(WHO, Session::New, "please begin");
        for round in 0..=STOPS_IN_A_ROW {
            stage.request(|request| request.index == round);
            stage.send(&stage.name_of(WHO), &format!("MAIL-AGAIN-{round}."));
            sent.open();
        }
        agent.finish(LIMIT).expect_ok();
        let requests = stage.model.requests_of(Kind::Main);
        assert_eq!(requests.len(), 1 + STOPS_IN_A_ROW, "{}", stage.trouble());
        for round in 0..STOPS_IN_A_ROW {
            stage.shown_once(&format!("MAIL-AGAIN-{round}."));
            assert_eq!(stage.end_of(&format!("MAIL-AGAIN-{round}.")), "seen", "{}", stage.trouble());
        }
        assert_eq!(stage.state_of(&format!("MAIL-AGAIN-{STOPS_IN_A_ROW}.")), "queued", "{}", stage.trouble());
    });
}

#[test]
fn gemini_has_waiting_mail_after_its_resume_with_the_prompt() {
    isolated(|| {
        let stage = stage(Script::by(|_| Step::say("finished")));
        let run = stage.run(WHO, Session::New, "FIRST-PROMPT");
        let session = stage.session_id(WHO, &run);
        stage.send(&session, "MAIL-WAITING-1");
        stage.send(&session, "MAIL-WAITING-2");
        stage.run(WHO, Session::Resume(&session), "SECOND-PROMPT");
        for body in ["MAIL-WAITING-1", "MAIL-WAITING-2"] {
            stage.shown_once(body);
            assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
        }
        stage.run(WHO, Session::Resume(&session), "THIRD-PROMPT");
        let last = stage.model.requests_of(Kind::Main).pop().expect("a request after the resume");
        // All that was said is still there, and nothing twice.
        for text in ["FIRST-PROMPT", "SECOND-PROMPT", "THIRD-PROMPT", "MAIL-WAITING-1", "MAIL-WAITING-2"] {
            assert_eq!(last.count(text), 1, "{text}: {}", stage.trouble());
        }
        let names = stage.json(&["who", "--all"]).as_array().map_or(0, Vec::len);
        assert_eq!(names, 1, "one participant for all three: {}", stage.trouble());
    });
}

#[test]
fn gemini_has_it_once_after_being_killed() {
    isolated(|| moments::killed_and_resumed(WHO));
}

/// The prompt goes, and the mail that came with it: it comes again with the next. At the Esc itself
/// nothing keeps the turn going.
#[test]
fn gemini_has_it_again_after_the_person_took_the_prompt_back() {
    isolated(|| {
        let stage = stage(Script::by(|request| {
            if request.shows("SECOND-PROMPT") { Step::say("finished") } else { Step::Hang }
        }));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        stage.send(&name, "MAIL-ESC-1");
        submit(&stage, &terminal, "FIRST-PROMPT");
        stage.request(|request| request.shows("MAIL-ESC-1"));
        stage.send(&name, "MAIL-ESC-2");
        press_until(&terminal, &["Escape"], |screen| screen.contains("cancelled"));
        stage.is_in_state("idle");
        assert_eq!(stage.model.requests_of(Kind::Main).len(), 1, "Esc ends the turn: {}", stage.trouble());
        assert_eq!(stage.state_of("MAIL-ESC-2"), "queued", "{}", stage.trouble());
        let screen = terminal.screen();
        assert!(!screen.contains("blocked"), "nothing keeps the person from ending it: {screen}");
        submit(&stage, &terminal, "SECOND-PROMPT");
        wait_for(&terminal, "finished");
        for body in ["MAIL-ESC-1", "MAIL-ESC-2"] {
            assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
            stage.shown_once(body);
        }
    });
}

#[test]
fn gemini_keeps_its_participant_and_its_mail_at_clear() {
    isolated(|| {
        let stage = stage(Script::by(|_| Step::say("finished")));
        let terminal = stage.open(WHO, Session::New);
        submit(&stage, &terminal, "please begin");
        wait_for(&terminal, "finished");
        let name = stage.name_of(WHO);
        let before = stage.json(&["who"])[0]["session_id"].clone();
        command(&stage, &terminal, "/clear", CLEARS);
        let cleared = wait::until(LIMIT, || {
            let here = stage.json(&["who"]);
            here[0]["session_id"] != before && here[0]["name"] == name.as_str()
        });
        assert!(cleared, "{}{}", terminal.screen(), stage.trouble());
        stage.send(&name, "MAIL-AFTER-CLEAR");
        let empty = |screen: &str| !screen.contains("finished") && screen.contains("Type your message");
        terminal.wait_until("an empty screen", LIMIT, empty).unwrap_or_else(|error| panic!("{error}"));
        submit(&stage, &terminal, "go on");
        stage.request(|request| request.shows("MAIL-AFTER-CLEAR"));
        assert_eq!(stage.end_of("MAIL-AFTER-CLEAR"), "seen", "{}", stage.trouble());
        stage.shown_once("MAIL-AFTER-CLEAR");
    });
}

/// It drops what a hook says at a clear, so the asks are listed with the first prompt after it, and
/// with no other.
#[test]
fn gemini_is_told_its_open_asks_again_after_clear() {
    isolated(|| {
        let stage = stage(Script::by(|_| Step::say("finished")));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        let mut ask = stage.sandbox.start(stage.sandbox.command("baton").args(["ask", &name, "QUESTION-1"]));
        assert!(wait::until(LIMIT, || stage.state_of("QUESTION-1") == "queued"), "{}", stage.trouble());
        submit(&stage, &terminal, "please begin");
        stage.request(|request| request.shows("QUESTION-1"));
        wait_for(&terminal, "finished");
        let before = stage.json(&["who"])[0]["session_id"].clone();
        command(&stage, &terminal, "/clear", CLEARS);
        let cleared = wait::until(LIMIT, || stage.json(&["who"])[0]["session_id"] != before);
        assert!(cleared, "{}{}", terminal.screen(), stage.trouble());
        let empty = |screen: &str| !screen.contains("finished") && screen.contains("Type your message");
        terminal.wait_until("an empty screen", LIMIT, empty).unwrap_or_else(|error| panic!("{error}"));
        for prompt in ["PROMPT-AFTER-IT", "AND-ANOTHER"] {
            submit(&stage, &terminal, prompt);
            let after = stage.request(|request| request.shows(prompt));
            assert_eq!(after.count("asked you in"), 1, "{prompt}: {:?}", after.said());
            assert_eq!(after.count("QUESTION-1"), 1, "{prompt}: {:?}", after.said());
        }
        ask.kill();
    });
}

/// Whoever sends mail while the person is asked whether a tool may run answers nothing.
#[test]
fn gemini_keeps_its_permission_dialog_when_mail_comes() {
    isolated(|| {
        let stage = stage(Script::by(|request| match request.results().len() {
            0 => Step::shell("touch ran-without-a-word"),
            _ => Step::say("finished"),
        }));
        let terminal = Gemini::new(&stage.sandbox, &stage.model).asking().open("gemini", Session::New);
        submit(&stage, &terminal, "please begin");
        wait_for(&terminal, "Allow");
        stage.is_in_state("blocked");
        stage.send(&stage.name_of(WHO), "MAIL-AT-THE-DIALOG");
        // Long enough for a wake that should not come.
        std::thread::sleep(Duration::from_secs(1));
        let ran = stage.sandbox.project().join("ran-without-a-word");
        assert!(!ran.exists(), "nobody allowed it");
        assert_eq!(stage.state_of("MAIL-AT-THE-DIALOG"), "queued", "{}", stage.trouble());
        assert!(terminal.screen().contains("Allow"), "{}", terminal.screen());
        terminal.press(&["Enter"]);
        stage.request(|request| request.shows("MAIL-AT-THE-DIALOG"));
        stage.seen_once("MAIL-AT-THE-DIALOG");
        assert!(ran.exists(), "the person allowed it");
    });
}

/// What the model had answered is not repeated; what came meanwhile comes with the prompt that
/// takes the place of the old one.
#[test]
fn gemini_has_nothing_twice_after_a_rewind() {
    isolated(|| {
        let stage = stage(Script::by(|_| Step::say("finished")));
        let terminal = stage.open(WHO, Session::New);
        let name = stage.name_of(WHO);
        submit(&stage, &terminal, "FIRST-PROMPT");
        wait_for(&terminal, "finished");
        stage.is_in_state("idle");
        stage.send(&name, "MAIL-BEFORE-REWIND");
        submit(&stage, &terminal, "SECOND-PROMPT");
        stage.request(|request| request.shows("MAIL-BEFORE-REWIND"));
        assert_eq!(stage.end_of("MAIL-BEFORE-REWIND"), "seen", "{}", stage.trouble());
        command(&stage, &terminal, "/rewind", REWINDS);
        wait_for(&terminal, "● Stay at current position");
        stage.send(&name, "MAIL-DURING-REWIND");
        terminal.press(&["Up"]);
        wait_for(&terminal, "● SECOND-PROMPT");
        terminal.press(&["Enter"]);
        wait_for(&terminal, "● 1. Rewind conversation");
        terminal.press(&["Enter"]);
        // The old prompt is in the input line again.
        wait_for(&terminal, "* SECOND-PROMPT");
        terminal.submit(", but better");
        let after = stage.request(|request| request.shows("but better"));
        assert_eq!(after.count("MAIL-BEFORE-REWIND"), 0, "{:?}", after.said());
        assert_eq!(after.count("MAIL-DURING-REWIND"), 1, "{:?}", after.said());
        stage.seen_once("MAIL-DURING-REWIND");
        assert_eq!(stage.state_of("MAIL-BEFORE-REWIND"), "seen");
        submit(&stage, &terminal, "LAST-PROMPT");
        let last = stage.request(|request| request.shows("LAST-PROMPT"));
        assert_eq!(last.count("MAIL-BEFORE-REWIND"), 0, "{:?}", last.said());
    });
}

#[test]
fn a_subagent_of_gemini_does_not_eat_its_parents_mail() {
    isolated(|| {
        let script = Script::by(|request| match request.results().len() {
            0 => Step::tool("invoke_agent", json!({"agent_name": "generalist", "prompt": "SUBAGENT-PROMPT"})),
            _ => Step::say("finished"),
        })
        .subagents(|request| match request.results().len() {
            0 => Step::shell(format!("{UNTIL_TOLD}; echo in-the-subagent")),
            1 => Step::mcp("baton", "read_messages", json!({})),
            _ => Step::tool("complete_task", json!({"result": {"response": "subagent finished"}})),
        });
        let stage = stage(script);
        let agent = stage.start(WHO, Session::New, "use a subagent");
        let began = stage.model.wait_for(LIMIT, |request| request.kind == Kind::Subagent);
        assert!(began.is_some(), "no subagent began: {}", stage.trouble());
        stage.send(&stage.name_of(WHO), "MAIL-FOR-THE-PARENT");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        let below = stage.model.requests_of(Kind::Subagent);
        assert!(below.iter().any(|request| request.shows("you are a subagent")), "{}", stage.trouble());
        assert!(!below.iter().any(|request| request.shows("MAIL-FOR-THE-PARENT")), "{}", stage.trouble());
        stage.shown_once("MAIL-FOR-THE-PARENT");
        assert_eq!(stage.end_of("MAIL-FOR-THE-PARENT"), "seen", "{}", stage.trouble());
    });
}

/// By its MCP server, which knows its session by the process above it alone.
#[test]
fn gemini_answers_an_ask_and_reads_its_mail_by_tool() {
    isolated(|| {
        let stage = stage(Script::by(|request| {
            let results = request.results();
            let asked = request.word_after("with message_id ");
            match (results.len(), asked) {
                (200.., _) => Step::say("nobody asked"),
                // Five equal calls in a row would be a loop to it, and the end of the turn.
                (calls, None) => Step::shell(format!("sleep 0.3; : {calls}")),
                _ if request.shows("MAIL-BY-TOOL") => Step::say("finished"),
                (_, Some(_)) if request.shows("\"wake\"") => Step::mcp("baton", "read_messages", json!({})),
                (_, Some(message)) => Step::mcp(
                    "baton",
                    "reply_to_message",
                    json!({"message_id": message, "body": "ANSWER-42"}),
                ),
            }
        }));
        let agent = stage.start(WHO, Session::New, "answer your mail");
        let name = stage.name_of(WHO);
        let answer = stage.baton(&["ask", &name, "QUESTION-1: how many?", "--timeout", "100s"]).expect_ok();
        assert_eq!(answer.stdout.trim(), "ANSWER-42", "{}", stage.trouble());
        stage.send(&name, "MAIL-BY-TOOL");
        agent.finish(LIMIT).expect_ok();
        for body in ["QUESTION-1", "MAIL-BY-TOOL"] {
            stage.shown_once(body);
            assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
        }
    });
}

/// Its shell names no session, so the process tree says whose it is.
#[test]
fn gemini_sends_and_reads_in_its_shell() {
    isolated(|| {
        let stage = stage(Script::by(|request| match request.results().len() {
            0 => Step::shell("baton whoami; baton inbox --wait 20s"),
            _ => Step::say("finished"),
        }));
        let agent = stage.start(WHO, Session::New, "read your mail");
        stage.request(|_| true);
        let name = stage.name_of(WHO);
        stage.send(&name, "MAIL-IN-THE-SHELL");
        agent.finish(LIMIT).expect_ok();
        let last = stage.model.requests_of(Kind::Main).pop().expect("a request after the tool");
        assert!(last.results()[0].text.contains(&name), "{:?}", last.results());
        stage.shown_once("MAIL-IN-THE-SHELL");
        assert_eq!(stage.end_of("MAIL-IN-THE-SHELL"), "seen", "{}", stage.trouble());
    });
}

/// Started by an agent whose shell says whose it is, which its own does not: the nearer one counts.
#[test]
fn gemini_in_the_shell_of_another_agent_is_itself() {
    isolated(|| {
        let stage = stage(Script::by(|request| match request.results().len() {
            0 => Step::shell("echo $CLAUDE_CODE_SESSION_ID; baton whoami"),
            _ => Step::say("finished"),
        }));
        let mut command = Gemini::new(&stage.sandbox, &stage.model).headless(Session::New, "who are you?");
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "session-of-claude");
        stage.sandbox.run(&mut command, LIMIT).expect_ok();
        let last = stage.model.requests_of(Kind::Main).pop().expect("a request after the tool");
        let here = stage.json(&["who", "--all"]);
        assert_eq!(here.as_array().map_or(0, Vec::len), 1, "{here}");
        let name = here[0]["name"].as_str().expect("a name");
        assert!(last.shows("session-of-claude"), "its shell has the other's environment");
        assert!(last.results()[0].text.contains(name), "{:?}", last.results());
    });
}

#[test]
fn setup_and_remove_give_gemini_every_byte_back() {
    isolated(|| {
        let stage = StorySandbox::bare(Script::by(|_| Step::say("finished")));
        Gemini::new(&stage.sandbox, &stage.model);
        let path = stage.sandbox.home().join(".gemini/settings.json");
        let text = fs::read_to_string(&path).unwrap().replacen('{', "{ // mine\n  ", 1);
        fs::write(&path, &text).unwrap();
        stage.baton(&["setup", "gemini", "--dry-run"]).expect_ok();
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "a dry run changes nothing");
        stage.baton(&["setup", "gemini"]).expect_ok();
        let once = fs::read_to_string(&path).unwrap();
        assert_ne!(once, text);
        stage.baton(&["setup", "gemini"]).expect_ok();
        assert_eq!(fs::read_to_string(&path).unwrap(), once, "twice is the same as once");
        let run = stage.run(WHO, Session::New, "please begin");
        assert!(!run.stderr.contains("Invalid configuration"), "{}", run.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), once, "it does not rewrite the file");
        assert_eq!(stage.json(&["who", "--all"]).as_array().map_or(0, Vec::len), 1, "{}", stage.trouble());
        stage.baton(&["setup", "gemini", "--remove"]).expect_ok();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        stage.run(WHO, Session::New, "once more");
        assert_eq!(stage.json(&["who", "--all"]).as_array().map_or(0, Vec::len), 1, "nobody new");
    });
}
