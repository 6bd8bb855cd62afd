//! Gemini CLI.

use crate::bench::{self, Stage};
use crate::promises;
use baton_core::Code;
use baton_core::job::{Allow, Observation};
use baton_jobs::backend::Task;
use baton_testkit::agents::Agent;
use baton_testkit::gemini::Gemini;
use baton_testkit::model::{Script, Step};
use baton_testkit::{isolated, wait};
use serde_json::json;
use std::fs;

const AGENT: Agent = Agent::Gemini;

#[test]
fn a_turn_with_tools_ends_with_what_the_model_said() {
    isolated(|| promises::a_turn_with_tools_ends_with_what_the_model_said(AGENT));
}

#[test]
fn a_wild_prompt_arrives_whole() {
    // With an `@` it goes another way, see below.
    isolated(|| promises::a_prompt_arrives_whole(AGENT, &bench::hard_text(1 << 20).replace('@', "at")));
}

#[test]
fn a_prompt_that_could_name_a_file_is_read_from_one() {
    isolated(|| {
        let stage = Stage::steps(AGENT, []);
        fs::write(stage.file("secret"), "a hidden line").unwrap();
        let given = stage.sandbox.path("job0/prompt.md");
        let stage = stage.again([Step::read(given.to_string_lossy()), Step::say("ok")]);
        let prompt = "write to me@secret and read @secret\r\n";
        let job = stage.start(&Task { read_only: true, ..stage.task(prompt) });
        job.said();
        assert_eq!(fs::read_to_string(&given).unwrap(), prompt);
        let asked = stage.asked();
        assert!(asked[0].shows(&given.to_string_lossy()) && !asked[0].shows("a hidden line"));
        assert!(asked[1].shows("write to me@secret and read @secret"), "{:#?}", asked[1].results());
    });
}

#[test]
fn a_resumed_session_knows_what_was_said() {
    isolated(|| promises::a_resumed_session_knows_what_was_said(AGENT));
}

#[test]
fn a_session_of_another_folder_is_not_resumed() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::say("x")]);
        let first = stage.ask("hello");
        first.said();
        let mut task = Task { resume: Some(first.session()), ..stage.task("go on") };
        let elsewhere = stage.sandbox.path("tmp").canonicalize().unwrap();
        task.worktree_of = Some(std::mem::replace(&mut task.cwd, elsewhere));
        let fault = stage.start(&task).fault();
        assert_eq!(fault.error.code(), Code::NothingToResume, "{fault:?}");
        assert!(fault.error.hint_text().unwrap().contains("--cwd"));
    });
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
fn a_refused_key_is_told_as_such() {
    isolated(|| {
        let fault = promises::a_refused_request_is_a_fault(AGENT, 401, Code::NotLoggedIn);
        assert!(fault.error.message().contains("scripted refusal"), "{fault:?}");
    });
}

#[test]
fn a_limit_and_a_failing_server_are_tried_again_by_itself() {
    isolated(|| {
        for status in [429, 500] {
            let stage = Stage::new(AGENT, Script::by(move |_| Step::error(status, "scripted refusal")));
            let job = stage.ask("hello");
            let message = job.wait("retry", |one| match one {
                Observation::Retrying { message, .. } => Some(message.clone()),
                _ => None,
            });
            assert!(message.contains(&status.to_string()), "{message}");
            job.turn.abort().unwrap();
            job.wait_for(&Observation::Aborted);
        }
    });
}

#[test]
fn a_limit_and_a_failing_server_are_faults_once_it_gives_up() {
    isolated(|| {
        for (status, code) in [(429, Code::RateLimited), (500, Code::BackendError)] {
            let refuse = move |_: &_| Step::error(status, "scripted refusal. Please retry in 7s.");
            let stage = Stage::new(AGENT, Script::by(refuse));
            // It would try ten times, with up to 30 s in between.
            Gemini::new(&stage.sandbox, &stage.model)
                .edit_settings(|settings| settings["general"]["maxAttempts"] = 1.into());
            let job = stage.ask("hello");
            let fault = job.fault();
            assert_eq!(fault.error.code(), code, "{fault:?}");
            assert!(fault.error.message().contains("scripted refusal"), "{fault:?}");
            assert_eq!(fault.again_at.is_some(), code == Code::RateLimited, "{fault:?}");
            assert!(!job.has(|seen| matches!(seen, Observation::Said(_) | Observation::Idle)));
        }
    });
}

#[test]
fn a_broken_answer_is_no_end() {
    isolated(|| promises::a_broken_answer_is_no_end(AGENT, 1));
}

