//! Delay classes and their usage.

use super::support::*;
use slicewise_model::{ClassUse, DelayClasses};
use slicewise_units::{BitRate, ByteCount, Duration};

fn micros(shortest: u64, longest: u64) -> DelayClasses {
    DelayClasses::geometric(
        Duration::from_micros(shortest),
        Duration::from_micros(longest),
    )
}

#[test]
fn four_classes_to_a_doubling_as_far_as_the_longest() {
    let classes = micros(10, 40);
    let nanos: Vec<u64> = classes.delays().iter().map(|d| d.nanos()).collect();
    let expected = [
        10_000, 11_892, 14_142, 16_818, 20_000, 23_784, 28_284, 33_636, 40_000,
    ];
    assert_eq!(nanos, expected);
    assert_eq!(classes.shortest(), Duration::from_micros(10));
    assert_eq!(classes.longest(), Duration::from_micros(40));
    let position = |nanos| classes.position(Duration::from_nanos(nanos));
    let positions = expected.map(|nanos| position(nanos).unwrap());
    assert!(positions.into_iter().eq(0..9));
    assert_eq!(position(20_001), None);
}

#[test]
fn there_are_one_to_sixty_four_classes() {
    let one = micros(10, 1);
    assert_eq!(one.delays(), [Duration::from_micros(10)]);
    assert_eq!(micros(0, 1).shortest(), Duration::from_micros(1));
    let all = DelayClasses::geometric(Duration::from_micros(1), Duration::MAX);
    assert_eq!(all.delays().len(), 64);
    assert_eq!(all.longest(), Duration::from_nanos(55_109_222));
    let endless = DelayClasses::geometric(Duration::MAX, Duration::MAX);
    assert_eq!(endless.delays(), [Duration::MAX]);
}

#[test]
fn two_have_the_delays_of_both_once() {
    let nanos = |classes: &DelayClasses| -> Vec<u64> {
        let delays = classes.delays().iter();
        delays.map(|delay| delay.nanos()).collect()
    };
    let (one, other) = (micros(10, 20), micros(12, 24));
    let both = one.union(&other).unwrap();
    assert_eq!(other.union(&one).unwrap(), both);
    let expected = [
        10_000, 11_892, 12_000, 14_142, 14_270, 16_818, 16_970, 20_000, 20_181, 24_000,
    ];
    assert_eq!(nanos(&both), expected);
    assert_eq!(one.union(&micros(10, 40)), Some(micros(10, 40)));
    let many = |nanos| DelayClasses::geometric(Duration::from_nanos(nanos), Duration::MAX);
    let most = many(1_000).union(&many(1_001)).unwrap();
    assert_eq!(most.delays().len(), 128);
    assert_eq!(most.union(&many(1_003)), None);
}

#[test]
fn an_objective_is_rounded_down_to_a_class() {
    let classes = micros(10, 40);
    let within = |nanos| {
        let delay = classes.within(Duration::from_nanos(nanos));
        delay.map(Duration::nanos)
    };
    assert_eq!(within(9_999), None);
    assert_eq!(within(10_000), Some(10_000));
    assert_eq!(within(19_999), Some(16_818));
    assert_eq!(within(20_000), Some(20_000));
    assert_eq!(within(u64::MAX), Some(40_000));
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
        let classes = DelayClasses::geometric(only, only);
        let width = classes.bucket_width();
        assert_eq!(width, Duration::from_nanos(width_ns), "{longest_ns} ns");
        assert!(longest_ns / width_ns < DelayClasses::BUCKETS_AHEAD);
    }
    let longest = DelayClasses::geometric(Duration::MAX, Duration::MAX);
    assert_eq!(longest.bucket_width(), Duration::from_nanos(1 << 47));
}

#[test]
fn usage_is_reported_by_class() {
    let mut link = link("100 Mbit/s");
    assert_eq!(link.classes_in_use().count(), 0);
    assert_eq!(link.rate_limit(), BitRate::new(100_000_000));
    assert_eq!(link.buffer_left(), None);
    let two = link
        .try_admit_many(&request("1 Mbit/s", "3 kB", "5 ms"), 2)
        .unwrap();
    assert_eq!(two.count(), 2);
    link.try_admit(&request("3 Mbit/s", "50 kB", "10 ms"))
        .unwrap();
    assert_eq!(link.rate_left(), BitRate::new(95_000_000));
    let usage: Vec<_> = link
        .classes_in_use()
        .map(|class| {
            let ClassUse {
                delay,
                count,
                rate,
                burst,
                slack,
                ..
            } = class;
            (delay.nanos(), count, rate, burst, slack)
        })
        .collect();
    let mbit = |rate: u64| BitRate::new(rate * 1_000_000);
    let bytes = ByteCount::new;
    // The link sends 53,817.6 B in the first delay, one frame of 1,500 B included, and 107,635.2 B
    // in the second; before that the first two slices send 6,000 B, and then 1,076.352 B more.
    let expected = [
        (4_305_408, 2, mbit(2), bytes(6_000), bytes(46_317)),
        (8_610_816, 1, mbit(3), bytes(50_000), bytes(49_058)),
    ];
    assert_eq!(usage, expected);
}
