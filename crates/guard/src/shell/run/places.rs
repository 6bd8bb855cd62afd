//! Commands that run others elsewhere, or by an option: other machines, terminals, git, editors.

use super::*;

impl Shell<'_> {
    pub(super) fn remote(&mut self, args: &[Value], context: &Context) -> Value {
        let wrapper = wrappers::Wrapper { short: "bcDEeFIiJLlmOopQRSWwB", long: &["--ssh"], skip: 0 };
        for text in
            values_of(args, &["-o"]).iter().chain(args.iter().filter(|arg| arg.text.starts_with("-o")))
        {
            let lower = text.text.to_ascii_lowercase();
            let runs = ["proxycommand", "localcommand", "knownhostscommand"];
            if runs.iter().any(|option| lower.trim_start_matches("-o").starts_with(option))
                && let Some(at) = text.text.find(['=', ' '])
            {
                let line = text.slice(at + 1, text.text.len());
                self.in_subshell(|shell| shell.source_value(&line, "ssh", &context.deeper()));
            }
        }
        let Some(host) = wrappers::command_start(&wrapper, args) else { return Value::default() };
        let is_local = args.get(host).is_some_and(|value| {
            let host = value.text.rsplit('@').next().unwrap_or("");
            matches!(host, "localhost" | "127.0.0.1" | "::1" | "0.0.0.0")
        });
        let location = if is_local { context.location } else { Location::Elsewhere };
        let mut inner = Context { location, stdin: None, ..context.deeper() };
        let command = args.get(host + 1..).unwrap_or(&[]);
        self.in_subshell(|shell| {
            shell.state.cwd = Some(if is_local { shell.world.home() } else { REMOTE_CWD.to_owned() });
            if command.is_empty() {
                if let Some(stdin) = context.stdin.as_deref() {
                    shell.source_value(stdin, "ssh", &inner);
                }
            } else {
                inner.stdin.clone_from(&context.stdin);
                shell.run_joined(Some(0), command, "ssh", &inner);
            }
        });
        if is_local { Value::default() } else { Value::unknown(Origin::Download) }
    }

    /// The lines of a schedule: five fields or `@daily`, then a command.
    pub(super) fn crontab(&mut self, args: &[Value], context: &Context) {
        let file = args.iter().find(|arg| !arg.text.starts_with('-')).map(|file| self.content(file));
        let text = match (file, context.stdin.as_deref()) {
            (Some(file), _) => file,
            (None, Some(stdin)) => stdin.clone(),
            (None, None) => return,
        };
        for line in text.text.lines().take(64).map(str::trim).filter(|line| !line.starts_with('#')) {
            let fields = if line.starts_with('@') { 1 } else { 5 };
            let mut rest = line;
            for _ in 0..fields {
                rest = rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
            }
            if !rest.is_empty() {
                self.in_subshell(|shell| shell.source(rest, &context.deeper()));
            }
        }
    }

    pub(super) fn terminal(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        const KEYS: &[&str] = &["Enter", "C-m", "C-c", "KPEnter", "Escape", "Space", "Tab"];
        if name == "screen" || name == "zellij" {
            if let Some(at) = args.iter().position(|arg| arg.text == "stuff" || arg.text == "write-chars") {
                let mut text = args.get(at + 1).cloned().unwrap_or_default();
                text.text = text.text.replace("\\n", "\n").replace("^M", "\n").replace('\r', "\n");
                return self.source_value(&text, name, &context.deeper());
            }
            let wrapper = wrappers::Wrapper { short: "STtscehp", long: &[], skip: 0 };
            return self.run_rest(wrappers::command_start(&wrapper, args), args, context);
        }
        let Some(at) = args.iter().position(|arg| {
            matches!(
                arg.text.as_str(),
                "send-keys"
                    | "send"
                    | "new"
                    | "new-session"
                    | "neww"
                    | "new-window"
                    | "splitw"
                    | "split-window"
                    | "run"
                    | "run-shell"
                    | "respawn-pane"
                    | "respawn-window"
                    | "respawnw"
                    | "respawnp"
                    | "pipe-pane"
                    | "pipep"
                    | "if-shell"
                    | "popup"
                    | "display-popup"
            )
        }) else {
            return Value::default();
        };
        let keys = args.get(at).is_some_and(|arg| arg.text.starts_with("send"));
        let wrapper =
            wrappers::Wrapper { short: if keys { "tNc" } else { "tsncxyFlpeEThwdST" }, long: &[], skip: 0 };
        // A detached session has `-d`, which takes no value there.
        let wrapper = if keys { wrapper } else { wrappers::Wrapper { short: "tsncxyFlpeEThwS", ..wrapper } };
        let rest = args.get(at + 1..).unwrap_or(&[]);
        let Some(start) = wrappers::command_start(&wrapper, rest) else { return Value::default() };
        let words: Vec<Value> = rest
            .get(start..)
            .unwrap_or(&[])
            .iter()
            .filter(|arg| !keys || !KEYS.contains(&arg.text.as_str()))
            .cloned()
            .collect();
        self.run_joined(Some(0), &words, name, context)
    }

    pub(super) fn git(&mut self, args: &[Value], context: &Context) -> Value {
        let inner = context.deeper();
        self.git_alias(args, context);
        for (number, arg) in args.iter().enumerate() {
            let next = || args.get(number + 1).cloned().unwrap_or_default();
            match arg.text.as_str() {
                "-c" | "--config-env" => {
                    if let Some((key, value)) = next().split_at_sign('=') {
                        let key = key.text.to_ascii_lowercase();
                        if let Some(text) = value.after("!").filter(|_| key.starts_with("alias.")) {
                            self.source_value(&text, "git", &inner);
                        } else if matches!(
                            key.as_str(),
                            "core.pager"
                                | "core.editor"
                                | "core.sshcommand"
                                | "sequence.editor"
                                | "core.fsmonitor"
                                | "diff.external"
                                | "credential.helper"
                        ) {
                            self.source_value(&value, "git", &inner);
                        }
                    }
                }
                "--exec" | "-x" | "--tree-filter" | "--index-filter" | "--env-filter" | "--msg-filter"
                | "--upload-pack" | "--receive-pack"
                    if args.iter().any(|arg| {
                        matches!(arg.text.as_str(), "rebase" | "filter-branch" | "clone" | "fetch")
                    }) =>
                {
                    self.source_value(&next(), "git", &inner);
                }
                "foreach" if args.first().is_some_and(|arg| arg.text == "submodule") => {
                    let start = (number + 1..args.len())
                        .find(|at| args.get(*at).is_some_and(|arg| !arg.text.starts_with('-')));
                    self.run_joined(start, args, "git", context);
                }
                "run" if args.first().is_some_and(|arg| arg.text == "bisect") => {
                    self.run_rest(Some(number + 1), args, context);
                }
                "config" if number == 0 => {
                    let values: Vec<&Value> =
                        args.iter().skip(1).filter(|arg| !arg.text.starts_with('-')).collect();
                    if let [key, value, ..] = values[..]
                        && key.text.to_ascii_lowercase().starts_with("alias.")
                        && let Some(text) = value.after("!")
                    {
                        self.source_value(&text, "git", &inner);
                    }
                }
                _ => {}
            }
        }
        self.printed("git", args, context)
    }

    /// Runs an alias of git's configuration.
    fn git_alias(&mut self, args: &[Value], context: &Context) {
        const OWN: &[&str] = &[
            "add",
            "am",
            "apply",
            "archive",
            "bisect",
            "blame",
            "branch",
            "bundle",
            "cat-file",
            "checkout",
            "cherry-pick",
            "clean",
            "clone",
            "commit",
            "config",
            "describe",
            "diff",
            "difftool",
            "fetch",
            "format-patch",
            "gc",
            "grep",
            "help",
            "init",
            "log",
            "ls-files",
            "ls-remote",
            "ls-tree",
            "merge",
            "mergetool",
            "merge-base",
            "mv",
            "notes",
            "pull",
            "push",
            "rebase",
            "reflog",
            "remote",
            "reset",
            "restore",
            "rev-list",
            "rev-parse",
            "revert",
            "rm",
            "shortlog",
            "show",
            "show-ref",
            "stash",
            "status",
            "submodule",
            "switch",
            "symbolic-ref",
            "tag",
            "update-index",
            "update-ref",
            "version",
            "worktree",
            "lfs",
            "for-each-ref",
        ];
        let mut at = 0;
        while let Some(arg) = args.get(at).filter(|arg| arg.text.starts_with('-')) {
            at += if matches!(arg.text.as_str(), "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace") {
                2
            } else {
                1
            };
        }
        let (Some(verb), Some(cwd)) = (args.get(at), self.state.cwd.clone()) else { return };
        let key = format!("alias.{}", verb.text);
        if OWN.contains(&verb.text.as_str()) || !verb.is_known() || self.active.contains(&key) {
            return;
        }
        let folder =
            value_of(args.get(..at).unwrap_or(&[]), &["-C"]).and_then(|folder| self.absolute(&folder));
        let Some(alias) = super::super::git_settings::setting(self.world, &folder.unwrap_or(cwd), &key)
        else {
            return;
        };
        let text = match alias.strip_prefix('!') {
            Some(line) => format!("{line} \"$@\""),
            None => format!("git {alias} \"$@\""),
        };
        self.active.push(key);
        self.in_subshell(|shell| {
            shell.state.arguments = args.get(at + 1..).unwrap_or(&[]).to_vec();
            shell.source(&text, &context.deeper());
        });
        self.active.pop();
    }

    pub(super) fn editor(&mut self, args: &[Value], context: &Context) -> Value {
        for (number, arg) in args.iter().enumerate() {
            let line = match arg.text.as_str() {
                "-c" | "--cmd" => args.get(number + 1).cloned(),
                text if text.starts_with("+") => arg.after("+"),
                _ => None,
            };
            let Some(line) = line else { continue };
            let text = line.text.trim_start_matches(':').trim_start_matches("silent").trim_start();
            if let Some(text) =
                text.strip_prefix('!').or(text.strip_prefix("r !")).or(text.strip_prefix("r!"))
            {
                let text = Value::known(text);
                self.source_value(&text, "vim", &context.deeper());
            }
        }
        Value::default()
    }
}
