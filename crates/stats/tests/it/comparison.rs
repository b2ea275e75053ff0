//! Two results compared, on devices of known behaviour.

use crate::synthetic::{CRITICAL, Service, on_a_machine_with, run, study};
use proptest::prelude::*;
use slicewise_stats::description::StudyDescription;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::{Figures, RunRecord};
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::comparison::{
    Change, ComparedFigure, Results, ResultsComparison, compare,
};
use slicewise_stats::verdict::{Outcome, Scale};

const RUNS: u32 = 10;
const POLICY: &str = "gold";

fn one_cell() -> StudyDescription {
    study(&[(POLICY, None)], 1)
}

/// Runs of one cell; `seed` is that of the first.
fn runs(service: impl Fn(u32) -> Service, count: u32, seed: u64, scatter: f64) -> Vec<RunRecord> {
    let record = |repetition| {
        let services = [service(repetition), Service::untroubled(15e6)];
        let mut record = run(POLICY, "s0", repetition, services, scatter);
        record.key.seed = seed + u64::from(repetition);
        record
    };
    (0..count).map(record).collect()
}

fn steady(rate: f64) -> impl Fn(u32) -> Service {
    move |_| Service::untroubled(rate)
}

/// Mean and p99 delay a factor longer.
fn slower(factor: f64) -> impl Fn(u32) -> Service {
    move |_| Service {
        delay_mean_ns: 200_000.0 * factor,
        delay_p99_ns: 400_000.0 * factor,
        ..Service::untroubled(15e6)
    }
}

fn compared_in(
    (study_a, a): (&StudyDescription, &[RunRecord]),
    (study_b, b): (&StudyDescription, &[RunRecord]),
) -> ResultsComparison {
    let [in_a, in_b] = [(study_a, a), (study_b, b)].map(|(study, records)| {
        let mut builder = SummaryBuilder::new(study);
        for record in records {
            builder.add(record).unwrap();
        }
        builder
    });
    compare(
        Results {
            study: study_a,
            observations: in_a.observations(),
        },
        Results {
            study: study_b,
            observations: in_b.observations(),
        },
    )
}

fn compared(a: &[RunRecord], b: &[RunRecord]) -> ResultsComparison {
    compared_in((&one_cell(), a), (&one_cell(), b))
}

fn figure(results: &ResultsComparison, indicator: Quantity) -> &ComparedFigure {
    let slice = ["critical", "best effort"][CRITICAL];
    let mut figures = results.figures.iter();
    figures
        .find(|f| f.numbers.indicator == Some(indicator) && f.numbers.slice == slice)
        .unwrap()
}

#[test]
fn equal_runs_of_equal_seeds_are_the_same_without_a_difference() {
    let a = runs(steady(15e6), RUNS, 1, 0.1);
    let results = compared(&a, &a);
    assert_eq!(results.figures.len(), 8, "two slices, four indicators");
    assert_eq!(results.count(Change::Same), 8);
    assert!(results.figures.iter().all(|f| f.paired && f.equal));
    assert!(results.verdicts.is_empty() && results.not_compared.is_empty());
    assert!(results.only_in_a.is_empty() && results.only_in_b.is_empty());
}

#[test]
fn longer_delay_is_worse_and_better_the_other_way_round() {
    let a = runs(slower(1.0), RUNS, 1, 0.1);
    let b = runs(slower(1.6), RUNS, 1, 0.1);
    let results = compared(&a, &b);
    for indicator in [Quantity::DelayMean, Quantity::DelayP99] {
        let worse = figure(&results, indicator);
        assert_eq!(worse.outcome, Change::Worse);
        assert!((worse.numbers.statistic - 0.6).abs() < 1e-3);
        assert!(worse.numbers.reference < worse.numbers.treatment);
        assert_eq!((worse.numbers.runs.beyond, worse.better.beyond), (RUNS, 0));
    }
    assert_eq!(results.count(Change::Same), 6);
    let back = compared(&b, &a);
    assert_eq!(back.count(Change::Better), 2);
    assert_eq!(back.count(Change::Worse), 0);
}

