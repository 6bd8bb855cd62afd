//! Just enough of the POSIX shell's quoting to write a command into a hook and to recognise it
//! again, also after another program has quoted it differently.

/// The word in single quotes.
pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a simple command; `None` if it is more than that (expansions, pipes, open quotes).
pub fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => word.push(chars.next().filter(|c| "\"\\$`".contains(*c))?),
                        '$' | '`' => return None,
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '\n' | '*' | '?' | '[' | '#' => {
                return None;
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_quoted_word_is_one_word(word in "\\PC*") {
            proptest::prop_assert_eq!(words(&quote(&word)), Some(vec![word]));
        }
    }

    #[test]
    fn other_quotes_make_the_same_words() {
        let same = ["a hook 'x y'", "a  hook \"x y\"", r"a hook x\ y", r#"'a' "hook" x' 'y"#];
        for command in same {
            assert_eq!(words(command), Some(vec!["a".into(), "hook".into(), "x y".into()]), "{command}");
        }
    }

    #[test]
    fn what_is_more_than_a_simple_command_is_not_words() {
        for command in ["a | b", "a; b", "$A", "a > f", "'open", "\"$A\"", "a && b", "a # b"] {
            assert_eq!(words(command), None, "{command}");
        }
    }
}
