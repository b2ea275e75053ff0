use std::fmt;

/// Why a hierarchical scheduler cannot run: section, key, and problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{section}: `{key}`: {problem}")]
pub struct HqosError {
    /// The section of the profile file.
    pub section: HqosSection,
    /// The key as the file writes it: `tb rate`, `tc 3 rate`, `pipe 0-7`. Where the section itself is missing, its
    /// name.
    pub key: String,
    /// Which of its values is wrong, from 0 on, where the key has several.
    pub position: Option<usize>,
    /// Description of the problem, and its remedy.
    pub problem: String,
}

/// A section of the profile file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HqosSection {
    /// `[port]`.
    Port,
    /// `[subport N]`.
    Subport(usize),
    /// `[subport profile N]`.
    SubportProfile(usize),
    /// `[pipe profile N]`.
    PipeProfile(usize),
    /// `[red]`.
    Red,
}

impl fmt::Display for HqosSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port => f.write_str("[port]"),
            Self::Subport(number) => write!(f, "[subport {number}]"),
            Self::SubportProfile(number) => write!(f, "[subport profile {number}]"),
            Self::PipeProfile(number) => write!(f, "[pipe profile {number}]"),
            Self::Red => f.write_str("[red]"),
        }
    }
}