#[test]
fn a_difference_that_never_varies_needs_no_scatter_to_be_shown() {
    let a = runs(steady(15e6), RUNS, 1, 0.0);
    let b = runs(steady(14e6), RUNS, 1, 0.0);
    // Less is offered, too: what it received of that is the same.
    let results = compared(&a, &b);
    let share = figure(&results, Quantity::ReceivedShare);
    assert_eq!(share.outcome, Change::Same);

    let lossy = |_| Service {
        received: (14e6, 14e6),
        loss_ratio: 1.0 / 15.0,
        ..Service::untroubled(15e6)
    };
    let results = compared(&a, &runs(lossy, RUNS, 1, 0.0));
    for indicator in [Quantity::Throughput, Quantity::LossRatio] {
        let worse = figure(&results, indicator);
        assert_eq!(worse.outcome, Change::Worse);
    }
}

#[test]
fn what_receives_nothing_any_more_is_worse() {
    let silent = |_| Service {
        received: (0.0, 0.0),
        loss_ratio: 1.0,
        ..Service::untroubled(15e6)
    };
    let (a, b) = (runs(steady(15e6), RUNS, 1, 0.0), runs(silent, RUNS, 1, 0.0));
    let throughput = |results: &ResultsComparison| figure(results, Quantity::Throughput).outcome;
    assert_eq!(throughput(&compared(&a, &b)), Change::Worse);
    let back = compared(&b, &a);
    assert_eq!(figure(&back, Quantity::LossRatio).outcome, Change::Better);
    assert_eq!(back.not_compared[0].why, "it received nothing in A");
}

#[test]
fn too_few_repetitions_or_too_much_scatter_decide_nothing() {
    let a = runs(slower(1.0), 1, 1, 0.0);
    let results = compared(&a, &a);
    assert_eq!(results.count(Change::Inconclusive), 8);
    assert!(results.figures[0].repetitions_needed.is_some());

    let by_turns = |repetition: u32| slower([0.7, 1.9][repetition as usize % 2])(repetition);
    let results = compared(&runs(slower(1.0), 4, 1, 0.0), &runs(by_turns, 4, 1, 0.0));
    let delay = figure(&results, Quantity::DelayMean);
    assert_eq!(delay.outcome, Change::Inconclusive);
}

#[test]
fn what_is_not_worse_may_be_better_without_that_being_shown() {
    let improved = |repetition: u32| slower([0.3, 1.0][repetition as usize % 2])(repetition);
    let mut study = one_cell();
    study.margins.delay_relative = 0.3;
    let results = compared_in(
        (&study, &runs(slower(1.0), 6, 1, 0.0)),
        (&study, &runs(improved, 6, 1, 0.0)),
    );
    let delay = figure(&results, Quantity::DelayMean);
    assert_eq!(delay.outcome, Change::NotWorse);
}

/// Repetitions differ by much more than A and B do.
fn scattered(factor: f64) -> impl Fn(u32) -> Service {
    move |repetition| slower(factor * (1.0 + f64::from(repetition)))(repetition)
}

#[test]
fn repetitions_of_one_seed_are_compared_in_pairs_and_others_are_not() {
    let a = runs(scattered(1.0), RUNS, 1, 0.0);
    let b = |seed| runs(scattered(1.05), RUNS, seed, 0.0);
    let paired = compared(&a, &b(1));
    let delay = figure(&paired, Quantity::DelayMean);
    assert_eq!((delay.outcome, delay.paired), (Change::Same, true));

    // Under other seeds they have nothing in common, and scatter hides what there is.
    let others = runs(
        |repetition| scattered(1.05)(RUNS - 1 - repetition),
        RUNS,
        100,
        0.0,
    );
    let mut study = one_cell();
    study.margins.rare_runs = 0.3;
    let independent = compared_in((&study, &a), (&study, &others));
    let delay = figure(&independent, Quantity::DelayMean);
    assert_eq!((delay.outcome, delay.paired), (Change::Inconclusive, false));

    let other_study = StudyDescription {
        name: "other".to_owned(),
        ..one_cell()
    };
    let other = compared_in((&one_cell(), &a), (&other_study, &b(1)));
    assert!(!figure(&other, Quantity::DelayMean).paired);

    let captured = StudyDescription {
        backend: "captures".to_owned(),
        ..one_cell()
    };
    let captured = compared_in((&captured, &a), (&captured, &b(1)));
    assert!(!figure(&captured, Quantity::DelayMean).paired);
}

