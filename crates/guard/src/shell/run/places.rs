//! Commands that run others in another place, or by an option: other machines, terminals, git, editors.

use super::*;

impl Shell<'_> {
    pub(super) fn remote(&mut self, args: &[Value], context: &Context) -> Value {
        let wrapper =
            wrappers::Wrapper { names: &[], short: "bcDEeFIiJLlmOopQRSWwB", long: &["--ssh"], skip: 0 };
        let Some(host) = wrappers::command_start(&wrapper, args) else { return Value::default() };
        let is_local = args.get(host).is_some_and(|value| {
            let host = value.text.rsplit('@').next().unwrap_or("");
            matches!(host, "localhost" | "127.0.0.1" | "::1" | "0.0.0.0")
        });
        let place = if is_local { context.place } else { Place::Elsewhere };
        let mut inner = Context { place, stdin: None, ..context.deeper() };
        let command = args.get(host + 1..).unwrap_or(&[]);
        self.in_subshell(|shell| {
            shell.state.cwd = Some(if is_local { shell.world.home() } else { "/remote".to_owned() });
            if command.is_empty() {
                if let Some(stdin) = context.stdin.as_deref() {
                    shell.source_value(stdin, "ssh", &inner);
                }
            } else {
                inner.stdin.clone_from(&context.stdin);
                shell.run_joined(Some(0), command, "ssh", &inner);
            }
        });
        if is_local { Value::default() } else { Value::unknown(Origin::Output(Rc::from("ssh"))) }
    }

    pub(super) fn terminal(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        const KEYS: &[&str] = &["Enter", "C-m", "C-c", "KPEnter", "Escape", "Space", "Tab"];
        if name == "screen" || name == "zellij" {
            if let Some(at) = args.iter().position(|arg| arg.text == "stuff" || arg.text == "write-chars") {
                let mut text = args.get(at + 1).cloned().unwrap_or_default();
                text.text = text.text.replace("\\n", "\n").replace("^M", "\n").replace('\r', "\n");
                return self.source_value(&text, name, &context.deeper());
            }
            let wrapper = wrappers::Wrapper { names: &[], short: "STtscehp", long: &[], skip: 0 };
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
        let wrapper = wrappers::Wrapper {
            names: &[],
            short: if keys { "tNc" } else { "tsncxyFlpeEThwdST" },
            long: &[],
            skip: 0,
        };
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
