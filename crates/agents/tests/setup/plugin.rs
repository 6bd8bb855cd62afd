//! OpenCode's plugin itself, run by Node against a simulated OpenCode and a simulated link.

use baton_agents::install::{GuardHooks, Install, Scope};
use baton_agents::opencode::install::OpenCode;
use std::path::Path;
use std::process::Command;

use crate::world::Files;

/// The link that the plugin starts: it only connects the plugin to the test.
const LINK: &str = "const socket = require('node:net').connect('socket')\n\
    process.stdin.pipe(socket).pipe(process.stdout)\n\
    socket.on('close', () => process.exit())\nsocket.on('error', () => process.exit())\n";

#[test]
fn opencode_questions_are_reported_and_answers_reach_the_part_that_asks() {
    let folder = tempfile::tempdir().unwrap();
    let node = Command::new("node").args(["-p", "process.execPath"]).output().expect("Node is installed");
    let node = String::from_utf8(node.stdout).unwrap();
    // With Node instead of baton, the plugin runs the file `link` in its folder.
    let install = Install::new(Path::new(node.trim()), folder.path(), Scope::User).unwrap();
    let target = OpenCode::new(install.with_guard(GuardHooks::On), Path::new("/home/dev"), None).unwrap();
    let (files, _) = Files::default().installed(&target).unwrap();
    let plugin = folder.path().join("plugin.mjs");
    std::fs::write(&plugin, files.text(target.plugin_path())).unwrap();
    std::fs::write(folder.path().join("link"), LINK).unwrap();
    let played = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins/opencode.mjs");
    let run = Command::new(node.trim()).arg(played).arg(&plugin).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("# fail 0") || said.contains("ℹ fail 0"), "{said}");
}
