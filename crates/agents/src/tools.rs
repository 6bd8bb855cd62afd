//! Turns native tool calls into canonical ones.
//!
//! Each agent's folder has a table of its tools ([`Tools`]): names, kinds, and which input fields
//! mean what. [`tool`] reads all tables. Pure: the caller finds out whether a path is a folder or
//! whether a server exists.

mod meant;

use crate::install::shell;
use baton_core::tool::{ToolKind, ToolUse};
use serde_json::Value;

#[derive(Debug)]
pub struct Tools {
    /// The agent's own tools.
    pub rows: &'static [Row],
    /// How the agent spells the tools of MCP servers, most certain spelling first.
    pub mcp: &'static [McpName],
}

/// Tools with the same meaning and the same fields.
#[derive(Debug)]
pub struct Row {
    /// The agent's names for these tools.
    pub names: &'static [&'static str],
    pub kind: ToolKind,
    /// Which input fields mean what. If several mean the same, all paths count; of the others the
    /// first that exists.
    pub fields: &'static [(Field, &'static str)],
}

/// The meaning of an input field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A path, or a list of paths.
    Path,
    /// A pattern, or a list of patterns, that says which files to find or search.
    Glob,
    /// A command, or the list of its words.
    Command,
    /// The folder that a command runs in.
    Folder,
    Patch,
    /// The new content of the file.
    Content,
    /// An address, or a text that contains one.
    Url,
    /// Text to type into a running command.
    Typed,
}

/// One spelling of a tool of an MCP server: prefix, server, separator, tool.
#[derive(Debug)]
pub struct McpName {
    pub prefix: &'static str,
    /// The text between server and tool; empty if the name contains no server.
    pub separator: &'static str,
    /// Whether the name counts only if it contains a known server.
    pub ambiguous: bool,
}

/// `mcp__server__tool`, as most agents write it.
pub const MCP: McpName = McpName { prefix: "mcp__", separator: "__", ambiguous: false };

/// The fields by which the guard judges a tool that is in no table: all that tables name, and
/// similar ones.
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
    (Field::Path, "filename"),
    (Field::Path, "file_name"),
    (Field::Path, "fileName"),
    (Field::Path, "filepath"),
    (Field::Path, "uri"),
    (Field::Path, "uris"),
    (Field::Path, "source"),
    (Field::Path, "src"),
    (Field::Path, "destination"),
    (Field::Path, "dest"),
    (Field::Path, "directory"),
    (Field::Path, "dir"),
    (Field::Path, "folder"),
    (Field::Command, "command"),
    (Field::Command, "cmd"),
    (Field::Command, "script"),
    (Field::Command, "shell_command"),
    (Field::Command, "command_line"),
    (Field::Command, "commandLine"),
    (Field::Command, "argv"),
    (Field::Command, "program"),
    (Field::Command, "executable"),
    (Field::Command, "binary"),
    (Field::Command, "args"),
    (Field::Command, "arguments"),
    (Field::Folder, "workdir"),
    (Field::Folder, "working_directory"),
    (Field::Folder, "cwd"),
    (Field::Patch, "patchText"),
    (Field::Patch, "patch"),
    (Field::Patch, "diff"),
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

const MAX_NESTED_OBJECTS: usize = 4;

/// Reads a call of an agent's tool. `servers` are the MCP servers that are known to exist.
///
/// If a known tool's input lacks a field that the guard judges, or has it in another form, similar
/// fields count instead, and the result says that it was not understood.
pub fn tool(tools: &Tools, name: &str, input: &Value, servers: &[&str]) -> ToolUse {
    let mut call = ToolUse::new(kind(tools, name, servers), name);
    let Some(row) = row(tools, name) else {
        fill_any(&mut call, input, 0);
        meant::fill(&mut call, input);
        return call;
    };
    if let Value::String(_) = input {
        // A tool whose input is one text, not an object: the first field of its table says what the
        // text is.
        row.fields.iter().take(1).for_each(|(field, _)| fill(&mut call, *field, input));
    }
    for (field, key) in row.fields {
        if let Some(value) = input.get(*key) {
            fill(&mut call, *field, value);
        }
    }
    meant::run_by_shell(&mut call, input);
    if let Some(missing) = missing(row, &call, input) {
        call.unread = Some(missing);
        // The field may have another name. A text to type elsewhere may be a patch here.
        fill_any(&mut call, input, 0);
        if row.kind == ToolKind::Patch && call.patch.is_none() {
            call.patch = call.typed.take().or_else(|| call.content.clone());
        }
    }
    call
}

