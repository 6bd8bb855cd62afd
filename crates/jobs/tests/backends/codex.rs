//! Codex over its app-server.

use crate::bench::{self, AT_ONCE, LIMIT, Stage, all_gone, hard_text};
use crate::promises;
use baton_core::Code;
use baton_core::approval::{Answer, QuestionKind};
use baton_core::job::{Allow, Finish, Observation, ToolKind, ToolState};
use baton_testkit::agents::Agent;
use baton_testkit::codex::Codex;
use baton_testkit::model::{Part, Script, Step};
use baton_testkit::{isolated, wait};
use serde_json::json;
use std::fs;
use std::time::Instant;

const AGENT: Agent = Agent::Codex;

fn config(stage: &Stage) -> String {
    fs::read_to_string(stage.sandbox.path("home/.codex/config.toml")).expect("a configuration")
}

fn set_config(stage: &Stage, config: &str) {
    fs::write(stage.sandbox.path("home/.codex/config.toml"), config).expect("it can be written");
}

/// The results that the model was shown last.
fn results(stage: &Stage) -> String {
    let last = stage.model.requests().pop().expect("a request");
    last.results().iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n")
}

fn escalated(command: &str) -> Step {
    let input =
        json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "because"});
    Step::tool("exec_command", input)
}

#[test]
fn a_turn_is_told_from_its_session_to_its_last_word_and_an_interim_step_is_no_end() {
    isolated(|| {
        let interim = Step::parts([Part::text("I look first"), Part::shell("echo one; sleep 1.5; echo two")]);
        let mut stage = Stage::steps(AGENT, [interim, Step::say("all done")]);
        // Without the line by which the tests' Codex trusts the project.
        let before = config(&stage).split("[projects").next().unwrap_or_default().to_owned();
        set_config(&stage, &before);
        stage.task.effort = Some("low".to_owned());
        stage.task.model = Some("another".to_owned());
        let job = stage.start(&stage.task);
        let tool = job.tool(ToolKind::Shell, ToolState::Running);
        assert_eq!(tool.what, "shell: echo one; sleep 1.5; echo two");
        let look = job.look();
        assert_eq!((look.idle, look.said.as_ref(), look.tools.len()), (Some(false), None, 1));
        assert!(bench::tree(job.pid()).len() > 2, "its command is below its root");
        let said = job.said();
        assert_eq!((said.text.as_str(), said.finish), ("all done", Finish::End));
        let ended = job.tool(ToolKind::Shell, ToolState::Ended);
        assert!(ended.call == tool.call && ended.output > 0);
        let all = job.all();
        let place = |wanted: &dyn Fn(&Observation) -> bool| all.iter().position(wanted).unwrap();
        let session = place(&|seen| matches!(seen, Observation::Session(_)));
        let busy = place(&|seen| *seen == Observation::Busy);
        let words = place(&|seen| *seen == Observation::Progress("I look first".to_owned()));
        let said = place(&|seen| matches!(seen, Observation::Said(_)));
        assert!(session < busy && busy < words && words < said, "{all:#?}");
        assert_eq!(all.iter().filter(|seen| matches!(seen, Observation::Said(_))).count(), 1, "{all:#?}");
        let look = job.look();
        assert_eq!(
            (look.idle, look.said.unwrap().text, look.tools),
            (Some(true), "all done".to_owned(), vec![])
        );
        let request = &stage.model.requests()[0];
        assert_eq!(
            (&request.body["model"], &request.body["reasoning"]["effort"]),
            (&json!("another"), &json!("low"))
        );
        assert_eq!(request.last_user_text(), "do it");
        let pids = bench::tree(job.pid());
        job.turn.close();
        all_gone(&pids);
        assert!(!job.has(|seen| matches!(seen, Observation::Gone(_))));
        assert_eq!(config(&stage), before, "the user's configuration is as it was");
    });
}

#[test]
fn a_hard_prompt_arrives_byte_for_byte_up_to_the_limit() {
    isolated(|| {
        let limit = Stage::steps(AGENT, []).backend().capabilities().prompt_bytes;
        for text in [hard_text(100 << 10), format!("/help {}", hard_text(50)), hard_text(limit)] {
            promises::a_prompt_arrives_whole(AGENT, &text);
        }
    });
}

