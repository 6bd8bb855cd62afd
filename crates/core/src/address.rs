//! Addresses of messages, as people and agents write them.

use crate::{Code, Error, frame, limits, name};

/// The address of everyone.
pub const EVERYONE: &str = "*";

/// A parsed address. The store finds who it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A participant of this project, or the person, by name; or a session by the agent's own id.
    Plain(String),
    /// The only running participant of that agent kind in this project.
    Agent(String),
    /// Each participant of this project that has the tag.
    Tag(String),
    /// Each other session that runs in this project.
    Everyone,
    /// A participant of another project on this machine.
    InProject {
        /// The project's folder name, or its full path.
        project: String,
        name: String,
    },
    /// A participant on another machine.
    OnMachine { name: String, machine: String },
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::new(Code::BadAddress, format!("{} is not an address: {why}", frame::shown(text, 60))).hint(
                "write a name, agent:codex, #tag, PROJECT:NAME, or a session id; `baton who` lists them",
            )
        };
        if text.is_empty() {
            return Err(wrong("it is empty"));
        }
        if text.len() > limits::LABEL_BYTES {
            return Err(wrong("it is too long"));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(wrong("it has blanks or control characters"));
        }
        if text == EVERYONE {
            return Ok(Self::Everyone);
        }
        if let Some(tag) = text.strip_prefix('#') {
            return match name::check_tag(tag) {
                Ok(()) => Ok(Self::Tag(tag.to_owned())),
                Err(_) => Err(wrong("a tag is made of a-z, 0-9, - and _")),
            };
        }
        if let Some((name, machine)) = text.split_once('@') {
            if name.is_empty() || machine.is_empty() {
                return Err(wrong("it lacks a name or a machine"));
            }
            return Ok(Self::OnMachine { name: name.to_owned(), machine: machine.to_owned() });
        }
        match text.rsplit_once(':') {
            Some(("agent", kind)) if !kind.is_empty() => Ok(Self::Agent(kind.to_owned())),
            Some((project, name)) if !project.is_empty() && !name.is_empty() => {
                Ok(Self::InProject { project: project.to_owned(), name: name.to_owned() })
            }
            Some(_) => Err(wrong("a part is missing")),
            None => Ok(Self::Plain(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_documented() {
        assert_eq!(Address::parse("otter").unwrap(), Address::Plain("otter".into()));
        assert_eq!(Address::parse("agent:codex").unwrap(), Address::Agent("codex".into()));
        assert_eq!(Address::parse("*").unwrap(), Address::Everyone);
        assert_eq!(Address::parse("#backend").unwrap(), Address::Tag("backend".into()));
        assert_eq!(
            Address::parse("/home/dev/web:otter").unwrap(),
            Address::InProject { project: "/home/dev/web".into(), name: "otter".into() }
        );
        assert_eq!(
            Address::parse("otter@laptop").unwrap(),
            Address::OnMachine { name: "otter".into(), machine: "laptop".into() }
        );
    }

    #[test]
    fn bad_addresses_are_refused() {
        let long = "x".repeat(10_240);
        for bad in ["", " ", "a b", "#", "#é", "@x", "x@", "agent:", ":x", "a\u{7}b", "a\nb", &long] {
            assert_eq!(Address::parse(bad).unwrap_err().code(), Code::BadAddress, "{bad:?}");
        }
    }
}
