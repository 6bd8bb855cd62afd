//! J1 to J31 against the real program, with a scripted agent: a shell program that speaks Claude
//! Code's lines and does what the prompt says.

use crate::puppet::{Moment, Puppet, Style};
use crate::world::{Done, World, rounds, run};
use baton_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Speaks stream-json. The prompt's words say what to do; what it got is written beside it.
const AGENT: &str = r#"#!/bin/sh
read -r prompt
printf '%s\n' "$prompt" >> "$HOME/prompts"
env > "$HOME/environment"
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
say() { printf '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"%s"}],"stop_reason":"end_turn"}}\n' "$1"; }
end() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","stop_reason":"end_turn"}\n' "$1"; }
case "$prompt" in
*"WAIT-FOR-GO"*) while [ ! -e "$HOME/go" ]; do sleep 0.05; done; say "went"; end "went" ;;
*"SLEEP-AND-ANSWER"*) sleep 0.3; say "slept"; end "slept" ;;
*"HANG"*) sleep 600 & echo $! > "$HOME/child"; wait ;;
*"STUBBORN"*) trap '' TERM INT; (trap '' TERM INT; while :; do sleep 1; done) & echo $! > "$HOME/child"; while :; do sleep 1; done ;;
*"STEP-ONLY"*) echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}],"stop_reason":"tool_use"}}'; sleep 600 ;;
*"TOOL-AND-DIE"*) echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make all"}}],"stop_reason":"tool_use"}}'; touch "$HOME/began"; while [ ! -e "$HOME/go" ]; do sleep 0.05; done; echo 'last words' >&2; exit 3 ;;
*"TOOL-WITHOUT-PROCESS"*) echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}],"stop_reason":"tool_use"}}' ;;
*"SAY-NOTHING"*) ;;
*"ASK-AND-WITHDRAW"*)
  echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm -r target"},"tool_use_id":"t1"}}'
  while [ ! -e "$HOME/go" ]; do sleep 0.05; done
  echo '{"type":"control_cancel_request","request_id":"r1"}'
  while [ ! -e "$HOME/go-on" ]; do sleep 0.05; done; say "went"; end "went" ;;
*"ASK-LONG"*)
  lines='#'; i=0; while [ $i -lt 80 ]; do lines="$lines\\nrm -r target-$i"; i=$((i + 1)); done
  printf '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"%s"},"tool_use_id":"t1"}}\n' "$lines"
  read -r answer
  printf '%s\n' "$answer" > "$HOME/answer"
  say "went on"; end "went on" ;;
*"ASK-WITH-RULE"*)
  echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm -r target"},"tool_use_id":"t1","permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"rm:*"}],"behavior":"allow","destination":"session"}]}}'
  read -r answer
  printf '%s\n' "$answer" > "$HOME/answer"
  say "went on"; end "went on" ;;
*"ASK-FIRST"*)
  case "$prompt" in *AFTER-GO*) while [ ! -e "$HOME/go" ]; do sleep 0.05; done ;; esac
  echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm -r target"},"tool_use_id":"t1"}}'
  read -r answer
  printf '%s\n' "$answer" > "$HOME/answer"
  case "$answer" in *'"behavior":"allow"'*) say "allowed"; end "allowed" ;; *) say "refused"; end "refused" ;; esac ;;
*"WRITE-A-FILE"*) echo new > made.txt; say "wrote"; end "wrote" ;;
*"FAIL-LOUDLY"*) echo '{"type":"result","subtype":"error_during_execution","is_error":true,"result":"API Error: 429 rate limit"}' ;;
*) say "done"; end "done" ;;
esac
while read -r line; do :; done
"#;

pub struct Jobs {
    pub world: World,
}

impl Jobs {
    pub fn new() -> Self {
        let world = World::new();
        fs::create_dir_all(world.path("bin")).unwrap();
        let program = world.path("bin/claude");
        fs::write(&program, AGENT).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { world }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.as_script(arguments);
        self.dress(&mut command);
        command
    }

    /// With the scripted agent on the search path, and a login.
    pub fn dress(&self, command: &mut Command) {
        command.env("PATH", self.path());
        command.env("ANTHROPIC_API_KEY", "fake");
    }

    fn path(&self) -> String {
        format!("{}:{}", self.world.path("bin").display(), std::env::var("PATH").unwrap_or_default())
    }

    pub fn run(&self, arguments: &[&str]) -> Done {
        run(self.command(&[arguments, &["--json"]].concat()), b"")
    }

    pub fn start(&self, prompt: &str) -> String {
        let started = self.run(&["job", "start", "claude", prompt]).expect(0).json();
        assert_eq!(started["status"], "queued");
        started["job_id"].as_str().unwrap().to_owned()
    }

    pub fn status(&self, id: &str) -> Value {
        self.run(&["job", "status", id]).expect(0).json()
    }

