//! Who may answer: the person, and the agents that the person has named for a project. An agent
//! never answers its own questions.

use crate::inbox::Pending;
use baton_core::approval::Answer;
use baton_core::id::ParticipantId;
use baton_core::rights::{self, Caller};
use baton_core::session::State;
use baton_core::{Code, Error, name};
use baton_guard_runtime::approvals::ApprovalSettings;
use baton_jobs::Runtime;
use baton_machine::project;
use baton_mail::identity::{Identity, Kind};
use baton_mail::{identity, reconcile};
use baton_store::{Found, JobFilter, JobRow, Jobs, Participant, Store};

/// How many nested jobs are followed to find out who asked for them.
const MAX_JOB_DEPTH: usize = 8;

/// The reviewers that were named for a project.
pub fn names<'p>(policy: &'p ApprovalSettings, wanted: &str) -> Vec<&'p str> {
    let of = |(folder, names): &'p (std::path::PathBuf, Vec<String>)| {
        (project::of(folder) == wanted).then_some(names.iter().map(String::as_str))
    };
    policy.reviewers.iter().filter_map(of).flatten().collect()
}

/// A participant that was named for a project.
pub fn find(store: &Store, project: &str, name: &str) -> Result<Option<Participant>, Error> {
    Ok(match store.find_name(project, name)? {
        Found::One(found) if found.project == project && found.agent != name::SCRIPT => Some(*found),
        _ => None,
    })
}

/// Whether a reviewer of a project is there that may answer this asker's question.
pub fn is_present(
    store: &mut Store,
    policy: &ApprovalSettings,
    project: &str,
    asker: Option<ParticipantId>,
) -> bool {
    if policy.reviewers.is_empty() {
        return false;
    }
    names(policy, project).iter().any(|name| {
        let Ok(Some(mut found)) = find(store, project, name) else { return false };
        Some(found.id) != asker
            && reconcile::correct_state(store, &mut found).is_ok()
            && found.state != State::Gone
    })
}

/// An error unless this caller may give that answer.
pub fn check(
    runtime: &Runtime,
    store: &Store,
    me: &Identity,
    pending: &Pending,
    answer: &Answer,
) -> Result<(), Error> {
    let subagent = match me.kind {
        Kind::Person => return Ok(()),
        Kind::Session { subagent, .. } => subagent,
        _ => return rights::may(Caller::Script, &rights::APPROVE),
    };
    // If the file has a mistake, there are no reviewers.
    let policy = runtime.guard().approvals().unwrap_or_default();
    let is_named = me.project == pending.project()
        && names(&policy, &me.project).contains(&me.participant.name.as_str());
    if !is_named {
        return Err(refusal("you are not a reviewer for that project"));
    }
    if subagent {
        return Err(refusal("you are a subagent; the person named your parent"));
    }
    // An agent could resume a reviewer's session that has ended, and answer its own questions with
    // it.
    let process = me.session().map(|session| store.session(session)).transpose()?.flatten();
    if process.and_then(|session| session.process).is_some_and(identity::runs_below_another) {
        return Err(refusal("another agent started your session"));
    }
    if is_own(runtime, store, me.participant.id, pending)? {
        return Err(refusal("an agent can't answer questions of its own session, its subagents or its jobs"));
    }
    if *answer == Answer::AllowAlways {
        return rights::may(Caller::Agent, &rights::ALLOW_ALWAYS);
    }
    Ok(())
}

/// Whether this caller may answer a question with yes or no.
pub fn may_answer(runtime: &Runtime, store: &Store, me: &Identity, pending: &Pending) -> bool {
    check(runtime, store, me, pending, &Answer::Allow).is_ok()
}

fn refusal(why: &str) -> Error {
    Error::new(Code::NotAReviewer, why)
        .hint("leave the answer to the person; `baton approvals` shows them what waits")
}

/// Whether a question is a participant's own: from its session, a subagent of that, or a job that
/// it (or a job of its) has asked for.
fn is_own(runtime: &Runtime, store: &Store, me: ParticipantId, pending: &Pending) -> Result<bool, Error> {
    match pending {
        Pending::Session(row, _) => {
            let found = store.participant_of(Some(&row.agent), &row.session)?;
            let asker = row.participant.or(found.map(|(participant, _)| participant.id));
            // If it is not certain who asks, it counts as the participant's own.
            Ok(asker.is_none_or(|asker| asker == me))
        }
        Pending::Shown(participant, _) => Ok(participant.id == me),
        Pending::Job(pending) => {
            let jobs = Jobs::open(&runtime.home)?;
            let open = jobs.list(JobFilter::Open, usize::MAX)?;
            let works_as = |job: &JobRow| -> Result<Option<ParticipantId>, Error> {
                let Some(session) = &job.session else { return Ok(None) };
                Ok(store.participant_of(Some(&job.agent), session)?.map(|(participant, _)| participant.id))
            };
            let mut job = pending.job.clone();
            if works_as(&job)? == Some(me) {
                return Ok(true);
            }
            for _ in 0..MAX_JOB_DEPTH {
                let asker = job.asker;
                if asker == me {
                    return Ok(true);
                }
                let mut above = None;
                for other in &open {
                    if other.id != job.id && works_as(other)? == Some(asker) {
                        above = Some(other.clone());
                    }
                }
                match above {
                    Some(above) => job = above,
                    None => return Ok(false),
                }
            }
            Ok(true)
        }
    }
}
