//! The pinned versions of the agent CLIs, from `versions.tsv`.

const TABLE: &str = include_str!("../versions.tsv");

/// The version in the row of this name. Fails to compile if there is none.
pub(crate) const fn pinned(name: &str) -> &'static str {
    let mut rest = TABLE;
    while !rest.is_empty() {
        let (row, below) = split(rest, b'\n');
        let (first, columns) = split(row, b'\t');
        if is_same(first, name) {
            return split(columns, b'\t').1;
        }
        rest = below;
    }
    panic!("versions.tsv has no row of this name")
}

/// The text before the first such byte, and the text after it.
const fn split(text: &'static str, at: u8) -> (&'static str, &'static str) {
    let mut length = 0;
    while length < text.len() && text.as_bytes()[length] != at {
        length += 1;
    }
    let (before, rest) = text.split_at(length);
    if rest.is_empty() { (before, rest) } else { (before, rest.split_at(1).1) }
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;

    fn rows() -> Vec<Vec<&'static str>> {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
        rows.map(|row| row.split('\t').collect()).collect()
    }

    #[test]
    fn every_row_has_a_name_a_package_and_a_version() {
        for row in rows() {
            let [name, package, version] = row[..] else { panic!("{row:?}") };
            assert!(!name.is_empty() && !package.is_empty(), "{row:?}");
            assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{row:?}");
        }
    }

    #[test]
    fn the_versions_are_those_of_the_table_of_agents() {
        let in_file: Vec<_> = rows().into_iter().map(|row| (row[0], row[2])).collect();
        // Cursor needs its own service, so no test runs it.
        let verified = ALL.iter().filter(|agent| agent.name() != "cursor");
        let verified = verified.map(|agent| (agent.name(), agent.verified().expect("a pinned version")));
        assert_eq!(in_file, verified.chain([("node", pinned("node"))]).collect::<Vec<_>>());
        assert_eq!(crate::by_name("cursor").expect("Cursor").verified(), None);
    }
}
