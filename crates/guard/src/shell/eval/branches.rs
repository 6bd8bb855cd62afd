//! Branches: each runs from the same state, and what follows runs in each of the states that they
//! leave.

use super::*;

/// How many branches make the rest run again in another state. Beyond this, what differs becomes
/// unknown.
const MAX_FORKS: usize = 12;
/// How many states are followed at once.
const MAX_OTHERS: usize = 4;

impl<'w> Shell<'w> {
    /// Runs each of several branches from the same state. The states that they leave become the
    /// state and the other states.
    pub(super) fn in_branches(
        &mut self,
        ways: &[&List<'_>],
        heres: &[Here<'_>],
        context: &Context,
        may_skip: bool,
    ) -> Value {
        let mut output = Value::default();
        let mut ends = Vec::new();
        let from = self.state.clone();
        for way in ways {
            if !self.step(4 + from.size() * 2) {
                break;
            }
            output.push(&self.list(way, heres, context));
            let end = std::mem::replace(&mut self.state, from.clone());
            ends.push(end);
            ends.append(&mut self.others);
        }
        if !may_skip && let Some(last) = ends.pop() {
            self.state = last;
        }
        for end in ends {
            self.or_else(end);
        }
        output
    }

    /// Restores the caller's arguments after a function, in each of the states that it left.
    pub(in crate::shell) fn restore_arguments(&mut self, arguments: Vec<Value>) {
        for other in &mut self.others {
            other.arguments.clone_from(&arguments);
        }
        self.state.arguments = arguments;
    }

    /// Adds another possible state after this point. If there are too many, what differs becomes
    /// unknown.
    pub(super) fn or_else(&mut self, other: ShellState) {
        if other == self.state || self.others.contains(&other) {
            return;
        }
        if self.forks < MAX_FORKS && self.others.len() < MAX_OTHERS {
            self.forks += 1;
            self.others.push(other);
        } else {
            self.state.blur(other);
        }
    }

    /// Runs the rest of a list in the other states. Returns the states that this leaves behind.
    pub(super) fn in_other_states(
        &mut self,
        rest: &[Item<'_>],
        heres: &[Here<'_>],
        context: &Context,
    ) -> Vec<ShellState> {
        let others = std::mem::take(&mut self.others);
        if rest.is_empty() || others.is_empty() {
            return others;
        }
        let state = std::mem::take(&mut self.state);
        let mut ends = Vec::new();
        for other in others {
            self.state = other;
            self.items(rest, heres, context);
            ends.push(std::mem::take(&mut self.state));
            ends.append(&mut self.others);
        }
        self.state = state;
        ends
    }
}

impl ShellState {
    /// Makes everything unknown that differs in another state.
    pub(in crate::shell) fn blur(&mut self, other: ShellState) {
        for (name, values) in other.variables {
            if self.variables.get(&name) != Some(&values) {
                let unknown = Value::unknown(Origin::Variable(Rc::from(name.as_str())));
                self.variables.insert(name, vec![unknown]);
            }
        }
        for (name, body) in other.functions {
            self.functions.entry(name).or_insert(body);
        }
        for (name, text) in other.aliases {
            self.aliases.entry(name).or_insert(text);
        }
        if self.cwd != other.cwd {
            self.cwd = None;
        }
    }
}
