//! Expands patterns to the names that a shell would find, if their folder can be listed.
//!
//! If it can't be listed, or the pattern finds nothing, only what the pattern names on purpose
//! counts: a bare `*` names no key.

use super::Touch;
use crate::path;
use crate::shell::Value;
use crate::shell::value::pattern_matches;
use crate::world::World;

/// How many names of one folder are read. A larger folder is not listed.
pub const MAX_NAMES: usize = 4096;
/// How many folders one pattern is followed through, and how many paths it may become.
const MAX_FOLDERS: usize = 64;
const MAX_FOUND_PATHS: usize = 4096;
/// How many signs of a pattern must be no wildcards for it to name a file on purpose.
const MIN_NAMED_SIGNS: usize = 2;

impl Touch {
    /// The paths that a pattern finds; `None` if that is not known, or if it finds none.
    pub fn found(&self, world: &dyn World) -> Option<&[String]> {
        let found = self.found.get_or_init(|| {
            let found = expanded(self.pattern.as_deref()?, self.takes_hidden, world)?;
            (!found.is_empty()).then_some(found)
        });
        found.as_deref()
    }

    /// Whether a pattern that could not be looked up names this file on purpose.
    pub fn names_on_purpose(&self, name: &str) -> bool {
        let pattern = self.word.pattern();
        let last = pattern.trim_end_matches('/').rsplit('/').next().unwrap_or(&pattern);
        literals(last) >= MIN_NAMED_SIGNS && self.part_matches(last, name)
    }

    /// Whether one part of a pattern matches a name.
    fn part_matches(&self, part: &str, name: &str) -> bool {
        let sees = !name.starts_with('.') || part.starts_with('.') || self.takes_hidden;
        sees && pattern_matches(part, name)
    }

    /// The known paths of a touch. For a pattern these are the paths that it finds.
    pub fn reached<'a>(&'a self, world: &dyn World) -> Vec<&'a str> {
        if self.is_pattern
            && let Some(found) = self.found(world)
        {
            return found.iter().map(String::as_str).collect();
        }
        let paths = [self.path.as_deref(), self.real.as_deref().filter(|_| !self.is_pattern)];
        paths.into_iter().flatten().collect()
    }

    /// Whether a pattern or a search of `find` that could not be looked up names this path, or a
    /// folder above it, on purpose.
    pub fn may_hold(&self, path: &str) -> bool {
        let folder =
            if self.is_pattern { self.real.as_deref() } else { self.real.as_deref().map(path::parent) };
        let Some(folder) = folder else { return false };
        let rest = path.strip_prefix(folder.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
        let Some(rest) = rest else { return false };
        if self.word.anywhere {
            return rest.split('/').any(|part| self.names_on_purpose(part));
        }
        self.is_pattern && rest.split('/').next().is_some_and(|part| self.names_on_purpose(part))
    }
}

/// A word as an absolute pattern; `None` if it can't be looked up.
pub(super) fn absolute(word: &Value, cwd: Option<&str>) -> Option<String> {
    let is_plain = word.is_known() && !word.anywhere && !word.text.contains("**");
    let has_groups = word.globs.iter().any(|at| word.text.as_bytes().get(*at) == Some(&b'('));
    if !is_plain || has_groups {
        return None;
    }
    let pattern = word.pattern();
    if path::is_absolute(&word.text) {
        return Some(path::join("/", &pattern));
    }
    let mut whole = String::new();
    for sign in cwd?.chars() {
        if matches!(sign, '*' | '?' | '[' | '\\') {
            whole.push('\\');
        }
        whole.push(sign);
    }
    Some(path::join(&whole, &pattern))
}

fn is_pattern(part: &str) -> bool {
    let mut signs = part.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => drop(signs.next()),
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

/// How many signs of a part are no wildcards. A class does not count.
fn literals(part: &str) -> usize {
    let (mut count, mut in_class) = (0, false);
    for sign in part.chars() {
        match sign {
            '[' => in_class = true,
            ']' => in_class = false,
            '*' | '?' | '\\' => {}
            _ if in_class => {}
            _ => count += 1,
        }
    }
    count
}

fn unescaped(part: &str) -> String {
    let mut signs = part.chars();
    let mut out = String::new();
    while let Some(sign) = signs.next() {
        out.extend(if sign == '\\' { signs.next() } else { Some(sign) });
    }
    out
}

/// Expands an absolute pattern like a shell; `None` if a folder can't be listed, or there is too
/// much.
fn expanded(pattern: &str, takes_hidden: bool, world: &dyn World) -> Option<Vec<String>> {
    let mut found = vec![String::new()];
    let mut folders = 0;
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !is_pattern(part) {
            let name = unescaped(part);
            for path in &mut found {
                path.push('/');
                path.push_str(&name);
            }
            continue;
        }
        let mut next = Vec::new();
        for folder in &found {
            folders += 1;
            if folders > MAX_FOLDERS {
                return None;
            }
            let names = world.names_in(if folder.is_empty() { "/" } else { folder }, MAX_NAMES)?;
            for name in names {
                let sees = !name.starts_with('.') || part.starts_with('.') || takes_hidden;
                if sees && pattern_matches(part, &name) {
                    next.push(format!("{folder}/{name}"));
                }
            }
            if next.len() > MAX_FOUND_PATHS {
                return None;
            }
        }
        found = next;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FakeWorld;

    fn world() -> FakeWorld {
        let mut world = FakeWorld::new("/p", "/h");
        for file in ["/p/a.log", "/p/b[1].log", "/p/.env", "/p/src/x.rs", "/p/src/y.rs", "/p/docs/z.rs"] {
            world.files.insert(file.to_owned(), String::new());
        }
        world
    }

    #[test]
    fn a_pattern_is_what_a_shell_finds() {
        for (pattern, expected) in [
            ("/p/*", &["/p/a.log", "/p/b[1].log", "/p/docs", "/p/src"][..]),
            ("/p/.*", &["/p/.env"]),
            ("/p/*.log", &["/p/a.log", "/p/b[1].log"]),
            ("/p/b\\[*", &["/p/b[1].log"]),
            ("/p/*/*.rs", &["/p/docs/z.rs", "/p/src/x.rs", "/p/src/y.rs"]),
            (
                "/p/*/nothing",
                &["/p/a.log/nothing", "/p/b[1].log/nothing", "/p/docs/nothing", "/p/src/nothing"],
            ),
            ("/p/[d-e]ocs/?.rs", &["/p/docs/z.rs"]),
        ] {
            let mut found = expanded(pattern, false, &world()).unwrap_or_default();
            found.sort();
            assert_eq!(found, expected, "{pattern}");
        }
        assert_eq!(expanded("/elsewhere/*", false, &world()), None);
        assert!(expanded("/p/*", true, &world()).unwrap().contains(&"/p/.env".to_owned()));
    }

    #[test]
    fn signs_that_name_nothing_do_not_count() {
        for (part, count) in [("*", 0), ("*.*", 1), ("id_*", 3), ("[a-z]*", 0), (".en?", 3), ("*.pem", 4)] {
            assert_eq!(literals(part), count, "{part}");
        }
    }
}
