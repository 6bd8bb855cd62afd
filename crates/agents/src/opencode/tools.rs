//! OpenCode's tools: their names, and which fields mean what. The fields are those of 1.18.33. A
//! tool of an MCP server is `server_tool`, and OpenCode's own tools may have underscores too.

use crate::call::{SHAPE, Shape};
use crate::tools::{Field, McpName, Row, Tools};
use baton_core::tool::ToolKind;

pub static TOOLS: Tools =
    Tools { rows: ROWS, mcp: &[McpName { prefix: "", separator: "_", ambiguous: true }] };

/// Where the parts of a call are in what our plugin forwards: OpenCode's own fields.
pub const CALLS: Shape = Shape {
    tool: &["/tool"],
    input: &["/args"],
    output: &["/output"],
    session: &["/sessionID", "/session_id"],
    call: &["/callID"],
    cwd: &["/directory", "/cwd"],
    before: &["tool.execute.before"],
    after: &["tool.execute.after"],
    notes_after: true,
    refusing_exit: None,
    ..SHAPE
};

const ROWS: &[Row] = &[
    Row {
        names: &["bash"],
        kind: ToolKind::Shell,
        fields: &[(Field::Command, "command"), (Field::Folder, "workdir")],
    },
    Row { names: &["read"], kind: ToolKind::Read, fields: &[(Field::Path, "filePath")] },
    Row {
        names: &["write"],
        kind: ToolKind::Write,
        fields: &[(Field::Path, "filePath"), (Field::Content, "content")],
    },
    Row {
        names: &["edit"],
        kind: ToolKind::Edit,
        fields: &[(Field::Path, "filePath"), (Field::Content, "newString")],
    },
    Row { names: &["apply_patch", "patch"], kind: ToolKind::Patch, fields: &[(Field::Patch, "patchText")] },
    Row { names: &["list"], kind: ToolKind::List, fields: &[(Field::Path, "path")] },
    Row {
        names: &["glob"],
        kind: ToolKind::Glob,
        fields: &[(Field::Path, "path"), (Field::Glob, "pattern")],
    },
    Row {
        names: &["grep"],
        kind: ToolKind::Grep,
        fields: &[(Field::Path, "path"), (Field::Glob, "include")],
    },
    Row { names: &["webfetch"], kind: ToolKind::Fetch, fields: &[(Field::Url, "url")] },
    Row { names: &["websearch"], kind: ToolKind::Search, fields: &[] },
    // Its `command` is the name of a slash command, not of a shell command.
    Row { names: &["task"], kind: ToolKind::Task, fields: &[] },
    Row { names: &["todowrite", "todoread", "skill", "question"], kind: ToolKind::Other, fields: &[] },
];
