//! The canonical tool call, which every agent's own tools become.
//!
//! An agent's names and fields are in its table (crate `agents`); this module only has their
//! meaning. It does not decide whether a call is allowed.

/// What a tool does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Runs a command in a shell.
    Shell,
    /// Types into a command that runs already. The text need not be a whole command.
    TypedInput,
    Read,
    /// Writes a whole file.
    Write,
    /// Changes parts of a file.
    Edit,
    /// Changes files that only the patch itself names.
    Patch,
    Delete,
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
        /// The server's name in the agent's configuration; `None` if the agent does not say it.
        server: Option<String>,
        tool: String,
    },
    /// A known tool that touches nothing outside the conversation.
    Other,
    /// A tool in no table. Its fields are all that is known.
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

/// One call of a tool, of any agent. A field is set only if the tool has it and the call gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// What the tool does.
    pub kind: ToolKind,
    /// The agent's own name for it.
    pub native: String,
    /// Every path that the call names.
    pub paths: Vec<String>,
    /// Patterns that say which files are looked for or searched.
    pub globs: Vec<String>,
    pub command: Option<String>,
    /// Where the command runs, if not where the agent works.
    pub folder: Option<String>,
    /// The patch, which names its files itself.
    pub patch: Option<String>,
    /// The new content of the file.
    pub content: Option<String>,
    /// The address, or the text that holds it.
    pub url: Option<String>,
    /// What is typed.
    pub typed: Option<String>,
    /// Why the input is not understood, so that the effect of a known tool is unclear.
    pub unread: Option<String>,
}

impl ToolUse {
    /// A call of which only the kind and the name are known.
    pub fn new(kind: ToolKind, native: impl Into<String>) -> Self {
        Self {
            kind,
            native: native.into(),
            paths: Vec::new(),
            globs: Vec::new(),
            command: None,
            folder: None,
            patch: None,
            content: None,
            url: None,
            typed: None,
            unread: None,
        }
    }

    /// The first path, if the call names any.
    pub fn path(&self) -> Option<&str> {
        self.paths.first().map(String::as_str)
    }
}
