//! A loop over the rates of classes: from the counters of a pipeline to rates.

use slicewise_dataplane::{ClassCounters, ReallocationLoop};
use slicewise_model::{RateLimits, ReallocatedClass, ReallocationParams};
use slicewise_units::{BitRate, Duration};

const EVERY: Duration = Duration::from_millis(100);

/// A loop that divides 10 Mbit/s between two classes.
fn control() -> ReallocationLoop {
    let class = |name: &str| ReallocatedClass {
        name: name.to_owned(),
        limits: RateLimits {
            guarantee: BitRate::new(5_000_000),
            minimum: BitRate::new(1_000),
            maximum: BitRate::new(10_000_000),
        },
    };
    ReallocationLoop::new(ReallocationParams {
        every: EVERY,
        delay: Duration::ZERO,
        rate: BitRate::new(10_000_000),
        headroom: 0,
        weight: 100_000,
        classes: vec![class("gold"), class("rest")],
    })
}

fn counters(class: &str, offered_frames: u64, queued_frames: u64) -> ClassCounters {
    ClassCounters {
        class: class.to_owned(),
        offered_frames,
        offered_bytes: offered_frames * 1_000,
        queued_frames,
        ..ClassCounters::default()
    }
}

fn rates(control: &mut ReallocationLoop, counters: &[ClassCounters]) -> Vec<u64> {
    let rates = control.on_interval(counters.iter(), EVERY);
    rates.into_iter().map(BitRate::bits_per_second).collect()
}

#[test]
fn demand_is_what_was_offered_since_the_last_reading() {
    let mut control = control();
    // 25 and 200 frames of 1,000 B in 100 ms: 2 and 16 Mbit/s.
    let first = [counters("gold", 25, 0), counters("rest", 200, 0)];
    assert_eq!(rates(&mut control, &first), [2_000_000, 8_000_000]);
    let second = [counters("gold", 125, 0), counters("rest", 400, 0)];
    assert_eq!(rates(&mut control, &second), [5_000_000, 5_000_000]);
}

#[test]
fn what_waits_is_wanted_within_the_next_interval() {
    let waiting = [counters("gold", 25, 25), counters("rest", 200, 0)];
    assert_eq!(rates(&mut control(), &waiting), [4_000_000, 6_000_000]);
}

#[test]
fn classes_within_a_class_are_its_own_and_others_do_not_count() {
    let nested = [
        counters("gold/voice", 10, 0),
        counters("gold/video", 15, 0),
        counters("rest", 200, 0),
        counters("class-default", 1_000, 0),
    ];
    assert_eq!(rates(&mut control(), &nested), [2_000_000, 8_000_000]);
}

#[test]
fn counters_that_go_back_are_no_demand() {
    let mut control = control();
    rates(&mut control, &[counters("gold", 1_000, 0)]);
    let reset = [counters("gold", 0, 0), counters("rest", 200, 0)];
    assert_eq!(rates(&mut control, &reset), [1_000, 9_999_000]);
}
