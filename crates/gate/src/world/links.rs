//! Symbolic links: a path as it really is. Each part is looked at once, however many paths go through it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links behind links that are followed, as the kernel does.
const MAX_LINKS: usize = 40;

/// What is at a place.
#[derive(Clone, Debug)]
enum Place {
    /// Something, or something that nobody may look at.
    Plain,
    /// A link, with what it says.
    Link(PathBuf),
    /// Nothing.
    Missing,
}

/// The links that were met.
#[derive(Debug, Default)]
pub(crate) struct Links {
    known: RefCell<HashMap<PathBuf, Place>>,
}

impl Links {
    /// An absolute path with its symbolic links resolved. What does not exist is taken as it is written.
    pub(crate) fn resolved(&self, path: &Path) -> PathBuf {
        let mut real = PathBuf::from("/");
        let (mut missing, mut links) = (false, 0);
        let mut ahead = path.components();
        // Most of a path is plain, and of one that does not exist nothing is looked at.
        let mut left = loop {
            let behind = ahead.as_path();
            match ahead.next() {
                None => return real,
                Some(Component::Normal(name)) => real.push(name),
                Some(Component::ParentDir) => break parts(behind),
                Some(_) => continue,
            }
            match self.at(&real) {
                Place::Plain => {}
                Place::Missing if !has_parents(ahead.as_path()) => {
                    if ahead.as_path() != Path::new("") {
                        real.push(ahead.as_path());
                    }
                    return real;
                }
                Place::Missing | Place::Link(_) => {
                    real.pop();
                    break parts(behind);
                }
            }
        };
        while let Some(part) = left.pop() {
            if part == ".." {
                real.pop();
                missing = false;
                continue;
            }
            real.push(&part);
            if missing {
                continue;
            }
            match self.at(&real) {
                Place::Plain => {}
                Place::Link(target) if links < MAX_LINKS => {
                    links += 1;
                    real.pop();
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    left.extend(parts(&target));
                }
                Place::Link(_) | Place::Missing => missing = true,
            }
        }
        real
    }

    fn at(&self, path: &Path) -> Place {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let place = match std::fs::read_link(path) {
            Ok(target) => Place::Link(target),
            // It is there, and no link.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => Place::Plain,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Place::Plain,
            Err(_) => Place::Missing,
        };
        self.known.borrow_mut().insert(path.to_owned(), place.clone());
        place
    }
}

/// Whether a path may lead upwards.
fn has_parents(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().windows(2).any(|two| two == b"..")
}

/// The parts of a path below its root, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    let mut parts: Vec<OsString> = parts.collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, Instant};

    #[test]
    fn a_path_is_what_the_kernel_would_open() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        symlink("a/b", root.join("near")).unwrap();
        symlink(root.join("a"), root.join("far")).unwrap();
        symlink("near", root.join("twice")).unwrap();
        symlink("/nowhere/at/all", root.join("dangling")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let links = Links::default();
        for (path, real) in [
            ("near/file", "a/b/file"),
            ("near/../b", "a/b"),
            ("far/b/../../far/b", "a/b"),
            ("twice/new/file", "a/b/new/file"),
            ("none/../near", "a/b"),
            ("none/x/../y", "none/y"),
        ] {
            assert_eq!(links.resolved(&root.join(path)), root.join(real), "{path}");
        }
        assert_eq!(links.resolved(&root.join("dangling/x")), Path::new("/nowhere/at/all/x"));
        assert_eq!(links.resolved(&root.join("round/x")), root.join("round/x"));
        assert_eq!(links.resolved(Path::new("/../..")), Path::new("/"));
    }

    /// A mebibyte of slashes and letters is a path too.
    #[test]
    fn a_long_path_takes_no_longer_than_its_length() {
        let long = PathBuf::from("/none".to_owned() + &"/a".repeat(1 << 19));
        let start = Instant::now();
        assert_eq!(Links::default().resolved(&long), long);
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
}
