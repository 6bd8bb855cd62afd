//! Words and their parts: quotes, expansions, substitutions.

use super::*;

impl<'s> Parser<'s> {
    pub(super) fn char_length(&self) -> usize {
        match self.peek() {
            None => 0,
            Some(byte) if byte < 0x80 => 1,
            Some(byte) if byte < 0xe0 => 2,
            Some(byte) if byte < 0xf0 => 3,
            Some(_) => 4,
        }
    }

    pub(super) fn word(&mut self) -> Parsed<Word<'s>> {
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

    pub(super) fn single_quoted(&mut self) -> Parsed<Part<'s>> {
        self.pos += 1;
        let from = self.pos;
        let rest = self.bytes.get(from..).unwrap_or(&[]);
        let length =
            rest.iter().position(|byte| *byte == b'\'').ok_or(Fault::Syntax("a quote is not closed"))?;
        self.pos = from + length + 1;
        Ok(Part::Quoted(Cow::Borrowed(self.slice(from, from + length))))
    }

    /// The parts of a double-quoted text up to its closing quote, which is consumed, or of the
    /// whole text.
    pub(super) fn quoted_parts(&mut self, end: Option<u8>) -> Parsed<Vec<Part<'s>>> {
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

    pub(super) fn dollar(&mut self, in_quotes: bool) -> Parsed<Part<'s>> {
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

    pub(super) fn braced(&mut self, in_quotes: bool) -> Parsed<Part<'s>> {
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
            let inside = super::simple::subscript(rest, 4096).ok_or(Fault::Syntax("${x[ is not closed"))?;
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

    pub(super) fn param_op(&mut self) -> Option<ParamOp> {
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
    pub(super) fn braced_word(&mut self, in_quotes: bool) -> Parsed<Vec<Part<'s>>> {
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

    pub(super) fn backticks(&mut self) -> Parsed<Part<'s>> {
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
    pub(super) fn ansi_quoted(&mut self) -> Parsed<Part<'s>> {
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
                    let (decoded, length) = crate::shell::escape::ansi(rest);
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
