//! What baton's tests are built on: a scripted model, sandboxes in which the real agent CLIs run
//! against it, and tools that make processes fail at a chosen instant.
//!
//! Used by tests only, and knows no other crate of baton: it starts programs, feeds them and reads
//! what they left behind. A broken fixture is a broken test, so most functions panic with a message
//! that says what to do, instead of returning errors that every test would unwrap.
//!
//! Nothing here reads credentials, leaves loopback, or outlives the test: agents get a cleared
//! environment, fake keys and a fresh home, every wait has a limit, and what was started is ended
//! by its own process group.

pub mod agents;
pub mod claude;
pub mod codex;
pub mod copilot;
pub mod faults;
pub mod gemini;
pub mod isolation;
pub mod model;
pub mod opencode;
pub mod pi;
pub mod process;
pub mod sandbox;
pub mod tmux;
pub mod transcript;
pub mod wait;

pub use isolation::isolated;
pub use model::{Model, Request, Script, Step};
pub use process::{Finished, Running};
pub use sandbox::Sandbox;
pub use tmux::Tmux;
