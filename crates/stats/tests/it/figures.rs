//! Summaries and published figures of known records.

use crate::synthetic::{CRITICAL, Service, run, study};
use slicewise_stats::description::{Basis, Cell, Expected, PublishedFigure, StudyDescription};
use slicewise_stats::observations::RecordError;
use slicewise_stats::published::{self, PublishedComparison, PublishedOutcome};
use slicewise_stats::quantity::{Metric, Quantity};
use slicewise_stats::record::{CdfPoint, RunRecord, Series};
use slicewise_stats::summary::{self, SummaryBuilder};

const RATE: f64 = 15.75e6;

/// Three repetitions of two policies under two scenarios; mean delays 200, and 400 µs in b/s1.
fn records() -> Vec<RunRecord> {
    let mut records = Vec::new();
    for policy in ["a", "b"] {
        for scenario in ["s0", "s1"] {
            for repetition in 0..3 {
                let mut critical = Service::untroubled(RATE);
                if (policy, scenario) == ("b", "s1") {
                    critical.delay_mean_ns *= 2.0;
                    critical.loss_ratio = 0.25;
                }
                let services = [critical, Service::untroubled(RATE)];
                records.push(run(policy, scenario, repetition, services, 0.01));
            }
        }
    }
    records
}

fn two_policies() -> StudyDescription {
    study(&[("a", None), ("b", None)], 2)
}

pub(crate) fn figure(metric: impl Into<Metric>, expected: Expected) -> PublishedFigure {
    PublishedFigure {
        claim: String::new(),
        source: String::new(),
        metric: metric.into(),
        policies: Vec::new(),
        scenarios: Vec::new(),
        phase: None,
        slice: Some("critical".into()),
        queue: None,
        relative_to: None,
        basis: Basis::Predicted,
        expected,
        tolerance_from: String::new(),
        explanation: String::new(),
    }
}

fn whole(quantity: Quantity) -> Metric {
    Metric {
        quantity,
        whole: true,
    }
}

fn compare_in(records: &[RunRecord], figure: PublishedFigure) -> PublishedComparison {
    let mut study = two_policies();
    study.published.push(figure);
    let mut builder = SummaryBuilder::new(&study);
    records
        .iter()
        .for_each(|record| builder.add(record).unwrap());
    published::compare(&study, builder.observations()).remove(0)
}

fn compare(figure: PublishedFigure) -> PublishedComparison {
    compare_in(&records(), figure)
}

#[test]
fn a_summary_holds_every_cell_with_means_and_intervals() {
    let study = two_policies();
    let mut records = records();
    records.retain(|record| (&*record.key.policy, &*record.key.scenario) != ("a", "s1"));
    let summary = summary::summarise(&study, &records).unwrap();
    let cells: Vec<_> = summary
        .cells
        .iter()
        .map(|c| (&*c.policy, &*c.scenario))
        .collect();
    assert_eq!(cells, [("a", "s0"), ("b", "s0"), ("b", "s1")]);
    let steady = &summary.cells[2].slices[CRITICAL].steady;
    let delay = steady.of(Quantity::DelayMean).unwrap();
    // Deviations of repetitions 0, 1, 2: −1, −1/3 and 1/3 of 1 %.
    assert!((delay.mean - 400_000.0 * (1.0 - 0.01 / 3.0)).abs() < 1.0);
    let deviation = 400_000.0 * 0.01 * 2.0 / 3.0;
    let half_width = 4.302_652_73 * deviation / 3f64.sqrt();
    assert!((delay.half_width().unwrap() - half_width).abs() < 1.0);
    assert_eq!(
        steady.of(Quantity::LossRatio).unwrap().half_width(),
        Some(0.0)
    );
    assert_eq!(summary.cells[2].transient.found, 0);
}

#[test]
fn a_figure_is_compared_in_every_cell_and_the_worst_is_reported() {
    let about = Expected::About {
        value: 200_000.0,
        tolerance: 0.1,
    };
    let compared = compare(figure(Quantity::DelayMean, about));
    assert_eq!(compared.outcome, PublishedOutcome::Differs);
    assert_eq!((compared.cells, compared.cells_agreeing), (4, 3));
    let ours = compared.ours.unwrap();
    assert_eq!(
        (&*ours.policy, &*ours.scenario, ours.repetitions),
        ("b", "s1", 3)
    );
    assert!((compared.difference.unwrap() - (ours.value - 200_000.0)).abs() < 1e-9);
    assert!((compared.difference_relative.unwrap() - 0.993).abs() < 1e-3);

    let mut only_a = figure(Quantity::DelayMean, about);
    only_a.policies = vec!["a".into()];
    assert_eq!(compare(only_a).outcome, PublishedOutcome::Agrees);
}

