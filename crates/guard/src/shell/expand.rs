//! Expansion of words: braces, tildes, variables, substitutions, splitting.

use super::eval::{Context, Shell};
use super::syntax::*;
use super::value::{Origin, Value, pattern_matches};
use std::rc::Rc;

/// Words that one word's braces may become.
const MAX_BRACES: usize = 64;
/// Longest word whose braces are expanded.
const MAX_BRACED: usize = 4096;
/// Longest text whose prefixes and suffixes are compared with a pattern.
const MAX_CUT: usize = 512;

/// A word on its way: unquoted signs, and parts that are left alone.
#[derive(Clone, Copy)]
enum Piece<'a, 's> {
    Sign(char),
    Part(&'a Part<'s>),
}

/// Fields that a word is split into.
#[derive(Default)]
struct Fields {
    done: Vec<Value>,
    current: Value,
    started: bool,
}

impl Fields {
    fn quoted(&mut self, text: &str) {
        self.current.text.push_str(text);
        self.started = true;
    }

    fn value(&mut self, value: &Value) {
        self.current.push(value);
        self.started = true;
    }

    fn end(&mut self) {
        if self.started {
            self.done.push(std::mem::take(&mut self.current));
            self.started = false;
        } else {
            self.current = Value::default();
        }
    }

    /// A value that is split where its text has separators.
    fn split(&mut self, value: &Value, separators: &str) {
        if value.text.is_empty() {
            if !value.holes.is_empty() {
                self.value(value);
            }
            for variable in &value.variables {
                self.current.note_variable(variable);
            }
            return;
        }
        let mut from = 0;
        for (at, sign) in value.text.char_indices() {
            if separators.contains(sign) {
                if at > from {
                    self.value(&value.slice(from, at));
                }
                self.end();
                from = at + sign.len_utf8();
            }
        }
        if from < value.text.len() {
            self.value(&value.slice(from, value.text.len()));
        }
    }
}

impl Shell<'_> {
    /// Words as a command gets them.
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

    /// A word that stays one: the value of an assignment, the target of a redirection.
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

    /// Parts as they are in double quotes.
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

    /// Takes a leading tilde; returns what is left of the text.
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
        if pieces.len() > MAX_BRACED {
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
            "0" => return Some(vec![Value::known("sh")]),
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
                ParamOp::Default => return vec![self.word(word, heres, context)],
                ParamOp::Alternative => return vec![self.word(word, heres, context)],
                ParamOp::Require => {}
                op => {
                    let word = self.word(word, heres, context);
                    let length: usize = values.iter().map(|value| value.text.len()).sum();
                    self.step(length / 4);
                    values = values.iter().map(|value| changed(value, *op, &word)).collect();
                }
            }
        }
        if is_named {
            for value in &mut values {
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
            .filter(|(_, byte)| matches!(byte, b'*' | b'?' | b'['))
            .map(|(offset, _)| at + offset),
    );
    value.text.push_str(text);
}

/// The value of an unquoted expansion: signs of patterns in it count.
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

/// What an operator makes of a value. Where that is not clear, it is unknown.
fn changed(value: &Value, op: ParamOp, word: &Value) -> Value {
    let (true, true, true) = (value.is_known(), word.is_known(), value.text.len() <= MAX_CUT) else {
        let mut unknown = Value::unknown(Origin::Decoded);
        unknown.variables.clone_from(&value.variables);
        unknown.holes.extend(value.holes.iter().map(|(_, origin)| (0, origin.clone())));
        return unknown;
    };
    let text = value.text.as_str();
    let pattern = word.text.as_str();
    let ends = || text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let front = |at: usize| text.get(at..).unwrap_or("").to_owned();
    let back = |at: usize| text.get(..at).unwrap_or("").to_owned();
    let text = match op {
        ParamOp::CutFront => {
            ends().find(|at| pattern_matches(pattern, &back(*at))).map_or_else(|| text.to_owned(), front)
        }
        ParamOp::CutFrontLongest => {
            let found = ends().rfind(|at| pattern_matches(pattern, &back(*at)));
            found.map_or_else(|| text.to_owned(), front)
        }
        ParamOp::CutBack => {
            let found = ends().rfind(|at| pattern_matches(pattern, &front(*at)));
            found.map_or_else(|| text.to_owned(), back)
        }
        ParamOp::CutBackLongest => {
            ends().find(|at| pattern_matches(pattern, &front(*at))).map_or_else(|| text.to_owned(), back)
        }
        ParamOp::Replace | ParamOp::ReplaceAll => {
            let (from, to) = pattern.split_once('/').unwrap_or((pattern, ""));
            if from.is_empty() || from.contains(['*', '?', '[']) {
                return Value::unknown(Origin::Decoded);
            }
            let from = from.trim_start_matches(['#', '%']);
            if op == ParamOp::Replace { text.replacen(from, to, 1) } else { text.replace(from, to) }
        }
        ParamOp::Slice => {
            let (offset, length) = pattern.split_once(':').map_or((pattern, None), |(a, b)| (a, Some(b)));
            let signs: Vec<char> = text.chars().collect();
            let count = signs.len() as i64;
            let Ok(offset) = offset.trim().trim_matches(['(', ')']).parse::<i64>() else {
                return Value::unknown(Origin::Decoded);
            };
            let from = if offset < 0 { (count + offset).max(0) } else { offset.min(count) };
            let to = match length.map(|length| length.trim().parse::<i64>()) {
                None => count,
                Some(Ok(length)) if length < 0 => (count + length).max(from),
                Some(Ok(length)) => (from.saturating_add(length)).min(count),
                Some(Err(_)) => return Value::unknown(Origin::Decoded),
            };
            signs.iter().skip(from as usize).take((to - from).max(0) as usize).collect()
        }
        ParamOp::Upper => text.to_uppercase(),
        ParamOp::Lower => text.to_lowercase(),
        _ => text.to_owned(),
    };
    let mut changed = Value::known(text);
    changed.variables.clone_from(&value.variables);
    changed
}

