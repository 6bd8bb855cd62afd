//! Offers to let agents use baton's own tools without a question each time. Only the person may,
//! and nothing does it by itself.

use crate::commands::CommandContext;
use crate::environment;
use crate::guard;
use crate::print::Out;
use crate::settings::edit;
use baton_core::{Code, Error, rights};
use baton_mail::caller;
use toml_edit::{Array, Value};

/// The key of the patterns, and the pattern of baton's own tools.
const KEY: &str = "approvals.auto_approve";
const PATTERN: &str = "mcp: baton/*";

/// Writes the pattern if that was asked for, and says nothing otherwise.
pub fn only_if_wanted(out: Out, context: &CommandContext, is_wanted: bool) -> Result<(), Error> {
    if is_wanted { offer(context, out, true) } else { Ok(()) }
}

/// Writes the pattern if that was asked for; else asks on a terminal, or says how.
pub fn offer(context: &CommandContext, out: Out, is_wanted: bool) -> Result<(), Error> {
    let settings = match guard::open(&context.home).approvals() {
        Ok(settings) => settings,
        Err(error) if is_wanted => return Err(error),
        // The mistake is shown elsewhere, and hides no other word.
        Err(_) => return Ok(()),
    };
    let patterns: Vec<String> =
        settings.auto_approve.iter().map(|pattern| pattern.as_str().to_owned()).collect();
    if patterns.iter().any(|pattern| pattern == PATTERN) {
        return Ok(());
    }
    if is_wanted {
        return allow(out, patterns);
    }
    if out.is_json() || caller::is_inside_an_agent(&environment::get) {
        return Ok(());
    }
    match out.agrees("agents ask before they use baton's own tools. Let them without asking? [y/N] ") {
        Some(true) => {
            let mut store = context.store()?;
            let me = context.identity(&mut store)?;
            rights::may(caller::of(&me.kind, &environment::get), &rights::ALLOW_OWN_TOOLS)?;
            allow(out, patterns)
        }
        Some(false) | None => {
            out.say("  `baton setup --allow-own-tools` lets agents use baton's own tools without a question");
            Ok(())
        }
    }
}

fn allow(out: Out, mut patterns: Vec<String>) -> Result<(), Error> {
    let file = environment::own_config_file()?
        .ok_or_else(|| Error::new(Code::Usage, "HOME is not set").hint("set HOME to your home folder"))?;
    let (snapshot, before) = edit::read(&file)?;
    patterns.push(PATTERN.to_owned());
    let list = Value::Array(patterns.iter().map(String::as_str).collect::<Array>());
    let after = edit::with(&before, KEY, Some(list)).map_err(|why| {
        Error::new(Code::ConfigMalformed, format!("{}: {why}", file.display())).hint("nothing was changed")
    })?;
    edit::check(&file, &after)?;
    edit::write(&snapshot, &after)?;
    out.say("  agents use baton's own tools without a question now; `baton config --unset approvals.auto_approve` ends it");
    Ok(())
}
