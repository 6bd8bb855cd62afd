//! Switches that turn an agent's hooks off or remove baton's server: in the agent's settings, or on
//! its command line.

use super::{operands, turns_off};
use crate::judge::Facts;
use crate::path;
use crate::rules::Finding;
use crate::shell::Command;
use baton_core::guard::HookSwitch;
use std::borrow::Cow;

/// Longest settings file that is read. This bounds the work of one rule.
const SETTINGS_BYTES: usize = 64 << 10;

pub(super) fn check(facts: &Facts<'_>) -> Option<Finding> {
    let switches = facts.world.switches();
    if let Some(what) = written(facts, &switches) {
        return turns_off(&what);
    }
    let turns = |command: &&crate::shell::Command| {
        switches
            .iter()
            .any(|switch| switch.program == command.name && starts_without_hooks(command, switch, facts))
    };
    turns_off(&facts.commands().find(turns)?.show())
}

/// A switch that the call writes into a file of settings.
fn written(facts: &Facts<'_>, switches: &[HookSwitch]) -> Option<String> {
    let tool = facts.request.tool?;
    let made =
        facts.analysis.iter().flat_map(|analysis| analysis.files.values()).map(|value| value.text.as_str());
    let texts: Vec<&str> = [&tool.command, &tool.content, &tool.patch]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .chain(made)
        .collect();
    let is_changed = |switch: &&HookSwitch| {
        facts.touches.iter().filter(|touch| touch.deed.changes()).any(|touch| {
            let paths = [touch.named.as_deref(), touch.path.as_deref(), touch.real.as_deref()];
            paths.into_iter().flatten().any(|path| switch.files.iter().any(|end| ends_with(path, end)))
        })
    };
    switches.iter().filter(is_changed).find_map(|switch| texts.iter().find_map(|text| found(text, switch)))
}

fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// The switch that a text contains.
fn found(text: &str, switch: &HookSwitch) -> Option<String> {
    let plain: String =
        unescaped(text).chars().filter(|sign| !sign.is_whitespace() && !"\"'\\".contains(*sign)).collect();
    let is_on = |(word, harmless): &&(&'static str, &'static [&'static str])| {
        plain.match_indices(word).any(|(at, _)| {
            let behind = plain.get(at + word.len()..).unwrap_or("");
            !harmless.iter().any(|harmless| behind.starts_with(harmless))
        })
    };
    switch.words.iter().find(is_on).map(|(word, _)| (*word).to_owned())
}

/// A text with the letters that JSON and TOML write as `\u0048`.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split("\\u");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let letter =
            part.get(..4).and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match letter {
            Some(letter) => {
                out.push(letter);
                out.push_str(part.get(4..).unwrap_or(""));
            }
            None => {
                out.push_str("\\u");
                out.push_str(part);
            }
        }
    }
    Cow::Owned(out)
}

/// Whether a program is started with another folder of settings than the person's, by its own
/// variables or the text's.
fn moves_home(command: &Command, switch: &HookSwitch, facts: &Facts<'_>) -> bool {
    const HOMES: &[&str] = &["HOME", "XDG_CONFIG_HOME"];
    let home = facts.home.trim_end_matches('/');
    let moves = |name: &str, value: &str| {
        let value = value.trim_end_matches('/');
        let is_same = value == home || value == facts.world.home() || value == format!("{home}/.config");
        let is_set = || facts.world.variable(name).is_some_and(|set| set == value);
        (HOMES.contains(&name) || switch.homes.contains(&name)) && !is_same && !is_set()
    };
    let before = facts.commands().take_while(|other| !std::ptr::eq(*other, command));
    let exports = before.filter(|other| matches!(other.name.as_str(), "export" | "declare" | "typeset" | ""));
    let said = exports.flat_map(|other| {
        let words = other.texts().filter_map(|arg| arg.split_once('='));
        let set = other.assignments.iter().map(|(name, value)| (name.as_str(), value.text.as_str()));
        words.chain(set)
    });
    let own = command.assignments.iter().map(|(name, value)| (name.as_str(), value.text.as_str()));
    own.chain(said).any(|(name, value)| moves(name, value))
}

/// Whether an option leaves out the settings that hold the hooks: `--setting-sources ''`.
fn leaves_out(command: &Command, switch: &HookSwitch) -> bool {
    let args: Vec<&str> = command.texts().collect();
    switch.sources.iter().any(|(option, needed)| {
        args.iter().enumerate().any(|(number, arg)| {
            let value = match arg.strip_prefix(option) {
                Some("") => args.get(number + 1).copied().unwrap_or(""),
                Some(glued) => glued.trim_start_matches('='),
                None => return false,
            };
            !value.split(',').any(|source| source.trim() == *needed)
        })
    })
}

fn starts_without_hooks(command: &Command, switch: &HookSwitch, facts: &Facts<'_>) -> bool {
    let words: Vec<&str> = operands(command.args(), &[]).iter().map(|value| value.text.as_str()).collect();
    let takes_out = |word: &&str| matches!(*word, "remove" | "rm" | "delete" | "disable" | "uninstall");
    let of_server =
        matches!(words.first(), Some(&("mcp" | "plugin" | "plugins" | "extension" | "extensions")))
            && words.get(1).is_some_and(takes_out)
            && words.iter().any(|word| word.contains("baton"));
    let of_hooks = matches!(words.first(), Some(&("hooks" | "hook"))) && words.get(1).is_some_and(takes_out);
    let cwd = command.cwd.as_deref().unwrap_or("/");
    let named = |text: &str| {
        let file = text.rsplit_once('=').map_or(text, |(_, file)| file);
        let content = (file.contains('.') && !file.contains('{'))
            .then(|| facts.world.read_file(&path::join(cwd, file), SETTINGS_BYTES))
            .flatten();
        found(text, switch).is_some() || content.is_some_and(|content| found(&content, switch).is_some())
    };
    let all: Vec<&str> = command.texts().collect();
    let joined = all.join("");
    let of_features = words.contains(&"disable") && words.contains(&"hooks");
    let only_asks = matches!(&all[..], ["--version" | "-v" | "-V" | "--help" | "-h"]);
    of_server
        || of_hooks
        || of_features
        || (moves_home(command, switch, facts) && !only_asks)
        || leaves_out(command, switch)
        || all.iter().any(|word| switch.options.contains(word))
        || found(&joined, switch)
            .is_some_and(|word| word.starts_with("disable") && joined.contains(&format!("--{word}")))
        || command.texts().any(named)
}
