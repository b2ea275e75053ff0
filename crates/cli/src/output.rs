//! Everything that the command prints, on standard output and standard error.
//!
//! Names, titles and paths come from files that others wrote, so control characters are escaped here: none
//! reaches a terminal. A stream that can no longer be written never stops the work: the rest of what would have
//! been printed is left out, and [`conclude`] decides what the process ends with.

use crate::exit::Exit;
use console::Term;
use slicewise_report::terminal::Colours;
use slicewise_units::is_hidden;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;
use std::sync::{OnceLock, PoisonError, RwLock};

/// Print a line on standard output, as [`println!`] does.
#[macro_export]
macro_rules! outln {
    ($($text:tt)*) => { $crate::output::line(&format!($($text)*)) };
}

/// Print a line on standard error, as [`eprintln!`] does.
#[macro_export]
macro_rules! errln {
    ($($text:tt)*) => { $crate::output::error_line(&format!($($text)*)) };
}

/// Print a line of progress or a note on standard error, unless `--quiet` was given.
#[macro_export]
macro_rules! noteln {
    ($($text:tt)*) => { $crate::output::note(&format!($($text)*)) };
}

/// How much is printed on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Warnings and errors.
    Quiet,
    /// Also notes and progress.
    Normal,
    /// Also a line for each run.
    Verbose,
}

static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// Set once, before anything is printed.
pub fn set_verbosity(verbosity: Verbosity) {
    let _ = VERBOSITY.set(verbosity);
}

pub fn verbosity() -> Verbosity {
    *VERBOSITY.get().unwrap_or(&Verbosity::Normal)
}

/// Why the stream cannot be written any more, once it cannot.
static OUT_FAILED: OnceLock<io::Error> = OnceLock::new();
static ERR_FAILED: OnceLock<io::Error> = OnceLock::new();

/// Print a line on standard output.
pub fn line(text: &str) {
    styled(&format!("{}\n", escaped(text)));
}

/// The same on standard error.
pub fn error_line(text: &str) {
    styled_error(&format!("{}\n", escaped(text)));
}

/// The same, unless `--quiet` was given.
pub fn note(text: &str) {
    if verbosity() != Verbosity::Quiet {
        error_line(text);
    }
}

/// Print a line that may have the colours of our tables in it; every other control character is escaped.
pub fn coloured_line(text: &str) {
    styled(&(coloured(text) + "\n"));
}

/// `text` as [`coloured_line`] prints it.
pub fn coloured(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for (index, part) in text.split('\u{1b}').enumerate() {
        let colour = COLOURS.iter().find(|colour| part.starts_with(**colour));
        safe.push_str(match (index, colour) {
            (0, _) => "",
            (_, Some(_)) => "\u{1b}",
            (_, None) => "\\u{1b}",
        });
        safe.push_str(&escaped(part));
    }
    safe
}

/// Print text as it is, which may have colours in it: what others wrote must be [`escaped`] in it already.
pub fn styled(text: &str) {
    write(&mut stdout().lock(), &OUT_FAILED, text);
}

/// The same on standard error.
pub fn styled_error(text: &str) {
    write(&mut stderr().lock(), &ERR_FAILED, text);
}

