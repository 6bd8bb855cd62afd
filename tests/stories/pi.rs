//! Stories with the real Pi: its extension and the link bring mail at a prompt, between tools, at a
//! stop and into an idle session.

use crate::moments;
use crate::sandbox::{LIMIT, StorySandbox, press_until, rounds};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::Kind;
use baton_testkit::pi::Pi;
use baton_testkit::process::Finished;
use baton_testkit::process::write_program;
use baton_testkit::{Script, Step, Tmux, isolated, wait};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PI: &[Agent] = &[Agent::Pi];

fn pi(stage: &StorySandbox) -> Pi<'_> {
    Pi::new(&stage.sandbox, &stage.model)
}

/// As many tools as it says, then the end.
fn tools(count: usize) -> Script {
    Script::by(
        move |request| {
            if request.results().len() < count { Step::shell("sleep 0.3") } else { Step::say("finished") }
        },
    )
}

fn talk() -> Script {
    Script::by(|_| Step::say("finished"))
}

#[test]
fn pi_takes_mail_with_a_tools_result() {
    isolated(|| {
        for round in 0..rounds() {
            let stage = StorySandbox::with(
                PI,
                Script::by(|request| match request.results().len() {
                    0 => Step::shell(format!("{UNTIL_TOLD}; echo from-the-tool")),
                    _ => Step::say("finished"),
                }),
            );
            let agent = stage.start(Agent::Pi, Session::New, "please begin");
            stage.request(|_| true);
            let body = format!("MAIL-MID-{round}");
            stage.send(&stage.name_of(Agent::Pi), &body);
            end_tools(&stage);
            let run = agent.finish(LIMIT).expect_ok();
            stage.arrives(&body);
            let second = &stage.model.requests_of(Kind::Main)[1];
            assert!(second.results()[0].text.contains(&body), "with the tool's result: {}", stage.trouble());
            assert!(second.results()[0].text.contains("from-the-tool"), "which stays");
            let session = stage.session_id(Agent::Pi, &run);
            let stored = pi(&stage).session_lines(&session).iter().filter(|line| holds(line, &body)).count();
            assert_eq!(stored, 1, "it is in Pi's file once");
        }
    });
}

fn holds(line: &Value, text: &str) -> bool {
    line.to_string().contains(text)
}

#[test]
fn parallel_tools_of_pi_bring_it_once() {
    isolated(|| moments::parallel_tools(Agent::Pi));
}

#[test]
fn mail_keeps_pi_from_stopping() {
    isolated(|| moments::before_the_turn_ends(Agent::Pi));
}

#[test]
fn mail_for_pi_waits_for_its_resume_and_comes_with_the_prompt_in_order() {
    isolated(|| {
        let stage = StorySandbox::with(PI, talk());
        let run = stage.run(Agent::Pi, Session::New, "please begin");
        let session = stage.session_id(Agent::Pi, &run);
        for body in ["MAIL-WAITING-1", "MAIL-WAITING-2"] {
            stage.send(&session, body);
        }
        let requests = stage.model.requests_of(Kind::Main).len();
        stage.run(Agent::Pi, Session::Resume(&session), "go on");
        for body in ["MAIL-WAITING-1", "MAIL-WAITING-2"] {
            stage.arrives(body);
        }
        let first = &stage.model.requests_of(Kind::Main)[requests];
        let text: String = first.said().iter().map(|said| said.text.clone()).collect();
        assert!(text.find("MAIL-WAITING-1").unwrap() < text.find("MAIL-WAITING-2").unwrap(), "in order");
        // What was shown stays in the conversation, and is not offered again.
        stage.run(Agent::Pi, Session::Resume(&session), "and again");
        stage.shown_once("MAIL-WAITING-1");
    });
}

#[test]
fn an_idle_pi_in_a_terminal_gets_its_mail_at_once() {
    isolated(|| {
        for _ in 0..rounds() {
            moments::while_idle(Agent::Pi, |script| StorySandbox::with(PI, script));
        }
    });
}

