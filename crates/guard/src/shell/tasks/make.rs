//! Makefiles: variables, rules and recipes, as far as their plain text shows.

use super::*;
use crate::shell::wrappers;
use std::collections::HashMap;

/// How deep variables are expanded within each other. A Makefile that refers to itself ends here.
const MAX_EXPANSION_DEPTH: u32 = 8;
/// How many included files are read, also indirectly.
const MAX_INCLUDED_FILES: usize = 8;
/// Longest recipe line after expansion.
const MAX_LINE_BYTES: usize = 16 << 10;

#[derive(Default)]
struct Makefile {
    variables: HashMap<String, String>,
    rules: Vec<MakeRule>,
}

/// `targets: needs`, and the lines of the recipe below it.
struct MakeRule {
    targets: Vec<String>,
    needs: Vec<String>,
    recipe: Vec<String>,
}

impl Shell<'_> {
    pub(super) fn make(&mut self, args: &[Value], context: &Context) {
        const VALUED: wrappers::Options = wrappers::Options {
            short: "CfIjloWE",
            long: &["--directory", "--file", "--makefile", "--jobs", "--eval"],
        };
        let Some(folder) = self.task_folder(args, &["-C", "--directory"]) else { return };
        let named = makefile_of(args).or_else(|| self.state.variables.get("MAKEFILES")?.first().cloned());
        let names: Vec<&str> = match &named {
            Some(file) if file.is_known() => vec![file.text.as_str()],
            Some(_) => return,
            None => vec!["GNUmakefile", "makefile", "Makefile"],
        };
        if args
            .iter()
            .any(|arg| matches!(arg.text.as_str(), "-n" | "--dry-run" | "--just-print" | "--version"))
        {
            return;
        }
        let mut given = HashMap::new();
        let mut targets = Vec::new();
        for word in VALUED.operands(args) {
            match word.split_at_sign('=') {
                Some((name, value)) if word.is_known() => {
                    let name = name.text.trim_end_matches([':', '?', '+']).to_owned();
                    if name == "SHELL" {
                        self.in_subshell(|shell| shell.source_value(&value, "make", &context.deeper()));
                    }
                    given.insert(name, value.text);
                }
                _ => targets.push(word.text.clone()),
            }
        }
        let given_file = names.first().is_some_and(|name| matches!(*name, "-" | "/dev/stdin"));
        if given_file && context.stdin.as_deref().is_some_and(Value::is_download) {
            self.ran(Origin::Download, "make", context);
        }
        let file = if given_file {
            let text =
                context.stdin.as_deref().filter(|stdin| stdin.is_known()).map(|stdin| stdin.text.clone());
            let path = path::join(&folder, "-");
            text.map(|text| TaskFile { folder, path, text, on_disk: false })
        } else {
            self.task_file(&folder, &names, "make", context)
        };
        let file = match value_of(args, &["--eval", "-E"]).filter(Value::is_known) {
            Some(said) => {
                for text in shell_calls(&said.text) {
                    let text = Value::known(text);
                    self.in_subshell(|shell| shell.source_value(&text, "make", &context.deeper()));
                }
                Some(with_said(file, said.text, self.state.cwd.as_deref()))
            }
            None => file,
        };
        let Some(mut file) = file else { return };
        self.include(&mut file, context);
        if !self.step(file.text.len() / 32) {
            return;
        }
        let mut makefile = Makefile::parse(&file.text);
        makefile.variables.extend(given);
        if targets.is_empty() {
            let first = makefile
                .rules
                .iter()
                .flat_map(|rule| rule.targets.first())
                .find(|name| !name.starts_with('.') && !name.contains(['%', '$']));
            targets.extend(first.cloned());
        }
        for target in targets.iter().take(8) {
            self.make_target(&makefile, &file, target, context, 0);
        }
    }

    /// Replaces the `include` lines of a Makefile by the files. A file of environment variables
    /// only sets values, so it stays out.
    fn include(&mut self, file: &mut TaskFile, context: &Context) {
        for _ in 0..MAX_INCLUDED_FILES {
            let mut at = 0;
            let found = file.text.split_inclusive('\n').find_map(|line| {
                let from = at;
                at += line.len();
                Some((from..at, included(line)?.to_owned()))
            });
            let Some((line, names)) = found else { return };
            let mut text = String::new();
            for name in names.split_whitespace().take(MAX_INCLUDED_FILES) {
                if crate::secrets::is_env_file(path::file_name(name)) || name.contains(['$', '*', '?']) {
                    continue;
                }
                let Some(other) = self.task_file(&file.folder, &[name], "make", context) else { continue };
                text.push_str(&other.text);
                text.push('\n');
                file.on_disk &= other.on_disk;
            }
            if file.text.len() + text.len() > TASK_FILE_BYTES {
                return;
            }
            file.text.replace_range(line, &text);
        }
    }

    fn make_target(
        &mut self,
        makefile: &Makefile,
        file: &TaskFile,
        target: &str,
        context: &Context,
        depth: u32,
    ) {
        if depth > MAX_EXPANSION_DEPTH || !self.begins_task(file, target) {
            return;
        }
        let fits = |rule: &&MakeRule| rule.targets.iter().any(|name| name == target);
        for rule in makefile.rules.iter().filter(fits) {
            for need in rule.needs.iter().take(MAX_TASKS) {
                self.make_target(makefile, file, need, context, depth + 1);
            }
            for line in &rule.recipe {
                let line = line.trim_start_matches(['@', '-', '+', ' ', '\t']);
                let text = makefile.expanded(line, target, 0);
                if !self.step(text.len() / 16 + 4) {
                    return;
                }
                self.run_task(file, &text, &[], context);
            }
        }
    }
}

