//! How this copy of baton was installed, and what replaces it by a newer one.
//!
//! Each package has a mark beside its program: the kind of the package, the name under which its
//! tool knows it, and the SHA-256 of the program. A program that was replaced by other means does
//! not fit the mark, so the mark of an old package never speaks for it.

use sha2::{Digest as _, Sha256};

/// Where the mark of a package is, from the folder of its program.
pub const MARK: &str = "../lib/baton/installed-by";

/// Facts about the program that runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The program, without symbolic links.
    pub program: &'a str,
    /// The text of the mark, if it fits the program.
    pub mark: Option<&'a str>,
    /// Where Cargo's record says that this program comes from: `path+file:///x`, `registry+…`.
    pub cargo_source: Option<&'a str>,
    /// The folder above the program's belongs to uv.
    pub of_uv: bool,
    /// The folder above the program's belongs to pipx.
    pub of_pipx: bool,
    /// The program is in a folder into which Cargo builds.
    pub was_built_here: bool,
}

/// What installed a program, and the command that installs a newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// In one word.
    pub by: &'static str,
    /// The command; `None` if no command is known.
    pub run: Option<String>,
}

/// Judges how a program was installed.
pub fn judge(facts: &Facts<'_>) -> Installed {
    // Homebrew installs the files of another package, and signs the program again on macOS.
    if let Some(formula) = cellar_formula(facts.program) {
        return known("brew", format!("brew upgrade {formula}"));
    }
    match facts.mark.and_then(Mark::parse).map(|mark| (mark.kind, mark.name)) {
        Some(("deb", _)) => known("deb", "sudo apt install ./baton_VERSION_ARCH.deb".to_owned()),
        Some(("npm", name)) => npm(facts.program, name),
        Some(("wheel", name)) => wheel(facts, name),
        Some(("installer", base)) => {
            let base = quoted(base);
            known("installer", format!("curl -fsSL {base}/install.sh | BATON_BASE_URL={base} sh"))
        }
        Some(("tarball", _)) => known("tarball", "tar -xzf baton-VERSION-TARGET.tar.gz".to_owned()),
        _ => unmarked(facts),
    }
}

/// What the mark of a package says.
struct Mark<'a> {
    sha256: &'a str,
    kind: &'a str,
    name: &'a str,
}

impl<'a> Mark<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        Some(Self { sha256: words.next()?, kind: words.next()?, name: words.next().unwrap_or("baton") })
    }
}

