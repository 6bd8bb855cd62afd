//! Questions of Claude Code: its dialog and a held hook live side by side, the first answer wins,
//! and an answer counts when it has taken effect.

use crate::inbox_user::{InboxUser, id};
use crate::sandbox::{LIMIT, StorySandbox, press_until, rounds, submit, wait_for_screen};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_agents::Screen;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Kind, Part};
use baton_testkit::{Script, Step, Tmux, isolated, wait};
use serde_json::json;
use std::collections::HashSet;
use std::fs;
use std::sync::Mutex;
use std::time::Duration;

const WHO: Agent = Agent::Claude;
const DIALOG: &str = "Do you want to proceed?";
/// As a person reads it. Its dialog takes no key in the first moment.
const READING: Duration = Duration::from_millis(300);
const COLOUR: &str = "Which colour?";

fn stage(script: Script) -> StorySandbox {
    StorySandbox::with(&[WHO], script).without_waking()
}

#[test]
fn claude_without_a_terminal_waits_for_the_person_at_the_inbox() {
    isolated(|| {
        let times = rounds();
        // Each round a yes and a no.
        let stage = stage(Script::by(move |request| match request.results().len() + 1 {
            number if number <= 2 * times => Step::shell(format!("touch made-{number}")),
            number if number == 2 * times + 1 => Step::shell(format!("touch long; {UNTIL_TOLD}")),
            number if number == 2 * times + 2 => Step::shell("touch always"),
            number if number == 2 * times + 3 => Step::shell("touch unasked"),
            _ => Step::say("finished"),
        }));
        let Some(user) = InboxUser::new(&stage) else { return };
        let agent = stage.sandbox.start(&mut stage.claude().asking().headless(Session::New, "please begin"));
        user.answers_in_turns("claude", |file| {
            let row = user.question(&format!("Bash: touch {file}"), "waiting");
            assert!(row["always"].as_str().is_some_and(|always| always.contains("of the session")), "{row}");
            row
        });
        // Said while it still runs.
        let long = user.question(&format!("Bash: touch long; {UNTIL_TOLD}"), "waiting");
        user.approve_until(id(&long), "long");
        end_tools(&stage);
        let always = user.question("Bash: touch always", "waiting");
        user.person(&[
            "approve",
            id(&always),
            "--always",
            "--yes",
            "--digest",
            always["digest"].as_str().expect("a digest"),
        ])
        .took_effect();
        agent.finish(LIMIT).expect_ok();
        assert!(stage.sandbox.project().join("unasked").exists(), "it was asked about again");
        assert!(!stage.sandbox.project().join(".claude").exists(), "the project has nothing of it");
        assert!(user.inbox().is_empty(), "{:?}", user.inbox());
        stage.nothing_unknown();
    });
}

#[test]
fn claude_asks_for_each_subagent_and_its_questions_die_with_it() {
    isolated(|| {
        let begin = |name: &str| {
            let input = json!({"description": name, "prompt": format!("make {name}"), "subagent_type": "general-purpose"});
            Part::tool("Agent", input)
        };
        let main = Script::by(move |request| match request.results().len() {
            0 => Step::parts(["first", "second", "third"].map(begin)),
            _ => Step::say("finished"),
        });
        let script = main.subagents(|request| {
            let name =
                ["first", "second", "third"].into_iter().find(|name| request.shows(&format!("make {name}")));
            match (request.results().len(), name) {
                (0, Some(name)) => Step::shell(format!("touch {name}")),
                _ => Step::say("finished"),
            }
        });
        let stage = stage(script);
        let Some(user) = InboxUser::new(&stage) else { return };
        let mut agent =
            stage.sandbox.start(&mut stage.claude().asking().headless(Session::New, "please begin"));
        // All at once.
        let [first, second, third] =
            ["first", "second", "third"].map(|name| user.question(&format!("Bash: touch {name}"), "waiting"));
        user.person(&["deny", id(&second), "--reason", "not that one"]).took_effect();
        let told = |request: &baton_testkit::model::Request| {
            request.kind == Kind::Subagent && request.shows("make second") && request.shows("not that one")
        };
        assert!(stage.model.wait_for(LIMIT, told).is_some(), "{}", stage.trouble());
        user.approve_until(id(&first), "first");
        agent.kill();
        user.person(&["approve", id(&third)]).was_refused("asker-gone");
        user.is_empty();
        for name in ["second", "third"] {
            assert!(!stage.sandbox.project().join(name).exists(), "{name} was never allowed");
        }
    });
}

