//! M12: whatever is wrong with baton's own world, a hook exits 0, says nothing, and takes two
//! seconds at most.

use crate::puppet::{Moment, Puppet, Style};
use crate::world::{Done, World, done, run};
use baton_store::{Role, Store, VERSION};
use baton_testkit::wait;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a hook that must be silent, and in time.
#[track_caller]
fn silent(command: Command, input: &[u8], what: &str) {
    let begun = Instant::now();
    let done = run(command, input);
    assert!(begun.elapsed() < wait::HANG, "{what} took {:?}", begun.elapsed());
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""), "{what}");
}

/// A world with a session that has mail waiting.
fn prepared(world: &World) -> Puppet<'_> {
    let sender = Puppet::start(world, Style::Codex, "sender");
    let mut puppet = Puppet::start(world, Style::Claude, "reader");
    puppet.turn_in_peace();
    sender.send("reader", "hello");
    puppet.open(Moment::Prompt);
    puppet
}

#[track_caller]
fn logged(world: &World, lines: usize, what: &str) {
    let log = world.hook_log();
    assert_eq!(log.len(), lines, "{what}: {log:?}");
    let last = log.last().unwrap();
    assert!(last.contains(what), "{what} in {last}");
}

#[test]
fn m12_payloads_that_are_none() {
    let world = World::new();
    let puppet = prepared(&world);
    let good = puppet.payload("UserPromptSubmit", json!({"prompt": "x"}));
    let with = |key: &str, value: Value| {
        let mut payload: Value = serde_json::from_slice(&good).unwrap();
        payload[key] = value;
        payload.to_string().into_bytes()
    };
    let mut deep = vec![b'['; 200_000];
    deep.extend(vec![b']'; 200_000]);
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("blanks", b" \n ".to_vec()),
        ("no JSON", b"hello".to_vec()),
        ("half", good[..good.len() / 2].to_vec()),
        ("a list", b"[]".to_vec()),
        ("null", b"null".to_vec()),
        ("no session", b"{\"hook_event_name\":\"Stop\"}".to_vec()),
        ("session is a number", with("session_id", json!(7))),
        ("bytes", vec![0xff; 1000]),
        ("nul", vec![0; 1000]),
        ("deep", deep),
        ("two documents", [good.clone(), good.clone()].concat()),
    ];
    for (n, (what, payload)) in bad.iter().enumerate() {
        silent(puppet.hook_command(), payload, what);
        logged(&world, n + 1, "claude: usage: ");
    }
    for agent in ["nobody", "../claude", "CLAUDE", ""] {
        silent(world.baton(&["hook", agent]), &good, agent);
    }
    silent(world.baton(&["hook", "claude", "Stop"]), &good, "another event than the payload's");
    assert_eq!(world.hook_log().len(), bad.len() + 5);
    // Only a command line that names no agent is a person's mistake.
    run(world.baton(&["hook"]), &good).expect(64);
    // After all that, the mail is there.
    assert!(puppet.understood(&puppet.hook(&good)).is_some());
}

#[test]
fn m12_unknown_events() {
    let world = World::new();
    let puppet = prepared(&world);
    for event in ["", "MessageDisplay", "PostCompact", "FutureEvent", "\u{202e}", "stop", &"E".repeat(10_000)]
    {
        silent(puppet.hook_command(), &puppet.payload(event, json!({"new_field": {"a": [1, 2]}})), event);
    }
    assert_eq!(world.state(world.mail()[0]["message_id"].as_str().unwrap()), "queued");
}

#[test]
fn m12_fifty_megabytes_of_input() {
    let world = World::new();
    let puppet = prepared(&world);
    let more = |size: usize| {
        puppet.payload(
            "PostToolBatch",
            json!({"tool_calls": [{"tool_use_id": "c", "tool_response": "x".repeat(size)}]}),
        )
    };
    silent(puppet.hook_command(), &more(50 << 20), "50 MB");
    logged(&world, 1, "too large");
    // A large one that is allowed works.
    assert!(puppet.understood(&puppet.hook(&more(8 << 20))).is_some());
}

#[test]
fn m12_input_that_never_ends() {
    let world = World::new();
    let puppet = prepared(&world);
    let mut command = puppet.hook_command();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"session_id\":\"x\"").unwrap();
    let begun = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < wait::HANG);
    drop(stdin);
    assert_eq!((output.status.code(), output.stdout, output.stderr), (Some(0), vec![], vec![]));
    logged(&world, 1, "could not be read");
    // Input that drips without end.
    let mut child = puppet.hook_command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let drip = thread::spawn(move || {
        while stdin.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(20))
        }
    });
    let begun = Instant::now();
    assert!(child.wait().unwrap().success());
    assert!(begun.elapsed() < wait::HANG);
    drip.join().unwrap();
}