#[test]
fn a_resumed_session_holds_the_first_conversation() {
    isolated(|| {
        let mut stage = Stage::steps(AGENT, [Step::say("first answer"), Step::say("second answer")]);
        let before = config(&stage);
        let first = stage.start(&stage.task);
        let session = first.session();
        first.said();
        drop(first);
        stage.task.resume = Some(session.clone());
        stage.task.prompt = "go on".to_owned();
        let second = stage.start(&stage.task);
        assert_eq!((second.said().text.as_str(), second.session()), ("second answer", session));
        let request = stage.model.requests().pop().unwrap();
        assert!(request.shows("do it") && request.said().iter().any(|said| said.text == "first answer"));
        assert_eq!(request.last_user_text(), "go on");
        assert_eq!(config(&stage), before);
        stage.task.resume = Some("01a1e328-955d-7c93-a0bf-cce914b58c99".to_owned());
        let fault = stage.refusal(&stage.task);
        assert_eq!(fault.error.code(), Code::NothingToResume);
    });
}

#[test]
fn read_only_keeps_the_shell_and_the_patch_from_writing() {
    isolated(|| {
        let mut stage = Stage::steps(
            AGENT,
            [
                Step::shell("echo bad > kept; echo bad > new"),
                Step::write("patched", "bad"),
                escalated("touch escaped"),
                Step::say("could not"),
            ],
        );
        fs::write(stage.file("kept"), "good").unwrap();
        stage.task.read_only = true;
        let job = stage.start(&stage.task);
        assert_eq!(job.said().text, "could not");
        assert_eq!(fs::read_to_string(stage.file("kept")).unwrap(), "good");
        assert!(!["new", "patched", "escaped"].iter().any(|name| stage.file(name).exists()));
        assert!(job.questions().is_empty(), "nobody is asked");
        let results = results(&stage);
        assert!(
            results.contains("Read-only file system") && results.contains("read-only sandbox"),
            "{results}"
        );
    });
}

#[test]
fn under_ask_an_edit_waits_for_its_answer_and_then_goes_on() {
    isolated(|| {
        let mut stage = Stage::steps(
            AGENT,
            [Step::write("one", "x"), Step::write("two", "x"), Step::shell("ls"), Step::say("done")],
        );
        stage.task.allow = Allow::Ask;
        let job = stage.start(&stage.task);
        let first = job.question();
        assert_eq!(first.kind(), QuestionKind::Permission);
        assert!(
            first.subject.paths()[0].ends_with("/one") && first.subject.as_change().is_some(),
            "{:?}",
            first.subject
        );
        assert_eq!(job.look().questions, std::slice::from_ref(&first));
        assert!(!stage.file("one").exists());
        job.turn.answer(&first, &Answer::Allow).unwrap();
        let second = job.question_after(&[&first]);
        assert!(job.all().contains(&Observation::Settled(first.id.clone())));
        assert!(job.turn.answer(&first, &Answer::Allow).is_err(), "answered already");
        job.turn.answer(&second, &Answer::Deny("write no second file".to_owned())).unwrap();
        assert_eq!(job.said().text, "done");
        assert!(stage.file("one").exists() && !stage.file("two").exists());
        assert_eq!(
            stage.model.sightings("write no second file").first,
            Some(2),
            "the words come with the refusal"
        );
        assert_eq!(job.look().questions, []);
    });
}

