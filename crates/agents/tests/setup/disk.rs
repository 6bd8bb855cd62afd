//! Plans on a real disk: all or nothing, exact restoration, and what the file system can do to us.

use baton_agents::claude::install::{Claude, hook_rows};
use baton_agents::codex::install::Codex;
use baton_agents::install::{Form, GuardHooks, Install, OwnCommand, Plan, Scope, Target};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::documents::{JSON, TOML};

struct Disk {
    root: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        let disk = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(disk.path("user")).unwrap();
        disk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn install(&self, baton: &str, scope: Scope) -> Install {
        Install::new(Path::new(baton), &self.path("baton"), scope).unwrap()
    }

    fn claude(&self) -> Claude {
        Claude::new(self.install("/bin/baton", Scope::User), &self.path("user"), None).unwrap()
    }

    fn codex(&self) -> Codex {
        Codex::new(self.install("/bin/baton", Scope::User), &self.path("user"), None).unwrap()
    }

    /// Everything below the user's directory, with modes.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
        let mut tree = BTreeMap::new();
        let mut dirs = vec![self.path("user")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                if meta.is_dir() {
                    dirs.push(path.clone());
                }
                tree.insert(path.clone(), (meta.mode(), meta.is_file().then(|| fs::read(&path).unwrap())));
            }
        }
        tree
    }
}

fn set_up(target: &dyn Target) -> Vec<PathBuf> {
    Plan::install(target).unwrap().apply().unwrap().changed
}

fn take_out(target: &dyn Target) -> Vec<PathBuf> {
    Plan::remove(target).unwrap().apply().unwrap().changed
}

fn code(result: Result<impl Sized, baton_agents::install::InstallError>) -> &'static str {
    result.err().expect("it should fail").code()
}

#[test]
fn every_document_comes_back_with_its_mode() {
    let disk = Disk::new();
    for (i, json) in JSON.iter().enumerate() {
        let settings = disk.put("user/.claude/settings.json", json);
        let state = disk.put("user/.claude.json", json);
        fs::set_permissions(&settings, fs::Permissions::from_mode(0o640)).unwrap();
        fs::set_permissions(&state, fs::Permissions::from_mode(0o600)).unwrap();
        disk.put("user/.codex/config.toml", TOML[i % TOML.len()]);
        let before = disk.tree();
        // Two of their files, and the files about delegation.
        let count = |target: &dyn Target| if target.agent() == "claude" { 4 } else { 3 };
        for target in [&disk.claude() as &dyn Target, &disk.codex()] {
            assert_eq!(set_up(target).len(), count(target));
            assert!(set_up(target).is_empty(), "twice is the same as once");
        }
        for target in [&disk.codex() as &dyn Target, &disk.claude()] {
            assert_eq!(take_out(target).len(), count(target));
            assert!(take_out(target).is_empty());
        }
        assert_eq!(disk.tree(), before, "{json:?}");
    }
}

#[test]
fn what_was_not_there_is_not_there_afterwards() {
    let disk = Disk::new();
    let project = disk.path("user/project");
    fs::create_dir(&project).unwrap();
    let before = disk.tree();
    let scope = Scope::Project(project.clone());
    let claude = Claude::new(disk.install("/bin/baton", scope.clone()), &disk.path("user"), None).unwrap();
    let codex = Codex::new(disk.install("/bin/baton", scope), &disk.path("user"), None).unwrap();
    for target in [&disk.claude() as &dyn Target, &disk.codex(), &claude, &codex] {
        set_up(target);
    }
    assert!(project.join(".mcp.json").exists() && project.join(".claude/settings.json").exists());
    assert_eq!(fs::metadata(project.join(".mcp.json")).unwrap().mode() & 0o777, 0o644);
    assert_eq!(fs::metadata(disk.path("user/.claude.json")).unwrap().mode() & 0o777, 0o600);
    // Not in the reverse order: the user's config.toml is shared by two of them.
    for target in [&disk.claude() as &dyn Target, &disk.codex(), &claude, &codex] {
        take_out(target);
    }
    assert_eq!(disk.tree(), before);
}

