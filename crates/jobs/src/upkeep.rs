//! Leftovers in the home that no record knows: folders of jobs, and worktrees. For doctor.

use crate::place::{Held, Place};
use crate::worktree;
use baton_core::Error;
use baton_core::id::JobId;
use baton_store::Jobs;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A younger folder may belong to a job whose record is about to be written.
const MIN_FOLDER_AGE: Duration = Duration::from_secs(60);

/// What no record knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    pub folders: Vec<JobId>,
    pub worktrees: Vec<JobId>,
}

impl Leftovers {
    /// Looks for them. `jobs` is `None` if no job was ever started.
    pub fn find(home: &Path, jobs: Option<&Jobs>) -> Result<Self, Error> {
        let mut found = Self::default();
        for (folder, list) in [("jobs", &mut found.folders), ("worktrees", &mut found.worktrees)] {
            for id in settled(&home.join(folder)) {
                let known = match jobs {
                    Some(jobs) => jobs.get(&id)?.is_some(),
                    None => false,
                };
                if !known && Place::of(home, &id).held() == Held::No {
                    list.push(id);
                }
            }
        }
        Ok(found)
    }

    /// Removes the folders, and the worktrees whose content is elsewhere too. Returns what had to
    /// stay.
    pub fn remove(&self, home: &Path) -> Self {
        let is_left = |id: &&JobId| fs::remove_dir_all(Place::of(home, id).folder()).is_err();
        let holds = |id: &&JobId| !worktree::clean(home, id).unwrap_or(false);
        Self {
            folders: self.folders.iter().filter(is_left).cloned().collect(),
            worktrees: self.worktrees.iter().filter(holds).cloned().collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.worktrees.is_empty()
    }
}

fn settled(folder: &Path) -> Vec<JobId> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let changed = entry.metadata().and_then(|found| found.modified());
            changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > MIN_FOLDER_AGE))
        })
        .filter_map(|entry| JobId::parse(entry.file_name().to_str()?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn only_what_is_old_unknown_and_not_held_is_left_over() {
        let home = tempfile::tempdir().unwrap();
        let [old, young, held] = [[1; 8], [2; 8], [3; 8]].map(JobId::from_random);
        let make = |id: &JobId| Place::of(home.path(), id).make().unwrap();
        drop((make(&old), make(&young)));
        let _lock = make(&held);
        fs::create_dir(home.path().join("jobs/not-a-job")).unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        for name in [old.as_str(), held.as_str(), "not-a-job"] {
            fs::File::open(home.path().join("jobs").join(name)).unwrap().set_modified(hour_ago).unwrap();
        }
        let found = Leftovers::find(home.path(), None).unwrap();
        assert_eq!(found, Leftovers { folders: vec![old], worktrees: Vec::new() });
        assert!(found.remove(home.path()).is_empty());
        assert!(Leftovers::find(home.path(), None).unwrap().is_empty());
        assert!(home.path().join("jobs/not-a-job").exists());
    }
}
