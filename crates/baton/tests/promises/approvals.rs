//! Questions of sessions: one inbox, the first answer, handed over once, and never reported before
//! it took effect.
//!
//! A scripted Claude Code calls the real hook; what it does with the answer it writes into its
//! transcript, as the real one does.

use crate::puppet::{Puppet, Style};
use crate::world::{Done, World, done, rounds, run};
use baton_testkit::process::write_program;
use baton_testkit::wait;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

const LIMIT: Duration = wait::HANG;
const COMMAND: &str = "npm publish --access public";

/// Whether a person sits in front of a session, as Claude Code tells its hooks.
const ATTENDED: &str = "CLAUDE_CODE_SESSION_ATTENDED";

/// One question, with the hook that was asked.
struct Asked<'p, 'w> {
    puppet: &'p mut Puppet<'w>,
    call: String,
    hook: Option<Child>,
    id: String,
}

impl<'p, 'w> Asked<'p, 'w> {
    /// The session asks, and the question is in the inbox.
    fn new(puppet: &'p mut Puppet<'w>, call: &str, attended: bool) -> Self {
        Self::of(puppet, call, COMMAND, attended)
    }

    /// The same about another command.
    fn of(puppet: &'p mut Puppet<'w>, call: &str, command: &str, attended: bool) -> Self {
        Self::below(puppet, (call, command), attended, None)
    }

