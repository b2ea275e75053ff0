//! Simulated runs compared with measured ones.

use crate::synthetic::{CRITICAL, Service, run, study};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::observations::Observations;
use slicewise_stats::prediction::{
    OfferedTraffic, PREDICTED, PredictedFigure, PredictionOutcome, compare_with_prediction,
};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::RunRecord;
use slicewise_stats::tail::DelayFrom;

fn two_by_two() -> StudyDescription {
    study(&[("a", None), ("b", None)], 2)
}

/// Runs of each cell, each cell with a service of its own.
fn records(repetitions: u32) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (policy, place) in [("a", 0.0), ("b", 1.0)] {
        for (scenario, other) in [("s0", 0.0), ("s1", 2.0)] {
            let mut critical = Service::untroubled(10e6 + (place + other) * 1e6);
            critical.delay_mean_ns += (place + other) * 1e6;
            critical.loss_ratio = (place + other) / 10.0;
            let services = [critical, Service::untroubled(5e6)];
            records.extend((0..repetitions).map(|r| run(policy, scenario, r, services, 0.0)));
        }
    }
    records
}

fn observed(study: &StudyDescription, records: &[RunRecord]) -> Observations {
    let mut observations = Observations::default();
    for record in records {
        observations.add(study, record).unwrap();
    }
    observations
}

fn compared(
    traffic: OfferedTraffic,
    measured: (&StudyDescription, &[RunRecord]),
    predicted: (&StudyDescription, &[RunRecord]),
) -> Vec<PredictedFigure> {
    compare_with_prediction(
        traffic,
        (measured.0, &observed(measured.0, measured.1)),
        (predicted.0, &observed(predicted.0, predicted.1)),
    )
}

#[test]
fn cells_and_slices_are_compared_by_name_wherever_they_are_in_their_study() {
    let mut other_order = two_by_two();
    other_order.policies.reverse();
    other_order.scenarios.reverse();
    other_order.slices.reverse();
    let measured = records(2);
    let mut predicted = measured.clone();
    for record in &mut predicted {
        record.slices.reverse();
    }
    let figures = compared(
        OfferedTraffic::AsStudied,
        (&two_by_two(), &measured),
        (&other_order, &predicted),
    );
    let places: Vec<_> = (figures.iter())
        .map(|f| (&*f.policy, &*f.scenario, &*f.slice, f.quantity))
        .collect();
    let mut expected = Vec::new();
    for policy in ["a", "b"] {
        for scenario in ["s0", "s1"] {
            for slice in ["critical", "best effort"] {
                expected.extend(PREDICTED.map(|q| (policy, scenario, slice, q)));
            }
        }
    }
    assert_eq!(places, expected);
    for figure in &figures {
        assert_eq!(figure.difference, Some(0.0), "{figure:?}");
        assert_eq!(figure.outcome, PredictionOutcome::Met);
        assert_eq!(figure.traffic, OfferedTraffic::AsStudied);
    }
    // Critical in b/s1.
    let means: Vec<f64> = (figures[18..21].iter())
        .map(|f| f.measured.unwrap().mean)
        .collect();
    assert_eq!(means, [13e6, 0.3, 3_200_000.0]);
}

#[test]
fn what_only_one_side_has_is_shown_without_a_difference() {
    let mut other = two_by_two();
    other.policies[1].name = "c".into();
    let mut measured = records(2);
    measured.retain(|record| record.key.scenario == "s0");
    let predicted: Vec<_> = (measured.iter())
        .filter(|record| record.key.policy == "a")
        .cloned()
        .collect();
    let figures = compared(
        OfferedTraffic::AsStudied,
        (&two_by_two(), &measured),
        (&other, &predicted),
    );
    assert_eq!(figures.len(), 2 * 2 * 3);
    for figure in &figures {
        assert_eq!(figure.scenario, "s0", "nothing was measured in s1");
        let is_predicted = figure.policy == "a";
        assert!(figure.measured.is_some());
        assert_eq!(figure.predicted.is_some(), is_predicted, "{figure:?}");
        assert_eq!(figure.outcome.is_met(), is_predicted);
    }
}

