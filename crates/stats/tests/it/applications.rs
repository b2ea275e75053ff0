//! Applications in verdicts, summaries and phases.

use crate::synthetic::{BEST_EFFORT, CRITICAL, Service, run, study};
use slicewise_stats::application::{
    ApplicationRecord, ApplicationSeries, FlowFigures, RequestFigures, TransportFigures,
    VideoFigures,
};
use slicewise_stats::application_summary::{ApplicationQuantity, SliceApplications};
use slicewise_stats::description::Metric;
use slicewise_stats::objective::{DelayLimit, Objective, Percentile};
use slicewise_stats::observations::Observations;
use slicewise_stats::phase::PhaseRecord;
use slicewise_stats::record::{DelayFigures, RunRecord};
use slicewise_stats::summary::{SummaryBuilder, summarise};
use slicewise_stats::verdict::comparison::{Change, Results, compare};
use slicewise_stats::verdict::{self, Indicator, IsolationVerdict, Outcome, PolicyVerdict};

/// The share of each slice, bit/s.
const SHARE: f64 = 17.5e6;

fn bulk(source: &str, slice: &str, goodput: f64) -> ApplicationRecord {
    ApplicationRecord {
        source: source.to_owned(),
        slice: slice.to_owned(),
        transport: TransportFigures {
            span_ns: 40_000_000_000,
            connections: 1,
            goodput_bits_per_second: goodput,
            segments: 1_000,
            retransmitted_segments: 10,
            rtt_samples: 100,
            rtt_mean_ns: 5e6,
            ..TransportFigures::default()
        },
        requests: None,
        flows: None,
        video: None,
        failures: Vec::new(),
        series: ApplicationSeries::default(),
    }
}

fn times(mean_ms: f64) -> DelayFigures {
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a time of some milliseconds"
    )]
    let p99_ns = (mean_ms * 2e6) as u64;
    DelayFigures {
        samples: 100,
        mean_ns: mean_ms * 1e6,
        p99_ns,
        ..DelayFigures::default()
    }
}

/// Requests that are answered after that time.
fn requests(goodput: f64, latency_ms: f64) -> ApplicationRecord {
    let figures = RequestFigures {
        offered_per_second: 100.0,
        achieved_per_second: 100.0,
        latency: times(latency_ms),
        latency_of_due: times(latency_ms),
        ..RequestFigures::default()
    };
    ApplicationRecord {
        requests: Some(figures),
        ..bulk("web", "critical", goodput)
    }
}

/// Flows that are complete after that time.
fn flows(goodput: f64, completion_ms: f64) -> ApplicationRecord {
    let figures = FlowFigures {
        completed: 100,
        completion_time: times(completion_ms),
        time_of_begun: times(completion_ms),
        ..FlowFigures::default()
    };
    ApplicationRecord {
        flows: Some(figures),
        ..bulk("files", "critical", goodput)
    }
}

/// What the critical slice is served, and what its application got.
type Got = (f64, ApplicationRecord);

/// A run in which best effort sends a little, and the critical slice is served so much, loses that share, and
/// has an application.
fn run_of(
    scenario: &str,
    repetition: u32,
    (served, application): Got,
    loss_ratio: f64,
) -> RunRecord {
    let critical = Service {
        loss_ratio,
        ..Service::untroubled(served)
    };
    let services = [critical, Service::untroubled(1e6)];
    let mut record = run("p", scenario, repetition, services, 0.0);
    record.applications.push(application);
    record
}

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

fn indicators(verdict: &PolicyVerdict) -> Vec<Indicator> {
    let tests = verdict.isolation.influence.tests.iter();
    tests.filter_map(|test| test.numbers.indicator).collect()
}

#[test]
fn less_goodput_than_in_the_reference_is_influence() {
    let got = |rate: f64| (rate, bulk("files", "critical", rate * 0.95));
    let verdict = judged(&got(10e6), &got(8e6), 0.0);
    assert_eq!(verdict.isolation.outcome, Outcome::Broken);
    insta::assert_snapshot!(verdict.isolation.deciding(), @"goodput within the share of critical in s1 −20 % (in every repetition), margin 1 %; 4 of 4 repetitions beyond it (paired Fieller)");
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
    assert_eq!(indicators(&verdict), [Indicator::GoodputWithinShare]);
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
    assert_eq!(indicators(&verdict), [Indicator::GoodputWithinShare]);
}

