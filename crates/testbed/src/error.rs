//! Why an attempt at a run came to nothing.

use std::io;

/// Why an attempt at a run came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// It would come to nothing again.
    #[error("{0}")]
    Failed(String),
    /// The machine was too busy, or something died: it may go better next time.
    #[error("{0}")]
    Spoilt(String),
    /// The device cannot do what the run asks for.
    #[error("{0}")]
    Unsupported(String),
    /// The user stopped it.
    #[error("stopped")]
    Interrupted,
}

impl AttemptError {
    pub(crate) fn failed(doing: &str) -> impl Fn(io::Error) -> Self + '_ {
        move |error| Self::Failed(format!("{doing}: {error}"))
    }
}
