//! Values of declared figures.

use crate::synthetic::{Service, run, study};
use slicewise_stats::application::{ApplicationRecord, RequestFigures};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::plot::{Distributed, PlotDescription, PlotDistribution, PlotValue, PlotX};
use slicewise_stats::plotted::{self, PlotCell};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::{CdfPoint, DelayFigures, IatFigures, RunRecord};
use slicewise_stats::summary::SummaryBuilder;

fn value(quantity: Quantity) -> PlotValue {
    PlotValue {
        metric: quantity.into(),
        slice: Some("critical".to_owned()),
        queue: None,
    }
}

fn plot(x: PlotX, y: Option<Quantity>) -> PlotDescription {
    PlotDescription {
        name: "one".to_owned(),
        title: String::new(),
        groups: Vec::new(),
        policies: Vec::new(),
        scenarios: Vec::new(),
        x,
        y: y.map(value),
        fits: Vec::new(),
    }
}

/// Three repetitions of policies a and b under two scenarios; delays deviate by −1, −1/3 and 1/3 of 1 %.
fn runs() -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (policy, delay_mean_ns) in [("a", 100_000.0), ("b", 300_000.0)] {
        for scenario in ["s0", "s1"] {
            for repetition in 0..3 {
                let service = Service {
                    delay_mean_ns,
                    ..Service::untroubled(15.75e6)
                };
                let services = [service, Service::untroubled(15.75e6)];
                records.push(run(policy, scenario, repetition, services, 0.01));
            }
        }
    }
    records
}

fn cells(plot: &PlotDescription, records: &[RunRecord]) -> Vec<PlotCell> {
    let study = StudyDescription {
        plots: vec![plot.clone()],
        ..study(&[("a", None), ("b", None)], 2)
    };
    let mut builder = SummaryBuilder::new(&study);
    (records.iter()).for_each(|record| builder.add(record).unwrap());
    plotted::cells(plot, &study, builder.observations())
}

#[test]
fn a_cell_has_the_mean_over_its_runs_and_the_interval_of_student() {
    let x = PlotX::Value(value(Quantity::Throughput));
    let all = cells(&plot(x, Some(Quantity::DelayMean)), &runs());
    let places: Vec<_> = all
        .iter()
        .map(|cell| (cell.policy, cell.scenario))
        .collect();
    assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    for cell in &all {
        let delays = [-1.0, -1.0 / 3.0, 1.0 / 3.0].map(|part| {
            let delay = if cell.policy == 0 {
                100_000.0
            } else {
                300_000.0
            };
            delay * (1.0 + 0.01 * part)
        });
        let expected = Estimate::of(&delays, 0.95).unwrap();
        let found = cell.y.unwrap();
        assert!((found.mean - expected.mean).abs() < 1.0, "{found:?}");
        let width = |of: &Estimate| of.half_width().unwrap();
        assert!((width(&found) - width(&expected)).abs() < 1.0, "{found:?}");
        assert_eq!((cell.runs, cell.x.unwrap().samples), (3, 3));
    }
}

#[test]
fn only_named_policies_and_scenarios_are_drawn_and_what_is_absent_has_no_value() {
    let figure = PlotDescription {
        policies: vec!["b".to_owned()],
        scenarios: vec!["s1".to_owned(), "elsewhere".to_owned()],
        ..plot(PlotX::Scenario, Some(Quantity::LossEpisodeLength))
    };
    let [cell] = &cells(&figure, &runs())[..] else {
        panic!("one cell is drawn");
    };
    assert_eq!((cell.policy, cell.scenario, cell.runs), (1, 1, 3));
    assert_eq!((cell.x, cell.y), (None, None));
}

fn distribution(of: Distributed, every_ns: Option<u64>) -> PlotDescription {
    let slice = "critical".to_owned();
    let of = PlotDistribution {
        of,
        slice,
        every_ns,
    };
    plot(PlotX::Distribution(of), None)
}

/// Value, samples and share of each point of the first cell.
fn points(plot: &PlotDescription, records: &[RunRecord]) -> Vec<(f64, u32, f64)> {
    let all = cells(plot, records);
    let points = all[0].distribution.iter();
    points
        .map(|(value, share)| (value.mean, value.samples, *share))
        .collect()
}

