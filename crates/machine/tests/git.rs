//! S15: asking git about a repository runs none of the programs that its configuration names.

use baton_machine::git::Git;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Generous, because machines that run tests are busy.
const GIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Every git of this machine.
fn gits() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").expect("it works");
    let all: Vec<PathBuf> =
        std::env::split_paths(&path).map(|folder| folder.join("git")).filter(|git| git.is_file()).collect();
    assert!(!all.is_empty(), "git is installed");
    all
}

struct Repository {
    folder: tempfile::TempDir,
    git: PathBuf,
}

impl Repository {
    fn new(git: &Path) -> Self {
        let new = Self { folder: tempfile::tempdir().expect("it works"), git: git.to_owned() };
        fs::create_dir(new.root()).expect("it works");
        fs::create_dir(new.folder.path().join("bin")).expect("it works");
        symlink(git, new.folder.path().join("bin/git")).expect("it works");
        new.git(&["init", "--quiet", "-b", "main"]);
        fs::write(new.root().join("file"), "one\n").expect("it works");
        new.git(&["add", "."]);
        new.git(&["commit", "--quiet", "-m", "first"]);
        new
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn git(&self, arguments: &[&str]) {
        self.git_in(&self.root(), arguments);
    }

    fn git_in(&self, folder: &Path, arguments: &[&str]) {
        let who =
            ["-c", "user.name=x", "-c", "user.email=x@example.invalid", "-c", "protocol.file.allow=always"];
        let done =
            Command::new(&self.git).args(who).args(arguments).current_dir(folder).output().expect("it works");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        match name {
            "PATH" => Some(format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display()).into()),
            "HOME" => Some(self.folder.path().into()),
            _ => None,
        }
    }

    fn asked(&self, patience: Duration, arguments: &[&str]) -> Option<String> {
        let deadline = Instant::now() + patience;
        let git = Git::open(&self.root(), &self.root(), &|name| self.variable(name), deadline)?;
        git.says(arguments)
    }

    fn status(&self) -> Option<String> {
        self.asked(GIT_TIMEOUT, &["status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty"])
    }

    /// A program that leaves a mark when it runs.
    fn trap(&self, name: &str) -> (PathBuf, PathBuf) {
        let (program, mark) = (self.folder.path().join(name), self.folder.path().join(format!("{name} ran")));
        fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexec cat\n", mark.display()))
            .expect("it works");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it works");
        (program, mark)
    }
}

/// Every key of a repository's configuration that names a program, as far as git has them.
const KEYS: [&str; 22] = [
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "filter.a=b.c.clean",
    "filter.included.clean",
    "core.fsmonitor",
    "core.pager",
    "pager.status",
    "pager.rev-list",
    "core.sshCommand",
    "core.askPass",
    "core.editor",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "credential.helper",
    "diff.external",
    "diff.evil.textconv",
    "diff.evil.command",
    "gpg.program",
    "merge.evil.driver",
    "remote.origin.uploadpack",
    "uploadpack.packObjectsHook",
];

