//! Edits of JSON by splicing bytes at positions from the parser's AST. Additions go after what
//! exists, cuts remove exactly what an addition inserted, and no other byte moves: not the order,
//! the spacing, the line ends, the byte order mark or a missing last line break. What the agent
//! itself could not read is refused, never repaired; for most agents that includes comments and
//! trailing commas. `Container` records what an addition had to make, so that a later cut can
//! remove it.

mod error;
mod parse;
mod style;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::text::{BOM, Place, Splice, splice};
pub use error::JsonError;
pub use parse::{Bom, Dialect, Reader};
use parse::{Kind, Node, Property, made_strict, parse_strict, without_surrogates};
use style::{Style, line_indent, own_line_indent};

/// One step from a value to one of its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into an object.
    Key(String),
    /// Into an array.
    Index(usize),
}

/// What to add, as a tree that follows the document as far as both agree.
#[derive(Clone, Debug)]
pub enum Tree {
    /// An object with at least these keys.
    Keys(Vec<(String, Tree)>),
    /// An array that ends with these values.
    Append(Vec<Value>),
    /// A value that is written if there is none.
    Value(Value),
}

/// An object or array that an addition had to make, or found empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The keys that lead to it; none for the root.
    pub at: Vec<String>,
    pub was: Was,
}

/// What was there before an addition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Was {
    /// Nothing: no key, or for the root no file.
    Absent,
    /// An empty container with this white space between its brackets.
    Empty(String),
    /// For the root: a file with nothing but this white space.
    Blank(String),
}

/// What is known about the containers around a cut.
#[derive(Clone, Copy, Debug)]
pub enum Made<'a> {
    /// We made these. Others stay, even if they end up empty.
    Known(&'a [Container]),
    /// Nothing: a container that a cut leaves empty counts as ours, except for the root.
    Unknown,
}

/// A parsed document. Parsing is strict: `JSON.parse` and serde accept whatever it accepts.
#[derive(Debug)]
pub struct Json<'t> {
    path: PathBuf,
    /// Without the byte order mark.
    text: &'t str,
    bom: &'static str,
    /// `None` if the text is blank.
    root: Option<Node>,
    /// The text that was parsed, with every byte at the same position.
    parsed: Cow<'t, str>,
    style: Style,
}

impl<'t> Json<'t> {
    /// Parses the content of `path`. A blank text is a document without a root, not an error.
    pub fn parse(bytes: &'t [u8], path: &Path, reader: &Reader) -> Result<Self, JsonError> {
        let whole = std::str::from_utf8(bytes).map_err(|e| {
            let valid = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
            JsonError::NotUtf8 { place: Place::new(path, valid, valid.len()) }
        })?;
        let (bom, text) = match whole.strip_prefix(BOM) {
            Some(_) if reader.bom == Bom::Malformed => {
                let place = Place::new(path, whole, 0);
                return Err(JsonError::ByteOrderMark { place, malformed: reader.malformed });
            }
            Some(text) => (BOM, text),
            None => ("", whole),
        };
        let parsed = match made_strict(text, reader.dialect) {
            Cow::Borrowed(text) => without_surrogates(text),
            Cow::Owned(text) => Cow::Owned(without_surrogates(&text).into_owned()),
        };
        let root = parse_strict(&parsed, path, reader)?;
        let (range, first) = match &root {
            Some(root) => (root.range.clone(), root.children().first().map(|c| c.start)),
            None => (0..0, None),
        };
        let style = Style::of(text, range, first);
        Ok(Self { path: path.to_owned(), text, bom, root, parsed, style })
    }

    /// The value at the end of `steps`. Of two equal keys the last counts, as for all readers.
    pub fn get(&self, steps: &[Step]) -> Option<Value> {
        Some(self.node(steps)?.value(&self.parsed))
    }

    /// Where the value at the end of `steps` is; the start of the file if there is none.
    pub fn place(&self, steps: &[Step]) -> Place {
        Place::new(&self.path, self.text, self.node(steps).map_or(0, |n| n.range.start))
    }

    /// Refuses a document in which a key on this path exists twice.
    pub fn unique(&self, keys: &[&str]) -> Result<(), JsonError> {
        let mut node = self.root.as_ref();
        for key in keys {
            let Some(Kind::Object(properties)) = node.map(|n| &n.kind) else { return Ok(()) };
            node = self.property(properties, key)?;
        }
        Ok(())
    }

    /// Adds what `tree` has and the document lacks. Returns the new bytes, and the containers that
    /// it made or filled.
    pub fn add(&self, tree: &Tree) -> Result<(Vec<u8>, Vec<Container>), JsonError> {
        let mut made = Vec::new();
        let Some(root) = &self.root else {
            made.push(Container { at: vec![], was: Was::Blank(self.text.to_owned()) });
            record_new(tree, &mut vec![], &mut made);
            let (text, newline) = (self.style.tall(&tree.to_value(), ""), self.style.newline());
            // Only white space and, if the dialect allows them, comments, which stay.
            let kept = match self.text.trim_end() {
                "" => String::new(),
                comments => format!("{comments}{newline}"),
            };
            return Ok((self.bytes(&format!("{kept}{text}{newline}")), made));
        };
        let mut splices = Vec::new();
        self.add_to(root, tree, &mut vec![], &mut splices, &mut made)?;
        Ok((self.bytes(&splice(self.text, splices)), made))
    }