#[test]
fn a_relative_figure_has_fiellers_interval_and_leaves_out_the_cell_itself() {
    let mut relative = figure(
        Quantity::DelayMean,
        Expected::About {
            value: 1.0,
            tolerance: 0.1,
        },
    );
    relative.policies = vec!["b".into()];
    relative.relative_to = Some(Cell {
        policy: None,
        scenario: Some("s0".into()),
    });
    let compared = compare(relative);
    assert_eq!(
        (compared.outcome, compared.cells),
        (PublishedOutcome::Agrees, 1)
    );
    let ours = compared.ours.unwrap();
    assert!((ours.value - 1.0).abs() < 1e-9);
    let (low, high) = (ours.interval.low.unwrap(), ours.interval.high.unwrap());
    assert!(low < 1.0 && 1.0 < high && high - low < 0.1, "{low} {high}");
}

#[test]
fn zero_is_about_zero_within_an_absolute_tolerance() {
    let mut loss = figure(
        Quantity::LossRatio,
        Expected::About {
            value: 0.0,
            tolerance: 0.001,
        },
    );
    loss.policies = vec!["a".into()];
    let agrees = compare(loss.clone());
    assert_eq!(agrees.outcome, PublishedOutcome::Agrees);
    assert_eq!(agrees.difference_relative, None);
    loss.policies.clear();
    assert_eq!(compare(loss).outcome, PublishedOutcome::Differs);
}

#[test]
fn the_smallest_delay_is_that_of_all_cells_together() {
    let smallest = figure(Quantity::DelayMin, Expected::AtMost { value: 66_000.0 });
    let compared = compare(smallest);
    // A third of 200 µs, less 1 % in repetition 0.
    assert_eq!(
        (compared.outcome, compared.cells),
        (PublishedOutcome::Agrees, 1)
    );
    assert_eq!(compared.ours.unwrap().value, 66_000.0);
    assert_eq!(compared.difference, Some(0.0));
}

#[test]
fn the_distance_of_inter_arrival_times_is_that_of_the_farthest_repetitions() {
    let mut records = records();
    for record in &mut records {
        let repetition = f64::from(record.key.repetition);
        record.slices[CRITICAL].iat_sent.cdf = vec![
            CdfPoint(12_000, 0.3 + 0.02 * repetition),
            CdfPoint(1_000_000, 1.0),
        ];
    }
    let between = Expected::Between {
        low: 0.0125,
        high: 0.0698,
    };
    let compared = compare_in(&records, figure(Quantity::IatKolmogorovSmirnov, between));
    assert_eq!(
        (compared.outcome, compared.cells),
        (PublishedOutcome::Agrees, 4)
    );
    let ours = compared.ours.unwrap();
    assert!((ours.value - 0.04).abs() < 1e-12);
    assert!(
        (ours.p_value.unwrap() - 0.400_0).abs() < 1e-3,
        "{:?}",
        ours.p_value
    );
}

#[test]
fn inter_arrival_times_too_few_for_a_figure_are_left_out() {
    let cells = |metric, samples| {
        let mut records = records();
        let of_a = records.iter_mut().filter(|r| r.key.policy == "a");
        of_a.for_each(|record| record.slices[CRITICAL].iat_sent.samples = samples);
        let compared = compare_in(&records, figure(metric, Expected::AtLeast { value: 0.0 }));
        compared.cells
    };
    assert_eq!(cells(Quantity::IatSamples, 0), 4);
    assert_eq!(
        (cells(Quantity::IatMean, 0), cells(Quantity::IatMean, 1)),
        (2, 4)
    );
    let of_variance = [0, 1, 2].map(|samples| cells(Quantity::IatVariance, samples));
    assert_eq!(of_variance, [2, 2, 4]);
}

#[test]
fn a_figure_of_a_cell_that_was_not_run_is_not_measured() {
    let mut of_nobody = figure(Quantity::DelayMean, Expected::AtLeast { value: 0.0 });
    of_nobody.policies = vec!["c".into()];
    let compared = compare(of_nobody);
    assert_eq!(compared.outcome, PublishedOutcome::NotMeasured);
    assert_eq!((compared.ours, compared.difference), (None, None));
    // No run has a transient: there is no throughput before its end.
    let mut transient = figure(
        Quantity::TransientThroughput,
        Expected::AtLeast { value: 0.0 },
    );
    transient.slice = None;
    assert_eq!(compare(transient).outcome, PublishedOutcome::NotMeasured);
}

