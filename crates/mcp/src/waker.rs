//! Wakes the session that this server serves, if its senders did not.
//!
//! A sender wakes its recipient. But the sender may be killed between its commit and the wake, a
//! wake may never be confirmed, and a session may stop with mail left over. The server lives as
//! long as the session, so it checks: a moment after each ring of the bell, again while mail waits,
//! and every twenty seconds for a ring that never came.

use crate::binding;
use crate::server_state::ServerState;
use baton_core::Error;
use baton_core::wake::Outcome;
use baton_mail::wake::{self, WakeRequest};
use baton_store::{Participant, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// By then the sender has made its own wake.
const RING_DELAY: Duration = Duration::from_millis(1_500);
/// A ring that never came, because its sender was killed, is noticed after this time.
const SWEEP_INTERVAL: Duration = Duration::from_secs(20);
/// How often to check whom this server serves, until that is known: the first hook of a session
/// records it, and nothing announces that.
const UNBOUND_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The checks while mail waits become rarer, up to this interval.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(20);

/// Runs until the server ends.
pub(crate) async fn run(server: Arc<ServerState>) {
    let mut next = Instant::now() + SWEEP_INTERVAL;
    let mut pause = RING_DELAY;
    loop {
        let rang = wait_for_ring(&server, next).await;
        if rang {
            next = Instant::now() + RING_DELAY;
            pause = RING_DELAY;
            continue;
        }
        let waits = match wake_if_mail_waits(&server).await {
            Ok(waits) => waits,
            Err(error) => {
                server.log(&format!("mcp: the check for a wake failed: {error}"));
                false
            }
        };
        pause = if waits { (pause * 2).min(MAX_POLL_INTERVAL) } else { RING_DELAY };
        next = Instant::now() + if waits { pause } else { SWEEP_INTERVAL };
    }
}

/// Waits for the bell of the session until a time. The server may serve another session than last
/// time, so this looks up the bell again.
async fn wait_for_ring(server: &Arc<ServerState>, until: Instant) -> bool {
    let mine = participant(server).ok().flatten();
    if let Some(mine) = &mine {
        server.askers.add(mine.id);
    }
    let rings = mine.and_then(|mine| server.bells.listen(&server.options.home, mine.id).ok());
    let Some(mut rings) = rings else {
        tokio::time::sleep_until(until.min(Instant::now() + UNBOUND_POLL_INTERVAL)).await;
        return false;
    };
    tokio::select! {
        rung = rings.changed() => rung.is_ok(),
        () = tokio::time::sleep_until(until) => false,
    }
}

/// The participant that this server wakes. Does not create a home that is unused.
fn participant(server: &Arc<ServerState>) -> Result<Option<Participant>, Error> {
    if !Store::path(&server.options.home).exists() {
        return Ok(None);
    }
    server.with_store(|store| binding::participant_to_wake(server, store))
}

/// Wakes the session if mail waits for it and no other process has. True if this should check again
/// soon.
async fn wake_if_mail_waits(server: &Arc<ServerState>) -> Result<bool, Error> {
    let Some(mut mine) = participant(server)? else { return Ok(false) };
    if mine.unread == 0 {
        return Ok(false);
    }
    let woken = server
        .in_background(move |store, server| {
            let rules = (server.options.limits)();
            let request =
                WakeRequest { home: &server.options.home, rules: &rules, wanted: true, by_hand: false };
            wake::wake(store, &mut mine, &request)
        })
        .await?;
    Ok(!matches!(
        woken.outcome,
        Outcome::SkippedDisabled | Outcome::NoRoute | Outcome::NoClient | Outcome::Unconfirmed
    ))
}