#[test]
fn independent_samples_of_different_sizes_are_compared_by_all_their_runs() {
    let a = runs(slower(1.0), 20, 1, 0.1);
    let b = runs(slower(1.6), 10, 100, 0.1);
    let results = compared(&a, &b);
    let delay = figure(&results, Quantity::DelayMean);
    assert_eq!((delay.repetitions_a, delay.repetitions_b), (20, 10));
    assert_eq!(delay.outcome, Change::Worse);
    assert_eq!(figure(&results, Quantity::LossRatio).outcome, Change::Same);
    assert_eq!(compared(&b, &a).count(Change::Better), 2);
}

#[test]
fn a_rare_failure_of_independent_runs_is_not_the_same() {
    // One run in ten loses 0.5 %: its mean is within the margin, the run is not.
    let rare = |repetition: u32| Service {
        loss_ratio: if repetition == 3 { 0.005 } else { 0.0 },
        ..Service::untroubled(15e6)
    };
    let mut study = one_cell();
    study.margins.rare_runs = 0.3;
    let a = runs(steady(15e6), RUNS, 1, 0.0);
    let results = compared_in((&study, &a), (&study, &runs(rare, RUNS, 100, 0.0)));
    let loss = figure(&results, Quantity::LossRatio);
    assert_eq!(loss.numbers.runs.beyond, 1);
    assert_eq!(loss.outcome, Change::Inconclusive);
    // What A does as badly is no change.
    let a = runs(rare, RUNS, 1, 0.0);
    let results = compared_in((&study, &a), (&study, &runs(rare, RUNS, 100, 0.0)));
    let loss = figure(&results, Quantity::LossRatio);
    assert_eq!(loss.numbers.runs.beyond, 0);
}

#[test]
fn delay_added_to_every_packet_shows_on_one_back_end_and_not_between_two() {
    let mut study = one_cell();
    study.margins.delay_of = slicewise_stats::description::ComparedDelay::Queueing;
    let later = |records: Vec<RunRecord>| -> Vec<RunRecord> {
        let mut records = records;
        let figures = records.iter_mut().flat_map(|record| &mut record.slices);
        for figures in figures.flat_map(|slice| [&mut slice.steady, &mut slice.whole]) {
            figures.delay.mean_ns += 1e6;
            figures.delay.min_ns += 1_000_000;
            figures.delay.p99_ns += 1_000_000;
        }
        records
    };
    let a = runs(slower(1.0), RUNS, 1, 0.0);
    let b = later(a.clone());
    let results = compared_in((&study, &a), (&study, &b));
    let delay = figure(&results, Quantity::QueueingDelayMean);
    assert_eq!(delay.outcome, Change::Worse);

    let gateway = StudyDescription {
        backend: "gateway".to_owned(),
        ..study.clone()
    };
    let results = compared_in((&study, &a), (&gateway, &b));
    let delay = figure(&results, Quantity::QueueingDelayMean);
    assert_eq!(delay.outcome, Change::Same);
}

#[test]
fn margins_are_those_of_a_on_both_sides() {
    let mut generous = one_cell();
    generous.margins.delay_relative = 2.0;
    let (a, b) = (
        runs(slower(1.0), RUNS, 1, 0.1),
        runs(slower(1.6), RUNS, 1, 0.1),
    );
    let results = compared_in((&generous, &a), (&one_cell(), &b));
    assert_eq!(results.count(Change::Same), 8);
    let results = compared_in((&one_cell(), &a), (&generous, &b));
    assert_eq!(results.count(Change::Worse), 2);
}

