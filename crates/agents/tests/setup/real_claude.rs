//! What Claude Code itself does with our installation: it runs the hooks and knows the server.

use baton_agents::claude::install::Claude;
use baton_agents::install::{Install, Plan, Scope};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::programs::{claude, command, output, sandbox};

struct Sandbox {
    root: tempfile::TempDir,
}

impl Sandbox {
    /// With a stand-in for baton that records how it was called.
    fn new() -> Self {
        let sandbox = Self { root: sandbox() };
        for dir in ["home", "project", "it's bin"] {
            fs::create_dir(sandbox.path(dir)).unwrap();
        }
        let script = format!(
            "#!/bin/sh\necho \"$*\" >> '{0}/calls'\n[ \"$1\" = hook ] && cat >> '{0}/payloads' && echo >> '{0}/payloads'\nexit 0\n",
            sandbox.root.path().display()
        );
        fs::write(sandbox.baton(), script).unwrap();
        fs::set_permissions(sandbox.baton(), fs::Permissions::from_mode(0o755)).unwrap();
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn baton(&self) -> PathBuf {
        self.path("it's bin/baton")
    }

    fn target(&self, scope: Scope) -> Claude {
        let install = Install::new(&self.baton(), &self.path("baton home"), scope).unwrap();
        Claude::new(install, &self.path("home"), None).unwrap()
    }

    /// Runs Claude Code with a model address without a listener.
    fn claude(&self, args: &[&str], env: &[(&str, &str)]) -> String {
        let mut command = command(&claude(), &self.path("home"), &self.path("project"));
        command.args(args).envs(env.iter().copied());
        command.envs([
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            ("IS_SANDBOX", "1"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
            ("ANTHROPIC_API_KEY", "fake-key-for-a-server-that-is-not-there"),
        ]);
        output(command)
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

#[test]
fn claude_runs_our_hooks_and_knows_our_server() {
    let sandbox = Sandbox::new();
    let target = sandbox.target(Scope::User);
    let settings = "{\n    \"env\": {\"A\": \"1\"}\n}";
    fs::create_dir(sandbox.path("home/.claude")).unwrap();
    fs::write(target.settings_path(), settings).unwrap();
    Plan::install(&target).unwrap().apply().unwrap();

    let home = sandbox.path("baton home");
    let shown = sandbox.claude(&["mcp", "get", "baton"], &[]);
    assert!(shown.contains("User config"), "{shown}");
    assert!(shown.contains(&format!("Command: {}", sandbox.baton().display())), "{shown}");
    assert!(shown.contains(&format!("Args: mcp --agent claude --home {}", home.display())), "{shown}");

    let said = sandbox.claude(&["-p", "hello"], &[]);
    assert!(!said.contains("settings"), "Claude Code has no complaints: {said}");
    let expected = format!("hook claude --home {}", home.display());
    assert!(sandbox.calls().contains(&expected), "{:?}", sandbox.calls());
    let payloads = fs::read_to_string(sandbox.path("payloads")).unwrap();
    let events: Vec<Value> = payloads
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["hook_event_name"].clone())
        .collect();
    for event in ["SessionStart", "UserPromptSubmit", "SessionEnd"] {
        assert!(events.contains(&json!(event)), "{event} in {events:?}");
    }

    // By now Claude Code has written to ~/.claude.json, which was ours.
    Plan::remove(&target).unwrap().apply().unwrap();
    assert_eq!(fs::read_to_string(target.settings_path()).unwrap(), settings);
    let state: Value = serde_json::from_slice(&fs::read(target.servers_path()).unwrap()).unwrap();
    assert!(state.get("mcpServers").is_none() && state.get("userID").is_some(), "{state}");
    let shown = sandbox.claude(&["mcp", "get", "baton"], &[]);
    assert!(!shown.contains("Command:"), "{shown}");
}

#[test]
fn claude_knows_the_server_of_a_project() {
    let sandbox = Sandbox::new();
    let target = sandbox.target(Scope::Project(sandbox.path("project")));
    let plan = Plan::install(&target).unwrap();
    assert_eq!(plan.notes().len(), 1, "it asks the person first");
    plan.apply().unwrap();
    let shown = sandbox.claude(&["mcp", "get", "baton"], &[]);
    assert!(shown.contains("Project config") && shown.contains("Pending approval"), "{shown}");
    sandbox.claude(&["-p", "hello"], &[]);
    let expected = format!("hook claude --home {}", sandbox.path("baton home").display());
    assert!(sandbox.calls().contains(&expected), "{:?}", sandbox.calls());
    Plan::remove(&target).unwrap().apply().unwrap();
    assert_eq!(fs::read_dir(sandbox.path("project")).unwrap().count(), 0);
}

#[test]
fn claude_looks_for_both_files_in_its_config_dir() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("elsewhere");
    let install = Install::new(&sandbox.baton(), &sandbox.path("baton home"), Scope::User).unwrap();
    let target = Claude::new(install, &sandbox.path("home"), Some(&dir)).unwrap();
    Plan::install(&target).unwrap().apply().unwrap();
    let env = [("CLAUDE_CONFIG_DIR", dir.to_str().unwrap())];
    let shown = sandbox.claude(&["mcp", "get", "baton"], &env);
    assert!(shown.contains("User config"), "{shown}");
    sandbox.claude(&["-p", "hello"], &env);
    assert!(sandbox.calls().iter().any(|call| call.starts_with("hook claude ")), "{:?}", sandbox.calls());
}

#[test]
fn claude_ignores_what_we_refuse_and_reads_what_we_accept() {
    let sandbox = Sandbox::new();
    let target = sandbox.target(Scope::User);
    fs::create_dir(sandbox.path("home/.claude")).unwrap();
    let refused = ["{ // why\n}", "{\"a\": 1,}"];
    for text in refused {
        fs::write(target.settings_path(), text).unwrap();
        assert!(Plan::install(&target).is_err());
        let said = sandbox.claude(&["-p", "hello"], &[]);
        assert!(said.contains("did not load"), "{text}: {said}");
    }
    for text in ["", "\u{feff}{\r\n}", "{\"a\": \"\\ud800\"}"] {
        fs::remove_file(sandbox.path("calls")).ok();
        fs::write(target.settings_path(), text).unwrap();
        Plan::install(&target).unwrap().apply().unwrap();
        let said = sandbox.claude(&["-p", "hello"], &[]);
        assert!(sandbox.calls().iter().any(|call| call.starts_with("hook claude ")), "{text}: {said}");
        Plan::remove(&target).unwrap().apply().unwrap();
        assert_eq!(fs::read_to_string(target.settings_path()).unwrap(), text);
    }
}
