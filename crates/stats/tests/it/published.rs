//! Published figures: which of them agree, differ or stay undecided.

use crate::figures::figure;
use crate::synthetic::{CRITICAL, Service, run, study};
use slicewise_stats::description::{Basis, Cell, Expected, PublishedFigure, StudyDescription};
use slicewise_stats::published::{self, PublishedComparison, PublishedOutcome};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::RunRecord;
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::comparison::{self, Results};

/// Three repetitions of a policy under two scenarios with these mean delays, of which they deviate by −1, −1/3 and
/// 1/3 of `scatter`.
fn runs(policy: &str, delays_ns: [f64; 2], scatter: f64) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (scenario, delay_mean_ns) in ["s0", "s1"].into_iter().zip(delays_ns) {
        for repetition in 0..3 {
            let service = Service {
                delay_mean_ns,
                ..Service::untroubled(15.75e6)
            };
            let services = [service, Service::untroubled(15.75e6)];
            records.push(run(policy, scenario, repetition, services, scatter));
        }
    }
    records
}

/// A claim of the mean delay of the critical slice.
fn claim(policies: &[&str], scenarios: &[&str], expected: Expected) -> PublishedFigure {
    let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect();
    PublishedFigure {
        policies: names(policies),
        scenarios: names(scenarios),
        ..figure(Quantity::DelayMean, expected)
    }
}

const fn about(value: f64, tolerance: f64) -> Expected {
    Expected::About { value, tolerance }
}

const fn at_least(value: f64) -> Expected {
    Expected::AtLeast { value }
}

fn published(figures: &[PublishedFigure]) -> StudyDescription {
    StudyDescription {
        published: figures.to_vec(),
        ..study(&[("a", None), ("b", None)], 2)
    }
}

fn observed<'a>(study: &'a StudyDescription, records: &[RunRecord]) -> SummaryBuilder<'a> {
    let mut builder = SummaryBuilder::new(study);
    (records.iter()).for_each(|record| builder.add(record).unwrap());
    builder
}

/// The first of these claims, compared in a study with all of them.
fn first(records: &[RunRecord], figures: &[PublishedFigure]) -> PublishedComparison {
    let study = published(figures);
    let builder = observed(&study, records);
    published::compare(&study, builder.observations()).remove(0)
}

fn outcome(records: &[RunRecord], figure: &PublishedFigure) -> PublishedOutcome {
    first(records, std::slice::from_ref(figure)).outcome
}

/// Mean delay 199.3 µs; its two-sided 90 % interval is ± 2.25 µs.
fn one_policy() -> Vec<RunRecord> {
    runs("a", [200_000.0; 2], 0.01)
}

#[test]
fn a_figure_agrees_only_if_its_90_percent_interval_is_inside_what_was_published() {
    let of = |tolerance| claim(&["a"], &["s0"], about(199_333.0, tolerance));
    // 1 % are 1.99 µs: less than the half width of 90 %, and more than that of 80 %. A 95 % interval is ± 3.31 µs.
    let [narrow, wide] = [0.01, 0.012].map(|tolerance| outcome(&one_policy(), &of(tolerance)));
    assert_eq!(
        (narrow, wide),
        (PublishedOutcome::Undecided, PublishedOutcome::Agrees)
    );
    let interval = first(&one_policy(), &[of(0.01)]).ours.unwrap().interval;
    let half_width = (interval.high.unwrap() - interval.low.unwrap()) / 2.0;
    assert!((half_width - 2_247.6).abs() < 1.0, "{half_width}");
}

#[test]
fn a_figure_differs_only_beyond_what_chance_explains_over_all_cells_of_the_study() {
    // 4.67 µs above the mean: outside ± 3.31 µs of two tests, and inside ± 5.36 µs of five.
    let own = claim(&["a"], &["s0"], at_least(204_000.0));
    let one_cell = claim(&["a"], &["s1"], at_least(0.0));
    let four_cells = claim(&[], &[], at_least(0.0));
    let mut records = one_policy();
    records.extend(runs("b", [200_000.0; 2], 0.01));
    assert_eq!(
        first(&records, &[own.clone(), one_cell]).outcome,
        PublishedOutcome::Differs
    );
    assert_eq!(
        first(&records, &[own, four_cells]).outcome,
        PublishedOutcome::Undecided
    );
}

