//! Claude Code.

use crate::bench::{self, Stage, all_gone, endless, pid_in};
use crate::promises;
use baton_core::Code;
use baton_core::approval::{Answer, QuestionKind};
use baton_core::job::{Allow, Finish, Observation, ToolKind, ToolState};
use baton_jobs::backend::Task;
use baton_testkit::agents::Agent;
use baton_testkit::claude::Claude;
use baton_testkit::isolated;
use baton_testkit::model::{Part, Script, Step};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

const AGENT: Agent = Agent::Claude;

fn settings(stage: &Stage, permissions: serde_json::Value) {
    Claude::new(&stage.sandbox, &stage.model).edit_settings(|settings| settings["permissions"] = permissions);
}

#[test]
fn a_turn_with_tools_ends_with_what_the_model_said() {
    isolated(|| promises::a_turn_with_tools_ends_with_what_the_model_said(AGENT));
}

#[test]
fn a_wild_prompt_arrives_whole() {
    isolated(|| promises::a_prompt_arrives_whole(AGENT, &bench::hard_text(1 << 20)));
}

#[test]
fn a_prompt_is_no_command_and_reads_no_file() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::say("ok")]);
        fs::write(stage.file("secret"), "in the file").unwrap();
        let job = stage.ask("/cost of @secret");
        job.said();
        let asked = stage.asked();
        assert!(asked[0].shown().any(|said| said.text == "/cost of @secret"));
        assert!(!asked[0].shows("in the file"));
    });
}

#[test]
fn a_resumed_session_knows_what_was_said() {
    isolated(|| promises::a_resumed_session_knows_what_was_said(AGENT));
}

#[test]
fn a_session_that_is_not_there_is_not_resumed() {
    let stage = Stage::steps(AGENT, []);
    let task = Task { resume: Some("11111111-2222-4333-8444-555555555555".to_owned()), ..stage.task("x") };
    let fault = stage.refusal(&task);
    assert_eq!(fault.error.code(), Code::NothingToResume);
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
fn a_refused_key_is_told_as_such_and_not_tried_for_long() {
    isolated(|| {
        promises::a_refused_request_is_a_fault(AGENT, 401, Code::NotLoggedIn);
    });
}

#[test]
fn a_limit_and_a_failing_server_are_told_once_it_gives_up() {
    isolated(|| {
        for (status, code) in [(429, Code::RateLimited), (500, Code::BackendError)] {
            let stage = Stage::new(AGENT, Script::by(move |_| Step::error(status, "scripted refusal")));
            let mut task = stage.task("hello");
            task.environment.push(("CLAUDE_CODE_MAX_RETRIES".into(), "1".into()));
            let job = stage.start(&task);
            let fault = job.fault();
            assert_eq!(fault.error.code(), code);
            assert!(fault.error.message().contains("scripted refusal"), "{fault:?}");
            let retried = |one: &Observation| matches!(one, Observation::Retrying { until: Some(_), .. });
            assert!(job.has(retried));
        }
    });
}

#[test]
fn an_answer_that_is_cut_or_has_an_error_inside_is_no_end() {
    isolated(|| {
        let steps = [Step::say("half").cut(3), Step::inside("scripted"), Step::say("whole")];
        let stage = Stage::new(AGENT, Script::steps(steps));
        let job = stage.ask("hello");
        assert_eq!(job.said().text, "whole");
        assert_eq!(stage.asked().len(), 3);
    });
}

#[test]
fn a_read_only_job_changes_nothing_even_where_the_user_allows_all() {
    isolated(|| {
        promises::a_read_only_job_changes_nothing(AGENT);
        let stage =
            Stage::steps(AGENT, [Step::shell("touch made"), Step::shell("git status"), Step::say("x")]);
        settings(&stage, json!({"allow": ["Bash", "Write", "Edit"]}));
        let job = stage.start(&Task { read_only: true, ..stage.task("try") });
        job.said();
        assert!(!stage.file("made").exists());
        let last = stage.asked().last().cloned().unwrap();
        assert!(last.shows("This job is read-only"));
        assert!(last.shows("On branch main"), "reading commands run: {:#?}", last.results());
    });
}

#[test]
fn what_the_user_denies_is_denied_though_all_is_allowed() {
    isolated(|| {
        let stage =
            Stage::steps(AGENT, [Step::shell("touch denied"), Step::shell("touch fine"), Step::say("x")]);
        settings(&stage, json!({"deny": ["Bash(touch denied)"]}));
        let job = stage.ask("try");
        job.said();
        assert!(!stage.file("denied").exists());
        assert!(stage.file("fine").exists());
        assert!(!job.has(|one| matches!(one, Observation::Asked(_))));
    });
}

#[test]
fn what_the_user_wants_asked_is_asked_though_all_is_allowed() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::shell("touch made"), Step::say("x")]);
        settings(&stage, json!({"ask": ["Bash(touch *)"]}));
        let job = stage.ask("try");
        let question = job.question();
        assert_eq!(question.subject.head(), "Bash: touch made");
        job.turn.answer(&question, &Answer::Deny("use another name".to_owned())).unwrap();
        job.said();
        assert!(!stage.file("made").exists());
        assert!(stage.asked()[1].shows("use another name"));
    });
}

