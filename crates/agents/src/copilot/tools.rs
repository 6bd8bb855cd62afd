//! Copilot CLI's tools: what it calls them, and which of their fields mean what. The fields are those of 1.0.102. `view` on a
//! folder lists it; only the disk knows, so here it reads. Hooks spell a tool of an MCP server `server-tool`, permission requests
//! `server/tool`.

use crate::tools::{Field, McpName, Row, Tools};
use baton_core::tool::ToolKind;

/// Copilot CLI's tools.
pub static TOOLS: Tools = Tools {
    rows: ROWS,
    mcp: &[
        McpName { prefix: "", separator: "/", ambiguous: false },
        McpName { prefix: "", separator: "-", ambiguous: true },
    ],
};

const ROWS: &[Row] = &[
    // `Bash` is what hooks with a capital first letter call it.
    Row {
        names: &["bash", "Bash", "powershell"],
        kind: ToolKind::Shell,
        fields: &[(Field::Command, "command")],
    },
    Row {
        names: &["write_bash", "write_powershell"],
        kind: ToolKind::TypedInput,
        fields: &[(Field::Typed, "input")],
    },
    Row { names: &["view", "show_file", "read"], kind: ToolKind::Read, fields: &[(Field::Path, "path")] },
    Row {
        names: &["create", "write"],
        kind: ToolKind::Write,
        fields: &[(Field::Path, "path"), (Field::Content, "file_text")],
    },
    Row {
        names: &["edit"],
        kind: ToolKind::Edit,
        fields: &[(Field::Path, "path"), (Field::Content, "new_str")],
    },
    Row {
        names: &["str_replace_editor"],
        kind: ToolKind::Edit,
        fields: &[(Field::Path, "path"), (Field::Content, "new_str"), (Field::Content, "file_text")],
    },
    Row {
        names: &["apply_patch"],
        kind: ToolKind::Patch,
        fields: &[(Field::Patch, "patch"), (Field::Patch, "input")],
    },
    Row { names: &["ls"], kind: ToolKind::List, fields: &[(Field::Path, "path")] },
    Row { names: &["glob"], kind: ToolKind::Glob, fields: &[(Field::Path, "paths"), (Field::Path, "path")] },
    Row {
        names: &["grep", "rg"],
        kind: ToolKind::Grep,
        fields: &[(Field::Path, "paths"), (Field::Path, "path")],
    },
    Row { names: &["web_fetch"], kind: ToolKind::Fetch, fields: &[(Field::Url, "url")] },
    Row { names: &["task", "read_agent", "write_agent", "list_agents"], kind: ToolKind::Task, fields: &[] },
    Row {
        names: &[
            "read_bash",
            "stop_bash",
            "list_bash",
            "read_powershell",
            "stop_powershell",
            "list_powershell",
        ],
        kind: ToolKind::Other,
        fields: &[],
    },
    Row {
        names: &["skill", "sql", "session_store_sql", "fetch_copilot_cli_documentation"],
        kind: ToolKind::Other,
        fields: &[],
    },
];
