//! What happens to a message, in words for people: gathers the facts that the words need.

use crate::wake;
use baton_core::Error;
use baton_core::session::State;
use baton_core::time::Moment;
use baton_core::wake::Outcome;
use baton_core::wake::words::{self, Recipient};
use baton_machine::clock;
use baton_store::{Participant, Store};

/// What happens to a message for this recipient, after a wake with this outcome.
pub fn of_message(store: &Store, recipient: &Participant, outcome: Outcome) -> Result<String, Error> {
    with_facts(store, recipient, outcome, |facts| words::fate(outcome, facts))
}

/// How this participant can be woken now.
pub fn of_wake(store: &Store, participant: &Participant, forecast: &wake::Forecast) -> Result<String, Error> {
    let route = forecast.routes.first().map(|route| route.as_str());
    with_facts(store, participant, forecast.outcome, |facts| words::forecast(forecast.outcome, route, facts))
}

/// Why mail for this participant waits; `None` if it is on its way.
pub fn why_waiting(
    store: &Store,
    participant: &Participant,
    outcome: Outcome,
) -> Result<Option<String>, Error> {
    with_facts(store, participant, outcome, |facts| words::reason(outcome, facts))
}

/// Reads the facts that this outcome needs, and no others.
fn with_facts<T>(
    store: &Store,
    participant: &Participant,
    outcome: Outcome,
    say: impl FnOnce(&Recipient<'_>) -> T,
) -> Result<T, Error> {
    let until = match outcome {
        Outcome::SkippedDnd => store
            .dnd_until(participant.id)?
            .filter(|until| *until != Moment(i64::MAX))
            .map(|until| clock::local(until).short(&clock::local(clock::now()))),
        _ => None,
    };
    let no_route = (outcome == Outcome::NoRoute).then(|| wake::why_no_route(participant));
    Ok(say(&Recipient {
        is_outsider: participant.is_outsider(),
        is_gone: participant.state == State::Gone,
        dnd_until: until.as_deref(),
        no_route,
    }))
}