#[test]
fn m12_no_store_and_no_home_yet() {
    let world = World::new();
    let puppet = Puppet::begin(&world, Style::Claude, "first", "first");
    silent(puppet.hook_command(), &puppet.payload("UserPromptSubmit", json!({"prompt": "x"})), "no home");
    assert_eq!(world.who("first")["state"], "busy");
    // Nowhere at all.
    let mut command = puppet.hook_command();
    for name in ["BATON_HOME", "HOME", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    silent(command, &puppet.payload("Stop", json!({})), "no HOME");
}

#[test]
fn m12_homes_that_can_not_be() {
    let world = World::new();
    let puppet = prepared(&world);
    let payload = puppet.payload("UserPromptSubmit", json!({"prompt": "x"}));
    fs::write(world.path("file"), "x").unwrap();
    let long = format!("/{}", "x".repeat(5000));
    for home in
        [world.path("file"), world.path("file/below"), "/proc/none".into(), "/dev/null".into(), long.into()]
    {
        let mut command = puppet.hook_command();
        command.env("BATON_HOME", &home);
        silent(command, &payload, &home.display().to_string());
    }
}

#[test]
fn m12_a_store_that_a_writer_holds_for_longer_than_two_seconds() {
    let world = World::new();
    let puppet = prepared(&world);
    let newcomer = Puppet::begin(&world, Style::Codex, "newcomer", "newcomer");
    let writer = rusqlite::Connection::open(Store::path(world.home())).unwrap();
    for (lines, lock) in [(2, "BEGIN IMMEDIATE"), (4, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")] {
        writer.execute_batch(lock).unwrap();
        silent(
            puppet.hook_command(),
            &puppet.payload("UserPromptSubmit", json!({"prompt": "x"})),
            "a prompt",
        );
        silent(
            newcomer.hook_command(),
            &newcomer.payload("SessionStart", json!({"source": "startup"})),
            "a new session",
        );
        writer.execute_batch("ROLLBACK; PRAGMA locking_mode = NORMAL; SELECT count(*) FROM message").unwrap();
        logged(&world, lines, "store-locked");
    }
    drop(writer);
    assert!(
        puppet
            .understood(&puppet.hook(&puppet.payload("UserPromptSubmit", json!({"prompt": "x"}))))
            .is_some()
    );
}

/// Files of a home that are damaged in every way; each hook is silent and the file is left as it
/// is.
#[test]
fn m12_a_damaged_store_and_one_from_the_future() {
    let world = World::new();
    let puppet = prepared(&world);
    let payload = puppet.payload("UserPromptSubmit", json!({"prompt": "x"}));
    // Fold the WAL, so that the file is all there is.
    let folded = rusqlite::Connection::open(Store::path(world.home())).unwrap();
    folded.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(folded);
    let saved = world.save();
    let good = fs::read(saved.join("baton.db")).unwrap();
    let mut scrambled = good.clone();
    for (at, byte) in scrambled.iter_mut().enumerate().skip(100) {
        *byte ^= (at * 31 % 251) as u8;
    }
    let mut newer = good.clone();
    newer[60..64].copy_from_slice(&(VERSION + 1).to_be_bytes());
    let broken: [(&str, Vec<u8>, &str); 6] = [
        ("empty", vec![], ""),
        ("not SQLite", b"hello ".repeat(10_000), "store-corrupt"),
        ("cut", good[..good.len() / 3].to_vec(), "store-corrupt"),
        ("scrambled", scrambled, "store-corrupt"),
        ("zeros", vec![0; good.len()], "store-corrupt"),
        ("newer", newer, "store-newer"),
    ];
    for (what, bytes, code) in broken {
        world.restore(&saved);
        for suffix in ["-wal", "-shm"] {
            fs::remove_file(world.home().join(format!("baton.db{suffix}"))).ok();
        }
        let file = Store::path(world.home());
        fs::write(&file, &bytes).unwrap();
        silent(puppet.hook_command(), &payload, what);
        if code.is_empty() {
            continue;
        }
        logged(&world, 1, code);
        assert_eq!(fs::read(&file).unwrap(), bytes, "{what}: not a byte was touched");
        let hint = world.script(&["send", "reader", "hi", "--json"]).expect_error(1, code);
        assert!(!hint.is_empty());
        assert_eq!(fs::read(&file).unwrap(), bytes, "{what}: nor by a command");
    }
    // An empty file is what a crash of the machine may leave; it becomes a store.
    world.restore(&saved);
    fs::write(Store::path(world.home()), "").unwrap();
    silent(puppet.hook_command(), &payload, "empty");
    Store::open(world.home(), Role::Command).unwrap().check().unwrap();
}

/// A command waits for a writer that a hook would not wait for.
#[test]
fn a_command_waits_for_a_writer_that_holds_the_store_for_more_than_two_seconds() {
    let world = World::new();
    let puppet = prepared(&world);
    let writer = rusqlite::Connection::open(Store::path(world.home())).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let mut command = puppet.shell_command(&["send", "sender", "patience", "--json"]);
        let sending = scope.spawn(move || command.output().unwrap());
        thread::sleep(Duration::from_millis(2500));
        assert!(!sending.is_finished());
        writer.execute_batch("ROLLBACK").unwrap();
        assert!(sending.join().unwrap().status.success());
    });
    assert_eq!(world.mail().len(), 2);
}

