//! A file that only baton writes, in a folder where an agent looks for such files: a hooks file, a
//! plugin. A mark in it names our home. A file of that name without the mark belongs to another
//! program: it is never overwritten and never deleted. Pure: bytes in, edits out.

use std::path::Path;

use super::{Current, FileEdit, InstallError};

#[derive(Clone, Copy, Debug)]
pub struct OwnFile<'a> {
    pub path: &'a Path,
    /// What it contains, in words: "the hooks of baton".
    pub what: &'a str,
    /// The whole content, with the mark.
    pub bytes: &'a [u8],
    /// A text that only our file contains, for this home.
    pub mark: &'a str,
}

impl OwnFile<'_> {
    /// Writes the file, or updates it.
    pub fn write(&self, now: &Current) -> Result<FileEdit, InstallError> {
        let before = now.bytes(self.path);
        let verb = match before {
            None => "write",
            Some(bytes) if self.is_ours(bytes) => "update",
            Some(_) => return Err(InstallError::FileTaken { path: self.path.to_owned() }),
        };
        let what = format!("{verb} {}", self.what);
        Ok(FileEdit::write(self.path, before, self.bytes.to_vec(), what, Vec::new()))
    }

    /// Deletes the file, if it exists and is still ours.
    pub fn remove(&self, now: &Current) -> Option<FileEdit> {
        let before = now.bytes(self.path).filter(|bytes| self.is_ours(bytes))?;
        Some(FileEdit::take_out(self.path, before, None, format!("remove {}", self.what)))
    }

    fn is_ours(&self, bytes: &[u8]) -> bool {
        baton_core::bytes::contains(bytes, self.mark.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> OwnFile<'static> {
        OwnFile {
            path: Path::new("/a/baton.json"),
            what: "the hooks of baton",
            bytes: b"new, by baton of /home",
            mark: "by baton of /home",
        }
    }

    fn with(bytes: Option<&[u8]>) -> Current {
        [(file().path.to_owned(), bytes.map(<[u8]>::to_vec))].into_iter().collect()
    }

    #[test]
    fn it_is_written_and_brought_up_to_date() {
        for (before, what) in [
            (None, "write the hooks of baton"),
            (Some(&b"old, by baton of /home"[..]), "update the hooks of baton"),
        ] {
            let edit = file().write(&with(before)).unwrap();
            assert_eq!((edit.before.as_deref(), edit.after.as_deref()), (before, Some(file().bytes)));
            assert_eq!(edit.what, what);
        }
        assert!(!file().write(&with(Some(file().bytes))).unwrap().is_change());
    }

    #[test]
    fn it_is_removed_while_it_is_ours() {
        for bytes in [file().bytes, b"edited, by baton of /home"] {
            let edit = file().remove(&with(Some(bytes))).unwrap();
            assert_eq!((edit.before.as_deref(), edit.after), (Some(bytes), None));
        }
        assert!(file().remove(&with(None)).is_none());
    }

    #[test]
    fn a_file_of_another_program_is_left_alone() {
        for bytes in [&b""[..], b"mine", b"by baton of /other"] {
            let now = with(Some(bytes));
            assert_eq!(file().write(&now).unwrap_err().code(), "setup-file-taken");
            assert!(file().remove(&now).is_none());
        }
    }
}
