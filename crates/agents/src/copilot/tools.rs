//! Copilot CLI's tools: their names, and which fields mean what. The fields are those of 1.0.102.
//!
//! Hooks whose event begins with a capital use Claude Code's names: `Read` for `view`, `Write` for
//! `create`, `Agent` for `task`, and `Edit` for each tool that changes a file, also by a patch.
//! `view` on a folder lists it. Only the disk shows which it is, so here it reads. Hooks spell a
//! tool of an MCP server `server-tool`, permission requests `server/tool`.

use crate::call::{SHAPE, Shape};
use crate::tools::{Field, McpName, Row, Tools};
use baton_core::tool::ToolKind;

pub static TOOLS: Tools = Tools {
    rows: ROWS,
    mcp: &[
        McpName { prefix: "", separator: "/", ambiguous: false },
        McpName { prefix: "", separator: "-", ambiguous: true },
    ],
};

/// Where the parts of a call are in its payloads: of events that begin with a small letter, and of
/// those with a capital.
pub const CALLS: Shape = Shape {
    tool: &["/toolName", "/tool_name"],
    input: &["/toolArgs", "/tool_input"],
    output: &["/toolResult", "/tool_result"],
    session: &["/sessionId", "/session_id"],
    call: &[],
    before: &["preToolUse", "PreToolUse"],
    after: &["postToolUse", "PostToolUse"],
    ..SHAPE
};

const ROWS: &[Row] = &[
    Row {
        names: &["bash", "powershell", "Bash"],
        kind: ToolKind::Shell,
        fields: &[(Field::Command, "command")],
    },
    Row {
        names: &["write_bash", "write_powershell"],
        kind: ToolKind::TypedInput,
        fields: &[(Field::Typed, "input")],
    },
    Row {
        names: &["view", "show_file", "read", "Read"],
        kind: ToolKind::Read,
        fields: &[(Field::Path, "path")],
    },
    Row {
        names: &["create", "write", "Write"],
        kind: ToolKind::Write,
        fields: &[(Field::Path, "path"), (Field::Content, "file_text")],
    },
    Row {
        names: &["edit", "str_replace_editor", "Edit"],
        kind: ToolKind::Edit,
        fields: &[
            (Field::Patch, "patch"),
            (Field::Patch, "input"),
            (Field::Path, "path"),
            (Field::Content, "new_str"),
            (Field::Content, "file_text"),
        ],
    },
    Row {
        names: &["apply_patch"],
        kind: ToolKind::Patch,
        fields: &[(Field::Patch, "patch"), (Field::Patch, "input")],
    },
    Row { names: &["ls"], kind: ToolKind::List, fields: &[(Field::Path, "path")] },
    Row {
        names: &["glob", "Glob"],
        kind: ToolKind::Glob,
        fields: &[(Field::Path, "paths"), (Field::Path, "path"), (Field::Glob, "pattern")],
    },
    Row {
        names: &["grep", "rg", "Grep"],
        kind: ToolKind::Grep,
        fields: &[(Field::Path, "paths"), (Field::Path, "path"), (Field::Glob, "glob")],
    },
    Row { names: &["web_fetch", "WebFetch"], kind: ToolKind::Fetch, fields: &[(Field::Url, "url")] },
    Row { names: &["web_search", "WebSearch"], kind: ToolKind::Search, fields: &[] },
    Row {
        names: &["task", "Agent", "read_agent", "write_agent", "list_agents"],
        kind: ToolKind::Task,
        fields: &[],
    },
    Row { names: &["read_bash", "stop_bash", "list_bash"], kind: ToolKind::Other, fields: &[] },
    Row {
        names: &["read_powershell", "stop_powershell", "list_powershell"],
        kind: ToolKind::Other,
        fields: &[],
    },
    Row {
        names: &["skill", "sql", "session_store_sql", "fetch_copilot_cli_documentation"],
        kind: ToolKind::Other,
        fields: &[],
    },
    Row {
        names: &["update_todo", "TodoWrite", "ask_user", "AskUserQuestion"],
        kind: ToolKind::Other,
        fields: &[],
    },
];
