//! Cursor CLI's tools: their names, and which fields mean what. From public sources only, because
//! the program could not be run.

use crate::call::{SHAPE, Shape};
use crate::tools::{Field, McpName, Row, Tools};
use baton_core::tool::ToolKind;

pub static TOOLS: Tools =
    Tools { rows: ROWS, mcp: &[McpName { prefix: "MCP:", separator: "", ambiguous: false }] };

/// Where the parts of a call are in its payloads.
pub const CALLS: Shape = Shape {
    output: &["/tool_output", "/result_json"],
    session: &["/conversation_id"],
    cwd: &["/cwd", "/workspace_roots/0"],
    before: &["preToolUse", "beforeMCPExecution"],
    after: &["postToolUse", "afterMCPExecution"],
    notes_after: true,
    // Setup does not use these, but some versions may know no others.
    of_one_tool: &[("beforeShellExecution", "Shell"), ("beforeReadFile", "Read")],
    ..SHAPE
};

const ROWS: &[Row] = &[
    Row {
        names: &["Shell"],
        kind: ToolKind::Shell,
        fields: &[(Field::Command, "command"), (Field::Folder, "working_directory"), (Field::Folder, "cwd")],
    },
    Row {
        names: &["Read"],
        kind: ToolKind::Read,
        fields: &[(Field::Path, "path"), (Field::Path, "file_path"), (Field::Path, "target_file")],
    },
    Row {
        names: &["Write"],
        kind: ToolKind::Write,
        fields: &[
            (Field::Path, "path"),
            (Field::Path, "file_path"),
            (Field::Path, "target_file"),
            (Field::Content, "content"),
        ],
    },
    Row { names: &["Delete"], kind: ToolKind::Delete, fields: &[(Field::Path, "path")] },
    Row { names: &["Grep"], kind: ToolKind::Grep, fields: &[(Field::Path, "path"), (Field::Glob, "glob")] },
    Row { names: &["Task"], kind: ToolKind::Task, fields: &[] },
];
