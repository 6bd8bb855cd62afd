//! Many processes at once: workers that each start one program after the other.

use crate::Outcome;
use crate::child::Shot;
use std::time::{Duration, Instant};

/// Workers at a time.
pub const WORKERS: usize = 8;
/// Programs that each starts.
pub const EACH: usize = 100;

/// What all of them did together.
pub struct Burst {
    /// From the first start to the last end.
    pub wall: Duration,
    /// What each run printed.
    pub outputs: Vec<Vec<u8>>,
}

/// Runs the program that `shot` gives for each worker and number. A worker ends with its first failure, which is the burst's.
pub fn burst(shot: impl Fn(usize, usize) -> Shot) -> Outcome<Burst> {
    let queues: Vec<Vec<Shot>> =
        (0..WORKERS).map(|worker| (0..EACH).map(|number| shot(worker, number)).collect()).collect();
    let start = Instant::now();
    let done: Vec<Result<Vec<Vec<u8>>, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = queues.iter().map(|queue| scope.spawn(|| one_by_one(queue))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned())))
            .collect()
    });
    let wall = start.elapsed();
    let mut outputs = Vec::new();
    for worker in done {
        outputs.extend(worker?);
    }
    Ok(Burst { wall, outputs })
}

fn one_by_one(queue: &[Shot]) -> Result<Vec<Vec<u8>>, String> {
    queue
        .iter()
        .map(|shot| shot.fire().map(|spent| spent.output).map_err(|error| error.to_string()))
        .collect()
}
