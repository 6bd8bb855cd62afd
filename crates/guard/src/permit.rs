//! Patterns of calls that run without a question. They match what a call does, not how it is
//! written.
//!
//! | pattern | what it permits |
//! |---|---|
//! | `bash: git status` | that command with these words, however they are quoted and spaced |
//! | `bash: cargo test *` | and any further words; elsewhere `*` is a part of one word |
//! | `edit: src/**` | changes to files below `src` of the project, links resolved |
//! | `mcp: server/tool*` | tools of an MCP server |
//!
//! A pattern must permit every simple command and every file of a call. Only a plain list of
//! commands is permitted: no expansion, substitution, redirection into a file, assignment,
//! definition or background process, and nothing outside the project.

mod outside;

use crate::files::{self, Deed};
use crate::path;
use crate::shell::parse::parse;
use crate::shell::syntax::{Node, NodeKind, Part, Redirect, RedirectOp, Script, Target, Word};
use crate::shell::{self, Command, Location};
use crate::world::World;
use baton_core::tool::{ToolKind, ToolUse};
use outside::Running;

/// Longest command that is checked. The person is asked about a longer one.
const COMMAND_BYTES: usize = 64 << 10;

/// Commands that change the meaning of what follows. No pattern permits them.
const NEVER_PERMITTED: [&str; 24] = [
    ".", "alias", "bind", "builtin", "command", "coproc", "declare", "enable", "eval", "exec", "export",
    "fc", "hash", "local", "noglob", "readonly", "set", "setopt", "shopt", "source", "trap", "typeset",
    "unalias", "unset",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    about: About,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    /// The words of a command, and whether more may follow.
    Shell { words: Vec<String>, more: bool },
    /// The parts of a path below the project.
    Edit(Vec<String>),
    /// A server and a tool.
    Mcp(String, String),
}

impl Pattern {
    /// Parses a pattern. The error says what it must be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').ok_or("must begin with bash:, edit: or mcp:")?;
        let rest = rest.trim();
        let about = match kind.trim() {
            "bash" => of_command(rest)?,
            "edit" => of_files(rest)?,
            "mcp" => match rest.split_once('/') {
                Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
                    About::Mcp(server.to_owned(), tool.to_owned())
                }
                _ => return Err("must name a server and a tool: mcp: server/tool".to_owned()),
            },
            _ => return Err("must begin with bash:, edit: or mcp:".to_owned()),
        };
        Ok(Self { text: text.trim().to_owned(), about })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn fits_command(&self, words: &[&str]) -> bool {
        let About::Shell { words: wanted, more } = &self.about else { return false };
        let enough = if *more { words.len() >= wanted.len() } else { words.len() == wanted.len() };
        enough && wanted.iter().zip(words).all(|(wanted, word)| fits(wanted, word))
    }

    fn permits_command(&self, running: &Running<'_>, world: &dyn World) -> bool {
        let About::Shell { words, .. } = &self.about else { return false };
        self.fits_command(running.words) && outside::stays_inside(words, running, world)
    }

    fn fits_file(&self, below: &[&str]) -> bool {
        let About::Edit(wanted) = &self.about else { return false };
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        parts_fit(&wanted, below)
    }

    fn fits_tool(&self, server: &str, tool: &str) -> bool {
        matches!(&self.about, About::Mcp(wanted, named) if fits(wanted, server) && fits(named, tool))
    }
}

fn of_command(text: &str) -> Result<About, String> {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let more = words.len() > 1 && words.last().is_some_and(|word| word == "*");
    if more {
        words.pop();
    }
    let program = words.first().ok_or("must name a command")?;
    if program.contains('*') {
        return Err("must name its program: no * in the first word".to_owned());
    }
    if NEVER_PERMITTED.contains(&program.as_str()) {
        return Err(format!("must not be about {program}, which changes what other commands mean"));
    }
    if words.iter().any(|word| word.contains(['\'', '"', '`', '$', ';', '&', '|', '<', '>', '\\'])) {
        return Err("must be one plain command, without quotes, expansions or redirections".to_owned());
    }
    Ok(About::Shell { words, more })
}

fn of_files(text: &str) -> Result<About, String> {
    let parts: Vec<String> = text.split('/').map(str::to_owned).collect();
    if parts.iter().any(|part| part.is_empty() || part == "." || part == ".." || part.starts_with('~')) {
        return Err("must be a path below the project, such as src/**".to_owned());
    }
    Ok(About::Edit(parts))
}

