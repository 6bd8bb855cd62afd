//! A word after expansion: its text, and the parts of it that are not known.

use std::rc::Rc;

/// Longest text of a word. Beyond this the word becomes unknown.
const MAX_VALUE_BYTES: usize = 2 << 20;
/// How many unknown parts a word may have. Beyond this the whole word becomes unknown.
const MAX_HOLES: usize = 4096;

/// Where an unknown part comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A variable that nothing in the text sets.
    Variable(Rc<str>),
    /// A download.
    Download,
    /// Text that was decoded, decrypted or reversed.
    Decoded,
    /// The output of this command.
    Output(Rc<str>),
    /// The content of this file, which existed before the command.
    File(Rc<str>),
    /// A file's content, or typed or piped input.
    Input,
}

/// A word of which parts may be unknown. `text` is the word if every unknown part is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    pub text: String,
    /// The unknown parts: where in `text` they are, and where they come from.
    pub holes: Vec<(usize, Origin)>,
    /// Where in `text` unquoted wildcards are.
    pub globs: Vec<usize>,
    /// The variables that it was made from, known or not.
    pub variables: Vec<Rc<str>>,
    /// Whether it means any file of that name below its folder, as `find` finds it.
    pub anywhere: bool,
}

impl Value {
    pub fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A value of which only the origin is known.
    pub fn unknown(origin: Origin) -> Self {
        Self { holes: vec![(0, origin)], ..Self::default() }
    }

    /// The text, if all of it is known.
    pub fn literal(&self) -> Option<&str> {
        self.holes.is_empty().then_some(self.text.as_str())
    }

    /// Whether all of it is known.
    pub fn is_known(&self) -> bool {
        self.holes.is_empty()
    }

    /// Whether a part of it comes from there.
    pub fn comes_from(&self, origin: &Origin) -> bool {
        self.holes.iter().any(|(_, hole)| hole == origin)
    }

    /// Whether a part of it was downloaded.
    pub fn is_download(&self) -> bool {
        self.comes_from(&Origin::Download)
    }

    /// Whether none of it is known.
    pub fn is_opaque(&self) -> bool {
        self.text.is_empty() && !self.holes.is_empty()
    }

    /// Appends another value. A value that would grow too long becomes unknown.
    pub fn push(&mut self, other: &Value) {
        let at = self.text.len();
        if at + other.text.len() > MAX_VALUE_BYTES
            || self.holes.len() + other.holes.len() > MAX_HOLES
            || self.globs.len() + other.globs.len() > MAX_VALUE_BYTES
        {
            if self.holes.len() <= MAX_HOLES {
                self.holes.push((at, Origin::Decoded));
            }
            return;
        }
        self.anywhere |= other.anywhere;
        self.text.push_str(&other.text);
        self.holes.extend(other.holes.iter().map(|(hole, origin)| (at + hole, origin.clone())));
        self.globs.extend(other.globs.iter().map(|glob| at + glob));
        for variable in &other.variables {
            self.note_variable(variable);
        }
    }

    /// Appends a known text.
    pub fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Notes that a variable went into it.
    pub fn note_variable(&mut self, name: &Rc<str>) {
        if self.variables.len() < 16 && !self.variables.contains(name) {
            self.variables.push(Rc::clone(name));
        }
    }

    /// The part from one byte to another.
    pub fn slice(&self, from: usize, to: usize) -> Value {
        let to = to.min(self.text.len());
        Value {
            text: self.text.get(from..to).unwrap_or("").to_owned(),
            holes: self
                .holes
                .iter()
                .filter(|(at, _)| (from..=to).contains(at))
                .map(|(at, origin)| (at - from, origin.clone()))
                .collect(),
            globs: self.globs.iter().filter(|at| (from..to).contains(*at)).map(|at| at - from).collect(),
            variables: self.variables.clone(),
            anywhere: self.anywhere,
        }
    }

    /// What follows a prefix.
    pub fn after(&self, prefix: &str) -> Option<Value> {
        let clear = self.holes.iter().all(|(at, _)| *at >= prefix.len());
        (clear && self.text.starts_with(prefix)).then(|| self.slice(prefix.len(), self.text.len()))
    }

