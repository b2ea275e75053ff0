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
    /// The comparison with the reference scenario, of every guaranteed slice: shown beside objectives.
    pub influence: InfluenceVerdict,
    /// The same of the slices that influence decides for: those that are guaranteed and state no objective. `None` if
    /// there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding_influence: Option<InfluenceVerdict>,
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
    let by_influence = |slice: &&SliceDescription| slice.guaranteed && slice.objective.is_none();
    let by_influence: Vec<&str> = (study.slices.iter().filter(by_influence))
        .map(|slice| slice.name.as_str())
        .collect();
    not_compared.retain(|missing: &NotJudged| by_influence.contains(&missing.slice.as_str()));
    not_judged.append(&mut not_compared);

    let deciding_influence =
        (!by_influence.is_empty()).then(|| influence.of_slices(study, &by_influence));
    let of_objectives = objectives.iter().flat_map(|verdict| &verdict.tests);
    let of_influence = deciding_influence.iter().flat_map(|verdict| &verdict.tests);
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
        deciding_influence,
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
        let of_influence = (self.deciding_influence.as_ref()).filter(|i| i.outcome == self.outcome);
        (self.broken_bound().map(Deciding::Bound))
            .or_else(|| of_objectives?.decided_by.as_ref().map(Deciding::Objective))
            .or_else(|| of_influence?.decided_by.as_ref().map(Deciding::Influence))
    }

    /// Returns true if nothing was tested but bounds, all of which are kept. That is no test of isolation: packets may keep a bound
    /// because no other slice overloads.
    #[must_use]
    pub fn has_only_bounds(&self) -> bool {
        self.outcome == Outcome::NotTested && !self.bounds.is_empty()
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
            .deciding_influence
            .as_ref()
            .map(|i| (i.outcome, i.repetitions_needed));
        let open = of_objectives.into_iter().chain(of_influence);
        open.filter(|(outcome, _)| *outcome == Outcome::Inconclusive)
            .map(|(_, needed)| needed)
            .collect::<Option<Vec<u32>>>()?
            .into_iter()
            .max()
    }
}
