//! Codex's tools: their names, and which fields mean what. Its hooks say `Bash` for every tool that
//! runs a command. The other names are those of its requests, as of 0.166.0. No hook runs for
//! `write_stdin`.

use crate::call::{SHAPE, Shape};
use crate::tools::{Field, MCP, Row, Tools};
use baton_core::tool::ToolKind;

pub static TOOLS: Tools = Tools { rows: ROWS, mcp: &[MCP] };

/// Where the parts of a call are in its payloads.
pub const CALLS: Shape = Shape { cwd_is_of_call: true, ..SHAPE };

const ROWS: &[Row] = &[
    Row {
        names: &["Bash", "shell", "local_shell"],
        kind: ToolKind::Shell,
        fields: &[(Field::Command, "command"), (Field::Folder, "workdir")],
    },
    Row {
        names: &["exec_command"],
        kind: ToolKind::Shell,
        fields: &[(Field::Command, "cmd"), (Field::Folder, "workdir")],
    },
    Row { names: &["write_stdin"], kind: ToolKind::TypedInput, fields: &[(Field::Typed, "chars")] },
    Row { names: &["view_image"], kind: ToolKind::Read, fields: &[(Field::Path, "path")] },
    // The field is called `command`, and contains the patch.
    Row { names: &["apply_patch"], kind: ToolKind::Patch, fields: &[(Field::Patch, "command")] },
    Row { names: &["web_search"], kind: ToolKind::Search, fields: &[] },
    Row { names: &["spawn_agent", "send_message", "followup_task"], kind: ToolKind::Task, fields: &[] },
    Row {
        names: &["send_input", "resume_agent", "wait_agent", "close_agent"],
        kind: ToolKind::Task,
        fields: &[],
    },
    // Hooks put a namespace before the name, except for `spawn_agent`.
    Row {
        names: &[
            "multi_agent_v1send_input",
            "multi_agent_v1resume_agent",
            "multi_agent_v1wait_agent",
            "multi_agent_v1close_agent",
        ],
        kind: ToolKind::Task,
        fields: &[],
    },
    Row {
        names: &["update_plan", "request_user_input", "get_goal", "create_goal", "update_goal"],
        kind: ToolKind::Other,
        fields: &[],
    },
];
