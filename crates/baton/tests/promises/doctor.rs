//! What `doctor` says about the agents is what is there: programs that lie, hang or are missing,
//! files that are half there or of another baton, hooks that are not trusted, plugins that no agent
//! has loaded.

use crate::world::{Done, World, program, run};
use baton_agents::{ALL, Agent};
use baton_testkit::process::write_program;
use baton_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// Nothing but the sandbox's own programs is on the search path: whatever this machine has is not
/// ours to start.
fn only_ours(world: &World, mut command: Command) -> Command {
    command.env("PATH", world.path("bin"));
    command
}

fn baton(world: &World, arguments: &[&str]) -> Done {
    run(only_ours(world, world.as_script(arguments)), b"")
}

/// Makes an agent's program of a shell script.
fn install(world: &World, agent: &str, script: &str) -> PathBuf {
    let agent = baton_agents::by_name(agent).unwrap();
    let file = world.path("bin").join(agent.program());
    write_program(&file, format!("#!/bin/sh\n{script}\n").as_bytes());
    file
}

/// Makes every agent's program, of the version that its adapter was verified with.
fn install_all(world: &World) {
    for agent in ALL {
        install(world, agent.name(), &format!("echo {}", agent.verified().unwrap_or("1.0.0")));
    }
}

/// The checks of one name, as `doctor` prints them.
struct Checks(Vec<Value>);

impl Checks {
    fn of(world: &World) -> Checks {
        Checks(baton(world, &["doctor", "--json"]).expect(0).json().as_array().unwrap().clone())
    }

    fn all(&self, name: &str) -> Vec<&Value> {
        self.0.iter().filter(|check| check["check"] == name).collect()
    }

    /// The verdict, detail and hint of the only check of that name.
    #[track_caller]
    fn one(&self, name: &str) -> (&str, &str, &str) {
        let [check] = self.all(name)[..] else { panic!("{name} in {:?}", self.0) };
        let text = |key: &str| check[key].as_str().unwrap_or_default();
        (text("verdict"), text("detail"), text("hint"))
    }

    #[track_caller]
    fn expect(&self, name: &str, verdict: &str, detail: &str) {
        let found = self.one(name);
        assert!(found.0 == verdict && found.1.contains(detail), "{name}: {found:?}");
    }
}

fn setup_check(agent: &dyn Agent) -> String {
    format!("{} setup", agent.name())
}