#[test]
fn under_edits_files_are_changed_freely_and_leaving_the_sandbox_is_asked() {
    isolated(|| {
        let outside = escalated("touch outside");
        let mut stage = Stage::steps(
            AGENT,
            [
                Step::write("patched", "x"),
                Step::shell("touch inside; (echo > /dev/tcp/127.0.0.1/1)"),
                outside.clone(),
                outside,
                Step::say("done"),
            ],
        );
        stage.task.allow = Allow::Edits;
        let job = stage.start(&stage.task);
        let question = job.question();
        assert_eq!(
            (question.subject.head().as_str(), question.subject.notes()),
            ("shell: touch outside", &["because".to_owned()][..]),
            "{:?}",
            question.subject
        );
        assert!(
            stage.file("patched").exists()
                && stage.file("inside").exists()
                && !stage.file("outside").exists()
        );
        let waiting = job.look().tools;
        assert_eq!(waiting.iter().map(|tool| tool.state).collect::<Vec<_>>(), [ToolState::Pending]);
        job.turn.answer(&question, &Answer::AllowAlways).unwrap();
        assert_eq!(job.said().text, "done");
        assert!(stage.file("outside").exists());
        assert!(
            results(&stage).contains("socket: Operation not permitted"),
            "the sandbox holds: {}",
            results(&stage)
        );
        assert_eq!(job.questions().len(), 1, "always is for the session");
        assert!(!stage.sandbox.path("home/.codex/rules").exists(), "and for nothing longer");
    });
}

/// Denies a file by a permission profile and a command by a rule, as a user would. Gives the
/// configuration as it is then.
fn deny(stage: &Stage) -> String {
    fs::write(stage.sandbox.path("home/secret"), "hush").expect("a file to be denied");
    let rules = stage.sandbox.path("home/.codex/rules");
    fs::create_dir_all(&rules).expect("a folder for rules");
    let rule = "prefix_rule(pattern=[\"touch\", \"forbidden\"], decision=\"forbidden\")\n";
    fs::write(rules.join("default.rules"), rule).expect("a rule");
    let secret = stage.sandbox.path("home/secret").canonicalize().expect("it was written");
    let profile = format!(
        "default_permissions = \"mine\"\n[permissions.mine]\nextends = \":workspace\"\n\
         [permissions.mine.filesystem]\n{} = \"deny\"\n",
        json!(secret)
    );
    let changed = config(stage).replace("sandbox_mode = \"danger-full-access\"\n", &profile);
    assert!(changed.contains("default_permissions"));
    set_config(stage, &changed);
    changed
}

#[test]
fn what_the_user_denies_stays_denied_when_all_is_allowed() {
    isolated(|| {
        let script = |request: &baton_testkit::Request| {
            let address =
                request.headers.iter().find(|(name, _)| name == "host").map(|(_, host)| host.clone());
            let port = address.and_then(|host| Some(host.rsplit_once(':')?.1.to_owned())).unwrap_or_default();
            match request.results().len() {
                0 => Step::shell("touch forbidden"),
                1 => Step::shell(format!(
                    "cat \"$HOME/secret\"; touch allowed; (echo > /dev/tcp/127.0.0.1/{port}) && touch connected"
                )),
                _ => Step::say("done"),
            }
        };
        let mut stage = Stage::new(AGENT, Script::by(script));
        let denied = deny(&stage);
        stage.task.allow = Allow::All;
        let job = stage.start(&stage.task);
        assert_eq!(job.said().text, "done");
        let results = results(&stage);
        assert!(
            results.contains("policy forbids commands") && results.contains("Permission denied"),
            "{results}"
        );
        assert!(!results.contains("hush") && !stage.file("forbidden").exists(), "{results}");
        assert!(
            stage.file("allowed").exists() && stage.file("connected").exists(),
            "the rest is allowed: {results}"
        );
        assert_eq!(config(&stage), denied);
    });
}

#[test]
fn what_the_user_denies_stays_denied_in_a_read_only_job_and_one_that_edits() {
    isolated(|| {
        for read_only in [true, false] {
            let command = "cat \"$HOME/secret\"; touch written";
            let mut stage = Stage::steps(AGENT, [Step::shell(command), Step::say("done")]);
            deny(&stage);
            (stage.task.read_only, stage.task.allow) = (read_only, Allow::Edits);
            assert_eq!(stage.start(&stage.task).said().text, "done");
            let results = results(&stage);
            assert!(results.contains("Permission denied") && !results.contains("hush"), "{results}");
            assert_eq!(stage.file("written").exists(), !read_only, "{results}");
        }
    });
}

