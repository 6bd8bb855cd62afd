//! What a pattern does not permit although its words match: leaving the project, and doing more
//! than the pattern names.
//!
//! The person wrote the words that a pattern spells out. Any other word could be a path, or hold
//! one: behind `=`, `:`, `,` or `@`, or attached to a short option. A path that leads out of the
//! project, with links resolved, is not permitted.

use crate::files::{self, is_harmless_device};
use crate::world::World;
use crate::{path, reading};

/// Programs that run scripts. A pattern of their name alone permits only reading.
const SCRIPTED_PROGRAMS: &[&str] = &["awk", "gawk", "gsed", "mawk", "sed"];

/// Beginnings of words that make git run a program.
const GIT_RUN_PREFIXES: &[&str] = &[
    "--config-env",
    "--exec",
    "--ext-diff",
    "--open-files-in-pager",
    "--receive-pack",
    "--upload-pack",
    "ext::",
];

/// A command as it would run.
pub(super) struct Running<'a> {
    pub(super) words: &'a [&'a str],
    pub(super) cwd: &'a str,
    /// The project's folder, links resolved.
    pub(super) project: &'a str,
}

/// Whether a command that matches a pattern does only what the pattern says, within the project.
pub(super) fn stays_inside(named: &[String], running: &Running<'_>, world: &dyn World) -> bool {
    let is_free = |at: usize| named.get(at).is_none_or(|word| word.contains('*'));
    let free: Vec<&str> =
        running.words.iter().enumerate().filter(|(at, _)| is_free(*at)).map(|(_, word)| *word).collect();
    if free.is_empty() {
        return true;
    }
    let spelled: Vec<&str> =
        named.iter().map(String::as_str).take_while(|word| !word.contains('*')).collect();
    let only_reads =
        reading::reads(&spelled) || matches!(spelled[..], [one] if SCRIPTED_PROGRAMS.contains(&one));
    if only_reads && !reading::reads(running.words) {
        return false;
    }
    if running.words.first() == Some(&"git") && git_runs(running.words, &free) {
        return false;
    }
    free.iter().all(|word| pieces(word).all(|piece| is_inside(piece, running, world)))
}

/// Whether git gets a program to run, or a setting that could name one.
fn git_runs(words: &[&str], free: &[&str]) -> bool {
    let before_verb = words.iter().skip(1).take_while(|word| word.starts_with('-'));
    let sets = before_verb.filter(|word| free.contains(word)).any(|word| word.starts_with("-c"));
    let runs = |word: &&str| {
        let name = word.split('=').next().unwrap_or(word);
        GIT_RUN_PREFIXES.iter().any(|bad| word.starts_with(bad) || name.len() > 4 && bad.starts_with(name))
    };
    sets || free.iter().any(runs)
}

/// Everything in a word that a program could use as a path.
fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let is_address = word.starts_with("https://") || word.starts_with("http://");
    let glued = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let behind = glued.and_then(|rest| rest.get(1..));
    // The cluster may have several letters before the value.
    let rooted = glued.and_then(|rest| rest.find(['/', '~']).map(|at| &rest[at..]));
    let parts = word.split(['=', ':', ',', '@', ';']).filter(move |_| !is_address);
    parts.chain(behind).chain(rooted)
}

fn is_inside(piece: &str, running: &Running<'_>, world: &dyn World) -> bool {
    if piece.is_empty() || is_harmless_device(piece) {
        return true;
    }
    // The kernel follows a link before it goes up. Git runs programs from its own folder.
    let leads = |part: &str| part == ".." || part.eq_ignore_ascii_case(".git");
    if piece.starts_with('~') || piece.split(['/', '\\']).any(leads) {
        return false;
    }
    let real = files::real(&path::join(running.cwd, piece), world);
    path::is_below(&real, running.project)
}