    /// The parts before and after the first sign like this.
    pub fn split_at_sign(&self, sign: char) -> Option<(Value, Value)> {
        let at = self.text.find(sign)?;
        Some((self.slice(0, at), self.slice(at + sign.len_utf8(), self.text.len())))
    }

    /// Whether the unknown parts could make this word equal to that text.
    pub fn may_be(&self, text: &str) -> bool {
        if self.holes.is_empty() && self.globs.is_empty() {
            return self.text == text;
        }
        pattern_matches(&self.pattern(), text)
    }

    /// The word as a pattern: unknown parts are `*`, and other signs are escaped.
    pub fn pattern(&self) -> String {
        let mut out = String::new();
        let mut holes = self.holes.iter().map(|(at, _)| *at).peekable();
        let mut globs = self.globs.iter().copied().peekable();
        for (at, sign) in self.text.char_indices() {
            while holes.next_if(|hole| *hole <= at).is_some() {
                out.push('*');
            }
            while globs.next_if(|glob| *glob < at).is_some() {}
            if globs.peek() != Some(&at) && matches!(sign, '*' | '?' | '[' | '\\') {
                out.push('\\');
            }
            out.push(sign);
        }
        if holes.next().is_some() {
            out.push('*');
        }
        out
    }

    /// The word for a message: unknown parts by their names, without the values of variables.
    pub fn show(&self) -> String {
        let mut out = String::new();
        let mut last = 0;
        for (at, origin) in &self.holes {
            out.push_str(self.text.get(last..*at).unwrap_or(""));
            last = *at;
            match origin {
                Origin::Variable(name) => {
                    out.push('$');
                    out.push_str(name);
                }
                Origin::Download => out.push_str("<download>"),
                Origin::Decoded => out.push_str("<decoded>"),
                Origin::Output(name) => {
                    out.push_str("$(");
                    out.push_str(name);
                    out.push(')');
                }
                Origin::File(_) | Origin::Input => out.push_str("<input>"),
            }
        }
        out.push_str(self.text.get(last..).unwrap_or(""));
        out
    }
}

/// Whether a shell pattern matches a text: `*`, `?`, `[…]` and backslashes. The work is bounded:
/// only the last `*` is tried again.
pub fn pattern_matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().take(512).collect();
    let text: Vec<char> = text.chars().take(512).collect();
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => class_matches(&pattern, p, text.get(t).copied().unwrap_or(' ')),
            Some('\\') => (pattern.get(p + 1) == text.get(t)).then_some(p + 2),
            Some(sign) => (Some(sign) == text.get(t)).then_some(p + 1),
            None => None,
        };
        match (step, star) {
            (Some(next), _) => {
                p = next;
                t += 1;
            }
            (None, Some((at, from))) => {
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|sign| *sign == '*'))
}

fn class_matches(pattern: &[char], at: usize, sign: char) -> Option<usize> {
    let inside = pattern.get(at + 1..)?;
    let Some(length) = inside.iter().skip(1).position(|sign| *sign == ']').map(|found| found + 1) else {
        return (sign == '[').then_some(at + 1);
    };
    let class = inside.get(..length)?;
    let (negated, class) = match class.first() {
        Some('!' | '^') => (true, class.get(1..)?),
        _ => (false, class),
    };
    let mut found = false;
    let mut i = 0;
    while let Some(first) = class.get(i) {
        match (class.get(i + 1), class.get(i + 2)) {
            (Some('-'), Some(last)) => {
                found |= (*first..=*last).contains(&sign);
                i += 3;
            }
            _ => {
                found |= *first == sign;
                i += 1;
            }
        }
    }
    (found != negated).then_some(at + length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_a_shell_matches_them() {
        for (pattern, text, expected) in [
            (".e*", ".env", true),
            ("*.ts", "a.ts", true),
            ("*.ts", "a.tsx", false),
            (".en?", ".env", true),
            (".e[mn]v", ".env", true),
            (".e[!n]v", ".env", false),
            (".[a-f]nv", ".env", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("", "", true),
            ("*", "", true),
            ("[", "[", true),
        ] {
            assert_eq!(pattern_matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