#[test]
fn an_upgrade_still_goes_back_to_the_first_original() {
    let disk = Disk::new();
    let original = "{ \"hooks\": { \"Stop\": [   ] } }";
    let path = disk.put("user/.claude/settings.json", original);
    set_up(&disk.claude());
    let newer = Claude::new(disk.install("/new/baton", Scope::User), &disk.path("user"), None).unwrap();
    set_up(&newer);
    assert!(fs::read_to_string(&path).unwrap().contains("'/new/baton' hook claude"));
    take_out(&newer);
    assert_eq!(fs::read_to_string(&path).unwrap(), original);
}

#[test]
fn an_upgrade_of_an_edited_file_keeps_the_edit() {
    let disk = Disk::new();
    let path = disk.put("user/.claude/settings.json", "{\n  \"a\": 1\n}\n");
    set_up(&disk.claude());
    let edited = fs::read_to_string(&path).unwrap().replace("\"a\": 1", "\"a\": 2");
    fs::write(&path, edited).unwrap();
    let newer = Claude::new(disk.install("/new/baton", Scope::User), &disk.path("user"), None).unwrap();
    set_up(&newer);
    take_out(&newer);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"a\": 2\n}\n");
}

#[test]
fn removal_works_without_a_manifest_and_with_a_broken_one() {
    for manifest in [None, Some("{\"version\": 1, broken"), Some("{\"version\": 1}")] {
        let disk = Disk::new();
        let path = disk.put("user/.claude/settings.json", "{\n  \"a\": 1\n}\n");
        set_up(&disk.claude());
        for file in fs::read_dir(disk.path("baton/setup")).unwrap().map(|f| f.unwrap().path()) {
            match manifest {
                _ if file.extension().is_none_or(|e| e != "json") => {}
                Some(text) => fs::write(file, text).unwrap(),
                None => fs::remove_file(file).unwrap(),
            }
        }
        take_out(&disk.claude());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"a\": 1\n}\n");
    }
}

#[test]
fn a_newer_manifest_is_not_guessed_at() {
    let disk = Disk::new();
    set_up(&disk.claude());
    let setup = disk.path("baton/setup");
    let manifest = fs::read_dir(setup).unwrap().map(|f| f.unwrap().path()).find(|p| p.extension().is_some());
    fs::write(manifest.unwrap(), "{\"version\": 2}").unwrap();
    assert_eq!(code(Plan::remove(&disk.claude())), "setup-newer-manifest");
}

#[test]
fn a_lost_backup_falls_back_to_taking_out_by_value() {
    let disk = Disk::new();
    let path = disk.put("user/.claude/settings.json", "{ }\n");
    set_up(&disk.claude());
    for dir in fs::read_dir(disk.path("baton/setup/backups")).unwrap().map(|f| f.unwrap().path()) {
        for file in fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()) {
            fs::write(file, "damaged").unwrap();
        }
    }
    take_out(&disk.claude());
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ }\n");
}

#[test]
fn backups_and_manifest_are_private() {
    let disk = Disk::new();
    disk.put("user/.claude.json", "{\"secret\": 1}");
    set_up(&disk.claude());
    let mut files = 0;
    let mut dirs = vec![disk.path("baton/setup")];
    while let Some(dir) = dirs.pop() {
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o077, 0, "{dir:?}");
        for path in fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()) {
            if path.is_dir() {
                dirs.push(path);
            } else if path.file_name().unwrap() != "lock" {
                files += 1;
                assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{path:?}");
            }
        }
    }
    assert_eq!(files, 3, "a manifest, a backup, and the list of folders that were made");
}

#[test]
fn a_symlink_stays_and_its_target_is_edited() {
    let disk = Disk::new();
    let real = disk.put("dotfiles/claude.json", "{}");
    fs::create_dir(disk.path("user/.claude")).unwrap();
    let link = disk.path("user/.claude/settings.json");
    symlink("../../dotfiles/claude.json", &link).unwrap();
    set_up(&disk.claude());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("hook claude"));
    take_out(&disk.claude());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}");

    fs::remove_file(real).unwrap();
    assert_eq!(code(Plan::install(&disk.claude())), "file-dangling-symlink");
}

