//! Questions as a model sees them. The agents' text in them is defused, like a message.

pub(crate) mod answer;
pub(crate) mod list;
