//! What doctor says about jobs: which agents could be given some, what runs, what is stuck, and
//! what is left over.

use super::check::{Check, CheckLevel};
use crate::commands::{CommandContext, job};
use baton_core::job::Status;
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_jobs::backend::opencode::keeper::{self, KeeperStatus};
use baton_jobs::backend::{self, Backend};
use baton_jobs::upkeep::Leftovers;
use baton_jobs::{Runtime, reconcile, start};
use baton_store::{JobFilter, JobRow, Jobs};
use std::path::Path;

/// With less room than this a job may not get its log and its result written.
const LOW_BYTES: u64 = 512 << 20;
/// With less than this hardly anything works.
const FULL_BYTES: u64 = 32 << 20;
/// Jobs that are named one by one.
const MAX_IDS_SHOWN: usize = 5;
const FIX_HINT: &str = "baton doctor --fix";

/// All of them. With `fix`, dead jobs are ended and leftovers removed first.
pub fn checks(context: &CommandContext, fix: bool) -> Vec<Check> {
    let host = match job::host(context) {
        Ok(host) => host,
        // The check of the settings says why.
        Err(_) => return Vec::new(),
    };
    let mut checks: Vec<Check> =
        backend::ALL.iter().filter_map(|backend| ready(&host, *backend, &context.cwd)).collect();
    checks.extend(disk(&host.home));
    checks.extend(keeper::servers(&host.home).iter().map(|(folder, standing)| {
        if fix && *standing != KeeperStatus::Gone {
            return server(standing);
        }
        if fix {
            keeper::forget(folder);
            return Check::new("server", CheckLevel::Pass, "one that was gone is forgotten");
        }
        server(standing)
    }));
    checks.extend(
        recorded(&host, fix).unwrap_or_else(|error| vec![Check::error("jobs", CheckLevel::Fail, &error)]),
    );
    checks
}

/// Whether an agent could be given a job; nothing of one that is not there.
fn ready(host: &Runtime, backend: &dyn Backend, cwd: &Path) -> Option<Check> {
    let name = backend.agent();
    match start::ready(host, backend, cwd) {
        Ok(()) => Some(Check::new("backend", CheckLevel::Pass, format!("{name} can be given jobs"))),
        Err(error) if error.code() == Code::AgentMissing => None,
        Err(error) => {
            let detail = format!("{name} can't be given jobs: {}", error.message());
            let check = Check::new("backend", CheckLevel::Note, detail);
            Some(match error.hint_text() {
                Some(hint) => check.hint(hint),
                None => check,
            })
        }
    }
}

fn disk(home: &Path) -> Option<Check> {
    // Made when it is first needed: the nearest folder that is there is on the same disk.
    let there = home.ancestors().find(|folder| folder.exists())?;
    let found = rustix::fs::statvfs(there).ok()?;
    Some(room(found.f_bavail.saturating_mul(found.f_frsize)))
}

fn room(free: u64) -> Check {
    let detail = format!("{} MiB are free where jobs are kept", free >> 20);
    let check = |verdict| Check::new("disk", verdict, detail.clone());
    match free {
        free if free < FULL_BYTES => {
            check(CheckLevel::Fail).hint("free some space: baton will soon accept nothing more")
        }
        free if free < LOW_BYTES => {
            check(CheckLevel::Warn).hint("free some space; `baton job prune` removes old jobs and their logs")
        }
        _ => check(CheckLevel::Pass),
    }
}

fn server(standing: &KeeperStatus) -> Check {
    match standing {
        KeeperStatus::Answers(version) => {
            Check::new("server", CheckLevel::Pass, format!("answers with its password, version {version}"))
        }
        KeeperStatus::Silent(why) => {
            Check::new("server", CheckLevel::Warn, format!("runs and does not answer: {why}"))
                .hint("the next job starts another; server.log is beside it in the home")
        }
        KeeperStatus::Gone => {
            Check::new("server", CheckLevel::Note, "a server is recorded that no longer runs").hint(FIX_HINT)
        }
    }
}

