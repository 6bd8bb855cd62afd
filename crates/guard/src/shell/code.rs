//! Programs of other languages inside a command: `python -c`, `node -e`, `awk '…'`.
//!
//! They are not parsed by their grammar. A scan over their tokens finds calls that start processes
//! or touch files, and gives them to the shell analysis as equivalent commands. Texts that a
//! program puts together in a hidden way are unknown.

mod about;
mod calls;
mod expressions;
mod loads;
mod names;

use super::eval::{Context, Shell};
use super::value::{Origin, Value};
use super::{Command, escape};
use expressions::Expression;
use std::collections::HashMap;

/// How many tokens of a program are scanned.
const MAX_TOKENS: usize = 20_000;
/// Longest program that is scanned. This bounds the work of one command.
const MAX_CODE_BYTES: usize = 128 << 10;

/// Whether a name is an interpreter whose programs are scanned.
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
        | "guile" | "erl" | "scala" | "jshell" | "ghc" | "ocaml" | "sbcl" | "clisp" | "bb" | "clojure"
        | "clj" | "crystal" | "swift" | "raku" | "kotlinc" => Language::Other,
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
            if let [(_, Origin::File(path))] = &content.holes[..]
                && content.text.is_empty()
            {
                scan_disk(shell, language, path, name, context);
                return printed;
            }
            if !content.is_known() || content.text.is_empty() {
                return printed;
            }
            (content, false)
        }
        Program::Input => match context.stdin.as_deref() {
            Some(stdin) => {
                for (_, origin) in stdin.holes.iter().take(8) {
                    if let Origin::File(path) = origin {
                        scan_disk(shell, language, path, name, context);
                    }
                }
                (stdin.clone(), false)
            }
            None => return printed,
        },
        Program::None => return printed,
    };
    scan_value(shell, language, &text, name, prints, context);
    printed
}

/// Scans a program that existed on disk before the command.
fn scan_disk(shell: &mut Shell<'_>, language: Language, path: &str, name: &str, context: &Context) {
    if let Some(text) = shell.script_text(path) {
        let inner = Context { from_file: true, ..context.clone() };
        shell.within_file_budget(true, |shell| {
            scan_value(shell, language, &Value::known(text), name, false, &inner);
        });
    }
}

/// Scans a program in the language of an interpreter.
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
    printed_variables(shell, text, context);
    if text.text.len() > MAX_CODE_BYTES || !shell.step(text.text.len() / 2) {
        shell.ran(Origin::Decoded, name, context);
        return;
    }
    let inner = Context { in_code: true, stdin: None, wants_output: false, ..context.deeper() };
    let mut scan = Scan {
        shell,
        language,
        context: inner,
        known: HashMap::new(),
        lists: HashMap::new(),
        mentioned: HashMap::new(),
        code: &text.text,
        prints,
    };
    scan.all();
}

/// `python3 -c "print('$API_KEY')"`: the shell puts the value into the program, which prints it.
fn printed_variables(shell: &mut Shell<'_>, text: &Value, context: &Context) {
    const PRINTS: &[&str] = &["print", "console.", "puts", "echo", "say", "write(", "p "];
    let shown = |before: &str| {
        let statement = before.rsplit([';', '\n']).next().unwrap_or(before);
        PRINTS.iter().any(|word| statement.contains(word))
    };
    let holes = text.holes.iter().filter_map(|(at, origin)| match origin {
        Origin::Variable(name) if shown(text.text.get(..*at).unwrap_or("")) => Some(name.clone()),
        _ => None,
    });
    // A known value leaves no mark in the text.
    let alone = !text.text.contains("http") && shown(&text.text);
    let known = text.variables.iter().filter(|_| alone && text.holes.is_empty()).cloned();
    for name in holes.chain(known).take(16) {
        let value = Value {
            holes: vec![(0, Origin::Variable(name.clone()))],
            variables: vec![name],
            ..Value::default()
        };
        if shell.step(4) {
            shell.analysis.commands.push(Command {
                name: "echo".to_owned(),
                words: vec![Value::known("echo"), value],
                cwd: shell.state.cwd.clone(),
                location: context.location,
                from_file: context.from_file,
                captured: context.captured,
                in_code: true,
                ..Command::default()
            });
        }
    }
}

enum Program {
    Text(Value, bool),
    File(Value),
    Input,
    None,
}

/// Where an interpreter's arguments say that its program is.
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
            (Language::Other, "-c" | "-eval" | "--eval" | "--expression") => {
                return Program::Text(next(), false);
            }
            (Language::Other, "eval") if name == "crystal" => return Program::Text(next(), false),
            (Language::Other, "build" | "run" | "test" | "package" | "repl" | "compile" | "new") => {
                return Program::None;
            }
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
    /// A text in backticks, or one with interpolations.
    Command(String),
    Number(u32),
    Sign(char),
}

struct Scan<'a, 'w, 'c> {
    shell: &'a mut Shell<'w>,
    language: Language,
    context: Context,
    known: HashMap<String, Value>,
    lists: HashMap<String, Vec<Value>>,
    mentioned: HashMap<&'static str, bool>,
    code: &'c str,
    prints: bool,
}

const HIDING_CALLS: &[&str] = &[
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
                // Bun's and zx's shell: $`rm -rf x`.
                Some(Token::Command(text)) if self.language == Language::Node && self.mentions("$`") => {
                    self.source(&Value::known(text.clone()));
                }
                Some(Token::Text(text)) if self.language == Language::Awk => {
                    // `"command" | getline`, `print | "command"`, `print > "file"`, `getline <
                    // "file"`.
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
                if *after == Token::Sign('[')
                    && let Some(values) = self.list(tokens, at + 2)
                {
                    self.lists.insert(name.clone(), values);
                    continue;
                }
                if let Some(value) = self.expression(tokens, at + 2).value {
                    self.known.insert(name.clone(), value);
                }
            }
        }
    }

    fn source(&mut self, text: &Value) {
        let context = self.context.clone();
        self.shell.in_subshell(|shell| shell.source_value(text, "code", &context));
    }

    /// Notes the command that a call is equivalent to.
    fn command(&mut self, name: &str, args: &[Value]) {
        // A program that reads its own settings does not show them.
        if self.context.from_file
            && name == "cat"
            && args.iter().any(|arg| crate::secrets::is_env_file(crate::path::file_name(&arg.text)))
        {
            return;
        }
        let mut words = vec![Value::known(name)];
        words.extend_from_slice(args);
        let command = Command {
            name: name.to_owned(),
            words,
            cwd: self.shell.state.cwd.clone(),
            location: self.context.location,
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
