//! Expansion of words: braces, tildes, variables, substitutions, splitting.

mod braces;
mod fields;
mod operators;

use super::eval::{Context, Shell};
use super::syntax::*;
use super::value::{Origin, Value};
use braces::{Piece, expand_braces};
use fields::Fields;
use operators::changed;
use std::rc::Rc;

/// Longest word whose braces are expanded. A longer one becomes unknown.
const MAX_BRACED_SIGNS: usize = 4096;
impl Shell<'_> {
    /// Expands words into the arguments of a command.
    pub(super) fn words(&mut self, words: &[Word<'_>], heres: &[Here<'_>], context: &Context) -> Vec<Value> {
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            if !self.step(1) {
                break;
            }
            match word {
                Word::Plain(text)
                    if !text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{' | b'~')) =>
                {
                    out.push(Value::known(*text));
                }
                Word::Plain(text) => {
                    let part = Part::Bare(text);
                    self.fields(std::slice::from_ref(&part), heres, context, &mut out);
                }
                Word::Parts(parts) => self.fields(parts, heres, context, &mut out),
            }
        }
        out
    }

    /// Expands a word that stays one word: the value of an assignment, the target of a redirection.
    pub(super) fn word(&mut self, word: &Word<'_>, heres: &[Here<'_>], context: &Context) -> Value {
        let single;
        let parts = match word {
            Word::Plain(text) => {
                single = [Part::Bare(text)];
                &single[..]
            }
            Word::Parts(parts) => &parts[..],
        };
        let mut value = Value::default();
        for (number, part) in parts.iter().enumerate() {
            match part {
                Part::Bare(text) => {
                    let text =
                        if number == 0 { self.tilde(text, parts.len() == 1, &mut value) } else { text };
                    push_bare(&mut value, text);
                }
                other => self.part(other, heres, context, &mut value),
            }
        }
        value
    }

    /// Expands parts as in double quotes.
    pub(super) fn quoted(&mut self, parts: &[Part<'_>], heres: &[Here<'_>], context: &Context) -> Value {
        let mut value = Value::default();
        for part in parts {
            self.part(part, heres, context, &mut value);
        }
        value
    }

    fn part(&mut self, part: &Part<'_>, heres: &[Here<'_>], context: &Context, value: &mut Value) {
        if !self.step(1) {
            return;
        }
        match part {
            Part::Bare(text) => push_bare(value, text),
            Part::Quoted(text) => value.push_text(text),
            Part::Double(parts) => {
                for part in parts {
                    self.part(part, heres, context, value);
                }
            }
            Part::Param(param) => {
                let values = self.parameter(param, heres, context);
                for (number, one) in values.iter().enumerate() {
                    if number > 0 {
                        value.push_text(" ");
                    }
                    if !self.step(one.text.len() / 64 + one.holes.len()) {
                        return;
                    }
                    value.push(one);
                }
            }
            Part::Command(list) => {
                let printed = self.substitution(|shell, context| shell.list(list, heres, context), context);
                value.push(&printed);
            }
            Part::Backticks(text) => {
                let printed = self.substitution(|shell, context| shell.source(text, context), context);
                value.push(&printed);
            }
            Part::Process { list, is_input } => {
                let file = format!("/dev/fd/{}", 63 - (self.analysis.files.len() % 40));
                let printed = self.substitution(|shell, context| shell.list(list, heres, context), context);
                if *is_input {
                    self.write_file(file.clone(), printed);
                }
                value.push_text(&file);
            }
            Part::Arithmetic(parts) => {
                self.quoted(parts, heres, context);
                value.push_text("0");
            }
        }
    }

    fn substitution(&mut self, run: impl FnOnce(&mut Self, &Context) -> Value, context: &Context) -> Value {
        let inner = Context { wants_output: true, captured: true, stdin: None, ..context.deeper() };
        let mut printed = self.in_subshell(|shell| run(shell, &inner));
        let length = printed.text.trim_end_matches('\n').len();
        printed.text.truncate(length);
        for (at, _) in &mut printed.holes {
            *at = (*at).min(length);
        }
        printed
    }

    /// Expands a leading tilde. Returns the rest of the text.
    fn tilde<'t>(&self, text: &'t str, whole: bool, value: &mut Value) -> &'t str {
        let Some(rest) = text.strip_prefix('~') else { return text };
        let end = rest.find('/').unwrap_or(rest.len());
        let (user, tail) = rest.split_at(end);
        if tail.is_empty() && !whole {
            return text;
        }
        let home = self.world.home();
        match user {
            "" => value.push_text(&home),
            "+" => value.push_text(self.state.cwd.as_deref().unwrap_or("/")),
            "-" => value.push_text(self.state.old_cwd.as_deref().unwrap_or("/")),
            "root" => value.push_text("/root"),
            name if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
                if home.ends_with(&format!("/{name}")) {
                    value.push_text(&home);
                } else {
                    value.push_text(&format!("/home/{name}"));
                }
            }
            _ => return text,
        }
        tail
    }

    fn fields(&mut self, parts: &[Part<'_>], heres: &[Here<'_>], context: &Context, out: &mut Vec<Value>) {
        let has_braces = parts.iter().any(|part| matches!(part, Part::Bare(text) if text.contains('{')));
        if !has_braces {
            self.split_fields(parts.iter().map(FieldPart::Part), heres, context, out);
            return;
        }
        let mut pieces = Vec::new();
        for part in parts {
            match part {
                Part::Bare(text) => pieces.extend(text.chars().map(Piece::Sign)),
                part => pieces.push(Piece::Part(part)),
            }
        }
        self.step(pieces.len() / 16);
        if pieces.len() > MAX_BRACED_SIGNS {
            let mut value = Value::unknown(Origin::Decoded);
            for part in parts {
                self.part(part, heres, context, &mut value);
            }
            out.push(value);
            return;
        }
        let mut expanded = Vec::new();
        expand_braces(&pieces, &mut expanded, 0);
        self.step(expanded.iter().map(Vec::len).sum::<usize>() / 4);
        for word in expanded {
            let mut parts = Vec::new();
            for piece in word {
                match piece {
                    Piece::Sign(sign) => match parts.last_mut() {
                        Some(FieldPart::Text(text)) => text.push(sign),
                        _ => parts.push(FieldPart::Text(String::from(sign))),
                    },
                    Piece::Part(part) => parts.push(FieldPart::Part(part)),
                }
            }
            self.split_fields(parts.into_iter(), heres, context, out);
        }
    }

    fn split_fields<'a, 's: 'a>(
        &mut self,
        parts: impl Iterator<Item = FieldPart<'a, 's>>,
        heres: &[Here<'_>],
        context: &Context,
        out: &mut Vec<Value>,
    ) {
        let separators = match self.state.variables.get("IFS").and_then(|values| values.first()) {
            Some(value) if value.is_known() => value.text.clone(),
            _ => " \t\n".to_owned(),
        };
        let mut fields = Fields::default();
        let mut is_first = true;
        for part in parts {
            match &part {
                FieldPart::Text(text) => self.bare_field(text, is_first, &mut fields),
                FieldPart::Part(Part::Bare(text)) => self.bare_field(text, is_first, &mut fields),
                FieldPart::Part(Part::Quoted(text)) => fields.quoted(text),
                FieldPart::Part(Part::Double(parts)) => {
                    fields.started = true;
                    if let [Part::Param(param)] = &parts[..]
                        && (param.name == "@" || param.index == Some("@"))
                    {
                        let values = self.parameter(param, heres, context);
                        for (number, value) in values.iter().enumerate() {
                            if number > 0 {
                                fields.end();
                            }
                            fields.value(value);
                        }
                        if values.is_empty() {
                            fields.started = false;
                        }
                    } else {
                        let value = self.quoted(parts, heres, context);
                        fields.value(&value);
                    }
                }
                FieldPart::Part(Part::Param(param)) => {
                    let values = self.parameter(param, heres, context);
                    for (number, value) in values.iter().enumerate() {
                        if number > 0 {
                            fields.end();
                        }
                        if !self.step(value.text.len() / 16 + value.holes.len()) {
                            return;
                        }
                        let value = with_globs(value);
                        fields.split(&value, &separators);
                    }
                }
                FieldPart::Part(part @ (Part::Command(_) | Part::Backticks(_))) => {
                    let mut value = Value::default();
                    self.part(part, heres, context, &mut value);
                    fields.split(&with_globs(&value), &separators);
                }
                FieldPart::Part(part) => {
                    let mut value = Value::default();
                    self.part(part, heres, context, &mut value);
                    fields.value(&value);
                }
            }
            is_first = false;
        }
        fields.end();
        out.append(&mut fields.done);
    }

    fn bare_field(&self, text: &str, is_first: bool, fields: &mut Fields) {
        let rest = if is_first { self.tilde(text, true, &mut fields.current) } else { text };
        push_bare(&mut fields.current, rest);
        fields.started = true;
    }

    /// The values of a variable, before its operator.
    fn variable(&self, name: &str, index: Option<&str>) -> Option<Vec<Value>> {
        match name {
            "@" | "*" => return Some(self.state.arguments.clone()),
            "#" | "?" | "$" | "!" | "-" | "RANDOM" | "SECONDS" | "LINENO" | "UID" | "EUID" | "PPID"
            | "BASHPID" | "SRANDOM" | "EPOCHSECONDS" | "SHLVL" => {
                return Some(vec![Value::known("0")]);
            }
            "0" => {
                let called_as = self.state.called_as.clone();
                return Some(vec![called_as.unwrap_or_else(|| Value::known("sh"))]);
            }
            "PWD" => {
                return Some(vec![match &self.state.cwd {
                    Some(cwd) => Value::known(cwd.clone()),
                    None => Value::unknown(Origin::Variable(Rc::from("PWD"))),
                }]);
            }
            "OLDPWD" => return self.state.old_cwd.clone().map(|cwd| vec![Value::known(cwd)]),
            _ => {}
        }
        if let Ok(number) = name.parse::<usize>() {
            return self.state.arguments.get(number.checked_sub(1)?).map(|value| vec![value.clone()]);
        }
        if let Some(values) = self.state.variables.get(name) {
            return Some(match index {
                Some("@" | "*") => values.clone(),
                Some(index) => {
                    let at = index.trim().parse::<usize>().unwrap_or(0);
                    values.get(at).or(values.last()).map(|value| vec![value.clone()]).unwrap_or_default()
                }
                None => values.first().map(|value| vec![value.clone()]).unwrap_or_default(),
            });
        }
        match name {
            "HOME" => Some(vec![Value::known(self.world.home())]),
            name if crate::secrets::is_secret_name(name) => None,
            name => self.world.variable(name).map(|text| vec![Value::known(text)]),
        }
    }

    fn parameter(&mut self, param: &Param<'_>, heres: &[Here<'_>], context: &Context) -> Vec<Value> {
        self.subscript(param.index, context);
        if param.length {
            return vec![Value::known("0")];
        }
        let mut name = param.name.to_owned();
        if param.indirect {
            if matches!(param.op, Some((ParamOp::Other, _))) || param.index.is_some() {
                return vec![Value::known("")];
            }
            match self.variable(param.name, None).as_deref() {
                Some([value]) if value.is_known() => name.clone_from(&value.text),
                _ => return vec![Value::unknown(Origin::Variable(Rc::from(param.name)))],
            }
        }
        let noted: Rc<str> = Rc::from(name.as_str());
        let found = self.variable(&name, param.index);
        if !self.step(found.as_ref().map_or(0, Vec::len)) {
            return vec![Value::unknown(Origin::Variable(noted))];
        }
        // A value that the text itself sets is no secret.
        let is_given = self.state.variables.contains_key(&name) && crate::secrets::is_secret_name(&name);
        let is_set = found.as_ref().is_some_and(|values| {
            values.iter().any(|value| !value.text.is_empty() || !value.holes.is_empty())
        });
        let is_named = name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_')
            && !name.starts_with("__unknown_");
        let mut values = found.unwrap_or_else(|| {
            if is_named { vec![Value::unknown(Origin::Variable(Rc::clone(&noted)))] } else { Vec::new() }
        });
        if let Some((op, word)) = &param.op {
            match op {
                ParamOp::Default if is_set => {}
                ParamOp::Default => {
                    // `:=` sets the variable. Doing it for `:-` too does no harm.
                    let mut value = self.word(word, heres, context);
                    value.note_variable(&noted);
                    if is_named {
                        self.state.variables.insert(name, vec![value.clone()]);
                    }
                    return vec![value];
                }
                ParamOp::Alternative => return vec![self.word(word, heres, context)],
                ParamOp::Require => {}
                op => {
                    let word = self.word(word, heres, context);
                    let length: usize = values.iter().map(|value| value.text.len()).sum();
                    self.step(length / 4);
                    if *op == ParamOp::Other && word.text == "P" {
                        for value in values.iter().take(16) {
                            self.prompt(value, context);
                        }
                    }
                    values = values.iter().map(|value| changed(value, *op, &word)).collect();
                }
            }
        }
        if is_named {
            for value in values.iter_mut().filter(|value| !(is_given && value.is_known())) {
                value.note_variable(&noted);
            }
        }
        values
    }
}

enum FieldPart<'a, 's> {
    Part(&'a Part<'s>),
    Text(String),
}

fn push_bare(value: &mut Value, text: &str) {
    let at = value.text.len();
    value.globs.extend(
        text.bytes()
            .enumerate()
            .filter(|(_, byte)| matches!(byte, b'*' | b'?' | b'[' | b'('))
            .map(|(offset, _)| at + offset),
    );
    value.text.push_str(text);
}

/// The value of an unquoted expansion, in which wildcards count.
fn with_globs(value: &Value) -> Value {
    let mut value = value.clone();
    value.globs = value
        .text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| matches!(byte, b'*' | b'?' | b'['))
        .map(|(at, _)| at)
        .collect();
    value
}
