//! What the guard asks about the machine. Judging itself touches nothing: the caller answers these
//! questions, so that a test can answer them too.

use baton_core::guard::{HookSwitch, OwnLine};
use baton_core::rights::{self, Surface};
use std::collections::BTreeMap;

/// What is known about a repository. `None` means that it could not be found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// Whether there are changes that are in no commit; untracked files count.
    pub dirty: Option<bool>,
    /// Whether there are commits that no remote has.
    pub unpushed: Option<bool>,
    /// Whether there are stashes.
    pub stashes: Option<bool>,
    /// Whether there is a remote to push to.
    pub has_remote: Option<bool>,
    /// The branch that this one is pushed to.
    pub upstream: Option<String>,
    /// Whether files hold conflicts.
    pub conflicts: Option<bool>,
    /// Whether a pull request is open for the branch.
    pub pull_request: Option<bool>,
    /// Whether the checks of the branch have passed.
    pub ci_green: Option<bool>,
    /// Whether the branch has commits that the base branch lacks.
    pub ahead_of_base: Option<bool>,
}

impl Repository {
    /// The same with what its host says.
    pub(crate) fn with(self, said: PullRequest) -> Self {
        let conflicts = if said.conflicts == Some(true) { said.conflicts } else { self.conflicts };
        Self { pull_request: said.open, ci_green: said.green, conflicts, ..self }
    }
}

/// Which files a command of git writes over or deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeScope {
    /// Files that git knows.
    Tracked,
    /// Also files that git does not know, where another commit has them.
    All,
    /// Files that git does not know, as `git clean` deletes them.
    Untracked(CleanOptions),
}

/// The options of `git clean` that say what goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CleanOptions {
    /// `-d`: folders too.
    pub folders: bool,
    /// `-x`: ignored files too.
    pub ignored: bool,
    /// `-X`: ignored files alone.
    pub only_ignored: bool,
}

/// What the host of a repository says about the branch that is checked out. `None` means that it
/// could not be asked, or does not know yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    /// Whether there is one.
    pub open: Option<bool>,
    /// Whether its checks have passed.
    pub green: Option<bool>,
    /// Whether it can't be merged because of conflicts.
    pub conflicts: Option<bool>,
}

/// The machine, as the guard sees it. Paths are absolute and have `/` between their parts.
pub trait World {
    /// The folder that the call runs in.
    fn cwd(&self) -> String;
    /// The project's folder. Everything below it is inside.
    fn project(&self) -> String;
    /// The person's home.
    fn home(&self) -> String;
    /// A variable of the agent's environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// The path with its symbolic links resolved, as far as it exists; `None` if that is not known.
    fn real_path(&self, path: &str) -> Option<String>;
    /// The start of a file, for scripts that a command runs: at most this many bytes.
    fn read_file(&self, path: &str, most: usize) -> Option<String>;
    /// Whether a path exists; `None` if that is not known.
    fn exists(&self, path: &str) -> Option<bool>;
    /// The names in a folder, empty if there is no such folder. `None` if that is not known, or
    /// there are too many.
    fn names_in(&self, _folder: &str, _most: usize) -> Option<Vec<String>> {
        None
    }
    /// Facts about the repository that holds a folder.
    fn repository(&self, folder: &str) -> Repository;
    /// The same, compared with a remote and a base branch that are named.
    fn repository_against(&self, folder: &str, _remote: Option<&str>, _base: Option<&str>) -> Repository {
        self.repository(folder)
    }
    /// What the host of a folder's repository says. It may take a while.
    fn pull_request(&self, _folder: &str) -> PullRequest {
        PullRequest::default()
    }
    /// Whether commits would be on no other branch and no remote once a reference is gone or moved
    /// to `kept`; `None` if that is not known.
    fn loses_commits(&self, _folder: &str, _reference: &str, _kept: Option<&str>) -> Option<bool> {
        None
    }
    /// Whether a command of git would lose changes of these paths, which are as its words say them;
    /// none means all paths. `None` where nothing is known.
    fn loses_changes(&self, _folder: &str, _paths: &[&str], _scope: ChangeScope) -> Option<bool> {
        None
    }
    /// baton's state and configuration, and the agents' files that hold its entries.
    fn own_paths(&self) -> Vec<String> {
        Vec::new()
    }
    /// Where baton's own program is.
    fn own_program(&self) -> Option<String> {
        None
    }
    /// Whether a path leads to baton's own program, or to a copy of it.
    fn is_own_program(&self, path: &str) -> bool {
        self.own_program().is_some_and(|own| own == path)
    }
    /// How baton itself reads these words behind its name.
    fn own_line(&self, words: &[&str]) -> OwnLine {
        read_own_line(words)
    }
    /// Whether a file is another name of one of these, or of a file in these folders.
    fn is_same_file(&self, _path: &str, _others: &[String]) -> bool {
        false
    }
    /// The ways to make agents run without hooks.
    fn switches(&self) -> Vec<HookSwitch> {
        Vec::new()
    }
}

