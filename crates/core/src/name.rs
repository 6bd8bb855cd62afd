//! Names of participants: short, human, unique in their project.
//!
//! A name is what people and agents type, so it is made of lower-case ASCII letters, digits, `-`
//! and `_`, and starts with a letter: it can't look like an option, a path, an address of another
//! kind or right-to-left text.

use crate::{Code, Error, frame, limits};

/// The person's mailbox.
pub const USER: &str = "user";
/// The sender of a program without a terminal and without an agent.
pub const SCRIPT: &str = "script";
/// The sender of baton's own notes.
pub const BATON: &str = "baton";

const RESERVED: &[&str] =
    &[USER, SCRIPT, BATON, "all", "everyone", "self", "me", "agent", "system", "assistant", "human"];

/// Checks a name that a participant wants to have.
pub fn check(name: &str) -> Result<(), Error> {
    if RESERVED.contains(&name) {
        return Err(Error::new(Code::BadName, format!("the name {name} is reserved"))
            .hint("choose another, such as reviewer"));
    }
    if well_formed(name, limits::NAME_CHARS) {
        Ok(())
    } else {
        Err(Error::new(Code::BadName, format!("{} can't be a name", frame::shown(name, 40)))
            .hint("1 to 32 of a-z, 0-9, - and _, starting with a letter"))
    }
}

pub fn check_tag(tag: &str) -> Result<(), Error> {
    if well_formed(tag, limits::TAG_CHARS) {
        Ok(())
    } else {
        Err(Error::new(Code::BadName, format!("{} can't be a tag", frame::shown(tag, 40)))
            .hint("1 to 32 of a-z, 0-9, - and _, starting with a letter, without the #"))
    }
}

/// Whether text has the form of a name.
pub fn well_formed(text: &str, longest: usize) -> bool {
    text.len() <= longest
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
}

/// What a person probably meant: the one of `known` that is most like `typed`. `None` if none is
/// like it.
pub fn closest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed: Vec<char> = typed.to_lowercase().chars().take(limits::NAME_CHARS * 2).collect();
    let far = typed.len().div_ceil(3);
    let apart = |known: &str| {
        let known: Vec<char> = known.to_lowercase().chars().collect();
        // The beginning of a name is like it, however much is missing.
        let begins = typed.len() > 1 && known.starts_with(&typed);
        if begins { 0 } else { edits(&typed, &known) }
    };
    let near = known.into_iter().map(|known| (apart(known), known)).filter(|(apart, _)| *apart < far.max(2));
    near.min().map(|(_, known)| known)
}

/// How many letters have to be added, removed, replaced or swapped with their neighbour.
fn edits(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, wanted) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != wanted);
            let mut least = replaced.min(last[column + 1] + 1).min(line[column] + 1);
            let swapped = row > 0 && column > 0 && one[row - 1] == *wanted && *letter == other[column - 1];
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut last, line);
    }
    last[other.len()]
}

/// The `attempt`-th name to try for a session: first words, the same ones for the same id, then
/// words with a number.
pub fn candidate(native_id: &str, attempt: u32) -> String {
    let seed = native_id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let words = WORDS.len() as u64;
    let word = WORDS[((seed ^ (seed >> 29)).wrapping_add(u64::from(attempt)) % words) as usize];
    match u64::from(attempt) / words {
        0 => word.to_owned(),
        round => format!("{word}-{}", round + 1),
    }
}

/// Words that are short, distinct to the ear, and mean nothing in a code base.
const WORDS: &[&str] = &[
    "acorn", "alder", "amber", "apple", "aspen", "aster", "badger", "bamboo", "basil", "beaver", "beech",
    "berry", "birch", "bison", "bluejay", "bramble", "briar", "brook", "canary", "cedar", "cherry", "clover",
    "cobalt", "condor", "coral", "cougar", "cypress", "dahlia", "daisy", "dolphin", "dove", "eagle", "elder",
    "elm", "falcon", "fern", "finch", "fjord", "flint", "fox", "garnet", "gecko", "ginger", "glacier",
    "gorse", "granite", "grove", "hazel", "heath", "heron", "holly", "ibis", "indigo", "iris", "ivory",
    "ivy", "jackal", "jade", "jasmine", "jasper", "juniper", "kestrel", "kiwi", "koala", "lark", "laurel",
    "lemon", "lichen", "lilac", "lily", "linden", "lotus", "lynx", "magpie", "mallow", "mango", "maple",
    "marten", "meadow", "melon", "mesa", "mimosa", "mint", "moose", "moss", "myrtle", "nettle", "nutmeg",
    "oak", "ocelot", "olive", "onyx", "opal", "orchid", "osprey", "otter", "owl", "panda", "pansy", "peach",
    "pear", "pebble", "pelican", "pepper", "petrel", "pine", "plover", "plum", "poplar", "poppy", "puffin",
    "quail", "quartz", "quince", "raven", "reed", "robin", "rowan", "ruby", "saffron", "sage", "salmon",
    "sequoia", "sorrel", "sparrow", "spruce", "stork", "sumac", "swan", "swift", "sycamore", "tamarind",
    "tansy", "teal", "thistle", "thyme", "topaz", "toucan", "trout", "tulip", "tundra", "turtle", "viola",
    "walnut", "weasel", "willow", "wombat", "wren", "yarrow", "yew", "zebra", "zinnia",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_generated_name_is_valid_and_a_thousand_attempts_are_distinct() {
        let names: HashSet<_> = (0..1000).map(|attempt| candidate("01a1e0a2-9edf", attempt)).collect();
        assert_eq!(names.len(), 1000);
        for name in names {
            check(&name).unwrap();
        }
        assert_eq!(WORDS.iter().collect::<HashSet<_>>().len(), WORDS.len());
    }

    #[test]
    fn a_typo_has_a_suggestion_and_another_word_has_none() {
        let known = ["lily", "otter", "reviewer", "user"];
        for (typed, meant) in [
            ("lil", Some("lily")),
            ("LILY", Some("lily")),
            ("lilly", Some("lily")),
            ("oter", Some("otter")),
            ("toter", Some("otter")),
            ("rev", Some("reviewer")),
            ("usr", Some("user")),
            ("birch", None),
            ("x", None),
            ("", None),
            (&"l".repeat(10_000), None),
        ] {
            assert_eq!(closest(typed, known), meant, "{typed:.20}");
        }
    }

    #[test]
    fn hostile_names_are_refused() {
        let long = "a".repeat(33);
        for name in [
            "",
            "-x",
            "../x",
            "A",
            "é",
            "a b",
            "a\u{202e}b",
            "a\"b",
            "a\0",
            "user",
            "baton",
            "#x",
            "a:b",
            "a@b",
            &long,
        ] {
            assert_eq!(check(name).unwrap_err().code(), Code::BadName, "{name:?}");
        }
    }
}