/// Answers that an agent took in its shell and never showed: a stop waits a moment for their proof,
/// once for all of them.
#[test]
fn m12_many_answers_on_their_way_do_not_add_up() {
    let world = World::talkative();
    let peer = Puppet::start(&world, Style::Codex, "peer");
    let mut puppet = Puppet::start(&world, Style::Claude, "asker");
    puppet.turn_in_peace();
    const ANSWERS: u32 = 20;
    // The machine may be busy for one of the hooks, and not for all.
    let mut waits = Vec::new();
    let quick = (0..3).any(|_| {
        puppet.event(Moment::Prompt);
        puppet.answer(1);
        puppet.paper.flush();
        for n in 0..ANSWERS {
            let asked =
                puppet.shell(&["ask", "peer", "well?", "--timeout", "1ms", "--json"]).expect(2).json();
            peer.shell(&["reply", asked["message_id"].as_str().unwrap(), "well."]).expect(0);
            let answer = puppet.shell(&["ask", "--resume", asked["request_id"].as_str().unwrap()]).expect(0);
            assert!(answer.stdout.contains("[baton-offer "), "{n}: {answer:?}");
        }
        let payload = puppet.open(Moment::Stop).remove(0);
        let begun = Instant::now();
        puppet.hook(&payload);
        waits.push(begun.elapsed());
        // Each for itself would wait 400 ms.
        begun.elapsed() < ANSWERS * Duration::from_millis(400) / 2
    });
    assert!(quick, "{waits:?}");
}

/// Settings that can't be read are a command's error, not a hook's: the mail comes, within the
/// defaults.
#[test]
fn m12_malformed_settings_do_not_stop_the_mail() {
    let world = World::new();
    let puppet = prepared(&world);
    let payload = puppet.payload("UserPromptSubmit", json!({"prompt": "x"}));
    fs::write(world.project().join(".baton.toml"), "limits = [").unwrap();
    world.configure("\0\0\0");
    assert!(puppet.understood(&puppet.hook(&payload)).is_some());
}

#[test]
fn m12_the_log_is_bounded_and_holds_one_line_each() {
    let world = World::new();
    let puppet = prepared(&world);
    let log = world.home().join("hook.log");
    fs::write(&log, "x\n".repeat(600_000)).unwrap();
    silent(puppet.hook_command(), b"bad", "a full log");
    assert_eq!(world.hook_log().len(), 1);
    // A log that can't be written stops nothing.
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    silent(puppet.hook_command(), b"bad", "a folder for a log");
    fs::remove_dir(&log).unwrap();
    let hostile = format!("{{\"session_id\":\"a\",\"hook_event_name\":{}", "\\u202e\\n".repeat(2000));
    silent(puppet.hook_command(), hostile.as_bytes(), "hostile");
    let lines = world.hook_log();
    assert!(lines.len() == 1 && lines[0].len() < 2000 && !lines[0].contains('\u{202e}'), "{lines:?}");
}