/// The files that a line of a Makefile includes.
fn included(line: &str) -> Option<&str> {
    let line = line.split('#').next()?;
    ["include ", "-include ", "sinclude "].iter().find_map(|word| line.strip_prefix(word))
}

/// The commands in `$(shell …)`.
fn shell_calls(text: &str) -> Vec<&str> {
    let inside = |rest: &'_ str| {
        let mut open = 0;
        rest.find(|sign| {
            open += i32::from(sign == '(') - i32::from(sign == ')');
            open < 0
        })
    };
    text.split("$(shell ")
        .skip(1)
        .take(16)
        .map(|rest| rest.get(..inside(rest).unwrap_or(rest.len())).unwrap_or(rest))
        .collect()
}

/// A Makefile with the text of `--eval` before it.
fn with_said(file: Option<TaskFile>, mut text: String, cwd: Option<&str>) -> TaskFile {
    let folder = file.as_ref().map_or_else(|| cwd.unwrap_or("/").to_owned(), |file| file.folder.clone());
    if let Some(file) = &file {
        text.push('\n');
        text.push_str(&file.text);
    }
    let path = path::join(&folder, "--eval");
    TaskFile { folder, path, text, on_disk: false }
}

impl Makefile {
    fn parse(text: &str) -> Self {
        let mut makefile = Self::default();
        let mut in_rule = false;
        let mut lines = text.lines();
        while let Some(first) = lines.next() {
            let mut line = first.to_owned();
            while line.ends_with('\\') && line.len() < MAX_LINE_BYTES {
                let Some(next) = lines.next() else { break };
                // The shell joins the lines of a recipe itself.
                line.push('\n');
                line.push_str(next.strip_prefix('\t').unwrap_or(next));
            }
            if let Some(recipe) = line.strip_prefix('\t').filter(|_| in_rule) {
                if let Some(rule) = makefile.rules.last_mut() {
                    rule.recipe.push(recipe.to_owned());
                }
                continue;
            }
            let plain = line.replace("\\\n", " ");
            let plain = plain.split(" #").next().unwrap_or("").trim();
            if plain.is_empty() || plain.starts_with('#') {
                continue;
            }
            if let Some((targets, rest)) = rule_line(plain) {
                let (needs, recipe) =
                    rest.split_once(';').map_or((rest, None), |(needs, line)| (needs, Some(line)));
                let words = |text: &str| -> Vec<String> {
                    makefile.expanded(text, "", 0).split_whitespace().take(64).map(str::to_owned).collect()
                };
                let rule = MakeRule {
                    targets: words(targets),
                    needs: words(&needs.replace('|', " ")),
                    recipe: Vec::from_iter(recipe.map(str::to_owned)),
                };
                makefile.rules.push(rule);
                in_rule = true;
            } else if let Some((name, value)) = plain.split_once('=') {
                let name = name.trim_end_matches([':', '?', '+', '!']).trim();
                let name =
                    name.strip_prefix("export ").or(name.strip_prefix("override ")).unwrap_or(name).trim();
                if !name.contains(char::is_whitespace) && makefile.variables.len() < 1024 {
                    makefile.variables.insert(name.to_owned(), value.trim().to_owned());
                }
            }
        }
        makefile
    }

