//! What the person has set about questions: what needs no asking, who may answer, and how people
//! are told. A scripted Claude Code calls the real hook.

use crate::approvals::now;
use crate::puppet::{Puppet, Style};
use crate::world::{Done, World, done, program, quoted, rounds, run};
use baton_testkit::wait;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = wait::HANG;

/// Whether a person sits in front of a session, as Claude Code tells its hooks.
const ATTENDED: &str = "CLAUDE_CODE_SESSION_ATTENDED";

/// The session asks for a tool; its hook runs.
fn ask(puppet: &mut Puppet<'_>, call: &str, tool: &str, input: &Value, attended: bool) -> Child {
    let mut input = input.clone();
    if tool == "Bash" {
        // No two calls are alike.
        input["description"] = json!(call);
    }
    puppet.paper.raw(json!({"type": "assistant", "message": {"id": format!("m-{call}"), "role": "assistant", "model": "claude-opus-5-5",
        "content": [{"type": "tool_use", "id": call, "name": tool, "input": input}]}}));
    puppet.paper.flush();
    let payload = puppet.payload("PermissionRequest", json!({"tool_name": tool, "tool_input": input}));
    let mut command = puppet.hook_command();
    command.env(ATTENDED, if attended { "1" } else { "0" });
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut hook = command.spawn().expect("the hook starts");
    hook.stdin.take().expect("a pipe").write_all(&payload).expect("it reads");
    hook
}

fn printed(hook: Child) -> Done {
    let output = hook.wait_with_output().expect("its output");
    done(output.status, &output.stdout, &output.stderr)
}

/// What a hook answers at once if a person sits at the terminal.
fn said(puppet: &mut Puppet<'_>, call: &str, tool: &str, input: &Value) -> String {
    let said = printed(ask(puppet, call, tool, input, true)).expect(0);
    if said.stdout.is_empty() {
        return String::new();
    }
    said.json()["hookSpecificOutput"]["decision"]["behavior"].as_str().expect("a decision").to_owned()
}

/// The tool has run, as the transcript shows it.
fn ran(puppet: &mut Puppet<'_>, call: &str) {
    let content = json!([{"type": "tool_result", "tool_use_id": call, "is_error": false, "content": "done"}]);
    puppet
        .paper
        .raw(json!({"type": "user", "timestamp": now(), "message": {"role": "user", "content": content}}));
    puppet.paper.flush();
}

fn bash(command: &str) -> Value {
    json!({"command": command})
}

/// What waits and was told to us; a session that merely says that it waits is listed too.
fn inbox(world: &World) -> Vec<Value> {
    let shown = world.script(&["approvals", "--json"]).expect(0).json();
    shown.as_array().expect("a list").iter().filter(|row| row["tool"] != Value::Null).cloned().collect()
}

