//! What `--version` says about the sources, and what `update` says about the package.

use crate::world::{World, program, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The build script as a program, and a repository that holds a copy of it.
struct Sources {
    world: World,
    script: PathBuf,
    commit: String,
}

/// 2001-09-09, the day of the commit.
const COMMITTED: &str = "1000000000 +0000";

impl Sources {
    fn new() -> Self {
        let world = World::new();
        let script = world.path("script");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let compiled = Command::new(compiler)
            .args(["--edition", "2024", "-o"])
            .arg(&script)
            .arg(here.join("build.rs"))
            .status();
        assert!(compiled.unwrap().success());
        let mut sources = Self { world, script, commit: String::new() };
        let package = sources.repository().join("crates/baton");
        fs::create_dir_all(&package).unwrap();
        for name in ["build.rs", "source.txt"] {
            fs::copy(here.join(name), package.join(name)).unwrap();
        }
        fs::copy(here.join("../../.gitattributes"), sources.repository().join(".gitattributes")).unwrap();
        let repository = sources.repository();
        sources.git(&repository, &["init", "--quiet"]);
        sources.git(&repository, &["add", "."]);
        sources.git(&repository, &["commit", "--quiet", "-m", "x"]);
        sources.commit = sources.git(&repository, &["rev-parse", "--short=10", "HEAD"]);
        sources
    }

    fn repository(&self) -> PathBuf {
        self.world.path("repository")
    }

    fn git(&self, folder: &Path, words: &[&str]) -> String {
        let mut command = self.world.command("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@x.invalid"]).args(words).current_dir(folder);
        command.env("GIT_COMMITTER_DATE", COMMITTED);
        run(command, b"").expect(0).stdout.trim().to_owned()
    }

    /// What the program of a release says that is built from these sources.
    fn version(&self, root: &Path, environment: &[(&str, &str)]) -> String {
        let told = self.told(root, environment);
        let line = told.lines().find_map(|line| line.strip_prefix("cargo::rustc-env=BATON_VERSION="));
        line.expect("a version").to_owned()
    }

    fn told(&self, root: &Path, environment: &[(&str, &str)]) -> String {
        let mut command = self.world.command(&self.script);
        command.current_dir(root.join("crates/baton"));
        command.env("CARGO_MANIFEST_DIR", root.join("crates/baton"));
        command.env("CARGO_PKG_VERSION", "1.2.3").env("PROFILE", "release");
        command.envs(environment.iter().copied());
        run(command, b"").expect(0).stdout
    }

    fn copy(&self, to: &str) -> PathBuf {
        let root = self.world.path(to);
        fs::create_dir_all(root.join("crates/baton")).unwrap();
        for name in ["crates/baton/build.rs", "crates/baton/source.txt"] {
            fs::copy(self.repository().join(name), root.join(name)).unwrap();
        }
        root
    }
}

#[test]
fn a_build_names_the_commit_of_its_own_checkout() {
    let sources = Sources::new();
    let (repository, commit) = (sources.repository(), sources.commit.as_str());
    let expected = format!("1.2.3 ({commit}, 2001-09-09)");
    assert_eq!(sources.version(&repository, &[]), expected);

    let clone = sources.world.path("clone");
    sources.git(&repository, &["clone", "--quiet", ".", clone.to_str().unwrap()]);
    assert_eq!(sources.version(&clone, &[]), expected, "a fresh clone");
    let worktree = sources.world.path("worktree");
    sources.git(&repository, &["worktree", "add", "--quiet", worktree.to_str().unwrap()]);
    assert_eq!(sources.version(&worktree, &[]), expected, "a worktree");
    let elsewhere = sources.world.path("elsewhere");
    sources.git(&sources.world.path(""), &["init", "--quiet", elsewhere.to_str().unwrap()]);
    let git_dir = elsewhere.join(".git");
    let inside_a_hook = [("GIT_DIR", git_dir.to_str().unwrap())];
    assert_eq!(sources.version(&repository, &inside_a_hook), expected, "while git runs a hook elsewhere");

    let build = repository.join("crates/baton/build.rs");
    fs::write(&build, fs::read_to_string(&build).unwrap() + "\n").unwrap();
    assert_eq!(sources.version(&repository, &[]), format!("1.2.3 ({commit} and changes, 2001-09-09)"));
}

