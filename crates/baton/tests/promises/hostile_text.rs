//! S17: text that agents, jobs, repositories and arguments bring is harmless on the person's
//! terminal, whatever command shows it.
//!
//! The commands are found by walking `--help`, so a new one is covered. Hostile text is in every
//! field that a stranger controls, and then, column by column, in everything that is stored.

use crate::jobs::Jobs;
use crate::puppet::{Puppet, Style};
use crate::world::{World, program, quoted, run};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A clipboard, a title, a cleared screen, 8-bit controls, marks of direction, what shows nothing,
/// and a forged row.
const HOSTILE: &str = "x\u{1b}]52;c;cm0=\u{7}\u{1b}]0;t\u{1b}\\\u{1b}[2J\u{1b}[8m\u{9b}2J\u{90}q\u{202e}\u{2066}\u{200b}\u{200f}\u{61c}\u{e0041}\u{fffa}\u{2028}\u{7f}\rCR\nFAKE-ROW";

/// The sequences that baton writes itself: its tones, and what draws a spinner.
const OWN: [&str; 6] = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];
const SPINNER: [&str; 3] = ["\u{1b}[2K", "\u{1b}[1A", "\u{1b}[?25"];

/// Commands whose output is foreign text, on its own lines.
const WHOLE_TEXTS: [&str; 7] = ["mail", "inbox", "ask", "result", "logs", "wait", "status"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Pipe,
    Terminal,
}

#[track_caller]
fn check(arguments: &[&str], place: Where, printed: &str) {
    let mut rest = printed.to_owned();
    if place == Where::Terminal {
        for own in OWN.iter().chain(&SPINNER) {
            rest = rest.replace(own, "");
        }
        rest = rest.replace("\r\n", "\n").replace('\r', "");
    }
    let acts = |c: char| {
        c != '\n'
            && c != '\t'
            && (c.is_control()
                || "\u{202e}\u{2066}\u{200b}\u{200f}\u{61c}\u{e0041}\u{fffa}\u{2028}".contains(c))
    };
    if let Some(at) = rest.find(acts) {
        let near: String = rest[at..].chars().take(30).collect();
        panic!("{arguments:?} prints {near:?} in:\n{}", rest.escape_debug());
    }
    let is_whole = arguments.iter().any(|word| WHOLE_TEXTS.contains(word));
    let is_row = |line: &str| line.starts_with("FAKE-ROW");
    assert!(is_whole || !rest.lines().any(is_row), "{arguments:?} prints a row of a stranger:\n{rest}");
}

/// Runs a command as a script with its output in a pipe, or on a terminal.
fn shown(jobs: &Jobs, arguments: &[&str], place: Where) -> String {
    let done = match place {
        Where::Pipe => run(jobs.command(arguments), b""),
        Where::Terminal => {
            let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
            let line = format!("env -u NO_COLOR {} {} </dev/null", quoted(program()), words.join(" "));
            jobs.world.on_terminal(&line, &[])
        }
    };
    done.stdout + &done.stderr
}

fn try_everywhere(jobs: &Jobs, arguments: &[&str]) {
    for place in [Where::Pipe, Where::Terminal] {
        check(arguments, place, &shown(jobs, arguments, place));
    }
    let json = [arguments, &["--json"]].concat();
    check(&json, Where::Pipe, &shown(jobs, &json, Where::Pipe));
}

/// A command as its help shows it: its words, its subcommands, its options that take a value.
struct Shown {
    words: Vec<String>,
    commands: Vec<String>,
    options: Vec<String>,
}

impl Shown {
    fn of(world: &World, words: &[String]) -> Self {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = run(world.baton(&arguments), b"").expect(0).stdout;
        let section = |name: &str| {
            let rest = help.split_once(&format!("\n{name}:\n")).map_or("", |(_, rest)| rest);
            rest.split("\n\n").next().unwrap_or_default().to_owned()
        };
        let arguments: Vec<&str> =
            ["help"].into_iter().chain(words.iter().map(String::as_str)).chain(["--json"]).collect();
        let document = world.script(&arguments).expect(0).json();
        let below = document["commands"].as_array().into_iter().flatten();
        let commands = below.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect();
        let option = |line: &str| {
            let (name, _) = line.trim().split_once(" <")?;
            name.split(", ").last().filter(|name| name.starts_with("--")).map(str::to_owned)
        };
        let options = section("Options").lines().filter_map(option).collect();
        Self { words: words.to_owned(), commands, options }
    }
}

/// Every command, the groups included.
fn commands(world: &World) -> Vec<Shown> {
    let mut found = vec![Shown::of(world, &[])];
    let mut at = 0;
    while at < found.len() {
        for name in found[at].commands.clone() {
            // A protocol for a program, not text for people; `hook` is no word of the command line.
            if !["hook", "mcp", "link"].contains(&&*name) {
                let words = [&found[at].words[..], &[name]].concat();
                found.push(Shown::of(world, &words));
            }
        }
        at += 1;
    }
    found
}

