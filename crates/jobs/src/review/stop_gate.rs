//! The stop gate: what was reviewed in which session, and one review with a deadline.
//!
//! `baton_core::review` decides what a session may do. A file per session in the home says what was
//! allowed last and how often the session was held. If a review fails, can't be read or takes too
//! long, it is ended, and the session stops.

use super::changes::{Changes, Repository};
use super::{Opinion, Order, Review};
use crate::wait::{self, Until};
use crate::{Runtime, cancel};
use baton_core::error::Code;
use baton_core::job::Status;
use baton_core::review::{Changes as New, StopDecision};
use baton_core::{Error, frame, limits};
use baton_machine::own;
use baton_mail::identity::Identity;
use baton_store::{Jobs, Store};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much of a finding's text a held session gets.
const BODY_CHARS: usize = 600;
/// How much it gets in all.
const REASON_CHARS: usize = 8000;
/// A session that has not stopped for this long is forgotten.
const MEMORY_AGE_LIMIT: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is known of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// How often it was held in this chain of stops.
    pub rounds: u32,
    /// The commit that was checked out when a review last allowed a stop.
    pub base: Option<String>,
    /// A digest of what had changed since that commit then.
    pub digest: String,
}

impl Memory {
    /// Reads the memory of a session; empty if it can't be read.
    pub fn of(home: &Path, agent: &str, session: &str) -> Self {
        let Ok(bytes) = own::read(&file(home, agent, session), limits::OWN_FILE_BYTES) else {
            return Self::default();
        };
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        Self {
            rounds: value["rounds"].as_u64().and_then(|rounds| u32::try_from(rounds).ok()).unwrap_or(0),
            base: value["base"].as_str().map(str::to_owned),
            digest: value["digest"].as_str().unwrap_or_default().to_owned(),
        }
    }

    pub fn keep(&self, home: &Path, agent: &str, session: &str) -> io::Result<()> {
        let file = file(home, agent, session);
        own::folder(&home.join("reviews"))?;
        let new = file.with_extension("new");
        let mut out = own::rewrite(&new)?;
        let value = json!({"rounds": self.rounds, "base": self.base, "digest": self.digest});
        out.write_all(value.to_string().as_bytes())?;
        fs::rename(new, file)?;
        forget_old(&home.join("reviews"));
        Ok(())
    }
}

/// Keeps the folder small. What can't be removed now is tried again at the next stop.
fn forget_old(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|found| found.modified());
        if changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > MEMORY_AGE_LIMIT)) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

fn file(home: &Path, agent: &str, session: &str) -> PathBuf {
    // The session's id comes from the agent, and may be any text.
    let name = Sha256::new().chain_update(agent).chain_update([0]).chain_update(session).finalize();
    let name: String = name.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    home.join("reviews").join(format!("{name}.json"))
}

#[derive(Clone, Debug)]
pub struct Found {
    /// Whether there is anything new.
    pub new: New,
    pub changes: Option<Changes>,
    /// What to remember if the stop is allowed.
    pub allowed: Memory,
    /// Why it is unknown.
    pub why: Option<Error>,
}

/// What has changed since a review last allowed a stop, or since the last commit if none did.
pub fn look(cwd: &Path, memory: &Memory, variable: &dyn Fn(&str) -> Option<OsString>) -> Found {
    let nothing = |allowed: Memory| Found { new: New::None, changes: None, allowed, why: None };
    let looked = || -> Result<Found, Error> {
        let repository = Repository::in_hook(cwd, variable)?;
        let head = repository.head()?;
        let base = memory.base.clone().filter(|base| repository.has(base));
        let base = base.unwrap_or_else(|| head.clone());
        let name = if base == head { "the last commit" } else { "the last review" };
        let found = none_is_fine(repository.since_commit(&base, name))?;
        // What is allowed now is compared with what is checked out now.
        let digest = match &found {
            Some(found) if base == head => found.digest.clone(),
            _ => none_is_fine(repository.since_commit(&head, name))?
                .map_or_else(String::new, |since| since.digest),
        };
        let same = Some(&base) == memory.base.as_ref()
            && found.as_ref().is_some_and(|found| found.digest == memory.digest);
        let allowed = Memory { rounds: 0, base: Some(head), digest };
        Ok(match found {
            Some(changes) if !same => Found { new: New::Some, changes: Some(changes), allowed, why: None },
            _ => nothing(allowed),
        })
    };
    looked().unwrap_or_else(|error| Found {
        new: New::Unknown,
        changes: None,
        allowed: memory.clone(),
        why: Some(error),
    })
}

fn none_is_fine(found: Result<Changes, Error>) -> Result<Option<Changes>, Error> {
    match found {
        Ok(changes) => Ok(Some(changes)),
        Err(error) if error.code() == Code::NothingToReview => Ok(None),
        Err(error) => Err(error),
    }
}

