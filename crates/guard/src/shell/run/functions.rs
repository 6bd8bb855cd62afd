//! Aliases and functions that the text itself defines.

use super::*;

/// How deep a function that calls itself is followed. Deeper calls rarely do anything new.
const MAX_RECURSION_DEPTH: usize = 4;
/// How often functions that call themselves are followed in all. This bounds functions that call
/// each other.
const MAX_RECURSIONS: usize = 256;

impl Shell<'_> {
    pub(super) fn expand_alias(
        &mut self,
        name: &str,
        text: &str,
        argv: Vec<Value>,
        context: &Context,
    ) -> Value {
        let saved = std::mem::replace(&mut self.state.arguments, argv.into_iter().skip(1).collect());
        self.active.push(name.to_owned());
        let printed = self.source(&format!("{text} \"$@\""), &context.deeper());
        self.active.pop();
        self.restore_arguments(saved);
        printed
    }

    pub(super) fn call(&mut self, name: &str, body: &str, argv: Vec<Value>, context: &Context) -> Value {
        let saved = std::mem::replace(&mut self.state.arguments, argv.into_iter().skip(1).collect());
        let printed = if self.active.iter().any(|active| active == name) && !self.calls_again(name, context) {
            Value::unknown(Origin::Input)
        } else {
            self.step(self.state.size());
            self.active.push(name.to_owned());
            self.called.push((name.to_owned(), self.state.clone()));
            let printed = self.source(body, &context.deeper());
            self.called.pop();
            self.active.pop();
            printed
        };
        self.restore_arguments(saved);
        printed
    }

    /// Whether a running function is followed again: a few times, while its state is new. The last
    /// time, its arguments are unknown.
    fn calls_again(&mut self, name: &str, context: &Context) -> bool {
        let multiplies =
            context.background || context.stdin.is_some() || (context.wants_output && !context.captured);
        if multiplies
            && !self.analysis.recursive.iter().any(|other| other == name)
            && self.analysis.recursive.len() < 16
        {
            self.analysis.recursive.push(name.to_owned());
        }
        let calls: Vec<&ShellState> =
            self.called.iter().filter(|(called, _)| called == name).map(|(_, state)| state).collect();
        if calls.len() > MAX_RECURSION_DEPTH || calls.contains(&&self.state) {
            return false;
        }
        self.recursions += 1;
        if self.recursions > MAX_RECURSIONS {
            self.unknown(format!("{name} calls itself too often to follow"), context);
            return false;
        }
        if calls.len() == MAX_RECURSION_DEPTH
            && let Some(first) = calls.first().map(|first| (*first).clone())
        {
            self.state.blur(first);
            for (number, argument) in self.state.arguments.iter_mut().enumerate() {
                *argument = Value::unknown(Origin::Variable(Rc::from((number + 1).to_string())));
            }
        }
        true
    }
}
