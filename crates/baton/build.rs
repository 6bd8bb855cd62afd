//! Tells the program which commit it is built from, and when that commit was made.
//!
//! The sources are looked for in this order: a checkout (a worktree too), the mark that
//! `git archive` leaves in `source.txt`, the note that `cargo package` adds. If there is none, the
//! program says so. `SOURCE_DATE_EPOCH` replaces the date. The time of the build itself is never
//! used, so the same sources make the same program.
//!
//! A debug build names no commit. Otherwise each commit would compile the program again.

#![expect(clippy::disallowed_macros, reason = "a build script speaks to Cargo on its standard output")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program is made from, below the root of the workspace.
const SOURCES: [&str; 4] = ["crates", "Cargo.toml", "Cargo.lock", ".cargo"];
/// How much of a commit's name is shown.
const COMMIT_CHARS: usize = 10;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let (commit, date) = if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        ("debug build".to_owned(), String::new())
    } else {
        let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
        for name in SOURCES {
            watch(&folder.join("../..").join(name));
        }
        let (commit, date) =
            checkout(&folder).or_else(|| archived(&folder)).or_else(|| packaged(&folder)).unwrap_or_default();
        (commit, epoch().unwrap_or(date))
    };
    let named = if commit.is_empty() { "commit unknown, not built from a checkout" } else { &commit };
    let known = [named, &date].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let number = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo::rustc-env=BATON_VERSION={number} ({known})");
    println!("cargo::rustc-env=BATON_COMMIT={commit}");
    println!("cargo::rustc-env=BATON_DATE={date}");
}

/// Has Cargo run this script again after a change there. Cargo would run it at each build if it
/// were told of a file that is not there.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// The commit of the checkout that this folder belongs to, and whether the sources differ from it.
fn checkout(folder: &Path) -> Option<(String, String)> {
    // A copy of the sources inside of another repository is not that repository.
    if git(folder, &["rev-parse", "--show-prefix"])? != "crates/baton/" {
        return None;
    }
    git(folder, &["ls-files", "--error-unmatch", "build.rs"])?;
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        watch(&folder.join(git(folder, &["rev-parse", "--git-path", name])?));
    }
    let root = folder.join("../..");
    let commit = git(folder, &["rev-parse", "HEAD"])?;
    let date = git(folder, &["log", "-1", "--date=format-local:%Y-%m-%d", "--format=%cd"])?;
    let state = git(&root, &[&["status", "--porcelain", "--"], &SOURCES[..]].concat())?;
    let changed = if state.is_empty() { "" } else { " and changes" };
    Some((format!("{}{changed}", short(&commit)?), date))
}

/// What `git archive` wrote into `source.txt`: the commit and its day.
fn archived(folder: &Path) -> Option<(String, String)> {
    let path = folder.join("source.txt");
    watch(&path);
    let text = std::fs::read_to_string(path).ok()?;
    let (commit, date) = text.trim().split_once(' ')?;
    Some((short(commit)?, date.to_owned()))
}

/// What `cargo package` adds to a crate: the commit alone.
fn packaged(folder: &Path) -> Option<(String, String)> {
    let text = std::fs::read_to_string(folder.join(".cargo_vcs_info.json")).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    let commit = after.split('"').nth(1)?;
    let changed = if text.contains("\"dirty\": true") { " and changes" } else { "" };
    Some((format!("{}{changed}", short(commit)?), String::new()))
}

fn short(commit: &str) -> Option<String> {
    let is_name = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| commit[..COMMIT_CHARS].to_owned())
}

fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(words).env("TZ", "UTC").env("GIT_OPTIONAL_LOCKS", "0");
    // They are set while git runs a hook, maybe of another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// The day of `SOURCE_DATE_EPOCH`, seconds since 1970.
fn epoch() -> Option<String> {
    let seconds: u64 = std::env::var("SOURCE_DATE_EPOCH").ok()?.parse().ok()?;
    let mut days = seconds / 86_400;
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    Some(format!("{year:04}-{month:02}-{:02}", days + 1))
}
