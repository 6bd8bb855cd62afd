//! Changes one setting in the text of the person's file. Comments, order and all other settings
//! stay as they are. What would be a mistake is not written.

use super::{Setting, Settings, TABLE, value_of};
use baton_agents::config::file::{FileError, Snapshot};
use baton_core::frame::shown;
use baton_core::{Code, Error};
use baton_guard_runtime::approvals::{self, ApprovalSettings};
use baton_guard_runtime::policy;
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

/// The mode of a new configuration file.
const NEW_FILE_MODE: u32 = 0o600;

/// Every key that can be set, for hints and completions.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let elsewhere = policy::MEANINGS.into_iter().chain(approvals::MEANINGS).map(|(key, ..)| key);
    TABLE.iter().map(|row| row.key).chain(elsewhere)
}

/// The setting's key, or an error with the nearest one.
pub fn known(key: &str) -> Result<&'static str, Error> {
    if let Some(known) = keys().find(|known| *known == key) {
        return Ok(known);
    }
    let error = Error::new(Code::Usage, format!("there is no setting {}", shown(key, 60)));
    let near = keys().min_by_key(|known| crate::cli::wrong::distance(key, known));
    let near = near.filter(|known| crate::cli::wrong::is_near(key, known));
    let last_part = keys().find(|known| known.rsplit('.').next() == Some(key));
    Err(match (key.starts_with("guard."), last_part.or(near)) {
        (_, Some(near)) => error.hint(format!("did you mean {near}? `baton config` lists every setting")),
        (true, None) => {
            error.hint("rules are switched by `baton guard enable RULE` and `baton guard disable RULE`")
        }
        (false, None) => error.hint("`baton config` lists every setting"),
    })
}

/// A value as the person types it, as the file has it.
pub fn value(key: &str, words: &[String]) -> Result<Value, Error> {
    let wrong = |why: &str| {
        Error::new(Code::Usage, format!("{key} {why}"))
            .hint(format!("`baton config {key}` shows what it is now"))
    };
    let texts = || Value::Array(words.iter().map(String::as_str).collect::<Array>());
    match key {
        "approvals.auto_approve" | "approvals.notify_command" => return Ok(texts()),
        "approvals.reviewers" => {
            let hint = "write them with `baton config --edit`; docs/approvals.md has an example";
            return Err(Error::new(Code::Usage, format!("{key} has a list for each project")).hint(hint));
        }
        _ => {}
    }
    let [word] = words else { return Err(wrong("takes one value")) };
    if matches!(key, "approvals.notify_bell" | "approvals.notify_terminal") {
        return match word.as_str() {
            "on" | "true" => Ok(Value::from(true)),
            "off" | "false" => Ok(Value::from(false)),
            _ => Err(wrong("must be on or off")),
        };
    }
    let Some(row) = TABLE.iter().find(|row| row.key == key) else { return Ok(Value::from(word.as_str())) };
    let value = match (row.range.0, word.parse::<i64>()) {
        (Setting::Count(_) | Setting::Size(_), Ok(number)) => Value::from(number),
        _ => Value::from(word.as_str()),
    };
    value_of(row, &Item::Value(value.clone())).map_err(|why| wrong(&why))?;
    Ok(value)
}

/// The text with a setting: with this value, or without it.
pub fn with(text: &str, key: &str, value: Option<Value>) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let (section, name) = match key.split_once('.') {
        Some((section, name)) => (Some(section), name),
        None => (None, key),
    };
    let table = match section {
        None => document.as_table_mut() as &mut dyn toml_edit::TableLike,
        Some(section) => {
            if value.is_none() && document.get(section).is_none() {
                return Ok(text.to_owned());
            }
            let item = document.entry(section).or_insert_with(|| Item::Table(Table::new()));
            item.as_table_like_mut().ok_or_else(|| format!("{section} is no section"))?
        }
    };
    match (value, table.get_mut(name)) {
        (None, _) => {
            table.remove(name);
        }
        (Some(mut value), Some(Item::Value(old))) => {
            // With the comment behind it.
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        (Some(value), _) => {
            table.insert(name, Item::Value(value));
        }
    }
    Ok(document.to_string())
}

