//! Changes besides figures: verdicts, published figures, and parts that only one of the results has.

use super::{Change, Place, PublishedChange, Results, VerdictChange, common};
use crate::description::StudyDescription;
use crate::published;
use crate::verdict::{Outcome, judge};

pub(super) fn verdict_changes(a: Results<'_>, b: Results<'_>) -> Vec<VerdictChange> {
    // A verdict must not change because the margins did.
    let study_b = StudyDescription {
        margins: a.study.margins,
        ..b.study.clone()
    };
    let (in_a, in_b) = (
        judge(a.study, a.observations),
        judge(&study_b, b.observations),
    );
    let mut changes = Vec::new();
    for (policy, of_b) in common(&a.study.policies, &b.study.policies, |p| &p.name) {
        if !a.has_policy(policy) || !b.has_policy(of_b) {
            continue;
        }
        let (of_a, of_b) = (&in_a.policies[policy], &in_b.policies[of_b]);
        let attributes = [
            ("isolation", of_a.isolation.outcome, of_b.isolation.outcome),
            (
                "reallocation",
                of_a.reallocation.outcome,
                of_b.reallocation.outcome,
            ),
        ];
        let changed = attributes.into_iter().filter(|(_, a, b)| a != b);
        changes.extend(changed.map(|(attribute, a, b)| VerdictChange {
            policy: of_a.policy.clone(),
            attribute,
            a,
            b,
            change: verdict_change(a, b),
        }));
    }
    changes
}

/// Returns the change of a verdict that is not the same.
fn verdict_change(a: Outcome, b: Outcome) -> Change {
    let rank = |outcome| match outcome {
        Outcome::Broken => Some(0),
        Outcome::Partial => Some(1),
        Outcome::Holds => Some(2),
        Outcome::Inconclusive | Outcome::NotTested => None,
    };
    match rank(a).zip(rank(b)) {
        Some((a, b)) if b < a => Change::Worse,
        Some(_) => Change::Better,
        None => Change::Inconclusive,
    }
}

pub(super) fn published_changes(a: Results<'_>, b: Results<'_>) -> Vec<PublishedChange> {
    let in_b = published::compare(b.study, b.observations);
    let in_a = published::compare(a.study, a.observations).into_iter();
    in_a.filter_map(|of_a| {
        let of_b = in_b
            .iter()
            .find(|of_b| of_a.figure.is_same_claim(&of_b.figure))?;
        (of_a.outcome != of_b.outcome).then_some(PublishedChange {
            claim: of_a.figure.claim,
            a: of_a.outcome,
            b: of_b.outcome,
        })
    })
    .collect()
}

/// Policies, scenarios and cells with runs, and slices, that the other one does not have.
pub(super) fn only_in(one: Results<'_>, other: Results<'_>) -> Vec<Place> {
    let policy_of_other = |name: &String| {
        let position = other.study.policies.iter().position(|p| p.name == *name);
        position.filter(|&policy| other.has_policy(policy))
    };
    let scenario_of_other = |name: &String| {
        let position = other.study.scenarios.iter().position(|s| s.name == *name);
        position.filter(|&scenario| other.has_scenario(scenario))
    };
    let mut places = Vec::new();
    for (policy, described) in one.study.policies.iter().enumerate() {
        let found = policy_of_other(&described.name);
        if found.is_none() && one.has_policy(policy) {
            places.push(Place {
                policy: Some(described.name.clone()),
                ..Place::default()
            });
        }
    }
    for (scenario, described) in one.study.scenarios.iter().enumerate() {
        let found = scenario_of_other(&described.name);
        if found.is_none() && one.has_scenario(scenario) {
            places.push(Place {
                scenario: Some(described.name.clone()),
                ..Place::default()
            });
        }
    }
    let slices = one.study.slices.iter().map(|slice| &slice.name);
    let missing = slices.filter(|name| !other.study.slices.iter().any(|s| s.name == **name));
    places.extend(missing.map(|name| Place {
        slice: Some(name.clone()),
        ..Place::default()
    }));
    for (policy, described) in one.study.policies.iter().enumerate() {
        let Some(of_other) = policy_of_other(&described.name) else {
            continue;
        };
        for (scenario, of_scenario) in one.study.scenarios.iter().enumerate() {
            let Some(in_other) = scenario_of_other(&of_scenario.name) else {
                continue;
            };
            if one.has(policy, scenario) && !other.has(of_other, in_other) {
                places.push(Place {
                    policy: Some(described.name.clone()),
                    scenario: Some(of_scenario.name.clone()),
                    slice: None,
                });
            }
        }
    }
    places
}
