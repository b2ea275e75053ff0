//! Structured logs: a line an event on standard error, `key=value`.

use std::fmt::{Display, Write};
use std::time::SystemTime;

/// How grave an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Info,
    /// Something works less well than it could, or not for now.
    Warn,
}

/// Write one event.
pub fn write(level: Level, event: &str, fields: &[(&str, &dyn Display)]) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let time = since.unwrap_or_default();
    eprintln!(
        "time={}.{:03} {}",
        time.as_secs(),
        time.subsec_millis(),
        line(level, event, fields)
    );
}

fn line(level: Level, event: &str, fields: &[(&str, &dyn Display)]) -> String {
    let level = match level {
        Level::Info => "info",
        Level::Warn => "warn",
    };
    let mut line = format!("level={level} event={event}");
    for (key, value) in fields {
        let value = value.to_string();
        let is_plain = !value.is_empty()
            && value
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'=');
        // Writing to a string cannot fail.
        let _ = if is_plain {
            write!(line, " {key}={value}")
        } else {
            write!(line, " {key}={value:?}")
        };
    }
    line
}

/// As it should be.
pub fn info(event: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Info, event, fields);
}

/// Something works less well than it could, or not for now.
pub fn warn(event: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Warn, event, fields);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_reader_could_mistake_are_quoted() {
        let text = line(
            Level::Warn,
            "port_closed",
            &[("interface", &"left"), ("reason", &"it is \"down\"\n")],
        );
        insta::assert_snapshot!(text, @r#"level=warn event=port_closed interface=left reason="it is \"down\"\n""#);
    }
}
