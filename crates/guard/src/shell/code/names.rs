//! Names that a program mentions.

use super::*;
use crate::tables::calls::{CALLS, Effect};

impl Scan<'_, '_, '_> {
    pub(super) fn name(&mut self, name: &str, tokens: &[Token], at: usize) {
        if self.loads(name, tokens, at) {
            return;
        }
        let last = name.rsplit(['.', ':', '>']).next().unwrap_or(name);
        let Some(open) = self.arguments_of(last, tokens, at) else {
            self.bare(name, tokens, at);
            return;
        };
        if self.library_call(last, tokens, open) {
            return;
        }
        match last {
            "eval" | "exec" | "Function" | "execfile" | "runInThisContext" | "instance_eval" | "compile"
                if !(last == "exec" && (self.language != Language::Python)) =>
            {
                self.evaluated(tokens, open);
            }
            "spawn" | "exec" | "execute" | "fork" | "Command"
                if !matches!(self.language, Language::Node)
                    || self.mentions("child_process")
                    || name.starts_with("Deno")
                    || name.starts_with("Bun") =>
            {
                self.process(tokens, open);
            }
            "script" if name == "script" => {}
            "open" | "fopen" | "File.open" | "openSync" | "sysopen" => self.opened(tokens, open),
            "read" | "readlines" | "foreach" | "binread"
                if name.starts_with("File") || name.starts_with("IO") =>
            {
                self.file("cat", tokens, open);
            }
            "Path" | "PurePath" | "Pathname" => self.path_object(tokens, open),
            // `(Path.home() / ".netrc").read_text()`.
            "home" if name.ends_with("Path.home") && tokens.get(at + 3) == Some(&Token::Sign('/')) => {
                self.path_object(tokens, at);
            }
            "file" if self.language == Language::Php || name.starts_with("Bun") => {
                self.file("cat", tokens, open)
            }
            "write" | "binwrite"
                if name.starts_with("File") || name.starts_with("IO") || name.starts_with("Bun") =>
            {
                self.file("tee", tokens, open)
            }
            "rm" if self.mentions("fs") || self.mentions("FileUtils") || self.language == Language::Other => {
                self.recursive_delete(tokens, open)
            }
            "remove" if name.starts_with("Deno") || name.starts_with("os") || name.starts_with("fs") => {
                if self.mentions("recursive") {
                    self.recursive_delete(tokens, open)
                } else {
                    self.file("rm", tokens, open)
                }
            }
            "unlink" if self.language == Language::Other && self.mentions("recursive") => {
                self.recursive_delete(tokens, open)
            }
            "unlink" | "delete" if last != "delete" || name.starts_with("File") => {
                self.file("rm", tokens, open)
            }
            "glob" | "iglob" | "entries" if last != "entries" || name.starts_with("Dir") => {
                self.globbed(tokens, open);
            }
            verb @ ("reset" | "clean" | "checkout" | "push" | "restore" | "stash" | "branch" | "rebase")
                if (name.starts_with("git.") || name.contains(".git."))
                    && self.language == Language::Python =>
            {
                self.git_call(verb, tokens, open);
            }
            "copy" | "rename" | "move" if name.contains('.') => {
                self.two_files(if matches!(last, "rename" | "move") { "mv" } else { "cp" }, tokens, open);
            }
            "chdir" => {
                if let Some(value) = self.expression(tokens, open).value
                    && let Some(path) = self.shell.absolute(&value)
                {
                    self.shell.state.cwd = Some(path);
                }
            }
            "getenv" | "get_env" | "get"
                if matches!(last, "getenv" | "get_env")
                    || name.ends_with("environ.get")
                    || name.ends_with("env.get") =>
            {
                self.variable_read(last, tokens, at, open);
            }
            "toObject" if name.starts_with("Deno.env") && self.shows(tokens, at) => {
                self.command("printenv", &[])
            }
            "phpinfo" => self.command("printenv", &[]),
            _ => {
                self.unlisted(last, tokens, open);
                self.bare(name, tokens, at);
            }
        }
    }

    /// Where the arguments of a call begin; `None` if the name is not called.
    fn arguments_of(&self, last: &str, tokens: &[Token], at: usize) -> Option<usize> {
        match tokens.get(at + 1) {
            Some(Token::Sign('(')) => Some(at + 2),
            // `system "ls"`, `unlink "x"`, `p ENV`.
            Some(Token::Text(_) | Token::Command(_)) => {
                matches!(self.language, Language::Perl | Language::Ruby | Language::Other | Language::Lua)
                    .then_some(at + 1)
            }
            // `open F, "x"`, `rm_rf dir`.
            Some(Token::Name(_)) => match self.language {
                Language::Perl => last == "open",
                Language::Ruby => matches!(last, "eval" | "rm_rf" | "rm_r"),
                _ => false,
            }
            .then_some(at + 1),
            _ => None,
        }
    }

    /// A pattern of files: listed, and read if the program reads.
    fn globbed(&mut self, tokens: &[Token], open: usize) {
        self.file("ls", tokens, open);
        if (self.mentions("open(") || self.mentions("read"))
            && let Some(mut value) = self.expression(tokens, open).value
        {
            value.globs = value.text.match_indices(['*', '?']).map(|(at, _)| at).collect();
            self.command("cat", &[value]);
        }
    }

    /// A variable that a call reads; all of them where the call names none.
    fn variable_read(&mut self, last: &str, tokens: &[Token], at: usize, open: usize) {
        match self.expression(tokens, open).value {
            Some(value) if self.shows(tokens, at) => self.command("printenv", &[value]),
            None if matches!(last, "getenv" | "get_env")
                && self.shows(tokens, at)
                && tokens.get(open) == Some(&Token::Sign(')')) =>
            {
                self.command("printenv", &[])
            }
            _ => {}
        }
    }

    /// A path object. What the program does with paths, it does with this one.
    fn path_object(&mut self, tokens: &[Token], open: usize) {
        let (writes, deletes) = (
            self.mentions("write_") || self.mentions(".touch"),
            self.mentions("unlink") || self.mentions("rmtree"),
        );
        let (lists, reads) = (
            self.mentions("iterdir") || self.mentions("glob"),
            self.mentions("read") || self.mentions("open"),
        );
        match (deletes, writes, lists, reads) {
            (true, ..) => self.file("rm", tokens, open),
            (_, true, ..) => self.file("tee", tokens, open),
            (_, _, true, _) => self.file("ls", tokens, open),
            (_, _, _, true) => self.file("cat", tokens, open),
            _ => {}
        }
    }

    /// Follows a call of the table. False if the table does not have it.
    fn library_call(&mut self, last: &str, tokens: &[Token], open: usize) -> bool {
        let Some(row) = CALLS.iter().find(|row| row.name == last) else { return false };
        if !row.with.is_empty() && !self.mentions(row.with) {
            return false;
        }
        match row.effect {
            Effect::Reads => self.file("cat", tokens, open),
            Effect::Writes => self.file("tee", tokens, open),
            Effect::Deletes => self.file("rm", tokens, open),
            Effect::DeletesTree => self.recursive_delete(tokens, open),
            Effect::Lists => {
                self.file("ls", tokens, open);
                if last == "walk" {
                    self.walked(tokens, open);
                }
            }
            Effect::Runs => self.process(tokens, open),
            Effect::Copies => self.two_files("cp", tokens, open),
            Effect::Moves => self.two_files("mv", tokens, open),
        }
        true
    }

    /// A walk over a tree that changes or deletes what it finds.
    fn walked(&mut self, tokens: &[Token], open: usize) {
        let Some(value) = self.expression(tokens, open).value else { return };
        if self.mentions("chmod(") || self.mentions("chown(") {
            self.command("chmod", &[Value::known("-R"), Value::known("777"), value]);
        } else if self.mentions("os.remove(") || self.mentions("unlink(") || self.mentions("rmtree(") {
            self.command("rm", &[Value::known("-rf"), value]);
        }
    }

    /// A name that is not called: variables of the environment.
    pub(super) fn bare(&mut self, name: &str, tokens: &[Token], at: usize) {
        let next = tokens.get(at + 1);
        let index = match (next, tokens.get(at + 2)) {
            (Some(Token::Sign('[' | '{')), Some(Token::Text(text))) => Some(text.clone()),
            (Some(Token::Sign('{')), Some(Token::Name(text))) if self.language == Language::Perl => {
                Some(text.clone())
            }
            _ => None,
        };
        let spread = at.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|before| {
            matches!(before, Token::Sign('*' | '.' | '=')) || *before == Token::Name("in".to_owned())
        });
        let stem = name
            .trim_end_matches(".items")
            .trim_end_matches(".values")
            .trim_end_matches(".to_h")
            .trim_end_matches(".to_hash")
            .trim_end_matches(".each")
            .trim_end_matches(".inspect")
            .trim_end_matches(".to_a")
            .trim_end_matches(".map");
        let is_whole = matches!(
            stem,
            "os.environ"
                | "environ"
                | "process.env"
                | "ENV"
                | "ENVIRON"
                | "_ENV"
                | "$_ENV"
                | "_SERVER"
                | "Bun.env"
                | "os.environb"
                | "globalThis.process.env"
        );
        if is_whole {
            match index {
                Some(variable) if self.shows(tokens, at) => {
                    self.command("printenv", &[Value::known(variable)])
                }
                Some(_) => {}
                None if (!spread
                    || stem.len() < name.len()
                    || self.language == Language::Awk
                    || matches!(next, Some(Token::Sign('['))))
                    && self.shows(tokens, at) =>
                {
                    self.command("printenv", &[])
                }
                None => {}
            }
        } else if let Some(variable) = name.strip_prefix("process.env.").or(name.strip_prefix("Bun.env."))
            && self.shows(tokens, at)
        {
            self.command("printenv", &[Value::known(variable)]);
        } else if matches!(name, "rm_rf" | "unlink" | "rmtree") && matches!(next, Some(Token::Name(_))) {
            self.shell.ran(Origin::Decoded, "code", &self.context);
        } else if name == "script" && matches!(next, Some(Token::Text(_))) && self.mentions("do shell") {
            if let Some(value) = self.expression(tokens, at + 1).value {
                self.source(&value);
            }
        } else if matches!(name, "spawn" | "exec" | "system") && self.language == Language::Other {
            let words: Vec<Value> = tokens
                .iter()
                .skip(at + 1)
                .map_while(|token| match token {
                    Token::Name(text) | Token::Text(text) => Some(Value::known(text.clone())),
                    _ => None,
                })
                .take(64)
                .collect();
            if !words.is_empty() {
                let context = self.context.clone();
                self.shell.run(words, Vec::new(), Vec::new(), &context);
            }
        }
    }

    /// Whether the program prints anything.
    pub(super) fn shows(&mut self, tokens: &[Token], at: usize) -> bool {
        if let Some(Token::Name(name)) = tokens.get(at)
            && self.tells_about(name, tokens, at)
        {
            return false;
        }
        // A script file prints much, so only what this statement prints counts there.
        if self.context.from_file {
            let before = tokens.get(..at).unwrap_or(&[]).iter().rev().take(8);
            return before.take_while(|token| !matches!(token, Token::Sign(';' | '{' | '}'))).any(|token| {
                matches!(token, Token::Name(name) if matches!(name.as_str(), "print" | "console.log" | "puts" | "p" | "pp" | "say" | "echo" | "pprint"))
            });
        }
        self.prints
            || self.language == Language::Other
            || [
                "print", "console", "puts", "write", "dump", "inspect", "echo", "p ", "pp", "say", "log",
                "alert", "cat(", "IO.",
            ]
            .iter()
            .any(|word| self.mentions(word))
    }
}
