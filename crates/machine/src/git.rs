//! Asks git about a repository without running any of that repository's programs.
//!
//! Everything that a repository's configuration can start is switched off: monitors, hooks,
//! filters, pagers, transports, and git in submodules. Filters have names, so git is first asked
//! for those; reading a configuration starts nothing. This module sets git's whole environment. All
//! questions together have one deadline.
//!
//! A command of the person that makes or compares a working copy needs the filters, because large
//! files may depend on them. It uses [`Git::with_filters`], which a hook never does. Hooks,
//! monitors, pagers and text conversions don't run there either.

use crate::program::{self, Answer};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes of an answer that are read. A longer answer has said enough.
const ANSWER_BYTES: usize = 1 << 20;
/// Longest answer that is kept whole, such as a list of files.
const WHOLE_ANSWER_BYTES: usize = 64 << 20;
/// A repository with more filters than this is not asked. None has that many.
const MAX_FILTERS: usize = 200;

/// Settings on the command line of each question.
const SWITCHED_OFF_SETTINGS: [&str; 11] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "credential.helper=",
    "protocol.allow=never",
    "status.submoduleSummary=false",
    "safe.bareRepository=explicit",
    "gc.auto=0",
];

/// The same for a git that runs the repository's filters.
const SWITCHED_OFF_WITH_FILTERS: [&str; 4] =
    ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "gc.auto=0"];

/// Variables that keep such a git quiet. It may fetch, because a partial clone can lack what a
/// working copy needs.
const QUIET_VARIABLES_WITH_FILTERS: [(&str, &str); 5] = [
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
];

/// Options of every `diff`: no program runs to show a file, and git does not start in submodules.
pub const PLAIN_DIFF_OPTIONS: [&str; 6] =
    ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--submodule=short"];

/// Variables of the person that git needs.
const KEPT_VARIABLES: [&str; 3] = ["HOME", "XDG_CONFIG_HOME", "TMPDIR"];

/// Variables that keep git quiet, and away from the network and from code.
pub const QUIET_VARIABLES: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_SSH_COMMAND", "false"),
];

/// A git for one repository.
#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    switched_off: &'static [&'static str],
    deadline: Instant,
}

impl Git {
    /// A git for the repository that holds a folder. It never uses a git program inside that
    /// project. `None` if there is no git, or it can't be asked safely.
    pub fn open(
        folder: &Path,
        project: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
        deadline: Instant,
    ) -> Option<Self> {
        let path = program::search_path(&variable("PATH")?, &[folder, project]);
        let program = program::find("git", &path)?;
        let mut environment = program::variables(&KEPT_VARIABLES, variable);
        environment.push(("PATH".into(), path));
        environment.extend(QUIET_VARIABLES.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let mut git = Self {
            program,
            folder: folder.to_owned(),
            environment,
            switched_off: &SWITCHED_OFF_SETTINGS,
            deadline,
        };
        git.switch_off_filters()?;
        Some(git)
    }

    /// A git for a command of the person, which lets the repository's filters run. It gets the
    /// person's environment without the variables that name a repository or a program. `None` if
    /// there is no git.
    pub fn with_filters(
        folder: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        deadline: Instant,
    ) -> Option<Self> {
        let is_gits = |name: &OsStr| name.as_encoded_bytes().starts_with(b"GIT_");
        let mut environment: Vec<_> = environment.into_iter().filter(|(name, _)| !is_gits(name)).collect();
        let path = &environment.iter().find(|(name, _)| name == "PATH")?.1;
        let program = program::find("git", &program::search_path(path, &[]))?;
        environment.retain(|(name, _)| name != "LC_ALL");
        environment.extend(
            QUIET_VARIABLES_WITH_FILTERS.iter().map(|(name, value)| ((*name).into(), (*value).into())),
        );
        let switched_off = &SWITCHED_OFF_WITH_FILTERS;
        Some(Self { program, folder: folder.to_owned(), environment, switched_off, deadline })
    }

    /// The same git, for another folder of its repository.
    pub fn in_folder(self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self }
    }

    /// The deadline for all answers.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// git's answer without its last line end, or its error message, or why there is none.
    pub fn tells(&self, arguments: &[&str]) -> Result<String, String> {
        let mut said = Vec::new();
        self.passes_on(arguments, &mut |piece| {
            said.extend_from_slice(piece);
            said.len() <= WHOLE_ANSWER_BYTES
        })?;
        Ok(String::from_utf8_lossy(&said).trim_end_matches('\n').to_owned())
    }

    /// Reads an answer of any length piece by piece. `take` says whether it wants more; an answer
    /// that is cut is an error.
    pub fn passes_on(&self, arguments: &[&str], take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
        let all = self.arguments(arguments);
        let answer =
            program::pass_on(&self.program, &all, &self.folder, &self.environment, take, self.deadline)
                .ok_or("git did not answer in time")?;
        match answer {
            Answer { cut: true, .. } => Err("git wrote more than is read".to_owned()),
            Answer { succeeded: true, .. } => Ok(()),
            _ => Err(String::from_utf8_lossy(&answer.complaint).trim().to_owned()),
        }
    }

    /// git's answer. `None` if it can't be asked, refuses, or misses the deadline.
    pub fn says(&self, arguments: &[&str]) -> Option<String> {
        let answer = self.ask(arguments)?;
        answer.succeeded.then(|| String::from_utf8_lossy(&answer.said).into_owned())
    }

    /// Whether git says yes. `None` if it can't be asked or misses the deadline.
    pub fn succeeds(&self, arguments: &[&str]) -> Option<bool> {
        self.ask(arguments).map(|answer| answer.succeeded)
    }

    fn arguments(&self, arguments: &[&str]) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec!["--no-pager".into(), "--no-optional-locks".into()];
        for setting in self.switched_off {
            all.extend(["-c".into(), setting.into()]);
        }
        all.extend(arguments.iter().map(|argument| (*argument).into()));
        all
    }

    fn ask(&self, arguments: &[&str]) -> Option<Answer> {
        let all = self.arguments(arguments);
        program::ask(&self.program, &all, &self.folder, &self.environment, ANSWER_BYTES, self.deadline)
    }

    /// Gives every filter of the configuration an empty command, which git treats as none, and lets
    /// git work without it.
    fn switch_off_filters(&mut self) -> Option<()> {
        let answer = self.ask(&["config", "--null", "--name-only", "--get-regexp", r"^filter\."])?;
        // git fails if no key matches. An answer that was cut names too many.
        if answer.cut {
            return None;
        }
        let said = String::from_utf8(answer.said).ok()?;
        let mut keys: Vec<String> = Vec::new();
        for key in said.split('\0').filter_map(|key| Some(key.rsplit_once('.')?.0)) {
            for setting in ["clean", "smudge", "process", "required"] {
                let key = format!("{key}.{setting}");
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        if keys.len() > MAX_FILTERS * 4 {
            return None;
        }
        let set = |name: String, value: &OsStr| (OsString::from(name), value.to_owned());
        let count = keys.len();
        for (n, key) in keys.into_iter().enumerate() {
            self.environment.push(set(format!("GIT_CONFIG_KEY_{n}"), key.as_ref()));
            self.environment.push(set(format!("GIT_CONFIG_VALUE_{n}"), OsStr::new("")));
        }
        self.environment.push(set("GIT_CONFIG_COUNT".to_owned(), count.to_string().as_ref()));
        Some(())
    }
}
