//! Files that belong to the person, a project or an agent.
//!
//! Only a regular file is opened, and the open never waits: a pipe, a device, a socket or a folder
//! in its place is an error. A read has a limit. A longer file is an error too, because half a file
//! can mean something else than the whole.

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The flags of every open: it does not wait for the other end of a pipe, and no terminal becomes
/// this process's own.
pub(crate) const OPEN_FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a regular file for reading. Links are followed.
pub fn open(path: &Path) -> io::Result<File> {
    let file = openat(CWD, path, OFlags::RDONLY | OPEN_FLAGS, Mode::empty())?;
    let found = fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(not_plain());
    }
    Ok(File::from(file))
}

/// The whole of a regular file that has at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    whole(open(path)?, most)
}

/// The same as text.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
}

/// The first bytes of a regular file.
pub fn beginning(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last bytes of a regular file.
pub fn end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    end_of(open(path)?, most)
}

pub(crate) fn end_of(mut file: File, most: u64) -> io::Result<Vec<u8>> {
    use std::io::{Seek as _, SeekFrom};
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn whole(file: File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    // The file may grow meanwhile, and a kernel file reports length 0 but has content.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

pub(crate) fn not_plain() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a plain file")
}

fn too_large(most: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {most} bytes"))
}