/// The model runs what each prompt names, once.
fn runs_what_is_named() -> Script {
    let options = json!([{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]);
    let question = json!({"question": COLOUR, "header": "Colour", "multiSelect": false, "options": options});
    let run = Mutex::new(HashSet::new());
    Script::by(move |request| {
        let named =
            request.last_user_text().split_once("run: ").map(|(_, command)| command.trim().to_owned());
        let new = named.filter(|command| run.lock().expect("nobody panics with it").insert(command.clone()));
        match new.as_deref() {
            Some("a question") => Step::tool("AskUserQuestion", json!({"questions": [&question]})),
            Some(command) => Step::shell(command),
            None => Step::say("finished"),
        }
    })
}

/// Has it ask about a command, in its own dialog too.
fn ask(terminal: &Tmux<'_>, command: &str) {
    wait_for_screen(terminal, WHO, &Screen::Ready);
    submit(terminal, WHO, &format!("run: {command}"));
    terminal.wait_for(DIALOG, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    std::thread::sleep(READING);
}

#[test]
fn claude_in_a_terminal_takes_the_first_answer_wherever_it_comes_from() {
    isolated(|| {
        let stage = stage(runs_what_is_named());
        stage.configure("wake = \"off\"\n[approvals]\nhold = \"20s\"\n");
        let Some(user) = InboxUser::new(&stage) else { return };
        let made = |name: &str| stage.sandbox.project().join(name).exists();
        let terminal = stage.claude().asking().open("claude", Session::New);
        let gone = |screen: &str| !screen.contains(DIALOG);

        // Nobody watches: nothing is held.
        ask(&terminal, "touch one");
        let row = user.question("Bash: touch one", "only-in-terminal");
        user.person(&["approve", id(&row)]).was_refused("only-in-terminal");
        press_until(&terminal, &["Enter"], gone);
        user.is_empty();
        assert!(wait::until(LIMIT, || made("one")), "{}", terminal.screen());
        ask(&terminal, "touch two");
        user.question("Bash: touch two", "only-in-terminal");
        press_until(&terminal, &["Escape"], gone);
        user.is_empty();
        assert!(!made("two"));

        // Someone watches: the first answer wins.
        let watcher = user.start(&["approvals", "--watch"]);
        ask(&terminal, "touch three");
        let row = user.question("Bash: touch three", "waiting");
        user.approve_until(id(&row), "three");
        assert!(wait::until(LIMIT, || gone(&terminal.screen())), "{}", terminal.screen());
        assert!(wait::until(LIMIT, || watcher.stdout().contains("\"approved\"")), "{}", watcher.stdout());

        let long = format!("touch four; {UNTIL_TOLD}");
        ask(&terminal, &long);
        let row = user.question(&format!("Bash: {long}"), "waiting");
        press_until(&terminal, &["Enter"], gone);
        // It runs, and a no does not change that.
        user.is_empty();
        assert!(wait::until(LIMIT, || made("four")), "{}", terminal.screen());
        user.person(&["deny", id(&row)]).was_refused("already-answered");
        end_tools(&stage);

        ask(&terminal, "touch five");
        let row = user.question("Bash: touch five", "waiting");
        press_until(&terminal, &["Escape"], gone);
        user.is_empty();
        user.person(&["approve", id(&row)]).was_refused("already-answered");
        assert!(!made("five"));

        // What takes words.
        wait_for_screen(&terminal, WHO, &Screen::Ready);
        submit(&terminal, WHO, "run: a question");
        let row = user.long_question(&format!("AskUserQuestion: {COLOUR}"), "waiting");
        assert_eq!((&row["kind"], &row["choices"]), (&"question".into(), &json!(["Red", "Blue"])), "{row}");
        user.person(&[
            "approve",
            id(&row),
            "--answer",
            "Blue",
            "--digest",
            row["digest"].as_str().expect("a digest"),
        ])
        .took_effect();
        stage.request(|request| request.shows("\"Which colour?\"=\"Blue\""));
    });
}

/// Its own dialog is answered, and at the same instant the inbox gets the opposite answer. What is
/// reported is what became of it.
#[test]
fn claude_is_never_said_to_have_done_what_it_did_not() {
    isolated(|| {
        let stage = stage(runs_what_is_named());
        let Some(user) = InboxUser::new(&stage) else { return };
        let _watcher = user.start(&["approvals", "--watch"]);
        let claude = stage.claude().asking();
        let terminal = claude.open("claude", Session::New);
        // How often it says itself that a call was refused.
        let refusals = || -> usize {
            let written = claude.transcripts().into_iter().filter_map(|file| fs::read_to_string(file).ok());
            written.map(|text| text.matches("\"toolDenialKind\"").count()).sum()
        };
        for number in 0..2 * rounds() {
            let refused = refusals();
            let command = format!("touch made-{number}; sleep 1");
            ask(&terminal, &command);
            let row = user.question(&format!("Bash: {command}"), "waiting");
            let (key, answer) = if number % 2 == 0 { ("Enter", "deny") } else { ("Escape", "approve") };
            terminal.press(&[key]);
            let answered = user.person(&[answer, id(&row)]);
            user.is_empty();
            wait_for_screen(&terminal, WHO, &Screen::Ready);
            let ran = stage.sandbox.project().join(format!("made-{number}")).exists();
            match answered.code {
                // Where the yes came first, Escape ends what runs already, perhaps before it has
                // made anything.
                Some(0) if answer == "approve" && !ran => {
                    assert_eq!(refusals(), refused, "{key}, {answer}: {}", answered.document);
                }
                Some(0) => assert_eq!(ran, answer == "approve", "{key}, {answer}: {}", answered.document),
                _ => assert_eq!(ran, key == "Enter", "{key}, {answer}: {}", answered.document),
            }
        }
    });
}

/// A pattern of the person's answers for him, without a terminal, and nothing beside it: what is
/// left waits out the hold and is refused.
#[test]
fn claude_runs_what_a_rule_permits_and_nothing_beside_it() {
    isolated(|| {
        let stage = stage(Script::by(|request| match request.results().len() {
            0 => Step::shell("touch made-1 && touch made-2"),
            1 => Step::shell("touch made-3; touch other"),
            2 => Step::shell("touch made-4 $(touch other)"),
            _ => Step::say("finished"),
        }));
        stage.configure(
            "wake = \"off\"\n[approvals]\nhold = \"1s\"\nauto_approve = [\"bash: touch made-*\"]\n",
        );
        let agent = stage.sandbox.start(&mut stage.claude().asking().headless(Session::New, "please begin"));
        agent.finish(LIMIT).expect_ok();
        let there = |file: &str| stage.sandbox.project().join(file).exists();
        let made = ["made-1", "made-2", "made-3", "made-4", "other"].map(there);
        assert_eq!(made, [true, true, false, false, false], "{}", stage.trouble());
    });
}
