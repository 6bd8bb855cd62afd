//! What commands print, as far as it is known. This follows text through pipes, substitutions and
//! files.

use super::eval::{Context, Shell};
use super::value::{Origin, Value};
use super::{escape, wrappers};
use crate::path;
use std::rc::Rc;

/// Stands for the path that `mktemp` prints.
pub(crate) const MADE_TEMPORARY: &str = "/tmp/mktemp.XXXXXXXXXX";

/// Commands that print what they get from the network.
pub(crate) const DOWNLOADERS: &[&str] = &[
    "curl",
    "wget",
    "wget2",
    "fetch",
    "http",
    "https",
    "httpie",
    "xh",
    "xhs",
    "aria2c",
    "lynx",
    "links",
    "w3m",
    "elinks",
    "axel",
    "iwr",
    "irm",
    "Invoke-WebRequest",
    "Invoke-RestMethod",
    "invoke-webrequest",
    "invoke-restmethod",
    "lwp-request",
    "GET",
    "curlie",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "ftp",
    "tftp",
    "scp",
    "sftp",
    "gsutil",
    "rclone",
    "bitsadmin",
    "certutil",
    "curl.exe",
    "Start-BitsTransfer",
    "ipfs",
    "gdown",
    "kermit",
];

/// Commands that pass their input on, changed or not, and add nothing.
pub(crate) const FILTERS: &[&str] = &[
    "cat",
    "tee",
    "head",
    "tail",
    "sed",
    "awk",
    "gawk",
    "mawk",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "cut",
    "sort",
    "uniq",
    "tr",
    "rev",
    "tac",
    "nl",
    "fold",
    "fmt",
    "column",
    "paste",
    "less",
    "more",
    "bat",
    "xxd",
    "od",
    "hexdump",
    "base64",
    "base32",
    "gzip",
    "gunzip",
    "zcat",
    "bzip2",
    "bunzip2",
    "bzcat",
    "xz",
    "unxz",
    "xzcat",
    "zstd",
    "zstdcat",
    "openssl",
    "gpg",
    "iconv",
    "dos2unix",
    "strings",
    "pv",
    "jq",
    "yq",
    "expand",
    "unexpand",
    "split",
    "sponge",
    "dd",
    "buffer",
    "mbuffer",
    "xargs",
    "gpg2",
    "age",
    "uudecode",
    "basenc",
    "perl",
    "python3",
    "python",
    "ruby",
    "node",
    "tsort",
    "envsubst",
    "busybox",
    "env",
    "stdbuf",
    "unbuffer",
    "pbcopy",
    "clip",
    "xclip",
    "out-string",
    "Out-String",
    "sh",
    "bash",
    "zsh",
];