#[test]
fn an_undecided_cell_leaves_a_claim_undecided_and_one_that_differs_decides_it() {
    let mut records = runs("a", [200_000.0, 300_000.0], 0.0);
    records.extend(runs("b", [200_000.0; 2], 0.3));
    let between = |low, high| Expected::Between { low, high };

    let undecided = first(&records, &[claim(&[], &["s0"], between(1e5, 210_000.0))]);
    assert_eq!(undecided.outcome, PublishedOutcome::Undecided);
    assert_eq!((undecided.cells, undecided.cells_agreeing), (2, 1));
    assert_eq!(undecided.ours.unwrap().policy, "b");

    // The cells of b deviate more, and do not decide.
    let differs = first(&records, &[claim(&[], &["s0"], between(201e3, 202e3))]);
    assert_eq!(differs.outcome, PublishedOutcome::Differs);
    assert_eq!(differs.ours.unwrap().policy, "a");
}

#[test]
fn a_single_repetition_is_decided_by_its_value() {
    let mut records = one_policy();
    records.retain(|record| record.key.repetition == 0);
    let of = |value| claim(&["a"], &["s0"], about(value, 0.01));
    assert_eq!(
        [198_000.0, 201_000.0].map(|value| outcome(&records, &of(value))),
        [PublishedOutcome::Agrees, PublishedOutcome::Differs]
    );
}

#[test]
fn a_ratio_to_what_may_be_nothing_is_undecided() {
    let mut records = runs("a", [200_000.0; 2], 0.01);
    let references = records.iter_mut().filter(|r| r.key.scenario == "s0");
    for (record, delay) in references.zip([1_000.0, 1_000.0, 598_000.0]) {
        record.slices[CRITICAL].steady.delay.mean_ns = delay;
    }
    let relative = PublishedFigure {
        relative_to: Some(Cell {
            policy: None,
            scenario: Some("s0".to_owned()),
        }),
        ..claim(&["a"], &["s1"], about(0.0, 0.1))
    };
    assert_eq!(outcome(&records, &relative), PublishedOutcome::Undecided);
}

#[test]
fn a_tolerance_above_a_fifth_of_the_value_is_an_order_of_magnitude() {
    let wide = |expected| claim(&[], &[], expected).is_order_of_magnitude();
    assert!(wide(about(5.0, 0.201)) && wide(about(-5.0, 0.25)));
    // Of zero, a tolerance is absolute.
    assert!(!wide(about(5.0, 0.2)) && !wide(about(0.0, 0.3)));
    assert!(!wide(at_least(5.0)));
}

#[test]
fn results_are_compared_across_a_change_of_what_is_written_about_a_claim() {
    let own = claim(&["a"], &["s0"], about(200_000.0, 0.02));
    let annotated = PublishedFigure {
        basis: Basis::Calibrated,
        tolerance_from: "two digits".to_owned(),
        explanation: "a reason".to_owned(),
        ..own.clone()
    };
    let (study_a, study_b) = (published(&[own]), published(&[annotated]));
    let a = observed(&study_a, &one_policy());
    let b = observed(&study_b, &runs("a", [300_000.0; 2], 0.01));
    let changes = comparison::compare(
        Results {
            study: &study_a,
            observations: a.observations(),
        },
        Results {
            study: &study_b,
            observations: b.observations(),
        },
    );
    let outcomes = changes.published.iter().map(|change| (change.a, change.b));
    assert_eq!(
        outcomes.collect::<Vec<_>>(),
        [(PublishedOutcome::Agrees, PublishedOutcome::Differs)]
    );
}
