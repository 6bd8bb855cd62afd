//! Questions of Gemini CLI: only its own dialog takes an answer.

use crate::inbox_user::InboxUser;
use crate::sandbox::{LIMIT, StorySandbox, press_until, submit};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::gemini::Gemini;
use baton_testkit::{Script, Step, isolated};

const WHO: Agent = Agent::Gemini;

#[test]
fn gemini_is_listed_until_its_own_dialog_is_answered() {
    isolated(|| {
        let script = Script::by(|request| match request.results().len() {
            0 => Step::shell("touch allowed-there"),
            1 => Step::write("refused-there", "text of the file"),
            _ => Step::say("finished"),
        });
        let stage = StorySandbox::with(&[WHO], script).without_waking();
        let Some(user) = InboxUser::new(&stage) else { return };
        let made = |name: &str| stage.sandbox.project().join(name).exists();
        let terminal = Gemini::new(&stage.sandbox, &stage.model).asking().open("gemini", Session::New);
        submit(&terminal, WHO, "please begin");
        let row = user.question("run_shell_command: touch allowed-there", "only-in-terminal");
        let id = row["id"].as_str().expect("an id");
        user.person(&["approve", id]).was_refused("only-in-terminal");
        assert!(!made("allowed-there"));
        terminal.wait_for("Allow execution", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        press_until(&terminal, &["Enter"], |screen| !screen.contains("Allow execution"));
        terminal.wait_for("Apply this change?", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        assert!(made("allowed-there"));
        user.person(&["approve", id]).was_refused("already-answered");
        let rows = user.inbox();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0]["what"].as_str().is_some_and(|what| what.contains("refused-there … (")), "{rows:?}");
        assert!(
            rows[0]["detail"].as_str().is_some_and(|diff| diff.contains("+text of the file")),
            "{rows:?}"
        );
        press_until(&terminal, &["Escape"], |screen| !screen.contains("Apply this change?"));
        user.is_empty();
        assert!(!made("refused-there"));
    });
}

/// Also where it asks for nothing itself.
#[test]
fn gemini_shows_its_own_dialog_for_what_the_guard_wants_asked() {
    isolated(|| {
        let script = Script::by(|request| match request.results().len() {
            0 => Step::shell("touch counted"),
            _ => Step::say("finished"),
        });
        let stage = StorySandbox::with(&[WHO], script);
        let rule = "[[guard.rule]]\nid = \"count-files\"\ndecision = \"ask\"\ncommand = \"touch **\"\nreason = \"Files are counted.\"\n";
        stage.configure(&format!("wake = \"off\"\n{rule}"));
        let Some(user) = InboxUser::new(&stage) else { return };
        let terminal = stage.open(WHO, Session::New);
        submit(&terminal, WHO, "please begin");
        let row = user.long_question("run_shell_command: touch counted", "only-in-terminal");
        assert!(row["why"].as_str().is_some_and(|why| why.contains("Files are counted.")), "{row}");
        terminal.wait_for("Allow execution", LIMIT).unwrap_or_else(|error| panic!("{error}"));
        press_until(&terminal, &["Enter"], |screen| !screen.contains("Allow execution"));
        user.is_empty();
        assert!(stage.sandbox.project().join("counted").exists());
    });
}
