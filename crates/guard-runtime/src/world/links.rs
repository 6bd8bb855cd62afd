//! Symbolic links: the real path behind a path. Each part is read once, however many paths go
//! through it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links behind links are followed. The kernel has the same limit.
const MAX_LINKS: usize = 40;

/// What is at a path.
#[derive(Clone, Debug)]
enum PathKind {
    /// A file or a folder, or something that can't be read.
    Plain,
    /// A link, and its target.
    Link(PathBuf),
    /// Nothing exists there.
    Missing,
}

/// The paths looked up so far.
#[derive(Debug, Default)]
pub(crate) struct Links {
    known: RefCell<HashMap<PathBuf, PathKind>>,
}

impl Links {
    /// An absolute path with its symbolic links resolved. Parts that don't exist stay as they are
    /// written.
    pub(crate) fn resolved(&self, path: &Path) -> PathBuf {
        let mut real = PathBuf::from("/");
        let (mut missing, mut links) = (false, 0);
        let mut ahead = path.components();
        // Most paths have no links. Below a part that does not exist, nothing needs a look.
        let mut left = loop {
            let behind = ahead.as_path();
            match ahead.next() {
                None => return real,
                Some(Component::Normal(name)) => real.push(name),
                Some(Component::ParentDir) => break parts(behind),
                Some(_) => continue,
            }
            match self.at(&real) {
                PathKind::Plain => {}
                PathKind::Missing if !has_parents(ahead.as_path()) => {
                    if ahead.as_path() != Path::new("") {
                        real.push(ahead.as_path());
                    }
                    return real;
                }
                PathKind::Missing | PathKind::Link(_) => {
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
                PathKind::Plain => {}
                PathKind::Link(target) if links < MAX_LINKS => {
                    links += 1;
                    real.pop();
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    left.extend(parts(&target));
                }
                PathKind::Link(_) | PathKind::Missing => missing = true,
            }
        }
        real
    }

    fn at(&self, path: &Path) -> PathKind {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let place = match std::fs::read_link(path) {
            Ok(target) => PathKind::Link(target),
            // It exists and is not a link.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => PathKind::Plain,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => PathKind::Plain,
            Err(_) => PathKind::Missing,
        };
        self.known.borrow_mut().insert(path.to_owned(), place.clone());
        place
    }
}

/// Whether a path has `..` in it.
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

    /// A mebibyte of slashes and letters is a path too. Nothing below a missing part is looked up.
    #[test]
    fn only_the_existing_part_of_a_long_path_is_looked_up() {
        let long = PathBuf::from("/none".to_owned() + &"/a".repeat(1 << 19));
        let links = Links::default();
        assert_eq!(links.resolved(&long), long);
        assert_eq!(links.known.borrow().len(), 1);
    }
}