#[test]
fn rejects_foreign_and_damaged_records() {
    let study = two_policies();
    let record = || records().remove(0);
    let refused = |change: &dyn Fn(&mut RunRecord)| {
        let mut changed = record();
        change(&mut changed);
        summary::summarise(&study, &[changed])
            .unwrap_err()
            .to_string()
    };
    let messages = [
        refused(&|r| r.schema_version = 99),
        refused(&|r| r.key.inputs = "other".into()),
        refused(&|r| r.key.policy = "z".into()),
        refused(&|r| r.slices.swap(0, 1)),
        refused(&|r| r.slices[0].series.sent_bytes.truncate(7)),
        refused(&|r| r.slices[0].steady.delay.mean_ns = f64::NAN),
        refused(&|r| r.bin_ns = 0),
        refused(&|r| r.transient.end_ns = u64::MAX),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r"
    the record has schema version 99, this program reads version 5: run the study again
    its run had other inputs than the study describes
    record names the policy `z`, which the study does not have
    record names the slices `best effort, critical`, which the study does not have
    record of repetition 0 of policy `a`, scenario `s0` is damaged: a series does not have one value per interval of the run
    record of repetition 0 of policy `a`, scenario `s0` is damaged: a figure is negative or not a number
    record of repetition 0 of policy `a`, scenario `s0` is damaged: the run or its intervals have no length
    record of repetition 0 of policy `a`, scenario `s0` is damaged: the transient ends after the run
    ");
    let twice = summary::summarise(&study, &[record(), record()]).unwrap_err();
    assert!(matches!(
        twice,
        RecordError::Duplicate { repetition: 0, .. }
    ));
}

#[test]
fn every_run_is_kept_once() {
    let study = two_policies();
    let mut builder = SummaryBuilder::new(&study);
    assert!(builder.observations().is_empty());
    let records = records();
    (records.iter()).for_each(|record| builder.add(record).unwrap());
    assert_eq!((builder.runs(), builder.observations().len()), (12, 12));
    assert!(!builder.observations().is_empty());
}

#[test]
fn figures_of_whole_runs_are_of_whole_runs() {
    let mut records = records();
    for record in &mut records {
        for (slice, rate) in record.slices.iter_mut().zip([10e6, 30e6]) {
            slice.whole.throughput_bits_per_second = rate;
            slice.whole.loss_ratio = 0.25;
            slice.whole.delay.p50_ns = 7_000;
        }
    }
    let value = |metric: Metric, slice: Option<&str>| {
        let whole = PublishedFigure {
            slice: slice.map(str::to_owned),
            ..figure(metric, Expected::AtLeast { value: 0.0 })
        };
        compare_in(&records, whole).ours.unwrap().value
    };
    let of_critical = |metric| value(metric, Some("critical"));
    assert!((of_critical(whole(Quantity::Throughput)) - 10e6).abs() < 1e-6);
    assert!((of_critical(whole(Quantity::LossRatio)) - 0.25).abs() < 1e-12);
    assert!((of_critical(whole(Quantity::DelayP50)) - 7_000.0).abs() < 1e-9);
    assert!((value(Quantity::AggregateThroughputWhole.into(), None) - 40e6).abs() < 1e-6);
}

#[test]
fn a_quantity_that_no_run_has_is_left_out_of_the_summary() {
    let study = two_policies();
    let of = |samples: u64| {
        let mut records = records();
        for record in &mut records {
            let steady = &mut record.slices[CRITICAL].steady;
            steady.sent_frames = samples;
            steady.delay.samples = samples;
            steady.variation.ipdv_samples = samples;
        }
        let summary = summary::summarise(&study, &records).unwrap();
        summary.cells[0].slices[CRITICAL].steady.clone()
    };
    let has = |samples| {
        let steady = of(samples);
        [
            steady.of(Quantity::LossRatio).is_some(),
            steady.of(Quantity::DelayMean).is_some(),
            steady.of(Quantity::PdvMax).is_some(),
            steady.of(Quantity::IpdvMean).is_some(),
        ]
    };
    assert_eq!((has(0), has(1)), ([false; 4], [true; 4]));
}

#[test]
fn the_smallest_delay_is_compared_with_that_of_another_cell() {
    let about = Expected::About {
        value: 1.0,
        tolerance: 1e-9,
    };
    let relative = PublishedFigure {
        scenarios: vec!["s1".into()],
        policies: vec!["b".into()],
        relative_to: Some(Cell {
            policy: None,
            scenario: Some("s0".into()),
        }),
        ..figure(Quantity::DelayMin, about)
    };
    assert_eq!(compare(relative).outcome, PublishedOutcome::Agrees);
}

#[test]
fn a_figure_of_frames_that_were_never_there_is_not_measured() {
    let mut records = records();
    for slice in records.iter_mut().flat_map(|record| &mut record.slices) {
        for figures in [&mut slice.steady, &mut slice.whole] {
            (figures.sent_frames, figures.delay.samples) = (0, 0);
        }
    }
    for metric in [
        Quantity::LossRatio.into(),
        Quantity::DelayMean.into(),
        whole(Quantity::DelayMean),
        Quantity::DelayMin.into(),
        Quantity::DelayP50.into(),
        Quantity::DelayP99.into(),
        Quantity::DelayMax.into(),
    ] {
        let any = figure(metric, Expected::AtLeast { value: 0.0 });
        let outcome = compare_in(&records, any).outcome;
        assert_eq!(outcome, PublishedOutcome::NotMeasured, "{metric:?}");
    }
}

#[test]
fn a_record_keeps_its_counts_in_json_and_leaves_zeros_out() {
    let mut record = records().remove(0);
    let json = serde_json::to_string(&record).unwrap();
    assert!(!json.contains("marked_frames") && !json.contains("withheld_frames"));
    let slice = &mut record.slices[CRITICAL];
    (slice.marked_frames, slice.withheld_frames) = (5, 7);
    let json = serde_json::to_string(&record).unwrap();
    let read: RunRecord = serde_json::from_str(&json).unwrap();
    assert_eq!(read, record);
}

#[test]
fn each_series_has_to_have_one_value_per_interval() {
    let study = two_policies();
    let changes: [fn(&mut Series); 5] = [
        |series| series.sent_bytes.truncate(7),
        |series| series.received_bytes.truncate(7),
        |series| series.served_bytes.truncate(7),
        |series| series.lost_bytes.truncate(7),
        |series| series.late_frames.push(1),
    ];
    for change in changes {
        let mut record = records().remove(0);
        change(&mut record.slices[CRITICAL].series);
        let refused = summary::summarise(&study, &[record]).unwrap_err();
        assert!(matches!(refused, RecordError::Damaged { .. }), "{refused}");
    }
}

#[test]
fn of_cells_that_are_equally_far_off_the_first_is_reported() {
    let compared = compare(PublishedFigure {
        policies: vec!["a".into()],
        ..figure(Quantity::LossRatio, Expected::AtLeast { value: 0.1 })
    });
    let ours = compared.ours.unwrap();
    assert_eq!(
        (compared.cells, &*ours.scenario, ours.value),
        (2, "s0", 0.0)
    );
}

#[test]
fn figures_of_a_transient_are_of_the_runs_that_have_one() {
    let with = |end_ns, steady_state_reached| {
        let mut records = records();
        for record in &mut records {
            record.transient.end_ns = end_ns;
            record.transient.steady_state_reached = steady_state_reached;
            record.transient.throughput_before_bits_per_second = 3e6;
            record.transient.throughput_after_bits_per_second = 4e6;
        }
        [
            Quantity::TransientEnd,
            Quantity::TransientThroughput,
            Quantity::AggregateThroughput,
        ]
        .map(|metric| {
            let of_all = PublishedFigure {
                slice: None,
                ..figure(metric, Expected::AtLeast { value: 0.0 })
            };
            compare_in(&records, of_all).ours.map(|ours| ours.value)
        })
    };
    assert_eq!(with(1_000_000_000, true), [Some(1e9), Some(3e6), Some(4e6)]);
    assert_eq!(with(0, true), [Some(0.0), None, Some(4e6)]);
    assert_eq!(with(1_000_000_000, false), [None, Some(3e6), Some(4e6)]);
}

#[test]
fn a_run_in_which_nothing_arrived_has_no_part_in_figures_of_delay() {
    let study = two_policies();
    let mut records = records();
    for record in records.iter_mut().filter(|r| r.key.repetition == 0) {
        let figures = &mut record.slices[CRITICAL];
        (figures.steady.delay, figures.steady.variation) = Default::default();
        figures.whole.delay = Default::default();
    }
    let of_variation = records.iter_mut().filter(|r| r.key.repetition > 0);
    of_variation.for_each(|record| {
        let variation = &mut record.slices[CRITICAL].steady.variation;
        (variation.ipdv_samples, variation.ipdv_mean_ns) = (10, 5_000.0);
    });
    let mut builder = SummaryBuilder::new(&study);
    (records.iter()).for_each(|record| builder.add(record).unwrap());
    // A third of 200 µs, as in the runs in which something arrived.
    let smallest = builder.observations().smallest_delay_ns(0, CRITICAL);
    assert!((66_000..67_000).contains(&smallest), "{smallest}");
    let summary = summary::summarise(&study, &records).unwrap();
    let steady = &summary.cells[0].slices[CRITICAL].steady;
    // 200 µs, of which the other repetitions differ by -0.33 % and +0.33 %.
    let mean = steady.of(Quantity::DelayMean).unwrap().mean;
    assert!((mean - 200_000.0).abs() < 1.0, "{mean}");
    assert_eq!(steady.of(Quantity::IpdvMean).unwrap().mean, 5_000.0);
}
