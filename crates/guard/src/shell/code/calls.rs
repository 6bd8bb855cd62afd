//! The effects of a program's calls: processes, files, evaluation.

use super::*;

impl Scan<'_, '_, '_> {
    /// A text that the program runs as a program.
    pub(super) fn evaluated(&mut self, tokens: &[Token], open: usize) {
        match self.expression(tokens, open) {
            Expression { value: Some(value), .. } if value.is_known() => {
                let inner = value.text.clone();
                if inner.len() < self.code.len() && self.context.depth < 16 {
                    let context = self.context.deeper();
                    let mut scan = Scan {
                        shell: self.shell,
                        language: self.language,
                        context,
                        known: HashMap::new(),
                        lists: HashMap::new(),
                        mentioned: HashMap::new(),
                        code: &inner,
                        prints: self.prints,
                    };
                    scan.all();
                }
            }
            Expression { hidden, .. } => {
                let network = [
                    "urlopen",
                    "requests",
                    "fetch",
                    "http",
                    "urllib",
                    "LWP",
                    "open-uri",
                    "socket",
                    "URI.open",
                    "Net::HTTP",
                ]
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

    pub(super) fn process(&mut self, tokens: &[Token], open: usize) {
        let mut words = Vec::new();
        let mut at = open;
        let mut level = 0u32;
        let mut is_list = false;
        let mut is_unknown = false;
        let mut names = 0;
        // `subprocess.run(cmd)`, where `cmd` is a list that was written out before.
        if let Some(Token::Name(name)) = tokens.get(open)
            && let Some(list) = self.lists.get(name).cloned()
            && matches!(tokens.get(open + 1), Some(Token::Sign(',' | ')')) | None)
        {
            let context = self.context.clone();
            self.shell.in_subshell(|shell| shell.run(list, Vec::new(), Vec::new(), &context));
            return;
        }
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
                    // The value of a named argument is no word of the command.
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
                    let Expression { value, hidden } = self.expression(tokens, at);
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

    pub(super) fn opened(&mut self, tokens: &[Token], open: usize) {
        // Perl: open(F, "<", "file"), open F, ".env".
        let mut texts = Vec::new();
        let mut at = open;
        while texts.len() < 3 {
            let Expression { value, hidden } = self.expression(tokens, at);
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
        let flags = ["O_WRONLY", "O_RDWR", "O_TRUNC", "O_APPEND"].iter().any(|flag| self.mentions(flag));
        let writes = flags
            || texts.iter().any(|value| {
                (is_mode(value) && value.text.contains(['w', 'a', 'x', '+', '>']))
                    || value.text.starts_with('>')
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

    pub(super) fn file(&mut self, name: &str, tokens: &[Token], open: usize) {
        match self.expression(tokens, open) {
            Expression { value: Some(value), .. } => self.command(name, &[value]),
            Expression { hidden: true, .. } => self.shell.ran(Origin::Decoded, "code", &self.context),
            Expression { hidden: false, .. } => {}
        }
    }

    /// `repo.git.reset("--hard")`: a library that calls git by the name of the method.
    pub(super) fn git_call(&mut self, verb: &str, tokens: &[Token], open: usize) {
        let mut words = vec![Value::known("git"), Value::known(verb.replace('_', "-"))];
        let mut at = open;
        while !matches!(tokens.get(at), None | Some(Token::Sign(')'))) && words.len() < 16 {
            if let Some(value) = self.expression(tokens, at).value {
                words.push(value);
            }
            at = self.skip_expression(tokens, at);
            if tokens.get(at) != Some(&Token::Sign(',')) {
                break;
            }
            at += 1;
        }
        let context = self.context.clone();
        self.shell.in_subshell(|shell| shell.run(words, Vec::new(), Vec::new(), &context));
    }

    /// A call that is in no table. If it gets a file of credentials, it reads that file.
    pub(super) fn unlisted(&mut self, last: &str, tokens: &[Token], open: usize) {
        const SAY: &[&str] = &[
            "print",
            "log",
            "puts",
            "echo",
            "warn",
            "error",
            "info",
            "debug",
            "say",
            "exists",
            "isfile",
            "existsSync",
            "expanduser",
            "join",
            "Path",
            "stat",
            "chmod",
        ];
        if SAY.contains(&last) || !matches!(tokens.get(open), Some(Token::Text(_) | Token::Name(_))) {
            return;
        }
        if let Some(value) = self.expression(tokens, open).value
            && value.is_known()
            && crate::path::is_absolute(&value.text)
            && crate::secrets::is_secret_path(&value.text, &self.shell.world.home())
        {
            self.command("cat", &[value]);
        }
    }

    pub(super) fn two_files(&mut self, name: &str, tokens: &[Token], open: usize) {
        let from = self.expression(tokens, open).value;
        let at = self.skip_expression(tokens, open);
        if let (Some(from), Some(Token::Sign(','))) = (from, tokens.get(at))
            && let Some(to) = self.expression(tokens, at + 1).value
        {
            self.command(name, &[from, to]);
        }
    }

    pub(super) fn recursive_delete(&mut self, tokens: &[Token], open: usize) {
        let value = self.expression(tokens, open).value.unwrap_or_else(|| Value::unknown(Origin::Input));
        self.command("rm", &[Value::known("-rf"), value]);
    }
}
