//! Reads an agent's transcript for the proof of an offer.

use baton_agents::Agent;
use baton_core::mail::{Item, Proof, Search, Turns};
use baton_core::{bytes, limits};
use baton_machine::bell::Watch;
use baton_store::OpenOffer;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes that a search of a transcript's end reads at a time.
const PIECE_BYTES: usize = 16 << 10;

/// Searches once. `now` is the turn that the session is in, if it is known.
pub fn read_proof(agent: &dyn Agent, offer: &OpenOffer, now: Option<&str>) -> Proof {
    if agent.quirks().shows_requests {
        // Its next request shows it, from whichever process.
        return Proof::Held;
    }
    let Some(transcript) = &offer.transcript else { return Proof::Blind };
    let turns = Turns {
        offer: offer.turn.clone(),
        now: now.map(str::to_owned),
        unnamed: !agent.quirks().names_turns,
    };
    let mut search = Search::new(&offer.nonce, &offer.anchor, &turns);
    let transcript = Path::new(transcript);
    // Transcripts only grow. A shorter one is another file, and can't hold the offer.
    let same_file = transcript_length(Some(transcript)) >= offer.position;
    let seen = same_file.then(|| {
        read_items(agent, transcript, offer.read_from, |item, at| search.feed(item, at >= offer.position))
    });
    if seen.flatten().is_some() { search.proof() } else { Proof::Blind }
}

/// Searches until there is a conclusion or the deadline has passed. An agent may write a moment
/// later what it has already taken.
pub fn await_proof(agent: &dyn Agent, offer: &OpenOffer, now: Option<&str>, deadline: Instant) -> Proof {
    let Some(transcript) = offer.transcript.as_deref().map(Path::new) else { return Proof::Blind };
    // One watch for the whole wait, from before the first search: to close a watch costs more than
    // a search.
    let mut watch = Watch::new(transcript).ok();
    loop {
        let seen = read_proof(agent, offer, now);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || matches!(seen, Proof::Proven | Proof::Passed) {
            return seen;
        }
        match &mut watch {
            Some(watch) => _ = watch.wait(left),
            // The file does not exist yet, and perhaps its folder does not, so there is nothing to
            // watch.
            None => {
                std::thread::sleep(left.min(Duration::from_millis(20)));
                watch = Watch::new(transcript).ok();
            }
        }
    }
}

/// Whether the agent has already written a prompt of this turn after `since`, where the last known
/// turn began. In most cases the turn's id is not in the file, and then this parses no line.
pub fn turn_is_written(agent: &dyn Agent, transcript: &Path, since: u64, length: u64, turn: &str) -> bool {
    let from = length.saturating_sub(limits::LOOK_BEHIND_BYTES).max(if since <= length { since } else { 0 });
    let Some(mut file) = open(transcript) else { return false };
    let piece = usize::try_from(length - from).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
    if file.seek(SeekFrom::Start(from)).is_err()
        || !contains(file.take(length - from), vec![0; piece + turn.len()], turn.as_bytes())
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

/// Whether the turn that began at `from` was taken back: the conversation was replaced after its
/// last response.
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

/// Whether a summary has replaced the conversation since `from`.
pub fn is_summarized(agent: &dyn Agent, transcript: &Path, from: u64) -> bool {
    let mut summarized = false;
    read_items(agent, transcript, from, |item, _| {
        summarized = matches!(item, Item::Summarized);
        !summarized
    });
    summarized
}

/// Whether a subagent that writes into this folder is working: it wrote after its parent, which
/// waits for it.
pub fn is_subagent_working(folder: &Path, transcript: &Path) -> bool {
    let written = |file: &Path| std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let newest = entries.flatten().filter_map(|entry| written(&entry.path())).max();
    newest.is_some() && newest > written(transcript)
}

/// Whether the rest of a file contains these bytes. It reads pieces of the buffer's size, because a
/// buffer for the whole rest would cost more than the read.
fn contains(mut file: impl std::io::Read, mut piece: Vec<u8>, sought: &[u8]) -> bool {
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
        // A possible start of a match moves to the front of the next piece.
        kept = filled.min(sought.len().saturating_sub(1));
        piece.copy_within(filled - kept..filled, 0);
    }
}

/// The length of a transcript now. Zero if there is none.
pub fn transcript_length(transcript: Option<&Path>) -> u64 {
    transcript.and_then(|file| std::fs::metadata(file).ok()).map_or(0, |metadata| metadata.len())
}

/// Opens a transcript. The path comes from the agent. If it is a pipe, the hook must not wait for a
/// writer.
fn open(transcript: &Path) -> Option<File> {
    baton_machine::files::open(transcript).ok()
}

/// Feeds the items of a transcript from a position on, each with the position of its line. `None`
/// if the file can't be read.
fn read_items(
    agent: &dyn Agent,
    transcript: &Path,
    from: u64,
    mut feed: impl FnMut(&Item, u64) -> bool,
) -> Option<()> {
    let mut file = open(transcript)?;
    // One byte earlier, so that a line which starts exactly at `from` does not count as the rest of
    // another.
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
        // The agent is still writing a last line without its end.
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
