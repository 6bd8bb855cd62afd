//! Why a JSON file was left alone: always with the place, and with what its reader makes of it.

use super::super::text::Place;

/// Why a JSON file was left alone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The bytes are not UTF-8.
    #[error("edit {place}: the file is not UTF-8 from here on")]
    NotUtf8 {
        /// The first byte that isn't.
        place: Place,
    },
    /// A comment, which strict JSON does not have.
    #[error("edit {place}: JSON has no comments; as the file is, {malformed}")]
    Comment {
        /// Where it begins.
        place: Place,
        /// What the reader does with such a file.
        malformed: &'static str,
    },
    /// A comma before a closing bracket.
    #[error("edit {place}: JSON has no trailing commas; as the file is, {malformed}")]
    TrailingComma {
        /// The comma.
        place: Place,
        /// What the reader does with such a file.
        malformed: &'static str,
    },
    /// A byte order mark before the first character, where the reader does not take it.
    #[error("edit {place}: the file begins with a byte order mark; as it is, {malformed}")]
    ByteOrderMark {
        /// The first character.
        place: Place,
        /// What the reader does with such a file.
        malformed: &'static str,
    },
    /// Not JSON for any other reason.
    #[error("edit {place}: {what}; as the file is, {malformed}")]
    Syntax {
        /// Where the parser gave up.
        place: Place,
        /// What it says.
        what: String,
        /// What the reader does with such a file.
        malformed: &'static str,
    },
    /// A key on our way that is there twice: readers differ in which one counts.
    #[error("edit {place}: the key \"{key}\" is there twice")]
    DuplicateKey {
        /// The second one.
        place: Place,
        /// The key.
        key: String,
    },
    /// A value on our way that is neither missing nor of the kind the reader wants.
    #[error("edit {place}: {what} should be {wanted}")]
    WrongKind {
        /// The value.
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
            Self::Syntax { .. } => "mend the file at that place, then run the same command again",
            Self::DuplicateKey { .. } => "make one of the two, then run the same command again",
            Self::WrongKind { .. } => "mend that value or delete it, then run the same command again",
        }
    }

    /// Where in which file.
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
