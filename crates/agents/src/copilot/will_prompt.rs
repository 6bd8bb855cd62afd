//! Whether Copilot is about to ask its user. Its hook runs before each command and each change of a
//! file, also if Copilot asks no one.
//!
//! The payload does not say. It follows from the permissions that the process was started with,
//! those that the user has granted since, and what Copilot considers harmless. A wrong yes would
//! hold a call that needs no permission, and a person's yes overrides `--deny-tool` (seen with
//! 1.0.102). So whatever is not certain is a no. Then Copilot's notification reports the question,
//! and the user answers in Copilot's terminal.

use crate::agent::Env;
use crate::wake::Read;
use serde_json::Value;
use std::path::Path;

/// Arguments with which it asks nothing, or nothing that baton could show.
const NEVER_ASKS_OPTIONS: &[&str] = &[
    "--allow-all-tools",
    "--allow-all",
    "--yolo",
    "--deny-tool",
    "--deny-url",
    "--assisted-approval",
    "--autopilot",
    "--mode",
    "--acp",
    "--server",
    "--ui-server",
];
/// The argument for tools that it may use without asking.
const ALLOW_OPTION: &str = "--allow-tool";
/// The same as `--allow-all-tools`.
const ALLOW_ALL_VARIABLE: &str = "COPILOT_ALLOW_ALL";

/// Programs that it runs without asking, at least with some arguments.
const HARMLESS_PROGRAMS: &[&str] = &[
    "awk", "basename", "cat", "cd", "cut", "date", "df", "diff", "dirname", "du", "echo", "egrep", "env",
    "expr", "false", "fgrep", "file", "find", "free", "gh", "git", "grep", "groups", "head", "hostname",
    "id", "jq", "less", "ls", "more", "nl", "printenv", "printf", "ps", "pwd", "readlink", "realpath", "rg",
    "sed", "set", "sort", "stat", "tail", "test", "top", "tr", "tree", "true", "type", "uname", "uniq",
    "uptime", "wc", "whereis", "which", "whoami",
];
/// Subcommands of `git` and `gh` that are not harmless: Copilot asks about them, or others see the
/// change.
const GIT_CHANGES: &[&str] = &[
    "add",
    "am",
    "apply",
    "bisect",
    "checkout",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "config",
    "fetch",
    "gc",
    "init",
    "merge",
    "mv",
    "pull",
    "push",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "stash",
    "switch",
];
const GH_CHANGES: &[&str] = &["api", "close", "comment", "create", "delete", "edit", "merge", "release"];
/// Words of the shell before a command.
const KEYWORDS: &[&str] = &["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"];
/// Words of the shell that are no command.
const STRUCTURE: &[&str] = &["for", "case", "select", "fi", "done", "esac", "}", "[[", "function", "in"];

/// What the question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About<'a> {
    Command(&'a str),
    Edit,
}

/// What is known about a session.
pub(super) struct Session<'a> {
    pub(super) args: &'a [String],
    pub(super) env: Env<'a>,
    pub(super) home: Option<&'a Path>,
    pub(super) transcript: Option<&'a Path>,
    pub(super) cwd: Option<&'a Path>,
    pub(super) read: Read<'a>,
}

/// Whether Copilot certainly asks.
pub(super) fn certainly(about: About<'_>, session: &Session<'_>) -> bool {
    let names = match about {
        About::Command(command) => programs(command),
        About::Edit => Vec::new(),
    };
    let asks = match about {
        About::Command(_) => names.iter().any(is_asked_about),
        About::Edit => true,
    };
    asks && !session.args.is_empty()
        && (session.env)(ALLOW_ALL_VARIABLE).is_none()
        && starts_without_rights(session.args, about, &names)
        && !was_allowed(session, about, &names)
}

/// The programs of a command with their first argument, as far as plain text shows. Quoted texts
/// don't count, and nothing after a here-document does.
fn programs(command: &str) -> Vec<[String; 2]> {
    let mut found = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut signs = command.chars().peekable();
    let mut redirected = false;
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            (Some(open), sign) if sign == open => quote = None,
            // Marks a word that is not plain, so that it is not taken for a name.
            (Some(_), _) => word.push('"'),
            (None, '\'' | '"' | '`') => {
                quote = Some(sign);
                word.push('"');
            }
            (None, '\\') => {
                signs.next();
                word.push('"');
            }
            (None, '#') if word.is_empty() => break,
            (None, '<') if signs.peek() == Some(&'<') => break,
            (None, '<' | '>') => {
                redirected = true;
                end_word(&mut words, &mut word, false);
            }
            (None, ' ' | '\t') => {
                if !word.is_empty() {
                    end_word(&mut words, &mut word, redirected);
                    redirected = false;
                }
            }
            (None, ';' | '|' | '&' | '\n' | '(' | ')') => {
                end_word(&mut words, &mut word, redirected);
                redirected = false;
                found.extend(program(&mut words));
            }
            (None, other) => word.push(other),
        }
    }
    end_word(&mut words, &mut word, redirected);
    found.extend(program(&mut words));
    found
}