#[test]
fn a_distribution_is_of_every_episode_of_all_runs() {
    let mut records = runs();
    records.truncate(2);
    // Episodes of 2 and 5 frames in one run, of 2 in the other.
    records[0].slices[0].series.lost_frames[3] = 2;
    records[0].slices[0].series.lost_frames[7] = 4;
    records[0].slices[0].series.lost_frames[8] = 1;
    records[1].slices[0].series.lost_frames[0] = 2;
    let of = |of| points(&distribution(of, None), &records);
    assert_eq!(
        of(Distributed::LossEpisodeFrames),
        [(2.0, 2, 2.0 / 3.0), (5.0, 1, 1.0)]
    );
    assert_eq!(
        of(Distributed::LossEpisodeLength),
        [(50e6, 2, 2.0 / 3.0), (100e6, 1, 1.0)]
    );
    let delays = of(Distributed::Delay);
    assert_eq!(delays.first().map(|(_, _, share)| *share), Some(0.5));
    assert!(
        delays.is_sorted_by(|a, b| a.0 <= b.0 && a.2 < b.2),
        "{delays:?}"
    );
}

#[test]
fn inter_arrival_times_are_drawn_as_sent_and_as_received_with_as_many_samples_as_they_have() {
    let mut records = runs();
    records.truncate(2);
    records[0].slices[0].iat_received = Some(IatFigures {
        samples: 10,
        cdf: vec![CdfPoint(5_000, 0.7), CdfPoint(9_000, 1.0)],
        ..IatFigures::default()
    });
    let all = cells(&distribution(Distributed::Iat, None), &records);
    let drawn = |cell: &PlotCell| {
        let points = cell.distribution.iter();
        let points = points.map(|(value, share)| (value.mean, value.samples, *share));
        (cell.point, points.collect::<Vec<_>>())
    };
    // The other record is of a run that did not measure them as received.
    let expected = [
        (plotted::SENT, vec![(12_000.0, 600, 0.3), (1e6, 1400, 1.0)]),
        ("as received", vec![(5_000.0, 7, 0.7), (9_000.0, 3, 1.0)]),
    ];
    assert_eq!(all.iter().map(drawn).collect::<Vec<_>>(), expected);
}

#[test]
fn every_whole_interval_has_its_lost_frames_and_one_without_loss_has_none() {
    let mut records = runs();
    records.truncate(1);
    let lost = &mut records[0].slices[0].series.lost_frames;
    // Of 40 s: two episodes in the first 15 s, one in the next, and one in the last 10 s, which are no whole interval.
    for (bin, frames) in [(3, 2), (299, 4), (300, 1), (700, 9)] {
        lost[bin] = frames;
    }
    let figure = distribution(Distributed::LostFrames, Some(15_000_000_000));
    assert_eq!(points(&figure, &records), [(1.0, 1, 0.5), (6.0, 1, 1.0)]);
    let figure = distribution(Distributed::LostFrames, Some(5_000_000_000));
    let all = [
        (0.0, 4, 0.5),
        (1.0, 1, 0.625),
        (2.0, 1, 0.75),
        (4.0, 1, 0.875),
        (9.0, 1, 1.0),
    ];
    assert_eq!(points(&figure, &records), all);
}

#[test]
fn shares_of_percentiles_are_of_what_has_no_value_too() {
    let mut records = runs();
    records.truncate(2);
    for (record, loss_ratio) in records.iter_mut().zip([0.1, 0.3]) {
        record.slices[0].steady.loss_ratio = loss_ratio;
        record.applications = vec![web(900, 100)];
    }
    let shares = |of| {
        let points = points(&distribution(of, None), &records);
        let shares = points
            .into_iter()
            .map(|(_, _, share)| (share * 1e4).round());
        shares.collect::<Vec<_>>()
    };
    // Frames: 20 % are lost on average; requests: 10 % are not answered.
    assert_eq!(shares(Distributed::Pdv), [4000.0, 7600.0, 7920.0, 7992.0]);
    assert_eq!(
        shares(Distributed::RequestLatency),
        [4500.0, 8100.0, 8910.0]
    );
    let cell = &cells(&distribution(Distributed::Delay, None), &records)[0];
    assert!((cell.without_value - 0.2).abs() < 1e-9);
}

#[test]
fn a_percentile_that_no_value_exceeds_is_not_drawn() {
    let drawn = |samples| {
        let mut records = runs();
        records.truncate(2);
        records[1].applications = vec![web(100_000, 0)];
        records[0].applications = vec![web(samples, 0)];
        points(&distribution(Distributed::RequestLatency, None), &records).len()
    };
    let counts = [1, 2, 9, 10, 99, 100, 999, 1000].map(drawn);
    assert_eq!(counts, [0, 1, 1, 2, 2, 3, 3, 4]);
}

fn web(answered: u64, unanswered: u64) -> ApplicationRecord {
    let latency = DelayFigures {
        samples: answered,
        ..DelayFigures::default()
    };
    ApplicationRecord {
        slice: "critical".to_owned(),
        requests: Some(RequestFigures {
            latency,
            unanswered,
            ..RequestFigures::default()
        }),
        ..ApplicationRecord::default()
    }
}
