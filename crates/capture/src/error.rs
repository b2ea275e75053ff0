//! What is wrong with a capture, told to the person who must mend it.

/// A capture of which nothing can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}{why}", at(.offset))]
pub struct CaptureError {
    /// The file as it was named; `standard input` for `-`.
    pub file: String,
    /// Bytes into the file (where compressed: into what it holds); none where it was not opened.
    pub offset: Option<u64>,
    /// What is wrong, what was expected, what to do.
    pub why: String,
}

/// A capture that was read up to some byte and not further. All packets before were told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete {
    /// The file as it was named; `standard input` for `-`.
    pub file: String,
    /// Bytes into the file (where compressed: into what it holds).
    pub offset: u64,
    /// What is wrong, and what was expected.
    pub why: String,
}

impl std::fmt::Display for Incomplete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, offset, why } = self;
        write!(
            f,
            "{file}: {}{why}; what lies before was read",
            at(&Some(*offset))
        )
    }
}

fn at(offset: &Option<u64>) -> String {
    match offset {
        Some(offset) => format!("byte {offset}: "),
        None => String::new(),
    }
}

/// Damage within a file, before it is known which file and what it means for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub offset: u64,
    pub why: String,
}

impl Damage {
    #[cold]
    pub fn new(offset: u64, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { offset, why }
    }
}
