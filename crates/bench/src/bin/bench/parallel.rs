//! Many processes at once: each worker starts one program after the other.

use crate::Outcome;
use crate::child::{Shot, Spent};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

pub const WORKERS: usize = 8;
/// How many programs each worker starts.
pub const RUNS_EACH: usize = 100;

pub struct Burst {
    /// From the first start to the last end.
    pub wall: Duration,
    /// User and system time of all of them.
    pub cpu: Duration,
    /// What each run printed.
    pub outputs: Vec<Vec<u8>>,
}

/// Runs the program that `shot` gives for each worker and number. A worker stops at its first
/// failure, and then the burst fails.
pub fn burst(shot: impl Fn(usize, usize) -> Shot) -> Outcome<Burst> {
    let queue = |worker| (0..RUNS_EACH).map(|number| shot(worker, number)).collect();
    let queues: Vec<Vec<Shot>> = (0..WORKERS).map(queue).collect();
    let start = Instant::now();
    let done: Vec<Result<Vec<Spent>, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = queues.iter().map(|queue| scope.spawn(|| one_by_one(queue))).collect();
        let join = |worker: ScopedJoinHandle<'_, Result<Vec<Spent>, String>>| {
            worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned()))
        };
        workers.into_iter().map(join).collect()
    });
    let mut burst = Burst { wall: start.elapsed(), cpu: Duration::ZERO, outputs: Vec::new() };
    for worker in done {
        for spent in worker? {
            burst.cpu += spent.cpu;
            burst.outputs.push(spent.output);
        }
    }
    Ok(burst)
}

fn one_by_one(queue: &[Shot]) -> Result<Vec<Spent>, String> {
    queue.iter().map(|shot| shot.fire().map_err(|error| error.to_string())).collect()
}
