//! Names that a program mentions.

use super::*;

impl Scan<'_, '_, '_> {
    pub(super) fn name(&mut self, name: &str, tokens: &[Token], at: usize) {
        let last = name.rsplit(['.', ':', '>']).next().unwrap_or(name);
        let open = match tokens.get(at + 1) {
            Some(Token::Sign('(')) => at + 2,
            // `system "ls"`, `unlink "x"`, `p ENV`.
            Some(Token::Text(_) | Token::Command(_))
                if matches!(
                    self.language,
                    Language::Perl | Language::Ruby | Language::Other | Language::Lua
                ) =>
            {
                at + 1
            }
            Some(Token::Name(_)) if self.language == Language::Perl && last == "open" => at + 1,
            _ => {
                self.bare(name, tokens, at);
                return;
            }
        };
        match last {
            "eval" | "exec" | "Function" | "execfile" | "runInThisContext" | "instance_eval" | "compile"
                if !(last == "exec" && (self.language != Language::Python)) =>
            {
                self.evaluated(tokens, open);
            }
            "system" | "popen" | "popen2" | "popen3" | "getoutput" | "getstatusoutput" | "shell_exec"
            | "passthru" | "proc_open" | "execvp" | "execv" | "execl" | "execlp" | "execve"
            | "posix_spawn" | "capture2" | "capture3" | "capture2e" | "execSync" | "spawnSync"
            | "execFile" | "execFileSync" | "startProcess" | "pcntl_exec" | "spawnv" | "spawnlp"
            | "spawnl" | "spawnvp" => self.process(tokens, open),
            "run" | "call" | "check_call" | "check_output" | "Popen" if self.mentions("subprocess") => {
                self.process(tokens, open)
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
            "readFile" | "readFileSync" | "createReadStream" | "file_get_contents" | "readfile"
            | "readTextFile" | "readTextFileSync" | "slurp" | "load_dotenv" | "dotenv_values"
            | "read_csv" | "loadtxt" | "readFileToString" | "copy_file_range" => {
                self.file("cat", tokens, open)
            }
            "Path" | "PurePath" | "Pathname" => {
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
            "file" if self.language == Language::Php || name.starts_with("Bun") => {
                self.file("cat", tokens, open)
            }
            "writeFile" | "writeFileSync" | "appendFile" | "appendFileSync" | "createWriteStream"
            | "file_put_contents" | "writeTextFile" | "writeTextFileSync" | "truncate" | "truncateSync"
            | "mkdirSync" | "makedirs" | "mkdir" | "ftruncate" => self.file("tee", tokens, open),
            "write" | "binwrite"
                if name.starts_with("File") || name.starts_with("IO") || name.starts_with("Bun") =>
            {
                self.file("tee", tokens, open)
            }
            "rmtree"
            | "rmSync"
            | "rm_rf"
            | "rm_r"
            | "remove_tree"
            | "rimraf"
            | "removeSync"
            | "emptyDirSync"
            | "remove_entry_secure"
            | "remove_dir"
            | "rmdirSync"
            | "removedirs"
            | "emptyDir"
            | "remove_entry" => self.recursive_delete(tokens, open),
            "rm" if self.mentions("fs") || self.mentions("FileUtils") => self.recursive_delete(tokens, open),
            "remove" if name.starts_with("Deno") || name.starts_with("os") || name.starts_with("fs") => {
                if self.mentions("recursive") {
                    self.recursive_delete(tokens, open)
                } else {
                    self.file("rm", tokens, open)
                }
            }
            "unlink" | "unlinkSync" | "delete" if last != "delete" || name.starts_with("File") => {
                self.file("rm", tokens, open)
            }
            "listdir" | "readdirSync" | "readdir" | "scandir" | "walk" | "glob" | "iglob" | "entries"
                if last != "entries" || name.starts_with("Dir") =>
            {
                self.file("ls", tokens, open);
            }
            "copyfile" | "copy" | "copy2" | "copyFileSync" | "cpSync" | "copytree" | "cp_r" | "rename"
            | "renameSync" | "move" | "replace"
                if name.contains('.') && last != "replace" =>
            {
                self.two_files(
                    if matches!(last, "rename" | "renameSync" | "move") { "mv" } else { "cp" },
                    tokens,
                    open,
                );
            }
            "chdir" => {
                if let (Some(value), _) = self.expression(tokens, open)
                    && let Some(path) = self.shell.absolute(&value)
                {
                    self.shell.state.cwd = Some(path);
                }
            }
            "getenv" | "get"
                if last == "getenv" || name.ends_with("environ.get") || name.ends_with("env.get") =>
            {
                match self.expression(tokens, open) {
                    (Some(value), _) if self.shows() => self.command("printenv", &[value]),
                    (None, _)
                        if last == "getenv"
                            && self.shows()
                            && tokens.get(open) == Some(&Token::Sign(')')) =>
                    {
                        self.command("printenv", &[])
                    }
                    _ => {}
                }
            }
            "toObject" if name.starts_with("Deno.env") && self.shows() => self.command("printenv", &[]),
            "phpinfo" => self.command("printenv", &[]),
            _ => self.bare(name, tokens, at),
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
                Some(variable) if self.shows() => self.command("printenv", &[Value::known(variable)]),
                Some(_) => {}
                None if (!spread
                    || stem.len() < name.len()
                    || self.language == Language::Awk
                    || matches!(next, Some(Token::Sign('['))))
                    && self.shows() =>
                {
                    self.command("printenv", &[])
                }
                None => {}
            }
        } else if let Some(variable) = name.strip_prefix("process.env.").or(name.strip_prefix("Bun.env."))
            && self.shows()
        {
            self.command("printenv", &[Value::known(variable)]);
        } else if matches!(name, "rm_rf" | "unlink" | "rmtree") && matches!(next, Some(Token::Name(_))) {
            self.shell.ran(Origin::Decoded, "code", &self.context);
        } else if name == "script" && matches!(next, Some(Token::Text(_))) && self.mentions("do shell") {
            if let (Some(value), _) = self.expression(tokens, at + 1) {
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
    pub(super) fn shows(&mut self) -> bool {
        self.prints
            || [
                "print", "console", "puts", "write", "dump", "inspect", "echo", "p ", "pp", "say", "log",
                "alert", "cat(", "IO.",
            ]
            .iter()
            .any(|word| self.mentions(word))
    }
}
