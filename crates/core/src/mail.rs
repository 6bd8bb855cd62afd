//! The life of a message at one recipient, and the decisions that move it.
//!
//! ```text
//!                 claim (one transaction, one nonce)
//!      ┌────────┐ ─────────────────────────────────▶ ┌─────────┐  nonce found   ┌──────┐
//!  ──▶ │ queued │                                    │ offered │ ─────────────▶ │ seen │
//!      └────────┘ ◀───────────────────────────────── └─────────┘                └──────┘
//!        │    │     the model answered a request         │
//!        │    │     that would have held it, and         │ no transcript, and it
//!        │    │     the nonce is not there               │ was offered before
//!        │    │                                          ▼
//!        │    └─▶ expired, undeliverable, refused     unconfirmed
//! ```
//!
//! A hook run does three things in this order: it settles the open offer by looking for proof ([`proof`]), it notes what
//! the session is doing, and it claims the next batch if nothing is open ([`turn`]). All that is decided here; the store
//! executes it in one transaction.

pub mod delivery;
pub mod mailbox;
pub mod proof;
pub mod turn;

/// The prompt that wakes an idle session whose prompt hook then brings the mail. It carries none itself: whoever passes it on late or twice
/// does no harm.
pub const WAKE: &str = "baton: you have mail from another session.";
/// What the person is told when such a prompt finds nothing to bring.
pub const NOTHING_WAITS: &str = "baton: the mail has been taken meanwhile";

pub use delivery::Delivery;
pub use mailbox::Mailbox;
pub use proof::{Anchor, Item, Look, MARK, Search, Turns, look_at_request, mark};
pub use turn::{Occasion, Settle, View};
