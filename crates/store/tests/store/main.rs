//! The store against its meaning: the pure mailbox, many processes at once, other versions, and the
//! size of its files.

#[cfg(test)]
mod clears;
#[cfg(test)]
mod creation;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod heard;
#[cfg(test)]
mod post;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod wal;
