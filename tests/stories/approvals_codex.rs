//! Questions of Codex: its person sees nothing of them while a hook is held, several are held at
//! once, and an answer counts when it has taken effect. Without a terminal it never asks.

use crate::inbox_user::{InboxUser, id};
use crate::sandbox::{LIMIT, StorySandbox, press_until, rounds, submit, wait_for_screen};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_agents::Screen;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::Part;
use baton_testkit::{Script, Step, Tmux, isolated, wait};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Mutex;

const WHO: Agent = Agent::Codex;
const DIALOG: &str = "Would you like to run the following command?";

fn stage(script: Script) -> StorySandbox {
    StorySandbox::with(&[WHO], script).without_waking()
}

/// A command that needs the person.
fn asks(command: &str) -> Part {
    let input =
        json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "a reason"});
    Part::tool("exec_command", input)
}

/// What is asked then.
fn asked(command: &str) -> String {
    format!("Bash: {command}")
}

fn open(stage: &StorySandbox) -> Tmux<'_> {
    stage.codex().asking().open("codex", Session::New)
}

fn prompt(terminal: &Tmux<'_>, text: &str) {
    wait_for_screen(terminal, WHO, &Screen::Ready);
    submit(terminal, WHO, text);
}

#[test]
fn codex_waits_for_the_person_who_watches_the_inbox() {
    isolated(|| {
        let times = rounds();
        // Each round a yes and a no.
        let stage = stage(Script::by(move |request| match request.results().len() + 1 {
            number if number <= 2 * times => Step::parts([asks(&format!("touch made-{number}"))]),
            number if number == 2 * times + 1 => Step::parts([asks(&format!("touch long; {UNTIL_TOLD}"))]),
            _ => Step::say("finished"),
        }));
        let Some(user) = InboxUser::new(&stage) else { return };
        let watcher = user.start(&["approvals", "--watch"]);
        let terminal = open(&stage);
        prompt(&terminal, "please begin");
        user.answers_in_turns("codex", |file| user.question(&asked(&format!("touch {file}")), "waiting"));
        // Said while it still runs.
        let long = user.question(&asked(&format!("touch long; {UNTIL_TOLD}")), "waiting");
        user.approve_until(id(&long), "long");
        assert!(!terminal.screen().contains(DIALOG), "{}", terminal.screen());
        end_tools(&stage);
        terminal.wait_for("finished", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        user.is_empty();
        assert!(watcher.stdout().contains("\"denied\""), "{}", watcher.stdout());
        stage.nothing_unknown();
    });
}

#[test]
fn codex_asks_about_parallel_calls_at_once_and_its_questions_die_with_it() {
    isolated(|| {
        let stage = stage(Script::by(|request| match request.results().len() {
            0 => Step::parts(["touch first", "touch second", "touch third"].map(asks)),
            _ => Step::say("finished"),
        }));
        let Some(user) = InboxUser::new(&stage) else { return };
        let _watcher = user.start(&["approvals", "--watch"]);
        let terminal = open(&stage);
        prompt(&terminal, "please begin");
        let [first, second, third] = ["first", "second", "third"]
            .map(|name| user.question(&asked(&format!("touch {name}")), "waiting"));
        user.approve_until(id(&first), "first");
        user.person(&["deny", id(&second), "--reason", "not that one"]).took_effect();
        terminal.kill();
        user.person(&["approve", id(&third)]).was_refused("asker-gone");
        user.is_empty();
        for name in ["second", "third"] {
            assert!(!stage.sandbox.project().join(name).exists(), "{name} was never allowed");
        }
    });
}

/// The model runs what each prompt names, once.
fn runs_what_is_named() -> Script {
    let run = Mutex::new(HashSet::new());
    Script::by(move |request| {
        let named =
            request.last_user_text().split_once("run: ").map(|(_, command)| command.trim().to_owned());
        let new = named.filter(|command| run.lock().expect("nobody panics with it").insert(command.clone()));
        new.map_or_else(|| Step::say("finished"), |command| Step::parts([asks(&command)]))
    })
}

#[test]
fn codex_in_a_terminal_is_held_only_while_a_person_watches() {
    isolated(|| {
        let stage = stage(runs_what_is_named());
        stage.configure("wake = \"off\"\n[approvals]\nhold = \"4s\"\n");
        let Some(user) = InboxUser::new(&stage) else { return };
        let made = |name: &str| stage.sandbox.project().join(name).exists();
        let terminal = open(&stage);
        let gone = |screen: &str| !screen.contains(DIALOG);

        // Nobody watches: its own dialog, at once.
        let long = format!("touch one; {UNTIL_TOLD}");
        prompt(&terminal, &format!("run: {long}"));
        let row = user.question(&asked(&long), "only-in-terminal");
        user.person(&["approve", id(&row)]).was_refused("only-in-terminal");
        terminal.wait_for(DIALOG, LIMIT).unwrap_or_else(|error| panic!("{error}"));
        press_until(&terminal, &["y"], gone);
        // While it runs.
        user.is_empty();
        assert!(wait::until(LIMIT, || made("one")), "{}", terminal.screen());
        end_tools(&stage);

        // Somebody watches, and the person takes the turn back.
        let _watcher = user.start(&["approvals", "--watch"]);
        prompt(&terminal, "run: touch two");
        let row = user.question(&asked("touch two"), "waiting");
        assert_eq!(row["notes"], json!(["a reason"]), "{row}");
        press_until(&terminal, &["Escape"], |screen| screen.contains("interrupted"));
        user.is_empty();
        user.person(&["approve", id(&row)]).was_refused("already-answered");
        assert!(!made("two"));

        // Nobody answers: the dialog comes, and the question is still one.
        prompt(&terminal, "run: touch three");
        let held = user.question(&asked("touch three"), "waiting");
        terminal.wait_for(DIALOG, LIMIT).unwrap_or_else(|error| panic!("{error}"));
        let row = user.question(&asked("touch three"), "only-in-terminal");
        assert_eq!(row["id"], held["id"]);
        press_until(&terminal, &["y"], gone);
        user.is_empty();
        assert!(wait::until(LIMIT, || made("three")));
        user.person(&["deny", id(&row)]).was_refused("already-answered");
    });
}
