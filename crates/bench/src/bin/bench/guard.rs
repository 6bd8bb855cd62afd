//! What it costs to judge a tool call before it runs, with the default rules.

use crate::Outcome;
use crate::child::{Shot, Spent};
use crate::rounds::Case;
use crate::world::World;
use serde_json::json;
use std::path::Path;

/// For each row its name, its case, its limit as a multiple of `/bin/true`, and its limit in
/// milliseconds.
pub const ROWS: [(&str, &str, Option<f64>, Option<f64>); 6] = [
    ("guard, `ls` before it runs", "judge ls", Some(2.0), None),
    ("guard, a script of 2 KB before it runs", "judge script", Some(2.6), None),
    ("guard, output of 2 KB after it ran", "judge output", Some(2.6), None),
    ("guard, 1 MiB of commands", "judge commands", None, Some(50.0)),
    ("guard, 1 MiB of addresses", "judge addresses", None, Some(50.0)),
    ("guard, 1 MiB of variables and subshells", "judge variables", None, Some(50.0)),
];

/// Another guard for comparison, with its version.
pub const SAFETY_NET: &str = "cc-safety-net 2.4.5";

/// For each row of it, its name and its case.
pub const SAFETY_NET_ROWS: [(&str, &str); 2] =
    [("`ls` before it runs", "net ls"), ("a script of 2 KB before it runs", "net script")];

/// The same calls, judged by cc-safety-net with its own defaults.
pub fn safety_net(world: &World, program: &Path) -> Vec<Case<'static>> {
    let home = &world.small.quiet;
    let shot = |command: &str| {
        Shot::new(program, &home.project)
            .arg("hook")
            .arg("--claude-code")
            .env("HOME", &home.project)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .input(payload(world, "PreToolUse", command, ""))
    };
    vec![
        Case::constant("net ls", shot("ls")).checked(nothing_said),
        Case::constant("net script", shot(&script())),
    ]
}

const MEBIBYTE: usize = 1 << 20;

/// A script such as agents write: tests, a build, files and a loop.
fn script() -> String {
    let piece = "set -euo pipefail\nname=$(basename \"$PWD\")\nfor crate in core store agents; do\n  if [ -f \"crates/$crate/Cargo.toml\" ]; then\n    \
        cargo test -p \"baton-$crate\" --quiet 2>&1 | tail -n 20 | tee \"target/$crate.log\"\n  else\n    echo \"no $crate in $name\" >&2\n  fi\ndone\n\
        git status --short | grep -v '^??' | awk '{print $2}' | sort -u > target/changed.txt\n\
        cat <<'END' > target/note.md\n# What was done\nThe tests ran, and what they said is beside this file.\nEND\n\
        grep -rn 'TODO' src --include='*.rs' | head -5 || true\n";
    // Whole copies only, or it could not be parsed.
    let mut script = piece.repeat(2048 / piece.len());
    while script.len() < 2048 {
        script.push_str("echo \"$name is done\"\n");
    }
    script
}

pub fn cases(world: &World) -> Vec<Case<'_>> {
    let variables: String = (0..).map(|n| format!("v{n}=$(a);")).take(MEBIBYTE / 10).collect();
    let commands = [
        ("ls", "ls".to_owned()),
        ("script", script()),
        ("commands", "ls -la a;".repeat(MEBIBYTE / 9)),
        ("addresses", "://".repeat(MEBIBYTE / 3)),
        ("variables", variables.chars().take(MEBIBYTE).collect()),
    ];
    let mut cases: Vec<Case<'_>> = commands
        .into_iter()
        .map(|(name, command)| {
            let case = Case::constant(format!("judge {name}"), shot(world, "PreToolUse", &command, ""));
            if matches!(name, "ls") { case.checked(nothing_said) } else { case }
        })
        .collect();
    let output = "test a::b ... ok\n".repeat(128);
    cases.push(
        Case::constant("judge output", shot(world, "PostToolUse", "cargo test", &output))
            .checked(nothing_said),
    );
    cases
}

fn nothing_said(spent: &Spent) -> Outcome<()> {
    if spent.output.is_empty() {
        Ok(())
    } else {
        Err(format!("said: {}", String::from_utf8_lossy(&spent.output)).into())
    }
}

fn payload(world: &World, event: &str, command: &str, output: &str) -> String {
    let home = &world.small.quiet;
    let payload = json!({
        "session_id": home.peers[0].session,
        "cwd": home.project,
        "permission_mode": "bypassPermissions",
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "what it is for"},
        "tool_response": {"stdout": output, "stderr": "", "interrupted": false, "isImage": false},
        "tool_use_id": "toolu_0001",
    });
    payload.to_string()
}

fn shot(world: &World, event: &str, command: &str, output: &str) -> Shot {
    let home = &world.small.quiet;
    Shot::new(world.baton(), &home.project)
        .arg("hook")
        .arg("claude")
        .arg(event)
        .arg("--guard")
        .arg("--home")
        .arg(&home.folder)
        .env("HOME", &home.project)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("CLAUDECODE", "1")
        .input(payload(world, event, command, output))
}