fn is_running(pid: i32) -> bool {
    // A process that has ended and was not reaped has no command line any more.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn pid_in(file: &Path) -> i32 {
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_says_its_version_or_doctor_says_why_not() {
    let world = World::new();
    let note = |name: &str| world.path(name);
    // Baton's own variables are not for the agents.
    install(&world, "claude", r#"[ -z "$BATON_HOME$BATON_CONFIG" ] && echo '2.1.325 (Claude Code)'"#);
    install(&world, "codex", "echo warning 1>&2; echo codex-cli 0.999.0");
    install(&world, "opencode", r"printf '\033[31mhello\nthere'");
    let hangs = format!("/bin/sleep 600 & echo $! > {}; wait", note("hangs").display());
    install(&world, "gemini", &hangs);
    install(&world, "copilot", "exit 3");
    let leaves = format!("/bin/sleep 600 & echo $! > {}; echo 2025.09.12-4852336", note("leaves").display());
    install(&world, "cursor", &leaves);
    install(&world, "pi", "while :; do echo yes; done");
    let begun = Instant::now();
    let checks = Checks::of(&world);
    let took = begun.elapsed();
    let left = pid_in(&note("leaves"));
    let was_left = is_running(left);
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
    assert!(was_left, "what a program leaves running on purpose is not doctor's to end");
    checks.expect("claude program", "pass", "version 2.1.325, as verified");
    checks.expect("codex program", "note", "version 0.999.0; verified with 0.166.0");
    checks.expect("gemini program", "warn", "did not say its version within 15s");
    checks.expect("copilot program", "warn", "exit status: 3");
    checks.expect("cursor program", "note", "version 2025.09.12-4852336; verified with none");
    checks.expect("pi program", "warn", "prints no version, but yes");
    checks.expect("opencode program", "warn", "prints no version");
    assert!(!checks.one("opencode program").1.chars().any(char::is_control));
    assert_eq!(checks.one("gemini program").2, "see what `gemini --version` says");
    assert!(took < wait::HANG, "{took:?}");
    let hanging = pid_in(&note("hangs"));
    assert!(wait::until(wait::HANG, || !is_running(hanging)), "it was not ended");
}

#[test]
fn a_file_that_is_no_program_is_not_installed() {
    let world = World::new();
    let file = install(&world, "claude", "echo 2.1.325");
    Checks::of(&world).expect("claude program", "pass", "2.1.325");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    Checks::of(&world).expect("claude program", "note", "not installed");
    // A program without its interpreter.
    write_program(&file, b"#!/nowhere/node\n");
    Checks::of(&world).expect("claude program", "warn", "can't be started");
}

#[test]
fn agents_that_are_not_installed_are_one_line_and_no_trouble() {
    let world = World::new();
    let checks = Checks::of(&world);
    for agent in ALL {
        checks.expect(&format!("{} program", agent.name()), "note", "not installed");
        assert!(checks.all(&setup_check(*agent)).is_empty());
        assert!(checks.all(&format!("{} hole", agent.name())).is_empty());
    }
    checks.expect("mcp", "pass", env!("CARGO_PKG_VERSION"));
    assert_eq!(checks.one("mcp").2, "");
    let mut command = only_ours(&world, world.as_script(&["doctor"]));
    command.env_remove("NO_COLOR");
    let text = run(command, b"").expect(0).stdout;
    let titles: Vec<_> = ALL.iter().map(|agent| agent.title()).collect();
    assert!(text.ends_with(&format!("\nnot installed: {}\n", titles.join(", "))), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(!world.home().exists(), "looking makes nothing");
}

#[test]
fn a_setup_is_complete_or_doctor_says_what_is_missing() {
    let world = World::new();
    install_all(&world);
    let before = Checks::of(&world);
    for agent in ALL {
        let expected = format!("baton setup {}", agent.name());
        assert_eq!(before.one(&setup_check(*agent)), ("warn", "not set up", expected.as_str()));
        let holes: Vec<&Value> = before.all(&format!("{} hole", agent.name()));
        assert_eq!(holes.len(), agent.facts().holes.len());
        assert!(holes.iter().all(|hole| hole["verdict"] == "note" && hole["agent"] == agent.name()));
    }
    baton(&world, &["setup"]).expect(0);
    let after = Checks::of(&world);
    for agent in ALL {
        after.expect(&setup_check(*agent), "pass", "everything is in place");
        assert!(after.all(&format!("{} project", agent.name())).is_empty());
        after.expect(&format!("{} seen", agent.name()), "note", "no session yet");
    }
    let removal = baton(&world, &["setup", "--remove", "--dry-run", "--json"]).expect(0).json();
    for (agent, planned) in ALL.iter().zip(removal.as_array().unwrap()) {
        let files = planned["files"].as_array().unwrap();
        for file in files {
            let file = Path::new(file.as_str().unwrap());
            let bytes = fs::read(file).unwrap();
            fs::remove_file(file).unwrap();
            let half = Checks::of(&world);
            let (verdict, detail, hint) = half.one(&setup_check(*agent));
            assert_eq!((verdict, hint), ("warn", format!("baton setup {}", agent.name()).as_str()));
            // Where it was the only one, nothing is left.
            let told = if files.len() == 1 { "not set up".into() } else { file.display().to_string() };
            assert!(detail.contains(&told), "{detail}");
            fs::write(file, bytes).unwrap();
        }
    }
    let restored = Checks::of(&world);
    ALL.iter().for_each(|agent| restored.expect(&setup_check(*agent), "pass", "up to date"));
}

#[test]
fn entries_of_another_baton_are_to_be_brought_up_to_date() {
    let world = World::new();
    install_all(&world);
    let other = world.path("other-baton");
    write_program(&other, &fs::read(program()).unwrap());
    let mut command = only_ours(&world, world.command(&other));
    command.arg("setup");
    run(command, b"").expect(0);
    let checks = Checks::of(&world);
    for agent in ALL {
        checks.expect(&setup_check(*agent), "warn", "by another version of baton; to do: update ");
    }
    baton(&world, &["setup"]).expect(0);
    let checks = Checks::of(&world);
    ALL.iter().for_each(|agent| checks.expect(&setup_check(*agent), "pass", "up to date"));
}

#[test]
fn a_project_is_looked_at_where_baton_is_set_up_in_it() {
    let world = World::new();
    install(&world, "claude", "echo 2.1.325");
    install(&world, "copilot", "echo 1.0.102");
    baton(&world, &["setup", "--project", "claude"]).expect(0);
    let checks = Checks::of(&world);
    checks.expect("claude setup", "note", "only for this one");
    checks.expect("claude project", "pass", "up to date");
    checks.expect("claude trust", "note", "asks each person once");
    // Its `.mcp.json` has Claude's server in it, which is no trouble of Copilot's.
    checks.expect("copilot setup", "warn", "not set up");
    assert!(checks.all("copilot project").is_empty());
    fs::remove_file(world.project().join(".mcp.json")).unwrap();
    let checks = Checks::of(&world);
    checks.expect("claude project", "warn", ".mcp.json");
    assert_eq!(checks.one("claude project").2, "baton setup claude --project");
    // In the person's own folder, its files are the person's, not a project's.
    baton(&world, &["setup", "claude"]).expect(0);
    let mut command = only_ours(&world, world.as_script(&["doctor", "--json"]));
    command.current_dir(world.path("home"));
    let checks = Checks(run(command, b"").expect(0).json().as_array().unwrap().clone());
    checks.expect("claude setup", "pass", "up to date");
    assert!(checks.all("claude project").is_empty());
}

#[test]
fn a_file_that_setup_would_refuse_fails_where_the_agent_is_installed() {
    let world = World::new();
    fs::create_dir_all(world.path("home/.claude")).unwrap();
    fs::write(world.path("home/.claude/settings.json"), "{").unwrap();
    Checks::of(&world).expect("claude program", "note", "not installed");
    install(&world, "claude", "echo 2.1.325");
    let done = baton(&world, &["doctor", "--json"]).expect(1);
    let checks = Checks(done.json().as_array().unwrap().clone());
    checks.expect("claude setup", "fail", "settings.json");
    assert!(!checks.one("claude setup").2.is_empty());
}

#[test]
fn what_is_left_of_an_agent_that_is_gone_is_named() {
    let world = World::new();
    let file = install(&world, "gemini", "echo 0.61.0");
    baton(&world, &["setup", "gemini"]).expect(0);
    fs::remove_file(file).unwrap();
    let checks = Checks::of(&world);
    checks.expect("gemini program", "note", "no gemini on the PATH");
    checks.expect("gemini setup", "note", "set up all the same");
    let text = baton(&world, &["doctor"]).expect(0).stdout;
    assert!(text.contains("\nGemini CLI\n  note  program"), "{text}");
}

#[test]
fn hooks_that_codex_would_skip_are_told() {
    let world = World::new();
    install(&world, "codex", "echo codex-cli 0.166.0");
    baton(&world, &["setup", "codex"]).expect(0);
    Checks::of(&world).expect("codex trust", "pass", "given");
    let config = world.path("home/.codex/config.toml");
    let whole = fs::read_to_string(&config).unwrap();
    let off = whole.replacen("trusted_hash", "enabled = false\ntrusted_hash", 2);
    fs::write(&config, off).unwrap();
    let checks = Checks::of(&world);
    checks.expect("codex setup", "pass", "up to date");
    checks.expect("codex trust", "warn", "2 of 9 hooks are switched off");
    let first = whole.find("sha256:").unwrap() + "sha256:".len();
    fs::write(&config, format!("{}0000{}", &whole[..first], &whole[first + 4..])).unwrap();
    let checks = Checks::of(&world);
    checks.expect("codex setup", "warn", "trust 1 hook");
    checks.expect("codex trust", "warn", "1 of 9 hooks are not trusted");
    assert_eq!(checks.one("codex trust").2, "baton setup codex");
}

#[test]
fn a_project_that_codex_does_not_trust_is_told() {
    let world = World::new();
    install(&world, "codex", "echo codex-cli 0.166.0");
    baton(&world, &["setup", "codex", "--project"]).expect(0);
    Checks::of(&world).expect("codex trust", "warn", "only in projects that it trusts");
    let config = world.path("home/.codex/config.toml");
    let project = world.project().canonicalize().unwrap();
    let text = fs::read_to_string(&config).unwrap();
    let trusted = format!("{text}\n[projects.{}]\ntrust_level = \"trusted\"\n", json!(project));
    fs::write(&config, trusted).unwrap();
    Checks::of(&world).expect("codex trust", "pass", "given");
}

/// Runs a hook as the plugin's link would: its first prompt.
fn prompt(world: &World, agent: &str, event: &str) {
    let payload =
        json!({"hook_event_name": event, "session_id": "s1", "turn_id": "t1", "cwd": world.project()});
    run(world.baton(&["hook", agent]), payload.to_string().as_bytes()).expect(0);
    assert_eq!(world.hook_log(), Vec::<String>::new());
}

#[test]
fn a_plugin_has_loaded_once_a_prompt_came_through_it() {
    for (agent, event, file) in [
        ("opencode", "chat.message", "home/.config/opencode/baton.js"),
        ("pi", "before_agent_start", "home/.pi/agent/extensions/baton.ts"),
    ] {
        let world = World::new();
        let loaded = format!("{agent} loaded");
        install(&world, agent, "echo 1.0.0");
        assert!(Checks::of(&world).all(&loaded).is_empty(), "nothing is there to be loaded");
        baton(&world, &["setup", agent]).expect(0);
        Checks::of(&world).expect(&loaded, "note", "not seen yet");
        prompt(&world, agent, event);
        let checks = Checks::of(&world);
        checks.expect(&loaded, "pass", "a prompt came through");
        checks.expect(&format!("{agent} seen"), "pass", "last prompt ");
        // Written again since: it is not known yet whether that one loads.
        let later = SystemTime::now() + Duration::from_secs(60);
        let file = fs::File::options().append(true).open(world.path(file)).unwrap();
        file.set_modified(later).unwrap();
        Checks::of(&world).expect(&loaded, "note", "not seen yet");
    }
}

#[test]
fn a_session_that_only_its_shell_told_of_proves_no_plugin() {
    let world = World::new();
    install(&world, "pi", "echo 0.87.1");
    baton(&world, &["setup", "pi"]).expect(0);
    let mut shell = world.baton(&["whoami", "--json"]);
    shell.envs([("PI_CODING_AGENT", "true"), ("PI_SESSION_ID", "s1")]);
    assert_eq!(run(shell, b"").expect(0).json()["session_id"], "s1");
    let checks = Checks::of(&world);
    checks.expect("pi seen", "note", "no prompt yet");
    checks.expect("pi loaded", "note", "not seen yet");
}
