//! Reports what another language cannot express of a policy.

use std::fmt;

/// All of a policy that a language cannot express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ExportError {
    /// The policy.
    pub policy: String,
    /// The language, as a subject of a sentence.
    pub language: &'static str,
    /// Parts it cannot express, and why; never empty.
    pub problems: Vec<Inexpressible>,
}

/// One thing that it cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inexpressible {
    /// The class, with those around it before it (`outer/inner`); `None` where it is the policy's.
    pub class: Option<String>,
    /// The setting, in the words of a study file: `wred`, `police` …
    pub what: &'static str,
    /// Precisely why not.
    pub why: String,
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (policy, language) = (&self.policy, self.language);
        write!(f, "policy `{policy}`: {language} cannot express this:")?;
        self.problems.iter().try_for_each(|p| write!(f, "\n  {p}"))
    }
}

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(class) = &self.class {
            write!(f, "class `{class}`: ")?;
        }
        write!(f, "{}: {}", self.what, self.why)
    }
}