#[test]
fn a_question_of_a_subagent_is_the_jobs_question() {
    isolated(|| {
        let main =
            |request: &baton_testkit::Request| match request.results().last().map(|said| said.text.clone()) {
                None => Step::tool("multi_agent_v1.spawn_agent", json!({"message": "child task"})),
                Some(result) if result.contains("agent_id") => {
                    let spawned: serde_json::Value = serde_json::from_str(&result).unwrap();
                    let wait = json!({"timeout_ms": 20000, "targets": [spawned["agent_id"]]});
                    Step::tool("multi_agent_v1.wait_agent", wait)
                }
                Some(_) => Step::say("parent done"),
            };
        let child = |request: &baton_testkit::Request| match request.results().len() {
            0 => escalated("touch by-child"),
            _ => Step::say("child done"),
        };
        let mut stage = Stage::new(AGENT, Script::by(main).subagents(child));
        stage.task.allow = Allow::Ask;
        let job = stage.start(&stage.task);
        let question = job.question();
        assert_eq!(question.subject.as_command(), Some("touch by-child"));
        assert!(job.look().tools.iter().any(|tool| tool.what == "subagent: shell: touch by-child"));
        job.turn.answer(&question, &Answer::Allow).unwrap();
        assert_eq!(job.said().text, "parent done", "the child's end is not the job's");
        assert!(stage.file("by-child").exists());
        assert_eq!(job.look().tools, []);
    });
}

/// An MCP server with a tool that must be allowed, and one that asks back.
const SERVER: &str = r#"
const lines = require("readline").createInterface({ input: process.stdin });
const say = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
let call;
lines.on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  const reply = (result) => say({ id, result });
  const text = (text) => ({ content: [{ type: "text", text }] });
  const tool = (name, readOnlyHint) => ({
    name, description: name, inputSchema: { type: "object", properties: {} },
    annotations: { readOnlyHint, destructiveHint: !readOnlyHint },
  });
  if (method === "initialize") {
    const serverInfo = { name: "probe", version: "1" };
    reply({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
  } else if (method === "tools/list") reply({ tools: [tool("destroy", false), tool("ask", true)] });
  else if (method === "tools/call" && params.name === "destroy") reply(text("destroyed"));
  else if (method === "tools/call") {
    call = id;
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    say({ id: "ask", method: "elicitation/create", params: { message: "Your name?", requestedSchema } });
  } else if (id === "ask") say({ id: call, result: text("hello " + result.content.name) });
  else if (id !== undefined) reply({});
});
"#;

#[test]
fn tools_and_questions_of_mcp_servers_are_asked() {
    isolated(|| {
        let destroy = Step::mcp("probe", "destroy", json!({}));
        let mut stage = Stage::steps(
            AGENT,
            [destroy.clone(), destroy, Step::mcp("probe", "ask", json!({})), Step::say("done")],
        );
        let server = stage.sandbox.path("home/server.js");
        fs::write(&server, SERVER).unwrap();
        Codex::new(&stage.sandbox, &stage.model).add_mcp_server(
            "probe",
            "node",
            &[&server.to_string_lossy()],
        );
        stage.task.allow = Allow::Edits;
        let job = stage.start(&stage.task);
        let tool = job.question();
        assert_eq!(tool.kind(), QuestionKind::Permission);
        assert!(
            tool.subject.tool() == Some("probe") && tool.subject.text().contains("destroy"),
            "{:?}",
            tool.subject
        );
        assert!(job.turn.answer(&tool, &Answer::AllowAlways).is_err(), "no rule is shown");
        job.turn.answer(&tool, &Answer::Allow).unwrap();
        let again = job.question_after(&[&tool]);
        job.turn.answer(&again, &Answer::Allow).unwrap();
        let words = job.question_after(&[&tool, &again]);
        assert_eq!((words.kind(), words.subject.tool()), (QuestionKind::Input, Some("probe")));
        assert!(job.turn.answer(&words, &Answer::Allow).is_err(), "it wants words");
        job.turn.answer(&words, &Answer::Words("Ada".to_owned())).unwrap();
        assert_eq!(job.said().text, "done");
        let results = results(&stage);
        assert!(results.matches("destroyed").count() == 2 && results.contains("hello Ada"), "{results}");
        assert!(!config(&stage).contains("approval_mode"), "nothing is kept beyond the session");
    });
}

