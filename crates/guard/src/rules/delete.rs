//! Deletions outside the project, and of the project itself.

use super::git::GitCall;
use super::{Example, Finding, Params, Rule};
use crate::files::{Deed, Touch, is_harmless_device, real};
use crate::judge::{Facts, GuardEvent};
use crate::path;
use crate::secrets::is_secret_name;
use crate::shell::{Location, MADE_TEMPORARY, Origin, REMOTE_CWD};

pub(super) const RULES: &[Rule] = &[Rule {
    id: "block-rm-rf",
    on: true,
    event: GuardEvent::Before,
    forbids_commands: true,
    parameters: &["allowPaths"],
    about: "blocks recursive deletes outside the project, and of the home, a root, the project or its .git",
    check,
    bad: &[
        Example::Shell("rm -rf /"),
        Example::Shell("cd .. && rm -r project"),
        Example::Shell("rm -rf \"${PWD%/*}\""),
        Example::Shell("find ~ -type f -delete"),
        Example::Shell("echo / | xargs rm -rf"),
        Example::Shell("d=/etc; rm --recursive $d"),
        Example::Shell("python3 -c 'import shutil; shutil.rmtree(\"/home/me\")'"),
        Example::Shell("> /etc/passwd"),
        Example::Shell("rsync -a --delete empty/ ~/"),
        Example::Shell("rm -rf \"$UNSET/\""),
        Example::Shell("docker run --rm -v /:/h alpine rm -rf /h/etc"),
        Example::Shell("podman run --mount type=bind,src=/home/me,dst=/x busybox sh -c 'rm -rf /x/*'"),
        Example::Shell("docker run -v ~:/data alpine rm -rf /"),
        Example::Shell("docker run --privileged -v /:/h alpine chroot /h rm -rf /var"),
        Example::Shell("if [ -d x ]; then d=/etc; else d=build; fi; rm -rf $d"),
        Example::Shell("if true; then d=build; else d=/etc; fi; rm -rf $d"),
        Example::Shell("case $1 in a) cd /;; *) cd build;; esac; rm -rf lib"),
    ],
    good: &[
        Example::Shell("rm -rf node_modules dist"),
        Example::Shell("rm -rf ./build/*"),
        Example::Shell("find . -name '*.pyc' -delete"),
        Example::Shell("rm /tmp/file.txt"),
        Example::Shell("find . -name '*.log' -exec rm {} +"),
        Example::Shell("d=$(mktemp -d); rm -rf \"$d\""),
        Example::Shell("npm test > /tmp/log.txt 2>&1"),
        Example::Shell("docker run --rm -v /src:/src x"),
        Example::Shell("docker run --rm -v \"$PWD\":/app -w /app node rm -rf node_modules /app/dist"),
        Example::Shell("docker run --rm -v cache:/data alpine rm -rf /data /var/cache"),
        Example::Shell("docker run --rm -v /etc:/e:ro alpine rm -rf /e"),
        Example::Shell("if [ -d x ]; then d=dist; else d=build; fi; rm -rf $d"),
    ],
}];

enum Danger {
    None,
    Certain(&'static str),
    Unclear,
}

fn check(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    let mut unclear = None;
    for touch in &facts.touches {
        match danger(touch, facts, params) {
            Danger::None => {}
            Danger::Certain(what) => {
                return Finding::deny(format!(
                    "Blocked: `{}` would destroy {what} ({}). Name the paths to delete, inside the project.",
                    touch.by,
                    touch.show()
                ));
            }
            Danger::Unclear if touch.from_file => {}
            Danger::Unclear => unclear = Some(touch),
        }
    }
    if let Some(found) = outside_clean(facts) {
        return Some(found);
    }
    let touch = unclear?;
    Finding::ask(format!(
        "`{}` would delete {}, and where that is can't be known. Name the path in full, inside the project.",
        touch.by,
        touch.show()
    ))
}

fn danger(touch: &Touch, facts: &Facts<'_>, params: &Params) -> Danger {
    match touch.deed {
        Deed::DeleteTree => tree(touch, facts, params),
        Deed::Truncate => truncated(touch, facts, params),
        Deed::Delete => single(touch, facts),
        _ => Danger::None,
    }
}

fn is_allowed(touch: &Touch, facts: &Facts<'_>, params: &Params) -> bool {
    let Some(path) = &touch.real else { return false };
    params.allow_paths.iter().any(|allowed| {
        let allowed = expand_home(allowed, &facts.home);
        let allowed = real(&path::join(&facts.project, &allowed), facts.world);
        // The folder itself only if it is named without a pattern.
        path::is_below(path, &allowed)
    })
}

/// A path from a parameter, with its tilde expanded.
pub(super) fn expand_home(text: &str, home: &str) -> String {
    match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => text.to_owned(),
    }
}

