//! Strict parsing: accepts what the agents' own parsers accept, and no more. Positions come from
//! jsonc-parser with all its leniency turned off; serde_json decides in the end.

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use super::super::text::Place;
use super::JsonError;

/// The program that reads a file, and what it does with a malformed one.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// What happens to a file that is not strict JSON, as a clause: "Codex runs none of its hooks".
    pub malformed: &'static str,
    /// What happens to a file that begins with a byte order mark.
    pub bom: Bom,
    /// Which dialect of JSON it reads.
    pub dialect: Dialect,
}

/// The JSON that a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The standard.
    Strict,
    /// With comments.
    Comments,
    /// With comments, and with a comma after the last element.
    CommentsAndTrailingCommas,
}

/// Whether a reader accepts a file that begins with a byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bom {
    /// It skips the mark.
    Skipped,
    /// The file counts as malformed.
    Malformed,
}

/// A value with its position in the text. It owns its data, because the text that is parsed is not
/// always the text that is edited.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub range: Range<usize>,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Object(Vec<Property>),
    Array(Vec<Node>),
    Scalar,
}

#[derive(Clone, Debug)]
pub(super) struct Property {
    pub key: String,
    /// From the key to the end of the value.
    pub range: Range<usize>,
    pub value: Node,
}

impl Node {
    /// The byte ranges of the children: values, or keys with their values.
    pub fn children(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(properties) => properties.iter().map(|p| p.range.clone()).collect(),
            Kind::Array(elements) => elements.iter().map(|e| e.range.clone()).collect(),
            Kind::Scalar => Vec::new(),
        }
    }

    /// What is between the brackets of a container.
    pub fn inside(&self) -> Range<usize> {
        self.range.start + 1..self.range.end - 1
    }

    /// The value itself. Of two equal keys the last counts. A number that no Rust type holds is
    /// null.
    pub fn value(&self, text: &str) -> serde_json::Value {
        match &self.kind {
            Kind::Object(properties) => {
                properties.iter().map(|p| (p.key.clone(), p.value.value(text))).collect()
            }
            Kind::Array(elements) => elements.iter().map(|e| e.value(text)).collect(),
            Kind::Scalar => serde_json::from_str(&text[self.range.clone()]).unwrap_or_default(),
        }
    }

    fn of(value: &Value<'_>) -> Self {
        let kind = match value {
            Value::Object(object) => Kind::Object(object.properties.iter().map(Property::of).collect()),
            Value::Array(array) => Kind::Array(array.elements.iter().map(Self::of).collect()),
            _ => Kind::Scalar,
        };
        Self { range: value.start()..value.end(), kind }
    }
}

impl Property {
    fn of(property: &ObjectProp<'_>) -> Self {
        let key = property.name.as_str().to_owned();
        Self { key, range: property.start()..property.end(), value: Node::of(&property.value) }
    }
}

/// The text with every escaped surrogate replaced by an escape of the same length. JavaScript
/// writes half a character as a lone surrogate, and reads it back; Rust has no such strings.
pub(super) fn without_surrogates(text: &str) -> Cow<'_, str> {
    let is_surrogate = |escape: &[u8]| {
        matches!(escape, [b'\\', b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', c, d]
            if c.is_ascii_hexdigit() && d.is_ascii_hexdigit())
    };
    let mut masked = Cow::Borrowed(text);
    let mut i = 0;
    while let Some(found) = text.as_bytes()[i..].iter().position(|&b| b == b'\\') {
        i += found;
        let escape = text.as_bytes().get(i..i + 6);
        if escape.is_some_and(is_surrogate) {
            masked.to_mut().replace_range(i..i + 6, "\\ufffd");
        }
        // The character after a backslash never begins an escape.
        i = (i + 2).min(text.len());
    }
    masked
}

