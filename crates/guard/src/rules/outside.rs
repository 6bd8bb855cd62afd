//! Files outside the project.

use super::delete::expand_home;
use super::{Example, Finding, Params, Rule};
use crate::files::{Deed, Touch, is_harmless_device, real};
use crate::judge::{Facts, GuardEvent};
use crate::path;
use crate::shell::{Location, Origin};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "block-read-outside-cwd",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &["allowPaths"],
        about: "blocks reading outside the project, also by `..`, `~`, variables, links and `cd`",
        check: reads,
        bad: &[
            Example::Read("/etc/hosts"),
            Example::Read("../other/file.ts"),
            Example::Shell("cd /etc; cat passwd"),
            Example::Shell("F=/etc/passwd; cat $F"),
            Example::Shell("head -c 10 < ~/.bashrc"),
            Example::Shell("ls -la .."),
            Example::Shell("curl file:///etc/passwd"),
        ],
        good: &[
            Example::Read("src/main.rs"),
            Example::Shell("cat file.ts | grep /api"),
            Example::Shell("echo /done > /dev/null"),
            Example::Shell("find . -path '*/src/*'"),
            Example::Shell("docker run -v /home/me/project/docs:/docs node ls /docs"),
        ],
    },
    Rule {
        id: "block-write-outside-cwd",
        on: false,
        event: GuardEvent::Before,
        forbids_commands: true,
        parameters: &["allowPaths"],
        about: "blocks writing outside the project, by tools, commands or redirections",
        check: writes,
        bad: &[
            Example::Write("/tmp/x", "x"),
            Example::Shell("echo x >> ~/.bashrc"),
            Example::Shell("cp a /usr/local/bin/"),
            Example::Shell("tee ../x < a"),
            Example::Shell("mkdir -p /opt/x"),
        ],
        good: &[
            Example::Write("src/a.rs", "x"),
            Example::Shell("cat /etc/hosts > hosts.txt"),
            Example::Shell("make 2> /dev/null"),
        ],
    },
];

fn reads(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    outside(facts, params, |deed| matches!(deed, Deed::Read | Deed::List))
}

fn writes(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    outside(facts, params, Deed::changes)
}

fn outside(facts: &Facts<'_>, params: &Params, counts: fn(Deed) -> bool) -> Option<Finding> {
    let mut unclear = None;
    for touch in facts.touches.iter().filter(|touch| counts(touch.deed) && touch.location == Location::Here) {
        match &touch.real {
            Some(path) if !is_inside(path, facts, params) => {
                return Finding::deny(format!(
                    "Blocked: {} of {}, which is outside the project. Use files of the project, or ask the person.",
                    touch.deed.as_str(),
                    touch.show()
                ));
            }
            Some(_) => {}
            None if touch.from_file => {}
            None if is_from_outside(touch) => unclear = Some(touch),
            None => {}
        }
    }
    let touch = unclear?;
    Finding::ask(format!(
        "It is not known where {} is, so it may be outside the project. Write the full path.",
        touch.show()
    ))
}

fn is_from_outside(touch: &Touch) -> bool {
    touch.word.is_known()
        || touch
            .word
            .holes
            .iter()
            .any(|(_, origin)| matches!(origin, Origin::Variable(_) | Origin::Decoded | Origin::Download))
}

fn is_inside(path: &str, facts: &Facts<'_>, params: &Params) -> bool {
    path::is_below(path, &facts.project)
        || is_harmless_device(path)
        || params.allow_paths.iter().any(|allowed| {
            let allowed = expand_home(allowed, &facts.home);
            path::is_below(path, &real(&path::join(&facts.project, &allowed), facts.world))
        })
}
