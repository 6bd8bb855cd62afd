//! `baton review` and J31, the stop gate, against the real program with a scripted reviewer: the
//! text of the change says what it answers.

use crate::puppet::{Moment, Puppet, Style};
use crate::world::{Done, World, run};
use baton_testkit::wait;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Instant;

/// Speaks stream-json. The change is in its prompt.
const REVIEWER: &str = r#"#!/bin/sh
read -r prompt
printf '%s\n' "$prompt" >> "$HOME/prompts"
printf '%s\n' "$*" >> "$HOME/arguments"
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
end() {
    printf '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"%s"}],"stop_reason":"end_turn"}}\n' "$1"
    printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","stop_reason":"end_turn"}\n' "$1"
}
case "$prompt" in
*HANGS-FOR-EVER*) sleep 600 ;;
*SAYS-NONSENSE*) end 'Looks good to me!' ;;
*FAILS-LOUDLY*) echo '{"type":"result","subtype":"error_during_execution","is_error":true,"result":"API Error: 429 rate limit"}' ;;
*HAS-A-BUG*) end 'Here:\n```json\n{\"verdict\":\"request-changes\",\"summary\":\"one bug\",\"findings\":[{\"severity\":\"low\",\"file\":\"a.txt\",\"lines\":null,\"confidence\":0.5,\"title\":\"taste\",\"body\":\"b\",\"recommendation\":\"\"},{\"severity\":\"high\",\"file\":\"a.txt\",\"lines\":\"1-2\",\"confidence\":0.9,\"title\":\"the bug\",\"body\":\"it breaks\",\"recommendation\":\"mend it\"}]}\n```' ;;
*) end '{\"verdict\":\"approve\",\"summary\":\"fine\",\"findings\":[]}' ;;
esac
while read -r line; do :; done
"#;

struct Reviews {
    world: World,
}

impl Reviews {
    fn new() -> Self {
        let world = World::new();
        fs::create_dir_all(world.path("bin")).unwrap();
        let program = world.path("bin/claude");
        fs::write(&program, REVIEWER).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let reviews = Self { world };
        reviews.git(&["init", "--quiet", "--initial-branch=main"]);
        reviews.git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
        reviews
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = self.world.command("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@example.invalid"]).args(arguments);
        run(command, b"").expect(0);
    }

    fn change(&self, text: &str) {
        fs::write(self.world.project().join("a.txt"), text).unwrap();
    }

    fn dress(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.world.path("bin").display()));
        command.env("ANTHROPIC_API_KEY", "fake");
    }

    fn review(&self, arguments: &[&str]) -> Done {
        let mut command = self.world.as_script(&[&["review"], arguments].concat());
        self.dress(&mut command);
        run(command, b"")
    }

    /// What the stop gate answers when a session wants to stop.
    fn stop(&self, puppet: &Puppet<'_>, stop_active: bool) -> String {
        self.stop_with(puppet, stop_active, &[])
    }

    fn stop_with(&self, puppet: &Puppet<'_>, stop_active: bool, environment: &[(&str, &str)]) -> String {
        let mut command = self.world.baton(&["hook", "claude", "--review"]);
        command.envs(puppet.environment()).envs(environment.iter().copied());
        self.dress(&mut command);
        let payload = json!({
            "hook_event_name": "Stop", "session_id": puppet.session, "cwd": self.world.project(),
            "transcript_path": self.world.path("claude/x.jsonl"), "stop_hook_active": stop_active,
        });
        run(command, payload.to_string().as_bytes()).expect(0).stdout
    }

    fn asked(&self) -> usize {
        let prompts = fs::read_to_string(self.world.path("home/prompts")).unwrap_or_default();
        prompts.lines().count()
    }

    /// Everything that was ever started has ended.
    fn nothing_runs(&self) -> bool {
        let mut command = self.world.as_script(&["job", "status", "--all", "--json"]);
        self.dress(&mut command);
        run(command, b"").expect(0).json() == json!([])
    }
}

const GATE: &str = "[review]\ngate = \"on\"\nagent = \"claude\"\n";

#[test]
fn review_shows_what_another_agent_found_the_worst_first() {
    let reviews = Reviews::new();
    reviews.change("HAS-A-BUG\n");
    let found = reviews.review(&["--json"]).expect(1).json();
    assert_eq!(
        (&found["verdict"], &found["agent"]),
        (&"request-changes".into(), &"claude".into()),
        "{found}"
    );
    let first = &found["findings"][0];
    assert_eq!((&first["severity"], &first["lines"]), (&"high".into(), &json!({"first": 1, "last": 2})));
    assert_eq!(found["findings"][1]["title"], "taste");
    let shown = reviews.review(&[]).expect(1);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines[0], "request-changes  one bug");
    assert!(lines[2].starts_with("high      a.txt:1-2  the bug (90 % sure)"), "{}", shown.stdout);
    assert!(shown.stderr.contains("claude reviews 1 file changed since the last commit"), "{}", shown.stderr);
    // It could only read.
    let arguments = fs::read_to_string(reviews.world.path("home/arguments")).unwrap();
    assert!(arguments.lines().all(|line| line.contains("--tools=Read,")), "{arguments}");
}

