//! A store with damaged bytes, and locks that a stopped process keeps. What is accepted can be
//! read, and no hook waits for what never comes.

use crate::puppet::{Moment, Puppet, Style};
use crate::world::{Done, World, run};
use baton_store::Store;
use baton_testkit::wait;
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names the home whose locks a process of this test keeps.
const KEEPS: &str = "BATON_TEST_KEEPS_LOCKS_OF";

#[track_caller]
fn within(bound: Duration, command: Command, input: &[u8]) -> Done {
    let begun = Instant::now();
    let done = run(command, input);
    assert!(begun.elapsed() < bound, "it took {:?}: {done:?}", begun.elapsed());
    done
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Flips a byte, or overwrites some.
fn damage(file: &Path, at: u64, how: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(file).unwrap();
    let mut bytes = vec![0; if how == 0 { 1 } else { 64 }];
    let count = file.read_at(&mut bytes, at).unwrap();
    bytes.truncate(count);
    for byte in &mut bytes {
        *byte = match how {
            0 => *byte ^ 0x15,
            1 => 0,
            _ => 0xff,
        };
    }
    file.write_all_at(&bytes, at).unwrap();
}

#[test]
fn s22_what_is_accepted_into_a_store_with_damaged_bytes_can_be_read() {
    let world = World::new();
    let sender = Puppet::start(&world, Style::Claude, "sender");
    Puppet::start(&world, Style::Codex, "reader");
    for n in 0..12 {
        sender.send("reader", &format!("{n} {}", "x".repeat(1500)));
    }
    let store = Store::path(world.home());
    // Both have something in them.
    let folded = Connection::open(&store).unwrap();
    folded.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    sender.send("reader", "the last");
    drop(folded);
    sender.send("reader", "the very last");
    let wal = store.with_extension("db-wal");
    let saved = world.save();
    let mut numbers = Numbers(0x5eed_5eed_5eed_5eed);
    let (mut accepted, mut refused) = (0, 0);
    for file in [&store, &wal] {
        let length = fs::metadata(saved.join(file.file_name().unwrap())).map_or(0, |file| file.len());
        let mut places: Vec<u64> = (0..length / 4096).map(|page| page * 4096).collect();
        places.extend((0..60).map(|_| numbers.below(length.max(1))));
        for at in places.into_iter().filter(|at| *at < length) {
            world.restore(&saved);
            damage(file, at, numbers.below(3));
            let place = format!("{} at {at}", file.display());
            let sent = within(wait::HANG, sender.shell_command(&["send", "reader", "more", "--json"]), b"");
            let Some(0) = sent.code else {
                let said: Value = serde_json::from_str(&sent.stdout).unwrap_or_default();
                assert!(said["error"]["code"].is_string(), "{place}: {sent:?}");
                refused += 1;
                continue;
            };
            accepted += 1;
            let id = sent.json()["message_id"].as_str().unwrap().to_owned();
            let read = within(wait::HANG, sender.shell_command(&["mail", &id, "--json"]), b"");
            assert_eq!(read.code, Some(0), "{place}: {read:?}");
            assert_eq!(read.json()["body"], "more", "{place}");
            // A reader that the store does not know yet has to be written there first.
            let read = within(wait::HANG, world.as_script(&["mail", &id, "--json"]), b"");
            match read.code {
                Some(0) => assert_eq!(read.json()["body"], "more", "{place}"),
                _ => assert_eq!(read.json()["error"]["code"], "store-corrupt", "{place}: {read:?}"),
            }
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}

/// Keeps the store's write lock and a lock on every other file of a home, if a test has started it
/// for that.
#[test]
fn keeps_locks() {
    let Some(home) = std::env::var_os(KEEPS).map(PathBuf::from) else { return };
    let store = Connection::open(Store::path(&home)).unwrap();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut kept = Vec::new();
    let mut folders = vec![home];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.to_string_lossy().contains(".db") {
                let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
                flock(&file, FlockOperation::LockExclusive).unwrap();
                kept.push(file);
            }
        }
    }
    eprintln!("keeps {} locks", kept.len());
    std::thread::sleep(Duration::from_secs(600));
}

/// A process that has every lock of a home, and was stopped.
struct Stopped(Child);

impl Stopped {
    fn holder(home: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "damaged::keeps_locks", "--nocapture"]).env(KEEPS, home);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.into_iter().any(|line| line.contains("keeps ")), "it has the locks");
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        Self(child)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn s16_locks_that_a_stopped_process_keeps_hold_no_hook_up() {
    let world = World::new();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let mut reader = Puppet::start(&world, Style::Claude, "reader");
    reader.turn_in_peace();
    let guard = |command: &str| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": world.project(), "tool_name": "Bash",
            "tool_use_id": "t", "tool_input": {"command": command}, "permission_mode": "default",
        });
        let hook = world.baton(&["hook", "claude", "PreToolUse", "--guard"]);
        within(wait::HANG, hook, payload.to_string().as_bytes()).expect(0).stdout
    };
    guard("sudo ls");
    sender.send("reader", "hello");
    let prompt = reader.open(Moment::Prompt).remove(0);
    for name in ["bell/1", "bell/2", "bell/2.attended", "bell/approvals.watched", "guard.calls", "hook.log"] {
        let file = world.home().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
    }
    let stopped = Stopped::holder(world.home());
    let done = within(wait::HANG, reader.hook_command(), &prompt);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
    assert_eq!(guard("ls"), "");
    assert!(guard("sudo ls").contains("\"deny\""));
    let sent = within(wait::HANG, sender.shell_command(&["send", "reader", "x", "--json"]), b"");
    assert!(sent.code != Some(0) && sent.stdout.contains("store-locked"), "{sent:?}");
    drop(stopped);
    assert_eq!(world.mail().len(), 1, "what was refused was not sent");
    assert!(reader.understood(&reader.hook(&prompt)).is_some(), "and the mail still comes");
}

#[test]
fn s16_nothing_in_the_place_of_a_file_hangs_the_start_of_the_stop_gate() {
    let world = World::new();
    let puppet = Puppet::start(&world, Style::Claude, "reader");
    world.configure("[review]\ngate = \"on\"\n");
    let config = world.path("home/.config/baton/config.toml");
    let saved = fs::read(&config).unwrap();
    for file in [&config, &world.project().join(".baton.toml"), &puppet.paper.file] {
        fs::remove_file(file).ok();
        assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
        let mut hook = world.baton(&["hook", "claude", "--review"]);
        hook.envs(puppet.environment());
        let done = within(wait::HANG, hook, &puppet.payload("Stop", json!({"stop_hook_active": false})));
        assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{}: {done:?}", file.display());
        fs::remove_file(file).unwrap();
        fs::write(&config, &saved).unwrap();
    }
}
