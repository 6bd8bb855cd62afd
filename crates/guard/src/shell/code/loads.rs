//! What a program loads and runs as a program: modules of its folder, files, addresses.

use super::*;

/// Calls and words that run another program of the language.
const LOADERS: &[&str] = &[
    "import",
    "require",
    "require_relative",
    "require_once",
    "include",
    "include_once",
    "source",
    "load",
    "loadstring",
    "dofile",
    "eval",
    "exec",
];
/// Parts of names that say that something comes from the network.
const NETWORK_WORDS: &[&str] = &[
    "http",
    "urlopen",
    "requests",
    "fetch",
    "urllib",
    "LWP",
    "open-uri",
    "socket",
    "URI.open",
    "download",
    "HTTP::Tiny",
    "WebClient",
];
/// In languages without a table of their own: calls that run a command.
const RUNNING_WORDS: &[&str] = &["cmd", "command", "program", "shell", "run", "sh"];

impl Scan<'_, '_, '_> {
    /// Follows what a name loads; false where it loads nothing.
    pub(super) fn loads(&mut self, name: &str, tokens: &[Token], at: usize) -> bool {
        let last = name.rsplit(['.', ':', '>', '/']).next().unwrap_or(name);
        if self.language == Language::Python && matches!(name, "import" | "from") && !self.context.from_file {
            return self.imports(tokens, at);
        }
        if self.language == Language::Other && RUNNING_WORDS.contains(&last) {
            return self.runs(tokens, at);
        }
        if matches!(last, "urlretrieve" | "download_file")
            || (last == "copy" && self.language == Language::Php)
        {
            return self.retrieves(tokens, at + 2);
        }
        if !LOADERS.contains(&last) {
            return false;
        }
        let end = self.skip_expression(tokens, at + 1).min(at + 64);
        let inside = tokens.get(at + 1..end).unwrap_or(&[]);
        let address = inside.iter().any(
            |token| matches!(token, Token::Text(text) if text.starts_with("http://") || text.starts_with("https://")),
        );
        let is_called_back = last == "eval" && matches!(tokens.get(at + 1), Some(Token::Sign(')' | ',')));
        let is_variable = matches!(last, "eval" | "exec")
            && matches!(inside, [Token::Sign('('), Token::Name(_), Token::Sign(')'), ..]);
        let network = NETWORK_WORDS.iter().any(|word| self.code.contains(word));
        if address || ((is_called_back || is_variable) && network) {
            self.shell.ran(Origin::Download, "code", &self.context);
            return true;
        }
        self.loads_file(last, inside)
    }

    /// `require("./x.js")`, `exec(open("x.py").read())`.
    fn loads_file(&mut self, last: &str, inside: &[Token]) -> bool {
        let reads = inside.iter().any(|token| {
            matches!(token, Token::Name(name) if name.ends_with("open") || name.contains("read") || name.ends_with("file_get_contents"))
        });
        let file = inside.iter().find_map(|token| match token {
            Token::Text(text) => Some(text.clone()),
            _ => None,
        });
        let Some(file) = file.filter(|_| !self.context.from_file) else { return false };
        let is_path = file.starts_with("./") || file.starts_with("../") || file.starts_with('/');
        let runs_text = matches!(last, "eval" | "exec") && reads;
        let names_file = matches!(last, "require_relative" | "load" | "include" | "require_once" | "dofile");
        if !(runs_text || names_file || (is_path && matches!(last, "require" | "import"))) {
            return false;
        }
        let interpreter = match self.language {
            Language::Python => "python3",
            Language::Node => "node",
            Language::Ruby => "ruby",
            Language::Php => "php",
            Language::Perl => "perl",
            _ => return false,
        };
        let context = self.context.deeper();
        self.shell.load_file(&Value::known(file), interpreter, &context);
        // What it reads is read too.
        false
    }

    /// `import x, y` and `from x import y`: modules of the folder, and names that calls get.
    fn imports(&mut self, tokens: &[Token], at: usize) -> bool {
        let is_start = at == 0 || matches!(tokens.get(at - 1), Some(Token::Sign(';')));
        if !is_start {
            return false;
        }
        let modules: Vec<String> = tokens
            .iter()
            .skip(at + 1)
            .take_while(|token| !matches!(token, Token::Sign(';')))
            .filter_map(|token| match token {
                Token::Name(name) if name != "import" && name != "as" => Some(name.clone()),
                _ => None,
            })
            .take(8)
            .collect();
        let context = self.context.deeper();
        for module in modules {
            self.shell.import(&module, "python3", &context);
        }
        true
    }

    /// A call that runs a command, in a language without a table: `System.cmd("sudo", ["id"])`,
    /// `(shell "sudo id")`.
    fn runs(&mut self, tokens: &[Token], at: usize) -> bool {
        let open = match (tokens.get(at + 1), tokens.get(at + 2)) {
            (Some(Token::Sign('(')), Some(Token::Text(_) | Token::Command(_))) => at + 2,
            (Some(Token::Sign('(')), Some(Token::Sign('~'))) => at + 4,
            (Some(Token::Text(_) | Token::Command(_)), _) => at + 1,
            _ => return false,
        };
        self.process(tokens, open);
        true
    }

    /// A file that is written from an address.
    fn retrieves(&mut self, tokens: &[Token], open: usize) -> bool {
        let from = self.expression(tokens, open).value;
        let at = self.skip_expression(tokens, open);
        let is_address = from.is_some_and(|from| from.text.starts_with("http"));
        if !is_address || tokens.get(at) != Some(&Token::Sign(',')) {
            return false;
        }
        if let Some(path) = self.expression(tokens, at + 1).value.and_then(|file| self.shell.absolute(&file))
        {
            self.shell.write_file(path, Value::unknown(Origin::Download));
        }
        true
    }
}
