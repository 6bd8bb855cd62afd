//! Every way in which send, ask, reply, inbox and mail say no: the code, the exit, the hint, with
//! and without `--json`.

use crate::puppet::{Puppet, Style};
use crate::world::{Done, World, done, program, run};
use serde_json::json;
use std::process::{Command, Stdio};

/// Runs the same words without and with `--json`: the exit code is the same, data goes to stdout
/// and words to stderr.
#[track_caller]
fn both(puppet: &Puppet<'_>, words: &[&str], exit: i32, code: &str) -> String {
    let plain = puppet.shell(words).expect(exit);
    assert_eq!(plain.stdout, "", "{words:?}: no data");
    let lines: Vec<&str> = plain.stderr.lines().collect();
    assert!(lines.len() <= 2 && lines[0].starts_with("error: "), "{words:?}: {lines:?}");
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let hint = puppet.shell(&words).expect_error(exit, code);
    if !hint.is_empty() {
        assert_eq!(lines[1], format!("hint: {hint}"), "{words:?}");
    }
    hint
}

#[test]
fn errors_of_addresses() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    Puppet::start(&world, Style::Codex, "lin");
    Puppet::start(&world, Style::Codex, "eve");
    for verb in ["send", "ask"] {
        let refuse = |to: &str, exit: i32, code: &str| both(&ada, &[verb, to, "hello"], exit, code);
        assert!(refuse("nobody", 1, "unknown-recipient").contains("baton who --all"));
        assert!(refuse("agent:claude", 1, "self-target").contains("baton who"));
        refuse("ada", 1, "self-target");
        refuse("claude-ada", 1, "self-target");
        let hint = refuse("agent:codex", 1, "ambiguous-target");
        assert_eq!(hint, "name one of: eve, lin");
        refuse("agent:gemini-next", 64, "unknown-agent");
        refuse("#nobody", 1, "unknown-recipient");
        refuse("lin@laptop", 1, "unknown-machine");
        refuse("elsewhere:lin", 1, "unknown-recipient");
        refuse("script", 1, "unknown-recipient");
        for bad in ["", "a b", "#", "@x", "x@", ":x", "agent:", "a\tb", &"x".repeat(10_240)] {
            refuse(bad, 64, "bad-address");
        }
    }
    for puppet in ["lin", "eve"] {
        let mut tagged = world.baton(&["tag", "add", "backend"]);
        let id = format!("codex-{puppet}");
        tagged.env("CODEX_SESSION_ID", &id).env("CODEX_THREAD_ID", &id);
        run(tagged, b"").expect(0);
    }
    assert_eq!(both(&ada, &["ask", "#backend", "hello"], 1, "ambiguous-target"), "name one of: eve, lin");
    let sent = ada.shell(&["send", "#backend", "hello", "--json"]).expect(0).json();
    assert_eq!(
        sent["to"],
        json!([{"session_id": "codex-eve", "name": "eve"}, {"session_id": "codex-lin", "name": "lin"}])
    );
    assert_eq!(world.mail().len(), 1, "nothing else was accepted");
}

#[test]
fn errors_of_usage() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    let wrong: &[&[&str]] = &[
        &["send"],
        &["fly"],
        &["send", "lin", "hello", "--nope"],
        &["send", "lin", "hello", "extra"],
        &["send", "lin", "hello", "--wake", "never"],
        &["ask"],
        &["ask", "lin", "hello", "--resume", "r000000000000"],
        &["reply"],
        &["inbox", "--limit", "0"],
        &["inbox", "--limit", "many"],
        &["mail", "--limit", "-1"],
        &["name"],
        &["tag", "ad"],
        &["help", "fly"],
    ];
    for words in wrong {
        both(&ada, words, 64, "usage");
    }
    for (words, code) in [
        (&["send", "lin", "hello", "--ttl", "soon"][..], "bad-duration"),
        (&["send", "lin", "hello", "--ttl", "0s"], "bad-duration"),
        (&["send", "lin", "hello", "--ttl", "99999999999999999d"], "bad-duration"),
        (&["ask", "lin", "hello", "--timeout", "1.5h"], "bad-duration"),
        (&["inbox", "--wait", "1"], "bad-duration"),
    ] {
        assert!(both(&ada, words, 64, code).contains("45s"));
    }
}

