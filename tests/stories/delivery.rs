//! A message reaches the other's model request exactly once: at start, at a prompt, between tools, at a stop.

use crate::stage::{LIMIT, Stage, both, rounds};
use baton_testkit::agents::Session;
use baton_testkit::model::{Kind, Part};
use baton_testkit::{Script, Step, isolated};
use std::time::Duration;

/// One tool that takes a while, then the end.
fn slow_tool(seconds: f32) -> Script {
    Script::by(move |request| match request.results().len() {
        0 => Step::shell(format!("sleep {seconds}; echo from-the-tool")),
        _ => Step::say("finished"),
    })
}

#[test]
fn mail_sent_while_a_tool_runs_comes_with_the_next_request() {
    isolated(|| {
        for who in both() {
            for round in 0..rounds() {
                let stage = Stage::new(slow_tool(1.0));
                let agent = stage.start(who, Session::New, "please begin");
                stage.request(|_| true);
                let body = format!("MAIL-MID-{round}");
                stage.send(&stage.name_of(who), &body);
                agent.finish(LIMIT).expect_ok();
                stage.shown_once(&body);
                let requests = stage.model.requests_of(Kind::Main);
                assert!(
                    requests[1].shows(&body),
                    "{who:?}: it came later than with the tool's result: {}",
                    stage.trouble()
                );
                assert_eq!(stage.end_of(&body), "seen", "{who:?}: {}", stage.trouble());
            }
        }
    });
}

#[test]
fn mail_sent_before_the_turn_ends_keeps_it_going() {
    isolated(|| {
        for who in both() {
            for round in 0..rounds() {
                let script = Script::by(|request| {
                    if request.shows("MAIL-STOP") {
                        Step::say("finished")
                    } else {
                        Step::say("thinking").after(Duration::from_secs(1))
                    }
                });
                let stage = Stage::new(script);
                let agent = stage.start(who, Session::New, "please begin");
                stage.request(|_| true);
                let body = format!("MAIL-STOP-{round}");
                stage.send(&stage.name_of(who), &body);
                agent.finish(LIMIT).expect_ok();
                stage.shown_once(&body);
                assert_eq!(stage.end_of(&body), "seen", "{who:?}: {}", stage.trouble());
            }
        }
    });
}

#[test]
fn mail_for_a_session_that_is_not_running_waits_for_its_resume() {
    isolated(|| {
        for who in both() {
            let stage = Stage::new(Script::by(|_| Step::say("finished")));
            let run = stage.run(who, Session::New, "please begin");
            let session = stage.session_id(who, &run);
            stage.send(&session, "MAIL-WAITING-1");
            stage.send(&session, "MAIL-WAITING-2");
            stage.run(who, Session::Resume(&session), "go on");
            for body in ["MAIL-WAITING-1", "MAIL-WAITING-2"] {
                stage.shown_once(body);
                assert_eq!(stage.end_of(body), "seen", "{who:?}: {}", stage.trouble());
            }
            let last = stage.model.requests_of(Kind::Main).pop().unwrap();
            let text: String = last.said().iter().map(|said| said.text.clone()).collect();
            assert!(text.find("MAIL-WAITING-1") < text.find("MAIL-WAITING-2"), "in order");
        }
    });
}

#[test]
fn parallel_tools_bring_it_once() {
    isolated(|| {
        for who in both() {
            for round in 0..rounds() {
                let script = Script::by(|request| match request.results().len() {
                    0 => {
                        Step::parts((0..4).map(|n| Part::shell(format!("sleep 0.{n}; sleep 0.5; echo {n}"))))
                    }
                    _ => Step::say("finished"),
                });
                let stage = Stage::new(script);
                let agent = stage.start(who, Session::New, "please begin");
                stage.request(|_| true);
                let name = stage.name_of(who);
                let bodies: Vec<_> = (0..3).map(|n| format!("MAIL-PARALLEL-{round}-{n}")).collect();
                for body in &bodies {
                    stage.send(&name, body);
                }
                agent.finish(LIMIT).expect_ok();
                for body in &bodies {
                    stage.shown_once(body);
                    assert_eq!(stage.end_of(body), "seen", "{who:?}: {}", stage.trouble());
                }
            }
        }
    });
}

/// Three seconds by default; ten under `scripts/prove`, which sets `BATON_ROUNDS`.
#[test]
fn a_tool_of_ten_seconds_brings_it_once() {
    isolated(|| {
        let seconds = if rounds() > 1 { 10.0 } else { 3.0 };
        for who in both() {
            let stage = Stage::new(slow_tool(seconds));
            let agent = stage.start(who, Session::New, "please begin");
            stage.request(|_| true);
            let name = stage.name_of(who);
            for body in ["MAIL-EARLY", "MAIL-LATER"] {
                stage.send(&name, body);
                std::thread::sleep(Duration::from_secs_f32(seconds / 3.0));
                assert_eq!(stage.state_of(body), "queued", "nothing is offered while the tool runs");
            }
            agent.finish(LIMIT).expect_ok();
            for body in ["MAIL-EARLY", "MAIL-LATER"] {
                stage.shown_once(body);
                assert_eq!(stage.end_of(body), "seen", "{who:?}: {}", stage.trouble());
            }
        }
    });
}
