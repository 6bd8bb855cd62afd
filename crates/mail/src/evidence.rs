//! Reading an agent's transcript for proof of an offer.

use crate::bell::Watch;
use baton_agents::Agent;
use baton_core::mail::{Item, Look, Search, Turns};
use baton_core::{bytes, limits};
use baton_store::OpenOffer;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a transcript's tail that are searched at a time.
const PIECE: usize = 16 << 10;

/// Looks once. `now` is the turn that the session is in, if it is known.
pub fn look(agent: &dyn Agent, offer: &OpenOffer, now: Option<&str>) -> Look {
    if agent.shows_requests() {
        // Its next request will tell, whichever process makes it.
        return Look::Held;
    }
    let Some(transcript) = &offer.transcript else { return Look::Blind };
    let turns =
        Turns { offer: offer.turn.clone(), now: now.map(str::to_owned), unnamed: !agent.names_turns() };
    let mut search = Search::new(&offer.nonce, &offer.anchor, &turns);
    let transcript = Path::new(transcript);
    // Transcripts only grow. A shorter one is another file, in which the offer has no place.
    let same_file = length(Some(transcript)) >= offer.position;
    let seen = same_file.then(|| {
        read_items(agent, transcript, offer.read_from, |item, at| search.feed(item, at >= offer.position))
    });
    if seen.flatten().is_some() { search.look() } else { Look::Blind }
}

/// Looks until something is concluded, or the deadline is over: an agent may write a moment later what it has long taken.
pub fn look_patiently(agent: &dyn Agent, offer: &OpenOffer, now: Option<&str>, deadline: Instant) -> Look {
    let Some(transcript) = offer.transcript.as_deref().map(Path::new) else { return Look::Blind };
    // One watch for the whole wait, from before the first look: to give one back costs more than a look.
    let mut watch = Watch::new(transcript).ok();
    loop {
        let seen = look(agent, offer, now);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || matches!(seen, Look::Proven | Look::Passed) {
            return seen;
        }
        match &mut watch {
            Some(watch) => _ = watch.wait(left),
            // The file is not there yet, nor is perhaps its folder, so there is nothing to watch but time.
            None => {
                std::thread::sleep(left.min(Duration::from_millis(20)));
                watch = Watch::new(transcript).ok();
            }
        }
    }
}

/// Whether the agent has written down a prompt of this turn already, behind `since`, where the last turn began that is known. Its id stands nowhere in
/// the file as a rule, and then no line is read.
pub fn turn_is_written(agent: &dyn Agent, transcript: &Path, since: u64, length: u64, turn: &str) -> bool {
    let from = length.saturating_sub(limits::LOOK_BEHIND).max(if since <= length { since } else { 0 });
    let Some(mut file) = open(transcript) else { return false };
    let piece = usize::try_from(length - from).unwrap_or(PIECE).min(PIECE);
    if file.seek(SeekFrom::Start(from)).is_err()
        || !stands_in(file.take(length - from), vec![0; piece + turn.len()], turn.as_bytes())
    {
        return false;
    }
    let mut found = false;
    read_items(agent, transcript, from, |item, _| {
        found |= matches!(item, Item::Prompt { id } if id == turn);
        !found
    });
    found
}

/// Whether the conversation was last replaced, not answered: the turn that began at `from` was taken back.
pub fn turn_is_taken_back(agent: &dyn Agent, transcript: &Path, from: u64) -> bool {
    let mut taken_back = false;
    read_items(agent, transcript, from, |item, _| {
        match item {
            Item::Replaced { .. } => taken_back = true,
            Item::Response { .. } => taken_back = false,
            _ => {}
        }
        true
    });
    taken_back
}

/// Whether a summary has taken the place of the conversation since `from`.
pub fn is_summarized(agent: &dyn Agent, transcript: &Path, from: u64) -> bool {
    let mut summarized = false;
    read_items(agent, transcript, from, |item, _| {
        summarized = matches!(item, Item::Summarized);
        !summarized
    });
    summarized
}

/// Whether a subagent is at work that writes into this folder: it wrote after its parent did, who waits for it.
pub fn subagent_works(folder: &Path, transcript: &Path) -> bool {
    let written = |file: &Path| std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let newest = entries.flatten().filter_map(|entry| written(&entry.path())).max();
    newest.is_some() && newest > written(transcript)
}

/// Whether these bytes stand anywhere in what is left of a file. Piece by piece, as large as the buffer: one for all of it would cost more than reading it.
fn stands_in(mut file: impl std::io::Read, mut piece: Vec<u8>, sought: &[u8]) -> bool {
    let mut kept = 0;
    loop {
        let Ok(count) = file.read(&mut piece[kept..]) else { return false };
        if count == 0 {
            return false;
        }
        let filled = kept + count;
        if bytes::contains(&piece[..filled], sought) {
            return true;
        }
        // What may be the beginning of it goes with the next piece.
        kept = filled.min(sought.len().saturating_sub(1));
        piece.copy_within(filled - kept..filled, 0);
    }
}

/// Where a look for the proof of an offer has to start that is made now: with the offer's turn, to learn which response it hangs on, but never so
/// far back that one look does not reach beyond the offer.
pub fn start_of_look(turn_from: u64, length: u64) -> u64 {
    let turn = turn_from.min(length).saturating_sub(limits::LOOK_BEHIND);
    turn.max(length.saturating_sub(limits::LOOK_BYTES / 2))
}

/// The length of a transcript now; zero where there is none.
pub fn length(transcript: Option<&Path>) -> u64 {
    transcript.and_then(|file| std::fs::metadata(file).ok()).map_or(0, |metadata| metadata.len())
}

/// Opens a transcript. The path is the agent's word: a pipe behind it must not hold up a hook until somebody writes to it.
fn open(transcript: &Path) -> Option<File> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(transcript).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Feeds the items of a transcript from a position on, each with the position of its line. `None` if there is no such file.
fn read_items(
    agent: &dyn Agent,
    transcript: &Path,
    from: u64,
    mut feed: impl FnMut(&Item, u64) -> bool,
) -> Option<()> {
    let mut file = open(transcript)?;
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
