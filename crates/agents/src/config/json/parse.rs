//! Strict parsing: accepts what the agents' own parsers accept, and no more.
//! Positions come from jsonc-parser with all its leniency off; serde_json then has the last word.

use jsonc_parser::ast::Value as Node;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use std::path::Path;

use super::super::text::Place;
use super::JsonError;

/// The program that reads a file: what it makes of a malformed one.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// What happens to a file that is not strict JSON, as a clause: "Codex runs none of its hooks".
    pub malformed: &'static str,
    /// What happens to a file that begins with a byte order mark.
    pub bom: Bom,
}

/// Whether a reader takes a file that begins with a byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bom {
    /// Read as if it were not there.
    Skipped,
    /// The file counts as malformed.
    Malformed,
}

/// The root of the document; `None` if the text is blank.
pub(super) fn parse_strict<'t>(
    text: &'t str,
    path: &Path,
    reader: &Reader,
) -> Result<Option<Node<'t>>, JsonError> {
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
    // The parser still lets through what JSON does not have (exotic white space, leading zeros, raw
    // control characters); the agents' own parsers do not.
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|e| {
        let line_start: usize =
            text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
        let place = Place::new(path, text, line_start + e.column().saturating_sub(1));
        let full = e.to_string();
        let what = full.split(" at line ").next().unwrap_or(&full).to_lowercase();
        JsonError::Syntax { place, what, malformed }
    })?;
    Ok(parsed.value)
}