/// Has a change reviewed before the deadline. It returns no error: if anything goes wrong, the
/// session may stop.
pub fn run(
    runtime: &Runtime,
    store: &mut Store,
    me: &Identity,
    order: &Order<'_>,
    changes: &Changes,
    deadline: Instant,
) -> StopDecision {
    let could_not =
        |error: Error| StopDecision::CouldNotRun(format!("{}: {}", error.code(), error.message()));
    let mut reviewed = || -> Result<StopDecision, Error> {
        let (agent, job) = super::ask(runtime, store, me, order, changes)?;
        let mut jobs = Jobs::open(&runtime.home)?;
        let rows =
            wait::wait(runtime, &mut jobs, std::slice::from_ref(&job.id), Until::All, deadline, &mut |_| {
                true
            })?;
        let Some(row) = rows.into_iter().next() else {
            return Err(Error::new(Code::UnknownJob, "the review is gone"));
        };
        if !row.status.is_end() {
            let stands = format!("{agent} had not finished ({}), job {}", row.status, row.id);
            cancel::cancel(runtime, &mut jobs, row)?;
            return Ok(StopDecision::CouldNotRun(stands));
        }
        // The review counts, even if that can't be recorded.
        jobs.set_read(&row.id, baton_machine::clock::now()).ok();
        match (row.status, row.result, row.fault) {
            (Status::Completed, Some(answer), _) => Ok(match Review::parse(&answer) {
                Ok(review) => judged(agent, &review),
                Err(why) => StopDecision::CouldNotRun(format!(
                    "the answer of {agent} is not a review: {why} (job {})",
                    job.id
                )),
            }),
            (status, _, Some(fault)) => {
                Ok(StopDecision::CouldNotRun(format!("job {} {status}: {}", job.id, fault.error.message())))
            }
            (status, ..) => Ok(StopDecision::CouldNotRun(format!("job {} {status}", job.id))),
        }
    };
    reviewed().unwrap_or_else(could_not)
}

fn judged(agent: &str, review: &Review) -> StopDecision {
    if review.opinion == Opinion::Approve {
        return StopDecision::Allow;
    }
    let mut text = format!(
        "[baton] {agent} has reviewed your change and asks for changes: {}\nJudge each finding yourself; mend what is right, and say what you leave as it is and why.\n",
        frame::shown(&review.summary, BODY_CHARS)
    );
    for (number, finding) in review.findings.iter().enumerate() {
        let line = format!(
            "\n{}. {} {} ({:.0} % sure): {}\n   {}\n",
            number + 1,
            finding.severity.as_str(),
            finding.place(),
            finding.confidence * 100.0,
            frame::shown(&finding.title, 200),
            frame::shown(&finding.body, BODY_CHARS),
        );
        let line = match finding.recommendation.trim() {
            "" => line,
            words => format!("{line}   → {}\n", frame::shown(words, BODY_CHARS)),
        };
        if text.chars().count() + line.chars().count() > REASON_CHARS {
            text.push_str(&format!("\nand {} more\n", review.findings.len() - number));
            break;
        }
        text.push_str(&line);
    }
    StopDecision::Block(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::git;

    fn seen(root: &Path, memory: &Memory) -> Found {
        look(root, memory, &|name| std::env::var_os(name))
    }

    #[test]
    fn what_was_allowed_is_not_reviewed_again_and_what_was_committed_since_is() {
        let repository = tempfile::tempdir().unwrap();
        let root = repository.path();
        let commit = |name: &str| {
            git(root, &["add", "-A"]).unwrap();
            let words =
                ["-c", "user.name=x", "-c", "user.email=x@example.invalid", "commit", "--quiet", "-m", name];
            git(root, &words).unwrap();
        };
        assert_eq!(seen(root, &Memory::default()).new, New::Unknown, "there is no repository");
        git(root, &["init", "--quiet"]).unwrap();
        fs::write(root.join("a"), "1\n").unwrap();
        commit("first");
        assert_eq!(seen(root, &Memory::default()).new, New::None);
        fs::write(root.join("a"), "2\n").unwrap();
        let found = seen(root, &Memory::default());
        assert_eq!(found.new, New::Some);
        let memory = found.allowed;
        assert_eq!(seen(root, &memory).new, New::None, "allowed as it is");
        commit("second");
        assert_eq!(seen(root, &memory).new, New::None, "the same, committed");
        fs::write(root.join("a"), "3\n").unwrap();
        commit("third");
        let found = seen(root, &memory);
        assert_eq!(found.new, New::Some, "committed without a review");
        assert_eq!(seen(root, &found.allowed).new, New::None);
        let lost = Memory { base: Some("0".repeat(40)), ..memory };
        assert_eq!(seen(root, &lost).new, New::None, "a commit that is gone is as none");
    }

    #[test]
    fn a_memory_reads_back_and_nonsense_is_none() {
        let home = tempfile::tempdir().unwrap();
        let memory = Memory { rounds: 2, base: Some("abc".into()), digest: "d".into() };
        memory.keep(home.path(), "x", "../../s").unwrap();
        assert_eq!(Memory::of(home.path(), "x", "../../s"), memory);
        assert_eq!(Memory::of(home.path(), "y", "../../s"), Memory::default());
        let old = file(home.path(), "x", "s");
        fs::write(&old, "{").unwrap();
        assert_eq!(Memory::of(home.path(), "x", "s"), Memory::default());
        let long_ago = std::time::SystemTime::now() - MEMORY_AGE_LIMIT - Duration::from_secs(60);
        fs::File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        memory.keep(home.path(), "x", "another").unwrap();
        assert!(!old.exists());
        assert_eq!(Memory::of(home.path(), "x", "../../s"), memory);
    }
}
