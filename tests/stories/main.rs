//! Stories with the real agent programs, offline, against a scripted model. What counts is what
//! reached the model: each message exactly once in its requests.
//!
//! A few rounds of each run in `scripts/test`; `scripts/prove` sets `BATON_ROUNDS` and counts.

mod approvals_claude;
mod approvals_codex;
mod approvals_copilot;
mod approvals_gemini;
mod approvals_opencode;
mod asks;
mod copilot;
mod cost;
mod delivery;
mod doctor;
mod gemini;
mod glance;
mod guard;
mod inbox_user;
mod jobs;
mod jobs_delegate;
mod life;
mod manual_wake;
mod moments;
mod opencode;
mod pi;
mod plugins;
mod readme;
mod review;
mod round_trip;
mod sandbox;
mod setup;
mod sync_points;
mod terminal;
mod wake;
