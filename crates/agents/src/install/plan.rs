//! A plan: the edits of one agent in one scope, ready to be shown and applied. Applying takes a
//! lock under baton's home, checks every file first, writes backups and the manifest before the
//! first edit, and restores what was done if a later edit fails. If a running agent rewrites a file
//! itself, that agent's own command changes the file, if the command works; otherwise we do. A plan
//! is about the files at the time it was made. If one has changed since, applying does nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::manifest::{Entry, Manifest, Records as Store, sha256};
use super::{Current, FileEdit, InstallError, OwnCommand, Records, Run, Scope, Target, Trust};
use crate::config::file::{FileError, Snapshot, make_parents};
use crate::config::json::Container;

/// The mode of a new file in the user's own configuration, which may later hold secrets.
const USER_FILE_MODE: u32 = 0o600;
/// The mode of a new file in a project.
const PROJECT_FILE_MODE: u32 = 0o644;

/// Edits that belong together.
#[derive(Debug)]
pub struct Plan {
    steps: Vec<Step>,
    notes: Vec<String>,
    trust: Trust,
    loaded: Option<PathBuf>,
    store: Store,
    /// The manifest as it was when the plan was made.
    prior: Option<Manifest>,
    goal: Goal,
    new_mode: u32,
}

#[derive(Debug)]
struct Step {
    edit: FileEdit,
    snapshot: Snapshot,
}

impl Step {
    /// The agent's own command for it, if it should be used now.
    fn command<'s, 'r>(&'s self, run: Option<Run<'r>>) -> Option<(&'s OwnCommand, Run<'r>)> {
        self.edit.by.as_ref().filter(|command| command.is_needed()).zip(run)
    }
}

#[derive(Debug)]
enum Goal {
    /// Set up: with the new manifest, and copies to keep (path and bytes).
    Installed { manifest: Manifest, copies: Vec<(PathBuf, Vec<u8>)> },
    /// Removed: with the directories that we made, outermost first.
    Removed { dirs: Vec<PathBuf>, copies: Vec<(PathBuf, Vec<u8>)> },
}

/// What applying a plan did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The files that were written or deleted.
    pub changed: Vec<PathBuf>,
    /// What a person should know about how it was done.
    pub notes: Vec<String>,
}

/// The result of one step.
struct Written {
    after: Option<Vec<u8>>,
    /// Another program may have written the file at the same time. Then the original must not be
    /// restored over it.
    shared: bool,
    /// The agent's command did not work, for this reason.
    note: Option<String>,
}

/// What both kinds of plan begin with.
struct Situation {
    snapshots: Vec<Snapshot>,
    now: Current,
    manifest: Option<Manifest>,
    /// The edits that would remove baton, by value.
    out: Vec<FileEdit>,
    store: Store,
}

impl Situation {
    fn read(target: &dyn Target) -> Result<Self, InstallError> {
        let store = Store::new(target.agent(), target.install());
        let manifest = store.load()?;
        let snapshots: Vec<Snapshot> =
            target.files().iter().map(|path| Snapshot::read(path)).collect::<Result<_, _>>()?;
        let now: Current =
            snapshots.iter().map(|s| (s.path().to_owned(), s.bytes().map(<[u8]>::to_vec))).collect();
        let entries = manifest.iter().flat_map(|m| &m.files);
        let records: Records = entries.filter_map(|e| Some((e.path.clone(), e.made.clone()?))).collect();
        let out = target.take_out(&now, &records)?;
        Ok(Self { snapshots, now, manifest, out, store })
    }

    fn entry(&self, path: &Path) -> Option<&Entry> {
        self.manifest.as_ref()?.entry(path)
    }

    /// The file without our entries, by value.
    fn without_us(&self, path: &Path) -> Option<Vec<u8>> {
        match self.out.iter().find(|edit| edit.path == path) {
            Some(edit) => edit.after.clone(),
            None => self.now.bytes(path).map(<[u8]>::to_vec),
        }
    }

    fn steps(&self, edits: Vec<FileEdit>) -> Vec<Step> {
        let edits = edits.into_iter().filter(FileEdit::is_change);
        let steps = edits.filter_map(|edit| {
            let snapshot = self.snapshots.iter().find(|s| s.path() == edit.path)?.clone();
            Some(Step { edit, snapshot })
        });
        steps.collect()
    }
}

