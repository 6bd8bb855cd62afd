//! Reading an agent's transcript for proof of an offer.

use crate::bell;
use baton_agents::Agent;
use baton_core::limits;
use baton_core::mail::{Item, Look, Search, Turns};
use baton_store::OpenOffer;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// Looks once. `now` is the turn that the session is in, if it is known.
pub fn look(agent: &dyn Agent, offer: &OpenOffer, now: Option<&str>) -> Look {
    let Some(transcript) = &offer.transcript else { return Look::Blind };
    let turns = Turns { offer: offer.turn.clone(), now: now.map(str::to_owned) };
    let mut search = Search::new(&offer.nonce, &offer.anchor, &turns);
    let seen = read_items(agent, Path::new(transcript), offer.read_from, |item, at| search.feed(item, at >= offer.position));
    if seen.is_some() { search.look() } else { Look::Blind }
}

/// Looks until something is concluded, or time runs out: an agent may write a moment later what it has long taken.
pub fn look_patiently(agent: &dyn Agent, offer: &OpenOffer, now: Option<&str>) -> Look {
    let deadline = Instant::now() + limits::SETTLE_WAIT.to_std();
    loop {
        let seen = look(agent, offer, now);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || matches!(seen, Look::Proven | Look::Passed) {
            return seen;
        }
        match (&offer.transcript, seen) {
            (None, _) => return seen,
            // The file is not there yet, nor is perhaps its folder, so there is nothing to watch but time.
            (Some(_), Look::Blind) => std::thread::sleep(left.min(Duration::from_millis(20))),
            (Some(transcript), _) => {
                bell::wait_for_change(Path::new(transcript), left);
            }
        }
    }
}

/// Whether the agent has written down a prompt of this turn already.
pub fn turn_is_written(agent: &dyn Agent, transcript: &Path, length: u64, turn: &str) -> bool {
    let mut found = false;
    read_items(agent, transcript, length.saturating_sub(limits::LOOK_BEHIND), |item, _| {
        found |= matches!(item, Item::Prompt { id } if id == turn);
        !found
    });
    found
}

/// The length of a transcript now; zero where there is none.
pub fn length(transcript: Option<&Path>) -> u64 {
    transcript.and_then(|file| std::fs::metadata(file).ok()).map_or(0, |metadata| metadata.len())
}

/// Feeds the items of a transcript from a position on, each with the position of its line. `None` if there is no such file.
fn read_items(agent: &dyn Agent, transcript: &Path, from: u64, mut feed: impl FnMut(&Item, u64) -> bool) -> Option<()> {
    let mut file = File::open(transcript).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    // One byte earlier, so that a line which starts exactly there is not taken for the rest of another.
    let start = from.saturating_sub(1);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut reader = BufReader::with_capacity(64 << 10, file.take(limits::LOOK_BYTES));
    let mut at = start;
    let mut line = Vec::new();
    if from > 0 {
        at += reader.read_until(b'\n', &mut line).ok()? as u64;
    }
    let mut items = agent.transcript();
    loop {
        line.clear();
        let count = reader.read_until(b'\n', &mut line).ok()? as u64;
        // A last line without its end is still being written.
        if count == 0 || line.last() != Some(&b'\n') {
            return Some(());
        }
        if let Ok(text) = std::str::from_utf8(&line) {
            for item in items(text.trim_end()) {
                if !feed(&item, at) {
                    return Some(());
                }
            }
        }
        at += count;
    }
}
