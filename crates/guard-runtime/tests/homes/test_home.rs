//! A home and a project on the disk.

use baton_core::guard::OwnLine;
use baton_core::time::Moment;
use baton_guard_runtime::{Guard, Places};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

pub struct TestHome {
    _folder: tempfile::TempDir,
    pub home: PathBuf,
    pub project: PathBuf,
}

impl TestHome {
    /// A home with a project in it, after this script has run there.
    pub fn made_by(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().canonicalize().expect("a folder").join("home/me");
        let project = home.join("project");
        std::fs::create_dir_all(&project).expect("a project");
        let made = Command::new("bash")
            .args(["-ec", script])
            .current_dir(&project)
            .env("HOME", &home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::null())
            .status()
            .expect("bash");
        assert!(made.success(), "{script}");
        Self { _folder: folder, home, project }
    }

    /// The guard there.
    pub fn guard(&self) -> Guard {
        Guard::open(Places {
            home: self.home.join("b"),
            config: Some(self.home.join(".config/baton/config.toml")),
            named_config: None,
            user_home: self.home.clone(),
            cwd: self.project.clone(),
            // git is found by the search path; nothing else of this machine counts.
            env: |name| std::env::var_os(name).filter(|_| name == "PATH"),
            now: || Moment(0),
            patience: Duration::ZERO,
            aside: |_, _, _| None,
            own_line,
        })
    }
}

/// Stands in for the program's parser, which is in another crate: enough for what the cases type.
/// The program's own tests use the real one.
fn own_line(words: &[&str]) -> OwnLine {
    if words.contains(&"--help") {
        return OwnLine::Free;
    }
    match words {
        [first @ ("approve" | "deny" | "setup"), ..] | ["guard", first @ ("enable" | "disable"), ..] => {
            OwnLine::Refused((*first).to_owned())
        }
        _ => OwnLine::Free,
    }
}
