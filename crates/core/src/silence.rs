//! Why an ask has no answer yet: from what is known about the question and the one who was asked.

use crate::mail::Delivery;
use crate::session::State;

/// The reason, as a program reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Silence {
    /// Its session has ended.
    NotRunning,
    /// It waits for its own person.
    Dialog,
    /// Its turn goes on, and the question is not in its context yet.
    WorksUnseen,
    /// It has the question, and its turn goes on.
    Works,
    /// It had the question, and its turn ended without a reply.
    EndedWithoutReply,
    /// The question waits in its mailbox.
    Waits,
    /// A person was asked.
    Person,
}

impl Silence {
    pub const ALL: [Self; 7] = [
        Self::NotRunning,
        Self::Dialog,
        Self::WorksUnseen,
        Self::Works,
        Self::EndedWithoutReply,
        Self::Waits,
        Self::Person,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotRunning => "not_running",
            Self::Dialog => "dialog",
            Self::WorksUnseen => "works_unseen",
            Self::Works => "works",
            Self::EndedWithoutReply => "ended_without_reply",
            Self::Waits => "waits",
            Self::Person => "person",
        }
    }

    /// In words that follow a name. `why` says why mail for it waits, if it does.
    pub fn in_words(self, why: Option<&str>) -> String {
        let words = match (self, why) {
            (Self::NotRunning, _) => "is not running",
            (Self::Dialog, _) => "waits for its own person: a dialog is open there",
            (Self::WorksUnseen, _) => "works, and has not seen the question yet",
            (Self::Works, _) => "has seen the question, and works",
            (Self::EndedWithoutReply, _) => "has seen the question, and its turn ended without a reply",
            (Self::Waits, Some(why)) => return format!("has not seen the question: {why}"),
            (Self::Waits, None) => "is idle, and has not seen the question yet",
            (Self::Person, _) => "has not answered yet",
        };
        words.to_owned()
    }
}

/// Why there is no answer, from the state of the session that was asked and of the question there.
/// `None` for the state of a person, who has no session.
pub fn why(state: Option<State>, question: Delivery) -> Silence {
    let has_it = question == Delivery::Seen;
    match state {
        None => Silence::Person,
        Some(State::Gone) => Silence::NotRunning,
        Some(State::Blocked) => Silence::Dialog,
        Some(State::Busy) if has_it => Silence::Works,
        Some(State::Busy) => Silence::WorksUnseen,
        Some(State::Idle) if has_it => Silence::EndedWithoutReply,
        Some(State::Idle) => Silence::Waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_silence_has_a_code_and_words() {
        let table = [
            (None, Delivery::Queued, Silence::Person),
            (Some(State::Gone), Delivery::Seen, Silence::NotRunning),
            (Some(State::Blocked), Delivery::Queued, Silence::Dialog),
            (Some(State::Busy), Delivery::Offered, Silence::WorksUnseen),
            (Some(State::Busy), Delivery::Seen, Silence::Works),
            (Some(State::Idle), Delivery::Seen, Silence::EndedWithoutReply),
            (Some(State::Idle), Delivery::Queued, Silence::Waits),
        ];
        for (state, question, silence) in table {
            assert_eq!(why(state, question), silence);
        }
        for silence in Silence::ALL {
            assert!(silence.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
            assert!(!silence.in_words(None).is_empty());
        }
        let words = Silence::Waits.in_words(Some("do not disturb until 18:00"));
        assert_eq!(words, "has not seen the question: do not disturb until 18:00");
    }
}