#[test]
fn edits_need_no_question_and_commands_do() {
    isolated(|| {
        let stage = Stage::steps(AGENT, []);
        let file = stage.file("edited").to_string_lossy().into_owned();
        let stage = stage.again([
            Step::write(&file, "x"),
            Step::shell("make -v"),
            Step::shell("make -v"),
            Step::say("x"),
        ]);
        let job = stage.start(&Task { allow: Allow::Edits, ..stage.task("try") });
        let question = job.question();
        assert_eq!(question.kind(), QuestionKind::Permission);
        assert_eq!(question.subject.as_command(), Some("make -v"));
        assert!(stage.file("edited").exists());
        assert_eq!(job.tool(ToolKind::Shell, ToolState::Pending).state, ToolState::Pending);
        job.turn.answer(&question, &Answer::AllowAlways).unwrap();
        job.wait_for(&Observation::Settled(question.id));
        job.said();
        assert_eq!(job.questions().len(), 1, "the second time it is allowed");
        let local = stage.file(".claude/settings.local.json");
        assert!(!local.exists(), "nothing is written into the project");
        assert!(job.turn.answer(&crate::bench::unknown("nobody"), &Answer::Allow).is_err());
    });
}

#[test]
fn a_question_of_a_subagent_is_asked_and_answered() {
    isolated(|| {
        let call = Part::tool(
            "Agent",
            json!({"description": "d", "prompt": "sub", "subagent_type": "claude", "run_in_background": false}),
        );
        let main = move |request: &baton_testkit::Request| {
            if request.results().is_empty() { Step::parts([call.clone()]) } else { Step::say("all done") }
        };
        let script = Script::by(main).subagents(|request| {
            if request.results().is_empty() { Step::shell("make -v") } else { Step::say("sub done") }
        });
        let stage = Stage::new(AGENT, script);
        let job = stage.start(&Task { allow: Allow::Ask, ..stage.task("delegate") });
        let question = job.question();
        assert_eq!(question.subject.as_command(), Some("make -v"));
        job.turn.answer(&question, &Answer::Allow).unwrap();
        assert_eq!(job.said().text, "all done");
        assert!(job.open_tools().is_empty(), "{:?}", job.open_tools());
    });
}

#[test]
fn a_question_to_a_person_has_choices_and_takes_words() {
    isolated(|| {
        let ask = json!({"questions": [
            {"question": "Which port?", "header": "Port", "multiSelect": false,
             "options": [{"label": "80", "description": "a"}, {"label": "8080", "description": "b"}]},
            {"question": "Which host?", "header": "Host", "multiSelect": false,
             "options": [{"label": "here", "description": "a"}, {"label": "there", "description": "b"}]}]});
        let stage = Stage::steps(AGENT, [Step::tool("AskUserQuestion", ask), Step::say("x")]);
        let job = stage.ask("ask me");
        let question = job.question();
        assert_eq!(question.kind(), QuestionKind::Input);
        assert_eq!(question.subject.text(), "Which port?\n  80: a\n  8080: b");
        assert_eq!(question.subject.choices(), ["80", "8080"]);
        let second = job.wait("second question", |one| match one {
            Observation::Asked(question) if question.subject.text().starts_with("Which host?") => {
                Some(question.clone())
            }
            _ => None,
        });
        assert!(job.turn.answer(&second, &Answer::Allow).is_err(), "it needs words");
        job.turn.answer(&question, &Answer::Words("9090, I say".to_owned())).unwrap();
        job.turn.answer(&second, &Answer::Words("there".to_owned())).unwrap();
        job.said();
        let last = &stage.asked()[1];
        assert!(last.shows("9090, I say") && last.shows("there"), "{:#?}", last.results());
    });
}

