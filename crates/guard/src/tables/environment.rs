//! Commands that print the environment, besides `env` and its kin.

use super::{Sample, held};

/// A command that prints the environment: its leading words, and the words of which it has one;
/// none means any.
#[derive(Debug)]
pub(crate) struct Dump {
    pub(crate) call: &'static str,
    pub(crate) with: &'static [&'static str],
    pub(crate) example: Sample,
}

const fn dump(call: &'static str, with: &'static [&'static str], example: &'static str) -> Dump {
    Dump { call, with, example: held("protect-env-vars", example) }
}

/// The table. What a substitution takes is not printed: `eval "$(mise env)"`.
pub(crate) const DUMPS: &[Dump] = &[
    dump("cmake -E environment", &[], "cmake -E environment"),
    dump("gdb", &["show environment", "show env", "info environment"], "gdb -batch -ex 'show environment'"),
    dump("lldb", &["settings show target.env-vars"], "lldb -b -o 'settings show target.env-vars'"),
    dump("systemctl show", &["Environment", "--property=Environment"], "systemctl show app -p Environment"),
    dump("mise env", &[], "mise env"),
    dump("devbox shellenv", &[], "devbox shellenv"),
    dump("make", &["-p", "-pn", "-np", "-qp", "-pq", "--print-data-base"], "make -pn | grep KEY"),
    dump("php -i", &[], "php -i"),
    dump("php --info", &[], "php --info"),
    dump("bun -p", &["import.meta.env", "process.env", "Bun.env"], "bun -p 'import.meta.env'"),
    dump("pm2 env", &[], "pm2 env 0"),
];
