//! Which program a word names.

use super::*;

impl Shell<'_> {
    /// The name of the program that a word means. `None` if it is not known; that is noted.
    pub(super) fn program(&mut self, word: &Value, context: &Context) -> Option<String> {
        let text = word.text.as_str();
        let name = path::file_name(text);
        let tail = text.len() - text.rsplit(['/', '\\']).next().unwrap_or("").len();
        let is_clear = word.holes.iter().all(|(at, _)| *at < tail.max(1) && tail > 0);
        if !word.holes.is_empty() && !is_clear {
            let mut unset_only = true;
            for (_, origin) in &word.holes {
                match origin {
                    Origin::Variable(name) if name.as_ref() == "SHELL" => return Some("sh".to_owned()),
                    Origin::Variable(_) => {}
                    _ => unset_only = false,
                }
            }
            if self.is_flag(word) {
                return Some("true".to_owned());
            }
            if name.is_empty() || !unset_only {
                let known_tool = |origin: &Origin| matches!(origin, Origin::Variable(name) if matches!(name.as_ref(), "EDITOR" | "VISUAL" | "PAGER" | "BROWSER" | "CC" | "CXX" | "LD" | "AR" | "PYTHON" | "MAKE" | "CARGO" | "NODE" | "NPM" | "GO" | "JAVA"));
                for (_, origin) in word.holes.iter().filter(|(_, origin)| !known_tool(origin)).take(4) {
                    self.ran(origin.clone(), "the shell", context);
                }
                return None;
            }
        }
        if !word.globs.is_empty() && name.contains(['*', '?']) {
            return Some(self.globbed_program(word));
        }
        if let Some(copied) = self.copied_program(word) {
            return Some(copied);
        }
        let name = name.strip_suffix(".exe").or(name.strip_suffix(".EXE")).unwrap_or(name);
        Some(if name.is_empty() { text.to_owned() } else { name.to_owned() })
    }

    /// Whether a word is a variable that the text sets to `true` or `false`, and to nothing else.
    fn is_flag(&self, word: &Value) -> bool {
        let [(0, Origin::Variable(name))] = &word.holes[..] else { return false };
        let mut set = self
            .analysis
            .commands
            .iter()
            .flat_map(|command| &command.assignments)
            .filter(|(variable, _)| variable == name.as_ref())
            .peekable();
        word.text.is_empty()
            && set.peek().is_some()
            && set.all(|(_, value)| matches!(value.literal(), Some("true" | "false" | ":" | "")))
    }

    /// `/usr/bin/s?do`: the dangerous program that a pattern matches.
    fn globbed_program(&self, word: &Value) -> String {
        const NAMES: &[&str] = &[
            "sudo",
            "doas",
            "rm",
            "cat",
            "env",
            "curl",
            "wget",
            "bash",
            "sh",
            "git",
            "kubectl",
            "terraform",
            "aws",
            "dd",
            "mkfs",
            "shred",
            "find",
            "printenv",
            "su",
            "pkexec",
            "gcloud",
            "az",
            "helm",
            "gh",
        ];
        // Programs that are built in the project have other names.
        let folder = self.state.cwd.as_deref().map(|cwd| path::join(cwd, &word.text));
        let project = path::join("/", &self.world.project());
        if word.text.contains('/') && folder.is_some_and(|folder| path::is_below(&folder, &project)) {
            return path::file_name(&word.text).to_owned();
        }
        let pattern = word.pattern();
        let pattern = pattern.rsplit('/').next().unwrap_or(&pattern);
        let found = NAMES.iter().find(|name| crate::shell::value::pattern_matches(pattern, name));
        found.map_or_else(|| path::file_name(&word.text).to_owned(), |name| (*name).to_owned())
    }

    /// What `which` prints: the path of baton's own program, and only the names of others.
    pub(in crate::shell) fn found_program(&self, name: Option<&Value>) -> Value {
        let own = name.filter(|name| name.literal() == Some("baton")).and_then(|_| self.world.own_program());
        own.map(Value::known).or_else(|| name.cloned()).unwrap_or_default()
    }
}
