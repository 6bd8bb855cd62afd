//! Parses shell text into a syntax tree, by recursive descent over bytes. Each byte is read a
//! bounded number of times.
//!
//! The general parsers are too slow to run before every tool call (tree-sitter-bash needs a quarter
//! of a second for a mebibyte), and they misread forms that matter here (`a >f b`).
//! `tests/second_opinion.rs` compares this parser with them. It reads what bash reads and some of
//! zsh. What it can't read is an error, never a guess.

mod compound;
mod simple;
mod words;

use super::syntax::*;
use std::borrow::Cow;

/// Deepest nesting that is parsed. This bounds the parser's own stack.
pub const MAX_DEPTH: u32 = 32;

/// How many words and parts of words one text may have. No person writes as many. Quoted text
/// counts as one part however long it is.
pub const MAX_WORDS: u32 = 20_000;

/// Why a text could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nested deeper than [`MAX_DEPTH`].
    Depth,
    /// More words than [`MAX_WORDS`].
    Size,
    /// Not the shell's grammar.
    Syntax(&'static str),
}

type Parsed<T> = Result<T, Fault>;

pub fn parse(text: &str) -> Parsed<Script<'_>> {
    parse_at(text, 0)
}

/// Parses a text that is nested in others.
pub fn parse_at(text: &str, depth: u32) -> Parsed<Script<'_>> {
    let mut parser = Parser::new(text, depth);
    let list = parser.list(&[])?;
    parser.blanks();
    if parser.pos < parser.bytes.len() {
        return Err(Fault::Syntax("unexpected token"));
    }
    parser.read_heres()?;
    Ok(Script { list, heres: parser.heres })
}

struct Pending<'s> {
    number: usize,
    delimiter: Cow<'s, str>,
    is_quoted: bool,
    strips_tabs: bool,
}

struct Parser<'s> {
    text: &'s str,
    bytes: &'s [u8],
    pos: usize,
    depth: u32,
    pending: Vec<Pending<'s>>,
    heres: Vec<Here<'s>>,
    no_arithmetic: bool,
    words: u32,
}

const CLOSERS: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];

