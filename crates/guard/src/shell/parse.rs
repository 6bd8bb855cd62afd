//! Shell text to syntax tree: recursive descent over bytes, each byte looked at a bounded number of times.
//!
//! Written for this, because the general parsers are too slow to stand before every tool call (tree-sitter-bash needs a quarter of a
//! second for a mebibyte) and misread forms that matter here (`a >f b`). `tests/second_opinion.rs` compares it with theirs. It takes what bash
//! takes and some of zsh; what it can't read is an error, never a guess.

use super::syntax::*;
use std::borrow::Cow;

/// Deepest nesting that is read.
pub const MAX_DEPTH: u32 = 32;

/// Most words and parts of words of one text. No person writes as many; quoted text counts as one however long it is.
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

/// Reads a whole text.
pub fn parse(text: &str) -> Parsed<Script<'_>> {
    parse_at(text, 0)
}

/// Reads a text that stands inside others.
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

/// Reads a text as if it stood in double quotes.
pub fn parse_quoted(text: &str, depth: u32) -> Parsed<Vec<Part<'_>>> {
    let mut parser = Parser::new(text, depth);
    parser.quoted_parts(None)
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

    /// The reserved word or closing sign that stands here, if it is one of these.
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
            match self.peek() {
                Some(b'&') if self.peek_at(1) == Some(b'&') => self.pos += 2,
                Some(b'&') => {
                    self.pos += 1;
                    background = true;
                    if matches!(self.peek(), Some(b'!' | b'|')) {
                        self.pos += 1;
                    }
                }
                Some(b'|') if self.peek_at(1) == Some(b'|') => self.pos += 2,
                Some(b';') if !matches!(self.peek_at(1), Some(b';' | b'&')) => self.pos += 1,
                Some(b'\n') | None => {}
                Some(_) if self.at_closer(closers) => {}
                Some(_) => return Err(Fault::Syntax("unexpected sign after a command")),
            }
            list.items.push(Item { stages, background });
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
                Kind::Group(vec![self.block(&["}"])?])
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
        if !matches!(kind, Kind::Function { .. }) {
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

    /// A list up to one of these, which is taken too.
    fn block(&mut self, closers: &[&str]) -> Parsed<List<'s>> {
        self.deeper()?;
        let list = self.list(closers)?;
        self.depth -= 1;
        for closer in closers {
            if self.at_closer(&[closer]) {
                self.pos += closer.len();
                return Ok(list);
            }
        }
        Err(Fault::Syntax("a block is not closed"))
    }

    fn parenthesis(&mut self) -> Parsed<Kind<'s>> {
        if self.peek_at(1) == Some(b'(')
            && let Some(parts) = self.arithmetic(2)?
        {
            return Ok(Kind::Test(vec![Word::Parts(parts)]));
        }
        self.pos += 1;
        Ok(Kind::Subshell(self.block(&[")"])?))
    }

    /// `((…))` whose opening is this long; `None` where it is something else.
    fn arithmetic(&mut self, opening: usize) -> Parsed<Option<Vec<Part<'s>>>> {
        if self.no_arithmetic {
            return Ok(None);
        }
        let start = self.pos + opening;
        let mut open = 0u32;
        let mut at = start;
        loop {
            match self.bytes.get(at) {
                None => {
                    self.no_arithmetic = true;
                    return Ok(None);
                }
                Some(b'(') => open += 1,
                Some(b')') if open > 0 => open -= 1,
                Some(b')') => break,
                Some(b'\\') => at += 1,
                _ => {}
            }
            at += 1;
        }
        if self.bytes.get(at + 1) != Some(&b')') {
            return Ok(None);
        }
        self.deeper()?;
        let mut inner = Parser::new(self.slice(start, at), self.depth);
        let parts = inner.quoted_parts(None)?;
        self.depth -= 1;
        self.pos = at + 2;
        Ok(Some(parts))
    }

    fn double_bracket(&mut self) -> Parsed<Kind<'s>> {
        self.pos += 2;
        let mut words = Vec::new();
        loop {
            self.newlines()?;
            match self.peek() {
                None => return Err(Fault::Syntax("[[ is not closed")),
                Some(b']') if self.at_word("]]") => {
                    self.pos += 2;
                    return Ok(Kind::Test(words));
                }
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => words.push(self.word()?),
                Some(b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b';') => self.pos += 1,
                Some(_) => words.push(self.word()?),
            }
        }
    }

    fn if_command(&mut self) -> Parsed<Kind<'s>> {
        self.pos += 2;
        let mut branches = Vec::new();
        let mut condition = self.block(&["then"])?;
        loop {
            self.deeper()?;
            branches.push((condition, self.list(&["elif", "else", "fi"])?));
            self.depth -= 1;
            if self.at_word("elif") {
                self.pos += 4;
                condition = self.block(&["then"])?;
            } else if self.at_word("else") {
                self.pos += 4;
                return Ok(Kind::If { branches, otherwise: Some(self.block(&["fi"])?) });
            } else if self.at_word("fi") {
                self.pos += 2;
                return Ok(Kind::If { branches, otherwise: None });
            } else {
                return Err(Fault::Syntax("if is not closed"));
            }
        }
    }

    fn loop_command(&mut self, keyword: usize) -> Parsed<Kind<'s>> {
        self.pos += keyword;
        let condition = self.block(&["do"])?;
        Ok(Kind::Group(vec![condition, self.block(&["done"])?]))
    }

    fn for_command(&mut self, keyword: usize) -> Parsed<Kind<'s>> {
        self.pos += keyword;
        self.blanks();
        if self.starts("((") {
            let parts = self.arithmetic(2)?.ok_or(Fault::Syntax("for (( is not closed"))?;
            self.separator()?;
            let body = self.loop_body()?;
            let head = Node { kind: Kind::Test(vec![Word::Parts(parts)]), redirects: Vec::new() };
            let head = List { items: vec![Item { stages: vec![head], background: false }] };
            return Ok(Kind::Group(vec![head, body]));
        }
        let name = self.name()?;
        self.newlines()?;
        let mut values = None;
        if self.at_word("in") {
            self.pos += 2;
            let mut words = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    None | Some(b'\n' | b';') => break,
                    _ => words.push(self.word()?),
                }
            }
            values = Some(words);
        } else if self.peek() == Some(b'(') {
            self.pos += 1;
            let mut words = Vec::new();
            loop {
                self.newlines()?;
                match self.peek() {
                    None => return Err(Fault::Syntax("for ( is not closed")),
                    Some(b')') => break,
                    _ => words.push(self.word()?),
                }
            }
            self.pos += 1;
            values = Some(words);
        }
        self.separator()?;
        let body = self.loop_body()?;
        Ok(Kind::For { name, values, body })
    }

    fn separator(&mut self) -> Parsed<()> {
        self.blanks();
        if self.peek() == Some(b';') {
            self.pos += 1;
        }
        self.newlines()
    }

    fn loop_body(&mut self) -> Parsed<List<'s>> {
        if self.at_word("do") {
            self.pos += 2;
            self.block(&["done"])
        } else if self.at_word("{") {
            self.pos += 1;
            self.block(&["}"])
        } else {
            Err(Fault::Syntax("a loop has no body"))
        }
    }

    fn case_command(&mut self) -> Parsed<Kind<'s>> {
        self.pos += 4;
        self.blanks();
        let subject = self.word()?;
        self.newlines()?;
        if !self.at_word("in") {
            return Err(Fault::Syntax("case without in"));
        }
        self.pos += 2;
        let mut branches = Vec::new();
        loop {
            self.newlines()?;
            if self.at_word("esac") {
                self.pos += 4;
                return Ok(Kind::Case { subject, branches });
            }
            if self.peek() == Some(b'(') {
                self.pos += 1;
            }
            loop {
                self.blanks();
                match self.peek() {
                    None => return Err(Fault::Syntax("case is not closed")),
                    Some(b')') => break,
                    Some(b'|') => self.pos += 1,
                    _ => drop(self.word()?),
                }
            }
            self.pos += 1;
            self.deeper()?;
            branches.push(self.list(&[";;", ";&", "esac"])?);
            self.depth -= 1;
            if self.starts(";;&") {
                self.pos += 3;
            } else if self.starts(";;") || self.starts(";&") {
                self.pos += 2;
            }
        }
    }

    fn function_keyword(&mut self) -> Parsed<Kind<'s>> {
        self.pos += 8;
        self.blanks();
        let start = self.pos;
        while self.peek().is_some_and(|byte| !ends_word(byte)) {
            self.pos += 1;
        }
        let name = self.slice(start, self.pos);
        self.blanks();
        if self.starts("()") {
            self.pos += 2;
        }
        self.function_body(name)
    }

    fn function_body(&mut self, name: &'s str) -> Parsed<Kind<'s>> {
        self.newlines()?;
        let start = self.pos;
        self.deeper()?;
        // Read to find its end; its commands count where it is called.
        drop(self.command()?);
        self.depth -= 1;
        Ok(Kind::Function { name, body: self.slice(start, self.pos) })
    }

    fn name(&mut self) -> Parsed<&'s str> {
        let start = self.pos;
        while self.peek().is_some_and(is_name) {
            self.pos += 1;
        }
        if start == self.pos {
            Err(Fault::Syntax("a name is missing"))
        } else {
            Ok(self.slice(start, self.pos))
        }
    }

    fn simple(&mut self) -> Parsed<Node<'s>> {
        let mut assignments = Vec::new();
        let mut words = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                Some(b'(') => {
                    // `name ()` begins a function.
                    if let ([Word::Plain(name)], true, true) =
                        (&words[..], assignments.is_empty(), redirects.is_empty())
                    {
                        let name = *name;
                        self.pos += 1;
                        self.blanks();
                        if self.peek() == Some(b')') {
                            self.pos += 1;
                            return Ok(Node { kind: self.function_body(name)?, redirects });
                        }
                    }
                    return Err(Fault::Syntax("unexpected ("));
                }
                _ => {}
            }
            if words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                assignments.push(assignment);
                continue;
            }
            // `export X=(…)` and `declare -a x=(…)` hold arrays too.
            if matches!(
                words.first(),
                Some(Word::Plain("export" | "declare" | "typeset" | "local" | "readonly"))
            ) && let Some(assignment) = self.array_assignment()?
            {
                assignments.push(assignment);
                continue;
            }
            words.push(self.word()?);
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return Err(Fault::Syntax("a command is missing"));
        }
        Ok(Node { kind: Kind::Simple { assignments, words }, redirects })
    }

    /// The length of `name`, `name[…]`, and whether `+=` follows, where an assignment stands here.
    fn assignment_head(&self) -> Option<(usize, usize, bool)> {
        let rest = self.bytes.get(self.pos..)?;
        if !rest.first().is_some_and(|byte| is_name(*byte) && !byte.is_ascii_digit()) {
            return None;
        }
        let name = rest.iter().position(|byte| !is_name(*byte))?;
        let mut at = name;
        if rest.get(at) == Some(&b'[') {
            let inside = rest.get(at..)?.iter().take(256).position(|byte| *byte == b']')?;
            at += inside + 1;
        }
        let append = rest.get(at) == Some(&b'+');
        if append {
            at += 1;
        }
        (rest.get(at) == Some(&b'=')).then_some((name, at + 1, append))
    }

    fn assignment(&mut self) -> Parsed<Option<Assignment<'s>>> {
        self.count()?;
        let Some((name, length, append)) = self.assignment_head() else { return Ok(None) };
        let name = self.slice(self.pos, self.pos + name);
        self.pos += length;
        let values = match self.peek() {
            Some(b'(') => self.array()?,
            Some(byte)
                if !ends_word(byte) || (matches!(byte, b'<' | b'>') && self.peek_at(1) == Some(b'(')) =>
            {
                vec![self.word()?]
            }
            _ => vec![Word::Plain("")],
        };
        Ok(Some(Assignment { name, append, values }))
    }

    fn array_assignment(&mut self) -> Parsed<Option<Assignment<'s>>> {
        match self.assignment_head() {
            Some((_, length, _)) if self.peek_at(length) == Some(b'(') => self.assignment(),
            _ => Ok(None),
        }
    }

    fn array(&mut self) -> Parsed<Vec<Word<'s>>> {
        self.pos += 1;
        let mut words = Vec::new();
        loop {
            self.newlines()?;
            match self.peek() {
                None => return Err(Fault::Syntax("an array is not closed")),
                Some(b')') => {
                    self.pos += 1;
                    return Ok(words);
                }
                Some(b';' | b'&' | b'|' | b'(') => return Err(Fault::Syntax("unexpected sign in an array")),
                _ => words.push(self.word()?),
            }
        }
    }

    fn redirect(&mut self) -> Parsed<Option<Redirect<'s>>> {
        let start = self.pos;
        let mut fd = None;
        if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            let mut at = self.pos;
            while self.bytes.get(at).is_some_and(u8::is_ascii_digit) && at - start < 10 {
                at += 1;
            }
            if !matches!(self.bytes.get(at), Some(b'<' | b'>')) {
                return Ok(None);
            }
            fd = self.slice(start, at).parse().ok();
            self.pos = at;
        } else if self.peek() == Some(b'{') {
            let rest = self.bytes.get(self.pos + 1..).unwrap_or(&[]);
            let name = rest.iter().take(64).position(|byte| !is_name(*byte)).unwrap_or(0);
            if name == 0 || rest.get(name) != Some(&b'}') || !matches!(rest.get(name + 1), Some(b'<' | b'>'))
            {
                return Ok(None);
            }
            self.pos += name + 2;
        }
        const OPS: &[(&str, RedirectOp)] = &[
            ("<<<", RedirectOp::HereString),
            ("<<-", RedirectOp::HereDocument),
            ("<<", RedirectOp::HereDocument),
            ("&>>", RedirectOp::AppendBoth),
            ("&>", RedirectOp::WriteBoth),
            (">>", RedirectOp::Append),
            (">|", RedirectOp::Write),
            (">&", RedirectOp::Duplicate),
            ("<&", RedirectOp::Duplicate),
            ("<>", RedirectOp::ReadWrite),
        ];
        let found = OPS
            .iter()
            .find(|(sign, _)| self.starts(sign))
            .map(|(sign, op)| (sign.len(), *op, *sign == "<<-"));
        let (length, mut op, strips_tabs) = match found {
            Some(found) => found,
            // `<(` and `>(` begin a word.
            None if self.peek_at(1) == Some(b'(') => {
                self.pos = start;
                return Ok(None);
            }
            None => match self.peek() {
                Some(b'<') => (1, RedirectOp::Read, false),
                Some(b'>') => (1, RedirectOp::Write, false),
                _ => {
                    self.pos = start;
                    return Ok(None);
                }
            },
        };
        self.pos += length;
        self.blanks();
        if self.peek().is_none_or(|byte| ends_word(byte) && !matches!(byte, b'<' | b'>')) {
            return Err(Fault::Syntax("a redirection has no target"));
        }
        if op == RedirectOp::HereDocument {
            let number = self.heres.len();
            self.heres.push(Here::default());
            let (delimiter, is_quoted) = self.delimiter()?;
            self.pending.push(Pending { number, delimiter, is_quoted, strips_tabs });
            return Ok(Some(Redirect { fd, op, target: Target::Here(number) }));
        }
        let target = self.word()?;
        if op == RedirectOp::Duplicate
            && let Word::Plain(text) = &target
            && !text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit())
        {
            op = RedirectOp::WriteBoth;
        }
        Ok(Some(Redirect { fd, op, target: Target::Word(target) }))
    }

    fn delimiter(&mut self) -> Parsed<(Cow<'s, str>, bool)> {
        let start = self.pos;
        let mut text = String::new();
        let mut is_quoted = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' | b'"' => {
                    is_quoted = true;
                    self.pos += 1;
                    let from = self.pos;
                    while self.peek().is_some_and(|other| other != byte) {
                        self.pos += 1;
                    }
                    text.push_str(self.slice(from, self.pos));
                    self.pos += 1;
                }
                b'\\' => {
                    is_quoted = true;
                    self.pos += 1;
                    let from = self.pos;
                    self.pos += self.char_length();
                    text.push_str(self.slice(from, self.pos));
                }
                _ if ends_word(byte) => break,
                _ => {
                    let from = self.pos;
                    self.pos += self.char_length();
                    text.push_str(self.slice(from, self.pos));
                }
            }
        }
        if self.pos > self.bytes.len() {
            return Err(Fault::Syntax("a quote is not closed"));
        }
        if is_quoted {
            Ok((Cow::Owned(text), true))
        } else {
            Ok((Cow::Borrowed(self.slice(start, self.pos)), false))
        }
    }

    fn char_length(&self) -> usize {
        match self.peek() {
            None => 0,
            Some(byte) if byte < 0x80 => 1,
            Some(byte) if byte < 0xe0 => 2,
            Some(byte) if byte < 0xf0 => 3,
            Some(_) => 4,
        }
    }

    fn word(&mut self) -> Parsed<Word<'s>> {
        self.count()?;
        let start = self.pos;
        while self.peek().is_some_and(is_plain) {
            self.pos += 1;
        }
        let is_pattern = self.peek() == Some(b'(')
            && is_extglob(self.pos.checked_sub(1).and_then(|at| self.bytes.get(at)).copied());
        if self.pos > start && self.peek().is_none_or(ends_word) && !is_pattern {
            return Ok(Word::Plain(self.slice(start, self.pos)));
        }
        let mut parts = Vec::new();
        if self.pos > start {
            parts.push(Part::Bare(self.slice(start, self.pos)));
        }
        loop {
            let from = self.pos;
            while self.peek().is_some_and(is_plain) {
                self.pos += 1;
            }
            if self.pos > from {
                parts.push(Part::Bare(self.slice(from, self.pos)));
            }
            self.count()?;
            match self.peek() {
                None => break,
                Some(b'\'') => parts.push(self.single_quoted()?),
                Some(b'"') => {
                    self.pos += 1;
                    self.deeper()?;
                    parts.push(Part::Double(self.quoted_parts(Some(b'"'))?));
                    self.depth -= 1;
                }
                Some(b'\\') => {
                    self.pos += 1;
                    let from = self.pos;
                    match self.peek() {
                        Some(b'\n') => self.pos += 1,
                        None => parts.push(Part::Quoted(Cow::Borrowed("\\"))),
                        Some(_) => {
                            self.pos += self.char_length();
                            parts.push(Part::Quoted(Cow::Borrowed(self.slice(from, self.pos))));
                        }
                    }
                }
                Some(b'$') => parts.push(self.dollar(false)?),
                Some(b'`') => parts.push(self.backticks()?),
                Some(sign @ (b'<' | b'>')) if self.peek_at(1) == Some(b'(') => {
                    self.pos += 2;
                    let list = self.block(&[")"])?;
                    parts.push(Part::Process { list, is_input: sign == b'<' });
                }
                Some(b'=') if self.peek_at(1) == Some(b'(') && parts.is_empty() => {
                    self.pos += 2;
                    let list = self.block(&[")"])?;
                    parts.push(Part::Process { list, is_input: true });
                }
                Some(b'(')
                    if is_extglob(self.pos.checked_sub(1).and_then(|at| self.bytes.get(at)).copied())
                        && self.pos > start =>
                {
                    let from = self.pos;
                    let mut open = 0u32;
                    while let Some(byte) = self.peek() {
                        self.pos += 1;
                        match byte {
                            b'(' => open += 1,
                            b')' => open -= 1,
                            b'\n' => return Err(Fault::Syntax("a pattern is not closed")),
                            _ => {}
                        }
                        if open == 0 {
                            break;
                        }
                    }
                    if open != 0 {
                        return Err(Fault::Syntax("a pattern is not closed"));
                    }
                    parts.push(Part::Bare(self.slice(from, self.pos)));
                }
                Some(_) => break,
            }
        }
        if self.pos == start {
            return Err(Fault::Syntax("a word is missing"));
        }
        Ok(Word::Parts(parts))
    }

    fn single_quoted(&mut self) -> Parsed<Part<'s>> {
        self.pos += 1;
        let from = self.pos;
        let rest = self.bytes.get(from..).unwrap_or(&[]);
        let length =
            rest.iter().position(|byte| *byte == b'\'').ok_or(Fault::Syntax("a quote is not closed"))?;
        self.pos = from + length + 1;
        Ok(Part::Quoted(Cow::Borrowed(self.slice(from, from + length))))
    }

    /// The parts of a double-quoted text up to its end, which is taken; or all of the text.
    fn quoted_parts(&mut self, end: Option<u8>) -> Parsed<Vec<Part<'s>>> {
        let mut parts = Vec::new();
        loop {
            let from = self.pos;
            while self.peek().is_some_and(|byte| !matches!(byte, b'\\' | b'$' | b'`') && Some(byte) != end) {
                self.pos += 1;
            }
            if self.pos > from {
                parts.push(Part::Quoted(Cow::Borrowed(self.slice(from, self.pos))));
            }
            self.count()?;
            match self.peek() {
                None if end.is_none() => return Ok(parts),
                None => return Err(Fault::Syntax("a quote is not closed")),
                Some(b'\\') => {
                    match self.peek_at(1) {
                        Some(b'\n') => {}
                        Some(b'$' | b'`' | b'\\') => {
                            parts.push(Part::Quoted(Cow::Borrowed(self.slice(self.pos + 1, self.pos + 2))));
                        }
                        Some(byte) if Some(byte) == end => {
                            parts.push(Part::Quoted(Cow::Borrowed(self.slice(self.pos + 1, self.pos + 2))));
                        }
                        _ => {
                            parts.push(Part::Quoted(Cow::Borrowed("\\")));
                            self.pos += 1;
                            continue;
                        }
                    }
                    self.pos += 2;
                }
                Some(b'$') => parts.push(self.dollar(true)?),
                Some(b'`') => parts.push(self.backticks()?),
                Some(_) => {
                    self.pos += 1;
                    return Ok(parts);
                }
            }
        }
    }

    fn dollar(&mut self, in_quotes: bool) -> Parsed<Part<'s>> {
        match self.peek_at(1) {
            Some(b'(') => {
                if self.peek_at(2) == Some(b'(')
                    && let Some(parts) = self.arithmetic(3)?
                {
                    return Ok(Part::Arithmetic(parts));
                }
                self.pos += 2;
                Ok(Part::Command(self.block(&[")"])?))
            }
            Some(b'{') => self.braced(in_quotes),
            Some(b'[') => {
                let from = self.pos + 2;
                let rest = self.bytes.get(from..).unwrap_or(&[]);
                let length = rest
                    .iter()
                    .take(4096)
                    .position(|byte| *byte == b']')
                    .ok_or(Fault::Syntax("$[ is not closed"))?;
                self.pos = from + length + 1;
                Ok(Part::Arithmetic(Vec::new()))
            }
            Some(b'\'') if !in_quotes => {
                self.pos += 1;
                self.ansi_quoted()
            }
            Some(b'"') if !in_quotes => {
                self.pos += 2;
                self.deeper()?;
                let parts = self.quoted_parts(Some(b'"'))?;
                self.depth -= 1;
                Ok(Part::Double(parts))
            }
            Some(byte) if is_name(byte) && !byte.is_ascii_digit() => {
                self.pos += 1;
                let name = self.name()?;
                Ok(Part::Param(Box::new(Param {
                    name,
                    index: None,
                    length: false,
                    indirect: false,
                    op: None,
                })))
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?$!-".contains(&byte) => {
                let name = self.slice(self.pos + 1, self.pos + 2);
                self.pos += 2;
                Ok(Part::Param(Box::new(Param {
                    name,
                    index: None,
                    length: false,
                    indirect: false,
                    op: None,
                })))
            }
            _ => {
                self.pos += 1;
                Ok(Part::Quoted(Cow::Borrowed("$")))
            }
        }
    }

    fn braced(&mut self, in_quotes: bool) -> Parsed<Part<'s>> {
        self.pos += 2;
        // `${ command; }` and `${| command; }`.
        if matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'|')) {
            self.pos += 1;
            return Ok(Part::Command(self.block(&["}"])?));
        }
        self.deeper()?;
        let mut length = false;
        let mut indirect = false;
        match self.peek() {
            Some(b'#')
                if self.peek_at(1).is_some_and(|byte| byte != b'}' && byte != b':' && byte != b'-') =>
            {
                length = true;
                self.pos += 1;
            }
            Some(b'!') if self.peek_at(1) != Some(b'}') => {
                indirect = true;
                self.pos += 1;
            }
            _ => {}
        }
        // zsh: flags such as `${(L)x}`.
        if self.peek() == Some(b'(') {
            while self.peek().is_some_and(|byte| byte != b')' && byte != b'}') {
                self.pos += 1;
            }
            self.pos += 1;
        }
        let from = self.pos;
        if self.peek().is_some_and(|byte| b"@*#?$!-".contains(&byte)) {
            self.pos += 1;
        } else {
            while self.peek().is_some_and(is_name) {
                self.pos += 1;
            }
        }
        let name = self.slice(from, self.pos);
        let mut index = None;
        if self.peek() == Some(b'[') {
            let from = self.pos + 1;
            let rest = self.bytes.get(from..).unwrap_or(&[]);
            let inside = rest
                .iter()
                .take(4096)
                .position(|byte| *byte == b']')
                .ok_or(Fault::Syntax("${x[ is not closed"))?;
            index = Some(self.slice(from, from + inside));
            self.pos = from + inside + 1;
        }
        let op = self.param_op();
        let op = match op {
            Some(op) => Some((op, Word::Parts(self.braced_word(in_quotes)?))),
            None if self.peek() == Some(b'}') => {
                self.pos += 1;
                None
            }
            None => return Err(Fault::Syntax("${ is not understood")),
        };
        self.depth -= 1;
        Ok(Part::Param(Box::new(Param { name, index, length, indirect, op })))
    }

    fn param_op(&mut self) -> Option<ParamOp> {
        const OPS: &[(&str, ParamOp)] = &[
            (":-", ParamOp::Default),
            (":=", ParamOp::Default),
            (":+", ParamOp::Alternative),
            (":?", ParamOp::Require),
            ("-", ParamOp::Default),
            ("=", ParamOp::Default),
            ("+", ParamOp::Alternative),
            ("?", ParamOp::Require),
            ("##", ParamOp::CutFrontLongest),
            ("#", ParamOp::CutFront),
            ("%%", ParamOp::CutBackLongest),
            ("%", ParamOp::CutBack),
            ("//", ParamOp::ReplaceAll),
            ("/", ParamOp::Replace),
            ("^^", ParamOp::Upper),
            ("^", ParamOp::Upper),
            (",,", ParamOp::Lower),
            (",", ParamOp::Lower),
            ("@", ParamOp::Other),
            ("*", ParamOp::Other),
            (":", ParamOp::Slice),
        ];
        let (sign, op) = OPS.iter().find(|(sign, _)| self.starts(sign))?;
        self.pos += sign.len();
        Some(*op)
    }

    /// The word after an operator, up to the brace that closes it.
    fn braced_word(&mut self, in_quotes: bool) -> Parsed<Vec<Part<'s>>> {
        let mut parts = Vec::new();
        loop {
            let from = self.pos;
            while self.peek().is_some_and(|byte| !matches!(byte, b'}' | b'\\' | b'$' | b'`' | b'"' | b'\'')) {
                self.pos += 1;
            }
            if self.pos > from {
                parts.push(Part::Bare(self.slice(from, self.pos)));
            }
            match self.peek() {
                None => return Err(Fault::Syntax("${ is not closed")),
                Some(b'}') => {
                    self.pos += 1;
                    return Ok(parts);
                }
                Some(b'\\') => {
                    self.pos += 1;
                    let from = self.pos;
                    self.pos += self.char_length();
                    parts.push(Part::Quoted(Cow::Borrowed(self.slice(from, self.pos))));
                }
                Some(b'\'') if !in_quotes => parts.push(self.single_quoted()?),
                Some(b'\'') => {
                    self.pos += 1;
                    parts.push(Part::Quoted(Cow::Borrowed("'")));
                }
                Some(b'"') => {
                    self.pos += 1;
                    self.deeper()?;
                    parts.push(Part::Double(self.quoted_parts(Some(b'"'))?));
                    self.depth -= 1;
                }
                Some(b'`') => parts.push(self.backticks()?),
                Some(_) => parts.push(self.dollar(in_quotes)?),
            }
        }
    }

    fn backticks(&mut self) -> Parsed<Part<'s>> {
        self.pos += 1;
        let from = self.pos;
        let mut text: Option<String> = None;
        let mut copied = from;
        loop {
            match self.peek() {
                None => return Err(Fault::Syntax("a backtick is not closed")),
                Some(b'`') => break,
                Some(b'\\') => {
                    if matches!(self.peek_at(1), Some(b'\\' | b'`' | b'$' | b'"')) {
                        let owned = text.get_or_insert_default();
                        owned.push_str(self.text.get(copied..self.pos).unwrap_or(""));
                        copied = self.pos + 1;
                    }
                    self.pos += 1;
                    self.pos += self.char_length();
                }
                Some(_) => self.pos += 1,
            }
        }
        let tail = self.slice(copied, self.pos);
        self.pos += 1;
        Ok(Part::Backticks(match text {
            None => Cow::Borrowed(tail),
            Some(mut text) => {
                text.push_str(tail);
                Cow::Owned(text)
            }
        }))
    }

    /// `$'…'`, with its escapes.
    fn ansi_quoted(&mut self) -> Parsed<Part<'s>> {
        self.pos += 1;
        let mut text = String::new();
        loop {
            let from = self.pos;
            while self.peek().is_some_and(|byte| byte != b'\'' && byte != b'\\') {
                self.pos += 1;
            }
            text.push_str(self.slice(from, self.pos));
            match self.peek() {
                None => return Err(Fault::Syntax("a quote is not closed")),
                Some(b'\\') => {
                    let rest = self.slice(self.pos, self.bytes.len());
                    let (decoded, length) = super::escape::ansi(rest);
                    text.push_str(&decoded);
                    self.pos += length;
                }
                Some(_) => {
                    self.pos += 1;
                    return Ok(Part::Quoted(Cow::Owned(text)));
                }
            }
        }
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
