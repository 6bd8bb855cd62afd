//! Asks and answers across agents.
