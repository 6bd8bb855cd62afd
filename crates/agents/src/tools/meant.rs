//! Tools whose name and fields together mean a command: code that a server runs, a push through a
//! forge.
//!
//! The command is what the call amounts to, in words that the guard reads. A tool that is in a
//! table is not looked at here.

use super::{ToolKind, ToolUse, Value, shell};

/// Fields that hold a program.
const CODE_FIELDS: &[&str] = &["code", "source", "expression", "snippet"];
/// What a program in JavaScript has in it.
const SCRIPT_WORDS: &[&str] =
    &["require(", "console.", "const ", "let ", "=>", "process.env", "await import"];
/// Tools of a forge that write to the branch that they name.
const FORGE_WRITES: &[&str] =
    &["push_files", "create_or_update_file", "update_file", "delete_file", "create_commit"];

/// Gives a call the command that it amounts to, where it has none.
pub(super) fn fill(call: &mut ToolUse, input: &Value) {
    let name = match &call.kind {
        ToolKind::Mcp { tool, .. } => tool.to_ascii_lowercase(),
        ToolKind::Unknown => call.native.to_ascii_lowercase(),
        _ => return,
    };
    if call.command.is_none() {
        call.command = pushed(&name, input).or_else(|| ran(&name, input));
    }
}

/// `{"cmd": "id", "shell": "/usr/bin/sudo"}`: a program that is no shell gets the command as its
/// words.
pub(super) fn run_by_shell(call: &mut ToolUse, input: &Value) {
    const SHELLS: &[&str] =
        &["sh", "bash", "zsh", "dash", "ksh", "fish", "pwsh", "powershell", "cmd", "nu", "tcsh", "ash"];
    let Some(program) = input.get("shell").and_then(Value::as_str).filter(|text| !text.is_empty()) else {
        return;
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    if let Some(command) = call.command.take_if(|_| !SHELLS.contains(&name)) {
        call.command = Some(format!("{} -c {}", shell::quote(program), shell::quote(&command)));
    }
}

/// A program that the call runs.
fn ran(name: &str, input: &Value) -> Option<String> {
    const RUNS: &[&str] = &["run", "exec", "eval", "repl", "python", "node", "script", "code", "notebook"];
    if !RUNS.iter().any(|word| name.contains(word)) {
        return None;
    }
    let is_code = |text: &&str| text.contains(['(', '=', ' ', '\n', ';']);
    let code = CODE_FIELDS.iter().find_map(|field| input.get(*field)?.as_str().filter(is_code))?;
    let language = input.get("language").and_then(Value::as_str).unwrap_or(name).to_ascii_lowercase();
    let is_named = |words: &[&str]| words.iter().any(|word| language.contains(word));
    if is_named(&["bash", "shell", "zsh"]) {
        return Some(code.to_owned());
    }
    let is_script = is_named(&["js", "javascript", "node", "typescript"])
        || (!is_named(&["python", "py"]) && SCRIPT_WORDS.iter().any(|word| code.contains(word)));
    let program = if is_script { "node -e" } else { "python3 -c" };
    Some(format!("{program} {}", shell::quote(code)))
}

/// A command of git that the call amounts to.
fn pushed(name: &str, input: &Value) -> Option<String> {
    let text = |key: &str| input.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let branch = || text("branch").or_else(|| text("ref")).or_else(|| text("refspec"));
    let mut words = vec!["git"];
    if let Some(folder) = text("repo_path").or_else(|| text("repository_path")) {
        words.extend(["-C", folder]);
    }
    match name.strip_prefix("git_").unwrap_or(name) {
        "push" => {
            words.extend(["push", text("remote").unwrap_or("origin")]);
            words.extend(branch());
            let is_forced = input.get("force").and_then(Value::as_bool) == Some(true);
            words.extend(is_forced.then_some("--force"));
        }
        "reset" if text("mode").is_some_and(|mode| mode.trim_start_matches('-') == "hard") => {
            words.extend(["reset", "--hard"]);
            words.extend(text("target").or_else(|| text("commit")));
        }
        "clean" => words.extend(["clean", "-fd"]),
        other if FORGE_WRITES.contains(&other) => words.extend(["push", "origin", branch()?]),
        _ => return None,
    }
    Some(words.into_iter().map(shell::quote).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn command(name: &str, input: Value) -> Option<String> {
        let tools = super::super::Tools { rows: &[], mcp: &[super::super::MCP] };
        super::super::tool(&tools, name, &input, &[]).command.map(|command| command.replace('\'', ""))
    }

    #[test]
    fn a_call_is_the_command_that_it_amounts_to() {
        for (name, input, expected) in [
            ("mcp__x__run", json!({"program": "sudo", "args": ["id"]}), "sudo id"),
            ("mcp__code__run_python", json!({"code": "print(1)"}), "python3 -c print(1)"),
            ("mcp__ide__eval", json!({"code": "console.log(1)"}), "node -e console.log(1)"),
            ("mcp__git__git_push", json!({"branch": "main"}), "git push origin main"),
            ("mcp__git__git_reset", json!({"repo_path": "/p", "mode": "hard"}), "git -C /p reset --hard"),
            ("mcp__github__push_files", json!({"branch": "main"}), "git push origin main"),
        ] {
            assert_eq!(command(name, input).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(command("mcp__git__git_reset", json!({"repo_path": "/p"})), None);
        assert_eq!(command("mcp__docs__search", json!({"source": "a b", "code": "x y"})), None);
    }
}
