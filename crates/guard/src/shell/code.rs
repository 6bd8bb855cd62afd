//! Programs in other languages that stand in a command: `python -c`, `node -e`, `awk '…'`.
//!
//! They are not parsed as their languages are. A scan over their tokens finds calls that start processes or touch files, and gives them to the shell
//! analysis as the commands they amount to. Texts that are put together in a way that hides them are unknown.

use super::eval::{Context, Shell};
use super::value::{Origin, Value};
use super::{Command, escape};
use std::collections::HashMap;

/// Tokens of a program that are looked at.
const MAX_TOKENS: usize = 20_000;
/// Longest program that is looked at.
const MAX_CODE: usize = 128 << 10;

/// Whether a name is that of an interpreter whose programs are scanned.
pub(super) fn is_interpreter(name: &str) -> bool {
    language(name).is_some()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Python,
    Node,
    Perl,
    Ruby,
    Php,
    Lua,
    Awk,
    Other,
}

fn language(name: &str) -> Option<Language> {
    let stem = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    Some(match stem {
        "python" | "pypy" | "ipython" | "py" | "micropython" => Language::Python,
        "node" | "nodejs" | "deno" | "bun" | "tsx" | "ts-node" | "qjs" => Language::Node,
        "perl" => Language::Perl,
        "ruby" | "jruby" | "irb" => Language::Ruby,
        "php" => Language::Php,
        "lua" | "luajit" => Language::Lua,
        "awk" | "gawk" | "mawk" | "nawk" => Language::Awk,
        "osascript" | "Rscript" | "julia" | "tclsh" | "expect" | "groovy" | "elixir" | "R" | "racket"
        | "guile" => Language::Other,
        _ => return None,
    })
}

/// Runs an interpreter. Returns what it prints.
pub(super) fn run(shell: &mut Shell<'_>, name: &str, args: &[Value], context: &Context) -> Value {
    let Some(language) = language(name) else { return Value::default() };
    let printed = shell.printed(
        name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.'),
        args,
        context,
    );
    let (text, prints) = match program(language, name, args) {
        Program::Text(text, prints) => (text, prints),
        Program::File(file) => {
            let content = shell.content(&file);
            if content.is_download() {
                shell.ran(Origin::Download, name, context);
            }
            if !content.is_known() || content.text.is_empty() {
                return printed;
            }
            (content, false)
        }
        Program::Input => match context.stdin.as_deref() {
            Some(stdin) => (stdin.clone(), false),
            None => return printed,
        },
        Program::None => return printed,
    };
    scan_value(shell, language, &text, name, prints, context);
    printed
}

/// Scans a program of the language that an interpreter's name says.
pub(super) fn scan_file(shell: &mut Shell<'_>, name: &str, text: &Value, context: &Context) {
    if let Some(language) = language(name) {
        scan_value(shell, language, text, name, false, context);
    }
}

fn scan_value(
    shell: &mut Shell<'_>,
    language: Language,
    text: &Value,
    name: &str,
    prints: bool,
    context: &Context,
) {
    for (_, origin) in text.holes.iter().take(4) {
        if matches!(origin, Origin::Download | Origin::Decoded)
            || (text.is_opaque() && matches!(origin, Origin::Variable(_)))
        {
            shell.ran(origin.clone(), name, context);
        }
    }
    if text.text.len() > MAX_CODE || !shell.step(text.text.len() / 2) {
        shell.ran(Origin::Decoded, name, context);
        return;
    }
    let inner = Context { in_code: true, stdin: None, wants_output: false, ..context.deeper() };
    let mut scan = Scan {
        shell,
        language,
        context: inner,
        known: HashMap::new(),
        mentioned: HashMap::new(),
        code: &text.text,
        prints,
    };
    scan.all();
}

enum Program {
    Text(Value, bool),
    File(Value),
    Input,
    None,
}

