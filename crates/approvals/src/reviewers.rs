//! Who may answer: the person, and the agents that the person has named for a project. Those never what is their own.

use crate::inbox::Pending;
use baton_core::approval::Answer;
use baton_core::id::ParticipantId;
use baton_core::session::State;
use baton_core::{Code, Error, name};
use baton_gate::approvals::Policy;
use baton_jobs::Host;
use baton_mail::identity::{Identity, Kind};
use baton_mail::{project, reconcile};
use baton_store::{Found, JobFilter, JobRow, Jobs, Participant, Store};

/// Jobs above one another that are followed to who has asked for them.
const DEPTH: usize = 8;

/// Who was named for a project.
pub fn names<'p>(policy: &'p Policy, wanted: &str) -> Vec<&'p str> {
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

/// Whether a reviewer of a project is there who may answer what somebody asks.
pub fn is_present(store: &mut Store, policy: &Policy, project: &str, asker: Option<ParticipantId>) -> bool {
    if policy.reviewers.is_empty() {
        return false;
    }
    names(policy, project).iter().any(|name| {
        let Ok(Some(mut found)) = find(store, project, name) else { return false };
        Some(found.id) != asker && reconcile::state(store, &mut found).is_ok() && found.state != State::Gone
    })
}

/// An error for whoever answers nothing at all.
pub fn check_kind(me: &Identity) -> Result<(), Error> {
    match me.kind {
        Kind::Person | Kind::Session { .. } => Ok(()),
        Kind::Script => Err(Error::new(Code::NotAPerson, "a script answers nothing that agents ask")
            .hint("`baton approvals` shows what waits; leave the answer to the person")),
    }
}

/// An error unless this caller may give that answer.
pub fn check(
    host: &Host,
    store: &Store,
    me: &Identity,
    pending: &Pending,
    answer: &Answer,
) -> Result<(), Error> {
    check_kind(me)?;
    let Kind::Session { subagent, .. } = me.kind else { return Ok(()) };
    // With a mistake in the file there are no reviewers.
    let policy = host.gate().approvals().unwrap_or_default();
    let is_named = me.project == pending.project()
        && names(&policy, &me.project).contains(&me.participant.name.as_str());
    if !is_named {
        return Err(refusal("you are no reviewer for that project"));
    }
    if subagent {
        return Err(refusal("you are a subagent; the person named your parent"));
    }
    if is_own(host, store, me.participant.id, pending)? {
        return Err(refusal("nobody answers what he, his subagents or his jobs ask"));
    }
    if *answer == Answer::AllowAlways {
        return Err(Error::new(Code::NotAPerson, "only the person allows something for good")
            .hint("leave --always out"));
    }
    Ok(())
}

/// Whether this caller may answer a question with yes or no.
pub fn may_answer(host: &Host, store: &Store, me: &Identity, pending: &Pending) -> bool {
    check(host, store, me, pending, &Answer::Allow).is_ok()
}

fn refusal(why: &str) -> Error {
    Error::new(Code::NotAReviewer, why)
        .hint("leave the answer to the person; `baton approvals` shows them what waits")
}

/// Whether a question comes from somebody himself: his session, a subagent of it, or a job that he, or a job of his, has asked for.
fn is_own(host: &Host, store: &Store, me: ParticipantId, pending: &Pending) -> Result<bool, Error> {
    match pending {
        Pending::Session(row, _) => {
            let found = store.participant_of(Some(&row.agent), &row.session)?;
            let asker = row.participant.or(found.map(|(participant, _)| participant.id));
            // Whose question it is must be certain.
            Ok(asker.is_none_or(|asker| asker == me))
        }
        Pending::Shown(participant, _) => Ok(participant.id == me),
        Pending::Job(pending) => {
            let jobs = Jobs::open(&host.home)?;
            let open = jobs.list(JobFilter::Open, usize::MAX)?;
            let works_as = |job: &JobRow| -> Result<Option<ParticipantId>, Error> {
                let Some(session) = &job.session else { return Ok(None) };
                Ok(store.participant_of(Some(&job.agent), session)?.map(|(participant, _)| participant.id))
            };
            let mut job = pending.job.clone();
            if works_as(&job)? == Some(me) {
                return Ok(true);
            }
            for _ in 0..DEPTH {
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