    /// Replaces old values by new ones. Steps that lead nowhere are a bug of the caller.
    pub fn replace(&self, values: &[(Vec<Step>, Value)]) -> Vec<u8> {
        let splices = values.iter().filter_map(|(steps, value)| {
            let node = self.node(steps)?;
            let old = &self.text[node.range.clone()];
            let with = if old.contains('\n') {
                self.style.tall(value, line_indent(self.text, node.range.start))
            } else {
                self.style.flat(value)
            };
            Some(Splice { range: node.range.clone(), with })
        });
        self.bytes(&splice(self.text, splices.collect()))
    }

    /// Removes the values at these paths, and the containers that we made and that are empty
    /// without them. `None` means that the file itself is removed.
    pub fn cut(&self, ways: &[Vec<Step>], made: Made<'_>) -> Option<Vec<u8>> {
        let Some(root) = &self.root else { return Some(self.bytes(self.text)) };
        let ways: Vec<&[Step]> = ways.iter().map(Vec::as_slice).collect();
        let mut splices = Vec::new();
        let gone = self.cut_in(root, &ways, &mut vec![], made, &mut splices);
        let was = match made {
            Made::Known(known) => known.iter().find(|c| c.at.is_empty()).map(|c| &c.was),
            Made::Unknown => None,
        };
        match (gone, was) {
            (true, Some(Was::Absent)) => None,
            (true, Some(Was::Blank(text))) => Some(self.bytes(text)),
            _ => Some(self.bytes(&splice(self.text, splices))),
        }
    }

    fn bytes(&self, text: &str) -> Vec<u8> {
        format!("{}{text}", self.bom).into_bytes()
    }

    fn node(&self, steps: &[Step]) -> Option<&Node> {
        steps.iter().try_fold(self.root.as_ref()?, |node, step| match (&node.kind, step) {
            (Kind::Object(properties), Step::Key(key)) => {
                properties.iter().rev().find(|p| p.key == *key).map(|p| &p.value)
            }
            (Kind::Array(elements), Step::Index(i)) => elements.get(*i),
            _ => None,
        })
    }

