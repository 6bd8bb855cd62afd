//! OpenCode as a backend: the real server, the scripted model.

use crate::bench::{AT_ONCE, Job, LIMIT, Stage, all_gone, hard_text, kill, pid_in};
use baton_core::Code;
use baton_core::approval::{Answer, QuestionKind};
use baton_core::job::{Allow, Channel, Finish, Observation, Said, Snapshot, ToolKind, ToolState};
use baton_core::process::Process;
use baton_jobs::backend::opencode::{OpenCode, keeper};
use baton_jobs::backend::{Backend as _, Task};
use baton_machine::process;
use baton_testkit::agents::Agent;
use baton_testkit::model::{Part, Request, Script, Step};
use baton_testkit::process::write_program;
use baton_testkit::{isolated, wait};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A home of baton and of OpenCode, and a model that does what the prompt says.
fn stage() -> Stage {
    stage_with(|_| {})
}

/// With the user's configuration changed.
fn stage_with(change: impl FnOnce(&mut Value)) -> Stage {
    let mut stage = Stage::new(Agent::OpenCode, Script::by(obey));
    let file = stage.sandbox.path("home/.config/opencode/opencode.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    config["provider"]["scripted"]["models"]["main"]["variants"] =
        json!({"low": {"reasoningEffort": "low"}, "high": {"reasoningEffort": "high"}});
    change(&mut config);
    fs::write(file, config.to_string()).unwrap();
    // Our own program is not built here; this binary can keep a server too.
    let this = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2 $4\" = \"{} --folder --program\" ] || exit 64\nKEEP_FOLDER=$3 KEEP_PROGRAM=$5 \
         exec '{}' --exact opencode::keeps_a_server --include-ignored --nocapture --test-threads=2\n",
        keeper::COMMAND,
        this.display()
    );
    write_program(&stage.sandbox.path("bin/baton"), script.as_bytes());
    stage.task.environment.push(("BATON_JOB_DEPTH".into(), "1".into()));
    stage.task.environment.push(("BATON_JOB".into(), "j-of-the-first".into()));
    stage
}

/// The folder of the server, once there is one.
fn server_folder(stage: &Stage) -> PathBuf {
    let mut folders = fs::read_dir(stage.sandbox.path("baton-home/opencode")).unwrap();
    folders.next().expect("one server").unwrap().path()
}

fn server_file(stage: &Stage) -> Value {
    serde_json::from_slice(&fs::read(server_folder(stage).join("server.json")).unwrap()).unwrap()
}

/// The requests that belong to the conversation of a job.
fn requests(stage: &Stage, job: &Job) -> Vec<Arc<Request>> {
    let session = job.session();
    let all = stage.model.requests().into_iter();
    // Older versions name the session in another header.
    let is_its = |request: &Arc<Request>| request.headers.iter().any(|(_, value)| *value == session);
    all.filter(|request| is_its(request) && !request.body["tools"].is_null()).collect()
}

/// The model does what the last prompt says, then says `done` and what came of it.
fn obey(request: &Request) -> Step {
    let prompt = request.last_user_text();
    if let (Some(command), 0 | 1) = (prompt.strip_prefix("twice "), request.results().len()) {
        return Step::shell(command);
    }
    if let Some(result) = request.results().last() {
        return Step::say(format!("done: {}", result.text));
    }
    let (verb, rest) = prompt.split_once(' ').unwrap_or((prompt, ""));
    match verb {
        "run" => Step::shell(rest),
        "write" => Step::write(rest, "changed"),
        "delegate" => {
            Step::tool("task", json!({"description": "a part", "prompt": rest, "subagent_type": "general"}))
        }
        "question" => Step::tool(
            "question",
            json!({"questions": [{"question": "Which port?", "header": "port", "options": [
                {"label": "80", "description": "a"}, {"label": "8080", "description": "b"}]}]}),
        ),
        "refuse" => Step::error(401, "no such key"),
        "limit" => Step::limited(7200, "Too Many Requests"),
        "fail" => Step::error(500, "the provider is ill"),
        "bad" => Step::error(400, "the request is bad"),
        "break" => Step::ErrorInside("an error in a good answer".to_owned()),
        "hang" => Step::Hang,
        "drip" => Step::parts([Part::text("half of an"), Part::Pause(LIMIT * 10)]),
        _ => Step::say("hello"),
    }
}

