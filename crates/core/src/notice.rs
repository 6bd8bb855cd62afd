//! Desktop notifications through the terminal itself: which terminals show one, and by which
//! sequence.
//!
//! Only terminals that are known to show it get a sequence. Others print what they don't know, or
//! take it for something else (OSC 9 is a progress bar in some).
//!
//! | variable | value | sequence |
//! |---|---|---|
//! | `TERM_PROGRAM` | `iTerm.app` | OSC 9 |
//! | | `WezTerm`, `ghostty` | OSC 777 |
//! | `LC_TERMINAL` (over ssh, in tmux) | `iTerm2` | OSC 9 |
//! | `TERM` | `xterm-kitty` | OSC 9 |
//! | | `xterm-ghostty`, `foot…`, `rxvt-unicode…` | OSC 777 |
//! | in tmux: `KITTY_WINDOW_ID` | any | OSC 9 |
//! | in tmux: `WEZTERM_PANE`, `GHOSTTY_RESOURCES_DIR` | any | OSC 777 |
//!
//! tmux passes a sequence on in an envelope, if `allow-passthrough` is on. Otherwise it drops it.
//! GNU screen gets none.

use crate::frame;

/// The longest text.
const TEXT_CHARS: usize = 160;
/// What ends a sequence; unlike the string terminator, it needs no escape.
const END: char = '\u{7}';

/// How a terminal is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequence {
    /// One text.
    Osc9,
    /// A title and a text.
    Osc777,
}

/// The way to a terminal that shows notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    sequence: Sequence,
    /// tmux is in between.
    in_tmux: bool,
}

/// What a variable's value must be.
#[derive(Clone, Copy, Debug)]
enum Value {
    Is(&'static str),
    Begins(&'static str),
    Set,
}

impl Value {
    fn fits(self, value: &str) -> bool {
        match self {
            Self::Is(wanted) => value == wanted,
            Self::Begins(wanted) => value.starts_with(wanted),
            Self::Set => !value.is_empty(),
        }
    }
}

/// Terminals by what they set for the programs in them.
const KNOWN: [(&str, Value, Sequence); 8] = [
    ("TERM_PROGRAM", Value::Is("iTerm.app"), Sequence::Osc9),
    ("TERM_PROGRAM", Value::Is("WezTerm"), Sequence::Osc777),
    ("TERM_PROGRAM", Value::Is("ghostty"), Sequence::Osc777),
    ("LC_TERMINAL", Value::Is("iTerm2"), Sequence::Osc9),
    ("TERM", Value::Is("xterm-kitty"), Sequence::Osc9),
    ("TERM", Value::Is("xterm-ghostty"), Sequence::Osc777),
    ("TERM", Value::Begins("foot"), Sequence::Osc777),
    ("TERM", Value::Begins("rxvt-unicode"), Sequence::Osc777),
];

/// The same for what is left of it inside of tmux, which sets `TERM` and `TERM_PROGRAM` itself.
const KNOWN_IN_TMUX: [(&str, Value, Sequence); 4] = [
    ("LC_TERMINAL", Value::Is("iTerm2"), Sequence::Osc9),
    ("KITTY_WINDOW_ID", Value::Set, Sequence::Osc9),
    ("WEZTERM_PANE", Value::Set, Sequence::Osc777),
    ("GHOSTTY_RESOURCES_DIR", Value::Set, Sequence::Osc777),
];

/// The way to the terminal of a process with these variables; `None` if it is not known to show
/// notifications.
pub fn route(variable: &dyn Fn(&str) -> Option<String>) -> Option<Route> {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    if is_set("STY") || variable("TERM").as_deref() == Some("dumb") {
        return None;
    }
    let in_tmux = is_set("TMUX");
    let known: &[_] = if in_tmux { &KNOWN_IN_TMUX } else { &KNOWN };
    let fits =
        |(name, value, _): &&(&str, Value, Sequence)| variable(name).is_some_and(|set| value.fits(&set));
    known.iter().find(fits).map(|(.., sequence)| Route { sequence: *sequence, in_tmux })
}

impl Route {
    /// The bytes that show a text. Whatever is in the text, the sequence ends where it should.
    pub fn bytes(self, text: &str) -> String {
        // A title ends at a semicolon.
        let text = frame::shown(text, TEXT_CHARS).replace(';', ",");
        let sequence = match self.sequence {
            Sequence::Osc9 => format!("\u{1b}]9;baton: {text}{END}"),
            Sequence::Osc777 => format!("\u{1b}]777;notify;baton;{text}{END}"),
        };
        match self.in_tmux {
            true => format!("\u{1b}Ptmux;{}\u{1b}\\", sequence.replace('\u{1b}', "\u{1b}\u{1b}")),
            false => sequence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<Route> {
        route(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn only_a_known_terminal_gets_a_sequence() {
        for unknown in [
            &[][..],
            &[("TERM", "xterm-256color")],
            &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")],
            &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode")],
            &[("TERM", "tmux-256color"), ("TERM_PROGRAM", "tmux"), ("TMUX", "/tmp/x")],
            &[("TERM", "xterm-kitty"), ("STY", "1.x")],
            &[("TERM", "dumb"), ("TERM_PROGRAM", "iTerm.app")],
            &[("TERM", "linux")],
        ] {
            assert_eq!(of(unknown), None, "{unknown:?}");
        }
        let bytes = |set: &[(&str, &str)]| of(set).map(|route| route.bytes("job j1 completed"));
        assert_eq!(bytes(&[("TERM", "xterm-kitty")]).unwrap(), "\u{1b}]9;baton: job j1 completed\u{7}");
        let notify = "\u{1b}]777;notify;baton;job j1 completed\u{7}";
        assert_eq!(bytes(&[("TERM", "foot-extra")]).unwrap(), notify);
        assert_eq!(bytes(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]).unwrap(), notify);
        let in_tmux = [("TMUX", "/tmp/x"), ("TERM", "screen"), ("WEZTERM_PANE", "0")];
        let envelope = "\u{1b}Ptmux;\u{1b}\u{1b}]777;notify;baton;job j1 completed\u{7}\u{1b}\\";
        assert_eq!(bytes(&in_tmux).unwrap(), envelope);
        // What tmux was started from is not where it is shown now.
        assert_eq!(of(&[("TMUX", "/tmp/x"), ("TERM", "xterm-kitty")]), None);
    }

    #[test]
    fn s17_no_text_leaves_its_sequence() {
        let hostile = "a\u{7}b\u{1b}\\c\u{9c}d\ne;f\u{1b}]52;c;x\u{7}";
        for set in
            [&[("TERM", "foot")][..], &[("TERM", "xterm-kitty")], &[("TMUX", "x"), ("WEZTERM_PANE", "1")]]
        {
            let bytes = of(set).unwrap().bytes(hostile);
            assert_eq!(bytes.matches('\u{7}').count(), 1, "{bytes:?}");
            assert!(!bytes.contains('\u{9c}') && !bytes.contains('\n'), "{bytes:?}");
            let escapes = if set.len() == 2 { 4 } else { 1 };
            assert_eq!(bytes.matches('\u{1b}').count(), escapes, "{bytes:?}");
        }
        assert!(of(&[("TERM", "foot")]).unwrap().bytes(&"x".repeat(9999)).len() < 300);
    }
}