    /// The same, with a program that runs the hook below itself.
    fn below(
        puppet: &'p mut Puppet<'w>,
        (call, command): (&str, &str),
        attended: bool,
        agent: Option<&Path>,
    ) -> Self {
        let input = json!({"command": command, "description": call});
        puppet.paper.raw(json!({"type": "assistant", "message": {"id": format!("m-{call}"), "role": "assistant", "model": "claude-opus-5-5",
            "content": [{"type": "tool_use", "id": call, "name": "Bash", "input": input}]}}));
        puppet.paper.flush();
        let more = json!({"tool_name": "Bash", "tool_input": input, "permission_suggestions": [
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm publish:*"}], "behavior": "allow", "destination": "session"}]});
        let payload = puppet.payload("PermissionRequest", more);
        Self::with(puppet, call, &payload, attended, agent)
    }

    /// The same with a given payload.
    fn with(
        puppet: &'p mut Puppet<'w>,
        call: &str,
        payload: &[u8],
        attended: bool,
        agent: Option<&Path>,
    ) -> Self {
        let before: Vec<String> = ids(puppet.world);
        let mut command = match agent {
            Some(agent) => {
                let hook = puppet.hook_command();
                let mut command = puppet.world.command(agent);
                command.arg(hook.get_program()).args(hook.get_args());
                command
            }
            None => puppet.hook_command(),
        };
        command.env(ATTENDED, if attended { "1" } else { "0" });
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut hook = command.spawn().expect("the hook starts");
        hook.stdin.take().expect("a pipe").write_all(payload).expect("it reads");
        let mut id = String::new();
        let found = wait::until(LIMIT, || {
            id = ids(puppet.world).into_iter().find(|id| !before.contains(id)).unwrap_or_default();
            !id.is_empty()
        });
        assert!(found, "no question: {:?}", puppet.world.hook_log());
        Self { puppet, call: call.to_owned(), hook: Some(hook), id }
    }

    /// What its hook printed.
    fn printed(&mut self) -> Done {
        let output = self.hook.take().expect("asked once").wait_with_output().expect("its output");
        done(output.status, &output.stdout, &output.stderr)
    }

    /// The tool has run, or was refused, as the transcript shows it.
    fn settles(&mut self, refused: Option<&str>) {
        let content = json!([{"type": "tool_result", "tool_use_id": self.call, "is_error": refused.is_some(), "content": refused.unwrap_or("done")}]);
        self.puppet.paper.raw(json!({"type": "user", "timestamp": now(), "toolDenialKind": refused.map(|_| "permission-rule"), "message": {"role": "user", "content": content}}));
        self.puppet.paper.flush();
    }
}

/// As Claude Code writes it.
pub fn now() -> String {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time after 1970");
    let millis = i64::try_from(since.as_millis()).expect("a time before the year 292278994");
    let seconds = baton_core::time::Moment(millis).to_rfc3339();
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), millis % 1000)
}

fn inbox(world: &World) -> Vec<Value> {
    let shown = world.script(&["approvals", "--json"]).expect(0).json();
    shown.as_array().expect("a list").clone()
}

fn ids(world: &World) -> Vec<String> {
    inbox(world)
        .iter()
        .filter(|row| row["tool"] != Value::Null)
        .map(|row| row["id"].as_str().expect("an id").to_owned())
        .collect()
}

fn state(world: &World, id: &str) -> String {
    let found = inbox(world).into_iter().find(|row| row["id"] == id);
    found.map_or("closed".to_owned(), |row| row["state"].as_str().expect("a state").to_owned())
}

/// The person runs a command; its exit code and its answer.
fn person(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    let done = world.person(&[arguments, &["--json"]].concat());
    // A terminal shows both streams: the document is the line that is one.
    let document = done.stdout.lines().find_map(|line| serde_json::from_str(line.trim()).ok());
    (done.code, document.unwrap_or_else(|| panic!("{done:?}")))
}

#[track_caller]
fn refuses(world: &World, arguments: &[&str], code: &str) {
    let (exit, document) = person(world, arguments);
    assert_eq!((exit, &document["error"]["code"]), (Some(1), &json!(code)), "{document}");
}

fn decision(printed: &Done) -> Value {
    printed.json()["hookSpecificOutput"]["decision"].clone()
}

#[test]
fn a_held_question_is_answered_from_anywhere_and_counts_when_the_tool_moved_on() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    for (number, words) in [("1", None), ("2", Some("not on a Friday"))] {
        let mut asked = Asked::new(&mut otter, &format!("toolu_{number}"), false);
        let row = inbox(&world).remove(0);
        let shown = [&row["who"], &row["agent"], &row["state"], &row["kind"], &row["tool"]];
        assert_eq!(shown, ["otter", "claude", "waiting", "permission", "Bash"], "{row}");
        assert!(row["what"].as_str().is_some_and(|what| what.contains(COMMAND)), "{row}");
        assert!(row["always"].as_str().is_some_and(|always| always.contains("npm publish")), "{row}");
        let id = asked.id.clone();
        thread::scope(|scope| {
            let answering = scope.spawn(|| match words {
                None => person(&world, &["approve", &id]),
                Some(words) => person(&world, &["deny", &id, "--reason", words]),
            });
            let decision = decision(&asked.printed());
            let expected = words.map_or(json!("allow"), |_| json!("deny"));
            assert_eq!((&decision["behavior"], decision["message"].as_str()), (&expected, words));
            // The agent has the answer, and does nothing yet.
            thread::sleep(Duration::from_millis(300));
            assert!(!answering.is_finished(), "reported before it took effect");
            asked.settles(words);
            let (exit, answer) = answering.join().expect("it ends");
            assert_eq!(exit, Some(0), "{answer}");
            assert_eq!(answer["answer"], words.map_or("approved", |_| "denied"));
        });
        assert_eq!(state(&world, &id), "closed");
        refuses(&world, &["approve", &id], "already-answered");
    }
    refuses(&world, &["approve", "a000000000000"], "unknown-approval");
    refuses(&world, &["approve", "x"], "unknown-approval");
}

#[test]
fn of_two_people_the_first_is_heard_and_the_other_told_so() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    for round in 0..rounds(4) {
        let mut asked = Asked::new(&mut otter, &format!("toolu_{round}"), false);
        let id = asked.id.clone();
        let (yes, no) = thread::scope(|scope| {
            let yes = scope.spawn(|| person(&world, &["approve", &id]));
            let no = scope.spawn(|| person(&world, &["deny", &id]));
            let decision = decision(&asked.printed());
            let allowed = decision["behavior"] == "allow";
            asked.settles((!allowed).then_some("the person said no"));
            let (yes, no) = (yes.join().expect("it ends"), no.join().expect("it ends"));
            assert_eq!(yes.0 == Some(0), allowed, "{yes:?} {no:?}");
            (yes, no)
        });
        let (won, lost) = if yes.0 == Some(0) { (yes, no) } else { (no, yes) };
        assert_eq!((won.0, lost.0), (Some(0), Some(1)), "{won:?} {lost:?}");
        assert_eq!(lost.1["error"]["code"], "already-answered");
    }
}

