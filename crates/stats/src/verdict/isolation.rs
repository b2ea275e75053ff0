//! Performance isolation: does every slice get the service it needs, whatever the others send?
//!
//! A slice with objectives is judged by them. A guaranteed slice without objectives is judged by the
//! influence of other slices on it. A proved delay bound is compared with every packet.

use super::influence::{self, InfluenceVerdict};
use super::not_judged::NotJudged;
use super::objectives::{self, ObjectivesVerdict};
use super::{BoundCheck, DecidedBy, ObjectiveTest, Outcome, bound};
use crate::description::{SliceDescription, StudyDescription};
use crate::observations::Observations;
use serde::{Deserialize, Serialize};

/// The verdict on performance isolation, and every test behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IsolationVerdict {
    /// `Holds`, `Broken`, `Inconclusive` or `NotTested`.
    pub outcome: Outcome,
    /// For slices with objectives; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objectives: Option<ObjectivesVerdict>,
    /// The comparison with the reference scenario, of every guaranteed slice.
    pub influence: InfluenceVerdict,
    /// True if influence decides for some slice: one that is guaranteed and states no objective.
    pub influence_decides: bool,
    /// Proved bounds of delay against the largest delays measured; empty where the policy proves
    /// none. One packet above its bound breaks isolation, whatever the tests say.
    pub bounds: Vec<BoundCheck>,
    /// Slices that could not be judged.
    pub not_judged: Vec<NotJudged>,
}

/// Judge one policy, given by its place in the study.
pub(super) fn judge(
    study: &StudyDescription,
    observations: &Observations,
    policy: usize,
) -> IsolationVerdict {
    let bounds = bound::check(study, observations, policy);
    let mut not_judged = bound::not_judged(study, policy);
    let objectives = objectives::judge(study, observations, policy, &mut not_judged);
    let mut not_compared = Vec::new();
    let influence = influence::judge(study, observations, policy, &mut not_compared);
    let is_judged_by_influence = |name: &str| {
        let by_influence = |slice: &SliceDescription| slice.guaranteed && slice.objective.is_none();
        study
            .slices
            .iter()
            .any(|s| s.name == name && by_influence(s))
    };
    not_compared.retain(|missing: &NotJudged| is_judged_by_influence(&missing.slice));
    not_judged.append(&mut not_compared);

    let influence_decides = study.slices.iter().any(|s| is_judged_by_influence(&s.name));
    let of_influence = influence.tests.iter();
    let of_influence = of_influence.filter(|test| is_judged_by_influence(&test.numbers.slice));
    let of_objectives = objectives.iter().flat_map(|verdict| &verdict.tests);
    let tests = of_objectives
        .map(|test| test.outcome)
        .chain(of_influence.map(|test| test.outcome));
    let outcome = match Outcome::of_all(tests) {
        _ if bounds.iter().any(|check| check.outcome == Outcome::Broken) => Outcome::Broken,
        Outcome::Holds if not_judged.iter().any(|n| n.missing) => Outcome::Inconclusive,
        Outcome::NotTested if not_judged.iter().any(|n| n.missing && !n.no_runs) => {
            Outcome::Inconclusive
        }
        outcome => outcome,
    };
    IsolationVerdict {
        outcome,
        objectives,
        influence,
        influence_decides,
        bounds,
        not_judged,
    }
}

/// Test that decided isolation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Deciding<'a> {
    /// A proved bound that a packet exceeded.
    Bound(&'a BoundCheck),
    /// An objective of a slice.
    Objective(&'a ObjectiveTest),
    /// A comparison with the reference scenario.
    Influence(&'a DecidedBy),
}

impl IsolationVerdict {
    /// Returns the test that decided it, or where it is inconclusive the least decided test; `None` where nothing was
    /// tested, or where missing data keep it from being decided.
    #[must_use]
    pub fn decided_by(&self) -> Option<Deciding<'_>> {
        let of_objectives = (self.objectives.as_ref()).filter(|o| o.outcome == self.outcome);
        let of_influence = (self.influence_decides && self.influence.outcome == self.outcome)
            .then_some(&self.influence);
        (self.broken_bound().map(Deciding::Bound))
            .or_else(|| of_objectives?.decided_by.as_ref().map(Deciding::Objective))
            .or_else(|| of_influence?.decided_by.as_ref().map(Deciding::Influence))
    }

    /// Repetitions that would decide it; `None` where it is decided or no number within reason would.
    #[must_use]
    pub fn repetitions_needed(&self) -> Option<u32> {
        if self.outcome != Outcome::Inconclusive {
            return None;
        }
        let of_objectives = self
            .objectives
            .as_ref()
            .map(|o| (o.outcome, o.repetitions_needed));
        let of_influence = self
            .influence_decides
            .then_some((self.influence.outcome, self.influence.repetitions_needed));
        let open = of_objectives.into_iter().chain(of_influence);
        open.filter(|(outcome, _)| *outcome == Outcome::Inconclusive)
            .map(|(_, needed)| needed)
            .collect::<Option<Vec<u32>>>()?
            .into_iter()
            .max()
    }
}
