//! E1: many commands at one store, with a long WAL, a reader that keeps it long and a writer that
//! holds the lock. A command waits its turn, and what was accepted is never reported as failed.

use crate::jobs::Jobs;
use crate::puppet::{Moment, Puppet, Style};
use crate::world::{Done, World, done, rounds};
use baton_store::Store;
use baton_testkit::wait;
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The length past which a command folds the WAL.
const LONG_WAL: u64 = 256 << 10;
/// How long the writer holds the store.
const HELD: Duration = Duration::from_secs(2);

fn open(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection
}

/// A reader of an old state: as long as it is there, no fold shortens the WAL.
fn reader(file: &Path, table: &str) -> Connection {
    let connection = open(file);
    connection.execute_batch("BEGIN").unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0)).unwrap();
    connection
}

/// A writer that holds the store for a while, from before this returns.
fn hold(file: &Path) -> thread::JoinHandle<()> {
    let writer = open(file);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::spawn(move || {
        thread::sleep(HELD);
        writer.execute_batch("COMMIT").unwrap();
    })
}

fn wal_is_long(file: &Path) {
    let wal = file.with_extension("db-wal");
    assert!(fs::metadata(&wal).unwrap().len() > LONG_WAL, "the WAL is long");
}

fn started(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Done {
    let output = child.wait_with_output().unwrap();
    done(output.status, &output.stdout, &output.stderr)
}

/// Each who waits looks again.
fn ring_all(world: &World) {
    for bell in fs::read_dir(world.home().join("bell")).unwrap().flatten() {
        fs::write(bell.path(), "!").unwrap();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn open_asks(world: &World, count: usize) -> Vec<String> {
    let found = wait::poll(Duration::from_secs(30), || {
        let asks: Vec<String> = world
            .mail()
            .iter()
            .filter(|row| row["body"] == "well?")
            .map(|row| text(&row["message_id"]))
            .collect();
        (asks.len() == count).then_some(asks)
    });
    found.expect("each ask is accepted")
}

#[test]
fn e1_asks_beside_a_long_wal_wait_for_a_writer_and_get_their_answers() {
    let world = World::talkative();
    let mut peer = Puppet::start(&world, Style::Claude, "peer");
    peer.turn_in_peace();
    let file = Store::path(world.home());
    let reader = reader(&file, "message");
    let long = "x".repeat(60_000);
    for _ in 0..6 {
        world.script_with(&["send", "peer", "-"], long.as_bytes()).expect(0);
    }
    wal_is_long(&file);
    let count = 6;
    // They give up while the writer holds the store.
    let asks: Vec<Child> = (0..count)
        .map(|_| started(world.as_script(&["ask", "peer", "well?", "--timeout", "3s", "--json"])))
        .collect();
    let ids = open_asks(&world, count);
    let writers: Vec<_> = (0..2).map(|_| hold(&file)).collect();
    ring_all(&world);
    let told: Vec<Value> = asks.into_iter().map(|ask| ended(ask).expect(2).json()).collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    peer.event(Moment::Prompt);
    for id in &ids {
        peer.shell(&["reply", id, "well"]).expect(0);
    }
    for ask in told {
        let request = text(&ask["request_id"]);
        let resumed =
            world.script(&["ask", "--resume", &request, "--timeout", "20s", "--json"]).expect(0).json();
        assert_eq!(resumed["body"], "well", "{resumed}");
    }
    drop(reader);
}

#[test]
fn e1_parallel_waits_beside_a_long_wal_print_one_document_each() {
    let jobs = Jobs::new();
    let world = &jobs.world;
    let start = |prompt: &str| {
        let started =
            ended(started(jobs.command(&["job", "start", "claude", prompt, "--json"]))).expect(0).json();
        text(&started["job_id"])
    };
    let first = start("hello");
    let file = world.home().join("jobs.db");
    let reader = reader(&file, "job");
    let long = "x".repeat(100_000);
    let ids: Vec<String> = (0..4).map(|_| start(&long)).collect();
    for id in ids.iter().chain([&first]) {
        jobs.until(id, "completed");
    }
    wal_is_long(&file);
    for round in 0..rounds(2) {
        let writer = hold(&file);
        let waits: Vec<Child> = ids
            .iter()
            .cycle()
            .take(8)
            .map(|id| started(jobs.command(&["job", "wait", id, "--json"])))
            .collect();
        for wait in waits {
            let job = ended(wait).expect(0).json();
            assert_eq!(
                (&job["status"], &job["result"]),
                (&"completed".into(), &"done".into()),
                "round {round}"
            );
        }
        writer.join().unwrap();
    }
    drop(reader);
}

/// The store breaks under a command that waits: what was accepted is there, and its ids are told.
#[test]
fn e1_what_was_accepted_is_not_reported_as_failed_when_the_wait_for_it_breaks() {
    let jobs = Jobs::new();
    let world = &jobs.world;
    let mut peer = Puppet::start(world, Style::Claude, "peer");
    peer.turn_in_peace();
    let ask = started(world.as_script(&["ask", "peer", "well?", "--timeout", "50s", "--json"]));
    let plain = started(world.as_script(&["ask", "peer", "well?", "--timeout", "50s"]));
    let ids = open_asks(world, 2);
    let store = open(&Store::path(world.home()));
    store.execute_batch("ALTER TABLE message RENAME TO away").unwrap();
    ring_all(world);
    let (told, plain) = (ended(ask).expect(2).json(), ended(plain).expect(2));
    store.execute_batch("ALTER TABLE away RENAME TO message").unwrap();
    assert!(ids.contains(&text(&told["message_id"])), "{told}");
    let request = text(&told["request_id"]);
    assert_eq!(told["error"]["code"], "wait-failed", "{told}");
    assert!(plain.stderr.contains("baton ask --resume r"), "{plain:?}");
    peer.event(Moment::Prompt);
    peer.shell(&["reply", &text(&told["message_id"]), "yes"]).expect(0);
    let resumed = world.script(&["ask", "--resume", &request, "--timeout", "20s", "--json"]).expect(0).json();
    assert_eq!(resumed["body"], "yes", "the question was asked once, and goes on");

    let run = started(jobs.command(&["run", "claude", "WAIT-FOR-GO", "--json"]));
    jobs.wait_for_file("prompts");
    let file = world.home().join("jobs.db");
    let records = open(&file);
    let id: String = records.query_row("SELECT public FROM job", [], |row| row.get(0)).unwrap();
    let wait = started(jobs.command(&["job", "wait", &id, "--json"]));
    jobs.until(&id, "running");
    records.execute_batch("ALTER TABLE job RENAME TO away").unwrap();
    fs::write(world.home().join("jobs").join(&id).join("bell"), "!").ok();
    let told = ended(run).expect(2).json();
    records.execute_batch("ALTER TABLE away RENAME TO job").unwrap();
    assert_eq!(
        (&told["job_id"], &told["error"]["code"]),
        (&id.as_str().into(), &"wait-failed".into()),
        "{told}"
    );
    fs::write(jobs.file("go"), "").unwrap();
    // The other wait has seen the gap or not: it has one document either way.
    let told = ended(wait);
    assert!(matches!(told.code, Some(0 | 2)), "{told:?}");
    assert_eq!(told.json()["job_id"], id.as_str());
    jobs.until(&id, "completed");
}

/// What is noted after the answer is out can't make a failure of it.
#[test]
fn e1_a_result_that_was_printed_is_not_followed_by_a_failure() {
    let jobs = Jobs::new();
    let world = &jobs.world;
    let id = text(
        &ended(started(jobs.command(&["job", "start", "claude", "hello", "--json"]))).expect(0).json()["job_id"],
    );
    jobs.until(&id, "completed");
    let refuse =
        "CREATE TRIGGER refuse BEFORE UPDATE ON TABLE_NAME BEGIN SELECT RAISE(ABORT, 'not now'); END";
    open(&world.home().join("jobs.db")).execute_batch(&refuse.replace("TABLE_NAME", "job")).unwrap();
    for command in [["job", "wait"], ["job", "result"]] {
        let told = ended(started(jobs.command(&[command[0], command[1], &id, "--json"]))).expect(0);
        assert!(told.json().to_string().contains("done"), "{told:?}");
    }
    let mut peer = Puppet::start(world, Style::Claude, "peer");
    peer.turn_in_peace();
    let ask = started(world.as_script(&["ask", "peer", "well?", "--timeout", "50s", "--json"]));
    let id = open_asks(world, 1).remove(0);
    peer.event(Moment::Prompt);
    // The answer is on its way; that it was read can't be noted.
    let file = open(&Store::path(world.home()));
    file.execute_batch(&refuse.replace("TABLE_NAME", "delivery WHEN new.state = 2")).unwrap();
    peer.shell(&["reply", &id, "well"]).expect(0);
    let answer = ended(ask).expect(0);
    assert_eq!(answer.json()["body"], "well", "{answer:?}");
    assert!(answer.stderr.contains("warning: "), "{answer:?}");
}
