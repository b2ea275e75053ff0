//! Applications in verdicts, summaries and phases.

use crate::synthetic::applications::{Got, SHARE, bulk, flows, requests, run_of};
use crate::synthetic::{BEST_EFFORT, CRITICAL, Service, run, study};
use slicewise_stats::application::{ApplicationRecord, FlowFigures, RequestFigures, VideoFigures};
use slicewise_stats::observations::Observations;
use slicewise_stats::phase::PhaseRecord;
use slicewise_stats::quantity::Quantity;
use slicewise_stats::record::{CdfPoint, DelayFigures};
use slicewise_stats::summary::{SummaryBuilder, summarise};
use slicewise_stats::verdict::comparison::{Change, Results, compare};
use slicewise_stats::verdict::{self, Outcome, PolicyVerdict};

fn judged(reference: &Got, treatment: &Got, loss_ratio: f64) -> PolicyVerdict {
    let study = study(&[("p", None)], 2);
    let mut builder = SummaryBuilder::new(&study);
    for repetition in 0..4 {
        let records = [
            run_of("s0", repetition, reference.clone(), 0.0),
            run_of("s1", repetition, treatment.clone(), loss_ratio),
        ];
        for record in records {
            builder.add(&record).unwrap();
        }
    }
    verdict::judge(&study, builder.observations())
        .policies
        .remove(0)
}

fn indicators(verdict: &PolicyVerdict) -> Vec<Quantity> {
    let tests = verdict.isolation.influence.tests.iter();
    tests.filter_map(|test| test.numbers.indicator).collect()
}

#[test]
fn less_goodput_than_in_the_reference_is_influence() {
    let got = |rate: f64| (rate, bulk("files", "critical", rate * 0.95));
    let verdict = judged(&got(10e6), &got(8e6), 0.0);
    assert_eq!(verdict.isolation.outcome, Outcome::Broken);
    insta::assert_snapshot!(verdict.isolation.deciding(), @"goodput within the share of critical within −1 % of the reference in 0 of 4 runs of s1 (95 %: in less than 91 %); mean 9.5 Mbit/s → 7.6 Mbit/s (−20 %), worst run −20 %");
    assert_eq!(
        judged(&got(10e6), &got(9.95e6), 0.0).isolation.outcome,
        Outcome::Holds
    );
}

#[test]
fn what_a_slice_got_beyond_its_share_in_the_reference_is_not_asked_for() {
    let got = |served: f64| (served, flows(served * 0.9, 17.5e6 / served));
    let verdict = judged(&got(2.0 * SHARE), &got(SHARE), 0.0);
    assert_eq!(verdict.isolation.outcome, Outcome::Holds);
    assert_eq!(indicators(&verdict), [Quantity::GoodputWithinShare]);
    let not_judged = &verdict.isolation.not_judged[0];
    insta::assert_snapshot!(not_judged.why, @"the reference leaves it more than its share: times are not compared, only its goodput within the share");
    assert!(!not_judged.missing);
    let below = judged(&got(2.0 * SHARE), &got(0.9 * SHARE), 0.0);
    assert_eq!(below.isolation.outcome, Outcome::Broken);
}

#[test]
fn a_slice_without_its_application_in_a_scenario_sends_nothing_there() {
    let study = study(&[("p", None)], 2);
    let mut builder = SummaryBuilder::new(&study);
    for repetition in 0..4 {
        let got = (10e6, bulk("files", "critical", 9e6));
        builder.add(&run_of("s0", repetition, got, 0.0)).unwrap();
        let mut silent = run("p", "s1", repetition, [Service::untroubled(0.0); 2], 0.0);
        silent.slices[CRITICAL].steady.sent_frames = 0;
        builder.add(&silent).unwrap();
    }
    let verdict = verdict::judge(&study, builder.observations())
        .policies
        .remove(0);
    assert_eq!(
        verdict.isolation.not_judged[0].why,
        "it sends nothing there"
    );
}

#[test]
fn losses_of_a_transport_that_answers_to_them_are_no_influence() {
    let got = (10e6, bulk("files", "critical", 9e6));
    let verdict = judged(&got, &got, 0.05);
    assert_eq!(verdict.isolation.outcome, Outcome::Holds);
    assert_eq!(indicators(&verdict), [Quantity::GoodputWithinShare]);
}