#[test]
fn longer_request_latency_and_completion_time_are_influence() {
    let requests = |latency: f64| (10e6, requests(9e6, latency));
    let verdict = judged(&requests(10.0), &requests(20.0), 0.0);
    assert_eq!(verdict.isolation.outcome, Outcome::Broken);
    insta::assert_snapshot!(verdict.isolation.deciding(), @"mean request latency of critical in s1 +100 % (in every repetition), margin 25 %; 4 of 4 repetitions beyond it (paired Fieller)");
    let flows = |completion: f64| (10e6, flows(9e6, completion));
    let verdict = judged(&flows(10.0), &flows(20.0), 0.0);
    insta::assert_snapshot!(verdict.isolation.deciding(), @"mean completion time of critical in s1 +100 % (in every repetition), margin 25 %; 4 of 4 repetitions beyond it (paired Fieller)");
    assert_eq!(
        judged(&flows(10.0), &flows(11.0), 0.0).isolation.outcome,
        Outcome::Holds
    );
}

#[test]
fn an_objective_of_throughput_is_asked_of_what_wants_all_whatever_it_sends() {
    let mut study = study(&[("p", None)], 2);
    study.slices[CRITICAL].objective = Some(Objective {
        throughput_bits_per_second: Some(15_000_000),
        delay: None,
        ..Objective::default()
    });
    let judged = |served: f64, application: ApplicationRecord| {
        let mut builder = SummaryBuilder::new(&study);
        for scenario in ["s0", "s1"] {
            for repetition in 0..4 {
                let got = (served, application.clone());
                builder
                    .add(&run_of(scenario, repetition, got, 0.0))
                    .unwrap();
            }
        }
        verdict::judge(&study, builder.observations())
            .policies
            .remove(0)
            .isolation
    };
    let bulk = |rate: f64| judged(rate, bulk("files", "critical", rate));
    assert_eq!(bulk(10e6).outcome, Outcome::Broken);
    assert_eq!(bulk(16e6).outcome, Outcome::Holds);
    let beyond = bulk(25e6);
    assert_eq!(
        beyond.outcome,
        Outcome::Holds,
        "nothing is exceeded by what is left"
    );
    insta::assert_snapshot!(beyond.not_judged[0].why, @"its applications take more than its share there: of its objectives, only throughput and goodput are judged");
    let few = judged(10e6, requests(10e6, 1.0));
    assert_eq!(few.outcome, Outcome::Inconclusive, "it asks for no more");
}

/// Isolation of the critical slice with this objective, if its application gets this in every scenario.
fn with_objective(objective: Objective, (served, application): Got) -> IsolationVerdict {
    with_objective_by_run(objective, |_| (served, application.clone()))
}

/// The same, if what it gets differs from repetition to repetition.
fn with_objective_by_run(objective: Objective, got: impl Fn(u32) -> Got) -> IsolationVerdict {
    let mut study = study(&[("p", None)], 2);
    study.margins.rare_runs = 0.4;
    study.slices[CRITICAL].objective = Some(objective);
    let mut builder = SummaryBuilder::new(&study);
    for scenario in ["s0", "s1"] {
        for repetition in 0..6 {
            let record = run_of(scenario, repetition, got(repetition), 0.0);
            builder.add(&record).unwrap();
        }
    }
    verdict::judge(&study, builder.observations())
        .policies
        .remove(0)
        .isolation
}

#[test]
fn rates_of_transfers_without_an_end_that_vary_about_their_objective_are_not_decided() {
    let objectives = [
        Objective {
            goodput_bits_per_second: Some(9_000_000),
            ..Objective::default()
        },
        Objective {
            throughput_bits_per_second: Some(9_000_000),
            ..Objective::default()
        },
    ];
    for objective in objectives {
        let verdict = with_objective_by_run(objective, |repetition| {
            let rate = if repetition % 2 == 0 { 8.6e6 } else { 9.5e6 };
            (rate, bulk("files", "critical", rate))
        });
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{objective:?}");
    }
}