impl Shell<'_> {
    /// What a command prints. `args` are without its name.
    pub(super) fn printed(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        if !context.wants_output {
            return Value::default();
        }
        let length = context.stdin.as_deref().map_or(0, |stdin| stdin.text.len());
        if !self.step(length / 64) {
            return Value::unknown(Origin::Input);
        }
        let stdin = || context.stdin.as_deref().cloned().unwrap_or_else(|| Value::unknown(Origin::Input));
        match name {
            "echo" => echo(args),
            "printf" => printf(args),
            "print" | "Write-Output" | "write-output" | "Write-Host" => joined(args),
            "cat" | "bat" | "type" | "gc" | "Get-Content" | "tee" | "pv" | "sponge" | "less" | "more"
            | "tac" | "nl" => self.shown(name, args, stdin()),
            "head" | "tail"
                if args.iter().all(|arg| arg.text.starts_with('-') || arg.text.parse::<u32>().is_ok()) =>
            {
                passed(&stdin())
            }
            "ls" | "dir" if args.iter().any(|arg| !arg.text.starts_with('-')) => {
                let mut names = listed(args);
                names.push(&Value::unknown(Origin::Output(Rc::from("ls"))));
                names
            }
            "rg" if args.iter().any(|arg| arg.text == "--files") => listed(args),
            "tar" | "gtar" | "bsdtar" if context.stdin.as_deref().is_some_and(Value::is_download) => {
                Value::unknown(Origin::Download)
            }
            "mktemp" => Value::known(MADE_TEMPORARY),
            "which" | "whereis" => self.found_program(Some(&last(args))),
            "pwd" => match &self.state.cwd {
                Some(cwd) => Value::known(cwd.clone()),
                None => Value::unknown(Origin::Output(Rc::from("pwd"))),
            },
            "realpath" | "readlink" | "grealpath" | "greadlink" => match self.absolute(&last(args)) {
                Some(path) => Value::known(path),
                None => last(args),
            },
            "dirname" => dirname(last(args)),
            "basename" => match args.iter().find(|arg| !arg.text.starts_with('-')) {
                Some(value) if value.is_known() => Value::known(path::file_name(&value.text)),
                _ => Value::unknown(Origin::Output(Rc::from("basename"))),
            },
            "rev" => match stdin().literal() {
                Some(text) => Value::known(text.trim_end().chars().rev().collect::<String>()),
                None => passed(&stdin()),
            },
            "base64" | "gbase64" | "base32" | "basenc" | "uudecode" => {
                let decodes = args.iter().any(|arg| {
                    arg.text.starts_with("--d")
                        || (arg.text.starts_with('-') && arg.text.contains(['d', 'D']))
                });
                self.decoded(name, decodes, args, stdin())
            }
            "xxd" => {
                let reverts = args
                    .iter()
                    .any(|arg| arg.text.starts_with("-r") || arg.text == "-p -r" || arg.text == "-revert");
                match stdin().literal().filter(|_| reverts).and_then(escape::hex) {
                    Some(text) => Value::known(text),
                    None => Value::unknown(Origin::Decoded),
                }
            }
            "tr" | "openssl" | "gpg" | "gpg2" | "age" | "gunzip" | "zcat" | "gzip" | "bunzip2" | "bzcat"
            | "xzcat" | "unxz" | "zstdcat" | "zstd" | "xz" | "bzip2" | "iconv" | "uncompress" | "7z"
            | "unzip" | "funzip" | "lz4" | "lz4cat" => {
                let input = stdin();
                if input.is_download() { input } else { Value::unknown(Origin::Decoded) }
            }
            "sed" | "awk" | "gawk" | "mawk" | "cut" | "perl" | "python" | "python3" | "node" | "ruby"
            | "jq" | "yq" | "fold" | "paste" | "grep" | "egrep" | "sort" | "head" | "tail" | "uniq"
            | "shuf" | "column" | "dd" | "strings" | "envsubst" | "od" | "dos2unix" => {
                self.filtered(name, args, context)
            }
            "git" if args.iter().any(|arg| arg.text == "--show-toplevel") => {
                Value::known(self.world.project())
            }
            "git" if git_path(args).is_some() => {
                let inside = git_path(args).unwrap_or_default();
                Value::known(path::join(&self.world.project(), &format!(".git/{inside}")))
            }
            "git" if is_current_branch(args) => {
                let folder = self.state.cwd.clone().unwrap_or_else(|| self.world.project());
                match self.world.repository(&folder).branch {
                    Some(branch) => Value::known(branch),
                    None => Value::unknown(Origin::Output(Rc::from("git"))),
                }
            }
            "gh" | "glab" if fetches_text(args) => Value::unknown(Origin::Download),
            "aws" | "gcloud" | "az"
                if args.last().is_some_and(|arg| matches!(arg.text.as_str(), "-" | "/dev/stdout")) =>
            {
                Value::unknown(Origin::Download)
            }
            name if DOWNLOADERS.contains(&name) => Value::unknown(Origin::Download),
            name => Value::unknown(Origin::Output(Rc::from(name))),
        }
    }

    /// What a filter prints: a changed form of its input, or of the files that it reads instead.
    fn filtered(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        let input = context.stdin.as_deref().cloned().unwrap_or_default();
        if input.is_download() {
            Value::unknown(Origin::Download)
        } else if input.text.is_empty() && input.is_known() {
            self.filtered_files(name, args)
        } else {
            Value::unknown(Origin::Decoded)
        }
    }

    /// What a filter prints that reads files instead of its input.
    fn filtered_files(&mut self, name: &str, args: &[Value]) -> Value {
        let downloads = args.iter().any(|arg| self.content(arg).is_download());
        let origin = if downloads { Origin::Download } else { Origin::Output(Rc::from(name)) };
        Value::unknown(origin)
    }

    fn shown(&mut self, name: &str, args: &[Value], stdin: Value) -> Value {
        let files: Vec<&Value> =
            args.iter().filter(|arg| !arg.text.starts_with('-') || arg.text == "-").collect();
        if name == "tee" || name == "sponge" {
            for file in &files {
                if let Some(path) = self.absolute(file) {
                    self.write_file(path, stdin.clone());
                }
            }
            return stdin;
        }
        if files.is_empty() {
            return stdin;
        }
        let mut whole = Value::default();
        for file in files.iter().take(64) {
            let content = if file.text == "-" { stdin.clone() } else { self.content(file) };
            whole.push(&content);
        }
        whole
    }

    fn decoded(&mut self, name: &str, decodes: bool, args: &[Value], stdin: Value) -> Value {
        if !decodes && name != "uudecode" {
            return if stdin.is_download() {
                stdin
            } else {
                Value::unknown(Origin::Output(Rc::from("base64")))
            };
        }
        let file = args.iter().find(|arg| !arg.text.starts_with('-'));
        let input = match file {
            Some(file) => self.content(file),
            None => stdin,
        };
        if input.is_download() {
            return input;
        }
        match input.literal().filter(|_| name != "base32").and_then(escape::base64) {
            Some(text) => {
                self.step(text.len() / 16);
                Value::known(text)
            }
            None => Value::unknown(Origin::Decoded),
        }
    }

    /// Files that a downloader writes, by its options or by the address.
    pub(super) fn note_downloads(&mut self, name: &str, args: &[Value]) -> bool {
        let mut to_file = false;
        let mut folder: Option<Value> = None;
        let mut names = Vec::new();
        let mut addresses = Vec::new();
        let mut remote_name = name == "wget" || name == "wget2" || name == "aria2c" || name == "axel";
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            at += 1;
            let text = arg.text.as_str();
            let mut take = |glued: &str| -> Option<Value> {
                if let Some(value) =
                    arg.after(glued).filter(|value| !value.text.is_empty() || !value.holes.is_empty())
                {
                    return Some(value);
                }
                let value = args.get(at).cloned();
                at += 1;
                value
            };
            let lower = text.to_ascii_lowercase();
            match text {
                "-o" | "--output" | "-O" | "--output-document" | "--out" => {
                    if text == "-O" && name.starts_with("curl") {
                        remote_name = true;
                        continue;
                    }
                    names.extend(take(text));
                }
                "--remote-name" | "--remote-name-all" | "-OJ" | "-JO" | "-LO" | "-sLO" | "-fsSLO"
                | "-sSLO" | "-fLO" | "-LJO" => {
                    remote_name = true;
                }
                "-P" | "--directory-prefix" | "--output-dir" | "-d" | "--dir"
                    if name != "curl" || text == "--output-dir" =>
                {
                    folder = take(text);
                }
                _ if text.starts_with("--output=") || text.starts_with("--output-document=") => {
                    names.extend(arg.split_at_sign('=').map(|(_, value)| value));
                }
                _ if lower == "-outfile" || lower == "-destination" => names.extend(take(text)),
                _ if text.starts_with("--") => {}
                _ if text.len() > 2 && text.starts_with('-') => {
                    let letter = if name.starts_with("wget") { 'O' } else { 'o' };
                    // Browsers for text spell words with one dash.
                    let has_words = matches!(name, "links" | "elinks" | "lynx" | "w3m" | "lwp-request");
                    match text.find(letter).filter(|_| !has_words) {
                        Some(found) if found + 1 == text.len() => {
                            names.extend(args.get(at).cloned());
                            at += 1;
                        }
                        Some(found)
                            if text.get(1..found).is_some_and(|flags| {
                                flags.chars().all(|sign| "sSfLkqnNiI#".contains(sign))
                            }) =>
                        {
                            names.push(arg.slice(found + 1, text.len()));
                        }
                        _ if name.starts_with("curl") && text.contains('O') => remote_name = true,
                        _ => {}
                    }
                }
                _ if text.starts_with('-') => {}
                _ => addresses.push(arg.clone()),
            }
        }
        if names.is_empty() && remote_name {
            for address in addresses.iter().take(16) {
                let text = address.text.split(['?', '#']).next().unwrap_or("");
                let text = text.split_once("://").map_or(text, |(_, rest)| rest);
                let name = if text.contains('/') { path::file_name(text) } else { "" };
                names.push(Value::known(if name.is_empty() || text.ends_with('/') {
                    "index.html"
                } else {
                    name
                }));
            }
        }
        for file in names {
            if file.text == "-" || file.text == "/dev/stdout" {
                return false;
            }
            to_file = true;
            let file = match &folder {
                Some(folder) if folder.is_known() => Value::known(format!("{}/{}", folder.text, file.text)),
                _ => file,
            };
            // The same spelling means the same path, even if the path is not known.
            let path = self.absolute(&file).unwrap_or_else(|| format!("?{}", file.show()));
            self.write_file(path, Value::unknown(Origin::Download));
        }
        to_file
    }
}

