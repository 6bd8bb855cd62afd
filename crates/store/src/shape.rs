//! Checks whether the files of a store look like one, before SQLite opens them.
//!
//! If a pipe is in the place of a file, SQLite waits for it. If a file was truncated, SQLite works
//! until a query meets a missing page: it would accept mail into a store that can't be read. So
//! this module compares the file's length with what its header says. After a crash in the middle of
//! folding, a missing page may be in the WAL; only then the WAL is read.

use baton_core::{Code, Error};
use baton_machine::own;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The part of SQLite's header that is read: up to the number of pages and its check.
const HEADER_BYTES: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The headers of a WAL and of each of its frames.
const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// Checks the files of a store. A missing file is no error here.
pub(crate) fn check(file: &Path, wal: &Path) -> Result<(), Error> {
    let mut shared = file.as_os_str().to_owned();
    shared.push("-shm");
    plain_file_length(Path::new(&shared))?;
    let wal_length = plain_file_length(wal)?.unwrap_or(0);
    match plain_file_length(file)? {
        None => return Ok(()),
        Some(0) if wal_length == 0 => return Ok(()),
        Some(0) => return Err(cut(file)),
        Some(_) => {}
    }
    // Another process may fold the WAL at this moment; then the next look finds the file whole. If
    // the file can't be read here, SQLite gives the better error.
    let Ok(open) = own::open(file) else { return Ok(()) };
    let is_whole = || is_whole(&open, wal).unwrap_or(true);
    if is_whole() || is_whole() || is_whole() { Ok(()) } else { Err(cut(file)) }
}

/// The length of a file, if it is there.
fn plain_file_length(path: &Path) -> Result<Option<u64>, Error> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => Err(strange(path)),
        found => Ok(found.ok().map(|found| found.len())),
    }
}

/// Whether each page that the header counts is in the file or in the WAL.
fn is_whole(file: &File, wal: &Path) -> io::Result<bool> {
    let Some((page, pages)) = pages(file)? else { return Ok(true) };
    let whole = file.metadata()?.len() / page;
    if whole >= pages {
        return Ok(true);
    }
    let in_wal = frames(wal, page).unwrap_or_default();
    Ok((whole + 1..=pages).all(|page| in_wal.contains(&page)))
}

/// The size of a page, and the number of pages that the header counts.
fn pages(file: &File) -> io::Result<Option<(u64, u64)>> {
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0)?;
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    // The number of pages is valid only if the two change counters agree.
    let known = header.starts_with(MAGIC) && page >= 512 && number(24) == number(92);
    Ok(known.then(|| (page, u64::from(number(28)))))
}

/// The pages in the frames of a WAL that belong to its current round.
fn frames(wal: &Path, page: u64) -> io::Result<BTreeSet<u64>> {
    let mut wal = BufReader::new(own::open(wal)?);
    let mut header = [0; WAL_HEADER_BYTES];
    wal.read_exact(&mut header)?;
    let mut found = BTreeSet::new();
    let mut frame = [0; FRAME_HEADER_BYTES];
    while wal.read_exact(&mut frame).is_ok() {
        // Frames of an older round have other salts than the header.
        if frame[8..16] != header[16..24] {
            break;
        }
        if io::copy(&mut wal.by_ref().take(page), &mut io::sink())? < page {
            break;
        }
        found.insert(u64::from(u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]])));
    }
    Ok(found)
}

fn strange(file: &Path) -> Error {
    Error::new(Code::StoreUnavailable, format!("{} is not a plain file", file.display()))
        .hint("move it away; baton then makes a new one")
}

fn cut(file: &Path) -> Error {
    Error::new(
        Code::StoreCorrupt,
        format!("{} is truncated: it is shorter than its header says", file.display()),
    )
    .hint("restore a backup, or move it away with its -wal and -shm; baton then makes a new one")
}
