//! What slices need, which delay is compared, and what is said of mistakes in that.

use crate::support::{STUDY, mistakes, parse, with_application};
use insta::assert_snapshot;
use slicewise_stats::description::ComparedDelay;
use slicewise_stats::objective::{ConformingIntervals, DelayLimit, Objective, Percentile};

fn with_objective(objective: &str) -> String {
    STUDY.replace(
        "    guaranteed: true\n",
        &format!("    guaranteed: true\n    objective: {objective}\n"),
    )
}

fn objective_mistakes(objective: &str) -> String {
    mistakes(
        "    guaranteed: true\n",
        &format!("    guaranteed: true\n    objective: {objective}\n"),
    )
}

#[test]
fn objectives_are_read_with_their_percentiles() {
    let study = parse(&with_objective(
        "{delay: 5 ms at 99 %, loss: 0.1 %, throughput: 5 Mbit/s, delay_variation: 2 ms, availability: 99.9 %}",
    ))
    .unwrap();
    let expected = Objective {
        delay: Some(DelayLimit {
            limit_ns: 5_000_000,
            at: Percentile::P99,
        }),
        delay_variation: Some(DelayLimit {
            limit_ns: 2_000_000,
            at: Percentile::P999,
        }),
        loss_ratio: Some(0.001),
        throughput_bits_per_second: Some(5_000_000),
        availability: Some(ConformingIntervals {
            share: 0.999,
            length_ns: 1_000_000_000,
        }),
        ..Objective::default()
    };
    assert_eq!(study.slices[0].objective, Some(expected));
    assert_eq!(study.slices[1].objective, None);
    let description = study.description("0");
    assert_eq!(description.slices[0].objective, Some(expected));
}

/// Messages about a study whose slice `rest` has this source and this objective.
fn of_application(source: &str, objective: &str) -> Result<Objective, String> {
    let text = with_application(source).replace(
        "    share: 4 Mbit/s\n",
        &format!("    share: 4 Mbit/s\n    objective: {objective}\n"),
    );
    parse(&text).map(|study| study.slices[1].objective.unwrap())
}

#[test]
fn objectives_of_applications_are_read() {
    let requests = "application: {kind: requests, rate: 10 /s, response: 1 kB}";
    let objective = of_application(
        requests,
        "{goodput: 50 kbit/s, request_latency: 20 ms at 99 %, availability: 99 % of 10 s}",
    );
    let expected = Objective {
        goodput_bits_per_second: Some(50_000),
        request_latency: Some(DelayLimit {
            limit_ns: 20_000_000,
            at: Percentile::P99,
        }),
        availability: Some(ConformingIntervals {
            share: 0.99,
            length_ns: 10_000_000_000,
        }),
        ..Objective::default()
    };
    assert_eq!(objective, Ok(expected));
    for source in [
        "application: {kind: short_flows, response: 1 kB}",
        "application: {kind: bulk, bytes: 1 MB}",
    ] {
        let read = of_application(source, "{completion_time: 2 s}").unwrap();
        let expected = DelayLimit {
            limit_ns: 2_000_000_000,
            at: Percentile::P999,
        };
        assert_eq!(read.completion_time, Some(expected));
    }
}

#[test]
fn a_source_that_cannot_be_read_may_have_the_application() {
    let objective = "{goodput: 50 kbit/s, request_latency: 20 ms}";
    let requests = "application: {kind: requests, rate: 50, connections: 2, response: 1 kB}";
    assert_snapshot!(of_application(requests, objective).unwrap_err(), @"study.yaml:19:58 `50`: `50` is not a rate of events: write for example `1000 /s`");
    let many = "application: {kind: requests, rate: 50 /s, connections: 100000, response: 1 kB}";
    assert_snapshot!(of_application(many, objective).unwrap_err(), @"study.yaml:19:78 `100000`: with 100000 connections of this source, the applications of the scenario have more than 16000 connections; help: 16000 are left for it: lower `connections`");
}

