//! Everything that a question asks for.
//!
//! A [`Subject`] is built from everything that the agent says: its constructors take the whole
//! command, every file, the whole change, each question with its choices. No surface cuts on its
//! own. The one-line [`head`](Subject::head) is made here, and it says how much it leaves out.
//! [`in_full`](Subject::in_full) leaves nothing out.
//!
//! An answer names the [`Digest`] of the subject that was shown, and counts for that subject only.
//! The rule that "always" would grant is a part of the subject, so it is a part of the digest too.

use super::QuestionKind;
use crate::limits::{HEAD_CHARS, SUBJECT_BYTES};
use crate::words::counted;
use crate::{foreign, frame};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The name of the part that holds a command.
const COMMAND_PART: &str = "command";
/// The name of the parts that name a file.
const FILE_PART: &str = "file";
/// The name of the part that holds a change to files.
const CHANGE_PART: &str = "change";
/// The name of a part that asks a person for words.
const QUESTION_PART: &str = "question";

/// One part of a question: its name and all of its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    name: String,
    text: String,
}

impl Part {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// The whole command.
    pub fn command(text: impl Into<String>) -> Self {
        Self::new(COMMAND_PART, text)
    }

    pub fn file(path: impl Into<String>) -> Self {
        Self::new(FILE_PART, path)
    }

    /// The whole change to files.
    pub fn change(text: impl Into<String>) -> Self {
        Self::new(CHANGE_PART, text)
    }

    /// A question to a person, with its choices and what each of them means.
    pub fn question(words: &str, choices: &[(String, String)]) -> Self {
        let choice = |(label, about): &(String, String)| match about.as_str() {
            "" => format!("\n  {label}"),
            about => format!("\n  {label}: {about}"),
        };
        Self::new(QUESTION_PART, format!("{words}{}", choices.iter().map(choice).collect::<String>()))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What a list shows of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// One line that is safe to print.
    pub text: String,
    /// Whether it shows everything that matters: then the id beside it is enough for a yes.
    pub is_whole: bool,
}

/// How much of its request the agent shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Perhaps not all: the agent shows no more than this.
    #[default]
    NoMore,
}

/// Everything that one question asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    kind: QuestionKind,
    tool: Option<String>,
    parts: Vec<Part>,
    extent: Extent,
    /// How many bytes are not kept because the question is too long.
    beyond: usize,
    choices: Vec<String>,
    /// The exact rule that "always" grants.
    always: Option<String>,
    /// The agent's own words about it. They don't run.
    notes: Vec<String>,
}

impl Subject {
    /// A permission for a tool: every part of the call.
    pub fn permission(tool: Option<&str>, parts: Vec<Part>, extent: Extent) -> Self {
        Self::new(QuestionKind::Permission, tool, parts, extent)
    }

    /// A permission for a command and nothing else.
    pub fn command(tool: &str, command: impl Into<String>) -> Self {
        Self::permission(Some(tool), vec![Part::command(command)], Extent::Whole)
    }

    /// Questions to a person. `choices` are the answers to pick from where it is one question.
    pub fn input(tool: Option<&str>, parts: Vec<Part>, choices: Vec<String>) -> Self {
        Self { choices, ..Self::new(QuestionKind::Input, tool, parts, Extent::Whole) }
    }

    /// Something of which the agent gives no more than one line.
    pub fn told_only(line: impl Into<String>) -> Self {
        Self::permission(None, vec![Part::new("it says", line)], Extent::NoMore)
    }

    fn new(kind: QuestionKind, tool: Option<&str>, parts: Vec<Part>, extent: Extent) -> Self {
        let mut room = SUBJECT_BYTES;
        let mut beyond = 0;
        // A part without text stays: writing nothing into a file empties it.
        let kept = parts.into_iter().map(|mut part| {
            let end = part.text.floor_char_boundary(room.min(part.text.len()));
            beyond += part.text.len() - end;
            part.text.truncate(end);
            room -= end;
            part
        });
        let parts = kept.collect();
        Self { kind, tool: tool.map(str::to_owned), parts, extent, beyond, ..Self::default() }
    }

    /// The same with the exact rule that "always" grants, in the agent's own notation.
    #[must_use]
    pub fn with_always(self, rule: Option<String>) -> Self {
        Self { always: rule.filter(|rule| !rule.trim().is_empty()), ..self }
    }

