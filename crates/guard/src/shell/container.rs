//! Commands in containers: what runs there, and which folders of this machine are mounted.

use super::eval::{Context, Shell};
use super::value::{Origin, Value};
use super::{Location, wrappers};
use crate::path;
use std::rc::Rc;

/// A folder of this machine that is mounted in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its path in the container.
    pub at: String,
    /// Its path on this machine.
    pub from: String,
    pub read_only: bool,
}

/// A path of this machine that is mounted in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPath {
    pub path: String,
    pub read_only: bool,
}

/// The path of this machine behind a path in a container. If mounts are nested, the deeper one
/// counts.
pub fn outside(mounts: &[Mount], inside: &str) -> Option<HostPath> {
    let mount =
        mounts.iter().filter(|mount| path::is_below(inside, &mount.at)).max_by_key(|mount| mount.at.len())?;
    let rest = inside.get(mount.at.trim_end_matches('/').len()..).unwrap_or("").trim_start_matches('/');
    let whole = if rest.is_empty() { mount.from.clone() } else { path::join(&mount.from, rest) };
    Some(HostPath { path: whole, read_only: mount.read_only })
}

/// Whether a command enters the namespaces of the first process, and so the machine itself.
pub(super) fn enters_machine(name: &str, args: &[Value]) -> bool {
    let target = super::run::value_of(args, &["-t", "--target"]);
    name == "nsenter"
        && (target.is_some_and(|target| target.text == "1") || args.iter().any(|arg| arg.text == "-t1"))
}

impl Shell<'_> {
    pub(super) fn container(&mut self, name: &str, args: &[Value], context: &Context) -> Value {
        let printed = Value::unknown(Origin::Output(Rc::from(name)));
        let Some(at) = args.iter().position(|arg| matches!(arg.text.as_str(), "exec" | "run" | "debug"))
        else {
            return printed;
        };
        let wrapper = wrappers::Wrapper {
            short: if name == "kubectl" || name == "oc" { "cnf" } else { "eulvpwhmcf" },
            long: &[
                "--env",
                "--user",
                "--volume",
                "--publish",
                "--workdir",
                "--name",
                "--network",
                "--entrypoint",
                "--mount",
                "--label",
                "--env-file",
                "--container",
                "--namespace",
                "--platform",
                "--memory",
                "--cpus",
                "--gpus",
                "--hostname",
                "--index",
                "--image",
                "--pid",
                "--ipc",
                "--add-host",
                "--device",
                "--cap-add",
                "--cap-drop",
                "--security-opt",
                "--ulimit",
                "--shm-size",
                "--restart",
                "--tmpfs",
                "--pull",
                "--userns",
                "--volumes-from",
            ],
            skip: 0,
        };
        let rest = args.get(at + 1..).unwrap_or(&[]);
        let image = wrappers::command_start(&wrapper, rest);
        let start = match rest.iter().position(|arg| arg.text == "--") {
            Some(separator) => Some(separator + 1),
            None => image.map(|image| image + 1),
        };
        let options = rest.get(..image.unwrap_or(rest.len())).unwrap_or(&[]);
        let entry = super::run::value_of(options, &["--entrypoint"]).filter(|entry| !entry.text.is_empty());
        let command: Vec<Value> = entry
            .into_iter()
            .chain(start.and_then(|start| rest.get(start..)).unwrap_or(&[]).iter().cloned())
            .collect();
        if !command.is_empty() {
            let mounts = self.mounts(options);
            let inner =
                Context { location: Location::Container, mounts: Some(Rc::from(mounts)), ..context.deeper() };
            let folder = super::run::value_of(options, &["-w", "--workdir"]).filter(Value::is_known);
            self.in_subshell(|shell| {
                shell.state.cwd = Some(
                    folder.map_or_else(|| "/container".to_owned(), |folder| path::join("/", &folder.text)),
                );
                shell.run(command, Vec::new(), Vec::new(), &inner)
            });
        }
        printed
    }

    /// The mounts in the options of a container.
    fn mounts(&self, options: &[Value]) -> Vec<Mount> {
        let mut found = Vec::new();
        for (number, arg) in options.iter().enumerate() {
            let next = || options.get(number + 1).cloned();
            let volume = match arg.text.as_str() {
                "-v" | "--volume" => next(),
                text if text.starts_with("--volume=") => arg.after("--volume="),
                text if text.starts_with("-v") => arg.after("-v"),
                _ => None,
            };
            let mount = match arg.text.as_str() {
                "--mount" => next(),
                text if text.starts_with("--mount=") => arg.after("--mount="),
                _ => None,
            };
            found.extend(volume.filter(Value::is_known).and_then(|volume| self.volume(&volume.text)));
            found.extend(mount.filter(Value::is_known).and_then(|mount| self.bind(&mount.text)));
        }
        found
    }

    /// `/here:/there:ro`; a name without a slash is no folder of this machine.
    fn volume(&self, text: &str) -> Option<Mount> {
        let mut parts = text.split(':');
        let (from, at) = (parts.next()?, parts.next()?);
        let read_only = parts.next().is_some_and(|options| options.split(',').any(|option| option == "ro"));
        self.mount(from, at, read_only)
    }

    /// `type=bind,source=/here,target=/there,readonly`.
    fn bind(&self, text: &str) -> Option<Mount> {
        let value = |names: &[&str]| {
            text.split(',').find_map(|part| {
                let (name, value) = part.split_once('=')?;
                names.contains(&name).then_some(value)
            })
        };
        let read_only =
            text.split(',').any(|part| matches!(part, "readonly" | "ro" | "readonly=true" | "ro=true"));
        self.mount(value(&["source", "src"])?, value(&["target", "dst", "destination"])?, read_only)
    }

    fn mount(&self, from: &str, at: &str, read_only: bool) -> Option<Mount> {
        let is_folder = from.starts_with(['/', '.', '~']);
        let from = match from.strip_prefix('~') {
            Some(rest) => format!("{}{rest}", self.world.home()),
            None => path::join(self.state.cwd.as_deref().unwrap_or("/"), from),
        };
        (is_folder && at.starts_with('/')).then(|| Mount {
            at: path::join("/", at),
            from: path::join("/", &from),
            read_only,
        })
    }
}
