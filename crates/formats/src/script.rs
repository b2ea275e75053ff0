//! Shell scripts: comments and quoted arguments.

use std::fmt;

/// Where comments are wrapped.
const COMMENT_COLUMNS: usize = 100;

/// A comment, `mark` before its first line. Whatever a name holds, it stays one.
pub(crate) fn comment(f: &mut fmt::Formatter<'_>, mark: &str, text: &str) -> fmt::Result {
    let mut line = format!("# {mark}");
    let indent = " ".repeat(mark.len());
    let mut is_first = true;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        let length = line.chars().count() + 1 + word.chars().count();
        if !is_first && length > COMMENT_COLUMNS {
            writeln!(f, "{line}")?;
            line = format!("# {indent}{word}");
        } else {
            let space = if is_first { "" } else { " " };
            line.push_str(space);
            line.push_str(word);
        }
        is_first = false;
    }
    writeln!(f, "{line}")
}

/// One argument of a command, quoted where a shell would change it.
pub(crate) fn argument(f: &mut fmt::Formatter<'_>, argument: &str) -> fmt::Result {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/=@,".contains(&b);
    if !argument.is_empty() && argument.bytes().all(is_plain) {
        f.write_str(argument)
    } else {
        write!(f, "'{}'", argument.replace('\'', "'\\''"))
    }
}

/// As the kernel checks the name of an interface (`dev_valid_name`).
pub(crate) fn is_interface_name(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control())
}
