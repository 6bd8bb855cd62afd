//! Whether a stream gets colours: what the person asked for, else what the environment says.

use crate::environment;
use clap::ValueEnum;
use std::ffi::OsString;

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal
    #[default]
    Auto,
    /// In files and pipes too
    Always,
    /// Nowhere
    Never,
}

impl Colour {
    /// Whether a stream gets colours.
    pub fn is_for(self, is_terminal: bool) -> bool {
        self.decide(is_terminal, &environment::get)
    }

    /// In this order: the flag, `NO_COLOR`, `CLICOLOR_FORCE`, and whether it is a terminal that can
    /// show them.
    fn decide(self, is_terminal: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if variable("NO_COLOR").is_some() => false,
            Self::Auto if variable("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
            Self::Auto => is_terminal && variable("TERM").is_none_or(|terminal| terminal != "dumb"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_comes_first_then_the_environment_then_the_terminal() {
        let decide = |colour: Colour, is_terminal, set: &[(&str, &str)]| {
            colour.decide(is_terminal, &|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            })
        };
        assert!(decide(Colour::Auto, true, &[("TERM", "xterm")]));
        assert!(decide(Colour::Auto, true, &[]));
        assert!(!decide(Colour::Auto, false, &[]));
        assert!(!decide(Colour::Auto, true, &[("TERM", "dumb")]));
        assert!(!decide(Colour::Auto, true, &[("NO_COLOR", "1")]));
        assert!(decide(Colour::Auto, false, &[("CLICOLOR_FORCE", "1")]));
        assert!(decide(Colour::Auto, true, &[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")]));
        assert!(!decide(Colour::Auto, false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!decide(Colour::Auto, true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(decide(Colour::Always, false, &[("NO_COLOR", "1")]));
        assert!(!decide(Colour::Never, true, &[("CLICOLOR_FORCE", "1")]));
    }
}