#[test]
fn longer_request_latency_and_completion_time_are_influence() {
    let requests = |latency: f64| (10e6, requests(9e6, latency));
    let verdict = judged(&requests(10.0), &requests(20.0), 0.0);
    assert_eq!(verdict.isolation.outcome, Outcome::Broken);
    insta::assert_snapshot!(verdict.isolation.deciding(), @"mean request latency of critical within +25 % of the reference in 0 of 4 runs of s1 (95 %: in less than 91 %); mean 10 ms → 20 ms (+100 %), worst run +100 %");
    let flows = |completion: f64| (10e6, flows(9e6, completion));
    let verdict = judged(&flows(10.0), &flows(20.0), 0.0);
    insta::assert_snapshot!(verdict.isolation.deciding(), @"mean completion time of critical within +25 % of the reference in 0 of 4 runs of s1 (95 %: in less than 91 %); mean 10 ms → 20 ms (+100 %), worst run +100 %");
    assert_eq!(
        judged(&flows(10.0), &flows(11.0), 0.0).isolation.outcome,
        Outcome::Holds
    );
}

/// A run in which critical leaves half of its share and best effort, a bulk transfer, gets `taken` of that.
fn reallocating(taken: f64, limit_bits_per_second: Option<u64>) -> Option<f64> {
    let study = study(&[("p", None)], 1);
    let best_effort = SHARE + taken * SHARE / 2.0;
    let services = [
        Service::untroubled(SHARE / 2.0),
        Service::untroubled(best_effort),
    ];
    let mut record = run("p", "s0", 0, services, 0.0);
    record.applications.push(ApplicationRecord {
        limit_bits_per_second,
        ..bulk("files", "best effort", best_effort)
    });
    let mut observations = Observations::default();
    observations.add(&study, &record).unwrap();
    observations.run(0, 0, 0).unwrap().opportunity.fraction()
}

#[test]
fn best_effort_that_sends_as_much_as_it_gets_wants_all_that_is_left() {
    for taken in [0.0, 0.4, 1.0] {
        let fraction = reallocating(taken, None).unwrap();
        assert!((fraction - taken).abs() < 0.01, "{fraction} of {taken}");
    }
}

#[test]
fn a_bulk_transfer_of_limited_rate_wants_what_it_sends() {
    assert_eq!(reallocating(0.0, Some(17_500_000)), None);
    let fraction = reallocating(0.5, Some(26_250_000)).unwrap();
    assert!((fraction - 1.0).abs() < 0.01, "{fraction}");
}

#[test]
fn a_bulk_transfer_wants_nothing_before_it_begins_and_after_it_ends() {
    let study = study(&[("p", None)], 1);
    let mut record = run("p", "s0", 0, [Service::untroubled(SHARE / 2.0); 2], 0.0);
    record
        .applications
        .push(bulk("files", "best effort", SHARE / 2.0));
    let bins = record.slices[BEST_EFFORT].series.sent_bytes.len();
    for bin in 0..bins / 2 {
        record.slices[BEST_EFFORT].series.sent_bytes[bin] = 0;
    }
    let mut observations = Observations::default();
    observations.add(&study, &record).unwrap();
    let windows = observations.run(0, 0, 0).unwrap().opportunity.windows;
    assert_eq!(windows, 10, "20 s in cycles of 2 s");
}

#[test]
fn two_results_are_compared_by_all_of_the_goodput() {
    let study = study(&[("p", None)], 1);
    let results = |served: f64| {
        let mut builder = SummaryBuilder::new(&study);
        for repetition in 0..4 {
            let got = (served, bulk("files", "critical", served));
            builder.add(&run_of("s0", repetition, got, 0.0)).unwrap();
        }
        builder.observations().clone()
    };
    let (a, b) = (results(30e6), results(20e6));
    let of = |observations| Results {
        study: &study,
        observations,
    };
    let comparison = compare(of(&a), of(&b));
    let figures = comparison.figures.iter();
    let of_critical = figures.filter(|figure| figure.numbers.slice == "critical");
    let outcomes: Vec<_> = of_critical
        .map(|f| (f.numbers.indicator, f.outcome))
        .collect();
    assert_eq!(outcomes, [(Some(Quantity::Goodput), Change::Worse)]);
}

