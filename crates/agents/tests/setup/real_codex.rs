//! What Codex itself says about our installation: every hook is trusted, the server is known, and
//! the trust of other tools is intact before and after.

use baton_agents::codex::install::{Codex, hook_rows};
use baton_agents::install::{GuardHooks, Install, Plan, Scope};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

use crate::programs::{codex, codex_hooks, command, output, sandbox};

struct Sandbox {
    root: tempfile::TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self { root: sandbox() };
        for dir in ["home", "codex 'home' \"é\"", "project"] {
            fs::create_dir(sandbox.root.path().join(dir)).unwrap();
        }
        fs::write(sandbox.config(), "# mine\n[features]\nplugins = false\n\n[analytics]\nenabled = false\n")
            .unwrap();
        sandbox
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// A name that needs care in JSON, TOML and the shell.
    fn codex_home(&self) -> PathBuf {
        self.root.path().join("codex 'home' \"é\"")
    }

    fn config(&self) -> PathBuf {
        self.codex_home().join("config.toml")
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    fn target(&self, scope: Scope) -> Codex {
        let baton = self.root.path().join("it's bin/baton");
        let install = Install::new(&baton, &self.root.path().join("baton home"), scope).unwrap();
        Codex::new(install, &self.home(), Some(&self.codex_home())).unwrap()
    }

    fn hooks(&self) -> Vec<Value> {
        let list = codex_hooks(&self.home(), &self.codex_home(), &self.project());
        assert_eq!((&list["warnings"], &list["errors"]), (&json!([]), &json!([])), "Codex has no complaints");
        list["hooks"].as_array().unwrap().clone()
    }

    /// Puts a group of another tool at the end of an event and trusts it, as Codex's own dialog
    /// would.
    fn add_other_tool(&self, file: &Path, event: &str, command: &str) {
        let mut hooks: Value =
            fs::read(file).map_or(json!({}), |bytes| serde_json::from_slice(&bytes).unwrap());
        let group = json!({ "hooks": [{ "type": "command", "command": command, "statusMessage": "other" }] });
        match hooks["hooks"][event].as_array_mut() {
            Some(groups) => groups.push(group),
            None => hooks["hooks"][event] = json!([group]),
        }
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, hooks.to_string()).unwrap();
        let listed = self.hooks().into_iter().find(|hook| hook["command"] == command).unwrap();
        assert_eq!(listed["trustStatus"], "untrusted");
        let config = fs::read_to_string(self.config()).unwrap();
        let (key, hash) = (&listed["key"], &listed["currentHash"]);
        fs::write(self.config(), format!("{config}\n[hooks.state.{key}]\ntrusted_hash = {hash}\n")).unwrap();
    }

    fn assert_trusted(&self, ours: usize, others: &[&str]) {
        let hooks = self.hooks();
        for hook in &hooks {
            assert_eq!(hook["trustStatus"], "trusted", "{hook}");
        }
        let commands: Vec<&str> = hooks.iter().filter_map(|hook| hook["command"].as_str()).collect();
        for other in others {
            assert!(commands.contains(other), "{other} in {commands:?}");
        }
        assert_eq!(hooks.len(), ours + others.len());
    }

    fn servers(&self) -> Value {
        let mut command = command(&codex(), &self.home(), &self.project());
        command.env("CODEX_HOME", self.codex_home()).args(["mcp", "list", "--json"]);
        let text = output(command);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("a list of servers: {text}"))
    }
}

#[test]
fn codex_trusts_our_hooks_and_keeps_trusting_the_others() {
    let sandbox = Sandbox::new();
    let target = sandbox.target(Scope::User);
    sandbox.add_other_tool(target.hooks_path(), "Stop", "first");
    let original = (fs::read(target.hooks_path()).unwrap(), fs::read(sandbox.config()).unwrap());

    Plan::install(&target).unwrap().apply().unwrap();
    sandbox.assert_trusted(hook_rows(GuardHooks::On).len(), &["first"]);
    let server = &sandbox.servers()[0];
    assert_eq!((&server["name"], &server["enabled"]), (&json!("baton"), &json!(true)));
    assert_eq!(server["transport"]["command"], target_command(&sandbox));
    assert_eq!(server["transport"]["args"][4], json!(sandbox.root.path().join("baton home")));

    // The exact way back.
    Plan::remove(&target).unwrap().apply().unwrap();
    assert_eq!((fs::read(target.hooks_path()).unwrap(), fs::read(sandbox.config()).unwrap()), original);

    // By value, after another tool has come after us.
    Plan::install(&target).unwrap().apply().unwrap();
    sandbox.add_other_tool(target.hooks_path(), "Stop", "second");
    sandbox.add_other_tool(target.hooks_path(), "PostToolUse", "third");
    sandbox.assert_trusted(hook_rows(GuardHooks::On).len(), &["first", "second", "third"]);
    Plan::remove(&target).unwrap().apply().unwrap();
    sandbox.assert_trusted(0, &["first", "second", "third"]);
    assert_eq!(sandbox.servers(), json!([]));
}

#[test]
fn codex_trusts_our_hooks_in_a_project() {
    let sandbox = Sandbox::new();
    let target = sandbox.target(Scope::Project(sandbox.project()));
    let notes = Plan::install(&target).unwrap().notes().len();
    assert_eq!(notes, 1, "the project is not trusted yet");
    let config = fs::read_to_string(sandbox.config()).unwrap();
    let project = sandbox.project();
    fs::write(sandbox.config(), format!("{config}\n[projects.{project:?}]\ntrust_level = \"trusted\"\n"))
        .unwrap();
    let original = fs::read(sandbox.config()).unwrap();

    let plan = Plan::install(&target).unwrap();
    assert!(plan.notes().is_empty());
    plan.apply().unwrap();
    sandbox.assert_trusted(hook_rows(GuardHooks::On).len(), &[]);
    assert_eq!(sandbox.servers()[0]["name"], "baton");
    sandbox.add_other_tool(target.hooks_path(), "Stop", "other");
    Plan::remove(&target).unwrap().apply().unwrap();
    sandbox.assert_trusted(0, &["other"]);
    assert_eq!(sandbox.servers(), json!([]));
    assert!(fs::read(sandbox.config()).unwrap().starts_with(&original));
}

#[test]
fn codex_trusts_an_upgrade_in_place() {
    let sandbox = Sandbox::new();
    let target = sandbox.target(Scope::User);
    Plan::install(&target).unwrap().apply().unwrap();
    sandbox.add_other_tool(target.hooks_path(), "SessionStart", "other");
    let home = sandbox.root.path().join("baton home");
    let install = Install::new(Path::new("/usr/bin/baton"), &home, Scope::User).unwrap();
    let newer = Codex::new(install, &sandbox.home(), Some(&sandbox.codex_home())).unwrap();
    Plan::install(&newer).unwrap().apply().unwrap();
    sandbox.assert_trusted(hook_rows(GuardHooks::On).len(), &["other"]);
    assert_eq!(sandbox.servers()[0]["transport"]["command"], "/usr/bin/baton");
}

fn target_command(sandbox: &Sandbox) -> Value {
    json!(sandbox.root.path().join("it's bin/baton"))
}
