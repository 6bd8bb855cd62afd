//! Every file of every agent in the worst forms: setup refuses it and changes nothing, or accepts
//! it and restores every byte.

use baton_agents::ALL;
use baton_agents::install::{Install, Plan, Scope, Target};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

/// The files by what their agents accept: strict JSON, JSON with comments, with trailing commas
/// too, TOML; and the files that only baton writes.
const STRICT_WITH_BOM: &[&str] = &[".claude/settings.json", ".claude.json"];
const STRICT: &[&str] =
    &[".codex/hooks.json", ".copilot/mcp-config.json", ".cursor/hooks.json", ".cursor/mcp.json"];
const COMMENTS: &[&str] = &[".gemini/settings.json"];
const COMMAS: &[&str] = &[".config/opencode/opencode.jsonc", ".config/opencode/opencode.json"];
const TOML: &[&str] = &[".codex/config.toml"];
const OURS: &[&str] = &[
    ".claude/commands/baton-run.md",
    ".claude/agents/baton-worker.md",
    ".codex/skills/baton-jobs/SKILL.md",
    ".config/opencode/skills/baton-jobs/SKILL.md",
    ".config/opencode/baton.js",
    ".copilot/hooks/baton.json",
    ".copilot/extensions/baton/extension.mjs",
    ".pi/agent/extensions/baton.ts",
];
/// Read to tell the user something, never written.
const READ: &[&str] = &[".copilot/settings.json"];

/// The result for each of them: `kept`, or the code of the refusal. A duplicate key is a matter
/// between the agent and its file, unless our entry would have to go below it.
type Row = (&'static str, [&'static str; 7]);
#[rustfmt::skip]
const EXPECTED: &[Row] = &[
    //                     strict, with BOM        strict                  comments                commas                  TOML                    ours                    only read
    ("trailing comma",     ["json-trailing-comma", "json-trailing-comma",  "json-trailing-comma",  "kept",                 "kept",                 "setup-file-taken",     "kept"]),
    ("comment",            ["json-comment",        "json-comment",         "kept",                 "kept",                 "kept",                 "setup-file-taken",     "kept"]),
    ("their key twice",    ["kept",                "kept",                 "kept",                 "kept",                 "toml-malformed",       "setup-file-taken",     "kept"]),
    ("our key twice",      ["json-duplicate-key",  "json-duplicate-key",   "json-duplicate-key",   "json-duplicate-key",   "toml-malformed",       "setup-file-taken",     "kept"]),
    ("byte order mark",    ["kept",                "json-byte-order-mark", "json-byte-order-mark", "kept",                 "kept",                 "setup-file-taken",     "kept"]),
    ("CRLF",               ["kept",                "kept",                 "kept",                 "kept",                 "kept",                 "setup-file-taken",     "kept"]),
    ("cut short",          ["json-malformed",      "json-malformed",       "json-malformed",       "json-malformed",       "toml-malformed",       "setup-file-taken",     "kept"]),
    ("another kind",       ["json-wrong-kind",     "json-wrong-kind",      "json-wrong-kind",      "json-wrong-kind",      "toml-closed-table",    "setup-file-taken",     "kept"]),
    ("another kind below", ["json-wrong-kind",     "json-wrong-kind",      "json-wrong-kind",      "json-wrong-kind",      "setup-name-taken",     "setup-file-taken",     "kept"]),
    ("empty",              ["kept",                "kept",                 "kept",                 "kept",                 "kept",                 "setup-file-taken",     "kept"]),
    ("no UTF-8",           ["json-not-utf8",       "json-not-utf8",        "json-not-utf8",        "json-not-utf8",        "toml-not-utf8",        "setup-file-taken",     "kept"]),
    ("NUL",                ["json-malformed",      "json-malformed",       "json-malformed",       "json-malformed",       "toml-malformed",       "setup-file-taken",     "kept"]),
    ("10 MB",              ["kept",                "kept",                 "kept",                 "kept",                 "kept",                 "setup-file-taken",     "kept"]),
    ("symlink",            ["kept",                "kept",                 "kept",                 "kept",                 "kept",                 "setup-file-taken",     "kept"]),
    ("dangling symlink",   ["file-dangling-symlink"; 7]),
    ("directory",          ["file-not-regular"; 7]),
    ("hard link",          ["file-hard-linked",    "file-hard-linked",     "file-hard-linked",     "file-hard-linked",     "file-hard-linked",     "setup-file-taken",     "kept"]),
    ("read-only",          ["file-read-only",      "file-read-only",       "file-read-only",       "file-read-only",       "file-read-only",       "setup-file-taken",     "kept"]),
    ("read-only folder",   ["file-read-only",      "file-read-only",       "file-read-only",       "file-read-only",       "file-read-only",       "setup-file-taken",     "file-read-only"]),
];

