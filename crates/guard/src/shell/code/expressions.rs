//! Values of expressions, as far as the program's text shows.

use super::*;

/// What an expression makes, as far as the text of the program says it.
pub(super) struct Expression {
    /// The text; `None` if nothing of it is known.
    pub(super) value: Option<Value>,
    /// Whether the program puts the text together in a way that hides it.
    pub(super) hidden: bool,
}

/// An expression of which some tokens were read.
#[derive(Default)]
struct Partial {
    value: Value,
    found: bool,
    hidden: bool,
    /// Whether a part of the value is not known.
    unclear: bool,
}

impl Partial {
    fn push_text(&mut self, text: &str) {
        self.found = true;
        self.value.push_text(text);
    }
}

/// Words that stand before a text or a value and change nothing about it.
const PREFIXES: &[&str] =
    &["f", "r", "b", "u", "rb", "br", "new", "await", "return", "my", "std", "local", "const", "let", "var"];

impl Scan<'_, '_, '_> {
    pub(super) fn expression(&mut self, tokens: &[Token], from: usize) -> Expression {
        let end = self.skip_expression(tokens, from);
        if !self.shell.step((end - from.min(end)) / 4 + 1) {
            return Expression { value: None, hidden: true };
        }
        let mut partial = Partial::default();
        let mut at = from;
        while at < end {
            match tokens.get(at) {
                Some(Token::Text(text) | Token::Command(text)) => partial.push_text(&self.with_home(text)),
                // `Path.home() / ".ssh"`.
                Some(Token::Sign('/'))
                    if self.language == Language::Python
                        && partial.found
                        && !partial.value.text.ends_with('/') =>
                {
                    partial.value.push_text("/");
                }
                Some(Token::Name(name)) => at = self.named(name, tokens, at, end, &mut partial),
                Some(Token::Sign('[')) if tokens.get(at + 1) == Some(&Token::Sign(':')) => {
                    partial.hidden = true;
                }
                _ => {}
            }
            at += 1;
        }
        let Partial { mut value, found, hidden, unclear } = partial;
        let expands =
            self.mentions("expanduser") || self.mentions("expand_path") || self.language == Language::Other;
        if value.text.starts_with('~') && expands {
            let rest = value.text.get(1..).unwrap_or("");
            if rest.is_empty() || rest.starts_with('/') {
                value.text = format!("{}{rest}", self.shell.world.home());
            }
        }
        if unclear && found {
            value.holes.push((value.text.len(), if hidden { Origin::Decoded } else { Origin::Input }));
        }
        Expression { value: found.then_some(value).filter(|_| !(hidden && unclear)), hidden }
    }

    /// Reads a name within an expression. Returns where the last token is that it has read.
    fn named(&mut self, name: &str, tokens: &[Token], at: usize, end: usize, partial: &mut Partial) -> usize {
        let last = name.rsplit('.').next().unwrap_or(name);
        match (last, tokens.get(at + 1), tokens.get(at + 2)) {
            // `require('os').homedir()`: the name of the module is no part of the value.
            ("require" | "import_module" | "__import__", Some(Token::Sign('(')), Some(Token::Text(_))) => {
                return at + 3;
            }
            (
                "getenv" | "get" | "fetch" | "environ" | "env" | "ENV",
                Some(Token::Sign('(' | '[' | '{')),
                Some(Token::Text(key) | Token::Name(key)),
            ) if matches!(key.as_str(), "HOME" | "USERPROFILE") => {
                partial.push_text(&self.shell.world.home());
                return self.skip_expression(tokens, at + 2);
            }
            ("chr" | "fromCharCode", Some(Token::Sign('(')), Some(Token::Number(_))) => {
                let mut inside = at + 2;
                while let Some(Token::Number(number)) = tokens.get(inside) {
                    partial.push_text(&char::from_u32(*number).map(String::from).unwrap_or_default());
                    inside += 1;
                    if tokens.get(inside) == Some(&Token::Sign(',')) {
                        inside += 1;
                    }
                }
                return inside;
            }
            (
                "expanduser" | "join" | "resolve" | "abspath" | "expandvars" | "realpath" | "Path" | "str"
                | "dirname",
                Some(Token::Sign('(')),
                _,
            ) if name.contains('.') || last == "Path" || last == "str" => {
                if last == "join" && !partial.value.text.is_empty() {
                    partial.hidden = true;
                }
                if last == "join" || last == "resolve" {
                    self.path_parts(tokens.get(at + 2..end).unwrap_or(&[]), partial);
                    return end.max(at + 2);
                }
            }
            ("homedir" | "home", Some(Token::Sign('(')), _) => partial.push_text(&self.shell.world.home()),
            (_, Some(Token::Sign('(')), _) => {
                partial.hidden |= HIDING_CALLS.contains(&last);
                partial.unclear = true;
            }
            _ => match self.known.get(name) {
                Some(known) => {
                    partial.found = true;
                    partial.value.push(&known.clone());
                }
                None if matches!(name, "HOME" | "Dir.home") || name.ends_with(".HOME") => {
                    partial.push_text(&self.shell.world.home());
                }
                None if PREFIXES.contains(&last) => {}
                None => {
                    partial.hidden |= HIDING_CALLS.contains(&last);
                    partial.unclear = true;
                }
            },
        }
        at
    }

    /// The arguments of a call that joins parts of a path.
    fn path_parts(&self, arguments: &[Token], partial: &mut Partial) {
        for token in arguments {
            match token {
                Token::Text(text) => {
                    if !partial.value.text.is_empty() {
                        partial.value.push_text("/");
                    }
                    partial.push_text(text);
                }
                Token::Name(inner)
                    if inner.contains("homedir") || inner.contains("HOME") || inner.contains("home") =>
                {
                    partial.push_text(&self.shell.world.home());
                }
                Token::Name(_) => partial.unclear = true,
                _ => {}
            }
        }
    }

    /// A text in which the home replaces what names it: `${os.homedir()}`, `{Path.home()}`,
    /// `#{Dir.home}`, `$ENV{HOME}`.
    fn with_home(&self, text: &str) -> String {
        let Some(open) = text.find('{') else { return text.to_owned() };
        let Some(close) = text.get(open..).and_then(|rest| rest.find('}')).map(|end| open + end) else {
            return text.to_owned();
        };
        let inside = text.get(open + 1..close).unwrap_or("");
        let names_home = ["home", "HOME"].iter().any(|word| inside.contains(word));
        let before = text.get(..open).unwrap_or("").trim_end_matches("$ENV").trim_end_matches(['$', '#']);
        if !names_home || !before.is_empty() {
            return text.to_owned();
        }
        format!("{}{}", self.shell.world.home(), text.get(close + 1..).unwrap_or(""))
    }

    /// The values of a list that is written out.
    pub(super) fn list(&mut self, tokens: &[Token], open: usize) -> Option<Vec<Value>> {
        let mut at = open + 1;
        let mut values = Vec::new();
        while !matches!(tokens.get(at), None | Some(Token::Sign(']' | ')'))) && values.len() < 64 {
            let value = self.expression(tokens, at).value;
            values.push(value.unwrap_or_else(|| Value::unknown(Origin::Input)));
            at = self.skip_expression(tokens, at);
            if tokens.get(at) == Some(&Token::Sign(',')) {
                at += 1;
            } else {
                break;
            }
        }
        (tokens.get(at) == Some(&Token::Sign(']')) && !values.is_empty()).then_some(values)
    }

    /// Where an expression ends: at a comma, a semicolon or the closing bracket around it.
    pub(super) fn skip_expression(&self, tokens: &[Token], from: usize) -> usize {
        let mut level = 0u32;
        let mut at = from;
        while let Some(token) = tokens.get(at) {
            match token {
                Token::Sign('(' | '[' | '{') => level += 1,
                Token::Sign(')' | ']' | '}') if level == 0 => return at,
                Token::Sign(')' | ']' | '}') => level -= 1,
                Token::Sign(',' | ';' | '\n') if level == 0 => return at,
                _ => {}
            }
            at += 1;
            if at - from > 512 {
                return at;
            }
        }
        at
    }
}
