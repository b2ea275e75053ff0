//! Policies whose elephants have a queue: what they are read as, and what is said of mistakes in them.

use crate::support::{STUDY, parse};
use insta::assert_snapshot;
use slicewise_model::{Detector, ElephantsParams};
use slicewise_study::Study;
use slicewise_units::{ByteCount, Duration};

/// For the link of 10 Mbit/s of [`STUDY`].
const POLICY: &str = "    discipline: deficit_round_robin
    queues:
      - {name: tcp, queue_limit: 25000 packets}
      - {name: elephants, queue_limit: 25000 packets}
    classes:
      - name: class-default
        queue: tcp
        elephants: {queue: elephants, rate: 3 Mbit/s, interval: 10 ms}
";

/// [`STUDY`] with only this policy, `old` in it replaced by `new`.
fn with(old: &str, new: &str) -> Result<Study, String> {
    assert!(POLICY.contains(old), "`{old}` is not in the policy");
    let policy = POLICY.replacen(old, new, 1);
    let (start, _) = STUDY.split_once("policies:").unwrap();
    let end = &STUDY[STUDY.find("repetitions:").unwrap()..];
    parse(&format!("{start}policies:\n  p:\n{policy}{end}"))
}

fn elephants(old: &str, new: &str) -> ElephantsParams {
    let policy = with(old, new).unwrap().policies.swap_remove(0);
    let mut classes = policy.params.classes.into_iter();
    classes.find_map(|class| class.elephants).unwrap()
}

fn mistakes(old: &str, new: &str) -> String {
    with(old, new).expect_err("this should be refused")
}

#[test]
fn heavy_hitters_are_the_default() {
    let expected = ElephantsParams {
        queue: "elephants".into(),
        threshold: ByteCount::new(3_750),
        detector: Detector::HeavyHitters,
        interval: Duration::from_millis(10),
        times: 2,
        flows: 256,
    };
    assert_eq!(elephants("", ""), expected);
    let interval = elephants("3 Mbit/s, interval: 10 ms", "8 Mbit/s").interval;
    assert_eq!(interval, Duration::from_millis(2));
}

#[test]
fn counters_are_read_as_published() {
    let found = elephants("interval: 10 ms", "detector: counters");
    let expected = ElephantsParams {
        queue: "elephants".into(),
        threshold: ByteCount::new(1_125_000),
        detector: Detector::Counters,
        interval: Duration::from_secs(3),
        times: 2,
        flows: 16_384,
    };
    assert_eq!(found, expected);
}

#[test]
fn every_setting_may_be_written() {
    let found = elephants(
        "interval: 10 ms",
        "detector: counters, interval: 1 s, times: 3, flows: 100",
    );
    let (interval, times, flows) = (found.interval, found.times, found.flows);
    assert_eq!((interval, times, flows), (Duration::from_secs(1), 3, 100));
}

#[test]
fn elephants_that_cannot_be_are_refused() {
    // The queue exists.
    assert_snapshot!(mistakes("queue: elephants", "queue: elefants"), @"study.yaml:33:28 `elefants`: there is no queue `elefants` in this policy; help: did you mean `elephants`?");
    // It is another than that of the class.
    assert_snapshot!(mistakes("queue: elephants", "queue: tcp"), @"study.yaml:33:28 `tcp`: class `class-default`, elephants.queue: `tcp` is the queue of the class itself: name another");
    // The class waits in a named queue.
    assert_snapshot!(mistakes("        queue: tcp\n", ""), @"study.yaml:32:9 `elephants`: class `class-default`, elephants: the class needs a named queue for its other flows: set `queue`");
    // Neither queue keeps flows apart.
    assert_snapshot!(mistakes("{name: elephants,", "{name: elephants, flow_queue: {},"), @"study.yaml:33:9 `elephants`: class `class-default`, elephants: the queue `elephants` has a queue for each flow, so large flows cannot harm others there: remove either this or its `flow_queue`");
    assert_snapshot!(mistakes("{name: elephants,", "{name: elephants, dualpi2: {},"), @"study.yaml:33:9 `elephants`: class `class-default`, elephants: the queue `elephants` takes frames out of their order, so large flows cannot move there: remove either this or its `dualpi2`");
    // A flow can exceed the rate.
    assert_snapshot!(mistakes("rate: 3 Mbit/s", "rate: 30 Mbit/s"), @"study.yaml:33:45 `30 Mbit/s`: class `class-default`, elephants.rate: is 30 Mbit/s, above the 10 Mbit/s of the link: no flow sends as much");
    // One frame does not make an elephant.
    assert_snapshot!(mistakes("interval: 10 ms", "interval: 1 ms"), @"study.yaml:33:65 `1 ms`: class `class-default`, elephants.interval: is 1 ms, in which 3 Mbit/s is 375 B: one frame would make a flow an elephant. At least 4.059 ms is needed");
    // Counts are exact enough.
    assert_snapshot!(mistakes("interval: 10 ms", "interval: 10 ms, flows: 3"), @"study.yaml:33:79 `3`: class `class-default`, elephants.flows: is 3, so a count may be too large by 10 Mbit/s / 3, which is more than the rate of 3 Mbit/s: at least 4 are needed");
}

#[test]
fn numbers_are_in_their_range() {
    assert_snapshot!(mistakes("interval: 10 ms", "interval: 10 ms, times: 0"), @"study.yaml:33:79 `0`: class `class-default`, elephants.times: is 0: must be 1 to 1000");
    assert_snapshot!(mistakes("interval: 10 ms", "interval: 2 h"), @"study.yaml:33:65 `2 h`: class `class-default`, elephants.interval: is 7200 s: at most 3600 s");
    assert_snapshot!(mistakes("interval: 10 ms", "interval: 10 ms, flows: 2000000"), @"study.yaml:33:79 `2000000`: class `class-default`, elephants.flows: is 2000000: must be 1 to 1048576");
}

#[test]
fn elephants_have_a_detector_a_queue_and_a_rate() {
    // The detector is one of two.
    assert_snapshot!(mistakes("interval: 10 ms", "detector: heavy-hitters"), @"study.yaml:33:65 `heavy-hitters`: `heavy-hitters` is not a way to find elephants: did you mean `heavy_hitters`?");
    // Queue and rate are required.
    assert_snapshot!(mistakes("queue: elephants, rate: 3 Mbit/s, ", ""), @"
    study.yaml:33:9 `elephants`: `queue` is missing
    study.yaml:33:9 `elephants`: `rate` is missing
    ");
}