/// The rows of the store: state, by, what.
fn rows(world: &World) -> Vec<(String, Option<String>, String)> {
    let store = Connection::open(world.home().join("approvals.db")).expect("a store");
    let mut select = store.prepare("SELECT state, by, question FROM approval ORDER BY id").expect("a table");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

fn trail(world: &World, kind: &str) -> Vec<String> {
    let log = world.script(&["log", "--json"]).expect(0);
    let rows: Vec<Value> = match serde_json::from_str::<Value>(&log.stdout) {
        Ok(Value::Array(rows)) => rows,
        _ => log.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(),
    };
    let of = rows.iter().filter(|row| row["kind"] == kind);
    of.map(|row| row["detail"].as_str().expect("a detail").to_owned()).collect()
}

/// The question that waits, once it does.
fn waits(world: &World) -> Value {
    let mut found = None;
    wait::until(LIMIT, || {
        found = inbox(world).into_iter().find(|row| row["state"] == "waiting");
        found.is_some()
    });
    found.unwrap_or_else(|| panic!("nothing waits: {:?}", world.hook_log()))
}

#[test]
fn what_a_rule_permits_is_answered_at_once_and_written_down() {
    let world = World::new();
    world.configure("[approvals]\nauto_approve = [\"bash: git status\", \"bash: cargo test *\", \"edit: src/**\", \"mcp: files/read_*\"]\n");
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let project = world.project();
    fs::create_dir_all(project.join("src")).expect("a folder");
    std::os::unix::fs::symlink("/etc", project.join("src/out")).expect("a link");
    let edit = |path: &str| json!({"file_path": path, "old_string": "a", "new_string": "b"});
    let inside = project.join("src/a.rs").display().to_string();
    let linked = project.join("src/out/passwd").display().to_string();
    let climbing = project.join("src/../Cargo.toml").display().to_string();
    let cases: &[(&str, Value, &str)] = &[
        ("Bash", bash("git  'status'"), "bash: git status"),
        ("Bash", bash("git status && cargo test -p core"), "bash: git status, bash: cargo test *"),
        ("Bash", bash("git status; rm -rf /"), ""),
        ("Bash", bash("git status $(rm x)"), ""),
        ("Bash", bash("git status > x"), ""),
        ("Bash", bash("X=1 git status"), ""),
        ("Bash", bash("/tmp/git status"), ""),
        ("Edit", edit(&inside), "edit: src/**"),
        ("Edit", edit(&linked), ""),
        ("Edit", edit(&climbing), ""),
        ("mcp__files__read_text", json!({"path": "x"}), "mcp: files/read_*"),
        ("mcp__files__write_text", json!({"path": "x"}), ""),
    ];
    for (number, (tool, input, by)) in cases.iter().enumerate() {
        let call = format!("toolu_{number}");
        let expected = if by.is_empty() { "" } else { "allow" };
        assert_eq!(said(&mut otter, &call, tool, input), expected, "{tool} {input}");
        ran(&mut otter, &call);
        assert_eq!(inbox(&world), Vec::<Value>::new(), "{tool} {input}");
        let (state, who, _) = rows(&world).pop().expect("a row");
        let rule = (!by.is_empty()).then(|| format!("rule: {by}"));
        let end = if by.is_empty() { "elsewhere" } else { "approved" };
        assert_eq!((state.as_str(), who), (end, rule), "{tool} {input}");
    }
    let uses = cases.iter().filter(|(_, _, by)| !by.is_empty()).count();
    let answered = trail(&world, "approval-answered");
    assert_eq!(answered.len(), uses, "{answered:?}");
    assert!(answered[0].contains("allow by rule: bash: git status"), "{answered:?}");
    assert_eq!(trail(&world, "approval-asked").len(), cases.len());
    assert_eq!(trail(&world, "approval-closed").len(), cases.len());
}

#[test]
fn no_rule_permits_what_the_guard_wants_asked_and_the_question_says_why() {
    let world = World::new();
    world.configure("[approvals]\nauto_approve = [\"bash: git push *\", \"bash: git status\"]\n");
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let command = "git push --force origin main";
    let judged = world.script_with(
        &["guard", "check", "--agent", "claude", "--json"],
        &otter.payload("PreToolUse", json!({"tool_name": "Bash", "tool_input": {"command": command}})),
    );
    let judged = judged.expect(0).json();
    assert!(matches!(judged["decision"].as_str(), Some("ask" | "deny")), "{judged}");
    assert_eq!(said(&mut otter, "toolu_1", "Bash", &bash(command)), "");
    let row = inbox(&world).remove(0);
    let why = row["why"].as_str().expect("a reason");
    assert!(why.contains(judged["rule"].as_str().expect("a rule")), "{why}");
    assert!(why.contains(judged["reason"].as_str().expect("a reason")), "{why}");
}

#[test]
fn only_the_persons_own_file_counts() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let rules =
        "[approvals]\nauto_approve = [\"bash: git status\"]\nnotify_command = [\"touch\", \"/nowhere\"]\n";
    let other = world.path("other.toml");
    fs::write(&other, rules).expect("a file");
    fs::write(world.project().join(".baton.toml"), rules).expect("a file");
    assert_eq!(said(&mut otter, "toolu_1", "Bash", &bash("git status")), "");
    let mut command = otter.hook_command();
    command.env("BATON_CONFIG", &other).env(ATTENDED, "1");
    let more = json!({"tool_name": "Bash", "tool_input": bash("git status")});
    assert_eq!(run(command, &otter.payload("PermissionRequest", more)).expect(0).stdout, "");
    let mut doctor = world.as_script(&["doctor", "--json"]);
    doctor.env("BATON_CONFIG", &other);
    let checks = run(doctor, b"").json();
    let passed_over = |file: &Path| {
        let named = |check: &&Value| {
            let detail = check["detail"].as_str().unwrap_or_default();
            detail.contains("ignored") && detail.contains(&file.display().to_string())
        };
        checks.as_array().expect("a list").iter().filter(named).count()
    };
    assert_eq!(passed_over(&other), 2, "{checks}");
    assert_eq!(passed_over(&world.project().join(".baton.toml")), 2, "{checks}");
    fs::remove_file(world.project().join(".baton.toml")).expect("it is there");
    world.configure(rules);
    let shown = world.script(&["config", "--json"]).expect(0).json();
    let row = shown.as_array().expect("a list").iter().find(|row| row["key"] == "approvals.auto_approve");
    assert_eq!(row.expect("it is shown")["value"], "bash: git status");
}