#[test]
fn review_of_a_branch_is_of_what_came_since() {
    let reviews = Reviews::new();
    reviews.git(&["switch", "--quiet", "-c", "work"]);
    reviews.change("WAS-COMMITTED\n");
    reviews.git(&["add", "-A"]);
    reviews.git(&["commit", "--quiet", "-m", "second"]);
    reviews.review(&["--json"]).expect_error(1, "nothing-to-review");
    let found = reviews.review(&["--base", "main", "--json"]).expect(0).json();
    assert_eq!((&found["verdict"], &found["files"]), (&"approve".into(), &1.into()), "{found}");
    assert!(fs::read_to_string(reviews.world.path("home/prompts")).unwrap().contains("+WAS-COMMITTED"));
}

#[test]
fn an_answer_that_is_no_review_is_shown_as_it_came() {
    let reviews = Reviews::new();
    reviews.change("SAYS-NONSENSE\n");
    let done = reviews.review(&["--json"]).expect(1);
    let found = done.json();
    assert_eq!((&found["error"]["code"], &found["raw"]), (&"bad-review".into(), &"Looks good to me!".into()));
    let done = reviews.review(&[]).expect(1);
    assert_eq!(done.stdout, "Looks good to me!\n");
    assert!(done.stderr.contains("error: the answer of claude is no review: there is no JSON in it"));
    // And a reviewer that fails is a job that failed.
    reviews.change("FAILS-LOUDLY\n");
    let row = reviews.review(&["--json"]).expect(1).json();
    assert_eq!((&row["status"], &row["error"]["code"]), (&"failed".into(), &"rate-limited".into()), "{row}");
}

#[test]
fn a_review_that_can_not_be_had_starts_nothing() {
    let reviews = Reviews::new();
    let refused = |arguments: &[&str], exit: i32, code: &str| {
        let hint = reviews.review(&[arguments, &["--json"]].concat()).expect_error(exit, code);
        assert!(!hint.is_empty(), "{arguments:?} has no hint");
    };
    refused(&[], 1, "nothing-to-review");
    refused(&["--base", "main"], 1, "nothing-to-review");
    reviews.change("x\n");
    refused(&["--base", "nowhere"], 1, "unknown-base");
    refused(&["--base=--output=/tmp/x"], 1, "unknown-base");
    refused(&["--agent", "nobody"], 64, "unknown-agent");
    refused(&["--max-wait", "0s"], 64, "bad-duration");
    // The only agent here is the one that asks.
    let mut asker = Puppet::start(&reviews.world, Style::Claude, "asker");
    asker.event(Moment::Prompt);
    let mut own = asker.shell_command(&["review", "--json"]);
    reviews.dress(&mut own);
    let hint = run(own, b"").expect_error(1, "agent-missing");
    assert!(hint.contains("--agent"), "{hint}");
    fs::remove_dir_all(reviews.world.project().join(".git")).unwrap();
    refused(&[], 1, "bad-folder");
    assert_eq!(reviews.asked(), 0);
    assert!(reviews.nothing_runs());
}

#[test]
fn j31_a_gate_that_is_off_or_has_nothing_new_lets_a_session_stop_at_once() {
    let reviews = Reviews::new();
    let mut session = Puppet::start(&reviews.world, Style::Claude, "worker");
    session.event(Moment::Prompt);
    reviews.change("HAS-A-BUG\n");
    assert_eq!(reviews.stop(&session, false), "", "off unless the person says so");
    // A repository has no say.
    fs::write(reviews.world.project().join(".baton.toml"), GATE).unwrap();
    assert_eq!(reviews.stop(&session, false), "");
    fs::remove_file(reviews.world.project().join(".baton.toml")).unwrap();
    reviews.world.configure(GATE);
    assert_eq!(reviews.stop_with(&session, false, &[("BATON_JOB", "jabc")]), "", "a job's own session");
    fs::remove_file(reviews.world.project().join("a.txt")).unwrap();
    assert_eq!(reviews.stop(&session, false), "");
    assert_eq!(reviews.asked(), 0);
    assert_eq!(reviews.world.hook_log(), Vec::<String>::new());
    reviews.change("fine\n");
    assert_eq!(reviews.stop(&session, false), "");
    assert_eq!(reviews.asked(), 1);
    assert_eq!(reviews.stop(&session, false), "", "allowed before, and not changed since");
    assert_eq!(reviews.asked(), 1);
}

