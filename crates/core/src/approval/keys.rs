//! What a key does to a question that is on the person's screen.
//!
//! | key | a permission | a question for words |
//! |---|---|---|
//! | y | allows it this once, if all of it was shown | |
//! | n | asks for the reason, then denies | the same |
//! | a | shows the exact rule, and asks once more | |
//! | w | | takes the words, if all of it was shown |
//! | e | shows all of it | the same |

use super::{Question, QuestionKind};

/// How much of a question the person has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Its line, which leaves something out.
    Part,
    /// Everything.
    Whole,
}

/// What a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStep {
    Allow,
    /// Show everything with the exact rule, and ask for a yes.
    ConfirmAlways,
    TakeReason,
    TakeWords,
    ShowAll,
    /// The key does nothing, and this is why.
    Refuse(&'static str),
    /// The key means nothing here.
    Nothing,
}

/// What this key does.
pub fn step(key: char, question: &Question, shown: Shown) -> KeyStep {
    const NOT_SHOWN: KeyStep = KeyStep::Refuse("not all of it is on the screen: press e first");
    let is_permission = question.kind() == QuestionKind::Permission;
    match key.to_ascii_lowercase() {
        'n' => KeyStep::TakeReason,
        'e' => KeyStep::ShowAll,
        'y' | 'a' if !is_permission => KeyStep::Refuse("it waits for words: press w"),
        'w' if is_permission => KeyStep::Refuse("it waits for yes or no"),
        'a' if question.subject.always().is_none() => {
            KeyStep::Refuse("its agent names no exact rule for \"always\" here")
        }
        'y' | 'a' | 'w' if question.subject.beyond() > 0 => KeyStep::Refuse(
            "it is longer than what baton keeps: deny it, or answer in the agent's own terminal",
        ),
        // It shows all of it before it asks once more.
        'a' => KeyStep::ConfirmAlways,
        'y' | 'w' if shown == Shown::Part => NOT_SHOWN,
        'y' => KeyStep::Allow,
        'w' => KeyStep::TakeWords,
        _ => KeyStep::Nothing,
    }
}

/// The keys that are offered.
pub fn offered(question: &Question, shown: Shown) -> String {
    let is_permission = question.kind() == QuestionKind::Permission;
    let does = |key| !matches!(step(key, question, shown), KeyStep::Refuse(_) | KeyStep::Nothing);
    let words =
        [('y', "[y]es"), ('w', "[w]ords"), ('n', "[n]o"), ('a', "[a]lways"), ('e', "[e] show all of it")];
    let offered = words.into_iter().filter(|(key, _)| does(*key) && (*key != 'e' || shown == Shown::Part));
    let keys: Vec<&str> = offered.map(|(_, words)| words).collect();
    let what = if is_permission { "allow it?" } else { "answer it?" };
    format!("{what} {} ", keys.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::{Part, Subject};

    fn permission(always: Option<&str>) -> Question {
        Question::new("1", Subject::command("Bash", "ls").with_always(always.map(str::to_owned)))
    }

    #[test]
    fn nothing_is_granted_that_was_not_shown() {
        for question in [
            permission(None),
            permission(Some("Bash(ls)")),
            Question::new("1", Subject::input(None, vec![Part::question("which?", &[])], Vec::new())),
        ] {
            for key in (0..=0x10_ffff).filter_map(char::from_u32) {
                let step = step(key, &question, Shown::Part);
                assert!(!matches!(step, KeyStep::Allow | KeyStep::TakeWords), "{key:?}");
            }
        }
    }

    #[test]
    fn each_key_fits_its_question() {
        let words = Question::new("1", Subject::input(None, vec![Part::question("which?", &[])], Vec::new()));
        let (plain, ruled) = (permission(None), permission(Some("Bash(ls)")));
        assert_eq!(step('y', &plain, Shown::Whole), KeyStep::Allow);
        assert_eq!(step('Y', &plain, Shown::Whole), KeyStep::Allow);
        assert_eq!(step('n', &plain, Shown::Part), KeyStep::TakeReason);
        assert_eq!(step('a', &ruled, Shown::Whole), KeyStep::ConfirmAlways);
        assert!(matches!(step('a', &plain, Shown::Whole), KeyStep::Refuse(_)));
        assert_eq!(step('w', &words, Shown::Whole), KeyStep::TakeWords);
        assert!(matches!(step('y', &words, Shown::Whole), KeyStep::Refuse(_)));
        for key in ['\n', ' ', '\r', '\u{1b}', 'x'] {
            assert_eq!(step(key, &ruled, Shown::Whole), KeyStep::Nothing);
        }
        let long = Question::new("1", Subject::command("Bash", "ls").without(1));
        assert!(matches!(step('y', &long, Shown::Whole), KeyStep::Refuse(_)));
        assert_eq!(offered(&plain, Shown::Whole), "allow it? [y]es  [n]o ");
        assert_eq!(offered(&ruled, Shown::Whole), "allow it? [y]es  [n]o  [a]lways ");
        assert_eq!(offered(&ruled, Shown::Part), "allow it? [n]o  [a]lways  [e] show all of it ");
        assert_eq!(offered(&words, Shown::Whole), "answer it? [w]ords  [n]o ");
    }
}
