//! Pi over its RPC mode.

use crate::bench::{self, Job, LIMIT, all_gone, hard_text, task};
use baton_core::Code;
use baton_core::job::{Allow, Answer, Finish, Observation, QuestionKind, ToolKind, ToolState};
use baton_jobs::backend::pi::Pi as Backend;
use baton_jobs::backend::{Backend as _, Task};
use baton_testkit::model::{Model, Part, Script, Step};
use baton_testkit::pi::Pi;
use baton_testkit::{Sandbox, isolated};
use std::fs;
use std::time::{Duration, Instant};

/// A sandbox in which Pi is set up, its model, and a task for it.
struct World {
    sandbox: Sandbox,
    model: Model,
    task: Task,
}

impl World {
    fn new(script: Script) -> World {
        let model = Model::start(script);
        let sandbox = Sandbox::new();
        Pi::new(&sandbox, &model);
        let mut task = task(&sandbox, "pi", "do it", &[("PI_OFFLINE", "1".as_ref())]);
        task.model = Some("scripted/fake-1".to_owned());
        World { sandbox, model, task }
    }

    fn steps(steps: impl IntoIterator<Item = Step>) -> World {
        World::new(Script::steps(steps))
    }

    fn start(&self) -> Job {
        Job::start(&Backend, &self.task)
    }

    fn in_project(&self, name: &str) -> bool {
        self.sandbox.project().join(name).exists()
    }

