//! Which bounds of delay a study promises, and what is said where none follows.

use crate::support::{STUDY, parse};
use slicewise_study::Study;

/// [`support::STUDY`] whose policy `weighted` guarantees gold its rate instead, with `changes`.
fn promising(changes: &[(&str, &str)]) -> Study {
    let mut text = STUDY
        .replace("pattern: poisson", "pattern: cbr")
        .replace(
            "    classes:\n",
            "    discipline: guaranteed\n    classes:\n",
        )
        .replace(
            "minimum: 60 %",
            "guarantee: {rate: 6 Mbit/s, burst: 3044 B, delay: 10 ms}",
        );
    for (old, new) in changes {
        assert!(text.contains(old), "`{old}` is not in the study");
        text = text.replacen(old, new, 1);
    }
    parse(&text).unwrap()
}

fn message(study: &Study) -> String {
    let description = study.description("test");
    let policy = description
        .policies
        .iter()
        .find(|policy| policy.name == "weighted")
        .unwrap();
    let bounds = policy.delay_bounds.iter().map(|(slice, bound)| {
        format!(
            "{slice}: {} ns and {} ns",
            bound.scheduler_ns, bound.outside_ns
        )
    });
    bounds.chain(study.notes()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_bound_is_that_of_the_class_and_of_what_lies_outside() {
    // A class of 8611 us and a bucket of 1024 ns; 1046 B and 546 B with 24 B more each on 1 Gbit/s.
    insta::assert_snapshot!(message(&promising(&[])), @"gold: 10000000 ns and 13123 ns");
}

/// A packet lasts 1.6 ms of 5 Mbit/s: a timer of 35 ms makes a source late by 21.88 of them, one that is a tenth
/// slower by 24.06. A packet more may leave at once; each has 1046 B.
#[test]
fn the_bursts_of_a_slow_timer_are_those_that_a_guarantee_needs() {
    let with = |drift: &str, burst: &str| {
        message(&promising(&[
            ("pattern: cbr, rate: 50 %", "pattern: iperf3, rate: 50 %"),
            (
                "slices:",
                &format!("hosts: {{timer: 35 ms, clock_drift: {drift}}}\nslices:"),
            ),
            ("burst: 3044 B", &format!("burst: {burst}")),
            ("delay: 10 ms", "delay: 40 ms"),
        ]))
    };
    insta::assert_snapshot!(with("0 ppm", "23928 B"), @"gold: 40000000 ns and 200373 ns");
    insta::assert_snapshot!(with("10 %", "26215 B"), @"policy `weighted`: the delay of slice `gold` has no bound to be judged by in scenarios calm, storm: class `gold` may receive bursts of 26.216 kB, but only 26.215 kB are guaranteed");
    insta::assert_snapshot!(with("10 %", "26216 B"), @"gold: 40000000 ns and 219098 ns");
}

#[test]
fn says_why_there_is_no_bound_to_judge_by() {
    let cases: [&[(&str, &str)]; 6] = [
        // 5 Mbit/s of payload for 35 ms, and a packet, of 1046 B instead of 1000.
        &[
            ("pattern: cbr, rate: 50 %", "pattern: iperf3, rate: 50 %"),
            ("slices:", "hosts: {timer: 35 ms}\nslices:"),
        ],
        &[("rate: 50 %", "rate: 70 %")],
        &[("slice: gold, pattern: cbr", "slice: gold, pattern: poisson")],
        &[(
            "slice: gold, pattern: cbr",
            "slice: gold, on_off: {on_for: 1 s, off_for: 1 s, periods: exponential}, pattern: cbr",
        )],
        &[("slice: rest, pattern: cbr", "slice: rest, pattern: poisson")],
        &[("name: gold, slice: gold,", "name: gold, match: {dscp: 46},")],
    ];
    let message: Vec<String> = cases.map(|changes| message(&promising(changes))).into();
    insta::assert_snapshot!(message.join("\n---\n"), @"
    policy `weighted`: the delay of slice `gold` has no bound to be judged by in scenarios calm, storm: class `gold` may receive bursts of 23.93 kB, but only 3.044 kB are guaranteed
    ---
    policy `weighted`: the delay of slice `gold` has no bound to be judged by in scenarios calm, storm: class `gold` receives 7 Mbit/s, but only 6 Mbit/s are guaranteed
    ---
    policy `weighted`: the delay of slice `gold` has no bound to be judged by in scenarios calm, storm: source `steady` is Poisson, and may send any number of packets at once
    ---
    policy `weighted`: the delay of slice `gold` has no bound to be judged by in scenarios calm, storm: source `steady` pauses at random, also for less than the time between two packets
    ---
    gold: 10000000 ns and 13123 ns
    policy `weighted`: in scenario calm, slice `gold` is judged at the scheduler only, by its bound of 10 ms: the path to the device has no bound, because source `other` is Poisson, and may send any number of packets at once
    ---
    ");
}

#[test]
fn what_an_application_sends_at_once_is_not_bounded_and_the_schedulers_of_others_are() {
    let with = |slice: &str| {
        let source = format!("  app: {{slice: {slice}, application: bulk}}\nscenarios:\n");
        message(&promising(&[("scenarios:\n", &source)]))
    };
    insta::assert_snapshot!(with("rest"), @"policy `weighted`: in scenarios calm, storm, slice `gold` is judged at the scheduler only, by its bound of 10 ms: the path to the device has no bound, because source `app` reacts to what it gets: no arrival curve bounds what its transport sends at once");
    insta::assert_snapshot!(with("gold"), @"policy `weighted`: the delay of slice `gold` has no bound to be judged by in scenarios calm, storm: source `app` reacts to what it gets: no arrival curve bounds what its transport sends at once");
}

#[test]
fn a_device_that_pauses_its_senders_is_judged_at_its_scheduler_only() {
    let pauses = "model: switch\n  flow_control: {buffer: 64 kB, high: 32 kB, low: 16 kB}\n";
    let study = promising(&[("model: port\n", pauses)]);
    insta::assert_snapshot!(message(&study), @"policy `weighted`: in scenarios calm, storm, slice `gold` is judged at the scheduler only, by its bound of 10 ms: the path to the device has no bound, because the device sends pause frames, and nothing bounds how long a sender is paused");
}