#[test]
fn an_objective_of_goodput_is_that_of_all_applications_and_judged_beyond_the_share_too() {
    let of = |goodput: f64, served: f64| {
        let objective = Objective {
            goodput_bits_per_second: Some(9_000_000),
            ..Objective::default()
        };
        with_objective(objective, (served, bulk("files", "critical", goodput)))
    };
    let met = of(9.5e6, 10e6);
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding(), @"least headroom goodput of critical in s0 9.5 Mbit/s (in every repetition), objective at least 9 Mbit/s, headroom 5.56 %");
    assert_eq!(
        of(8.9e6, 10e6).outcome,
        Outcome::Inconclusive,
        "no margin: it wants all, and two runs of five that were not seen could reach its share"
    );
    assert_eq!(of(3e6, 10e6).outcome, Outcome::Broken);
    assert_eq!(of(30e6, 2.0 * SHARE).outcome, Outcome::Holds);
    assert_eq!(of(3e6, 2.0 * SHARE).outcome, Outcome::Broken);
}

#[test]
fn requests_are_asked_for_no_more_goodput_than_they_ask_for() {
    let of = |limit: u64, achieved: f64| {
        let mut application = requests(9e6 * achieved / 100.0, 1.0);
        application.requests.as_mut().unwrap().achieved_per_second = achieved;
        let objective = Objective {
            goodput_bits_per_second: Some(limit),
            ..Objective::default()
        };
        with_objective(objective, (10e6, application))
    };
    // All of 100 a second are answered, which is 9 Mbit/s.
    let met = of(9_050_000, 100.0);
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding(), @"least headroom goodput of critical in s0 9 Mbit/s (in every repetition), objective at least 9.05 Mbit/s, compared with 8.91 Mbit/s because its requests ask for 9 Mbit/s, headroom 0.994 %");
    let few = of(12_000_000, 100.0);
    assert_eq!(few.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(few.deciding(), @"goodput of critical in s1 9 Mbit/s (in every repetition), objective at least 12 Mbit/s; its requests ask only for 9 Mbit/s: whether it would get more is unknown; more repetitions alone will not decide");
    assert_eq!(
        of(9_000_000, 90.0).outcome,
        Outcome::Broken,
        "a tenth is not answered"
    );
    assert_eq!(of(9_000_000, 0.0).outcome, Outcome::Broken);
}

#[test]
fn what_requests_ask_for_is_counted_for_each_source() {
    let asked = |answered: f64| {
        let small = requests(8e6, 1.0);
        let mut large = requests(2e6 * answered, 1.0);
        large.requests.as_mut().unwrap().achieved_per_second = 100.0 * answered;
        let both = SliceApplications::of(&[&small, &large], 1.0, 2.0);
        both.unwrap().goodput_asked_bits_per_second
    };
    assert_eq!(asked(0.5), Some(10e6));
    assert_eq!(asked(0.0), None, "nobody knows how large its responses are");
}

#[test]
fn objectives_of_completion_time_and_request_latency_are_of_what_began_or_was_due() {
    let limit = |millis: u64| {
        Some(DelayLimit {
            limit_ns: millis * 1_000_000,
            at: Percentile::P99,
        })
    };
    let of_flows = |millis| Objective {
        completion_time: limit(millis),
        ..Objective::default()
    };
    let of_requests = |millis| Objective {
        request_latency: limit(millis),
        ..Objective::default()
    };
    // The 99th percentile is twice the mean.
    let met = with_objective(of_flows(21), (10e6, flows(9e6, 10.0)));
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding(), @"least headroom completion time at 99 % of critical in s0 20 ms (in every repetition), objective at most 21 ms, headroom 4.76 %");
    // Flows of runs that were not seen could take no time, in two runs of five.
    let missed = with_objective(of_flows(11), (10e6, flows(9e6, 10.0)));
    assert_eq!(missed.outcome, Outcome::Broken);
    let met = with_objective(of_requests(21), (10e6, requests(9e6, 10.0)));
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding(), @"least headroom request latency at 99 % of critical in s0 20 ms (in every repetition), objective at most 21 ms, headroom 4.76 %");

    // Prompt answers to those that were answered are not enough.
    let mut application = requests(9e6, 10.0);
    application.requests.as_mut().unwrap().latency_of_due = times(5_000.0);
    let unanswered = with_objective(of_requests(21), (10e6, application));
    assert_eq!(unanswered.outcome, Outcome::Broken);
    let mut application = flows(9e6, 10.0);
    application.flows.as_mut().unwrap().time_of_begun = times(5_000.0);
    let unfinished = with_objective(of_flows(21), (10e6, application));
    assert_eq!(unfinished.outcome, Outcome::Broken);

    // Times that follow from what is left beyond the share are not judged, and what is not there cannot hold.
    let beyond = with_objective(of_requests(21), (2.0 * SHARE, requests(9e6, 10.0)));
    assert_eq!(beyond.outcome, Outcome::NotTested);
    let none = with_objective(of_requests(21), (10e6, flows(9e6, 10.0)));
    assert_eq!(none.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(none.not_judged[0].why, @"no run has a value for its request latency at 99 %");
}