    /// A text with make's variables replaced. A function of make becomes an unknown variable,
    /// `$(shell x)` the shell's own `$(x)`.
    fn expanded(&self, text: &str, target: &str, depth: u32) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(rest.get(..at).unwrap_or(""));
            let tail = rest.get(at + 1..).unwrap_or("");
            let Some(sign) = tail.chars().next() else { break };
            let (value, length) = match sign {
                '$' => ("$".to_owned(), 1),
                '@' => (target.to_owned(), 1),
                '(' | '{' => {
                    let close = closing(tail);
                    let name = tail.get(1..close).unwrap_or("").trim();
                    (self.variable(name, target, depth), close + 1)
                }
                other => (String::from("${__make}"), other.len_utf8()),
            };
            if out.len() + value.len() > MAX_LINE_BYTES {
                break;
            }
            out.push_str(&value);
            rest = tail.get(length..).unwrap_or("");
        }
        if out.len() + rest.len() <= MAX_LINE_BYTES {
            out.push_str(rest);
        }
        out
    }

    fn variable(&self, name: &str, target: &str, depth: u32) -> String {
        if depth > MAX_EXPANSION_DEPTH {
            return String::from("${__make}");
        }
        if let Some(command) = name.strip_prefix("shell ") {
            return format!("$({})", self.expanded(command, target, depth + 1));
        }
        match (self.variables.get(name), name) {
            (Some(value), _) => self.expanded(value, target, depth + 1),
            (None, "MAKE") => "make".to_owned(),
            (None, "CURDIR") => ".".to_owned(),
            (None, "@") => target.to_owned(),
            (None, name)
                if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                    && !name.is_empty() =>
            {
                format!("${{{name}}}")
            }
            _ => String::from("${__make}"),
        }
    }
}

/// `targets: needs`, but no assignment.
fn rule_line(line: &str) -> Option<(&str, &str)> {
    let (targets, rest) = line.split_once(':')?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let is_rule = !targets.contains('=') && !rest.starts_with('=');
    // `target: NAME = value` sets a variable for one target.
    let sets = rest.split([';', '#']).next().is_some_and(|needs| needs.contains('='));
    (is_rule && !sets).then_some((targets, rest))
}

/// Where the bracket at the start of a text closes.
fn closing(text: &str) -> usize {
    let (open, close) = if text.starts_with('{') { ('{', '}') } else { ('(', ')') };
    let mut level = 0usize;
    for (at, sign) in text.char_indices() {
        if sign == open {
            level += 1;
        } else if sign == close {
            level -= 1;
            if level == 0 {
                return at;
            }
        }
    }
    text.len()
}

/// The Makefile that is named, glued to its option or not.
fn makefile_of(args: &[Value]) -> Option<Value> {
    let glued = |arg: &Value| arg.after("-f").filter(|file| !file.text.is_empty() || !file.is_known());
    value_of(args, &["-f", "--file", "--makefile"]).or_else(|| args.iter().find_map(glued))
}
