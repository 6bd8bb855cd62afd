//! Compares baton's parser with tree-sitter's grammar of bash and with brush-parser: on what
//! developers type, all see the same commands.
//!
//! What brush-parser sees is recorded in `data/brush.tsv`, because it and its fifty dependencies
//! take 45 seconds of processor time to build, more than everything else in this crate.
//! `crates/guard/compare` writes the file.

use baton_guard::shell::parse;
use baton_guard::shell::syntax::{List, Node, NodeKind, Part, Script, Word};
use tree_sitter::{Node as Tree, Parser};

/// Lines on which the two differ: it reads the reserved word `time` as a command.
const MISREAD: &[&str] = &["time make"];

/// Texts that brush-parser reads differently, and why.
const DIFFERENTLY: &[(&str, &str)] = &[
    ("time -p sudo ls", "it takes `time` for a reserved word; we follow it as a command that runs another"),
    ("su\\⏎do ls", "it joins the lines of a name before we do, at expansion"),
    ("( ( ( sudo ls ) ) )", "it sees arithmetic, and no command, in what bash runs"),
];

fn theirs(tree: Tree<'_>, text: &str, out: &mut Vec<String>) {
    if tree.kind() == "command_name" {
        out.push(text.get(tree.byte_range()).unwrap_or("").to_owned());
    }
    let mut cursor = tree.walk();
    for child in tree.children(&mut cursor) {
        theirs(child, text, out);
    }
}

fn ours(script: &Script<'_>) -> Vec<String> {
    let mut out = Vec::new();
    list(&script.list, &mut out);
    for here in &script.heres {
        here.parts.iter().for_each(|other| part(other, &mut out));
    }
    out
}

fn list(list: &List<'_>, out: &mut Vec<String>) {
    list.items.iter().flat_map(|item| &item.stages).for_each(|stage| node(stage, out));
}

fn node(node: &Node<'_>, out: &mut Vec<String>) {
    for redirect in &node.redirects {
        if let baton_guard::shell::syntax::Target::Word(target) = &redirect.target {
            word(target, out);
        }
    }
    match &node.kind {
        NodeKind::Simple { assignments, words } => {
            if let Some(Word::Plain(name)) = words.first() {
                out.push((*name).to_owned());
            } else if !words.is_empty() {
                out.push("?".to_owned());
            }
            words.iter().for_each(|other| word(other, out));
            assignments.iter().flat_map(|assignment| &assignment.values).for_each(|other| word(other, out));
        }
        NodeKind::Group(lists) => lists.iter().for_each(|other| list(other, out)),
        NodeKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                list(condition, out);
                list(body, out);
            }
            otherwise.iter().for_each(|other| list(other, out));
        }
        NodeKind::Subshell(inner) => list(inner, out),
        NodeKind::For { values, body, .. } => {
            values.iter().flatten().for_each(|other| word(other, out));
            list(body, out);
        }
        NodeKind::Case { subject, branches } => {
            word(subject, out);
            branches.iter().for_each(|other| list(other, out));
        }
        NodeKind::Function { body, .. } => {
            if let Ok(script) = parse::parse(body) {
                out.extend(ours(&script));
            }
        }
        NodeKind::Test(words) => words.iter().for_each(|other| word(other, out)),
    }
}

fn word(word: &Word<'_>, out: &mut Vec<String>) {
    if let Word::Parts(parts) = word {
        parts.iter().for_each(|other| part(other, out));
    }
}

fn part(one: &Part<'_>, out: &mut Vec<String>) {
    match one {
        Part::Double(parts) | Part::Arithmetic(parts) => parts.iter().for_each(|other| part(other, out)),
        Part::Command(inner) | Part::Process { list: inner, .. } => list(inner, out),
        Part::Backticks(text) => {
            if let Ok(script) = parse::parse(text) {
                out.extend(ours(&script));
            }
        }
        Part::Param(param) => {
            if let Some((_, inner)) = &param.op {
                word(inner, out);
            }
        }
        Part::Bare(_) | Part::Quoted(_) => {}
    }
}

/// The names that can be compared: those that are written plainly, in one order.
fn plain(names: Vec<String>) -> Vec<String> {
    let mut names: Vec<String> =
        names.into_iter().filter(|name| name != "?" && !name.contains(['$', '"', '\'', '`', '\\'])).collect();
    names.retain(|name| !matches!(name.as_str(), "export" | "unset" | "declare" | "local" | "[" | "test"));
    names.sort();
    names
}

#[test]
fn brush_parser_sees_the_same_commands() {
    let mut differ = Vec::new();
    let (mut compared, mut unread) = (0, 0);
    for line in include_str!("../data/brush.tsv").lines() {
        let (text, names) = line.split_once('\t').expect("a text and its commands");
        if names == "!" {
            unread += 1;
            continue;
        }
        if DIFFERENTLY.iter().any(|(other, _)| *other == text) {
            continue;
        }
        let whole = text.replace('⏎', "\n");
        let Ok(script) = parse::parse(&whole) else {
            differ.push(format!("{text}\n  we can't read it"));
            continue;
        };
        compared += 1;
        let (mine, other) = (
            plain(ours(&script)),
            plain(names.split(' ').map(str::to_owned).filter(|name| !name.is_empty()).collect()),
        );
        if mine != other {
            differ.push(format!("{text}\n  ours {mine:?}\n  theirs {other:?}"));
        }
    }
    assert!(compared > 1500 && unread < 40, "{compared} texts were compared, {unread} are unreadable to it");
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn both_parsers_see_the_same_commands() {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("the grammar");
    let mut differ = Vec::new();
    let mut compared = 0;
    for line in include_str!("../data/ordinary.txt").lines() {
        let text = line.replace('⏎', "\n");
        let tree = parser.parse(&text, None).expect("a tree");
        // If it does not understand the line itself, there is nothing to compare.
        if tree.root_node().has_error() || MISREAD.contains(&line) {
            continue;
        }
        let script = parse::parse(&text).unwrap_or_else(|fault| panic!("{line}: {fault:?}"));
        let mut names = Vec::new();
        theirs(tree.root_node(), &text, &mut names);
        let (mine, other) = (plain(ours(&script)), plain(names));
        compared += 1;
        if mine != other {
            differ.push(format!("{line}\n  ours {mine:?}\n  theirs {other:?}"));
        }
    }
    assert!(compared > 900, "{compared} lines were compared");
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
}

/// Forms that it misreads, and that matter here: operands behind a redirection, a here-string
/// behind other redirections, a coprocess.
#[test]
fn this_parser_reads_what_the_other_misreads() {
    for (text, name, count) in [
        ("z >f a b", "z", 3),
        ("ls 2>&1 >/dev/null <<<x", "ls", 1),
        ("coproc x { ls; }", "ls", 0),
        ("a=1 >f z b", "z", 2),
    ] {
        let script = parse::parse(text).expect(text);
        assert_eq!(ours(&script).first().map(String::as_str), Some(name), "{text}");
        let node = &script.list.items[0].stages[0];
        if let NodeKind::Simple { words, .. } = &node.kind {
            assert_eq!(words.len(), count, "{text}");
        }
    }
}