#[test]
fn with_a_mistake_in_the_file_there_are_no_rules_and_everything_else_goes_on() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    world.configure("[approvals]\nauto_approve = [\"bash: git status\", \"bash: *\"]\n");
    assert_eq!(said(&mut otter, "toolu_1", "Bash", &bash("git status")), "");
    assert_eq!(inbox(&world).len(), 1, "it is listed all the same");
    let told = world.script(&["config"]).expect(0).stderr;
    assert!(told.contains("line 2") && told.contains("auto_approve"), "{told}");
    let checks = world.script(&["doctor", "--json"]).json();
    let failed = |check: &Value| check["verdict"] == "fail" || check["status"] == "fail";
    let is_told = |check: &&Value| {
        failed(check) && check["detail"].as_str().is_some_and(|text| text.contains("auto_approve"))
    };
    assert!(checks.as_array().expect("a list").iter().any(|check| is_told(&check)), "{checks}");
}

fn reviewed(world: &World, names: &str, more: &str) {
    let project = world.project().canonicalize().expect("a folder");
    world.configure(&format!(
        "[approvals]\n{more}\n[approvals.reviewers]\n{:?} = [{names}]\n",
        project.display().to_string()
    ));
}

#[test]
fn a_reviewer_answers_for_others_and_never_for_itself() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut birch = Puppet::start(&world, Style::Claude, "birch");
    reviewed(&world, "\"birch\", \"otter\"", "");
    // Somebody sits there, and the reviewer is present: it is held.
    let hook = ask(&mut otter, "toolu_1", "Bash", &bash("npm publish"), true);
    let id = waits(&world)["id"].as_str().expect("an id").to_owned();
    for (name, command) in [
        ("its own", otter.shell_command(&["approve", &id, "--json"])),
        ("for good", birch.shell_command(&["approve", &id, "--always", "--json"])),
    ] {
        let done = run(command, b"");
        assert_eq!(done.code, Some(3), "{name}: {done:?}");
    }
    run(otter.shell_command(&["approve", &id, "--json"]), b"").expect_error(3, "not-a-reviewer");
    let denies = birch.shell_command(&["deny", &id, "--reason", "not today", "--json"]);
    thread::scope(|scope| {
        let answering = scope.spawn(move || run(denies, b""));
        let decision = printed(hook).expect(0).json()["hookSpecificOutput"]["decision"].clone();
        assert_eq!((&decision["behavior"], &decision["message"]), (&json!("deny"), &json!("not today")));
        let content = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "not today"}]);
        otter.paper.raw(json!({"type": "user", "timestamp": now(), "toolDenialKind": "permission-rule", "message": {"role": "user", "content": content}}));
        otter.paper.flush();
        let answer = answering.join().expect("it ends").expect(0).json();
        assert_eq!(answer["answer"], "denied");
    });
    assert_eq!(rows(&world).pop().expect("a row").1.as_deref(), Some("birch"));
    // Its own question, though it is named.
    let hook = ask(&mut birch, "toolu_2", "Bash", &bash("npm publish"), false);
    let id = waits(&world)["id"].as_str().expect("an id").to_owned();
    run(birch.shell_command(&["approve", &id, "--json"]), b"").expect_error(3, "not-a-reviewer");
    // Named for another project only.
    world.configure("[approvals.reviewers]\n\"/somewhere\" = [\"otter\"]\n");
    run(otter.shell_command(&["approve", &id, "--json"]), b"").expect_error(3, "not-a-reviewer");
    // And no session becomes a reviewer by taking the name.
    run(otter.shell_command(&["name", "otter", "--json"]), b"").expect_error(3, "not-a-person");
    end(hook);
}

