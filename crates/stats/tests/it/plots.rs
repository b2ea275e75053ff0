//! Values of declared figures.

use crate::synthetic::{Service, run, study};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::estimate::Estimate;
use slicewise_stats::plot::{Distributed, PlotDescription, PlotDistribution, PlotValue, PlotX};
use slicewise_stats::plotted::{self, PlotCell};
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::RunRecord;
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

#[test]
fn a_distribution_is_of_every_episode_of_all_runs() {
    let mut records = runs();
    records.truncate(2);
    // Episodes of 2 and 5 frames in one run, of 2 in the other.
    records[0].slices[0].series.lost_frames[3] = 2;
    records[0].slices[0].series.lost_frames[7] = 4;
    records[0].slices[0].series.lost_frames[8] = 1;
    records[1].slices[0].series.lost_frames[0] = 2;
    let of = |of| {
        let slice = "critical".to_owned();
        let x = PlotX::Distribution(PlotDistribution { of, slice });
        let all = cells(&plot(x, None), &records);
        let points = all[0].distribution.iter();
        points
            .map(|(value, share)| (value.mean, value.samples, *share))
            .collect::<Vec<_>>()
    };
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