/// A file instead of a configuration: its bytes as JSON and as TOML, and what else is wrong with
/// it.
struct Case {
    name: &'static str,
    json: Vec<u8>,
    toml: Vec<u8>,
    place: fn(&Path, &[u8]),
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

fn link_to_elsewhere(path: &Path, bytes: &[u8]) {
    let elsewhere = path.with_file_name("elsewhere");
    fs::write(&elsewhere, bytes).unwrap();
    symlink(elsewhere, path).unwrap();
}

fn cases() -> Vec<Case> {
    let case = |name, json: &str, toml: &str, place: fn(&Path, &[u8])| Case {
        name,
        json: json.as_bytes().to_vec(),
        toml: toml.as_bytes().to_vec(),
        place,
    };
    let text = |name, json: &str, toml: &str| case(name, json, toml, write);
    let (json, toml) = ("{\n  \"theirs\": 1\n}\n", "theirs = 1\n");
    let twice =
        "{\"hooks\": {}, \"hooks\": {}, \"mcpServers\": {}, \"mcpServers\": {}, \"mcp\": {}, \"mcp\": {}}";
    let long = "x".repeat(10 << 20);
    let long = (format!("{{\"theirs\": \"{long}\"}}\n"), format!("theirs = \"{long}\"\n"));
    let bytes = |name, json: &[u8], toml: &[u8]| Case {
        name,
        json: json.to_vec(),
        toml: toml.to_vec(),
        place: write,
    };
    vec![
        text("trailing comma", "{\"theirs\": [1, 2,],}", "theirs = [1, 2,]\n"),
        text("comment", "{\n  // mine\n  \"theirs\": 1 /* too */\n}\n", "# mine\ntheirs = 1 # too\n"),
        text("their key twice", "{\"theirs\": 1, \"theirs\": 2}", "theirs = 1\ntheirs = 2\n"),
        text("our key twice", twice, "[mcp_servers]\n[mcp_servers]\n"),
        text("byte order mark", &format!("\u{feff}{json}"), &format!("\u{feff}{toml}")),
        text("CRLF", &json.replace('\n', "\r\n"), &toml.replace('\n', "\r\n")),
        text("cut short", "{\"theirs\": [1", "theirs = [1"),
        text("another kind", "[]", "mcp_servers = 1\n"),
        text(
            "another kind below",
            "{\"hooks\": 1, \"mcpServers\": 1, \"mcp\": 1}",
            "[mcp_servers]\nbaton = 1\n",
        ),
        text("empty", "", ""),
        bytes("no UTF-8", b"{\"theirs\": \"\xff\"}", b"theirs = \"\xff\"\n"),
        bytes("NUL", b"{\"theirs\": 1}\0", b"theirs = 1\0\n"),
        text("10 MB", &long.0, &long.1),
        case("symlink", json, toml, link_to_elsewhere),
        case("dangling symlink", json, toml, |path, _| symlink("nowhere", path).unwrap()),
        case("directory", json, toml, |path, _| fs::create_dir(path).unwrap()),
        case("hard link", json, toml, |path, bytes| {
            write(path, bytes);
            fs::hard_link(path, path.with_file_name("other name")).unwrap();
        }),
        case("read-only", json, toml, |path, bytes| {
            write(path, bytes);
            fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
        }),
        case("read-only folder", json, toml, |path, bytes| {
            write(path, bytes);
            fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o555)).unwrap();
        }),
    ]
}

