//! The plugins in the tree are made from the same hooks as setup's entries.

use baton_agents::ALL;
use baton_agents::install::plugin::PluginFile;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins")
}

fn files_below(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// To write them again: `BATON_WRITE_REFERENCE=1 cargo test -p baton-agents plugins`.
#[test]
fn the_plugins_in_the_tree_are_what_setups_tables_make() {
    let made: Vec<PluginFile> = ALL.iter().flat_map(|agent| agent.plugin().unwrap()).collect();
    assert!(made.len() >= 11, "{}", made.len());
    if std::env::var_os("BATON_WRITE_REFERENCE").is_some() {
        for file in &made {
            let path = root().join(&file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &file.text).unwrap();
        }
    }
    let wanted: BTreeMap<String, String> = made.into_iter().map(|file| (file.path, file.text)).collect();
    let mut there = BTreeMap::new();
    files_below(&root(), &mut there);
    assert!(
        there == wanted,
        "plugins/ is out of date: BATON_WRITE_REFERENCE=1 cargo test -p baton-agents plugins"
    );
}

/// A plugin works on every machine: it names no folder, and its hooks and its server say that they
/// belong to it.
#[test]
fn plugins_name_no_folder_and_say_what_they_are() {
    for file in ALL.iter().flat_map(|agent| agent.plugin().unwrap()) {
        assert!(!file.text.contains("--home"), "{}", file.path);
        let hooks = file.text.matches("\"command\": \"'baton' hook ").count();
        let marked = file.text.matches("--plugin\"").count();
        if file.path.ends_with("hooks.json") {
            assert!(hooks > 5 && marked == hooks, "{}: {hooks}, {marked}", file.path);
        }
    }
}
