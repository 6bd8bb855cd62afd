//! Keeping the store bounded while nothing else is to be done: soon after the start, then each ten minutes. Never in a hook's call.

use crate::desk::Desk;
use baton_core::Error;
use baton_store::{Store, Upkeep};
use std::sync::Arc;
use std::time::Duration;

/// The client gets its first answers before this.
const FIRST: Duration = Duration::from_secs(2);
const EACH: Duration = Duration::from_secs(600);
/// Rounds of one occasion; what is left then waits for the next one.
const ROUNDS: usize = 100;

/// Runs until the server ends.
pub(crate) async fn keep(desk: Arc<Desk>) {
    tokio::time::sleep(FIRST).await;
    loop {
        if let Err(error) = rounds(&desk).await {
            desk.log(&format!("mcp: upkeep failed: {error}"));
        }
        tokio::time::sleep(EACH).await;
    }
}

async fn rounds(desk: &Desk) -> Result<(), Error> {
    // A home that nobody has used yet, or that is gone, is not made for this.
    if !Store::path(&desk.options.home).exists() {
        return Ok(());
    }
    let rules = (desk.options.limits)();
    for _ in 0..ROUNDS {
        if desk.mail(|store| store.upkeep(&rules, baton_mail::now()))? == Upkeep::default() {
            break;
        }
        tokio::task::yield_now().await;
    }
    desk.tidy();
    Ok(())
}
