//! Native tool calls as canonical ones.
//!
//! What an agent calls its tools is a table in its folder ([`Tools`]): names, kinds, and which input fields mean what. One function,
//! [`tool`], reads all of them. Pure: whether a path is a folder, or a server exists, is for the caller to find out.

use crate::install::shell;
use baton_core::tool::{ToolKind, ToolUse};
use serde_json::Value;

/// An agent's tools.
#[derive(Debug)]
pub struct Tools {
    /// Its own tools.
    pub rows: &'static [Row],
    /// How it spells the tools of MCP servers, most certain first.
    pub mcp: &'static [McpName],
}

/// Tools that mean the same and have the same fields.
#[derive(Debug)]
pub struct Row {
    /// The agent's names for them.
    pub names: &'static [&'static str],
    /// What they do.
    pub kind: ToolKind,
    /// Which fields of the input mean what. Where several mean the same, all paths count, and of the rest the first that is there.
    pub fields: &'static [(Field, &'static str)],
}

/// What a field of a tool's input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A path, or a list of paths.
    Path,
    /// A command, or its words.
    Command,
    /// The folder that a command runs in.
    Folder,
    /// A patch.
    Patch,
    /// What is to stand in the file.
    Content,
    /// An address, or a text that holds it.
    Url,
    /// Text for a running command.
    Typed,
}

/// One way to spell a tool of an MCP server: prefix, server, separator, tool.
#[derive(Debug)]
pub struct McpName {
    /// What such a name begins with.
    pub prefix: &'static str,
    /// What stands between server and tool; empty where the name has no server.
    pub separator: &'static str,
    /// Whether only the name of a server that is known makes it one.
    pub ambiguous: bool,
}

/// `mcp__server__tool`, as most agents have it.
pub const MCP: McpName = McpName { prefix: "mcp__", separator: "__", ambiguous: false };

/// Fields by which a tool that is in no table is judged: all that tables name, and close relatives.
const ANY_FIELDS: &[(Field, &str)] = &[
    (Field::Path, "path"),
    (Field::Path, "paths"),
    (Field::Path, "file_path"),
    (Field::Path, "filePath"),
    (Field::Path, "absolute_path"),
    (Field::Path, "target_file"),
    (Field::Path, "notebook_path"),
    (Field::Path, "dir_path"),
    (Field::Path, "file"),
    (Field::Path, "files"),
    (Field::Command, "command"),
    (Field::Command, "cmd"),
    (Field::Folder, "workdir"),
    (Field::Folder, "working_directory"),
    (Field::Folder, "cwd"),
    (Field::Patch, "patchText"),
    (Field::Patch, "patch"),
    (Field::Content, "content"),
    (Field::Content, "file_text"),
    (Field::Content, "new_string"),
    (Field::Content, "newString"),
    (Field::Content, "new_str"),
    (Field::Content, "new_source"),
    (Field::Url, "url"),
    (Field::Typed, "chars"),
    (Field::Typed, "input"),
];

/// What a call of an agent's tool is. `servers` are the MCP servers that are known to be there.
pub fn tool(tools: &Tools, name: &str, input: &Value, servers: &[&str]) -> ToolUse {
    let row = row(tools, name);
    let mut call = ToolUse::new(kind(tools, name, servers), name);
    let fields = row.map_or(ANY_FIELDS, |row| row.fields);
    if let (Some(row), Value::String(_)) = (row, input) {
        // A tool that takes one text and no object: its table begins with what that is.
        row.fields.iter().take(1).for_each(|(field, _)| fill(&mut call, *field, input));
    }
    for (field, key) in fields {
        if let Some(value) = input.get(*key) {
            fill(&mut call, *field, value);
        }
    }
    call
}

/// What a tool of this name does.
pub fn kind(tools: &Tools, name: &str, servers: &[&str]) -> ToolKind {
    match row(tools, name) {
        Some(row) => row.kind.clone(),
        None => tools
            .mcp
            .iter()
            .find_map(|spelling| of_server(spelling, name, servers))
            .unwrap_or(ToolKind::Unknown),
    }
}

fn row(tools: &Tools, name: &str) -> Option<&'static Row> {
    tools.rows.iter().find(|row| row.names.contains(&name))
}

/// The server and tool that a name spells. A known server goes before a guess, and of two that fit the longer one.
fn of_server(spelling: &McpName, name: &str, servers: &[&str]) -> Option<ToolKind> {
    let rest = name.strip_prefix(spelling.prefix)?;
    if spelling.separator.is_empty() {
        return (!rest.is_empty()).then(|| ToolKind::Mcp { server: None, tool: rest.to_owned() });
    }
    let known = servers
        .iter()
        .filter_map(|server| Some((*server, rest.strip_prefix(server)?.strip_prefix(spelling.separator)?)))
        .max_by_key(|(server, _)| server.len());
    let guessed = || rest.split_once(spelling.separator).filter(|_| !spelling.ambiguous);
    let (server, tool) = known.or_else(guessed)?;
    let whole = !server.is_empty() && !tool.is_empty();
    whole.then(|| ToolKind::Mcp { server: Some(server.to_owned()), tool: tool.to_owned() })
}

fn fill(call: &mut ToolUse, field: Field, value: &Value) {
    let slot = match field {
        Field::Path => {
            call.paths.extend(texts(value).into_iter().map(str::to_owned));
            return;
        }
        Field::Command => &mut call.command,
        Field::Folder => &mut call.folder,
        Field::Patch => &mut call.patch,
        Field::Content => &mut call.content,
        Field::Url => &mut call.url,
        Field::Typed => &mut call.typed,
    };
    let texts = texts(value);
    if slot.is_none() && !texts.is_empty() {
        *slot = Some(match (field, value) {
            // A list of words runs as it stands: what is in one word is not several.
            (Field::Command, Value::Array(_)) => {
                texts.iter().map(|word| shell::quote(word)).collect::<Vec<_>>().join(" ")
            }
            _ => texts.join(" "),
        });
    }
}

/// A text, or the texts of a list; empty ones say nothing.
fn texts(value: &Value) -> Vec<&str> {
    let all = match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect::<Vec<_>>(),
    };
    all.into_iter().filter(|text| !text.is_empty()).collect()
}