#[test]
fn files_that_are_not_regular_are_refused_at_once() {
    let disk = Disk::new();
    fs::create_dir_all(disk.path("user/.claude/settings.json")).unwrap();
    assert_eq!(code(Plan::install(&disk.claude())), "file-not-regular");
    fs::remove_dir(disk.path("user/.claude/settings.json")).unwrap();
    symlink("/dev/zero", disk.path("user/.claude/settings.json")).unwrap();
    assert_eq!(code(Plan::install(&disk.claude())), "file-not-regular");
    fs::remove_file(disk.path("user/.claude/settings.json")).unwrap();
    let pipe = disk.path("user/.claude/settings.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(code(Plan::install(&disk.claude())), "file-not-regular");
}

#[test]
fn read_only_files_and_directories_are_refused_and_nothing_is_written() {
    for (protected, mode) in [("user/.claude.json", 0o444), ("user", 0o555)] {
        let disk = Disk::new();
        disk.put("user/.claude/settings.json", "{}");
        disk.put("user/.claude.json", "{}");
        let before = disk.tree();
        fs::set_permissions(disk.path(protected), fs::Permissions::from_mode(mode)).unwrap();
        let error = Plan::install(&disk.claude()).unwrap().apply().unwrap_err();
        fs::set_permissions(disk.path(protected), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(error.code(), "file-read-only", "{error}");
        assert!(error.to_string().contains(&disk.path(protected).display().to_string()), "{error}");
        let now = disk.tree();
        assert!(before.iter().all(|(path, (_, bytes))| now[path].1 == *bytes), "nothing was written");
        assert!(!disk.path("baton/setup/backups").exists());
    }
}

#[test]
fn hard_links_are_not_torn_apart() {
    let disk = Disk::new();
    let path = disk.put("user/.claude/settings.json", "{}");
    fs::hard_link(&path, disk.path("user/other-name")).unwrap();
    assert_eq!(code(Plan::install(&disk.claude()).unwrap().apply()), "file-hard-linked");
}

#[test]
fn a_file_that_changed_after_planning_is_not_overwritten() {
    for meanwhile in [Some("{\"theirs\": 1}"), None] {
        let disk = Disk::new();
        let settings = disk.put("user/.claude/settings.json", "{}");
        let state = disk.put("user/.claude.json", "{}");
        let plan = Plan::install(&disk.claude()).unwrap();
        match meanwhile {
            Some(text) => fs::write(&state, text).unwrap(),
            None => fs::remove_file(&state).unwrap(),
        }
        assert_eq!(code(plan.apply()), "file-changed");
        assert_eq!(fs::read_to_string(&state).ok().as_deref(), meanwhile);
        assert_eq!(fs::read_to_string(&settings).unwrap(), "{}", "nor the other one");
    }
    let disk = Disk::new();
    let plan = Plan::install(&disk.claude()).unwrap();
    disk.put("user/.claude.json", "{}");
    assert_eq!(code(plan.apply()), "file-changed");
    assert!(!disk.path("user/.claude").exists());
}

#[test]
fn large_files_are_edited_up_to_the_limit() {
    let disk = Disk::new();
    let item = format!("    \"{}\",\n", "x".repeat(90));
    let big = format!("{{\n  \"history\": [\n{}    \"end\"\n  ]\n}}\n", item.repeat(10_000_000 / item.len()));
    let path = disk.put("user/.claude.json", &big);
    let plan = Plan::install(&disk.claude()).unwrap();
    assert!(plan.diff().len() < 20_000, "the diff shows the change, not the file");
    plan.apply().unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("mcpServers"));
    take_out(&disk.claude());
    assert!(fs::read_to_string(&path).unwrap() == big);

    disk.put("user/.claude.json", vec![b' '; 16 * 1024 * 1024 + 1]);
    assert_eq!(code(Plan::install(&disk.claude())), "file-too-large");
}

#[test]
fn a_dry_run_shows_everything_and_touches_nothing() {
    let disk = Disk::new();
    disk.put("user/.claude/settings.json", "{\n  \"a\": 1\n}\n");
    let before = disk.tree();
    let plan = Plan::install(&disk.claude()).unwrap();
    let what: Vec<&str> = plan.edits().map(|edit| edit.what.as_str()).collect();
    let hooks = format!("add {} hooks", hook_rows(&Scope::User, GuardHooks::On).len());
    let parts = ["write the slash command /baton-run", "write the subagent baton-worker"];
    assert_eq!(what, [&*hooks, "add the MCP server `baton`", parts[0], parts[1]]);
    let diff = plan.diff();
    assert!(diff.contains("\n {\n-  \"a\": 1\n+  \"a\": 1,\n+  \"hooks\": {\n"), "{diff}");
    assert!(diff.contains("--- /dev/null\n+++ "), "{diff}");
    drop(plan);
    assert_eq!(disk.tree(), before);
    assert!(!disk.path("baton").exists());
}

#[test]
fn no_temporary_file_is_left_behind() {
    let disk = Disk::new();
    disk.put("user/.claude/settings.json", "{}");
    set_up(&disk.claude());
    let names: Vec<PathBuf> = disk.tree().into_keys().collect();
    assert!(names.iter().all(|p| !p.to_string_lossy().contains(".baton-")), "{names:?}");
}

#[test]
fn two_runs_at_once_make_one_installation() {
    let disk = Disk::new();
    let path = disk.put("user/.claude/settings.json", "{}");
    let rows = hook_rows(&Scope::User, GuardHooks::On);
    let tools = rows.iter().filter(|row| matches!(row.form, Form::McpTool { .. })).count();
    let commands = rows.len() - tools;
    for _ in 0..5 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| match Plan::install(&disk.claude()).and_then(Plan::apply) {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.code(), "file-changed"),
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            (text.matches("hook claude").count(), text.matches("\"hook_event\"").count()),
            (commands, tools)
        );
        take_out(&disk.claude());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
    }
}

