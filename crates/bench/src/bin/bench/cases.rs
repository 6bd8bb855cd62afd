//! The cases of the interleaved rounds, and their rows.

use crate::Outcome;
use crate::child::{Shot, Spent};
use crate::guard;
use crate::hcom::{self, Hcom};
use crate::homes::{BODY_MARK, Home};
use crate::payload::{Event, LAST_TURN_START};
use crate::rounds::{Case, Measured, Series};
use crate::table::{Kind, Machine, Row, ratio};
use crate::world::{Sized, World};
use std::path::Path;

const BODY: &str = "bench-mail: the lock is taken twice when the second hook comes before the first has committed; have a look at line 212";

pub fn all<'a>(world: &'a World, hcom: Option<&'a Hcom>, safety_net: Option<&Path>) -> Vec<Case<'a>> {
    let mut cases = vec![Case::constant("true", Shot::new("/bin/true", &world.small.quiet.project))];
    for (name, home) in quiet_homes(world) {
        cases.push(Case::constant(format!("floor-read {name}"), world.floor_read(home)));
        cases.push(
            Case::constant(format!("quiet {name}"), world.hook(home, &home.peers[0], &Event::Tools))
                .checked(nothing_said),
        );
    }
    for (name, sized) in sizes(world) {
        let floor = &sized.floor;
        let write = move |round| Ok(world.floor_write(floor, &format!("{name} {round}")));
        cases.push(Case::new(format!("floor-write {name}"), write).checked(|_| floor.fold()));
        cases.push(prompt(world, &sized.mail, name, 0));
        cases.push(prompt(world, &sized.mail, name, 1));
        cases.push(prompt(world, &sized.mail, name, 20));
        cases.push(tools(world, &sized.mail, name));
        cases.push(send(world, &sized.mail, name));
    }
    cases.push(send(world, &world.recent, "recent"));
    let script = |round| Ok(world.send(&world.small.mail, recipient(&world.small.mail, round), BODY));
    cases.push(Case::new("send script", script).checked(|_| one_accepted(&world.small.mail)));
    cases.extend(guard::cases(world));
    if let Some(program) = safety_net {
        cases.extend(guard::safety_net(world, program));
    }
    if let Some(hcom) = hcom {
        cases.push(Case::constant("hcom hook", hcom.hook()).checked(nothing_said));
        cases.push(Case::constant("hcom send", hcom.send(BODY)));
    }
    cases
}

