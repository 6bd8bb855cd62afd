//! Codex over its app-server.

use crate::bench::{self, Job, LIMIT, all_gone, hard_text, task};
use baton_core::Code;
use baton_core::job::{Allow, Answer, Finish, Observation, QuestionKind, ToolKind, ToolState};
use baton_jobs::backend::codex::Codex as Backend;
use baton_jobs::backend::{Backend as _, Task};
use baton_testkit::codex::Codex;
use baton_testkit::model::{Model, Part, Script, Step};
use baton_testkit::{Sandbox, isolated};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

/// A sandbox in which Codex is set up, its model, and a task for it.
struct World {
    sandbox: Sandbox,
    model: Model,
    task: Task,
}

impl World {
    fn new(script: Script) -> World {
        let model = Model::start(script);
        let sandbox = Sandbox::new();
        Codex::new(&sandbox, &model);
        let (home, key) = (sandbox.path("home/.codex"), "fake-key-of-a-test".as_ref());
        let task = task(&sandbox, "codex", "do it", &[("CODEX_HOME", &home), ("SCRIPTED_KEY", key)]);
        World { sandbox, model, task }
    }

    fn steps(steps: impl IntoIterator<Item = Step>) -> World {
        World::new(Script::steps(steps))
    }

    fn config(&self) -> String {
        fs::read_to_string(self.sandbox.path("home/.codex/config.toml")).expect("a configuration")
    }

    /// Without the line by which the tests' Codex trusts the project.
    fn untrust(&self) {
        let config = self.config();
        let kept = config.split("[projects").next().unwrap_or_default();
        fs::write(self.sandbox.path("home/.codex/config.toml"), kept).expect("it can be written");
    }

    fn in_project(&self, name: &str) -> bool {
        self.sandbox.project().join(name).exists()
    }

    fn start(&self) -> Job {
        Job::start(&Backend, &self.task)
    }

    /// The results that the model was shown last.
    fn results(&self) -> String {
        let requests = self.model.requests();
        let results =
            requests.last().map(|request| request.results().into_iter().cloned().collect::<Vec<_>>());
        results.unwrap_or_default().into_iter().map(|said| said.text).collect::<Vec<_>>().join("\n")
    }
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
        let mut world = World::steps([interim, Step::say("all done")]);
        world.untrust();
        let before = world.config();
        world.task.effort = Some("low".to_owned());
        world.task.model = Some("another".to_owned());
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
        assert_eq!(tool.what, "shell: echo one; sleep 1.5; echo two");
        let look = job.look();
        assert_eq!((look.idle, look.said.as_ref(), look.tools.len()), (Some(false), None, 1));
        assert!(bench::tree(job.pid()).len() > 2, "its command is below its root");
        let said = job.said();
        assert_eq!((said.text.as_str(), said.finish), ("all done", Finish::End));
        let ended = job.wait("ended tool", LIMIT, running(ToolState::Ended));
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
        let request = &world.model.requests()[0];
        assert_eq!(
            (&request.body["model"], &request.body["reasoning"]["effort"]),
            (&json!("another"), &json!("low"))
        );
        assert_eq!(request.last_user_text(), "do it");
        let pids = bench::tree(job.pid());
        job.turn.close();
        all_gone(&pids);
        assert!(!job.all().iter().any(|seen| matches!(seen, Observation::Gone(_))));
        assert_eq!(world.config(), before, "the user's configuration is as it was");
    });
}

#[test]
fn a_hard_prompt_arrives_byte_for_byte_up_to_the_limit() {
    isolated(|| {
        for (text, seed) in [(hard_text(100 << 10, 7), 1), (format!("/help {}", hard_text(50, 3)), 2)] {
            let mut world = World::steps([Step::say("ok")]);
            world.task.prompt.clone_from(&text);
            assert_eq!(world.start().said().text, "ok");
            assert!(world.model.requests()[0].last_user_text() == text, "seed {seed}");
        }
        let mut world = World::steps([Step::say("ok")]);
        let limit = Backend.capabilities().prompt_bytes;
        let mut text = hard_text(limit, 11);
        while text.len() > limit {
            text.pop();
        }
        world.task.prompt.clone_from(&text);
        world.start().said();
        assert!(world.model.requests()[0].last_user_text() == text);
    });
}

