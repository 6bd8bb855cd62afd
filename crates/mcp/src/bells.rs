//! The doorbells that this server listens to, one task for each participant that has asked something through it.
//!
//! They are kept until the server ends: the kernel takes up to 20 ms to close a watch, and that would stand between an answer and whoever
//! waits for it. Where no watch is to be had, the sweep of each wait finds the answer a little later.

use baton_core::id::ParticipantId;
use baton_core::{Code, Error};
use baton_mail::bell::{Bell, Watch};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// A count that grows with each ring.
pub(crate) type Rings = watch::Receiver<u64>;

/// The bells, by whose they are.
#[derive(Default)]
pub(crate) struct Bells {
    heard: Mutex<HashMap<ParticipantId, Rings>>,
}

impl Bells {
    /// Listens at a participant's door: whatever is rung after this is heard.
    pub(crate) fn listen(&self, home: &Path, participant: ParticipantId) -> Result<Rings, Error> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = heard.get(&participant).filter(|rings| rings.has_changed().is_ok());
        let mut rings = match known {
            Some(rings) => rings.clone(),
            None => {
                let bell = asynchronous(Bell::listen(home, participant)?)?;
                let (count, rings) = watch::channel(0);
                tokio::spawn(hear(bell, count));
                heard.insert(participant, rings.clone());
                rings
            }
        };
        rings.mark_unchanged();
        Ok(rings)
    }
}

async fn hear(mut bell: AsyncFd<Watch>, count: watch::Sender<u64>) {
    while let Ok(mut ready) = bell.readable_mut().await {
        ready.get_inner_mut().drain();
        ready.clear_ready();
        count.send_modify(|count| *count += 1);
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe code; a Watch owns its descriptor and never exchanges it, which is all that one asks for"
)]
fn asynchronous(bell: Bell) -> Result<AsyncFd<Watch>, Error> {
    AsyncFd::with_interest(bell.into_watch(), Interest::READABLE)
        .map_err(|error| Error::new(Code::Internal, format!("can't wait for a bell: {error}")))
}