/// Whether a text matches a pattern in which `*` is any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// The same for the parts of a path, in which `**` is any number of parts.
fn parts_fit(wanted: &[&str], below: &[&str]) -> bool {
    match wanted.split_first() {
        None => below.is_empty(),
        Some((&"**", rest)) => {
            // A last `**` means something in the folder, not the folder itself.
            let least = usize::from(rest.is_empty());
            (least..=below.len()).any(|skipped| parts_fit(rest, &below[skipped..]))
        }
        Some((part, rest)) => {
            below.split_first().is_some_and(|(name, below)| fits(part, name) && parts_fit(rest, below))
        }
    }
}

/// The patterns that permit a call, each once; `None` if any part of the call is not permitted.
pub fn permits<'p>(patterns: &'p [Pattern], tool: &ToolUse, world: &dyn World) -> Option<Vec<&'p Pattern>> {
    if patterns.is_empty() {
        return None;
    }
    let mut used: Vec<&Pattern> = Vec::new();
    let mut add = |found: Option<&'p Pattern>| -> Option<()> {
        let found = found?;
        if !used.contains(&found) {
            used.push(found);
        }
        Some(())
    };
    let find = |fits: &dyn Fn(&Pattern) -> bool| patterns.iter().find(|pattern| fits(pattern));
    match &tool.kind {
        ToolKind::Shell => {
            let project = files::real(&world.project(), world);
            for PlainCommand { words, cwd } in commands(tool, &project, world)? {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let running = Running { words: &words, cwd: &cwd, project: &project };
                add(find(&|pattern| pattern.permits_command(&running, world)))?;
            }
        }
        ToolKind::Write | ToolKind::Edit | ToolKind::Patch => {
            for file in changed_files(tool, world)? {
                let parts: Vec<&str> = file.split('/').collect();
                add(find(&|pattern| pattern.fits_file(&parts)))?;
            }
        }
        ToolKind::Mcp { server: Some(server), tool } => {
            add(find(&|pattern| pattern.fits_tool(server, tool)))?;
        }
        _ => return None,
    }
    (!used.is_empty()).then_some(used)
}

/// A simple command whose words are all known.
#[derive(PartialEq, Eq)]
struct PlainCommand {
    words: Vec<String>,
    cwd: String,
}

/// Each simple command that a call would run; `None` if the call would also do something else.
fn commands(tool: &ToolUse, project: &str, world: &dyn World) -> Option<Vec<PlainCommand>> {
    let native = tool.native.to_ascii_lowercase();
    let text = tool.command.as_deref()?;
    let is_windows = native.contains("powershell") || native.contains("pwsh") || native == "cmd";
    // Plain shells read `$'…'` and `$"…"` in another way.
    let is_odd = text.contains("$'") || text.contains("$\"") || text.contains('\0');
    if is_windows || is_odd || text.len() > COMMAND_BYTES {
        return None;
    }
    // A coprocess stays in the background, and the parser does not mark it.
    let is_left = text.split(|sign: char| !sign.is_alphanumeric()).any(|word| word == "coproc");
    if is_left {
        return None;
    }
    let listed = plain(&parse(text).ok()?)?;
    // The commands that these run in turn: the text of `bash -c`, the command of `xargs`.
    let analysis = shell::analyse(text, world);
    if !analysis.unknown.is_empty() || analysis.ran.iter().any(|ran| !ran.from_file) {
        return None;
    }
    let leads_out = |touch: &files::Touch| {
        let real = touch.real.as_deref();
        touch.deed.changes()
            && !touch.from_file
            && !real.is_some_and(|real| path::is_below(real, project) || files::is_harmless_device(real))
    };
    if files::of_commands(&analysis, world).iter().any(leads_out) {
        return None;
    }
    let mut found = Vec::new();
    // The guard judges the content of a script file. Here its name stands for it.
    for command in analysis.commands.iter().filter(|command| !command.from_file) {
        let plain = PlainCommand { words: inner(command, project, world)?, cwd: command.cwd.clone()? };
        if !found.contains(&plain) {
            found.push(plain);
        }
    }
    for words in listed {
        if !found.iter().any(|known| known.words == words) {
            found.push(PlainCommand { words, cwd: world.cwd() });
        }
    }
    Some(found)
}

/// The words of a command that another command runs.
fn inner(command: &Command, project: &str, world: &dyn World) -> Option<Vec<String>> {
    let plain_words = command.words.iter().all(|word| word.is_known() && word.globs.is_empty());
    let made_of_variables = command.words.iter().any(|word| !word.variables.is_empty());
    let files = command.redirects.iter().any(|redirect| {
        redirect.op != RedirectOp::Duplicate && redirect.target.literal() != Some("/dev/null")
    });
    let cwd = files::real(command.cwd.as_deref()?, world);
    let program = command.words.first()?.text.as_str();
    let relative = program.contains('/') && !path::is_absolute(program);
    let harmless = plain_words
        && !made_of_variables
        && !files
        && command.assignments.is_empty()
        && command.location == Location::Here
        && !command.background
        && path::is_below(&cwd, project)
        && (!relative || cwd == project)
        && !NEVER_PERMITTED.contains(&program);
    harmless.then(|| command.words.iter().map(|word| word.text.clone()).collect())
}

