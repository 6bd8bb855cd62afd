//! Jobs, with a scripted agent that sleeps and answers: how soon a start returns, how soon a waiter
//! hears of the end, what waiting costs, and a hundred starts at once.

use crate::Outcome;
use crate::child::{Shot, Spent};
use crate::rounds::median;
use crate::table::{Kind, Row};
use crate::world::Workshop;
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PARALLEL_STARTS: usize = 100;
/// How long the measured wait takes.
const LONG_JOB_SECONDS: &str = "10";
/// Sleeps for the seconds in the prompt, and answers.
const AGENT_SCRIPT: &str = r#"#!/bin/sh
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
seconds=${prompt##*SLEEP-}
sleep "${seconds%%-*}"
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"slept"}],"stop_reason":"end_turn"}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"slept","stop_reason":"end_turn"}'
while read -r line; do :; done
"#;

/// A name, and how to measure it.
type Case<'a> = (&'a str, &'a dyn Fn(&Jobs) -> Outcome<Row>);

pub fn rows(workshop: &Workshop, rounds: u32) -> Vec<Row> {
    let cases: [Case<'_>; 4] = [
        ("job start", &|jobs| start(jobs, rounds.min(30))),
        ("job wait: from the end to the waiter's exit", &|jobs| hear(jobs, rounds.min(10))),
        ("job wait: CPU time of a wait of 10 s", &waiting),
        ("100 parallel job starts", &at_once),
    ];
    let measured = |(name, case): &Case<'_>| {
        let row = Jobs::new(workshop, name).and_then(|jobs| case(&jobs));
        row.unwrap_or_else(|error| Row::new(*name).note(format!("not measured: {error}")))
    };
    cases.iter().map(measured).collect()
}

/// A home, and an agent on the search path.
struct Jobs {
    baton: PathBuf,
    home: PathBuf,
    project: PathBuf,
    path: String,
}

impl Jobs {
    fn new(workshop: &Workshop, name: &str) -> Outcome<Self> {
        let folder: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let root = workshop.root.join(format!("jobs-{folder}"));
        let (bin, project) = (root.join("bin"), root.join("project"));
        fs::create_dir_all(&bin)?;
        fs::create_dir_all(&project)?;
        fs::write(bin.join("claude"), AGENT_SCRIPT)?;
        fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755))?;
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        let jobs = Self { baton: workshop.programs.baton.clone(), home: root.join("home"), project, path };
        // Creates the stores, once.
        jobs.wait(&jobs.start("0")?.0)?;
        Ok(jobs)
    }

    fn shot(&self) -> Shot {
        Shot::new(&self.baton, &self.project)
            .env("BATON_HOME", &self.home)
            .env("HOME", &self.project)
            .env("PATH", &self.path)
            .env("ANTHROPIC_API_KEY", "none")
    }

    fn start_shot(&self, seconds: &str) -> Shot {
        self.shot().args(["job", "start", "claude", "--json"]).arg(format!("SLEEP-{seconds}-"))
    }

    fn start(&self, seconds: &str) -> Outcome<(String, Spent)> {
        let spent = self.start_shot(seconds).fire()?;
        Ok((id_in(&spent.output)?, spent))
    }

    fn wait(&self, id: &str) -> Outcome<Spent> {
        self.shot().args(["job", "wait", "--max-wait", "5m", id]).fire()
    }

    fn ended_at(&self, id: &str) -> Outcome<Duration> {
        let database = Connection::open(self.home.join("jobs.db"))?;
        let at: i64 =
            database.query_row("SELECT ended_at FROM job WHERE public = ?1", [id], |row| row.get(0))?;
        Ok(Duration::from_millis(at.unsigned_abs()))
    }
}

