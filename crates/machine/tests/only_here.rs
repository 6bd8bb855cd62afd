//! S16: only this crate opens files. So no hook waits for a pipe, follows a link out of the home or
//! reads without a limit.

use std::fs;
use std::path::{Path, PathBuf};

/// Calls that open a file without this crate.
const OPENS: [&str; 9] = [
    "File::open",
    "File::create",
    "File::options",
    "OpenOptions",
    "fs::read(",
    "fs::read_to_string",
    "fs::write",
    "fs::copy",
    "DirBuilder",
];

/// The files that may use them, and why.
const ALLOWED: [(&str, &str); 9] = [
    (
        "crates/agents/src/config/file.rs",
        "setup edits files of agents; it opens without waiting, and checks by itself",
    ),
    ("crates/baton/src/commands.rs", "asks whether there is a terminal"),
    ("crates/baton/src/commands/demo", "the demo's own world, in a new folder"),
    ("crates/baton/src/commands/doctor/programs.rs", "makes a new folder for a program's version"),
    (
        "crates/baton/src/commands/guard/switch.rs",
        "the person's command writes a new draft beside the configuration",
    ),
    ("crates/baton/src/commands/job/start.rs", "the person names a file, which may be a pipe"),
    ("crates/baton/src/commands/send.rs", "the person names a file, which may be a pipe"),
    ("crates/jobs/src/worker.rs", "/dev/null"),
    ("crates/store/src/open.rs", "a folder, to write its entries to the disk"),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("it works").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn s16_no_file_is_opened_past_this_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it works");
    let mut found = Vec::new();
    // This crate opens them, and tests and measurements have worlds of their own.
    let others = ["machine", "testkit", "bench"];
    for folder in fs::read_dir(root.join("crates")).expect("it works").flatten() {
        if !others.iter().any(|other| folder.file_name() == *other) {
            sources(&folder.path().join("src"), &mut found);
        }
    }
    for (allowed, _) in ALLOWED {
        assert!(root.join(allowed).exists(), "{allowed} is not there");
    }
    assert!(found.len() > 100, "the sources are there");
    let mut opens = Vec::new();
    for path in found {
        let name = path.strip_prefix(&root).expect("it works").to_string_lossy().into_owned();
        if ALLOWED.iter().any(|(allowed, _)| name.starts_with(allowed)) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("it works");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let is_code = !line.trim_start().starts_with("//");
            if is_code && OPENS.iter().any(|open| line.contains(open)) {
                opens.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(opens.is_empty(), "open files by crate `machine`:\n{}", opens.join("\n"));
}