/// Whether a mark was made for this program.
pub fn fits(mark: &str, program: &[u8]) -> bool {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Mark::parse(mark).is_some_and(|mark| mark.sha256 == hex(&Sha256::digest(program)))
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:%=,".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

fn unmarked(facts: &Facts<'_>) -> Installed {
    if let Some(source) = facts.cargo_source {
        return known("cargo", cargo_command(source));
    }
    if facts.was_built_here {
        return known("build", "git pull && cargo build --release".to_owned());
    }
    Installed { by: "unknown", run: None }
}

fn known(by: &'static str, run: String) -> Installed {
    Installed { by, run: Some(run) }
}

fn npm(program: &str, name: &str) -> Installed {
    let has = |part: &str| program.contains(part);
    let command = if has("/_npx/") {
        format!("npx {name}@latest")
    } else if has("/.pnpm/") || has("/pnpm/global/") {
        format!("pnpm add --global {name}@latest")
    } else if has("/.bun/install/") {
        format!("bun add --global {name}@latest")
    } else if has("/lib/node_modules/") {
        format!("npm install --global {name}@latest")
    } else {
        format!("npm install {name}@latest")
    };
    known("npm", command)
}

fn wheel(facts: &Facts<'_>, name: &str) -> Installed {
    if facts.of_uv {
        return known("uv", format!("uv tool upgrade {name}"));
    }
    if facts.of_pipx {
        return known("pipx", format!("pipx upgrade {name}"));
    }
    let python = facts.program.rsplit_once('/').map_or("", |(folder, _)| folder);
    let python = quoted(&format!("{python}/python3"));
    known("pip", format!("{python} -m pip install --upgrade {name}"))
}

fn cargo_command(source: &str) -> String {
    match source.split_once('+') {
        Some(("path", url)) => {
            let folder = quoted(url.trim_start_matches("file://"));
            format!("cargo install --profile dist --path {folder}")
        }
        Some(("git", url)) => {
            let url = quoted(url.split(['#', '?']).next().unwrap_or(url));
            format!("cargo install --profile dist --git {url} baton")
        }
        _ => "cargo install --profile dist baton".to_owned(),
    }
}

/// The formula whose folder this program is in: `…/Cellar/FORMULA/VERSION/bin/baton`.
fn cellar_formula(program: &str) -> Option<&str> {
    let (_, below) = program.split_once("/Cellar/")?;
    below.split('/').next().filter(|formula| !formula.is_empty())
}

/// The path of a program that stays when its package is upgraded, for entries in agents' files.
/// Homebrew has a folder for each version, and a link to the current one. Any other path is stable.
pub fn stable_path(program: &str) -> Option<String> {
    let (prefix, below) = program.split_once("/Cellar/")?;
    let mut parts = below.splitn(3, '/');
    let (formula, _version, inside) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{prefix}/opt/{formula}/{inside}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(facts: Facts<'_>) -> (&'static str, String) {
        let told = judge(&facts);
        (told.by, told.run.unwrap_or_default())
    }

    #[test]
    fn each_way_to_install_has_its_command() {
        let marked = |program, mark| Facts { program, mark: Some(mark), ..Facts::default() };
        let cases = [
            (marked("/usr/bin/baton", "00 deb"), "deb", "sudo apt install ./baton_VERSION_ARCH.deb"),
            (
                marked("/usr/lib/node_modules/b/node_modules/b-linux/bin/baton", "00 npm b"),
                "npm",
                "npm install --global b@latest",
            ),
            (marked("/p/node_modules/b-linux/bin/baton", "00 npm b"), "npm", "npm install b@latest"),
            (marked("/h/.npm/_npx/1/node_modules/b-linux/bin/baton", "00 npm b"), "npm", "npx b@latest"),
            (marked("/h/pnpm/global/5/.pnpm/b/bin/baton", "00 npm b"), "npm", "pnpm add --global b@latest"),
            (
                Facts { of_uv: true, ..marked("/h/uv/tools/b/bin/baton", "00 wheel b") },
                "uv",
                "uv tool upgrade b",
            ),
            (Facts { of_pipx: true, ..marked("/h/b/bin/baton", "00 wheel b") }, "pipx", "pipx upgrade b"),
            (marked("/v/bin/baton", "00 wheel b"), "pip", "/v/bin/python3 -m pip install --upgrade b"),
            (
                marked("/h/.local/bin/baton", "00 installer base"),
                "installer",
                "curl -fsSL base/install.sh | BATON_BASE_URL=base sh",
            ),
            (marked("/opt/b/bin/baton", "00 tarball"), "tarball", "tar -xzf baton-VERSION-TARGET.tar.gz"),
            (marked("/o/Cellar/baton/1/bin/baton", "00 tarball"), "brew", "brew upgrade baton"),
            (
                Facts { program: "/c/bin/baton", cargo_source: Some("path+file:///w/b"), ..Facts::default() },
                "cargo",
                "cargo install --profile dist --path /w/b",
            ),
            (
                Facts { program: "/t/release/baton", was_built_here: true, ..Facts::default() },
                "build",
                "git pull && cargo build --release",
            ),
            (Facts { program: "/home/u/baton", ..Facts::default() }, "unknown", ""),
            (marked("/home/u/baton", "00 martian"), "unknown", ""),
        ];
        for (facts, by, run) in cases {
            assert_eq!(told(facts), (by, run.to_owned()), "{facts:?}");
        }
    }

    #[test]
    fn a_mark_speaks_only_for_its_own_program() {
        let mark = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad deb";
        assert!(fits(mark, b"abc"));
        assert!(!fits(mark, b"abcd"));
        assert!(!fits("", b"abc") && !fits("deb", b"abc"));
    }

    #[test]
    fn a_command_quotes_what_a_shell_would_split() {
        let source = Some("path+file:///w/my own/it's");
        let facts = Facts { program: "/c/bin/baton", cargo_source: source, ..Facts::default() };
        assert_eq!(told(facts).1, r"cargo install --profile dist --path '/w/my own/it'\''s'");
    }

    #[test]
    fn only_a_path_with_a_version_in_it_is_replaced() {
        assert_eq!(stable_path("/usr/bin/baton"), None);
        assert_eq!(stable_path("/x/Cellar/baton"), None);
        assert_eq!(stable_path("/o/Cellar/baton/0.1.0/bin/baton").as_deref(), Some("/o/opt/baton/bin/baton"));
    }
}