/// Print a value as JSON. Control characters are escaped as JSON escapes them.
pub fn json(value: &serde_json::Value) {
    let mut text = String::new();
    for c in format!("{value:#}").chars() {
        if is_unsafe(c) {
            // Writing to a String cannot fail. All of these are below U+10000.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text.push('\n');
    styled(&text);
}

/// Paths, and what is printed in their place.
static SHOWN: RwLock<Vec<(String, String)>> = RwLock::new(Vec::new());

/// From now on, print `name` in the place of a path.
#[cfg(feature = "s3")]
pub fn show_as(path: &std::path::Path, name: String) {
    let mut shown = SHOWN.write().unwrap_or_else(PoisonError::into_inner);
    shown.push((path.display().to_string(), name));
}

fn write(stream: &mut dyn Write, failed: &OnceLock<io::Error>, text: &str) {
    if failed.get().is_some() {
        return;
    }
    let mut text = Cow::Borrowed(text);
    let shown = SHOWN.read().unwrap_or_else(PoisonError::into_inner);
    for (path, name) in shown.iter() {
        if text.contains(path) {
            text = Cow::Owned(text.replace(path, name));
        }
    }
    let written = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
    if let Err(error) = written {
        // The first reason counts.
        let _ = failed.set(error);
    }
}

/// Returns true once standard output cannot be written any more.
#[cfg(feature = "linux")]
pub fn is_lost() -> bool {
    OUT_FAILED.get().is_some()
}

/// Returns true if standard error takes colours: a terminal, and neither `NO_COLOR` nor `TERM=dumb`.
pub fn error_colours() -> bool {
    console::colors_enabled_stderr()
}

/// Colours where standard output is a terminal that shows them and `NO_COLOR` is not set.
pub fn colours() -> Colours {
    if console::colors_enabled() {
        Colours::Ansi
    } else {
        Colours::None
    }
}

/// Width of the terminal; where the output goes to a file, as wide as a table gets.
pub fn columns() -> u16 {
    Term::stdout()
        .size_checked()
        .map_or(u16::MAX, |(_, columns)| columns)
}

/// `text` with control characters written out, as `\u{1b}`; lines and tabs stay. So are the characters that
/// change the direction of text, which could show a name as another one.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

fn is_unsafe(c: char) -> bool {
    is_hidden(c) && c != '\n' && c != '\t'
}

/// Returns the exit code of the process. A reader that has left, as `head` does, is no failure; where something could
/// not be written for another reason, as on a full disk, the exit code is at least 1.
pub fn conclude(exit: Exit) -> ExitCode {
    let lost = |failed: &'static OnceLock<io::Error>| {
        failed
            .get()
            .filter(|error| error.kind() != ErrorKind::BrokenPipe)
    };
    let out = lost(&OUT_FAILED);
    if let Some(error) = out {
        errln!("error: cannot write to standard output: {error}");
    }
    match exit {
        Exit::Success if out.is_some() || lost(&ERR_FAILED).is_some() => Exit::Failure,
        exit => exit,
    }
    .into()
}

/// Help, the version, or what is wrong with the arguments, as clap words it.
pub fn of_arguments(error: &clap::Error) -> ExitCode {
    let (failed, exit) = if error.use_stderr() {
        (&ERR_FAILED, Exit::Mistake)
    } else {
        (&OUT_FAILED, Exit::Success)
    };
    if let Err(error) = error.print() {
        let _ = failed.set(error);
    }
    conclude(exit)
}

/// Colours of tables, after the escape character.
const COLOURS: [&str; 4] = ["[0m", "[1;31m", "[1;32m", "[1;33m"];

#[cfg(test)]
mod tests {
    use super::{coloured, escaped};

    #[test]
    fn colours_of_tables_are_kept_and_every_other_sequence_is_written_out() {
        let table = "\u{1b}[1;31mworse\u{1b}[0m gold\u{1b}[2J\u{7}";
        let kept = "\u{1b}[1;31mworse\u{1b}[0m gold\\u{1b}[2J\\u{7}";
        assert_eq!(coloured(table), kept);
        // A name may spell a sequence out: that is text.
        assert_eq!(coloured("\\u{1b}[1;31m"), "\\u{1b}[1;31m");
    }

    #[test]
    fn control_characters_and_turns_of_direction_are_written_out() {
        let text = "gold\u{1b}]0;title\u{7}\r\u{9b}31m\u{202e}\tplain\nnext é";
        insta::assert_snapshot!(escaped(text), @r"
        gold\u{1b}]0;title\u{7}\r\u{9b}31m\u{202e}	plain
        next é
        ");
    }
}