/// A run in which critical leaves half of its share and best effort, a bulk transfer, gets `taken` of that.
fn reallocating(taken: f64) -> Option<f64> {
    let study = study(&[("p", None)], 1);
    let best_effort = SHARE + taken * SHARE / 2.0;
    let services = [
        Service::untroubled(SHARE / 2.0),
        Service::untroubled(best_effort),
    ];
    let mut record = run("p", "s0", 0, services, 0.0);
    record
        .applications
        .push(bulk("files", "best effort", best_effort));
    let mut observations = Observations::default();
    observations.add(&study, &record).unwrap();
    observations.run(0, 0, 0).unwrap().opportunity.fraction()
}

#[test]
fn best_effort_that_sends_as_much_as_it_gets_wants_all_that_is_left() {
    for taken in [0.0, 0.4, 1.0] {
        let fraction = reallocating(taken).unwrap();
        assert!((fraction - taken).abs() < 0.01, "{fraction} of {taken}");
    }
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
    assert_eq!(outcomes, [(Some(Indicator::Goodput), Change::Worse)]);
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
    let mean = |quantity| together.of(quantity).unwrap().mean;
    assert!((mean(ApplicationQuantity::Goodput) - 5e6).abs() < 1.0);
    assert!(
        (mean(ApplicationQuantity::RttMean) - 2e6).abs() < 1.0,
        "by samples"
    );
    assert!(together.of(ApplicationQuantity::QualityMean).is_none());
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
        slices: Vec::new(),
        applications: vec![bulk("files", "critical", 4e6)],
        aggregate: record.aggregate,
        drops: Vec::new(),
        queues: Vec::new(),
        change: None,
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
fn every_quantity_of_video_is_its_own_figure_weighted_by_segments() {
    let with = |segments, factor: f64| ApplicationRecord {
        video: Some(VideoFigures {
            clients: 1,
            segments,
            quality_mean: factor,
            quality_least: 0.0,
            bit_rate_mean: 2.0 * factor,
            switches_per_minute: 3.0 * factor,
            start_up_mean_ns: 4.0 * factor,
            stalls: 0,
            stalled_ratio: 5.0 * factor,
        }),
        ..bulk("player", "critical", 1e6)
    };
    // The mean factor is 1.75.
    let records = [with(10, 1.0), with(30, 2.0)];
    for (quantity, factor) in [
        (ApplicationQuantity::QualityMean, 1.0),
        (ApplicationQuantity::BitRateMean, 2.0),
        (ApplicationQuantity::SwitchesPerMinute, 3.0),
        (ApplicationQuantity::StartUpMean, 4.0),
        (ApplicationQuantity::StalledRatio, 5.0),
    ] {
        let value = quantity.of(&records).unwrap();
        assert!((value - 1.75 * factor).abs() < 1e-9, "{quantity:?} {value}");
        assert_eq!(quantity.of(&[with(0, 1.0)]), None);
    }
    // Nobody began to play.
    assert_eq!(ApplicationQuantity::StartUpMean.of(&[with(1, 0.0)]), None);
    assert!(
        ApplicationQuantity::StalledRatio
            .of(&[with(1, 0.0)])
            .is_some()
    );
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
fn published_figures_of_applications_are_the_quantities_of_summaries() {
    for (metric, quantity) in [
        (Metric::Goodput, ApplicationQuantity::Goodput),
        (Metric::RttMean, ApplicationQuantity::RttMean),
        (
            Metric::RequestsAchieved,
            ApplicationQuantity::RequestsAchieved,
        ),
        (
            Metric::RequestLatencyMean,
            ApplicationQuantity::RequestLatencyMean,
        ),
        (
            Metric::RequestLatencyP99,
            ApplicationQuantity::RequestLatencyP99,
        ),
        (
            Metric::CompletionTimeMean,
            ApplicationQuantity::CompletionTimeMean,
        ),
        (Metric::QualityMean, ApplicationQuantity::QualityMean),
    ] {
        assert_eq!(metric.of_applications(), Some(quantity));
    }
    assert_eq!(Metric::Throughput.of_applications(), None);
}
