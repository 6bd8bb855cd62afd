//! The stop gate's rim: what was reviewed in which session, and one review with a deadline.
//!
//! What a session may do is decided in `baton_core::review`. A file per session in the home says what was allowed last and how often the session was held. A
//! review that fails, answers nonsense or takes too long is ended, and the session stops.

use super::changes::{self, Changes};
use super::{Opinion, Order, Review};
use crate::wait::{self, Until};
use crate::{Host, cancel};
use baton_core::error::Code;
use baton_core::job::Status;
use baton_core::review::{Changes as New, Gate};
use baton_core::{Error, frame};
use baton_mail::identity::Identity;
use baton_store::{Jobs, Store};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much of a finding's text a held session is told.
const BODY_CHARS: usize = 600;
/// How much it is told in all.
const REASON_CHARS: usize = 8000;
/// A session that has not stopped for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is remembered of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// How often it was held in this chain of stops.
    pub rounds: u32,
    /// The commit that was checked out when a review last allowed a stop.
    pub base: Option<String>,
    /// What had changed since that commit then.
    pub digest: String,
}

impl Memory {
    /// What is remembered; nothing where that can't be read.
    pub fn of(home: &Path, agent: &str, session: &str) -> Self {
        let Ok(bytes) = fs::read(file(home, agent, session)) else { return Self::default() };
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        Self {
            rounds: value["rounds"].as_u64().and_then(|rounds| u32::try_from(rounds).ok()).unwrap_or(0),
            base: value["base"].as_str().map(str::to_owned),
            digest: value["digest"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Remembers it.
    pub fn keep(&self, home: &Path, agent: &str, session: &str) -> io::Result<()> {
        let file = file(home, agent, session);
        DirBuilder::new().recursive(true).mode(0o700).create(home.join("reviews"))?;
        let new = file.with_extension("new");
        let mut out = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&new)?;
        let value = json!({"rounds": self.rounds, "base": self.base, "digest": self.digest});
        out.write_all(value.to_string().as_bytes())?;
        fs::rename(new, file)?;
        forget_old(&home.join("reviews"));
        Ok(())
    }
}

/// So that the folder stays small. What can't be removed now is tried again at the next stop.
fn forget_old(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|found| found.modified());
        if changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > FORGOTTEN)) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

fn file(home: &Path, agent: &str, session: &str) -> PathBuf {
    // A session's id is the agent's word, and may hold anything.
    let name = Sha256::new().chain_update(agent).chain_update([0]).chain_update(session).finalize();
    let name: String = name.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    home.join("reviews").join(format!("{name}.json"))
}

/// What there is to review in a folder.
#[derive(Clone, Debug)]
pub struct Found {
    /// Whether it is anything new.
    pub new: New,
    /// It, if it is.
    pub changes: Option<Changes>,
    /// What is to be remembered if it is allowed.
    pub allowed: Memory,
    /// Why nobody knows.
    pub why: Option<Error>,
}

/// Looks what has changed since a review last allowed a stop; since the last commit where none did.
pub fn look(cwd: &Path, memory: &Memory) -> Found {
    let nothing = |allowed: Memory| Found { new: New::None, changes: None, allowed, why: None };
    let looked = || -> Result<Found, Error> {
        let root = changes::root(cwd)?;
        let head = changes::head(&root)?;
        let base = memory.base.clone().filter(|base| changes::is_there(&root, base));
        let base = base.unwrap_or_else(|| head.clone());
        let name = if base == head { "the last commit" } else { "the last review" };
        let found = none_is_fine(changes::since_commit(&root, &base, name))?;
        // What is allowed now is compared with what is checked out now.
        let digest = match &found {
            Some(found) if base == head => found.digest.clone(),
            _ => none_is_fine(changes::since_commit(&root, &head, name))?
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

/// Has a change reviewed, until then at the latest. Never an error: what goes wrong lets the session stop.
pub fn run(
    host: &Host,
    store: &mut Store,
    me: &Identity,
    order: &Order<'_>,
    changes: &Changes,
    deadline: Instant,
) -> Gate {
    let could_not = |error: Error| Gate::CouldNotRun(format!("{}: {}", error.code(), error.message()));
    let mut reviewed = || -> Result<Gate, Error> {
        let (agent, job) = super::ask(host, store, me, order, changes)?;
        let mut jobs = Jobs::open(&host.home)?;
        let rows =
            wait::wait(host, &mut jobs, std::slice::from_ref(&job.id), Until::All, deadline, &mut |_| true)?;
        let Some(row) = rows.into_iter().next() else {
            return Err(Error::new(Code::UnknownJob, "the review is gone"));
        };
        if !row.status.is_end() {
            let stands = format!("{agent} was still at it ({}), job {}", row.status, row.id);
            cancel::cancel(host, &mut jobs, row)?;
            return Ok(Gate::CouldNotRun(stands));
        }
        jobs.set_read(&row.id, baton_mail::now())?;
        match (row.status, row.result, row.fault) {
            (Status::Completed, Some(answer), _) => Ok(match Review::parse(&answer) {
                Ok(review) => judged(agent, &review),
                Err(why) => {
                    Gate::CouldNotRun(format!("the answer of {agent} is no review: {why} (job {})", job.id))
                }
            }),
            (status, _, Some(fault)) => {
                Ok(Gate::CouldNotRun(format!("job {} {status}: {}", job.id, fault.error.message())))
            }
            (status, ..) => Ok(Gate::CouldNotRun(format!("job {} {status}", job.id))),
        }
    };
    reviewed().unwrap_or_else(could_not)
}

fn judged(agent: &str, review: &Review) -> Gate {
    if review.opinion == Opinion::Approve {
        return Gate::Allow;
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
    Gate::Block(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::git;

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
        assert_eq!(look(root, &Memory::default()).new, New::Unknown, "there is no repository");
        git(root, &["init", "--quiet"]).unwrap();
        fs::write(root.join("a"), "1\n").unwrap();
        commit("first");
        assert_eq!(look(root, &Memory::default()).new, New::None);
        fs::write(root.join("a"), "2\n").unwrap();
        let found = look(root, &Memory::default());
        assert_eq!(found.new, New::Some);
        let memory = found.allowed;
        assert_eq!(look(root, &memory).new, New::None, "allowed as it is");
        commit("second");
        assert_eq!(look(root, &memory).new, New::None, "the same, committed");
        fs::write(root.join("a"), "3\n").unwrap();
        commit("third");
        let found = look(root, &memory);
        assert_eq!(found.new, New::Some, "committed without a review");
        assert_eq!(look(root, &found.allowed).new, New::None);
        let lost = Memory { base: Some("0".repeat(40)), ..memory };
        assert_eq!(look(root, &lost).new, New::None, "a commit that is gone is as none");
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
        let long_ago = std::time::SystemTime::now() - FORGOTTEN - Duration::from_secs(60);
        fs::File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        memory.keep(home.path(), "x", "another").unwrap();
        assert!(!old.exists());
        assert_eq!(Memory::of(home.path(), "x", "../../s"), memory);
    }
}