/// Checks the whole text of the person's file.
pub fn check(file: &Path, text: &str) -> Result<(), Error> {
    Settings::defaults().take(file, text, false)?;
    policy::check(file, text)?;
    ApprovalSettings::read(file, text).map(drop)
}

/// Reads the person's file; a missing one is empty.
pub fn read(file: &Path) -> Result<(Snapshot, String), Error> {
    let snapshot = Snapshot::read(file).map_err(|error| unusable(&error))?;
    let bytes = snapshot.bytes().unwrap_or_default().to_vec();
    let text = String::from_utf8(bytes).map_err(|_| {
        Error::new(Code::ConfigMalformed, format!("{}: it is not UTF-8 text", file.display()))
            .hint("nothing was changed")
    })?;
    Ok((snapshot, text))
}

/// Writes the file at once or not at all, and only if it is still as it was read.
pub fn write(snapshot: &Snapshot, text: &str) -> Result<(), Error> {
    if let Some(folder) = snapshot.path().parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            Error::new(Code::ConfigMalformed, format!("{} can't be made: {error}", folder.display()))
                .hint("nothing was changed")
        })?;
    }
    snapshot.replace(Some(text.as_bytes()), NEW_FILE_MODE).map(drop).map_err(|error| unusable(&error))
}

fn unusable(error: &FileError) -> Error {
    Error::new(Code::ConfigMalformed, format!("failed to {error}"))
        .hint(format!("nothing was changed; {}", error.hint()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, key: &str, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let after = with(text, key, Some(value(key, &words).unwrap())).unwrap();
        check(Path::new("/c.toml"), &after).unwrap();
        after
    }

    #[test]
    fn one_setting_changes_and_everything_else_stays() {
        let text = "# mine\nwake = \"auto\" # yes\n\n[limits] # few\nhops = 3 # few\n# end\n";
        assert_eq!(set(text, "limits.hops", &["4"]), text.replace("hops = 3", "hops = 4"));
        assert_eq!(set(text, "wake", &["off"]), text.replace("\"auto\"", "\"off\""));
        let longer = set(text, "mail.ttl", &["2d"]);
        assert!(longer.starts_with("# mine\n") && longer.contains("[mail]\nttl = \"2d\"\n"), "{longer}");
        assert!(longer.contains("# end"), "{longer}");
        assert_eq!(with(&longer, "limits.hops", None).unwrap(), longer.replace("hops = 3 # few\n", ""));
        assert_eq!(with(text, "mail.ttl", None).unwrap(), text);
        assert_eq!(set("", "store.keep_bytes", &["300MiB"]), "[store]\nkeep_bytes = \"300MiB\"\n");
        assert_eq!(
            set("", "approvals.auto_approve", &["bash: git status", "mcp: baton/*"]),
            "[approvals]\nauto_approve = [\"bash: git status\", \"mcp: baton/*\"]\n"
        );
        assert_eq!(set("", "approvals.notify_bell", &["on"]), "[approvals]\nnotify_bell = true\n");
        assert_eq!(set("limits.hops = 3\n", "limits.hops", &["5"]), "limits.hops = 5\n");
    }

    #[test]
    fn a_value_that_is_none_and_a_key_that_is_none_are_refused() {
        for (key, words) in [
            ("limits.hops", &["many"][..]),
            ("limits.hops", &["0"]),
            ("limits.hops", &["1", "2"]),
            ("wake", &["never"]),
            ("mail.ttl", &["soon"]),
            ("approvals.notify_bell", &["perhaps"]),
            ("approvals.reviewers", &["birch"]),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(value(key, &words).unwrap_err().code(), Code::Usage, "{key} {words:?}");
        }
        assert!(known("limits.hop").unwrap_err().hint_text().unwrap().contains("limits.hops"));
        assert!(known("hops").unwrap_err().hint_text().unwrap().contains("limits.hops"));
        assert!(known("guard.disable").unwrap_err().hint_text().unwrap().contains("baton guard"));
        assert_eq!(known("mail.ttl").unwrap(), "mail.ttl");
    }
}
