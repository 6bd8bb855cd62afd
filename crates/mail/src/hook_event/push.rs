//! Mail for an idle session: a link pushes it, or a wake announces it.

use super::{Caller, Room, claim, recipient, takes_only_urgent};
use baton_agents::ContextLimit;
use baton_core::Error;
use baton_core::event::EventKind;
use baton_core::frame::{self, Budget};
use baton_core::id::{Nonce, OfferId};
use baton_core::mail::{Anchor, NewOffer, View, turn};
use baton_core::session;
use baton_core::time::Moment;
use baton_core::wake;
use baton_machine::{clock, process, random};
use baton_store::{HookStep, HookView, OfferedLetters, OpenOffer, Store};

/// Mail for a push into an idle session.
#[derive(Debug)]
pub struct Pushed {
    /// If the push can't be passed on, give this to [`give_back`](super::give_back).
    pub offer: OfferId,
    pub nonce: Nonce,
    /// The framed mail.
    pub text: String,
    /// The lines about it for the person at the terminal.
    pub glance: Option<String>,
    /// When the offer was made.
    pub made_at: Moment,
    /// It was pushed before, with an unknown result.
    pub again: bool,
}

/// Makes an offer of mail for a push into a session, if the session is idle. If an earlier push has
/// not been in any request since, it returns that again, with the same ids.
pub fn offer_mail(store: &mut Store, caller: &Caller<'_>, session_id: &str) -> Result<Option<Pushed>, Error> {
    let Some(view) = store.hook_view(caller.agent.name(), session_id)? else { return Ok(None) };
    let takes = caller.agent.context_limit(EventKind::IdleNotice);
    let only_urgent = takes_only_urgent(&view);
    let queued = view.queued && (!only_urgent || store.urgent_waits(view.participant)?);
    let seen = View { open: view.mail_offer.is_some(), queued, ..View::default() };
    if let Some(offer) = view.mail_offer.filter(|_| view.state == session::State::Idle) {
        return repeat_offer(store, caller, &view, offer, takes);
    }
    if !turn::may_push(view.state, seen, takes.is_some()) {
        return Ok(None);
    }
    let limits = (caller.limits)();
    if !limits.wake || !store.may_be_woken(view.participant)? {
        return Ok(None);
    }
    let (nonce, now) = (Nonce::from_random(random::id()), clock::now());
    let offer =
        NewOffer { anchor: Anchor::Push, turn: None, position: 0, read_from: 0, at_stop: false, only_urgent };
    let step = HookStep {
        session: view.session,
        participant: view.participant,
        settle: Vec::new(),
        state: None,
        transcript: None,
        turn: None,
        confirms: None,
        claim: Some(claim(offer, nonce.clone())),
        now,
    };
    let room = Room::of(caller.agent, EventKind::IdleNotice, &limits, false);
    let claimed = store.hook_step(&step, &limits, &process::is_alive, &|letters, waiting, nonce| {
        room.frame(recipient(caller.agent, &view), letters, waiting, nonce)
    })?;
    Ok(claimed.map(|claimed| Pushed {
        offer: claimed.offer,
        nonce: nonce.clone(),
        text: claimed.text,
        glance: Some(claimed.glance).filter(|_| limits.show_mail),
        made_at: now,
        again: false,
    }))
}

/// The line that wakes a session now, so that its prompt hook brings the mail. `None` unless it is
/// idle and mail waits. An open offer does not prevent a wake. The prompt is an occasion to search
/// for its proof, and brings the answer that it may lack.
pub fn wake_line(store: &mut Store, caller: &Caller<'_>, session_id: &str) -> Result<Option<String>, Error> {
    let Some(view) = store.hook_view(caller.agent.name(), session_id)? else { return Ok(None) };
    let takes = caller.agent.context_limit(EventKind::Woken).is_some();
    let seen = View { queued: view.queued, ..View::default() };
    let may = turn::may_push(view.state, seen, takes)
        && (caller.limits)().wake
        && store.may_be_woken(view.participant)?;
    if !may {
        return Ok(None);
    }
    let waiting = store.waiting_mail(view.participant, clock::now(), &process::is_alive)?;
    Ok((waiting.count > 0).then(|| wake::line::line(&waiting.senders, waiting.count)))
}

fn repeat_offer(
    store: &Store,
    caller: &Caller<'_>,
    view: &HookView,
    offer: OfferId,
    takes: Option<ContextLimit>,
) -> Result<Option<Pushed>, Error> {
    let ours = |open: &OpenOffer| open.anchor == Anchor::Push && open.session == view.session;
    // The process that made the push repeats it. Another process does so only if that one is dead,
    // because the model would answer both.
    let may = |open: &OpenOffer| open.claimer == process::this() || !process::is_alive(open.claimer);
    let Some(open) = store.open_offer(offer)?.filter(|open| ours(open) && may(open)) else { return Ok(None) };
    let OfferedLetters { letters, made_at } = store.offered_letters(offer)?;
    let ContextLimit { size, unit } = takes.unwrap_or(ContextLimit::NONE);
    let all = Budget { messages: letters.len(), size, unit };
    let framed = frame::render(recipient(caller.agent, view), &letters, letters.len(), &open.nonce, all);
    let glance = Some(framed.glance).filter(|_| (caller.limits)().show_mail);
    Ok(Some(Pushed { offer, nonce: open.nonce, text: framed.text, glance, made_at, again: true }))
}
