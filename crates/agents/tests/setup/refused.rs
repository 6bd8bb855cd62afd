//! What can't be edited safely is refused, with the place, and without a change.

use baton_agents::install::{Install, InstallError, Scope, Target};
use std::path::Path;

use crate::world::{Files, claude, codex, gemini};

/// The error of an installation over this file.
fn refusal(target: &dyn Target, path: &Path, text: &[u8]) -> InstallError {
    Files::with(path, text).installed(target).expect_err(&String::from_utf8_lossy(text))
}

#[test]
fn json_that_claude_would_not_read_is_refused_with_its_place() {
    let cases: &[(&str, &str, &str)] = &[
        ("{\n  // why\n  \"a\": 1\n}", "2:3", "json-comment"),
        ("{\n  \"a\": 1 /* b */\n}", "2:10", "json-comment"),
        ("{\"a\": 1,}", "1:8", "json-trailing-comma"),
        ("{\"a\": [1,\n 2, ]}", "2:3", "json-trailing-comma"),
        ("{\"a\": 1", "1:1", "json-malformed"),
        ("{\"ä\": 1 \"b\": 2}", "1:8", "json-malformed"),
        ("{'a': 1}", "1:2", "json-malformed"),
        ("{a: 1}", "1:2", "json-malformed"),
        ("{\"a\": 0x1}", "1:7", "json-malformed"),
        ("{\"a\": +1}", "1:7", "json-malformed"),
        ("{\"a\": .5}", "1:7", "json-malformed"),
        ("{\"a\": 01}", "1:8", "json-malformed"),
        ("{\"a\": NaN}", "1:7", "json-malformed"),
        ("{\"a\": \"\\x41\"}", "1:8", "json-malformed"),
        ("{\"a\": \"tab\there\"}", "1:10", "json-malformed"),
        ("{\"a\":\u{a0}1}", "1:6", "json-malformed"),
        ("{\"a\": 1}\n{}", "2:1", "json-malformed"),
        ("nonsense", "1:1", "json-malformed"),
        ("{\"a\": truee}", "1:7", "json-malformed"),
        ("[]", "1:1", "json-wrong-kind"),
        ("null", "1:1", "json-wrong-kind"),
        ("{\"hooks\": []}", "1:11", "json-wrong-kind"),
        ("{\"hooks\":\n null}", "2:2", "json-wrong-kind"),
        ("{\"hooks\": {\"Stop\": {}}}", "1:20", "json-wrong-kind"),
        ("{\"hooks\": {},\n \"hooks\": {}}", "2:2", "json-duplicate-key"),
        ("{\"hooks\": {\"Stop\": [], \"Stop\": []}}", "1:24", "json-duplicate-key"),
        ("{\"hooks\": {\"Other\": [], \"Other\": []}}", "1:25", "json-duplicate-key"),
    ];
    let target = claude();
    let mut wrong = Vec::new();
    for (text, place, code) in cases {
        let error = refusal(&target, target.settings_path(), text.as_bytes());
        let expected = format!("edit /home/dev/.claude/settings.json:{place}: ");
        if error.code() != *code || !error.to_string().starts_with(&expected) {
            wrong.push(format!("{text:?} should be {code} at {place}: {} {error}", error.code()));
        }
        assert!(!error.hint().is_empty());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// It accepts comments, and nothing else that is not JSON.
#[test]
fn json_that_gemini_would_not_read_is_refused_with_its_place() {
    let target = gemini();
    for (text, place, code) in [
        ("{\"a\": 1, // b\n}", "1:8", "json-trailing-comma"),
        ("{\"a\": 1 /* b }", "1:1", "json-malformed"),
        ("\u{feff}{}", "1:1", "json-byte-order-mark"),
        ("{ // c\n  'a': 1}", "2:3", "json-malformed"),
        ("{ /* c */ \"hooks\": []}", "1:20", "json-wrong-kind"),
    ] {
        let error = refusal(&target, target.settings_path(), text.as_bytes());
        let expected = format!("edit /home/dev/.gemini/settings.json:{place}: ");
        assert_eq!(error.code(), code, "{text:?}: {error}");
        assert!(error.to_string().starts_with(&expected), "{text:?}: {error}");
    }
}

#[test]
fn the_message_says_what_claude_makes_of_the_file() {
    let target = claude();
    let error = refusal(&target, target.settings_path(), b"{\n  // why\n}");
    assert_eq!(
        format!("failed to {error}"),
        "failed to edit /home/dev/.claude/settings.json:2:3: JSON allows no comments; with this file, Claude Code ignores all of it, hooks and permission rules included"
    );
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_their_place() {
    let target = claude();
    let error = refusal(&target, target.settings_path(), b"{\n \"a\": \"\xff\"}");
    assert!(error.to_string().contains("settings.json:2:8: "), "{error}");
    let target = codex();
    let error = refusal(&target, target.trust_path(), b"a = 1\nb = \"\xff\"");
    assert!(error.to_string().contains("config.toml:2:6: "), "{error}");
}

#[test]
fn very_deep_json_is_refused_not_fatal() {
    let text = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let target = claude();
    assert_eq!(refusal(&target, target.settings_path(), text.as_bytes()).code(), "json-malformed");
}

#[test]
fn codex_hooks_with_a_byte_order_mark_are_refused() {
    let target = codex();
    let error = refusal(&target, target.hooks_path(), "\u{feff}{}".as_bytes());
    assert_eq!(error.code(), "json-byte-order-mark");
}

#[test]
fn toml_that_can_not_be_extended_is_refused_with_its_place() {
    let cases: &[(&str, &str, &str)] = &[
        ("a = \n", "1:5", "toml-malformed"),
        ("a = 1\na = 2\n", "2:1", "toml-malformed"),
        ("[a]\n[a]\n", "2:2", "toml-malformed"),
        ("x = 1\nmcp_servers = { a = { command = \"x\" } }\n", "2:1", "toml-closed-table"),
        ("mcp_servers.a.command = \"x\"\n", "1:1", "toml-closed-table"),
        ("mcp_servers = []\n", "1:1", "toml-closed-table"),
        ("[[mcp_servers]]\n", "1:3", "toml-closed-table"),
        ("[x]\n[hooks]\nstate = {}\n", "3:1", "toml-closed-table"),
        ("hooks = { state = {} }\n", "1:1", "toml-closed-table"),
        ("[hooks]\nstate.\"k\".trusted_hash = \"x\"\n", "2:1", "toml-closed-table"),
    ];
    let target = codex();
    for (text, place, code) in cases {
        let error = refusal(&target, target.trust_path(), text.as_bytes());
        assert_eq!(error.code(), *code, "{text}: {error}");
        let expected = format!("/home/dev/.codex/config.toml:{place}: ");
        assert!(error.to_string().contains(&expected), "{text:?}: {error}");
    }
}

#[test]
fn a_server_of_our_name_that_is_not_ours_is_left_alone() {
    let target = claude();
    let text = b"{\"mcpServers\": {\"baton\": {\"command\": \"conductor\"}}}";
    let error = refusal(&target, target.servers_path(), text);
    assert_eq!(error.code(), "setup-name-taken");
    assert!(error.to_string().contains(".claude.json:1:26: "), "{error}");
    let target = codex();
    let error = refusal(&target, target.trust_path(), b"\n[mcp_servers.baton]\ncommand = \"conductor\"\n");
    assert_eq!(error.code(), "setup-name-taken");
    assert!(error.to_string().contains("config.toml:2:1: "), "{error}");
}

#[test]
fn paths_that_no_configuration_can_hold_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let home = Path::new("/h");
    for bad in [Path::new("baton"), Path::new("/a\nb"), Path::new(std::ffi::OsStr::from_bytes(b"/\xff"))] {
        assert_eq!(Install::new(bad, home, Scope::User).unwrap_err().code(), "setup-bad-path");
        assert_eq!(Install::new(home, bad, Scope::User).unwrap_err().code(), "setup-bad-path");
        assert_eq!(
            Install::new(home, home, Scope::Project(bad.into())).unwrap_err().code(),
            "setup-bad-path"
        );
    }
}
