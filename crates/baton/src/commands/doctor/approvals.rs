//! What doctor says about questions: what waits, what the person has set about them, and who wanted
//! to set it without having a say.

use super::check::{Check, CheckLevel};
use crate::commands::{CommandContext, job};
use crate::guard;
use baton_approvals::{inbox, reviewers};
use baton_core::Error;
use baton_core::approval::State;
use baton_core::frame::shown;
use baton_guard_runtime::approvals::ApprovalSettings;
use baton_machine::project;
use baton_store::{Approvals, Role, Store};

const LINE_CHARS: usize = 300;
const OWN_FILE_HINT: &str = "[approvals] counts only in your own config.toml; take it out of the other file";

/// All of them.
pub fn checks(context: &CommandContext) -> Vec<Check> {
    let guard = guard::open(&context.home);
    let mut checks = vec![store(context), waiting(context)];
    match guard.approvals() {
        Ok(policy) => {
            checks.push(rules(&policy));
            checks.extend(missing(context, &policy).unwrap_or_default());
        }
        Err(error) => checks.push(Check::error("rules", CheckLevel::Fail, &error)),
    }
    let ignored = guard.ignored_approvals(&context.cwd);
    checks.extend(ignored.iter().map(|line| {
        Check::new("rules", CheckLevel::Warn, format!("ignored: {}", shown(line, LINE_CHARS)))
            .hint(OWN_FILE_HINT)
    }));
    checks
}

fn store(context: &CommandContext) -> Check {
    let opened = Approvals::open_if_any(&context.home, Role::Command);
    match opened.and_then(|store| store.map(|store| store.check()).transpose()) {
        Ok(None) => Check::new("store", CheckLevel::Pass, "nothing was ever asked"),
        Ok(Some(())) => Check::new("store", CheckLevel::Pass, "approvals.db is sound"),
        Err(error) => Check::error("store", CheckLevel::Fail, &error),
    }
}

/// What waits, and for how long.
fn waiting(context: &CommandContext) -> Check {
    let waiting = match job::host(context).and_then(|host| inbox::glance(&host)) {
        Ok(waiting) => waiting,
        Err(error) => return Check::error("waiting", CheckLevel::Fail, &error),
    };
    let Some(oldest) = waiting.first() else {
        return Check::new("waiting", CheckLevel::Pass, "nothing waits for an answer");
    };
    let only = waiting.iter().filter(|one| one.state() == State::Terminal).count();
    let detail = format!(
        "{} wait, {only} of them only in their terminals; the oldest for {}: {} ({})",
        waiting.len(),
        baton_machine::clock::now().since(oldest.since()).coarse(),
        shown(oldest.who(), 60),
        oldest.agent()
    );
    Check::new("waiting", CheckLevel::Note, detail).hint("`baton approvals` lists them")
}

fn rules(policy: &ApprovalSettings) -> Check {
    let names: usize = policy.reviewers.iter().map(|(_, names)| names.len()).sum();
    let told = if policy.notify.is_set() || policy.notify.bell { "on" } else { "off" };
    let detail = format!(
        "{} patterns that need no asking, {names} reviewers, notifications {told}",
        policy.auto_approve.len()
    );
    Check::new("rules", CheckLevel::Pass, detail)
}

/// Reviewers whose names no participant has.
fn missing(context: &CommandContext, policy: &ApprovalSettings) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    if policy.reviewers.is_empty() && policy.notify.mail.is_none() {
        return Ok(checks);
    }
    let store = Store::open(&context.home, Role::Command)?;
    for (folder, names) in &policy.reviewers {
        for name in names {
            if reviewers::find(&store, &project::of(folder), name)?.is_none() {
                let detail = format!(
                    "no participant is called {} in {}",
                    shown(name, 60),
                    shown(&folder.to_string_lossy(), 200)
                );
                checks.push(Check::new("reviewers", CheckLevel::Warn, detail).hint(
                    "`baton who --all` lists the names; a session that gets this name later would be the reviewer",
                ));
            }
        }
    }
    let mail = policy.notify.mail.as_ref();
    if let Some(name) = mail.filter(|name| !policy.reviewers.iter().any(|(_, names)| names.contains(name))) {
        let detail = format!("notify_mail names {}, who is no reviewer of any project", shown(name, 60));
        checks
            .push(Check::new("reviewers", CheckLevel::Warn, detail).hint("name it in [approvals.reviewers]"));
    }
    Ok(checks)
}