fn quiet_homes(world: &World) -> [(&'static str, &Home); 4] {
    [("small", &world.small.quiet), ("full", &world.full.quiet), ("long", &world.long), ("held", &world.held)]
}

fn sizes(world: &World) -> [(&'static str, &Sized); 2] {
    [("small", &world.small), ("full", &world.full)]
}

fn nothing_said(spent: &Spent) -> Outcome<()> {
    if spent.output.is_empty() {
        Ok(())
    } else {
        Err(format!("said: {}", String::from_utf8_lossy(&spent.output)).into())
    }
}

fn delivered(spent: &Spent, home: &Home, count: usize) -> Outcome<()> {
    let said = String::from_utf8_lossy(&spent.output);
    // As the model sees it. The person's line has the beginning of a message too.
    let found = said.matches(&format!("| {BODY_MARK}")).count();
    home.rewind()?;
    if found == count { Ok(()) } else { Err(format!("brought {found} messages instead of {count}").into()) }
}

fn one_accepted(home: &Home) -> Outcome<()> {
    match home.rewind()? {
        1 => Ok(()),
        other => Err(format!("accepted {other} messages instead of one").into()),
    }
}

fn recipient(home: &Home, round: u32) -> &crate::homes::Peer {
    &home.peers[5 + round as usize % (home.peers.len() - 5)]
}

fn prompt<'a>(world: &'a World, home: &'a Home, name: &str, count: usize) -> Case<'a> {
    let peer = &home.peers[1];
    Case::new(format!("prompt {count} {name}"), move |round| {
        home.idle(peer, LAST_TURN_START)?;
        home.queue(peer, count)?;
        Ok(world.hook(home, peer, &Event::Prompt(round * 3 + count as u32 % 3)))
    })
    .checked(move |spent| delivered(spent, home, count))
}

fn tools<'a>(world: &'a World, home: &'a Home, name: &str) -> Case<'a> {
    let peer = &home.peers[0];
    Case::new(format!("tools 1 {name}"), move |_| {
        home.queue(peer, 1)?;
        Ok(world.hook(home, peer, &Event::Tools))
    })
    .checked(move |spent| delivered(spent, home, 1))
}

fn send<'a>(world: &'a World, home: &'a Home, name: &str) -> Case<'a> {
    let from = &home.peers[3];
    Case::new(format!("send {name}"), move |round| {
        Ok(world.send_from(home, from, recipient(home, round), BODY))
    })
    .checked(move |_| one_accepted(home))
}

/// The measured cases as rows. `hcom` says why it could not be measured, if it was not.
pub fn rows(measured: &[Measured], machine: Machine, hcom: Option<&str>) -> Vec<Row> {
    let book = Book(measured);
    let mut rows = vec![
        book.row("/bin/true", "true", None),
        book.row("floor: read one row, small store", "floor-read small", None),
    ];
    rows.push(book.row("floor: read one row, full store", "floor-read full", None));
    rows.push(book.row("floor: insert one row, small store", "floor-write small", None));
    rows.push(book.row("floor: insert one row, full store", "floor-write full", None));
    for (name, what) in [("small", "small store"), ("full", "full store")] {
        let row = book.row(
            format!("hook, nothing pending, {what}"),
            &format!("quiet {name}"),
            Some(&format!("floor-read {name}")),
        );
        rows.push(book.memory(row.cpu_within(1.3).true_within(1.7, machine), &format!("quiet {name}")));
    }
    rows.extend(book.growth(machine));
    rows.push(book.row("  … 250 KB of WAL, alone", "quiet long", Some("floor-read long")).cpu_within(1.3));
    rows.push(
        book.row("  … 250 KB of WAL, a server has it open", "quiet held", Some("floor-read held"))
            .cpu_within(1.3),
    );
    for (name, what) in [("small", "small store"), ("full", "full store")] {
        let floor = format!("floor-write {name}");
        rows.push(
            book.row(
                format!("hook, one message after tools, {what}"),
                &format!("tools 1 {name}"),
                Some(&floor),
            )
            .cpu_within(1.3),
        );
        rows.push(
            book.row(
                format!("hook, one message at a prompt, {what}"),
                &format!("prompt 1 {name}"),
                Some(&floor),
            )
            .cpu_within(1.3),
        );
        rows.push(book.memory(
            book.row(
                format!("hook, 20 messages at a prompt, {what}"),
                &format!("prompt 20 {name}"),
                Some(&floor),
            ),
            &format!("prompt 20 {name}"),
        ));
        rows.push(book.row(
            format!("hook, prompt without mail, {what}"),
            &format!("prompt 0 {name}"),
            Some(&floor),
        ));
        rows.push(
            book.row(format!("send from an agent's shell, {what}"), &format!("send {name}"), Some(&floor))
                .cpu_within(1.3),
        );
    }
    // Without a target. It shows what the limit on messages between two agents costs, which reads
    // all mail of its window.
    rows.push(book.row("  … 950 messages in the last minutes", "send recent", Some("floor-write small")));
    rows.push(
        book.row(
            "send from below an agent, no session, small store",
            "send script",
            Some("floor-write small"),
        )
        .cpu_within(1.3),
    );
    for (what, key, to_true, most) in guard::ROWS {
        let mut row = book.row(what, key, None);
        if let Some(limit) = to_true {
            row = row.true_within(limit, machine);
        }
        if let (Some(most), Ok(series)) = (most, book.find(key)) {
            row =
                row.at_most(&format!("≤ {most} ms"), series.wall().as_secs_f64() * 1000.0, most, Kind::Time);
        }
        rows.push(row);
    }
    rows.extend(
        guard::SAFETY_NET_ROWS
            .map(|(what, key)| book.row(format!("{}: {what}", guard::SAFETY_NET), key, None)),
    );
    for (what, key, floor) in [
        ("hook, nothing pending", "hcom hook", "floor-read small"),
        ("send", "hcom send", "floor-write small"),
    ] {
        let case = format!("hcom {}: {what}", hcom::VERSION);
        rows.push(match hcom {
            Some(reason) => Row::new(case).note(format!("not measured: {reason}")),
            None => book.row(case, key, Some(floor)),
        });
    }
    rows
}

struct Book<'a>(&'a [Measured]);

impl Book<'_> {
    fn find(&self, key: &str) -> Result<&Series, &str> {
        match self.0.iter().find(|(name, _)| name == key) {
            Some((_, measured)) => measured.as_ref().map_err(String::as_str),
            None => Err("no such case"),
        }
    }

    fn row(&self, case: impl Into<String>, key: &str, floor: Option<&str>) -> Row {
        let row = Row::new(case);
        let truth = self.find("true").ok().filter(|_| key != "true");
        match self.find(key) {
            Ok(series) => row.series(series, truth, floor.and_then(|floor| self.find(floor).ok())),
            Err(reason) => row.note(format!("not measured: {reason}")),
        }
    }

    fn memory(&self, row: Row, key: &str) -> Row {
        match self.find(key) {
            Ok(series) => {
                row.at_most("≤ 10 MB", series.peak() as f64, 10.0 * f64::from(1 << 20), Kind::Ratio)
            }
            Err(_) => row,
        }
    }

    /// How much slower a quiet hook is on a full store.
    fn growth(&self, machine: Machine) -> Option<Row> {
        let (small, full) = (self.find("quiet small").ok()?, self.find("quiet full").ok()?);
        let (cpu, wall) = (ratio(full.cpu(), small.cpu()), ratio(full.wall(), small.wall()));
        let row = Row::new("  … full store ÷ small store").note(format!("cpu {cpu:.2}, wall {wall:.2}"));
        let row = row.at_most("cpu ≤ 1.2 ×", cpu, 1.2, Kind::Ratio);
        Some(row.at_most("wall ≤ 1.2 ×", wall, 1.2, Kind::QuietRatio(machine)))
    }
}
