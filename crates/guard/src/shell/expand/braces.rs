//! Braces: `{a,b}` and `{1..3}`.

use crate::shell::syntax::Part;

/// How many words the braces of one word may become.
const MAX_BRACE_WORDS: usize = 64;

/// A piece of a word: an unquoted sign, or a part that stays whole.
#[derive(Clone, Copy)]
pub(super) enum Piece<'a, 's> {
    Sign(char),
    Part(&'a Part<'s>),
}

/// All words that the braces of a word make. A brace that does not expand stays.
pub(super) fn expand_braces<'a, 's>(word: &[Piece<'a, 's>], out: &mut Vec<Vec<Piece<'a, 's>>>, depth: u32) {
    if out.len() >= MAX_BRACE_WORDS {
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
                    for alternative in alternatives.into_iter().take(MAX_BRACE_WORDS) {
                        let mut whole = word.get(..open).unwrap_or(&[]).to_vec();
                        whole.extend(alternative);
                        whole.extend_from_slice(word.get(close + 1..).unwrap_or(&[]));
                        expand_braces(&whole, out, depth + 1);
                    }
                    return;
                }
            } else {
                // This brace is not closed, so those inside it are not closed either.
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

/// Where a brace closes, and where its commas are.
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
        return (low..=high).take(MAX_BRACE_WORDS).map(|number| pieces(number.to_string())).collect();
    }
    let mut signs = (first.chars(), last.chars());
    match (signs.0.next(), signs.0.next(), signs.1.next(), signs.1.next()) {
        (Some(first), None, Some(last), None) => (first.min(last)..=first.max(last))
            .take(MAX_BRACE_WORDS)
            .map(|sign| pieces(sign.to_string()))
            .collect(),
        _ => Vec::new(),
    }
}
