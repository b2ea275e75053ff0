//! Objectives of what applications get.

use crate::synthetic::applications::{Got, SHARE, bulk, flows, requests, run_of, times};
use crate::synthetic::{CRITICAL, study};
use slicewise_stats::application::{ApplicationRecord, FlowFigures, RequestFigures};
use slicewise_stats::application_summary::SliceApplications;
use slicewise_stats::objective::{DelayLimit, Objective, Percentile};
use slicewise_stats::record::{CdfPoint, DelayFigures, Figures};
use slicewise_stats::summary::SummaryBuilder;
use slicewise_stats::verdict::{self, IsolationVerdict, Outcome};

#[test]
fn an_objective_of_throughput_is_asked_of_what_wants_all_whatever_it_sends() {
    let mut study = study(&[("p", None)], 2);
    study.slices[CRITICAL].objective =
        Some(objective!(throughput_bits_per_second: Some(15_000_000), delay: None));
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
    study.margins.rare_runs = 0.42;
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
        objective!(goodput_bits_per_second: Some(9_000_000)),
        objective!(throughput_bits_per_second: Some(9_000_000)),
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
        let objective = objective!(goodput_bits_per_second: Some(9_000_000));
        with_objective(objective, (served, bulk("files", "critical", goodput)))
    };
    let met = of(9.5e6, 10e6);
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding(), @"critical gets a goodput of at least 9 Mbit/s in 6 of 6 runs of s0 (95 %: in at least 58 %); worst run 9.5 Mbit/s");
    // No margin: it wants all.
    assert_eq!(of(8.9e6, 10e6).outcome, Outcome::Broken);
    assert_eq!(of(30e6, 2.0 * SHARE).outcome, Outcome::Holds);
    assert_eq!(of(3e6, 2.0 * SHARE).outcome, Outcome::Broken);
}

#[test]
fn requests_are_asked_for_no_more_goodput_than_they_ask_for() {
    let of = |limit: u64, achieved: f64| {
        let mut application = requests(9e6 * achieved / 100.0, 1.0);
        application.requests.as_mut().unwrap().achieved_per_second = achieved;
        let objective = objective!(goodput_bits_per_second: Some(limit));
        with_objective(objective, (10e6, application))
    };
    // All of 100 a second are answered, which is 9 Mbit/s.
    let met = of(9_050_000, 100.0);
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding(), @"critical gets a goodput of at least 9.05 Mbit/s (8.91 Mbit/s because its applications ask for 9 Mbit/s) in 6 of 6 runs of s0 (95 %: in at least 58 %); worst run 9 Mbit/s");
    let few = of(12_000_000, 100.0);
    assert_eq!(few.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(few.deciding(), @"critical gets a goodput of at least 12 Mbit/s in 6 of 6 runs of s0; worst run 9 Mbit/s; no more than 9 Mbit/s is known to be asked for: whether it would get more is unknown");
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
    let of_flows = |millis| objective!(completion_time: limit(millis));
    let of_requests = |millis| objective!(request_latency: limit(millis));
    // The 99th percentile is twice the mean.
    let met = with_objective(of_flows(21), (10e6, flows(9e6, 10.0)));
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding(), @"critical completes 99 % of flows within 21 ms in 6 of 6 runs of s0 (95 %: in at least 58 %); worst run 20 ms");
    // Flows of runs that were not seen could take no time, in two runs of five.
    let missed = with_objective(of_flows(11), (10e6, flows(9e6, 10.0)));
    assert_eq!(missed.outcome, Outcome::Broken);
    let met = with_objective(of_requests(21), (10e6, requests(9e6, 10.0)));
    assert_eq!(met.outcome, Outcome::Holds);
    insta::assert_snapshot!(met.deciding(), @"critical answers 99 % of requests within 21 ms in 6 of 6 runs of s0 (95 %: in at least 58 %); worst run 20 ms");

    // Prompt answers to those that were answered are not enough.
    let mut application = requests(9e6, 10.0);
    application.requests.as_mut().unwrap().latency_of_due = times(5_000.0);
    let unanswered = with_objective(of_requests(21), (10e6, application));
    assert_eq!(unanswered.outcome, Outcome::Broken);
    let mut application = flows(9e6, 10.0);
    application.flows.as_mut().unwrap().time_of_begun = times(5_000.0);
    let unfinished = with_objective(of_flows(21), (10e6, application));
    assert_eq!(unfinished.outcome, Outcome::Broken);

    // Where no request was due, it cannot hold.
    let mut application = requests(0.0, 10.0);
    application.requests = Some(RequestFigures::default());
    let idle = with_objective(of_requests(21), (10e6, application));
    assert_eq!(idle.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(idle.not_judged[0].why, @"no run has a value for its request latency at 99 %");

    // Times that follow from what is left beyond the share are not judged, nor what its applications do not have.
    let beyond = with_objective(of_requests(21), (2.0 * SHARE, requests(9e6, 10.0)));
    assert_eq!(beyond.outcome, Outcome::NotTested);
    let none = with_objective(of_requests(21), (10e6, flows(9e6, 10.0)));
    assert_eq!(none.outcome, Outcome::NotTested);
    insta::assert_snapshot!(none.not_judged[0].why, @"no application of it there has a request latency at 99 %");
}

