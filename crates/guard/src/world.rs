//! What the guard may ask about the machine. Judging itself touches nothing: whoever calls it answers these questions, so that a test can
//! answer them too.

use std::collections::BTreeMap;

/// What is known about a repository, as far as rules ask. `None` means that it could not be found out.
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

/// What the host of a repository says about the branch that is checked out. `None` means that it could not be asked, or does not know yet.
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
    /// Where the agent works at the time of the call.
    fn cwd(&self) -> String;
    /// The project's folder; what is below it is inside.
    fn project(&self) -> String;
    /// The person's home.
    fn home(&self) -> String;
    /// A variable of the agent's environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// The path with its symbolic links resolved, as far as it exists; `None` where nothing is known.
    fn real_path(&self, path: &str) -> Option<String>;
    /// The start of a file, for scripts that a command runs: at most this many bytes.
    fn read_file(&self, path: &str, most: usize) -> Option<String>;
    /// Whether there is something at a path; `None` where nothing is known.
    fn exists(&self, path: &str) -> Option<bool>;
    /// Facts about the repository that holds a folder.
    fn repository(&self, folder: &str) -> Repository;
    /// The same, compared with a remote and a base branch that are named.
    fn repository_against(&self, folder: &str, _remote: Option<&str>, _base: Option<&str>) -> Repository {
        self.repository(folder)
    }
    /// What the host of the repository says that holds a folder. It may take a while.
    fn pull_request(&self, _folder: &str) -> PullRequest {
        PullRequest::default()
    }
    /// Where baton keeps its state and configuration, and which of the agents' files hold its entries.
    fn own_paths(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A world that is told what there is; for tests, and for the examples of the rules.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// See [`World::cwd`].
    pub cwd: String,
    /// See [`World::project`].
    pub project: String,
    /// See [`World::home`].
    pub home: String,
    /// See [`World::variable`].
    pub variables: BTreeMap<String, String>,
    /// Symbolic links.
    pub links: BTreeMap<String, String>,
    /// Files and their content.
    pub files: BTreeMap<String, String>,
    /// The one repository.
    pub repository: Repository,
    /// See [`World::pull_request`].
    pub pull_request: PullRequest,
    /// See [`World::own_paths`].
    pub own: Vec<String>,
}

impl Told {
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

impl World for Told {
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
        self.files.contains_key(path).then_some(true)
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
}
