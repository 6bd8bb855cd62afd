//! Operators of an expansion: `${x#a}`, `${x/a/b}`, `${x:1:2}`.

use crate::shell::syntax::ParamOp;
use crate::shell::value::{Origin, Value, pattern_matches};

/// Longest text whose prefixes and suffixes are compared with a pattern. A longer one becomes
/// unknown.
const MAX_CUT_BYTES: usize = 512;

/// Applies an operator to a value. If the result is not clear, it is unknown.
pub(super) fn changed(value: &Value, op: ParamOp, word: &Value) -> Value {
    let (true, true, true) = (value.is_known(), word.is_known(), value.text.len() <= MAX_CUT_BYTES) else {
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
