//! The canonical tool call: what every agent's own tools are turned into.
//!
//! An agent's names and fields are in its table (crate `agents`); here is only what they mean. Nothing here decides whether a call is
//! allowed.

/// What a tool does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Runs a command in a shell.
    Shell,
    /// Types into a command that runs already, so what it runs need not be a whole command.
    TypedInput,
    /// Reads files.
    Read,
    /// Writes a file anew.
    Write,
    /// Changes parts of a file.
    Edit,
    /// Changes files that only the patch itself names.
    Patch,
    /// Deletes a file.
    Delete,
    /// Lists a folder.
    List,
    /// Finds files by name.
    Glob,
    /// Finds text in files.
    Grep,
    /// Gets something from an address.
    Fetch,
    /// Asks a search engine.
    Search,
    /// Starts or steers another agent.
    Task,
    /// A tool of an MCP server.
    Mcp {
        /// The server's name in the agent's configuration; `None` where the agent does not say it.
        server: Option<String>,
        /// The tool's own name.
        tool: String,
    },
    /// Known, and touches nothing outside the conversation.
    Other,
    /// In no table: to be judged by its fields.
    Unknown,
}

impl ToolKind {
    /// The kind in one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::TypedInput => "typed-input",
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::Fetch => "fetch",
            Self::Search => "search",
            Self::Task => "task",
            Self::Mcp { .. } => "mcp",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }
}

/// One call of a tool, whatever agent made it. A field is set only where the tool has it and the call gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// What the tool does.
    pub kind: ToolKind,
    /// The agent's own name for it.
    pub native: String,
    /// Every path that the call names.
    pub paths: Vec<String>,
    /// The command.
    pub command: Option<String>,
    /// Where the command runs, if not where the agent works.
    pub folder: Option<String>,
    /// The patch, which names its files itself.
    pub patch: Option<String>,
    /// What is to stand in the file.
    pub content: Option<String>,
    /// The address, or the text that holds it.
    pub url: Option<String>,
    /// What is typed.
    pub typed: Option<String>,
}

impl ToolUse {
    /// A call of which only the kind and the name are known.
    pub fn new(kind: ToolKind, native: impl Into<String>) -> Self {
        Self {
            kind,
            native: native.into(),
            paths: Vec::new(),
            command: None,
            folder: None,
            patch: None,
            content: None,
            url: None,
            typed: None,
        }
    }

    /// The path, where the call names one at least.
    pub fn path(&self) -> Option<&str> {
        self.paths.first().map(String::as_str)
    }
}
