//! Policies whose rates a loop sets: what they are read as, and what is said of mistakes in them.

use crate::support::{STUDY, parse};
use insta::assert_snapshot;
use slicewise_model::ReallocationParams;
use slicewise_study::{Pacing, Study};
use slicewise_units::{BitRate, Duration};

/// For the link of 10 Mbit/s of [`STUDY`].
const POLICY: &str = "    classes:
      - {name: gold, slice: gold}
      - {name: rest, slice: rest, shape: 4 Mbit/s, queue_limit: 10 ms}
    reallocate:
      every: 100 ms
      classes:
        gold: {guarantee: 60 %}
        rest: {guarantee: 4 Mbit/s, minimum: 2 Mbit/s}
";

/// [`STUDY`] with only this policy, `old` in it replaced by `new`.
fn with(old: &str, new: &str) -> Result<Study, String> {
    let (start, _) = STUDY.split_once("policies:").unwrap();
    let end = &STUDY[STUDY.find("repetitions:").unwrap()..];
    let text = format!("{start}policies:\n  p:\n{POLICY}{end}");
    assert!(text.contains(old), "`{old}` is not in the study");
    parse(&text.replacen(old, new, 1))
}

fn reallocation(old: &str, new: &str) -> ReallocationParams {
    let policy = with(old, new).unwrap().policies.swap_remove(0);
    policy.reallocation.unwrap()
}

fn mistakes(old: &str, new: &str) -> String {
    with(old, new).expect_err("this should be refused")
}

