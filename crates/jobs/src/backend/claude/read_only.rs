//! What a read-only job of Claude Code may do: its reading tools, and shell commands that are known
//! to read only.
//!
//! Its own rules enforce that, above whatever the user's rules allow. Tools that change files don't
//! exist, and each shell command and each tool of a server is asked (`ask` goes before `allow`).
//! This module answers.

use baton_guard::reading;
use serde_json::{Value, json};

/// The built-in tools that exist in a read-only job.
pub(super) const TOOLS: &[&str] =
    &["Read", "Glob", "Grep", "Bash", "WebFetch", "WebSearch", "ToolSearch", "AskUserQuestion"];

/// Programs that run another command. The table of readers judges that command, which is not looked
/// for here.
const RUNNERS: &[&str] = &["bash", "dash", "nice", "sh", "time", "timeout", "xargs", "zsh"];

/// Baton's own tools change nothing but mail.
const OWN_TOOLS_PREFIX: &str = "mcp__baton__";

/// The rules, as `--settings` takes them.
pub(super) fn settings() -> Value {
    json!({"permissions": {"deny": ["Edit", "Write", "NotebookEdit"], "ask": ["Bash", "mcp__*"]}})
}

/// Why a read-only job must not do that; `None` if it may be done, or asked.
pub(super) fn refusal(tool: &str, input: &Value) -> Option<&'static str> {
    if tool == "Bash" {
        let command = input["command"].as_str().unwrap_or_default();
        let background = input["run_in_background"] == true;
        return (background || !reads_only(command)).then_some(
            "This job is read-only. Only plain commands that read are allowed (such as git diff, git log, ls, cat, grep, find; pipes between them, no quotes with special characters, no redirections). Use the tools Read, Grep and Glob.",
        );
    }
    let changes = tool.starts_with("mcp__") && !tool.starts_with(OWN_TOOLS_PREFIX)
        || !TOOLS.contains(&tool) && !tool.starts_with(OWN_TOOLS_PREFIX);
    changes.then_some("This job is read-only, and that tool may change something.")
}

/// Whether it is certainly answered without a person.
pub(super) fn is_known_reader(tool: &str) -> bool {
    tool == "Bash" || tool.starts_with(OWN_TOOLS_PREFIX)
}

/// Whether a command is a plain one, or a pipe or list of plain ones, and each of them only reads.
/// Anything that a shell would expand is refused.
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
        texts.first().is_some_and(|program| is_plain(program)) && reading::reads(&texts)
    })
}

/// Whether a program does its work itself.
fn is_plain(program: &str) -> bool {
    !program.contains('/') && !RUNNERS.contains(&program)
}

enum Word {
    Text(String),
    /// `|`, `||`, `&&`, `;`.
    Next,
}

/// The words of a command without expansions; `None` if a quote is open or a single `&` would leave
/// something running.
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
            "git grep --open-files-in-page=./evil.sh x",
            "git grep -nO x",
            "git log --outp=x",
            "git format-patch -1",
            "timeout 5 rm x",
            "time rm x",
            "sed -i s/a/b/ x",
            "sort --comp=./x y",
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