#[test]
fn a_summary_has_every_source_and_slices_with_several() {
    let study = study(&[("p", None)], 1);
    let mut record = run("p", "s0", 0, [Service::untroubled(10e6); 2], 0.0);
    let mut second = bulk("more", "critical", 3e6);
    second.transport.rtt_samples = 300;
    second.transport.rtt_mean_ns = 1e6;
    record.applications = vec![
        bulk("files", "critical", 2e6),
        second,
        bulk("rest", "best effort", 1e6),
    ];
    let cells = summarise(&study, &[record]).unwrap().cells;
    let names: Vec<_> = cells[0]
        .applications
        .iter()
        .map(|of| (of.source.as_deref(), of.slice.as_str()))
        .collect();
    let expected = [
        (Some("files"), "critical"),
        (Some("more"), "critical"),
        (Some("rest"), "best effort"),
        (None, "critical"),
    ];
    assert_eq!(names, expected);
    let together = &cells[0].applications[3];
    let mean = |quantity| together.estimates.of(quantity).unwrap().mean;
    assert!((mean(Quantity::Goodput) - 5e6).abs() < 1.0);
    assert!((mean(Quantity::RttMean) - 2e6).abs() < 1.0, "by samples");
    assert!(together.estimates.of(Quantity::QualityMean).is_none());
}

#[test]
fn a_phase_has_its_figures_and_its_part_of_the_series() {
    let mut record = run("p", "s0", 0, [Service::untroubled(10e6); 2], 0.0);
    let bins = record.duration_ns / record.bin_ns;
    let mut whole = bulk("files", "critical", 2e6);
    whole.series.goodput_bytes = (0..bins).collect();
    record.applications.push(whole);
    let half_ns = record.duration_ns / 2;
    record.phases = vec![PhaseRecord {
        phase: "later".to_owned(),
        measured_from_ns: half_ns,
        ends_ns: record.duration_ns,
        applications: vec![bulk("files", "critical", 4e6)],
        aggregate: record.aggregate,
        ..PhaseRecord::default()
    }];
    let phases = record.by_phase();
    let source = &phases[0].applications[0];
    assert!((source.transport.goodput_bits_per_second - 4e6).abs() < 1.0);
    assert_eq!(
        source.series.goodput_bytes,
        (bins / 2..bins).collect::<Vec<_>>()
    );
    assert!(source.series.first_rtt_ns.is_empty());
}

#[test]
fn damaged_figures_and_series_are_refused() {
    let study = study(&[("p", None)], 1);
    let refused = |change: fn(&mut ApplicationRecord)| {
        let mut record = run_of("s0", 0, (10e6, requests(9e6, 1.0)), 0.0);
        change(&mut record.applications[0]);
        Observations::default().add(&study, &record).is_err()
    };
    assert!(!refused(|_| ()));
    assert!(refused(|of| of.transport.goodput_bits_per_second = f64::NAN));
    assert!(refused(|of| of
        .requests
        .as_mut()
        .unwrap()
        .latency
        .mean_ns = -1.0));
    assert!(refused(|of| of.series.goodput_bytes.push(1)));
}

