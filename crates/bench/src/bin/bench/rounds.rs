//! Interleaved rounds: each round runs every case once, in another order, so that other load on the
//! machine affects all cases equally.

use crate::Outcome;
use crate::child::{Shot, Spent};
use std::time::Duration;

/// Checks the result of a run.
type Check<'a> = Box<dyn FnMut(&Spent) -> Outcome<()> + 'a>;

/// One thing to measure.
pub struct Case<'a> {
    pub key: String,
    /// Prepares the next run, and returns it; not timed.
    prepare: Box<dyn FnMut(u32) -> Outcome<Shot> + 'a>,
    /// Checks the result, and cleans up; not timed.
    check: Check<'a>,
    series: Series,
    failed: Option<String>,
}

impl<'a> Case<'a> {
    /// A case that is prepared for each run.
    pub fn new(key: impl Into<String>, prepare: impl FnMut(u32) -> Outcome<Shot> + 'a) -> Self {
        Self {
            key: key.into(),
            prepare: Box::new(prepare),
            check: Box::new(|_| Ok(())),
            series: Series::default(),
            failed: None,
        }
    }

    /// A case that needs no preparation.
    pub fn constant(key: impl Into<String>, shot: Shot) -> Self {
        Self::new(key, move |_| Ok(shot.clone()))
    }

    /// Sets the check after each run.
    pub fn checked(mut self, check: impl FnMut(&Spent) -> Outcome<()> + 'a) -> Self {
        self.check = Box::new(check);
        self
    }

    fn run(&mut self, round: u32) -> Outcome<Spent> {
        let spent = (self.prepare)(round)?.fire()?;
        (self.check)(&spent)?;
        Ok(spent)
    }
}

/// The rounds of a case, or why there are none.
pub type Measured = (String, Result<Series, String>);

/// Runs all cases. A case that fails is left out from then on, with its reason. The first two
/// rounds only warm up.
pub fn run(mut cases: Vec<Case<'_>>, rounds: u32) -> Vec<Measured> {
    const WARM_UP_ROUNDS: u32 = 2;
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut order: Vec<usize> = (0..cases.len()).collect();
    for round in 0..rounds + WARM_UP_ROUNDS {
        dice.shuffle(&mut order);
        for at in &order {
            let case = &mut cases[*at];
            if case.failed.is_some() {
                continue;
            }
            match case.run(round) {
                Ok(spent) if round >= WARM_UP_ROUNDS => case.series.add(&spent),
                Ok(_) => {}
                Err(error) => case.failed = Some(error.to_string()),
            }
        }
    }
    cases.into_iter().map(|case| (case.key, case.failed.map_or(Ok(case.series), Err))).collect()
}

/// All runs of one case.
#[derive(Clone, Debug, Default)]
pub struct Series {
    walls: Vec<Duration>,
    cpus: Vec<Duration>,
    peak: u64,
    faults: Vec<u64>,
}

impl Series {
    fn add(&mut self, spent: &Spent) {
        self.walls.push(spent.wall);
        self.cpus.push(spent.cpu);
        self.peak = self.peak.max(spent.peak);
        self.faults.push(spent.faults);
    }

    pub fn wall(&self) -> Duration {
        median(&self.walls)
    }

    /// The median of user and system time.
    pub fn cpu(&self) -> Duration {
        median(&self.cpus)
    }

    pub fn all_cpu(&self) -> Duration {
        self.cpus.iter().sum()
    }

    /// The most memory that any run had.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    pub fn faults(&self) -> u64 {
        let mut sorted = self.faults.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    }
}

/// The middle one; of an even number, the mean of the two middle ones.
pub fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    match sorted.len() {
        0 => Duration::ZERO,
        len if len % 2 == 1 => sorted[len / 2],
        len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2,
    }
}

/// A fixed random sequence, so that each run of the bench has the same order of cases.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for at in (1..order.len()).rev() {
            let other = usize::try_from(self.roll() % (at as u64 + 1)).unwrap_or(at);
            order.swap(at, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let ms = |list: &[u64]| median(&list.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>());
        assert_eq!(ms(&[]), Duration::ZERO);
        assert_eq!(ms(&[9, 1, 5]), Duration::from_millis(5));
        assert_eq!(ms(&[9, 1, 5, 6]), Duration::from_micros(5500));
    }

    #[test]
    fn a_case_that_fails_gives_its_reason_and_the_others_go_on() {
        let bad =
            Case::new(
                "bad",
                |round| if round < 3 { Ok(Shot::new("/bin/true", "/")) } else { Err("broke".into()) },
            );
        let good = Case::constant("good", Shot::new("/bin/true", "/"));
        let measured = run(vec![bad, good], 4);
        assert_eq!(measured[0].1.as_ref().unwrap_err(), "broke");
        assert_eq!(measured[1].1.as_ref().unwrap().walls.len(), 4);
    }
}
