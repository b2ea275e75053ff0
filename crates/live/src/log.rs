//! Structured logs: one line per event on standard error, `key=value`.
//!
//! A running gateway has a thread for them: standard error may be full, closed, or a pipe that nobody
//! empties, and none of that may delay a packet. Lines that cannot be written are counted.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

/// Severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Frequent decisions, written after [`show_debug`].
    Debug,
    /// As it should be.
    Info,
    /// Something works less well than it could, or not for now.
    Warn,
}

/// Lines that wait to be written.
const MOST_WAITING: usize = 256;
/// How long the last lines of a process may take.
const PATIENCE: Duration = Duration::from_millis(500);

static WRITER: OnceLock<SyncSender<Message>> = OnceLock::new();
static SHOWS_DEBUG: AtomicBool = AtomicBool::new(false);
static LOST_LINES: AtomicU64 = AtomicU64::new(0);

enum Message {
    Line(String),
    /// Answer when all lines before have been written.
    Written(SyncSender<()>),
}

/// Write in a separate thread from now on; if none can be started, continue to write immediately.
pub fn start() {
    let (sender, receiver) = sync_channel(MOST_WAITING);
    let thread = thread::Builder::new().name("log".to_owned());
    if WRITER.get().is_none() && thread.spawn(move || write_all(&receiver)).is_ok() {
        // Where another thread was faster, this one ends with its channel.
        let _ = WRITER.set(sender);
    }
}

fn write_all(lines: &Receiver<Message>) {
    for message in lines {
        match message {
            Message::Line(line) => write_to(&mut io::stderr().lock(), &line),
            Message::Written(answer) => drop(answer.try_send(())),
        }
    }
}

fn write_to(output: &mut impl Write, line: &str) {
    if output.write_all(line.as_bytes()).is_err() {
        LOST_LINES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Wait until everything has been written, where that does not take long.
pub fn finish() {
    let (answer, written) = sync_channel(1);
    if let Some(writer) = WRITER.get()
        && writer.try_send(Message::Written(answer)).is_ok()
    {
        let _ = written.recv_timeout(PATIENCE);
    }
}

/// Lines that could not be written since the process started.
#[must_use]
pub fn lost_lines() -> u64 {
    LOST_LINES.load(Ordering::Relaxed)
}

/// Write one event.
pub fn write(level: Level, event: &str, fields: &[(&str, &dyn Display)]) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let time = since.unwrap_or_default();
    let line = format!(
        "time={}.{:03} {}\n",
        time.as_secs(),
        time.subsec_millis(),
        line(level, event, fields)
    );
    match WRITER.get() {
        None => write_to(&mut io::stderr().lock(), &line),
        Some(writer) => {
            if writer.try_send(Message::Line(line)).is_err() {
                LOST_LINES.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn line(level: Level, event: &str, fields: &[(&str, &dyn Display)]) -> String {
    let level = match level {
        Level::Debug => "debug",
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

/// Write events of [`Level::Debug`], too, from now on.
pub fn show_debug() {
    SHOWS_DEBUG.store(true, Ordering::Relaxed);
}

/// Write an event of [`Level::Debug`], if these are shown.
pub fn debug(event: &str, fields: &[(&str, &dyn Display)]) {
    if SHOWS_DEBUG.load(Ordering::Relaxed) {
        write(Level::Debug, event, fields);
    }
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
    fn what_cannot_be_written_is_counted_and_stops_nobody() {
        let before = lost_lines();
        let mut full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        write_to(&mut full, "a line\n");
        assert_eq!(lost_lines(), before + 1);
    }

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