#[test]
fn errors_of_ids() {
    let world = World::talkative();
    let (ada, lin) =
        (Puppet::start(&world, Style::Claude, "ada"), Puppet::start(&world, Style::Codex, "lin"));
    let eve = Puppet::start(&world, Style::Codex, "eve");
    let message = ada.send("lin", "between us");
    for id in ["m000000000000", "hello", "../../etc/passwd", ""] {
        both(&lin, &["mail", id], 1, "message-not-found");
        both(&lin, &["send", "ada", "hello", "--reply-to", id], 1, "message-not-found");
        both(&lin, &["reply", id, "hello"], 1, "message-not-found");
    }
    // To a third one it does not exist, in any way.
    both(&eve, &["mail", &message], 1, "message-not-found");
    both(&eve, &["reply", &message, "hello"], 1, "message-not-found");
    both(&eve, &["send", "ada", "hello", "--reply-to", &message], 1, "message-not-found");
    assert_eq!(eve.shell(&["mail", "--json"]).expect(0).json(), json!([]));
    assert_eq!(eve.shell(&["mail", "--search", "between", "--json"]).expect(0).json(), json!([]));
    for request in ["r000000000000", "hello", &message.replacen('m', "r", 1)] {
        both(&ada, &["ask", "--resume", request, "--timeout", "1ms"], 1, "request-not-found");
    }
    let asked = ada.shell(&["ask", "lin", "well?", "--timeout", "1ms", "--json"]).expect(2).json();
    both(
        &lin,
        &["ask", "--resume", asked["request_id"].as_str().unwrap(), "--timeout", "1ms"],
        1,
        "request-not-found",
    );
}

#[test]
fn errors_of_mailboxes_and_waits() {
    let world = World::talkative();
    world.configure("[limits]\nmailbox = 3\n");
    let (ada, lin) =
        (Puppet::start(&world, Style::Claude, "ada"), Puppet::start(&world, Style::Codex, "lin"));
    for _ in 0..3 {
        ada.send("lin", "hello");
    }
    let hint = both(&ada, &["send", "lin", "one too many"], 3, "mailbox-full");
    assert!(hint.contains("limits.mailbox"), "{hint}");
    both(&ada, &["inbox", "--wait", "10ms"], 2, "timed-out");
    both(&ada, &["name", "lin"], 1, "name-taken");
    assert_eq!(ada.shell(&["inbox", "--json"]).expect(0).json(), json!([]));
    let script = world.script(&["name", "lin", "--json"]);
    script.expect_error(1, "not-a-session");
    drop(lin);
    // A malformed configuration stops commands, not hooks, and names the line.
    world.configure("[limits]\nhops = many\n");
    let text = ada.shell(&["send", "lin", "x", "--json"]);
    text.clone().expect_error(1, "config-malformed");
    assert!(text.stderr.contains("line 2"), "{}", text.stderr);
    ada.quiet_hook("Stop", json!({}));
}

#[test]
fn errors_of_bodies_that_can_not_be_read() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    Puppet::start(&world, Style::Codex, "lin");
    let shell = |script: &str| {
        let mut command = world.command("sh");
        command.args(["-c", script, "sh", program()]).envs(ada.environment());
        let output = command.stdin(Stdio::null()).output().unwrap();
        done(output.status, &output.stdout, &output.stderr)
    };
    // Closed, empty, a folder.
    shell("exec \"$1\" send lin --json <&-").expect_error(64, "empty-body");
    shell("exec \"$1\" send lin - --json < /dev/null").expect_error(64, "empty-body");
    shell("exec \"$1\" reply m000000000000 - --json <&-").expect_error(64, "empty-body");
    shell("exec \"$1\" send lin - --json < /").expect_error(1, "body-unreadable");
    // More than there may be, without an end: it stops reading.
    shell("yes | \"$1\" send lin - --json").expect_error(1, "body-too-large");
    // An argument that is no text.
    shell("exec \"$1\" send lin \"$(printf '\\377')\" --json").expect_error(64, "usage");
    assert_eq!(world.mail().len(), 0);
}

