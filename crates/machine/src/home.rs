//! Checks that a home is safe to use: no other user can write to it, or replace it by another
//! folder.
//!
//! For a home that does not exist yet, the folders above it count.

use crate::own::is_trusted;
use rustix::fs::{FileType, Mode, Stat, lstat};
use std::path::{Path, PathBuf};

/// The owner that the kernel shows for users without a number in this namespace. In a sandbox, root
/// is one of them.
const UNMAPPED_UID: u32 = 65_534;

/// What is wrong with a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsafe {
    /// The unsafe folder: the home, or one above it.
    pub folder: PathBuf,
    /// Why it is unsafe, to follow its name in a sentence.
    pub why: &'static str,
}

/// Checks a home, given by its absolute path.
pub fn check(home: &Path) -> Result<(), Unsafe> {
    if has_link(home)?
        && let Ok(real) = home.canonicalize()
    {
        has_link(&real)?;
    }
    Ok(())
}

/// Checks each folder of a path. Returns whether one of them is a link.
fn has_link(home: &Path) -> Result<bool, Unsafe> {
    let mut link = false;
    for folder in home.ancestors() {
        let Ok(found) = lstat(folder) else { continue };
        link |= FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        if let Some(why) = fault(&found, folder == home) {
            return Err(Unsafe { folder: folder.to_owned(), why });
        }
    }
    Ok(link)
}

fn fault(found: &Stat, is_home: bool) -> Option<&'static str> {
    let kind = FileType::from_raw_mode(found.st_mode);
    let is_owned = is_trusted(found.st_uid) || (!is_home && found.st_uid == UNMAPPED_UID);
    if !is_owned {
        return Some("belongs to another user");
    }
    if kind == FileType::Symlink {
        // A link's rights mean nothing. Its target is checked separately.
        return None;
    }
    if is_home && kind != FileType::Directory {
        return Some("is not a folder");
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    // In a folder such as /tmp, users can't move each other's files.
    let is_sticky = !is_home && mode.contains(Mode::SVTX);
    if mode.contains(Mode::WOTH) && !is_sticky {
        return Some("can be written to by every user");
    }
    // Above the home, the person's own group does not count as another user.
    let is_own_group = !is_home && found.st_gid == rustix::process::getegid().as_raw();
    if mode.contains(Mode::WGRP) && !is_sticky && !is_own_group {
        return Some("can be written to by its group");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn set_mode(folder: &Path, mode: u32) {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn s20_a_home_that_others_can_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("above/home");
        assert_eq!(check(&home), Ok(()), "it is not there yet");
        fs::create_dir_all(&home).unwrap();
        set_mode(home.parent().unwrap(), 0o755);
        for (mode, safe) in [(0o700, true), (0o755, true), (0o777, false), (0o770, false), (0o1777, false)] {
            set_mode(&home, mode);
            assert_eq!(check(&home).is_ok(), safe, "{mode:o}");
        }
        set_mode(&home, 0o700);
        for (mode, safe) in [(0o755, true), (0o777, false), (0o1777, true)] {
            set_mode(home.parent().unwrap(), mode);
            assert_eq!(check(&home).is_ok(), safe, "above it: {mode:o}");
        }
    }

    #[test]
    fn s20_a_link_to_such_a_home_is_not_used_either() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        set_mode(&real, 0o700);
        assert_eq!(check(&link), Ok(()));
        assert_eq!(check(&link.join("below")), Ok(()));
        set_mode(&real, 0o777);
        assert_eq!(check(&link).unwrap_err().folder, real.canonicalize().unwrap());
    }
}
