//! The life of a message at one recipient, and the decisions that move it.
//!
//! ```text
//!                 claim (one transaction, one nonce)
//!      ┌────────┐ ─────────────────────────────────▶ ┌─────────┐  the model answered  ┌──────┐
//!  ──▶ │ queued │                                    │ offered │ ───────────────────▶ │ seen │
//!      └────────┘ ◀───────────────────────────────── └─────────┘  with the nonce in   └──────┘
//!        │    │     the model answered a request         │        its context
//!        │    │     that would have held it, and         │ no transcript, and it
//!        │    │     the nonce is not there               │ was offered before
//!        │    │                                          ▼
//!        │    └─▶ expired, undeliverable              unconfirmed
//!        └─ a person or a script reads it ─▶ seen
//! ```
//!
//! [`plan`](mod@plan) decides what an event does: it settles open offers by their proof ([`proof`],
//! [`turn`]), notes what the session is doing, and makes the next offer if none is open. The store
//! executes the plan in one transaction.

pub mod delivery;
pub mod glance;
pub mod mailbox;
pub mod plan;
pub mod proof;
pub mod turn;

pub use delivery::Delivery;
pub use glance::glance;
pub use mailbox::Mailbox;
pub use plan::{Facts, Missing, NewOffer, Plan, Settlement, TurnStart, plan, start_of_search};
pub use proof::{Anchor, Item, MARK, Proof, Search, Turns, mark, proof_in_request};
pub use turn::{Occasion, Settle, View};
