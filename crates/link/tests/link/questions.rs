//! Questions of OpenCode, from the plugin's line to the inbox and back.

use super::{Plugin, SESSION, TIMEOUT, World, until};
use baton_core::approval::{Answer, State};
use baton_store::{ApprovalRow, Approvals, Role};
use serde_json::{Value, json};
use std::io::BufRead as _;
use std::time::Duration;

/// Long enough to notice a line that must not come: a line takes a few milliseconds.
const SILENCE_TIME: Duration = Duration::from_millis(300);

impl World {
    pub(super) fn approvals(&self) -> Approvals {
        Approvals::open(self.home.path(), Role::Command).unwrap()
    }

    /// The question about that request, in any state.
    pub(super) fn question(&self, request: &str) -> ApprovalRow {
        let found =
            |world: &Self| world.approvals().latest(50).unwrap().into_iter().find(|row| row.asked == request);
        until("it is not recorded", || found(self).is_some());
        found(self).unwrap()
    }

    pub(super) fn becomes(&self, row: &ApprovalRow, state: State) -> ApprovalRow {
        let now = || self.approvals().get(&row.id).unwrap().unwrap();
        until(&format!("it does not become {state}"), || now().state == state);
        now()
    }

    /// Answers a question. Returns whether that was the first answer.
    pub(super) fn answer(&self, row: &ApprovalRow, answer: &Answer) -> bool {
        let moved = self
            .approvals()
            .answer(&row.id, row.digest.as_ref().unwrap(), answer, "user", baton_machine::clock::now())
            .unwrap()
            .unwrap();
        baton_approvals::ring(self.home.path());
        moved.moved
    }
}

impl Plugin {
    fn asks(&mut self, world: &World, request: &str) -> ApprovalRow {
        let call = format!("call_{request}");
        let asked = json!({
            "id": request, "sessionID": SESSION, "permission": "bash", "patterns": ["ls"], "metadata": {"command": "ls"},
            "always": ["ls *"], "tool": {"messageID": "msg_1", "callID": call},
        });
        self.tell("permission.asked", &json!({ "asked": asked }));
        world.question(request)
    }

    /// The next line, which must be an answer.
    pub(super) fn replied(&mut self) -> Value {
        let line = self.read();
        assert!(line["reply"].is_object(), "{line}");
        line["reply"].clone()
    }

    pub(super) fn outcome(&mut self, request: &str, outcome: &str) {
        self.tell(
            "approval.outcome",
            &json!({"request": request, "outcome": outcome, "detail": "so it was"}),
        );
    }

    /// Checks that no line comes.
    pub(super) fn is_silent(&mut self) {
        self.stream.set_read_timeout(Some(SILENCE_TIME)).unwrap();
        let line = self.lines.fill_buf().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(line.is_err(), "{line:?}");
        self.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    }
}

#[test]
fn an_answer_is_handed_over_once_and_counts_when_the_plugin_saw_it() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    for (request, answer, word, end) in [
        ("per_1", Answer::Allow, "once", State::Approved),
        ("per_2", Answer::AllowAlways, "always", State::Approved),
        ("per_3", Answer::Deny("use ls".into()), "reject", State::Denied),
    ] {
        let row = plugin.asks(&world, request);
        assert_eq!(row.state, State::Waiting);
        assert!(world.answer(&row, &answer));
        let reply = plugin.replied();
        assert_eq!((&reply["request"], &reply["answer"]), (&json!(request), &json!(word)));
        assert!(!world.answer(&row, &Answer::Allow), "there is one answer");
        // This report alone may be about an answer that came too late.
        plugin.tell("permission.replied", &json!({"request": request, "reply": word}));
        world.becomes(&row, State::Handed);
        plugin.outcome(request, "effective");
        world.becomes(&row, end);
    }
    assert_eq!(world.approvals().pending().unwrap(), []);
    plugin.is_silent();
    plugin.close();
}