#[test]
fn a_turn_goes_on_while_a_command_runs_in_the_background() {
    isolated(|| {
        let command = json!({"command": "until [ -e go ]; do sleep 0.1; done; echo finished", "description": "d",
            "run_in_background": true});
        let stage = Stage::steps(
            AGENT,
            [Step::tool("Bash", command), Step::say("started, waiting"), Step::say("the real result")],
        );
        let job = stage.ask("run it");
        let interim = job.wait("interim answer", |one| match one {
            Observation::Said(said) if said.text == "started, waiting" => Some(said.finish),
            _ => None,
        });
        assert_eq!(interim, Finish::ToolCalls);
        assert!(job.open_tools().iter().any(|tool| tool.kind == ToolKind::Shell));
        assert!(!job.all().contains(&Observation::Idle));
        let recalled = stage.backend().recall(&stage.task("run it"), &job.session()).unwrap();
        assert_eq!(recalled.idle, None, "{recalled:?}");
        fs::write(stage.file("go"), "").unwrap();
        let said = job.said();
        assert_eq!((said.text.as_str(), said.finish), ("the real result", Finish::End));
        assert!(job.open_tools().is_empty());
    });
}

#[test]
fn a_command_in_the_background_that_never_ends_is_waited_for_only_so_long() {
    isolated(|| {
        let command = json!({"command": endless("pid"), "description": "d", "run_in_background": true});
        let stage = Stage::steps(AGENT, [Step::tool("Bash", command), Step::say("the server runs")]);
        let mut task = stage.task("run it");
        task.environment.push(("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS".into(), "4000".into()));
        let begun = Instant::now();
        let job = stage.start(&task);
        let server = pid_in(&stage.file("pid"));
        let interim = job.wait("interim answer", |seen| match seen {
            Observation::Said(said) if said.text == "the server runs" => Some(said.finish),
            _ => None,
        });
        assert_eq!(interim, Finish::ToolCalls, "it is no end yet");
        let said = job.said();
        assert_eq!((said.text.as_str(), said.finish), ("the server runs", Finish::End));
        assert!(begun.elapsed() >= Duration::from_secs(4), "{:?}", begun.elapsed());
        assert!(job.open_tools().is_empty());
        job.turn.close();
        all_gone(&[server]);
        assert_eq!(stage.asked().len(), 2, "the model was not asked again");
    });
}

#[test]
fn model_effort_and_title_reach_it() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::say("ok")]);
        let mut task = stage.task("hello");
        task.model = Some("claude-opus-4-6".to_owned());
        task.effort = Some("low".to_owned());
        stage.backend().check(&task).unwrap();
        let job = stage.start(&task);
        job.said();
        let body = &stage.asked()[0].body;
        assert_eq!(body["model"], "claude-opus-4-6");
        assert_eq!(body["output_config"]["effort"], "low", "{}", body["output_config"]);
        task.effort = Some("huge".to_owned());
        let error = stage.backend().check(&task).unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedOption);
        assert!(error.hint_text().unwrap().contains("xhigh"));
    });
}

#[test]
fn without_a_login_nothing_is_started() {
    let stage = Stage::steps(AGENT, []);
    let mut task = stage.task("hello");
    stage.backend().check(&task).unwrap();
    task.environment.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
    stage.backend().check(&task).unwrap();
    fs::remove_file(stage.sandbox.path("home/.claude.json")).unwrap();
    assert_eq!(stage.backend().check(&task).unwrap_err().code(), Code::NotLoggedIn);
}

#[test]
fn a_program_that_can_not_be_started_is_a_fault() {
    let stage = Stage::steps(AGENT, []);
    let task = Task { program: stage.sandbox.path("bin/nothing"), ..stage.task("hello") };
    let fault = stage.refusal(&task);
    assert_eq!(fault.error.code(), Code::BackendStart);
}
