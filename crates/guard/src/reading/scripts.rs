//! Programs whose arguments are programs, or that read with a few words only: sed, awk, tar, xargs.

/// `sed` with commands that print, delete, substitute or end, and nothing that names a file or runs
/// something.
pub(super) fn sed_reads(words: &[&str]) -> bool {
    let is_flag = |word: &str| {
        let short = word.strip_prefix('-').filter(|rest| !rest.is_empty());
        short.is_some_and(|rest| rest.bytes().all(|letter| b"nErsuz".contains(&letter)))
            || ["--quiet", "--silent", "--regexp-extended", "--null-data"].contains(&word)
    };
    let mut scripts = Vec::new();
    let mut files = 0;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "-e" | "-ne" | "-nEe" | "-Ee" => match rest.next() {
                Some(script) => scripts.push(*script),
                None => return false,
            },
            word if is_flag(word) => {}
            word if word.len() > 1 && word.starts_with('-') => return false,
            word => {
                files += 1;
                if scripts.is_empty() && files == 1 {
                    scripts.push(word);
                }
            }
        }
    }
    !scripts.is_empty() && scripts.iter().all(|script| sed_script_reads(script))
}

fn sed_script_reads(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        if rest.is_empty() {
            return true;
        }
        let Some(after) = sed_command(rest) else { return false };
        if !after.is_empty() && !after.starts_with([';', '\n', ' ']) {
            return false;
        }
        rest = after;
    }
}

/// The text behind one command that only reads.
fn sed_command(text: &str) -> Option<&str> {
    let mut rest = sed_address(text)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = sed_address(second.strip_prefix('+').unwrap_or(second))?;
    }
    let rest = rest.trim_start_matches([' ', '!']);
    let command = rest.chars().next()?;
    let after = &rest[command.len_utf8()..];
    match command {
        'p' | 'd' | 'q' | '=' | 'n' | 'N' | 'D' | 'P' | 'g' | 'G' | 'h' | 'H' | 'x' => Some(after),
        's' => {
            let delimiter =
                after.chars().next().filter(|sign| sign.is_ascii_punctuation() && *sign != '\\')?;
            let pattern = until(&after[1..], delimiter)?;
            let flags = until(pattern, delimiter)?;
            Some(flags.trim_start_matches(|sign: char| "gpiI".contains(sign) || sign.is_ascii_digit()))
        }
        _ => None,
    }
}

/// The text behind an address, or the whole text if there is none.
fn sed_address(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('$') {
        return Some(rest);
    }
    match text.strip_prefix('/') {
        Some(rest) => until(rest, '/').map(|rest| rest.trim_start_matches('I')),
        None => Some(text.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '~')),
    }
}

/// The text behind the next delimiter that is not escaped.
fn until(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, sign) in text.char_indices() {
        match sign {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // A bracket may hold the delimiter. Its end is not looked for.
            '[' if text[at..].contains(delimiter) && bracket_holds(&text[at..], delimiter) => return None,
            sign if sign == delimiter => return Some(&text[at + sign.len_utf8()..]),
            _ => {}
        }
    }
    None
}

fn bracket_holds(text: &str, delimiter: char) -> bool {
    // `[]x]` and `[^]x]` begin with a bracket that stands for itself.
    let inside = text[1..].trim_start_matches('^');
    let inside = inside.strip_prefix(']').unwrap_or(inside);
    inside.find(']').is_none_or(|end| inside[..end].contains(delimiter))
}

/// `awk` with a script that neither runs nor writes.
pub(super) fn awk_reads(words: &[&str]) -> bool {
    let mut rest = words.iter();
    let script = loop {
        match rest.next() {
            Some(&("-F" | "-v")) => _ = rest.next(),
            Some(word) if word.starts_with("-F") || word.starts_with("-v") => {}
            Some(word) if word.starts_with('-') => return false,
            Some(script) => break script,
            None => return false,
        }
    };
    let acts =
        ["system", "getline", "|", ">", "@", "close", "fflush"].iter().any(|word| script.contains(word));
    !acts && !rest.any(|word| word.starts_with('-'))
}

/// `tar` that lists.
pub(super) fn tar_lists(words: &[&str]) -> bool {
    let Some((mode, rest)) = words.split_first() else { return false };
    let letters = mode.strip_prefix('-').unwrap_or(mode);
    let lists = letters.contains('t') && letters.bytes().all(|letter| b"tvzjJaf".contains(&letter));
    // A colon in the archive's name means another machine.
    lists && !rest.iter().any(|word| word.starts_with('-') || word.contains(':'))
}

/// `xargs` with a command. That command is checked separately.
pub(super) fn xargs_reads(words: &[&str]) -> bool {
    let mut rest = words.iter();
    loop {
        match rest.next() {
            Some(&("-0" | "-r" | "-t" | "-0r" | "-r0")) => {}
            Some(&("-n" | "-L" | "-I" | "-P" | "-d")) => _ = rest.next(),
            Some(word) if word.starts_with("-n") || word.starts_with("-I") || word.starts_with("-P") => {}
            Some(word) => return !word.starts_with('-'),
            None => return false,
        }
    }
}