#[test]
fn j31_findings_hold_a_session_twice_in_a_row_at_most() {
    let reviews = Reviews::new();
    reviews.world.configure(GATE);
    let mut session = Puppet::start(&reviews.world, Style::Claude, "worker");
    session.event(Moment::Prompt);
    reviews.change("HAS-A-BUG\n");
    for round in 1..=2 {
        let answer: Value = serde_json::from_str(&reviews.stop(&session, round > 1)).unwrap();
        let told = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert!(
            told.contains("1. high a.txt:1-2 (90 % sure): the bug") && told.contains("mend it"),
            "{told}"
        );
        assert_eq!(reviews.asked(), round);
    }
    assert_eq!(reviews.stop(&session, true), "", "the third time it stops");
    assert_eq!(reviews.asked(), 2);
    // A stop of its own begins a new chain.
    assert_ne!(reviews.stop(&session, false), "");
    reviews.change("mended\n");
    assert_eq!(reviews.stop(&session, true), "");
    assert_eq!(reviews.asked(), 4);
    // The gate tells the session; mail does not do so as well.
    assert_eq!(reviews.world.mail(), Vec::<Value>::new());
    assert!(reviews.nothing_runs());
}

#[test]
fn j31_a_review_that_could_not_run_never_holds_a_session() {
    let reviews = Reviews::new();
    reviews.world.configure(&format!("{GATE}timeout = \"10s\"\n"));
    let mut session = Puppet::start(&reviews.world, Style::Claude, "worker");
    session.event(Moment::Prompt);
    for (text, reason) in [
        ("SAYS-NONSENSE\n", "is not a review"),
        ("FAILS-LOUDLY\n", "429"),
        ("HANGS-FOR-EVER\n", "had not finished"),
    ] {
        reviews.change(text);
        let begun = Instant::now();
        assert_eq!(reviews.stop(&session, false), "", "{text}");
        assert!(begun.elapsed() < wait::HANG, "{text}");
        let log = reviews.world.hook_log();
        let last = log.last().unwrap();
        assert!(last.contains("review: could not run") && last.contains(reason), "{last}");
    }
    assert!(reviews.nothing_runs(), "what was given up was ended");
    // Nobody there to ask.
    reviews.world.configure("[review]\ngate = \"on\"\nagent = \"codex\"\n");
    reviews.change("more\n");
    assert_eq!(reviews.stop(&session, false), "");
    assert!(reviews.world.hook_log().last().unwrap().contains("agent-missing"));
}

#[test]
fn j31_setup_installs_the_gate_only_where_it_is_on() {
    for (agent, file) in [("claude", "home/.claude/settings.json"), ("codex", "home/.codex/hooks.json")] {
        let world = World::new();
        let settings = world.path(file);
        // Codex keeps there whom it trusts.
        let beside = || fs::read(world.path("home/.codex/config.toml")).ok();
        let gates = || {
            let text = fs::read_to_string(&settings).unwrap_or_default();
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
            let groups = value["hooks"]["Stop"].as_array().cloned().unwrap_or_default();
            let handlers =
                groups.iter().flat_map(|group| group["hooks"].as_array().cloned().unwrap_or_default());
            let gate =
                |one: &Value| one["command"].as_str().is_some_and(|command| command.contains("--review"));
            handlers.filter(gate).collect::<Vec<_>>()
        };
        let setup = || world.script(&["setup", agent]).expect(0);
        setup();
        let off = (fs::read(&settings).unwrap(), beside());
        assert_eq!(gates(), Vec::<Value>::new());
        world.configure(GATE);
        setup();
        let found = gates();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["timeout"], 600);
        let on = (fs::read(&settings).unwrap(), beside());
        setup();
        assert_eq!((fs::read(&settings).unwrap(), beside()), on, "a second run changes nothing");
        world.configure("");
        setup();
        assert_eq!((fs::read(&settings).unwrap(), beside()), off, "{agent}");
        world.configure(GATE);
        setup();
        world.script(&["setup", agent, "--remove"]).expect(0);
        assert!(!settings.exists());
    }
    // A review must end before its hook does.
    let world = World::new();
    world.configure("[review]\ngate = \"on\"\ntimeout = \"10m\"\n");
    world.script(&["send", "user", "text", "--json"]).expect_error(1, "config-malformed");
}

#[test]
fn s15_a_git_that_hangs_keeps_no_review_longer_than_it_may_wait() {
    for file in ["index", "HEAD", "config"] {
        let reviews = Reviews::new();
        reviews.change("new");
        let place = reviews.world.project().join(".git").join(file);
        fs::remove_file(&place).ok();
        let made = Command::new("mkfifo").arg(&place).status().unwrap();
        assert!(made.success());
        let began = Instant::now();
        let done = reviews.review(&["--max-wait", "1s"]);
        assert!(began.elapsed() < wait::HANG, "{file}: {:?}, {done:?}", began.elapsed());
        assert_ne!(done.code, Some(0), "{file}: {done:?}");
        let works_there = |process: &fs::DirEntry| {
            fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == reviews.world.project())
        };
        let left: Vec<String> = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(works_there)
            .filter_map(|process| fs::read_to_string(process.path().join("comm")).ok())
            .filter(|name| name.starts_with("git"))
            .collect();
        assert_eq!(left, Vec::<String>::new(), "{file}");
    }
}
