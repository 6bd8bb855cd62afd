//! The input and the surroundings of a hook of Claude Code 2.1.325.

use crate::Outcome;
use crate::child::Shot;
use crate::homes::{Home, Peer};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The length of a transcript after some hours of work.
const TRANSCRIPT_BYTES: usize = 1 << 20;
/// Where in the transcript the last turn began.
pub const LAST_TURN_START: usize = TRANSCRIPT_BYTES - (64 << 10);

/// A session's hook, called with an event.
pub fn hook(baton: &Path, home: &Home, peer: &Peer, transcript: &Path, event: &Event) -> Shot {
    let mut payload = json!({
        "session_id": peer.session,
        "transcript_path": transcript,
        "cwd": home.project,
        "prompt_id": event.turn(),
        "permission_mode": "bypassPermissions",
        "effort": {"level": "medium"},
        "hook_event_name": event.name(),
    });
    match event {
        Event::Tools => payload["tool_calls"] = tool_calls(),
        Event::Prompt(_) => {
            payload["prompt"] =
                json!("look into the failing test, and tell me what you find before you change anything")
        }
    }
    Shot::new(baton, &home.project)
        .arg("hook")
        .arg("claude")
        .arg("--home")
        .arg(&home.folder)
        .env("HOME", &home.project)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("CLAUDECODE", "1")
        .env("CLAUDE_CODE_ENTRYPOINT", "cli")
        .env("CLAUDE_CODE_SESSION_ID", &peer.session)
        .env("CLAUDE_PROJECT_DIR", &home.project)
        .env("CLAUDE_EFFORT", "medium")
        .input(payload.to_string())
}

pub enum Event {
    /// All tools of a response have ended, in the turn that was running.
    Tools,
    /// A prompt begins the turn of that number.
    Prompt(u32),
}

impl Event {
    fn name(&self) -> &'static str {
        match self {
            Self::Tools => "PostToolBatch",
            Self::Prompt(_) => "UserPromptSubmit",
        }
    }

    fn turn(&self) -> String {
        let number = match self {
            Self::Tools => 0,
            Self::Prompt(number) => 1 + number,
        };
        format!("2d583a68-c6fe-40f9-a0a9-{number:012x}")
    }
}

fn tool_calls() -> Value {
    let said = "   Compiling baton v0.1.0\n    Finished `dev` profile in 3.21s\n".repeat(16);
    json!([{
        "tool_name": "Bash",
        "tool_input": {"command": "cargo build 2>&1 | tail -40", "description": "Build"},
        "tool_use_id": "toolu_dc83d1b70d8547a1a854",
        "tool_response": said,
    }])
}

/// A transcript with prompts, answers and tool results.
pub fn transcript(file: PathBuf) -> Outcome<PathBuf> {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < TRANSCRIPT_BYTES {
        number += 1;
        let uuid = format!("{number:08x}-0000-4000-8000-000000000000");
        let line = match number % 4 {
            0 => {
                json!({"type": "user", "uuid": uuid, "promptId": uuid, "message": {"role": "user", "content": "and now the other one"}})
            }
            1 => {
                json!({"type": "assistant", "uuid": uuid, "message": {"id": format!("msg_{number}"), "role": "assistant",
                "content": [{"type": "text", "text": "I look at how the lock is taken, then at who waits for it. ".repeat(12)}]}})
            }
            2 => {
                json!({"type": "assistant", "uuid": uuid, "message": {"id": format!("msg_{number}"), "role": "assistant",
                "content": [{"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": {"command": "cargo test"}}]}})
            }
            _ => json!({"type": "user", "uuid": uuid, "message": {"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{number}"), "content": "test line::holds ... ok\n".repeat(90)}]}}),
        };
        writeln!(text, "{line}")?;
    }
    fs::write(&file, text)?;
    Ok(file)
}
