//! Programs with a language of their own that can run a line in a shell: debuggers, SQL clients,
//! `ed`, `socat`.

use super::*;

/// Lines of such a program's input that are looked at.
const MAX_LINES: usize = 256;

impl Shell<'_> {
    /// Runs what the commands of such a program run.
    pub(super) fn run_escapes(
        &mut self,
        name: &str,
        args: &[Value],
        options: &[&str],
        marks: &[&str],
        context: &Context,
    ) {
        let mut texts: Vec<String> = Vec::new();
        if options.is_empty() {
            texts.extend(args.iter().filter(|arg| !arg.text.starts_with('-')).map(|arg| arg.text.clone()));
            let input = context.stdin.as_deref().map_or("", |stdin| stdin.text.as_str());
            texts.extend(input.lines().take(MAX_LINES).map(str::to_owned));
        } else {
            texts.extend(values_of(args, options).into_iter().map(|value| value.text));
        }
        let lines: Vec<String> = texts
            .iter()
            .filter_map(|text| escaped(text.trim_start(), marks))
            .map(str::to_owned)
            .take(16)
            .collect();
        for line in lines {
            let line = Value::known(line);
            self.in_subshell(|shell| shell.source_value(&line, name, &context.deeper()));
        }
    }
}

/// The line that a command of such a program gives to a shell.
fn escaped<'t>(text: &'t str, marks: &[&str]) -> Option<&'t str> {
    marks.iter().find_map(|mark| {
        if mark.ends_with(['(', '=']) {
            let inside = text.split_once(mark)?.1;
            let inside = inside.trim_start_matches([' ', '"', '\'', '[']);
            return inside.split([')', '"', '\'']).next();
        }
        // Options of the address follow a comma.
        let rest = text.strip_prefix(mark)?;
        Some(if mark.ends_with(':') { rest.split(',').next().unwrap_or(rest) } else { rest })
    })
}
