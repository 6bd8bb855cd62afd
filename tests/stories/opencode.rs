//! OpenCode: mail by its plugin, mid-turn, with a prompt, and into idle sessions.

use crate::stage::{LIMIT, Stage, rounds};
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::Kind;
use baton_testkit::{Script, Step, isolated};

const WHO: Agent = Agent::OpenCode;

#[test]
fn opencode_mail_sent_while_a_tool_runs_comes_with_the_next_request() {
    isolated(|| {
        for round in 0..rounds() {
            let stage = Stage::with(
                &[WHO],
                Script::by(|request| match request.results().len() {
                    0 => Step::shell("sleep 2; echo from-the-tool"),
                    _ => Step::say("finished"),
                }),
            );
            let agent = stage.start(WHO, Session::New, "please begin");
            stage.request(|_| true);
            let body = format!("MAIL-MID-{round}");
            stage.send(&stage.name_of(WHO), &body);
            agent.finish(LIMIT).expect_ok();
            stage.shown_once(&body);
            let requests = stage.model.requests_of(Kind::Main);
            assert!(
                requests[1].shows(&body),
                "it came later than with the tool's result: {}",
                stage.trouble()
            );
            assert_eq!(stage.end_of(&body), "seen", "{}", stage.trouble());
        }
    });
}

#[test]
fn opencode_mail_for_a_session_that_is_not_running_waits_for_its_resume() {
    isolated(|| {
        let stage = Stage::with(&[WHO], Script::by(|_| Step::say("finished")));
        let run = stage.run(WHO, Session::New, "please begin");
        let session = stage.session_id(WHO, &run);
        stage.send(&session, "MAIL-WAITING-1");
        stage.send(&session, "MAIL-WAITING-2");
        stage.run(WHO, Session::Resume(&session), "go on");
        for body in ["MAIL-WAITING-1", "MAIL-WAITING-2"] {
            stage.shown_once(body);
            assert_eq!(stage.end_of(body), "seen", "{}", stage.trouble());
        }
    });
}