#[test]
fn what_the_plugin_says_about_an_answer_is_how_it_ends() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    for answer in [Answer::Allow, Answer::Deny(String::new())] {
        let request = format!("per_{}", answer.in_words().0);
        let row = plugin.asks(&world, &request);
        world.answer(&row, &answer);
        plugin.replied();
        // The answer did not arrive, so the question may be answered again.
        plugin.outcome(&request, "refused");
        let row = world.becomes(&row, State::Waiting);
        assert_eq!(row.note.as_deref(), Some("so it was"));
        world.answer(&row, &answer);
        plugin.replied();
        // The result is unknown, so the question is not answered again.
        plugin.outcome(&request, "unsure");
        assert!(!world.answer(&row, &answer));
        plugin.outcome(&request, "gone");
        world.becomes(&row, State::Elsewhere);
    }
    // The result is unknown, and then the tool has run.
    let row = plugin.asks(&world, "per_run");
    world.answer(&row, &Answer::Allow);
    plugin.replied();
    plugin.outcome("per_run", "unsure");
    plugin.tell("tool.execute.after", &json!({"tool_name": "bash", "tool_use_id": "call_per_run"}));
    world.becomes(&row, State::Approved);
    plugin.is_silent();
    plugin.close();
}

#[test]
fn what_is_answered_in_opencode_or_dropped_there_takes_no_answer_here() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    let rows = ["per_1", "per_2", "per_3"].map(|request| plugin.asks(&world, request));
    plugin.tell("permission.replied", &json!({"request": "per_1", "reply": "reject"}));
    plugin.tell("approval.gone", &json!({"request": "per_2"}));
    for row in &rows[..2] {
        world.becomes(row, State::Elsewhere);
        assert!(!world.answer(row, &Answer::Allow));
    }
    // Another event ends the session's turn. The plugin has not reported that the third question is
    // over.
    plugin.tell("turn.done", &json!({}));
    assert_eq!(world.question("per_3").state, State::Waiting);
    // A child's question is listed with its session.
    let asked = json!({"id": "per_4", "permission": "bash", "patterns": ["ls"]});
    plugin.tell("permission.asked", &json!({"agent_id": "ses_child", "asked": asked}));
    let child = world.question("per_4");
    assert_eq!((child.session.as_str(), child.subagent.as_deref()), (SESSION, Some("ses_child")));
    plugin.is_silent();
    plugin.close();
    world.becomes(&rows[2], State::Gone);
    world.becomes(&child, State::Gone);
}

#[test]
fn words_go_to_each_question_with_the_labels_that_were_chosen() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    let options = |labels: &[&str]| Value::from_iter(labels.iter().map(|label| json!({"label": label})));
    let questions = json!([
        {"question": "Which?", "options": options(&["Left", "Right"])},
        {"question": "Who?", "multiple": true, "options": options(&["Me", "You"])},
    ]);
    for (request, words, answers) in [
        ("que_1", "left\nyou,me", json!([["Left"], ["You", "Me"]])),
        ("que_2", "whatever", json!([["whatever"], ["whatever"]])),
        ("que_3", "up, or down\nYou", json!([["up, or down"], ["You"]])),
    ] {
        plugin.tell("question.asked", &json!({"asked": {"id": request, "questions": questions}}));
        let row = world.question(request);
        world.answer(&row, &Answer::Words(words.into()));
        let reply = plugin.replied();
        assert_eq!((&reply["kind"], &reply["answers"]), (&json!("question"), &answers));
        plugin.outcome(request, "effective");
        world.becomes(&row, State::Replied);
    }
    plugin.close();
}

#[test]
fn a_locked_store_delays_what_is_asked_and_loses_nothing() {
    let world = World::new();
    let mut plugin = world.plugin();
    plugin.tell("session.created", &json!({}));
    let first = plugin.asks(&world, "per_1");
    let locked = rusqlite::Connection::open(world.home.path().join("approvals.db")).unwrap();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let asked = json!({"id": "per_2", "permission": "bash", "patterns": ["ls"]});
    plugin.tell("permission.asked", &json!({ "asked": asked }));
    plugin.tell("permission.replied", &json!({"request": "per_1", "reply": "once"}));
    assert_eq!(world.question("per_1").state, State::Waiting);
    locked.execute_batch("ROLLBACK").unwrap();
    world.becomes(&first, State::Elsewhere);
    assert_eq!(world.question("per_2").state, State::Waiting);
    plugin.close();
}
