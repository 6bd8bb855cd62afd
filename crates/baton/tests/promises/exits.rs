//! Exit codes, from one table of command lines: 0 done, 1 failed, 2 not yet, 3 refused, 64 wrong
//! usage. They are the same with and without `--json`.
//!
//! A name from a fixed list of baton's (a command, an option, an agent, a rule, a setting) that is
//! not on it is wrong usage. A name of something that could be there (a participant, a message, a
//! job, a question) and is not, is a failure.

use crate::puppet::{Puppet, Style};
use crate::world::World;

/// What a script gets, in a world with the sessions ada and lin.
const TABLE: &[(i32, &[&str])] = &[
    (
        0,
        &["", "status", "help", "help job start", "job", "guard", "dnd", "tag", "version", "--version", "-h"],
    ),
    (
        0,
        &[
            "who",
            "who --all",
            "whoami",
            "mail",
            "log",
            "inbox --peek",
            "config",
            "config wake",
            "config --path",
        ],
    ),
    (0, &["job list", "job status", "approvals", "guard list", "guard log", "guard explain block-sudo"]),
    (0, &["guard explain -- sudo id", "setup claude --dry-run", "send lin hello", "wake lin"]),
    (1, &["send nobody hello", "ask nobody hello", "mail m000000000000", "reply m000000000000 hello"]),
    (1, &["ask --resume r000000000000", "job result j000000000000", "job status j000000000000"]),
    (1, &["approvals a000000000000", "wake nobody", "send elsewhere:lin hello", "send lin@laptop hello"]),
    (1, &["name other", "tag add x", "dnd on"]),
    (2, &["inbox --wait 10ms", "ask lin hello --timeout 10ms"]),
    (
        3,
        &[
            "guard disable block-sudo",
            "guard enable block-sudo",
            "approve x",
            "deny x",
            "send lin x --urgent",
        ],
    ),
    (3, &["dnd on lin", "who --as ada", "config wake off", "config --unset wake", "config --edit"]),
    (3, &["setup --remove --purge", "setup claude --allow-own-tools"]),
    (64, &["fly", "job fly", "help fly", "send", "ask", "reply", "name", "tag add", "job start", "approve"]),
    (64, &["send lin hello --nope", "send lin hello --wake never", "inbox --limit 0", "inbox --wait soon"]),
    (64, &["send lin", "reply m000000000000", "run claude", "send agent:none hello", "run none hello"]),
    (
        64,
        &[
            "guard explain none",
            "guard enable",
            "config none",
            "config --color x",
            "setup none",
            "setup --purge",
        ],
    ),
];

#[test]
fn each_command_line_exits_as_the_table_says_with_and_without_json() {
    let world = World::talkative();
    for name in ["ada", "lin"] {
        Puppet::start(&world, if name == "ada" { Style::Claude } else { Style::Codex }, name);
    }
    for (exit, lines) in TABLE {
        for line in *lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let split = words.iter().position(|word| *word == "--").unwrap_or(words.len());
            for json in [&[][..], &["--json"]] {
                let words = [&words[..split], json, &words[split..]].concat();
                let done = world.script(&words);
                assert_eq!(
                    done.code,
                    Some(*exit),
                    "baton {}\nstdout:\n{}\nstderr:\n{}",
                    words.join(" "),
                    done.stdout,
                    done.stderr
                );
                let is_error = done.stderr.starts_with("error: ");
                // A wait that ran out is no error where the thing goes on.
                assert!(*exit == 2 || is_error == (*exit != 0), "baton {}: {}", words.join(" "), done.stderr);
                // Help of `-h` and the version are documents too.
                if !json.is_empty() {
                    let lines: Vec<_> = done.stdout.lines().collect();
                    let is_document =
                        lines.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
                    assert!(is_document && !(lines.is_empty() && *line != "log"), "{line}: {}", done.stdout);
                }
            }
        }
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure_and_takes_no_mail() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    ada.send("user", "hello");
    let shell = |line: &str| {
        let mut command = world.command("bash");
        let baton = crate::world::quoted(crate::world::program());
        command.args(["-c", &format!("set -o pipefail; {{ sleep 0.3; {baton} {line}; }} | true")]);
        crate::world::run(command, b"")
    };
    for line in ["config", "who", "help", "guard list --json", "mail", "log"] {
        let done = shell(line);
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{line}");
    }
}
