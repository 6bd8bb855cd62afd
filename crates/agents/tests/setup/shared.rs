//! A project's `.mcp.json`, which two agents read: one entry serves both, and the last agent that
//! is removed removes it.

use baton_agents::claude::install::Claude;
use baton_agents::copilot::install::Copilot;
use baton_agents::install::{Install, Plan, Scope, Target};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::documents::JSON;

struct Project(tempfile::TempDir);

impl Project {
    fn with(servers: Option<&str>) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        fs::create_dir(project.folder()).unwrap();
        if let Some(servers) = servers {
            fs::write(project.servers(), servers).unwrap();
        }
        project
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("project")
    }

    fn servers(&self) -> PathBuf {
        self.folder().join(".mcp.json")
    }

    fn install(&self, baton: &str) -> Install {
        let home = self.0.path().join("baton");
        Install::new(Path::new(baton), &home, Scope::Project(self.folder())).unwrap()
    }

    /// Both agents, with baton at a place.
    fn both(&self, baton: &str) -> [Box<dyn Target>; 2] {
        let user = self.0.path().join("user");
        let claude = Claude::new(self.install(baton), &user, None).unwrap();
        let copilot = Copilot::new(self.install(baton), &user, None).unwrap();
        [Box::new(claude), Box::new(copilot)]
    }

    /// The arguments of the entry, if it is there.
    fn entry(&self) -> Option<Value> {
        let text = fs::read_to_string(self.servers()).ok()?;
        // serde has no half characters.
        let json: Value = serde_json::from_str(&text.replace("\\ud800", "").replace("1e400", "0")).unwrap();
        json.get("mcpServers")?.get("baton").map(|entry| entry["args"].clone())
    }

    /// Everything in the project.
    fn tree(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut tree = BTreeMap::new();
        let mut folders = vec![self.folder()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                tree.insert(path.clone(), fs::read(&path).ok());
            }
        }
        tree
    }
}

fn set_up(target: &dyn Target) {
    Plan::install(target).unwrap().apply().unwrap();
}

fn take_out(target: &dyn Target) {
    Plan::remove(target).unwrap().apply().unwrap();
}

/// Documents that Copilot accepts too.
fn documents() -> impl Iterator<Item = Option<&'static str>> {
    [None].into_iter().chain(JSON.iter().copied().filter(|text| !text.starts_with('\u{feff}')).map(Some))
}

#[test]
fn one_entry_serves_both_in_any_order_of_coming_and_going() {
    for document in documents() {
        for (first_in, first_out) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let project = Project::with(document);
            let before = project.tree();
            let both = project.both("/bin/baton");
            set_up(&*both[first_in]);
            let once = fs::read(project.servers()).unwrap();
            set_up(&*both[1 - first_in]);
            assert_eq!(fs::read(project.servers()).unwrap(), once, "the second finds it there");
            let home = project.0.path().join("baton");
            assert_eq!(project.entry(), Some(json!(["mcp", "--home", home])), "it names no agent");
            for target in &both {
                assert!(Plan::install(&**target).unwrap().is_empty(), "nothing is left to do");
            }
            take_out(&*both[first_out]);
            assert!(project.entry().is_some(), "the other one still uses it");
            take_out(&*both[1 - first_out]);
            assert_eq!(project.tree(), before, "{document:?}, {first_in} came first, {first_out} went first");
        }
    }
}

#[test]
fn an_agent_that_is_not_set_up_has_nothing_to_remove() {
    for (here, not_here) in [(0, 1), (1, 0)] {
        let project = Project::with(None);
        let both = project.both("/bin/baton");
        set_up(&*both[here]);
        let tree = project.tree();
        assert!(Plan::remove(&*both[not_here]).unwrap().is_empty());
        take_out(&*both[not_here]);
        assert_eq!(project.tree(), tree);
        take_out(&*both[here]);
        assert!(project.tree().is_empty());
    }
}

#[test]
fn an_entry_of_an_older_baton_for_one_of_them_is_brought_up_to_date_by_either() {
    for which in [0, 1] {
        let project = Project::with(None);
        let home = project.0.path().join("baton");
        let old = json!({"mcpServers": {"baton": {"type": "stdio", "command": "/bin/baton", "args": ["mcp", "--agent", "claude", "--home", home]}}});
        fs::write(project.servers(), old.to_string()).unwrap();
        set_up(&*project.both("/bin/baton")[which]);
        assert_eq!(project.entry(), Some(json!(["mcp", "--home", home])));
    }
}

#[test]
fn after_an_upgrade_by_one_of_them_the_last_one_still_leaves_nothing() {
    for (upgraded, first_out) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let original = "{ \"mcpServers\": {  } }";
        let project = Project::with(Some(original));
        project.both("/bin/baton").iter().for_each(|target| set_up(&**target));
        let newer = project.both("/new/baton");
        set_up(&*newer[upgraded]);
        take_out(&*newer[first_out]);
        assert!(project.entry().is_some());
        take_out(&*newer[1 - first_out]);
        assert_eq!(fs::read_to_string(project.servers()).unwrap(), original);
    }
}
