//! Changes the person's file: one setting, or all of it in an editor.

use super::{Row, own_file, rows};
use crate::commands::CommandContext;
use crate::environment;
use crate::print::{Out, Text, Tone, done, text};
use crate::settings::edit;
use baton_core::error::Exit;
use baton_core::{Code, Error};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Settings that decide what setup writes.
const FOR_SETUP: [&str; 3] = ["guard.mode", "guard.on_failure", "review.gate"];

pub fn set(context: &CommandContext, out: &Out, key: &str, words: &[String]) -> Result<Exit, Error> {
    let key = edit::known(key)?;
    let value = edit::value(key, words)?;
    changed(context, out, key, Some(value))
}

pub fn unset(context: &CommandContext, out: &Out, key: &str) -> Result<Exit, Error> {
    changed(context, out, edit::known(key)?, None)
}

fn changed(
    context: &CommandContext,
    out: &Out,
    key: &'static str,
    value: Option<toml_edit::Value>,
) -> Result<Exit, Error> {
    let file = own_file()?;
    let is_set = value.is_some();
    let (snapshot, before) = edit::read(&file)?;
    let after = edit::with(&before, key, value).map_err(|why| {
        Error::new(Code::ConfigMalformed, format!("{}: {why}", file.display()))
            .hint("mend it with `baton config --edit`; nothing was changed")
    })?;
    edit::check(&file, &after).map_err(|error| {
        Error::new(error.code(), error.message())
            .hint("mend it with `baton config --edit`; nothing was changed")
    })?;
    if after != before {
        edit::write(&snapshot, &after)?;
    }
    let (rows, _) = rows(context);
    let now = rows.into_iter().find(|row| row.key == key);
    let (value, from) = now.map_or_else(Default::default, |Row { value, from, .. }| (value, from));
    let document = json!({
        "key": key, "value": value, "origin": from, "file": file, "changed": after != before,
    });
    out.data(&document, Text::default)?;
    out.say(text![out.tone(Tone::Bold, key), " is ", value, " (", from.clone(), ")"]);
    if is_set && Path::new(&from) != file {
        out.say(text!["note: another file decides here: ", from]);
    }
    if after != before && FOR_SETUP.contains(&key) {
        out.say("note: run `baton setup` again; it writes what this decides");
    }
    done()
}

/// Has the person edit a copy, and puts it in place when it has no mistake.
pub fn by_hand(out: &Out) -> Result<Exit, Error> {
    let file = own_file()?;
    let (snapshot, before) = edit::read(&file)?;
    let draft = Draft::new(&file, &before)?;
    loop {
        run_editor(&draft.0)?;
        let (_, after) = edit::read(&draft.0)?;
        match edit::check(&file, &after) {
            Ok(()) if after == before => out.say("nothing was changed"),
            Ok(()) => {
                if let Err(error) = edit::write(&snapshot, &after) {
                    let kept = draft.keep();
                    return Err(error.hint(format!("what you wrote is in {}", kept.display())));
                }
                out.say(text!["wrote ", file.display().to_string()]);
            }
            Err(mistake) => {
                out.warn(&mistake);
                if out.agrees("edit it again? [y/N] ") == Some(true) {
                    continue;
                }
                let kept = draft.keep();
                return Err(Error::new(
                    mistake.code(),
                    "the file was left as it was: the edited one has a mistake",
                )
                .hint(format!("what you wrote is in {}", kept.display())));
            }
        }
        out.data(&json!({"file": file, "changed": after != before}), Text::default)?;
        return done();
    }
}

/// A copy beside the file, so that an editor knows its kind. It is gone afterwards.
struct Draft(PathBuf);

impl Draft {
    fn new(file: &Path, text: &str) -> Result<Self, Error> {
        let draft = file.with_file_name(format!("config.edit-{}.toml", std::process::id()));
        let made = draft.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| baton_machine::own::rewrite(&draft))
            .and_then(|mut new| std::io::Write::write_all(&mut new, text.as_bytes()))
            .map_err(|error| unusable(&draft, &error))?;
        Ok(Self(draft))
    }
}

impl Draft {
    /// Leaves the file there: it holds what the person wrote.
    fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Kept, or it holds nothing that the file does not. An empty path removes nothing.
        std::fs::remove_file(&self.0).ok();
    }
}

fn unusable(file: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::ConfigMalformed, format!("{}: {error}", file.display())).hint("nothing was changed")
}

/// The variable may hold options too, as git takes it.
fn run_editor(file: &Path) -> Result<(), Error> {
    let editor = environment::editor();
    let ended = Command::new("sh").args(["-c", "exec $0 \"$1\""]).arg(&editor).arg(file).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(_) | Err(_) => {
            let name = baton_core::frame::shown(&editor.to_string_lossy(), 60);
            Err(Error::new(Code::Declined, format!("the editor {name} failed; nothing was changed"))
                .hint("set VISUAL or EDITOR to one that is installed"))
        }
    }
}
