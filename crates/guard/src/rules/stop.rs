//! Rules for the end of a turn.

use super::{Rule, RuleSet};
use crate::judge::Call;
use crate::world::World;
use baton_core::guard::Verdict;

pub(crate) const RULES: &[Rule] = &[];

/// What the rules say about the end of a turn.
pub(crate) fn check(_call: &Call<'_>, _rules: &RuleSet, _world: &dyn World) -> Vec<Verdict> {
    Vec::new()
}