#[test]
fn a_resumed_session_holds_the_first_conversation() {
    isolated(|| {
        let mut world = World::steps([Step::say("first answer"), Step::say("second answer")]);
        let before = world.config();
        let first = world.start();
        let session = first.session();
        first.said();
        drop(first);
        world.task.resume = Some(session.clone());
        world.task.prompt = "go on".to_owned();
        let second = world.start();
        assert_eq!((second.said().text.as_str(), second.session()), ("second answer", session));
        let request = world.model.requests().pop().unwrap();
        assert!(request.shows("do it") && request.said().iter().any(|said| said.text == "first answer"));
        assert_eq!(request.last_user_text(), "go on");
        assert_eq!(world.config(), before);
        world.task.resume = Some("01a1e328-955d-7c93-a0bf-cce914b58c99".to_owned());
        let fault = Job::try_start(&Backend, &world.task).err().expect("nothing to resume");
        assert_eq!(fault.error.code(), Code::NothingToResume);
    });
}

#[test]
fn read_only_keeps_the_shell_and_the_patch_from_writing() {
    isolated(|| {
        let mut world = World::steps([
            Step::shell("echo bad > kept; echo bad > new"),
            Step::write("patched", "bad"),
            escalated("touch escaped"),
            Step::say("could not"),
        ]);
        fs::write(world.sandbox.project().join("kept"), "good").unwrap();
        world.task.read_only = true;
        let job = world.start();
        assert_eq!(job.said().text, "could not");
        assert_eq!(fs::read_to_string(world.sandbox.project().join("kept")).unwrap(), "good");
        assert!(!["new", "patched", "escaped"].iter().any(|name| world.in_project(name)));
        assert!(!job.all().iter().any(|seen| matches!(seen, Observation::Asked(_))), "nobody is asked");
        let results = world.results();
        assert!(
            results.contains("Read-only file system") && results.contains("read-only sandbox"),
            "{results}"
        );
    });
}

