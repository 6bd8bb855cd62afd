//! Questions as a model gets them. What agents say in them is defused, like a message.

pub(super) mod answer;
pub(super) mod list;
