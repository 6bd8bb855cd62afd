//! The values of options among the words of a command.

use super::Value;

/// The word after one of these options.
pub(in crate::shell) fn value_of(args: &[Value], options: &[&str]) -> Option<Value> {
    for (number, arg) in args.iter().enumerate() {
        if options.contains(&arg.text.as_str()) {
            return args.get(number + 1).cloned();
        }
        if let Some((option, value)) = arg.split_at_sign('=')
            && option.text.starts_with("--")
            && options.contains(&option.text.as_str())
        {
            return Some(value);
        }
    }
    None
}

/// The value of each of these options, attached or not.
pub(super) fn values_of(args: &[Value], options: &[&str]) -> Vec<Value> {
    let mut out = Vec::new();
    for (number, arg) in args.iter().enumerate().take(256) {
        for option in options {
            if arg.text == *option {
                out.extend(args.get(number + 1).cloned());
            } else if let Some(value) = arg.after(&format!("{option}=")) {
                out.push(value);
            }
        }
    }
    out
}

/// The value of a short option that is last in a cluster (`-qc text`), or attached to it
/// (`-Itext`).
pub(super) fn glued(args: &[Value], letter: &str) -> Option<Value> {
    for (number, arg) in args.iter().enumerate() {
        let Some(rest) = arg.text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { continue };
        if rest.len() > 1 && rest.ends_with(letter) {
            return args.get(number + 1).cloned();
        }
        if rest.len() > 1 && rest.starts_with(letter) {
            return Some(arg.slice(2, arg.text.len()));
        }
    }
    None
}
