//! Problem with a value, and its place.

use std::fmt;

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

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.as_str() {
            "" => f.write_str(&self.problem),
            at => write!(f, "{at}: {}", self.problem),
        }
    }
}

impl std::error::Error for Invalid {}