/// Transcripts that are not there, are no files, or are full of nonsense: mail is not lost, and
/// nothing waits.
#[test]
fn m12_transcripts_that_can_not_be_read() {
    let world = World::talkative();
    let sender = Puppet::start(&world, Style::Codex, "sender");
    let fifo = world.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let folder = world.path("folder");
    fs::create_dir(&folder).unwrap();
    let garbage = world.path("garbage");
    fs::write(
        &garbage,
        [&b"\xff\xfe\n{\"type\":\n[[[[\n{\"type\":\"user\",\"message\":7}\n"[..], &vec![b'{'; 1 << 20]]
            .concat(),
    )
    .unwrap();
    let names = ["fifo", "folder", "garbage", "none", "dev"];
    for (name, file) in
        names.iter().zip([fifo, folder, garbage, world.path("no/such/file"), "/dev/zero".into()])
    {
        let mut puppet = Puppet::begin(&world, Style::Claude, name, name);
        puppet.paper.file = file;
        puppet.session_start("startup");
        puppet.shell(&["name", name]).expect(0);
        let message = sender.send(name, "hello");
        let mut brought = 0;
        for _ in 0..4 {
            for moment in [Moment::Prompt, Moment::Stop] {
                let begun = Instant::now();
                let payload = puppet.open(moment).remove(0);
                brought += usize::from(puppet.understood(&puppet.hook(&payload)).is_some());
                assert!(begun.elapsed() < wait::HANG, "{name}");
            }
        }
        // Without proof it is offered at most twice, and its sender can see that.
        let state = world.state(&message);
        assert!(
            (1..=2).contains(&brought) && ["offered", "unconfirmed"].contains(&state.as_str()),
            "{name}: {brought}, {state}"
        );
    }
}

/// The output of a command that failed, for a fault of the machine.
#[cfg(target_os = "linux")]
fn in_namespace(world: &World, script: &str, arguments: &[&str]) -> Option<Done> {
    in_namespace_with(world, script, arguments, &[])
}

#[cfg(target_os = "linux")]
/// The same, with more in the environment.
pub fn in_namespace_with(
    world: &World,
    script: &str,
    arguments: &[&str],
    environment: &[(String, String)],
) -> Option<Done> {
    let mut probe = world.command("unshare");
    if !probe.args(["-rm", "true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine allows no user and mount namespaces");
        return None;
    }
    let mut command = world.command("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]).args(arguments);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).output().unwrap();
    Some(done(output.status, &output.stdout, &output.stderr))
}

/// A disk without room: a hook is silent, a command says so and accepts nothing, and with room
/// again all is well.
#[cfg(target_os = "linux")]
#[test]
fn m12_a_full_disk() {
    let world = World::talkative();
    let puppet = prepared(&world);
    let payload = world.path("payload");
    fs::write(&payload, puppet.payload("UserPromptSubmit", json!({"prompt": "x"}))).unwrap();
    let script = r#"
        set -e
        cp -r "$BATON_HOME" "$TMPDIR/copy"
        mount -t tmpfs -o size=2m,mode=700 tmpfs "$BATON_HOME"
        cp "$TMPDIR/copy"/* "$BATON_HOME"
        head -c 3000000 /dev/zero > "$BATON_HOME/filler" 2>/dev/null || true
        set +e
        "$1" hook claude < "$2"; echo "hook $?"
        "$1" send reader "a long one: $(head -c 60000 /dev/zero | tr '\0' x)" --json; echo "send $?"
        "$1" hook codex < /dev/null; echo "hook $?"
        rm "$BATON_HOME/filler"
        "$1" mail --json > "$TMPDIR/mail"; echo "mail $?"
        "$1" hook claude < "$2" > "$TMPDIR/brought"; echo "hook $?"
    "#;
    let Some(done) = in_namespace(&world, script, &[crate::world::program(), payload.to_str().unwrap()])
    else {
        return;
    };
    let lines: Vec<&str> = done.stdout.lines().collect();
    let [first, error, send, second, mail, third] = lines[..] else { panic!("{done:?}") };
    assert_eq!(
        [first, send, second, mail, third],
        ["hook 0", "send 1", "hook 0", "mail 0", "hook 0"],
        "{done:?}"
    );
    let code = serde_json::from_str::<Value>(error).unwrap()["error"]["code"].clone();
    assert_eq!(code, "disk-full", "{error}");
    let mail: Vec<Value> = serde_json::from_slice(&fs::read(world.path("tmp/mail")).unwrap()).unwrap();
    assert_eq!(mail.len(), 1, "nothing was accepted");
    assert!(
        fs::read_to_string(world.path("tmp/brought")).unwrap().contains("| hello"),
        "and nothing was lost"
    );
}