/// The id in the output. Other output is on separate lines.
fn id_in(output: &[u8]) -> Outcome<String> {
    let text = String::from_utf8_lossy(output);
    let document = text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let id = document.as_ref().and_then(|document| document["job_id"].as_str());
    Ok(id.ok_or_else(|| format!("no job in {text}"))?.to_owned())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn start(jobs: &Jobs, rounds: u32) -> Outcome<Row> {
    let mut walls = Vec::new();
    for _ in 0..rounds {
        let (id, spent) = jobs.start("0")?;
        walls.push(spent.wall);
        jobs.wait(&id)?;
    }
    let wall = median(&walls);
    let slowest = walls.iter().max().copied().unwrap_or_default();
    Ok(Row::new("job start")
        .wall(wall, None)
        .at_most("≤ 150 ms", milliseconds(slowest), 150.0, Kind::Time)
        .note(format!("slowest {:.0} ms", milliseconds(slowest))))
}

fn hear(jobs: &Jobs, rounds: u32) -> Outcome<Row> {
    let mut late = Vec::new();
    for _ in 0..rounds {
        let (id, _) = jobs.start("0.5")?;
        jobs.wait(&id)?;
        let heard = SystemTime::now().duration_since(UNIX_EPOCH)?;
        late.push(heard.saturating_sub(jobs.ended_at(&id)?));
    }
    let slowest = late.iter().max().copied().unwrap_or_default();
    Ok(Row::new("job wait: from the end to the waiter's exit")
        .wall(median(&late), None)
        .at_most("≤ 250 ms", milliseconds(slowest), 250.0, Kind::Time)
        .note(format!("slowest {:.0} ms", milliseconds(slowest))))
}

/// Compared with a wait that ends at once.
fn waiting(jobs: &Jobs) -> Outcome<Row> {
    let (id, _) = jobs.start(LONG_JOB_SECONDS)?;
    let long = jobs.wait(&id)?;
    let short = jobs.wait(&id)?;
    let spent = long.cpu.saturating_sub(short.cpu);
    let share = spent.as_secs_f64() / long.wall.as_secs_f64();
    Ok(Row::new("job wait: CPU time of a wait of 10 s")
        .at_most("≤ 0.1 % of a core", share, 0.001, Kind::Time)
        .note(format!("{:.1} ms in {:.1} s", milliseconds(spent), long.wall.as_secs_f64())))
}

/// Compared with as many runs of baton that start nothing.
fn at_once(jobs: &Jobs) -> Outcome<Row> {
    let plain = together(&vec![jobs.shot().args(["whoami"]); PARALLEL_STARTS])?.0;
    let (wall, outputs) = together(&vec![jobs.start_shot("0.3"); PARALLEL_STARTS])?;
    let mut wait = jobs.shot().args(["job", "wait", "--max-wait", "5m", "--json"]);
    for output in &outputs {
        wait = wait.arg(id_in(output)?);
    }
    let ended: Value = serde_json::from_slice(&wait.fire()?.output)?;
    let results = ended.as_array().into_iter().flatten().filter(|row| row["result"] == "slept").count();
    if results != PARALLEL_STARTS {
        return Err(format!("{results} results of {PARALLEL_STARTS} jobs").into());
    }
    let beyond = wall.saturating_sub(plain);
    Ok(Row::new(format!("{PARALLEL_STARTS} parallel job starts"))
        .wall(wall, Some(plain))
        .at_most("≤ 1 s beyond as many whoami", beyond.as_secs_f64(), 1.0, Kind::Time)
        .note(format!("{:.0} ms beyond; {PARALLEL_STARTS} results", milliseconds(beyond))))
}

fn together(shots: &[Shot]) -> Outcome<(Duration, Vec<Vec<u8>>)> {
    let begun = Instant::now();
    let done: Vec<Result<Vec<u8>, String>> = std::thread::scope(|scope| {
        let fire =
            |shot| scope.spawn(move || Shot::fire(shot).map(|spent| spent.output).map_err(|e| e.to_string()));
        let fired: Vec<_> = shots.iter().map(fire).collect();
        fired
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    let wall = begun.elapsed();
    let outputs: Result<Vec<Vec<u8>>, String> = done.into_iter().collect();
    Ok((wall, outputs?))
}