#[test]
fn a_delay_below_what_the_machine_resolves_has_not_changed() {
    // 120 µs more in the mean, 240 µs at 99 %.
    let worse = |idle_p99_ns| {
        let [a, b] = [1.0, 1.6].map(|factor| {
            let mut records = runs(slower(factor), RUNS, 1, 0.1);
            for record in &mut records {
                record.testbed = Some(on_a_machine_with(idle_p99_ns));
            }
            records
        });
        compared(&a, &b).count(Change::Worse)
    };
    assert_eq!(worse(10_000), 2);
    assert_eq!(worse(300_000), 0);
}

#[test]
fn rates_are_compared_where_about_the_same_is_sent_and_shares_of_it_elsewhere() {
    let indicators = |rate| {
        let a = runs(steady(15e6), RUNS, 1, 0.0);
        let results = compared(&a, &runs(steady(rate), RUNS, 1, 0.0));
        let of_critical = results
            .figures
            .iter()
            .find(|f| f.numbers.slice == "critical");
        of_critical.unwrap().numbers.indicator.unwrap()
    };
    assert_eq!(indicators(15.1e6), Quantity::Throughput);
    assert_eq!(indicators(15.2e6), Quantity::ReceivedShare);
}

#[test]
fn slices_and_cells_that_only_one_has_are_listed() {
    let whole = study(&[("gold", None), ("old", None)], 2);
    let mut part = whole.clone();
    part.slices.truncate(1);
    let cell = |policy: &str, scenario: &str| {
        run(policy, scenario, 0, [Service::untroubled(15e6); 2], 0.0)
    };
    let mut a = vec![cell("gold", "s0"), cell("gold", "s1"), cell("old", "s0")];
    let mut b = a.clone();
    a.push(cell("old", "s1"));
    b.iter_mut().for_each(|record| record.slices.truncate(1));
    let results = compared_in((&whole, &a), (&part, &b));
    let only_in_a: Vec<String> = results.only_in_a.iter().map(ToString::to_string).collect();
    assert_eq!(only_in_a, ["slice best effort", "policy old, scenario s1"]);
    assert!(results.only_in_b.is_empty());
}

#[test]
fn a_verdict_does_not_change_because_the_margins_did() {
    let strict = study(&[(POLICY, None)], 2);
    let mut generous = strict.clone();
    generous.margins.delay_relative = 2.0;
    let mut records = runs(slower(1.0), RUNS, 1, 0.1);
    let disturbed = runs(slower(1.6), RUNS, 1, 0.1).into_iter();
    records.extend(disturbed.map(|mut record| {
        record.key.scenario = "s1".to_owned();
        record
    }));
    // By the margins of each, isolation would be broken in one and hold in the other.
    for (a, b) in [(&strict, &generous), (&generous, &strict)] {
        let results = compared_in((a, &records), (b, &records));
        assert_eq!(results.verdicts, []);
    }
}