#[test]
fn messages_of_one_instant_come_once_each_to_pi() {
    isolated(|| {
        let stage = StorySandbox::with(PI, talk());
        let _terminal = stage.open(Agent::Pi, Session::New);
        moments::of_one_instant(&stage, &stage.name_of(Agent::Pi));
    });
}

/// `pi --mode rpc` with its standard input open.
struct Rpc(Child);

impl Rpc {
    fn start(stage: &StorySandbox, arguments: &[&str]) -> Self {
        let mut command = pi(stage).rpc(Session::New);
        let child =
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.expect("start Pi"))
    }

    fn say(&mut self, command: &Value) {
        let input = self.0.stdin.as_mut().expect("its standard input");
        writeln!(input, "{command}").expect("Pi reads its standard input");
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn an_idle_pi_without_a_terminal_gets_its_mail_at_once() {
    isolated(|| {
        let stage = StorySandbox::with(PI, talk());
        let mut rpc = Rpc::start(&stage, &[]);
        let name = stage.name_of(Agent::Pi);
        rpc.say(&json!({"id": "1", "type": "prompt", "message": "please begin"}));
        stage.request(|request| request.shows("please begin"));
        stage.is_in_state("idle");
        stage.send(&name, "MAIL-RPC");
        stage.arrives("MAIL-RPC");
        stage.is_in_state("idle");
        drop(rpc);
        let gone = wait::until(LIMIT, || stage.json(&["who"]).as_array().is_some_and(Vec::is_empty));
        assert!(gone, "the link says that its agent is gone: {}", stage.json(&["who"]));
    });
}

#[test]
fn e4_pi_takes_mail_while_it_is_idle_after_its_link_was_killed() {
    isolated(|| {
        let stage = StorySandbox::with(PI, talk());
        let mut rpc = Rpc::start(&stage, &[]);
        let name = stage.name_of(Agent::Pi);
        rpc.say(&json!({"id": "1", "type": "prompt", "message": "please begin"}));
        stage.request(|request| request.shows("please begin"));
        stage.is_in_state("idle");
        moments::the_link_is_killed(&stage, &name);
    });
}

/// Another extension holds a prompt up, so that mail comes while it is on its way.
#[test]
fn a_push_does_not_cost_the_person_a_prompt() {
    isolated(|| {
        let stage = StorySandbox::with(PI, talk());
        let slow = "import { existsSync, writeFileSync } from 'node:fs';
            export default (pi) => pi.on('input', () => new Promise((go) => {
                writeFileSync('on-its-way', '');
                const timer = setInterval(() => existsSync('tools-may-end') && go(clearInterval(timer)), 50);
            }));";
        fs::write(stage.sandbox.home().join(".pi/agent/extensions/slow.js"), slow).unwrap();
        let mut rpc = Rpc::start(&stage, &[]);
        let name = stage.name_of(Agent::Pi);
        stage.is_in_state("idle");
        rpc.say(&json!({"id": "1", "type": "prompt", "message": "PROMPT-OF-THE-PERSON"}));
        let held = stage.sandbox.project().join("on-its-way");
        assert!(wait::until(LIMIT, || held.exists()), "{}", stage.trouble());
        stage.send(&name, "MAIL-MEANWHILE");
        // Long enough for a push that should not come: it takes a few milliseconds.
        std::thread::sleep(Duration::from_secs(1));
        end_tools(&stage);
        let asked = stage.request(|_| true);
        assert!(asked.shows("PROMPT-OF-THE-PERSON"), "the prompt is the first that the model sees");
        stage.arrives("MAIL-MEANWHILE");
    });
}

#[test]
fn a_killed_pi_has_it_once_after_its_resume() {
    isolated(|| {
        for round in 0..rounds().max(3) {
            let stage = StorySandbox::with(PI, tools(4));
            let run = stage.run(Agent::Pi, Session::New, "please begin");
            let session = stage.session_id(Agent::Pi, &run);
            let body = format!("MAIL-KILL-{round}");
            stage.send(&session, &body);
            let before = stage.model.requests().len();
            let mut agent = stage.start(Agent::Pi, Session::Resume(&session), "go on");
            stage.request(|request| request.index >= before);
            std::thread::sleep(Duration::from_millis(u64::try_from(round * 173 % 900).unwrap()));
            agent.kill();
            stage.run(Agent::Pi, Session::Resume(&session), "go on again");
            let last = stage.model.requests_of(Kind::Main).pop().expect("a request after the resume");
            assert_eq!(last.count(&body), 1, "round {round}: {}", stage.trouble());
            assert_eq!(stage.end_of(&body), "seen", "round {round}: {}", stage.trouble());
        }
    });
}

/// Pi writes nothing down before the first answer, so what it was told until then dies with the
/// process.
#[test]
fn a_pi_killed_before_its_first_answer_gets_its_mail_again() {
    isolated(|| {
        let stage = StorySandbox::with(
            PI,
            Script::by(|request| match request.index {
                0 => Step::say("never said").after(Duration::from_secs(30)),
                _ => Step::say("finished"),
            }),
        );
        let first = Rpc::start(&stage, &["--session-id", "the-session"]);
        stage.name_of(Agent::Pi);
        stage.send("the-session", "MAIL-UNANSWERED");
        stage.request(|request| request.shows("MAIL-UNANSWERED"));
        drop(first);
        assert_eq!(stage.state_of("MAIL-UNANSWERED"), "offered", "nobody has answered it");
        let _second = Rpc::start(&stage, &["--session-id", "the-session"]);
        let shown = stage.request(|request| request.index > 0 && request.shows("MAIL-UNANSWERED"));
        assert_eq!(shown.count("MAIL-UNANSWERED"), 1, "{}", stage.trouble());
        assert_eq!(stage.end_of("MAIL-UNANSWERED"), "seen", "{}", stage.trouble());
    });
}

#[test]
fn pi_asks_and_answers_in_its_shell() {
    isolated(|| {
        // The one that is told to ask asks; the other is busy until the question is in its context.
        let stage = StorySandbox::with(
            PI,
            Script::by(|request| {
                let results = request.results().len();
                if request.shows("ask your peer") {
                    return match results {
                        0 => Step::shell("baton ask answerer 'QUESTION-1: how many?' --timeout 100s"),
                        _ => Step::say("finished"),
                    };
                }
                match request.word_after("`baton reply ") {
                    _ if request.shows("REPLIED") => Step::say("finished"),
                    Some(message) => Step::shell(format!("baton reply {message} ANSWER-42 && echo REPLIED")),
                    None if results == 0 => Step::shell("baton name answerer"),
                    None if results < 200 => Step::shell("sleep 0.3"),
                    None => Step::say("nobody asked"),
                }
            }),
        );
        let peer = stage.start(Agent::Pi, Session::New, "work on something");
        stage.request(|request| request.results().len() >= 2);
        stage.run(Agent::Pi, Session::New, "ask your peer");
        peer.finish(LIMIT).expect_ok();
        let asker = |request: &baton_testkit::Request| request.shows("ask your peer");
        assert_eq!(stage.model.sightings_where("ANSWER-42", asker).most, 1, "{}", stage.trouble());
        let question = stage.model.sightings_where("how many?", |request| !asker(request));
        assert_eq!(question.most, 1, "{}", stage.trouble());
        assert_eq!(stage.end_of("QUESTION-1"), "seen", "{}", stage.trouble());
        assert_eq!(stage.end_of("ANSWER-42"), "seen", "{}", stage.trouble());
    });
}

#[test]
fn what_pi_reads_in_its_shell_is_seen_and_what_it_throws_away_comes_again() {
    isolated(|| {
        // Thrown away, it is known to be lost when the next turn has been answered without it, and
        // comes at that turn's end.
        for (command, shown_by) in [("baton inbox --wait 60s", 1), ("baton inbox --wait 60s >/dev/null", 3)] {
            let stage = StorySandbox::with(
                PI,
                Script::by(move |request| match request.results().len() {
                    0 if !request.shows("go on") => Step::shell(command),
                    _ => Step::say("finished"),
                }),
            );
            let agent = stage.start(Agent::Pi, Session::New, "read your mail");
            stage.request(|_| true);
            stage.send(&stage.name_of(Agent::Pi), "MAIL-READ");
            let run = agent.finish(LIMIT).expect_ok();
            if shown_by > 1 {
                let session = stage.session_id(Agent::Pi, &run);
                stage.run(Agent::Pi, Session::Resume(&session), "go on");
            }
            stage.arrives("MAIL-READ");
            let first = stage.model.sightings("MAIL-READ").first;
            assert_eq!(first, Some(shown_by), "{command}: {}", stage.trouble());
        }
    });
}

#[test]
fn after_new_the_participant_of_pi_goes_on() {
    isolated(|| {
        let stage = StorySandbox::with(PI, talk());
        let terminal = stage.open(Agent::Pi, Session::New);
        stage.name_of(Agent::Pi);
        terminal.submit("please begin");
        stage.request(|_| true);
        stage.is_in_state("idle");
        let before = stage.json(&["who"])[0].clone();
        let name = before["name"].as_str().expect("a name");
        let mut ask = stage.sandbox.start(stage.sandbox.command("baton").args(["ask", name, "QUESTION-1"]));
        stage.arrives("QUESTION-1");
        stage.is_in_state("idle");
        terminal.submit("/new");
        terminal.wait_for("<baton-asks>", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        ask.kill();
        let after = wait::poll(LIMIT, || {
            let now = stage.json(&["who"])[0].clone();
            (now["session_id"].is_string() && now["session_id"] != before["session_id"]).then_some(now)
        })
        .unwrap_or_else(|| panic!("no new session: {}", stage.trouble()));
        assert_eq!(after["name"], before["name"], "the same participant");
        stage.send(name, "MAIL-AFTER-NEW");
        stage.arrives("MAIL-AFTER-NEW");
        let shown = stage.request(|request| request.shows("MAIL-AFTER-NEW"));
        assert_eq!(shown.count("asked you in"), 1, "the ask is still open: {:?}", shown.said());
        stage.is_in_state("idle");
        // A reload is the same session with a new copy of the extension.
        terminal.submit("/reload");
        terminal.wait_for("Reloaded", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        stage.send(name, "MAIL-AFTER-RELOAD");
        stage.arrives("MAIL-AFTER-RELOAD");
        assert_eq!(stage.json(&["who"])[0]["session_id"], after["session_id"]);
    });
}

#[test]
fn two_copies_of_the_extension_act_once() {
    isolated(|| {
        let stage = StorySandbox::with(PI, moments::tools_until_told(2));
        stage.baton(&["setup", "pi", "--project"]).expect_ok();
        let told = stage.sandbox.path("told.jsonl");
        let spy = script(&stage, "spy", &format!("tee -a '{}' | baton \"$@\"", told.display()));
        for folder in [stage.sandbox.home().join(".pi/agent"), stage.sandbox.project().join(".pi")] {
            call_instead(&folder.join("extensions/baton.ts"), &spy);
        }
        let mut command = pi(&stage).headless(Session::New, "please begin");
        let agent = stage.sandbox.start(command.arg("--approve"));
        stage.request(|_| true);
        stage.send(&stage.name_of(Agent::Pi), "MAIL-TWO-COPIES");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        stage.arrives("MAIL-TWO-COPIES");
        let told = fs::read_to_string(told).expect("what the extension told");
        for (event, count) in [("session_start", 1), ("before_agent_start", 1), ("tool_result", 2)] {
            let said = told.matches(&format!("\"hook_event_name\":\"{event}\"")).count();
            assert_eq!(said, count, "{event}: {told}");
        }
    });
}

/// A program of a few words in the sandbox.
fn script(stage: &StorySandbox, name: &str, words: &str) -> String {
    let path = stage.sandbox.path("bin").join(name);
    write_program(&path, format!("#!/bin/sh\n{words}\n").as_bytes());
    path.to_string_lossy().into_owned()
}

/// Makes the extension call another program.
fn call_instead(extension: &Path, program: &str) {
    let text = fs::read_to_string(extension).expect("the extension");
    let line = text.lines().find(|line| line.starts_with("const BATON")).expect("the program's line");
    let other = text.replace(line, &format!("const BATON: string = {};", json!(program)));
    fs::write(extension, other).expect("write the extension");
}

/// Whatever the extension calls is missing, ends at once, or never answers.
#[test]
fn pi_goes_on_without_baton() {
    isolated(|| {
        let stage = StorySandbox::with(PI, tools(1));
        let extension = stage.sandbox.home().join(".pi/agent/extensions/baton.ts");
        let hangs = script(&stage, "hangs", "exec sleep 600");
        let mut without_waiting = None;
        for program in ["/nowhere/baton", "/bin/false", &hangs] {
            call_instead(&extension, program);
            let begun = Instant::now();
            let run = stage.run(Agent::Pi, Session::New, "please begin");
            assert!(finished(&run), "{program}: {}", run.stdout);
            // Each event waits two seconds at the most, a tool call three; there are six of them
            // that wait.
            let limit = *without_waiting.get_or_insert(begun.elapsed()) * 2 + Duration::from_secs(16);
            assert!(begun.elapsed() < limit, "{program}: {:?} of {limit:?}", begun.elapsed());
        }
    });
}

fn finished(run: &Finished) -> bool {
    run.stdout.contains("\"agent_settled\"") && run.stdout.contains("finished")
}

#[test]
fn setup_of_pi_and_its_removal_give_every_byte_back() {
    isolated(|| {
        let stage = StorySandbox::bare(talk());
        pi(&stage);
        let home = stage.sandbox.home().join(".pi");
        let listing = || {
            let found = stage.sandbox.run(stage.sandbox.command("find").arg(&home), LIMIT).expect_ok();
            let mut files: Vec<String> = found.stdout.lines().map(str::to_owned).collect();
            files.sort();
            files
        };
        let before = listing();
        stage.baton(&["setup", "pi", "--dry-run"]).expect_ok();
        assert_eq!(listing(), before, "a dry run changes nothing");
        stage.baton(&["setup", "pi"]).expect_ok();
        let extension = home.join("agent/extensions/baton.ts");
        let once = fs::read(&extension).expect("the extension");
        stage.baton(&["setup", "pi"]).expect_ok();
        assert_eq!(fs::read(&extension).unwrap(), once, "twice is the same as once");
        stage.baton(&["setup", "pi", "--remove"]).expect_ok();
        assert_eq!(listing(), before);
        // A file of that name that is not ours stays, and is not taken for ours.
        fs::create_dir_all(extension.parent().unwrap()).unwrap();
        fs::write(&extension, "export default () => {};\n").unwrap();
        assert_ne!(stage.baton(&["setup", "pi"]).status.code(), Some(0));
        stage.baton(&["setup", "pi", "--remove"]);
        assert_eq!(fs::read_to_string(&extension).unwrap(), "export default () => {};\n");
    });
}

/// A link that dies is started again with the next event.
#[test]
fn a_killed_link_costs_nothing() {
    isolated(|| {
        let stage = StorySandbox::with(
            PI,
            Script::by(|request| match request.results().len() {
                0 => Step::shell("touch begun; until [ -e killed ]; do sleep 0.1; done; echo KILLED-IT"),
                1 => Step::shell(UNTIL_TOLD),
                _ => Step::say("finished"),
            }),
        );
        let agent = stage.start(Agent::Pi, Session::New, "please begin");
        let file = |name: &str| stage.sandbox.project().join(name);
        assert!(wait::until(LIMIT, || file("begun").exists()), "{}", stage.trouble());
        moments::kill_link(&stage);
        fs::write(file("killed"), "").unwrap();
        stage.request(|request| request.shows("KILLED-IT"));
        stage.send(&stage.name_of(Agent::Pi), "MAIL-AFTER-THE-KILL");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        stage.arrives("MAIL-AFTER-THE-KILL");
    });
}

#[test]
fn an_interrupted_turn_of_pi_keeps_its_mail() {
    isolated(|| {
        let stage = StorySandbox::with(
            PI,
            Script::by(|request| {
                if request.shows("MAIL-INTERRUPTED") && !request.shows("SECOND-PROMPT") {
                    Step::Hang
                } else {
                    Step::say("finished")
                }
            }),
        );
        let terminal = stage.open(Agent::Pi, Session::New);
        terminal.submit("FIRST-PROMPT");
        stage.request(|request| request.shows("FIRST-PROMPT"));
        stage.is_in_state("idle");
        stage.send(&stage.name_of(Agent::Pi), "MAIL-INTERRUPTED");
        stage.request(|request| request.shows("MAIL-INTERRUPTED"));
        press_until(&terminal, &["Escape"], |_| stage.json(&["who"])[0]["state"] == "idle");
        assert_eq!(stage.state_of("MAIL-INTERRUPTED"), "offered", "nobody has answered it");
        terminal.submit("SECOND-PROMPT");
        stage.request(|request| request.shows("SECOND-PROMPT") && request.shows("MAIL-INTERRUPTED"));
        stage.arrives("MAIL-INTERRUPTED");
    });
}

#[test]
fn what_a_person_types_into_a_running_turn_of_pi_and_mail_both_come() {
    isolated(|| {
        let stage = StorySandbox::with(
            PI,
            Script::by(|request| {
                if request.shows("TYPED-AHEAD") { Step::say("finished") } else { Step::shell("sleep 2") }
            }),
        );
        let terminal = stage.open(Agent::Pi, Session::New);
        terminal.submit("please begin");
        stage.request(|_| true);
        stage.send(&stage.name_of(Agent::Pi), "MAIL-MEANWHILE");
        terminal.submit("TYPED-AHEAD");
        stage.request(|request| request.shows("TYPED-AHEAD"));
        stage.arrives("MAIL-MEANWHILE");
        stage.shown_once("TYPED-AHEAD");
    });
}

#[test]
fn after_a_compaction_of_pi_open_asks_are_listed_again() {
    isolated(|| {
        let stage = StorySandbox::with(PI, talk());
        // It refuses to compact what it would keep anyway.
        let settings = json!({"compaction": {"keepRecentTokens": 1}}).to_string();
        fs::write(stage.sandbox.home().join(".pi/agent/settings.json"), settings).unwrap();
        let terminal = stage.open(Agent::Pi, Session::New);
        let name = stage.name_of(Agent::Pi);
        terminal.submit("please begin");
        stage.request(|_| true);
        stage.is_in_state("idle");
        let mut ask = stage.sandbox.start(stage.sandbox.command("baton").args(["ask", &name, "QUESTION-1"]));
        stage.arrives("QUESTION-1");
        stage.is_in_state("idle");
        terminal.submit("/compact");
        terminal.wait_for("<baton-asks>", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        // An idle session is idle after a compaction too, and takes mail.
        stage.send(&name, "MAIL-AFTER-A-COMPACTION");
        stage.arrives("MAIL-AFTER-A-COMPACTION");
        stage.is_in_state("idle");
        terminal.submit("PROMPT-AFTER-IT");
        let after = stage.request(|request| request.shows("PROMPT-AFTER-IT"));
        assert_eq!(after.count("<baton-asks>"), 1, "{:?}", after.said());
        assert_eq!(after.count("asked you in"), 1, "{:?}", after.said());
        ask.kill();
    });
}

/// As the sub-agents of Pi's own example are run: nothing is stored, and there is nothing to
/// resume.
#[test]
fn a_pi_that_stores_nothing_takes_mail_too() {
    isolated(|| {
        let stage = StorySandbox::with(PI, moments::tools_until_told(2));
        let mut command = pi(&stage).headless(Session::New, "please begin");
        let agent = stage.sandbox.start(command.arg("--no-session"));
        stage.request(|_| true);
        stage.send(&stage.name_of(Agent::Pi), "MAIL-UNSTORED");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        stage.arrives("MAIL-UNSTORED");
        assert!(pi(&stage).session_files().is_empty());
    });
}

/// Goes back to an entry of the session tree that its line shows, without a summary.
fn go_back_to(terminal: &Tmux<'_>, entry: &str) {
    terminal.submit("/tree");
    wait_for(terminal, "Session Tree");
    let at =
        |screen: &str| screen.lines().any(|line| line.trim_start().starts_with('›') && line.contains(entry));
    let found = wait::until(LIMIT, || {
        let there = at(&terminal.screen());
        if !there {
            terminal.press(&["Up"]);
        }
        there
    });
    assert!(found, "{}", terminal.screen());
    terminal.press(&["Enter"]);
    wait_for(terminal, "No summary");
    terminal.press(&["Enter"]);
    wait_for(terminal, "Navigated to selected point");
}

fn wait_for(terminal: &Tmux<'_>, text: &str) {
    terminal.wait_for(text, LIMIT).unwrap_or_else(|error| panic!("{error}"));
}

/// The model has not answered it when the person goes back to a point before it: it comes again,
/// and into the new branch.
#[test]
fn mail_on_a_branch_of_pi_that_is_left_unanswered_comes_again() {
    isolated(|| {
        let stage = StorySandbox::with(
            PI,
            Script::by(|request| match request.results().len() {
                _ if !request.shows("SECOND-PROMPT") => Step::say("finished"),
                0 => Step::shell("sleep 2"),
                _ => Step::Hang,
            }),
        );
        let terminal = stage.open(Agent::Pi, Session::New);
        terminal.submit("FIRST-PROMPT");
        stage.request(|request| request.shows("FIRST-PROMPT"));
        stage.is_in_state("idle");
        terminal.submit("SECOND-PROMPT");
        stage.request(|request| request.shows("SECOND-PROMPT"));
        stage.send(&stage.name_of(Agent::Pi), "MAIL-ON-A-BRANCH");
        stage.request(|request| request.shows("MAIL-ON-A-BRANCH"));
        press_until(&terminal, &["Escape"], |_| stage.json(&["who"])[0]["state"] == "idle");
        assert_eq!(stage.state_of("MAIL-ON-A-BRANCH"), "offered", "nobody has answered it");
        go_back_to(&terminal, "assistant: finished");
        stage.request(|request| request.shows("MAIL-ON-A-BRANCH") && !request.shows("SECOND-PROMPT"));
        stage.arrives("MAIL-ON-A-BRANCH");
    });
}

/// What the model has answered stays seen, wherever the person goes.
#[test]
fn mail_on_a_branch_of_pi_that_was_answered_is_not_repeated() {
    isolated(|| {
        let stage = StorySandbox::with(
            PI,
            Script::by(|request| {
                Step::say(if request.shows("MAIL-ANSWERED") { "thanks" } else { "finished" })
            }),
        );
        let terminal = stage.open(Agent::Pi, Session::New);
        terminal.submit("FIRST-PROMPT");
        stage.request(|request| request.shows("FIRST-PROMPT"));
        stage.is_in_state("idle");
        let name = stage.name_of(Agent::Pi);
        stage.send(&name, "MAIL-ANSWERED");
        stage.arrives("MAIL-ANSWERED");
        stage.is_in_state("idle");
        go_back_to(&terminal, "assistant: finished");
        stage.send(&name, "MAIL-ON-THE-NEW-BRANCH");
        let shown = stage.request(|request| request.shows("MAIL-ON-THE-NEW-BRANCH"));
        stage.arrives("MAIL-ON-THE-NEW-BRANCH");
        assert_eq!(shown.count("MAIL-ANSWERED"), 0, "{:?}", shown.said());
        assert_eq!(stage.state_of("MAIL-ANSWERED"), "seen");
    });
}
