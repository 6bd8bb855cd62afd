//! Settings that change what a git command does, read from git's files: aliases, where a push goes.

use crate::World;
use crate::path;

/// Longest git configuration that is read. This bounds the work of one command.
const CONFIG_BYTES: usize = 64 << 10;

/// The value of a setting (`alias.x`, `push.default`) for a folder: first of the repository, then
/// of the person.
pub(crate) fn setting(world: &dyn World, folder: &str, key: &str) -> Option<String> {
    let home = world.home();
    let mut files = vec![];
    let mut at = folder;
    for _ in 0..64 {
        files.push(path::join(at, ".git/config"));
        if at == "/" {
            break;
        }
        at = path::parent(at);
    }
    files.push(path::join(&home, ".gitconfig"));
    files.push(path::join(&home, ".config/git/config"));
    files.iter().filter_map(|file| world.read_file(file, CONFIG_BYTES)).find_map(|text| value(&text, key))
}

fn value(text: &str, key: &str) -> Option<String> {
    let mut section = String::new();
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = match head.split_once(char::is_whitespace) {
                Some((name, sub)) => {
                    format!("{}.{}", name.to_ascii_lowercase(), sub.trim().trim_matches('"'))
                }
                None => head.to_ascii_lowercase(),
            };
        } else if let Some((name, value)) = line.split_once('=')
            && !line.starts_with(['#', ';'])
            && key == format!("{section}.{}", name.trim().to_ascii_lowercase())
        {
            let value = value.trim();
            let plain = value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(value);
            found = Some(plain.replace("\\\"", "\""));
        }
    }
    found
}