/// The process of the server.
fn server_of(stage: &Stage) -> Process {
    process_in(&server_file(stage))
}

fn process_in(server: &Value) -> Process {
    let pid = i32::try_from(server["pid"].as_i64().unwrap()).unwrap();
    Process { pid, start: server["start"].as_u64().unwrap() }
}

/// The one that started the server.
fn keeper_of(server: Process) -> Process {
    process::find(process::lineage(server.pid)[1]).expect("the keeper runs")
}

#[test]
#[ignore = "not a test: the tests run it as the keeper of their server"]
fn keeps_a_server() {
    if let (Some(folder), Some(program)) = (std::env::var_os("KEEP_FOLDER"), std::env::var_os("KEEP_PROGRAM"))
    {
        keeper::run(folder.as_ref(), program.as_ref()).unwrap();
    }
}

#[test]
fn a_job_is_told_from_its_session_to_its_last_word_and_leaves_nothing_running() {
    isolated(|| {
        let stage = stage();
        let mut task = stage.task("run echo one; sleep 0.2; echo two");
        task.effort = Some("high".to_owned());
        let job = stage.start(&task);
        let server = server_of(&stage);
        assert_eq!(job.turn.root(), Some(server));
        let result = job.said().text;
        assert!(result.starts_with("done: one\ntwo"), "{result}");
        let all = job.all();
        let place = |what: &str, found: &dyn Fn(&Observation) -> bool| {
            all.iter().position(found).unwrap_or_else(|| panic!("no {what} in {all:#?}"))
        };
        let tool = |state| move |seen: &Observation| matches!(seen, Observation::Tool(tool) if tool.state == state && tool.kind == ToolKind::Shell && tool.what == "bash: echo one; sleep 0.2; echo two");
        let said = |finish| move |seen: &Observation| matches!(seen, Observation::Said(said) if said.finish == finish);
        let order = [
            place("session", &|seen| matches!(seen, Observation::Session(_))),
            place("begin", &|seen| *seen == Observation::Busy),
            place("running tool", &tool(ToolState::Running)),
            place("ended tool", &tool(ToolState::Ended)),
            place("step", &said(Finish::ToolCalls)),
            place("end", &said(Finish::End)),
            place("idle", &|seen| *seen == Observation::Idle),
        ];
        assert!(order.is_sorted(), "{order:?} in {all:#?}");
        let look = job.look();
        assert_eq!((look.idle, look.tools.len(), look.fault, look.aborted), (Some(true), 0, None, false));
        assert_eq!(look.said, Some(Said { text: result, finish: Finish::End }));
        let requests = requests(&stage, &job);
        assert_eq!(requests.len(), 2);
        assert_eq!(
            (&requests[0].body["model"], &requests[0].body["reasoning_effort"]),
            (&json!("main"), &json!("high"))
        );
        // The server belongs to no single job, but knows that it is for jobs. No other user can
        // read how to reach it.
        assert_eq!(process::variable(server.pid, "BATON_JOB_DEPTH"), Some("1".into()));
        assert_eq!(process::variable(server.pid, "BATON_JOB"), None);
        for file in ["server.json", "server.log", "users"] {
            let mode = fs::metadata(server_folder(&stage).join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        let keeper = keeper_of(server);
        job.turn.close();
        all_gone(&[server.pid]);
        all_gone(&[keeper.pid]);
        assert!(!server_folder(&stage).join("server.json").exists());
        // What it left is found again without a server.
        let left = OpenCode.recall(&job.task, &job.session()).expect("its store has it");
        assert_eq!((left.idle, left.said.map(|said| said.finish)), (Some(true), Some(Finish::End)));
    });
}

#[test]
fn a_prompt_of_any_characters_arrives_byte_for_byte() {
    isolated(|| {
        let stage = stage();
        for bytes in [100 << 10, 1 << 20] {
            let job = stage.ask(&hard_text(bytes));
            assert_eq!(job.said().text, "hello");
            let requests = requests(&stage, &job);
            // Not assert_eq: the difference would be too long to read.
            assert!(requests[0].last_user_text() == job.task.prompt, "{bytes} bytes were changed");
        }
    });
}

#[test]
fn a_session_goes_on_where_it_was_with_what_the_new_job_may_do() {
    isolated(|| {
        let stage = stage_with(|config| config["permission"] = json!({"bash": "ask", "edit": "ask"}));
        let mut first = stage.task("write first.txt");
        first.read_only = true;
        let first = stage.start(&first);
        first.said();
        assert!(!stage.file("first.txt").exists());
        let session = first.session();
        drop(first);
        let mut second = stage.task("write second.txt");
        (second.resume, second.allow) = (Some(session.clone()), Allow::Edits);
        let second = stage.start(&second);
        second.said();
        assert_eq!(second.session(), session);
        assert!(stage.file("second.txt").exists());
        let last = requests(&stage, &second).pop().unwrap();
        assert!(last.shows("write first.txt") && last.shows("write second.txt"));
        // What it knows of the turn is not what an earlier turn said.
        let mut third = stage.task("hang");
        third.resume = Some(session);
        let third = stage.start(&third);
        third.wait_for(&Observation::Busy);
        assert_eq!((third.look().idle, third.look().said), (Some(false), None));
        let mut missing = stage.task("say");
        missing.resume = Some("ses_e1cdbead9ffeIdst18TMEhh5Pe".to_owned());
        let fault = stage.refusal(&missing);
        assert_eq!(fault.error.code(), Code::NothingToResume);
    });
}

#[test]
fn what_cannot_be_honoured_is_refused_and_nothing_is_left_behind() {
    isolated(|| {
        let stage = stage();
        let refused = |change: &dyn Fn(&mut Task)| {
            let mut task = stage.task("say");
            change(&mut task);
            let fault = stage.refusal(&task);
            (
                fault.error.code(),
                format!("{} {}", fault.error.message(), fault.error.hint_text().unwrap_or_default()),
            )
        };
        let (code, words) = refused(&|task| task.model = Some("scripted/huge".to_owned()));
        assert!(
            code == Code::UnsupportedOption && words.contains("huge") && words.contains("other"),
            "{words}"
        );
        let (code, words) = refused(&|task| task.effort = Some("max".to_owned()));
        assert!(code == Code::UnsupportedOption && words.contains("low, high"), "{words}");
        let (code, words) = refused(&|task| task.model = Some("nobody/main".to_owned()));
        assert!(code == Code::NotLoggedIn && words.contains("scripted"), "{words}");
        let folder = server_folder(&stage);
        assert!(wait::until(AT_ONCE, || !folder.join("server.json").exists()));
        let (code, words) = refused(&|task| task.program = "/nowhere/opencode".into());
        assert!(code == Code::BackendStart && words.contains("/nowhere/opencode"), "{words}");
        let mut task = stage.task("say");
        task.model = Some("main".to_owned());
        assert_eq!(OpenCode.check(&task).unwrap_err().code(), Code::UnsupportedOption);
        assert!(stage.model.requests().is_empty());
    });
}

#[test]
fn what_the_user_denies_stays_denied_whatever_the_job_may_do() {
    isolated(|| {
        let stage = stage_with(|config| {
            config["permission"] = json!({"bash": {"*": "ask", "touch denied*": "deny"}, "edit": {"*": "ask", "denied/*": "deny"}});
        });
        for (prompt, file) in [("run touch denied1", "denied1"), ("write denied/a.txt", "denied/a.txt")] {
            let job = stage.ask(prompt);
            let result = job.said().text;
            assert!(result.contains("rule which prevents"), "{result}");
            assert!(!stage.sandbox.project().join(file).exists(), "{file}");
        }
        // What the user would be asked about is done without asking, below a subagent too.
        for (prompt, file) in [
            ("run touch asked", "asked"),
            ("write asked.txt", "asked.txt"),
            ("delegate run touch below", "below"),
            ("delegate run touch denied2; touch never", "allowed only as a whole"),
        ] {
            let job = stage.ask(prompt);
            job.said();
            assert!(job.questions().is_empty(), "{prompt}");
            assert_eq!(stage.sandbox.project().join(file).exists(), !file.contains(' '), "{file}");
        }
        assert!(!stage.file("denied2").exists());
    });
}

#[test]
fn a_job_that_must_not_change_anything_cannot() {
    isolated(|| {
        let stage = stage();
        let file = stage.file("kept.txt");
        fs::write(&file, "as it was").unwrap();
        for prompt in [
            "run echo changed > kept.txt",
            "write kept.txt",
            "delegate run echo changed > kept.txt",
            "delegate write kept.txt",
        ] {
            let mut task = stage.task(prompt);
            task.read_only = true;
            let job = stage.start(&task);
            job.said();
            assert_eq!(fs::read_to_string(&file).unwrap(), "as it was", "{prompt}");
        }
    });
}

#[test]
fn a_permission_is_asked_for_answered_and_the_turn_goes_on() {
    isolated(|| {
        let stage = stage_with(|config| config["permission"] = json!({"bash": "ask", "edit": "ask"}));
        let asking = |prompt: &str, allow| {
            let mut task = stage.task(prompt);
            task.allow = allow;
            stage.start(&task)
        };
        let job = asking("run touch one", Allow::Edits);
        let question = job.question();
        assert_eq!(
            (question.kind(), question.subject.as_command()),
            (QuestionKind::Permission, Some("touch one"))
        );
        let look = job.look();
        assert_eq!((look.idle, &look.questions), (Some(false), &vec![question.clone()]));
        // It has no process yet, so it must not count as running, though OpenCode says so.
        assert_eq!(look.tools.iter().map(|tool| tool.state).collect::<Vec<_>>(), [ToolState::Pending]);
        job.wait_in_all("a waiting tool", |all| {
            let last = all.iter().rev().find_map(|seen| match seen {
                Observation::Tool(tool) => Some(tool.state),
                _ => None,
            });
            (last == Some(ToolState::Pending)).then_some(())
        });
        assert!(!stage.file("one").exists());
        assert_eq!(
            job.turn.answer(&crate::bench::unknown("per_unknown"), &Answer::Allow).unwrap_err().code(),
            Code::BackendError
        );
        job.turn.answer(&question, &Answer::Allow).unwrap();
        job.wait_for(&Observation::Settled(question.id.clone()));
        job.said();
        assert!(stage.file("one").exists());
        assert_eq!(job.turn.answer(&question, &Answer::Allow).unwrap_err().code(), Code::BackendError);

        let job = asking("run touch two", Allow::Edits);
        job.turn.answer(&job.question(), &Answer::Deny("take the other one".to_owned())).unwrap();
        assert!(job.said().text.contains("take the other one"));
        let job = asking("run touch two", Allow::Edits);
        job.turn.answer(&job.question(), &Answer::Deny(String::new())).unwrap();
        // It goes on without it, instead of stopping in the middle.
        assert!(job.said().text.starts_with("done:"));
        assert!(!stage.file("two").exists());

        // Files of the folder are changed without a question, unless the job may do nothing by
        // itself.
        let job = asking("write three.txt", Allow::Edits);
        job.said();
        assert!(job.questions().is_empty());
        let job = asking("write four.txt", Allow::Ask);
        let question = job.question();
        assert!(
            question.subject.paths().iter().any(|path| path.ends_with("four.txt")),
            "{}",
            question.subject.text()
        );
        job.turn.answer(&question, &Answer::AllowAlways).unwrap();
        job.said();
        assert!(stage.file("four.txt").exists());

        // What is allowed for good is that for this job, and not for another one of the same
        // server.
        let job = asking("twice touch five", Allow::Edits);
        job.turn.answer(&job.question(), &Answer::AllowAlways).unwrap();
        job.said();
        assert_eq!((job.questions().len(), requests(&stage, &job).len()), (1, 3));
        let other = asking("run touch five", Allow::Edits);
        assert_eq!(other.question().subject.as_command(), Some("touch five"));
    });
}

#[test]
fn a_subagents_permission_and_a_question_to_the_person_are_the_jobs() {
    isolated(|| {
        let stage = stage_with(|config| config["permission"] = json!({"bash": "ask"}));
        let mut task = stage.task("delegate run touch below");
        task.allow = Allow::Edits;
        let job = stage.start(&task);
        let question = job.question();
        assert_eq!(question.subject.as_command(), Some("touch below"));
        assert_eq!(job.look().questions, std::slice::from_ref(&question));
        job.turn.answer(&question, &Answer::Allow).unwrap();
        job.wait_for(&Observation::Settled(question.id));
        job.said();
        assert!(stage.file("below").exists());

        let job = stage.ask("question");
        let question = job.question();
        assert!(question.kind() == QuestionKind::Input && question.subject.text().starts_with("Which port?"));
        assert_eq!(question.subject.choices(), ["80", "8080"]);
        assert_eq!(job.look().questions, std::slice::from_ref(&question));
        assert!(job.turn.answer(&question, &Answer::Allow).is_err());
        job.turn.answer(&question, &Answer::Words("8080".to_owned())).unwrap();
        job.wait_for(&Observation::Settled(question.id));
        assert!(job.said().text.contains("8080"));
    });
}

#[test]
fn faults_of_the_provider_are_told_with_their_code() {
    isolated(|| {
        let stage = stage();
        let job = stage.ask("refuse");
        assert_eq!((job.fault().error.code(), job.fault().again_at), (Code::NotLoggedIn, None));
        let told = |look: Snapshot| look.fault.map(|fault| fault.error.code());
        assert_eq!(told(job.look()), Some(Code::NotLoggedIn));
        let job = stage.ask("bad");
        assert_eq!((job.fault().error.code(), job.fault().again_at), (Code::BackendError, None));

        // It would wait for two hours; how long that may be is not for the backend to say.
        let before = baton_machine::clock::now();
        let job = stage.ask("limit");
        let until = job.wait("retry", |seen| match seen {
            Observation::Retrying { message, until } if message.contains("Too Many Requests") => *until,
            _ => None,
        });
        let wait = until.since(before).0 / 1000;
        assert!((7190..7300).contains(&wait), "{wait}");
        assert_eq!(job.look().idle, Some(false));
        job.abort();
        assert_eq!(job.look().idle, Some(true));

        let job = stage.ask("fail");
        job.wait("retry", |seen| match seen {
            Observation::Retrying { message, .. } if message.contains("ill") => Some(()),
            _ => None,
        });
        job.turn.abort().unwrap();
    });
}

#[test]
fn answers_that_break_off_for_ever_are_a_fault() {
    isolated(|| {
        let stage = stage();
        let job = stage.ask("break");
        assert_eq!((job.fault().error.code(), job.fault().again_at), (Code::BackendError, None));
        assert!(wait::until(AT_ONCE, || job.look().idle == Some(true)));
        assert_eq!(job.look().fault.map(|fault| fault.error.code()), Some(Code::BackendError));
        assert!(requests(&stage, &job).len() < 20);
    });
}

#[test]
fn an_abort_ends_a_hanging_model_and_a_running_command() {
    isolated(|| {
        let stage = stage();
        for prompt in ["hang", "drip"] {
            let hanging = stage.ask(prompt);
            hanging.wait_for(&Observation::Busy);
            stage
                .model
                .wait_for(LIMIT, |request| request.last_user_text() == prompt)
                .expect("it asks the model");
            assert_eq!((hanging.look().idle, hanging.look().said), (Some(false), None));
            hanging.abort();
            assert!(!hanging.has(|seen| matches!(seen, Observation::Said(_))));
        }

        let running = stage.ask("run echo $$ > pid; exec sleep 1000");
        running.tool(ToolKind::Shell, ToolState::Running);
        let command = pid_in(&stage.file("pid"));
        let look = running.look();
        assert_eq!((look.idle, look.tools.len(), look.tools[0].state), (Some(false), 1, ToolState::Running));
        assert!(process::lineage(command).contains(&running.pid()));
        running.abort();
        all_gone(&[command]);
        let aborted = wait::until(AT_ONCE, || {
            let look = running.look();
            look.aborted && look.idle == Some(true) && look.tools.is_empty()
        });
        assert!(aborted, "{:?}", running.look());
        assert!(!running.has(|seen| matches!(seen, Observation::Said(said) if said.finish == Finish::End)));
    });
}

#[test]
fn a_closed_job_takes_its_turn_and_its_commands_with_it() {
    isolated(|| {
        let stage = stage();
        let other = stage.ask("hang");
        let job = stage.ask("run echo $$ > pid; exec sleep 1000");
        let command = pid_in(&stage.file("pid"));
        job.turn.close();
        all_gone(&[command]);
        assert_eq!(other.look().idle, Some(false));
        // No worker watched it to its end, so it has none, though its database says that it was
        // aborted.
        let left = OpenCode.recall(&job.task, &job.session()).expect("the server has it");
        assert_eq!((left.idle, left.said, left.fault, left.aborted), (Some(true), None, None, false));
    });
}

#[test]
#[ignore = "not a test: the worker that one of the tests kills"]
fn works_until_it_is_killed() {
    let Some(task) = std::env::var("JOB_TASK").ok() else { return };
    let task: Value = serde_json::from_str(&task).unwrap();
    let text = |name: &str| task[name].as_str().unwrap().to_owned();
    let job = Job::start(
        &OpenCode,
        &Task {
            prompt: text("prompt"),
            program: text("program").into(),
            environment: std::env::vars_os().collect(),
            cwd: text("cwd").into(),
            worktree_of: None,
            folder: text("folder").into(),
            home: text("home").into(),
            baton: text("baton").into(),
            label: "baton j".to_owned(),
            title: "a job".to_owned(),
            model: None,
            effort: None,
            read_only: false,
            allow: Allow::All,
            resume: None,
        },
    );
    fs::write(job.task.folder.join("session"), job.session()).unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_worker_leaves_no_server_no_command_and_no_end() {
    isolated(|| {
        let stage = stage();
        let task = stage.task("run echo $$ > pid; exec sleep 1000");
        let words = json!({
            "prompt": task.prompt, "program": task.program, "cwd": task.cwd,
            "folder": task.folder, "home": task.home, "baton": task.baton,
        });
        let mut worker = std::process::Command::new(std::env::current_exe().unwrap());
        worker.args(["--exact", "opencode::works_until_it_is_killed", "--include-ignored", "--nocapture"]);
        worker.env_clear().envs(task.environment.clone()).env("JOB_TASK", words.to_string());
        let mut worker = stage.sandbox.start(&mut worker);
        let command = pid_in(&stage.file("pid"));
        let server = server_of(&stage);
        let keeper = keeper_of(server);
        worker.kill();
        all_gone(&[command, server.pid, keeper.pid]);
        let session = fs::read_to_string(task.folder.join("session")).unwrap();
        let began = Instant::now();
        let left = OpenCode.recall(&task, &session).expect("its store has it");
        assert!(began.elapsed() < AT_ONCE);
        assert_eq!((left.idle, left.said, left.fault, left.aborted), (Some(true), None, None, false));
    });
}

#[test]
fn a_killed_server_is_gone_at_once_and_the_next_job_gets_a_new_one() {
    isolated(|| {
        let stage = stage();
        let done = stage.ask("say");
        done.said();
        let job = stage.ask("run sleep 1000");
        job.tool(ToolKind::Shell, ToolState::Running);
        let server = server_of(&stage);
        let keeper = keeper_of(server);
        let killed = Instant::now();
        kill(server.pid);
        job.gone();
        assert!(killed.elapsed() < AT_ONCE, "{:?}", killed.elapsed());
        assert!(job.turn.look().unwrap().is_err() && job.turn.root().is_none());
        // It died in the middle: there is no end, now and later, though nothing runs.
        let left = OpenCode.recall(&job.task, &job.session()).expect("its store has it");
        assert_eq!((left.idle, left.said, left.fault, left.aborted), (Some(true), None, None, false));
        assert_eq!(left.tools.len(), 1);
        let left = OpenCode.recall(&done.task, &done.session()).expect("its store has it");
        assert_eq!(left.said, Some(Said { text: "hello".to_owned(), finish: Finish::End }));
        all_gone(&[keeper.pid]);
        let next = stage.ask("say");
        assert_eq!(next.said().text, "hello");
        assert_ne!(server_of(&stage), server);
        let mut resumed = stage.task("say");
        resumed.resume = Some(job.session());
        assert_eq!(stage.start(&resumed).said().text, "hello");
    });
}

#[test]
fn jobs_share_one_server_which_survives_its_keeper_and_ends_with_the_last_job() {
    isolated(|| {
        let stage = stage();
        // All at once, from nothing.

        let mut jobs: Vec<Job> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..4).map(|_| scope.spawn(|| stage.ask("say"))).collect();
            started.into_iter().map(|job| job.join().unwrap()).collect()
        });
        let server = server_of(&stage);
        for job in &jobs {
            assert_eq!(job.said().text, "hello");
            assert_eq!(job.turn.root(), Some(server));
        }
        jobs.truncate(1);
        let long = stage.ask("hang");
        drop(jobs);
        assert_eq!(server_of(&stage), server);
        // Without its keeper the server goes on, and the next job brings a new one.
        let keeper = keeper_of(server);
        kill(keeper.pid);
        all_gone(&[keeper.pid]);
        let next = stage.ask("say");
        assert_eq!((next.said().text.as_str(), next.turn.root()), ("hello", Some(server)));
        assert_eq!(long.look().idle, Some(false));
        next.turn.close();
        assert!(process::is_alive(server));
        long.turn.close();
        all_gone(&[server.pid]);
        assert!(wait::until(AT_ONCE, || !server_folder(&stage).join("server.json").exists()));

        // If no next job comes, the last one ends it.
        let last = stage.ask("say");
        let server = server_of(&stage);
        let keeper = keeper_of(server);
        kill(keeper.pid);
        all_gone(&[keeper.pid]);
        last.turn.close();
        all_gone(&[server.pid]);
    });
}

