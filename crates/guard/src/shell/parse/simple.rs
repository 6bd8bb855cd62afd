//! Simple commands: assignments, words, redirections.

use super::*;

/// `name=`, `name[…]=` or `name+=`: the lengths of the name and of the whole head.
struct AssignmentHead {
    name: usize,
    length: usize,
    append: bool,
}

impl<'s> Parser<'s> {
    pub(super) fn simple(&mut self) -> Parsed<Node<'s>> {
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
            // `export X=(…)` and `declare -a x=(…)` can hold arrays too.
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
        Ok(Node { kind: NodeKind::Simple { assignments, words }, redirects })
    }

    /// The head of the assignment that begins here, if one does.
    fn assignment_head(&self) -> Option<AssignmentHead> {
        let rest = self.bytes.get(self.pos..)?;
        if !rest.first().is_some_and(|byte| is_name(*byte) && !byte.is_ascii_digit()) {
            return None;
        }
        let name = rest.iter().position(|byte| !is_name(*byte))?;
        let mut at = name;
        if rest.get(at) == Some(&b'[') {
            at += subscript(rest.get(at + 1..)?, 256)? + 2;
        }
        let append = rest.get(at) == Some(&b'+');
        if append {
            at += 1;
        }
        (rest.get(at) == Some(&b'=')).then_some(AssignmentHead { name, length: at + 1, append })
    }

    pub(super) fn assignment(&mut self) -> Parsed<Option<Assignment<'s>>> {
        self.count()?;
        let Some(AssignmentHead { name, length, append }) = self.assignment_head() else { return Ok(None) };
        let end = self.pos + name;
        let index = (self.bytes.get(end) == Some(&b'['))
            .then(|| self.slice(end + 1, self.pos + length))
            .and_then(|rest| Some(rest.rsplit_once(']')?.0));
        let name = self.slice(self.pos, end);
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
        Ok(Some(Assignment { name, index, append, values }))
    }

    pub(super) fn array_assignment(&mut self) -> Parsed<Option<Assignment<'s>>> {
        match self.assignment_head() {
            Some(head) if self.peek_at(head.length) == Some(b'(') => self.assignment(),
            _ => Ok(None),
        }
    }

    pub(super) fn array(&mut self) -> Parsed<Vec<Word<'s>>> {
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

    pub(super) fn redirect(&mut self) -> Parsed<Option<Redirect<'s>>> {
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

    pub(super) fn delimiter(&mut self) -> Parsed<(Cow<'s, str>, bool)> {
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
}

/// Where the brackets of a subscript close, counted from behind the opening one.
pub(super) fn subscript(rest: &[u8], most: usize) -> Option<usize> {
    let mut open = 0;
    rest.iter().take(most).position(|byte| {
        match byte {
            b'[' => open += 1,
            b']' if open == 0 => return true,
            b']' => open -= 1,
            _ => {}
        }
        false
    })
}
