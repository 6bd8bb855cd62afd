//! Targets and files for the tests: a made-up home with nothing in it.

use baton_agents::claude::install::Claude;
use baton_agents::codex::install::Codex;
use baton_agents::copilot::install::Copilot;
use baton_agents::cursor::install::Cursor;
use baton_agents::gemini::install::Gemini;
use baton_agents::install::{Current, FileEdit, Install, InstallError, Records, Scope, Target};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const BATON: &str = "/opt/it's baton/bin/baton";
pub const HOME: &str = "/home/dev/.local/share/baton";

pub fn install(scope: Scope) -> Install {
    Install::new(Path::new(BATON), Path::new(HOME), scope).unwrap()
}

pub fn claude() -> Claude {
    Claude::new(install(Scope::User), Path::new("/home/dev"), None).unwrap()
}

/// The same with the program in another place.
pub fn moved_claude() -> Claude {
    let install = Install::new(Path::new("/usr/bin/baton"), Path::new(HOME), Scope::User).unwrap();
    Claude::new(install, Path::new("/home/dev"), None).unwrap()
}

pub fn codex() -> Codex {
    Codex::new(install(Scope::User), Path::new("/home/dev"), None).unwrap()
}

pub fn moved_codex() -> Codex {
    let install = Install::new(Path::new("/usr/bin/baton"), Path::new(HOME), Scope::User).unwrap();
    Codex::new(install, Path::new("/home/dev"), None).unwrap()
}

pub fn copilot(scope: Scope) -> Copilot {
    Copilot::new(install(scope), Path::new("/home/dev"), None).unwrap()
}

pub fn moved_copilot() -> Copilot {
    let install = Install::new(Path::new("/usr/bin/baton"), Path::new(HOME), Scope::User).unwrap();
    Copilot::new(install, Path::new("/home/dev"), None).unwrap()
}

pub fn cursor() -> Cursor {
    Cursor::new(install(Scope::User), Path::new("/home/dev")).unwrap()
}

pub fn moved_cursor() -> Cursor {
    let install = Install::new(Path::new("/usr/bin/baton"), Path::new(HOME), Scope::User).unwrap();
    Cursor::new(install, Path::new("/home/dev")).unwrap()
}

pub fn gemini() -> Gemini {
    Gemini::new(install(Scope::User), Path::new("/home/dev")).unwrap()
}

pub fn moved_gemini() -> Gemini {
    let install = Install::new(Path::new("/usr/bin/baton"), Path::new(HOME), Scope::User).unwrap();
    Gemini::new(install, Path::new("/home/dev")).unwrap()
}

/// Files in memory.
#[derive(Clone, Default, PartialEq)]
pub struct Files(pub BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Files {
    pub fn with(path: &Path, bytes: &[u8]) -> Self {
        Self([(path.to_owned(), Some(bytes.to_vec()))].into())
    }

    pub fn and(mut self, path: &Path, bytes: &[u8]) -> Self {
        self.0.insert(path.to_owned(), Some(bytes.to_vec()));
        self
    }

    pub fn text(&self, path: &Path) -> &str {
        std::str::from_utf8(self.0[path].as_ref().expect("the file is there")).unwrap()
    }

    pub fn json(&self, path: &Path) -> Value {
        // serde has no half characters.
        let text =
            self.text(path).trim_start_matches('\u{feff}').replace("\\ud800", "").replace("1e400", "0");
        serde_json::from_str(&text).unwrap()
    }

    pub fn current(&self) -> Current {
        self.0.clone().into_iter().collect()
    }

    fn edited(&self, edits: &[FileEdit]) -> Self {
        let mut files = self.clone();
        for edit in edits {
            assert_eq!(
                edit.before,
                files.0.get(&edit.path).cloned().flatten(),
                "an edit starts from what is"
            );
            files.0.insert(edit.path.clone(), edit.after.clone());
        }
        // A missing file and one that was never mentioned are the same.
        files.0.retain(|_, bytes| bytes.is_some());
        files
    }

    /// The files with baton set up, and what was made for it.
    pub fn installed(&self, target: &dyn Target) -> Result<(Self, Records), InstallError> {
        let edits = target.add(&self.current())?;
        let made = edits.iter().filter(|e| e.is_change()).map(|e| (e.path.clone(), e.made.clone()));
        Ok((self.edited(&edits), made.collect()))
    }

    /// The files with baton removed by value.
    pub fn removed(&self, target: &dyn Target, records: &Records) -> Result<Self, InstallError> {
        Ok(self.edited(&target.take_out(&self.current(), records)?))
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|b| String::from_utf8_lossy(b).into_owned());
        f.debug_map().entries(self.0.iter().map(|(path, bytes)| (path, text(bytes)))).finish()
    }
}