/// Runs in a child process that is killed: installs into the directory that the parent names.
#[test]
fn child_that_installs() {
    let Some(root) = std::env::var_os("SETUP_TEST_CHILD_ROOT").map(PathBuf::from) else { return };
    let install = Install::new(Path::new("/bin/baton"), &root.join("baton"), Scope::User).unwrap();
    set_up(&Claude::new(install, &root.join("user"), None).unwrap());
}

#[test]
fn killed_at_any_moment_files_are_whole_and_come_back() {
    let state = "{\n  \"theirs\": true\n}\n";
    let whole = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    // How far the child has come when it is killed, or a little later.
    let stages: [fn(&Disk) -> bool; 5] = [
        |disk| disk.path("baton/setup").exists(),
        |disk| disk.path("baton/setup/backups").exists(),
        |disk| disk.path("user/.claude").exists(),
        |disk| disk.path("user/.claude/settings.json").exists(),
        |disk| fs::read_to_string(disk.path("user/.claude.json")).unwrap().contains("mcpServers"),
    ];
    for round in 0..40 {
        let disk = Disk::new();
        let path = disk.put("user/.claude.json", state);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "disk::child_that_installs"])
            .env("SETUP_TEST_CHILD_ROOT", disk.root.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while !stages[round % stages.len()](&disk) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_micros(20));
        }
        std::thread::sleep(std::time::Duration::from_micros((round / stages.len()) as u64 * 100));
        child.kill().unwrap();
        child.wait().unwrap();

        let settings = disk.path("user/.claude/settings.json");
        let now = fs::read_to_string(&path).unwrap();
        assert!(now == state || (whole(&now) && now.contains("mcpServers")), "{now}");
        let hooks = fs::read_to_string(&settings).ok();
        assert!(hooks.as_deref().is_none_or(|text| whole(text) && text.contains("hook claude")));
        assert!(now == state || hooks.is_some(), "the hooks come first");
        take_out(&disk.claude());
        assert_eq!(fs::read_to_string(&path).unwrap(), state);
        assert!(!settings.exists());
    }
}

/// With a running session of Claude Code: this process.
fn disk_with_a_session(state: &str) -> (Disk, PathBuf) {
    let disk = Disk::new();
    let path = disk.put("user/.claude.json", state);
    disk.put(&format!("user/.claude/sessions/{}.json", std::process::id()), "{}");
    (disk, path)
}

