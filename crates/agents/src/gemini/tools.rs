//! Gemini CLI's tools: their names, and which fields mean what. The fields are those of 0.61.0 and
//! of older versions.

use crate::call::{SHAPE, Shape};
use crate::tools::{Field, McpName, Row, Tools};
use baton_core::tool::ToolKind;

pub static TOOLS: Tools =
    Tools { rows: ROWS, mcp: &[McpName { prefix: "mcp_", separator: "_", ambiguous: false }] };

/// Where the parts of a call are in its payloads.
pub const CALLS: Shape = Shape {
    // The rest of the response is for the user.
    output: &["/tool_response/llmContent"],
    call: &[],
    before: &["BeforeTool"],
    after: &["AfterTool"],
    notes_after: true,
    ..SHAPE
};

const ROWS: &[Row] = &[
    Row {
        names: &["run_shell_command"],
        kind: ToolKind::Shell,
        fields: &[(Field::Command, "command"), (Field::Folder, "dir_path"), (Field::Folder, "directory")],
    },
    Row {
        names: &["read_file"],
        kind: ToolKind::Read,
        fields: &[(Field::Path, "file_path"), (Field::Path, "absolute_path")],
    },
    Row {
        names: &["read_many_files"],
        kind: ToolKind::Read,
        fields: &[(Field::Path, "paths"), (Field::Path, "include")],
    },
    Row {
        names: &["write_file"],
        kind: ToolKind::Write,
        fields: &[(Field::Path, "file_path"), (Field::Content, "content")],
    },
    Row {
        names: &["replace"],
        kind: ToolKind::Edit,
        fields: &[(Field::Path, "file_path"), (Field::Content, "new_string")],
    },
    Row {
        names: &["list_directory"],
        kind: ToolKind::List,
        fields: &[(Field::Path, "dir_path"), (Field::Path, "path")],
    },
    Row {
        names: &["glob"],
        kind: ToolKind::Glob,
        fields: &[(Field::Path, "dir_path"), (Field::Path, "path"), (Field::Glob, "pattern")],
    },
    Row {
        names: &["grep_search", "search_file_content"],
        kind: ToolKind::Grep,
        fields: &[
            (Field::Path, "dir_path"),
            (Field::Path, "path"),
            (Field::Glob, "include"),
            (Field::Glob, "include_pattern"),
        ],
    },
    // The addresses are in the prompt.
    Row { names: &["web_fetch"], kind: ToolKind::Fetch, fields: &[(Field::Url, "prompt")] },
    Row { names: &["google_web_search"], kind: ToolKind::Search, fields: &[] },
    Row { names: &["invoke_agent"], kind: ToolKind::Task, fields: &[] },
    Row {
        names: &[
            "write_todos",
            "save_memory",
            "ask_user",
            "update_topic",
            "activate_skill",
            "enter_plan_mode",
            "exit_plan_mode",
        ],
        kind: ToolKind::Other,
        fields: &[],
    },
    Row {
        names: &["list_background_processes", "read_background_output"],
        kind: ToolKind::Other,
        fields: &[],
    },
];