#[test]
fn a_read_only_job_changes_nothing() {
    isolated(|| promises::a_read_only_job_changes_nothing(AGENT));
}

#[test]
fn a_read_only_job_changes_nothing_even_where_the_user_allows_all() {
    isolated(|| {
        let stage = Stage::steps(AGENT, []);
        let file = stage.file("written").to_string_lossy().into_owned();
        let stage = stage.again([
            Step::shell("touch made"),
            Step::write(&file, "x"),
            Step::mcp("files", "put", json!({})),
            Step::say("tried"),
        ]);
        let gemini = Gemini::new(&stage.sandbox, &stage.model);
        // A server that has one tool, which writes.
        let server = r#"while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"put","description":"puts","inputSchema":{"type":"object","properties":{}}}]}}' ;;
    *'"tools/call"'*) touch by-server; echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"put it"}]}}' ;;
    *) [ -n "$id" ] && echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
  esac
done"#;
        gemini.edit_settings(|settings| {
            settings["mcpServers"]["files"] = json!({"command": "sh", "args": ["-c", server], "trust": true});
        });
        let policies = stage.sandbox.path("home/.gemini/policies");
        fs::create_dir_all(&policies).unwrap();
        let rule = "[[rule]]\ntoolName = [\"run_shell_command\", \"write_file\"]\ndecision = \"allow\"\npriority = 900\n";
        fs::write(policies.join("mine.toml"), rule).unwrap();
        let job = stage.start(&Task { read_only: true, ..stage.task("try") });
        assert_eq!(job.said().text, "tried");
        assert!(!stage.file("made").exists() && !stage.file("written").exists());
        assert!(!stage.file("by-server").exists());
        // The same without the limit does all of it: so it was the limit that held.
        let stage = stage.again([
            Step::shell("touch made"),
            Step::write(&file, "x"),
            Step::mcp("files", "put", json!({})),
            Step::say("did"),
        ]);
        let job = stage.start(&Task { allow: Allow::Ask, ..stage.task("try") });
        assert_eq!(job.said().text, "did");
        assert!(stage.file("made").exists() && stage.file("written").exists());
        assert!(stage.file("by-server").exists());
    });
}

#[test]
fn what_the_user_denies_is_denied_though_all_is_allowed() {
    isolated(|| {
        let stage =
            Stage::steps(AGENT, [Step::shell("touch denied"), Step::shell("touch fine"), Step::say("x")]);
        let policies = stage.sandbox.path("home/.gemini/policies");
        fs::create_dir_all(&policies).unwrap();
        let rule = "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch denied\"\ndecision = \"deny\"\npriority = 500\n";
        fs::write(policies.join("mine.toml"), rule).unwrap();
        let job = stage.ask("try");
        job.said();
        assert!(!stage.file("denied").exists());
        assert!(stage.file("fine").exists());
    });
}

#[test]
fn what_would_be_asked_is_refused_at_once() {
    isolated(|| {
        let stage = Stage::steps(AGENT, []);
        let file = stage.file("edited").to_string_lossy().into_owned();
        let stage = stage.again([Step::write(&file, "x"), Step::shell("touch made"), Step::say("x")]);
        let job = stage.start(&Task { allow: Allow::Edits, ..stage.task("try") });
        job.said();
        assert!(stage.file("edited").exists() && !stage.file("made").exists());
        fs::remove_file(stage.file("edited")).unwrap();
        let stage = stage.again([Step::write(&file, "x"), Step::say("x")]);
        let job = stage.start(&Task { allow: Allow::Ask, ..stage.task("try") });
        job.said();
        assert!(!stage.file("edited").exists());
        assert!(!stage.backend().capabilities().answers);
    });
}

#[test]
fn a_folder_that_is_not_trusted_is_named() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::say("x")]);
        let mut task = stage.task("hello");
        task.cwd = stage.sandbox.path("tmp").canonicalize().unwrap();
        let job = stage.start(&task);
        assert_eq!(job.fault().error.code(), Code::BadFolder);
    });
}

#[test]
fn an_effort_is_refused_and_a_model_is_passed_on() {
    isolated(|| {
        let stage = Stage::steps(AGENT, [Step::say("x")]);
        let task = Task { effort: Some("high".to_owned()), ..stage.task("hello") };
        assert_eq!(stage.backend().check(&task).unwrap_err().code(), Code::UnsupportedOption);
        let task = Task { model: Some("gemini-2.5-pro".to_owned()), ..stage.task("hello") };
        stage.backend().check(&task).unwrap();
        let job = stage.start(&task);
        job.said();
        assert!(wait::until(bench::LIMIT, || !stage.asked().is_empty()));
    });
}
