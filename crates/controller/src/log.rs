//! Structured logs: one line per event on standard error, `key=value`, as the gateway writes them.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// As it should be.
pub(crate) fn info(event: &str, fields: &[(&str, &dyn Display)]) {
    write("info", event, fields);
}

/// Something works less well than it could, or not for now.
pub(crate) fn warn(event: &str, fields: &[(&str, &dyn Display)]) {
    write("warn", event, fields);
}

fn write(level: &str, event: &str, fields: &[(&str, &dyn Display)]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let (seconds, millis) = (now.as_secs(), now.subsec_millis());
    let line = line(level, event, fields);
    // A log that cannot be written must not stop the controller.
    let _ = writeln!(io::stderr().lock(), "time={seconds}.{millis:03} {line}");
}

fn line(level: &str, event: &str, fields: &[(&str, &dyn Display)]) -> String {
    let mut line = format!("level={level} event={event}");
    for (key, value) in fields {
        let value = value.to_string();
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'=';
        // Writing to a string cannot fail.
        let _ = match !value.is_empty() && value.bytes().all(is_plain) {
            true => write!(line, " {key}={value}"),
            false => write!(line, " {key}={value:?}"),
        };
    }
    line
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_that_a_reader_could_mistake_are_quoted() {
        let fields: [(&str, &dyn std::fmt::Display); 2] = [("a", &1), ("b", &"x \"y\"\n")];
        let line = super::line("warn", "went", &fields);
        assert_eq!(line, r#"level=warn event=went a=1 b="x \"y\"\n""#);
    }
}