#[test]
fn an_abort_stops_the_turn_and_every_command_that_runs_in_it() {
    isolated(|| {
        let background = json!({"cmd": "sleep 7101 & sleep 7102", "yield_time_ms": 300});
        let stage = Stage::steps(
            AGENT,
            [Step::tool("exec_command", background), Step::shell("sleep 7103"), Step::say("never")],
        );
        let job = stage.start(&stage.task);
        for command in ["sleep 7101", "sleep 7103"] {
            job.wait("running tool", |seen| match seen {
                Observation::Tool(tool) if tool.what.contains(command) => Some(()),
                _ => None,
            });
        }
        assert!(bench::running("sleep 710").len() >= 3);
        assert_eq!(job.look().tools.len(), 2);
        job.abort();
        job.wait_for(&Observation::Idle);
        all_gone(&bench::running("sleep 710"));
        let look = job.look();
        assert!(look.aborted && look.tools.is_empty() && look.said.is_none(), "{look:?}");
        let recalled = stage.backend().recall(&stage.task, &job.session()).expect("it is written down");
        assert_eq!((recalled.idle, recalled.said), (None, None));
    });
}

#[test]
fn what_runs_in_the_background_does_not_keep_a_finished_turn_open_nor_outlive_it() {
    isolated(|| {
        let background = json!({"cmd": "sleep 7201", "yield_time_ms": 300});
        let stage = Stage::steps(AGENT, [Step::tool("exec_command", background), Step::say("it runs")]);
        let job = stage.start(&stage.task);
        assert_eq!(job.said().text, "it runs");
        let mut states = job.all().into_iter().filter_map(|seen| match seen {
            Observation::Tool(tool) => Some(tool.state),
            _ => None,
        });
        assert_eq!(states.next_back(), Some(ToolState::Ended));
        let sleeping = bench::running("sleep 7201");
        assert!(!sleeping.is_empty());
        job.turn.close();
        all_gone(&sleeping);
    });
}

#[test]
fn a_model_that_hangs_leaves_the_turn_busy_and_an_abort_frees_it() {
    isolated(|| promises::a_model_that_hangs_is_left_by_an_abort(|step| Stage::steps(AGENT, [step])));
}

#[test]
fn a_killed_program_is_gone_at_once_and_what_it_had_is_recalled() {
    isolated(|| {
        // Once the launcher and once the program itself is killed.
        for victim in [0, 1] {
            let stage = Stage::steps(
                AGENT,
                [Step::parts([Part::text("partial"), Part::shell("sleep 7301")]), Step::say("never")],
            );
            let job = stage.start(&stage.task);
            assert!(wait::until(LIMIT, || !bench::running("sleep 7301").is_empty()));
            let tree = bench::tree(job.pid());
            // The program has other children beside its tools.
            let is_server = |pid: &i32| bench::running("app-server").contains(pid);
            let servers: Vec<i32> = tree.iter().copied().filter(is_server).collect();
            bench::kill(servers[victim.min(servers.len() - 1)]);
            let killed = Instant::now();
            job.gone();
            assert!(killed.elapsed() < AT_ONCE, "{:?}", killed.elapsed());
            all_gone(&tree);
            assert!(job.turn.look().unwrap().is_err());
            let asked = Instant::now();
            let recalled = stage.backend().recall(&stage.task, &job.session()).expect("it is written down");
            assert!(asked.elapsed() < AT_ONCE);
            assert_eq!(
                (recalled.idle, recalled.said, recalled.aborted, recalled.fault),
                (None, None, false, None)
            );
        }
    });
}

