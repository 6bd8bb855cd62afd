//! A unified diff of two texts, for people who want to see an edit before it is made. Myers'
//! algorithm on lines; beyond `MAX_CHANGES` differing lines the middle is shown as one block, which
//! is longer but still right. Bytes that are not UTF-8 are shown as replacement characters.

use std::fmt::Write;
use std::ops::Range;

/// Unchanged lines shown around each change.
const CONTEXT_LINES: usize = 3;
/// The search for the shortest diff gives up beyond this many differing lines.
const MAX_CHANGES: usize = 2_000;

/// A change: these lines of the old text were replaced by those of the new text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
}

/// The diff from `before` to `after`, empty if they are equal. `None` is a missing file.
pub fn unified(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    if before == after {
        return String::new();
    }
    let name = |side: Option<&[u8]>| if side.is_some() { path } else { "/dev/null" }.to_owned();
    let mut out = format!("--- {}\n+++ {}\n", name(before), name(after));
    let (before, after) = (text(before), text(after));
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let hunks = hunks(&old, &new);
    for group in groups(&hunks) {
        print_group(&mut out, group, &old, &new);
    }
    out
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// Groups changes that are near enough to share their context lines.
fn groups(hunks: &[Hunk]) -> impl Iterator<Item = &[Hunk]> {
    hunks.chunk_by(|a, b| b.old.start - a.old.end <= 2 * CONTEXT_LINES)
}

fn print_group(out: &mut String, group: &[Hunk], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let lead = first.old.start.min(CONTEXT_LINES);
    let tail = (old.len() - last.old.end).min(CONTEXT_LINES);
    let olds = first.old.start - lead..last.old.end + tail;
    let news = first.new.start - lead..last.new.end + tail;
    push(out, format_args!("@@ -{} +{} @@\n", span(&olds), span(&news)));
    let mut at = olds.start;
    for hunk in group {
        lines(out, ' ', &old[at..hunk.old.start]);
        lines(out, '-', &old[hunk.old.clone()]);
        lines(out, '+', &new[hunk.new.clone()]);
        at = hunk.old.end;
    }
    lines(out, ' ', &old[at..olds.end]);
}

fn span(range: &Range<usize>) -> String {
    // Line numbers start at 1. An empty range names the line before it.
    let start = if range.is_empty() { range.start } else { range.start + 1 };
    format!("{start},{}", range.len())
}

fn lines(out: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        let shown = line.trim_end_matches(['\n', '\r']);
        push(out, format_args!("{mark}{shown}\n"));
        if !line.ends_with('\n') {
            out.push_str("\\ No newline at end of file\n");
        }
    }
}

fn push(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a string takes any text");
}

fn hunks(old: &[&str], new: &[&str]) -> Vec<Hunk> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let whole = || vec![Hunk { old: 0..old.len(), new: 0..new.len() }];
    let mut hunks = myers(old, new).unwrap_or_else(whole);
    for hunk in &mut hunks {
        hunk.old = hunk.old.start + head..hunk.old.end + head;
        hunk.new = hunk.new.start + head..hunk.new.end + head;
    }
    hunks
}

/// The shortest way from old to new, or `None` if it is longer than `MAX_CHANGES`.
fn myers(old: &[&str], new: &[&str]) -> Option<Vec<Hunk>> {
    let max = (old.len() + new.len()).min(MAX_CHANGES);
    let at = |k: isize| (k + max as isize + 1) as usize;
    // furthest[k] is the furthest position in `old` on diagonal k (old index minus new index).
    let mut furthest = vec![0usize; 2 * max + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for d in 0..=max as isize {
        trace.push(furthest[at(-d - 1)..=at(d + 1)].to_vec());
        for k in (-d..=d).step_by(2) {
            let down = k == -d || (k != d && furthest[at(k - 1)] < furthest[at(k + 1)]);
            let mut x = if down { furthest[at(k + 1)] } else { furthest[at(k - 1)] + 1 };
            let mut y = (x as isize - k) as usize;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at(k)] = x;
            if x >= old.len() && y >= new.len() {
                return Some(walk_back(&trace, old.len(), new.len()));
            }
        }
    }
    None
}

fn walk_back(trace: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for (d, furthest) in trace.iter().enumerate().skip(1).rev() {
        let d = d as isize;
        let at = |k: isize| (k + d + 1) as usize;
        let k = x as isize - y as isize;
        let down = k == -d || (k != d && furthest[at(k - 1)] < furthest[at(k + 1)]);
        let from_k = if down { k + 1 } else { k - 1 };
        let from_x = furthest[at(from_k)];
        let from_y = (from_x as isize - from_k) as usize;
        let (to_x, to_y) = if down { (from_x, from_y + 1) } else { (from_x + 1, from_y) };
        match hunks.last_mut() {
            Some(next) if next.old.start == to_x && next.new.start == to_y => {
                (next.old.start, next.new.start) = (from_x, from_y);
            }
            _ => hunks.push(Hunk { old: from_x..to_x, new: from_y..to_y }),
        }
        (x, y) = (from_x, from_y);
    }
    hunks.reverse();
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(old: &[&str], new: &[&str]) -> String {
        let mut out = String::new();
        let mut at = 0;
        for hunk in hunks(old, new) {
            out.extend(old[at..hunk.old.start].iter().copied());
            out.extend(new[hunk.new].iter().copied());
            at = hunk.old.end;
        }
        out.extend(old[at..].iter().copied());
        out
    }

    proptest::proptest! {
        #[test]
        fn the_hunks_lead_from_old_to_new(old in "[abc]{0,40}", new in "[abc]{0,40}") {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.split_inclusive("").collect(), new.split_inclusive("").collect());
            proptest::prop_assert_eq!(patched(&old, &new), new.concat());
        }
    }

    #[test]
    fn changes_are_shown_with_context() {
        let before: String = (1..=20).map(|i| format!("{i}\n")).collect();
        let after = before.replace("10\n", "10\nnew\n").trim_end().to_owned();
        let diff = unified("f", Some(before.as_bytes()), Some(after.as_bytes()));
        assert_eq!(
            diff,
            "--- f\n+++ f\n@@ -8,6 +8,7 @@\n 8\n 9\n 10\n+new\n 11\n 12\n 13\n@@ -17,4 +18,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn a_new_file_comes_from_nowhere() {
        assert_eq!(unified("f", None, Some(b"a\n")), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified("f", Some(b"a\n"), Some(b"a\n")), "");
    }

    #[test]
    fn very_different_texts_become_one_block() {
        let before: String = (0..3000).map(|i| format!("a{i}\n")).collect();
        let after: String = (0..3000).map(|i| format!("b{i}\n")).collect();
        let diff = unified("f", Some(before.as_bytes()), Some(after.as_bytes()));
        assert!(diff.contains("@@ -1,3000 +1,3000 @@"));
    }
}
