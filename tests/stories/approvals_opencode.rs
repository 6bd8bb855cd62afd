//! Questions of OpenCode: its plugin tells of them, hands the answers over, and looks whether that
//! helped.

mod held;

use crate::inbox_user::{InboxUser, id};
use crate::sandbox::{LIMIT, StorySandbox, press_until, rounds};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_testkit::agents::{Agent, Program as _, Session};
use baton_testkit::model::{Part, Request};
use baton_testkit::opencode::Server;
use baton_testkit::{Script, Step, Tmux, isolated, wait};
use serde_json::{Value, json};
use std::fs;

const WHO: Agent = Agent::OpenCode;
const DIALOG: &str = "Permission required";

fn stage(script: Script) -> StorySandbox {
    StorySandbox::with(&[WHO], script).without_waking()
}

/// A server whose shell commands ask, and a session of it.
fn session(stage: &StorySandbox) -> (Server, String) {
    let server = Server::start(&stage.opencode().asking());
    let session = server.session();
    (server, session)
}

/// Begins a turn.
fn prompt(server: &Server, session: &str, text: &str) {
    let prompt = json!({"parts": [{"type": "text", "text": text}]});
    server.call("POST", &format!("/session/{session}/prompt_async"), &prompt);
}

#[test]
fn opencode_serving_waits_for_the_person_at_the_inbox() {
    isolated(|| {
        let times = rounds();
        // Each round a yes and a no.
        let stage = stage(Script::by(move |request| match request.results().len() + 1 {
            number if number <= 2 * times => Step::shell(format!("touch made-{number}")),
            _ => Step::say("finished"),
        }));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (server, session) = session(&stage);
        prompt(&server, &session, "please begin");
        user.answers_in_turns("opencode", |file| {
            let row = user.question(&format!("bash: touch {file}"), "waiting");
            assert!(row["always"].as_str().is_some_and(|always| always.contains("bash: touch *")), "{row}");
            row
        });
        stage.is_in_state("idle");
        assert!(user.inbox().is_empty(), "{:?}", user.inbox());
        stage.nothing_unknown();
    });
}

