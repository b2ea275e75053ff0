//! Slices that are not judged in a scenario, and why.

use serde::{Deserialize, Serialize};

/// A slice that could not be judged in a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotJudged {
    /// Scenario.
    pub scenario: String,
    /// Slice.
    pub slice: String,
    /// The reason.
    pub why: String,
    /// True where isolation cannot be said to hold without it.
    pub missing: bool,
    /// True where there are no runs of it.
    #[serde(default)]
    pub no_runs: bool,
    /// True if only its delay bound could not be judged.
    #[serde(default)]
    pub only_bound: bool,
}

/// Why a slice is not judged in a scenario.
pub(super) struct Skipped {
    why: String,
    missing: bool,
    no_runs: bool,
}

impl Skipped {
    /// Isolation cannot be said to hold without it.
    pub fn missing(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            missing: true,
            no_runs: false,
        }
    }

    /// Nor without what was not run.
    pub fn no_runs(why: impl Into<String>) -> Self {
        Self {
            no_runs: true,
            ..Self::missing(why)
        }
    }

    /// The slice's own doing.
    pub fn own(why: impl Into<String>) -> Self {
        Self {
            missing: false,
            ..Self::missing(why)
        }
    }

    pub fn not_judged(self, scenario: String, slice: String) -> NotJudged {
        NotJudged {
            scenario,
            slice,
            why: self.why,
            missing: self.missing,
            no_runs: self.no_runs,
            only_bound: false,
        }
    }
}
