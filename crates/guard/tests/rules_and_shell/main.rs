//! The rules and the analysis of the shell, checked from outside: lists of commands, rules' own
//! examples, tables, attacks, and two other parsers as second opinions.

mod cases;
mod examples;
mod fuzzed;
mod lists;
mod logins;
mod one_step_behind;
mod permits;
mod redaction;
mod robust;
mod rule_files;
mod second_attack;
mod second_opinion;
mod tables;
