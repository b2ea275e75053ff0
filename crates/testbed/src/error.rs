//! Why an attempt at a run failed.

use std::io;

/// Why an attempt at a run failed.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// Permanent: it would fail again.
    #[error("{0}")]
    Failed(String),
    /// The machine was too busy, or a process died: the next attempt may succeed.
    #[error("{0}")]
    Retryable(String),
    /// The device does not support the run.
    #[error("{0}")]
    Unsupported(String),
    /// Interrupted by the user.
    #[error("stopped")]
    Interrupted,
}

impl AttemptError {
    pub(crate) fn failed(doing: &str) -> impl Fn(io::Error) -> Self + '_ {
        move |error| Self::Failed(format!("{doing}: {error}"))
    }
}
