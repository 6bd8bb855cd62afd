//! A message reaches the other's model request exactly once: at start, at a prompt, between tools,
//! at a stop.

use crate::moments;
use crate::sandbox::{LIMIT, StorySandbox, both, rounds};
use crate::sync_points::{UNTIL_TOLD, end_tools};
use baton_testkit::agents::Session;
use baton_testkit::{Script, Step, isolated};
use std::time::Duration;

#[test]
fn mail_sent_while_a_tool_runs_comes_with_the_next_request() {
    isolated(|| both().into_iter().for_each(moments::while_a_tool_runs));
}

#[test]
fn mail_sent_before_the_turn_ends_keeps_it_going() {
    isolated(|| both().into_iter().for_each(moments::before_the_turn_ends));
}

#[test]
fn mail_for_a_session_that_is_not_running_waits_for_its_resume() {
    isolated(|| both().into_iter().for_each(moments::waits_for_the_resume));
}

#[test]
fn parallel_tools_bring_it_once() {
    isolated(|| both().into_iter().for_each(moments::parallel_tools));
}

/// Three seconds by default; ten under `scripts/prove`, which sets `BATON_ROUNDS`.
#[test]
fn a_tool_of_ten_seconds_brings_it_once() {
    isolated(|| {
        let third = if rounds() > 1 { 10.0 } else { 3.0 } / 3.0;
        for who in both() {
            // Codex lets a tool of more than ten seconds run in its background.
            let tool = format!("{UNTIL_TOLD}; sleep {third}");
            let stage = StorySandbox::new(Script::by(move |request| match request.results().len() {
                0 => Step::shell(tool.as_str()),
                _ => Step::say("finished"),
            }));
            let agent = stage.start(who, Session::New, "please begin");
            stage.request(|_| true);
            let name = stage.name_of(who);
            for body in ["MAIL-EARLY", "MAIL-LATER"] {
                stage.send(&name, body);
                std::thread::sleep(Duration::from_secs_f32(third));
                assert_eq!(stage.state_of(body), "queued", "nothing is offered while the tool runs");
            }
            end_tools(&stage);
            agent.finish(LIMIT).expect_ok();
            for body in ["MAIL-EARLY", "MAIL-LATER"] {
                stage.shown_once(body);
                assert_eq!(stage.end_of(body), "seen", "{who:?}: {}", stage.trouble());
            }
        }
    });
}