    fn home_files(&self) -> Vec<String> {
        let files = fs::read_dir(self.sandbox.path("home/.pi/agent")).expect("Pi's folder").flatten();
        let mut names: Vec<_> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_turn_is_told_from_its_session_to_its_last_word_and_an_interim_step_is_no_end() {
    isolated(|| {
        let interim = Step::parts([Part::text("I look first"), Part::shell("echo one; sleep 1.5; echo two")]);
        let world = World::steps([interim, Step::say("all done")]);
        let job = world.start();
        let running = |state: ToolState| {
            move |seen: &Observation| match seen {
                Observation::Tool(tool) if tool.kind == ToolKind::Shell && tool.state == state => {
                    Some(tool.clone())
                }
                _ => None,
            }
        };
        let tool = job.wait("running tool", LIMIT, running(ToolState::Running));
        assert_eq!(tool.what, "bash: echo one; sleep 1.5; echo two");
        let look = job.look();
        assert_eq!((look.idle, look.tools.len()), (Some(false), 1));
        assert!(look.said.is_none_or(|said| said.finish == Finish::ToolCalls));
        assert!(!job.all().contains(&Observation::Idle));
        let said = job.said();
        assert_eq!((said.text.as_str(), said.finish), ("all done", Finish::End));
        let ended = job.wait("ended tool", LIMIT, running(ToolState::Ended));
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
        assert_eq!(world.model.requests()[0].last_user_text(), "do it");
        let pids = bench::tree(job.pid());
        job.turn.close();
        all_gone(&pids);
        assert!(!job.all().iter().any(|seen| matches!(seen, Observation::Gone(_))));
        assert_eq!(
            world.home_files().iter().filter(|name| *name == "extensions").count(),
            0,
            "nothing is installed"
        );
    });
}

#[test]
fn a_hard_prompt_arrives_byte_for_byte_also_one_that_looks_like_a_command() {
    isolated(|| {
        let skill = format!("/skill:{}", hard_text(100, 5));
        for text in [hard_text(100 << 10, 7), skill, "/help".to_owned(), hard_text(1 << 20, 9)] {
            let mut world = World::steps([Step::say("ok")]);
            world.task.prompt.clone_from(&text);
            assert_eq!(world.start().said().text, "ok");
            let got = world.model.requests()[0].last_user_text().to_owned();
            assert!(got == text, "{}", text.chars().take(20).collect::<String>());
        }
    });
}

#[test]
fn a_resumed_session_holds_the_first_conversation() {
    isolated(|| {
        let mut world = World::steps([Step::say("first answer"), Step::say("second answer")]);
        let first = world.start();
        let session = first.session();
        assert_eq!(first.said().text, "first answer");
        drop(first);
        world.task.resume = Some(session.clone());
        world.task.prompt = "go on".to_owned();
        let second = world.start();
        assert_eq!(second.session(), session);
        second.said();
        let request = world.model.requests().pop().unwrap();
        assert!(request.shows("do it") && request.said().iter().any(|said| said.text == "first answer"));
        assert_eq!(request.last_user_text(), "go on");
        drop(second);
        world.task.cwd = world.sandbox.home();
        let fault = Job::try_start(&Backend, &world.task).err().expect("another folder");
        assert_eq!(fault.error.code(), Code::UnsupportedOption);
        world.task.resume = Some("nothing-like-it".to_owned());
        let fault = Job::try_start(&Backend, &world.task).err().expect("nothing to resume");
        assert_eq!(fault.error.code(), Code::NothingToResume);
    });
}

#[test]
fn read_only_keeps_the_shell_and_the_edit_tool_from_writing() {
    isolated(|| {
        let mut world = World::steps([
            Step::shell("echo bad > kept; echo bad > new"),
            Step::write("kept", "bad"),
            Step::say("no"),
        ]);
        fs::write(world.sandbox.project().join("kept"), "good").unwrap();
        world.task.read_only = true;
        let job = world.start();
        assert_eq!(job.said().text, "no");
        assert_eq!(fs::read_to_string(world.sandbox.project().join("kept")).unwrap(), "good");
        assert!(!world.in_project("new"));
        assert!(!job.all().iter().any(|seen| matches!(seen, Observation::Asked(_))), "nobody is asked");
        let request = &world.model.requests()[0];
        assert!(request.body.to_string().contains("\"name\":\"read\""));
        assert!(!request.body["tools"].to_string().contains("\"bash\""), "not even offered");
    });
}

#[test]
fn under_ask_a_call_waits_for_its_answer_and_then_goes_on() {
    isolated(|| {
        let mut world = World::steps([
            Step::shell("touch one"),
            Step::shell("touch one"),
            Step::write("two", "x"),
            Step::say("done"),
        ]);
        world.task.allow = Allow::Ask;
        let job = world.start();
        let first = job.question();
        assert_eq!((first.kind, first.what.as_str()), (QuestionKind::Permission, "bash: touch one"));
        let look = job.look();
        assert_eq!(look.questions, std::slice::from_ref(&first));
        assert_eq!(look.tools.iter().map(|tool| tool.state).collect::<Vec<_>>(), [ToolState::Pending]);
        assert!(!world.in_project("one"));
        assert!(job.turn.answer(&first.id, &Answer::Words("well".to_owned())).is_err(), "it wants yes or no");
        job.turn.answer(&first.id, &Answer::AllowAlways).unwrap();
        let second = job.wait("question about the file", LIMIT, |seen| match seen {
            Observation::Asked(question) if question.id != first.id => Some(question.clone()),
            _ => None,
        });
        assert_eq!(second.what, "write: two", "the same command is not asked again");
        assert!(world.in_project("one") && job.all().contains(&Observation::Settled(first.id.clone())));
        assert!(job.turn.answer(&first.id, &Answer::Allow).is_err(), "answered already");
        job.turn.answer(&second.id, &Answer::Deny("write no second file".to_owned())).unwrap();
        assert_eq!(job.said().text, "done");
        assert!(!world.in_project("two"));
        let last = world.model.requests().pop().unwrap();
        assert_eq!(last.results().last().unwrap().text, "write no second file");
    });
}

#[test]
fn under_edits_only_files_that_are_really_in_the_folder_are_written_freely() {
    isolated(|| {
        let paths = ["~/tilde", "@../at", "link/linked", "../above", "file:///tmp/baton-url", ".."];
        let asked = paths.len();
        let steps =
            ["inside", "new/folder/inside"].into_iter().chain(paths).map(|path| Step::write(path, "x"));
        let mut world = World::steps(steps.chain([Step::say("done")]));
        std::os::unix::fs::symlink(world.sandbox.home(), world.sandbox.project().join("link")).unwrap();
        world.task.allow = Allow::Edits;
        let job = world.start();
        for count in 1..=asked {
            let open = baton_testkit::wait::poll(LIMIT, || {
                let all = job.all().into_iter().filter_map(|seen| match seen {
                    Observation::Asked(question) => Some(question),
                    _ => None,
                });
                all.collect::<Vec<_>>().get(count - 1).cloned()
            });
            let question =
                open.unwrap_or_else(|| panic!("{} was not asked: {:#?}", paths[count - 1], job.all()));
            job.turn.answer(&question.id, &Answer::Deny(String::new())).unwrap();
        }
        assert_eq!(job.said().text, "done");
        assert!(world.in_project("inside") && world.in_project("new/folder/inside"));
        assert!(!world.sandbox.path("home/tilde").exists() && !world.sandbox.path("home/linked").exists());
        assert!(!world.sandbox.path("above").exists() && !world.sandbox.path("at").exists());
    });
}

#[test]
fn what_an_extension_of_the_user_blocks_stays_blocked_and_its_dialogs_are_questions() {
    isolated(|| {
        let mut world =
            World::steps([Step::shell("touch forbidden"), Step::shell("touch asked"), Step::say("done")]);
        let extensions = world.sandbox.path("home/.pi/agent/extensions");
        fs::create_dir_all(&extensions).unwrap();
        let extension = "export default function (pi) { pi.on('tool_call', async (event, ctx) => {\n\
             if (event.input.command.includes('forbidden')) return { block: true, reason: 'my own rule' };\n\
             const chosen = await ctx.ui.select('Which?', ['A', 'B']);\n\
             if (chosen !== 'B') return { block: true, reason: 'wrong' };\n\
             }); }\n";
        fs::write(extensions.join("mine.ts"), extension).unwrap();
        world.task.allow = Allow::All;
        let job = world.start();
        let question = job.question();
        assert_eq!((question.kind, question.what.as_str()), (QuestionKind::Input, "Which?"));
        assert_eq!(question.choices, ["A", "B"]);
        assert!(job.turn.answer(&question.id, &Answer::Words("C".to_owned())).is_err());
        job.turn.answer(&question.id, &Answer::Words("B".to_owned())).unwrap();
        assert_eq!(job.said().text, "done");
        assert!(!world.in_project("forbidden") && world.in_project("asked"));
        let last = world.model.requests().pop().unwrap();
        assert!(last.results().iter().any(|said| said.text == "my own rule"));
    });
}

#[test]
fn an_abort_stops_the_turn_and_its_command_or_its_question() {
    isolated(|| {
        for allow in [Allow::All, Allow::Ask] {
            let mut world = World::steps([Step::shell("sleep 7401 & sleep 7402"), Step::say("never")]);
            world.task.allow = allow;
            let job = world.start();
            match allow {
                Allow::All => {
                    let sleeping = || bench::running("sleep 740").len() >= 3;
                    assert!(baton_testkit::wait::until(LIMIT, sleeping), "{:#?}", job.all());
                }
                _ => drop(job.question()),
            }
            let begun = Instant::now();
            job.turn.abort().unwrap();
            job.wait("abort", LIMIT, |seen| (*seen == Observation::Aborted).then_some(()));
            job.idle(LIMIT);
            all_gone(&bench::running("sleep 740"));
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
            let look = job.look();
            assert!(look.aborted && look.fault.is_none() && look.questions.is_empty(), "{look:?}");
            let recalled = Backend.recall(&world.task, &job.session()).expect("it is written down");
            assert_eq!((recalled.idle, recalled.said, recalled.fault), (None, None, None));
        }
    });
}

#[test]
fn a_model_that_hangs_leaves_the_turn_busy_and_an_abort_frees_it() {
    isolated(|| {
        let within = Step::parts([Part::text("a whole message"), Part::Pause(Duration::from_secs(600))]);
        for (step, begins) in [(Step::Hang, false), (within, true)] {
            let world = World::steps([step]);
            let job = world.start();
            world.model.wait_for(LIMIT, |_| true).expect("a request");
            job.wait("busy", LIMIT, |seen| (*seen == Observation::Busy).then_some(()));
            if begins {
                job.wait("words", LIMIT, |seen| matches!(seen, Observation::Progress(_)).then_some(()));
            }
            let look = job.look();
            assert_eq!((look.idle, look.said), (Some(false), None));
            assert!(!job.all().iter().any(|seen| matches!(seen, Observation::Said(_) | Observation::Idle)));
            job.turn.abort().unwrap();
            job.wait("abort", Duration::from_secs(20), |seen| (*seen == Observation::Aborted).then_some(()));
        }
    });
}

#[test]
fn closing_in_the_middle_of_a_command_leaves_nothing_behind() {
    isolated(|| {
        let world = World::steps([Step::shell("sleep 7501")]);
        let job = world.start();
        assert!(baton_testkit::wait::until(LIMIT, || !bench::running("sleep 7501").is_empty()));
        let pids = [bench::tree(job.pid()), bench::running("sleep 7501")].concat();
        let begun = Instant::now();
        job.turn.close();
        assert!(begun.elapsed() < Duration::from_secs(20));
        all_gone(&pids);
    });
}

#[test]
fn a_killed_program_is_gone_at_once_and_what_it_had_is_recalled() {
    isolated(|| {
        let world = World::steps([
            Step::parts([Part::text("partial"), Part::shell("sleep 7601")]),
            Step::say("never"),
        ]);
        let job = world.start();
        assert!(baton_testkit::wait::until(LIMIT, || !bench::running("sleep 7601").is_empty()));
        let pid = rustix::process::Pid::from_raw(job.pid()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let killed = Instant::now();
        job.wait("end of the program", LIMIT, |seen| matches!(seen, Observation::Gone(_)).then_some(()));
        assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
        assert!(job.turn.look().unwrap().is_err());
        let recalled = Backend.recall(&world.task, &job.session()).expect("it is written down");
        assert_eq!((recalled.idle, recalled.said, recalled.fault), (None, None, None));
    });
}

#[test]
fn a_turn_that_ended_is_recalled_with_its_result() {
    isolated(|| {
        let mut world = World::steps([Step::say("the result"), Step::Hang]);
        let job = world.start();
        job.said();
        let session = job.session();
        let pid = rustix::process::Pid::from_raw(job.pid()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        drop(job);
        let said = Backend.recall(&world.task, &session).unwrap().said.expect("an end");
        assert_eq!((said.text.as_str(), said.finish), ("the result", Finish::End));
        // A later job in the same session does not take the first one's result for its own.
        world.task.resume = Some(session.clone());
        let second = world.start();
        world.model.wait_for(LIMIT, |request| request.index == 1).expect("a second request");
        let pid = rustix::process::Pid::from_raw(second.pid()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        drop(second);
        assert_eq!(Backend.recall(&world.task, &session).unwrap().said, None);
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
            let world = World::new(Script::by(move |_| step.clone()));
            // Fewer and shorter of its retries, so that the test is short.
            let settings = "{\"retry\": {\"maxRetries\": 1, \"baseDelayMs\": 100}}";
            fs::write(world.sandbox.path("home/.pi/agent/settings.json"), settings).unwrap();
            let job = world.start();
            let fault = job.fault(LIMIT);
            assert_eq!(fault.error.code(), code, "{fault:?}");
            assert!(fault.error.message().contains(words) && fault.error.hint_text().is_some(), "{fault:?}");
            assert_eq!(fault.again_at.is_some(), code == Code::RateLimited, "{fault:?}");
            job.idle(LIMIT);
            let all = job.all();
            assert_eq!(
                all.iter().any(|seen| matches!(seen, Observation::Retrying { .. })),
                retries,
                "{all:#?}"
            );
            assert!(!all.iter().any(|seen| matches!(seen, Observation::Said(_))), "{all:#?}");
            assert_eq!(job.look().fault.unwrap().error.code(), code);
            let recalled = Backend.recall(&world.task, &job.session()).expect("it is written down");
            assert_eq!(recalled.fault.unwrap().error.code(), code);
        }
    });
}

#[test]
fn a_task_that_cannot_be_honoured_is_refused_by_name() {
    isolated(|| {
        let mut world = World::steps([]);
        assert_eq!(Backend.check(&world.task), Ok(()));
        world.task.effort = Some("heroic".to_owned());
        assert_eq!(Backend.check(&world.task).unwrap_err().code(), Code::UnsupportedOption);
        let refused = |task: &Task| Job::try_start(&Backend, task).err().expect("it can't be honoured").error;
        world.task.effort = Some("high".to_owned());
        let error = refused(&world.task);
        assert_eq!((error.code(), error.hint_text()), (Code::UnsupportedOption, Some("it knows off")));
        world.task.effort = None;
        for model in ["nope", "fake"] {
            world.task.model = Some(model.to_owned());
            let error = refused(&world.task);
            assert_eq!(error.code(), Code::UnsupportedOption, "{error:?}");
            assert!(error.message().contains(model));
        }
        world.task.model = None;
        fs::remove_file(world.sandbox.path("home/.pi/agent/models.json")).unwrap();
        assert_eq!(refused(&world.task).code(), Code::NotLoggedIn);
        fs::remove_dir_all(world.sandbox.path("home/.pi")).unwrap();
        assert_eq!(Backend.check(&world.task).unwrap_err().code(), Code::NotLoggedIn);
        world.task.program = "/bin/false".into();
        assert_eq!(refused(&world.task).code(), Code::BackendStart);
        assert_eq!(world.model.requests().len(), 0);
    });
}