    fn property<'n>(&self, properties: &'n [Property], key: &str) -> Result<Option<&'n Node>, JsonError> {
        let mut found = properties.iter().filter(|p| p.key == key);
        let first = found.next();
        if let Some(second) = found.next() {
            let place = Place::new(&self.path, self.text, second.range.start);
            return Err(JsonError::DuplicateKey { place, key: key.to_owned() });
        }
        Ok(first.map(|p| &p.value))
    }

    fn add_to(
        &self,
        node: &Node,
        tree: &Tree,
        at: &mut Vec<String>,
        splices: &mut Vec<Splice>,
        made: &mut Vec<Container>,
    ) -> Result<(), JsonError> {
        let mut missing: Vec<(Option<&str>, Value)> = Vec::new();
        match (&node.kind, tree) {
            (Kind::Object(properties), Tree::Keys(keys)) => {
                for (key, tree) in keys {
                    at.push(key.clone());
                    match self.property(properties, key)? {
                        Some(node) => self.add_to(node, tree, at, splices, made)?,
                        None => {
                            record_new(tree, at, made);
                            missing.push((Some(key), tree.to_value()));
                        }
                    }
                    at.pop();
                }
            }
            (Kind::Array(_), Tree::Append(values)) => {
                missing.extend(values.iter().map(|value| (None, value.clone())));
            }
            (_, Tree::Value(_)) => {}
            (_, Tree::Keys(_)) => return Err(self.wrong_kind(node, at, "an object")),
            (_, Tree::Append(_)) => return Err(self.wrong_kind(node, at, "an array")),
        }
        if missing.is_empty() {
            return Ok(());
        }
        let inside = node.inside();
        if node.children().is_empty() {
            let was = Was::Empty(self.text[inside.clone()].to_owned());
            made.push(Container { at: at.clone(), was });
        }
        splices.push(self.insertion(node, inside, &missing));
        Ok(())
    }

    fn wrong_kind(&self, node: &Node, at: &[String], wanted: &'static str) -> JsonError {
        let what = if at.is_empty() { "the file".to_owned() } else { format!("\"{}\"", at.join(".")) };
        JsonError::WrongKind { place: Place::new(&self.path, self.text, node.range.start), what, wanted }
    }

    /// New children at the end of a container, laid out like the existing ones.
    fn insertion(&self, node: &Node, inside: Range<usize>, new: &[(Option<&str>, Value)]) -> Splice {
        let style = &self.style;
        let key = |key: &Option<&str>| key.map(|k| style.key(k)).unwrap_or_default();
        let flat = || new.iter().map(|(k, v)| key(k) + &style.flat(v)).collect::<Vec<_>>();
        let tall =
            |indent: &str| new.iter().map(|(k, v)| key(k) + &style.tall(v, indent)).collect::<Vec<_>>();
        let existing = node.children();
        if let (Some(first), Some(last)) = (existing.first(), existing.last()) {
            let (before, new) = match own_line_indent(self.text, first.start) {
                Some(indent) => (format!(",{}{indent}", style.newline()), tall(indent)),
                None => (style.comma().to_owned(), flat()),
            };
            let with = new.iter().fold(String::new(), |all, new| all + &before + new);
            return Splice::insert(last.end, with);
        }
        // A comment, if the dialect allows one.
        let kept = self.text[inside.clone()].trim_end();
        if style.one_line() && kept.is_empty() {
            return Splice { range: inside, with: flat().join(style.comma()) };
        }
        let outer = line_indent(self.text, node.range.start);
        let (newline, inner) = (style.newline(), style.deeper(outer));
        let with = tall(&inner).join(&format!(",{newline}{inner}"));
        Splice { range: inside, with: format!("{kept}{newline}{inner}{with}{newline}{outer}") }
    }

    /// Cuts below `node`. Returns whether the node itself should be removed.
    fn cut_in(
        &self,
        node: &Node,
        ways: &[&[Step]],
        at: &mut Vec<String>,
        made: Made<'_>,
        splices: &mut Vec<Splice>,
    ) -> bool {
        let existing = node.children();
        let mut gone = vec![false; existing.len()];
        let mut below = Vec::new();
        for (i, gone) in gone.iter_mut().enumerate() {
            let (step, child) = child(node, i);
            let ways: Vec<&[Step]> =
                ways.iter().filter(|w| w.first() == Some(&step)).map(|w| &w[1..]).collect();
            if ways.is_empty() {
                continue;
            }
            // Only keys lead to recorded containers. Below an index, nothing is recorded.
            at.push(match step {
                Step::Key(key) => key,
                Step::Index(i) => i.to_string(),
            });
            *gone = ways.iter().any(|w| w.is_empty()) || self.cut_in(child, &ways, at, made, &mut below);
            at.pop();
            if !*gone {
                splices.append(&mut below);
            }
            below.clear();
        }
        if gone.iter().any(|gone| !gone) {
            splices.extend(runs(&gone).map(|run| Splice::cut(without(&existing, run))));
            return false;
        }
        if existing.is_empty() {
            return false;
        }
        let inside = node.inside();
        let interior = match made {
            Made::Unknown if at.is_empty() => "",
            Made::Unknown => return true,
            Made::Known(known) => match known.iter().find(|c| c.at == *at).map(|c| &c.was) {
                Some(Was::Absent | Was::Blank(_)) => return true,
                Some(Was::Empty(interior)) => interior,
                None => "",
            },
        };
        splices.push(Splice { range: inside, with: interior.to_owned() });
        false
    }
}

impl Tree {
    fn to_value(&self) -> Value {
        match self {
            Self::Keys(keys) => Value::Object(keys.iter().map(|(k, t)| (k.clone(), t.to_value())).collect()),
            Self::Append(values) => Value::Array(values.clone()),
            Self::Value(value) => value.clone(),
        }
    }
}

/// Records the containers that writing `tree` at `at` makes. The caller records the root itself.
fn record_new(tree: &Tree, at: &mut Vec<String>, made: &mut Vec<Container>) {
    if !at.is_empty() && !matches!(tree, Tree::Value(_)) {
        made.push(Container { at: at.clone(), was: Was::Absent });
    }
    if let Tree::Keys(keys) = tree {
        for (key, tree) in keys {
            at.push(key.clone());
            record_new(tree, at, made);
            at.pop();
        }
    }
}

fn child(node: &Node, i: usize) -> (Step, &Node) {
    match &node.kind {
        Kind::Object(properties) => (Step::Key(properties[i].key.clone()), &properties[i].value),
        Kind::Array(elements) => (Step::Index(i), &elements[i]),
        Kind::Scalar => unreachable!("only containers have children"),
    }
}

/// The runs of neighbours to remove.
fn runs(gone: &[bool]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut i = 0;
    std::iter::from_fn(move || {
        let start = i + gone[i..].iter().position(|&g| g)?;
        i = start + gone[start..].iter().take_while(|&&g| g).count();
        Some(start..i)
    })
}

/// The bytes of a run of children with its comma: the comma before it, which is the one that an
/// addition inserts; at the front, the comma after it.
fn without(existing: &[Range<usize>], run: Range<usize>) -> Range<usize> {
    match run.start.checked_sub(1) {
        Some(before) => existing[before].end..existing[run.end - 1].end,
        None => existing[0].start..existing[run.end].start,
    }
}
