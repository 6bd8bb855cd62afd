//! The guard's memory from one hook to the next: the calls that were made and judged, and how often
//! it kept a turn from ending. One file, `guard.calls` in the home, serves all sessions.
//!
//! Every record is one line of the same length, written by one append. So the file has an order
//! that all hooks agree on, and no hook locks or waits. It holds digests only, never the text of a
//! call. If it can't be written, the guard remembers nothing and decides as before.

use baton_core::limits;
use baton_core::time::Moment;
use baton_machine::own;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A call is about to be made.
    Made,
    /// A call was judged: it may run, or the person is asked.
    Judged,
    /// A call was refused.
    Refused,
    /// A call has run.
    Ran,
    /// A turn was kept from ending, for the first time as far as the agent knows.
    Held,
    /// A turn was kept from ending, and the agent says that this happened before.
    HeldAgain,
    /// A turn was allowed to end.
    Ended,
}

const KIND_LETTERS: [(RecordKind, u8); 7] = [
    (RecordKind::Made, b'm'),
    (RecordKind::Judged, b'j'),
    (RecordKind::Refused, b'd'),
    (RecordKind::Ran, b'r'),
    (RecordKind::Held, b'h'),
    (RecordKind::HeldAgain, b'a'),
    (RecordKind::Ended, b'e'),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: RecordKind,
    /// The digest of the agent and its session.
    pub(crate) session: u64,
    /// The digest of the call.
    pub(crate) call: u64,
    /// The time in seconds.
    pub(crate) at: u32,
}

/// A kind, two digests, a time and the end of the line, with spaces between them.
const RECORD_BYTES: usize = 1 + 1 + 16 + 1 + 16 + 1 + 8 + 1;
/// Bytes of the end of the file that are read first. Most of what a hook looks for is there.
const TAIL_BYTES: u64 = 8 << 10;

impl Record {
    fn line(&self) -> String {
        let sign = KIND_LETTERS
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .map_or('?', |(_, sign)| char::from(*sign));
        format!("{sign} {:016x} {:016x} {:08x}\n", self.session, self.call, self.at)
    }

    fn read(line: &[u8]) -> Option<Self> {
        let (kind, _) = KIND_LETTERS.iter().find(|(_, sign)| line.first() == Some(sign))?;
        let number = |from: usize, to: usize| {
            u64::from_str_radix(std::str::from_utf8(line.get(from..to)?).ok()?, 16).ok()
        };
        let at = u32::try_from(number(36, 44)?).ok()?;
        Some(Self { kind: *kind, session: number(2, 18)?, call: number(19, 35)?, at })
    }
}

/// A time in whole seconds, as records hold it.
pub(crate) fn seconds(at: Moment) -> u32 {
    u32::try_from(at.0 / 1000).unwrap_or(u32::MAX)
}

/// A digest of these texts, in this order. It only tells calls apart and does not resist texts that
/// are crafted to collide.
pub(crate) fn digest(texts: &[&str]) -> u64 {
    let mut digest = Digest::default();
    for text in texts {
        digest.add(text.as_bytes());
        digest.add(&[0xff]);
    }
    digest.0
}

/// The digest of a value, without a copy of it.
pub(crate) fn digest_of(name: &str, value: &serde_json::Value) -> u64 {
    let mut digest = Digest::default();
    digest.add(name.as_bytes());
    // Writing to it never fails.
    serde_json::to_writer(&mut digest, value).ok();
    digest.0
}

/// FNV-1a.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl std::io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The journal of a home.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journal<'a> {
    home: &'a Path,
}

impl<'a> Journal<'a> {
    pub(crate) fn new(home: &'a Path) -> Self {
        Self { home }
    }

    fn file(self) -> PathBuf {
        self.home.join("guard.calls")
    }

    fn older(self) -> PathBuf {
        self.home.join("guard.calls.1")
    }

    /// Appends a record. Returns the offset behind it: all records before that offset are older.
    /// `None` if the file can't be written.
    pub(crate) fn append(self, record: &Record) -> Option<u64> {
        let mut file = own::append(&self.file()).ok()?;
        file.write_all(record.line().as_bytes()).ok()?;
        let end = file.stream_position().ok()?;
        if end > limits::LOG_BYTES {
            self.begin_anew(&file);
        }
        Some(end)
    }

