//! `setup --remove --purge`: deletes baton's state and the person's configuration.
//!
//! Only what baton itself makes is deleted, by its name: a home may be a folder with other things
//! in it. A symbolic link is deleted, and never followed. A worktree that holds work stays, and so
//! does everything while a session or a job uses it.

use super::words::short;
use crate::commands::CommandContext;
use crate::environment;
use crate::print::{Out, text};
use baton_agents::install::in_projects;
use baton_core::id::JobId;
use baton_core::{Code, Error, name};
use baton_jobs::worktree;
use baton_mail::directory;
use baton_store::{JobFilter, Jobs, Store};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How the names of baton's files in its home begin; each may have a suffix.
const FILES: [&str; 11] = [
    "baton.db",
    "jobs.db",
    "approvals.db",
    ".baton.db.",
    ".jobs.db.",
    ".approvals.db.",
    "config-path",
    "hook.log",
    "guard.log",
    "guard.calls",
    "codex.start",
];
/// Baton's folders in its home.
const FOLDERS: [&str; 8] = ["asking", "bell", "jobs", "opencode", "reviews", "setup", "unknown", "waiter"];
/// The folder of the jobs' worktrees, whose content is the person's.
const WORKTREES: &str = "worktrees";
/// The longest list of jobs that is searched for one that runs.
const MAX_JOBS_READ: usize = 200;

/// Refuses while something uses the state.
pub fn check(context: &CommandContext) -> Result<(), Error> {
    if let Some(place) = in_projects(&context.home).first() {
        return Err(Error::new(Code::InUse, format!("a project is set up too: {}", place.display()))
            .hint("run `baton setup --remove --project` in that project first"));
    }
    if let Some(jobs) = Jobs::open_if_any(&context.home)? {
        let open = jobs.list(JobFilter::Open, MAX_JOBS_READ)?;
        if let Some(job) = open.first() {
            return Err(Error::new(
                Code::InUse,
                format!("{} jobs have not ended, such as {}", open.len(), job.id),
            )
            .hint(format!(
                "`baton job cancel {}` ends it; `baton job heal --all` ends those that are dead",
                job.id
            )));
        }
    }
    if !Store::path(&context.home).exists() {
        return Ok(());
    }
    let mut store = context.store()?;
    let here = directory::who(&mut store, None, false)?;
    let mut here = here.iter().filter(|one| one.agent != name::USER);
    match here.next() {
        None => Ok(()),
        Some(one) => {
            Err(Error::new(Code::InUse, format!("{} sessions run, such as {}", here.count() + 1, one.name))
                .hint("end them first; `baton who --all` lists them"))
        }
    }
}

/// Whether the person wants it.
pub fn agrees(context: &CommandContext, out: Out, is_said: bool) -> Result<bool, Error> {
    if is_said {
        return Ok(true);
    }
    let home = short(&context.home);
    let what = match environment::recorded_config_file(&context.home)? {
        Some(file) => text![home, ", and your settings in ", short(&file)],
        None => text![home],
    };
    let question = text!["delete all mail, jobs and logs in ", what, "? [y/N] "];
    out.agrees(question).ok_or_else(|| {
        Error::new(Code::Usage, "there is no terminal to ask in")
            .hint("add --yes to delete without a question")
    })
}

/// Deletes it, and says what stays.
pub fn carry_out(context: &CommandContext, out: Out) -> Result<(), Error> {
    // Only the file that this home records: another home may have its own.
    let settings = environment::recorded_config_file(&context.home)?;
    let kept = worktrees(&context.home).map_err(|error| failed(&context.home, &error))?;
    state(&context.home).map_err(|error| failed(&context.home, &error))?;
    let mut deleted = vec![short(&context.home)];
    if let Some(file) = settings {
        match fs::remove_file(&file) {
            Ok(()) => deleted.push(short(&file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&file, &error)),
        }
        // Only if it is empty.
        file.parent().map(fs::remove_dir);
    }
    out.say(text!["deleted ", deleted.join(" and ")]);
    for worktree in kept {
        out.say(text!["stays, because it holds work: ", short(&worktree)]);
    }
    if let Ok(left) = fs::read_dir(&context.home) {
        let left: Vec<String> =
            left.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        out.say(text!["stays in ", short(&context.home), ": ", left.join(", ")]);
    }
    out.say("branches baton/… of jobs stay in your repositories");
    Ok(())
}

/// Removes the worktrees that hold nothing, and returns the others.
fn worktrees(home: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = home.join(WORKTREES);
    let entries = match folder.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::read_dir(&folder)?,
        // A link is not followed.
        _ => return Ok(Vec::new()),
    };
    let mut kept = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let id = path.file_name().and_then(|name| name.to_str()).and_then(JobId::parse);
        let is_gone = id.is_some_and(|id| worktree::clean(home, &id) == Ok(true));
        if !is_gone {
            kept.push(path);
        }
    }
    // Only if it is empty.
    fs::remove_dir(&folder).ok();
    Ok(kept)
}

/// Deletes what baton made in its home, and the home if nothing else is in it.
fn state(home: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(home) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        // Of the entry itself: a link to a folder is no folder.
        let is_folder = entry.file_type()?.is_dir();
        if is_folder && FOLDERS.contains(&name) {
            // It follows no link below either.
            fs::remove_dir_all(entry.path())?;
        } else if !is_folder && (FOLDERS.contains(&name) || FILES.iter().any(|known| name.starts_with(known)))
        {
            fs::remove_file(entry.path())?;
        }
    }
    // Only if it is empty.
    fs::remove_dir(home).ok();
    Ok(())
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::new(Code::StoreUnavailable, format!("{} can't be deleted: {error}", path.display()))
        .hint("what was deleted until then is gone; run it again when the reason is mended")
}
