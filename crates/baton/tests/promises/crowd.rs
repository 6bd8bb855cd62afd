//! Nine agents beside each other, faithful to how real ones write: late and in batches. Their
//! prompt hooks may be killed before they do anything, they read their mail on purpose at any
//! moment, and the store grows while a reader keeps its WAL long and a writer holds its lock.
//!
//! `BATON_SEED` says where to start, `BATON_ROUNDS` how many turns each agent has.

use crate::chaos::Dice;
use crate::paper::messages_in;
use crate::puppet::{Moment, Puppet, Style};
use crate::world::{World, rounds};
use baton_store::Store;
use baton_testkit::wait;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const AGENTS: u64 = 9;

fn name(number: u64) -> String {
    format!("agent-{number}")
}

/// One turn; gives what was sent in it.
fn turn(puppet: &mut Puppet<'_>, dice: &mut Dice, number: u64) -> Option<String> {
    let sent = dice.happens(60).then(|| {
        let to = (number + 1 + dice.roll(AGENTS - 1)) % AGENTS;
        puppet.send(&name(to), &"hello ".repeat(1 + dice.roll(2000) as usize))
    });
    let payloads = puppet.open(Moment::Prompt);
    let killed = dice.happens(40);
    let printed: Vec<_> = payloads.iter().filter(|_| !killed).map(|payload| puppet.hook(payload)).collect();
    puppet.close(Moment::Prompt, &printed);
    puppet.answer(1);
    puppet.paper.flush_some(dice.roll(6) as usize);
    if dice.happens(60) {
        let call = puppet.calls()[0].clone();
        let shown = puppet.shell(&["inbox"]).expect(0).stdout;
        let current = puppet.turn().map(str::to_owned);
        puppet.paper.tool_result(current.as_deref(), &call, &shown, &messages_in(&shown));
        puppet.paper.flush_some(dice.roll(6) as usize);
        puppet.paper.request(false);
    } else {
        puppet.event(Moment::Tools);
    }
    puppet.finish_turn();
    sent
}

/// Makes the WAL long, and holds the lock now and then, until told.
fn disturb(world: &World, over: &AtomicBool) {
    let file = Store::path(world.home());
    let (reader, writer) = (Connection::open(&file).unwrap(), Connection::open(&file).unwrap());
    writer.busy_timeout(Duration::from_secs(20)).unwrap();
    while !over.load(Ordering::Relaxed) {
        reader.execute_batch("BEGIN; SELECT count(*) FROM message").unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        thread::sleep(Duration::from_millis(300));
        writer.execute_batch("COMMIT").unwrap();
        thread::sleep(Duration::from_millis(200));
        reader.execute_batch("COMMIT").unwrap();
    }
}

/// Counts once, also where its agent has failed, so that the others don't wait for it.
struct Counts<'a>(&'a AtomicU64);

impl Drop for Counts<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Counts<'_> {
    /// Counts, and waits until all have.
    fn wait(self) {
        let counter = self.0;
        drop(self);
        wait::until(Duration::from_secs(120), || counter.load(Ordering::SeqCst) == AGENTS);
    }
}

fn play(style: Style) {
    let seed: u64 = std::env::var("BATON_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("BATON_SEED={seed}");
    let world = World::talkative();
    let over = AtomicBool::new(false);
    let (started, played) = (AtomicU64::new(0), AtomicU64::new(0));
    let sent: Vec<String> = thread::scope(|scope| {
        let players: Vec<_> = (0..AGENTS)
            .map(|number| {
                let (world, started, played) = (&world, &started, &played);
                scope.spawn(move || {
                    let (starts, plays) = (Counts(started), Counts(played));
                    let mut puppet = Puppet::start(world, style, &name(number));
                    starts.wait();
                    let mut dice = Dice((seed * AGENTS + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                    let sent: Vec<String> =
                        (0..rounds(4)).filter_map(|_| turn(&mut puppet, &mut dice, number)).collect();
                    plays.wait();
                    for _ in 0..4 {
                        puppet.turn_in_peace();
                    }
                    sent
                })
            })
            .collect();
        let starts = || started.load(Ordering::SeqCst) == AGENTS;
        assert!(wait::until(Duration::from_secs(60), starts), "all have started");
        let disturber = scope.spawn(|| disturb(&world, &over));
        let ended: Vec<_> = players.into_iter().map(|player| player.join()).collect();
        over.store(true, Ordering::Relaxed);
        disturber.join().unwrap();
        ended.into_iter().flat_map(Result::unwrap).collect()
    });
    let heard = crate::paper::heard(&world);
    for message in &sent {
        let times = heard.iter().filter(|id| *id == message).count();
        assert_eq!(times, 1, "BATON_SEED={seed} {style:?}: {message} was heard {times} times");
        assert_eq!(world.state(message), "seen", "BATON_SEED={seed} {style:?}: {message}");
    }
    assert!(!sent.is_empty());
}

#[test]
fn e2_a_crowd_of_claude_code_hears_each_message_once() {
    play(Style::Claude);
}

#[test]
fn e2_a_crowd_of_codex_hears_each_message_once() {
    play(Style::Codex);
}