#[test]
fn only_the_person_answers() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let peer = Puppet::start(&world, Style::Claude, "peer");
    let mut asked = Asked::new(&mut otter, "toolu_1", false);
    let id = asked.id.clone();
    world.script(&["approve", &id, "--json"]).expect_error(3, "not-a-person");
    for (name, command) in [
        ("its own", asked.puppet.shell_command(&["approve", &id, "--json"])),
        ("a peer's", peer.shell_command(&["deny", &id, "--json"])),
    ] {
        let done = run(command, b"");
        assert_eq!(done.code, Some(3), "{name}: {done:?}");
    }
    assert_eq!(state(&world, &id), "waiting");
    asked.hook.as_mut().expect("held").kill().expect("it can be killed");
    asked.printed();
}

#[test]
fn a_person_at_the_terminal_waits_only_while_a_person_watches_the_inbox() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::new(&mut otter, "toolu_1", true);
    assert_eq!(asked.printed().stdout, "", "its own dialog comes at once");
    let id = asked.id.clone();
    assert_eq!(state(&world, &id), "only-in-terminal");
    refuses(&world, &["approve", &id], "only-in-terminal");
    asked.settles(None);
    assert_eq!(state(&world, &id), "closed");
    refuses(&world, &["approve", &id], "already-answered");

    let mut watcher = world.as_script(&["approvals", "--watch", "--json"]);
    let mut watcher = watcher.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    assert!(wait::until(LIMIT, || world.home().join("bell/approvals.watched").exists()));
    let mut asked = Asked::new(&mut otter, "toolu_2", true);
    assert_eq!(state(&world, &asked.id), "waiting");
    // Its person is faster, at the dialog that Claude Code shows beside a held hook.
    asked.settles(None);
    assert_eq!(asked.printed().stdout, "");
    assert_eq!(state(&world, &asked.id), "closed");
    refuses(&world, &["approve", &asked.id], "already-answered");
    kill_group(&mut watcher);
    let shown = String::from_utf8(watcher.wait_with_output().expect("its output").stdout).expect("text");
    let events: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |event: &str| {
        events.iter().filter(|row| row["event"] == event && row["id"] == asked.id.as_str()).count()
    };
    assert_eq!((of("asked"), of("over")), (1, 1), "{shown}");
}

/// `setsid --wait` is between the test and the program.
fn kill_group(child: &mut Child) {
    let below =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
    for pid in
        below.split_whitespace().filter_map(|pid| pid.parse().ok()).filter_map(rustix::process::Pid::from_raw)
    {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    }
    child.kill().ok();
}

#[test]
fn a_killed_hook_holds_nothing_and_a_dead_asker_is_named() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::new(&mut otter, "toolu_1", false);
    asked.hook.as_mut().expect("held").kill().expect("it can be killed");
    asked.printed();
    let id = asked.id.clone();
    // No process is known to have asked, so it is over.
    assert_eq!(state(&world, &id), "closed");
    // Asked again: another question, and the old id does not answer it.
    let agent = world.path("bin/claude");
    write_program(&agent, b"#!/bin/sh\n\"$@\"\nexit $?\n");
    let mut again = Asked::below(&mut otter, ("toolu_2", COMMAND), false, Some(&agent));
    assert_ne!(again.id, id);
    assert_eq!(state(&world, &again.id), "waiting");
    again.hook.as_mut().expect("held").kill().expect("its agent can be killed");
    assert_eq!(again.printed().stdout, "", "a hook whose agent is gone lets go");
    refuses(&world, &["approve", &again.id], "asker-gone");
    assert_eq!(inbox(&world), Vec::<Value>::new());
}

#[test]
fn the_hold_ends_and_what_follows_closes_the_question() {
    let world = World::new();
    world.configure("[approvals]\nhold = \"1s\"\n");
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::new(&mut otter, "toolu_1", false);
    assert_eq!(asked.printed().stdout, "");
    assert_eq!(state(&world, &asked.id), "only-in-terminal");
    let id = asked.id.clone();
    otter.quiet_hook("Stop", json!({"stop_hook_active": false}));
    assert_eq!(state(&world, &id), "closed");
}

#[test]
fn an_answer_that_is_not_seen_to_be_taken_is_not_reported_as_done() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::new(&mut otter, "toolu_1", false);
    let id = asked.id.clone();
    thread::scope(|scope| {
        let answering = scope.spawn(|| person(&world, &["approve", &id]));
        assert_eq!(decision(&asked.printed())["behavior"], "allow");
        let (exit, document) = answering.join().expect("it ends");
        assert_eq!((exit, &document["error"]["code"]), (Some(1), &json!("not-confirmed")), "{document}");
    });
    // A no can't follow a yes that may have landed.
    refuses(&world, &["deny", &id], "already-answered");
    asked.settles(None);
    assert_eq!(state(&world, &id), "closed");
}

