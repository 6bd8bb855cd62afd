//! `baton demo`: every chapter ends with its proof, and nothing is left behind.

use crate::processes::Shepherd;
use crate::world::{Done, World, done, run};
use baton_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What each chapter ends with, in their order; the one about approvals needs a caller that may
/// answer.
const PROOFS: [&str; 10] = [
    "✓ ada and lin are registered by their own hooks",
    "✓ seen once, proven by lin's own transcript",
    "✓ the hook is dead, and lin has not heard of the message",
    "✓ it arrived all the same, and once",
    "✓ the ask ended with the reply to it, and nothing else",
    "✓ woken, and the mail was seen once",
    "✓ a worker of its own ran the job, and its asker has the result",
    "✓ refused: that is rm -rf /; the same pipe with a harmless text may run",
    APPROVED,
    "✓ 6 messages, each seen once; nothing is left open",
];
const APPROVED: &str = "✓ the answer reached the hook that asked, and the tool has run";

/// A folder for temporary files in which nothing may be left.
fn temp(world: &World) -> PathBuf {
    let folder = world.path("t");
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[track_caller]
fn assert_nothing_is_left(world: &World) {
    assert!(!world.home().exists(), "the real home was written");
    let left: Vec<_> = fs::read_dir(temp(world)).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[track_caller]
fn assert_proves(shown: &str, proofs: impl IntoIterator<Item = &'static str>) {
    let mut rest = shown;
    for proof in proofs {
        let at = rest.find(proof).unwrap_or_else(|| panic!("{proof:?} is not next in\n{shown}"));
        rest = &rest[at + proof.len()..];
    }
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn the_demo_proves_every_chapter_and_leaves_nothing_behind() {
    let world = World::new();
    let mut command = world.as_script(&["demo"]);
    command.env("TMPDIR", temp(&world));
    let shown = run(command, b"").expect(0).stdout;
    // Below an agent no caller may answer; another test is about that.
    let may_answer = !shown.contains("skipped: ");
    assert_proves(&shown, PROOFS.into_iter().filter(|proof| may_answer || *proof != APPROVED));
    assert!(!shown.contains('\u{1b}'), "colours in a pipe");
    assert_nothing_is_left(&world);
}

#[test]
fn on_a_terminal_the_demo_has_colours_and_the_person_answers() {
    let world = World::new();
    let folder = temp(&world);
    let line = format!("{} demo --fast", crate::world::quoted(crate::world::program()));
    let environment = [("NO_COLOR", ""), ("TMPDIR", folder.to_str().expect("a path"))];
    let shown = world.on_terminal(&line, &environment).expect(0).stdout;
    assert!(shown.contains("\u{1b}[32m✓ \u{1b}[0m"), "{shown}");
    assert_nothing_is_left(&world);
    if world.has_person() {
        assert!(shown.contains("baton approve a") && !shown.contains("reviewer"), "{shown}");
    }
}

#[test]
fn below_an_agent_the_demo_runs_without_an_answer_for_the_person() {
    let world = World::new();
    let agent = Shepherd::start(&world, "claude");
    let mut command = world.baton(&["demo"]);
    command.env("TMPDIR", temp(&world));
    let shown = agent.run(&command, b"").expect(0).stdout;
    assert_proves(&shown, PROOFS.into_iter().filter(|proof| *proof != APPROVED));
    assert!(shown.contains("skipped: this demo runs below an agent"), "{shown}");
    assert_nothing_is_left(&world);
}

#[test]
fn a_step_that_fails_ends_the_demo_with_its_reason() {
    let world = World::new();
    let mut command = world.baton(&["demo"]);
    command.env("TMPDIR", world.path("missing/file"));
    fs::write(world.path("missing"), "a file").expect("a file");
    let failed = run(command, b"").expect(1);
    assert!(failed.stderr.starts_with("error: the demo can't build its stage: "), "{failed:?}");
}

/// Linux tells the processes below another.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_dies_ends_the_demo_with_its_chapter_and_nothing_is_left() {
    let world = World::new();
    let failed = kill_first_below(world.baton(&["demo"]).env("TMPDIR", temp(&world))).expect(1);
    assert!(failed.stderr.starts_with("error: the demo stopped in \""), "{failed:?}");
    assert!(failed.stderr.contains("the process of ada") && failed.stderr.contains("\nhint: "), "{failed:?}");
    assert_nothing_is_left(&world);
}

#[cfg(target_os = "linux")]
fn kill_first_below(command: &mut Command) -> Done {
    let demo = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let demo = demo.spawn().expect("it starts");
    let children = format!("/proc/{0}/task/{0}/children", demo.id());
    let first = wait::poll(Duration::from_secs(30), || {
        fs::read_to_string(&children).ok()?.split(' ').next()?.parse().ok().and_then(Pid::from_raw)
    });
    kill_process(first.expect("an agent"), Signal::KILL).expect("it can be killed");
    let output = demo.wait_with_output().expect("its output");
    done(output.status, &output.stdout, &output.stderr)
}
