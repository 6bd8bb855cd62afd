//! Programs that run other programs: where the other command begins among their words.

use super::{Sample, held};

/// How a program is given the command that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunnerForm {
    /// Its remaining words are the command.
    Words,
    /// Its remaining words are joined and given to a shell.
    Line,
    /// Each of its operands is a line for a shell.
    Each,
    /// The value of each of these options is a line for a shell.
    Options(&'static [&'static str]),
    /// What follows one of these words is the command.
    After(&'static [&'static str]),
    /// Commands of the program's own language, of which these run a line in a shell.
    Escapes {
        /// Options that give such a command; none for operands and the input.
        options: &'static [&'static str],
        /// How a command begins that runs the rest of it. What ends with `(` or `=` may be anywhere
        /// in it.
        marks: &'static [&'static str],
    },
}

/// One program, or one of its subcommands.
#[derive(Debug)]
pub(crate) struct Runner {
    /// The names, each with its subcommand if it has one: `uv run`.
    pub(crate) calls: &'static [&'static str],
    /// Short options that take a value.
    pub(crate) short: &'static str,
    /// Long options whose value is the next word.
    pub(crate) long: &'static [&'static str],
    /// How many of its own words come before the command.
    pub(crate) skip: usize,
    pub(crate) form: RunnerForm,
    pub(crate) example: Sample,
}

const fn row(
    calls: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    skip: usize,
    form: RunnerForm,
    example: &'static str,
) -> Runner {
    Runner { calls, short, long, skip, form, example: held("block-sudo", example) }
}

/// Options and then the command.
const fn words(
    calls: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    example: &'static str,
) -> Runner {
    row(calls, short, long, 0, RunnerForm::Words, example)
}

/// Options, one word of the runner, then the command.
const fn skips(
    calls: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    example: &'static str,
) -> Runner {
    row(calls, short, long, 1, RunnerForm::Words, example)
}

/// Lines for a shell that options give.
const fn lines(
    calls: &'static [&'static str],
    options: &'static [&'static str],
    example: &'static str,
) -> Runner {
    row(calls, "", &[], 0, RunnerForm::Options(options), example)
}

/// Commands of the program's own language, some of which run a line in a shell.
const fn escapes(
    calls: &'static [&'static str],
    options: &'static [&'static str],
    marks: &'static [&'static str],
    example: &'static str,
) -> Runner {
    row(calls, "", &[], 0, RunnerForm::Escapes { options, marks }, example)
}

/// What follows a mark is the command.
const fn after(
    calls: &'static [&'static str],
    marks: &'static [&'static str],
    example: &'static str,
) -> Runner {
    row(calls, "", &[], 0, RunnerForm::After(marks), example)
}

const UV_OPTIONS: &[&str] = &[
    "--python",
    "--with",
    "--with-editable",
    "--with-requirements",
    "--extra",
    "--group",
    "--only-group",
    "--no-group",
    "--package",
    "--env-file",
    "--directory",
    "--project",
    "--index",
    "--index-url",
    "--default-index",
    "--extra-index-url",
    "--cache-dir",
    "--config-file",
    "--color",
    "--refresh-package",
    "--upgrade-package",
    "--resolution",
    "--prerelease",
    "--exclude-newer",
    "--link-mode",
    "--from",
];
const PSQL_MARKS: &[&str] = &[r"\!", r"\\!"];
const MYSQL_MARKS: &[&str] = &[r"\!", "system "];
const END_OF_OPTIONS: &[&str] = &["--"];

