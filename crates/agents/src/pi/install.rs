//! What baton puts into Pi's configuration: one extension, a file that only baton writes. For the
//! user: `extensions/baton.ts` in `~/.pi/agent` (or `$PI_CODING_AGENT_DIR`). For a project:
//! `.pi/extensions/baton.ts` in its directory. If both exist, Pi loads both, and the first that
//! sees a session reports for it. Pure: bytes in, edits out.

use std::path::{Path, PathBuf};

use crate::install::own_file::OwnFile;
use crate::install::{Current, FileEdit, Install, InstallError, Records, Scope, Target, Trust, plain};

const AGENT: &str = "pi";
const TRUST_HINT: &str = "Pi loads extensions of a project only if the user trusts it: run `pi` in the project once and say yes, or start it with --approve";

/// The extension. The program and the home are still placeholders.
const EXTENSION: &str = include_str!("extension.ts");

#[derive(Clone, Debug)]
pub struct Pi {
    install: Install,
    path: PathBuf,
    text: String,
    mark: String,
}

impl Pi {
    /// `user_home` is the user's home; `agent_dir` is `$PI_CODING_AGENT_DIR`, if that is set.
    pub fn new(install: Install, user_home: &Path, agent_dir: Option<&Path>) -> Result<Self, InstallError> {
        let folder = match (install.scope(), agent_dir) {
            (Scope::Project(dir), _) => dir.join(".pi"),
            (Scope::User, Some(dir)) => in_home(dir, user_home),
            (Scope::User, None) => user_home.join(".pi/agent"),
        };
        let path = folder.join("extensions/baton.ts");
        plain(&path)?;
        let mark = format!("const HOME: string = {};", quoted(install.home()));
        let text = EXTENSION
            .replace(
                "const BATON: string = \"{baton}\";",
                &format!("const BATON: string = {};", quoted(install.baton())),
            )
            .replace("const HOME: string = \"{home}\";", &mark)
            .replace(
                "const GUARD: string = \"{guard}\";",
                &format!("const GUARD: string = \"{}\";", install.guard().word()),
            );
        Ok(Self { install, path, text, mark })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self) -> OwnFile<'_> {
        OwnFile {
            path: &self.path,
            what: "the extension of baton",
            bytes: self.text.as_bytes(),
            mark: &self.mark,
        }
    }
}

impl Target for Pi {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn install(&self) -> &Install {
        &self.install
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }

    fn add(&self, now: &Current) -> Result<Vec<FileEdit>, InstallError> {
        Ok(vec![self.file().write(now)?])
    }

    fn take_out(&self, now: &Current, _records: &Records) -> Result<Vec<FileEdit>, InstallError> {
        Ok(self.file().remove(now).into_iter().collect())
    }

    fn notes(&self, _now: &Current) -> Vec<String> {
        match self.install.scope() {
            Scope::User => Vec::new(),
            Scope::Project(_) => vec![TRUST_HINT.to_owned()],
        }
    }

    fn trust(&self, _now: &Current) -> Result<Trust, InstallError> {
        Ok(match self.install.scope() {
            Scope::User => Trust::NotAsked,
            Scope::Project(_) => Trust::Hidden(TRUST_HINT.to_owned()),
        })
    }

    fn loaded(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// Pi itself expands a `~` in its variable.
fn in_home(dir: &Path, user_home: &Path) -> PathBuf {
    dir.strip_prefix("~").map_or_else(|_| dir.to_owned(), |below| user_home.join(below))
}

/// A JavaScript string. JSON strings are valid JavaScript strings.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(home: &str, scope: Scope) -> Pi {
        let install = Install::new(Path::new("/opt/a \"b\"/baton"), Path::new(home), scope).unwrap();
        Pi::new(install, Path::new("/home/dev"), None).unwrap()
    }

    #[test]
    fn the_program_and_the_home_are_filled_in() {
        let pi = target("/home/dev/{baton}", Scope::User);
        assert_eq!(pi.path(), Path::new("/home/dev/.pi/agent/extensions/baton.ts"));
        assert!(pi.text.contains(r#"const BATON: string = "/opt/a \"b\"/baton";"#));
        assert!(pi.text.contains(r#"const HOME: string = "/home/dev/{baton}";"#));
        assert!(!pi.text.contains("\"{baton}\"") && !pi.text.contains("\"{home}\""));
    }

    #[test]
    fn the_folder_in_pis_variable_is_used() {
        let install = Install::new(Path::new("/b"), Path::new("/h"), Scope::User).unwrap();
        for (told, found) in
            [("/pi", "/pi/extensions/baton.ts"), ("~/pi", "/home/dev/pi/extensions/baton.ts")]
        {
            let pi = Pi::new(install.clone(), Path::new("/home/dev"), Some(Path::new(told))).unwrap();
            assert_eq!(pi.path(), Path::new(found));
        }
        let project = target("/h", Scope::Project("/p".into()));
        assert_eq!(project.path(), Path::new("/p/.pi/extensions/baton.ts"));
        assert_eq!(project.notes(&Current::default()).len(), 1);
    }

    #[test]
    fn another_homes_extension_is_not_ours() {
        let (ours, theirs) = (target("/h", Scope::User), target("/other", Scope::User));
        let now = [(ours.path().to_owned(), Some(theirs.text.clone().into_bytes()))].into_iter().collect();
        assert!(ours.add(&now).is_err());
        assert!(ours.take_out(&now, &Records::default()).unwrap().is_empty());
        assert_eq!(theirs.take_out(&now, &Records::default()).unwrap().len(), 1);
    }
}