#[test]
fn quantities_of_video_weight_segments_by_segments_and_time_by_clients() {
    let player = |video| ApplicationRecord {
        video: Some(video),
        ..bulk("player", "critical", 1e6)
    };
    let with = |segments, factor: f64| {
        player(VideoFigures {
            clients: 4 - segments / 10,
            segments,
            quality_mean: Some(factor),
            quality_least: Some(0.0),
            bit_rate_mean: Some(2.0 * factor),
            switches_per_minute: Some(3.0 * factor),
            start_up_mean_ns: Some(4.0 * factor),
            stalls: 0,
            stalled_ratio: Some(5.0 * factor),
        })
    };
    let nothing = player(VideoFigures::default());
    let stopped = player(VideoFigures {
        stalled_ratio: Some(1.0),
        ..VideoFigures::default()
    });
    assert_eq!(Quantity::StalledRatio.of(&stopped), Some(1.0));
    // Of 10 segments and 3 clients the factor is 1, of 30 segments and 1 client 2.
    let records = [&with(10, 1.0), &with(30, 2.0), &nothing];
    let together = ApplicationRecord::pooled(&records).unwrap();
    for (quantity, expected) in [
        (Quantity::QualityMean, 1.75),
        (Quantity::BitRateMean, 2.0 * 1.75),
        (Quantity::SwitchesPerMinute, 3.0 * 1.25),
        (Quantity::StartUpMean, 4.0 * 1.25),
        (Quantity::StalledRatio, 5.0 * 1.25),
    ] {
        let value = quantity.of(&together).unwrap();
        assert!((value - expected).abs() < 1e-9, "{quantity:?} {value}");
        assert_eq!(quantity.of(&nothing), None);
    }
}

#[test]
fn a_slice_whose_hosts_were_paused_is_held_back_and_reacts() {
    let study = study(&[("p", None)], 1);
    let of = |withheld| {
        let mut record = run("p", "s0", 0, [Service::untroubled(15e6); 2], 0.0);
        record.slices[CRITICAL].withheld_frames = withheld;
        let mut observations = Observations::default();
        observations.add(&study, &record).unwrap();
        let slice = &observations.run(0, 0, 0).unwrap().slices[CRITICAL];
        (slice.is_held_back, slice.reacts)
    };
    assert_eq!((of(0), of(1)), ((false, false), (true, true)));
}

#[test]
fn every_quantity_of_requests_and_flows_is_its_own_figure() {
    let with = |samples: u32, factor: u32| {
        let time = DelayFigures {
            samples: samples.into(),
            mean_ns: f64::from(factor),
            p50_ns: 2 * u64::from(factor),
            p99_ns: 3 * u64::from(factor),
            p999_ns: 4 * u64::from(factor),
            max_ns: 4 * u64::from(factor),
            ..DelayFigures::default()
        };
        let requests = RequestFigures {
            offered_per_second: 5.0 * f64::from(factor),
            achieved_per_second: 6.0 * f64::from(factor),
            latency: time,
            ..RequestFigures::default()
        };
        let flows = FlowFigures {
            completed: samples.into(),
            completion_time: time,
            ..FlowFigures::default()
        };
        let points = [(0.5, 2), (0.99, 3), (1.0, 4)];
        let times = points.map(|(share, ns)| CdfPoint(ns * u64::from(factor), share));
        let web = ApplicationRecord {
            times: times.to_vec(),
            requests: Some(requests),
            ..bulk("web", "critical", 1e6)
        };
        let files = ApplicationRecord {
            times: times.to_vec(),
            flows: Some(flows),
            ..bulk("files", "critical", 1e6)
        };
        [web, files]
    };
    let both = [with(100, 1), with(300, 2)].concat();
    let none = with(0, 1);
    let [both, none] = [&both[..], &none].map(|sources| {
        let sources: Vec<_> = sources.iter().collect();
        ApplicationRecord::pooled(&sources).unwrap().into_owned()
    });
    // Means count samples (1.75), percentiles are those of all, and rates are added.
    for (quantity, value, without_samples) in [
        (Quantity::RequestLatencyMean, 1.75, None),
        (Quantity::RequestLatencyP50, 4.0, None),
        (Quantity::RequestLatencyP90, 6.0, None),
        (Quantity::RequestLatencyP99, 6.0, None),
        (Quantity::RequestLatencyP999, 8.0, None),
        (Quantity::RequestsOffered, 15.0, Some(5.0)),
        (Quantity::RequestsAchieved, 18.0, Some(6.0)),
        (Quantity::CompletionTimeMean, 1.75, None),
        (Quantity::CompletionTimeP50, 4.0, None),
        (Quantity::CompletionTimeP99, 6.0, None),
    ] {
        assert_eq!(quantity.of(&both), Some(value), "{quantity:?}");
        assert_eq!(quantity.of(&none), without_samples, "{quantity:?}");
    }
}