/// Reads a command line of baton by the table of rights alone, for worlds without baton's parser.
fn read_own_line(words: &[&str]) -> OwnLine {
    let mut plain: Vec<&str> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--home" => _ = rest.next(),
            "--help" | "-h" | "--version" => return OwnLine::Free,
            word if word.starts_with('-') => {}
            word => plain.push(word),
        }
    }
    let is_action = |right: &&rights::Right| {
        let action: Vec<&str> = right.action.split(' ').collect();
        right.surface == Surface::Command && right.argument.is_none() && plain.starts_with(&action)
    };
    let Some(right) = rights::TABLE.iter().find(is_action) else { return OwnLine::Unreadable };
    let has = |name: &str| {
        let option =
            if name == "acting_as" { "--as".to_owned() } else { format!("--{}", name.replace('_', "-")) };
        !name.is_empty() && words.iter().any(|word| word.split('=').next() == Some(&option))
    };
    let needed = rights::needed(Surface::Command, right.action, &has).unwrap_or_default();
    let refused = needed.iter().find(|right| !right.is_for_agents_shells());
    refused.map_or(OwnLine::Free, |right| OwnLine::Refused(right.name()))
}

/// A world made of given facts, for tests and for the examples of the rules.
#[derive(Clone, Debug, Default)]
pub struct FakeWorld {
    /// See [`World::cwd`].
    pub cwd: String,
    /// See [`World::project`].
    pub project: String,
    /// See [`World::home`].
    pub home: String,
    /// See [`World::variable`].
    pub variables: BTreeMap<String, String>,
    pub links: BTreeMap<String, String>,
    /// Files and their content.
    pub files: BTreeMap<String, String>,
    /// The one repository.
    pub repository: Repository,
    /// See [`World::pull_request`].
    pub pull_request: PullRequest,
    /// See [`World::own_paths`].
    pub own: Vec<String>,
    /// See [`World::own_program`].
    pub program: Option<String>,
    /// See [`World::switches`].
    pub switches: Vec<HookSwitch>,
    /// Hard links: each name with another name of the same file.
    pub hard_links: BTreeMap<String, String>,
}

impl FakeWorld {
    /// A project in a home.
    pub fn new(project: &str, home: &str) -> Self {
        Self {
            cwd: project.to_owned(),
            project: project.to_owned(),
            home: home.to_owned(),
            variables: BTreeMap::from([
                ("HOME".to_owned(), home.to_owned()),
                ("USER".to_owned(), "me".to_owned()),
            ]),
            ..Self::default()
        }
    }
}

impl World for FakeWorld {
    fn cwd(&self) -> String {
        self.cwd.clone()
    }

    fn project(&self) -> String {
        self.project.clone()
    }

    fn home(&self) -> String {
        self.home.clone()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn real_path(&self, path: &str) -> Option<String> {
        let mut path = path.to_owned();
        for _ in 0..8 {
            let link = self.links.iter().find(|(link, _)| crate::path::is_below(&path, link));
            let Some((link, target)) = link else { break };
            path = format!("{target}{}", path.get(link.len()..).unwrap_or(""));
        }
        Some(path)
    }

    fn read_file(&self, path: &str, most: usize) -> Option<String> {
        let text = self.files.get(path)?;
        Some(text.chars().take(most).collect())
    }

    fn exists(&self, path: &str) -> Option<bool> {
        // `folder/.` exists if something is below the folder.
        let folder = path.strip_suffix('.').filter(|folder| folder.ends_with('/'));
        let is_folder = |folder: &str| {
            self.files.range(folder.to_owned()..).next().is_some_and(|(file, _)| file.starts_with(folder))
        };
        (self.files.contains_key(path) || folder.is_some_and(is_folder)).then_some(true)
    }

    fn names_in(&self, folder: &str, most: usize) -> Option<Vec<String>> {
        let folder = format!("{}/", folder.trim_end_matches('/'));
        let mut names: Vec<String> = self
            .files
            .range(folder.clone()..)
            .map_while(|(file, _)| file.strip_prefix(&folder))
            .filter_map(|rest| rest.split('/').next())
            .map(str::to_owned)
            .collect();
        names.dedup();
        // What a test does not set is not known.
        (!names.is_empty() && names.len() <= most || self.files.contains_key(folder.trim_end_matches('/')))
            .then_some(names)
    }

    fn repository(&self, _folder: &str) -> Repository {
        self.repository.clone()
    }

    fn pull_request(&self, _folder: &str) -> PullRequest {
        self.pull_request
    }

    fn own_paths(&self) -> Vec<String> {
        self.own.clone()
    }

    fn own_program(&self) -> Option<String> {
        self.program.clone()
    }

    fn is_same_file(&self, path: &str, others: &[String]) -> bool {
        let other = self.hard_links.get(path);
        other.is_some_and(|other| others.iter().any(|own| crate::path::is_below(other, own)))
    }

    fn switches(&self) -> Vec<HookSwitch> {
        self.switches.clone()
    }
}
