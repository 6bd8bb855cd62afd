//! Rights never grow: what a caller may do is what docs/trust.md says, and what it starts may do no
//! more.

use crate::jobs::Jobs;
use crate::puppet::{Puppet, Style};
use crate::world::{World, program, run};
use baton_core::rights;
use std::fs;
use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- rights: made by BATON_WRITE_REFERENCE=1 cargo test -p baton rights -->\n";
const END: &str = "<!-- end of rights -->\n";

/// docs/trust.md shows the table that the program goes by. To write it again:
/// `BATON_WRITE_REFERENCE=1 cargo test -p baton rights`.
#[test]
fn the_table_of_rights_is_the_one_in_the_docs() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trust.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", rights::table().trim());
    if std::env::var_os("BATON_WRITE_REFERENCE").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    assert!(text == wanted || std::env::var_os("BATON_WRITE_REFERENCE").is_some(), "docs/trust.md is old");
}

/// A command of an agent's shell, with the scripted agent for jobs.
fn in_shell(jobs: &Jobs, puppet: &Puppet<'_>, words: &[&str]) -> Command {
    let mut command = puppet.shell_command(&[words, &["--json"]].concat());
    jobs.dress(&mut command);
    command
}

#[test]
fn s4_an_agent_gives_no_job_more_than_its_person_has_set() {
    let jobs = Jobs::new();
    jobs.world.configure("[jobs]\nallow = \"ask\"\n");
    let otter = Puppet::start(&jobs.world, Style::Claude, "otter");
    for wider in ["edits", "all"] {
        for verb in [&["job", "start"][..], &["run"][..]] {
            let words = [verb, &["claude", "quick", "--allow", wider]].concat();
            run(in_shell(&jobs, &otter, &words), b"").expect_error(3, "not-a-person");
        }
    }
    // No file that the environment names makes it more.
    let loose = jobs.world.path("loose.toml");
    fs::write(&loose, "[jobs]\nallow = \"all\"\ndepth = 5\n").unwrap();
    let mut named = in_shell(&jobs, &otter, &["job", "start", "claude", "quick", "--allow", "all"]);
    named.env("BATON_CONFIG", &loose);
    run(named, b"").expect_error(3, "not-a-person");
    run(in_shell(&jobs, &otter, &["job", "start", "claude", "quick"]), b"").expect(0);
    run(in_shell(&jobs, &otter, &["job", "start", "claude", "quick", "--allow", "ask"]), b"").expect(0);
}

#[test]
fn s4_a_job_asks_for_no_job_that_may_do_more() {
    let jobs = Jobs::new();
    jobs.world.configure("[jobs]\nallow = \"all\"\ndepth = 3\n");
    let asking = jobs.run(&["job", "start", "claude", "quick", "--allow", "ask"]).expect(0).json();
    let id = asking["job_id"].as_str().unwrap();
    // A process of that job, which hides its marks from what it starts.
    let below = |words: &[&str], mark: &str, value: &str| {
        let mut command = jobs.world.command("sh");
        jobs.dress(&mut command);
        command.args(["-c", "env -u BATON_JOB -u BATON_READ_ONLY \"$0\" \"$@\"; exit $?"]);
        command.arg(program()).args(words).arg("--json").env(mark, value);
        run(command, b"")
    };
    fn start<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["job", "start", "claude", "quick"], more].concat()
    }
    for wider in ["edits", "all"] {
        below(&start(&["--allow", wider]), "BATON_JOB", id).expect_error(3, "not-permitted");
    }
    below(&start(&[]), "BATON_JOB", id).expect_error(3, "not-permitted");
    below(&start(&["--allow", "ask"]), "BATON_JOB", id).expect(0);
    below(&start(&["--allow", "ask"]), "BATON_READ_ONLY", "1").expect_error(3, "not-permitted");
}

/// Runs the program that `ESCAPE` names once, then answers.
#[cfg(target_os = "linux")]
const ESCAPER: &str = r#"#!/bin/sh
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
case "$prompt" in *"ESCAPE"*) sh "$HOME/escape" ;; esac
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn"}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","stop_reason":"end_turn"}'
while read -r line; do :; done
"#;

