//! `log`: the trail of everything that happened.

use super::CommandContext;
use crate::print::{Out, Tone, done, text};
use baton_core::error::Exit;
use baton_core::{Error, limits};
use baton_store::TrailRow;
use clap::Args;
use serde_json::json;

// `baton log`
#[derive(Debug, Args)]
pub struct Log {
    /// Keep printing as things happen
    #[arg(short, long)]
    follow: bool,
    /// Start with this many of the last lines
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    limit: u32,
}

impl Log {
    /// Shows the trail, one line (or one JSON document a line) each.
    pub fn run(&self, context: &CommandContext, out: &Out) -> Result<Exit, Error> {
        let store = context.store()?;
        let rows = store.trail_tail(usize::try_from(self.limit).unwrap_or(usize::MAX))?;
        let mut last = rows.last().map_or(0, |row| row.id);
        show(out, &rows)?;
        if !self.follow {
            return done();
        }
        loop {
            // The trail has no one recipient and so no bell: a person's view may lag by a second.
            std::thread::sleep(limits::SWEEP_INTERVAL.to_std() / 5);
            let rows = store.trail_after(last, 1000)?;
            last = rows.last().map_or(last, |row| row.id);
            show(out, &rows)?;
        }
    }
}

fn show(out: &Out, rows: &[TrailRow]) -> Result<(), Error> {
    for row in rows {
        let document = json!({
            "id": row.id, "at": row.at.to_rfc3339(), "kind": row.kind, "participant": row.participant,
            "message_id": row.message, "detail": row.detail,
        });
        out.data(&document, || {
            let parts = [row.participant.as_deref(), row.message.as_deref(), row.detail.as_deref()];
            let rest: Vec<_> =
                parts.into_iter().flatten().map(|part| baton_core::frame::shown(part, 100)).collect();
            text![
                out.tone(Tone::Dim, &row.at.to_rfc3339()),
                "  ",
                out.tone(Tone::Bold, &row.kind),
                "  ",
                rest.join("  ")
            ]
        })?;
    }
    Ok(())
}