fn end(mut hook: Child) {
    hook.kill().ok();
    hook.wait().ok();
}

#[test]
fn a_missing_reviewer_keeps_no_one_waiting() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut birch = Puppet::start(&world, Style::Claude, "birch");
    reviewed(&world, "\"birch\", \"nobody\"", "");
    birch.kill();
    assert_eq!(said(&mut otter, "toolu_1", "Bash", &bash("npm publish")), "");
    assert_eq!(inbox(&world)[0]["state"], "only-in-terminal");
    // Nor does a reviewer that could only answer itself.
    reviewed(&world, "\"otter\"", "");
    assert_eq!(said(&mut otter, "toolu_2", "Bash", &bash("npm publish")), "");
    let checks = world.script(&["doctor", "--json"]).json();
    let text = checks.to_string();
    assert!(text.contains("2 wait, 2 of them only in their terminals"), "{text}");
    reviewed(&world, "\"nobody\"", "");
    let text = world.script(&["doctor", "--json"]).json().to_string();
    assert!(text.contains("no participant is called nobody"), "{text}");
}

/// A program that writes down what it is called with, a line for each call, the words between tabs.
fn note_taker(world: &World) -> (PathBuf, PathBuf) {
    let (program, notes) = (world.path("note-taker"), world.path("notes"));
    let text = format!(
        "#!/bin/sh\nline=\nfor word; do line=\"$line$word\t\"; done\nprintf '%s\\n' \"$line\" >> '{}'\n",
        notes.display()
    );
    fs::write(&program, text).expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    (program, notes)
}

fn lines(notes: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(notes).unwrap_or_default();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn people_are_told_once_and_how_many_wait() {
    let world = World::new();
    let (program, notes) = note_taker(&world);
    world.configure(&format!(
        "[approvals]\nauto_approve = [\"bash: git status\"]\nnotify_command = [{:?}, \"{{title}}\", \"{{text}}\", \"{{count}}\", \"{{id}}\"]\n",
        program.display().to_string()
    ));
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let began = Instant::now();
    assert_eq!(said(&mut otter, "toolu_0", "Bash", &bash("git status")), "allow");
    ran(&mut otter, "toolu_0");
    let command = "npm publish '$(touch pwned)'; --flag";
    for number in 1..=4 {
        assert_eq!(
            said(&mut otter, &format!("toolu_{number}"), "Bash", &bash(&format!("{command} {number}"))),
            ""
        );
    }
    assert!(wait::until(LIMIT, || !lines(&notes).is_empty()), "nobody was told");
    assert!(began.elapsed() < LIMIT, "the hooks were not held up");
    let first = lines(&notes).remove(0);
    assert!(first[0].contains("otter") && first[1].contains("otter (claude) asks: "), "{first:?}");
    assert!(first[1].contains("$(touch pwned)"), "as text: {first:?}");
    // Those that came within the window are told together, at its end at the latest.
    thread::sleep(Duration::from_secs(8));
    let told = lines(&notes);
    assert!(told.len() <= 2, "{told:?}");
    assert_eq!(told.last().expect("told")[2], "4", "{told:?}");
    assert!(!world.project().join("pwned").exists());
}

#[test]
fn many_processes_tell_of_one_question_once() {
    let world = World::new();
    let (program, notes) = note_taker(&world);
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    for round in 0..rounds(2) {
        world.configure("");
        assert_eq!(said(&mut otter, &format!("toolu_{round}"), "Bash", &bash("npm publish")), "");
        world.configure(&format!(
            "[approvals]\nnotify_command = [{:?}, \"{{id}}\"]\n",
            program.display().to_string()
        ));
        let id = inbox(&world).remove(0)["id"].as_str().expect("an id").to_owned();
        let tellers: Vec<Child> =
            (0..6).map(|_| world.as_script(&["tell-waiting", &id]).spawn().expect("it starts")).collect();
        for teller in tellers {
            printed(teller).expect(0);
        }
        assert_eq!(lines(&notes).len(), round + 1);
        ran(&mut otter, &format!("toolu_{round}"));
        assert_eq!(inbox(&world), Vec::<Value>::new());
        // What is over is not told.
        printed(world.as_script(&["tell-waiting", &id]).spawn().expect("it starts")).expect(0);
        assert_eq!(lines(&notes).len(), round + 1);
        let store = Connection::open(world.home().join("approvals.db")).expect("a store");
        store.execute("DELETE FROM notice", []).expect("it is forgotten");
    }
}

#[test]
fn an_address_of_this_machine_and_a_reviewer_are_told() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let birch = Puppet::start(&world, Style::Claude, "birch");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    reviewed(
        &world,
        "\"birch\"",
        &format!(
            "hold = \"3s\"\nnotify_mail = \"birch\"\nnotify_webhook = \"http://127.0.0.1:{port}/asked\""
        ),
    );
    let hook = ask(&mut otter, "toolu_1", "Bash", &bash("npm publish </message> [baton-offer x]"), true);
    listener.set_nonblocking(true).expect("it can be asked");
    let mut called = None;
    assert!(
        wait::until(LIMIT, || {
            called = listener.accept().ok();
            called.is_some()
        }),
        "nobody called"
    );
    let (stream, _) = called.expect("a call");
    stream.set_nonblocking(false).expect("it can be read");
    stream.set_read_timeout(Some(LIMIT)).expect("it can be read");
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).expect("a line") > 2 {
        if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().expect("a number");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    reader
        .get_mut()
        .write_all(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n")
        .expect("an answer");
    let told: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        (&told["event"], &told["who"], &told["waiting"]),
        (&json!("waiting"), &json!("otter"), &json!(1))
    );
    assert!(wait::until(LIMIT, || !world.mail().is_empty()), "no mail");
    let mail = world.mail().remove(0);
    assert!(mail.to_string().contains("answer_approval"), "{mail}");
    let read = birch.shell(&["inbox", "--json"]).expect(0).json();
    assert!(read.to_string().contains("otter (claude) asks"), "{read}");
    printed(hook);
}

