//! The layouts of the files and their history. A step is only ever added, never edited.
//!
//! Hooks open the mail store for each tool call, and SQLite parses every object of it. So it has
//! few: what hooks don't need does not belong there.

/// One file and its history.
#[derive(Debug)]
pub(crate) struct Layout {
    pub file: &'static str,
    /// `steps[n]` brings a file of version n to n + 1.
    pub steps: &'static [&'static str],
}

impl Layout {
    /// The version that this program writes.
    pub const fn version(&self) -> i32 {
        self.steps.len() as i32
    }
}

/// What hooks open: participants, sessions, mail.
pub(crate) const MAIL_LAYOUT: Layout = Layout {
    file: "baton.db",
    steps: &[
        include_str!("schema/v1.sql"),
        include_str!("schema/v2.sql"),
        include_str!("schema/v3.sql"),
        include_str!("schema/v4.sql"),
        include_str!("schema/v5.sql"),
        include_str!("schema/v6.sql"),
    ],
};

/// What hooks don't need: jobs.
pub(crate) const JOBS_LAYOUT: Layout = Layout {
    file: "jobs.db",
    steps: &[include_str!("schema/jobs/v1.sql"), include_str!("schema/jobs/v2.sql")],
};

/// What hooks need only when their agent asks for something: questions and their answers.
pub(crate) const APPROVALS_LAYOUT: Layout = Layout {
    file: "approvals.db",
    steps: &[
        include_str!("schema/approvals/v1.sql"),
        include_str!("schema/approvals/v2.sql"),
        include_str!("schema/approvals/v3.sql"),
    ],
};

/// The files in a home that are stores.
pub const FILES: &[&str] = &[MAIL_LAYOUT.file, JOBS_LAYOUT.file, APPROVALS_LAYOUT.file];

/// The version of the mail store that this program writes.
pub const VERSION: i32 = MAIL_LAYOUT.version();