#[test]
fn what_no_application_of_the_slice_has_is_not_asked_for() {
    let bulk = "application: bulk";
    assert!(of_application(bulk, "{goodput: 3 Mbit/s}").is_ok());
    let refused = of_application(
        bulk,
        "{goodput: 5 Mbit/s, completion_time: 1 s, request_latency: 1 s}",
    );
    assert_snapshot!(refused.unwrap_err(), @"
    study.yaml:15:26 `5 Mbit/s`: an objective of 5 Mbit/s is above the slice's share of 4 Mbit/s: nothing promises it more than its share
    study.yaml:15:53 `1 s`: no source of slice `rest` has an application `short_flows`, or `bulk` with `bytes`, so that there is nothing to judge by this
    study.yaml:15:75 `1 s`: no source of slice `rest` has an application `requests`, so that there is nothing to judge by this
    ");
    // Nobody in the slice `gold` has an application.
    assert_snapshot!(objective_mistakes("{goodput: 1 Mbit/s}"), @"study.yaml:11:26 `1 Mbit/s`: no source of slice `gold` has an application, so that there is nothing to judge by this");
    // A request has its latency at its end, not in each interval.
    let requests = "application: {kind: requests, rate: 10 /s, response: 1 kB}";
    let refused = of_application(requests, "{request_latency: 1 s, availability: 99 %}");
    assert_snapshot!(refused.unwrap_err(), @"study.yaml:15:5 `objective`: availability is the share of intervals in which other objectives are met, but there are none that have a value in each interval; help: state at least one of `delay`, `delay_variation`, `loss`, `throughput` and `goodput`");
}

#[test]
fn every_percentile_that_is_measured_can_be_asked_for_and_no_other() {
    for at in Percentile::ALL {
        let study = parse(&with_objective(&format!("{{delay: 1 ms at {at}}}"))).unwrap();
        assert_eq!(study.slices[0].objective.unwrap().delay.unwrap().at, at);
    }
    assert_snapshot!(objective_mistakes("{delay: 5 ms at 97 %}"), @"study.yaml:11:24 `5 ms at 97 %`: `97 %` is not a measured percentile: use one of 50 %, 90 %, 95 %, 99 %, 99.9 %, 99.99 %, 99.999 %, 100 %");
}

#[test]
fn an_objective_of_nothing_is_refused() {
    assert_snapshot!(objective_mistakes("{}"), @"study.yaml:11:5 `objective`: the objective is empty; help: state at least one of `delay`, `delay_variation`, `loss`, `throughput`, `goodput`, `completion_time` and `request_latency`");
    assert_snapshot!(objective_mistakes("{availability: 99 %}"), @"study.yaml:11:5 `objective`: availability is the share of intervals in which other objectives are met, but there are none that have a value in each interval; help: state at least one of `delay`, `delay_variation`, `loss`, `throughput` and `goodput`");
}

#[test]
fn values_that_nothing_can_meet_are_refused() {
    assert_snapshot!(objective_mistakes("{delay: 0 ms, loss: 101 %}"), @"
    study.yaml:11:24 `0 ms`: a delay of zero cannot be met
    study.yaml:11:36 `101 %`: this is more than 100 %
    ");
    // The share is 60 % of 10 Mbit/s.
    assert_snapshot!(objective_mistakes("{throughput: 7 Mbit/s}"), @"study.yaml:11:29 `7 Mbit/s`: an objective of 7 Mbit/s is above the slice's share of 6 Mbit/s: nothing promises it more than its share");
}

#[test]
fn delay_without_a_unit_or_with_a_bare_percentile_says_what_is_missing() {
    assert_snapshot!(objective_mistakes("{delay: 5}"), @"study.yaml:11:24 `5`: `5` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h");
    assert_snapshot!(objective_mistakes("{delay: 5 ms at 99}"), @"study.yaml:11:24 `5 ms at 99`: `99` is a number without a unit: write `99 %`");
}

#[test]
fn delay_is_resolved_to_one_largest_frame_unless_the_study_says_otherwise() {
    // 1000 B of payload, 28 B of headers, a tag and 38 B of Ethernet at 10 Mbit/s.
    let margins = parse(STUDY).unwrap().margins;
    assert_eq!(margins.delay_resolution_ns, (1000 + 28 + 4 + 38) * 8 * 100);
    assert_eq!(margins.delay_of, ComparedDelay::Queueing);
    let declared =
        format!("{STUDY}margins: {{delay_of: one_way, delay_resolution: 0 s, rare_runs: 20 %}}\n");
    let margins = parse(&declared).unwrap().margins;
    assert_eq!(margins.delay_resolution_ns, 0);
    assert_eq!(margins.delay_of, ComparedDelay::OneWay);
    assert_eq!(margins.rare_runs, 0.2);
}

#[test]
fn a_share_of_runs_that_no_repetitions_exclude_is_refused() {
    let with = |share| {
        mistakes(
            "duration: 5 s",
            &format!("duration: 5 s\nmargins: {{rare_runs: {share}}}"),
        )
    };
    assert_snapshot!(with("0 %"), @"study.yaml:34:22 `0 %`: this must be above 0 % and below 100 %: no number of repetitions excludes everything");
    assert_snapshot!(with("100 %"), @"study.yaml:34:22 `100 %`: this must be above 0 % and below 100 %: no number of repetitions excludes everything");
}

#[test]
fn a_first_look_excludes_what_its_repetitions_can() {
    let study = parse(STUDY).unwrap().into_quick();
    assert_eq!((study.repetitions, study.margins.rare_runs), (2, 0.8));
}