impl<'s> Parser<'s> {
    fn new(text: &'s str, depth: u32) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            pos: 0,
            depth,
            pending: Vec::new(),
            heres: Vec::new(),
            no_arithmetic: false,
            words: 0,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.pos + ahead).copied()
    }

    fn starts(&self, what: &str) -> bool {
        self.bytes.get(self.pos..).is_some_and(|rest| rest.starts_with(what.as_bytes()))
    }

    fn slice(&self, from: usize, to: usize) -> &'s str {
        self.text.get(from..to).unwrap_or("")
    }

    fn count(&mut self) -> Parsed<()> {
        self.words += 1;
        if self.words > MAX_WORDS { Err(Fault::Size) } else { Ok(()) }
    }

    fn deeper(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Fault::Depth) } else { Ok(()) }
    }

    /// Skips blanks, continued lines and a comment.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.pos += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.pos += 2,
                Some(b'\\') if self.peek_at(1) == Some(b'\r') && self.peek_at(2) == Some(b'\n') => {
                    self.pos += 3
                }
                Some(b'#') => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.pos += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn newlines(&mut self) -> Parsed<()> {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    fn newline(&mut self) -> Parsed<()> {
        self.pos += 1;
        if self.pending.is_empty() { Ok(()) } else { self.read_heres() }
    }

    fn read_heres(&mut self) -> Parsed<()> {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.pos;
            let mut end = self.bytes.len();
            while self.pos < self.bytes.len() {
                let line_start = self.pos;
                let rest = self.bytes.get(line_start..).unwrap_or(&[]);
                let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                let line = self.slice(line_start, line_start + length);
                self.pos = (line_start + length + 1).min(self.bytes.len());
                let line = line.strip_suffix('\r').unwrap_or(line);
                let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
                if line == pending.delimiter {
                    end = line_start;
                    break;
                }
                // A substitution may close on the line of the delimiter.
                if line
                    .strip_prefix(&*pending.delimiter)
                    .is_some_and(|rest| rest.trim_start().starts_with(')'))
                {
                    end = line_start;
                    self.pos = line_start + pending.delimiter.len();
                    break;
                }
            }
            let body = self.slice(start, end);
            let parts = if pending.is_quoted {
                vec![Part::Quoted(Cow::Borrowed(body))]
            } else {
                let mut inner = Parser::new(body, self.depth + 1);
                inner.words = self.words;
                let parts = inner.quoted_parts(None)?;
                self.words = inner.words;
                parts
            };
            if let Some(here) = self.heres.get_mut(pending.number) {
                here.parts = parts;
            }
        }
        Ok(())
    }

    /// The reserved word or closing sign at this position, if it is one of these.
    fn at_closer(&self, closers: &[&str]) -> bool {
        closers.iter().any(|closer| {
            if closer.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) || *closer == "}" {
                self.at_word(closer)
            } else {
                self.starts(closer)
            }
        })
    }

    fn at_word(&self, word: &str) -> bool {
        self.starts(word) && self.peek_at(word.len()).is_none_or(ends_word)
    }

    fn list(&mut self, closers: &[&str]) -> Parsed<List<'s>> {
        let mut list = List::default();
        loop {
            self.newlines()?;
            if self.peek().is_none() || self.at_closer(closers) {
                return Ok(list);
            }
            if self.starts(")") || self.starts(";;") || CLOSERS.iter().any(|word| self.at_word(word)) {
                return Err(Fault::Syntax("unexpected word or sign"));
            }
            let stages = self.pipeline()?;
            self.blanks();
            let mut background = false;
            let mut then = Then::Always;
            match self.peek() {
                Some(b'&') if self.peek_at(1) == Some(b'&') => {
                    then = Then::OnSuccess;
                    self.pos += 2;
                }
                Some(b'&') => {
                    self.pos += 1;
                    background = true;
                    if matches!(self.peek(), Some(b'!' | b'|')) {
                        self.pos += 1;
                    }
                }
                Some(b'|') if self.peek_at(1) == Some(b'|') => {
                    then = Then::OnFailure;
                    self.pos += 2;
                }
                Some(b';') if !matches!(self.peek_at(1), Some(b';' | b'&')) => self.pos += 1,
                Some(b'\n') | None => {}
                Some(_) if self.at_closer(closers) => {}
                Some(_) => return Err(Fault::Syntax("unexpected sign after a command")),
            }
            list.items.push(Item { stages, background, then });
        }
    }

    fn pipeline(&mut self) -> Parsed<Vec<Node<'s>>> {
        loop {
            self.blanks();
            if self.peek() == Some(b'!')
                && self.peek_at(1).is_none_or(|byte| byte.is_ascii_whitespace() || byte == b'(')
            {
                self.pos += 1;
            } else if self.at_word("time") {
                let after = self.bytes.get(self.pos + 4..).unwrap_or(&[]);
                let next = after.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
                if next == Some(&b'-') {
                    break;
                }
                self.pos += 4;
            } else {
                break;
            }
        }
        let mut stages = Vec::with_capacity(1);
        loop {
            self.blanks();
            stages.push(self.command()?);
            self.blanks();
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                return Ok(stages);
            }
            self.pos += 1;
            if self.peek() == Some(b'&') {
                self.pos += 1;
            }
            self.newlines()?;
        }
    }

    fn command(&mut self) -> Parsed<Node<'s>> {
        let kind = match self.peek() {
            Some(b'(') => self.parenthesis()?,
            Some(b'{') if self.at_word("{") => {
                self.pos += 1;
                NodeKind::Group(vec![self.block(&["}"])?])
            }
            Some(b'[') if self.at_word("[[") => self.double_bracket()?,
            Some(b'i') if self.at_word("if") => self.if_command()?,
            Some(b'w') if self.at_word("while") => self.loop_command(5)?,
            Some(b'u') if self.at_word("until") => self.loop_command(5)?,
            Some(b'f') if self.at_word("for") => self.for_command(3)?,
            Some(b's') if self.at_word("select") => self.for_command(6)?,
            Some(b'c') if self.at_word("case") => self.case_command()?,
            Some(b'f') if self.at_word("function") => self.function_keyword()?,
            Some(b'c') if self.at_word("coproc") => {
                self.pos += 6;
                self.blanks();
                let start = self.pos;
                while self.peek().is_some_and(is_name) {
                    self.pos += 1;
                }
                let named = self.pos > start && {
                    let mark = self.pos;
                    self.blanks();
                    let compound = self.at_word("{") || self.peek() == Some(b'(');
                    if !compound {
                        self.pos = mark;
                    }
                    compound
                };
                if !named {
                    self.pos = start;
                }
                self.deeper()?;
                let node = self.command()?;
                self.depth -= 1;
                return Ok(node);
            }
            _ => return self.simple(),
        };
        let mut redirects = Vec::new();
        if !matches!(kind, NodeKind::Function { .. }) {
            loop {
                self.blanks();
                match self.redirect()? {
                    Some(redirect) => redirects.push(redirect),
                    None => break,
                }
            }
        }
        Ok(Node { kind, redirects })
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

fn is_plain(byte: u8) -> bool {
    !ends_word(byte) && !matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`')
}

fn is_extglob(before: Option<u8>) -> bool {
    matches!(before, Some(b'@' | b'?' | b'*' | b'+' | b'!'))
}