#[test]
#[cfg(target_os = "linux")]
fn s4_a_process_that_has_left_its_job_starts_none() {
    let jobs = Jobs::new();
    // A depth that leaves room: what is refused is refused because the job is not known.
    jobs.world.configure("[jobs]\nallow = \"all\"\ndepth = 3\n");
    fs::write(jobs.world.path("bin/claude"), ESCAPER).unwrap();
    let ended = jobs.run(&["job", "start", "claude", "quick", "--allow", "all"]).expect(0).json();
    let ended = ended["job_id"].as_str().unwrap();
    jobs.until(ended, "completed");
    let start = format!("{} --home {} job start claude quick --json", program(), jobs.world.home().display());
    let clean = "env -i HOME=\"$HOME\" PATH=\"$PATH\" ANTHROPIC_API_KEY=fake";
    let forged = format!("BATON_JOB={ended} BATON_JOB_DEPTH=0");
    // Moved into place when it is whole.
    let into = |name: &str, allow: &str| {
        format!("sh -c '{start} {allow} > $HOME/{name}.part 2> /dev/null; mv $HOME/{name}.part $HOME/{name}'")
    };
    let script = [
        // It is still below its job, whatever it clears: the record says what it may.
        format!("{clean} {}", into("in-place", "--allow ask")),
        format!("{clean} {}", into("in-place-reads", "--read-only")),
        // It has left.
        format!("{clean} setsid -f {}", into("away", "--allow ask")),
        format!("{clean} setsid -f {}", into("away-reads", "--read-only")),
        format!("{clean} {forged} setsid -f {}", into("forged", "--allow ask")),
        format!("{clean} setsid -f prlimit --locks=1000:1000 {}", into("lowered", "--allow ask")),
    ];
    fs::write(jobs.file("escape"), script.join("\n")).unwrap();
    jobs.run(&["run", "claude", "ESCAPE", "--read-only"]).expect(0);
    for (name, code) in [
        ("in-place", Some("not-permitted")),
        ("in-place-reads", None),
        ("away", Some("too-deep")),
        ("away-reads", Some("too-deep")),
        ("forged", Some("too-deep")),
        ("lowered", Some("too-deep")),
    ] {
        let said = jobs.wait_for_file(name);
        let said: serde_json::Value =
            serde_json::from_str(&said).unwrap_or_else(|_| panic!("{name}: {said}"));
        assert_eq!(said["error"]["code"].as_str(), code, "{name}: {said}");
    }
}

#[test]
fn s10_setup_below_an_agent_is_refused_and_changes_nothing() {
    let world = World::new();
    world.script(&["setup", "claude"]).expect(0);
    let settings = world.path("home/.claude/settings.json");
    let before = fs::read(&settings).unwrap();
    let otter = Puppet::start(&world, Style::Claude, "otter");
    for words in [
        &["setup", "--json"][..],
        &["setup", "claude", "--json"],
        &["setup", "--remove", "--json"],
        &["setup", "--project", "--remove", "--json"],
        &["doctor", "--fix", "--json"],
    ] {
        run(otter.shell_command(words), b"").expect_error(3, "not-a-person");
        // Nor with another agent's environment, nor with a job's.
        let mut job = world.baton(words);
        job.env("BATON_JOB", "j");
        run(job, b"").expect_error(3, "not-a-person");
    }
    assert_eq!(fs::read(&settings).unwrap(), before);
    run(otter.shell_command(&["setup", "--remove", "--dry-run"]), b"").expect(0);
    world.script(&["setup", "--remove", "claude"]).expect(0);
}

#[test]
fn an_agent_reaches_nothing_that_is_for_the_person() {
    let world = World::new();
    let otter = Puppet::start(&world, Style::Claude, "otter");
    for (words, code) in [
        (&["guard", "disable", "block-sudo", "--json"][..], "not-a-person"),
        (&["--json", "guard", "enable", "block-sudo"], "not-a-person"),
        (&["send", "birch", "hi", "--urgent", "--json"], "not-a-person"),
        (&["config", "--as", "user", "--json"], "not-a-person"),
        (&["dnd", "on", "birch", "--json"], "not-a-person"),
    ] {
        run(otter.shell_command(words), b"").expect_error(3, code);
    }
    world.script(&["guard", "disable", "block-sudo", "--json"]).expect_error(3, "not-a-person");
    world.script(&["approve", "x", "--json"]).expect_error(3, "not-a-person");
}
