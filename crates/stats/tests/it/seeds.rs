//! Verdicts of one study under several seeds.

use crate::synthetic::{published, study};
use slicewise_stats::observations::Observations;
use slicewise_stats::seeds::{Attribute, SeedTable};
use slicewise_stats::verdict::{self, Outcome};
use std::collections::BTreeMap;

use Outcome::{Broken, Holds, Inconclusive, Partial};

/// Isolation and reallocation of the policies `a`, of which a publication says that it has the first only,
/// and `b`, of which none says anything.
type Outcomes = [(Outcome, Outcome); 2];

fn table(under_seeds: &[(u64, Outcomes)]) -> SeedTable {
    let policies = [("a", Some(published(true, false, ""))), ("b", None)];
    let judged = verdict::judge(&study(&policies, 1), &Observations::default()).policies;
    let mut table = SeedTable::default();
    for (seed, outcomes) in under_seeds {
        let mut policies = judged.clone();
        for (policy, (isolation, reallocation)) in policies.iter_mut().zip(outcomes) {
            policy.isolation.outcome = *isolation;
            policy.reallocation.outcome = *reallocation;
        }
        policies[0].agrees.isolation = Some(outcomes[0].0 == Holds);
        policies[0].agrees.reallocation = Some(outcomes[0].1 == Broken);
        table.add(*seed, &policies);
    }
    table
}

#[test]
fn each_attribute_of_each_policy_has_a_row_with_its_verdict_under_each_seed() {
    let table = table(&[
        (7, [(Holds, Broken), (Broken, Inconclusive)]),
        (3, [(Broken, Broken), (Broken, Partial)]),
    ]);
    let rows: Vec<_> = (table.rows.iter())
        .map(|row| {
            let outcomes: BTreeMap<_, _> = (row.verdicts.iter())
                .map(|(seed, verdict)| (*seed, verdict.outcome))
                .collect();
            let place = (row.policy.as_str(), row.attribute, row.published);
            (place, outcomes, row.agreeing())
        })
        .collect();
    let expected = [
        (("a", Attribute::Isolation, Some(true)), [Broken, Holds], 1),
        (
            ("a", Attribute::Reallocation, Some(false)),
            [Broken, Broken],
            2,
        ),
        (("b", Attribute::Isolation, None), [Broken, Broken], 0),
        (
            ("b", Attribute::Reallocation, None),
            [Partial, Inconclusive],
            0,
        ),
    ]
    .map(|(place, outcomes, agreeing)| {
        (place, [3, 7].into_iter().zip(outcomes).collect(), agreeing)
    });
    assert_eq!(rows, expected);
    assert_eq!(table.seeds().into_iter().collect::<Vec<_>>(), [3, 7]);
    assert_eq!(table.rows[0].seeds_with(Holds).collect::<Vec<_>>(), [7]);
    assert_eq!(table.rows[2].seeds_with(Broken).collect::<Vec<_>>(), [3, 7]);
}

#[test]
fn verdicts_contradict_each_other_where_one_holds_and_another_is_broken() {
    for (first, second, contradictory) in [
        (Holds, Broken, true),
        (Broken, Holds, true),
        (Holds, Holds, false),
        (Broken, Broken, false),
        (Holds, Inconclusive, false),
        (Broken, Partial, false),
    ] {
        let found = table(&[
            (1, [(first, first), (first, first)]),
            (2, [(second, second), (second, second)]),
        ]);
        for row in &found.rows {
            assert_eq!(
                row.is_contradictory(),
                contradictory,
                "{first:?} {second:?}"
            );
        }
    }
}

#[test]
fn attributes_are_named_by_a_word() {
    let names = [Attribute::Isolation, Attribute::Reallocation].map(|a| a.to_string());
    assert_eq!(names, ["isolation", "reallocation"]);
}