/// Where the program of an interpreter is, by its arguments.
fn program(language: Language, name: &str, args: &[Value]) -> Program {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        at += 1;
        let next = || args.get(at).cloned().unwrap_or_default();
        match (language, text) {
            (Language::Python, "-c") => return Program::Text(next(), false),
            (Language::Python, "-m") => return Program::None,
            (Language::Python, flags)
                if flags.len() > 2
                    && flags.starts_with('-')
                    && flags.ends_with('c')
                    && !flags.starts_with("--") =>
            {
                return Program::Text(next(), false);
            }
            (Language::Node, "-p" | "--print" | "-pe" | "-ep") => return Program::Text(next(), true),
            (Language::Node, "-e" | "--eval" | "eval") => return Program::Text(next(), false),
            (Language::Node, "-r" | "--require" | "--import" | "--loader" | "-C" | "--conditions") => at += 1,
            (
                Language::Node,
                "run" | "test" | "install" | "add" | "x" | "task" | "fmt" | "lint" | "build" | "i" | "create"
                | "pm" | "publish" | "global",
            ) if name == "bun" || name == "deno" => {
                return Program::None;
            }
            (Language::Php, "-r") | (Language::Lua | Language::Other, "-e" | "-E") => {
                return Program::Text(next(), false);
            }
            (Language::Other, "-c") => return Program::Text(next(), false),
            (Language::Perl | Language::Ruby, flags)
                if flags.len() > 1
                    && flags.starts_with('-')
                    && !flags.starts_with("--")
                    && flags.ends_with(['e', 'E'])
                    && !flags.starts_with("-M")
                    && !flags.starts_with("-I") =>
            {
                return Program::Text(next(), false);
            }
            (Language::Perl | Language::Ruby, flags) if flags.starts_with("-e") => {
                return Program::Text(arg.slice(2, text.len()), false);
            }
            (Language::Awk, "-f" | "--file") => return Program::File(next()),
            (Language::Awk, "-v" | "-F" | "--assign" | "--field-separator") => at += 1,
            (Language::Python, "-W" | "-X") => at += 1,
            (_, "-") => return Program::Input,
            (_, "-V" | "-v" | "--version" | "-h" | "--help") if language != Language::Awk => {
                return Program::None;
            }
            (_, flag) if flag.starts_with('-') => {}
            (Language::Awk, _) => return Program::Text(arg.clone(), false),
            _ => return Program::File(arg.clone()),
        }
    }
    if language == Language::Awk { Program::None } else { Program::Input }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    /// A text in backticks, or one with other things in it.
    Command(String),
    Number(u32),
    Sign(char),
}

struct Scan<'a, 'w, 'c> {
    shell: &'a mut Shell<'w>,
    language: Language,
    context: Context,
    known: HashMap<String, Value>,
    mentioned: HashMap<&'static str, bool>,
    code: &'c str,
    prints: bool,
}

const HIDING: &[&str] = &[
    "chr",
    "fromCharCode",
    "b64decode",
    "atob",
    "unhexlify",
    "fromhex",
    "decode",
    "join",
    "reverse",
    "reversed",
    "pack",
    "base64_decode",
    "codecs",
    "rot13",
    "replace",
    "translate",
    "unescape",
    "decode64",
    "unpack",
    "tr",
    "split",
    "bytes",
    "bytearray",
    "Buffer",
    "str_rot13",
    "strrev",
    "ord",
    "format",
];

