//! What follows from the observations so far.