/// The words of each command, if the text is only a list of plain commands.
fn plain(script: &Script<'_>) -> Option<Vec<Vec<String>>> {
    let mut found = Vec::new();
    for item in &script.list.items {
        if item.background {
            return None;
        }
        for stage in &item.stages {
            found.push(plain_command(stage)?);
        }
    }
    (!found.is_empty()).then_some(found)
}

fn plain_command(node: &Node<'_>) -> Option<Vec<String>> {
    let NodeKind::Simple { assignments, words } = &node.kind else { return None };
    let harmless = assignments.is_empty() && node.redirects.iter().all(goes_nowhere);
    let words = words.iter().map(literal).collect::<Option<Vec<String>>>()?;
    let program = words.first()?;
    (harmless && !NEVER_PERMITTED.contains(&program.as_str())).then_some(words)
}

/// The text of a command that only gives it to a shell. Some agents put a shell around each
/// command.
pub fn script_of(text: &str) -> Option<String> {
    let mut commands = plain(&parse(text).ok()?)?;
    let words = commands.pop().filter(|_| commands.is_empty())?;
    let [shell, option, script] = <[String; 3]>::try_from(words).ok()?;
    let is_shell = [
        "/bin/bash",
        "/usr/bin/bash",
        "/bin/sh",
        "/usr/bin/sh",
        "/bin/zsh",
        "/usr/bin/zsh",
        "bash",
        "sh",
        "zsh",
    ]
    .contains(&shell.as_str());
    (is_shell && ["-c", "-lc"].contains(&option.as_str())).then_some(script)
}

/// Whether a redirection touches no file.
fn goes_nowhere(redirect: &Redirect<'_>) -> bool {
    let Target::Word(word) = &redirect.target else { return false };
    let Some(target) = literal(word) else { return false };
    match redirect.op {
        RedirectOp::Duplicate => target.bytes().all(|sign| sign.is_ascii_digit() || sign == b'-'),
        RedirectOp::Read | RedirectOp::Write | RedirectOp::Append => target == "/dev/null",
        RedirectOp::WriteBoth | RedirectOp::AppendBoth => target == "/dev/null",
        RedirectOp::ReadWrite | RedirectOp::HereDocument | RedirectOp::HereString => false,
    }
}

/// A word that no shell expands.
fn literal(word: &Word<'_>) -> Option<String> {
    match word {
        Word::Plain(text) => is_bare(text, true).then(|| (*text).to_owned()),
        Word::Parts(parts) => {
            let mut text = String::new();
            for part in parts {
                match part {
                    Part::Bare(bare) if is_bare(bare, text.is_empty()) => text.push_str(bare),
                    Part::Quoted(quoted) => text.push_str(quoted),
                    Part::Double(inside) => {
                        for part in inside {
                            let Part::Quoted(quoted) = part else { return None };
                            text.push_str(quoted);
                        }
                    }
                    _ => return None,
                }
            }
            Some(text)
        }
    }
}

/// Unquoted text that means itself. zsh expands a word that begins with `=`.
fn is_bare(text: &str, begins: bool) -> bool {
    let plain = |sign: char| sign.is_alphanumeric() || "_-./:,@%+=".contains(sign);
    text.chars().all(plain) && !(begins && text.starts_with('='))
}

/// The files that a call changes, relative to the project; `None` if one is elsewhere or not known.
fn changed_files(tool: &ToolUse, world: &dyn World) -> Option<Vec<String>> {
    let project = files::real(&world.project(), world);
    let touches = files::of_tool(tool, world);
    if touches.is_empty() || touches.len() > files::MAX_TOUCHES || project == "/" {
        return None;
    }
    let below = |touch: &files::Touch| {
        let certain = !touch.is_unknown && !touch.is_pattern && touch.location == Location::Here;
        // The kernel follows a link before it goes up.
        let climbs = touch.word.text.split(['/', '\\']).any(|part| part == "..");
        let changes = matches!(touch.deed, Deed::Write | Deed::Truncate);
        let real = touch.real.as_deref().filter(|_| certain && changes && !climbs)?;
        let file = real.strip_prefix(project.as_str())?.strip_prefix('/')?;
        // Git runs programs from its own folder.
        let of_git = file.split('/').any(|part| part.eq_ignore_ascii_case(".git"));
        (!file.is_empty() && !of_git).then(|| file.to_owned())
    };
    touches.iter().map(below).collect()
}

#[cfg(test)]
mod tests;
