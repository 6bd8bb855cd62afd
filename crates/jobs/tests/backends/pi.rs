//! Pi over its RPC mode.

use crate::bench::{self, AT_ONCE, LIMIT, Stage, all_gone, hard_text};
use crate::promises;
use baton_core::Code;
use baton_core::approval::{Answer, QuestionKind};
use baton_core::job::{Allow, Finish, Observation, ToolKind, ToolState};
use baton_testkit::agents::Agent;
use baton_testkit::model::{Part, Script, Step};
use baton_testkit::{isolated, wait};
use std::fs;
use std::time::Instant;

/// A stage whose task names the scripted model, which is no default.
fn stage(script: Script) -> Stage {
    let mut stage = Stage::new(Agent::Pi, script);
    stage.task.model = Some("scripted/fake-1".to_owned());
    stage
}

fn steps(steps: impl IntoIterator<Item = Step>) -> Stage {
    stage(Script::steps(steps))
}

#[test]
fn a_turn_is_told_from_its_session_to_its_last_word_and_an_interim_step_is_no_end() {
    isolated(|| {
        let interim = Step::parts([Part::text("I look first"), Part::shell("echo one; sleep 1.5; echo two")]);
        let stage = steps([interim, Step::say("all done")]);
        let job = stage.start(&stage.task);
        let tool = job.tool(ToolKind::Shell, ToolState::Running);
        assert_eq!(tool.what, "bash: echo one; sleep 1.5; echo two");
        let look = job.look();
        assert_eq!((look.idle, look.tools.len()), (Some(false), 1));
        assert!(look.said.is_none_or(|said| said.finish == Finish::ToolCalls));
        assert!(!job.all().contains(&Observation::Idle));
        let said = job.said();
        assert_eq!((said.text.as_str(), said.finish), ("all done", Finish::End));
        let ended = job.tool(ToolKind::Shell, ToolState::Ended);
        assert!(ended.call == tool.call && ended.output > 0);
        let finishes = job.all().into_iter().filter_map(|seen| match seen {
            Observation::Said(said) => Some(said.finish),
            _ => None,
        });
        assert_eq!(finishes.collect::<Vec<_>>(), [Finish::ToolCalls, Finish::End]);
        let look = job.look();
        assert_eq!(
            (look.idle, look.said.unwrap().text.as_str(), look.tools),
            (Some(true), "all done", vec![])
        );
        assert_eq!(stage.model.requests()[0].last_user_text(), "do it");
        let pids = bench::tree(job.pid());
        job.turn.close();
        all_gone(&pids);
        assert!(!job.has(|seen| matches!(seen, Observation::Gone(_))));
        assert!(!stage.sandbox.path("home/.pi/agent/extensions").exists(), "nothing is installed");
    });
}

#[test]
fn a_hard_prompt_arrives_byte_for_byte_also_one_that_looks_like_a_command() {
    isolated(|| {
        let skill = format!("/skill:{}", hard_text(100));
        for text in [hard_text(100 << 10), skill, "/help".to_owned(), hard_text(1 << 20)] {
            promises::arrives_whole(&steps([Step::say("ok")]), &text);
        }
    });
}

#[test]
fn a_resumed_session_holds_the_first_conversation() {
    isolated(|| {
        let mut stage = steps([Step::say("first answer"), Step::say("second answer")]);
        let first = stage.start(&stage.task);
        let session = first.session();
        assert_eq!(first.said().text, "first answer");
        drop(first);
        stage.task.resume = Some(session.clone());
        stage.task.prompt = "go on".to_owned();
        let second = stage.start(&stage.task);
        assert_eq!(second.session(), session);
        second.said();
        let request = stage.model.requests().pop().unwrap();
        assert!(request.shows("do it") && request.said().iter().any(|said| said.text == "first answer"));
        assert_eq!(request.last_user_text(), "go on");
        drop(second);
        stage.task.cwd = stage.sandbox.home();
        let fault = stage.refusal(&stage.task);
        assert_eq!(fault.error.code(), Code::UnsupportedOption);
        stage.task.resume = Some("nothing-like-it".to_owned());
        let fault = stage.refusal(&stage.task);
        assert_eq!(fault.error.code(), Code::NothingToResume);
    });
}