/// A program may have several rows. Rows with options are checked first.
pub(crate) const RUNNERS: &[Runner] = &[
    // Python.
    words(&["uv run"], "piPCw", UV_OPTIONS, "uv run -p 3.12 sudo id"),
    words(&["uvx", "uv tool run"], "piPCw", UV_OPTIONS, "uv tool run --with x sudo id"),
    words(
        &["pipx run"],
        "",
        &["--spec", "--python", "--pip-args", "--index-url"],
        "pipx run --python 3.12 sudo id",
    ),
    words(&["poetry run"], "CP", &["--directory", "--project"], "poetry run sudo id"),
    words(&["pipenv run"], "", &[], "pipenv run sudo id"),
    words(&["pdm run"], "p", &["--project", "--venv", "--env-file"], "pdm run -p x sudo id"),
    words(&["hatch run"], "e", &["--env"], "hatch run sudo id"),
    words(&["hatch env run"], "ei", &["--env", "--include"], "hatch env run -e dev -- sudo id"),
    words(&["rye run"], "", &["--pyproject"], "rye run sudo id"),
    words(&["pixi run"], "e", &["--environment", "--manifest-path"], "pixi run -e dev sudo id"),
    words(
        &["conda run", "mamba run", "micromamba run"],
        "np",
        &["--name", "--prefix", "--cwd"],
        "conda run -n base sudo id",
    ),
    words(
        &["coverage run"],
        "",
        &["--source", "--omit", "--include", "--rcfile", "--context"],
        "coverage run sudo id",
    ),
    // JavaScript.
    lines(
        &["npm exec", "npm x", "npx", "bunx", "pnpm exec", "pnpm dlx", "yarn exec"],
        &["-c", "--call"],
        "npm exec -c 'sudo id'",
    ),
    words(&["npx", "bunx", "pnpx"], "pw", &["--package", "--workspace", "--prefix"], "npx -p x sudo id"),
    words(
        &["npm exec", "npm x", "bun x"],
        "pw",
        &["--package", "--workspace"],
        "npm exec --package x -- sudo id",
    ),
    words(&["pnpm exec", "pnpm dlx"], "CF", &["--package", "--filter", "--dir"], "pnpm exec sudo id"),
    words(&["yarn exec", "yarn dlx", "yarn node"], "p", &["--package"], "yarn dlx -p x sudo id"),
    words(
        &["lerna exec", "rush exec", "wsrun"],
        "",
        &["--scope", "--ignore", "--concurrency"],
        "lerna exec --scope a -- sudo id",
    ),
    words(&["shx", "cash"], "", &[], "npx shx sudo id"),
    words(
        &["cross-env", "cross-env-shell", "env-cmd", "dotenv", "dotenvx run", "dotenvx", "dotenv-run"],
        "fevpc",
        &["--file", "--env", "--environments", "--env-file"],
        "cross-env A=1 sudo id",
    ),
    row(
        &["concurrently", "conc"],
        "nck",
        &["--names", "--prefix", "--prefix-colors", "--max-processes", "--restart-tries", "--success"],
        0,
        RunnerForm::Each,
        "concurrently -n a,b 'npm start' 'sudo id'",
    ),
    lines(&["nodemon"], &["--exec", "-x"], "nodemon --exec 'sudo id'"),
    lines(
        &["tsc-watch"],
        &["--onSuccess", "--onFailure", "--onFirstSuccess"],
        "tsc-watch --onSuccess 'sudo id'",
    ),
    lines(&["tsup"], &["--onSuccess"], "tsup --onSuccess 'sudo id'"),
    row(
        &["wait-on", "start-server-and-test"],
        "",
        &[],
        0,
        RunnerForm::Each,
        "start-server-and-test 'sudo id' http://x test",
    ),
    words(&["volta run"], "", &["--node", "--npm", "--yarn"], "volta run --node 20 sudo id"),
    skips(&["fnm exec"], "", &["--using"], "fnm exec --using=20 x sudo id"),
    skips(&["nvm exec", "nvm run"], "", &[], "nvm exec 20 sudo id"),
    // Ruby, PHP, Rust, Go, Haskell, OCaml, Elixir.
    words(&["bundle exec"], "", &["--gemfile"], "bundle exec sudo id"),
    words(
        &["rbenv exec", "pyenv exec", "nodenv exec", "goenv exec", "jenv exec"],
        "",
        &[],
        "rbenv exec sudo id",
    ),
    words(&["spring", "zeus"], "", &[], "spring sudo id"),
    lines(&["cargo watch"], &["-s", "--shell"], "cargo watch -s 'sudo id'"),
    after(&["cargo watch"], END_OF_OPTIONS, "cargo watch -- sudo id"),
    skips(&["rustup run"], "", &[], "rustup run stable sudo id"),
    words(&["opam exec", "dune exec", "stack exec", "cabal exec"], "", &["--switch"], "opam exec -- sudo id"),
    lines(
        &["go run", "go build", "go test", "go vet"],
        &["-exec", "-toolexec"],
        "go test -exec 'sudo -E' ./...",
    ),
    // Versions and environments.
    skips(&["direnv exec"], "", &[], "direnv exec . sudo id"),
    after(&["mise exec", "mise x"], END_OF_OPTIONS, "mise exec node@20 -- sudo id"),
    lines(&["mise exec", "mise x"], &["-c", "--command"], "mise x -c 'sudo id'"),
    words(&["asdf exec"], "", &[], "asdf exec sudo id"),
    after(
        &["nix develop", "nix shell", "nix-shell", "nix run", "nix"],
        &["-c", "--command", "--"],
        "nix develop .# -c sudo id",
    ),
    lines(&["nix-shell"], &["--run", "--command"], "nix-shell -p x --run 'sudo id'"),
    words(&["devbox run"], "ce", &["--config", "--env"], "devbox run -- sudo id"),
    after(
        &["guix shell", "flox activate", "devenv shell", "spack build-env", "toolbox run", "distrobox enter"],
        END_OF_OPTIONS,
        "guix shell python -- sudo id",
    ),
    words(
        &["toolbox run", "distrobox-enter", "flatpak-spawn", "host-spawn", "distrobox-host-exec"],
        "ce",
        &["--container"],
        "flatpak-spawn --host sudo id",
    ),
    // Secrets that are given to a command.
    words(&["doppler run"], "cp", &["--project", "--config", "--token"], "doppler run -- sudo id"),
    lines(&["doppler run", "infisical run"], &["--command"], "doppler run --command 'sudo id'"),
    words(&["op run"], "", &["--env-file", "--account"], "op run --env-file x -- sudo id"),
    words(&["infisical run"], "", &["--env", "--path", "--projectId"], "infisical run --env dev -- sudo id"),
    skips(
        &["aws-vault exec", "chamber exec", "saml2aws exec"],
        "d",
        &["--duration", "--region"],
        "aws-vault exec me -- sudo id",
    ),
    row(&["sops exec-env", "sops exec-file"], "", &[], 1, RunnerForm::Line, "sops exec-env f 'sudo id'"),
    words(&["secretspec run", "teller run"], "", &[], "teller run sudo id"),
    // Watchers.
    words(&["entr", "when-changed", "reflex"], "", &[], "ls | entr sudo id"),
    words(
        &["watchexec"],
        "weifcsdNogW",
        &["--watch", "--exts", "--ignore", "--filter", "--signal", "--shell", "--delay-run", "--debounce"],
        "watchexec -e rs sudo id",
    ),
    row(&["watch", "viddy", "hwatch"], "nsq", &["--interval"], 0, RunnerForm::Line, "watch -n 1 'sudo id'"),
    lines(&["chokidar", "onchange"], &["-c", "--command"], "chokidar 'src/**' -c 'sudo id'"),
    after(&["onchange", "chokidar"], END_OF_OPTIONS, "onchange 'src/*' -- sudo id"),
    lines(&["watchman-make"], &["--run"], "watchman-make --run 'sudo id'"),
    lines(&["air"], &["--build.cmd", "--build.bin"], "air --build.cmd 'sudo id'"),
    // Measuring, tracing, debugging.
    row(
        &["hyperfine"],
        "wmMrNnLPDuS",
        &[
            "--warmup",
            "--runs",
            "--min-runs",
            "--max-runs",
            "--export-json",
            "--export-markdown",
            "--export-csv",
            "--parameter-scan",
            "--parameter-list",
            "--command-name",
            "--shell",
            "--style",
            "--time-unit",
            "--input",
            "--output",
        ],
        0,
        RunnerForm::Each,
        "hyperfine -w 3 'sudo id'",
    ),
    lines(
        &["hyperfine"],
        &["-p", "--prepare", "-s", "--setup", "-c", "--cleanup", "-C", "--conclude"],
        "hyperfine --prepare 'sudo id' ls",
    ),
    row(&["poop"], "d", &["--duration"], 0, RunnerForm::Each, "poop 'sudo id'"),
    words(
        &[
            "multitime",
            "perf stat",
            "perf record",
            "perf trace",
            "samply record",
            "heaptrack",
            "valgrind",
            "catchsegv",
            "cachegrind",
            "rr record",
            "uftrace record",
            "flamegraph",
        ],
        "nroegCFcj",
        &["--output", "--event", "--tool", "--num-callers", "--rate", "--repeat"],
        "perf stat -r 3 sudo id",
    ),
    words(
        &["strace", "ltrace", "truss", "dtruss"],
        "oepsSaEuPIbX",
        &["--output", "--trace"],
        "strace -o x sudo id",
    ),
    after(&["gdb", "lldb", "dlv exec"], &["--args", "--"], "gdb --args sudo id"),
    words(&["time", "gtime"], "fo", &["--format", "--output"], "time -f x sudo id"),
    // Scheduling, limits, namespaces.
    words(
        &[
            "builtin",
            "nohup",
            "setsid",
            "unbuffer",
            "eatmydata",
            "noglob",
            "nocorrect",
            "torsocks",
            "torify",
            "proxychains",
            "proxychains4",
            "rlwrap",
            "caffeinate",
            "dbus-run-session",
            "dbus-launch",
            "busybox",
            "toybox",
            "ssh-agent",
            "firejail",
            "prlimit",
            "then",
            "do",
            "else",
            "coproc",
            "-",
            "chronic",
            "sem",
            "tsocks",
            "systemd-cat",
            "winpty",
            "detach",
            "daemonize",
        ],
        "",
        &[],
        "nohup sudo id",
    ),
    words(&["exec"], "a", &[], "exec -a x sudo id"),
    skips(&["timeout", "gtimeout"], "sk", &["--signal", "--kill-after"], "timeout -s KILL 5 sudo id"),
    words(&["nice"], "n", &["--adjustment"], "nice -n 5 sudo id"),
    words(&["ionice"], "cnpPu", &["--class", "--classdata"], "ionice -c 3 sudo id"),
    words(&["cpulimit"], "lp", &["--limit"], "cpulimit -l 50 -- sudo id"),
    words(&["stdbuf"], "ioe", &["--input", "--output", "--error"], "stdbuf -o L sudo id"),
    skips(&["chroot"], "", &[], "chroot / sudo id"),
    words(
        &["unshare", "nsenter"],
        "tSGwR",
        &["--target", "--wd", "--root", "--map-user"],
        "unshare -r sudo id",
    ),
    words(&["bwrap"], "", &["--chdir", "--setenv"], "bwrap --unshare-all sudo id"),
    words(
        &["sudo", "doas", "pkexec", "please", "sudo-rs", "dzdo"],
        "ugphCcDrRtTU",
        &[
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
        "sudo -u root id",
    ),
    skips(&["gosu", "su-exec"], "", &[], "gosu me sudo id"),
    words(&["setpriv"], "", &["--reuid", "--regid", "--groups"], "setpriv --reuid 1 sudo id"),
    skips(&["taskset", "chrt"], "", &[], "taskset 1 sudo id"),
    words(&["numactl", "linux64", "linux32"], "CNmip", &[], "linux64 sudo id"),
    words(&["arch"], "", &[], "arch -x86_64 sudo id"),
    skips(&["faketime"], "f", &[], "faketime x sudo id"),
    words(
        &["systemd-run", "systemd-inhibit"],
        "upHMEC",
        &[
            "--unit",
            "--property",
            "--uid",
            "--gid",
            "--what",
            "--who",
            "--why",
            "--description",
            "--slice",
            "--setenv",
            "--on-active",
            "--on-calendar",
            "--working-directory",
        ],
        "systemd-run --user -u x sudo id",
    ),
    words(
        &["xvfb-run"],
        "neslfp",
        &["--server-args", "--server-num", "--auth-file"],
        "xvfb-run -n 1 sudo id",
    ),
    words(&["retry", "eb", "try"], "tdm", &["--times", "--delay", "--max"], "retry -t 3 sudo id"),
    words(&["softlimit", "chpst"], "ueU/nbmdopfcrtas", &[], "softlimit -m 1 sudo id"),
    words(
        &["fakeroot", "proot", "fakechroot", "cowdancer"],
        "lsib",
        &["--lib", "--faked"],
        "fakeroot sudo id",
    ),
    words(&["cmake -E env", "cmake -E time"], "", &["--unset"], "cmake -E env A=1 sudo id"),
    escapes(
        &["gdb"],
        &["-ex", "--ex", "-eval-command", "--eval-command", "-iex"],
        &["shell ", "!", "pipe "],
        "gdb -batch -ex 'shell sudo id'",
    ),
    escapes(
        &["lldb"],
        &["-o", "-O", "--one-line", "--one-line-before-file"],
        &["platform shell ", "shell ", "!"],
        "lldb -b -o 'platform shell sudo id'",
    ),
    escapes(&["psql"], &["-c", "--command"], PSQL_MARKS, r"psql -c '\! sudo id'"),
    escapes(&["psql", "pgcli"], &[], PSQL_MARKS, r"psql <<< '\! sudo id'"),
    escapes(&["mysql", "mariadb"], &[], MYSQL_MARKS, "mysql <<< 'system sudo id'"),
    escapes(&["mysql", "mariadb"], &["-e", "--execute"], MYSQL_MARKS, "mysql -e 'system sudo id'"),
    escapes(&["sqlite3", "duckdb"], &[], &[".shell ", ".system "], "sqlite3 :memory: '.shell sudo id'"),
    escapes(
        &["sqlite3", "duckdb"],
        &["-cmd", "-c"],
        &[".shell ", ".system "],
        "sqlite3 -cmd '.shell sudo id' x",
    ),
    escapes(&["ed", "red", "ftp", "sftp", "lftp", "bc"], &[], &["!"], "ed -s README.md <<< '!sudo id'"),
    escapes(&["socat"], &[], &["EXEC:", "SYSTEM:", "exec:", "system:", "SHELL:"], "socat - EXEC:'sudo id'"),
    escapes(
        &["fzf", "sk"],
        &["--bind"],
        &["execute(", "execute-silent(", "become(", "reload(", "preview("],
        "fzf --bind 'enter:execute(sudo id)'",
    ),
    escapes(
        &["cargo"],
        &["--config"],
        &["runner=", "rustc-wrapper=", "linker="],
        "cargo --config 'target.x.runner=\"sudo\"' run",
    ),
    lines(&["git difftool"], &["-x", "--extcmd"], "git difftool -y -x 'sudo diff' HEAD"),
    lines(&["scp", "sftp"], &["-S"], "scp -S 'sudo ssh' a b:"),
    lines(&["nc", "ncat", "netcat"], &["-e", "-c", "--exec", "--sh-exec"], "ncat --sh-exec 'sudo id' -l 1"),
    after(
        &["zellij run", "zellij action", "wezterm cli", "nx exec", "melos exec", "turbo exec"],
        END_OF_OPTIONS,
        "zellij run -- sudo id",
    ),
    words(
        &["kitty @ launch", "kitten @ launch"],
        "",
        &["--type", "--cwd", "--title"],
        "kitty @ launch sudo id",
    ),
    lines(&["meson test"], &["--wrap", "--wrapper"], "meson test --wrap='sudo gdb'"),
    lines(
        &["bazel run", "bazel test", "bazelisk run"],
        &["--run_under"],
        "bazel run --run_under='sudo' //:x",
    ),
    row(&["bun exec", "pnpm -c exec", "pnpm exec -c"], "", &[], 0, RunnerForm::Line, "bun exec 'sudo id'"),
    words(&["mix cmd", "mix do cmd"], "", &["--app", "--cd"], "mix do cmd sudo id"),
    words(
        &[
            "yarn workspaces foreach -A exec",
            "yarn workspaces foreach --all exec",
            "yarn workspaces foreach -Apt exec",
        ],
        "",
        &[],
        "yarn workspaces foreach -A exec sudo id",
    ),
    skips(&["envchain"], "", &["--noecho"], "envchain x sudo id"),
    skips(&["setarch"], "", &[], "setarch x86_64 sudo id"),
    words(
        &["nodemon"],
        "ewidx",
        &["--ext", "--watch", "--ignore", "--delay", "--exec", "--signal"],
        "nodemon -e js sudo id",
    ),
    skips(&["envuidgid", "setuidgid", "envdir"], "ueU/nbmdopfcrt", &[], "setuidgid me sudo id"),
    words(
        &["pm2 start", "forever start", "pm2-runtime"],
        "nif",
        &["--name", "--interpreter"],
        "pm2 start sudo -- id",
    ),
    row(
        &["start-stop-daemon"],
        "",
        &[],
        0,
        RunnerForm::After(&["-x", "--exec", "-a", "--startas"]),
        "start-stop-daemon -S -x sudo -- id",
    ),
    row(&["dtach", "abduco"], "", &[], 1, RunnerForm::Words, "abduco -n x sudo id"),
    // Other machines.
    skips(
        &["multipass exec", "lima", "limactl shell", "vagrant ssh", "colima ssh", "orb"],
        "",
        &[],
        "multipass exec vm -- sudo id",
    ),
    after(
        &["multipass exec", "gcloud compute ssh", "colima ssh", "orb", "wsl", "gh codespace ssh"],
        END_OF_OPTIONS,
        "gh codespace ssh -- sudo id",
    ),
    lines(
        &["vagrant ssh", "gcloud compute ssh", "ansible"],
        &["-c", "--command", "-a", "--args"],
        "vagrant ssh -c 'sudo id'",
    ),
    lines(
        &["ssh", "scp", "sftp", "rsync", "mosh"],
        &["-oProxyCommand", "-oLocalCommand"],
        "ssh -oProxyCommand='sudo nc %h %p' h",
    ),
    lines(&["rsync"], &["--rsync-path", "-e", "--rsh"], "rsync -a --rsync-path='sudo rsync' src h:/etc"),
    words(&["sshpass"], "pfPe", &[], "sshpass -p x sudo id"),
    words(&["autossh"], "M", &[], "autossh -M 0 sudo id"),
    // Options of ordinary programs.
    lines(
        &["tar", "gtar", "bsdtar"],
        &[
            "-I",
            "--use-compress-program",
            "--to-command",
            "-F",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
        "tar -I 'sudo gzip' -cf x.tgz src",
    ),
    lines(&["sort"], &["--compress-program"], "sort --compress-program 'sudo gzip' f"),
    lines(&["split"], &["--filter"], "split --filter='sudo id' f"),
    lines(&["zip"], &["-TT", "--unzip-command"], "zip -T -TT 'sudo id' a.zip f"),
    lines(&["man"], &["-P", "--pager", "-H"], "man -P 'sudo less' ls"),
    lines(&["rg"], &["--pre", "--hostname-bin"], "rg --pre 'sudo' x"),
    lines(
        &["git"],
        &["--upload-pack", "--receive-pack", "--open-files-in-pager"],
        "git fetch --upload-pack 'sudo git-upload-pack' x",
    ),
    lines(&["fzf"], &["--preview", "--bind-shell"], "fzf --preview 'sudo cat {}'"),
    lines(&["xterm", "konsole", "alacritty", "kitty", "foot", "urxvt"], &["-e"], "xterm -e 'sudo id'"),
    after(
        &["gnome-terminal", "xterm", "alacritty", "kitty", "wezterm start", "konsole"],
        &["--", "-e", "-x"],
        "gnome-terminal -- sudo id",
    ),
];
