//! A permitted call runs only what the patterns say, as bash itself sees it.

use baton_core::tool::{ToolKind, ToolUse};
use baton_guard::permit::{Pattern, permits};
use baton_guard::{FakeWorld, World as _};
use proptest::prelude::*;
use std::process::{Command, Stdio};

/// Pieces of commands: what is permitted, what is not, and what joins, hides or expands them.
const PIECES: [&str; 44] = [
    "git",
    "status",
    "git status",
    "ls",
    "x",
    "evil",
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    ";",
    " ; ",
    "&&",
    " && ",
    "||",
    "|",
    "&",
    "$(evil)",
    "`evil`",
    "$X",
    "${X:-evil}",
    "'",
    "\"",
    "\\",
    "(",
    ")",
    "{ ",
    "; }",
    ">f",
    "2>&1",
    ">/dev/null",
    "<<<",
    "X=evil ",
    "eval ",
    "command ",
    "if ",
    "; then ",
    "; fi",
    "#",
    "!",
    "git() ",
    "$'evil'",
];

/// Each command that bash would run, with its words joined. The search path is empty, so bash calls
/// its handler of unknown commands, in an empty folder.
fn run_by_bash(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "PATH=/nowhere\ncommand_not_found_handle() {{ local IFS=' '; printf '%s\\0' \"$*\" >&9; }}\n{text}\n"
    );
    let log = folder.path().join("ran");
    let done = Command::new("bash")
        .args(["--norc", "-c", "exec 9>>\"$1\"; eval \"$2\"", "bash"])
        .arg(&log)
        .arg(&script)
        .current_dir(folder.path())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.expect("bash runs");
    let ran = std::fs::read_to_string(&log).unwrap_or_default();
    let made: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert_eq!(made, ["ran"], "{text:?} made a file");
    ran.split('\0').filter(|words| !words.is_empty()).map(str::to_owned).collect()
}

fn permitted(text: &str) -> bool {
    let patterns = ["bash: git status", "bash: ls *"].map(|text| Pattern::parse(text).expect("a pattern"));
    let world = FakeWorld::new("/home/me/project", "/home/me");
    assert_eq!(world.cwd(), "/home/me/project");
    let tool = ToolUse { command: Some(text.to_owned()), ..ToolUse::new(ToolKind::Shell, "Bash") };
    permits(&patterns, &tool, &world).is_some()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_is_permitted_runs_nothing_else(
        begins in prop::sample::select(&["", "git status", "ls ", "ls '", "git status;"][..]),
        picked in prop::collection::vec(0..PIECES.len(), 1..9),
    ) {
        let rest: String = picked.iter().map(|at| PIECES[*at]).collect();
        let text = format!("{begins}{rest}");
        if permitted(&text) {
            for ran in run_by_bash(&text) {
                let listed = ran == "ls" || ran.starts_with("ls ");
                prop_assert!(ran == "git status" || listed, "{text:?} runs {ran:?}");
            }
        }
    }
}

#[test]
fn bash_is_asked_about_something_that_is_permitted() {
    for text in ["git status", "git 'status' && ls -l", "ls | git status"] {
        assert!(permitted(text), "{text}");
        assert!(!run_by_bash(text).is_empty(), "{text}");
    }
}
