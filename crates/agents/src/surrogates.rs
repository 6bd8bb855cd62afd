//! Half characters in JSON. JavaScript may cut a text between the two halves of a character and
//! write the rest as `\ud83d`. That is not a character, so a strict reader refuses the whole
//! document.

/// The same JSON with each half character replaced by U+FFFD, which has the same length; `None` if
/// there is none.
pub(crate) fn mended(json: &[u8]) -> Option<Vec<u8>> {
    let mut halves = Vec::new();
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'\\')) {
        at += found;
        at += match (unit(json, at), unit(json, at + ESCAPE_BYTES)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE_BYTES,
            (Some(0xd800..=0xdfff), _) => {
                halves.push(at);
                ESCAPE_BYTES
            }
            // The byte after the backslash belongs to the escape.
            _ => 2,
        };
    }
    if halves.is_empty() {
        return None;
    }
    let mut whole = json.to_vec();
    for at in halves {
        whole[at..at + ESCAPE_BYTES].copy_from_slice(br"\ufffd");
    }
    Some(whole)
}

/// The length of `\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// The code unit of the escape at this position.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE_BYTES)?.strip_prefix(br"\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::mended;

    fn text(json: &str) -> Option<String> {
        mended(json.as_bytes()).map(|json| serde_json::from_slice(&json).unwrap())
    }

    #[test]
    fn halves_become_one_replacement_each_and_the_rest_stays() {
        assert_eq!(text(r#""a\ud800b""#).as_deref(), Some("a\u{fffd}b"));
        assert_eq!(text(r#""\uDC00\uD83D""#).as_deref(), Some("\u{fffd}\u{fffd}"));
        assert_eq!(text(r#""\ud83d\ud83d\ude00\n""#).as_deref(), Some("\u{fffd}\u{1f600}\n"));
    }

    #[test]
    fn whole_documents_are_left_alone() {
        for json in
            [r#""\ud83d\ude00""#, r#""\\ud800""#, r#""ü\u00fc\\""#, "", "\\", r"\u", r"\ud8", r#""\u+123""#]
        {
            assert_eq!(mended(json.as_bytes()), None, "{json}");
        }
    }
}