impl Scan<'_, '_, '_> {
    fn all(&mut self) {
        let tokens = tokens(self.code, self.language);
        self.assignments(&tokens);
        for at in 0..tokens.len() {
            match tokens.get(at) {
                Some(Token::Name(name)) => {
                    let name = name.clone();
                    self.name(&name, &tokens, at);
                }
                Some(Token::Command(text))
                    if matches!(self.language, Language::Perl | Language::Ruby | Language::Php) =>
                {
                    self.source(&Value::known(text.clone()));
                }
                Some(Token::Text(text)) if self.language == Language::Awk => {
                    // `"command" | getline`, `print | "command"`, `print > "file"`, `getline < "file"`.
                    let text = Value::known(text.clone());
                    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                    match (before, tokens.get(at + 1)) {
                        (Some(Token::Sign('|')), _) | (_, Some(Token::Sign('|'))) => self.source(&text),
                        (Some(Token::Sign('>')), _) => self.command("tee", &[text]),
                        (Some(Token::Sign('<')), _) => self.command("cat", &[text]),
                        _ => {}
                    }
                }
                Some(Token::Sign('%'))
                    if self.language == Language::Perl
                        && tokens.get(at + 1) == Some(&Token::Name("ENV".to_owned())) =>
                {
                    self.command("printenv", &[]);
                }
                _ => {}
            }
        }
    }

    fn assignments(&mut self, tokens: &[Token]) {
        for at in 0..tokens.len() {
            if let (Some(Token::Name(name)), Some(Token::Sign('=')), Some(after)) =
                (tokens.get(at), tokens.get(at + 1), tokens.get(at + 2))
                && *after != Token::Sign('=')
                && self.known.len() < 256
            {
                let (value, _) = self.expression(tokens, at + 2);
                if let Some(value) = value {
                    self.known.insert(name.clone(), value);
                }
            }
        }
    }

    fn source(&mut self, text: &Value) {
        let context = self.context.clone();
        self.shell.in_subshell(|shell| shell.source_value(text, "code", &context));
    }

    /// Notes what a call amounts to.
    fn command(&mut self, name: &str, args: &[Value]) {
        let mut words = vec![Value::known(name)];
        words.extend_from_slice(args);
        let command = Command {
            name: name.to_owned(),
            words,
            cwd: self.shell.state.cwd.clone(),
            place: self.context.place,
            from_file: self.context.from_file,
            in_code: true,
            ..Command::default()
        };
        if self.shell.step(4) {
            self.shell.analysis.commands.push(command);
        }
    }

    fn mentions(&mut self, what: &'static str) -> bool {
        let code = self.code;
        *self.mentioned.entry(what).or_insert_with(|| code.contains(what))
    }

    fn name(&mut self, name: &str, tokens: &[Token], at: usize) {
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
    fn bare(&mut self, name: &str, tokens: &[Token], at: usize) {
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
    fn shows(&mut self) -> bool {
        self.prints
            || [
                "print", "console", "puts", "write", "dump", "inspect", "echo", "p ", "pp", "say", "log",
                "alert", "cat(", "IO.",
            ]
            .iter()
            .any(|word| self.mentions(word))
    }

    /// A text that the program runs as a program.
    fn evaluated(&mut self, tokens: &[Token], open: usize) {
        match self.expression(tokens, open) {
            (Some(value), _) if value.is_known() => {
                let inner = value.text.clone();
                if inner.len() < self.code.len() && self.context.depth < 16 {
                    let context = self.context.deeper();
                    let mut scan = Scan {
                        shell: self.shell,
                        language: self.language,
                        context,
                        known: HashMap::new(),
                        mentioned: HashMap::new(),
                        code: &inner,
                        prints: self.prints,
                    };
                    scan.all();
                }
            }
            (_, hidden) => {
                let network = ["urlopen", "requests", "fetch", "http", "urllib", "LWP", "open-uri", "socket"]
                    .iter()
                    .any(|word| self.mentions(word));
                if network {
                    self.shell.ran(Origin::Download, "code", &self.context);
                } else if hidden {
                    self.shell.ran(Origin::Decoded, "code", &self.context);
                }
            }
        }
    }

    fn process(&mut self, tokens: &[Token], open: usize) {
        let mut words = Vec::new();
        let mut at = open;
        let mut level = 0u32;
        let mut is_list = false;
        let mut is_unknown = false;
        let mut names = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                Token::Sign('(' | '[' | '{') => {
                    is_list |= level == 0 && *token == Token::Sign('[');
                    level += 1;
                    at += 1;
                }
                Token::Sign(')' | ']' | '}') => {
                    if level == 0 {
                        break;
                    }
                    level -= 1;
                    at += 1;
                }
                Token::Sign(';') if level == 0 => break,
                Token::Sign('=') => {
                    // A named argument: its value is no word of the command.
                    words.pop();
                    names -= 1;
                    at += 1;
                    while tokens.get(at).is_some_and(|token| !matches!(token, Token::Sign(',' | ')' | ';'))) {
                        at += 1;
                    }
                }
                Token::Sign(':') if self.language == Language::Node => {
                    words.pop();
                    at += 1;
                    while tokens
                        .get(at)
                        .is_some_and(|token| !matches!(token, Token::Sign(',' | '}' | ')' | ';')))
                    {
                        at += 1;
                    }
                }
                Token::Sign(_) => at += 1,
                _ => {
                    let start = at;
                    let (value, hidden) = self.expression(tokens, at);
                    at = self.skip_expression(tokens, at).max(start + 1);
                    match value {
                        Some(value) => {
                            names += 1;
                            words.push(value);
                        }
                        None => {
                            names += 1;
                            is_unknown |= hidden || words.is_empty();
                            words.push(Value::unknown(Origin::Input));
                        }
                    }
                }
            }
            if words.len() > 256 {
                break;
            }
        }
        if is_unknown && names > 0 {
            self.shell.ran(Origin::Decoded, "code", &self.context);
        }
        let several = words.len() > 1 && !matches!(self.language, Language::Php);
        if is_list || several {
            let context = self.context.clone();
            if let Some(first) = words.first()
                && first.text.contains(' ')
                && !is_list
            {
                let first = first.clone();
                self.source(&first);
            } else {
                self.shell.in_subshell(|shell| shell.run(words, Vec::new(), Vec::new(), &context));
            }
        } else if let Some(text) = words.first().filter(|word| !word.is_opaque()) {
            let text = text.clone();
            self.source(&text);
        }
    }

    fn opened(&mut self, tokens: &[Token], open: usize) {
        // Perl: open(F, "<", "file"), open F, ".env".
        let mut texts = Vec::new();
        let mut at = open;
        while texts.len() < 3 {
            let (value, hidden) = self.expression(tokens, at);
            if let Some(value) = value {
                texts.push(value);
            } else if hidden {
                self.shell.ran(Origin::Decoded, "code", &self.context);
            }
            at = self.skip_expression(tokens, at);
            match tokens.get(at) {
                Some(Token::Sign(',')) => at += 1,
                _ => break,
            }
        }
        let is_mode = |value: &Value| {
            !value.text.is_empty()
                && value.text.len() <= 4
                && value.text.chars().all(|sign| "rwabxt+<>|-".contains(sign))
        };
        let writes = texts.iter().any(|value| {
            (is_mode(value) && value.text.contains(['w', 'a', 'x', '+', '>'])) || value.text.starts_with('>')
        });
        let pipes = texts
            .iter()
            .find(|value| value.text.starts_with('|') || (value.text.ends_with('|') && value.text.len() > 2))
            .cloned();
        if let Some(text) = pipes {
            self.source(&Value::known(text.text.trim_matches('|')));
            return;
        }
        if let Some(file) = texts.iter().find(|value| !is_mode(value)).cloned() {
            let text = file.text.trim_start_matches(['<', '>', ' ', '+']).to_owned();
            let file = Value { text, ..file };
            self.command(if writes { "tee" } else { "cat" }, &[file]);
        }
    }

    fn file(&mut self, name: &str, tokens: &[Token], open: usize) {
        match self.expression(tokens, open) {
            (Some(value), _) => self.command(name, &[value]),
            (None, true) => self.shell.ran(Origin::Decoded, "code", &self.context),
            (None, false) => {}
        }
    }

    fn two_files(&mut self, name: &str, tokens: &[Token], open: usize) {
        let (from, _) = self.expression(tokens, open);
        let at = self.skip_expression(tokens, open);
        if let (Some(from), Some(Token::Sign(','))) = (from, tokens.get(at))
            && let (Some(to), _) = self.expression(tokens, at + 1)
        {
            self.command(name, &[from, to]);
        }
    }

    fn recursive_delete(&mut self, tokens: &[Token], open: usize) {
        match self.expression(tokens, open) {
            (Some(value), _) => self.command("rm", &[Value::known("-rf"), value]),
            (None, _) => self.command("rm", &[Value::known("-rf"), Value::unknown(Origin::Input)]),
        }
    }

    /// The text that an expression makes, and whether it hides one.
    fn expression(&mut self, tokens: &[Token], from: usize) -> (Option<Value>, bool) {
        let end = self.skip_expression(tokens, from);
        if !self.shell.step((end - from.min(end)) / 4 + 1) {
            return (None, true);
        }
        let mut value = Value::default();
        let mut found = false;
        let mut hidden = false;
        let mut unclear = false;
        let mut at = from;
        while at < end {
            match tokens.get(at) {
                Some(Token::Text(text) | Token::Command(text)) => {
                    found = true;
                    value.push_text(text);
                }
                Some(Token::Name(name)) => {
                    let last = name.rsplit('.').next().unwrap_or(name);
                    match (last, tokens.get(at + 1), tokens.get(at + 2)) {
                        ("chr" | "fromCharCode", Some(Token::Sign('(')), Some(Token::Number(_))) => {
                            let mut inside = at + 2;
                            while let Some(Token::Number(number)) = tokens.get(inside) {
                                found = true;
                                value.push_text(
                                    &char::from_u32(*number).map(String::from).unwrap_or_default(),
                                );
                                inside += 1;
                                if tokens.get(inside) == Some(&Token::Sign(',')) {
                                    inside += 1;
                                }
                            }
                            at = inside;
                        }
                        (
                            "expanduser" | "join" | "resolve" | "abspath" | "expandvars" | "realpath"
                            | "Path" | "str" | "dirname",
                            Some(Token::Sign('(')),
                            _,
                        ) if name.contains('.') || last == "Path" || last == "str" => {
                            if last == "join" && !value.text.is_empty() {
                                hidden = true;
                            }
                            if last == "join" || last == "resolve" {
                                // Parts of a path.
                                let mut inside = at + 2;
                                while inside < end {
                                    match tokens.get(inside) {
                                        Some(Token::Text(text)) => {
                                            if !value.text.is_empty() {
                                                value.push_text("/");
                                            }
                                            value.push_text(text);
                                            found = true;
                                        }
                                        Some(Token::Name(inner))
                                            if inner.contains("homedir")
                                                || inner.contains("HOME")
                                                || inner.contains("home") =>
                                        {
                                            value.push_text(&self.shell.world.home());
                                            found = true;
                                        }
                                        Some(Token::Name(_)) => unclear = true,
                                        _ => {}
                                    }
                                    inside += 1;
                                }
                                at = inside;
                            }
                        }
                        ("homedir" | "home", Some(Token::Sign('(')), _) => {
                            found = true;
                            value.push_text(&self.shell.world.home());
                        }
                        (_, Some(Token::Sign('(')), _) => {
                            hidden |= HIDING.contains(&last);
                            unclear = true;
                        }
                        _ => match self.known.get(name) {
                            Some(known) => {
                                found = true;
                                value.push(&known.clone());
                            }
                            None if name == "HOME" || name.ends_with(".HOME") => {
                                found = true;
                                value.push_text(&self.shell.world.home());
                            }
                            None if matches!(
                                last,
                                "f" | "r"
                                    | "b"
                                    | "u"
                                    | "rb"
                                    | "br"
                                    | "new"
                                    | "await"
                                    | "return"
                                    | "my"
                                    | "std"
                                    | "local"
                                    | "const"
                                    | "let"
                                    | "var"
                            ) => {}
                            None => {
                                hidden |= HIDING.contains(&last);
                                unclear = true;
                            }
                        },
                    }
                }
                Some(Token::Sign('[')) if tokens.get(at + 1) == Some(&Token::Sign(':')) => hidden = true,
                _ => {}
            }
            at += 1;
        }
        if unclear && found {
            value.holes.push((value.text.len(), if hidden { Origin::Decoded } else { Origin::Input }));
        }
        (found.then_some(value).filter(|_| !(hidden && unclear)), hidden)
    }

    /// Where an expression ends: at a comma, a semicolon or the bracket that closes around it.
    fn skip_expression(&self, tokens: &[Token], from: usize) -> usize {
        let mut level = 0u32;
        let mut at = from;
        while let Some(token) = tokens.get(at) {
            match token {
                Token::Sign('(' | '[' | '{') => level += 1,
                Token::Sign(')' | ']' | '}') if level == 0 => return at,
                Token::Sign(')' | ']' | '}') => level -= 1,
                Token::Sign(',' | ';' | '\n') if level == 0 => return at,
                _ => {}
            }
            at += 1;
            if at - from > 512 {
                return at;
            }
        }
        at
    }
}

