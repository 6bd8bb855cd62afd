//! Loops, and a `cd` that may fail. A loop costs what its body costs: nested loops are not followed
//! in every combination.

use super::*;

/// How many values of a loop are followed separately.
const MAX_ITERATIONS: usize = 64;
/// How many ways through nested loops are all followed. Beyond this, each value runs once, with the
/// first values of the other loops.
const MAX_WAYS: usize = 64;
/// How many values of a long list are followed because they name a path.
const MAX_NOTABLE_VALUES: usize = 16;

impl Shell<'_> {
    pub(super) fn in_loop(
        &mut self,
        name: &str,
        values: &[Value],
        body: &List<'_>,
        heres: &[Here<'_>],
        context: &Context,
    ) -> Value {
        let (ways, was_later, looped) = (self.ways, self.is_later, self.looped.len());
        self.ways = ways.saturating_mul(values.len().clamp(1, MAX_ITERATIONS));
        let samples = self.ways > MAX_WAYS && ways > 1;
        self.looped.push(name.to_owned());
        let notable = |value: &&Value| value.text.starts_with(['/', '.', '~']) || value.text.contains("..");
        let rest = values.iter().skip(MAX_ITERATIONS).filter(notable).take(MAX_NOTABLE_VALUES).cloned();
        let unknown =
            (values.len() > MAX_ITERATIONS || values.is_empty()).then(|| Value::unknown(Origin::Input));
        let all = values.iter().take(MAX_ITERATIONS).cloned().chain(rest).chain(unknown);
        let mut output = Value::default();
        for (number, value) in all.enumerate() {
            if number > 0 && samples && was_later {
                break;
            }
            self.is_later = was_later || number > 0;
            self.state.variables.insert(name.to_owned(), vec![value]);
            output.push(&self.list(body, heres, context));
            if self.stopped {
                break;
            }
        }
        (self.ways, self.is_later) = (ways, was_later);
        self.looped.truncate(looped);
        output
    }

    /// Notes a command whose words come from several loops, if not every combination was followed
    /// and that matters.
    pub(in crate::shell) fn note_samples(&mut self, argv: &[Value], context: &Context) {
        if self.ways <= MAX_WAYS {
            return;
        }
        let mixes = |word: &Value| {
            word.variables
                .iter()
                .filter(|name| self.looped.iter().any(|other| other.as_str() == name.as_ref()))
                .count()
                > 1
        };
        let deletes = argv
            .first()
            .is_some_and(|word| matches!(path::file_name(&word.text), "rm" | "find" | "shred" | "unlink"));
        if argv.first().is_some_and(mixes) || deletes && argv.iter().any(mixes) {
            self.unknown(
                "loops inside each other put a command together in more ways than are followed",
                context,
            );
        }
    }

    /// Runs what follows a `cd` that has failed, in the folder before it.
    pub(super) fn after_failed_cd(
        &mut self,
        failed: ShellState,
        items: &[Item<'_>],
        number: usize,
        heres: &[Here<'_>],
        context: &Context,
    ) -> Vec<ShellState> {
        let mut next = number;
        // What depends on its success does not run.
        while items.get(next).is_some_and(|item| item.then == Then::OnSuccess) {
            next += 1;
        }
        let handles = items.get(next).is_some_and(|item| item.then == Then::OnFailure)
            && items.get(next + 1).is_some_and(|item| leaves(&item.stages));
        if handles {
            return Vec::new();
        }
        let state = std::mem::replace(&mut self.state, failed);
        let others = std::mem::take(&mut self.others);
        self.cds_fail = true;
        self.items(items.get(next + 1..).unwrap_or(&[]), heres, context);
        self.cds_fail = false;
        self.state = state;
        self.others = others;
        Vec::new()
    }
}

/// Whether a command ends the shell: `exit`, `return`, or a group that holds one.
fn leaves(stages: &[Node<'_>]) -> bool {
    stages.iter().any(|stage| match &stage.kind {
        NodeKind::Simple { words, .. } => {
            matches!(
                words.first(),
                Some(Word::Plain("exit" | "return" | "die" | "fail" | "abort" | "continue" | "break"))
            )
        }
        NodeKind::Group(lists) => lists.iter().any(|list| list.items.iter().any(|item| leaves(&item.stages))),
        _ => false,
    })
}
