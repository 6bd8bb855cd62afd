//! Pi's tools: their names, and which fields mean what. The fields are those of 0.87.1; MCP came
//! with a later version. `user_bash` is a command that the user typed.

use crate::call::{SHAPE, Shape};
use crate::tools::{Field, MCP, Row, Tools};
use baton_core::tool::ToolKind;

pub static TOOLS: Tools = Tools { rows: ROWS, mcp: &[MCP] };

/// Where the parts of a call are in what our extension forwards: Pi's own fields.
pub const CALLS: Shape = Shape {
    tool: &["/toolName"],
    input: &["/input"],
    output: &["/content"],
    call: &["/toolCallId", "/tool_use_id"],
    before: &["tool_call"],
    after: &["tool_result"],
    notes_after: true,
    refusing_exit: None,
    ..SHAPE
};

const ROWS: &[Row] = &[
    Row { names: &["bash", "user_bash"], kind: ToolKind::Shell, fields: &[(Field::Command, "command")] },
    Row { names: &["read"], kind: ToolKind::Read, fields: &[(Field::Path, "path")] },
    Row {
        names: &["write"],
        kind: ToolKind::Write,
        fields: &[(Field::Path, "path"), (Field::Content, "content")],
    },
    Row { names: &["edit"], kind: ToolKind::Edit, fields: &[(Field::Path, "path")] },
    Row { names: &["ls"], kind: ToolKind::List, fields: &[(Field::Path, "path")] },
    Row {
        names: &["find"],
        kind: ToolKind::Glob,
        fields: &[(Field::Path, "path"), (Field::Glob, "pattern")],
    },
    Row { names: &["grep"], kind: ToolKind::Grep, fields: &[(Field::Path, "path"), (Field::Glob, "glob")] },
];
