//! Why a JSON file was not edited, with the place and with what its reader does with the file.

use super::super::text::Place;

/// Why a JSON file was not edited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The bytes are not UTF-8.
    #[error("edit {place}: the file is not UTF-8 from here on")]
    NotUtf8 { place: Place },
    /// A comment, which strict JSON does not allow.
    #[error("edit {place}: JSON allows no comments; with this file, {malformed}")]
    Comment {
        place: Place,
        /// What the reader does with such a file.
        malformed: &'static str,
    },
    /// A comma before a closing bracket.
    #[error("edit {place}: JSON allows no trailing commas; with this file, {malformed}")]
    TrailingComma {
        place: Place,
        /// What the reader does with such a file.
        malformed: &'static str,
    },
    /// A byte order mark, which the reader does not accept.
    #[error("edit {place}: the file begins with a byte order mark; with this file, {malformed}")]
    ByteOrderMark {
        place: Place,
        /// What the reader does with such a file.
        malformed: &'static str,
    },
    /// Not JSON for any other reason.
    #[error("edit {place}: {what}; with this file, {malformed}")]
    Syntax {
        /// Where the parser stopped.
        place: Place,
        /// The parser's message.
        what: String,
        /// What the reader does with such a file.
        malformed: &'static str,
    },
    /// A key on our path exists twice, and readers differ in which one counts.
    #[error("edit {place}: the key \"{key}\" exists twice")]
    DuplicateKey {
        /// The second one.
        place: Place,
        key: String,
    },
    /// A value on our path is of another kind than the reader wants.
    #[error("edit {place}: {what} should be {wanted}")]
    WrongKind {
        place: Place,
        /// Its name, or "the file".
        what: String,
        /// "an object" or "an array".
        wanted: &'static str,
    },
}

impl JsonError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => "json-not-utf8",
            Self::Comment { .. } => "json-comment",
            Self::TrailingComma { .. } => "json-trailing-comma",
            Self::ByteOrderMark { .. } => "json-byte-order-mark",
            Self::Syntax { .. } => "json-malformed",
            Self::DuplicateKey { .. } => "json-duplicate-key",
            Self::WrongKind { .. } => "json-wrong-kind",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => "save the file as UTF-8, then run the same command again",
            Self::Comment { .. } => "delete the comment, then run the same command again",
            Self::TrailingComma { .. } => "delete the comma, then run the same command again",
            Self::ByteOrderMark { .. } => "save the file as UTF-8 without a byte order mark",
            Self::Syntax { .. } => "correct the file at that place, then run the same command again",
            Self::DuplicateKey { .. } => "keep only one of the two, then run the same command again",
            Self::WrongKind { .. } => "correct or delete that value, then run the same command again",
        }
    }

    pub fn place(&self) -> &Place {
        match self {
            Self::NotUtf8 { place }
            | Self::Comment { place, .. }
            | Self::TrailingComma { place, .. }
            | Self::ByteOrderMark { place, .. }
            | Self::Syntax { place, .. }
            | Self::DuplicateKey { place, .. }
            | Self::WrongKind { place, .. } => place,
        }
    }
}