#[test]
fn read_only_keeps_the_shell_and_the_edit_tool_from_writing() {
    isolated(|| {
        let mut stage = steps([
            Step::shell("echo bad > kept; echo bad > new"),
            Step::write("kept", "bad"),
            Step::say("no"),
        ]);
        fs::write(stage.file("kept"), "good").unwrap();
        stage.task.read_only = true;
        let job = stage.start(&stage.task);
        assert_eq!(job.said().text, "no");
        assert_eq!(fs::read_to_string(stage.file("kept")).unwrap(), "good");
        assert!(!stage.file("new").exists());
        assert!(job.questions().is_empty(), "nobody is asked");
        let request = &stage.model.requests()[0];
        assert!(request.body.to_string().contains("\"name\":\"read\""));
        assert!(!request.body["tools"].to_string().contains("\"bash\""), "not even offered");
    });
}

#[test]
fn under_ask_a_call_waits_for_its_answer_and_then_goes_on() {
    isolated(|| {
        let mut stage = steps([
            Step::shell("touch one"),
            Step::shell("touch one"),
            Step::write("two", "x"),
            Step::say("done"),
        ]);
        stage.task.allow = Allow::Ask;
        let job = stage.start(&stage.task);
        let first = job.question();
        assert_eq!((first.kind(), first.subject.as_command()), (QuestionKind::Permission, Some("touch one")));
        let look = job.look();
        assert_eq!(look.questions, std::slice::from_ref(&first));
        assert_eq!(look.tools.iter().map(|tool| tool.state).collect::<Vec<_>>(), [ToolState::Pending]);
        assert!(!stage.file("one").exists());
        assert!(job.turn.answer(&first, &Answer::Words("well".to_owned())).is_err(), "it wants yes or no");
        job.turn.answer(&first, &Answer::AllowAlways).unwrap();
        let second = job.question_after(&[&first]);
        assert_eq!(second.subject.paths(), ["two"], "the same command is not asked again");
        assert!(stage.file("one").exists() && job.all().contains(&Observation::Settled(first.id.clone())));
        assert!(job.turn.answer(&first, &Answer::Allow).is_err(), "answered already");
        job.turn.answer(&second, &Answer::Deny("write no second file".to_owned())).unwrap();
        assert_eq!(job.said().text, "done");
        assert!(!stage.file("two").exists());
        let last = stage.model.requests().pop().unwrap();
        assert_eq!(last.results().last().unwrap().text, "write no second file");
    });
}

#[test]
fn under_edits_only_files_that_are_really_in_the_folder_are_written_freely() {
    isolated(|| {
        let paths = ["~/tilde", "@../at", "link/linked", "../above", "file:///tmp/baton-url", ".."];
        let asked = paths.len();
        let writes =
            ["inside", "new/folder/inside"].into_iter().chain(paths).map(|path| Step::write(path, "x"));
        let mut stage = steps(writes.chain([Step::say("done")]));
        std::os::unix::fs::symlink(stage.sandbox.home(), stage.file("link")).unwrap();
        stage.task.allow = Allow::Edits;
        let job = stage.start(&stage.task);
        for count in 1..=asked {
            let question = wait::poll(LIMIT, || job.questions().get(count - 1).cloned());
            let question =
                question.unwrap_or_else(|| panic!("{} was not asked: {:#?}", paths[count - 1], job.all()));
            job.turn.answer(&question, &Answer::Deny(String::new())).unwrap();
        }
        assert_eq!(job.said().text, "done");
        assert!(stage.file("inside").exists() && stage.file("new/folder/inside").exists());
        assert!(!stage.sandbox.path("home/tilde").exists() && !stage.sandbox.path("home/linked").exists());
        assert!(!stage.sandbox.path("above").exists() && !stage.sandbox.path("at").exists());
    });
}