#[test]
fn a_slice_that_sends_nothing_has_a_rate_only() {
    let mut silent = records(2);
    for record in &mut silent {
        let idle = run("", "", 0, [Service::untroubled(0.0); 2], 0.0);
        record.slices[CRITICAL] = idle.slices[CRITICAL].clone();
    }
    let study = two_by_two();
    let figures = compared(
        OfferedTraffic::AsStudied,
        (&study, &silent),
        (&study, &silent),
    );
    let of_critical = figures.iter().filter(|f| f.slice == "critical");
    assert!(
        of_critical
            .clone()
            .all(|f| f.quantity == Quantity::Throughput)
    );
    assert_eq!(of_critical.count(), 4);
}

#[test]
fn runs_are_compared_with_their_replays_and_else_all_of_them() {
    let study = two_by_two();
    let (measured, predicted) = (records(3), records(2));
    let samples = |traffic| {
        let figures = compared(traffic, (&study, &measured), (&study, &predicted));
        let estimates = (figures[0].measured.unwrap(), figures[0].predicted.unwrap());
        (estimates.0.samples, estimates.1.samples)
    };
    assert_eq!(samples(OfferedTraffic::AsStudied), (3, 2));
    assert_eq!(samples(OfferedTraffic::AsSent), (2, 2));
}

/// A run whose transient ends at the 10th of 40 s, with medians from there on and from other moments.
fn with_transient(mut record: RunRecord, end_s: u64, median_ns: u64) -> RunRecord {
    const SECOND: u64 = 1_000_000_000;
    record.transient.end_ns = end_s * SECOND;
    for slice in &mut record.slices {
        slice.steady.delay.p50_ns = median_ns;
        slice.delay_from = (0..40)
            .map(|second| DelayFrom {
                from_ns: second * SECOND,
                // The first 10 s are slower in every run.
                p50_ns: Some(if second < 10 { 9_000_000 } else { 2_000_000 }),
            })
            .collect();
        let bins = slice.series.received_bytes.len();
        for bin in 0..bins / 4 {
            slice.series.received_bytes[bin] *= 2;
        }
        let is_before = |bin| u32::from(bin < bins / 4);
        slice.series.sent_frames = vec![10; bins];
        slice.series.lost_frames = (0..bins).map(|bin| 5 * is_before(bin)).collect();
    }
    record
}

#[test]
fn both_sides_are_compared_from_the_later_end_of_their_transients() {
    let study = two_by_two();
    let runs = |end_s, median_ns| -> Vec<RunRecord> {
        (records(3).into_iter())
            .map(|record| with_transient(record, end_s, median_ns))
            .collect()
    };
    // One found a transient, the other none; what came after it is the same.
    let (with, without) = (runs(10, 2_000_000), runs(0, 9_000_000));
    for traffic in OfferedTraffic::ALL {
        for (measured, predicted) in [(&with, &without), (&without, &with)] {
            let figures = compared(traffic, (&study, measured), (&study, predicted));
            for figure in &figures {
                assert_eq!(figure.from_ns, Some(10_000_000_000));
                assert_eq!(figure.difference, Some(0.0), "{figure:?}");
                assert_eq!(figure.outcome, PredictionOutcome::Met);
            }
            assert_eq!(figures[2].measured.unwrap().mean, 2_000_000.0);
            assert_eq!(figures[1].measured.unwrap().mean, 0.0);
        }
        // Where none differs, each has its own steady state, as elsewhere.
        let same = compared(traffic, (&study, &without), (&study, &without));
        assert_eq!(same[2].measured.unwrap().mean, 9_000_000.0);
        assert_eq!(same[0].from_ns, None);
        // A folder of an earlier version has no medians: each after its own transient.
        let mut earlier = without.clone();
        let slices = earlier.iter_mut().flat_map(|run| &mut run.slices);
        slices.for_each(|slice| slice.delay_from.clear());
        let mixed = compared(traffic, (&study, &with), (&study, &earlier));
        assert_eq!(mixed[2].predicted.unwrap().mean, 9_000_000.0);
    }
}
