//! `fd`, which looks for a pattern below folders and runs a command for what it finds.

use super::many::replace;
use super::*;

/// Options of `fd` that take a value.
const VALUED_OPTIONS: &[&str] = &[
    "-t",
    "--type",
    "-e",
    "--extension",
    "-E",
    "--exclude",
    "-d",
    "--max-depth",
    "--min-depth",
    "-S",
    "--size",
    "-c",
    "--color",
    "-j",
    "--threads",
    "--changed-within",
    "--changed-before",
    "--base-directory",
];

impl Shell<'_> {
    pub(super) fn fd(&mut self, args: &[Value], context: &Context) -> Value {
        let is_exec = |arg: &Value| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
        let exec = args.iter().position(is_exec);
        let own = args.get(..exec.unwrap_or(args.len())).unwrap_or(&[]);
        let words = crate::rules::operands(own, VALUED_OPTIONS);
        let here = Value::known(".");
        let roots = words.get(1..).filter(|roots| !roots.is_empty()).map_or(vec![&here], <[_]>::to_vec);
        let endings = values_of(own, &["-e", "--extension"]);
        let mut names: Vec<Value> =
            endings.iter().map(|ending| Value::known(format!("*.{}", ending.text))).collect();
        names.extend(words.first().filter(|_| endings.is_empty()).and_then(|word| found_name(word)));
        let found: Vec<Value> = roots
            .into_iter()
            .take(8)
            .flat_map(|root| match &names[..] {
                [] => vec![root.clone()],
                names => names.iter().map(|name| found_below(root, name)).collect(),
            })
            .collect();
        if let Some(template) = exec.and_then(|at| args.get(at + 1..)) {
            let length = template.iter().position(|arg| arg.text == ";").unwrap_or(template.len());
            let template = template.get(..length).unwrap_or(&[]);
            let has_place = template.iter().any(|word| word.text.contains("{}"));
            for one in found.iter().take(16) {
                let mut argv: Vec<Value> = template.iter().map(|word| replace(word, "{}", one)).collect();
                argv.extend((!has_place).then(|| one.clone()));
                self.run(argv, Vec::new(), Vec::new(), &context.deeper());
            }
        }
        let mut printed = Value::default();
        for one in found.iter().take(64).filter(|_| context.wants_output) {
            printed.push(one);
            printed.push_text("\n");
        }
        printed
    }
}

/// The name that a pattern of `fd` stands for; `None` where it finds everything. What is more than
/// a name is a part of one.
fn found_name(pattern: &Value) -> Option<Value> {
    let text = pattern.text.as_str();
    if pattern.is_known() && matches!(text, "" | "." | ".*" | "*") {
        return None;
    }
    let plain = text.trim_start_matches('^').trim_end_matches('$').replace("\\.", ".");
    let (starts, ends) = (text.starts_with('^'), text.ends_with('$'));
    Some(Value::known(format!("{}{plain}{}", if starts { "" } else { "*" }, if ends { "" } else { "*" })))
}