impl Plan {
    /// Reads the target's files, and plans how to set baton up.
    pub fn install(target: &dyn Target) -> Result<Self, InstallError> {
        let situation = Situation::read(target)?;
        let edits = target.add(&situation.now)?;
        let steps = situation.steps(edits);
        let mut copies = Vec::new();
        let mut files: Vec<Entry> = Vec::new();
        for step in &steps {
            files.push(entry_for(step, &situation, &mut copies));
        }
        for path in target.shared() {
            if !files.iter().any(|entry| entry.path == path) {
                files.extend(adopted(&path, &situation, &mut copies)?);
            }
        }
        let kept = situation.manifest.iter().flat_map(|m| &m.files);
        let kept = kept.filter(|entry| !files.iter().any(|f| f.path == entry.path)).cloned();
        let files = kept.collect::<Vec<_>>().into_iter().chain(files).collect();
        let goal = Goal::Installed { manifest: situation.store.manifest(files), copies };
        let trust = target.trust(&situation.now)?;
        Ok(Self { trust, ..Self::new(target, situation, steps, goal) })
    }

    /// Reads the target's files, and plans how to remove baton.
    pub fn remove(target: &dyn Target) -> Result<Self, InstallError> {
        let mut situation = Situation::read(target)?;
        let mut copies = Vec::new();
        let mut edits = std::mem::take(&mut situation.out);
        let mut left = Vec::new();
        for path in target.shared() {
            // The last agent that is removed removes the entry.
            if !situation.store.elsewhere(&path)?.is_empty() {
                left.push(path);
            }
        }
        edits.retain(|edit| !left.contains(&edit.path));
        for snapshot in &situation.snapshots {
            let (path, Some(bytes)) = (snapshot.path(), snapshot.bytes()) else { continue };
            if left.iter().any(|shared| shared == path) {
                continue;
            }
            let by_value = edits.iter_mut().find(|edit| edit.path == path);
            match situation.entry(path).and_then(|entry| exact(entry, bytes, &situation.store)) {
                Some(original) => match by_value {
                    Some(edit) => (edit.after, edit.by) = (original, None),
                    None => edits.push(FileEdit::take_out(path, bytes, original, "restore".to_owned())),
                },
                None => {
                    if by_value.is_some_and(|edit| edit.is_change()) {
                        copies.push((path.to_owned(), bytes.to_vec()));
                    }
                }
            }
        }
        let steps = situation.steps(edits);
        let entries = situation.manifest.iter().flat_map(|m| &m.files);
        let dirs = entries.flat_map(|entry| entry.dirs.clone()).collect();
        Ok(Self::new(target, situation, steps, Goal::Removed { dirs, copies }))
    }

    fn new(target: &dyn Target, situation: Situation, steps: Vec<Step>, goal: Goal) -> Self {
        let new_mode = match target.install().scope() {
            Scope::User => USER_FILE_MODE,
            Scope::Project(_) => PROJECT_FILE_MODE,
        };
        let notes = match goal {
            Goal::Installed { .. } => target.notes(&situation.now),
            Goal::Removed { .. } => Vec::new(),
        };
        let Situation { store, manifest: prior, .. } = situation;
        let loaded = target.loaded().map(Path::to_owned);
        Self { steps, notes, trust: Trust::NotAsked, loaded, store, prior, goal, new_mode }
    }