#[test]
fn a_turn_that_ended_is_recalled_with_its_result_also_when_the_session_went_on() {
    isolated(|| {
        let mut stage = Stage::steps(AGENT, [Step::say("the result"), Step::say("of another job")]);
        let job = stage.start(&stage.task);
        job.said();
        let session = job.session();
        let pid = rustix::process::Pid::from_raw(job.pid()).unwrap();
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
        drop(job);
        let first = stage.task.clone();
        let recalled = stage.backend().recall(&first, &session).expect("it is written down");
        let said = recalled.said.expect("an end");
        assert_eq!((recalled.idle, said.text.as_str(), said.finish), (Some(true), "the result", Finish::End));
        stage.task.resume = Some(session.clone());
        stage.task.folder = stage.sandbox.path("log/another");
        fs::create_dir_all(&stage.task.folder).unwrap();
        stage.start(&stage.task).said();
        assert_eq!(stage.backend().recall(&first, &session).unwrap().said.unwrap().text, "the result");
        assert_eq!(
            stage.backend().recall(&stage.task, &session).unwrap().said.unwrap().text,
            "of another job"
        );
        assert_eq!(stage.backend().recall(&first, "01a1e328-955d-7c93-a0bf-cce914b58c99"), None);
    });
}

#[test]
fn faults_of_the_model_get_their_codes() {
    isolated(|| {
        let cut = Step::say("half a word").cut(2);
        for (step, code, words) in [
            (Step::error(401, "bad key"), Code::NotLoggedIn, "401 Unauthorized: bad key"),
            (Step::limited(1, "Slow down"), Code::RateLimited, "429 Too Many Requests"),
            (Step::error(400, "strange request"), Code::BackendError, "strange request"),
            (Step::error(500, "boom"), Code::BackendError, "high demand"),
            (Step::inside("inner failure"), Code::BackendError, "inner failure"),
            (cut, Code::BackendError, "stream closed before response.completed"),
        ] {
            let retries = words != "strange request";
            let stage = Stage::new(AGENT, Script::by(move |_| step.clone()));
            // Fewer of its retries, so that the test is short; the rest of its way is the same.
            let fewer = "wire_api = \"responses\"\nstream_max_retries = 2\nrequest_max_retries = 1\n";
            set_config(&stage, &config(&stage).replace("wire_api = \"responses\"\n", fewer));
            promises::a_fault_is_told_and_kept(&stage, code, words, retries);
        }
    });
}

#[test]
fn the_first_jobs_in_a_new_home_may_start_at_the_same_time() {
    isolated(|| {
        let stage = Stage::new(AGENT, Script::by(|_| Step::say("done")));
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..6).map(|_| scope.spawn(|| stage.ask("do it").said().text)).collect();
            for job in jobs {
                assert_eq!(job.join().unwrap(), "done");
            }
        });
    });
}

#[test]
fn a_task_that_cannot_be_honoured_is_refused_by_name() {
    isolated(|| {
        let mut stage = Stage::steps(AGENT, []);
        assert_eq!(stage.backend().check(&stage.task), Ok(()));
        stage.task.effort = Some("heroic".to_owned());
        let error = stage.backend().check(&stage.task).unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedOption);
        assert!(error.message().contains("effort heroic") && error.hint_text().unwrap().contains("xhigh"));
        stage.task.model = Some("gpt-5.5".to_owned());
        stage.task.effort = Some("ultra".to_owned());
        let fault = stage.refusal(&stage.task);
        assert_eq!(fault.error.code(), Code::UnsupportedOption);
        stage.task.effort = None;
        fs::remove_file(stage.sandbox.path("home/.codex/config.toml")).unwrap();
        assert_eq!(stage.backend().check(&stage.task).unwrap_err().code(), Code::NotLoggedIn);
        let fault = stage.refusal(&stage.task);
        assert_eq!(fault.error.code(), Code::NotLoggedIn);
        stage.task.program = "/bin/false".into();
        let fault = stage.refusal(&stage.task);
        assert_eq!(fault.error.code(), Code::BackendStart);
        stage.task.program = "/nowhere/codex".into();
        let fault = stage.refusal(&stage.task);
        assert_eq!(fault.error.code(), Code::BackendStart);
        assert_eq!(stage.model.requests().len(), 0);
    });
}