#[test]
fn a_locked_store_keeps_no_agent_from_its_own_dialog() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::new(&mut otter, "toolu_1", false);
    let lock = Connection::open(world.home().join("approvals.db")).expect("a store");
    lock.execute_batch("BEGIN IMMEDIATE").expect("it is ours");
    let id = asked.id.clone();
    refuses(&world, &["approve", &id], "store-locked");
    let more = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    let payload = asked.puppet.payload("PermissionRequest", more);
    let mut command = asked.puppet.hook_command();
    command.env(ATTENDED, "0");
    let silent = run(command, &payload).expect(0);
    assert_eq!(silent.stdout, "");
    assert!(world.hook_log().iter().any(|line| line.contains("store-locked")), "{:?}", world.hook_log());
    lock.execute_batch("ROLLBACK").expect("it was ours");
    assert_eq!(state(&world, &id), "waiting", "the question stands");
    asked.hook.as_mut().expect("held").kill().expect("it can be killed");
    asked.printed();
}

#[test]
fn hooks_of_a_job_leave_its_questions_to_its_worker() {
    let world = World::new();
    let otter = Puppet::start(&world, Style::Claude, "otter");
    let more = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    let mut command = otter.hook_command();
    command.env(ATTENDED, "0").env("BATON_JOB", "j0000000000000");
    let done = run(command, &otter.payload("PermissionRequest", more)).expect(0);
    assert_eq!(done.stdout, "");
    assert_eq!(inbox(&world), Vec::<Value>::new());
}

/// Two lines, of which the second does the harm, and a long third one; more than forty lines in
/// all.
fn foul() -> String {
    format!("echo harmless\nrm -rf /important\necho {}\n{}echo last", "x".repeat(300), "true\n".repeat(60))
}

#[test]
fn s1_all_of_a_command_is_on_every_surface_and_what_is_cut_says_so() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::of(&mut otter, "toolu_1", &foul(), false);
    let row = inbox(&world).remove(0);
    assert_eq!(row["detail"], foul(), "{row}");
    assert!(
        row["what"].as_str().is_some_and(|what| what.starts_with("Bash: echo harmless … (+63 lines, ")),
        "{row}"
    );
    assert!(row["digest"].as_str().is_some_and(|digest| digest.len() == 32), "{row}");
    let table = world.script(&["approvals"]).expect(0).stdout;
    assert!(table.contains("echo harmless … (+63 lines") && table.contains("baton approvals ID"), "{table}");
    let whole = world.script(&["approvals", &asked.id]).expect(0).stdout;
    for line in ["  | rm -rf /important", "  | echo last"] {
        assert!(whole.contains(line), "{whole}");
    }
    assert!(whole.contains(&"x".repeat(300)), "{whole}");
    asked.hook.as_mut().expect("held").kill().expect("it can be killed");
    asked.printed();
}

#[test]
fn s18_the_watch_cuts_nothing() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::of(&mut otter, "toolu_1", &foul(), false);
    let file = world.path("watched");
    let mut watcher = world.as_script(&["approvals", "--watch"]);
    let output = std::fs::File::create(&file).expect("a file");
    let mut watcher = watcher.stdin(Stdio::null()).stdout(output).spawn().expect("it starts");
    let shown = || std::fs::read_to_string(&file).unwrap_or_default();
    let whole = wait::until(LIMIT, || shown().contains("  | echo last") && shown().contains("digest: "));
    kill_group(&mut watcher);
    watcher.wait().expect("it ends");
    assert!(whole, "{}", shown());
    assert!(shown().contains("  | rm -rf /important") && shown().contains(&"x".repeat(300)), "{}", shown());
    asked.hook.as_mut().expect("held").kill().expect("it can be killed");
    asked.printed();
}