fn tokens(code: &str, language: Language) -> Vec<Token> {
    let bytes = code.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if out.len() > MAX_TOKENS {
            break;
        }
        match byte {
            b'#' if !matches!(language, Language::Node | Language::Lua)
                && at
                    .checked_sub(1)
                    .and_then(|before| bytes.get(before))
                    .is_none_or(|before| before.is_ascii_whitespace() || *before == b';') =>
            {
                while bytes.get(at).is_some_and(|byte| *byte != b'\n') {
                    at += 1;
                }
            }
            b'/' if matches!(language, Language::Node | Language::Php)
                && bytes.get(at + 1) == Some(&b'/') =>
            {
                while bytes.get(at).is_some_and(|byte| *byte != b'\n') {
                    at += 1;
                }
            }
            b'\'' | b'"' | b'`' => {
                let (text, next) = string(code, at);
                out.push(if *byte == b'`' { Token::Command(text) } else { Token::Text(text) });
                at = next;
            }
            b'0'..=b'9' => {
                let start = at;
                while bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
                    at += 1;
                }
                let text = code.get(start..at).unwrap_or("");
                let number = match text.strip_prefix("0x") {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => text.parse(),
                };
                out.push(Token::Number(number.unwrap_or(0)));
            }
            byte if byte.is_ascii_alphabetic() || *byte == b'_' || *byte == b'$' || *byte >= 0x80 => {
                let start = at;
                while bytes.get(at).is_some_and(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte >= 0x80
                }) || (matches!(bytes.get(at), Some(b'.' | b':'))
                    && bytes.get(at + 1).is_some_and(|next| {
                        next.is_ascii_alphabetic()
                            || *next == b'_'
                            || (*next == b':' && bytes.get(at) == Some(&b':'))
                    }))
                    || (bytes.get(at) == Some(&b':') && at > start && bytes.get(at - 1) == Some(&b':'))
                {
                    at += 1;
                }
                at = at.max(start + 1);
                let name = code.get(start..at).unwrap_or("").trim_start_matches('$');
                let opener = bytes.get(at).copied();
                if matches!(name, "qx" | "q" | "qq")
                    && language == Language::Perl
                    && matches!(opener, Some(b'{' | b'(' | b'/' | b'!' | b'[' | b'|'))
                {
                    let (text, next) = delimited(code, at);
                    out.push(if name == "qx" { Token::Command(text) } else { Token::Text(text) });
                    at = next;
                } else if !name.is_empty() {
                    out.push(Token::Name(name.to_owned()));
                }
            }
            b'%' if language == Language::Ruby && bytes.get(at + 1) == Some(&b'x') => {
                let (text, next) = delimited(code, at + 2);
                out.push(Token::Command(text));
                at = next;
            }
            b'\n' => {
                out.push(Token::Sign(';'));
                at += 1;
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            byte => {
                out.push(Token::Sign(char::from(*byte)));
                at += 1;
            }
        }
    }
    out
}

