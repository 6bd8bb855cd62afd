//! What a program tells about a variable without its value: whether it is set, how long it is, what
//! the names are.

use super::*;

/// Calls that make something else of a value: its length, its kind, whether it is there. Of a map
/// they make its names.
const TELLING_CALLS: &[&str] = &[
    "bool",
    "Boolean",
    "len",
    "type",
    "isinstance",
    "isset",
    "empty",
    "defined",
    "is_null",
    "is_string",
    "strlen",
    "any",
    "all",
    "hash",
    "callable",
    "check",
];
/// Calls that make the names of a map.
const NAMING_CALLS: &[&str] =
    &["sorted", "list", "set", "tuple", "keys", "iter", "join", "array_keys", "enumerate"];

impl Scan<'_, '_, '_> {
    /// Whether the value that is named here is only told about.
    pub(super) fn tells_about(&self, name: &str, tokens: &[Token], at: usize) -> bool {
        let before = |steps: usize| at.checked_sub(steps).and_then(|at| tokens.get(at));
        let called = match (before(2), before(1)) {
            (Some(Token::Name(call)), Some(Token::Sign('('))) => call.rsplit('.').next().unwrap_or(call),
            _ => "",
        };
        let is_map = !matches!(tokens.get(at + 1), Some(Token::Sign('[' | '{' | '(')))
            && (name.ends_with("environ") || name.ends_with("env") || name == "ENV");
        if TELLING_CALLS.contains(&called) || (is_map && NAMING_CALLS.contains(&called)) {
            return true;
        }
        if matches!(before(1), Some(Token::Sign('!'))) {
            return true;
        }
        if matches!(before(1), Some(Token::Name(word)) if matches!(word.as_str(), "not" | "typeof" | "defined"))
        {
            return true;
        }
        self.is_compared(tokens, at)
    }

    /// `x is not None`, `x ? 'set' : 'unset'`, `x == null`.
    fn is_compared(&self, tokens: &[Token], at: usize) -> bool {
        let mut end = at + 1;
        if matches!(tokens.get(end), Some(Token::Sign('[' | '(' | '{'))) {
            while !matches!(tokens.get(end), None | Some(Token::Sign(']' | ')' | '}'))) {
                end += 1;
            }
            end += 1;
        }
        match (tokens.get(end), tokens.get(end + 1)) {
            (Some(Token::Name(word)), _) => word == "is",
            (Some(Token::Sign('?')), Some(next)) => !matches!(next, Token::Sign('.' | '?')),
            (Some(Token::Sign('=' | '!')), Some(Token::Sign('='))) => true,
            _ => false,
        }
    }
}
