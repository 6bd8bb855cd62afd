//! Which baton this is. `build.rs` finds the commit and its day.

/// The version of the package.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");
/// The commit that it was built from; empty if the build did not know it.
pub const COMMIT: &str = env!("BATON_COMMIT");
/// The day of that commit; empty if the build did not know it.
pub const DATE: &str = env!("BATON_DATE");
/// All of it on one line: `0.1.0 (4799b76abc, 2026-11-18)`.
pub const LINE: &str = env!("BATON_VERSION");
