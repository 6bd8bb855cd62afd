//! Escapes of `$'…'`, `printf` and `echo -e`, and base64: ways to hide a word from a reader.

/// The text of the escape at the start of a text, and how many bytes it takes.
pub fn ansi(text: &str) -> (String, usize) {
    let bytes = text.as_bytes();
    let digits = |from: usize, most: usize, radix: u32| {
        let taken = bytes
            .get(from..)
            .unwrap_or(&[])
            .iter()
            .take(most)
            .take_while(|byte| char::from(**byte).is_digit(radix))
            .count();
        let value = text.get(from..from + taken).and_then(|digits| u32::from_str_radix(digits, radix).ok());
        (value, from + taken)
    };
    let simple = |text: &str| (text.to_owned(), 2);
    match bytes.get(1) {
        None => ("\\".to_owned(), 1),
        Some(b'n') => simple("\n"),
        Some(b't') => simple("\t"),
        Some(b'r') => simple("\r"),
        Some(b'a' | b'b' | b'v' | b'f') => simple(" "),
        Some(b'e' | b'E') => simple("\u{1b}"),
        Some(b'\\') => simple("\\"),
        Some(b'\'') => simple("'"),
        Some(b'"') => simple("\""),
        Some(b'?') => simple("?"),
        Some(b'x') => numbered(digits(2, 2, 16)),
        Some(b'u') => numbered(digits(2, 4, 16)),
        Some(b'U') => numbered(digits(2, 8, 16)),
        Some(b'c') => (String::new(), bytes.len().min(3)),
        Some(b'0'..=b'7') => {
            // `\0NNN` of printf and echo, `\NNN` of the rest.
            let most = if bytes.get(1) == Some(&b'0') { 4 } else { 3 };
            numbered(digits(1, most, 8))
        }
        Some(_) => {
            let next = text.get(1..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
            (format!("\\{next}"), 1 + next.len_utf8())
        }
    }
}

fn numbered((value, end): (Option<u32>, usize)) -> (String, usize) {
    let sign = value.and_then(char::from_u32).filter(|sign| *sign != '\0');
    (sign.map(String::from).unwrap_or_default(), end)
}

/// A text with all escapes resolved.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let (decoded, length) = ansi(tail);
        out.push_str(&decoded);
        rest = tail.get(length..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

/// The text that base64 encodes, if it is text.
pub fn base64(text: &str) -> Option<String> {
    let mut bits = 0u32;
    let mut count = 0u32;
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    String::from_utf8(out).ok()
}

/// The text that pairs of hexadecimal digits encode.
pub fn hex(text: &str) -> Option<String> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| byte.to_ascii_lowercase())
        .collect();
    let bytes: Option<Vec<u8>> = digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        })
        .collect();
    String::from_utf8(bytes?).ok()
}
