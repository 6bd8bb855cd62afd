//! Looking after the wakes of the session that this server serves.
//!
//! Whoever sends wakes. But a sender may be killed between his commit and the wake, a wake may never be confirmed, and a session may stop with mail left over.
//! The server lives as long as the session, so it looks: a moment after each ring of the doorbell, for as long as mail waits, and every twenty seconds for a
//! ring that never came.

use crate::binding;
use crate::desk::Desk;
use baton_core::Error;
use baton_core::wake::Outcome;
use baton_mail::wake::{self, Wish};
use baton_store::{Participant, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What the sender does himself is done by then.
const AFTER_RING: Duration = Duration::from_millis(1_500);
/// For a ring that never came: its sender was killed before it.
const SWEEP: Duration = Duration::from_secs(20);
/// Until it is known whom this server serves: a session is registered by its first hook, and nothing announces that.
const UNBOUND: Duration = Duration::from_secs(2);
/// Looks while mail waits grow rarer up to this.
const RAREST: Duration = Duration::from_secs(20);

/// Runs until the server ends.
pub(crate) async fn keep(desk: Arc<Desk>) {
    let mut next = Instant::now() + SWEEP;
    let mut pause = AFTER_RING;
    loop {
        let rang = rung(&desk, next).await;
        if rang {
            next = Instant::now() + AFTER_RING;
            pause = AFTER_RING;
            continue;
        }
        let waits = match look(&desk).await {
            Ok(waits) => waits,
            Err(error) => {
                desk.log(&format!("mcp: a look at the wakes failed: {error}"));
                false
            }
        };
        pause = if waits { (pause * 2).min(RAREST) } else { AFTER_RING };
        next = Instant::now() + if waits { pause } else { SWEEP };
    }
}

/// Waits for the bell of the session until then. The session may have become another since the last time, so the bell is asked for anew.
async fn rung(desk: &Arc<Desk>, until: Instant) -> bool {
    let mine = bound(desk).ok().flatten();
    if let Some(mine) = &mine {
        desk.askers.add(mine.id);
    }
    let rings = mine.and_then(|mine| desk.bells.listen(&desk.options.home, mine.id).ok());
    let Some(mut rings) = rings else {
        tokio::time::sleep_until(until.min(Instant::now() + UNBOUND)).await;
        return false;
    };
    tokio::select! {
        rung = rings.changed() => rung.is_ok(),
        () = tokio::time::sleep_until(until) => false,
    }
}

/// Whom this server serves. A home that nobody has used yet is not made for this.
fn bound(desk: &Arc<Desk>) -> Result<Option<Participant>, Error> {
    if !Store::path(&desk.options.home).exists() {
        return Ok(None);
    }
    desk.mail(|store| binding::bound(desk, store))
}

/// Wakes the session if mail waits for it and nobody else does. True if it is to be looked at again soon.
async fn look(desk: &Arc<Desk>) -> Result<bool, Error> {
    let Some(mut mine) = bound(desk)? else { return Ok(false) };
    if mine.unread == 0 {
        return Ok(false);
    }
    let woken = desk
        .aside(move |store, desk| {
            let rules = (desk.options.limits)();
            let wish = Wish { home: &desk.options.home, rules: &rules, wanted: true, by_hand: false };
            wake::wake(store, &mut mine, &wish)
        })
        .await?;
    Ok(!matches!(
        woken.outcome,
        Outcome::SkippedDisabled | Outcome::NoRoute | Outcome::NoClient | Outcome::Unconfirmed
    ))
}
