//! The three attributes of each policy, decided by stated tests: performance isolation, resource
//! reallocation, scalability.
//!
//! `docs/verdicts.md` explains how each is decided, and why.

mod bound;
pub mod comparison;
mod indicator;
mod influence;
mod isolation;
mod not_judged;
mod not_shown;
mod objective_test;
mod objectives;
mod reallocation;
mod reason;
mod runs;
mod scalability;
#[cfg(test)]
mod tests;

pub use bound::BoundCheck;
pub use influence::{InfluenceTest, InfluenceVerdict};
pub use isolation::{Deciding, IsolationVerdict};
pub use not_judged::NotJudged;
pub use objectives::{ObjectiveIndicator, ObjectiveTest, ObjectivesVerdict};
pub use reallocation::{ReallocationVerdict, ScenarioReallocation};
pub use reason::{objective_value, quantity};
pub use runs::{RunCount, SampleKind, rare_share_excluded, runs_to_hold};
pub use scalability::ScalabilityVerdict;

use crate::description::{PublishedVerdict, SliceLimit, StudyDescription};
use crate::observations::Observations;
use crate::quantity::Quantity;
use serde::{Deserialize, Serialize};

/// The verdicts of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictTable {
    /// Name of the study.
    pub study: String,
    /// One-sided confidence of every decision.
    pub confidence: f64,
    /// In the order of the study.
    pub policies: Vec<PolicyVerdict>,
}

/// The verdicts of one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyVerdict {
    /// Policy name.
    pub policy: String,
    /// Do guaranteed slices keep their service when another one overloads?
    pub isolation: IsolationVerdict,
    /// Does best effort get the capacity that guaranteed slices leave?
    pub reallocation: ReallocationVerdict,
    /// How many slices does it support?
    pub scalability: ScalabilityVerdict,
    /// Published verdicts on this policy.
    pub published: Option<PublishedVerdict>,
    /// Agreement of our verdicts with the published ones.
    pub agrees: Agreement,
    /// Other policies of the configuration that packets pass, and that these verdicts leave out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// Why there is nothing to judge: the back end cannot express this policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_supported: Option<String>,
    /// There is nothing to judge: no run of this policy is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_run: bool,
}

/// Agreement of verdicts with the published ones; `None` if nothing was published or decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// Performance isolation.
    pub isolation: Option<bool>,
    /// Resource reallocation; a partial one agrees with neither yes nor no.
    pub reallocation: Option<bool>,
    /// Scalability.
    pub scalability: Option<bool>,
}

/// A verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Shown to hold.
    Holds,
    /// Shown to be broken.
    Broken,
    /// Between the two, as a percentage (reallocation only).
    Partial,
    /// Not decided by the available repetitions.
    Inconclusive,
    /// There was nothing to judge.
    NotTested,
}

impl Outcome {
    /// Combines tests, in any order: one that is broken breaks all, one that is undecided leaves all undecided, and one that
    /// was not tested changes nothing. `NotTested` where there are no others.
    fn of_all(outcomes: impl Iterator<Item = Self>) -> Self {
        outcomes.fold(Self::NotTested, |all, one| match (all, one) {
            (Self::Broken, _) | (_, Self::Broken) => Self::Broken,
            (Self::Inconclusive, _) | (_, Self::Inconclusive) => Self::Inconclusive,
            (Self::Partial, _) | (_, Self::Partial) => Self::Partial,
            (Self::Holds, _) | (_, Self::Holds) => Self::Holds,
            (Self::NotTested, Self::NotTested) => Self::NotTested,
        })
    }

    /// True or false where a publication's yes or no can be compared with it.
    fn agrees_with(self, published: bool) -> Option<bool> {
        match self {
            Self::Holds => Some(published),
            Self::Broken => Some(!published),
            Self::Partial => Some(false),
            Self::Inconclusive | Self::NotTested => None,
        }
    }
}