/// `gh gist view`, `gh api`: their output comes from others.
fn fetches_text(args: &[Value]) -> bool {
    let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).take(3).collect();
    matches!(
        &words[..],
        ["gist" | "snippet", "view", ..] | ["api", ..] | ["release", "download" | "view", ..]
    )
}

/// Whether the words are `git branch --show-current` or similar.
fn is_current_branch(args: &[Value]) -> bool {
    let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    matches!(
        &words[..],
        ["branch", "--show-current"]
            | ["rev-parse", "--abbrev-ref", "HEAD" | "@"]
            | ["symbolic-ref", "--short", ..]
    )
}

fn last(args: &[Value]) -> Value {
    args.iter().rfind(|arg| !arg.text.starts_with('-')).cloned().unwrap_or_default()
}

/// The names that a listing of these operands prints, one on each line.
fn listed(args: &[Value]) -> Value {
    let mut value = Value::default();
    for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
        value.push(arg);
        value.push_text("\n");
    }
    value
}

/// `git rev-parse --git-path hooks`: the path below git's own folder.
fn git_path(args: &[Value]) -> Option<&str> {
    let at = args.iter().position(|arg| arg.text == "rev-parse")?;
    let words: Vec<&str> = args.iter().skip(at + 1).map(|arg| arg.text.as_str()).collect();
    let is_folder = |word: &&str| matches!(*word, "--git-dir" | "--git-common-dir" | "--absolute-git-dir");
    match words.iter().position(|word| *word == "--git-path") {
        Some(at) => words.get(at + 1).copied(),
        None => words.iter().any(is_folder).then_some(""),
    }
}

