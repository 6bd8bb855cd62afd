//! What doctor says about questions: what waits, what the person has set about them, and who wanted to set it without having a say.

use super::check::{Check, Verdict};
use crate::commands::{Session, job};
use crate::gate;
use baton_approvals::{inbox, reviewers};
use baton_core::Error;
use baton_core::approval::State;
use baton_core::frame::shown;
use baton_gate::approvals::Policy;
use baton_mail::project;
use baton_store::{Approvals, Role, Store};

const LINE_CHARS: usize = 300;
const OWN_FILE: &str = "[approvals] counts only in your own config.toml; take it out of the other file";

/// All of them.
pub fn checks(session: &Session) -> Vec<Check> {
    let gate = gate::open(&session.home);
    let mut checks = vec![store(session), waiting(session)];
    match gate.approvals() {
        Ok(policy) => {
            checks.push(rules(&policy));
            checks.extend(missing(session, &policy).unwrap_or_default());
        }
        Err(error) => checks.push(Check::error("rules", Verdict::Fail, &error)),
    }
    let ignored = gate.ignored_approvals(&session.cwd);
    checks.extend(ignored.iter().map(|line| {
        Check::new("rules", Verdict::Warn, format!("passed over: {}", shown(line, LINE_CHARS))).hint(OWN_FILE)
    }));
    checks
}

fn store(session: &Session) -> Check {
    let opened = Approvals::open_if_any(&session.home, Role::Command);
    match opened.and_then(|store| store.map(|store| store.check()).transpose()) {
        Ok(None) => Check::new("store", Verdict::Pass, "nothing was ever asked"),
        Ok(Some(())) => Check::new("store", Verdict::Pass, "approvals.db is sound"),
        Err(error) => Check::error("store", Verdict::Fail, &error),
    }
}

/// What waits, and for how long.
fn waiting(session: &Session) -> Check {
    let waiting = match job::host(session).and_then(|host| inbox::glance(&host)) {
        Ok(waiting) => waiting,
        Err(error) => return Check::error("waiting", Verdict::Fail, &error),
    };
    let Some(oldest) = waiting.first() else {
        return Check::new("waiting", Verdict::Pass, "nothing waits for an answer");
    };
    let only = waiting.iter().filter(|one| one.state() == State::Terminal).count();
    let detail = format!(
        "{} wait, {only} of them only in their terminals; the oldest for {}: {} ({})",
        waiting.len(),
        baton_mail::now().since(oldest.since()).coarse(),
        shown(oldest.who(), 60),
        oldest.agent()
    );
    Check::new("waiting", Verdict::Note, detail).hint("`baton approvals` lists them")
}

fn rules(policy: &Policy) -> Check {
    let names: usize = policy.reviewers.iter().map(|(_, names)| names.len()).sum();
    let told = if policy.notify.is_set() || policy.notify.bell { "on" } else { "off" };
    let detail = format!(
        "{} patterns that need no asking, {names} reviewers, notifications {told}",
        policy.auto_approve.len()
    );
    Check::new("rules", Verdict::Pass, detail)
}

/// Reviewers that nobody is.
fn missing(session: &Session, policy: &Policy) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    if policy.reviewers.is_empty() && policy.notify.mail.is_none() {
        return Ok(checks);
    }
    let store = Store::open(&session.home, Role::Command)?;
    for (folder, names) in &policy.reviewers {
        for name in names {
            if reviewers::find(&store, &project::of(folder), name)?.is_none() {
                let detail = format!(
                    "nobody is called {} in {}",
                    shown(name, 60),
                    shown(&folder.to_string_lossy(), 200)
                );
                checks.push(Check::new("reviewers", Verdict::Warn, detail).hint(
                    "`baton who --all` lists the names; whoever gets that name later would be the reviewer",
                ));
            }
        }
    }
    let mail = policy.notify.mail.as_ref();
    if let Some(name) = mail.filter(|name| !policy.reviewers.iter().any(|(_, names)| names.contains(name))) {
        let detail = format!("notify_mail names {}, who is no reviewer of any project", shown(name, 60));
        checks.push(Check::new("reviewers", Verdict::Warn, detail).hint("name it in [approvals.reviewers]"));
    }
    Ok(checks)
}