/// Which judged field a call lacks or has in an unknown form; `None` if the call is understood.
fn missing(row: &Row, call: &ToolUse, input: &Value) -> Option<String> {
    let needed = match row.kind {
        ToolKind::Shell => Field::Command,
        ToolKind::Patch => Field::Patch,
        ToolKind::Read | ToolKind::Write | ToolKind::Edit | ToolKind::Delete => Field::Path,
        ToolKind::Fetch => Field::Url,
        _ => return odd_field(row, input),
    };
    let keys: Vec<&str> =
        row.fields.iter().filter(|(field, _)| *field == needed).map(|(_, key)| *key).collect();
    let has = match needed {
        Field::Path => !call.paths.is_empty() || call.patch.is_some(),
        Field::Patch => call.patch.is_some(),
        Field::Url => call.url.is_some(),
        _ => call.command.is_some(),
    };
    // An empty text counts as present: it does nothing.
    let is_empty = keys.iter().any(|key| input.get(*key) == Some(&Value::String(String::new())));
    if keys.is_empty() || has || is_empty {
        return odd_field(row, input);
    }
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    Some(format!("a call of {} has no {}", call.native, keys.join(" or ")))
}

/// A judged field that contains something other than texts.
fn odd_field(row: &Row, input: &Value) -> Option<String> {
    let judged = |field: Field| {
        matches!(
            field,
            Field::Path | Field::Glob | Field::Command | Field::Folder | Field::Patch | Field::Typed
        )
    };
    let (_, key) = row
        .fields
        .iter()
        .find(|(field, key)| judged(*field) && input.get(*key).is_some_and(|value| !is_texts(value)))?;
    Some(format!("`{key}` is no text and no list of texts"))
}

fn is_texts(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Null => true,
        Value::Array(values) => values.iter().all(Value::is_string),
        _ => false,
    }
}

/// Collects everything in an input that looks like a judged field, at any depth that calls have.
fn fill_any(call: &mut ToolUse, input: &Value, depth: usize) {
    for (field, key) in ANY_FIELDS {
        let Some(value) = input.get(*key) else { continue };
        match field {
            // The words of a command may be beside it.
            Field::Command if *key == "args" && call.command.is_some() && value.is_array() => {
                let words = texts(value).into_iter().map(shell::quote);
                let whole: Vec<String> = call.command.take().into_iter().chain(words).collect();
                call.command = Some(whole.join(" "));
            }
            _ => fill(call, *field, value),
        }
    }
    if depth >= MAX_NESTED_OBJECTS {
        return;
    }
    match input {
        Value::Object(fields) => {
            fields
                .values()
                .filter(|value| value.is_object() || value.is_array())
                .for_each(|value| fill_any(call, value, depth + 1));
        }
        Value::Array(values) => {
            values
                .iter()
                .filter(|value| value.is_object())
                .take(256)
                .for_each(|value| fill_any(call, value, depth + 1));
        }
        _ => {}
    }
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

/// Which input fields of a tool mean what; `None` for a tool that is in no table.
pub fn fields(tools: &Tools, name: &str) -> Option<&'static [(Field, &'static str)]> {
    row(tools, name).map(|row| row.fields)
}

fn row(tools: &Tools, name: &str) -> Option<&'static Row> {
    tools.rows.iter().find(|row| row.names.contains(&name))
}

/// The server and tool in a name. A known server wins over a guess, and of two that fit the longer
/// name wins.
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
        Field::Glob => {
            call.globs.extend(texts(value).into_iter().map(str::to_owned));
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
            // A list of words runs unchanged: a space inside a word does not split it.
            (Field::Command, Value::Array(_)) => {
                texts.iter().map(|word| shell::quote(word)).collect::<Vec<_>>().join(" ")
            }
            _ => texts.join(" "),
        });
    }
}

/// A text, or the texts of a list. Empty texts are skipped.
fn texts(value: &Value) -> Vec<&str> {
    let all = match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect::<Vec<_>>(),
    };
    all.into_iter().filter(|text| !text.is_empty()).collect()
}
