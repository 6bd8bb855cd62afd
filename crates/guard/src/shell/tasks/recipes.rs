//! Tasks of `just` and of `task`: names with indented lines below them.

use super::*;

impl Shell<'_> {
    pub(super) fn just(&mut self, args: &[Value], context: &Context) {
        const SHOWS: &[&str] = &[
            "-l",
            "--list",
            "--summary",
            "-s",
            "--show",
            "--dump",
            "--evaluate",
            "--variables",
            "--fmt",
            "-n",
            "--dry-run",
            "-e",
            "--edit",
            "--init",
            "--groups",
            "--usage",
            "-V",
            "--version",
            "-h",
            "--help",
        ];
        if args.iter().any(|arg| SHOWS.contains(&arg.text.as_str())) {
            return;
        }
        let Some(folder) = self.task_folder(args, &["-d", "--working-directory"]) else { return };
        let named = value_of(args, &["-f", "--justfile"]);
        let names: Vec<&str> = match &named {
            Some(file) => vec![file.text.as_str()],
            None => vec!["justfile", "Justfile", ".justfile"],
        };
        let Some(file) = self.task_file(&folder, &names, "just", context) else { return };
        let words: Vec<&str> =
            crate::rules::operands(args, &["-d", "-f", "--working-directory", "--justfile", "--set"])
                .into_iter()
                .map(|word| word.text.as_str())
                .collect();
        let recipes = just_recipes(&file.text);
        let mut wanted: Vec<&str> =
            words.iter().copied().filter(|word| recipes.iter().any(|recipe| recipe.name == *word)).collect();
        if words.is_empty() {
            wanted.extend(recipes.first().map(|recipe| recipe.name));
        }
        while let Some(name) = wanted.pop() {
            let Some(recipe) = recipes.iter().find(|recipe| recipe.name == name) else { continue };
            if !self.begins_task(&file, name) {
                continue;
            }
            wanted.extend(recipe.needs.iter().copied());
            if recipe.lines.first().is_some_and(|line| line.starts_with("#!")) {
                self.run_script_text(&file, &recipe.lines.join("\n"), context);
                continue;
            }
            for line in &recipe.lines {
                let text = interpolated(line.trim_start_matches(['@', '-']));
                self.run_task(&file, &text, &[], context);
            }
        }
    }

    pub(super) fn taskfile(&mut self, args: &[Value], context: &Context) {
        let Some(folder) = self.task_folder(args, &["-d", "--dir"]) else { return };
        let named = value_of(args, &["-t", "--taskfile"]);
        let names: Vec<&str> = match &named {
            Some(file) => vec![file.text.as_str()],
            None => {
                vec!["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml"]
            }
        };
        let Some(file) = self.task_file(&folder, &names, "task", context) else { return };
        let recipes = yaml_tasks(&file.text);
        let mut wanted: Vec<&str> = crate::rules::operands(args, &["-d", "-t", "--dir", "--taskfile"])
            .into_iter()
            .map(|word| word.text.as_str())
            .filter(|word| !word.contains('='))
            .collect();
        if wanted.is_empty() {
            wanted.push("default");
        }
        while let Some(name) = wanted.pop() {
            let Some(recipe) = recipes.iter().find(|recipe| recipe.name == name) else { continue };
            if !self.begins_task(&file, name) {
                continue;
            }
            wanted.extend(recipe.needs.iter().copied());
            for line in &recipe.lines {
                self.run_task(&file, &interpolated(line), &[], context);
            }
        }
    }

    /// A recipe that is a script with its own interpreter.
    fn run_script_text(&mut self, file: &TaskFile, text: &str, context: &Context) {
        let inner = Context { from_file: context.from_file || file.on_disk, ..context.deeper() };
        match super::super::run::interpreter_of(text) {
            Some(name) if super::super::code::is_interpreter(&name) => {
                self.within_file_budget(file.on_disk, |shell| {
                    super::super::code::scan_file(shell, &name, &Value::known(text), &inner);
                });
            }
            _ => self.run_task(file, &interpolated(text), &[], context),
        }
    }
}

