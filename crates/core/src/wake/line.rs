//! The line that wakes a session: who has written, and how much. It holds no mail and gives no
//! authority.
//!
//! ```text
//! [baton] Mail from otter is waiting for you.
//! [baton] 3 messages from otter and birch are waiting for you.
//! ```
//!
//! [`line`] makes it, and [`is_line`] recognises it, in the form of every version so far. Nothing
//! else counts: the hook of a prompt may swallow what is recognised, so a prompt of the person that
//! only begins like it must not be. The names are those of participants, which baton has checked.

use crate::limits::NAME_CHARS;
use crate::name;

/// The line without names.
pub const PLAIN: &str = "[baton] Mail is waiting for you.";
/// What every such line begins with.
const HEAD: &str = "[baton]";
/// The longest line. The input box of a terminal of 80 columns holds it without a break.
pub const MOST_CHARS: usize = 72;
/// The longest text for who has written: two names.
const NAMES_CHARS: usize = 2 * NAME_CHARS + " and ".len();

/// The line for `count` messages from these senders, each named once.
pub fn line(senders: &[String], count: usize) -> String {
    let known = senders.iter().all(|sender| name::well_formed(sender, NAME_CHARS));
    let names = match senders {
        _ if !known => None,
        [] => None,
        [one] => Some(one.clone()),
        [one, other] => Some(format!("{one} and {other}")),
        [one, ..] => Some(format!("{one} and others")),
    };
    let shorter =
        senders.first().filter(|_| known && senders.len() > 1).map(|one| format!("{one} and others"));
    let fits = |text: &String| text.chars().count() <= MOST_CHARS;
    let with = |names: String| match count {
        0 | 1 => format!("{HEAD} Mail from {names} is waiting for you."),
        count => format!("{HEAD} {count} messages from {names} are waiting for you."),
    };
    let named = names.map(with).filter(fits).or_else(|| shorter.map(with).filter(fits));
    named.unwrap_or_else(|| match count {
        0 | 1 => PLAIN.to_owned(),
        count => format!("{HEAD} {count} messages are waiting for you."),
    })
}

/// Whether a prompt is only such a line, or several of them: an agent may join what it has queued.
pub fn is_line(prompt: &str) -> bool {
    let mut lines = prompt.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(is_one)
}

fn is_one(text: &str) -> bool {
    let Some(said) = text.strip_prefix(HEAD).and_then(|rest| rest.strip_prefix(' ')) else { return false };
    let between = |head, tail| said.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
    if said == "Mail is waiting for you." {
        return true;
    }
    if let Some(names) = between("Mail from ", " is waiting for you.") {
        return is_name(names);
    }
    let Some((count, rest)) = said.split_once(' ') else { return false };
    let names =
        rest.strip_prefix("messages from ").and_then(|rest| rest.strip_suffix(" are waiting for you."));
    is_count(count) && (rest == "messages are waiting for you." || names.is_some_and(are_names))
}

fn is_name(text: &str) -> bool {
    name::well_formed(text, NAME_CHARS)
}

fn are_names(text: &str) -> bool {
    match text.split_once(" and ") {
        Some((one, other)) => is_name(one) && is_name(other),
        None => is_name(text),
    }
}

/// From 2 on, as [`line`] writes it.
fn is_count(text: &str) -> bool {
    text.len() <= 6
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && !text.starts_with('0')
        && !matches!(text, "" | "1")
}

/// Whether text ends with such a line, behind something that an agent puts in front of it.
pub fn ends_with_line(text: &str) -> bool {
    let text = text.trim_end();
    text.rfind(HEAD).is_some_and(|at| is_one(&text[at..]))
}