/// Runs a line of shell in namespaces of its own, where it may mount; `None` and a reason where the
/// machine forbids it.
#[cfg(target_os = "linux")]
fn in_namespace(world: &World, script: &str, environment: &[(&'static str, String)]) -> Option<Done> {
    let mut probe = Command::new("unshare");
    if !probe.args(["-rm", "true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine allows no user and mount namespaces");
        return None;
    }
    let mut command = world.command("unshare");
    command.args(["-rm", "sh", "-c", script, "sh", program()]).envs(environment.iter().cloned());
    let output = command.stdin(Stdio::null()).output().unwrap();
    Some(done(output.status, &output.stdout, &output.stderr))
}

/// The home as a sandbox shows it: it can be read, and nothing in it can be written.
#[cfg(target_os = "linux")]
const READ_ONLY: &str =
    "mount --bind \"$BATON_HOME\" \"$BATON_HOME\" && mount -o remount,ro,bind \"$BATON_HOME\" && ";

/// Codex's sandbox keeps its shell from the store: whatever is tried, it says so and names the way
/// that works.
#[cfg(target_os = "linux")]
#[test]
fn errors_of_a_sandboxed_shell() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    let lin = Puppet::start(&world, Style::Codex, "lin");
    let message = ada.send("lin", "hello");
    let asked = lin.shell(&["ask", "ada", "well?", "--timeout", "1ms", "--json"]).expect(2).json();
    let resume = format!("ask --resume {} --timeout 1s", asked["request_id"].as_str().unwrap());
    let words = [
        "send ada hi",
        "ask ada hi --timeout 1s",
        &format!("reply {message} hi"),
        "inbox",
        &resume,
        "name linus",
        "tag add x",
    ];
    // As hooks leave the store behind, with its WAL and index; and after a process folded and
    // closed it.
    for left in ["", "-shm -wal"] {
        for suffix in left.split_whitespace() {
            std::fs::remove_file(world.home().join(format!("baton.db{suffix}"))).ok();
        }
        for words in words {
            let script = format!("{READ_ONLY} exec \"$1\" {words} --json");
            let Some(done) = in_namespace(&world, &script, &lin.environment()) else { return };
            let hint = done.expect_error(2, "sandboxed");
            assert!(
                ["send_message", "ask_peer", "reply_to_message", "read_messages"]
                    .iter()
                    .all(|tool| hint.contains(tool)),
                "{hint}"
            );
        }
        // Not in an agent's shell it is what it is.
        for words in ["send ada hi", "inbox"] {
            let script = format!("{READ_ONLY} exec setsid --wait \"$1\" {words} --json");
            let Some(done) = in_namespace(&world, &script, &[]) else { return };
            let code = done.json()["error"]["code"].as_str().unwrap().to_owned();
            assert!(["store-read-only", "store-unavailable"].contains(&code.as_str()), "{words}: {code}");
            assert_eq!(done.code, Some(1));
        }
    }
    // A home that is not there and can't be made.
    let script = "mkdir \"$TMPDIR/ro\"; mount -t tmpfs -o ro tmpfs \"$TMPDIR/ro\"; BATON_HOME=\"$TMPDIR/ro/baton\" exec \"$1\" send ada hi --json";
    let Some(done) = in_namespace(&world, script, &lin.environment()) else { return };
    done.expect_error(2, "sandboxed");
    let Some(done) =
        in_namespace(&world, &script.replace("mkdir", ":").replace("exec", "exec setsid --wait"), &[])
    else {
        return;
    };
    done.expect_error(1, "store-read-only");
}
