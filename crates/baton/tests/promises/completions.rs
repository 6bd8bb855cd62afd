//! Completions, in the real shells where they are installed. `scripts/test` installs them.

use crate::puppet::{Puppet, Style};
use crate::world::{Done, World, program, quoted, run};
use baton_testkit::sandbox::find_in_path;
use std::collections::BTreeSet;
use std::path::Path;

/// What a shell offers at the end of a line.
fn offered(world: &World, shell: &str, line: &str) -> BTreeSet<String> {
    let bin = Path::new(program()).parent().unwrap().display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let script = match shell {
        "bash" => format!(
            "eval \"$(baton completions bash)\"; COMP_LINE={0}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=(baton); _baton; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            quoted(line)
        ),
        // The editor of the command line is not there; what it would be given is printed.
        "zsh" => format!(
            "compdef() {{ }}; _files() {{ }}; _describe() {{ print -l -- ${{(P)2}} }}; eval \"$(baton completions zsh)\"; \
             words=(\"${{(@s: :)$(print -r -- {0}.)}}\"); words[-1]=${{words[-1]%.}}; CURRENT=${{#words}}; _baton",
            quoted(line)
        ),
        _ => format!("baton completions fish | source; complete -C {}", quoted(line)),
    };
    let mut command = world.command(shell);
    command.args(["-c", &script]).env("PATH", path);
    let Done { stdout, stderr, .. } = run(command, b"");
    assert_eq!(stderr, "", "{shell}: {line}");
    let word = |line: &str| line.split([':', '\t']).next().unwrap_or_default().to_owned();
    stdout.lines().filter(|line| !line.is_empty()).map(word).collect()
}

#[test]
fn each_shell_offers_commands_options_values_and_names() {
    for shell in ["bash", "zsh", "fish"] {
        if find_in_path(shell).is_none() {
            eprintln!("skipped: {shell} is not installed");
            continue;
        }
        let world = World::talkative();
        let words = |line: &str| offered(&world, shell, line);
        let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
        // Without a home nothing is made, and nothing is said.
        assert_eq!(words("baton send "), set(&[]), "{shell}");
        assert!(!world.home().exists());
        Puppet::start(&world, Style::Claude, "ada");
        Puppet::start(&world, Style::Codex, "lin");
        assert_eq!(words("baton con"), set(&["config"]), "{shell}");
        assert!(words("baton ").is_superset(&set(&["send", "who", "job", "help"])), "{shell}");
        assert!(!words("baton ").contains("mcp") && !words("baton ").contains("complete"), "{shell}");
        assert_eq!(words("baton job ca"), set(&["cancel"]), "{shell}");
        assert!(words("baton send ").is_superset(&set(&["ada", "lin"])), "{shell}");
        assert_eq!(words("baton send l"), set(&["lin"]), "{shell}");
        assert_eq!(words("baton --as a"), set(&["ada"]), "{shell}");
        assert_eq!(words("baton send lin --urg"), set(&["--urgent"]), "{shell}");
        assert_eq!(words("baton job start --allow "), set(&["all", "ask", "edits"]), "{shell}");
        assert_eq!(words("baton guard disable block-sud"), set(&["block-sudo"]), "{shell}");
        assert_eq!(words("baton config limits.ho"), set(&["limits.hops"]), "{shell}");
        assert_eq!(words("baton setup co"), set(&["codex", "copilot"]), "{shell}");
        assert_eq!(words("baton help job sta"), set(&["start", "status"]), "{shell}");
    }
}

#[test]
fn a_completion_that_fails_says_nothing() {
    let world = World::new();
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("baton.db"), "no store").unwrap();
    let done = world.script(&["complete", "bash", "--", "send", ""]).expect(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
}
