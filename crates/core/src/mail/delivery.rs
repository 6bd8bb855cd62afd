//! The states of one (message, recipient), and which may follow which.

/// Where one message is on its way to one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Accepted, waiting for the recipient.
    Queued,
    /// Printed for the recipient, not yet proven to be in its context.
    Offered,
    /// Proven to be in the recipient's context, or printed for a person.
    Seen,
    /// The recipient did not take it in time.
    Expired,
    /// Offered several times, never taken.
    Undeliverable,
    /// Offered twice to a session that leaves no proof.
    Unconfirmed,
}

impl Delivery {
    pub const ALL: [Delivery; 6] =
        [Self::Queued, Self::Offered, Self::Seen, Self::Expired, Self::Undeliverable, Self::Unconfirmed];

    /// The name in the store and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Offered => "offered",
            Self::Seen => "seen",
            Self::Expired => "expired",
            Self::Undeliverable => "undeliverable",
            Self::Unconfirmed => "unconfirmed",
        }
    }

    /// Reads what [`as_str`](Self::as_str) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether the state is final.
    pub fn is_end(self) -> bool {
        !matches!(self, Self::Queued | Self::Offered)
    }

    /// The only table of legal steps.
    ///
    /// | from | to |
    /// |---|---|
    /// | queued | offered, seen (a person read it), expired, undeliverable |
    /// | offered | seen, queued, undeliverable, unconfirmed |
    /// | any end | – |
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => {
                matches!(next, Self::Offered | Self::Seen | Self::Expired | Self::Undeliverable)
            }
            Self::Offered => {
                matches!(next, Self::Seen | Self::Queued | Self::Undeliverable | Self::Unconfirmed)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_never_left_and_names_round_trip() {
        for state in Delivery::ALL {
            assert_eq!(Delivery::parse(state.as_str()), Some(state));
            assert_eq!(state.is_end(), !Delivery::ALL.into_iter().any(|next| state.may_become(next)));
        }
    }
}
