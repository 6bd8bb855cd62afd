//! The store: one SQLite file, one function per decision, one transaction per function.
//!
//! Every process of one user opens the same file; there is no daemon. Readers never wait for writers (WAL), writers wait for
//! each other in SQLite's own queue. What is decided about mail is decided in `baton-core`; this crate reads what a decision
//! needs, asks, and writes the outcome, all inside one `BEGIN IMMEDIATE`. No SQL stands anywhere else.

mod accept;
mod approvals;
mod asks;
mod failure;
pub mod foreign;
mod hook;
mod jobs;
mod letters;
mod open;
mod people;
mod reading;
mod schema;
mod sessions;
mod trail;
mod upkeep;
mod wake;

pub use accept::{Accepted, NewMail, Verb, check_label};
pub use approvals::{ApprovalRow, Approvals, Moved, NewApproval, Notice};
pub use asks::{AskState, Waiter};
pub use hook::{Claim, Claimed, HookStep, HookView, OpenOffer};
pub use jobs::{AnswerRow, JobEnd, JobFilter, JobRow, Jobs, NewJob, Progress};
pub use open::{Role, Store};
pub use people::{Found, Participant};
pub use reading::{DeliveryRow, MailFilter, MailRow};
pub use schema::VERSION;
pub use sessions::{Heard, Process, SessionInfo, SessionSeen, Sighting};
pub use trail::TrailRow;
pub use upkeep::Upkeep;
pub use wake::{NewWake, WakeRow, WakeView};