#[test]
fn under_ask_an_edit_waits_for_its_answer_and_then_goes_on() {
    isolated(|| {
        let mut world = World::steps([
            Step::write("one", "x"),
            Step::write("two", "x"),
            Step::shell("ls"),
            Step::say("done"),
        ]);
        world.task.allow = Allow::Ask;
        let job = world.start();
        let first = job.question();
        assert_eq!(first.kind, QuestionKind::Permission);
        assert!(first.what.starts_with("edit: ") && first.what.ends_with("/one"), "{}", first.what);
        assert_eq!(job.look().questions, std::slice::from_ref(&first));
        assert!(!world.in_project("one"));
        job.turn.answer(&first.id, &Answer::Allow).unwrap();
        let second = job.wait("second question", LIMIT, |seen| match seen {
            Observation::Asked(question) if question.id != first.id => Some(question.clone()),
            _ => None,
        });
        assert!(job.all().contains(&Observation::Settled(first.id.clone())));
        assert!(job.turn.answer(&first.id, &Answer::Allow).is_err(), "answered already");
        job.turn.answer(&second.id, &Answer::Deny("write no second file".to_owned())).unwrap();
        assert_eq!(job.said().text, "done");
        assert!(world.in_project("one") && !world.in_project("two"));
        assert_eq!(
            world.model.sightings("write no second file").first,
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
        let mut world = World::steps([
            Step::write("patched", "x"),
            Step::shell("touch inside; (echo > /dev/tcp/127.0.0.1/1)"),
            outside.clone(),
            outside,
            Step::say("done"),
        ]);
        world.task.allow = Allow::Edits;
        let job = world.start();
        let question = job.question();
        assert_eq!(question.what, "shell: touch outside (because)");
        assert!(world.in_project("patched") && world.in_project("inside") && !world.in_project("outside"));
        let waiting = job.look().tools;
        assert_eq!(waiting.iter().map(|tool| tool.state).collect::<Vec<_>>(), [ToolState::Pending]);
        job.turn.answer(&question.id, &Answer::AllowAlways).unwrap();
        assert_eq!(job.said().text, "done");
        assert!(world.in_project("outside"));
        assert!(
            world.results().contains("socket: Operation not permitted"),
            "the sandbox holds: {}",
            world.results()
        );
        let asked = job.all().iter().filter(|seen| matches!(seen, Observation::Asked(_))).count();
        assert_eq!(asked, 1, "always is for the session");
        assert!(!world.sandbox.path("home/.codex/rules").exists(), "and for nothing longer");
    });
}

/// Denies a file by a permission profile and a command by a rule, as a user would. Gives the configuration as it is then.
fn deny(world: &World) -> String {
    fs::write(world.sandbox.path("home/secret"), "hush").expect("a file to be denied");
    let rules = world.sandbox.path("home/.codex/rules");
    fs::create_dir_all(&rules).expect("a folder for rules");
    let rule = "prefix_rule(pattern=[\"touch\", \"forbidden\"], decision=\"forbidden\")\n";
    fs::write(rules.join("default.rules"), rule).expect("a rule");
    let secret = world.sandbox.path("home/secret").canonicalize().expect("it was written");
    let profile = format!(
        "default_permissions = \"mine\"\n[permissions.mine]\nextends = \":workspace\"\n\
         [permissions.mine.filesystem]\n{} = \"deny\"\n",
        json!(secret)
    );
    let config = world.config().replace("sandbox_mode = \"danger-full-access\"\n", &profile);
    assert!(config.contains("default_permissions"));
    fs::write(world.sandbox.path("home/.codex/config.toml"), &config).expect("a configuration");
    config
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
        let mut world = World::new(Script::by(script));
        let config = deny(&world);
        world.task.allow = Allow::All;
        let job = world.start();
        assert_eq!(job.said().text, "done");
        let results = world.results();
        assert!(
            results.contains("policy forbids commands") && results.contains("Permission denied"),
            "{results}"
        );
        assert!(!results.contains("hush") && !world.in_project("forbidden"), "{results}");
        assert!(
            world.in_project("allowed") && world.in_project("connected"),
            "the rest is allowed: {results}"
        );
        assert_eq!(world.config(), config);
    });
}

