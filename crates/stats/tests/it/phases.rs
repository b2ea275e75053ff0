//! A study with a timeline: each policy in each phase is judged as a policy of its own.

use crate::synthetic::{CRITICAL, Service, run, study};
use slicewise_stats::description::{
    Basis, Cell, DelayBound, Expected, PublishedFigure, SliceDescription, StudyDescription,
};
use slicewise_stats::phase::{PhaseDescription, PhasePolicy, PhaseRecord, PhaseSliceRecord};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::RunRecord;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, Outcome};

const HALF_NS: u64 = 20_000_000_000;
const BOUND: DelayBound = DelayBound {
    scheduler_ns: 7,
    outside_ns: 0,
};

/// Two policies; in the second half of each run the critical slice has another share and an objective.
fn phased() -> StudyDescription {
    let mut study = study(&[("a", None), ("b", None)], 2);
    let slices = |share: u64, throughput: Option<u64>| -> Vec<SliceDescription> {
        let mut slices = study.slices.clone();
        slices[CRITICAL].share_bits_per_second = share;
        slices[CRITICAL].objective =
            throughput.map(|rate| objective!(throughput_bits_per_second: Some(rate)));
        slices
    };
    let phase = |name: &str, half: u64, slices, proved: PhasePolicy| PhaseDescription {
        name: name.to_owned(),
        title: if half == 0 { "" } else { "later" }.to_owned(),
        begins_ns: half * HALF_NS,
        measured_from_ns: half * HALF_NS,
        ends_ns: (half + 1) * HALF_NS,
        changes: Vec::new(),
        slices,
        policies: vec![PhasePolicy::default(), proved],
        cycles_ns: vec![2_000_000_000, (half + 1) * 1_000_000_000],
    };
    let proved = PhasePolicy {
        scalability: None,
        configuration: "changed".to_owned(),
        delay_bounds: [("critical".to_owned(), BOUND)].into(),
        unbounded: Vec::new(),
    };
    study.phases = vec![
        phase("one", 0, slices(17_500_000, None), PhasePolicy::default()),
        phase("two", 1, slices(16_000_000, Some(14_000_000)), proved),
    ];
    study
}

/// A run whose halves are alike, the critical slice getting `rates`.
fn record(policy: &str, scenario: &str, repetition: u32, rates: [f64; 2]) -> RunRecord {
    let critical = Service::untroubled(rates[0].max(rates[1]));
    let services = [critical, Service::untroubled(15.75e6)];
    let mut record = run(policy, scenario, repetition, services, 0.01);
    let phases = ["one", "two"].into_iter().zip(rates).zip(0..);
    let phases = phases.map(|((name, rate), half)| {
        let slices = record.slices.iter().enumerate();
        let slices = slices.map(|(index, slice)| {
            let mut figures = slice.steady;
            figures.span_ns = HALF_NS;
            if index == CRITICAL {
                figures.throughput_bits_per_second = rate;
                figures.offered_bits_per_second = rate;
            }
            PhaseSliceRecord {
                figures,
                delay_cdf: slice.delay_cdf.clone(),
                ..PhaseSliceRecord::default()
            }
        });
        PhaseRecord {
            phase: name.to_owned(),
            measured_from_ns: half * HALF_NS,
            ends_ns: (half + 1) * HALF_NS,
            slices: slices.collect(),
            aggregate: record.aggregate,
            ..PhaseRecord::default()
        }
    });
    record.phases = phases.collect();
    record
}

#[test]
fn a_policy_in_each_phase_has_what_is_promised_and_proved_there() {
    let study = phased();
    let judged = study.by_phase();
    let names: Vec<&str> = judged.policies.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["a/one", "a/two", "b/one", "b/two"]);
    let bounds: Vec<usize> = judged
        .policies
        .iter()
        .map(|p| p.delay_bounds.len())
        .collect();
    assert_eq!(bounds, [0, 0, 0, 1]);
    assert_eq!(judged.policies[1].title, "later");
    assert_eq!(judged.policies[3].configuration, "changed");
    // A share that changes is no one's.
    let shares = judged.slices.iter().map(|s| s.share_bits_per_second);
    assert_eq!(shares.collect::<Vec<_>>(), [0, 17_500_000]);
    assert_eq!(judged.policy_of_runs("b/two"), "b");
    assert_eq!(judged.policy_of_runs("b"), "b");
    let plain = crate::synthetic::study(&[("a/b", None)], 1);
    assert_eq!(plain.by_phase(), plain);
    assert_eq!(plain.policy_of_runs("a/b"), "a/b");
}

#[test]
fn a_published_figure_is_compared_in_its_phase() {
    let mut study = phased();
    let figure = |phase: Option<&str>, policies: &[&str]| PublishedFigure {
        claim: String::new(),
        source: String::new(),
        metric: Quantity::Throughput.into(),
        policies: policies.iter().map(|p| (*p).to_owned()).collect(),
        scenarios: Vec::new(),
        phase: phase.map(str::to_owned),
        slice: Some("critical".to_owned()),
        queue: None,
        relative_to: Some(Cell {
            policy: Some("a".to_owned()),
            scenario: None,
        }),
        basis: Basis::Predicted,
        expected: Expected::AtLeast { value: 1.0 },
        tolerance_from: String::new(),
        explanation: String::new(),
    };
    study.published = vec![
        figure(Some("two"), &["b"]),
        figure(Some("two"), &[]),
        figure(None, &["b"]),
    ];
    let published = study.by_phase().published;
    let cells = published.iter().map(|figure| {
        let relative_to = figure.relative_to.as_ref().unwrap();
        (
            figure.policies.join(" "),
            relative_to.policy.clone().unwrap(),
        )
    });
    let pair = |policies: &str, to: &str| (policies.to_owned(), to.to_owned());
    assert_eq!(
        cells.collect::<Vec<_>>(),
        [
            pair("b/two", "a/two"),
            pair("a/two b/two", "a/two"),
            pair("b/one", "a/one"),
            pair("b/two", "a/two")
        ]
    );
}

#[test]
fn a_phase_is_compared_with_the_same_phase_of_the_reference_and_by_its_own_objective() {
    let judged = phased().by_phase();
    let mut builder = SummaryBuilder::new(&judged);
    for policy in ["a", "b"] {
        for repetition in 0..10 {
            // What the reference gets in the second phase would be half of what it gets in the first.
            let reference = record(policy, "s0", repetition, [16e6, 15e6]);
            let rates = if policy == "a" {
                [16e6, 15e6]
            } else {
                [16e6, 8e6]
            };
            let treatment = record(policy, "s1", repetition, rates);
            for record in [reference, treatment] {
                builder.add(&record).unwrap();
            }
        }
    }
    assert_eq!(builder.runs(), 40);
    assert!(builder.is_run_as(3, "b") && !builder.is_run_as(3, "a"));
    let verdicts = verdict::judge(&judged, builder.observations());
    let outcomes = verdicts.policies.iter().map(|v| v.isolation.outcome);
    assert_eq!(
        outcomes.collect::<Vec<_>>(),
        [
            Outcome::Holds,
            Outcome::Holds,
            Outcome::Holds,
            Outcome::Broken
        ]
    );
    let by_objective = |index: usize| verdicts.policies[index].isolation.objectives.is_some();
    assert_eq!([0, 1, 2, 3].map(by_objective), [false, true, false, true]);
    let cells = builder.summary().cells;
    assert_eq!(cells.len(), 8);
    assert!(cells.iter().all(|cell| cell.repetitions == 10));
}
