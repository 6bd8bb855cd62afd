//! Paths as text: made absolute, cleaned of `.` and `..`, compared part by part. Drives and
//! backslashes of Windows work too.

/// Whether a path starts at a root.
pub fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || is_drive(path)
}

/// `C:` and what follows it.
pub fn is_drive(path: &str) -> bool {
    let mut signs = path.bytes();
    signs.next().is_some_and(|sign| sign.is_ascii_alphabetic())
        && signs.next() == Some(b':')
        && signs.next().is_none_or(|sign| sign == b'\\' || sign == b'/')
}

/// A path from a folder, without `.`, `..`, doubled and trailing slashes. `..` above the root stays
/// at the root.
pub fn join(folder: &str, path: &str) -> String {
    let slashed;
    let path =
        if path.contains('\\') && (is_drive(path) || path.starts_with("..\\") || path.starts_with(".\\")) {
            slashed = path.replace('\\', "/");
            slashed.as_str()
        } else {
            path
        };
    let base = if is_absolute(path) { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                if !(parts.len() == 1 && parts.first().is_some_and(|first| is_drive(first))) {
                    parts.pop();
                }
            }
            part => parts.push(part),
        }
    }
    if parts.first().is_some_and(|first| is_drive(first)) {
        return parts.join("/");
    }
    let mut out = String::with_capacity(path.len() + base.len() + 1);
    for part in &parts {
        out.push('/');
        out.push_str(part);
    }
    if out.is_empty() { "/".to_owned() } else { out }
}

/// Whether a clean path is a folder itself or below it.
pub fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.strip_suffix('/').unwrap_or(folder);
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The last part, behind a slash or a backslash.
pub fn file_name(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Everything before the last part.
pub fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => path.get(..at).unwrap_or("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned() {
        for (folder, path, expected) in [
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "../c/./d//", "/a/c/d"),
            ("/a", "/x/../..", "/"),
            ("/a", "C:\\x\\..\\y", "C:/y"),
            ("/a", "C:\\", "C:"),
            ("/a", "..\\x", "/x"),
            ("/", "", "/"),
        ] {
            assert_eq!(join(folder, path), expected, "{folder} {path}");
        }
    }

    #[test]
    fn a_name_that_begins_alike_is_not_below() {
        assert!(is_below("/p/x", "/p"));
        assert!(is_below("/p", "/p/"));
        assert!(is_below("/p", "/"));
        assert!(!is_below("/p-other/x", "/p"));
        assert_eq!(file_name("C:\\a\\.env"), ".env");
    }
}
