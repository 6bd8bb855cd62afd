//! 800 sends from 8 processes at a time: none lost, none doubled, and how long it takes.

use crate::Outcome;
use crate::hcom::Hcom;
use crate::homes::Home;
use crate::machine::{self, Watch};
use crate::parallel::{Burst, RUNS_EACH, WORKERS, burst};
use crate::rounds::median;
use crate::table::{Kind, Row, ratio};
use crate::world::World;
use std::collections::HashSet;
use std::time::Duration;

const ALL_SENDS: usize = WORKERS * RUNS_EACH;
/// The same as a row count.
const ALL_ROWS: u32 = ALL_SENDS as u32;

pub fn rows(world: &World, hcom: Option<&Hcom>, repeat: u32) -> Vec<Row> {
    let (mut floors, mut ours, mut theirs) = (Ok(Vec::new()), Ok(Vec::new()), Ok(Vec::new()));
    let watch = Watch::new();
    let mut spent = Duration::ZERO;
    for turn in 0..repeat {
        spent += add(&mut floors, || floor(world, turn));
        spent += add(&mut ours, || baton(world, turn));
        if let Some(hcom) = hcom {
            spent += add(&mut theirs, || compared(world, hcom, turn));
        }
    }
    let quiet = Kind::QuietRatio(machine::judge(watch.others(spent)));
    let middle = |times: &Result<Vec<Duration>, String>| {
        times.as_ref().ok().filter(|times| !times.is_empty()).map(|times| median(times))
    };
    let (floor, mine, other) = (middle(&floors), middle(&ours), middle(&theirs));
    let row = |case: String, times: &Result<Vec<Duration>, String>, floor: Option<Duration>| match (
        times,
        middle(times),
    ) {
        (Err(reason), _) => Row::new(case).note(format!("not measured: {reason}")),
        (Ok(_), Some(wall)) => Row::new(case).wall(wall, floor),
        (Ok(_), None) => Row::new(case).note("not measured: there is no hcom"),
    };
    let mut own = row(format!("{WORKERS} × {RUNS_EACH} parallel sends"), &ours, floor);
    if let (Some(mine), Some(floor)) = (mine, floor) {
        own =
            own.at_most("wall ≤ 1.5 × floor", ratio(mine, floor), 1.5, quiet).note("none lost, none doubled");
    }
    if let (Some(mine), Some(other)) = (mine, other) {
        own = own.at_most("faster than hcom", ratio(mine, other), 1.0, quiet);
    }
    vec![
        row(format!("floor: {WORKERS} × {RUNS_EACH} parallel inserts"), &floors, None),
        own,
        row(format!("hcom {}: {WORKERS} × {RUNS_EACH} parallel sends", crate::hcom::VERSION), &theirs, floor),
    ]
}

/// Adds the wall time of a burst, unless an earlier one failed. Returns its CPU time.
fn add(times: &mut Result<Vec<Duration>, String>, run: impl FnOnce() -> Outcome<Burst>) -> Duration {
    let Ok(list) = times else { return Duration::ZERO };
    match run() {
        Ok(burst) => {
            list.push(burst.wall);
            burst.cpu
        }
        Err(error) => {
            *times = Err(error.to_string());
            Duration::ZERO
        }
    }
}

fn fresh(world: &World, what: &str, turn: u32) -> Outcome<Home> {
    let home = world.small.quiet.copy(world.workshop.scratch.path().join(format!("burst-{what}-{turn}")))?;
    rustix::fs::sync();
    Ok(home)
}

fn floor(world: &World, turn: u32) -> Outcome<Burst> {
    let home = fresh(world, "floor", turn)?;
    let burst = burst(|worker, number| world.floor_write(&home, &format!("{worker} {number}")))?;
    let count: u32 = home.connect()?.query_row("SELECT count(*) FROM subagent_call", [], |row| row.get(0))?;
    if count == ALL_ROWS { Ok(burst) } else { Err(format!("{count} rows instead of {ALL_SENDS}").into()) }
}

fn baton(world: &World, turn: u32) -> Outcome<Burst> {
    let home = fresh(world, "baton", turn)?;
    let (senders, recipients) = home.peers.split_at(WORKERS);
    let burst = burst(|worker, number| {
        let to = &recipients[number % recipients.len()];
        world.send_from(&home, &senders[worker], to, &text(worker, number))
    })?;
    whole(&home, &burst)?;
    Ok(burst)
}

/// Checks that every printed id is in the store, once, and nothing else is.
fn whole(home: &Home, burst: &Burst) -> Outcome<()> {
    let printed: HashSet<String> = burst
        .outputs
        .iter()
        .filter_map(|output| String::from_utf8_lossy(output).split_whitespace().next().map(str::to_owned))
        .collect();
    let db = home.connect()?;
    let stored: HashSet<String> = db
        .prepare("SELECT public FROM message")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let (bodies, waiting): (u32, u32) = db.query_row(
        "SELECT (SELECT count(DISTINCT body) FROM message), (SELECT count(*) FROM delivery WHERE state = 0)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if printed == stored && printed.len() == ALL_SENDS && [bodies, waiting] == [ALL_ROWS; 2] {
        return Ok(());
    }
    Err(format!(
        "{ALL_SENDS} sends: {} ids printed, {} stored, {bodies} bodies, {waiting} waiting",
        printed.len(),
        stored.len()
    )
    .into())
}

fn compared(world: &World, hcom: &Hcom, turn: u32) -> Outcome<Burst> {
    let fresh = hcom.again(world.workshop.scratch.path().join(format!("burst-hcom-{turn}")))?;
    rustix::fs::sync();
    let burst = burst(|worker, number| fresh.send(&text(worker, number)))?;
    let (different, all) = fresh.count("a parallel message")?;
    if [different, all] == [ALL_ROWS; 2] {
        Ok(burst)
    } else {
        Err(format!("{different} different messages of {all}, instead of {ALL_SENDS}").into())
    }
}

fn text(worker: usize, number: usize) -> String {
    format!(
        "a parallel message, number {number} of worker {worker}; the lock is taken twice when the second hook comes first"
    )
}
