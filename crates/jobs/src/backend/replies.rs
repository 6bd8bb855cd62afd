//! Matches replies to requests.
//!
//! A program that takes numbered requests answers them in any order, between its other output. A
//! caller registers, gets a number, and waits for its reply. When the program is gone, all waiting
//! callers hear of it at once.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The requests that are not answered yet.
#[derive(Debug, Default)]
pub struct Replies(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    waiting: HashMap<u64, Sender<Value>>,
    closed: bool,
}

impl Replies {
    /// Registers a request: a new number, and the receiver of its reply. If no reply can come any
    /// more, the receiver says so at once.
    pub fn register(&self) -> (u64, Receiver<Value>) {
        let (reply, got) = channel();
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        if !state.closed {
            state.waiting.insert(number, reply);
        }
        (number, got)
    }

    /// Hands a reply to the caller that waits for it.
    pub fn give(&self, number: u64, reply: Value) {
        if let Some(waiting) = self.state().waiting.remove(&number) {
            // An error means that the caller has stopped waiting.
            waiting.send(reply).ok();
        }
    }

    /// The caller has stopped waiting.
    pub fn forget(&self, number: u64) {
        self.state().waiting.remove(&number);
    }

    /// There will be no more replies.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replies_find_their_request_in_any_order_and_the_end_reaches_all() {
        let replies = Replies::default();
        let ((one, first), (two, second), (_, third)) =
            (replies.register(), replies.register(), replies.register());
        replies.give(two, json!(2));
        replies.give(one, json!(1));
        assert_eq!((first.recv().unwrap(), second.recv().unwrap()), (json!(1), json!(2)));
        replies.close();
        assert!(third.recv().is_err());
        assert!(replies.register().1.recv().is_err());
    }
}
