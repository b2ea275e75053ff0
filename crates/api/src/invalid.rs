//! Problem with a value, and its place.

use std::fmt;
use std::ops::RangeInclusive;

/// A value that is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Where it is, as a JSON pointer (RFC 6901); empty for the whole document.
    pub at: String,
    /// Description of the problem, and of the expected value.
    pub problem: String,
}

impl Invalid {
    /// `problem` at `at`.
    #[must_use]
    pub fn new(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            problem: problem.into(),
        }
    }

    /// The same inside of `parent`, a JSON pointer.
    #[must_use]
    pub fn within(mut self, parent: &str) -> Self {
        self.at.insert_str(0, parent);
        self
    }
}

/// Tests that a number is within a range.
///
/// # Errors
/// If it is not; `at` is its place.
pub(crate) fn check_range(value: u64, range: RangeInclusive<u64>, at: &str) -> Result<(), Invalid> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    let problem = format!("{value} is outside {least} to {most}");
    Err(Invalid::new(at, problem))
}

/// Tests that a list is not longer than `most`.
///
/// # Errors
/// If it is; `at` is its place.
pub(crate) fn check_count<T>(list: &[T], most: usize, what: &str, at: &str) -> Result<(), Invalid> {
    if list.len() <= most {
        return Ok(());
    }
    let problem = format!("has {} {what}: expected at most {most}", list.len());
    Err(Invalid::new(at, problem))
}

/// Tests that the store can hold a number: it has 63 bits.
///
/// # Errors
/// If it cannot; `at` is its place.
pub(crate) fn check_stored(value: u64, at: &str) -> Result<(), Invalid> {
    match i64::try_from(value) {
        Ok(_) => Ok(()),
        Err(_) => Err(Invalid::new(at, format!("{value} is above {}", i64::MAX))),
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.as_str() {
            "" => f.write_str(&self.problem),
            at => write!(f, "{at}: {}", self.problem),
        }
    }
}

impl std::error::Error for Invalid {}
