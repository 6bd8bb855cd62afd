//! What a read-only job of Claude Code may do: its reading tools, and shell commands that are known to read only.
//!
//! Its own rules keep it so, above whatever the user's rules allow: tools that change files don't exist, and each command of the shell, and each
//! tool of a server, is asked (`ask` goes before `allow`). What is asked is answered here.

use serde_json::{Value, json};

/// The built-in tools that exist in a read-only job.
pub(super) const TOOLS: &[&str] =
    &["Read", "Glob", "Grep", "Bash", "WebFetch", "WebSearch", "ToolSearch", "AskUserQuestion"];

/// Baton's own tools change nothing but mail.
const OWN_TOOLS: &str = "mcp__baton__";

/// Programs that only read, whatever their arguments, if none of these words begins one.
const READERS: &[(&str, &[&str])] = &[
    ("basename", &[]),
    ("cat", &[]),
    ("cut", &[]),
    ("diff", &["--to-file", "--output"]),
    ("dirname", &[]),
    ("du", &[]),
    ("echo", &[]),
    ("file", &["-C", "--compile"]),
    ("find", &["-delete", "-exec", "-ok", "-fls", "-fprint"]),
    ("grep", &[]),
    ("head", &[]),
    ("ls", &[]),
    ("nl", &[]),
    ("pwd", &[]),
    ("realpath", &[]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("stat", &[]),
    ("tail", &[]),
    ("tr", &[]),
    ("wc", &[]),
];

/// Subcommands of git that only read, if none of [`GIT_WRITES`] begins a word of theirs.
const GIT_READERS: &[&str] = &[
    "blame",
    "cat-file",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
];
const GIT_WRITES: &[&str] =
    &["--output", "--ext-diff", "--open-files-in-pager", "-O", "--filters", "--textconv"];

/// The rules, as `--settings` takes them.
pub(super) fn settings() -> Value {
    json!({"permissions": {"deny": ["Edit", "Write", "NotebookEdit"], "ask": ["Bash", "mcp__*"]}})
}

/// Why a read-only job must not do that; `None` where it may be done, or asked.
pub(super) fn refusal(tool: &str, input: &Value) -> Option<&'static str> {
    if tool == "Bash" {
        let command = input["command"].as_str().unwrap_or_default();
        let background = input["run_in_background"] == true;
        return (background || !reads_only(command)).then_some(
            "This job is read-only. Only plain commands that read are allowed (such as git diff, git log, ls, cat, grep, find; pipes between them, no quotes with special characters, no redirections). Use the tools Read, Grep and Glob.",
        );
    }
    let changes = tool.starts_with("mcp__") && !tool.starts_with(OWN_TOOLS)
        || !TOOLS.contains(&tool) && !tool.starts_with(OWN_TOOLS);
    changes.then_some("This job is read-only, and that tool may change something.")
}

/// Whether that is certainly answered without asking a person.
pub(super) fn is_known_reader(tool: &str) -> bool {
    tool == "Bash" || tool.starts_with(OWN_TOOLS)
}

/// Whether a command is a plain one, or a pipe or list of such, each of which only reads. Anything that a shell would expand is too much.
fn reads_only(command: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_./:=,@^~+%|&;'\"".contains(c);
    if !command.chars().all(plain) || command.trim().is_empty() {
        return false;
    }
    let Some(words) = words(command) else { return false };
    words.split(|word| matches!(word, Word::Next)).all(|simple| {
        let texts: Vec<&str> = simple
            .iter()
            .map(|word| match word {
                Word::Text(text) => text.as_str(),
                Word::Next => "",
            })
            .collect();
        is_reader(&texts)
    })
}

fn is_reader(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    if *program == "git" {
        let rest = rest.strip_prefix(&["--no-pager"]).unwrap_or(rest);
        let Some((subcommand, rest)) = rest.split_first() else { return false };
        return GIT_READERS.contains(subcommand) && !begins(rest, GIT_WRITES);
    }
    READERS.iter().any(|(name, bad)| name == program && !begins(rest, bad))
}

fn begins(words: &[&str], bad: &[&str]) -> bool {
    words.iter().any(|word| bad.iter().any(|bad| word.starts_with(bad)))
}

enum Word {
    Text(String),
    /// `|`, `||`, `&&`, `;`.
    Next,
}

/// The words of a command without expansions; `None` where a quote is open or a single `&` would leave something running.
fn words(command: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = command.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take().map(Word::Text)),
            (None, '|' | '&' | ';') => {
                words.extend(word.take().map(Word::Text));
                let twice = c != ';' && rest.next_if_eq(&c).is_some();
                if c == '&' && !twice {
                    return None;
                }
                words.push(Word::Next);
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.take().map(Word::Text));
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_that_read_are_let_through() {
        for good in [
            "git diff main...HEAD -- src/lib.rs",
            "git --no-pager log --oneline -5 | head -3",
            "ls -la && git status",
            "grep -rn 'fn main' src",
            "find . -name foo.rs",
            "git log -n 3 --format=%H; pwd",
        ] {
            assert!(reads_only(good), "{good}");
        }
        for bad in [
            "",
            "touch x",
            "git diff > x",
            "git diff --output=x",
            "git log --output x",
            "git -c core.pager=x log",
            "git commit -m x",
            "git branch x",
            "git grep -Ovi x",
            "find . -delete",
            "find . -exec rm x",
            "rg --pre x y",
            "ls $(touch x)",
            "ls `touch x`",
            "cat x | tee y",
            "ls; rm x",
            "ls & rm x",
            "ls\nrm x",
            "X=1 ls",
            "/bin/ls",
            "cat <x",
            "sh -c 'ls'",
            "xargs rm",
            "cat 'x",
            "\"git\" 'push'",
            "ls ||",
            "sort -o x y",
            "env rm x",
        ] {
            assert!(!reads_only(bad), "{bad}");
        }
    }

    #[test]
    fn tools_that_may_change_something_are_refused() {
        let none = json!({});
        assert!(refusal("Write", &none).is_some());
        assert!(refusal("mcp__files__put", &none).is_some());
        assert!(refusal("mcp__baton__who", &none).is_none());
        assert!(refusal("Read", &none).is_none());
        assert!(refusal("Bash", &json!({"command": "git diff"})).is_none());
        assert!(refusal("Bash", &json!({"command": "git diff", "run_in_background": true})).is_some());
        assert!(refusal("Bash", &json!({"command": "touch x"})).is_some());
    }
}