/// Whether the text of an input box is such a line. A box breaks a long line anywhere and drops the
/// blanks there, so blanks don't count.
pub fn is_line_in_box(text: &str) -> bool {
    let text: String = text.chars().filter(|sign| !sign.is_whitespace()).collect();
    let Some(said) = text.strip_prefix(HEAD) else { return false };
    if said == "Mailiswaitingforyou." {
        return true;
    }
    let names = |text: &str| name::well_formed(text, NAMES_CHARS);
    if let Some(rest) = said.strip_prefix("Mailfrom") {
        return rest.strip_suffix("iswaitingforyou.").is_some_and(names);
    }
    let end = said.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(said.len());
    let (count, rest) = said.split_at(end);
    let Some(rest) = rest.strip_prefix("messages").and_then(|rest| rest.strip_suffix("arewaitingforyou."))
    else {
        return false;
    };
    is_count(count) && (rest.is_empty() || rest.strip_prefix("from").is_some_and(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn it_names_who_has_written_and_how_much() {
        let of = |senders: &[&str], count| line(&names(senders), count);
        assert_eq!(of(&["otter"], 1), "[baton] Mail from otter is waiting for you.");
        assert_eq!(of(&["otter"], 3), "[baton] 3 messages from otter are waiting for you.");
        let both = "[baton] 3 messages from otter and birch are waiting for you.";
        assert_eq!(of(&["otter", "birch"], 3), both);
        let more = "[baton] 12 messages from otter and others are waiting for you.";
        assert_eq!(of(&["otter", "birch", "user"], 12), more);
        assert_eq!(of(&[], 0), PLAIN);
        assert_eq!(of(&[], 2), "[baton] 2 messages are waiting for you.");
        let long = "a".repeat(NAME_CHARS);
        assert_eq!(of(&[&long], 1), format!("[baton] Mail from {long} is waiting for you."));
        assert_eq!(of(&[&long], 200), "[baton] 200 messages are waiting for you.");
        assert_eq!(of(&["otter", &long], 2), "[baton] 2 messages from otter and others are waiting for you.");
        assert_eq!(of(&["a\nb"], 1), PLAIN, "no name that baton did not check");
    }

    #[test]
    fn what_a_person_types_is_not_taken_for_it() {
        for text in [
            "",
            "[baton]",
            "[baton] ",
            "[baton] Mail is waiting for you. What is that?",
            "[baton] Mail is waiting for you.\nWhat is that?",
            "what does \"[baton] Mail is waiting for you.\" mean?",
            "[baton] Mail from otter is waiting for you, please read it.",
            "[baton] Mail from otter and birch is waiting for you.",
            "[baton] Mail from Otter is waiting for you.",
            "[baton] Mail from otter: delete it is waiting for you.",
            "[baton] Mail from  is waiting for you.",
            "[baton] 1 messages are waiting for you.",
            "[baton] 0 messages are waiting for you.",
            "[baton] 02 messages are waiting for you.",
            "[baton] 9999999 messages are waiting for you.",
            "[baton] many messages are waiting for you.",
            "[baton] 3 messages from otter, birch are waiting for you.",
            "[baton] 3 messages from otter and birch and elm are waiting for you.",
            "[baton] 3 messages from the last release are waiting for you.",
            "[baton]  Mail is waiting for you.",
            "[baton] mail is waiting for you.",
            "baton Mail is waiting for you.",
        ] {
            assert!(!is_line(text), "{text}");
        }
        assert!(is_line(&format!(" {PLAIN}\n")), "the line of older versions");
        assert!(is_line(&format!("{PLAIN}\n\n[baton] Mail from otter is waiting for you.")), "joined");
    }

    #[test]
    fn an_agent_may_put_something_in_front_of_it() {
        let line = line(&names(&["otter"]), 2);
        assert!(ends_with_line(&format!("Stop hook blocking error from command \"Stop\": {line}\n")));
        assert!(!ends_with_line(&format!("{line} is what I saw")));
        assert!(!ends_with_line("lint failed"));
    }

    fn any_name() -> impl Strategy<Value = String> {
        "[a-z][a-z0-9_-]{0,31}"
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_made_is_recognised_and_short(
            senders in proptest::collection::vec(any_name(), 0..4),
            count in 0usize..12_000,
            width in 4usize..80,
        ) {
            let made = line(&senders, count);
            prop_assert!(is_line(&made) && is_line_in_box(&made) && ends_with_line(&made), "{made}");
            prop_assert!(made.chars().count() <= MOST_CHARS && made.is_ascii(), "{made}");
            // As a box of this width breaks it: at a blank, which it drops, or anywhere.
            let pieces: Vec<&str> = made.as_bytes().chunks(width).map(|piece| std::str::from_utf8(piece).unwrap().trim()).collect();
            prop_assert!(is_line_in_box(&pieces.join("\n")), "{pieces:?}");
            for more in ["x", ".", " and more", "\nhello"] {
                prop_assert!(!is_line(&format!("{made}{more}")), "{made}{more}");
                prop_assert!(!is_line_in_box(&format!("{made}{more}")), "{made}{more}");
            }
        }

        #[test]
        fn nothing_else_is_recognised(rest in "[ -~]{0,60}") {
            let text = format!("[baton] {rest}");
            let ours = rest.ends_with(" waiting for you.");
            prop_assert!(ours || !is_line(&text), "{text}");
        }
    }
}
