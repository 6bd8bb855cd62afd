//! Claude Code's tools: their names, and which fields mean what. The fields are those of 2.1.325.

use crate::call::{SHAPE, Shape};
use crate::tools::{Field, MCP, Row, Tools};
use baton_core::tool::ToolKind;

pub static TOOLS: Tools = Tools { rows: ROWS, mcp: &[MCP] };

/// Where the parts of a call are in its payloads. For a tool that failed, there is only the error,
/// with the tool's output.
pub const CALLS: Shape =
    Shape { output: &["/tool_response", "/error"], after: &["PostToolUse", FAILURE], ..SHAPE };

/// The event after a tool that failed. Its output can't be replaced.
pub(super) const FAILURE: &str = "PostToolUseFailure";

const ROWS: &[Row] = &[
    Row {
        names: &["Bash", "PowerShell", "Monitor"],
        kind: ToolKind::Shell,
        fields: &[(Field::Command, "command")],
    },
    Row { names: &["Read"], kind: ToolKind::Read, fields: &[(Field::Path, "file_path")] },
    Row {
        names: &["NotebookRead"],
        kind: ToolKind::Read,
        fields: &[(Field::Path, "notebook_path"), (Field::Path, "file_path")],
    },
    Row {
        names: &["Write"],
        kind: ToolKind::Write,
        fields: &[(Field::Path, "file_path"), (Field::Content, "content")],
    },
    Row {
        names: &["Edit", "MultiEdit"],
        kind: ToolKind::Edit,
        fields: &[(Field::Path, "file_path"), (Field::Content, "new_string")],
    },
    Row {
        names: &["NotebookEdit"],
        kind: ToolKind::Edit,
        fields: &[(Field::Path, "notebook_path"), (Field::Path, "file_path"), (Field::Content, "new_source")],
    },
    Row { names: &["LS"], kind: ToolKind::List, fields: &[(Field::Path, "path")] },
    Row {
        names: &["Glob"],
        kind: ToolKind::Glob,
        fields: &[(Field::Path, "path"), (Field::Glob, "pattern")],
    },
    Row { names: &["Grep"], kind: ToolKind::Grep, fields: &[(Field::Path, "path"), (Field::Glob, "glob")] },
    Row { names: &["WebFetch"], kind: ToolKind::Fetch, fields: &[(Field::Url, "url")] },
    Row { names: &["WebSearch"], kind: ToolKind::Search, fields: &[] },
    Row { names: &["Agent", "Task"], kind: ToolKind::Task, fields: &[] },
    Row { names: &["Workflow"], kind: ToolKind::Task, fields: &[(Field::Path, "scriptPath")] },
    Row {
        names: &[
            "Skill",
            "TodoWrite",
            "AskUserQuestion",
            "ToolSearch",
            "SendMessage",
            "ListAgents",
            "ReportFindings",
        ],
        kind: ToolKind::Other,
        fields: &[],
    },
    Row {
        names: &[
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskUpdate",
            "TaskOutput",
            "TaskStop",
            "BashOutput",
            "KillShell",
        ],
        kind: ToolKind::Other,
        fields: &[],
    },
    Row {
        names: &["EnterPlanMode", "ExitPlanMode", "ScheduleWakeup", "CronCreate", "CronDelete", "CronList"],
        kind: ToolKind::Other,
        fields: &[],
    },
    Row {
        names: &["EnterWorktree", "ExitWorktree"],
        kind: ToolKind::Other,
        fields: &[(Field::Path, "path")],
    },
];