/// Whether it is in a cache or temporary folder, by the name of the variable that holds the folder.
/// If the variable is not set, the remaining path must not exist.
fn is_scratch(touch: &Touch, facts: &Facts<'_>) -> bool {
    let Some((0, Origin::Variable(name))) = touch.word.holes.first() else { return false };
    let upper = name.to_ascii_uppercase();
    let is_named_so =
        ["CACHE", "TMP", "TEMP"].iter().any(|word| upper.contains(word)) && !is_secret_name(&upper);
    let is_nothing = || match &touch.path {
        None => true,
        Some(rest) => !touch.is_pattern && facts.world.exists(rest) == Some(false),
    };
    is_named_so && (touch.word.anywhere || touch.word.text.is_empty() || is_nothing())
}

fn tree(touch: &Touch, facts: &Facts<'_>, params: &Params) -> Danger {
    if is_scratch(touch, facts) {
        return Danger::None;
    }
    let (Some(real), Some(plain)) = (&touch.real, &touch.path) else { return Danger::Unclear };
    if touch.location == Location::Elsewhere {
        let parts = plain.split('/').filter(|part| !part.is_empty()).count();
        return if path::is_below(plain, REMOTE_CWD) || parts > 2 {
            Danger::None
        } else {
            Danger::Certain("a root on another machine")
        };
    }
    let unclear = |what| {
        if touch.is_unknown && !touch.word.text.starts_with('/') {
            Danger::Unclear
        } else {
            Danger::Certain(what)
        }
    };
    if is_allowed(touch, facts, params) {
        return Danger::None;
    }
    if !path::is_below(real, &facts.project) {
        if path::is_below(plain, MADE_TEMPORARY) || was_made(touch, facts) {
            return Danger::None;
        }
        let what = match real.as_str() {
            "/" => "the whole file system",
            _ if *real == facts.home => "the home folder",
            _ => "files outside of the project",
        };
        return unclear(what);
    }
    if touch.is_pattern {
        let rest = plain.get(real.len()..).unwrap_or("").trim_start_matches('/');
        let first = rest.split('/').next().unwrap_or("");
        let takes_all = first.starts_with("!(")
            || matches!(first, "*" | ".*" | "**" | ".[!.]*" | ".??*" | "[!.]*" | "?*" | "*.*");
        let git = path::join(&facts.project, ".git");
        if touch.found(facts.world).is_some_and(|found| found.contains(&git)) {
            return Danger::Certain("the repository's history");
        }
        return if *real == facts.project
            && takes_all
            && matches!(rest.trim_end_matches('/').matches('/').count(), 0)
        {
            Danger::Certain("everything in the project")
        } else if path::is_below(plain, &path::join(&facts.project, ".git"))
            || (*real == facts.project
                && first.starts_with(".g")
                && crate::shell::value::pattern_matches(first, ".git"))
        {
            Danger::Certain("the repository's history")
        } else {
            Danger::None
        };
    }
    if *real == facts.project {
        return if touch.is_unknown
            && touch
                .word
                .holes
                .iter()
                .all(|(_, origin)| matches!(origin, Origin::Output(name) if name.as_ref() == "find"))
        {
            Danger::None
        } else if touch.is_unknown {
            Danger::Unclear
        } else {
            Danger::Certain("the project itself")
        };
    }
    if path::is_below(real, &path::join(&facts.project, ".git")) || path::file_name(plain) == ".git" {
        return Danger::Certain("the repository's history");
    }
    if path::is_below(&facts.project, real) {
        return Danger::Certain("the project itself");
    }
    Danger::None
}

