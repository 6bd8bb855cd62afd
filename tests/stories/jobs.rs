//! Jobs with the real agents: handed over by the real command, watched by a real worker, answered
//! by the scripted model.

use crate::sandbox::{LIMIT, StorySandbox};
use baton_machine::process;
use baton_testkit::agents::{Agent, Session};
use baton_testkit::model::{Kind, Part};
use baton_testkit::process::Finished;
use baton_testkit::{Request, Script, Step, isolated, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Duration;

struct Jobs {
    stage: StorySandbox,
    who: Agent,
}

impl Jobs {
    fn new(who: Agent, script: Script) -> Self {
        let stage = StorySandbox::with(&[who], script);
        let program = stage.program(who).headless(Session::New, "");
        let name = baton_agents::by_name(who.name()).expect("a known agent").program();
        if !stage.sandbox.path("bin").join(name).exists() {
            stage.sandbox.install(name, program.get_program().as_ref());
        }
        Self { stage, who }
    }

    /// Runs baton with what the agent needs to find its model.
    fn run(&self, arguments: &[&str]) -> Finished {
        let agent = self.stage.program(self.who).headless(Session::New, "");
        let mut command = self.stage.sandbox.command("baton");
        for (name, value) in agent.get_envs().filter(|(name, _)| *name != "PATH") {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        self.stage.sandbox.run(command.args(arguments).arg("--json"), LIMIT * 3)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.run(arguments).stdout;
        serde_json::from_str(&printed)
            .unwrap_or_else(|error| panic!("{arguments:?} printed {printed}: {error}"))
    }

    fn start(&self, prompt: &str) -> String {
        let started = self.json(&["job", "start", self.who.name(), prompt, "--allow", "all"]);
        started["job_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    fn trouble(&self, id: &str) -> String {
        let log = self.run(&["job", "logs", id]).stdout;
        let folder = self.stage.sandbox.home().join(".local/share/baton/jobs").join(id);
        let words = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
        format!("\nlog:\n{log}\nstderr:\n{words}\n{}", self.stage.trouble())
    }

    fn process(&self, id: &str, column: &str) -> i32 {
        let found = wait::poll(LIMIT, || {
            let store =
                baton_store::Jobs::open(&self.stage.sandbox.home().join(".local/share/baton")).ok()?;
            let row = store.list(baton_store::JobFilter::Everywhere, 10).ok()?;
            let row = row.into_iter().find(|row| row.id.as_str() == id)?;
            let found = if column == "worker" { row.worker } else { row.backend };
            found.map(|process| process.pid)
        });
        found.unwrap_or_else(|| panic!("no {column}: {}", self.trouble(id)))
    }
}

fn results(request: &Request) -> usize {
    request.results().len()
}

fn kill(pid: i32) {
    // Gone already is what we want.
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).ok();
}

/// A model that has one command run, and then says so.
fn one_command(command: &'static str) -> Script {
    Script::by(move |request| match results(request) {
        0 => Step::shell(command),
        _ => Step::say("JOB-RESULT"),
    })
}

/// One job of an agent from its start to its result, then its session goes on.
fn a_job_ends_with_its_result(who: Agent) {
    let script = Script::by(|request| match (results(request), request.shows("AND-THEN")) {
        (0, _) => Step::shell("echo worked > made.txt"),
        (_, false) => Step::say("JOB-RESULT"),
        (_, true) => Step::say("SECOND-RESULT"),
    });
    let jobs = Jobs::new(who, script);
    let id = jobs.start("please make THE-THING");
    let row = jobs.json(&["job", "wait", &id, "--max-wait", "5m"]);
    assert_eq!(
        (&row["status"], &row["result"]),
        (&"completed".into(), &"JOB-RESULT".into()),
        "{row}{}",
        jobs.trouble(&id)
    );
    assert!(jobs.stage.sandbox.project().join("made.txt").exists());
    let log = jobs.run(&["job", "logs", &id]).stdout;
    assert!(log.contains("echo worked"), "{log}");
    assert!(row["last_activity"]["what"].is_string(), "{row}");
    let asked = jobs.stage.model.requests_of(Kind::Main);
    assert!(asked[0].shows("You are the worker") && asked[0].shows("please make THE-THING"));
    // It is listed, but its kind alone does not address it.
    let sessions = jobs.stage.json(&["who", "--all"]);
    let of_jobs = sessions.as_array().is_some_and(|rows| rows.iter().all(|row| row["tags"][0] == "job"));
    assert!(of_jobs, "{sessions}");
    let again = jobs.json(&["job", "start", who.name(), "AND-THEN", "--allow", "all", "--resume", &id]);
    let second = again["job_id"].as_str().unwrap_or_else(|| panic!("{again}")).to_owned();
    let row = jobs.json(&["job", "wait", &second, "--max-wait", "5m"]);
    assert_eq!(row["result"], "SECOND-RESULT", "{row}{}", jobs.trouble(&second));
    let last = jobs.stage.model.requests_of(Kind::Main).pop().expect("a request");
    assert!(last.shows("THE-THING"), "the same conversation");
}

/// The worker, the program, then both are killed in the middle of a tool: never `running`
/// afterwards, and nothing of it is left.
fn kills_are_noticed(who: Agent) {
    let jobs = Jobs::new(who, one_command("echo $$ > tool.pid; exec sleep 600"));
    let file = jobs.stage.sandbox.project().join("tool.pid");
    for (what, code) in [("backend", "backend-gone"), ("worker", "worker-gone"), ("both", "worker-gone")] {
        let id = jobs.start("please wait");
        let tool = wait::poll(LIMIT, || std::fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok())
            .unwrap_or_else(|| panic!("no tool: {}", jobs.trouble(&id)));
        let (worker, backend) = (jobs.process(&id, "worker"), jobs.process(&id, "backend"));
        if what != "backend" {
            kill(worker);
        }
        if what != "worker" {
            kill(backend);
        }
        let row = wait::poll(Duration::from_secs(30), || {
            let row = jobs.json(&["job", "status", &id]);
            (row["status"] == "failed").then_some(row)
        });
        let row = row.unwrap_or_else(|| panic!("{what}: {}", jobs.trouble(&id)));
        let found = row["error"]["code"].as_str().unwrap_or_default();
        assert!(
            found == code || (what == "backend" && found == "transport-lost"),
            "{what}: {row}{}",
            jobs.trouble(&id)
        );
        let dead = wait::until(wait::HANG, || process::find(tool).is_none());
        assert!(dead, "{what}: its tool runs on: {}", jobs.trouble(&id));
        std::fs::remove_file(&file).expect("the tool has written it");
    }
}

/// Whatever still runs in the sandbox, whichever process is its parent by now.
fn left_running(jobs: &Jobs) -> Vec<(i32, String)> {
    let home = jobs.stage.sandbox.home();
    let its = |pid: i32| process::variable(pid, "HOME").is_some_and(|found| found == home.as_os_str());
    let all = process::all().into_iter().map(|(process, _)| process.pid).filter(|pid| its(*pid));
    all.map(|pid| (pid, process::arguments(pid).join(" "))).collect()
}

#[track_caller]
fn nothing_is_left(jobs: &Jobs, id: &str) {
    let gone = wait::until(wait::HANG, || left_running(jobs).is_empty());
    assert!(gone, "{:?}: {}", left_running(jobs), jobs.trouble(id));
}

/// The worker is killed as soon as it is there, when no session is known yet, and then while the
/// model has not begun to answer.
fn a_worker_killed_early_is_a_failed_job(who: Agent) {
    let jobs = Jobs::new(who, Script::by(|_| Step::Hang));
    for asked in [false, true] {
        let id = jobs.start("please work");
        let worker = jobs.process(&id, "worker");
        if asked {
            let request = jobs.stage.model.wait_for(LIMIT, |request| request.kind == Kind::Main);
            assert!(request.is_some(), "{}", jobs.trouble(&id));
        }
        kill(worker);
        let row = wait::poll(wait::HANG, || {
            let row = jobs.json(&["job", "status", &id]);
            row["ended_at"].is_string().then_some(row)
        });
        let row = row.unwrap_or_else(|| panic!("{}", jobs.trouble(&id)));
        assert_eq!(
            (&row["status"], &row["error"]["code"]),
            (&"failed".into(), &"worker-gone".into()),
            "{row}"
        );
        nothing_is_left(&jobs, &id);
        if row["backend_session"].is_null() {
            let again = jobs.json(&["job", "start", who.name(), "go on", "--resume", &id]);
            assert_eq!(again["error"]["code"], "nothing-to-resume", "{again}");
        }
    }
}

/// The model stops before its answer, in the middle of it, before it says that it is over, and
/// without closing the line. Half a text is no result.
fn a_model_that_hangs_is_a_stall(who: Agent) {
    let script = Script::by(|request| {
        let (half, rest) = (Part::text("HALF-OF-IT"), Part::text("THE-REST"));
        let pause = Part::Pause(LIMIT * 10);
        if request.shows("HANG-BEFORE") {
            Step::Hang
        } else if request.shows("HANG-WITHIN") {
            Step::parts([half, pause, rest])
        } else if request.shows("HANG-AT-THE-END") {
            Step::parts([half, rest, pause])
        } else {
            Step::say("ALL-OF-IT").still(usize::MAX)
        }
    });
    let jobs = Jobs::new(who, script);
    jobs.stage.configure("[jobs]\nidle = \"20s\"\n");
    let prompts = ["HANG-BEFORE", "HANG-WITHIN", "HANG-AT-THE-END", "STAY-OPEN"];
    let ids = prompts.map(|prompt| jobs.start(prompt));
    for (prompt, id) in prompts.iter().zip(&ids) {
        let row = jobs.json(&["job", "wait", id, "--max-wait", "5m"]);
        if row["status"] == "completed" && *prompt == "STAY-OPEN" {
            assert_eq!(row["result"], "ALL-OF-IT", "{row}");
        } else {
            assert_eq!(row["error"]["code"], "stalled", "{prompt}: {row}{}", jobs.trouble(id));
            assert_eq!(row["status"], "failed", "{row}");
        }
        let was_asked = |request: &Request| request.shows(prompt);
        assert!(jobs.stage.model.requests().iter().any(|request| was_asked(request)), "{prompt}: {row}");
    }
    nothing_is_left(&jobs, &ids[0]);
}

/// Gemini CLI tries again by itself, with longer and longer pauses. Where `jobs.idle` is shorter
/// than such a pause, the job ends with the reason that its model gave.
#[test]
fn e6_gemini_behind_a_wall_is_not_stalled() {
    isolated(|| {
        let jobs = Jobs::new(
            Agent::Gemini,
            Script::by(|request| {
                if request.shows("TOO-MUCH") {
                    Step::error(429, "scripted refusal")
                } else {
                    Step::error(500, "scripted refusal")
                }
            }),
        );
        jobs.stage.configure("[jobs]\nidle = \"15s\"\n");
        let walls = [("TOO-MUCH", "rate-limited"), ("BROKEN", "backend-error")];
        let ids = walls.map(|(prompt, _)| jobs.start(prompt));
        for ((prompt, code), id) in walls.iter().zip(&ids) {
            let row = jobs.json(&["job", "wait", id, "--max-wait", "5m"]);
            assert_eq!(row["error"]["code"], *code, "{prompt}: {row}{}", jobs.trouble(id));
            assert_eq!(row["status"], "failed", "{row}");
            let hint = row["error"]["hint"].as_str().unwrap_or_default();
            assert!(hint.contains("jobs.idle"), "its silence ended it: {row}{}", jobs.trouble(id));
        }
        nothing_is_left(&jobs, &ids[0]);
    });
}

/// In a worktree of its own, with the hooks of a setup: it may write there, and git tells what it
/// did.
fn a_worktree_holds_what_the_job_changed(who: Agent) {
    let jobs = Jobs::new(who, one_command("echo worked > made.txt"));
    let row = jobs.json(&["run", who.name(), "--worktree", "--allow", "all", "make it"]);
    let trouble = || jobs.trouble(row["job_id"].as_str().unwrap_or_default());
    assert_eq!(row["result"], "JOB-RESULT", "{row}{}", trouble());
    assert_eq!(row["changes"]["files"], json!([{"status": "A", "path": "made.txt"}]), "{row}{}", trouble());
    assert!(!jobs.stage.sandbox.project().join("made.txt").exists());
}

/// Cancelled in the middle of a tool.
fn a_cancelled_job_leaves_nothing(who: Agent) {
    let jobs = Jobs::new(who, one_command("echo $$ > tool.pid; exec sleep 600"));
    let id = jobs.start("please wait");
    let file = jobs.stage.sandbox.project().join("tool.pid");
    let tool = wait::poll(LIMIT, || std::fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok())
        .unwrap_or_else(|| panic!("no tool: {}", jobs.trouble(&id)));
    let row = jobs.json(&["job", "cancel", &id]);
    assert_eq!(row["status"], "cancelled", "{row}{}", jobs.trouble(&id));
    assert!(wait::until(wait::HANG, || process::find(tool).is_none()), "{}", jobs.trouble(&id));
    assert!(row["exit"].as_str().is_some_and(|exit| !exit.is_empty()), "{row}");
}

/// A key that is refused.
fn a_refused_key_is_told(who: Agent) {
    let jobs = Jobs::new(who, Script::by(|_| Step::error(401, "invalid key")));
    let id = jobs.start("please work");
    let row = jobs.json(&["job", "wait", &id, "--max-wait", "5m"]);
    assert_eq!(row["status"], "failed", "{row}{}", jobs.trouble(&id));
    assert_eq!(row["error"]["code"], "not-logged-in", "{row}{}", jobs.trouble(&id));
    assert!(row["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
}

/// What a pattern of the person's permits is answered without him, and nothing beside it.
fn a_rule_answers_what_a_job_asks(who: Agent) {
    let jobs = Jobs::new(
        who,
        Script::by(|request| match results(request) {
            0 => Step::shell("touch made-1 && touch made-2"),
            _ => Step::shell("touch made-3; touch other"),
        }),
    );
    // What OpenCode asks is its own configuration's to say; the others ask about every command.
    let own = jobs.stage.sandbox.project().join("opencode.json");
    std::fs::write(own, r#"{"permission": {"bash": "ask"}}"#).expect("a file in the project");
    jobs.stage.configure("wake = \"off\"\n[approvals]\nauto_approve = [\"bash: touch made-*\"]\n");
    let started = jobs.json(&["job", "start", who.name(), "please make them", "--allow", "ask"]);
    let id = started["job_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    let asks = |row: &Value| row["questions"][0]["what"].as_str().is_some_and(|what| what.contains("other"));
    let blocked = wait::until(LIMIT, || asks(&jobs.json(&["job", "status", &id])));
    assert!(blocked, "{}{}", jobs.json(&["job", "status", &id]), jobs.trouble(&id));
    let made =
        ["made-1", "made-2", "made-3", "other"].map(|file| jobs.stage.sandbox.project().join(file).exists());
    assert_eq!(made, [true, true, false, false], "{}", jobs.trouble(&id));
    jobs.run(&["job", "cancel", &id]);
}

#[test]
fn a_rule_answers_what_an_opencode_job_asks() {
    isolated(|| a_rule_answers_what_a_job_asks(Agent::OpenCode));
}

#[test]
fn a_rule_answers_what_a_claude_job_asks() {
    isolated(|| a_rule_answers_what_a_job_asks(Agent::Claude));
}

#[test]
fn a_prompt_that_is_too_long_goes_as_a_file_and_the_job_says_so() {
    isolated(|| {
        let named = |request: &Request| {
            let said = request.shown().find(|said| said.text.contains("in the file "))?;
            let rest = said.text.split_once("in the file ")?.1;
            rest.split_once(". Read").map(|(file, _)| file.to_owned())
        };
        let script = Script::by(move |request| match (results(request), named(request)) {
            (0, Some(file)) => Step::read(file),
            _ => Step::say("JOB-RESULT"),
        });
        let jobs = Jobs::new(Agent::Copilot, script);
        let prompt = jobs.stage.sandbox.path("prompt");
        std::fs::write(&prompt, format!("THE-BEGINNING\n{}", "words of a long task\n".repeat(10_000)))
            .expect("a file in the sandbox");
        let file = prompt.to_string_lossy();
        let started = jobs.json(&["job", "start", "copilot", "--prompt-file", &file, "--read-only"]);
        let id = started["job_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
        let row = jobs.json(&["job", "wait", &id, "--max-wait", "5m"]);
        assert_eq!(row["result"], "JOB-RESULT", "{row}{}", jobs.trouble(&id));
        assert!(row["prompt_file"].as_str().is_some_and(|file| file.ends_with("prompt.md")), "{row}");
        // It may read the file without asking, though in pieces: it shows no long file at once.
        let log = jobs.run(&["job", "logs", &id]).stdout;
        assert!(log.contains("ended read: ") && !log.contains("asks:"), "{log}");
    });
}

#[test]
fn opencode_killed_with_its_keeper_leaves_neither_a_running_job_nor_a_process() {
    isolated(|| {
        let jobs = Jobs::new(Agent::OpenCode, one_command("echo $$ > tool.pid; exec sleep 600"));
        let file = jobs.stage.sandbox.project().join("tool.pid");
        for server_too in [true, false] {
            let id = jobs.start("please wait");
            let tool = wait::poll(LIMIT, || std::fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok());
            assert!(tool.is_some(), "no tool: {}", jobs.trouble(&id));
            let (worker, server) = (jobs.process(&id, "worker"), jobs.process(&id, "backend"));
            let keeper = process::lineage(server)[1];
            assert!(process::arguments(keeper).iter().any(|word| word == "keep-server"), "{keeper}");
            // The keeper first: it would clean up.
            kill(keeper);
            kill(worker);
            if server_too {
                kill(server);
            }
            let row = wait::poll(wait::HANG, || {
                let row = jobs.json(&["job", "status", &id]);
                row["ended_at"].is_string().then_some(row)
            });
            let row = row.unwrap_or_else(|| panic!("{}", jobs.trouble(&id)));
            assert_eq!(
                (&row["status"], &row["error"]["code"]),
                (&"failed".into(), &"worker-gone".into()),
                "{row}"
            );
            nothing_is_left(&jobs, &id);
            std::fs::remove_file(&file).expect("the tool has written it");
        }
    });
}

#[test]
fn a_worktree_of_a_folder_that_gemini_trusts_is_trusted_for_the_job_alone() {
    isolated(|| {
        let jobs = Jobs::new(Agent::Gemini, one_command("echo worked > made.txt"));
        let trusted = jobs.stage.sandbox.path("home/.gemini/trustedFolders.json");
        let before = std::fs::read_to_string(&trusted).expect("what the user trusts");
        let done = jobs.json(&["run", "gemini", "--worktree", "--allow", "all", "make it"]);
        assert_eq!(done["result"], "JOB-RESULT", "{done}");
        assert_eq!(std::fs::read_to_string(&trusted).expect("it is still there"), before);
        // What is not trusted stays so.
        std::fs::write(&trusted, "{}").expect("it can be written");
        let done = jobs.json(&["run", "gemini", "--worktree", "--allow", "all", "make it"]);
        assert_eq!(done["error"]["code"], "bad-folder", "{done}");
    });
}

#[test]
fn a_claude_command_in_the_background_is_waited_for_and_is_no_stuck_tool() {
    isolated(|| {
        let command =
            json!({"command": "sleep 20; echo finished", "description": "d", "run_in_background": true});
        let script = Script::by(move |request| match results(request) {
            _ if request.shows("<status>completed") => Step::say("JOB-RESULT"),
            0 => Step::tool("Bash", command.clone()),
            _ => Step::say("started, waiting"),
        });
        let jobs = Jobs::new(Agent::Claude, script);
        let id = jobs.start("please run it");
        let row = jobs.json(&["job", "wait", &id, "--max-wait", "5m"]);
        assert_eq!(row["result"], "JOB-RESULT", "{row}{}", jobs.trouble(&id));
    });
}

macro_rules! each {
    ($($module:ident: $agent:expr;)*) => {
        $(mod $module {
            use super::*;

            #[test]
            fn a_job_ends_with_its_result() {
                isolated(|| super::a_job_ends_with_its_result($agent));
            }

            #[test]
            fn kills_are_noticed() {
                isolated(|| super::kills_are_noticed($agent));
            }

            #[test]
            fn a_cancelled_job_leaves_nothing() {
                isolated(|| super::a_cancelled_job_leaves_nothing($agent));
            }

            #[test]
            fn a_worktree_holds_what_the_job_changed() {
                isolated(|| super::a_worktree_holds_what_the_job_changed($agent));
            }

            #[test]
            fn a_worker_killed_early_is_a_failed_job() {
                isolated(|| super::a_worker_killed_early_is_a_failed_job($agent));
            }

            #[test]
            fn a_model_that_hangs_is_a_stall() {
                isolated(|| super::a_model_that_hangs_is_a_stall($agent));
            }

            #[test]
            fn a_refused_key_is_told() {
                isolated(|| super::a_refused_key_is_told($agent));
            }
        })*
    };
}

each! {
    claude: Agent::Claude;
    codex: Agent::Codex;
    opencode: Agent::OpenCode;
    gemini: Agent::Gemini;
    copilot: Agent::Copilot;
    pi: Agent::Pi;
}
