//! Why a TOML file was not edited, with the place.

use super::super::text::Place;

/// Why a TOML file was not edited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TomlError {
    /// The bytes are not UTF-8.
    #[error("edit {place}: the file is not UTF-8 from here on")]
    NotUtf8 { place: Place },
    /// Not TOML.
    #[error("edit {place}: {what}")]
    Syntax {
        /// Where the parser stopped.
        place: Place,
        /// The parser's message.
        what: String,
    },
    /// A table that TOML closes to later additions: inline, dotted, or no table at all.
    #[error("edit {place}: `{key}` is written in a form that can't be extended elsewhere in the file")]
    Closed {
        /// Where it is defined.
        place: Place,
        /// Its dotted name.
        key: String,
    },
    /// One of our entries is in a place from which it can't be removed line by line.
    #[error("edit {place}: `{key}` is inside an inline table")]
    Inline {
        /// The entry, or the table around it.
        place: Place,
        /// Its dotted name.
        key: String,
    },
}

impl TomlError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => "toml-not-utf8",
            Self::Syntax { .. } => "toml-malformed",
            Self::Closed { .. } => "toml-closed-table",
            Self::Inline { .. } => "toml-inline-entry",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => "save the file as UTF-8, then run the same command again",
            Self::Syntax { .. } => "correct the file at that place, then run the same command again",
            Self::Closed { .. } => {
                "rewrite it as a table with its own [header], then run the same command again"
            }
            Self::Inline { .. } => "delete that entry by hand, then run the same command again",
        }
    }

    pub fn place(&self) -> &Place {
        match self {
            Self::NotUtf8 { place }
            | Self::Syntax { place, .. }
            | Self::Closed { place, .. }
            | Self::Inline { place, .. } => place,
        }
    }
}
