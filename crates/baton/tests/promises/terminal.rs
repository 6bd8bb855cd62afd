//! What a terminal shows: tables fit its width, colours come where they are wanted, and a pipe gets
//! everything.

use crate::puppet::{Puppet, Style};
use crate::world::{World, program, quoted};

const ESCAPE: char = '\u{1b}';

#[test]
fn what_is_shown_fits_the_terminal_and_a_pipe_gets_all_of_it() {
    let world = World::talkative();
    let ada = Puppet::start(&world, Style::Claude, "ada");
    Puppet::start(&world, Style::Codex, "lin");
    ada.send("lin", &"a long body that goes on and on ".repeat(8));
    let baton = quoted(program());
    for words in ["", "who --all", "mail", "guard list", "config", "doctor"] {
        for columns in [60, 100] {
            let line = format!("stty cols {columns}; {baton} {words}");
            let shown = world.on_terminal(&line, &[]).stdout;
            assert!(shown.lines().count() > 1, "{words}: {shown}");
            for line in shown.lines().map(str::trim_end) {
                // What names a row is never cut, and a path is one word.
                let is_path = line.trim_start().starts_with('/') || line.contains("://");
                assert!(is_path || line.chars().count() <= columns, "baton {words} at {columns}: {line}");
            }
        }
        let piped = world.on_terminal(&format!("stty cols 60; {baton} {words} | cat"), &[]).stdout;
        let alone = world.script(&words.split_whitespace().collect::<Vec<_>>()).stdout;
        assert_eq!(piped.contains('…'), alone.contains('…'), "{words}: a pipe gets what a script gets");
    }
}

#[test]
fn colours_come_where_they_are_wanted() {
    let world = World::new();
    Puppet::start(&world, Style::Claude, "ada");
    let baton = quoted(program());
    let has_colour = |line: &str, set: &[(&str, &str)]| {
        let mut command = world.command("script");
        command.args(["--quiet", "--return", "--command", line, "/dev/null"]).env_remove("NO_COLOR");
        command.env("TERM", "xterm").envs(set.iter().copied());
        crate::world::run(command, b"").expect(0).stdout.contains(ESCAPE)
    };
    let (alone, piped) = (format!("{baton} who"), format!("{baton} who | cat"));
    assert!(has_colour(&alone, &[]));
    assert!(!has_colour(&piped, &[]));
    assert!(!has_colour(&alone, &[("TERM", "dumb")]));
    assert!(!has_colour(&alone, &[("NO_COLOR", "1")]));
    assert!(has_colour(&piped, &[("CLICOLOR_FORCE", "1")]));
    assert!(!has_colour(&format!("{alone} --color never"), &[("CLICOLOR_FORCE", "1")]));
    assert!(has_colour(&format!("{baton} who --color=always | cat"), &[("NO_COLOR", "1")]));
    assert!(has_colour(&format!("{baton} help"), &[]));
}