fn end_word(words: &mut Vec<String>, word: &mut String, drop: bool) {
    let done = std::mem::take(word);
    if !drop && !done.is_empty() {
        words.push(done);
    }
}

fn program(words: &mut Vec<String>) -> Option<[String; 2]> {
    let words = std::mem::take(words);
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let mut rest =
        words.into_iter().skip_while(|word| KEYWORDS.contains(&word.as_str()) || is_assignment(word));
    let name = rest.next().filter(|name| !STRUCTURE.contains(&name.as_str()))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+/".contains(c);
    if !name.chars().all(is_plain) || !name.chars().any(char::is_alphanumeric) {
        return None;
    }
    let first = rest.find(|word| !word.starts_with('-')).unwrap_or_default();
    Some([name, first])
}

fn is_asked_about([name, first]: &[String; 2]) -> bool {
    match name.as_str() {
        "git" => GIT_CHANGES.contains(&first.as_str()),
        "gh" => GH_CHANGES.contains(&first.as_str()),
        name => !HARMLESS_PROGRAMS.contains(&name),
    }
}

/// Whether the process was started without rights that would cover this.
fn starts_without_rights(args: &[String], about: About<'_>, names: &[[String; 2]]) -> bool {
    let mut args = args.iter().map(String::as_str).peekable();
    while let Some(arg) = args.next() {
        let (name, value) = arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
        if NEVER_ASKS_OPTIONS.contains(&name) {
            return false;
        }
        // The argument takes any number of values.
        let mut allowed: Vec<&str> = value.into_iter().collect();
        if name == ALLOW_OPTION && value.is_none() {
            while let Some(more) = args.next_if(|more| !more.starts_with('-')) {
                allowed.push(more);
            }
        }
        if name == ALLOW_OPTION
            && allowed.iter().flat_map(|tools| tools.split(',')).any(|tool| covers(tool, about, names))
        {
            return false;
        }
    }
    true
}

/// Whether an allowed tool may be this one: `shell`, `shell(git:*)`, `write`.
fn covers(tool: &str, about: About<'_>, names: &[[String; 2]]) -> bool {
    let (kind, what) = tool.trim().split_once('(').unwrap_or((tool.trim(), ""));
    let stem = what.split([':', ' ', ')', '*']).next().unwrap_or_default();
    match about {
        About::Command(_) => {
            matches!(kind, "shell" | "bash" | "*")
                && (stem.is_empty() || names.iter().any(|[name, _]| name == stem))
        }
        About::Edit => matches!(kind, "write" | "edit" | "create" | "*"),
    }
}

/// Whether the user has since allowed this, or everything.
fn was_allowed(session: &Session<'_>, about: About<'_>, names: &[[String; 2]]) -> bool {
    let json = |name: &str| -> Value {
        let bytes = session.home.and_then(|home| (session.read)(&home.join(name)));
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    };
    if json("settings.json")["defaultPermissionMode"].as_str().is_some_and(|mode| mode != "manual") {
        return true;
    }
    let places = json("permissions-config.json");
    let here = |place: &str| session.cwd.is_none_or(|cwd| cwd.starts_with(place));
    let kept = places["locations"].as_object().into_iter().flatten().filter(|(place, _)| here(place));
    let mut approvals = kept.flat_map(|(_, given)| given["tool_approvals"].as_array().into_iter().flatten());
    if approvals.any(|approval| is_for(approval, about, names)) {
        return true;
    }
    let transcript = session.transcript.and_then(|file| (session.read)(file)).unwrap_or_default();
    // For each, the last decision counts.
    let (mut by_policy, mut by_mode) = (false, false);
    for line in transcript.split(|byte| *byte == b'\n') {
        let says = |word: &str| line.windows(word.len()).any(|part| part == word.as_bytes());
        if !says("permission") && !says("session.mode_changed") {
            continue;
        }
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
        let data = &line["data"];
        let is_other = |name: &str, usual: &str| data[name].as_str().is_some_and(|mode| mode != usual);
        match line["type"].as_str() {
            Some("session.permissions_changed") => {
                by_policy = data["allowAllPermissions"] == true
                    || is_other("allowAllPermissionMode", "off")
                    || is_other("mode", "manual");
            }
            Some("session.mode_changed") => by_mode = data["newMode"] == "autopilot",
            Some("permission.completed") if is_for(&data["result"]["approval"], about, names) => return true,
            _ => {}
        }
    }
    by_policy || by_mode
}