fn recorded(host: &Runtime, fix: bool) -> Result<Vec<Check>, Error> {
    let Some(mut jobs) = Jobs::open_if_any(&host.home)? else {
        let mut checks = vec![Check::new("jobs", CheckLevel::Pass, "there has been none yet")];
        checks.extend(left_over(host, None, fix)?);
        return Ok(checks);
    };
    jobs.check()?;
    let open = jobs.list(JobFilter::Open, usize::MAX)?;
    let (mut dead, alive): (Vec<JobRow>, Vec<JobRow>) =
        open.into_iter().partition(|row| reconcile::is_dead(host, row));
    let mut checks = vec![running(&alive)];
    if fix && !dead.is_empty() {
        let rows = reconcile::all(host, &mut jobs, dead);
        let (ended, left): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.status.is_end());
        checks.push(Check::new(
            "healed",
            CheckLevel::Pass,
            format!("{} were dead: {}", ended.len(), named(&ended)),
        ));
        dead = left;
    }
    if !dead.is_empty() {
        let detail = format!("{} count as running and have no worker: {}", dead.len(), named(&dead));
        checks.push(Check::new("stuck", CheckLevel::Warn, detail).hint(FIX_HINT));
    }
    let waiting: Vec<JobRow> = alive.into_iter().filter(|row| row.status == Status::Blocked).collect();
    if !waiting.is_empty() {
        let detail = format!("{} wait for an answer: {}", waiting.len(), named(&waiting));
        checks.push(
            Check::new("blocked", CheckLevel::Warn, detail)
                .hint("`baton job status JOB` shows what they ask"),
        );
    }
    checks.extend(left_over(host, Some(&jobs), fix)?);
    jobs.tidy();
    Ok(checks)
}

fn running(alive: &[JobRow]) -> Check {
    let silent = alive.iter().map(|row| {
        let last = row.activity.as_ref().map_or(row.created_at, |activity| activity.at);
        baton_machine::clock::now().since(last)
    });
    let longest = silent.max().unwrap_or(Span(0));
    let detail = match alive.len() {
        0 => "none runs".to_owned(),
        count => format!("{count} run; the longest silence is {}", longest.coarse()),
    };
    Check::new("jobs", CheckLevel::Pass, detail)
}

fn left_over(host: &Runtime, jobs: Option<&Jobs>, fix: bool) -> Result<Option<Check>, Error> {
    let mut found = Leftovers::find(&host.home, jobs)?;
    if found.is_empty() {
        return Ok(None);
    }
    if fix {
        found = found.remove(&host.home);
    }
    let (folders, worktrees) = (found.folders.len(), found.worktrees.len());
    let detail = format!("{folders} folders and {worktrees} worktrees of jobs without a record");
    Ok(Some(match (fix, found.is_empty()) {
        (true, true) => Check::new("left over", CheckLevel::Pass, "folders without a record are removed"),
        (true, false) => Check::new("left over", CheckLevel::Warn, detail)
            .hint("the worktrees in the home hold changes that are nowhere else: look at them"),
        (false, _) => Check::new("left over", CheckLevel::Warn, detail).hint(FIX_HINT),
    }))
}

fn named(rows: &[JobRow]) -> String {
    let ids: Vec<&str> = rows.iter().take(MAX_IDS_SHOWN).map(|row| row.id.as_str()).collect();
    let more = rows.len().saturating_sub(MAX_IDS_SHOWN);
    if more == 0 { ids.join(", ") } else { format!("{} and {more} more", ids.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_judged_by_what_is_free() {
        let json = |free| {
            let block = super::super::check::Block {
                title: "",
                agent: None,
                checks: vec![room(free)],
                absent: false,
            };
            block.documents().next().unwrap()["verdict"].as_str().unwrap().to_owned()
        };
        assert_eq!([0, FULL_BYTES, LOW_BYTES].map(json), ["fail", "warn", "pass"]);
    }
}