/// What `claude mcp add-json` and `claude mcp remove` do to the file.
fn claude_mcp(path: &Path, command: &OwnCommand) {
    let mut state: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    match &command.args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["mcp", "add-json", "--scope", "user", "baton", entry] => {
            state["mcpServers"]["baton"] = serde_json::from_str(entry).unwrap();
        }
        ["mcp", "remove", "--scope", "user", "baton"] => {
            state["mcpServers"].as_object_mut().unwrap().remove("baton").unwrap();
        }
        other => panic!("{other:?}"),
    }
    fs::write(path, format!("{state:#}")).unwrap();
}

#[test]
fn while_a_session_runs_its_own_command_changes_its_file() {
    let original = "{\"numStartups\":1,   \"mcpServers\":{}}";
    let (disk, path) = disk_with_a_session(original);
    let run = |command: &OwnCommand| {
        claude_mcp(&path, command);
        Ok(())
    };
    let added = Plan::install(&disk.claude()).unwrap().apply_with(Some(&run)).unwrap();
    assert!(added.notes.is_empty(), "{:?}", added.notes);
    assert!(fs::read_to_string(&path).unwrap().contains("\n  \"numStartups\": 1"), "it writes the file anew");
    assert!(set_up(&disk.claude()).is_empty(), "all is there");
    // No program wrote since: the original comes back, without the command.
    let never = |_: &OwnCommand| -> Result<(), String> { panic!("the bytes are known") };
    Plan::remove(&disk.claude()).unwrap().apply_with(Some(&never)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), original);
}

#[test]
fn what_a_session_writes_beside_its_own_command_stays() {
    let (disk, path) = disk_with_a_session("{\"numStartups\":1}");
    // The session writes after the plan was made, before the command does.
    let plan = Plan::install(&disk.claude()).unwrap();
    fs::write(&path, "{\"numStartups\":2}").unwrap();
    let run = |command: &OwnCommand| {
        claude_mcp(&path, command);
        Ok(())
    };
    plan.apply_with(Some(&run)).unwrap();
    Plan::remove(&disk.claude()).unwrap().apply_with(Some(&run)).unwrap();
    let state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(state, json!({"numStartups": 2, "mcpServers": {}}), "only the command knew the file");
}

#[test]
fn a_command_that_does_not_do_it_is_not_believed() {
    for (said, why) in [(Ok(()), "it changed nothing"), (Err("it failed: no".to_owned()), "it failed: no")] {
        let original = "{ \"numStartups\": 1 }";
        let (disk, path) = disk_with_a_session(original);
        let run = |_: &OwnCommand| said.clone();
        let added = Plan::install(&disk.claude()).unwrap().apply_with(Some(&run)).unwrap();
        assert!(added.notes.len() == 1 && added.notes[0].ends_with(why), "{:?}", added.notes);
        assert!(set_up(&disk.claude()).is_empty(), "all is there");
        take_out(&disk.claude());
        assert_eq!(fs::read_to_string(&path).unwrap(), original);
    }
    // A command that changes something else has changed the file: nothing is written over it, and
    // the hooks are removed again.
    let (disk, path) = disk_with_a_session("{}");
    let run = |_: &OwnCommand| {
        fs::write(&path, "{\"migrated\": true}").unwrap();
        Ok(())
    };
    let refused = Plan::install(&disk.claude()).unwrap().apply_with(Some(&run));
    assert_eq!(code(refused), "file-changed");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"migrated\": true}");
    assert!(!disk.path("user/.claude/settings.json").exists());
}

#[test]
fn without_a_session_the_file_is_ours_to_write() {
    let disk = Disk::new();
    let path = disk.put("user/.claude.json", "{ }");
    disk.put("user/.claude/sessions/2147483647.json", "{}");
    let never = |_: &OwnCommand| -> Result<(), String> { panic!("nobody runs") };
    Plan::install(&disk.claude()).unwrap().apply_with(Some(&never)).unwrap();
    Plan::remove(&disk.claude()).unwrap().apply_with(Some(&never)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ }");
}
