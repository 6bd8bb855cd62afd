//! Commands in places where a reader expects none: subscripts, prompts, start-up files of shells,
//! scripts of `sed`, copies of programs.

use super::*;

/// How many copies of programs are remembered. A text that makes more is not worth following.
const MAX_COPIES: usize = 64;
/// Folders of the system's programs.
const PROGRAM_FOLDERS: &[&str] =
    &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];

impl Shell<'_> {
    /// `a[$(…)]`: a subscript is expanded.
    pub(in crate::shell) fn subscript(&mut self, index: Option<&str>, context: &Context) {
        if let Some(index) = index.filter(|index| substitutes(index)) {
            self.prompt(&Value::known(index), context);
        }
    }

    /// Expands a text as in double quotes, like a prompt.
    pub(in crate::shell) fn prompt(&mut self, text: &Value, context: &Context) {
        if !substitutes(&text.text) || context.depth > MAX_DEPTH {
            return;
        }
        let mut line = Value::known(": \"");
        line.push(text);
        line.push_text("\"");
        self.in_subshell(|shell| shell.source_value(&line, "the shell", &context.deeper()));
    }

    /// `PS4='$(…)'`: a shell expands this each time that it prompts.
    pub(in crate::shell) fn prompt_variable(&mut self, name: &str, value: Option<&Value>, context: &Context) {
        if let Some(value) = value.filter(|_| matches!(name, "PS0" | "PS1" | "PS2" | "PS3" | "PS4")) {
            self.prompt(value, context);
        }
    }

    /// The files that a shell runs before anything else.
    pub(super) fn startup_files(&mut self, args: &[Value], context: &Context) {
        let named = ["BASH_ENV", "ENV"].iter().filter_map(|name| self.state.variables.get(*name)?.first());
        let mut files: Vec<Value> = named.cloned().collect();
        files.extend(value_of(args, &["--rcfile", "--init-file"]));
        for file in files.iter().filter(|file| file.is_known()) {
            self.in_subshell(|shell| {
                // The file that is read first does not name itself again.
                shell.state.variables.remove("BASH_ENV");
                shell.state.variables.remove("ENV");
                shell.script(file, &[], "source", &context.deeper())
            });
        }
    }

    /// `hash -p /bin/rm ls`: the name now means another program.
    pub(super) fn remember_program(&mut self, args: &[Value]) {
        let [option, program, names @ ..] = args else { return };
        if option.text != "-p" || !program.is_known() {
            return;
        }
        for name in names.iter().take(16) {
            self.state.aliases.insert(name.text.clone(), Rc::from(program.text.as_str()));
        }
    }

    /// Notes a copy of one of the system's programs.
    pub(super) fn note_program(&mut self, source: &str, target: &str, to: &Value) {
        let name = path::file_name(source);
        if self.programs.len() >= MAX_COPIES {
            return;
        }
        let copied = self.programs.get(source).cloned();
        let copied =
            copied.or_else(|| PROGRAM_FOLDERS.contains(&path::parent(source)).then(|| name.to_owned()));
        let Some(copied) = copied else { return };
        let is_folder = to.text.ends_with('/') || matches!(to.text.as_str(), "." | "..");
        let target = if is_folder { path::join(target, name) } else { target.to_owned() };
        self.programs.insert(target, copied);
    }

    /// The program behind a word that names a copy that the text made.
    pub(super) fn copied_program(&self, word: &Value) -> Option<String> {
        if self.programs.is_empty() || !word.text.contains('/') {
            return None;
        }
        self.programs.get(&self.absolute(word)?).cloned()
    }

    /// `sed '1e CMD'` and `sed 's/…/CMD/e'` run commands.
    pub(super) fn sed(&mut self, args: &[Value], context: &Context) {
        let mut scripts = values_of(args, &["-e", "--expression"]);
        if scripts.is_empty() {
            scripts.extend(args.iter().find(|arg| !arg.text.starts_with('-')).cloned());
        }
        for script in scripts.iter().take(16) {
            if !self.step(script.text.len() / 16) {
                return;
            }
            for command in sed_commands(&script.text).into_iter().take(16) {
                let text = Value::known(command);
                self.in_subshell(|shell| shell.source_value(&text, "sed", &context.deeper()));
            }
        }
    }
}

fn substitutes(text: &str) -> bool {
    text.contains("$(") || text.contains('`') || text.contains("${")
}

/// The commands that a script of `sed` runs, as far as its plain text shows.
fn sed_commands(script: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in script.lines() {
        let mut rest = line;
        loop {
            let verb = without_address(rest);
            if let Some(command) = verb.strip_prefix('e').filter(|left| left.starts_with([' ', '\t'])) {
                found.push(command.trim());
                break;
            }
            let mut after = verb;
            if let Some(body) = verb.strip_prefix('s')
                && let Some(sign) = body.chars().next().filter(|sign| !sign.is_alphanumeric())
            {
                let mut parts = body.splitn(4, sign).skip(2);
                if let (Some(with), Some(flags)) = (parts.next(), parts.next()) {
                    let end = flags.find([';', '}']).unwrap_or(flags.len());
                    if flags.get(..end).is_some_and(|flags| flags.contains('e')) {
                        found.push(with);
                    }
                    after = flags;
                }
            }
            match after.split_once(';') {
                Some((_, next)) if found.len() < 16 => rest = next,
                _ => break,
            }
        }
    }
    found
}

/// The text behind the addresses of a command of `sed`.
fn without_address(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..8 {
        let plain = |sign: char| sign.is_ascii_digit() || matches!(sign, '$' | ',' | '!' | '{' | '~' | '+');
        rest = rest.trim_start_matches(|sign: char| sign.is_whitespace() || plain(sign));
        match rest.strip_prefix('/').and_then(|pattern| pattern.split_once('/')) {
            Some((_, after)) => rest = after.strip_prefix('I').unwrap_or(after),
            None => break,
        }
    }
    rest
}