    /// The edits that change something.
    pub fn edits(&self) -> impl Iterator<Item = &FileEdit> {
        self.steps.iter().map(|step| &step.edit)
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// What a person should know beside the edits.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether the agent uses the entries in the current files. Only set in a plan to set baton up.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Our code that the agent loads into its own process, if any.
    pub fn loaded(&self) -> Option<&Path> {
        self.loaded.as_deref()
    }

    pub fn diff(&self) -> String {
        self.edits().map(FileEdit::diff).collect()
    }

    /// Writes all files, or none.
    pub fn apply(self) -> Result<Applied, InstallError> {
        self.apply_with(None)
    }

    /// The same, with the agent's own commands where they are needed; `run` runs them.
    pub fn apply_with(self, run: Option<Run<'_>>) -> Result<Applied, InstallError> {
        if self.is_empty() && (matches!(self.goal, Goal::Installed { .. }) || self.prior.is_none()) {
            return Ok(Applied { changed: Vec::new(), notes: Vec::new() });
        }
        let _lock = self.lock()?;
        if self.store.load()? != self.prior {
            return Err(FileError::Changed { path: self.store.manifest_path() }.into());
        }
        for step in &self.steps {
            match step.command(run) {
                Some(_) => step.snapshot.check_place()?,
                None => step.snapshot.check_writable()?,
            }
        }
        let (Goal::Installed { copies, .. } | Goal::Removed { copies, .. }) = &self.goal;
        for (path, bytes) in copies {
            self.store.back_up(path, bytes)?;
        }
        // Before the edits: if we are killed in between, this says what to undo.
        if let Goal::Installed { manifest, .. } = &self.goal {
            self.store.save(manifest)?;
        }
        let written = match self.write_all(run) {
            Ok(written) => written,
            Err(source) => return Err(self.put_manifest_back(source)),
        };
        let kept = match &self.goal {
            Goal::Installed { manifest, .. } => Some(self.note_bytes(manifest, &written)?),
            Goal::Removed { dirs, .. } => {
                let entries = self.prior.iter().flat_map(|m| &m.files);
                let left = entries.filter(|entry| entry.path.exists());
                for entry in left {
                    self.store.hand_over(entry)?;
                }
                self.store.delete()?;
                remove_empty(dirs);
                None
            }
        };
        // Old backups only take space. They are not worth a failure after the work is done.
        self.store.prune(kept.as_ref()).ok();
        if kept.is_none() {
            self.store.leave();
        }
        let notes = written.into_iter().filter_map(|written| written.note).collect();
        Ok(Applied { changed: self.steps.into_iter().map(|step| step.edit.path).collect(), notes })
    }

    /// The manifest with what an agent's command has written, which was not known before.
    fn note_bytes(&self, manifest: &Manifest, written: &[Written]) -> Result<Manifest, InstallError> {
        let mut noted = manifest.clone();
        for (step, written) in self.steps.iter().zip(written) {
            if let Some(entry) = noted.files.iter_mut().find(|entry| entry.path == step.edit.path) {
                entry.after = match written.shared {
                    true => String::new(),
                    false => sha256(written.after.as_deref().unwrap_or_default()),
                };
            }
        }
        if noted != *manifest {
            self.store.save(&noted)?;
        }
        Ok(noted)
    }

    fn lock(&self) -> Result<File, InstallError> {
        let path = self.store.lock_path();
        loop {
            let made = make_parents(&path, 0o700)?;
            let file = baton_machine::own::append(&path);
            let locked = file.and_then(|file| file.lock().map(|()| file));
            let locked = locked.map_err(|e| FileError::io("lock", &path, e))?;
            self.store.note_made(&made).map_err(|e| FileError::io("write", &path, e))?;
            // The last removal deletes the lock file that others wait for. A lock counts only while
            // its file still has its name.
            if is_named(&locked, &path) {
                return Ok(locked);
            }
        }
    }

    fn write_all(&self, run: Option<Run<'_>>) -> Result<Vec<Written>, InstallError> {
        let mut done = Vec::new();
        for step in &self.steps {
            match self.write(step, run) {
                Ok(written) => done.push(written),
                Err(source) => {
                    let left = self.put_back(&done);
                    let source = InstallError::from(source);
                    return Err(match left.is_empty() {
                        true => source,
                        false => InstallError::HalfDone { source: Box::new(source), left },
                    });
                }
            }
        }
        Ok(done)
    }

    /// Makes one change: by the agent's command, if there is one and it works; otherwise by writing
    /// the file.
    fn write(&self, step: &Step, run: Option<Run<'_>>) -> Result<Written, FileError> {
        let FileEdit { path, before, after, .. } = &step.edit;
        let mut note = None;
        if let Some((command, run)) = step.command(run) {
            step.snapshot.check_place()?;
            let said = run(command);
            let now = Snapshot::read(path)?;
            if command.is_done(now.bytes()) {
                let shared = !command.is_all_that_changed(before.as_deref(), now.bytes());
                return Ok(Written { after: now.bytes().map(<[u8]>::to_vec), shared, note: None });
            }
            let why = said.err().unwrap_or_else(|| "it changed nothing".to_owned());
            note = Some(format!(
                "{} was written by baton, not by the agent's own command: {why}",
                path.display()
            ));
        }
        // Refused if another program has changed the file, or that command has.
        step.snapshot.replace(after.as_deref(), self.new_mode)?;
        Ok(Written { after: after.clone(), shared: false, note })
    }

    /// Undoes the first steps, and returns the files where that failed.
    fn put_back(&self, done: &[Written]) -> Vec<PathBuf> {
        let undo = |(step, written): &(&Step, &Written)| -> Result<(), FileError> {
            let now = Snapshot::read(&step.edit.path)?;
            if now.bytes() != written.after.as_deref() {
                return Err(FileError::Changed { path: step.edit.path.clone() });
            }
            now.replace(step.edit.before.as_deref(), self.new_mode).map(drop)
        };
        let failed = self.steps.iter().zip(done).rev().filter(|step| undo(step).is_err());
        failed.map(|(step, _)| step.edit.path.clone()).collect()
    }

    fn put_manifest_back(&self, source: InstallError) -> InstallError {
        if matches!(self.goal, Goal::Removed { .. }) || matches!(source, InstallError::HalfDone { .. }) {
            return source;
        }
        if let Goal::Installed { manifest, .. } = &self.goal {
            let made = manifest.files.iter().flat_map(|f| f.dirs.clone()).collect::<Vec<_>>();
            remove_empty(&made);
        }
        let put_back = match &self.prior {
            Some(old) => self.store.save(old),
            None => self.store.delete(),
        };
        // The manifest only makes removal exact. The first failure is the one to report.
        put_back.ok();
        source
    }
}

/// The record of a file that is about to be written.
fn entry_for(step: &Step, situation: &Situation, copies: &mut Vec<(PathBuf, Vec<u8>)>) -> Entry {
    let FileEdit { path, before, after, made, .. } = &step.edit;
    let prior = situation.entry(path);
    let without_us = situation.without_us(path);
    let ours_there = *before != without_us;
    copies.extend(before.iter().map(|bytes| (path.clone(), bytes.clone())));
    let as_we_left_it = prior.filter(|p| before.as_deref().map(sha256).as_ref() == Some(&p.after));
    let original = match as_we_left_it {
        Some(prior) => prior.original.clone(),
        None => {
            copies.extend(without_us.iter().map(|bytes| (path.clone(), bytes.clone())));
            without_us.as_deref().map(|bytes| situation.store.backup_of(path, bytes))
        }
    };
    let made = match prior.map(|p| &p.made) {
        _ if !ours_there => Some(made.clone()),
        Some(Some(known)) => Some(merged(known, made)),
        Some(None) | None => None,
    };
    let mut dirs = prior.map(|p| p.dirs.clone()).unwrap_or_default();
    dirs.extend(step.snapshot.missing_dirs());
    let after = sha256(after.as_deref().unwrap_or_default());
    Entry { path: path.clone(), after, original, made, dirs }
}

/// What another agent's manifest says about a file in which its entry also serves us. Then either
/// of the two may be removed last.
fn adopted(
    path: &Path,
    situation: &Situation,
    copies: &mut Vec<(PathBuf, Vec<u8>)>,
) -> Result<Option<Entry>, InstallError> {
    let Some(now) = situation.now.bytes(path).map(sha256) else { return Ok(None) };
    let theirs = situation.store.elsewhere(path)?.into_iter().find(|entry| entry.after == now);
    let Some(mut entry) = theirs else { return Ok(None) };
    if let Some(backup) = &entry.original {
        let Some(bytes) = situation.store.restore(backup) else { return Ok(None) };
        entry.original = Some(situation.store.backup_of(path, &bytes));
        copies.push((path.to_owned(), bytes));
    }
    Ok(Some(entry))
}

/// Old records, overwritten by the new ones.
fn merged(old: &[Container], new: &[Container]) -> Vec<Container> {
    let kept = old.iter().filter(|o| !new.iter().any(|n| n.at == o.at));
    kept.chain(new).cloned().collect()
}

/// The original of a file that is still as we left it; `Some(None)` if there was no file.
fn exact(entry: &Entry, bytes: &[u8], store: &Store) -> Option<Option<Vec<u8>>> {
    if sha256(bytes) != entry.after {
        return None;
    }
    match &entry.original {
        None => Some(None),
        Some(backup) => store.restore(backup).map(Some),
    }
}

/// Whether the open file is the one at the path.
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same =
        |ours: fs::Metadata, named: fs::Metadata| (ours.dev(), ours.ino()) == (named.dev(), named.ino());
    file.metadata().is_ok_and(|ours| fs::metadata(path).is_ok_and(|named| same(ours, named)))
}

