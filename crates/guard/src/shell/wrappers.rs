//! Commands that run another command: how their own options end and where the other one begins.

use super::value::Value;

/// How a wrapper's arguments are read.
pub(super) struct Wrapper {
    /// Its names.
    pub(super) names: &'static [&'static str],
    /// Short options that take a value.
    pub(super) short: &'static str,
    /// Long options whose value is the next word.
    pub(super) long: &'static [&'static str],
    /// Words of its own before the command.
    pub(super) skip: usize,
}

const fn plain(names: &'static [&'static str]) -> Wrapper {
    Wrapper { names, short: "", long: &[], skip: 0 }
}

/// Every wrapper whose command simply follows its options.
pub(super) const WRAPPERS: &[Wrapper] = &[
    plain(&[
        "builtin",
        "nohup",
        "setsid",
        "unbuffer",
        "catchsegv",
        "eatmydata",
        "noglob",
        "nocorrect",
        "torsocks",
        "torify",
    ]),
    plain(&[
        "proxychains",
        "proxychains4",
        "rlwrap",
        "caffeinate",
        "dbus-run-session",
        "dbus-launch",
        "busybox",
        "toybox",
    ]),
    plain(&[
        "ssh-agent",
        "pipx-run",
        "firejail",
        "faketime-run",
        "cgexec",
        "prlimit",
        "then",
        "do",
        "else",
        "coproc",
        "-",
    ]),
    Wrapper { names: &["exec"], short: "a", long: &[], skip: 0 },
    Wrapper { names: &["time", "gtime"], short: "fo", long: &["--format", "--output"], skip: 0 },
    Wrapper { names: &["timeout", "gtimeout"], short: "sk", long: &["--signal", "--kill-after"], skip: 1 },
    Wrapper { names: &["nice"], short: "n", long: &["--adjustment"], skip: 0 },
    Wrapper { names: &["ionice"], short: "cnpPu", long: &["--class", "--classdata"], skip: 0 },
    Wrapper { names: &["stdbuf"], short: "ioe", long: &["--input", "--output", "--error"], skip: 0 },
    Wrapper { names: &["chroot"], short: "", long: &[], skip: 1 },
    Wrapper {
        names: &["unshare", "nsenter"],
        short: "tSGwR",
        long: &["--target", "--wd", "--root", "--map-user"],
        skip: 0,
    },
    Wrapper {
        names: &["sudo", "doas", "pkexec", "gosu-sudo", "please", "sudo-rs", "dzdo"],
        short: "ugphCcDrRtTU",
        long: &[
            "--user",
            "--group",
            "--prompt",
            "--host",
            "--chdir",
            "--close-from",
            "--role",
            "--type",
            "--chroot",
        ],
        skip: 0,
    },
    Wrapper { names: &["gosu", "su-exec", "setpriv-user", "chpst-user"], short: "", long: &[], skip: 1 },
    Wrapper { names: &["setpriv"], short: "", long: &["--reuid", "--regid", "--groups"], skip: 0 },
    Wrapper { names: &["strace", "ltrace"], short: "oepsSaEuPIbX", long: &["--output", "--trace"], skip: 0 },
    Wrapper { names: &["taskset", "chrt"], short: "", long: &[], skip: 1 },
    Wrapper { names: &["numactl", "setarch", "linux64", "linux32"], short: "CNmip", long: &[], skip: 0 },
    Wrapper { names: &["arch"], short: "", long: &[], skip: 0 },
    Wrapper { names: &["valgrind", "perf-run", "heaptrack", "hyperfine-one"], short: "", long: &[], skip: 0 },
    Wrapper { names: &["faketime"], short: "f", long: &[], skip: 1 },
    Wrapper {
        names: &["systemd-run", "systemd-inhibit"],
        short: "upHMpEC",
        long: &["--unit", "--property", "--uid", "--gid", "--what", "--who", "--why"],
        skip: 0,
    },
    Wrapper {
        names: &["npx", "bunx", "pnpx", "uvx"],
        short: "pw",
        long: &["--package", "--from", "--with", "--workspace"],
        skip: 0,
    },
    Wrapper { names: &["dotenv", "dotenvx", "env-cmd"], short: "fevpc", long: &["--file", "--env"], skip: 0 },
    Wrapper {
        names: &["xvfb-run"],
        short: "neslfp",
        long: &["--server-args", "--server-num", "--auth-file"],
        skip: 0,
    },
    Wrapper {
        names: &["chronic", "ts-run", "vipe-run", "retry", "sem", "entr", "when-changed", "envdir-run"],
        short: "",
        long: &[],
        skip: 0,
    },
    Wrapper {
        names: &["softlimit", "envuidgid", "setuidgid", "envdir", "chpst"],
        short: "ueU/nbmdopfcrt",
        long: &[],
        skip: 1,
    },
];