fn joined(args: &[Value]) -> Value {
    let mut value = Value::default();
    for (number, arg) in args.iter().enumerate() {
        if number > 0 {
            value.push_text(" ");
        }
        value.push(arg);
    }
    value.globs.clear();
    value.push_text("\n");
    value
}

fn echo(args: &[Value]) -> Value {
    let flags = args
        .iter()
        .take_while(|arg| {
            arg.text.len() > 1
                && arg
                    .text
                    .strip_prefix('-')
                    .is_some_and(|rest| rest.chars().all(|sign| "neE".contains(sign)))
        })
        .count();
    let escapes = args.iter().take(flags).any(|arg| arg.text.contains('e'));
    let mut value = joined(args.get(flags..).unwrap_or(&[]));
    if (escapes || value.text.contains('\\')) && value.is_known() {
        value = Value { text: escape::unescape(&value.text), variables: value.variables, ..Value::default() };
    }
    value
}

fn printf(args: &[Value]) -> Value {
    let args = match args {
        [flag, _, rest @ ..] if flag.text == "-v" => rest,
        [flag, rest @ ..] if flag.text == "--" => rest,
        args => args,
    };
    let Some((format, mut values)) = args.split_first() else { return Value::default() };
    let Some(format) = format.literal() else { return joined(args) };
    let format = escape::unescape(format);
    let mut out = Value::default();
    for _ in 0..64 {
        let before = values.len();
        let mut rest = format.as_str();
        while let Some(at) = rest.find('%') {
            let (text, tail) = rest.split_at(at);
            out.push_text(text);
            let mut length = 1;
            let conversion = loop {
                match tail.as_bytes().get(length) {
                    None => break b'%',
                    Some(byte) if byte.is_ascii_alphabetic() || *byte == b'%' => break *byte,
                    Some(_) => length += 1,
                }
            };
            rest = tail.get(length + 1..).unwrap_or("");
            if conversion == b'%' {
                out.push_text("%");
                continue;
            }
            if let Some((value, others)) = values.split_first() {
                match (conversion, value.literal()) {
                    (b'b', Some(text)) => out.push_text(&escape::unescape(text)),
                    (b'c', Some(text)) => out.push_text(text.get(..1).unwrap_or("")),
                    _ => out.push(value),
                }
                values = others;
            }
        }
        out.push_text(rest);
        if values.is_empty() || values.len() == before {
            break;
        }
    }
    out.globs.clear();
    out
}