#[test]
fn an_objective_of_completion_time_is_of_the_flows_of_all_sources_together() {
    let source = |name: &str, samples: u64, ns: u64| {
        let time = DelayFigures {
            samples,
            p90_ns: ns,
            min_ns: ns,
            max_ns: ns,
            ..DelayFigures::default()
        };
        ApplicationRecord {
            flows: Some(FlowFigures {
                completion_time: time,
                time_of_begun: time,
                ..FlowFigures::default()
            }),
            times: vec![CdfPoint(ns, 1.0)],
            ..bulk(name, "critical", 1e6)
        }
    };
    let mut study = study(&[("p", None)], 1);
    let limit = DelayLimit {
        limit_ns: 1_000,
        at: Percentile::P90,
    };
    study.slices[CRITICAL].objective = Some(objective!(completion_time: Some(limit)));
    let mut record = run_of("s0", 0, (10e6, source("short", 100, 400)), 0.0);
    record.applications.push(source("long", 10, 900_000));
    let mut builder = SummaryBuilder::new(&study);
    builder.add(&record).unwrap();
    let run = builder.observations().run(0, 0, 0).unwrap();
    assert_eq!(run.slices[CRITICAL].completion_time_ns, Some(400));
}

#[test]
fn too_little_goodput_is_missed_only_where_more_is_known_to_be_asked_for() {
    let objective = objective!(goodput_bits_per_second: Some(9_000_000));
    let of = |application: ApplicationRecord| with_objective(objective, (10e6, application));
    let limited = |megabits: u64, goodput: f64| ApplicationRecord {
        limit_bits_per_second: Some(megabits * 1_000_000),
        ..bulk("files", "critical", goodput)
    };
    let few = of(flows(8e6, 1.0));
    assert_eq!(few.outcome, Outcome::Inconclusive);
    insta::assert_snapshot!(few.deciding(), @"critical gets a goodput of at least 9 Mbit/s in 6 of 6 runs of s0; worst run 8 Mbit/s; no more than 8 Mbit/s is known to be asked for: whether it would get more is unknown");
    assert_eq!(of(flows(9.1e6, 1.0)).outcome, Outcome::Holds);
    // What a limited rate asks for is known: enough here, and too little there.
    assert_eq!(of(limited(20, 1e6)).outcome, Outcome::Broken);
    assert_eq!(of(limited(20, 9.1e6)).outcome, Outcome::Holds);
    assert_eq!(of(limited(8, 7.99e6)).outcome, Outcome::Inconclusive);
    assert_eq!(of(limited(8, 3e6)).outcome, Outcome::Broken);
    // Nor is throughput lowered to what a transfer sends that gets too little.
    let throughput = objective!(throughput_bits_per_second: Some(15_000_000));
    let starved = with_objective(throughput, (10e6, limited(20, 10e6)));
    assert_eq!(starved.outcome, Outcome::Broken);
}

#[test]
fn transfers_that_are_complete_before_the_transient_ends_are_judged() {
    let judged = |completion_ms: f64, loss_ratio: Option<f64>| {
        let mut study = study(&[("p", None)], 2);
        study.margins.rare_runs = 0.42;
        let completion_time = Some(DelayLimit {
            at: Percentile::P99,
            limit_ns: 30_000_000,
        });
        study.slices[CRITICAL].objective =
            Some(objective!(completion_time: completion_time, loss_ratio: loss_ratio));
        let mut builder = SummaryBuilder::new(&study);
        for scenario in ["s0", "s1"] {
            for repetition in 0..6 {
                let got = (10e6, flows(10e6, completion_ms));
                let mut record = run_of(scenario, repetition, got, 0.0);
                let critical = &mut record.slices[CRITICAL];
                critical.whole = critical.steady;
                critical.steady = Figures {
                    span_ns: critical.steady.span_ns,
                    ..Figures::default()
                };
                builder.add(&record).unwrap();
            }
        }
        verdict::judge(&study, builder.observations())
            .policies
            .remove(0)
            .isolation
    };
    let met = judged(10.0, None);
    assert_eq!(met.outcome, Outcome::Holds, "{}", met.reason());
    assert_eq!(met.not_judged, []);
    assert_eq!(judged(20.0, None).outcome, Outcome::Broken);
    // Of packets there is nothing to judge, which is said, and not "0 % lost".
    let with_packets = judged(10.0, Some(0.001));
    assert_eq!(with_packets.outcome, Outcome::Holds);
    assert_eq!(with_packets.objectives.unwrap().tests.len(), 2);
    insta::assert_snapshot!(with_packets.not_judged[0].why, @"it sends nothing there after the transient: of its objectives, only those of applications are judged");
}
