//! Waking: making an idle agent notice that there is mail for it.

pub mod terminal;
