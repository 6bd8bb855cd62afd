//! Wakes the session that this server serves, if its senders did not.
//!
//! A sender wakes its recipient. But the sender may be killed between its commit and the wake, a
//! wake may never be confirmed, and a session may stop with mail left over. The server lives as
//! long as the session, so it checks: a moment after each ring of the bell, again while mail waits,
//! and every twenty seconds for a ring that never came. While it does, no other process follows the
//! mail of this session. It also has mail of other sessions followed, if their process was killed.

use crate::binding;
use crate::server_state::ServerState;
use baton_core::Error;
use baton_core::id::ParticipantId;
use baton_core::wake::{FIRST_LOOK, Look, must_look_again, next_pause};
use baton_machine::bell::Following;
use baton_mail::wake::{self, WakeRequest, follow};
use baton_store::{Participant, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A ring that never came, because its sender was killed, is noticed after this time.
const SWEEP_INTERVAL: Duration = Duration::from_secs(20);
/// How often to check whom this server serves, until that is known: the first hook of a session
/// records it, and nothing announces that.
const UNBOUND_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Runs until the server ends.
pub(crate) async fn run(server: Arc<ServerState>) {
    let mut next = Instant::now() + SWEEP_INTERVAL;
    let mut pause = FIRST_LOOK;
    let mut watch = None;
    loop {
        let rang = wait_for_ring(&server, next, &mut watch).await;
        if rang {
            // Later rings don't move it: mail that comes all the time must not keep this waiting.
            next = next.min(Instant::now() + FIRST_LOOK.to_std());
            pause = FIRST_LOOK;
        }
        if Instant::now() < next {
            continue;
        }
        let checked = wake_if_mail_waits(&server).await;
        let waits = checked.unwrap_or_else(|error| {
            server.log(&format!("mcp: the check for a wake failed: {error}"));
            false
        });
        next = Instant::now() + if waits { pause.to_std() } else { SWEEP_INTERVAL };
        pause = if waits { next_pause(pause) } else { FIRST_LOOK };
        if let Err(error) = adopt_stranded(&server).await {
            server.log(&format!("mcp: the check of other sessions failed: {error}"));
        }
    }
}

/// The participant whose mail this server follows, and the lock that says so.
struct Watched {
    participant: ParticipantId,
    lock: Following,
}

/// Has mail of other sessions followed, if no process does.
async fn adopt_stranded(server: &Arc<ServerState>) -> Result<(), Error> {
    if !Store::path(&server.options.home).exists() {
        return Ok(());
    }
    server
        .in_background(|store, server| {
            let options = &server.options;
            follow::adopt_stranded(store, &options.home, &(options.limits)(), &options.program)
        })
        .await
}

/// Waits for the bell of the session until a time. The server may serve another session than last
/// time, so this looks up the bell again.
async fn wait_for_ring(server: &Arc<ServerState>, until: Instant, watch: &mut Option<Watched>) -> bool {
    let mine = participant(server).ok().flatten();
    if let Some(mine) = &mine {
        server.askers.add(mine.id);
    }
    let rings = mine.as_ref().and_then(|mine| server.bells.listen(&server.options.home, mine.id).ok());
    // After the bell, whose folder this needs. Without a bell this server hears nothing.
    follow_mail_of(mine.filter(|_| rings.is_some()).map(|mine| mine.id), server, watch);
    let Some(mut rings) = rings else {
        tokio::time::sleep_until(until.min(Instant::now() + UNBOUND_POLL_INTERVAL)).await;
        return false;
    };
    tokio::select! {
        rung = rings.changed() => rung.is_ok(),
        () = tokio::time::sleep_until(until) => false,
    }
}

/// Says that this server follows the mail of that participant, as soon as no other process does.
fn follow_mail_of(mine: Option<ParticipantId>, server: &ServerState, watch: &mut Option<Watched>) {
    watch.take_if(|watched| Some(watched.participant) != mine);
    if let Some(watched) = watch {
        watched.lock.renew();
    } else if let Some(participant) = mine {
        // Without the lock a second process follows the same mail, which does no harm.
        let lock = Following::queue(&server.options.home, participant).ok();
        *watch = lock.map(|lock| Watched { participant, lock });
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
    server
        .in_background(move |store, server| {
            let rules = (server.options.limits)();
            let home = &server.options.home;
            let request = WakeRequest { home, rules: &rules, wanted: true, by_hand: false, follower: None };
            let woken = wake::wake(store, &mut mine, &request)?;
            let waits = store.may_be_woken(mine.id)?;
            Ok(must_look_again(&Look { outcome: woken.outcome, route: woken.route, waits }))
        })
        .await
}
