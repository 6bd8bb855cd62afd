//! OpenCode's configuration: JSON with comments, a plugin list and our server, and our plugin file.

use baton_agents::config::json::{Bom, Dialect, Json, Reader, Step};
use baton_agents::install::{Install, Scope};
use baton_agents::opencode::install::OpenCode;
use serde_json::{Value, json};
use std::path::Path;

use crate::documents::JSON;
use crate::world::{BATON, Files, HOME, install};

/// What people write into such files beside JSON.
const COMMENTED: &[&str] = &[
    "// nothing yet",
    "/* nothing\n   yet */\n",
    "{\n  // my model\n  \"model\": \"a/b\", // the best\n}\n",
    "{\n  \"plugin\": [\n    \"x\", // keep\n    /* \"y\", */\n  ],\n  \"mcp\": {\n    \"other\": {\"type\": \"local\", \"command\": [\"x\"],},\n  },\n}\n",
    "{\r\n\t\"plugin\": [\"a\"],\r\n\t\"url\": \"http://127.0.0.1/*no*/\", // \"quoted\"\r\n}",
    "{\"plugin\":[],/*e*/\"mcp\":{}}",
    "{\"plugin\": [[\"x\", {\"option\": 1,}],]}",
    "{ /* only a comment */ }",
];

const READER: Reader =
    Reader { malformed: "", bom: Bom::Skipped, dialect: Dialect::CommentsAndTrailingCommas };

fn opencode() -> OpenCode {
    OpenCode::new(install(Scope::User), Path::new("/home/dev"), None).unwrap()
}

fn value(files: &Files, path: &Path, key: &str) -> Value {
    let json = Json::parse(files.text(path).as_bytes(), path, &READER).unwrap();
    json.get(&[Step::Key(key.to_owned())]).unwrap()
}

#[test]
fn every_document_comes_back_byte_for_byte() {
    let target = opencode();
    let [commented, plain] = target.config_paths();
    let cases = JSON.iter().map(|text| (plain, text)).chain(COMMENTED.iter().map(|text| (commented, text)));
    for (path, text) in cases {
        let before = Files::with(path, text.as_bytes());
        let (after, records) = before.installed(&target).unwrap();
        let plugins = value(&after, path, "plugin");
        let ours = json!(format!("file://{}", target.plugin_path().display()));
        assert_eq!(plugins.as_array().unwrap().last(), Some(&ours), "{after:?}");
        assert_eq!(
            value(&after, path, "mcp")["baton"]["command"],
            json!([BATON, "mcp", "--agent", "opencode", "--home", HOME])
        );
        for line in text
            .lines()
            .filter(|_| path == commented)
            .filter(|line| line.contains("//") || line.contains("/*"))
        {
            let from = &line[line.rfind("//").or(line.find("/*")).unwrap()..];
            let comment = from.split_inclusive("*/").next().unwrap().trim_end();
            assert!(after.text(path).contains(comment), "{comment} is gone: {after:?}");
        }
        assert_eq!(after.installed(&target).unwrap().0, after, "twice is the same as once");
        assert_eq!(after.removed(&target, &records).unwrap(), before, "{after:?}");
    }
}

#[test]
fn nothing_is_left_of_files_that_were_not_there() {
    let target = opencode();
    let (after, records) = Files::default().installed(&target).unwrap();
    assert_eq!(after.0.len(), 3, "{after:?}");
    assert_eq!(after.removed(&target, &records).unwrap(), Files::default());
}

#[test]
fn what_someone_wrote_meanwhile_stays() {
    let target = opencode();
    let path = &target.config_paths()[1];
    let (after, records) = Files::with(path, b"{\n  \"model\": \"a/b\"\n}\n").installed(&target).unwrap();
    let edited = after.text(path).replace("\"a/b\",", "\"c/d\", // better\n  \"theme\": \"dark\",");
    let removed = after.and(path, edited.as_bytes()).removed(&target, &records).unwrap();
    assert_eq!(removed.text(path), "{\n  \"model\": \"c/d\", // better\n  \"theme\": \"dark\"\n}\n");
}

#[test]
fn a_moved_program_is_brought_up_to_date_in_both_files() {
    let target = opencode();
    let path = &target.config_paths()[1];
    let (old, _) = Files::with(path, b"{}").installed(&target).unwrap();
    let install = Install::new(Path::new("/usr/bin/baton"), Path::new(HOME), Scope::User).unwrap();
    let moved = OpenCode::new(install, Path::new("/home/dev"), None).unwrap();
    let (new, _) = old.installed(&moved).unwrap();
    assert_eq!(value(&new, path, "mcp")["baton"]["command"][0], "/usr/bin/baton");
    assert_eq!(value(&new, path, "plugin").as_array().unwrap().len(), 1);
    assert!(new.text(target.plugin_path()).contains("const BATON = \"/usr/bin/baton\"\n"));
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let target = opencode();
    let path = &target.config_paths()[1];
    for (text, code) in [
        (r#"{"mcp": {"baton": {"type": "local", "command": ["x"]}}}"#, "setup-name-taken"),
        (
            r#"{"mcp": {"baton": {"command": ["b", "mcp", "--agent", "opencode", "--home", "/other"]}}}"#,
            "setup-other-home",
        ),
        (r#"{"plugin": [], "plugin": []}"#, "json-duplicate-key"),
        (r#"{"plugin": {}}"#, "json-wrong-kind"),
        ("{\"a\": 1 \"b\": 2}", "json-malformed"),
        ("[]", "json-wrong-kind"),
    ] {
        let error = Files::with(path, text.as_bytes()).installed(&target).unwrap_err();
        assert_eq!(error.code(), code, "{text}: {error}");
    }
    let plugin = Files::with(target.plugin_path(), b"export const Mine = 1");
    assert_eq!(plugin.installed(&target).unwrap_err().code(), "setup-file-taken");
}

#[test]
fn the_plugin_names_program_and_home_as_text() {
    let target = opencode();
    let (after, _) = Files::default().installed(&target).unwrap();
    let source = after.text(target.plugin_path());
    assert!(source.contains(&format!("const BATON = {}\n", json!(BATON))));
    assert!(source.contains(&format!("const HOME = {}\n", json!(HOME))));
    assert!(!source.contains("__"), "a placeholder is left");
}
