//! Problems with a capture, for the person who has to fix it.

/// A capture that cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}{why}", at(.offset))]
pub struct CaptureError {
    /// The file as it was named; `standard input` for `-`.
    pub file: String,
    /// Bytes into the file (where compressed: into what it holds); none where it was not opened.
    pub offset: Option<u64>,
    /// Description of the problem, of what was expected, and of the remedy.
    pub why: String,
}

/// A capture that was read up to some byte and no further. All packets before it were reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete {
    /// The file as it was named; `standard input` for `-`.
    pub file: String,
    /// Bytes into the file (where compressed: into what it holds).
    pub offset: u64,
    /// Description of the problem, and of what was expected.
    pub why: String,
}

impl std::fmt::Display for Incomplete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, offset, why } = self;
        write!(
            f,
            "{file}: {}{why}; the packets before that were read",
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

/// Damage within a file, before its name and the consequence are known.
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