#[test]
fn what_the_user_denies_stays_denied_in_a_read_only_job_and_one_that_edits() {
    isolated(|| {
        for read_only in [true, false] {
            let command = "cat \"$HOME/secret\"; touch written";
            let mut world = World::steps([Step::shell(command), Step::say("done")]);
            deny(&world);
            (world.task.read_only, world.task.allow) = (read_only, Allow::Edits);
            assert_eq!(world.start().said().text, "done");
            let results = world.results();
            assert!(results.contains("Permission denied") && !results.contains("hush"), "{results}");
            assert_eq!(world.in_project("written"), !read_only, "{results}");
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
        let mut world = World::new(Script::by(main).subagents(child));
        world.task.allow = Allow::Ask;
        let job = world.start();
        let question = job.question();
        assert_eq!(question.what, "shell: touch by-child (because)");
        assert!(job.look().tools.iter().any(|tool| tool.what == "subagent: shell: touch by-child"));
        job.turn.answer(&question.id, &Answer::Allow).unwrap();
        assert_eq!(job.said().text, "parent done", "the child's end is not the job's");
        assert!(world.in_project("by-child"));
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
        let mut world =
            World::steps([destroy.clone(), destroy, Step::mcp("probe", "ask", json!({})), Step::say("done")]);
        let server = world.sandbox.path("home/server.js");
        fs::write(&server, SERVER).unwrap();
        Codex::new(&world.sandbox, &world.model).add_mcp_server(
            "probe",
            "node",
            &[&server.to_string_lossy()],
        );
        world.task.allow = Allow::Edits;
        let job = world.start();
        let tool = job.question();
        assert_eq!(tool.kind, QuestionKind::Permission);
        assert!(tool.what.starts_with("probe: ") && tool.what.contains("destroy"), "{}", tool.what);
        job.turn.answer(&tool.id, &Answer::AllowAlways).unwrap();
        let words = job.wait("question of the server", LIMIT, |seen| match seen {
            Observation::Asked(question) if question.id != tool.id => Some(question.clone()),
            _ => None,
        });
        assert_eq!((words.kind, words.what.as_str()), (QuestionKind::Input, "probe: Your name?"));
        assert!(job.turn.answer(&words.id, &Answer::Allow).is_err(), "it wants words");
        job.turn.answer(&words.id, &Answer::Words("Ada".to_owned())).unwrap();
        assert_eq!(job.said().text, "done");
        let results = world.results();
        assert!(results.matches("destroyed").count() == 2 && results.contains("hello Ada"), "{results}");
        assert!(!world.config().contains("approval_mode"), "nothing is kept beyond the session");
    });
}

#[test]
fn an_abort_stops_the_turn_and_every_command_that_runs_in_it() {
    isolated(|| {
        let background = json!({"cmd": "sleep 7101 & sleep 7102", "yield_time_ms": 300});
        let world = World::steps([
            Step::tool("exec_command", background),
            Step::shell("sleep 7103"),
            Step::say("never"),
        ]);
        let job = world.start();
        for command in ["sleep 7101", "sleep 7103"] {
            job.wait("running tool", LIMIT, |seen| match seen {
                Observation::Tool(tool) if tool.what.contains(command) => Some(()),
                _ => None,
            });
        }
        assert!(bench::running("sleep 710").len() >= 3);
        assert_eq!(job.look().tools.len(), 2);
        let begun = Instant::now();
        job.turn.abort().unwrap();
        job.wait("abort", LIMIT, |seen| (*seen == Observation::Aborted).then_some(()));
        job.idle(LIMIT);
        all_gone(&bench::running("sleep 710"));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        let look = job.look();
        assert!(look.aborted && look.tools.is_empty() && look.said.is_none(), "{look:?}");
        let recalled = Backend.recall(&world.task, &job.session()).expect("it is written down");
        assert_eq!((recalled.idle, recalled.said), (None, None));
    });
}

#[test]
fn what_runs_in_the_background_does_not_keep_a_finished_turn_open_nor_outlive_it() {
    isolated(|| {
        let background = json!({"cmd": "sleep 7201", "yield_time_ms": 300});
        let world = World::steps([Step::tool("exec_command", background), Step::say("it runs")]);
        let job = world.start();
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
    isolated(|| {
        let within = Step::parts([Part::text("a whole message"), Part::Pause(Duration::from_secs(600))]);
        for (step, begins) in [(Step::Hang, false), (within, true)] {
            let world = World::steps([step]);
            let job = world.start();
            world.model.wait_for(LIMIT, |_| true).expect("a request");
            job.wait("busy", LIMIT, |seen| (*seen == Observation::Busy).then_some(()));
            if begins {
                let words = Observation::Progress("a whole message".to_owned());
                job.wait("words", LIMIT, |seen| (*seen == words).then_some(()));
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
fn a_killed_program_is_gone_at_once_and_what_it_had_is_recalled() {
    isolated(|| {
        // Once the launcher and once the program itself is killed.
        for victim in [0, 1] {
            let world = World::steps([
                Step::parts([Part::text("partial"), Part::shell("sleep 7301")]),
                Step::say("never"),
            ]);
            let job = world.start();
            assert!(baton_testkit::wait::until(LIMIT, || !bench::running("sleep 7301").is_empty()));
            let tree = bench::tree(job.pid());
            // The program has other children beside its tools.
            let is_server = |pid: &i32| bench::running("app-server").contains(pid);
            let servers: Vec<i32> = tree.iter().copied().filter(is_server).collect();
            let pid = servers[victim.min(servers.len() - 1)];
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            let killed = Instant::now();
            let is_gone = |seen: &Observation| matches!(seen, Observation::Gone(_)).then_some(());
            job.wait("end of the program", LIMIT, is_gone);
            assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
            all_gone(&tree);
            assert!(job.turn.look().unwrap().is_err());
            let asked = Instant::now();
            let recalled = Backend.recall(&world.task, &job.session()).expect("it is written down");
            assert!(asked.elapsed() < Duration::from_secs(20));
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
        let mut world = World::steps([Step::say("the result"), Step::say("of another job")]);
        let job = world.start();
        job.said();
        let session = job.session();
        let pid = rustix::process::Pid::from_raw(job.pid()).unwrap();
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
        drop(job);
        let first = world.task.clone();
        let recalled = Backend.recall(&first, &session).expect("it is written down");
        let said = recalled.said.expect("an end");
        assert_eq!((recalled.idle, said.text.as_str(), said.finish), (Some(true), "the result", Finish::End));
        world.task.resume = Some(session.clone());
        world.task.folder = world.sandbox.path("log/another");
        fs::create_dir_all(&world.task.folder).unwrap();
        world.start().said();
        assert_eq!(Backend.recall(&first, &session).unwrap().said.unwrap().text, "the result");
        assert_eq!(Backend.recall(&world.task, &session).unwrap().said.unwrap().text, "of another job");
        assert_eq!(Backend.recall(&first, "01a1e328-955d-7c93-a0bf-cce914b58c99"), None);
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
            let world = World::new(Script::by(move |_| step.clone()));
            let path = world.sandbox.path("home/.codex/config.toml");
            let config = world.config();
            // Fewer of its retries, so that the test is short; the rest of its way is the same.
            let fewer = "wire_api = \"responses\"\nstream_max_retries = 2\nrequest_max_retries = 1\n";
            fs::write(path, config.replace("wire_api = \"responses\"\n", fewer)).unwrap();
            let job = world.start();
            let fault = job.fault(LIMIT);
            assert_eq!(fault.error.code(), code, "{fault:?}");
            assert!(fault.error.message().contains(words) && fault.error.hint_text().is_some(), "{fault:?}");
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
        let error = Backend.check(&world.task).unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedOption);
        assert!(error.message().contains("effort heroic") && error.hint_text().unwrap().contains("xhigh"));
        world.task.model = Some("gpt-5.5".to_owned());
        world.task.effort = Some("ultra".to_owned());
        let fault = Job::try_start(&Backend, &world.task).err().expect("that model has no such effort");
        assert_eq!(fault.error.code(), Code::UnsupportedOption);
        world.task.effort = None;
        fs::remove_file(world.sandbox.path("home/.codex/config.toml")).unwrap();
        assert_eq!(Backend.check(&world.task).unwrap_err().code(), Code::NotLoggedIn);
        let fault = Job::try_start(&Backend, &world.task).err().expect("no login");
        assert_eq!(fault.error.code(), Code::NotLoggedIn);
        world.task.program = "/bin/false".into();
        let fault = Job::try_start(&Backend, &world.task).err().expect("no Codex");
        assert_eq!(fault.error.code(), Code::BackendStart);
        world.task.program = "/nowhere/codex".into();
        let fault = Job::try_start(&Backend, &world.task).err().expect("no program");
        assert_eq!(fault.error.code(), Code::BackendStart);
        assert_eq!(world.model.requests().len(), 0);
    });
}
