//! Files that arrive in a folder: a copy, a link, a download or an archive whose destination is the
//! folder, not the file.

use super::*;

/// What a write puts below the path that it writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Brings {
    /// Nothing: only the path itself is written.
    #[default]
    Nothing,
    /// The content of this folder, or the names in it that match a pattern.
    Tree {
        root: String,
        /// The names that arrive; `None` for all of them.
        only: Option<NamePattern>,
    },
    /// Not known: an archive, another machine, a word that is not known.
    Unknown,
}

/// A pattern of names in one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    pub pattern: String,
    /// Whether its wildcards also find hidden files.
    pub takes_hidden: bool,
}

/// Whether a file arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    No,
    Yes,
    Perhaps,
}

impl Touch {
    /// Whether a file below what is written arrives with it.
    pub fn brings_to(&self, path: &str, touches: &[Touch], world: &dyn World) -> Arrival {
        let below = |folder: &String| {
            Some(path.strip_prefix(folder.trim_end_matches('/'))?.strip_prefix('/')?.to_owned())
        };
        if self.brings == Brings::Nothing {
            return Arrival::No;
        }
        let Some(rest) = self.path.iter().chain(&self.real).find_map(below) else { return Arrival::No };
        let Brings::Tree { root, only } = &self.brings else { return Arrival::Perhaps };
        if let Some(NamePattern { pattern, takes_hidden }) = only {
            let first = rest.split('/').next().unwrap_or("");
            let sees = !first.starts_with('.') || pattern.starts_with('.') || *takes_hidden;
            if !sees || !pattern_matches(pattern, first) {
                return Arrival::No;
            }
        }
        let source = path::join(root, &rest);
        // The call itself may make the file, or its folder, before it copies.
        let is_made = |touch: &Touch| {
            let made = |made: &String| path::is_below(made, &source);
            touch.deed.changes() && touch.path.iter().chain(&touch.real).any(made)
        };
        if world.exists(&source) == Some(true) || touches.iter().any(is_made) {
            return Arrival::Yes;
        }
        if world.exists(root) == Some(false) { Arrival::Perhaps } else { Arrival::No }
    }
}

impl Finder<'_> {
    fn brought(&mut self, word: &Value, brings: Brings, command: &Command) {
        let from = self.out.len();
        self.touch(Deed::Write, word, command);
        if self.out.len() > from
            && let Some(touch) = self.out.last_mut()
        {
            touch.brings = brings;
        }
    }

    /// Unknown files arrive in a folder.
    pub(super) fn unpacked(&mut self, folder: &Value, command: &Command) {
        self.brought(folder, Brings::Unknown, command);
    }

    /// A file of a remote name arrives in a folder.
    pub(super) fn downloaded(&mut self, folder: &Value, url: &Value, command: &Command) {
        let text = url.text.split(['?', '#']).next().unwrap_or("");
        let name = text.split_once("://").map_or(text, |(_, rest)| rest);
        let name = name.rsplit_once('/').map_or("", |(_, name)| name);
        if !url.holes.is_empty() && name.is_empty() {
            return self.unpacked(folder, command);
        }
        if !name.is_empty() {
            self.touch(Deed::Write, &within(folder, &Value::known(name)), command);
        }
    }

    /// A source arrives at the target of a copy, a move or a link.
    pub(super) fn arrives(&mut self, source: &Value, target: &Value, way: Way, command: &Command) {
        let text = source.text.as_str();
        let is_content = matches!(text, "." | ".." | "./" | "../")
            || text.ends_with("/.")
            || text.ends_with("/..")
            || text.ends_with("/./")
            || (command.name == "rsync" && text.ends_with('/'));
        if source.is_opaque() || !source.holes.is_empty() {
            if way.into_folder || self.is_folder(target, command) {
                self.unpacked(target, command);
            }
            return;
        }
        let cwd = command.cwd.as_deref();
        let rooted = |text: &str| match path::is_absolute(text) {
            true => Some(path::join("/", text)),
            false => cwd.map(|cwd| path::join(cwd, text)),
        };
        if !source.globs.is_empty() {
            let pattern = source.pattern();
            let (folder, last) =
                pattern.trim_end_matches('/').rsplit_once('/').unwrap_or((".", pattern.as_str()));
            let root = rooted(if folder.is_empty() { "/" } else { folder });
            let brings = match root.filter(|root| !root.contains(['*', '?', '[', '\\'])) {
                Some(root) => Brings::Tree {
                    root,
                    only: Some(NamePattern { pattern: last.to_owned(), takes_hidden: self.takes_hidden }),
                },
                None => Brings::Unknown,
            };
            return self.brought(target, brings, command);
        }
        let tree = match rooted(text).filter(|_| !way.is_remote) {
            Some(root) => Brings::Tree { root, only: None },
            None => Brings::Unknown,
        };
        let is_folder = way.into_folder || self.is_folder(target, command);
        if is_content || way.is_content || !is_folder {
            self.brought(target, tree.clone(), command);
        }
        if !is_content && !way.is_content && is_folder {
            let name = match (way.with_folders, text.rsplit_once(':').filter(|_| way.is_remote)) {
                (true, _) => text,
                (_, Some((_, remote))) => path::file_name(remote),
                _ => path::file_name(text),
            };
            self.brought(&within(target, &Value::known(name)), tree, command);
        }
    }

    fn is_folder(&self, word: &Value, command: &Command) -> bool {
        let text = word.text.as_str();
        if text.ends_with('/') || matches!(path::file_name(text), "." | "..") {
            return true;
        }
        let path = match path::is_absolute(text) {
            true => Some(path::join("/", text)),
            false => command.cwd.as_deref().map(|cwd| path::join(cwd, text)),
        };
        path.is_some_and(|path| {
            let is_made = |touch: &Touch| touch.by == "mkdir" && touch.path.as_ref() == Some(&path);
            self.world.exists(&format!("{path}/.")) == Some(true) || self.out.iter().any(is_made)
        })
    }

    /// The file that a packing program puts in the place of its input.
    pub(super) fn packed(&mut self, command: &Command) {
        let replaces = match command.name.as_str() {
            "gzip" | "gunzip" | "xz" | "bzip2" => {
                !command.has_short("cltk")
                    && !["--stdout", "--to-stdout", "--keep", "--list", "--test"]
                        .iter()
                        .any(|option| command.has_long(option, 5))
            }
            "zstd" => command.has_long("--rm", 4),
            _ => false,
        };
        let unpacks = matches!(command.name.as_str(), "gunzip" | "gzip" | "xz" | "bzip2" | "zstd")
            && !command.has_short("clt");
        for word in operands(command.args(), &["-S", "--suffix", "-o"]) {
            if replaces {
                self.touch(Deed::Write, word, command);
            }
            let ending = [".gz", ".xz", ".bz2", ".zst"].iter().find(|ending| word.text.ends_with(**ending));
            if let Some(ending) = ending.filter(|_| unpacks) {
                self.touch(Deed::Write, &word.slice(0, word.text.len() - ending.len()), command);
            }
        }
    }
}

/// How a source arrives.
#[derive(Clone, Copy, Default)]
pub(super) struct Way {
    /// The target is a folder for certain.
    pub(super) into_folder: bool,
    /// The content of the source goes into the target.
    pub(super) is_content: bool,
    /// The source is on another machine.
    pub(super) is_remote: bool,
    /// The folders before the source's name are made too.
    pub(super) with_folders: bool,
}

/// A word below a folder.
pub(super) fn within(folder: &Value, word: &Value) -> Value {
    let mut whole = folder.clone();
    whole.push_text("/");
    whole.push(word);
    whole
}