#[test]
fn what_an_extension_of_the_user_blocks_stays_blocked_and_its_dialogs_are_questions() {
    isolated(|| {
        let mut stage =
            steps([Step::shell("touch forbidden"), Step::shell("touch asked"), Step::say("done")]);
        let extensions = stage.sandbox.path("home/.pi/agent/extensions");
        fs::create_dir_all(&extensions).unwrap();
        let extension = "export default function (pi) { pi.on('tool_call', async (event, ctx) => {\n\
             if (event.input.command.includes('forbidden')) return { block: true, reason: 'my own rule' };\n\
             const chosen = await ctx.ui.select('Which?', ['A', 'B']);\n\
             if (chosen !== 'B') return { block: true, reason: 'wrong' };\n\
             }); }\n";
        fs::write(extensions.join("mine.ts"), extension).unwrap();
        stage.task.allow = Allow::All;
        let job = stage.start(&stage.task);
        let question = job.question();
        assert!(question.kind() == QuestionKind::Input && question.subject.text().starts_with("Which?"));
        assert_eq!(question.subject.choices(), ["A", "B"]);
        assert!(job.turn.answer(&question, &Answer::Words("C".to_owned())).is_err());
        job.turn.answer(&question, &Answer::Words("B".to_owned())).unwrap();
        assert_eq!(job.said().text, "done");
        assert!(!stage.file("forbidden").exists() && stage.file("asked").exists());
        let last = stage.model.requests().pop().unwrap();
        assert!(last.results().iter().any(|said| said.text == "my own rule"));
    });
}

#[test]
fn an_abort_stops_the_turn_and_its_command_or_its_question() {
    isolated(|| {
        for allow in [Allow::All, Allow::Ask] {
            let mut stage = steps([Step::shell("sleep 7401 & sleep 7402"), Step::say("never")]);
            stage.task.allow = allow;
            let job = stage.start(&stage.task);
            match allow {
                Allow::All => {
                    let sleeping = || bench::running("sleep 740").len() >= 3;
                    assert!(wait::until(LIMIT, sleeping), "{:#?}", job.all());
                }
                _ => drop(job.question()),
            }
            job.abort();
            job.wait_for(&Observation::Idle);
            all_gone(&bench::running("sleep 740"));
            let look = job.look();
            assert!(look.aborted && look.fault.is_none() && look.questions.is_empty(), "{look:?}");
            let recalled = stage.backend().recall(&stage.task, &job.session()).expect("it is written down");
            assert_eq!((recalled.idle, recalled.said, recalled.fault), (None, None, None));
        }
    });
}

#[test]
fn a_model_that_hangs_leaves_the_turn_busy_and_an_abort_frees_it() {
    isolated(|| promises::a_model_that_hangs_is_left_by_an_abort(|step| steps([step])));
}

#[test]
fn closing_in_the_middle_of_a_command_leaves_nothing_behind() {
    isolated(|| {
        let stage = steps([Step::shell("sleep 7501")]);
        let job = stage.start(&stage.task);
        assert!(wait::until(LIMIT, || !bench::running("sleep 7501").is_empty()));
        let pids = [bench::tree(job.pid()), bench::running("sleep 7501")].concat();
        let begun = Instant::now();
        job.turn.close();
        assert!(begun.elapsed() < AT_ONCE);
        all_gone(&pids);
    });
}