/// An agent whose every word is hostile.
fn hostile_agent(jobs: &Jobs) {
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": HOSTILE, "stop_reason": "end_turn"});
    let fault =
        json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "result": HOSTILE});
    let start = json!({"type": "system", "subtype": "init", "session_id": HOSTILE, "model": HOSTILE});
    let say = json!({"type": "assistant", "message": {"id": "m1", "model": HOSTILE, "content": [{"type": "text", "text": HOSTILE}], "stop_reason": "end_turn"}});
    let tool = json!({"type": "assistant", "message": {"id": "m1", "content": [{"type": "tool_use", "id": "t1", "name": HOSTILE, "input": {"command": HOSTILE}}], "stop_reason": "tool_use"}});
    let ask = json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": HOSTILE, "description": HOSTILE}, "tool_use_id": "t1"}});
    for (name, lines) in [
        ("done", vec![&start, &tool, &say, &result]),
        ("fail", vec![&start, &say, &fault]),
        ("ask", vec![&start, &ask]),
    ] {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(jobs.file(name), text).unwrap();
    }
    fs::write(jobs.file("noise"), HOSTILE).unwrap();
    let program = "#!/bin/sh\nread -r prompt\ncat \"$HOME/noise\" >&2\n\
        case \"$prompt\" in *DO-ASK*) cat \"$HOME/ask\" ;; *DO-FAIL*) cat \"$HOME/fail\" ;; *) cat \"$HOME/done\" ;; esac\n\
        while read -r line; do :; done\n";
    baton_testkit::process::write_program(&jobs.world.path("bin/claude"), program.as_bytes());
}

/// What strangers can write without baton: files of the home, of the project and of the agents.
fn hostile_files(jobs: &Jobs) {
    let home = jobs.world.home();
    fs::write(home.join("hook.log"), format!("2026-11-18T00:00:00Z {HOSTILE}\n")).unwrap();
    let entry = json!({"at": HOSTILE, "agent": HOSTILE, "session": HOSTILE, "tool": HOSTILE, "rule": HOSTILE, "decision": HOSTILE});
    fs::write(home.join("guard.log"), format!("{entry}\n")).unwrap();
    let folder = jobs.file(".claude/projects").join(HOSTILE);
    fs::create_dir_all(&folder).unwrap();
    let line = json!({"type": "assistant", "sessionId": HOSTILE, "cwd": HOSTILE, "timestamp": "2026-11-18T00:00:00Z", "message": {"id": HOSTILE, "content": [{"type": "tool_use", "id": HOSTILE, "name": "Bash", "input": {"command": format!("sudo rm -rf / {HOSTILE}")}}]}});
    fs::write(folder.join(format!("{HOSTILE}.jsonl")), format!("{line}\n")).unwrap();
    fs::write(jobs.world.project().join(HOSTILE), HOSTILE).unwrap();
}

struct Hostile {
    jobs: Jobs,
    messages: Vec<String>,
    ended: Vec<String>,
    asking: String,
}

impl Hostile {
    fn new() -> Self {
        let jobs = Jobs::new();
        hostile_agent(&jobs);
        let start = |prompt: String| {
            let done =
                run(jobs.command(&["job", "start", "claude", &prompt, "--allow", "ask", "--json"]), b"");
            done.expect(0).json()["job_id"].as_str().unwrap().to_owned()
        };
        let ended = ["", "DO-FAIL"].map(|word| start(format!("{word} {HOSTILE}"))).to_vec();
        let asking = start(format!("DO-ASK {HOSTILE}"));
        jobs.until(&asking, "blocked");
        for id in &ended {
            run(jobs.command(&["job", "wait", id]), b"");
        }
        let messages = {
            let sender = Puppet::start(&jobs.world, Style::Claude, "ada");
            let reader = Puppet::start(&jobs.world, Style::Codex, "lin");
            sender.shell(&["tag", "add", HOSTILE]);
            // Events and tools that no table knows.
            for event in [HOSTILE, "PreToolUse"] {
                sender.hook(&sender.payload(
                    event,
                    json!({"tool_name": HOSTILE, "cwd": format!("/{HOSTILE}"), "model": HOSTILE}),
                ));
            }
            let sent = sender.shell(&["send", "lin", HOSTILE, "--json"]);
            let asked = reader.shell(&["ask", "ada", HOSTILE, "--timeout", "1s", "--json"]);
            let ids = [sent.expect(0), asked.expect(2)];
            ids.iter().map(|done| done.json()["message_id"].as_str().unwrap().to_owned()).collect()
        };
        hostile_files(&jobs);
        Self { jobs, messages, ended, asking }
    }

    /// What shows the most, with ids that are there.
    fn views(&self) -> Vec<Vec<&str>> {
        let mut views: Vec<Vec<&str>> = [
            "who --all",
            "whoami",
            "mail --all",
            "log",
            "inbox --peek",
            "job list --all",
            "job status --all",
            "approvals",
            "config",
            "doctor",
            "guard log",
            "guard list",
            "guard replay",
        ]
        .iter()
        .map(|line| line.split(' ').collect())
        .collect();
        views.extend(self.messages.iter().map(|id| vec!["mail", id]));
        for id in self.ended.iter().chain([&self.asking]) {
            views.extend(["status", "logs"].map(|word| vec!["job", word, id]));
        }
        for id in &self.ended {
            views.extend([
                vec!["job", "result", id],
                vec!["job", "wait", id],
                vec!["job", "wait", "--follow", id],
            ]);
        }
        views.push(vec!["job", "wait", "--max-wait", "1s", &self.asking]);
        views
    }
}

