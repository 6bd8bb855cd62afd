//! Commands that contain others: `if`, loops, `case`, functions, groups.

use super::*;

impl<'s> Parser<'s> {
    /// A list up to one of these words, which is consumed too.
    pub(super) fn block(&mut self, closers: &[&str]) -> Parsed<List<'s>> {
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

    pub(super) fn parenthesis(&mut self) -> Parsed<NodeKind<'s>> {
        if self.peek_at(1) == Some(b'(')
            && let Some(parts) = self.arithmetic(2)?
        {
            return Ok(NodeKind::Test(vec![Word::Parts(parts)]));
        }
        self.pos += 1;
        Ok(NodeKind::Subshell(self.block(&[")"])?))
    }

    /// `((…))` whose opening is this long; `None` if it is something else.
    pub(super) fn arithmetic(&mut self, opening: usize) -> Parsed<Option<Vec<Part<'s>>>> {
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

    pub(super) fn double_bracket(&mut self) -> Parsed<NodeKind<'s>> {
        self.pos += 2;
        let mut words = Vec::new();
        loop {
            self.newlines()?;
            match self.peek() {
                None => return Err(Fault::Syntax("[[ is not closed")),
                Some(b']') if self.at_word("]]") => {
                    self.pos += 2;
                    return Ok(NodeKind::Test(words));
                }
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => words.push(self.word()?),
                Some(b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b';') => self.pos += 1,
                Some(_) => words.push(self.word()?),
            }
        }
    }

    pub(super) fn if_command(&mut self) -> Parsed<NodeKind<'s>> {
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
                return Ok(NodeKind::If { branches, otherwise: Some(self.block(&["fi"])?) });
            } else if self.at_word("fi") {
                self.pos += 2;
                return Ok(NodeKind::If { branches, otherwise: None });
            } else {
                return Err(Fault::Syntax("if is not closed"));
            }
        }
    }

    pub(super) fn loop_command(&mut self, keyword: usize) -> Parsed<NodeKind<'s>> {
        self.pos += keyword;
        let condition = self.block(&["do"])?;
        Ok(NodeKind::Group(vec![condition, self.block(&["done"])?]))
    }

    pub(super) fn for_command(&mut self, keyword: usize) -> Parsed<NodeKind<'s>> {
        self.pos += keyword;
        self.blanks();
        if self.starts("((") {
            let parts = self.arithmetic(2)?.ok_or(Fault::Syntax("for (( is not closed"))?;
            self.separator()?;
            let body = self.loop_body()?;
            let head = Node { kind: NodeKind::Test(vec![Word::Parts(parts)]), redirects: Vec::new() };
            let head =
                List { items: vec![Item { stages: vec![head], background: false, then: Then::Always }] };
            return Ok(NodeKind::Group(vec![head, body]));
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
        Ok(NodeKind::For { name, values, body })
    }

    pub(super) fn separator(&mut self) -> Parsed<()> {
        self.blanks();
        if self.peek() == Some(b';') {
            self.pos += 1;
        }
        self.newlines()
    }

    pub(super) fn loop_body(&mut self) -> Parsed<List<'s>> {
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

    pub(super) fn case_command(&mut self) -> Parsed<NodeKind<'s>> {
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
                return Ok(NodeKind::Case { subject, branches });
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

    pub(super) fn function_keyword(&mut self) -> Parsed<NodeKind<'s>> {
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

    pub(super) fn function_body(&mut self, name: &'s str) -> Parsed<NodeKind<'s>> {
        self.newlines()?;
        let start = self.pos;
        self.deeper()?;
        // Parsed to find its end. Its commands count when it is called.
        drop(self.command()?);
        self.depth -= 1;
        Ok(NodeKind::Function { name, body: self.slice(start, self.pos) })
    }

    pub(super) fn name(&mut self) -> Parsed<&'s str> {
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
}
