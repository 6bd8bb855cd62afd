//! Prints what brush-parser reads in each line of standard input: the line and its commands' names,
//! or `!` if it can't read it.
//!
//! For `tests/data/brush.tsv` the lines are those of `ordinary.txt` and the commands of
//! `respellings.tsv`, each once: `(cat ordinary.txt; tail -n +2 respellings.tsv | cut -f3) | awk
//! '!seen[$0]++' | cargo run > brush.tsv`.
use brush_parser::ast::*;
use brush_parser::word::{self, WordPiece, WordPieceWithSource};
use brush_parser::{Parser, ParserOptions};

struct Seen {
    names: Vec<String>,
    ok: bool,
}

fn main() {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let text = line.replace('⏎', "\n");
        let mut seen = Seen { names: Vec::new(), ok: true };
        seen.text(&text);
        println!("{line}\t{}", if seen.ok { seen.names.join(" ") } else { "!".to_owned() });
    }
}

impl Seen {
    fn text(&mut self, text: &str) {
        let mut parser = Parser::new(text.as_bytes(), &ParserOptions::default());
        match parser.parse_program() {
            Ok(program) => program.complete_commands.iter().for_each(|list| self.list(list)),
            Err(_) => self.ok = false,
        }
    }
    fn list(&mut self, list: &CompoundList) {
        for CompoundListItem(and_or, _) in &list.0 {
            self.pipeline(&and_or.first);
            for other in &and_or.additional {
                match other {
                    AndOr::And(p) | AndOr::Or(p) => self.pipeline(p),
                }
            }
        }
    }
    fn pipeline(&mut self, pipeline: &Pipeline) {
        pipeline.seq.iter().for_each(|command| self.command(command));
    }
    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound);
                self.redirects(redirects.as_ref());
            }
            Command::Function(function) => {
                self.compound(&function.body.0);
                self.redirects(function.body.1.as_ref());
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                self.redirects(redirects.as_ref());
            }
        }
    }
    fn test(&mut self, expr: &ExtendedTestExpr) {
        match expr {
            ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => {
                self.test(a);
                self.test(b);
            }
            ExtendedTestExpr::Not(a) | ExtendedTestExpr::Parenthesized(a) => self.test(a),
            ExtendedTestExpr::UnaryTest(_, a) => self.word(a),
            ExtendedTestExpr::BinaryTest(_, a, b) => {
                self.word(a);
                self.word(b);
            }
        }
    }
    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(_) => {}
            CompoundCommand::ArithmeticForClause(c) => self.list(&c.body.list),
            CompoundCommand::BraceGroup(c) => self.list(&c.list),
            CompoundCommand::Subshell(c) => self.list(&c.list),
            CompoundCommand::ForClause(c) => {
                c.values.iter().flatten().for_each(|w| self.word(w));
                self.list(&c.body.list);
            }
            CompoundCommand::CaseClause(c) => {
                self.word(&c.value);
                c.cases.iter().filter_map(|i| i.cmd.as_ref()).for_each(|l| self.list(l));
            }
            CompoundCommand::IfClause(c) => {
                self.list(&c.condition);
                self.list(&c.then);
                for other in c.elses.iter().flatten() {
                    other.condition.iter().for_each(|l| self.list(l));
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(c) | CompoundCommand::UntilClause(c) => {
                self.list(&c.0);
                self.list(&c.1.list);
            }
            CompoundCommand::Coprocess(c) => self.command(&c.body),
        }
    }
    fn simple(&mut self, simple: &SimpleCommand) {
        simple.prefix.iter().flat_map(|p| &p.0).for_each(|i| self.item(i));
        if let Some(name) = &simple.word_or_name {
            self.names.push(name.value.replace([' ', '\t', '\n'], "_"));
            self.word(name);
        }
        simple.suffix.iter().flat_map(|s| &s.0).for_each(|i| self.item(i));
    }
    fn item(&mut self, item: &CommandPrefixOrSuffixItem) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(r) => self.redirect(r),
            CommandPrefixOrSuffixItem::Word(w) => self.word(w),
            CommandPrefixOrSuffixItem::AssignmentWord(a, _) => match &a.value {
                AssignmentValue::Scalar(w) => self.word(w),
                AssignmentValue::Array(values) => values.iter().for_each(|(_, w)| self.word(w)),
            },
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, s) => self.list(&s.list),
        }
    }
    fn redirects(&mut self, list: Option<&RedirectList>) {
        list.iter().flat_map(|l| &l.0).for_each(|r| self.redirect(r));
    }
    fn redirect(&mut self, redirect: &IoRedirect) {
        match redirect {
            IoRedirect::File(
                _,
                _,
                IoFileRedirectTarget::Filename(w) | IoFileRedirectTarget::Duplicate(w),
            ) => self.word(w),
            IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, s)) => self.list(&s.list),
            IoRedirect::File(..) => {}
            IoRedirect::HereDocument(_, here) => {
                if here.requires_expansion {
                    self.word(&here.doc)
                }
            }
            IoRedirect::HereString(_, w) | IoRedirect::OutputAndError(w, _) => self.word(w),
        }
    }
    fn word(&mut self, word: &Word) {
        self.raw(&word.value)
    }
    fn raw(&mut self, text: &str) {
        match word::parse(text, &ParserOptions::default()) {
            Ok(pieces) => pieces.iter().for_each(|p| self.piece(p)),
            Err(_) => self.ok = false,
        }
    }
    fn piece(&mut self, piece: &WordPieceWithSource) {
        match &piece.piece {
            WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                pieces.iter().for_each(|p| self.piece(p))
            }
            WordPiece::CommandSubstitution(text) | WordPiece::BackquotedCommandSubstitution(text) => {
                self.text(text)
            }
            WordPiece::ArithmeticExpression(e) => self.raw(&e.value),
            // brush-parser keeps its words as text in many shapes. Those with a command in them are
            // compared by hand.
            WordPiece::ParameterExpansion(e) => {
                if format!("{e:?}").contains("$(") {
                    self.ok = false
                }
            }
            _ => {}
        }
    }
}
