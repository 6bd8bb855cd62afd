//! Jobs through the real MCP server, with the scripted agent of `jobs`.

use crate::jobs::{Jobs, kill};
use crate::world::run;
use baton_testkit::wait;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// No answer takes longer, on a machine that is busy with others.
const LIMIT: Duration = Duration::from_secs(60);
/// Shorter than the sweep of the job watcher: the kernel must have reported it.
const SESSION: &str = "claude-asker";

/// A server that serves one session of Claude Code.
struct Server {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    kept: Vec<Value>,
    next: u64,
}

impl Server {
    fn start(jobs: &Jobs) -> Self {
        let mut command = jobs.world.baton(&["mcp", "--agent", "claude"]);
        jobs.dress(&mut command);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                sender.send(serde_json::from_str(&line).unwrap()).ok();
            }
        });
        let mut server = Self { child, stdin, lines, kept: Vec::new(), next: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let id = server.send("initialize", &hello);
        server.answer(id);
        // The session's first hook.
        let arguments = json!({"hook_event_name": "UserPromptSubmit", "session_id": SESSION, "prompt_id": "p1", "prompt": "x", "cwd": jobs.world.project()});
        let id = server.send("tools/call", &json!({"name": "hook_event", "arguments": arguments}));
        server.answer(id);
        server
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.stdin, "{line}").unwrap();
        self.next
    }

    fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at);
        }
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left).expect("the server answers") {
                message if wanted(&message) => return message,
                message => self.kept.push(message),
            }
        }
    }

    fn answer(&mut self, id: u64) -> Value {
        self.wait_for(|message| message["id"] == json!(id) && message.get("method").is_none())["result"]
            .clone()
    }

    /// Calls a tool as Claude Code's model.
    fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        let meta =
            json!({"claudecode/toolUseId": format!("toolu_{}", self.next), "progressToken": self.next});
        self.send("tools/call", &json!({"name": tool, "arguments": arguments, "_meta": meta}))
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        let result = self.answer(id);
        assert_ne!(result["isError"], json!(true), "{result}");
        result["structuredContent"].clone()
    }

    fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let id = self.begin(tool, arguments);
        let result = self.answer(id);
        assert_eq!(result["isError"], json!(true), "{result}");
        result["structuredContent"]["error"]["code"].as_str().unwrap().to_owned()
    }

    fn start_job(&mut self, prompt: &str) -> String {
        let started = self.call("start_job", &json!({"agent": "claude", "prompt": prompt}));
        assert_eq!(started["status"], "queued");
        started["job_id"].as_str().unwrap().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[cfg(target_os = "linux")]
fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Waits for mail about a job that says something, without looking at the job.
fn mail_about(jobs: &Jobs, id: &str, says: &str) {
    let deadline = Instant::now() + wait::HANG;
    loop {
        let mail = jobs.world.mail();
        let told =
            |row: &Value| row["body"].as_str().is_some_and(|body| body.contains(id) && body.contains(says));
        if mail.iter().any(told) {
            return;
        }
        assert!(Instant::now() < deadline, "nobody told the asker: {mail:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_job_is_started_waited_for_and_read() {
    let jobs = Jobs::new();
    let mut server = Server::start(&jobs);
    let id = server.start_job("SLEEP-AND-ANSWER");
    let waited = server.call("wait_job", &json!({"jobs": [id]}));
    assert_eq!((&waited["ended"], &waited["jobs"][0]["result"]), (&json!(true), &json!("slept")), "{waited}");
    let seen = server.call("job_status", &json!({"job": &id[..6]}));
    assert_eq!(seen["jobs"][0]["status"], "completed", "{seen}");
    assert_ne!(seen["jobs"][0]["requested_by"], "script", "the session asked");
    assert_eq!(server.call("job_status", &json!({}))["jobs"], json!([]), "none runs");
    mail_about(&jobs, &id, "slept");
}

#[test]
fn a_wait_runs_out_and_the_job_goes_on() {
    let jobs = Jobs::new();
    let mut server = Server::start(&jobs);
    let id = server.start_job("WAIT-FOR-GO");
    let waited = server.call("wait_job", &json!({"jobs": [id], "max_wait": "1s"}));
    assert_eq!((&waited["ended"], &waited["jobs"][0]["result"]), (&json!(false), &Value::Null), "{waited}");
    assert!(waited["hint"].as_str().unwrap().contains("again"), "{waited}");
    let open = server.call("job_status", &json!({}));
    assert_eq!(open["jobs"][0]["job_id"], json!(id), "{open}");
    fs::write(jobs.file("go"), "").unwrap();
    let waited = server.call("wait_job", &json!({"jobs": [id]}));
    assert_eq!(waited["jobs"][0]["result"], "went", "{waited}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_wait_reports_progress_and_ends_when_it_is_cancelled() {
    let jobs = Jobs::new();
    let mut server = Server::start(&jobs);
    let id = server.start_job("STEP-ONLY");
    let wait = server.begin("wait_job", &json!({"jobs": [id], "max_wait": "10m"}));
    let progress = server.wait_for(|message| message["method"] == "notifications/progress");
    let said = progress["params"]["message"].as_str().unwrap();
    assert!(said.contains("claude") && said.contains("bash: make"), "{said}");
    let held = open_files(server.child.id());
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wait}});
    writeln!(server.stdin, "{cancelled}").unwrap();
    // What the wait held is let go at once.
    let deadline = Instant::now() + LIMIT;
    while open_files(server.child.id()) >= held {
        assert!(Instant::now() < deadline, "the wait goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The server serves on, and the job goes on.
    let cancelled = server.call("cancel_job", &json!({"job": id}));
    assert_eq!(cancelled["job"]["status"], "cancelled", "{cancelled}");
}

#[test]
fn whatever_is_wrong_with_a_job_is_a_tools_error() {
    let jobs = Jobs::new();
    let mut server = Server::start(&jobs);
    for (tool, arguments, code) in [
        ("start_job", json!({"agent": "nobody", "prompt": "x"}), "unknown-agent"),
        ("start_job", json!({"agent": "claude", "prompt": " "}), "empty-body"),
        ("start_job", json!({"agent": "claude", "prompt": "x", "allow": "much"}), "usage"),
        ("start_job", json!({"agent": "claude", "prompt": "x", "timeout": "0s"}), "bad-duration"),
        ("start_job", json!({"agent": "claude", "prompt": "x", "cwd": "nowhere"}), "bad-folder"),
        ("start_job", json!({"agent": "claude", "prompt": "x", "effort": "gigantic"}), "unsupported-option"),
        ("start_job", json!({"agent": "claude", "prompt": "x", "resume": "jnone"}), "unknown-job"),
        ("start_job", json!({"agent": "claude", "prompt": "x", "folder": "y"}), "usage"),
        ("job_status", json!({"job": "jnone"}), "unknown-job"),
        ("wait_job", json!({"jobs": []}), "usage"),
        ("wait_job", json!({"jobs": ["jnone"]}), "unknown-job"),
        ("wait_job", json!({"jobs": ["jnone"], "max_wait": "1h"}), "bad-duration"),
        ("cancel_job", json!({"job": "jnone"}), "unknown-job"),
    ] {
        assert_eq!(server.refused(tool, &arguments), code, "{tool} {arguments}");
    }
    assert_eq!(run(jobs.command(&["job", "list", "--all", "--json"]), b"").json(), json!([]));
    let id = server.start_job("quick");
    server.call("wait_job", &json!({"jobs": [id]}));
    assert_eq!(server.refused("cancel_job", &json!({"job": id})), "job-ended");
}

#[test]
fn s4_start_job_gives_no_more_than_the_person_has_set() {
    let jobs = Jobs::new();
    jobs.world.configure("[jobs]\nallow = \"ask\"\n");
    let mut server = Server::start(&jobs);
    for wider in ["edits", "all"] {
        let arguments = json!({"agent": "claude", "prompt": "quick", "allow": wider});
        assert_eq!(server.refused("start_job", &arguments), "not-a-person", "{wider}");
    }
    let id = server.start_job("quick");
    server.call("wait_job", &json!({"jobs": [id]}));
}

#[test]
fn a_reviewer_lists_and_answers_through_its_tools_and_never_what_its_own_jobs_ask() {
    let jobs = Jobs::new();
    let mut server = Server::start(&jobs);
    let me = server.call("who", &json!({}))["you"].as_str().unwrap().to_owned();
    let blocked = |started: &Value| {
        let id = started["job_id"].as_str().unwrap().to_owned();
        jobs.until(&id, "blocked");
        id
    };
    let other = run(jobs.command(&["job", "start", "claude", "ASK-FIRST", "--allow", "ask", "--json"]), b"");
    let other = blocked(&other.expect(0).json());
    let listed = server.call("list_approvals", &json!({}));
    let entry = &listed["approvals"][0];
    assert_eq!((&entry["job_id"], &entry["kind"]), (&json!(other), &json!("permission")), "{listed}");
    assert_eq!((&entry["what"], &entry["yours_to_answer"]), (&json!("Bash: rm -r target"), &json!(false)));
    let (allow, deny) =
        (json!({"id": other, "answer": "allow"}), json!({"id": other, "answer": "deny", "text": "no"}));
    assert_eq!(server.refused("answer_approval", &allow), "not-a-reviewer");
    let project = jobs.world.project().canonicalize().unwrap().display().to_string();
    jobs.world.configure(&format!("[approvals.reviewers]\n{project:?} = [{me:?}]\n"));
    let own = server.call("start_job", &json!({"agent": "claude", "prompt": "ASK-FIRST", "allow": "ask"}));
    let own = blocked(&own);
    let listed = server.call("list_approvals", &json!({"all": true}));
    let yours = |id: &str| {
        let found = listed["approvals"].as_array().unwrap().iter().find(|entry| entry["job_id"] == id);
        found.unwrap_or_else(|| panic!("{listed}"))["yours_to_answer"] == true
    };
    assert_eq!((yours(&other), yours(&own)), (true, false), "{listed}");
    for (arguments, code) in [
        (json!({"id": own, "answer": "allow"}), "not-a-reviewer"),
        (json!({"id": other, "answer": "always"}), "usage"),
        (json!({"id": other, "answer": "words", "text": "yes"}), "usage"),
        (json!({"id": other, "answer": "allow", "always": true}), "usage"),
        (json!({"id": "a000000000000", "answer": "allow"}), "unknown-approval"),
    ] {
        assert_eq!(server.refused("answer_approval", &arguments), code, "{arguments}");
    }
    let answered = server.call("answer_approval", &deny);
    assert_eq!(answered["state"], "denied", "{answered}");
    let ended = server.call("wait_job", &json!({"jobs": [other]}));
    assert_eq!(ended["jobs"][0]["result"], "refused", "{ended}");
    assert_eq!(server.refused("answer_approval", &allow), "asker-gone");
    server.call("cancel_job", &json!({"job": own}));
}

#[test]
fn s3_a_reviewer_s_yes_names_what_it_has_read() {
    let jobs = Jobs::new();
    let mut server = Server::start(&jobs);
    let me = server.call("who", &json!({}))["you"].as_str().unwrap().to_owned();
    let project = jobs.world.project().canonicalize().unwrap().display().to_string();
    jobs.world.configure(&format!("[approvals.reviewers]\n{project:?} = [{me:?}]\n"));
    let job = run(jobs.command(&["job", "start", "claude", "ASK-FIRST", "--allow", "ask", "--json"]), b"");
    let job = job.expect(0).json()["job_id"].as_str().unwrap().to_owned();
    jobs.until(&job, "blocked");
    let listed = server.call("list_approvals", &json!({}));
    let entry = &listed["approvals"][0];
    let (id, digest) = (&entry["id"], entry["digest"].as_str().unwrap_or_else(|| panic!("{listed}")));
    let yes = |digest: Value| json!({"id": id, "answer": "allow", "digest": digest});
    let other: String = digest.chars().rev().collect();
    for (given, code) in [
        (Value::Null, "not-shown"),
        (json!(""), "not-shown"),
        (json!(other), "question-changed"),
        (json!(digest[..8]), "question-changed"),
    ] {
        assert_eq!(server.refused("answer_approval", &yes(given.clone())), code, "{given}");
    }
    let again = server.call("list_approvals", &json!({}));
    assert_eq!(again["approvals"][0]["id"], *id, "it still waits: {again}");
    let answered = server.call("answer_approval", &yes(json!(digest)));
    assert_eq!(answered["state"], "approved", "{answered}");
    server.call("wait_job", &json!({"jobs": [job]}));
}

#[test]
fn j18_the_server_tells_of_a_killed_worker_at_once() {
    let jobs = Jobs::new();
    let mut server = Server::start(&jobs);
    // By the tool, and by the session's shell: the server watches over both.
    let by_tool = server.start_job("HANG");
    let mut command = jobs.command(&["job", "start", "claude", "HANG", "--json"]);
    command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", SESSION);
    let by_shell = run(command, b"").expect(0).json()["job_id"].as_str().unwrap().to_owned();
    for id in [by_tool, by_shell] {
        jobs.until(&id, "running");
        kill(jobs.worker(&id));
        mail_about(&jobs, &id, "worker-gone");
    }
}

#[test]
fn j26_a_tools_result_with_a_job_in_it_is_explained_once() {
    let jobs = Jobs::new();
    let mut server = Server::start(&jobs);
    let mut command = jobs.command(&["job", "start", "claude", "HANG", "--json"]);
    command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", SESSION);
    let id = run(command, b"").expect(0).json()["job_id"].as_str().unwrap().to_owned();
    let after = |tool: &str, session: &str, response: Value| {
        let payload = json!({
            "hook_event_name": "PostToolUse", "session_id": session, "cwd": jobs.world.project(), "tool_name": tool,
            "tool_input": {"command": "x"}, "tool_response": response, "tool_use_id": "t",
        });
        run(jobs.command(&["hook", "claude", "--guard", "PostToolUse"]), payload.to_string().as_bytes())
            .expect(0)
            .stdout
    };
    let printed = |text: &str| json!({"stdout": text, "stderr": "", "interrupted": false});
    let said = |text: &str| json!({"status": "completed", "prompt": "y", "content": [{"type": "text", "text": text}]});
    let wait = format!("baton job wait {id}");
    assert_eq!(after("Bash", "somebody-else", printed(&id)), "", "another's job");
    assert_eq!(after("Bash", SESSION, printed("j0123456789abc")), "", "no job");
    assert_eq!(after("Read", SESSION, json!({"file": {"content": id}})), "", "a file that names it");
    assert!(after("Bash", SESSION, printed(&id)).contains(&wait));
    assert_eq!(after("Bash", SESSION, printed(&id)), "", "once");
    assert_eq!(after("Agent", SESSION, said("The bug is in line 3.")), "");
    assert_eq!(after("Agent", SESSION, said("It answered \"Started, waiting.\" and nothing else.")), "");
    assert!(
        after("Agent", SESSION, said(&format!("Job {id} was started, I am waiting for it."))).contains(&wait)
    );
    assert_eq!(after("Agent", SESSION, said("Started, waiting.")), "", "once");
    server.call("cancel_job", &json!({"job": id}));
    // What the tool itself has explained is not explained again, and where nothing runs nothing is
    // said.
    let id = server.start_job("HANG");
    assert_eq!(after("mcp__baton__start_job", SESSION, printed(&id)), "");
    assert!(after("Agent", SESSION, said("Started, waiting.")).contains("is not the result"));
    server.call("cancel_job", &json!({"job": id}));
    assert_eq!(after("Agent", SESSION, said("Started, waiting.")), "");
}
