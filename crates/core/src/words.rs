//! Small words for people, and words for a shell.

/// A number with its noun: `1 file`, `2 files`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A word for a POSIX shell, in quotes if it needs them.
pub fn for_a_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "file")), ["0 files", "1 file", "2 files"]);
    }

    #[test]
    fn a_word_for_a_shell_is_one_word() {
        let words = ["/tmp/a-b_1", "a b", "it's", "", "~x", "a;b"].map(for_a_shell);
        assert_eq!(words, ["/tmp/a-b_1", "'a b'", r"'it'\''s'", "''", "'~x'", "'a;b'"]);
    }
}
