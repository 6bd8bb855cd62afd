//! Edits of TOML by splicing lines at positions from the parser's spans. New tables go to the end
//! of the file. Cuts remove whole lines. Renames and new values change only the key or value
//! itself. Comments, order, line ends and a missing last line break stay. Tables that TOML does not
//! allow to be extended elsewhere are refused, never rewritten. Every result is parsed again before
//! it is returned.

mod error;

use std::ops::Range;
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item, Key, Table};

use super::text::{BOM, Place, Splice, line_end, line_start, newline_of, splice};
pub use error::TomlError;

/// A table to add: its name and its keys.
#[derive(Clone, Debug)]
pub struct Block {
    /// The name, part by part.
    pub table: Vec<String>,
    /// The keys, in the order in which they are written.
    pub values: Vec<(&'static str, Scalar)>,
}

/// The kinds of value that we write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    Text(String),
    /// An array of strings.
    Texts(Vec<String>),
}

/// A change to an existing entry.
#[derive(Clone, Debug)]
pub enum Change {
    /// Removes the entry, with everything below it.
    Cut(Vec<String>),
    /// Renames the last key of the entry.
    Rename(Vec<String>, String),
    /// Writes another value, or adds the key to a table that has a header.
    Set(Vec<String>, Scalar),
}

#[derive(Debug)]
pub struct Toml<'t> {
    path: PathBuf,
    /// Without the byte order mark.
    text: &'t str,
    bom: &'static str,
    doc: Document<&'t str>,
}

impl<'t> Toml<'t> {
    /// Parses the content of `path`.
    pub fn parse(bytes: &'t [u8], path: &Path) -> Result<Self, TomlError> {
        let whole = std::str::from_utf8(bytes).map_err(|e| {
            let valid = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
            TomlError::NotUtf8 { place: Place::new(path, valid, valid.len()) }
        })?;
        let (bom, text) = whole.strip_prefix(BOM).map_or(("", whole), |text| (BOM, text));
        let doc = Document::parse(text).map_err(|e| {
            let place = Place::new(path, text, e.span().map_or(0, |s| s.start));
            TomlError::Syntax { place, what: e.message().to_owned() }
        })?;
        Ok(Self { path: path.to_owned(), text, bom, doc })
    }

    /// The entry of this name, in whatever notation.
    pub fn get<S: AsRef<str>>(&self, name: &[S]) -> Option<&Item> {
        name.iter().try_fold(self.doc.as_item(), |item, key| item.as_table_like()?.get(key.as_ref()))
    }

    /// The keys of the table with this name.
    pub fn keys(&self, name: &[&str]) -> Vec<String> {
        let table = self.get(name).and_then(Item::as_table_like);
        table.map(|t| t.iter().map(|(key, _)| key.to_owned()).collect()).unwrap_or_default()
    }

    /// Where the entry of this name is, or the nearest thing around it.
    pub fn place<S: AsRef<str>>(&self, name: &[S]) -> Place {
        let offset = (0..=name.len()).rev().find_map(|n| self.offset(&name[..n]));
        Place::new(&self.path, self.text, offset.unwrap_or(0))
    }

    /// Writes new tables to the end of the file.
    pub fn append(&self, blocks: &[Block]) -> Result<Vec<u8>, TomlError> {
        if blocks.is_empty() {
            return Ok(self.bytes(self.text));
        }
        for block in blocks {
            self.check_open(&block.table)?;
        }
        let newline = newline_of(self.text);
        let ends_line = self.text.is_empty() || self.text.ends_with('\n');
        let blocks: Vec<String> = blocks.iter().map(|b| b.lines().join(newline)).collect();
        let mut text = self.text.to_owned();
        let breaks = match (text.is_empty(), ends_line) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        text.push_str(&newline.repeat(breaks));
        text.push_str(&blocks.join(&newline.repeat(2)));
        // A file without a last line break keeps having none, so a later cut knows how it ended.
        text.push_str(if ends_line { newline } else { "" });
        self.checked(text)
    }

