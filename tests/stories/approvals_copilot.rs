//! Questions of Copilot: held if no person sits at the terminal or someone watches, answered once,
//! and effective.

use crate::inbox_user::{InboxUser, id};
use crate::sandbox::{LIMIT, StorySandbox, press_until, rounds, wait_for_screen};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_agents::Screen;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::copilot::Copilot;
use baton_testkit::model::Part;
use baton_testkit::{Script, Step, Tmux, isolated, wait};
use std::collections::HashSet;
use std::fs;
use std::sync::Mutex;

const WHO: Agent = Agent::Copilot;
const DIALOG: &str = "Do you want to run this command?";

fn stage(script: Script) -> StorySandbox {
    StorySandbox::with(&[WHO], script).without_waking()
}

/// Copilot, which asks before it runs anything that changes something.
fn copilot(stage: &StorySandbox) -> Copilot<'_> {
    Copilot::new(&stage.sandbox, &stage.model).asking()
}

#[test]
fn copilot_without_a_terminal_waits_for_the_person_at_the_inbox() {
    isolated(|| {
        let times = rounds();
        // Each round a yes and a no. What it runs without asking is never asked about.
        let stage = stage(Script::by(move |request| match request.results().len() {
            0 => Step::shell("echo harmless; ls"),
            number if number <= 2 * times => Step::shell(format!("touch made-{number}")),
            number if number == 2 * times + 1 => Step::shell(format!("touch long; {UNTIL_TOLD}")),
            number if number == 2 * times + 2 => Step::shell("mkdir by-rule"),
            _ => Step::say("finished"),
        }));
        stage.configure("wake = \"off\"\n[approvals]\nauto_approve = [\"bash: mkdir by-rule\"]\n");
        let Some(user) = InboxUser::new(&stage) else { return };
        let agent = stage.sandbox.start(&mut copilot(&stage).headless(Session::New, "please begin"));
        user.answers_in_turns("copilot", |file| user.question(&format!("bash: touch {file}"), "waiting"));
        // Said while it still runs.
        let long = user.question(&format!("bash: touch long; {UNTIL_TOLD}"), "waiting");
        user.approve_until(id(&long), "long");
        end_tools(&stage);
        agent.finish(LIMIT).expect_ok();
        assert!(stage.sandbox.project().join("by-rule").is_dir(), "nobody need be asked about that");
        assert!(user.inbox().is_empty(), "{:?}", user.inbox());
        stage.nothing_unknown();
    });
}

#[test]
fn copilot_asks_about_parallel_calls_one_by_one_and_dies_with_the_last() {
    isolated(|| {
        let stage = stage(Script::by(|request| match request.results().len() {
            0 => Step::parts(["touch first", "touch second", "touch third"].map(Part::shell)),
            _ => Step::say("finished"),
        }));
        let Some(user) = InboxUser::new(&stage) else { return };
        let mut agent = stage.sandbox.start(&mut copilot(&stage).headless(Session::New, "please begin"));
        let id = |name: &str| {
            let row = user.question(&format!("bash: touch {name}"), "waiting");
            row["id"].as_str().expect("an id").to_owned()
        };
        let [first, second, third] = ["first", "second", "third"].map(id);
        user.person(&["deny", &second, "--reason", "not that one"]).took_effect();
        user.approve_until(&first, "first");
        agent.kill();
        user.person(&["approve", &third]).was_refused("asker-gone");
        user.is_empty();
        for name in ["second", "third"] {
            assert!(!stage.sandbox.project().join(name).exists(), "{name} was never allowed");
        }
    });
}

/// The model makes each file that a prompt names, once.
fn makes_what_is_named() -> Script {
    let made = Mutex::new(HashSet::new());
    Script::by(move |request| {
        let text = request.last_user_text();
        let name =
            text.split_whitespace().find(|word| word.starts_with("file-")).unwrap_or("none").to_owned();
        let is_new = made.lock().expect("nobody panics with it").insert(name.clone());
        if is_new && name != "none" { Step::shell(format!("touch {name}")) } else { Step::say("finished") }
    })
}

/// How often it has told of a dialog, by its transcript.
fn notifications(stage: &StorySandbox) -> usize {
    let written =
        copilot(stage).transcripts().into_iter().map(|file| fs::read_to_string(file).unwrap_or_default());
    let is_end = |line: &&str| line.contains("\"hook.end\"") && line.contains("\"notification\"");
    written.map(|text| text.lines().filter(is_end).count()).sum()
}

/// Presses a key at the dialog.
#[track_caller]
fn answer_dialog(terminal: &Tmux<'_>, key: &str) {
    terminal.wait_for(DIALOG, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    press_until(terminal, &[key], |screen| !screen.contains(DIALOG));
}

fn prompt(stage: &StorySandbox, terminal: &Tmux<'_>, text: &str) {
    wait_for_screen(terminal, WHO, &Screen::Ready);
    crate::sandbox::submit(terminal, WHO, text);
    stage.request(|request| request.shows(text));
}

#[test]
fn copilot_in_a_terminal_is_held_only_while_a_person_watches() {
    isolated(|| {
        let stage = stage(makes_what_is_named());
        stage.configure("wake = \"off\"\n[approvals]\nhold = \"4s\"\n");
        let Some(user) = InboxUser::new(&stage) else { return };
        let made = |name: &str| stage.sandbox.project().join(name);
        let terminal = copilot(&stage).open("copilot", Session::New);

        // Nobody watches: its own dialog, at once.
        prompt(&stage, &terminal, "please make file-1");
        let row = user.long_question("bash: touch file-1", "only-in-terminal");
        user.person(&["approve", row["id"].as_str().expect("an id")]).was_refused("only-in-terminal");
        assert!(!made("file-1").exists());
        answer_dialog(&terminal, "Enter");
        user.is_empty();
        assert!(made("file-1").exists());
        prompt(&stage, &terminal, "please make file-2");
        user.long_question("bash: touch file-2", "only-in-terminal");
        answer_dialog(&terminal, "Escape");
        user.is_empty();
        assert!(!made("file-2").exists());

        // Somebody watches: no dialog, and the answer comes from there.
        let watcher = user.start(&["approvals", "--watch"]);
        prompt(&stage, &terminal, "please make file-3");
        let row = user.question("bash: touch file-3", "waiting");
        assert!(!terminal.screen().contains(DIALOG), "{}", terminal.screen());
        user.approve_until(row["id"].as_str().expect("an id"), "file-3");
        assert!(wait::until(LIMIT, || watcher.stdout().contains("\"approved\"")), "{}", watcher.stdout());

        // Nobody answers: the dialog comes, and the question is still one.
        prompt(&stage, &terminal, "please make file-4");
        let held = user.question("bash: touch file-4", "waiting");
        let row = user.question("bash: touch file-4", "only-in-terminal");
        assert_eq!(row["id"], held["id"]);
        // Told of with the dialog once more, as for the two before.
        assert!(wait::until(LIMIT, || notifications(&stage) == 3), "{}", stage.trouble());
        assert_eq!(user.inbox().len(), 1, "{:?}", user.inbox());
        answer_dialog(&terminal, "Enter");
        user.is_empty();
        user.person(&["deny", row["id"].as_str().expect("an id")]).was_refused("already-answered");
        assert!(made("file-4").exists());
    });
}