/// Whether the same text makes what it deletes: `git clone … /tmp/r && rm -rf /tmp/r`. What is
/// there already is not made.
fn was_made(touch: &Touch, facts: &Facts<'_>) -> bool {
    let Some(gone) = touch.real.as_deref().filter(|_| !touch.is_pattern && !touch.is_unknown) else {
        return false;
    };
    let before = facts.touches.iter().take_while(|other| !std::ptr::eq(*other, touch));
    let makes = |other: &Touch| {
        matches!(other.deed, Deed::Write | Deed::Truncate)
            && !other.is_unknown
            && other.real.as_deref().is_some_and(|made| path::is_below(made, gone))
    };
    before.into_iter().any(makes) && facts.world.exists(gone) == Some(false)
}

/// Whether a path is in a folder for temporary files. A home is not temporary, wherever it is.
fn is_temporary(real: &str, facts: &Facts<'_>) -> bool {
    const FOLDERS: &[&str] =
        &["/tmp", "/var/tmp", "/private/tmp", "/private/var/folders", "/var/folders", "/dev/shm"];
    let named = facts.world.variable("TMPDIR").filter(|folder| folder.len() > 1);
    let is_named = || named.is_some_and(|folder| path::is_below(real, &path::join("/", &folder)));
    (FOLDERS.iter().any(|folder| path::is_below(real, folder)) || is_named())
        && !path::is_below(real, &facts.home)
}

/// Whether a path is in a folder of what can be fetched or made again.
fn is_cache(real: &str) -> bool {
    real.split('/').any(|part| matches!(part, ".cache" | "Caches" | "cache" | "caches"))
}

fn truncated(touch: &Touch, facts: &Facts<'_>, params: &Params) -> Danger {
    let Some(real) = &touch.real else { return Danger::None };
    let is_temporary = is_temporary(real, facts);
    // What is not there can't be lost.
    let is_new = !touch.is_pattern && facts.world.exists(real) == Some(false);
    let inside = path::is_below(real, &facts.project);
    if touch.location == Location::Elsewhere
        || inside
        || is_new
        || is_temporary
        || is_harmless_device(real)
        || is_allowed(touch, facts, params)
        || touch.is_unknown
    {
        return Danger::None;
    }
    Danger::Certain("what is in a file outside of the project")
}

/// A single file may be deleted, unless it is or holds something important.
fn single(touch: &Touch, facts: &Facts<'_>) -> Danger {
    let (Some(real), Some(plain), Location::Here) = (&touch.real, &touch.path, touch.location) else {
        return Danger::None;
    };
    let is_above = |folder: &str| {
        folder == "/"
            || folder == facts.home
            || (path::is_below(&facts.project, folder) && folder != facts.project)
    };
    let holds_all = is_above(real);
    // What `find` finds at any depth below it.
    let folder = if touch.is_pattern { real.as_str() } else { path::parent(real) };
    if touch.word.anywhere && !touch.is_unknown && is_above(folder) {
        return Danger::Certain("files all over a folder outside of the project");
    }
    let is_outside = !path::is_below(real, &facts.project) && !path::is_below(plain, MADE_TEMPORARY);
    if touch.is_pattern {
        let name = path::file_name(plain);
        let takes_all = matches!(name, "*" | ".*");
        return if takes_all && (holds_all || is_outside && !is_temporary(real, facts) && !is_cache(real)) {
            Danger::Certain("everything in a folder outside of the project")
        } else {
            Danger::None
        };
    }
    if touch.by == "rmdir" || touch.is_unknown {
        return Danger::None;
    }
    // A delete of single files that is given a folder gets them from a walk through it.
    let is_folder = || facts.world.exists(&format!("{real}/.")) == Some(true);
    if is_outside && matches!(touch.by.as_str(), "rm" | "unlink" | "shred" | "grm") && is_folder() {
        return Danger::Certain("files all over a folder outside of the project");
    }
    if holds_all || *real == facts.project || *real == path::join(&facts.project, ".git") {
        return Danger::Certain("a folder that holds everything");
    }
    Danger::None
}

/// `git clean` of another folder.
fn outside_clean(facts: &Facts<'_>) -> Option<Finding> {
    for command in facts.commands() {
        let Some(call) = GitCall::of(command) else { continue };
        let forced = call.has_short("f") || call.has("--force");
        if call.verb != "clean" || !forced || call.has_short("n") || call.has("--dry-run") {
            continue;
        }
        let folder = call.folder(command)?;
        if !path::is_below(&real(&folder, facts.world), &facts.project) {
            return Finding::deny(format!(
                "Blocked: `git clean` in {folder}, which is outside the project. Clean only the project."
            ));
        }
    }
    None
}
