//! The terminal (`termios(3)`).

use super::checked;
use std::io::{self, IsTerminal};

/// Discard what was typed at the terminal of standard input and not yet read; anything else that it may be stays as it is.
///
/// # Errors
/// As `tcflush(3)`.
pub fn discard_typed() -> io::Result<()> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    // SAFETY: no memory is passed.
    checked(unsafe { libc::tcflush(libc::STDIN_FILENO, libc::TCIFLUSH) }).map(|_| ())
}
