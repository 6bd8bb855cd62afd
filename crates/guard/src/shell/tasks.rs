//! Task runners: the recipe of a Makefile, the script of a package, a task of a justfile.
//!
//! The files are read through the [`World`](crate::World), within limits. What can't be read or
//! parsed is left out: a file that is already in the project is no reason to ask, and only what it
//! certainly says counts.

mod make;
mod recipes;
mod scripts;

use super::eval::{Context, Shell};
use super::run::value_of;
use super::value::{Origin, Value};
use crate::path;

/// Longest task file that is read. This bounds the work of one command.
const TASK_FILE_BYTES: usize = 256 << 10;
/// How many tasks of one command are followed, with those that they depend on.
const MAX_TASKS: usize = 32;

/// A task file: where its commands run, its text, and whether it existed before the command.
struct TaskFile {
    folder: String,
    path: String,
    text: String,
    on_disk: bool,
}

impl Shell<'_> {
    /// Follows a task runner. False if the program is none, or runs no task with these arguments.
    pub(super) fn task(&mut self, name: &str, args: &[Value], context: &Context) -> bool {
        match name {
            "make" | "gmake" | "bmake" | "mingw32-make" | "remake" => self.make(args, context),
            "npm" | "pnpm" | "yarn" | "bun" | "cnpm" | "npm-run-all" | "run-s" | "run-p" | "npm-run-all2" => {
                return self.package_script(name, args, context);
            }
            "node" => match value_of(args, &["--run"]) {
                Some(script) => {
                    let words = [Value::known("run"), script];
                    return self.package_script("npm", &words, context);
                }
                None => return false,
            },
            "composer" => return self.composer_script(args, context),
            "deno" => return self.deno_task(args, context),
            "just" => self.just(args, context),
            "task" | "go-task" => self.taskfile(args, context),
            _ => return false,
        }
        true
    }

    /// The first of these files that exists, as seen from a folder. A download is noted as code
    /// that runs.
    fn task_file(&mut self, folder: &str, names: &[&str], by: &str, context: &Context) -> Option<TaskFile> {
        for name in names {
            let path = path::join(folder, name);
            if let Some(content) = self.analysis.files.get(&path).cloned() {
                if content.is_download() {
                    self.ran(Origin::Download, by, context);
                    return None;
                }
                return Some(TaskFile {
                    folder: folder.to_owned(),
                    path,
                    text: content.text,
                    on_disk: false,
                });
            }
            if self.world.exists(&path) == Some(false) {
                continue;
            }
            if let Some(text) =
                self.world.read_file(&path, TASK_FILE_BYTES).filter(|text| text.len() < TASK_FILE_BYTES)
            {
                return Some(TaskFile { folder: folder.to_owned(), path, text, on_disk: true });
            }
        }
        None
    }

    /// Notes that a task is followed. False if it already was, or if there are too many.
    fn begins_task(&mut self, file: &TaskFile, task: &str) -> bool {
        let key = format!("{}#{task}", file.path);
        if self.scripts_read.contains(&key) || self.scripts_read.len() >= MAX_TASKS {
            return false;
        }
        self.scripts_read.push(key);
        true
    }

    /// Runs the text of a task in the folder of its file.
    fn run_task(&mut self, file: &TaskFile, text: &str, args: &[Value], context: &Context) {
        let inner = Context {
            from_file: context.from_file || file.on_disk,
            wants_output: false,
            stdin: None,
            ..context.deeper()
        };
        if inner.depth > super::parse::MAX_DEPTH {
            return;
        }
        self.in_subshell(|shell| {
            shell.state.cwd = Some(file.folder.clone());
            shell.state.arguments = args.to_vec();
            shell.within_file_budget(file.on_disk, |shell| {
                shell.source(text, &inner);
            });
        });
    }

    /// The folder that an option names, else the current one.
    fn task_folder(&self, args: &[Value], options: &[&str]) -> Option<String> {
        match value_of(args, options) {
            Some(folder) => self.absolute(&folder),
            None => self.state.cwd.clone(),
        }
    }
}
