//! The command line's reference, and facts about the program itself.

use crate::world::{World, program, run};
use std::fs;
use std::path::Path;

/// Every command; a new one that is missing here is missing in the reference, and `--help` tells.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["status"],
    &["who"],
    &["whoami"],
    &["name"],
    &["tag"],
    &["tag", "add"],
    &["tag", "rm"],
    &["send"],
    &["ask"],
    &["reply"],
    &["inbox"],
    &["mail"],
    &["wake"],
    &["dnd"],
    &["dnd", "on"],
    &["dnd", "off"],
    &["dnd", "until"],
    &["job"],
    &["job", "start"],
    &["job", "list"],
    &["job", "status"],
    &["job", "wait"],
    &["job", "result"],
    &["job", "logs"],
    &["job", "cancel"],
    &["job", "heal"],
    &["job", "prune"],
    &["run"],
    &["review"],
    &["approvals"],
    &["approve"],
    &["deny"],
    &["log"],
    &["guard"],
    &["guard", "list"],
    &["guard", "enable"],
    &["guard", "disable"],
    &["guard", "explain"],
    &["guard", "check"],
    &["guard", "log"],
    &["guard", "replay"],
    &["config"],
    &["doctor"],
    &["setup"],
    &["update"],
    &["demo"],
    &["help"],
    &["version"],
    &["completions"],
    &["mcp"],
    &["link"],
    &["hook"],
];

/// `docs/cli-reference.txt` is what `baton help` says. To write it again: `BATON_WRITE_REFERENCE=1
/// cargo test -p baton reference`.
#[test]
fn the_reference_is_what_help_says() {
    let world = World::new();
    let mut text = String::new();
    for words in COMMANDS {
        let mut command = world.baton(&[&["help"], *words].concat());
        command.env("COLUMNS", "100");
        let help = run(command, b"").expect(0).stdout;
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        text.push_str(&format!(
            "$ {}\n\n{}\n\n",
            [&["baton", "help"], *words].concat().join(" "),
            lines.join("\n").trim()
        ));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli-reference.txt");
    if std::env::var_os("BATON_WRITE_REFERENCE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == text,
        "docs/cli-reference.txt is out of date: BATON_WRITE_REFERENCE=1 cargo test -p baton reference"
    );
}

#[test]
fn every_command_of_help_is_in_the_reference() {
    let world = World::new();
    let mut groups = vec![Vec::new()];
    let mut seen = 0;
    while let Some(above) = groups.pop() {
        let words: Vec<&str> = [vec!["help"], above.clone(), vec!["--json"]].concat();
        let help = world.script(&words).expect(0).json();
        for below in help["commands"].as_array().unwrap() {
            let name: &'static str = below["name"].as_str().unwrap().to_owned().leak();
            let path = [above.clone(), vec![name]].concat();
            assert!(COMMANDS.contains(&&path[..]), "{path:?}");
            seen += 1;
            groups.push(path);
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn the_main_help_shows_no_internals_and_says_what_scripts_need() {
    let world = World::new();
    let help = world.script(&["help"]).expect(0).stdout;
    for internal in ["mcp", "link", "hook", "job-worker", "keep-server", "tell-waiting", "follow-mail"] {
        assert!(!help.contains(&format!("\n  {internal} ")), "{internal}");
    }
    for part in ["Mail:", "Examples:", "Exit codes:", "  64  wrong usage", "Environment:", "BATON_HOME"] {
        assert!(help.contains(part), "{part}");
    }
    assert_eq!(world.script(&["--help"]).expect(0).stdout, help);
    assert_eq!(
        world.script(&["help", "send"]).expect(0).stdout,
        world.script(&["send", "-h"]).expect(0).stdout
    );
    for group in ["job", "guard", "dnd", "tag"] {
        let alone = world.script(&[group]).expect(0);
        assert_eq!(alone.stdout, world.script(&["help", group]).expect(0).stdout);
        assert_eq!(alone.stderr, "");
        assert!(world.script(&[group, "--json"]).expect(0).json()["commands"].as_array().unwrap().len() > 1);
    }
    assert_eq!(world.script(&["version"]).expect(0).stdout, world.script(&["--version"]).expect(0).stdout);
    let hint = world.script(&["snd", "otter", "x", "--json"]).expect_error(64, "usage");
    assert_eq!(hint, "did you mean `baton send`? `baton help` lists the commands");
    let hint = world.script(&["help", "job", "strat", "--json"]).expect_error(64, "usage");
    assert_eq!(hint, "did you mean `baton job start`? `baton help job` lists the commands");
    assert!(!world.home().exists(), "and nothing is made");
}

#[test]
fn help_and_version_need_no_home_and_go_to_stdout() {
    let world = World::new();
    for words in
        [&["--help"][..], &["send", "--help"], &["--version"], &["help", "job", "start"], &["version"]]
    {
        let mut command = world.baton(words);
        command.env_clear();
        let done = run(command, b"").expect(0);
        assert!(!done.stdout.is_empty() && done.stderr.is_empty(), "{words:?}");
    }
    assert!(!world.home().exists(), "and leave nothing behind");
}

/// `dist` inherits what `release` says about single crates, and must take all of it back.
#[test]
fn what_is_packaged_is_optimized_as_a_whole() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let manifest: toml_edit::DocumentMut = fs::read_to_string(file).unwrap().parse().unwrap();
    let profile = |name: &str| manifest["profile"][name]["package"].as_table().unwrap();
    assert!(!profile("release").is_empty());
    for (package, _) in profile("release") {
        assert_eq!(profile("dist")[package]["opt-level"].as_integer(), Some(3), "{package}");
    }
}

/// The dynamic loader costs more than a whole quiet hook.
#[cfg(target_os = "linux")]
#[test]
fn the_program_is_static() {
    const INTERPRETER: u32 = 3;
    let elf = fs::read(program()).unwrap();
    assert_eq!(&elf[..5], b"\x7fELF\x02", "a 64-bit ELF file");
    let number = |at: usize, size: usize| -> usize {
        elf[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    assert!(count > 0);
    let kinds: Vec<u32> = (0..count).map(|n| u32::try_from(number(table + n * size, 4)).unwrap()).collect();
    assert!(!kinds.contains(&INTERPRETER), "it asks for an interpreter: {kinds:?}");
}

/// Nothing is sent anywhere: no command that carries mail makes a socket of the internet.
#[cfg(target_os = "linux")]
#[test]
fn m21_no_command_and_no_hook_talks_to_a_network() {
    use crate::puppet::{Puppet, Style};
    use baton_testkit::faults;
    use serde_json::json;
    let world = World::talkative();
    let (ada, lin) =
        (Puppet::start(&world, Style::Claude, "ada"), Puppet::start(&world, Style::Codex, "lin"));
    let payload = lin.payload("UserPromptSubmit", json!({"prompt": "x"}));
    let runs = [
        (ada.shell_command(&["send", "lin", "hi"]), &b""[..]),
        (ada.shell_command(&["who"]), b""),
        (ada.shell_command(&["mail"]), b""),
        (ada.shell_command(&["inbox"]), b""),
        (lin.hook_command(), &payload),
    ];
    for (command, input) in runs {
        let calls = faults::kill_points(&command, input);
        let network = ["socket", "connect", "sendto", "sendmsg", "bind"];
        assert!(!calls.iter().any(|call| network.contains(&call.syscall.as_str())), "{command:?}: {calls:?}");
    }
}
