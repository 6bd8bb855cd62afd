//! Notifications that a command has its own terminal show: questions that wait, and jobs that have
//! ended. They hold names, ids and words of baton, and nothing that an agent wrote.
//!
//! Only a command that the person runs does this. A process in the background never writes to a
//! terminal: by then it may show something else, or belong to someone else.

use crate::environment;
use crate::print::Out;
use baton_approvals::inbox::Pending;
use baton_core::approval::State;
use baton_core::notice::{self, Route};
use baton_core::words::counted;
use baton_jobs::Runtime;
use baton_store::JobRow;
use std::time::{Duration, Instant};

/// A question that is answered this soon causes no notification.
const GRACE_PERIOD: Duration = Duration::from_secs(1);
/// Questions cause at most one notification in this time.
const NOTICE_WINDOW: Duration = Duration::from_secs(5);

/// The notifications of one command.
pub struct Notices {
    out: Out,
    /// `None` if the terminal shows none, or the person wants none.
    route: Option<Route>,
    /// When the next one about questions is due.
    due: Option<Instant>,
    last: Option<Instant>,
}

impl Notices {
    pub fn new(host: &Runtime, out: Out) -> Self {
        // If the file has a mistake, the person gets an error about it elsewhere.
        let wanted = host.guard().approvals().is_ok_and(|policy| policy.notify.terminal);
        let variable = |name: &str| environment::get(name).and_then(|value| value.into_string().ok());
        let route = wanted.then(|| notice::route(&variable)).flatten();
        Self { out, route, due: None, last: None }
    }

    /// A question is new.
    pub fn question_came(&mut self) {
        if self.route.is_some() && self.due.is_none() {
            let soon = Instant::now() + GRACE_PERIOD;
            self.due = Some(self.last.map_or(soon, |last| soon.max(last + NOTICE_WINDOW)));
        }
    }

    /// Whether there may be something to tell soon.
    pub fn is_due_soon(&self) -> bool {
        self.due.is_some()
    }

    /// Tells of the questions that wait, if it is time.
    pub fn tell_questions(&mut self, waiting: &[Pending]) {
        if self.due.is_none_or(|due| Instant::now() < due) {
            return;
        }
        self.due = None;
        let open = |one: &&Pending| matches!(one.state(), State::Waiting | State::Terminal);
        let open: Vec<&Pending> = waiting.iter().filter(open).collect();
        let (Some(route), Some(last)) = (self.route, open.last()) else { return };
        let more = if open.len() > 1 {
            format!(" ({} wait)", counted(open.len(), "question"))
        } else {
            String::new()
        };
        self.out.notify(route, &format!("{} ({}) waits for your answer{more}", last.who(), last.agent()));
        self.last = Some(Instant::now());
    }

    /// Tells of jobs that have ended.
    pub fn tell_ends(&self, ended: &[&JobRow]) {
        let Some(route) = self.route else { return };
        match ended {
            [] => {}
            [row] => self.out.notify(route, &format!("job {} ({}) {}", row.id, row.agent, row.status)),
            several => self.out.notify(route, &format!("{} have ended", counted(several.len(), "job"))),
        }
    }
}