#[test]
fn a_killed_program_is_gone_at_once_and_what_it_had_is_recalled() {
    isolated(|| {
        let stage =
            steps([Step::parts([Part::text("partial"), Part::shell("sleep 7601")]), Step::say("never")]);
        let job = stage.start(&stage.task);
        assert!(wait::until(LIMIT, || !bench::running("sleep 7601").is_empty()));
        bench::kill(job.pid());
        let killed = Instant::now();
        job.gone();
        assert!(killed.elapsed() < AT_ONCE, "{:?}", killed.elapsed());
        assert!(job.turn.look().unwrap().is_err());
        let recalled = stage.backend().recall(&stage.task, &job.session()).expect("it is written down");
        assert_eq!((recalled.idle, recalled.said, recalled.fault), (None, None, None));
    });
}

#[test]
fn a_turn_that_ended_is_recalled_with_its_result() {
    isolated(|| {
        let mut stage = steps([Step::say("the result"), Step::Hang]);
        let job = stage.start(&stage.task);
        job.said();
        let session = job.session();
        bench::kill(job.pid());
        drop(job);
        let said = stage.backend().recall(&stage.task, &session).unwrap().said.expect("an end");
        assert_eq!((said.text.as_str(), said.finish), ("the result", Finish::End));
        // A later job in the same session does not take the first one's result for its own.
        stage.task.resume = Some(session.clone());
        let second = stage.start(&stage.task);
        stage.model.wait_for(LIMIT, |request| request.index == 1).expect("a second request");
        bench::kill(second.pid());
        drop(second);
        assert_eq!(stage.backend().recall(&stage.task, &session).unwrap().said, None);
    });
}

#[test]
fn faults_of_the_model_get_their_codes() {
    isolated(|| {
        let cut = Step::say("half a word").cut(2);
        for (step, code, words, retries) in [
            (Step::error(401, "bad key"), Code::NotLoggedIn, "bad key", false),
            (Step::limited(7, "Slow down, retry after 7"), Code::RateLimited, "Slow down", true),
            (Step::error(500, "boom"), Code::BackendError, "boom", true),
            (Step::inside("inner failure"), Code::BackendError, "inner failure", false),
            (cut, Code::BackendError, "without finish_reason", true),
        ] {
            let stage = stage(Script::by(move |_| step.clone()));
            // Fewer and shorter of its retries, so that the test is short.
            let settings = "{\"retry\": {\"maxRetries\": 1, \"baseDelayMs\": 100}}";
            fs::write(stage.sandbox.path("home/.pi/agent/settings.json"), settings).unwrap();
            let fault = promises::a_fault_is_told_and_kept(&stage, code, words, retries);
            assert_eq!(fault.again_at.is_some(), code == Code::RateLimited, "{fault:?}");
        }
    });
}

#[test]
fn a_task_that_cannot_be_honoured_is_refused_by_name() {
    isolated(|| {
        let mut stage = steps([]);
        assert_eq!(stage.backend().check(&stage.task), Ok(()));
        stage.task.effort = Some("heroic".to_owned());
        assert_eq!(stage.backend().check(&stage.task).unwrap_err().code(), Code::UnsupportedOption);
        let refused = |stage: &Stage| stage.refusal(&stage.task).error;
        stage.task.effort = Some("high".to_owned());
        let error = refused(&stage);
        assert_eq!((error.code(), error.hint_text()), (Code::UnsupportedOption, Some("it knows off")));
        stage.task.effort = None;
        for model in ["nope", "fake"] {
            stage.task.model = Some(model.to_owned());
            let error = refused(&stage);
            assert_eq!(error.code(), Code::UnsupportedOption, "{error:?}");
            assert!(error.message().contains(model));
        }
        stage.task.model = None;
        fs::remove_file(stage.sandbox.path("home/.pi/agent/models.json")).unwrap();
        assert_eq!(refused(&stage).code(), Code::NotLoggedIn);
        fs::remove_dir_all(stage.sandbox.path("home/.pi")).unwrap();
        assert_eq!(stage.backend().check(&stage.task).unwrap_err().code(), Code::NotLoggedIn);
        stage.task.program = "/bin/false".into();
        assert_eq!(refused(&stage).code(), Code::BackendStart);
        assert_eq!(stage.model.requests().len(), 0);
    });
}
