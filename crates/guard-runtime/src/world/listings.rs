//! The names in folders, for patterns. The work of one judgement is bounded, however many patterns
//! a command has.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How many names one judgement reads, and how many folders it lists. A command with more patterns
/// is not understood.
const MAX_NAMES: usize = 64 << 10;
const MAX_FOLDERS: usize = 256;

/// The folders listed so far.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    known: RefCell<HashMap<PathBuf, Option<Vec<String>>>>,
    looked_at: Cell<usize>,
}

impl Listings {
    /// The names in a folder. Empty if there is no such folder; `None` if it can't be listed or has
    /// too many names.
    pub(crate) fn names_in(&self, folder: &Path, most: usize) -> Option<Vec<String>> {
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_FOLDERS && !known.contains_key(folder) {
            return None;
        }
        let names = known.entry(folder.to_owned()).or_insert_with(|| listed(folder, most)).as_ref()?;
        let looked_at = self.looked_at.get() + names.len();
        self.looked_at.set(looked_at);
        (names.len() <= most && looked_at <= MAX_NAMES).then(|| names.clone())
    }
}

fn listed(folder: &Path, most: usize) -> Option<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Some(Vec::new());
        }
        Err(_) => return None,
    };
    let mut names = Vec::new();
    for entry in entries {
        if names.len() >= most {
            return None;
        }
        // No rule knows a name that is not UTF-8.
        names.extend(entry.ok()?.file_name().into_string());
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_listed_whole_is_known() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", ".b", "c"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let listings = Listings::default();
        let mut names = listings.names_in(folder.path(), 3).unwrap();
        names.sort();
        assert_eq!(names, [".b", "a", "c"]);
        assert_eq!(Listings::default().names_in(folder.path(), 2), None);
        for missing in ["none", "a", "none/at/all"] {
            assert_eq!(listings.names_in(&folder.path().join(missing), 3), Some(Vec::new()), "{missing}");
        }
        let asked = (0..MAX_NAMES).filter(|_| listings.names_in(folder.path(), 3).is_some()).count();
        assert!(asked < MAX_NAMES / 2, "{asked}");
    }
}
