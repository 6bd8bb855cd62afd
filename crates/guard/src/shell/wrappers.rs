//! Commands that run another command: where their own options end and the other command begins.

use super::value::Value;
use crate::tables::runners::{RUNNERS, Runner};
use crate::tables::taken;

/// How a wrapper's arguments are read.
pub(super) struct Wrapper {
    /// Short options that take a value.
    pub(super) short: &'static str,
    /// Long options whose value is the next word.
    pub(super) long: &'static [&'static str],
    /// How many of its own words come before the command.
    pub(super) skip: usize,
}

/// The options of a program that take a value.
pub(super) struct Options {
    /// Short ones.
    pub(super) short: &'static str,
    /// Long ones whose value is the next word.
    pub(super) long: &'static [&'static str],
}

impl Options {
    /// The words that are neither options nor their values.
    pub(super) fn operands<'v>(&self, args: &'v [Value]) -> Vec<&'v Value> {
        let mut out = Vec::new();
        let mut rest = args;
        let wrapper = Wrapper { short: self.short, long: self.long, skip: 0 };
        loop {
            // An assignment is an operand here.
            let at = rest.iter().position(|arg| is_assignment(&arg.text) && !arg.text.starts_with('-'));
            match (command_start(&wrapper, rest), at) {
                (Some(start), at) if at.is_none_or(|at| start <= at) => {
                    out.extend(rest.get(start));
                    rest = rest.get(start + 1..).unwrap_or(&[]);
                }
                (_, Some(at)) => {
                    out.extend(rest.get(at));
                    rest = rest.get(at + 1..).unwrap_or(&[]);
                }
                (_, None) => return out,
            }
            if out.len() >= 256 {
                return out;
            }
        }
    }
}

/// The rows of the table that match a command, and how many of its words each takes.
pub(super) fn rows<'a>(
    name: &'a str,
    args: &'a [Value],
) -> impl Iterator<Item = (&'static Runner, usize)> + 'a {
    RUNNERS.iter().filter_map(move |row| {
        let taken = row.calls.iter().filter_map(|call| taken(call, name, args)).max()?;
        Some((row, taken))
    })
}

/// Where the wrapped command begins among the arguments.
pub(super) fn command_start(wrapper: &Wrapper, args: &[Value]) -> Option<usize> {
    let mut skip = wrapper.skip;
    let mut at = 0;
    while let Some(value) = args.get(at) {
        let text = value.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            at += 1;
            if !long.contains('=') && wrapper.long.contains(&text) {
                at += 1;
            }
        } else if text.len() > 1 && text.starts_with('-') && value.is_known() {
            at += 1;
            // The value of an option is attached to it, or is the next word.
            let valued = text.char_indices().skip(1).find(|(_, sign)| wrapper.short.contains(*sign));
            if valued.is_some_and(|(place, sign)| place + sign.len_utf8() == text.len()) {
                at += 1;
            }
        } else if is_assignment(text) {
            at += 1;
        } else if skip > 0 {
            skip -= 1;
            at += 1;
        } else {
            break;
        }
    }
    while skip > 0 && at < args.len() {
        skip -= 1;
        at += 1;
    }
    (at < args.len()).then_some(at)
}

/// Whether a text is an address to fetch.
pub(super) fn is_address(text: &str) -> bool {
    const STARTS: &[&str] =
        &["http://", "https://", "git+", "git://", "ssh://", "github:", "gitlab:", "bitbucket:", "gist:"];
    STARTS.iter().any(|start| text.starts_with(start))
}

/// Whether a runner of packages fetches what it runs from an address and not from its registry.
pub(super) fn fetches(name: &str, args: &[Value], command: Option<&Value>) -> bool {
    const RUNNERS: &[&str] = &["npx", "bunx", "pnpx", "uvx", "npm", "pnpm", "yarn", "bun", "uv", "pipx"];
    if !RUNNERS.contains(&name) {
        return false;
    }
    let before = args.iter().take_while(|arg| command.is_none_or(|command| !std::ptr::eq(*arg, command)));
    let option = before
        .map(|arg| arg.text.split_once('=').map_or(arg.text.as_str(), |(_, value)| value))
        .any(is_address);
    // `npx owner/repository` fetches from GitHub.
    let shorthand = |text: &str| {
        matches!(name, "npx" | "pnpx" | "npm")
            && !text.starts_with(['@', '.', '/', '~'])
            && text.split('/').count() == 2
            && text.split('/').all(|part| !part.is_empty())
    };
    option || command.is_some_and(|command| is_address(&command.text) || shorthand(&command.text))
}

/// `NAME=value`.
pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|sign: char| sign.is_ascii_digit())
    })
}
