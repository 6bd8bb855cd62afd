//! The table: a row per case, its ratios, its targets, and whether they were reached.

use crate::rounds::Series;
use std::time::Duration;

const COLUMNS: usize = 10;

#[derive(Debug, Default)]
pub struct Row {
    case: String,
    wall: Option<Duration>,
    cpu: Option<Duration>,
    peak: Option<u64>,
    faults: Option<u64>,
    to_true: Option<f64>,
    wall_to_floor: Option<f64>,
    cpu_to_floor: Option<f64>,
    checks: Vec<Check>,
    note: Option<String>,
}

#[derive(Debug)]
struct Check {
    target: String,
    verdict: Verdict,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Reached,
    Missed,
    /// It means nothing, because other programs were running.
    Disturbed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Valid on every machine, busy or not.
    Ratio,
    /// A ratio of wall times, valid on a quiet machine. What this machine was.
    QuietRatio(Machine),
    /// An absolute time: shown, and never a failure.
    Time,
}

/// Whether other programs used the machine meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    Quiet,
    /// Too much for wall times to mean anything.
    Busy,
}

impl Row {
    pub fn new(case: impl Into<String>) -> Self {
        Self { case: case.into(), ..Self::default() }
    }

    /// Adds a series, compared with `/bin/true` and a floor.
    pub fn series(mut self, series: &Series, truth: Option<&Series>, floor: Option<&Series>) -> Self {
        self.wall = Some(series.wall());
        self.cpu = Some(series.cpu());
        self.peak = Some(series.peak());
        self.faults = Some(series.faults());
        self.to_true = truth.map(|truth| ratio(series.wall(), truth.wall()));
        self.wall_to_floor = floor.map(|floor| ratio(series.wall(), floor.wall()));
        self.cpu_to_floor = floor.map(|floor| ratio(series.cpu(), floor.cpu()));
        self
    }

    /// Adds one wall time, and its ratio to a floor's.
    pub fn wall(mut self, wall: Duration, floor: Option<Duration>) -> Self {
        self.wall = Some(wall);
        self.wall_to_floor = floor.map(|floor| ratio(wall, floor));
        self
    }

    pub fn peak(mut self, bytes: u64) -> Self {
        self.peak = Some(bytes);
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Checks the CPU time as a multiple of the floor's.
    pub fn cpu_within(self, limit: f64) -> Self {
        let got = self.cpu_to_floor;
        self.within(Kind::Ratio, format!("cpu ≤ {limit} × floor"), got, limit)
    }

    /// Checks the wall time as a multiple of that of `/bin/true`.
    pub fn true_within(self, limit: f64, machine: Machine) -> Self {
        let got = self.to_true;
        self.within(Kind::QuietRatio(machine), format!("wall ≤ {limit} × true"), got, limit)
    }

    /// Checks any other number.
    pub fn at_most(self, what: &str, got: f64, limit: f64, kind: Kind) -> Self {
        self.within(kind, what.to_owned(), Some(got), limit)
    }

    fn within(mut self, kind: Kind, target: String, got: Option<f64>, limit: f64) -> Self {
        if let Some(got) = got {
            let verdict = match (got <= limit, kind) {
                (true, _) => Verdict::Reached,
                (false, Kind::QuietRatio(Machine::Busy)) => Verdict::Disturbed,
                (false, _) => Verdict::Missed,
            };
            self.checks.push(Check { target, verdict, kind });
        }
        self
    }

    /// Whether a target was missed that is valid on every machine.
    pub fn is_missed(&self) -> bool {
        self.checks.iter().any(|check| check.verdict == Verdict::Missed && check.kind != Kind::Time)
    }

    fn cells(&self) -> [String; COLUMNS] {
        let ms = |time: Option<Duration>| {
            time.map_or_else(String::new, |time| format!("{:.2}", time.as_secs_f64() * 1e3))
        };
        let times = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let targets: Vec<&str> = self.checks.iter().map(|check| check.target.as_str()).collect();
        let mut verdicts: Vec<&str> = self
            .checks
            .iter()
            .map(|check| match check.verdict {
                Verdict::Reached => "ok",
                Verdict::Missed => "over",
                Verdict::Disturbed => "busy",
            })
            .collect();
        verdicts.extend(self.note.as_deref());
        [
            self.case.clone(),
            ms(self.wall),
            times(self.to_true),
            times(self.wall_to_floor),
            ms(self.cpu),
            times(self.cpu_to_floor),
            self.faults.map_or_else(String::new, |faults| faults.to_string()),
            self.peak.map_or_else(String::new, |peak| format!("{:.1}", peak as f64 / f64::from(1 << 20))),
            targets.join(", "),
            verdicts.join(", "),
        ]
    }
}

pub fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(f64::MIN_POSITIVE)
}

pub fn render(rows: &[Row]) -> String {
    let head =
        ["case", "wall ms", "×true", "×floor", "cpu ms", "×floor", "faults", "MB", "target", "reached"]
            .map(str::to_owned);
    let lines: Vec<[String; COLUMNS]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let widths: [usize; COLUMNS] =
        std::array::from_fn(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> =
            line.iter()
                .zip(widths)
                .enumerate()
                // Words to the left, numbers to the right.
                .map(|(at, (cell, width))| {
                    if matches!(at, 0 | 8 | 9) {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                })
                .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_ratio_fails_and_a_missed_time_does_not() {
        let limit = |got, kind| Row::new("x").at_most("at most 1", got, 1.0, kind);
        assert!(limit(1.1, Kind::Ratio).is_missed());
        assert!(!limit(0.9, Kind::Ratio).is_missed());
        assert!(!limit(1.1, Kind::Time).is_missed());
    }

    #[test]
    fn a_busy_machine_excuses_wall_times_only() {
        let row = |machine| {
            Row { to_true: Some(2.0), cpu_to_floor: Some(1.0), ..Row::new("x") }
                .true_within(1.7, machine)
                .cpu_within(1.3)
        };
        assert!(!row(Machine::Busy).is_missed());
        assert!(row(Machine::Quiet).is_missed());
        assert!(render(&[row(Machine::Busy)]).contains("busy, ok"));
    }
}