/// Unit of a statistic and its margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A fraction of the reference: 0.25 is 25 %.
    Relative,
    /// A difference of two ratios: 0.001 is 0.1 percentage points.
    RatioDifference,
    /// Nanoseconds.
    Nanoseconds,
    /// A fraction of what was possible: 0.95 is 95 %.
    Fraction,
}

/// The numbers behind a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecidedBy {
    /// Scenario; `None` where several were pooled.
    pub scenario: Option<String>,
    /// Slice, or slices.
    pub slice: String,
    /// Indicator that was compared; `None` for reallocation.
    pub indicator: Option<Quantity>,
    /// Mean of the indicator in the reference scenario, in its own unit; for reallocation, the rate that guaranteed
    /// slices left over, bit/s.
    pub reference: Option<f64>,
    /// Mean of the indicator in this scenario, in its own unit; for reallocation, the rate of that which best effort
    /// got, bit/s.
    pub treatment: Option<f64>,
    /// Of the means over runs: the worsening, or the reallocated fraction.
    pub statistic: f64,
    /// Of the worst run; `None` where it is relative to nothing.
    pub worst: Option<f64>,
    /// Unit of `statistic`, `worst` and `margin`.
    pub scale: Scale,
    /// Margin that each run was compared with; where the larger of two margins applies, that at the mean of the
    /// reference.
    pub margin: f64,
    /// The runs, and those beyond the margin.
    pub runs: RunCount,
}

impl DecidedBy {
    /// The margin of an indicator of packet delay, ns.
    fn margin_ns(&self) -> Option<f64> {
        let of_packets = matches!(
            self.indicator?,
            Quantity::DelayMean
                | Quantity::DelayP99
                | Quantity::QueueingDelayMean
                | Quantity::QueueingDelayP99
        );
        of_packets.then(|| match self.scale {
            Scale::Relative => self.margin * self.reference.unwrap_or(0.0),
            _ => self.margin,
        })
    }
}

impl PolicyVerdict {
    /// Returns true if isolation or reallocation was tested.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        let outcomes = [self.isolation.outcome, self.reallocation.outcome];
        outcomes != [Outcome::NotTested; 2]
    }
}

impl VerdictTable {
    /// Returns true if isolation or reallocation of some policy was tested.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.policies.iter().any(PolicyVerdict::is_judged)
    }

    /// False where there is nothing to read in it: no attribute of any policy was tested or stated.
    #[must_use]
    pub fn says_something(&self) -> bool {
        self.policies.iter().any(|policy| {
            policy.is_judged()
                || policy.scalability.limit != SliceLimit::NotStated
                || policy.published.is_some()
                || policy.not_supported.is_some()
        })
    }
}

/// Judge every policy of `study` by its runs.
#[must_use]
pub fn judge(study: &StudyDescription, observations: &Observations) -> VerdictTable {
    let policies = study.policies.iter().enumerate().map(|(index, policy)| {
        let study = &*study.under(index);
        let isolation = isolation::judge(study, observations, index);
        let reallocation = reallocation::judge(study, observations, index);
        let scalability = ScalabilityVerdict::of(&policy.scalability);
        let published = policy.published_verdict.clone();
        let agrees = published
            .as_ref()
            .map_or_else(Agreement::default, |published| Agreement {
                isolation: isolation.outcome.agrees_with(published.isolation),
                reallocation: reallocation.outcome.agrees_with(published.reallocation),
                // A limit applies to the device it was determined for.
                scalability: (!study.is_on_testbed())
                    .then(|| scalability.agrees_with(&published.scalability)),
            });
        PolicyVerdict {
            policy: policy.name.clone(),
            isolation,
            reallocation,
            scalability,
            published,
            agrees,
            not_judged: policy.not_judged.clone(),
            not_supported: None,
            not_run: !observations.has_runs_of_policy(index),
        }
    });
    VerdictTable {
        study: study.name.clone(),
        confidence: crate::estimate::valid_confidence(study.margins.confidence),
        policies: policies.collect(),
    }
}
