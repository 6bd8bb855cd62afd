//! Runs the examples of each row through the shell analysis, as a job's command.

use super::*;
use crate::shell::analyse;
use crate::world::FakeWorld;

fn text_reads(text: &str) -> bool {
    let analysis = analyse(text, &FakeWorld::new("/home/me/project", "/home/me"));
    !analysis.commands.is_empty() && analysis.commands.iter().all(command_reads)
}

#[test]
fn s14_each_row_reads_as_its_examples_say() {
    let rows = PROGRAMS.iter().map(|row| (row.good, row.bad)).chain([git::EXAMPLES]);
    for (good, bad) in rows {
        for text in good {
            assert!(text_reads(text), "{text} reads");
        }
        for text in bad {
            assert!(!text_reads(text), "{text} does more than read");
        }
    }
}

#[test]
fn s14_each_row_has_examples_of_both() {
    for row in PROGRAMS {
        assert!(!row.good.is_empty() && !row.bad.is_empty(), "{:?}", row.names);
    }
}

#[test]
fn s14_every_beginning_of_an_option_that_acts_is_refused() {
    for (command, option) in [
        ("git grep", "--open-files-in-pager"),
        ("git log", "--output"),
        ("git diff", "--ext-diff"),
        ("sort", "--output"),
        ("sort", "--compress-program"),
        ("file", "--compile"),
    ] {
        for end in 3..=option.len() {
            for value in ["", "=x", " x"] {
                let text = format!("{command} {}{value} y", &option[..end]);
                assert!(!text_reads(&text), "{text}");
            }
        }
    }
}

#[test]
fn s14_the_environment_chooses_no_program() {
    for name in [
        "GIT_PAGER",
        "GIT_EXTERNAL_DIFF",
        "GIT_CONFIG_COUNT",
        "LESSOPEN",
        "PAGER",
        "LD_PRELOAD",
        "PATH",
        "BASH_ENV",
        "HOME",
        "XDG_CONFIG_HOME",
        "RIPGREP_CONFIG_PATH",
        "TAR_OPTIONS",
        "GREP_OPTIONS",
        "EDITOR",
        "X",
    ] {
        let text = format!("{name}=x git log");
        assert!(!text_reads(&text), "{text}");
    }
    for text in ["PATH=.; ls", "GIT_PAGER=x; git log", "BASH_ENV=x\nls", "export GIT_PAGER=x; git log"] {
        assert!(!text_reads(text), "{text}");
    }
    for text in ["LC_ALL=C sort a", "NO_COLOR=1 git log", "file=a; cat $file", "DIR=src; ls \"$DIR\""] {
        assert!(text_reads(text), "{text}");
    }
}

#[test]
fn s14_what_is_not_known_could_be_an_option() {
    for text in [
        "sort $X",
        "git log $X",
        "find $X",
        "git log $(cat a)",
        "sort *",
        "cat a | xargs git log",
        "ls | xargs sort",
        "$X a",
        "git $X",
    ] {
        assert!(!text_reads(text), "{text}");
    }
    for text in ["cat $X", "grep -l a *", "ls | xargs cat", "sort -- $X", "git log -- *.rs", "sort ./*"] {
        assert!(text_reads(text), "{text}");
    }
}

#[test]
fn s14_what_is_inside_is_looked_at_too() {
    for text in [
        "bash -c 'touch a'",
        "ls; touch a",
        "ls && rm a",
        "ls | tee a",
        "cat $(touch a)",
        "echo `rm a`",
        "ls | xargs rm",
        "timeout 5 rm a",
        "time rm a",
        "(rm a)",
        "if ls; then rm a; fi",
        "for f in *; do rm $f; done",
        "ls() { rm a; }; ls",
        "! rm a",
        "coproc rm a",
        "ls & rm a",
        "find . -name a | xargs -I {} sh -c 'rm {}'",
    ] {
        assert!(!text_reads(text), "{text}");
    }
}