#[test]
fn a_server_that_is_not_ours_is_left_alone() {
    isolated(|| {
        let stage = stage();
        let job = stage.ask("say");
        job.said();
        let mut server = server_file(&stage);
        let ours = process_in(&server);
        job.turn.close();
        all_gone(&[ours.pid]);
        // Another process has the number now, and another server the port.
        let mut other = stage.sandbox.start(stage.sandbox.command("sleep").arg("1000"));
        let pid = i32::try_from(other.pid()).unwrap();
        server["pid"] = pid.into();
        fs::write(server_folder(&stage).join("server.json"), server.to_string()).unwrap();
        let job = stage.ask("say");
        assert_eq!(job.said().text, "hello");
        assert!(other.is_running());
        assert_ne!(server_of(&stage).pid, pid);
    });
}

#[test]
fn a_server_that_stands_still_is_no_end() {
    isolated(|| {
        let stage = stage();
        let job = stage.ask("run sleep 4");
        job.tool(ToolKind::Shell, ToolState::Running);
        let server = job.turn.root().unwrap();
        assert!(!job.has(|seen| matches!(seen, Observation::Lost(Channel::Stream, _))));
        // The server is stopped: a look fails, and nothing counts as an end.
        let pid = Pid::from_raw(server.pid).unwrap();
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        let began = Instant::now();
        assert!(job.turn.look().unwrap().is_err());
        assert!(began.elapsed() < AT_ONCE);
        rustix::process::kill_process(pid, Signal::CONT).unwrap();
        job.said();
        assert!(!job.has(|seen| matches!(seen, Observation::Gone(_) | Observation::Fault(_))));
    });
}