/// Whether a permanent permission may cover this.
fn is_for(approval: &Value, about: About<'_>, names: &[[String; 2]]) -> bool {
    match (approval["kind"].as_str(), about) {
        (None, _) => false,
        (Some("commands"), About::Command(_)) => {
            let allowed = approval["commandIdentifiers"].as_array().into_iter().flatten();
            let mut stems = allowed.filter_map(Value::as_str).filter_map(|one| one.split([' ', ':']).next());
            stems.any(|stem| names.iter().any(|[name, _]| name == stem))
        }
        (Some("commands"), About::Edit) | (Some("write"), About::Command(_)) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What 1.0.102 asked about and what it ran without any rights, in a folder with a repository
    /// and a file `x`.
    const SEEN: &str = include_str!("../../tests/payloads/copilot-commands.txt");

    fn asks(about: About<'_>, args: &[&str], files: &[(&str, &str)]) -> bool {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let read = |file: &Path| {
            let found = files.iter().find(|(name, _)| Path::new("/h").join(name) == file);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        let session = Session {
            args: &args,
            env: &|_| None,
            home: Some(Path::new("/h")),
            transcript: Some(Path::new("/h/events.jsonl")),
            cwd: Some(Path::new("/work/p")),
            read: &read,
        };
        certainly(about, &session)
    }

    #[test]
    fn what_it_runs_without_asking_is_never_held() {
        let (mut asked, mut told) = (0, 0);
        for line in SEEN.lines() {
            let (what, command) = line.split_once(' ').unwrap();
            let surely = asks(About::Command(command), &["copilot", "-p", "x"], &[]);
            assert!(what == "asks" || !surely, "it runs this without asking: {command}");
            asked += usize::from(what == "asks");
            told += usize::from(surely);
        }
        // The user answers the rest in the terminal.
        assert!(told * 4 > asked * 3, "{told} of {asked} questions are known beforehand");
    }

    #[test]
    fn rights_of_the_process_are_known() {
        let touch = About::Command("touch a");
        assert!(asks(touch, &["copilot", "-p", "x"], &[]));
        for args in [
            &["copilot", "--allow-all-tools"][..],
            &["copilot", "--yolo"],
            &["copilot", "--allow-tool=shell(touch:*)"],
            &["copilot", "--allow-tool", "write", "shell"],
            &["copilot", "--allow-tool=write,shell(touch)"],
            &["copilot", "--deny-tool=shell(rm)"],
            &["copilot", "--acp"],
            &["copilot", "--mode", "autopilot"],
        ] {
            assert!(!asks(touch, args, &[]), "{args:?}");
        }
        assert!(asks(touch, &["copilot", "--allow-tool", "write", "shell(git:*)"], &[]));
        assert!(asks(About::Edit, &["copilot", "--allow-tool=shell"], &[]));
        assert!(!asks(About::Edit, &["copilot", "--allow-tool=write(src)"], &[]));
    }

    #[test]
    fn what_the_user_has_allowed_since_is_known() {
        let touch = About::Command("mkdir d && touch a");
        let place = |at: &str, approval: &str| {
            format!(r#"{{"locations": {{"{at}": {{"tool_approvals": [{approval}]}}}}}}"#)
        };
        let commands = r#"{"kind": "commands", "commandIdentifiers": ["touch"]}"#;
        let here = place("/work/p", commands);
        let elsewhere = place("/work/q", commands);
        let all = r#"{"type":"session.permissions_changed","data":{"allowAllPermissions":true}}"#;
        let none = r#"{"type":"session.permissions_changed","data":{"allowAllPermissions":false}}"#;
        let given = format!(
            r#"{{"type":"permission.completed","data":{{"result":{{"kind":"approved-for-session","approval":{commands}}}}}}}"#
        );
        let told = |name: &'static str, text: &str| asks(touch, &["copilot"], &[(name, text)]);
        assert!(!told("permissions-config.json", &here));
        assert!(told("permissions-config.json", &elsewhere));
        assert!(told("permissions-config.json", "no JSON"));
        assert!(!told("settings.json", r#"{"defaultPermissionMode": "allow-all"}"#));
        assert!(!told("events.jsonl", all));
        assert!(told("events.jsonl", &format!("{all}\n{none}\n")));
        assert!(!told("events.jsonl", &format!("{given}\n{none}\n")));
        let autopilot = r#"{"type":"session.mode_changed","data":{"newMode":"autopilot"}}"#;
        assert!(!told("events.jsonl", autopilot));
        assert!(asks(About::Edit, &["copilot"], &[("events.jsonl", &given)]));
    }

    #[test]
    fn a_text_inside_of_a_command_is_no_program() {
        for command in [
            "echo 'a; rm x'",
            "echo \"a | touch b\"",
            "cat <<EOF\ntouch x\nEOF",
            "ls # ; touch x",
            "echo a\\;touch",
            "A=touch ls",
            "ls > touch",
            "",
            ";;&&",
        ] {
            assert!(!asks(About::Command(command), &["copilot"], &[]), "{command}");
        }
        for command in
            ["ls; touch x", "if true; then touch x; fi", "A=1 touch x", "ls |\n tee x", "(touch x)"]
        {
            assert!(asks(About::Command(command), &["copilot"], &[]), "{command}");
        }
    }
}