/// The versions that have to be told by their address have to be told the password too.
#[test]
fn opencode_serving_behind_a_password_is_answered() {
    isolated(|| {
        let stage = stage(Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let server = Server::start(&stage.opencode().asking().behind_a_password());
        let session = server.session();
        for _ in 0..rounds() {
            fs::remove_file(stage.sandbox.project().join("one")).ok();
            prompt(&server, &session, "please");
            user.approve_until(id(&user.question("bash: touch one", "waiting")), "one");
            stage.is_in_state("idle");
        }
    });
}

/// What the model wants after a prompt, by a word in it.
fn by_prompt(request: &Request) -> Step {
    let said = request.last_user_text();
    let wants = |word: &str| said.contains(word);
    match request.results().len() {
        0 if wants("IN-THE-CHILD") => Step::shell("touch by-the-child"),
        0 if wants("DELEGATE") => Step::tool(
            "task",
            json!({"description": "look", "prompt": "IN-THE-CHILD", "subagent_type": "general"}),
        ),
        0 if wants("QUESTION") => Step::tool("question", which()),
        0 if wants("TWO") => Step::parts([Part::shell("touch first"), Part::shell("touch second")]),
        0 if wants("LONG") => Step::shell(format!("touch long; {UNTIL_TOLD}")),
        0 => Step::shell("touch one"),
        1 if wants("AGAIN") => Step::shell("touch again"),
        _ => Step::say("finished"),
    }
}

fn which() -> Value {
    json!({"questions": [
        {"question": "Which port?", "header": "Port", "options": [
            {"label": "Eighty", "description": "the usual one"}, {"label": "Other", "description": "none of these"},
        ]},
        {"question": "For whom?", "header": "Whom", "multiple": true, "options": [
            {"label": "Me", "description": ""}, {"label": "You", "description": ""},
        ]},
    ]})
}

#[test]
fn opencode_takes_words_an_always_and_the_answers_to_its_subagents() {
    isolated(|| {
        let stage = stage(Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (server, session) = session(&stage);
        let made = |name: &str| stage.sandbox.project().join(name).exists();

        // A line for each question, and the labels as OpenCode has them.
        prompt(&server, &session, "a QUESTION please");
        let row = user.long_question("question: Which port?", "waiting");
        assert_eq!((&row["kind"], &row["tool"]), (&"question".into(), &"question".into()), "{row}");
        for words in ["Eighty: the usual one", "For whom?"] {
            assert!(row["detail"].as_str().is_some_and(|all| all.contains(words)), "{row}");
        }
        user.person(&[
            "approve",
            id(&row),
            "--answer",
            "eighty\nme, You",
            "--digest",
            row["digest"].as_str().expect("a digest"),
        ])
        .took_effect();
        stage.request(|request| request.shows("\"Eighty\"") && request.shows("\"Me, You\""));

        // The subagent's question is listed under its session, and its answer goes to the subagent.
        prompt(&server, &session, "DELEGATE it");
        let row = user.question("bash: touch by-the-child", "waiting");
        user.approve_until(id(&row), "by-the-child");

        // From then on nothing like it is asked.
        stage.is_in_state("idle");
        prompt(&server, &session, "and AGAIN");
        let row = user.question("bash: touch one", "waiting");
        let always = user.person(&[
            "approve",
            id(&row),
            "--always",
            "--yes",
            "--digest",
            row["digest"].as_str().expect("a digest"),
        ]);
        always.took_effect();
        assert!(wait::until(LIMIT, || made("again")), "it was asked again: {:?}", user.inbox());
        user.is_empty();
        stage.nothing_unknown();
    });
}

#[test]
fn opencode_answered_elsewhere_aborted_or_denied_takes_no_other_answer() {
    isolated(|| {
        let stage = stage(Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (server, session) = session(&stage);
        let made = |name: &str| stage.sandbox.project().join(name).exists();
        let listed =
            || server.call("GET", "/permission", &json!(null)).as_array().cloned().unwrap_or_default();

        // In OpenCode's own window.
        prompt(&server, &session, "please");
        let row = user.question("bash: touch one", "waiting");
        let own = listed()[0]["id"].as_str().expect("an id").to_owned();
        server.call(
            "POST",
            &format!("/permission/{own}/reply"),
            &json!({"reply": "reject", "message": "not now"}),
        );
        user.is_empty();
        user.person(&["approve", id(&row)]).was_refused("already-answered");
        assert!(!made("one"));

        // Its turn was aborted: OpenCode still lists it, and would say yes to an answer.
        stage.is_in_state("idle");
        prompt(&server, &session, "please");
        let row = user.question("bash: touch one", "waiting");
        server.call("POST", &format!("/session/{session}/abort"), &json!({}));
        user.is_empty();
        user.person(&["approve", id(&row)]).was_refused("already-answered");
        assert!(!made("one"));

        // One no is a no to all that the session waits for.
        stage.is_in_state("idle");
        prompt(&server, &session, "TWO of them");
        let first = user.question("bash: touch first", "waiting");
        let second = user.question("bash: touch second", "waiting");
        user.person(&["deny", id(&first), "--reason", "neither"]).took_effect();
        user.is_empty();
        user.person(&["approve", id(&second)]).was_refused("already-answered");

        // Two people at once: one of them is heard, and it does what that one said.
        for round in 0..3 {
            stage.is_in_state("idle");
            fs::remove_file(stage.sandbox.project().join("one")).ok();
            prompt(&server, &session, "please");
            let row = user.question("bash: touch one", "waiting");
            let (yes, no) = std::thread::scope(|scope| {
                let yes = scope.spawn(|| user.person(&["approve", id(&row)]));
                let no = scope.spawn(|| user.person(&["deny", id(&row), "--reason", "no"]));
                (yes.join().expect("a yes"), no.join().expect("a no"))
            });
            assert_eq!(
                [yes.code, no.code].iter().filter(|code| **code == Some(0)).count(),
                1,
                "round {round}: {yes:?} {no:?}"
            );
            stage.is_in_state("idle");
            assert_eq!(made("one"), yes.code == Some(0), "round {round}: {yes:?} {no:?}");
        }
        assert!(!made("first") && !made("second"), "denied, and made");
    });
}

/// The pids of the links of a stage.
fn links(stage: &StorySandbox) -> Vec<i32> {
    let home = stage.sandbox.home().display().to_string();
    let pids = fs::read_dir("/proc").expect("a list of processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_link = |pid: &i32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments: Vec<_> = arguments.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        arguments.get(1).is_some_and(|word| word == "link")
            && arguments.iter().any(|word| word.starts_with(&home))
    };
    pids.filter(is_link).collect()
}

#[test]
fn opencode_is_answered_after_its_link_was_killed_and_gone_once_it_is() {
    isolated(|| {
        let stage = stage(Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let (mut server, session) = session(&stage);
        prompt(&server, &session, "please");
        let first = user.question("bash: touch one", "waiting");
        let [link] = links(&stage)[..] else { panic!("one link: {:?}", links(&stage)) };
        stage.sandbox.run(stage.sandbox.command("kill").args(["-9", &link.to_string()]), LIMIT).expect_ok();
        // The plugin starts another, and tells it what is open.
        let row = wait::poll(LIMIT, || {
            user.inbox().into_iter().find(|row| row["state"] == "waiting" && row["id"] != first["id"])
        });
        let row = row.unwrap_or_else(|| panic!("nobody holds it: {:?}{}", user.inbox(), stage.trouble()));
        user.person(&["approve", id(&first)]).was_refused("already-answered");
        user.approve_until(id(&row), "one");

        stage.is_in_state("idle");
        prompt(&server, &session, "TWO of them");
        let row = user.question("bash: touch first", "waiting");
        user.question("bash: touch second", "waiting");
        server.running().kill();
        user.person(&["approve", id(&row)]).was_refused("asker-gone");
        user.is_empty();
    });
}

/// Types a prompt and sends it off. It misses an Enter that comes too soon behind the text.
fn submit(stage: &StorySandbox, terminal: &Tmux<'_>, text: &str) {
    terminal.type_text(text);
    terminal.wait_for(text, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    press_until(terminal, &["Enter"], |_| {
        stage.model.requests().iter().any(|request| request.last_user_text().contains(text))
    });
}

#[test]
fn opencode_in_a_terminal_with_a_port_is_answered() {
    isolated(|| {
        let stage = stage(Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let terminal = stage.opencode().asking().listening().open(Session::New);
        submit(&stage, &terminal, "please");
        let row = user.question("bash: touch one", "waiting");
        user.approve_until(id(&row), "one");
        stage.is_in_state("idle");
    });
}

#[test]
fn opencode_in_a_terminal_shows_its_dialog_and_takes_the_answer_from_the_inbox_too() {
    isolated(|| {
        let stage = stage(Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let terminal = stage.opencode().asking().open(Session::New);
        let submit = |text: &str| submit(&stage, &terminal, text);
        let asks = |screen: &str| screen.contains(DIALOG);
        let quiet = |screen: &str| !screen.contains(DIALOG);
        let shown = |is: &dyn Fn(&str) -> bool| {
            assert!(wait::until(LIMIT, || is(&terminal.screen())), "{}", terminal.screen());
        };

        for round in 0..rounds() {
            fs::remove_file(stage.sandbox.project().join("one")).ok();
            submit(&format!("please, for time {round}"));
            let row = user.question("bash: touch one", "waiting");
            shown(&asks);
            user.approve_until(id(&row), "one");
            shown(&quiet);
            stage.is_in_state("idle");
        }

        submit("something LONG");
        let row = user.question(&format!("bash: touch long; {UNTIL_TOLD}"), "waiting");
        shown(&asks);
        press_until(&terminal, &["Enter"], quiet);
        user.is_empty();
        user.person(&["deny", id(&row)]).was_refused("already-answered");
        end_tools(&stage);
        stage.is_in_state("idle");
    });
}

/// `opencode run` says no to everything by itself, within milliseconds. baton notices, and nothing
/// stays behind.
#[test]
fn opencode_run_refuses_by_itself_and_leaves_nothing_waiting() {
    isolated(|| {
        let stage = stage(Script::by(by_prompt));
        let Some(user) = InboxUser::new(&stage) else { return };
        let run = stage.sandbox.run(&mut stage.opencode().asking().headless(Session::New, "please"), LIMIT);
        let run = run.expect_ok();
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains("auto-rejecting"), "it did not ask: {said}");
        user.is_empty();
        assert!(!stage.sandbox.project().join("one").exists());
    });
}