/// A mode, where a link leads, and the bytes of a file.
type Entry = (u32, Option<PathBuf>, Option<Vec<u8>>);

/// Everything below a folder.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut tree = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            let bytes = meta.is_file().then(|| fs::read(&path).unwrap());
            tree.insert(path.clone(), (meta.mode(), fs::read_link(&path).ok(), bytes));
        }
    }
    tree
}

fn targets(root: &Path) -> Vec<Box<dyn Target>> {
    let target = |agent: &&'static dyn baton_agents::Agent| {
        let install = Install::new(Path::new("/bin/baton"), &root.join("baton"), Scope::User).unwrap();
        agent.target(install, &root.join("user"), &|_| None).unwrap()
    };
    ALL.iter().map(target).collect()
}

/// Sets up and removes. Panics if anything is damaged.
fn outcome(name: &str, agent: usize, file: usize, case: &Case) -> String {
    let root = tempfile::tempdir().unwrap();
    let user = root.path().join("user");
    let target = targets(root.path()).swap_remove(agent);
    let path = target.files().swap_remove(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let is_toml = path.extension().is_some_and(|end| end == "toml");
    (case.place)(&path, if is_toml { &case.toml } else { &case.json });
    let before = tree(&user);
    let unchanged = |when: &str| assert!(tree(&user) == before, "{name}, {}: damaged {when}", case.name);
    let set_up = || Plan::install(&*target).and_then(Plan::apply);
    let said = match set_up() {
        Err(error) => {
            assert!(!error.hint().is_empty() && !error.to_string().contains('\n'), "{error}");
            error.code().to_owned()
        }
        Ok(_) => {
            assert!(tree(&user) != before, "{name}, {}: nothing was set up", case.name);
            Plan::remove(&*target).and_then(Plan::apply).unwrap();
            unchanged("after the removal");
            "kept".to_owned()
        }
    };
    if said != "kept" {
        unchanged("by a refusal");
        // Nor does a removal touch it.
        Plan::remove(&*target).and_then(Plan::apply).ok();
        unchanged("by a removal");
    }
    fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o755)).ok();
    said
}

/// The column of a file in the table.
fn column(file: &str) -> usize {
    let columns = [STRICT_WITH_BOM, STRICT, COMMENTS, COMMAS, TOML, OURS, READ];
    let found = columns.iter().position(|column| column.contains(&file));
    found.unwrap_or_else(|| panic!("what becomes of {file}?"))
}

fn wrong_outcomes(name: &str, agent: usize, file: usize, cases: &[Case]) -> Vec<String> {
    let rows = cases.iter().zip(EXPECTED);
    rows.filter_map(|(case, (_, expected))| {
        let (said, expected) = (outcome(name, agent, file, case), expected[column(name)]);
        (said != expected).then(|| format!("{name}, {}: {said}, not {expected}", case.name))
    })
    .collect()
}

#[test]
fn hostile_files_are_refused_or_kept_exactly() {
    let root = tempfile::tempdir().unwrap();
    let cases = cases();
    assert_eq!(
        cases.iter().map(|case| case.name).collect::<Vec<_>>(),
        EXPECTED.iter().map(|row| row.0).collect::<Vec<_>>()
    );
    let user = root.path().join("user");
    let files = targets(root.path()).into_iter().enumerate().flat_map(|(agent, target)| {
        let files = target.files().into_iter().enumerate();
        files.map(move |(file, path)| (agent, file, path)).collect::<Vec<_>>()
    });
    // They mostly wait for the disk.
    let wrong: Vec<String> = thread::scope(|scope| {
        let judge = |(agent, file, path): (usize, usize, PathBuf)| {
            let (cases, name) = (&cases, path.strip_prefix(&user).unwrap().to_str().unwrap().to_owned());
            scope.spawn(move || wrong_outcomes(&name, agent, file, cases))
        };
        let judged: Vec<_> = files.map(judge).collect();
        judged.into_iter().flat_map(|judged| judged.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