#[test]
fn a_build_without_a_checkout_takes_what_its_sources_bring() {
    let sources = Sources::new();
    let commit = sources.commit.as_str();
    let bare = sources.copy("bare");
    assert_eq!(sources.version(&bare, &[]), "1.2.3 (commit unknown, not built from a checkout)");

    // `git archive` writes the commit into the file.
    let archive = sources.world.path("archive.tar");
    sources.git(&sources.repository(), &["archive", "-o", archive.to_str().unwrap(), "HEAD"]);
    let unpacked = sources.world.path("unpacked");
    fs::create_dir_all(&unpacked).unwrap();
    let mut tar = sources.world.command("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(&unpacked);
    run(tar, b"").expect(0);
    assert_eq!(sources.version(&unpacked, &[]), format!("1.2.3 ({commit}, 2001-09-09)"));

    // A crate that cargo has packaged.
    let whole = sources.git(&sources.repository(), &["rev-parse", "HEAD"]);
    let note = format!("{{\n  \"git\": {{\n    \"sha1\": \"{whole}\"\n  }},\n  \"path_in_vcs\": \"\"\n}}");
    fs::write(bare.join("crates/baton/.cargo_vcs_info.json"), note).unwrap();
    assert_eq!(sources.version(&bare, &[]), format!("1.2.3 ({commit})"));

    // Copied into another project, in the same place of its tree and not committed there.
    let other = sources.copy("other-project");
    sources.git(&other, &["init", "--quiet"]);
    sources.git(&other, &["commit", "--quiet", "--allow-empty", "-m", "theirs"]);
    assert_eq!(sources.version(&other, &[]), "1.2.3 (commit unknown, not built from a checkout)");
}

#[test]
fn a_build_takes_its_day_from_the_commit_or_from_source_date_epoch() {
    let sources = Sources::new();
    let (root, commit) = (sources.repository(), &sources.commit);
    for (epoch, day) in [
        ("0", "1970-01-01"),
        ("68169599", "1972-02-28"),
        ("68169600", "1972-02-29"),
        ("951782400", "2000-02-29"),
        ("1798761599", "2026-12-31"),
        ("4107542400", "2100-03-01"),
    ] {
        assert_eq!(
            sources.version(&root, &[("SOURCE_DATE_EPOCH", epoch)]),
            format!("1.2.3 ({commit}, {day})")
        );
    }
    assert_eq!(
        sources.version(&root, &[("TZ", "Pacific/Kiritimati")]),
        format!("1.2.3 ({commit}, 2001-09-09)")
    );
}

/// Otherwise each commit would compile the program again.
#[test]
fn a_debug_build_looks_at_no_commit() {
    let sources = Sources::new();
    let told = sources.told(&sources.repository(), &[("PROFILE", "debug")]);
    assert!(told.contains("BATON_VERSION=1.2.3 (debug build)\n"), "{told}");
    let watched: Vec<&str> = told.lines().filter(|line| line.contains("rerun-if-changed")).collect();
    assert_eq!(watched, ["cargo::rerun-if-changed=build.rs"]);
    let told = sources.told(&sources.repository(), &[]);
    for line in told.lines().filter_map(|line| line.strip_prefix("cargo::rerun-if-changed=")) {
        let path = sources.repository().join("crates/baton").join(line);
        assert!(path.exists(), "cargo would run the script at each build: {line}");
    }
}

/// Where a copy of the program is, the files around it with their text, what installed it, and what
/// it says to run.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, Option<&'a str>);

/// A copy of the program with files around it, as a package leaves them.
fn installed(world: &World, at: &str, files: &[(&str, &str)]) -> PathBuf {
    let program_there = world.path(at);
    let folder = program_there.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::copy(program(), &program_there).unwrap();
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    program_there
}

#[test]
fn update_says_what_installed_this_copy_and_fetches_nothing() {
    let world = World::new();
    let mut hash = world.command("sha256sum");
    hash.arg(program());
    let sha256 = run(hash, b"").expect(0).stdout.split(' ').next().unwrap().to_owned();
    let mark = |rest: &str| format!("{sha256} {rest}\n");
    let record = "[v1]\n\"baton 0.1.0 (path+file:///src/baton/crates/baton)\" = [\"baton\"]\n";
    const MARK: &str = "../lib/baton/installed-by";
    let (npm, wheel, deb) = (mark("npm baton-cli"), mark("wheel baton-cli"), mark("deb"));
    let stale = format!("{} deb\n", "0".repeat(64));
    let cases: &[Case<'_>] = &[
        ("deb/usr/bin/baton", &[(MARK, &deb)], "deb", Some("sudo apt install ./baton_VERSION_ARCH.deb")),
        (
            "n/lib/node_modules/p/bin/baton",
            &[(MARK, &npm)],
            "npm",
            Some("npm install --global baton-cli@latest"),
        ),
        (
            "uv/bin/baton",
            &[(MARK, &wheel), ("../uv-receipt.toml", "")],
            "uv",
            Some("uv tool upgrade baton-cli"),
        ),
        (
            "pipx/bin/baton",
            &[(MARK, &wheel), ("../pipx_metadata.json", "")],
            "pipx",
            Some("pipx upgrade baton-cli"),
        ),
        (
            "cargo/bin/baton",
            &[("../.crates.toml", record)],
            "cargo",
            Some("cargo install --profile dist --path /src/baton/crates/baton"),
        ),
        // Cargo has replaced the program of an older package.
        (
            "both/bin/baton",
            &[("../.crates.toml", record), (MARK, &stale)],
            "cargo",
            Some("cargo install --profile dist --path /src/baton/crates/baton"),
        ),
        ("copy/baton", &[(MARK, &stale)], "unknown", None),
        ("o/Cellar/baton/0.1.0/bin/baton", &[], "brew", Some("brew upgrade baton")),
    ];
    for (at, files, by, command) in cases {
        let there = installed(&world, at, files);
        let mut update = world.command(&there);
        update.args(["update", "--json"]);
        let told = run(update, b"").expect(0).json();
        assert_eq!(told["installed_by"], *by, "{at}");
        assert_eq!(told["run"].as_str(), *command, "{at}");
        assert_eq!(told["program"], there.to_str().unwrap());
        let mut update = world.command(&there);
        update.arg("update");
        let text = run(update, b"").expect(0).stdout;
        assert!(
            text.contains("fetches nothing") && text.contains(command.unwrap_or("does not know")),
            "{text}"
        );
        // A link to it, as package managers make them, is the same copy.
        let link = world.path("link");
        fs::remove_file(&link).ok();
        std::os::unix::fs::symlink(&there, &link).unwrap();
        let mut update = world.command(&link);
        update.args(["update", "--json"]);
        assert_eq!(run(update, b"").expect(0).json()["installed_by"], *by, "{at}, by a link");
    }
    assert!(!world.home().exists(), "it leaves nothing behind");
    let mut built = world.command(program());
    built.args(["update", "--json"]);
    assert_eq!(run(built, b"").expect(0).json()["installed_by"], "build");
}

/// Homebrew has a folder for each version. An entry with that folder in it would be dead after the
/// next upgrade.
#[test]
fn setup_writes_a_path_that_outlives_an_upgrade() {
    let world = World::new();
    let there = installed(&world, "o/Cellar/baton/0.1.0/bin/baton", &[]);
    fs::create_dir_all(world.path("o/opt")).unwrap();
    std::os::unix::fs::symlink("../Cellar/baton/0.1.0", world.path("o/opt/baton")).unwrap();
    let mut setup = world.command(&there);
    setup.args(["setup", "gemini", "--dry-run"]);
    let shown = run(setup, b"").expect(0).stdout;
    let lasting = world.path("o/opt/baton/bin/baton");
    assert!(shown.contains(lasting.to_str().unwrap()) && !shown.contains("Cellar"), "{shown}");
}

/// An upgrade replaces the file of a program that runs.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_was_replaced_knows_its_path() {
    let world = World::new();
    let there = installed(&world, "bin/baton", &[]);
    // The shell opens the file, replaces it, and runs what it has opened: the old program.
    let mut shell = world.command("sh");
    let line = format!(
        "exec 3<{0}; cp {0} {0}.new; mv {0}.new {0}; exec /proc/self/fd/3 update --json",
        there.display()
    );
    shell.args(["-c", &line]);
    let told = run(shell, b"").expect(0).json();
    assert_eq!(told["program"], there.to_str().unwrap(), "{told}");
}