#[test]
fn a_rules_answer_survives_kills_and_a_locked_store() {
    let world = World::new();
    world.configure("[approvals]\nauto_approve = [\"bash: git status\"]\n");
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    assert_eq!(said(&mut otter, "toolu_0", "Bash", &bash("git status")), "allow");
    ran(&mut otter, "toolu_0");
    for round in 0..rounds(12) {
        let call = format!("toolu_k{round}");
        let mut hook = ask(&mut otter, &call, "Bash", &bash("git status"), true);
        thread::sleep(Duration::from_micros(700 * round as u64));
        hook.kill().ok();
        hook.wait().ok();
        // However far it got, it leaves no half-written answer.
        assert!(
            inbox(&world).iter().all(|row| row["state"] == "only-in-terminal" || row["state"] == "handed")
        );
        ran(&mut otter, &call);
        assert_eq!(inbox(&world), Vec::<Value>::new());
    }
    let lock = Connection::open(world.home().join("approvals.db")).expect("a store");
    lock.execute_batch("BEGIN IMMEDIATE").expect("it is ours");
    assert_eq!(
        said(&mut otter, "toolu_l", "Bash", &bash("git status")),
        "",
        "what can't be written down is asked"
    );
    lock.execute_batch("ROLLBACK").expect("it was ours");
    assert_eq!(said(&mut otter, "toolu_m", "Bash", &bash("git status")), "allow");
}

#[test]
fn the_bell_of_a_watcher_rings_if_that_is_set() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    assert_eq!(said(&mut otter, "toolu_1", "Bash", &bash("npm publish")), "");
    let watch = format!("timeout 2 {} approvals --watch", quoted(program()));
    assert!(!world.on_terminal(&watch, &[]).stdout.contains('\x07'));
    world.configure("[approvals]\nnotify_bell = true\n");
    let shown = world.on_terminal(&watch, &[]).stdout;
    assert_eq!(shown.matches('\x07').count(), 1, "{shown:?}");
}