    /// Applies all changes at once; they must concern different entries.
    pub fn change(&self, changes: &[Change]) -> Result<Vec<u8>, TomlError> {
        let mut cuts = Vec::new();
        let mut splices = Vec::new();
        for change in changes {
            match change {
                Change::Cut(name) => cuts.extend(self.lines_of(name)?),
                Change::Rename(name, to) => {
                    let span = self.key(name).and_then(Key::span).ok_or_else(|| self.inline(name))?;
                    splices.push(Splice { range: span, with: key_text(to) });
                }
                Change::Set(name, to) => splices.push(self.set(name, to)?),
            }
        }
        splices.extend(self.merged(cuts).into_iter().map(Splice::cut));
        let text = splice(self.text, splices);
        let bytes = self.checked(text)?;
        let after = Toml::parse(&bytes, &self.path)?;
        let failed = changes.iter().find(|change| {
            let (name, there) = match change {
                Change::Cut(name) => (name.clone(), renamed_to(changes, name)),
                Change::Rename(name, to) => (with_last(name, to), true),
                Change::Set(name, _) => (name.clone(), true),
            };
            after.get(&name).is_some() != there
        });
        match failed {
            Some(Change::Cut(name) | Change::Rename(name, _) | Change::Set(name, _)) => {
                Err(self.inline(name))
            }
            None => Ok(bytes),
        }
    }

    fn bytes(&self, text: &str) -> Vec<u8> {
        format!("{}{text}", self.bom).into_bytes()
    }

    fn checked(&self, text: String) -> Result<Vec<u8>, TomlError> {
        let bytes = self.bytes(&text);
        Toml::parse(&bytes, &self.path)?;
        Ok(bytes)
    }

    fn key<S: AsRef<str>>(&self, name: &[S]) -> Option<&Key> {
        let (last, parents) = name.split_last()?;
        Some(self.get(parents)?.as_table_like()?.get_key_value(last.as_ref())?.0)
    }

    fn offset<S: AsRef<str>>(&self, name: &[S]) -> Option<usize> {
        let header = self.get(name)?.as_table().and_then(Table::span);
        header.or_else(|| self.key(name)?.span()).map(|span| span.start)
    }

    fn inline(&self, name: &[String]) -> TomlError {
        TomlError::Inline { place: self.place(name), key: name.join(".") }
    }

    /// Refuses a name that exists, or whose parents can't be extended by a header.
    fn check_open(&self, name: &[String]) -> Result<(), TomlError> {
        for n in 1..=name.len() {
            let open = match self.get(&name[..n]) {
                None => true,
                Some(Item::Table(table)) => n < name.len() && !table.is_dotted(),
                Some(_) => false,
            };
            if !open {
                return Err(TomlError::Closed { place: self.place(&name[..n]), key: name[..n].join(".") });
            }
        }
        Ok(())
    }

    fn set(&self, name: &[String], to: &Scalar) -> Result<Splice, TomlError> {
        if let Some(span) = self.get(name).and_then(Item::span) {
            return Ok(Splice { range: span, with: to.text() });
        }
        let closed = || TomlError::Closed { place: self.place(name), key: name.join(".") };
        let (key, parents) = name.split_last().ok_or_else(closed)?;
        let header = self.get(parents).and_then(Item::as_table).and_then(Table::span).ok_or_else(closed)?;
        let line = format!("{} = {}", key_text(key), to.text());
        let (end, newline) = (line_end(self.text, header.end), newline_of(self.text));
        Ok(if self.text[..end].ends_with('\n') {
            Splice::insert(end, line + newline)
        } else {
            Splice::insert(end, format!("{newline}{line}"))
        })
    }

    /// The line ranges of an entry.
    fn lines_of(&self, name: &[String]) -> Result<Vec<Range<usize>>, TomlError> {
        let parents = (1..name.len()).map(|n| self.get(&name[..n]));
        if parents.flatten().any(|item| item.as_table().is_none()) {
            return Err(self.inline(name));
        }
        let (Some(item), Some(key)) = (self.get(name), self.key(name)) else { return Err(self.inline(name)) };
        let mut ranges = Vec::new();
        self.collect(key, item, &mut ranges);
        Ok(ranges)
    }