struct Recipe<'t> {
    name: &'t str,
    needs: Vec<&'t str>,
    lines: Vec<String>,
}

fn just_recipes(text: &str) -> Vec<Recipe<'_>> {
    let mut recipes: Vec<Recipe<'_>> = Vec::new();
    let mut in_recipe = false;
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            if let Some(recipe) = recipes.last_mut().filter(|_| in_recipe) {
                recipe.lines.push(line.trim().to_owned());
            }
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let head = line.trim_start_matches('@');
        let is_name = head.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_');
        let colon = head.find(':').filter(|at| head.get(at + 1..).is_some_and(|rest| !rest.starts_with('=')));
        in_recipe = is_name && colon.is_some();
        if let Some(colon) = colon.filter(|_| in_recipe) {
            let name = head.get(..colon).unwrap_or("").split_whitespace().next().unwrap_or("");
            let needs = head.get(colon + 1..).unwrap_or("").split('#').next().unwrap_or("");
            let needs = needs
                .split_whitespace()
                .map(|need| need.trim_matches(['(', ')', '&']))
                .filter(|need| !need.is_empty())
                .collect();
            recipes.push(Recipe { name, needs, lines: Vec::new() });
        }
    }
    recipes
}

/// The tasks of a Taskfile: the names below `tasks:`, with the lines of their `cmds`.
fn yaml_tasks(text: &str) -> Vec<Recipe<'_>> {
    let mut recipes: Vec<Recipe<'_>> = Vec::new();
    let mut in_tasks = false;
    let mut depth = None;
    let mut block: Option<usize> = None;
    let mut in_needs = false;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        let plain = line.trim();
        if indent == 0 {
            in_tasks = plain == "tasks:";
            depth = None;
            continue;
        }
        if !in_tasks {
            continue;
        }
        let depth = *depth.get_or_insert(indent);
        if indent == depth {
            let name = plain.split_once(':').map_or(plain, |(name, _)| name).trim_matches(['"', '\'']);
            recipes.push(Recipe { name, needs: Vec::new(), lines: Vec::new() });
            (block, in_needs) = (None, false);
            continue;
        }
        let Some(recipe) = recipes.last_mut() else { continue };
        if let Some(outer) = block {
            if indent > outer {
                if let Some(last) = recipe.lines.last_mut() {
                    last.push('\n');
                    last.push_str(plain);
                }
                continue;
            }
            block = None;
        }
        let item = plain.strip_prefix("- ").unwrap_or(plain).trim();
        let is_item = plain.starts_with("- ");
        let value = |key: &str| item.strip_prefix(key).map(|value| value.trim().trim_matches(['"', '\'']));
        if let Some(needs) = value("deps:") {
            in_needs = needs.is_empty();
            let needs =
                needs.trim_matches(['[', ']']).split(',').map(|need| need.trim().trim_matches(['"', '\'']));
            recipe.needs.extend(needs.filter(|need| !need.is_empty()));
        } else if let Some(need) = value("task:") {
            recipe.needs.push(need);
        } else if let Some(command) = value("cmd:").or(value("cmds:").filter(|rest| !rest.is_empty())) {
            if matches!(command, "|" | ">" | "|-" | ">-") {
                block = Some(indent);
                recipe.lines.push(String::new());
            } else {
                recipe.lines.push(command.trim_matches(['[', ']']).to_owned());
            }
        } else if item == "cmds:" {
            in_needs = false;
        } else if is_item && in_needs {
            recipe.needs.push(item.trim_matches(['"', '\'']));
        } else if is_item {
            if matches!(item, "|" | ">" | "|-" | ">-") {
                block = Some(indent);
                recipe.lines.push(String::new());
            } else {
                recipe.lines.push(unquoted(item).to_owned());
            }
        }
    }
    recipes
}

fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// A text in which `{{…}}` is unknown.
fn interpolated(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let Some(end) = rest.get(at..).and_then(|tail| tail.find("}}")) else { break };
        out.push_str(rest.get(..at).unwrap_or(""));
        out.push_str("${__task}");
        rest = rest.get(at + end + 2..).unwrap_or("");
    }
    out.push_str(rest);
    out
}