/// Wrappers that are two words: the command, and the subcommand after which another command follows.
pub(super) const SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("uv", &["run"]),
    ("pipx", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("bundle", &["exec"]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("bun", &["x"]),
    ("mise", &["exec", "x"]),
    ("asdf", &["exec"]),
    ("rbenv", &["exec"]),
    ("pyenv", &["exec"]),
    ("nodenv", &["exec"]),
    ("nvm", &["exec"]),
    ("fnm", &["exec"]),
    ("direnv", &["exec"]),
    ("doppler", &["run"]),
    ("op", &["run"]),
    ("infisical", &["run"]),
    ("aws-vault", &["exec"]),
    ("chamber", &["exec"]),
    ("sops", &["exec-env"]),
    ("rustup", &["run"]),
    ("opam", &["exec"]),
    ("stack", &["exec"]),
    ("cabal", &["exec"]),
    ("dotnet", &["exec"]),
    ("devbox", &["run"]),
    ("flox", &["activate"]),
    ("volta", &["run"]),
    ("pixi", &["run"]),
    ("lerna", &["exec"]),
    ("rush", &["exec"]),
    ("wsl", &[""]),
];

/// Where the wrapped command begins among the arguments.
pub(super) fn command_start(wrapper: &Wrapper, args: &[Value]) -> Option<usize> {
    let mut skip = wrapper.skip;
    let mut at = 0;
    while let Some(value) = args.get(at) {
        let text = value.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            at += 1;
            if !long.contains('=') && wrapper.long.contains(&text) {
                at += 1;
            }
        } else if text.len() > 1 && text.starts_with('-') && value.is_known() {
            at += 1;
            // The value of an option is glued to it, or the next word.
            let valued = text.char_indices().skip(1).find(|(_, sign)| wrapper.short.contains(*sign));
            if valued.is_some_and(|(place, sign)| place + sign.len_utf8() == text.len()) {
                at += 1;
            }
        } else if is_assignment(text) {
            at += 1;
        } else if skip > 0 {
            skip -= 1;
            at += 1;
        } else {
            break;
        }
    }
    while skip > 0 && at < args.len() {
        skip -= 1;
        at += 1;
    }
    (at < args.len()).then_some(at)
}

/// Whether a text is the address of something to fetch.
pub(super) fn is_address(text: &str) -> bool {
    const STARTS: &[&str] =
        &["http://", "https://", "git+", "git://", "ssh://", "github:", "gitlab:", "bitbucket:", "gist:"];
    STARTS.iter().any(|start| text.starts_with(start))
}

/// Whether a runner of packages fetches what it runs from an address and not from its registry.
pub(super) fn fetches(name: &str, args: &[Value], command: Option<&Value>) -> bool {
    const RUNNERS: &[&str] = &["npx", "bunx", "pnpx", "uvx", "npm", "pnpm", "yarn", "bun", "uv", "pipx"];
    if !RUNNERS.contains(&name) {
        return false;
    }
    let before = args.iter().take_while(|arg| command.is_none_or(|command| !std::ptr::eq(*arg, command)));
    let option = before
        .map(|arg| arg.text.split_once('=').map_or(arg.text.as_str(), |(_, value)| value))
        .any(is_address);
    // `npx owner/repository` is one of GitHub's.
    let shorthand = |text: &str| {
        matches!(name, "npx" | "pnpx" | "npm")
            && !text.starts_with(['@', '.', '/', '~'])
            && text.split('/').count() == 2
            && text.split('/').all(|part| !part.is_empty())
    };
    option || command.is_some_and(|command| is_address(&command.text) || shorthand(&command.text))
}

/// `NAME=value`.
pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|sign: char| sign.is_ascii_digit())
    })
}