    pub fn until(&self, id: &str, status: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let row = self.status(id);
            if row["status"] == status {
                return row;
            }
            assert!(Instant::now() < deadline, "it never was {status}: {row}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.world.path("home").join(name)
    }

    pub fn wait_for_file(&self, name: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match fs::read_to_string(self.file(name)) {
                Ok(text) if !text.is_empty() || name == "began" => return text,
                _ => assert!(Instant::now() < deadline, "there is no {name}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn worker(&self, id: &str) -> i32 {
        let database = rusqlite::Connection::open(self.world.home().join("jobs.db")).unwrap();
        database.query_row("SELECT worker FROM job WHERE public = ?1", [id], |row| row.get(0)).unwrap()
    }

    fn log(&self, id: &str) -> String {
        fs::read_to_string(self.world.home().join("jobs").join(id).join("log")).unwrap_or_default()
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        // What a failed test left running.
        let open = self.run(&["job", "status", "--all"]);
        let rows: Value = serde_json::from_str(&open.stdout).unwrap_or_default();
        for row in rows.as_array().into_iter().flatten() {
            self.run(&["job", "cancel", row["job_id"].as_str().unwrap_or_default()]);
        }
    }
}

pub fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Whether any thread of a process is left: a killed one holds its files until the last is gone,
/// though its first may be a zombie by then.
fn is_alive(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok())
        .any(|stat| !stat.contains(") Z") && !stat.contains(") X"))
}

fn gone(pid: i32) -> bool {
    wait::until(wait::HANG, || !is_alive(pid))
}

#[test]
fn j1_n_starts_at_once_leave_n_records_and_n_results() {
    let jobs = Jobs::new();
    let count = if rounds(1) > 1 { 100 } else { 24 };
    let mut children: Vec<Child> = Vec::new();
    for number in 0..count {
        let prompt = format!("SLEEP-AND-ANSWER {number}");
        let mut command = jobs.command(&["job", "start", "claude", &prompt, "--json"]);
        children.push(
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
        );
    }
    let mut ids = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let started: Value = serde_json::from_slice(&output.stdout).unwrap();
        ids.push(started["job_id"].as_str().unwrap().to_owned());
    }
    let arguments: Vec<&str> =
        ["job", "wait", "--max-wait", "3m"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    let rows = jobs.run(&arguments).expect(0).json();
    assert_eq!(rows.as_array().unwrap().len(), count);
    for row in rows.as_array().unwrap() {
        assert_eq!((&row["status"], &row["result"]), (&"completed".into(), &"slept".into()), "{row}");
    }
    assert_eq!(jobs.run(&["job", "list", "--all"]).json().as_array().unwrap().len(), count);
}

#[test]
fn j2_the_prompt_travels_byte_for_byte() {
    let jobs = Jobs::new();
    let prompt = "--leading \"quotes\" 'single' \\n $& `x` ${y}\r\n\ttab \u{2028} é \u{1F980} /cmd @file\n";
    let file = jobs.world.path("prompt.txt");
    fs::write(&file, prompt).unwrap();
    let started =
        jobs.run(&["job", "start", "claude", "--prompt-file", file.to_str().unwrap()]).expect(0).json();
    jobs.run(&["job", "wait", started["job_id"].as_str().unwrap()]).expect(0);
    let line: Value = serde_json::from_str(&jobs.wait_for_file("prompts")).unwrap();
    let text = line["message"]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with(&format!("\n\n{prompt}")), "{text:?}");
    assert!(text.starts_with("[baton] You are the worker"));
}

#[test]
fn j3_the_worker_outlives_its_starter() {
    let jobs = Jobs::new();
    let id = jobs.start("WAIT-FOR-GO");
    let row = jobs.until(&id, "running");
    assert!(row["backend_session"].is_string(), "it is known before the agent has said a word");
    let worker = jobs.worker(&id);
    let stat = fs::read_to_string(format!("/proc/{worker}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    assert_ne!(fields[3], std::process::id().to_string(), "a session of its own");
    fs::write(jobs.file("go"), "").unwrap();
    let row = jobs.run(&["job", "wait", &id]).expect(0).json();
    assert_eq!((&row["result"], &row["backend_session"]), (&"went".into(), &"s-1".into()), "{row}");
    assert!(gone(worker));
    for file in ["lock", "log", "bell"] {
        let mode =
            fs::metadata(jobs.world.home().join("jobs").join(&id).join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

#[test]
fn j4_the_first_end_stays() {
    let jobs = Jobs::new();
    let id = jobs.start("quick");
    jobs.run(&["job", "wait", &id]).expect(0);
    jobs.run(&["job", "cancel", &id]).expect_error(1, "job-ended");
    assert_eq!(jobs.status(&id)["status"], "completed");
}

#[test]
fn j5_a_key_makes_a_start_safe_to_repeat() {
    let jobs = Jobs::new();
    let start = |prompt: &str| jobs.run(&["job", "start", "claude", prompt, "--key", "k 1"]);
    let first = start("quick").expect(0).json();
    let again = start("quick").expect(0).json();
    assert_eq!(first["job_id"], again["job_id"]);
    assert_eq!(again["again"], true);
    start("another").expect_error(1, "key-conflict");
    assert_eq!(jobs.run(&["job", "list", "--all"]).json().as_array().unwrap().len(), 1);
    jobs.run(&["job", "wait", first["job_id"].as_str().unwrap()]).expect(0);
}

#[test]
fn j5_a_dead_worker_is_a_failed_job_at_the_next_look() {
    let jobs = Jobs::new();
    let id = jobs.start("HANG");
    let child: i32 = jobs.wait_for_file("child").trim().parse().unwrap();
    jobs.until(&id, "running");
    let worker = jobs.worker(&id);
    kill(worker);
    assert!(gone(worker));
    let row = jobs.status(&id);
    assert_eq!((&row["status"], &row["error"]["code"]), (&"failed".into(), &"worker-gone".into()), "{row}");
    assert!(gone(child), "what it left running was ended");
    let row = jobs.run(&["job", "wait", &id]).expect(1).json();
    assert_eq!(row["status"], "failed");
}

#[test]
fn j5_a_waiter_hears_of_a_killed_worker_at_once() {
    let jobs = Jobs::new();
    let id = jobs.start("HANG");
    jobs.until(&id, "running");
    let mut command = jobs.command(&["job", "wait", &id, "--max-wait", "10m", "--json"]);
    let waiter = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    kill(jobs.worker(&id));
    let output = waiter.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let row: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(row["error"]["code"], "worker-gone", "{row}");
}

#[test]
fn j5_a_starter_killed_before_the_worker_leaves_a_job_that_failed() {
    let jobs = Jobs::new();
    // A record, and a lock that no process holds: what is left if the starter dies between the two.
    let id = jobs.start("quick");
    jobs.run(&["job", "wait", &id]).expect(0);
    let database = rusqlite::Connection::open(jobs.world.home().join("jobs.db")).unwrap();
    database
        .execute(
            "UPDATE job SET status = 'queued', worker = NULL, ended_at = NULL, result = NULL, elapsed = NULL",
            [],
        )
        .unwrap();
    let row = jobs.status(&id);
    assert_eq!((&row["status"], &row["error"]["code"]), (&"failed".into(), &"worker-gone".into()), "{row}");
    assert!(row["error"]["message"].as_str().unwrap().contains("never began"));
}

#[test]
fn j9_a_job_may_not_start_another() {
    let jobs = Jobs::new();
    let mut nested = jobs.command(&["job", "start", "claude", "x", "--json"]);
    nested.env("BATON_JOB_DEPTH", "1");
    run(nested, b"").expect_error(3, "too-deep");
    // A shell that hides the environment from us, below one that has it.
    let line = "env -u BATON_JOB_DEPTH \"$0\" \"$@\"; exit $?";
    let mut hidden = jobs.world.command("sh");
    jobs.dress(&mut hidden);
    hidden.args(["-c", line]).arg(crate::world::program()).args(["job", "start", "claude", "x", "--json"]);
    hidden.env("BATON_JOB_DEPTH", "1");
    run(hidden, b"").expect_error(3, "too-deep");
    assert_eq!(jobs.run(&["job", "list", "--all"]).json().as_array().unwrap().len(), 0);
    // And what a job runs is marked.
    jobs.run(&["run", "claude", "quick"]).expect(0);
    let environment = jobs.wait_for_file("environment");
    assert!(
        environment.contains("BATON_JOB_DEPTH=1") && environment.contains("BATON_JOB=j"),
        "{environment}"
    );
}

#[test]
fn j10_a_job_that_only_reads_is_held_to_it_by_the_guard_too() {
    let jobs = Jobs::new();
    jobs.run(&["run", "claude", "quick", "--read-only"]).expect(0);
    assert!(jobs.wait_for_file("environment").contains("BATON_READ_ONLY=1"));
    let judged = |command: &str, read_only: bool| {
        let mut check = jobs.command(&["guard", "check", "--agent", "claude", "--json"]);
        if read_only {
            check.env("BATON_READ_ONLY", "1");
        }
        let payload = serde_json::json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": jobs.world.project(), "tool_name": "Bash",
            "tool_input": {"command": command}, "tool_use_id": "t",
        });
        run(check, payload.to_string().as_bytes()).expect(0).json()
    };
    assert_eq!(judged("echo x > made.txt", false)["decision"], "allow");
    let denied = judged("echo x > made.txt", true);
    assert_eq!((&denied["decision"], &denied["rule"]), (&"deny".into(), &"block-writes".into()), "{denied}");
    assert_eq!(judged("git log --oneline", true)["decision"], "allow");
}

#[test]
fn j11_what_a_job_waits_for_is_shown_and_answered_by_the_person_alone() {
    let jobs = Jobs::new();
    if !jobs.world.has_person() {
        eprintln!("skipped: there is no pseudo-terminal here");
        return;
    }
    for (arguments, result) in [(["approve", ""], "allowed"), (["deny", "--reason=not today"], "refused")] {
        let started = jobs.run(&["job", "start", "claude", "ASK-FIRST", "--allow", "ask"]).expect(0).json();
        let id = started["job_id"].as_str().unwrap().to_owned();
        let row = jobs.until(&id, "blocked");
        assert_eq!(row["questions"][0]["what"], "Bash: rm -r target", "{row}");
        let waiting = jobs.run(&["approvals"]).expect(0).json();
        assert_eq!(waiting[0]["job_id"], id.as_str(), "{waiting}");
        let question = waiting[0]["id"].as_str().unwrap().to_owned();
        jobs.run(&["approve", &id]).expect_error(3, "not-a-person");
        let asker = Puppet::start(&jobs.world, Style::Claude, &format!("agent-{result}"));
        let refused = run(asker.shell_command(&["approve", &id, "--json"]), b"");
        refused.expect_error(3, "not-a-reviewer");
        let words: Vec<&str> =
            arguments.iter().copied().filter(|word| !word.is_empty()).chain([question.as_str()]).collect();
        let done = jobs.world.person(&words);
        assert_eq!(done.code, Some(0), "{done:?}");
        let row = jobs.run(&["job", "wait", &id]).expect(0).json();
        assert_eq!(row["result"], result, "{row}");
        if result == "refused" {
            assert!(jobs.wait_for_file("answer").contains("not today"));
        }
        let late = jobs.world.person(&["approve", &id, "--json"]);
        assert_eq!(late.code, Some(1), "{late:?}");
        assert!(late.stdout.contains("asker-gone"), "{late:?}");
        let unknown = jobs.world.person(&["approve", "jnothing", "--json"]);
        assert!(unknown.stdout.contains("unknown-approval"), "{unknown:?}");
    }
}

#[test]
fn j11_a_rule_of_the_persons_answers_for_him_and_what_it_does_not_permit_is_told() {
    let jobs = Jobs::new();
    let notes = jobs.world.path("notes");
    let told = format!("notify_command = [\"touch\", {:?}]", notes.display().to_string());
    jobs.world.configure(&format!("[approvals]\nauto_approve = [\"bash: rm -r target\"]\n{told}\n"));
    let row = jobs.run(&["run", "claude", "ASK-FIRST", "--allow", "ask"]).expect(0).json();
    assert_eq!(row["result"], "allowed", "{row}");
    let trail = jobs.run(&["log"]).expect(0).stdout;
    assert!(trail.contains("allow by rule: bash: rm -r target: Bash: rm -r target"), "{trail}");
    let id = row["job_id"].as_str().unwrap();
    let log = run(jobs.command(&["job", "logs", id]), b"").expect(0).stdout;
    assert!(log.contains("by rule bash: rm -r target"), "{log}");
    // A job that only reads is held to that, whatever the rules say.
    let started = jobs.run(&["job", "start", "claude", "ASK-FIRST", "--read-only"]).expect(0).json();
    let row = jobs.run(&["job", "wait", started["job_id"].as_str().unwrap(), "--max-wait", "20s"]).json();
    assert_ne!(row["result"], "allowed", "{row}");
    assert!(!notes.exists(), "nobody had to be told");
    jobs.world.configure(&format!("[approvals]\nauto_approve = [\"bash: rm -r targets\"]\n{told}\n"));
    let started = jobs.run(&["job", "start", "claude", "ASK-FIRST", "--allow", "ask"]).expect(0).json();
    let id = started["job_id"].as_str().unwrap();
    jobs.until(id, "blocked");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !notes.exists() {
        assert!(Instant::now() < deadline, "nobody was told");
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(jobs.status(id)["status"], "blocked");
    jobs.run(&["job", "cancel", id]).expect(0);
}

#[test]
fn j14_a_step_is_not_the_end() {
    let jobs = Jobs::new();
    let id = jobs.start("STEP-ONLY");
    let row = jobs.until(&id, "running");
    assert_eq!(row["result"], Value::Null);
    let row = jobs.run(&["job", "wait", &id, "--max-wait", "1s"]).expect(2).json();
    assert_eq!(row["job_id"], id.as_str());
    assert_eq!(row["last_activity"]["what"], "bash: make");
    jobs.run(&["job", "cancel", &id]).expect(0);
}

#[test]
fn j15_silence_is_a_stall() {
    let jobs = Jobs::new();
    jobs.world.configure("[jobs]\nidle = \"10s\"\n");
    let id = jobs.start("SAY-NOTHING");
    let row = jobs.run(&["job", "wait", &id, "--max-wait", "2m"]).expect(1).json();
    assert_eq!(row["error"]["code"], "stalled", "{row}");
    assert!(row["error"]["hint"].as_str().unwrap().contains("jobs.idle is 10s"), "{row}");
}

#[test]
#[cfg(target_os = "linux")]
fn j16_a_shell_call_without_a_process_is_stuck() {
    let jobs = Jobs::new();
    let id = jobs.start("TOOL-WITHOUT-PROCESS");
    let row = jobs.run(&["job", "wait", &id, "--max-wait", "2m"]).expect(1).json();
    assert_eq!(row["error"]["code"], "stuck-tool", "{row}{}", jobs.log(&id));
    assert!(row["error"]["message"].as_str().unwrap().contains("bash: make"), "{row}");
}

#[test]
fn a_clock_that_was_set_back_decides_nothing() {
    let jobs = Jobs::new();
    let id = jobs.start("WAIT-FOR-GO");
    jobs.until(&id, "running");
    // As if the clock had been an hour ahead when it began.
    let database = rusqlite::Connection::open(jobs.world.home().join("jobs.db")).unwrap();
    database
        .execute(
            "UPDATE job SET created_at = created_at + 3600000, started_at = started_at + 3600000, activity = 'x', activity_at = created_at + 7200000",
            [],
        )
        .unwrap();
    let row = jobs.status(&id);
    assert_eq!((&row["status"], &row["elapsed_ms"]), (&"running".into(), &0.into()), "{row}");
    fs::write(jobs.file("go"), "").unwrap();
    let row = jobs.run(&["job", "wait", &id]).expect(0).json();
    assert!(row["elapsed_ms"].as_i64().unwrap() < 3_600_000, "by a clock that nobody sets: {row}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_neither_hides_an_end_nor_leaves_a_job_running() {
    let jobs = Jobs::new();
    jobs.run(&["run", "claude", "quick"]).expect(0);
    // A home of two megabytes that is full when the job ends; afterwards there is room again.
    let script = r#"
        set -e
        cp -r "$BATON_HOME" "$TMPDIR/copy"
        mount -t tmpfs -o size=2m,mode=700 tmpfs "$BATON_HOME"
        cp -r "$TMPDIR/copy"/* "$BATON_HOME"
        id=$("$1" job start claude WAIT-FOR-GO)
        until "$1" job status "$id" | grep -q running; do sleep 0.05; done
        head -c 3000000 /dev/zero > "$BATON_HOME/filler" 2>/dev/null || true
        touch "$HOME/go"
        sleep 2
        set +e
        "$1" job start claude more --json; echo "start $?"
        "$1" job status "$id" --json > "$TMPDIR/status"; echo "status $?"
        rm "$BATON_HOME/filler"
        "$1" job wait "$id" > "$TMPDIR/result"; echo "wait $?"
        cat "$TMPDIR/result"
    "#;
    let environment = [("ANTHROPIC_API_KEY".to_owned(), "fake".to_owned()), ("PATH".to_owned(), jobs.path())];
    let Some(done) =
        crate::failing::in_namespace_with(&jobs.world, script, &[crate::world::program()], &environment)
    else {
        return;
    };
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].contains("disk-full"), "{done:?}");
    assert_eq!(lines[1..], ["start 1", "status 0", "wait 0", "went"], "{done:?}");
}

#[test]
fn j17_the_cap_ends_the_turn_and_what_runs_in_it() {
    let jobs = Jobs::new();
    let id =
        jobs.run(&["job", "start", "claude", "HANG", "--timeout", "2s"]).expect(0).json()["job_id"].clone();
    let id = id.as_str().unwrap();
    let child: i32 = jobs.wait_for_file("child").trim().parse().unwrap();
    let row = jobs.run(&["job", "wait", id]).expect(1).json();
    assert_eq!(row["error"]["code"], "job-timeout");
    assert!(row["error"]["hint"].as_str().unwrap().contains("jobs.timeout"));
    assert!(gone(child));
}

#[test]
fn j18_a_program_that_dies_is_a_failed_job_with_its_last_words() {
    let jobs = Jobs::new();
    let id = jobs.start("TOOL-AND-DIE");
    jobs.wait_for_file("began");
    fs::write(jobs.file("go"), "").unwrap();
    let row = jobs.run(&["job", "wait", &id]).expect(1).json();
    assert_eq!(row["error"]["code"], "backend-gone");
    assert!(row["error"]["message"].as_str().unwrap().contains("last words"), "{row}");
    assert!(jobs.log(&id).contains("bash: make all"), "{}", jobs.log(&id));
}

#[test]
fn j19_an_error_of_the_agent_is_told_in_its_words() {
    let jobs = Jobs::new();
    let done = jobs.run(&["run", "claude", "FAIL-LOUDLY"]).expect(1);
    let row = done.json();
    assert_eq!(row["error"]["code"], "rate-limited", "{row}");
    assert!(row["error"]["message"].as_str().unwrap().contains("429"));
    assert!(done.stderr.contains("error: job"), "{}", done.stderr);
}

#[test]
fn j22_wait_says_what_it_knows_in_each_case() {
    let jobs = Jobs::new();
    let (first, second) = (jobs.start("WAIT-FOR-GO"), jobs.start("WAIT-FOR-GO"));
    jobs.run(&["job", "wait", "jzzzz"]).expect_error(1, "unknown-job");
    jobs.run(&["job", "wait", "../../etc"]).expect_error(1, "unknown-job");
    let hint = jobs.run(&["job", "wait", "j"]).expect_error(1, "unknown-job");
    assert!(!hint.is_empty());
    for wrong in ["0s", "-1s", "11m", "500ms", "x"] {
        jobs.run(&["job", "wait", &first, &format!("--max-wait={wrong}")]).expect_error(64, "bad-duration");
    }
    let row = jobs.run(&["job", "wait", &first, "--max-wait", "1s"]).expect(2).json();
    for key in ["job_id", "status", "elapsed_ms", "log"] {
        assert!(!row[key].is_null(), "{key}: {row}");
    }
    fs::write(jobs.file("go"), "").unwrap();
    jobs.run(&["job", "wait", &first, &second, "--any"]).expect(0);
    jobs.run(&["job", "wait", &first, &second]).expect(0);
    let at_once = jobs.run(&["job", "wait", &first, "--max-wait", "1s"]).expect(0).json();
    assert_eq!(at_once["result"], "went");
}

#[test]
fn j22_an_ambiguous_beginning_lists_what_it_could_be() {
    let jobs = Jobs::new();
    let ids: Vec<String> = (0..40).map(|_| jobs.start("quick")).collect();
    let beginning = |id: &String| id[..2].to_owned();
    let (first, second) = (0..40)
        .flat_map(|a| (a + 1..40).map(move |b| (a, b)))
        .find(|(a, b)| beginning(&ids[*a]) == beginning(&ids[*b]))
        .expect("forty ids, thirty-two letters");
    let done = jobs.run(&["job", "status", &beginning(&ids[first])]).expect(1);
    assert_eq!(done.json()["error"]["code"], "ambiguous-job");
    assert!(done.stderr.contains(&ids[first]) && done.stderr.contains(&ids[second]), "{}", done.stderr);
    let all: Vec<&str> = ["job", "wait"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    jobs.run(&all).expect(0);
}

#[test]
fn j24_a_followed_job_has_one_last_line() {
    let jobs = Jobs::new();
    let id = jobs.start("WAIT-FOR-GO");
    jobs.until(&id, "running");
    let mut command = jobs.command(&["job", "wait", &id, "--follow"]);
    let waiter = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    fs::write(jobs.file("go"), "").unwrap();
    let text = String::from_utf8(waiter.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(text.matches("TERMINAL=").count(), 1, "{text}");
    assert!(text.lines().last().unwrap().starts_with(&format!("TERMINAL=completed job {id} ")), "{text}");
    assert!(text.lines().last().unwrap().ends_with(": went"), "{text}");
    let id = jobs.start("STEP-ONLY");
    let text = run(jobs.command(&["job", "wait", &id, "--follow", "--max-wait", "1s"]), b"").expect(2).stdout;
    assert_eq!(text.matches("TERMINAL=timeout").count(), 1, "{text}");
    let followed = run(jobs.command(&["job", "logs", &id]), b"").expect(0).stdout;
    assert!(followed.contains("starting claude"), "{followed}");
    jobs.run(&["job", "cancel", &id]).expect(0);
}

#[test]
fn j25_the_asker_is_told_once_and_finds_the_result_in_its_mail() {
    let jobs = Jobs::new();
    let mut asker = Puppet::start(&jobs.world, Style::Claude, "asker");
    asker.event(Moment::Prompt);
    let mut command = asker.shell_command(&["job", "start", "claude", "SLEEP-AND-ANSWER", "--json"]);
    jobs.dress(&mut command);
    let started: Value = serde_json::from_str(&run(command, b"").expect(0).stdout).unwrap();
    let id = started["job_id"].as_str().unwrap();
    let row = jobs.run(&["job", "wait", id]).expect(0).json();
    assert_eq!(row["requested_by"], "asker");
    // Read by others several times: told once.
    jobs.status(id);
    jobs.run(&["job", "list", "--all"]).expect(0);
    let mail = jobs.world.mail();
    let notes: Vec<&Value> =
        mail.iter().filter(|row| row["body"].as_str().is_some_and(|body| body.contains(id))).collect();
    assert_eq!(notes.len(), 1, "{mail:?}");
    assert!(
        notes[0]["body"].as_str().unwrap().contains("completed")
            && notes[0]["body"].as_str().unwrap().contains("slept")
    );
}

#[test]
fn j25_a_killed_worker_is_told_at_the_askers_next_event() {
    let jobs = Jobs::new();
    let mut asker = Puppet::start(&jobs.world, Style::Claude, "asker");
    asker.event(Moment::Prompt);
    let mut command = asker.shell_command(&["job", "start", "claude", "HANG", "--json"]);
    jobs.dress(&mut command);
    let started: Value = serde_json::from_str(&run(command, b"").expect(0).stdout).unwrap();
    let id = started["job_id"].as_str().unwrap();
    jobs.wait_for_file("child");
    jobs.until(id, "running");
    let worker = jobs.worker(id);
    kill(worker);
    assert!(gone(worker));
    asker.answer(1);
    asker.event(Moment::Tools);
    let body = |row: &Value| {
        row["body"].as_str().is_some_and(|body| body.contains(id) && body.contains("worker-gone"))
    };
    assert!(jobs.world.mail().iter().any(body), "{:?}", jobs.world.mail());
}

#[test]
fn j27_cancel_stops_everything_and_says_what_it_did() {
    let jobs = Jobs::new();
    for prompt in ["HANG", "STUBBORN"] {
        let id = jobs.start(prompt);
        let child: i32 = jobs.wait_for_file("child").trim().parse().unwrap();
        jobs.until(&id, "running");
        let begun = Instant::now();
        let row = jobs.run(&["job", "cancel", &id]).expect(0).json();
        assert!(begun.elapsed() < wait::HANG);
        assert_eq!(row["status"], "cancelled", "{row}");
        assert!(row["exit"].as_str().unwrap().contains("process"), "{row}");
        assert!(gone(child), "{prompt}");
        jobs.run(&["job", "result", &id]).expect(1);
        fs::remove_file(jobs.file("child")).unwrap();
    }
}

#[test]
fn j27_a_worker_that_does_not_answer_is_ended() {
    let jobs = Jobs::new();
    let id = jobs.start("HANG");
    let child: i32 = jobs.wait_for_file("child").trim().parse().unwrap();
    jobs.until(&id, "running");
    let worker = jobs.worker(&id);
    kill_process(Pid::from_raw(worker).unwrap(), Signal::STOP).unwrap();
    let row = jobs.run(&["job", "cancel", &id]).expect(0).json();
    assert_eq!(row["status"], "cancelled", "{row}");
    assert!(row["error"]["message"].as_str().unwrap().contains("did not answer"), "{row}");
    assert!(gone(worker) && gone(child));
}

#[test]
fn j28_only_an_ended_job_of_the_same_agent_goes_on() {
    let jobs = Jobs::new();
    let id = jobs.start("WAIT-FOR-GO");
    jobs.until(&id, "running");
    jobs.run(&["job", "start", "claude", "more", "--resume", &id]).expect_error(1, "job-running");
    fs::write(jobs.file("go"), "").unwrap();
    jobs.run(&["job", "wait", &id]).expect(0);
    jobs.run(&["job", "start", "codex", "more", "--resume", &id]).expect(1);
    jobs.run(&["job", "start", "claude", "more", "--resume", "jnone"]).expect_error(1, "unknown-job");
}

#[test]
fn j29_a_worktree_holds_the_changes_and_git_tells_them() {
    let jobs = Jobs::new();
    let git = |arguments: &[&str]| {
        let done = run(
            {
                let mut command = jobs.world.command("git");
                command.args(["-c", "user.name=x", "-c", "user.email=x@example.invalid"]).args(arguments);
                command
            },
            b"",
        );
        assert_eq!(done.code, Some(0), "{done:?}");
    };
    jobs.run(&[
        "job",
        "start",
        "claude",
        "x",
        "--worktree",
        "--cwd",
        jobs.world.path("claude").to_str().unwrap(),
    ])
    .expect_error(1, "bad-folder");
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let row = jobs.run(&["run", "claude", "WRITE-A-FILE", "--worktree"]).expect(0).json();
    let id = row["job_id"].as_str().unwrap();
    assert_eq!(row["changes"]["branch"], format!("baton/{id}"), "{row}");
    assert_eq!(row["changes"]["files"][0]["path"], "made.txt");
    assert!(!jobs.world.project().join("made.txt").exists());
    let kept = PathBuf::from(row["changes"]["path"].as_str().unwrap());
    assert!(kept.join("made.txt").exists());
    // It holds something: neither it nor its record goes.
    let pruned = jobs.run(&["job", "prune", "--older-than", "1ms"]).expect(0).json();
    assert_eq!(pruned["forgotten"], serde_json::json!([]), "{pruned}");
    fs::remove_file(kept.join("made.txt")).unwrap();
    let pruned = jobs.run(&["job", "prune", "--older-than", "1ms"]).expect(0).json();
    assert_eq!((&pruned["worktrees_removed"], &pruned["forgotten"][0]), (&1.into(), &id.into()), "{pruned}");
    assert!(!kept.exists());
}

#[test]
fn j8_an_unread_result_is_not_forgotten() {
    let jobs = Jobs::new();
    let id = jobs.start("quick");
    jobs.until(&id, "completed");
    let pruned = jobs.run(&["job", "prune", "--older-than", "1ms"]).expect(0).json();
    assert_eq!((&pruned["forgotten"], &pruned["unread"]), (&serde_json::json!([]), &1.into()));
    jobs.run(&["job", "result", &id]).expect(0);
    let pruned = jobs.run(&["job", "prune", "--older-than", "1ms"]).expect(0).json();
    assert_eq!(pruned["forgotten"], serde_json::json!([id]));
    jobs.run(&["job", "status", &id]).expect_error(1, "unknown-job");
}

#[test]
fn a_start_that_is_refused_starts_nothing() {
    let jobs = Jobs::new();
    let refused = |arguments: &[&str], exit: i32, code: &str| {
        let hint = jobs.run(&[&["job", "start"], arguments].concat()).expect_error(exit, code);
        assert!(!hint.is_empty(), "{arguments:?} has no hint");
    };
    refused(&["nobody", "x"], 64, "unknown-agent");
    refused(&["claude", ""], 64, "empty-body");
    refused(&["claude", "x", "--effort", "gigantic"], 1, "unsupported-option");
    refused(&["claude", "x", "--cwd", "/nowhere/at/all"], 1, "bad-folder");
    for wrong in ["0s", "-5m", "soon"] {
        refused(&["claude", "x", &format!("--timeout={wrong}")], 64, "bad-duration");
    }
    refused(&["claude", "x", "--prompt-file", "/nowhere"], 64, "usage");
    refused(&["claude", "--prompt-file", "/nowhere"], 1, "body-unreadable");
    let mut missing = jobs.world.as_script(&["job", "start", "claude", "x", "--json"]);
    missing.env("PATH", "/usr/bin:/bin").env("ANTHROPIC_API_KEY", "fake");
    if !std::path::Path::new("/usr/bin/claude").exists() {
        run(missing, b"").expect_error(1, "agent-missing");
    }
    let mut logged_out = jobs.command(&["job", "start", "claude", "x", "--json"]);
    logged_out.env_remove("ANTHROPIC_API_KEY");
    run(logged_out, b"").expect_error(1, "not-logged-in");
    run(jobs.command(&["job", "start", "claude", "-", "--json"]), b"a\0b").expect_error(1, "body-has-nul");
    run(jobs.command(&["job", "start", "claude", "-", "--json"]), b"\xff\xfe")
        .expect_error(1, "body-not-utf8");
    run(jobs.command(&["job", "start", "claude", "-", "--json"]), &vec![b'x'; (1 << 20) + 1])
        .expect_error(1, "body-too-large");
    assert_eq!(jobs.run(&["job", "list", "--all"]).json(), serde_json::json!([]));
    assert!(
        !jobs.world.home().join("jobs").exists()
            || fs::read_dir(jobs.world.home().join("jobs")).unwrap().next().is_none()
    );
}

#[test]
fn j32_doctor_knows_the_backends_and_heals_what_is_stuck() {
    let jobs = Jobs::new();
    let found = |arguments: &[&str], login: bool| {
        let mut command = jobs.command(&[&["doctor", "--json"], arguments].concat());
        command.env("PATH", format!("{}:/usr/bin:/bin", jobs.world.path("bin").display()));
        if !login {
            command.env_remove("ANTHROPIC_API_KEY");
        }
        let checks = run(command, b"").json();
        move |name: &str, verdict: &str, words: &str| {
            let fits = |check: &&Value| {
                check["check"] == name
                    && check["verdict"] == verdict
                    && check["detail"].as_str().is_some_and(|detail| detail.contains(words))
            };
            checks.as_array().unwrap().iter().any(|check| fits(&check))
        }
    };
    let fresh = found(&[], true);
    assert!(fresh("backend", "pass", "claude can be given jobs"));
    assert!(fresh("jobs", "pass", "none yet") && fresh("disk", "pass", "MiB are free"));
    assert!(found(&[], false)("backend", "note", "no login"));
    let id = jobs.start("HANG");
    let child: i32 = jobs.wait_for_file("child").trim().parse().unwrap();
    jobs.until(&id, "running");
    let running = found(&[], true);
    assert!(running("jobs", "pass", "1 run") && !running("stuck", "warn", ""));
    let worker = jobs.worker(&id);
    kill(worker);
    assert!(gone(worker));
    // Left by a starter that was killed, and by a server that was.
    let other = if id.ends_with('2') { '3' } else { '2' };
    let orphan = jobs.world.home().join("jobs").join(format!("{}{other}", &id[..id.len() - 1]));
    fs::create_dir_all(&orphan).unwrap();
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    fs::File::open(&orphan).unwrap().set_modified(hour_ago).unwrap();
    let server = jobs.world.home().join("opencode/x");
    fs::create_dir_all(&server).unwrap();
    let gone_server = r#"{"port": 1, "password": "x", "pid": 1, "start": 18446744073709551615}"#;
    fs::write(server.join("server.json"), gone_server).unwrap();
    let looked = found(&[], true);
    assert!(looked("stuck", "warn", &id), "looking heals nothing");
    assert!(looked("left over", "warn", "1 folders and 0 worktrees"));
    assert!(looked("server", "note", "no longer runs"));
    assert!(is_alive(child));
    let fixed = found(&["--fix"], true);
    assert!(fixed("healed", "pass", &id) && fixed("left over", "pass", "removed"));
    assert!(gone(child) && !orphan.exists() && !server.join("server.json").exists());
    let row = jobs.status(&id);
    assert_eq!((&row["status"], &row["error"]["code"]), (&"failed".into(), &"worker-gone".into()), "{row}");
    let after = found(&[], true);
    assert!(!after("stuck", "warn", "") && !after("left over", "warn", "") && !after("server", "note", ""));
}
