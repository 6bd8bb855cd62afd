//! How wide text is, and how wide the terminal.

use super::stdout_is_terminal;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Narrower terminals are taken for one of this width: nothing could be read there anyway.
const MIN_TERMINAL: usize = 40;

/// The columns of the terminal that shows the data; `None` where no terminal does.
pub fn columns() -> Option<usize> {
    if !stdout_is_terminal() {
        return None;
    }
    let asked = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).map_or(0, |size| size.ws_col);
    (asked > 0).then(|| usize::from(asked).max(MIN_TERMINAL))
}

/// The columns that text takes.
pub fn of(text: &str) -> usize {
    text.width()
}

/// The columns that a character takes.
pub fn of_char(c: char) -> usize {
    c.width().unwrap_or(0)
}
