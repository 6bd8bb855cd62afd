//! The judges: from what was observed to a verdict.