#[test]
fn changed_verdicts_and_what_only_one_has_are_listed() {
    let with = |names: &[&str], scenarios| {
        study(
            &names.iter().map(|name| (*name, None)).collect::<Vec<_>>(),
            scenarios,
        )
    };
    let cell = |policy: &str, scenario: &str, factor: f64| {
        (0..RUNS)
            .map(move |repetition| {
                let services = [slower(factor)(repetition), Service::untroubled(15e6)];
                run(policy, scenario, repetition, services, 0.1)
            })
            .collect::<Vec<_>>()
    };
    let a = [
        cell("gold", "s0", 1.0),
        cell("gold", "s1", 1.0),
        cell("old", "s0", 1.0),
        cell("gold", "s2", 1.0),
    ]
    .concat();
    let b = [
        cell("gold", "s0", 1.0),
        cell("gold", "s1", 2.0),
        cell("new", "s0", 1.0),
    ]
    .concat();
    let results = compared_in(
        (&with(&["gold", "old"], 3), &a),
        (&with(&["gold", "new"], 2), &b),
    );
    let [verdict] = results.verdicts.as_slice() else {
        panic!("{:?}", results.verdicts);
    };
    assert_eq!(
        (verdict.attribute, verdict.change),
        ("isolation", Change::Worse)
    );
    assert_eq!((verdict.a, verdict.b), (Outcome::Holds, Outcome::Broken));
    let only = |places: &[slicewise_stats::verdict::comparison::Place]| {
        places.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(only(&results.only_in_a), ["policy old", "scenario s2"]);
    assert_eq!(only(&results.only_in_b), ["policy new"]);
}

proptest! {
    /// Whatever A and B are: B is better than A where A is worse than B.
    #[test]
    fn outcomes_are_mirrored_where_the_folders_are_exchanged(
        factors in (0.3f64..3.0, 0.3f64..3.0),
        counts in (1u32..12, 1u32..12),
        seed in prop_oneof![Just(1u64), Just(100)],
        scatter in 0.0f64..0.5,
    ) {
        let a = runs(slower(factors.0), counts.0, 1, scatter);
        let b = runs(slower(factors.1), counts.1, seed, scatter);
        let (there, back) = (compared(&a, &b), compared(&b, &a));
        for (there, back) in there.figures.iter().zip(&back.figures) {
            let mirrored = match there.outcome {
                Change::Worse => [Change::Better; 2],
                Change::Better => [Change::Worse; 2],
                Change::Same => [Change::Same; 2],
                Change::NotWorse => [Change::Inconclusive; 2],
                Change::Inconclusive => [Change::Inconclusive, Change::NotWorse],
            };
            prop_assert!(mirrored.contains(&back.outcome), "{:?} {:?}", there, back);
            prop_assert!(there.numbers.statistic.is_finite());
        }
    }
}

#[test]
fn what_no_run_has_is_not_compared() {
    let compared_without = |change: fn(&mut Figures)| {
        let mut a = runs(slower(1.0), RUNS, 1, 0.1);
        (a.iter_mut()).for_each(|record| change(&mut record.slices[CRITICAL].steady));
        let results = compared(&a, &a);
        let of_critical = results.figures.iter();
        of_critical
            .filter(|f| f.numbers.slice == "critical")
            .filter_map(|f| f.numbers.indicator)
            .collect::<Vec<_>>()
    };
    // A slice that sends nothing has no share and no loss, either.
    assert_eq!(compared_without(|of| of.sent_frames = 0), []);
    assert_eq!(
        compared_without(|of| of.delay.samples = 0),
        [Quantity::Throughput, Quantity::LossRatio]
    );
}

#[test]
fn a_delay_is_compared_in_time_where_the_resolution_is_the_larger_margin() {
    // A quarter of 200 µs is 50 µs.
    for (resolution_ns, scale, margin) in [
        (49_000, Scale::Relative, 0.25),
        (51_000, Scale::Nanoseconds, 51_000.0),
    ] {
        let mut study = one_cell();
        study.margins.delay_resolution_ns = resolution_ns;
        let a = runs(slower(1.0), RUNS, 1, 0.0);
        let results = compared_in((&study, &a), (&study, &a));
        let delay = &figure(&results, Quantity::DelayMean).numbers;
        assert_eq!((delay.scale, delay.margin), (scale, margin));
    }
}

#[test]
fn a_repetition_without_frames_has_no_share_of_them() {
    let without = |offered: fn(&mut Figures)| {
        let mut a = runs(steady(15e6), RUNS, 1, 0.0);
        offered(&mut a[3].slices[CRITICAL].steady);
        let results = compared(&a, &runs(steady(10e6), RUNS, 1, 0.0));
        [Quantity::ReceivedShare, Quantity::LossRatio]
            .map(|indicator| figure(&results, indicator).numbers.runs.runs)
    };
    assert_eq!(without(|of| of.sent_frames = 0), [RUNS, RUNS - 1]);
    assert_eq!(
        without(|of| of.offered_bits_per_second = 0.0),
        [RUNS - 1, RUNS]
    );
}
