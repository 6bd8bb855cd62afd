//! Values of expressions, as far as the text says them.

use super::*;

impl Scan<'_, '_, '_> {
    /// The text that an expression makes, and whether it hides one.
    pub(super) fn expression(&mut self, tokens: &[Token], from: usize) -> (Option<Value>, bool) {
        let end = self.skip_expression(tokens, from);
        if !self.shell.step((end - from.min(end)) / 4 + 1) {
            return (None, true);
        }
        let mut value = Value::default();
        let mut found = false;
        let mut hidden = false;
        let mut unclear = false;
        let mut at = from;
        while at < end {
            match tokens.get(at) {
                Some(Token::Text(text) | Token::Command(text)) => {
                    found = true;
                    value.push_text(text);
                }
                Some(Token::Name(name)) => {
                    let last = name.rsplit('.').next().unwrap_or(name);
                    match (last, tokens.get(at + 1), tokens.get(at + 2)) {
                        ("chr" | "fromCharCode", Some(Token::Sign('(')), Some(Token::Number(_))) => {
                            let mut inside = at + 2;
                            while let Some(Token::Number(number)) = tokens.get(inside) {
                                found = true;
                                value.push_text(
                                    &char::from_u32(*number).map(String::from).unwrap_or_default(),
                                );
                                inside += 1;
                                if tokens.get(inside) == Some(&Token::Sign(',')) {
                                    inside += 1;
                                }
                            }
                            at = inside;
                        }
                        (
                            "expanduser" | "join" | "resolve" | "abspath" | "expandvars" | "realpath"
                            | "Path" | "str" | "dirname",
                            Some(Token::Sign('(')),
                            _,
                        ) if name.contains('.') || last == "Path" || last == "str" => {
                            if last == "join" && !value.text.is_empty() {
                                hidden = true;
                            }
                            if last == "join" || last == "resolve" {
                                // Parts of a path.
                                let mut inside = at + 2;
                                while inside < end {
                                    match tokens.get(inside) {
                                        Some(Token::Text(text)) => {
                                            if !value.text.is_empty() {
                                                value.push_text("/");
                                            }
                                            value.push_text(text);
                                            found = true;
                                        }
                                        Some(Token::Name(inner))
                                            if inner.contains("homedir")
                                                || inner.contains("HOME")
                                                || inner.contains("home") =>
                                        {
                                            value.push_text(&self.shell.world.home());
                                            found = true;
                                        }
                                        Some(Token::Name(_)) => unclear = true,
                                        _ => {}
                                    }
                                    inside += 1;
                                }
                                at = inside;
                            }
                        }
                        ("homedir" | "home", Some(Token::Sign('(')), _) => {
                            found = true;
                            value.push_text(&self.shell.world.home());
                        }
                        (_, Some(Token::Sign('(')), _) => {
                            hidden |= HIDING.contains(&last);
                            unclear = true;
                        }
                        _ => match self.known.get(name) {
                            Some(known) => {
                                found = true;
                                value.push(&known.clone());
                            }
                            None if name == "HOME" || name.ends_with(".HOME") => {
                                found = true;
                                value.push_text(&self.shell.world.home());
                            }
                            None if matches!(
                                last,
                                "f" | "r"
                                    | "b"
                                    | "u"
                                    | "rb"
                                    | "br"
                                    | "new"
                                    | "await"
                                    | "return"
                                    | "my"
                                    | "std"
                                    | "local"
                                    | "const"
                                    | "let"
                                    | "var"
                            ) => {}
                            None => {
                                hidden |= HIDING.contains(&last);
                                unclear = true;
                            }
                        },
                    }
                }
                Some(Token::Sign('[')) if tokens.get(at + 1) == Some(&Token::Sign(':')) => hidden = true,
                _ => {}
            }
            at += 1;
        }
        if unclear && found {
            value.holes.push((value.text.len(), if hidden { Origin::Decoded } else { Origin::Input }));
        }
        (found.then_some(value).filter(|_| !(hidden && unclear)), hidden)
    }

    /// Where an expression ends: at a comma, a semicolon or the bracket that closes around it.
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
