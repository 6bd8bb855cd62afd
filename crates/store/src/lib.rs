//! The store: SQLite files, one function per decision, one transaction per function.
//!
//! Every process of one user opens the same files; there is no daemon. Readers never wait for
//! writers (WAL), and writers wait for each other in SQLite's own queue. `baton-core` decides about
//! mail. This crate reads what a decision needs, asks for it, and writes the outcome, all in one
//! `BEGIN IMMEDIATE`. No other crate has SQL.

mod accept;
mod approvals;
mod asks;
mod failure;
pub mod foreign;
mod hook;
mod jobs;
mod letters;
mod notes;
mod open;
mod people;
mod reading;
mod schema;
mod sessions;
mod shape;
mod states;
mod trail;
mod upkeep;
mod wake;

pub use accept::{Accepted, NewMail, RetryKey, Verb, check_label};
pub use approvals::{ApprovalRow, Approvals, CHANGED_NOTE, Moved, NewApproval, NoticeClaim};
pub use asks::{AskState, OpenAsks, Waiter};
pub use hook::{Claim, Claimed, HookStep, HookView, OfferedLetters, OpenOffer, WaitingMail};
pub use jobs::{Activity, AnswerRow, JobEnd, JobFilter, JobRow, Jobs, NewAnswer, NewJob, Progress};
pub use open::{Role, Store, usable};
pub use people::{Found, Participant, RunningSession};
pub use reading::{Counts, DeliveryRow, MailFilter, MailRow, Part, Peeked};
pub use schema::{FILES, VERSION};
pub use sessions::{Heard, SessionInfo, SessionSeen, Sighting};
pub use trail::TrailRow;
pub use upkeep::Upkeep;
pub use wake::{NewWake, WakeRow, WakeView};
