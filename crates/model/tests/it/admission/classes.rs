//! Delays, and delay classes and their usage.

use super::support::*;
use slicewise_model::{Admission, AdmissionParams, ClassUse, DelayRange, GuaranteeRequest, Rate};
use slicewise_units::{BitRate, ByteCount, Duration};

fn micros(shortest: u64, longest: u64) -> DelayRange {
    DelayRange::new(
        Duration::from_micros(shortest),
        Duration::from_micros(longest),
    )
}

#[test]
fn four_steps_to_a_doubling_as_far_as_the_longest() {
    let range = micros(10, 41);
    let nanos: Vec<u64> = range.steps().map(Duration::nanos).collect();
    let expected = [
        10_000, 11_892, 14_142, 16_818, 20_000, 23_784, 28_284, 33_636, 40_000,
    ];
    assert_eq!(nanos, expected);
    assert_eq!(range.shortest(), Duration::from_micros(10));
    assert_eq!(range.longest(), Duration::from_micros(41));
    let within = |nanos| {
        let delay = range.step_within(Duration::from_nanos(nanos));
        delay.map(Duration::nanos)
    };
    assert_eq!(within(9_999), None);
    assert_eq!(within(10_000), Some(10_000));
    assert_eq!(within(19_999), Some(16_818));
    assert_eq!(within(20_000), Some(20_000));
    assert_eq!(within(u64::MAX), Some(40_000));
}

#[test]
fn there_are_one_to_sixty_four_steps_and_none_is_shorter_than_a_bucket() {
    let one = micros(10, 1);
    assert_eq!(one.steps().collect::<Vec<_>>(), [Duration::from_micros(10)]);
    assert_eq!(micros(0, 2).shortest(), Duration::from_micros(1));
    let wide = micros(1, 1_000_000);
    assert_eq!(wide.longest(), Duration::from_micros(55_110));
    assert!(wide.bucket_width() < wide.shortest());
    assert_eq!(wide.steps().count(), 64);
    let endless = DelayRange::new(Duration::MAX, Duration::MAX);
    assert_eq!(endless.steps().collect::<Vec<_>>(), [Duration::MAX]);
}

#[test]
fn buckets_are_as_narrow_as_the_longest_delay_allows() {
    for (longest_ns, width_ns) in [
        (10_000, 1),
        (131_071, 1),
        (131_072, 2),
        (262_143, 2),
        (262_144, 4),
        (97_419_264, 1_024),
    ] {
        let only = Duration::from_nanos(longest_ns);
        let range = DelayRange::new(only, only);
        let width = range.bucket_width();
        assert_eq!(width, Duration::from_nanos(width_ns), "{longest_ns} ns");
        assert!(longest_ns / width_ns < DelayRange::BUCKETS_AHEAD);
        assert_eq!(range.to_deadline(only).nanos(), longest_ns - width_ns);
    }
    let longest = DelayRange::new(Duration::MAX, Duration::MAX);
    assert_eq!(longest.bucket_width(), Duration::from_nanos(1 << 47));
}

/// A bucket of 1.024 µs is part of the 100 µs that are asked for, so that what is printed is what holds.
#[test]
fn a_delay_that_is_asked_for_is_given_with_the_bucket_in_it() {
    let mut link = link("10 Gbit/s");
    let fits = |bytes: u64| GuaranteeRequest {
        burst: ByteCount::new(bytes),
        ..request("1 Mbit/s", "1500 B", "100 us")
    };
    // 98.976 µs carry 123,720 B, one largest frame of 1,500 B included.
    assert!(link.try_admit(&fits(122_221)).is_err());
    let admitted = link.try_admit(&fits(122_220)).unwrap();
    assert_eq!(admitted.params().delay, Duration::from_micros(100));
}

fn kilobit(delay: Duration) -> GuaranteeRequest {
    GuaranteeRequest {
        delay: Some(delay),
        ..without_objective("1 kbit/s", "1500 B")
    }
}

#[test]
fn delays_are_exact_until_there_are_too_many_and_then_rounded_down_to_one_in_use_or_a_step() {
    let mut link = Admission::new(AdmissionParams {
        link: Rate::l2(BitRate::new(100_000_000_000)),
        ..params("1 bit/s")
    });
    let asked = |index: u64| Duration::from_micros(1_000 + 300 * index);
    for index in 0..128 {
        let admitted = link.try_admit(&kilobit(asked(index))).unwrap();
        assert_eq!(admitted.params().delay, asked(index));
    }
    let mut given = |micros| {
        let admitted = link.try_admit(&kilobit(Duration::from_micros(micros)));
        admitted.unwrap().params().delay
    };
    assert_eq!(given(1_450), Duration::from_micros(1_300), "one in use");
    let step = link_steps().find(|step| step.nanos() > 41_000_000).unwrap();
    assert_eq!(given(step.nanos() / 1_000 + 1), step);
    assert_eq!(given(1_600), Duration::from_micros(1_600));
}

fn link_steps() -> impl Iterator<Item = Duration> {
    params("1 bit/s").delays.steps()
}

#[test]
fn usage_is_reported_by_class() {
    let mut link = link("100 Mbit/s");
    assert_eq!(link.classes_in_use().count(), 0);
    assert_eq!(link.rate_limit(), BitRate::new(100_000_000));
    assert_eq!(link.buffer_left(), None);
    let two = link
        .try_admit_many(&request("1 Mbit/s", "3 kB", "5001024 ns"), 2)
        .unwrap();
    assert_eq!(two.count(), 2);
    link.try_admit(&request("3 Mbit/s", "50 kB", "10001024 ns"))
        .unwrap();
    assert_eq!(link.rate_left(), BitRate::new(95_000_000));
    let usage: Vec<_> = link
        .classes_in_use()
        .map(|ClassUse { reserved, slack }| {
            let delay = reserved.delay.nanos();
            (delay, reserved.count, reserved.rate, reserved.burst, slack)
        })
        .collect();
    let mbit = |rate: u64| BitRate::new(rate * 1_000_000);
    let bytes = ByteCount::new;
    // The link sends 62,500 B until the first deadline, one frame of 1,500 B included, and 125,000 B
    // until the second; before that the first two slices send 6,000 B, and then 1,250 B more.
    let expected = [
        (5_001_024, 2, mbit(2), bytes(6_000), bytes(55_000)),
        (10_001_024, 1, mbit(3), bytes(50_000), bytes(66_250)),
    ];
    assert_eq!(usage, expected);
}
