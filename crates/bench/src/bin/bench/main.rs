//! How fast baton is: one table, with ratios that mean the same on every machine.
//!
//! Each case is compared with `/bin/true` (the least cost of any process), with a floor (the least
//! cost of any program that reads or writes such a store), and with hcom and cc-safety-net if they
//! do the same. All run interleaved, and medians are compared. So the ratios are valid on a slow or
//! busy machine too. Absolute times are printed, but are no reason to fail.

mod cases;
mod child;
mod guard;
mod hcom;
mod homes;
mod jobs;
mod machine;
mod mcp;
mod parallel;
mod payload;
mod rounds;
mod sends;
mod table;
mod world;

use crate::hcom::Hcom;
use crate::machine::Watch;
use crate::payload::Event;
use crate::rounds::Measured;
use crate::table::{Kind, Row};
use crate::world::{Programs, Workshop, World};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Errors go to the person who runs the bench.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str =
    "usage: bench [--quick] [--rounds N] [--check] [--hcom PROGRAM] [--safety-net PROGRAM] [--scratch DIR]

  --quick         fewer rounds
  --rounds N      how many rounds (200)
  --check         exit 1 if a target is missed, except targets that are absolute times
  --hcom PROGRAM  compare with this hcom
  --safety-net PROGRAM
                  compare the guard with this cc-safety-net
  --scratch DIR   where the stores are made, on the disk to be measured (the system's temporary folder)";

struct Options {
    rounds: u32,
    bursts: u32,
    check: bool,
    hcom: Option<PathBuf>,
    safety_net: Option<PathBuf>,
    scratch: PathBuf,
    part: Part,
}

/// Which rows a process measures. The first hook marks its process as an agent for life, and below
/// an agent that is no session no job starts. So a process of its own runs the hooks. It also stays
/// small, and the kernel counts the driver's memory as that of the programs that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Starts the process for the hooks and sends, then measures MCP servers and jobs itself.
    Whole,
    HooksAndSends,
}

const HOOKS_AND_SENDS: &str = "--hooks-and-sends";

impl Options {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut options = Self {
            rounds: 200,
            bursts: 3,
            check: false,
            hcom: None,
            safety_net: None,
            scratch: std::env::temp_dir(),
            part: Part::Whole,
        };
        while let Some(argument) = arguments.next() {
            match argument.to_str()? {
                "--quick" => (options.rounds, options.bursts) = (30, 1),
                "--rounds" => options.rounds = arguments.next()?.to_str()?.parse().ok()?,
                "--check" => options.check = true,
                "--hcom" => options.hcom = Some(arguments.next()?.into()),
                "--safety-net" => options.safety_net = Some(arguments.next()?.into()),
                HOOKS_AND_SENDS => options.part = Part::HooksAndSends,
                "--scratch" => options.scratch = arguments.next()?.into(),
                _ => return None,
            }
        }
        Some(options)
    }
}

fn main() -> ExitCode {
    if std::env::args_os().any(|argument| argument == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some(options) = Options::read(std::env::args_os().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    match run(&options) {
        Ok(missed) if options.check && missed => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the tables. True if a target was missed.
fn run(options: &Options) -> Outcome<bool> {
    if options.part == Part::HooksAndSends {
        let rows = hooks_and_sends(options)?;
        print!("{}", table::render(&rows));
        return Ok(rows.iter().any(Row::is_missed));
    }
    let mut hooks = Command::new(std::env::current_exe()?);
    let status = hooks.args(std::env::args_os().skip(1)).args([HOOKS_AND_SENDS, "--check"]).status()?;
    let workshop = Workshop::new(programs()?, &options.scratch)?;
    let mut rows = mcp::rows(&workshop, options.rounds);
    rows.extend(jobs::rows(&workshop, options.rounds));
    print!("{}", table::render(&rows));
    Ok(!status.success() || rows.iter().any(Row::is_missed))
}

fn hooks_and_sends(options: &Options) -> Outcome<Vec<Row>> {
    let workshop = Workshop::new(programs()?, &options.scratch)?;
    let world = World::new(workshop)?;
    let hcom = compare_with(options, &world);
    let watch = Watch::new();
    let measured =
        rounds::run(cases::all(&world, hcom.as_ref().ok(), options.safety_net.as_deref()), options.rounds);
    let others = watch.others(spent(&measured));
    let machine = machine::judge(others);
    let share =
        others.map_or_else(|| "an unknown share".to_owned(), |share| format!("{:.0} %", share * 100.0));
    println!("{} rounds on {} cores; other programs used {share} of them", options.rounds, machine::cores());
    let mut rows = cases::rows(&measured, machine, hcom.as_ref().err().map(String::as_str));
    rows.extend(writes(&world));
    rows.extend(sends::rows(&world, hcom.as_ref().ok(), options.bursts));
    Ok(rows)
}

/// The programs beside this one.
fn programs() -> Outcome<Programs> {
    let here = std::env::current_exe()?;
    let beside = |name: &str| {
        let program = here.with_file_name(name);
        if program.is_file() {
            Ok(program)
        } else {
            Err(format!("{} is not built; run scripts/bench", program.display()))
        }
    };
    Ok(Programs {
        baton: beside("baton")?,
        floor_read: beside("floor-read")?,
        floor_write: beside("floor-write")?,
    })
}

fn compare_with(options: &Options, world: &World) -> Result<Hcom, String> {
    let program = options.hcom.as_ref().ok_or("no --hcom was given")?;
    Hcom::new(program, world.workshop.scratch.path().join("hcom")).map_err(|error| error.to_string())
}

fn spent(measured: &[Measured]) -> Duration {
    measured.iter().filter_map(|(_, series)| series.as_ref().ok()).map(rounds::Series::all_cpu).sum()
}

fn writes(world: &World) -> Vec<Row> {
    let homes = [("a server has it open", &world.held), ("alone", &world.small.quiet)];
    homes
        .map(|(how, home)| {
            let row = Row::new(format!("hook, nothing pending, {how}: writes to the store"));
            match machine::writes(
                &world.hook(home, &home.peers[0], &Event::Tools),
                world.workshop.scratch.path(),
            ) {
                Ok(writes) => row.at_most("none", writes.store as f64, 0.0, Kind::Ratio).note(format!(
                    "{} to store and WAL, {} to SQLite's shared memory",
                    writes.store, writes.index
                )),
                Err(error) => row.note(format!("not measured: {error}")),
            }
        })
        .into()
}