#[test]
fn s1_what_was_not_shown_whole_is_not_approved_unseen_and_a_digest_counts_for_that_alone() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::of(&mut otter, "toolu_1", "echo harmless\nrm -rf /important", false);
    let id = asked.id.clone();
    // The terminal of the person says nothing: that is a no.
    let (exit, document) = person(&world, &["approve", &id]);
    assert_eq!((exit, &document["error"]["code"]), (Some(1), &json!("declined")), "{document}");
    let (exit, document) = person(&world, &["approve", &id, "--digest", &"0".repeat(32)]);
    assert_eq!((exit, &document["error"]["code"]), (Some(3), &json!("question-changed")), "{document}");
    assert_eq!(state(&world, &id), "waiting");
    let digest = inbox(&world)[0]["digest"].as_str().expect("a digest").to_owned();
    thread::scope(|scope| {
        let answering = scope.spawn(|| person(&world, &["approve", &id, "--digest", &digest]));
        assert_eq!(decision(&asked.printed())["behavior"], "allow");
        asked.settles(None);
        let (exit, answer) = answering.join().expect("it ends");
        assert_eq!((exit, &answer["digest"]), (Some(0), &json!(digest)), "{answer}");
    });
}

#[test]
fn s3_the_beginning_of_an_id_is_shown_and_confirmed() {
    let world = World::new();
    if !world.has_person() {
        return;
    }
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let mut asked = Asked::new(&mut otter, "toolu_1", false);
    let (exit, document) = person(&world, &["approve", &asked.id[..6]]);
    assert_eq!((exit, &document["error"]["code"]), (Some(1), &json!("declined")), "{document}");
    assert_eq!(state(&world, &asked.id), "waiting");
    asked.hook.as_mut().expect("held").kill().expect("it can be killed");
    asked.printed();
}

/// The payload of a question about a command, in another folder than the project.
fn elsewhere(puppet: &Puppet<'_>, folder: &Path, input: &Value) -> Vec<u8> {
    let payload = puppet.payload("PermissionRequest", json!({"tool_name": "Bash", "tool_input": input}));
    let mut payload: Value = serde_json::from_slice(&payload).expect("a document");
    payload["cwd"] = json!(folder);
    payload.to_string().into_bytes()
}

#[test]
fn s1_a_line_without_the_folder_or_the_guards_reason_is_not_whole() {
    let world = World::new();
    let mut otter = Puppet::start(&world, Style::Claude, "otter");
    let below = world.project().join("deep");
    std::fs::create_dir_all(&below).expect("a folder");
    let harmless = json!({"command": "cp a.conf b.conf"});
    let guarded = json!({"command": "git push --force origin main"});
    let unclear = json!({"description": "harmless"});
    let home = world.project();
    let rows: [(&Path, &Value, &str); 5] = [
        (Path::new("/etc"), &harmless, "runs in /etc"),
        (&below, &harmless, "runs in "),
        (&home, &guarded, "the guard says: "),
        (Path::new("/etc"), &guarded, "the guard says: "),
        (&home, &unclear, "the guard says: "),
    ];
    for (number, (folder, input, says)) in rows.into_iter().enumerate() {
        let payload = elsewhere(&otter, folder, input);
        let mut asked = Asked::with(&mut otter, &format!("toolu_{number}"), &payload, false, None);
        let row = inbox(&world).remove(0);
        let what = row["what"].as_str().expect("a line").to_owned();
        assert_eq!(row["what_is_whole"], false, "{row}");
        assert!(what.contains(" … (") && what.contains(says), "{row}");
        let table = world.script(&["approvals"]).expect(0).stdout;
        assert!(table.contains(says) && table.contains("baton approvals ID"), "{table}");
        if world.has_person() {
            // Nothing is typed at the terminal: that is a no.
            let (exit, document) = person(&world, &["approve", &asked.id]);
            assert_eq!((exit, &document["error"]["code"]), (Some(1), &json!("declined")), "{document}");
            assert_eq!(state(&world, &asked.id), "waiting");
        }
        asked.hook.as_mut().expect("held").kill().expect("it can be killed");
        asked.printed();
        assert_eq!(state(&world, &asked.id), "closed");
    }
    let payload = elsewhere(&otter, &home, &harmless);
    let mut asked = Asked::with(&mut otter, "toolu_home", &payload, false, None);
    let row = inbox(&world).remove(0);
    assert_eq!(
        (&row["what"], &row["what_is_whole"]),
        (&json!("Bash: cp a.conf b.conf"), &json!(true)),
        "{row}"
    );
    asked.hook.as_mut().expect("held").kill().expect("it can be killed");
    asked.printed();
}
