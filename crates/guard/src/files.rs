//! Which files a call touches, and how.

use crate::path;
use crate::shell::Analysis;
use crate::world::World;
use baton_core::tool::ToolUse;

/// One file or folder, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Its path.
    pub path: String,
}

/// A path with its links resolved, as far as the world knows.
pub fn real(path: &str, world: &dyn World) -> String {
    let clean = path::join("/", path);
    world.real_path(&clean).unwrap_or(clean)
}

/// The files that commands touch.
pub fn of_commands(_analysis: &Analysis, _world: &dyn World) -> Vec<Touch> {
    Vec::new()
}

/// The files that a tool touches.
pub fn of_tool(_tool: &ToolUse, _world: &dyn World) -> Vec<Touch> {
    Vec::new()
}
