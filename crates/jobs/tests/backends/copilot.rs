//! GitHub Copilot CLI.

use crate::bench::{self, Stage};
use crate::promises;
use baton_core::Code;
use baton_core::approval::Answer;
use baton_core::job::{Allow, Observation, ToolKind, ToolState};
use baton_jobs::backend::Task;
use baton_testkit::agents::Agent;
use baton_testkit::isolated;
use baton_testkit::model::{Script, Step};
use std::fs;

const AGENT: Agent = Agent::Copilot;

#[test]
fn a_turn_with_tools_ends_with_what_the_model_said() {
    isolated(|| promises::a_turn_with_tools_ends_with_what_the_model_said(AGENT));
}

#[test]
fn a_wild_prompt_arrives_whole() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::say("ok")]);
        let prompt = bench::hard_text(104 << 10);
        let job = stage.ask(&prompt);
        job.said();
        let asked = stage.asked();
        // It puts the date before it, and we a line behind it, because it ends with white space.
        let text = asked[0].last_user_text();
        let (_, text) = text.split_once("</current_datetime>\n\n").expect("the date");
        assert_eq!(text.strip_suffix("\n(That is the whole task.)"), Some(prompt.as_str()));
    });
}

#[test]
fn a_resumed_session_knows_what_was_said() {
    isolated(|| promises::a_resumed_session_knows_what_was_said(AGENT));
}

#[test]
fn a_model_that_hangs_is_left_by_an_abort() {
    isolated(|| promises::a_model_that_hangs_is_left_by_an_abort(|step| Stage::steps(AGENT, [step])));
}

#[test]
fn an_abort_ends_the_command_that_runs() {
    isolated(|| promises::an_abort_ends_the_command_that_runs(AGENT));
}

#[test]
fn a_killed_program_is_gone() {
    isolated(|| promises::a_killed_program_is_gone(AGENT));
}

#[test]
fn a_refused_key_is_a_fault_though_it_says_that_the_turn_ended() {
    isolated(|| {
        promises::a_refused_request_is_a_fault(AGENT, 401, Code::NotLoggedIn);
    });
}

#[test]
fn a_failing_server_is_a_fault_though_it_says_that_the_turn_ended() {
    isolated(|| {
        promises::a_refused_request_is_a_fault(AGENT, 500, Code::BackendError);
    });
}

#[test]
fn a_limit_is_a_fault_once_it_gives_up() {
    isolated(|| {
        // It waits as long as the server says, five times. If the time is too long, it does not
        // wait at all.
        for (seconds, asked) in [(1, 6), (7200, 1)] {
            let stage = Stage::new(AGENT, Script::by(move |_| Step::limited(seconds, "scripted refusal")));
            let job = stage.ask("hello");
            let fault = job.fault();
            assert_eq!(fault.error.code(), Code::RateLimited, "{fault:?}");
            assert!(fault.error.message().contains("scripted refusal"), "{fault:?}");
            assert!(!job.has(|seen| matches!(seen, Observation::Said(_) | Observation::Idle)));
            assert_eq!(stage.asked().len(), asked);
        }
    });
}

#[test]
fn a_broken_answer_is_no_end() {
    isolated(|| promises::a_broken_answer_is_no_end(AGENT, 2));
}

#[test]
fn a_read_only_job_changes_nothing() {
    isolated(|| promises::a_read_only_job_changes_nothing(AGENT));
}

#[test]
fn what_a_hook_of_the_user_denies_is_denied_though_all_is_allowed() {
    isolated(|| {
        let stage =
            Stage::steps(AGENT, [Step::shell("touch denied"), Step::shell("touch fine"), Step::say("x")]);
        let hooks = stage.sandbox.path("home/.copilot/hooks");
        fs::create_dir_all(&hooks).unwrap();
        let deny = r#"if grep -q denied; then echo '{"permissionDecision":"deny","permissionDecisionReason":"never"}'; fi"#;
        let hook = serde_json::json!({"version": 1, "hooks": {"preToolUse": [
            {"type": "command", "bash": deny, "timeoutSec": 5}]}});
        fs::write(hooks.join("mine.json"), hook.to_string()).unwrap();
        let job = stage.ask("try");
        job.said();
        assert!(!stage.file("denied").exists());
        assert!(stage.file("fine").exists());
        assert!(stage.asked()[1].shows("never"));
    });
}

#[test]
fn edits_need_no_question_and_commands_do() {
    isolated(|| {
        let stage = Stage::steps(AGENT, []);
        let file = stage.file("edited").to_string_lossy().into_owned();
        let stage = stage.again([Step::write(&file, "x"), Step::shell("touch made"), Step::say("x")]);
        let job = stage.start(&Task { allow: Allow::Edits, ..stage.task("try") });
        let question = job.question();
        assert_eq!(question.subject.as_command(), Some("touch made"));
        assert!(stage.file("edited").exists() && !stage.file("made").exists());
        job.tool(ToolKind::Shell, ToolState::Pending);
        job.turn.answer(&question, &Answer::Allow).unwrap();
        job.wait_for(&Observation::Settled(question.id));
        job.said();
        assert!(stage.file("made").exists());
        assert!(job.turn.answer(&crate::bench::unknown("7"), &Answer::Allow).is_err());
    });
}

#[test]
fn what_is_denied_does_not_happen_and_the_turn_goes_on() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::shell("touch made"), Step::say("I see")]);
        let job = stage.start(&Task { allow: Allow::Ask, ..stage.task("try") });
        job.turn.answer(&job.question(), &Answer::Deny("use a file".to_owned())).unwrap();
        assert_eq!(job.said().text, "I see");
        assert!(stage.asked()[1].shows("denied. use a file"));
        let recalled = stage.backend().recall(&stage.task("try"), &job.session()).unwrap();
        assert_eq!(recalled.said.unwrap().text, "I see");
        assert!(!stage.file("made").exists());
    });
}

#[test]
fn s2_nothing_is_allowed_for_good_without_a_rule_and_no_file_of_the_user_says_so() {
    isolated(|| {
        let stage =
            Stage::steps(AGENT, [Step::shell("touch made"), Step::shell("touch made"), Step::say("x")]);
        let job = stage.start(&Task { allow: Allow::Ask, ..stage.task("try") });
        let first = job.question();
        assert!(job.turn.answer(&first, &Answer::AllowAlways).is_err(), "no rule is shown");
        job.turn.answer(&first, &Answer::Allow).unwrap();
        job.turn.answer(&job.question_after(&[&first]), &Answer::Allow).unwrap();
        job.said();
        assert_eq!(job.questions().len(), 2);
        let home = stage.sandbox.path("home/.copilot");
        for file in ["permissions-config.json", "settings.json", "config.json"] {
            let text = fs::read_to_string(home.join(file)).unwrap_or_default();
            assert!(!text.contains("touch"), "{file}: {text}");
        }
    });
}

#[test]
fn an_effort_that_the_model_lacks_is_named() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::say("x")]);
        let (model, effort) = (Some("another".to_owned()), Some("low".to_owned()));
        let task = Task { model, effort, ..stage.task("hello") };
        stage.backend().check(&task).unwrap();
        let job = stage.start(&task);
        assert_eq!(job.fault().error.code(), Code::UnsupportedOption);
        let task = Task { model: Some("another".to_owned()), ..stage.task("hello") };
        let job = stage.start(&task);
        job.said();
        assert_eq!(stage.asked()[0].body["model"], "another");
    });
}