    /// Moves a file aside that has grown too long. Only one of several hooks does it: the one that
    /// locks the file and still finds it under its name.
    fn begin_anew(self, file: &File) {
        let in_place = || Some(file.metadata().ok()?.ino() == self.file().symlink_metadata().ok()?.ino());
        if file.try_lock().is_ok() && in_place() == Some(true) {
            std::fs::rename(self.file(), self.older()).ok();
        }
    }

    /// Searches the records before an offset, newest first, also in the file that was moved aside.
    /// Returns the first thing found.
    pub(crate) fn newest<T>(
        self,
        until: Option<u64>,
        mut find: impl FnMut(&Record) -> Option<T>,
    ) -> Option<T> {
        // If the file was moved aside in between, `until` is an offset in the older file, and every
        // record of the new file is later.
        let (file, older) = (own::open(&self.file()).ok(), own::open(&self.older()).ok());
        let length = |file: &Option<File>| {
            file.as_ref().and_then(|file| Some(file.metadata().ok()?.len())).unwrap_or(0)
        };
        let end = until.unwrap_or(u64::MAX);
        let parts = if end != u64::MAX && end > length(&file) {
            vec![(older, end)]
        } else {
            vec![(file, end), (older, u64::MAX)]
        };
        for (file, end) in parts {
            let Some(mut file) = file else { continue };
            let end = end.min(file.metadata().ok()?.len());
            // Another program may have written to the file and made it longer than baton ever does.
            let begin =
                end.saturating_sub(2 * limits::LOG_BYTES).next_multiple_of(RECORD_BYTES as u64).min(end);
            let tail = end.saturating_sub(TAIL_BYTES).next_multiple_of(RECORD_BYTES as u64).min(end);
            for (from, to) in [(tail, end), (begin, tail.max(begin))] {
                let bytes = bytes(&mut file, from, to);
                let mut newest_first = bytes.rchunks_exact(RECORD_BYTES).filter_map(Record::read);
                if let Some(found) = newest_first.find_map(|record| find(&record)) {
                    return Some(found);
                }
            }
        }
        None
    }
}

/// The records between two offsets. They are whole unless another program cut the file.
fn bytes(file: &mut File, from: u64, to: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(from)).and_then(|_| file.take(to - from).read_to_end(&mut bytes));
    let whole = bytes.len() - bytes.len() % RECORD_BYTES;
    bytes.truncate(if read.is_ok() { whole } else { 0 });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn record(kind: RecordKind, call: u64) -> Record {
        Record { kind, session: 7, call, at: 1_794_000_000 }
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        for (kind, _) in KIND_LETTERS {
            let record = Record { kind, session: u64::MAX, call: 0, at: u32::MAX };
            assert_eq!(record.line().len(), RECORD_BYTES);
            assert_eq!(Record::read(record.line().as_bytes()), Some(record));
        }
        assert_eq!(Record::read(b"x"), None);
    }

    #[test]
    fn a_search_sees_only_the_records_before_its_own() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::new(home.path());
        journal.append(&record(RecordKind::Judged, 1)).unwrap();
        let place = journal.append(&record(RecordKind::Judged, 2)).unwrap();
        journal.append(&record(RecordKind::Judged, 3)).unwrap();
        let mut seen = Vec::new();
        journal.newest(Some(place), |record| {
            seen.push(record.call);
            None::<()>
        });
        assert_eq!(seen, [2, 1]);
        assert_eq!(journal.newest(None, |record| Some(record.call)), Some(3));
    }

    /// Many hooks at once, across the length at which a new file starts: nothing of the last file's
    /// length is lost.
    #[test]
    fn records_of_hooks_at_once_are_all_there_while_files_are_moved_aside() {
        let home = tempfile::tempdir().unwrap();
        let each = limits::LOG_BYTES / RECORD_BYTES as u64 / 4;
        std::thread::scope(|scope| {
            for hook in 0..6_u64 {
                let home = home.path();
                scope.spawn(move || {
                    let journal = Journal::new(home);
                    for n in 0..each {
                        let call = hook * 1_000_000 + n;
                        journal.append(&record(RecordKind::Judged, call)).unwrap();
                        if n % 97 == 0 {
                            let found = journal.newest(None, |record| (record.call == call).then_some(()));
                            assert_eq!(found, Some(()), "hook {hook}, record {n}");
                        }
                    }
                });
            }
        });
        let mut calls = BTreeSet::new();
        Journal::new(home.path()).newest(None, |record| {
            calls.insert(record.call);
            None::<()>
        });
        assert_eq!(calls.len() as u64, each * 6);
    }
}