#[test]
fn every_setting_has_a_default_but_interval_and_classes() {
    assert_snapshot!(reallocation("", ""), @"
    reallocated every 100 ms among its classes, in force at once: 10 Mbit/s, headroom 0 %, weight 100 %
      gold: guarantee 6 Mbit/s, minimum 121.76 kbit/s, maximum 10 Mbit/s
      rest: guarantee 4 Mbit/s, minimum 2 Mbit/s, maximum 10 Mbit/s
    ");
    let written = "every: 100 ms\n      delay: 10 ms\n      rate: 95 %\n      headroom: 10 %\n      weight: 12.5 %";
    let guarantee = ("guarantee: 60 %", "guarantee: 50 %");
    let changed =
        POLICY
            .replacen("every: 100 ms", written, 1)
            .replacen(guarantee.0, guarantee.1, 1);
    assert_snapshot!(reallocation(POLICY, &changed), @"
    reallocated every 100 ms among its classes, in force after 10 ms: 9.5 Mbit/s, headroom 10 %, weight 12.5 %
      gold: guarantee 4.75 Mbit/s, minimum 121.76 kbit/s, maximum 9.5 Mbit/s
      rest: guarantee 4 Mbit/s, minimum 2 Mbit/s, maximum 9.5 Mbit/s
    ");
}

#[test]
fn what_is_written_as_a_time_follows_the_rate() {
    let study = with("", "").unwrap();
    let limits = [4, 8].map(|rate| {
        let rates = [BitRate::new(1), BitRate::new(rate * 1_000_000)];
        let params = study.policies[0].reallocated(&study.dut, &rates).unwrap();
        let rest = params
            .classes
            .into_iter()
            .find(|it| it.name == "rest")
            .unwrap();
        let shape = rest.shape.unwrap();
        (
            shape.rate.rate.bits_per_second(),
            shape.burst.bytes(),
            rest.queue.limit.bytes.bytes(),
        )
    });
    assert_eq!(
        limits,
        [(4_000_000, 2_000, 5_000), (8_000_000, 4_000, 10_000)]
    );
}

#[test]
fn the_report_shows_the_loop_below_the_policy() {
    let configuration = &with("", "").unwrap().policies[0].configuration;
    assert!(
        configuration.contains("\n\nreallocated every 100 ms"),
        "{configuration}"
    );
}

#[test]
fn times_and_fractions_are_in_their_range() {
    assert_snapshot!(mistakes("every: 100 ms", "every: 0 s"), @"study.yaml:30:14 `0 s`: every: is 0 ns: at least 1 ms");
    assert_snapshot!(mistakes("every: 100 ms", "every: 5 s"), @"study.yaml:29:5 `reallocate`: the loop acts for the first time up to 10 s after the start, twice `every` and `delay`, and the run is over after 5 s; help: choose a shorter `every`, or a longer `duration`");
    assert_snapshot!(mistakes("every: 100 ms", "every: 100 ms\n      delay: 100 ms"), @"study.yaml:31:14 `100 ms`: delay: is 100 ms: the rates must be in force before the next reading, 100 ms later");
    assert_snapshot!(mistakes("every: 100 ms", "every: 100 ms\n      weight: 0 %"), @"study.yaml:31:15 `0 %`: weight: must be more than 0 % and at most 100 %");
    assert_snapshot!(mistakes("every: 100 ms", "every: 100 ms\n      weight: 101 %"), @"study.yaml:31:15 `101 %`: weight: must be more than 0 % and at most 100 %");
    assert_snapshot!(mistakes("every: 100 ms", "every: 100 ms\n      headroom: 0.1"), @"study.yaml:31:17 `0.1`: `0.1` is a number without a unit: write `0.1 %`");
    assert_snapshot!(mistakes("every: 100 ms", "interval: 100 ms"), @"
    study.yaml:29:5 `reallocate`: `every` is missing
    study.yaml:30:7 `interval`: `interval` is not a setting here; help: known are `every`, `delay`, `rate`, `headroom`, `weight`, `classes`
    ");
}

#[test]
fn rates_fit_in_what_is_divided() {
    assert_snapshot!(mistakes("every: 100 ms", "every: 100 ms\n      rate: 11 Mbit/s"), @"study.yaml:31:13 `11 Mbit/s`: rate: is 11 Mbit/s, more than the 10 Mbit/s that the device forwards");
    assert_snapshot!(mistakes("guarantee: 60 %", "guarantee: 61 %"), @"study.yaml:33:27 `4 Mbit/s`: guarantee: is 4 Mbit/s, but the guarantees before it leave 3.9 Mbit/s of 10 Mbit/s: lower one of them");
    assert_snapshot!(mistakes("guarantee: 60 %", "guarantee: 0 %"), @"study.yaml:32:27 `0 %`: guarantee: is 0 %");
    assert_snapshot!(mistakes("guarantee: 60 %", "guarantee: 60 %, maximum: 50 %"), @"study.yaml:32:42 `50 %`: maximum: is 5 Mbit/s, less than the guarantee of 6 Mbit/s");
    assert_snapshot!(mistakes("guarantee: 60 %", "guarantee: 60 %, maximum: 11 Mbit/s"), @"study.yaml:32:42 `11 Mbit/s`: maximum: is 11 Mbit/s, more than the 10 Mbit/s that the loop divides");
    assert_snapshot!(mistakes("minimum: 2 Mbit/s", "minimum: 5 Mbit/s"), @"study.yaml:33:46 `5 Mbit/s`: minimum: is 5 Mbit/s, more than the guarantee of 4 Mbit/s: what a class always has is guaranteed to it");
    assert_snapshot!(mistakes("gold: {guarantee: 60 %}", "gold: {minimum: 1 Mbit/s}"), @"study.yaml:32:9 `gold`: `guarantee` is missing");
}

#[test]
fn the_policy_has_classes_whose_rates_can_be_set() {
    assert_snapshot!(mistakes("gold: {g", "gald: {g"), @"study.yaml:32:9 `gald`: there is no class `gald` in this policy; help: did you mean `gold`?");
    assert_snapshot!(mistakes("shape: 4 Mbit/s, ", ""), @"study.yaml:31:7 `classes`: no class of the loop has a rate that it could set: give one of them `shape` or `police`");
    assert_snapshot!(mistakes("shape: 4 Mbit/s", "shape: {rate: 4 Mbit/s, peak: yes}"), @"study.yaml:33:9 `rest`: class `rest` shapes to a peak rate, and a loop sets the average: write the shaper without `peak`");
    assert_snapshot!(mistakes("shape: 4 Mbit/s", "shape: {rate: 4 Mbit/s, counts: L1}"), @"study.yaml:33:9 `rest`: class `rest` counts other bytes of a frame than the loop, which measures L2: leave `counts` out");
    assert_snapshot!(mistakes("shape: 4 Mbit/s", "police: {rate: 4 Mbit/s, peak_rate: 5 Mbit/s}"), @"study.yaml:33:9 `rest`: class `rest` polices to two rates, and a loop sets one: write the policer without a peak or excess rate");
    // At its least rate the queue holds less than a frame, or the shaper sends less than the minimum.
    assert_snapshot!(mistakes(", minimum: 2 Mbit/s", ", minimum: 1 Mbit/s"), @"study.yaml:33:46 `1 Mbit/s`: minimum: with the least that the loop may give, class `rest`, queue_limit: holds 1.25 kB, less than one largest frame (1.522 kB)");
    assert_snapshot!(mistakes("shape: 4 Mbit/s", "shape: 4 Mbit/s, minimum: 3 Mbit/s"), @"study.yaml:33:46 `2 Mbit/s`: minimum: with the least that the loop may give, class `rest`, minimum: guarantees 3 Mbit/s, above the maximum of 2 Mbit/s its shaper sets");
    let guaranteed = format!(
        "    discipline: guaranteed\n{}",
        POLICY.replacen("shape: 4 Mbit/s, ", "", 1)
    );
    assert_snapshot!(mistakes(POLICY, &guaranteed), @"study.yaml:30:5 `reallocate`: the discipline `guaranteed` gives away what is unused by itself: leave the loop out");
}

#[test]
fn a_loop_goes_with_no_timeline_and_of_testbeds_with_the_gateway() {
    let timeline = "timeline: {settle: 1 s, changes: {later: {at: 3 s, sources: {other: {rate: 1 Mbit/s}}}}}\nrepetitions:";
    assert_snapshot!(mistakes("repetitions:", timeline), @"study.yaml:29:5 `reallocate`: `reallocate` and `timeline` exclude each other");
    let study = with("", "").unwrap();
    let error = study.clone().into_testbed(Pacing::TokenBucket);
    assert_snapshot!(error.unwrap_err(), @"a loop sets the rates of policy `p` (`reallocate`), which only the gateway (`--on gateway`) and the simulator carry out: leave the policy out in a study that extends this one (`without: [policies.p]`)");
    let on_gateway = study.clone().into_testbed(Pacing::Departures).unwrap();
    assert_eq!(
        on_gateway.policies[0].reallocation,
        study.policies[0].reallocation
    );
}

#[test]
fn a_loop_may_set_a_policer_and_the_rates_of_ios() {
    let police = ("shape: 4 Mbit/s, queue_limit: 10 ms", "police: 4 Mbit/s");
    assert_eq!(
        reallocation(police.0, police.1).every,
        Duration::from_millis(100)
    );
}
