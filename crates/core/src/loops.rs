//! Cuts endless loops of messages between agents, by a hop limit and a budget per pair.
//!
//! Only messages between two agents' sessions count; a person or a script is never limited. Each
//! reply adds one hop. The count starts again when a person took a turn in the sender's session
//! after the chain's last message.

use crate::limits::Limits;
use crate::time::Moment;
use crate::{Code, Error};

/// What is known about a message from one agent to another.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// The message it replies to.
    pub parent: Option<Parent>,
    /// The sender's last turn that a person began.
    pub person_turn: Option<Moment>,
    /// Messages between the two, either way, within the window.
    pub recent: u32,
}

/// A message that another one replies to.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    pub hops: u32,
    pub sent_at: Moment,
}

/// The hops of the new message, or the error that cuts the loop.
pub fn admit(traffic: Traffic, limits: &Limits) -> Result<u32, Error> {
    let hops = match traffic.parent {
        None => 0,
        Some(parent) if traffic.person_turn.is_some_and(|turn| turn > parent.sent_at) => 0,
        Some(parent) => parent.hops + 1,
    };
    if hops > limits.hops {
        return Err(Error::new(
            Code::BudgetExhausted,
            format!(
                "this is reply {hops} in a row between agents without a person's turn; {} are allowed",
                limits.hops
            ),
        )
        .hint("stop here and tell your user; their next prompt starts the count again"));
    }
    if traffic.recent >= limits.pair_messages {
        return Err(Error::new(
            Code::BudgetExhausted,
            format!(
                "{} messages between you two in {}: that is the budget",
                traffic.recent,
                limits.pair_window.coarse()
            ),
        )
        .hint("wait, or put the rest into one message; the budget is `limits.pair_messages` in the configuration"));
    }
    Ok(hops)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(parent: Option<(u32, i64)>, person: Option<i64>, recent: u32) -> Traffic {
        let parent = parent.map(|(hops, at)| Parent { hops, sent_at: Moment(at) });
        Traffic { parent, person_turn: person.map(Moment), recent }
    }

    #[test]
    fn a_chain_is_cut_at_the_limit_and_a_person_starts_a_new_one() {
        let limits = Limits::default();
        assert_eq!(admit(traffic(None, None, 0), &limits).unwrap(), 0);
        assert_eq!(admit(traffic(Some((7, 10)), None, 0), &limits).unwrap(), 8);
        assert_eq!(
            admit(traffic(Some((8, 10)), None, 0), &limits).unwrap_err().code(),
            Code::BudgetExhausted
        );
        assert_eq!(
            admit(traffic(Some((8, 10)), Some(9), 0), &limits).unwrap_err().code(),
            Code::BudgetExhausted
        );
        assert_eq!(admit(traffic(Some((8, 10)), Some(11), 0), &limits).unwrap(), 0);
    }

    #[test]
    fn a_pair_has_a_budget() {
        let limits = Limits::default();
        assert!(admit(traffic(None, None, 59), &limits).is_ok());
        assert_eq!(admit(traffic(None, None, 60), &limits).unwrap_err().code(), Code::BudgetExhausted);
    }
}
