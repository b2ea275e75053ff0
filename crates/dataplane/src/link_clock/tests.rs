use super::LinkClock;
use proptest::prelude::*;
use slicewise_units::{BitRate, ByteCount, Duration, Instant};

const GIGABIT: u64 = 1_000_000_000;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// 64 bytes at 400 Gbit/s last 1.28 ns, so 25 of them last 32 ns and leave no remainder. The
/// state then recurs, and what holds for a million frames holds for a billion.
#[test]
fn a_billion_64_byte_frames_at_400_gbit_per_second_last_1_28_seconds() {
    let frame = ByteCount::new(64);
    let mut link = LinkClock::new(BitRate::new(400 * GIGABIT));
    let mut now = Instant::ZERO;
    for n in 1..=1_000_000u64 {
        // Each frame is sent at the moment the link said it was free.
        now = link.send(frame, now);
        assert_eq!(now, at((n * 128).div_ceil(100)));
        assert_eq!(link.spare == 0, n % 25 == 0);
    }
    assert_eq!(now, Instant::ZERO + Duration::from_micros(1_280));
    // The other 999 million in one piece.
    let rest = ByteCount::new(64 * 999_000_000);
    assert_eq!(
        link.send(rest, now),
        Instant::ZERO + Duration::from_millis(1_280)
    );
    assert_eq!(link.spare, 0);
}

#[test]
fn the_current_frame_takes_no_longer_than_on_the_faster_of_two_links() {
    let (slow, fast) = (BitRate::new(GIGABIT), BitRate::new(3 * GIGABIT));
    let mut link = LinkClock::new(fast);
    // 1501 B last 4002.67 ns at 3 Gbit/s, and 12,008 ns at 1 Gbit/s.
    link.send(ByteCount::new(1_501), at(0));
    link.set_rate(slow, at(3));
    assert_eq!(link.free_at(), at(4_003));
    assert_eq!(link.send(ByteCount::new(1_501), at(0)), at(16_011));
    link.set_rate(fast, at(10_011));
    assert_eq!(link.free_at(), at(12_011), "a third of 6,000 ns");
    link.set_rate(slow, at(20_000));
    assert_eq!(link.free_at(), at(12_011), "it is idle");
}

#[test]
fn extreme_sizes_and_rates_do_not_overflow() {
    let mut slow = LinkClock::new(BitRate::new(1));
    assert_eq!(slow.send(ByteCount::new(u64::MAX), at(0)), Instant::MAX);
    assert_eq!(slow.send(ByteCount::new(1), at(0)), Instant::MAX);
    let mut fast = LinkClock::new(BitRate::new(u64::MAX));
    assert_eq!(fast.send(ByteCount::new(1), at(0)), at(1));
    assert_eq!(fast.send(ByteCount::new(1), Instant::MAX), Instant::MAX);
}

proptest! {
    /// Compared with a link in exact arithmetic: never late, and early by less than a nanosecond,
    /// however long it runs.
    #[test]
    fn stays_within_a_nanosecond_of_an_exact_link(
        rate in 1_000..400_000_000_000u64,
        frames in prop::collection::vec((0..20_000u64, 1..3_000u64, any::<bool>()), 1..100),
    ) {
        let mut link = LinkClock::new(BitRate::new(rate));
        // Time in 1/rate ns, in which every frame lasts a whole number.
        let rate = u128::from(rate);
        let mut exact_free: u128 = 0;
        let mut now = Instant::ZERO;
        for (gap, size, saturate) in frames {
            now = if saturate { now.max(link.free_at()) } else { now + Duration::from_nanos(gap) };
            exact_free = exact_free.max(u128::from(now.nanos()) * rate)
                + u128::from(size) * 8 * 1_000_000_000;
            let exact = u64::try_from(exact_free.div_ceil(rate)).unwrap();
            let sent = link.send(ByteCount::new(size), now).nanos();
            prop_assert!(sent == exact || sent + 1 == exact, "{} beside {}", sent, exact);
            prop_assert_eq!(link.free_at(), at(sent));
        }
    }
}