#[test]
fn s17_no_command_shows_what_a_terminal_obeys() {
    let hostile = Hostile::new();
    for view in hostile.views() {
        try_everywhere(&hostile.jobs, &view);
    }
    let said = shown(&hostile.jobs, &["job", "status", &hostile.asking], Where::Pipe);
    assert!(
        said.contains(r"\u{1b}]52") || said.contains(r"\x1b]52"),
        "the question is shown by its codes: {said}"
    );
    for denied in ["approve", "deny"] {
        try_everywhere(&hostile.jobs, &[denied, &hostile.asking]);
    }
    try_everywhere(&hostile.jobs, &["job", "cancel", &hostile.asking]);
}

#[test]
fn s17_no_argument_is_echoed_as_it_came() {
    let hostile = Hostile::new();
    let jobs = &hostile.jobs;
    let all = commands(&jobs.world);
    assert!(all.len() > 40, "help shows its commands: {}", all.len());
    let option = format!("--{HOSTILE}");
    for command in &all {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let with =
            |more: &[&str]| [&words[..], more].concat().iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut lines = vec![with(&[HOSTILE]), with(&[HOSTILE, HOSTILE]), with(&[&option])];
        lines.extend(command.options.iter().map(|name| with(&[name, HOSTILE])));
        lines.extend(command.options.iter().map(|name| with(&[name, HOSTILE, HOSTILE, "x"])));
        for (at, line) in lines.iter().enumerate() {
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let place = if at < 3 { Where::Terminal } else { Where::Pipe };
            check(&line, place, &shown(jobs, &line, place));
            let json = [&line[..], &["--json"]].concat();
            check(&json, Where::Pipe, &shown(jobs, &json, Where::Pipe));
        }
    }
}

#[test]
fn s17_no_setting_is_echoed_as_it_came() {
    let jobs = Jobs::new();
    let hostile = json!(HOSTILE);
    for text in [
        format!("{hostile} = 1\n"),
        format!("[limits]\n{hostile} = 1\n"),
        format!("[limits]\nhops = {hostile}\n"),
        format!("[guard]\nmode = {hostile}\n"),
        format!("[guard]\ndisable = [{hostile}]\n"),
        format!("[approvals]\nauto_approve = [{hostile}]\nnotify_command = [{hostile}]\n"),
        format!("[approvals.reviewers]\n{hostile} = [{hostile}]\n"),
        format!("broken {HOSTILE}"),
    ] {
        jobs.world.configure(&text);
        for view in
            [&["config"][..], &["doctor"], &["guard", "list"], &["who"], &["guard", "explain", "--", HOSTILE]]
        {
            try_everywhere(&jobs, view);
        }
    }
}

/// Every column that holds text, in every table of a database.
fn columns(file: &Path) -> BTreeSet<(String, String)> {
    let database = rusqlite::Connection::open(file).unwrap();
    let list = |query: &str| -> Vec<String> {
        let mut rows = database.prepare(query).unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().filter_map(Result::ok).collect()
    };
    let mut found = BTreeSet::new();
    for table in list("SELECT name FROM sqlite_schema WHERE type = 'table'") {
        for column in list(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            let texts = list(&format!("SELECT typeof(\"{column}\") FROM \"{table}\""));
            if texts.iter().any(|kind| kind == "text") {
                found.insert((table.clone(), column));
            }
        }
    }
    found
}

#[test]
fn s17_nothing_stored_is_shown_as_it_is() {
    let hostile = Hostile::new();
    let jobs = &hostile.jobs;
    run(jobs.command(&["job", "cancel", &hostile.asking]), b"").expect(0);
    let views: Vec<Vec<&str>> = hostile
        .views()
        .into_iter()
        .filter(|view| !["config", "guard", "doctor"].contains(&view[0]))
        .collect();
    let copy = jobs.world.save();
    let files: Vec<_> = fs::read_dir(jobs.world.home())
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .collect();
    let mut changed = 0;
    for file in &files {
        for (table, column) in columns(file) {
            let database = rusqlite::Connection::open(file).unwrap();
            let update = format!(
                "UPDATE OR IGNORE \"{table}\" SET \"{column}\" = ?1 || rowid WHERE typeof(\"{column}\") = 'text'"
            );
            let poisoned = database.execute(&update, [HOSTILE]).is_ok_and(|rows| rows > 0);
            drop(database);
            if poisoned {
                changed += 1;
                for view in &views {
                    check(view, Where::Pipe, &shown(jobs, view, Where::Pipe));
                }
            }
            jobs.world.restore(&copy);
        }
    }
    assert!(changed > 20, "so few columns: {changed}");
}