#[test]
fn s15_no_code_of_a_repository_runs_when_git_is_asked_about_it() {
    for git in gits() {
        for filter in ["evil", "a=b.c", "included"] {
            let repository = Repository::new(&git);
            let root = repository.root();
            let (program, mark) = repository.trap("trap");
            let trap = program.display().to_string();
            fs::write(
                root.join(".git/more"),
                format!("[filter \"included\"]\n\tclean = {trap}\n\trequired\n"),
            )
            .expect("it works");
            for key in KEYS.iter().filter(|key| **key != "filter.included.clean") {
                // A filter process that never answers makes git wait; the trap of the clean filter
                // answers.
                let is_process = key.ends_with(".process");
                if !is_process || filter == "evil" {
                    repository.git(&["config", key, &trap]);
                }
            }
            repository.git(&["config", "filter.evil.required", "true"]);
            repository.git(&["config", "include.path", "more"]);
            repository.git(&["config", "status.submoduleSummary", "true"]);
            repository.git(&["config", "extensions.partialClone", "origin"]);
            repository.git(&["config", "remote.origin.url", "ext::sh -c %S"]);
            repository.git(&["config", "remote.origin.promisor", "true"]);
            repository.git(&[
                "config",
                "core.hooksPath",
                repository.folder.path().to_str().expect("it works"),
            ]);
            for hook in ["post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout"]
            {
                repository.trap(hook);
            }
            fs::write(root.join(".gitattributes"), format!("* filter={filter} diff=evil merge=evil\n"))
                .expect("it works");
            fs::write(root.join(".git/info/attributes"), format!("* filter={filter}\n")).expect("it works");
            // A new time and the same length, so git has to read the file.
            fs::write(root.join("file"), "two\n").expect("it works");
            let status = repository.status().expect("git answers");
            assert!(status.lines().any(|line| line.ends_with(" file")), "{git:?}: {status}");
            for question in [
                &["for-each-ref", "--count=1", "refs/remotes"][..],
                &["rev-list", "--max-count=1", "HEAD", "--not", "--remotes"],
            ] {
                repository.asked(GIT_TIMEOUT, question).expect("git answers");
            }
            let ran: Vec<String> = fs::read_dir(repository.folder.path())
                .expect("it works")
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .filter(|name| name.ends_with(" ran"))
                .collect();
            assert!(ran.is_empty(), "{git:?}: {ran:?}: {}", fs::read_to_string(&mark).unwrap_or_default());
        }
    }
}

/// The trap works: git without the switches would have run it.
#[test]
fn s15_the_filter_of_that_test_runs_where_git_is_not_told_otherwise() {
    let git = &gits()[0];
    let repository = Repository::new(git);
    let (program, mark) = repository.trap("trap");
    repository.git(&["config", "filter.evil.clean", program.to_str().expect("it works")]);
    fs::write(repository.root().join(".gitattributes"), "* filter=evil\n").expect("it works");
    fs::write(repository.root().join("file"), "two\n").expect("it works");
    repository.git(&["status"]);
    assert!(mark.exists());
}

#[test]
fn s15_a_submodules_filters_do_not_run_either() {
    for git in gits() {
        let repository = Repository::new(&git);
        let (program, mark) = repository.trap("trap");
        let root = repository.root();
        let source = repository.folder.path().join("source");
        repository.git_in(
            repository.folder.path(),
            &["clone", "--quiet", root.to_str().expect("it works"), "source"],
        );
        repository.git(&["submodule", "--quiet", "add", source.to_str().expect("it works"), "sub"]);
        repository.git(&["commit", "--quiet", "-m", "sub"]);
        let sub = root.join("sub");
        repository.git_in(&sub, &["config", "filter.evil.clean", program.to_str().expect("it works")]);
        fs::write(sub.join(".gitattributes"), "* filter=evil\n").expect("it works");
        fs::write(sub.join("file"), "two\n").expect("it works");
        repository.status().expect("git answers");
        assert!(!mark.exists(), "{git:?}");
    }
}

#[test]
fn s15_a_git_in_the_project_or_at_a_relative_place_is_not_run() {
    let git = &gits()[0];
    let repository = Repository::new(git);
    let (program, mark) = repository.trap("trap");
    let bin = repository.root().join("node_modules/.bin");
    fs::create_dir_all(&bin).expect("it works");
    fs::copy(&program, bin.join("git")).expect("it works");
    let path = format!("{}:.:node_modules/.bin:{}", bin.display(), git.parent().expect("it works").display());
    let variable = |name: &str| (name == "PATH").then(|| path.clone().into());
    let root = repository.root();
    let asked =
        Git::open(&root, &root, &variable, Instant::now() + GIT_TIMEOUT).expect("the real one is there");
    assert!(asked.says(&["rev-parse", "HEAD"]).is_some());
    assert!(!mark.exists());
}

#[test]
fn s15_a_git_that_hangs_is_ended_with_what_it_has_started() {
    let repository = Repository::new(&gits()[0]);
    // Git reads an included file to its end, and this one has none.
    let pipe = repository.root().join(".git/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("it works").success());
    repository.git(&["config", "include.path", "pipe"]);
    let begun = Instant::now();
    assert_eq!(repository.asked(Duration::from_millis(300), &["status", "--porcelain=v2"]), None);
    assert!(begun.elapsed() < GIT_TIMEOUT);
}
