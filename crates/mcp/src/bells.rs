//! The bells that this server listens to, with one task for each participant that has asked
//! something through it.
//!
//! They stay open until the server ends: the kernel takes up to 20 ms to close a watch, which would
//! delay an answer. If the system gives no watch, the sweep of each wait finds the answer a little
//! later.

use baton_core::id::ParticipantId;
use baton_core::{Code, Error};
use baton_machine::bell::{Bell, Watch};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// A count that grows with each ring.
pub(crate) type Rings = watch::Receiver<u64>;

#[derive(Default)]
pub(crate) struct Bells {
    rings_by_participant: Mutex<HashMap<ParticipantId, Rings>>,
}

impl Bells {
    /// Listens to a participant's bell. The returned count grows with every ring after this call.
    pub(crate) fn listen(&self, home: &Path, participant: ParticipantId) -> Result<Rings, Error> {
        let mut rings_by_participant =
            self.rings_by_participant.lock().unwrap_or_else(PoisonError::into_inner);
        let known = rings_by_participant.get(&participant).filter(|rings| rings.has_changed().is_ok());
        let mut rings = match known {
            Some(rings) => rings.clone(),
            None => {
                let bell = into_async(Bell::listen(home, participant)?)?;
                let (count, rings) = watch::channel(0);
                tokio::spawn(count_rings(bell, count));
                rings_by_participant.insert(participant, rings.clone());
                rings
            }
        };
        rings.mark_unchanged();
        Ok(rings)
    }
}

async fn count_rings(mut bell: AsyncFd<Watch>, count: watch::Sender<u64>) {
    while let Ok(mut ready) = bell.readable_mut().await {
        ready.get_inner_mut().drain();
        ready.clear_ready();
        count.send_modify(|count| *count += 1);
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe code; it needs an owned descriptor that never changes, and a Watch has that"
)]
fn into_async(bell: Bell) -> Result<AsyncFd<Watch>, Error> {
    AsyncFd::with_interest(bell.into_watch(), Interest::READABLE)
        .map_err(|error| Error::new(Code::Internal, format!("can't wait for a bell: {error}")))
}
