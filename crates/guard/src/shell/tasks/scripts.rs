//! Scripts of packages: `package.json`, `composer.json`, `deno.json`.

use super::*;
use serde_json::Value as Json;

/// Scripts that a package manager runs for its own commands.
const LIFECYCLE: &[(&str, &[&str])] = &[
    ("install", &["preinstall", "install", "postinstall", "prepare"]),
    ("i", &["preinstall", "install", "postinstall", "prepare"]),
    ("ci", &["preinstall", "install", "postinstall", "prepare"]),
    ("add", &["preinstall", "install", "postinstall"]),
    ("pack", &["prepack", "prepare", "postpack"]),
    ("publish", &["prepublishOnly", "prepack", "prepare", "publish", "postpublish"]),
    ("version", &["preversion", "version", "postversion"]),
    ("test", &["pretest", "test", "posttest"]),
    ("t", &["pretest", "test", "posttest"]),
    ("tst", &["pretest", "test", "posttest"]),
    ("start", &["prestart", "start", "poststart"]),
    ("stop", &["prestop", "stop", "poststop"]),
    ("restart", &["prerestart", "restart", "postrestart"]),
    ("rebuild", &["preinstall", "install", "postinstall"]),
];

impl Shell<'_> {
    pub(super) fn package_script(&mut self, name: &str, args: &[Value], context: &Context) -> bool {
        let folder = self.task_folder(args, &["--prefix", "-C", "--dir", "--cwd"]);
        let Some(folder) = folder else { return false };
        let words = crate::rules::operands(
            args,
            &["--prefix", "-C", "--dir", "--cwd", "-w", "--workspace", "--filter", "-F"],
        );
        let is_many = matches!(name, "npm-run-all" | "npm-run-all2" | "run-s" | "run-p");
        let Some(verb) = words.first().map(|word| word.text.as_str()) else {
            // `yarn` alone installs.
            if name == "yarn" {
                self.lifecycle(name, &folder, "install", context);
            }
            return false;
        };
        if is_many {
            for word in words.iter().take(16) {
                self.run_script(name, &folder, &word.text, &[], context);
            }
            return true;
        }
        if matches!(verb, "run" | "run-script" | "rum" | "urn") {
            let Some(script) = words.get(1) else { return true };
            let rest: Vec<Value> = words.iter().skip(2).map(|word| (*word).clone()).collect();
            if self.run_script(name, &folder, &script.text, &rest, context) {
                return true;
            }
            match script.text.as_str() {
                "env" => {
                    self.run(vec![Value::known("env")], Vec::new(), Vec::new(), &context.deeper());
                }
                // `bun run file.ts` runs the interpreter, `yarn run tool` a program of the package.
                _ if name == "bun" => return false,
                _ if matches!(name, "yarn" | "pnpm") => {
                    let argv = words.iter().skip(1).map(|word| (*word).clone()).collect();
                    self.run(argv, Vec::new(), Vec::new(), &context.deeper());
                }
                _ => {}
            }
            return true;
        }
        if self.lifecycle(name, &folder, verb, context) {
            return false;
        }
        if name == "npm"
            || name == "cnpm"
            || (name == "bun" && matches!(verb, "x" | "exec" | "create" | "build"))
        {
            return false;
        }
        // `yarn clean` is `yarn run clean`, unless yarn has a command of that name.
        let rest: Vec<Value> = words.iter().skip(1).map(|word| (*word).clone()).collect();
        self.run_script(name, &folder, verb, &rest, context)
    }

    fn lifecycle(&mut self, name: &str, folder: &str, verb: &str, context: &Context) -> bool {
        let Some((_, scripts)) = LIFECYCLE.iter().find(|(own, _)| *own == verb) else { return false };
        for script in *scripts {
            self.run_one_script(name, folder, script, &[], context);
        }
        true
    }

    /// Runs a script and the scripts before and after it. False if there is none of this name.
    fn run_script(
        &mut self,
        by: &str,
        folder: &str,
        script: &str,
        args: &[Value],
        context: &Context,
    ) -> bool {
        let script = script.strip_prefix("npm:").unwrap_or(script);
        self.run_one_script(by, folder, &format!("pre{script}"), &[], context);
        let found = self.run_one_script(by, folder, script, args, context);
        self.run_one_script(by, folder, &format!("post{script}"), &[], context);
        found
    }

    fn run_one_script(
        &mut self,
        by: &str,
        folder: &str,
        script: &str,
        args: &[Value],
        context: &Context,
    ) -> bool {
        let Some((file, json)) = self.json_file(folder, &["package.json"], by, context) else { return false };
        let Some(text) = json.get("scripts").and_then(|scripts| scripts.get(script)?.as_str()) else {
            return false;
        };
        if self.begins_task(&file, script) {
            let text = if args.is_empty() { text.to_owned() } else { format!("{text} \"$@\"") };
            self.run_task(&file, &text, args, context);
        }
        true
    }

    pub(super) fn composer_script(&mut self, args: &[Value], context: &Context) -> bool {
        let Some(folder) = self.task_folder(args, &["-d", "--working-dir"]) else { return false };
        let words = crate::rules::operands(args, &["-d", "--working-dir"]);
        let verb = words.first().map(|word| word.text.as_str()).unwrap_or("");
        let script = match verb {
            "run" | "run-script" => words.get(1).map(|word| word.text.as_str()).unwrap_or(""),
            "install" => "post-install-cmd",
            "update" => "post-update-cmd",
            other => other,
        };
        let Some((file, json)) = self.json_file(&folder, &["composer.json"], "composer", context) else {
            return false;
        };
        let mut wanted = vec![script.to_owned()];
        let mut found = false;
        while let Some(name) = wanted.pop() {
            let Some(lines) = json.get("scripts").and_then(|scripts| scripts.get(&name)) else { continue };
            found = true;
            if !self.begins_task(&file, &name) {
                continue;
            }
            let one = std::slice::from_ref(lines);
            let lines = lines.as_array().map_or(one, Vec::as_slice);
            for line in lines.iter().filter_map(Json::as_str) {
                match line.strip_prefix('@') {
                    Some(rest) if rest.starts_with("php ") || rest.starts_with("composer ") => {
                        self.run_task(&file, rest, &[], context);
                    }
                    Some(other) => wanted.push(other.to_owned()),
                    None if line.contains("::") && !line.contains(' ') => {}
                    None => self.run_task(&file, line, &[], context),
                }
            }
        }
        found
    }

    pub(super) fn deno_task(&mut self, args: &[Value], context: &Context) -> bool {
        let words = crate::rules::operands(args, &["-c", "--config", "--cwd"]);
        let [verb, task, rest @ ..] = &words[..] else { return false };
        let (Some(folder), "task") = (self.task_folder(args, &["--cwd"]), verb.text.as_str()) else {
            return false;
        };
        let Some((file, json)) =
            self.json_file(&folder, &["deno.json", "deno.jsonc", "package.json"], "deno", context)
        else {
            return true;
        };
        let tasks = json.get("tasks").or_else(|| json.get("scripts")).and_then(|tasks| tasks.get(&task.text));
        let text = tasks.and_then(|task| task.as_str().or_else(|| task.get("command")?.as_str()));
        if let Some(text) = text.filter(|_| self.begins_task(&file, &task.text)) {
            let rest: Vec<Value> = rest.iter().map(|word| (*word).clone()).collect();
            self.run_task(&file, text, &rest, context);
        }
        true
    }

    fn json_file(
        &mut self,
        folder: &str,
        names: &[&str],
        by: &str,
        context: &Context,
    ) -> Option<(TaskFile, Json)> {
        let file = self.task_file(folder, names, by, context)?;
        if !self.step(file.text.len() / 32) {
            return None;
        }
        let json = serde_json::from_str(&file.text).ok()?;
        Some((file, json))
    }
}