fn dirname(mut value: Value) -> Value {
    let cut = value.text.trim_end_matches('/').rfind('/');
    match (value.is_known(), cut) {
        (true, Some(0)) => value = Value::known("/"),
        (true, Some(at)) => value.text.truncate(at),
        (true, None) => value = Value::known("."),
        _ => {}
    }
    value.globs.clear();
    value
}

/// A part of something known is not known.
fn passed(stdin: &Value) -> Value {
    if stdin.is_download() { Value::unknown(Origin::Download) } else { stdin.clone() }
}

/// The words of a text that is piped into `xargs`.
pub(super) fn words_of(stdin: &Value) -> Vec<Value> {
    if stdin.text.trim().is_empty() && !stdin.holes.is_empty() || stdin.text.len() > 65_536 {
        return vec![
            stdin
                .holes
                .first()
                .map_or_else(|| Value::unknown(Origin::Input), |(_, origin)| Value::unknown(origin.clone())),
        ];
    }
    let mut out = Vec::new();
    let mut from = 0;
    for (at, sign) in stdin.text.char_indices().chain([(stdin.text.len(), ' ')]) {
        if matches!(sign, ' ' | '\n' | '\t' | '\0') {
            if at > from {
                out.push(stdin.slice(from, at));
            }
            from = at + sign.len_utf8();
        }
        if out.len() >= 256 {
            break;
        }
    }
    out
}

/// The variables that the words of a command set, as with `env` and `sudo`.
pub(super) fn leading_assignments(args: &[Value]) -> Vec<(String, Value)> {
    args.iter()
        .filter(|arg| wrappers::is_assignment(&arg.text))
        .filter_map(|arg| arg.split_at_sign('='))
        .map(|(name, value)| (name.text, value))
        .take(64)
        .collect()
}