/// A quoted text from its opening quote, and where it ends.
fn string(code: &str, start: usize) -> (String, usize) {
    let bytes = code.as_bytes();
    let Some(quote) = bytes.get(start).copied() else { return (String::new(), start + 1) };
    let triple =
        bytes.get(start + 1) == Some(&quote) && bytes.get(start + 2) == Some(&quote) && quote != b'`';
    let mut at = if triple { start + 3 } else { start + 1 };
    let mut text = String::new();
    loop {
        let from = at;
        while bytes.get(at).is_some_and(|byte| *byte != quote && *byte != b'\\') {
            at += 1;
        }
        text.push_str(code.get(from..at).unwrap_or(""));
        match bytes.get(at) {
            None => return (text, at.max(start + 1)),
            Some(b'\\') => {
                let (decoded, length) = escape::ansi(code.get(at..).unwrap_or(""));
                text.push_str(&decoded);
                at += length.max(1);
            }
            Some(_)
                if triple && !(bytes.get(at + 1) == Some(&quote) && bytes.get(at + 2) == Some(&quote)) =>
            {
                text.push(char::from(quote));
                at += 1;
            }
            Some(_) => return (text, if triple { at + 3 } else { at + 1 }),
        }
    }
}

fn delimited(code: &str, start: usize) -> (String, usize) {
    let bytes = code.as_bytes();
    let close = match bytes.get(start) {
        Some(b'{') => b'}',
        Some(b'(') => b')',
        Some(b'[') => b']',
        Some(other) => *other,
        None => return (String::new(), start),
    };
    let rest = bytes.get(start + 1..).unwrap_or(&[]);
    let length = rest.iter().position(|byte| *byte == close).unwrap_or(rest.len());
    (code.get(start + 1..start + 1 + length).unwrap_or("").to_owned(), start + length + 2)
}
