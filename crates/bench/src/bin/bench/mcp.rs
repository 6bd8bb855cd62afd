//! MCP rows: placeholder until the server is merged.

use crate::table::Row;
use crate::world::World;

/// The rows.
pub fn rows(_world: &World, _rounds: u32) -> Vec<Row> {
    vec![Row::new("MCP").note("not measured: the server is not there yet")]
}