/// The text with blanks instead of what the dialect allows beyond strict JSON. Every byte keeps its
/// position, and line breaks stay.
pub(super) fn made_strict(text: &str, dialect: Dialect) -> Cow<'_, str> {
    if dialect == Dialect::Strict {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut masked = Cow::Borrowed(text);
    let mut blank = |range: Range<usize>| {
        let blanks: String = bytes[range.clone()]
            .iter()
            .map(|&b| if matches!(b, b'\n' | b'\r') { char::from(b) } else { ' ' })
            .collect();
        masked.to_mut().replace_range(range, &blanks);
    };
    // A comma after which only blanks and comments have come so far.
    let mut comma = None;
    let mut i = 0;
    while i < bytes.len() {
        let rest = &bytes[i..];
        let length = match rest {
            [b'"', ..] => string_length(rest),
            [b'/', b'/', ..] => rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len()),
            [b'/', b'*', ..] => memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4),
            _ => 1,
        };
        match bytes[i] {
            b'/' if length > 1 => blank(i..i + length),
            b',' if dialect == Dialect::CommentsAndTrailingCommas => comma = Some(i),
            b']' | b'}' => {
                if let Some(comma) = comma.take() {
                    blank(comma..comma + 1);
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        i += length;
    }
    masked
}

/// The bytes of the string that `text` begins with, quotes included.
fn string_length(text: &[u8]) -> usize {
    let mut i = 1;
    while let Some(&byte) = text.get(i) {
        match byte {
            b'"' => return i + 1,
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
    text.len()
}

/// The root of the document; `None` if the text is blank.
pub(super) fn parse_strict(text: &str, path: &Path, reader: &Reader) -> Result<Option<Node>, JsonError> {
    let strict = ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let malformed = reader.malformed;
    let parsed = parse_to_ast(text, &CollectOptions::default(), &strict).map_err(|e| {
        let place = Place::new(path, text, e.range().start);
        match e.kind() {
            ParseErrorKind::CommentsNotAllowed => JsonError::Comment { place, malformed },
            ParseErrorKind::TrailingCommasNotAllowed => JsonError::TrailingComma { place, malformed },
            kind => JsonError::Syntax { place, what: kind.to_string().to_lowercase(), malformed },
        }
    })?;
    if text.trim_matches([' ', '\t', '\n', '\r']).is_empty() {
        return Ok(None);
    }
    // The parser still accepts some things that JSON does not have (exotic white space, leading
    // zeros, raw control characters). The agents' own parsers do not.
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|e| {
        let line_start: usize =
            text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
        let place = Place::new(path, text, line_start + e.column().saturating_sub(1));
        let full = e.to_string();
        let what = full.split(" at line ").next().unwrap_or(&full).to_lowercase();
        JsonError::Syntax { place, what, malformed }
    })?;
    Ok(parsed.value.as_ref().map(Node::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_keeps_every_position() {
        let text = r#"["\ud83d\ude00", "\\ud800", "\uD8", "\ud7ff", "\"\uDFFF"]"#;
        let masked = without_surrogates(text);
        assert_eq!(masked, r#"["\ufffd\ufffd", "\\ud800", "\uD8", "\ud7ff", "\"\ufffd"]"#);
        assert_eq!(masked.len(), text.len());
        assert!(matches!(without_surrogates("é\\"), Cow::Borrowed(_)));
    }

    #[test]
    fn comments_and_trailing_commas_are_blanked_in_place() {
        for (text, expected) in [
            ("{\"a\": 1, // é\n}", "{\"a\": 1       \n}"),
            ("[1, /* x\ny */ 2 /**/ , ]", "[1,     \n     2        ]"),
            (r#"{"// no": "/* no */,]", "q": "\\",}"#, r#"{"// no": "/* no */,]", "q": "\\" }"#),
            ("[1,,2]", "[1,,2]"),
            ("/* open", "       "),
            ("\"open // ", "\"open // "),
        ] {
            let masked = made_strict(text, Dialect::CommentsAndTrailingCommas);
            assert_eq!(masked, expected);
            assert_eq!(masked.len(), text.len());
        }
        assert!(matches!(
            made_strict("{\"a\": [1, 2]}", Dialect::CommentsAndTrailingCommas),
            Cow::Borrowed(_)
        ));
        assert_eq!(made_strict("[1,/**/]", Dialect::Comments), "[1,    ]");
        assert_eq!(made_strict("[1,/**/]", Dialect::Strict), "[1,/**/]");
    }
}
