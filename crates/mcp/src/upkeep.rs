//! Keeps the store small while the server is idle: soon after the start, then every ten minutes.
//! Never in a hook's call.

use crate::server_state::ServerState;
use baton_core::Error;
use baton_store::{Store, Upkeep};
use std::sync::Arc;
use std::time::Duration;

/// The client gets its first answers before this.
const START_DELAY: Duration = Duration::from_secs(2);
const UPKEEP_INTERVAL: Duration = Duration::from_secs(600);
/// Rounds in a row. What is left waits for the next interval.
const MAX_ROUNDS: usize = 100;

/// Runs until the server ends.
pub(crate) async fn run(server: Arc<ServerState>) {
    tokio::time::sleep(START_DELAY).await;
    loop {
        if let Err(error) = rounds(&server).await {
            server.log(&format!("mcp: upkeep failed: {error}"));
        }
        tokio::time::sleep(UPKEEP_INTERVAL).await;
    }
}

async fn rounds(server: &ServerState) -> Result<(), Error> {
    // Upkeep must not create a home that is unused or deleted.
    if !Store::path(&server.options.home).exists() {
        return Ok(());
    }
    let rules = (server.options.limits)();
    for _ in 0..MAX_ROUNDS {
        if server.with_store(|store| store.upkeep(&rules, baton_machine::clock::now()))? == Upkeep::default()
        {
            break;
        }
        tokio::task::yield_now().await;
    }
    server.tidy();
    Ok(())
}