    /// The same, with this many bytes that never arrived.
    #[must_use]
    pub fn without(self, bytes: usize) -> Self {
        Self { beyond: self.beyond.saturating_add(bytes), ..self }
    }

    /// The same with what the agent says about it.
    #[must_use]
    pub fn with_note(mut self, words: Option<&str>) -> Self {
        let words = words.map(str::trim).filter(|words| !words.is_empty());
        self.notes.extend(words.map(|words| {
            let end = words.floor_char_boundary(words.len().min(NOTE_BYTES));
            match words.len() - end {
                0 => words.to_owned(),
                more => format!("{}… ({more} more bytes are not kept)", &words[..end]),
            }
        }));
        self
    }

    /// Yes or no, or words.
    pub fn kind(&self) -> QuestionKind {
        self.kind
    }

    /// The tool that it is about, by the agent's name for it.
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The command, if it is about one.
    pub fn as_command(&self) -> Option<&str> {
        self.part(COMMAND_PART)
    }

    /// The change to files, if the agent shows it.
    pub fn as_change(&self) -> Option<&str> {
        self.part(CHANGE_PART)
    }

    /// The text of the first part with that name.
    pub fn part(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|part| part.name == name).map(Part::text)
    }

    /// The files that it names.
    pub fn paths(&self) -> Vec<&str> {
        self.parts.iter().filter(|part| part.name == FILE_PART).map(Part::text).collect()
    }

    /// The answers to choose from.
    pub fn choices(&self) -> &[String] {
        &self.choices
    }

    /// The exact rule that "always" grants; `None` if there is none to show, and so no "always".
    pub fn always(&self) -> Option<&str> {
        self.always.as_deref()
    }

    /// What the agent says about it.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How much of it the agent shows.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// How many bytes are not kept. If there are any, the question can be shown and denied here,
    /// but only approved in the agent's own terminal.
    pub fn beyond(&self) -> usize {
        self.beyond
    }

    /// Everything in one text: a single part as it is; several behind their names and marks, so
    /// that no part can pose as another.
    pub fn text(&self) -> String {
        match self.parts.as_slice() {
            [only] => only.text.clone(),
            parts => {
                let lines = parts.iter().flat_map(|part| named(&label(&part.name), &part.text));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// One line that is safe to print and says how much of the call it leaves out. A person answers
    /// by [`Question::line`](super::Question::line).
    pub fn head(&self) -> String {
        self.line(&[]).text
    }

    /// Whether the head shows everything of the call.
    pub fn head_is_whole(&self) -> bool {
        self.line(&[]).is_whole
    }

    /// The head, and what else matters for the answer. A line with such an addition is never whole,
    /// because a command can be written to read like it.
    pub(super) fn line(&self, around: &[String]) -> Line {
        let tool = self.tool_in_head();
        let begin = self.begin(&tool);
        let mut head = match (tool.as_str(), begin.as_str()) {
            ("", "") => "something".to_owned(),
            (tool, "") => tool.to_owned(),
            ("", begin) => in_one_line(begin),
            (tool, begin) => format!("{tool}: {}", in_one_line(begin)),
        };
        let left: Vec<String> = self.left_out(&begin).into_iter().chain(around.iter().cloned()).collect();
        if !left.is_empty() {
            head.push_str(&format!(" … ({})", left.join(", ")));
        }
        Line { text: head, is_whole: left.is_empty() }
    }

    /// The tool as the head has it.
    fn tool_in_head(&self) -> String {
        let begin = |tool: &str| tool.chars().take(TOOL_CHARS).collect::<String>();
        self.tool.as_deref().map(|tool| in_one_line(&begin(tool))).unwrap_or_default()
    }

    /// The first part without the blanks around it, which change nothing.
    fn first(&self) -> &str {
        self.parts.first().map(|part| part.text.trim_matches([' ', '\t', '\n'])).unwrap_or_default()
    }

    /// As much of the first part as the head has room for beside the tool.
    fn begin(&self, tool: &str) -> String {
        let room = HEAD_CHARS.saturating_sub(tool.chars().count());
        self.first().split('\n').next().unwrap_or_default().chars().take(room).collect()
    }

    /// What a line that ends with `begin` leaves out; `None` if nothing.
    fn left_out(&self, begin: &str) -> Option<String> {
        let first = self.first();
        let others = self.parts.get(1..).unwrap_or_default();
        let rest = first.strip_prefix(begin).unwrap_or(first).trim_start_matches('\n');
        let tool = self.tool.iter().flat_map(|tool| tool.chars().skip(TOOL_CHARS)).count();
        let texts = std::iter::once(rest).chain(others.iter().map(Part::text));
        let characters = tool + texts.map(|text| text.chars().count()).sum::<usize>();
        let own = first.lines().count().saturating_sub(1);
        // A part without text takes a line too.
        let lines = own + others.iter().map(|part| part.text.lines().count().max(1)).sum::<usize>();
        let mut left = Vec::new();
        if lines > 0 {
            left.push(format!("+{}", counted(lines, "line")));
        }
        if characters > 0 {
            left.push(counted(characters, "more character"));
        }
        if self.beyond > 0 {
            left.push(format!("{} too many to keep", counted(self.beyond, "byte")));
        }
        if self.extent == Extent::NoMore {
            left.push("the agent does not say more".to_owned());
        }
        (!left.is_empty()).then(|| left.join(", "))
    }

    /// Everything, safe to print. Each line follows a mark, so that every line break shows and none
    /// is forged.
    pub fn in_full(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.tool.as_deref().map(|tool| format!("tool: {}", in_one_line(tool))));
        for part in &self.parts {
            lines.extend(named(&label(&part.name), &part.text));
        }
        for note in &self.notes {
            lines.extend(named("the agent says", note));
        }
        if self.beyond > 0 {
            lines.push(format!(
                "({} more bytes are not kept: too many to approve here; deny it, or answer in the agent's own terminal)",
                self.beyond
            ));
        }
        if self.extent == Extent::NoMore {
            lines.push("(the agent does not say more)".to_owned());
        }
        lines.extend(self.always.as_deref().map(|rule| format!("always would allow: {}", in_one_line(rule))));
        lines
    }

    /// Identifies this subject, asked by that agent in that folder.
    pub fn digest(&self, by: AskedBy<'_>) -> Digest {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            // Each text goes in with its length, so that no text runs over into the next.
            hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(text.as_bytes());
        };
        let list = |add: &mut dyn FnMut(&str), texts: &[String]| {
            add(&texts.len().to_string());
            texts.iter().for_each(|text| add(text));
        };
        let maybe = |add: &mut dyn FnMut(&str), text: Option<&str>| match text {
            Some(text) => {
                add("1");
                add(text);
            }
            None => add("0"),
        };
        for text in ["baton-subject-1", by.agent, by.asker, by.folder, self.kind.as_str()] {
            add(text);
        }
        maybe(&mut add, self.tool.as_deref());
        add(&self.parts.len().to_string());
        for part in &self.parts {
            add(&part.name);
            add(&part.text);
        }
        add(if self.extent == Extent::Whole { "whole" } else { "no more" });
        add(&self.beyond.to_string());
        list(&mut add, &self.choices);
        maybe(&mut add, self.always.as_deref());
        list(&mut add, &self.notes);
        let bytes: [u8; 32] = hash.finalize().into();
        Digest(bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Bytes of the agent's own words that are kept. They only explain.
const NOTE_BYTES: usize = 4096;
/// Longest name of a tool in a head, so that it leaves space for the command.
const TOOL_CHARS: usize = 40;

/// Text of a question on one line, with each of its characters visible.
pub fn in_one_line(text: &str) -> String {
    // A line break that a terminal would act on, but that starts no new line of a command.
    frame::shown(&foreign::exact(text).replace('\r', "\\r"), usize::MAX)
}

/// One of several texts on a line. It is quoted if it could be read as more than one.
pub fn in_a_list(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || " _-./:*@=+~%#$^&|<>?!{}[]".contains(c);
    if !text.is_empty() && text.trim() == text && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Labels that baton itself writes at the beginning of a line about a question.
const RESERVED_LABELS: [&str; 6] = ["always would allow", "digest", "state", "the agent says", "tool", "why"];

/// The name of a part. It is quoted if an agent's field has one of baton's labels or is more than a
/// word.
fn label(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() && !foreign::is_ambiguous(c);
    let is_word = name.chars().all(|c| is_plain(c) || matches!(c, '_' | '-' | '.' | '$' | ' '));
    let is_ours = RESERVED_LABELS.iter().any(|ours| ours.eq_ignore_ascii_case(name.trim()));
    match name {
        name if is_word && !is_ours && !name.trim().is_empty() => name.to_owned(),
        name => format!("\"{}\"", in_one_line(name).replace('"', "\\\"")),
    }
}

/// A text behind its name: on the same line, or below it if it has several lines.
fn named(name: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    match lines.as_slice() {
        [only] => vec![format!("{name}: {}", in_one_line(only))],
        lines => {
            // Carriage returns, tabs and escapes are shown as codes.
            let quoted = lines.iter().map(|line| match *line {
                "" => "  |".to_owned(),
                line => format!("  | {}", in_one_line(line)),
            });
            std::iter::once(format!("{name} ({} lines):", lines.len())).chain(quoted).collect()
        }
    }
}

/// Who asks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedBy<'a> {
    pub agent: &'a str,
    /// Its session, or the job.
    pub asker: &'a str,
    /// The folder that it works in.
    pub folder: &'a str,
}

/// Identifies a subject. An answer names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digest(String);

impl Digest {
    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BY: AskedBy<'static> = AskedBy { agent: "claude", asker: "s", folder: "/p" };

    #[test]
    fn s1_a_head_says_how_much_it_leaves_out() {
        let one = Subject::command("bash", "echo harmless");
        assert_eq!((one.head().as_str(), one.head_is_whole()), ("bash: echo harmless", true));
        let two = Subject::command("bash", "echo harmless\nrm -rf /important");
        assert_eq!(two.head(), "bash: echo harmless … (+1 line, 17 more characters)");
        assert!(!two.head_is_whole());
        assert!(two.in_full().contains(&"  | rm -rf /important".to_owned()), "{:?}", two.in_full());
        let long = Subject::command("bash", format!("echo {}; rm -rf /", "x".repeat(HEAD_CHARS)));
        assert!(!long.head_is_whole() && long.head().contains("more characters"), "{}", long.head());
        assert!(long.in_full().join("\n").ends_with("; rm -rf /"));
        let edit = Subject::permission(
            Some("Edit"),
            vec![Part::file("/p/a"), Part::change("-a\n+b")],
            Extent::Whole,
        );
        assert_eq!(edit.head(), "Edit: /p/a … (+2 lines, 5 more characters)");
        let title = Subject::told_only("Fetch something");
        assert_eq!(title.head(), "Fetch something … (the agent does not say more)");
    }

    #[test]
    fn s1_every_break_and_sign_shows_and_no_line_is_forged() {
        let foul = Subject::command("bash", "ls \r\nrm x\u{2028}y\u{1b}[2K\u{202e}z\n\ntool: none");
        let lines = foul.in_full();
        assert!(lines.iter().all(|line| !line.chars().any(char::is_control)), "{lines:?}");
        assert!(lines.iter().any(|line| line == "  | tool: none"), "{lines:?}");
        assert!(!lines.join("\n").contains('\u{202e}') && !foul.head_is_whole());
        let note = Subject::command("bash", "ls").with_note(Some("just lists"));
        assert!(note.head_is_whole(), "nothing of a note runs");
    }

    #[test]
    fn s1_what_is_too_long_to_keep_says_so() {
        let huge = Subject::command("bash", "x".repeat(SUBJECT_BYTES + 3));
        assert_eq!((huge.beyond(), huge.as_command().map(str::len)), (3, Some(SUBJECT_BYTES)));
        assert!(huge.head().contains("3 bytes too many to keep"), "{}", huge.head());
        assert_eq!(Subject::command("bash", "é".repeat(SUBJECT_BYTES)).beyond(), SUBJECT_BYTES);
    }

    #[test]
    fn s1_a_part_without_text_and_a_long_name_are_left_out_of_no_count() {
        let empties = Subject::permission(
            Some("Write"),
            vec![Part::file("/p/a"), Part::new("content", "")],
            Extent::Whole,
        );
        assert_eq!(empties.head(), "Write: /p/a … (+1 line)");
        assert!(!empties.head_is_whole(), "the file loses everything");
        assert!(empties.in_full().contains(&"content: \"\"".to_owned()), "{:?}", empties.in_full());
        let name = format!("mcp__{}__delete_all", "x".repeat(TOOL_CHARS));
        let long = Subject::permission(Some(&name), vec![Part::new("id", "1")], Extent::Whole);
        assert!(!long.head_is_whole() && long.head().contains("17 more characters"), "{}", long.head());
        let returns = Subject::command("bash", "ls\r");
        assert_eq!(returns.head(), "bash: ls\\r", "another command than ls");
        let note = Subject::command("bash", "ls").with_note(Some(&"x".repeat(NOTE_BYTES + 7)));
        assert!(note.notes()[0].ends_with("(7 more bytes are not kept)"));
    }

    #[test]
    fn s1_no_field_of_a_call_poses_as_a_line_of_ours() {
        let fields = ["why", "Digest", "always would allow", "the agent says", "state", "a: b", "x\ny", ""];
        let parts = fields.iter().map(|name| Part::new(*name, "harmless")).collect();
        let lines = Subject::permission(Some("mcp__a__b"), parts, Extent::Whole).in_full();
        assert!(lines[1..].iter().all(|line| line.starts_with('"')), "{lines:?}");
        assert_eq!(Subject::command("bash", "ls").in_full()[1], "command: ls");
        let parts = vec![Part::file("/p/a"), Part::new("content", "x\nfile: /p/harmless")];
        let text = Subject::permission(Some("Write"), parts, Extent::Whole).text();
        assert_eq!(text, "file: /p/a\ncontent (2 lines):\n  | x\n  | file: /p/harmless");
    }

    #[test]
    fn s17_what_looks_like_a_space_in_a_question_is_shown_as_what_it_is() {
        let hidden = "rm -rf a\u{a0}b\u{fe0f}\u{2028}c";
        let subject = Subject::permission(Some("Ba\u{2800}sh"), vec![Part::command(hidden)], Extent::Whole)
            .with_note(Some("x\u{3000}y"))
            .with_always(Some("Bash(a\u{205f}b)".into()));
        assert_eq!(subject.head(), "Ba<U+2800>sh: rm -rf a<U+00A0>b<U+FE0F><U+2028>c");
        let shown = subject.in_full().join("\n");
        for code in ["<U+2800>", "<U+00A0>", "<U+FE0F>", "<U+2028>", "<U+3000>", "<U+205F>"] {
            assert!(shown.contains(code), "{shown}");
        }
        assert!(!shown.contains(foreign::is_ambiguous), "{shown}");
        assert_eq!(Subject::command("bash", "ls \\n").head(), "bash: ls \\n");
        let named = Subject::permission(None, vec![Part::new("why\u{3164}", "x")], Extent::Whole);
        assert_eq!(named.in_full(), ["\"why<U+3164>\": x"]);
    }

    #[test]
    fn s3_a_digest_tells_every_part_from_another() {
        let base = Subject::command("bash", "ls");
        let others = [
            Subject::command("bash", "ls "),
            Subject::command("sh", "ls"),
            base.clone().with_always(Some("bash: ls *".into())),
            base.clone().with_note(Some("x")),
            Subject::permission(Some("bash"), vec![Part::command("ls")], Extent::NoMore),
            Subject::permission(Some("bash"), vec![Part::file("ls")], Extent::Whole),
            Subject::permission(Some("bash"), vec![Part::command("l"), Part::command("s")], Extent::Whole),
            Subject::input(Some("bash"), vec![Part::command("ls")], Vec::new()),
            Subject::input(Some("bash"), vec![Part::command("ls")], vec!["a".into()]),
        ];
        let mut seen = std::collections::HashSet::from([base.digest(BY)]);
        for other in others {
            assert!(seen.insert(other.digest(BY)), "{other:?}");
        }
        for by in [AskedBy { agent: "pi", ..BY }, AskedBy { asker: "t", ..BY }, AskedBy { folder: "/", ..BY }]
        {
            assert!(seen.insert(base.digest(by)), "{by:?}");
        }
        let digest = base.digest(BY);
        assert_eq!(Digest::parse(digest.as_str()), Some(digest.clone()));
        assert_eq!(Digest::parse(&digest.as_str()[..8]), None);
    }

    proptest! {
        #[test]
        fn s1_a_head_is_whole_only_if_it_holds_everything(command in "(?s).{0,200}") {
            let subject = Subject::command("bash", command.clone());
            let head = subject.head();
            prop_assert!(!head.contains('\n') && head.chars().count() < 12 * HEAD_CHARS);
            if subject.head_is_whole() && !command.trim().is_empty() {
                let all = command.trim_matches([' ', '\t', '\n']);
                prop_assert_eq!(head, format!("bash: {}", in_one_line(all)));
            } else if !command.trim().is_empty() {
                prop_assert!(head.contains(" … ("));
            }
        }
    }
}