/// All words that the braces of a word make; a brace that is none stays.
fn expand_braces<'a, 's>(word: &[Piece<'a, 's>], out: &mut Vec<Vec<Piece<'a, 's>>>, depth: u32) {
    if out.len() >= MAX_BRACES {
        return;
    }
    if depth < 16 {
        let mut from = 0;
        while let Some(open) = position(word, from, '{') {
            if let Some((close, commas)) = brace_end(word, open) {
                let inside = word.get(open + 1..close).unwrap_or(&[]);
                let alternatives: Vec<Vec<Piece<'a, 's>>> = if commas.is_empty() {
                    range(inside)
                } else {
                    let mut starts = vec![open];
                    starts.extend(&commas);
                    let ends = commas.iter().copied().chain([close]);
                    starts
                        .iter()
                        .zip(ends)
                        .map(|(start, end)| word.get(start + 1..end).unwrap_or(&[]).to_vec())
                        .collect()
                };
                if !alternatives.is_empty() {
                    for alternative in alternatives.into_iter().take(MAX_BRACES) {
                        let mut whole = word.get(..open).unwrap_or(&[]).to_vec();
                        whole.extend(alternative);
                        whole.extend_from_slice(word.get(close + 1..).unwrap_or(&[]));
                        expand_braces(&whole, out, depth + 1);
                    }
                    return;
                }
            } else {
                // Nothing closes this one, so nothing closes those inside it either.
                break;
            }
            from = open + 1;
        }
    }
    out.push(word.to_vec());
}

fn position(word: &[Piece<'_, '_>], from: usize, sign: char) -> Option<usize> {
    let rest = word.get(from..)?;
    rest.iter().position(|piece| matches!(piece, Piece::Sign(other) if *other == sign)).map(|at| at + from)
}

/// Where a brace closes, and its commas.
fn brace_end(word: &[Piece<'_, '_>], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut level = 0u32;
    let mut commas = Vec::new();
    for (at, piece) in word.iter().enumerate().skip(open + 1) {
        match piece {
            Piece::Sign('{') => level += 1,
            Piece::Sign('}') if level == 0 => return Some((at, commas)),
            Piece::Sign('}') => level -= 1,
            Piece::Sign(',') if level == 0 => commas.push(at),
            _ => {}
        }
    }
    None
}

/// `{1..3}` and `{a..c}`.
fn range<'a, 's>(inside: &[Piece<'a, 's>]) -> Vec<Vec<Piece<'a, 's>>> {
    let mut text = String::new();
    for piece in inside.iter().take(32) {
        match piece {
            Piece::Sign(sign) => text.push(*sign),
            Piece::Part(_) => return Vec::new(),
        }
    }
    let mut ends = text.split("..");
    let (Some(first), Some(last)) = (ends.next(), ends.next()) else { return Vec::new() };
    let pieces = |text: String| text.chars().map(Piece::Sign).collect::<Vec<_>>();
    if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
        let (low, high) = (first.min(last), first.max(last));
        return (low..=high).take(MAX_BRACES).map(|number| pieces(number.to_string())).collect();
    }
    let mut signs = (first.chars(), last.chars());
    match (signs.0.next(), signs.0.next(), signs.1.next(), signs.1.next()) {
        (Some(first), None, Some(last), None) => (first.min(last)..=first.max(last))
            .take(MAX_BRACES)
            .map(|sign| pieces(sign.to_string()))
            .collect(),
        _ => Vec::new(),
    }
}