    fn collect(&self, key: &Key, item: &Item, ranges: &mut Vec<Range<usize>>) {
        match item {
            Item::Table(table) => self.collect_table(table, ranges),
            Item::ArrayOfTables(tables) => tables.iter().for_each(|t| self.collect_table(t, ranges)),
            Item::Value(_) | Item::None => ranges.extend(self.value_lines(key, item)),
        }
    }

    fn collect_table(&self, table: &Table, ranges: &mut Vec<Range<usize>>) {
        let mut body = Vec::new();
        for (key, item) in table.iter().filter_map(|(key, _)| table.get_key_value(key)) {
            let in_body = match item {
                Item::Table(table) => table.is_dotted(),
                Item::ArrayOfTables(_) => false,
                Item::Value(_) | Item::None => true,
            };
            self.collect(key, item, if in_body { &mut body } else { ranges });
        }
        match table.span() {
            Some(header) => {
                let start = line_start(self.text, header.start);
                let end = body.iter().map(|r| r.end).fold(line_end(self.text, header.end), usize::max);
                ranges.push(self.with_blank_line(start..end));
            }
            None => ranges.append(&mut body),
        }
    }

    fn value_lines(&self, key: &Key, item: &Item) -> Option<Range<usize>> {
        Some(line_start(self.text, key.span()?.start)..line_end(self.text, item.span()?.end))
    }

    /// Includes the blank line before a table, which `append` inserted; at the top, the blank line
    /// after it.
    fn with_blank_line(&self, range: Range<usize>) -> Range<usize> {
        let blank = |line: &str| line == "\n" || line == "\r\n";
        if range.start > 0 {
            let before = line_start(self.text, range.start - 1);
            let start = if blank(&self.text[before..range.start]) { before } else { range.start };
            return start..range.end;
        }
        let after = line_end(self.text, range.end);
        if blank(&self.text[range.end..after]) { 0..after } else { range }
    }

    /// Joins neighbours. A cut up to the end of a file without a last line break includes the break
    /// before it, so that the file still has none.
    fn merged(&self, mut cuts: Vec<Range<usize>>) -> Vec<Range<usize>> {
        cuts.sort_by_key(|r| r.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for cut in cuts {
            match merged.last_mut() {
                Some(last) if cut.start <= last.end => last.end = last.end.max(cut.end),
                _ => merged.push(cut),
            }
        }
        if let Some(last) = merged.last_mut().filter(|last| last.end == self.text.len())
            && !self.text.ends_with('\n')
        {
            let kept = &self.text[..last.start];
            let kept = kept.strip_suffix('\n').unwrap_or(kept);
            last.start = kept.strip_suffix('\r').unwrap_or(kept).len();
        }
        merged
    }
}

impl Block {
    fn lines(&self) -> Vec<String> {
        let name: Vec<String> = self.table.iter().map(|part| key_text(part)).collect();
        let mut lines = vec![format!("[{}]", name.join("."))];
        lines.extend(self.values.iter().map(|(key, value)| format!("{} = {}", key_text(key), value.text())));
        lines
    }
}

impl Scalar {
    fn text(&self) -> String {
        let quoted = |s: &String| toml_edit::Value::from(s.as_str()).to_string().trim().to_owned();
        match self {
            Self::Text(text) => quoted(text),
            Self::Texts(texts) => format!("[{}]", texts.iter().map(quoted).collect::<Vec<_>>().join(", ")),
        }
    }

    /// Whether `item` holds this value.
    pub fn is(&self, item: &Item) -> bool {
        match self {
            Self::Text(text) => item.as_str() == Some(text),
            Self::Texts(texts) => {
                let array = item.as_array().map(|a| a.iter().map(|v| v.as_str()).collect::<Vec<_>>());
                array == Some(texts.iter().map(|t| Some(t.as_str())).collect())
            }
        }
    }
}

fn key_text(key: &str) -> String {
    Key::new(key).display_repr().into_owned()
}

fn with_last(name: &[String], last: &str) -> Vec<String> {
    let parents = name.split_last().map_or(&[][..], |(_, parents)| parents);
    parents.iter().cloned().chain([last.to_owned()]).collect()
}

fn renamed_to(changes: &[Change], name: &[String]) -> bool {
    changes.iter().any(|c| matches!(c, Change::Rename(from, to) if with_last(from, to) == name))
}