/// Removes directories that are empty now, innermost first; others stay.
fn remove_empty(dirs: &[PathBuf]) {
    for dir in dirs.iter().rev() {
        // A directory that is not empty, or is gone, stays as it is.
        fs::remove_dir(dir).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::install::Claude;
    use crate::install::Install;

    #[test]
    fn a_failure_in_the_middle_puts_everything_back() {
        let root = tempfile::tempdir().unwrap();
        let user = root.path().join("user");
        fs::create_dir(&user).unwrap();
        let state = user.join(".claude.json");
        fs::write(&state, "{}").unwrap();
        let install = Install::new(Path::new("/bin/baton"), &root.path().join("baton"), Scope::User).unwrap();
        let target = Claude::new(install, &user, None).unwrap();
        let plan = Plan::install(&target).unwrap();
        let Goal::Installed { manifest, .. } = &plan.goal else { unreachable!() };
        plan.store.save(manifest).unwrap();
        // Too late for the check that comes before all edits.
        fs::write(&state, "{ }").unwrap();
        let error = plan.write_all(None).map(drop).unwrap_err();
        assert_eq!(error.code(), "file-changed");
        assert!(!target.settings_path().exists(), "it was written first");
        let error = plan.put_manifest_back(error);
        assert_eq!(error.code(), "file-changed");
        assert!(!user.join(".claude").exists() && !plan.store.manifest_path().exists());
        assert_eq!(fs::read_to_string(state).unwrap(), "{ }");
    }
}
