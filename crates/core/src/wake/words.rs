//! What became of a message, in words for the person who sent it.

use super::Outcome;

/// What is known about one recipient beside the outcome of its wake.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recipient<'a> {
    /// It is the person's mailbox, or a script's. No wake is made for it.
    pub is_outsider: bool,
    pub is_gone: bool,
    /// Until when it does not want to be disturbed, in words: `18:00`. `None` if it is not known or
    /// has no end.
    pub dnd_until: Option<&'a str>,
    /// Why no route leads to it: `not in tmux`. `None` if it is not known.
    pub no_route: Option<&'a str>,
}

/// What happens to a message that was accepted.
pub fn fate(outcome: Outcome, recipient: &Recipient<'_>) -> String {
    if recipient.is_outsider {
        return "waits in the inbox (`baton inbox`)".to_owned();
    }
    match reason(outcome, recipient) {
        Some(reason) => format!("waits: {reason}"),
        None => match outcome {
            Outcome::PendingTurnEnd => "joins its running turn",
            Outcome::SkippedDeduped => "comes with the wake that is on its way",
            _ => "woken",
        }
        .to_owned(),
    }
}

/// Why mail for a session waits; `None` if it is on its way.
pub fn reason(outcome: Outcome, recipient: &Recipient<'_>) -> Option<String> {
    let text = match outcome {
        Outcome::Pushed
        | Outcome::Typed
        | Outcome::Confirmed
        | Outcome::PendingTurnEnd
        | Outcome::SkippedDeduped => return None,
        Outcome::Held => "its agent holds the wake until the person there agrees",
        Outcome::SkippedBusy => "it is busy",
        Outcome::SkippedDialog => "a dialog is open there",
        Outcome::SkippedDraft => "its person is typing",
        Outcome::SkippedDnd => {
            let until = recipient.dnd_until.map(|until| format!(" until {until}")).unwrap_or_default();
            return Some(format!("do not disturb{until}"));
        }
        Outcome::SkippedDebounced => "it was woken a moment ago, and is tried again",
        Outcome::SkippedRateLimited => "it was woken too often within an hour",
        Outcome::SkippedDisabled => "waking is off; mail comes with its next prompt",
        Outcome::NoClient if recipient.is_gone => "it is not running",
        Outcome::NoClient => "no person is in front of it",
        Outcome::NoRoute => {
            let why = recipient.no_route.map(|why| format!(" ({why})")).unwrap_or_default();
            return Some(format!("it can't be woken{why}; mail comes with its next prompt"));
        }
        Outcome::Unconfirmed => "it did not react to the wake",
    };
    Some(text.to_owned())
}

/// How a session can be woken now, for a list of sessions. `route` is the best one.
pub fn forecast(outcome: Outcome, route: Option<&str>, recipient: &Recipient<'_>) -> String {
    if recipient.is_outsider {
        return "reads its own inbox".to_owned();
    }
    match outcome {
        Outcome::Pushed | Outcome::Typed => match route {
            Some(route) => format!("yes, by {route}"),
            None => "yes".to_owned(),
        },
        Outcome::PendingTurnEnd => "mail joins its turn".to_owned(),
        Outcome::SkippedDeduped => "a wake is on its way".to_owned(),
        Outcome::SkippedDisabled => "waking is off".to_owned(),
        Outcome::NoRoute => match recipient.no_route {
            Some(why) => format!("can't be woken: {why}"),
            None => "can't be woken".to_owned(),
        },
        other => reason(other, recipient).unwrap_or_else(|| "yes".to_owned()),
    }
}

/// What the last wake came to, in one or two words.
pub fn became(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        None | Some(Outcome::Pushed | Outcome::Typed) => "under way",
        Some(Outcome::Confirmed) => "worked",
        Some(Outcome::Held) => "held by its agent",
        Some(Outcome::Unconfirmed) => "had no effect",
        Some(_) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_says_what_happens_to_the_message() {
        let session = Recipient::default();
        for outcome in Outcome::ALL {
            let words = fate(outcome, &session);
            assert!(!words.contains('_') && words.len() < 80, "{words}");
            let forecast = forecast(outcome, Some("socket"), &session);
            assert!(!forecast.is_empty() && !forecast.contains('_'), "{forecast}");
        }
        let table: &[(Outcome, Recipient<'_>, &str)] = &[
            (Outcome::Pushed, session, "woken"),
            (Outcome::PendingTurnEnd, session, "joins its running turn"),
            (Outcome::SkippedDeduped, session, "comes with the wake that is on its way"),
            (Outcome::SkippedDnd, session, "waits: do not disturb"),
            (
                Outcome::SkippedDnd,
                Recipient { dnd_until: Some("18:00"), ..session },
                "waits: do not disturb until 18:00",
            ),
            (Outcome::NoClient, Recipient { is_gone: true, ..session }, "waits: it is not running"),
            (Outcome::NoClient, session, "waits: no person is in front of it"),
            (
                Outcome::NoRoute,
                Recipient { no_route: Some("not in tmux"), ..session },
                "waits: it can't be woken (not in tmux); mail comes with its next prompt",
            ),
            (
                Outcome::NoRoute,
                Recipient { is_outsider: true, ..session },
                "waits in the inbox (`baton inbox`)",
            ),
        ];
        for (outcome, recipient, words) in table {
            assert_eq!(fate(*outcome, recipient), *words);
        }
    }
}
