use super::TokenBucket;
use proptest::prelude::*;
use slicewise_model::Rate;
use slicewise_units::{
    Accounting, BitRate, ByteCount, Credit, Duration, FrameLengths, Instant, Layer,
};

fn bucket(bits_per_second: u64, burst_bytes: u64) -> TokenBucket {
    let rate = Rate::l2(BitRate::new(bits_per_second));
    TokenBucket::full(rate, ByteCount::new(burst_bytes), Instant::ZERO)
}

fn bytes(bytes: u64) -> Credit {
    Credit::for_bytes(ByteCount::new(bytes))
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn a_bucket_that_goes_on_with_the_credit_of_another_knows_its_own_burst() {
    let frame = FrameLengths {
        l2_bytes: 1_000,
        l3_offset: 14,
    };
    let (mut old, mut new) = (bucket(8_000_000_000, 1_000), bucket(8_000_000_000, 3_000));
    old.charge(frame, Instant::ZERO);
    new.resume_from(&old, Instant::ZERO);
    assert_eq!(new.wait_until(frame, Instant::ZERO), Some(at(1_000)));
}

#[test]
fn spends_only_its_credit_unless_debt_is_requested() {
    let mut bucket = bucket(8_000_000_000, 1_500);
    assert!(bucket.try_spend(bytes(1_500)));
    assert!(!bucket.try_spend(bytes(1)));
    assert_eq!(bucket.credit(), Credit::ZERO);
    bucket.spend(bytes(100));
    assert_eq!(bucket.credit(), -bytes(100));
    assert_eq!(bucket.ready_at(bytes(1_500)), Some(at(1_600)));
}

#[test]
fn never_becomes_ready_for_more_than_its_burst_or_without_a_rate() {
    let bucket_of_1500 = bucket(8_000_000_000, 1_500);
    assert_eq!(bucket_of_1500.ready_at(bytes(1_501)), None);
    assert!(bucket_of_1500.ready_at(bytes(1_500)).is_some());
    let mut without_rate = bucket(0, 1_500);
    assert_eq!(without_rate.ready_at(bytes(1_500)), Some(Instant::ZERO));
    without_rate.spend(bytes(1));
    assert_eq!(without_rate.ready_at(bytes(1_500)), None);
    assert_eq!(without_rate.refill(Instant::MAX), bytes(1_499));
}

#[test]
fn charges_what_its_accounting_counts() {
    let frame = FrameLengths {
        l2_bytes: 1_514,
        l3_offset: 14,
    };
    let rate = BitRate::new(1_000_000);
    let cost = |layer| {
        let accounting = Accounting {
            layer,
            overhead_bytes: 0,
            in_atm_cells: false,
        };
        TokenBucket::full(
            Rate { rate, accounting },
            ByteCount::new(9_000),
            Instant::ZERO,
        )
        .cost(frame)
    };
    assert_eq!(cost(Layer::L1), bytes(1_538));
    assert_eq!(cost(Layer::L2), bytes(1_514));
    assert_eq!(cost(Layer::L3), bytes(1_500));
}

/// Seven 1500-byte frames at 17.5 Mbit/s take 4.8 ms exactly, though one takes 685,714 2/7 ns.
/// After every period the state is what it was, so a billion frames are as exact as seven.
#[test]
fn a_billion_frames_take_exactly_their_time() {
    const PERIODS: u64 = 100_000;
    let cost = bytes(1_500);
    let mut bucket = bucket(17_500_000, 3_000);
    bucket.spend(bytes(3_000));
    let mut now = Instant::ZERO;
    for period in 1..=PERIODS {
        for _ in 0..7 {
            now = bucket.ready_at(cost).unwrap();
            bucket.refill(now);
            assert!(bucket.try_spend(cost), "ready when it said so");
        }
        assert_eq!(now, Instant::ZERO + Duration::from_micros(4_800) * period);
        assert_eq!(
            bucket.credit(),
            Credit::ZERO,
            "nothing left over, nothing owed"
        );
    }
    // The same state 142,757,143 periods later: the 1,000,000,001st frame.
    let leap = Duration::from_micros(4_800) * (1_000_000_001 / 7 - PERIODS);
    let mut later = bucket;
    later.spend(Credit::earned(BitRate::new(17_500_000), leap));
    assert_eq!(later.refill(now + leap), bucket.credit());
}

/// Time is in whole nanoseconds, so a bucket that must be full to pass a frame is found full
/// up to a nanosecond late, and what it could not hold meanwhile is lost: the bound
/// burst + rate·t comes first.
#[test]
fn a_burst_of_one_frame_loses_less_than_a_nanosecond_each_time_it_fills() {
    let cost = bytes(1_500);
    let mut bucket = bucket(17_500_000, 1_500);
    bucket.spend(cost);
    let mut now = Instant::ZERO;
    for frames in 1..=1_000u64 {
        now = bucket.ready_at(cost).unwrap();
        bucket.refill(now);
        bucket.spend(cost);
        let exact = frames * 4_800_000 / 7;
        assert!((exact..=exact + frames).contains(&now.nanos()));
    }
    assert_eq!(now, at(685_715_000), "685,714 2/7 ns each, rounded up");
}

#[test]
fn a_million_irregular_refills_earn_to_the_nanobit_what_one_does() {
    let rate = 999_999_937;
    let mut bucket = bucket(rate, u64::MAX);
    bucket.set_credit(Credit::ZERO);
    let mut now = Instant::ZERO;
    // A linear congruential sequence: steps from 0 to 1 s without pattern.
    let mut state = 1u64;
    for _ in 0..1_000_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        now += Duration::from_nanos((state >> 33) % 1_000_000_000);
        bucket.refill(now);
    }
    assert!(now > Instant::ZERO + Duration::from_secs(400_000));
    assert_eq!(
        bucket.credit(),
        Credit::earned(BitRate::new(rate), now - Instant::ZERO)
    );
}

#[test]
fn resumes_with_the_credit_or_debt_of_the_old_one_and_creates_none() {
    let mut old = bucket(8_000_000_000, 1_500);
    old.spend(bytes(2_000));
    let mut larger = bucket(1_000_000, 9_000);
    larger.resume_from(&old, at(100));
    assert_eq!(
        larger.credit(),
        -bytes(400),
        "earned at the old rate until the change"
    );
    assert_eq!(
        larger.refill(at(100)),
        -bytes(400),
        "nothing is earned twice"
    );
    let mut smaller = bucket(1_000_000, 64);
    smaller.resume_from(&old, at(10_000));
    assert_eq!(smaller.credit(), bytes(64));
}

/// The same with credit as a signed number, as text defines it.
struct Exact {
    rate: u64,
    burst: i128,
    credit: i128,
    updated: Instant,
}

impl Exact {
    /// Returns what the bucket could not hold.
    fn refill(&mut self, now: Instant) -> i128 {
        let passed = now.saturating_since(self.updated).nanos();
        self.updated = self.updated.max(now);
        let total = self.credit + i128::from(self.rate) * i128::from(passed);
        self.credit = total.min(self.burst);
        total - self.credit
    }

    fn try_spend(&mut self, cost: i128) -> bool {
        let covered = self.credit >= cost;
        self.credit -= if covered { cost } else { 0 };
        covered
    }

    fn wait_until(&self, cost: i128) -> Option<Instant> {
        let missing = u128::try_from(cost.min(self.burst) - self.credit).ok();
        let missing = missing.filter(|&missing| missing > 0)?;
        let wait = missing.checked_add(u128::from(self.rate).saturating_sub(1));
        let wait = wait.and_then(|most| most.checked_div(self.rate.into()));
        let wait = wait.and_then(|wait| u64::try_from(wait).ok());
        Some(wait.map_or(Instant::MAX, |wait| {
            self.updated.saturating_add(Duration::from_nanos(wait))
        }))
    }
}

/// Small numbers, where most decisions are close, and the largest ones.
fn up_to(small: u64, large: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..small, 1 => Just(large), 1 => 0..=large]
}

fn steps() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..3_000_000u64, 40..2_000u64), 1..60)
}

proptest! {
    #[test]
    fn passes_at_most_burst_plus_rate_times_time_in_any_window(
        rate in 1..2_000_000_000u64,
        burst in 0..20_000u64,
        steps in steps(),
    ) {
        let mut bucket = bucket(rate, burst);
        let mut now = Instant::ZERO;
        let mut passed = Vec::new();
        for (gap, size) in steps {
            now += Duration::from_nanos(gap);
            bucket.refill(now);
            if bucket.try_spend(bytes(size)) {
                passed.push((now, bytes(size)));
            }
        }
        for first in 0..passed.len() {
            let mut output = Credit::ZERO;
            for &(end, size) in &passed[first..] {
                output += size;
                let allowed = bytes(burst) + Credit::earned(BitRate::new(rate), end - passed[first].0);
                prop_assert!(output <= allowed);
            }
        }
    }

    #[test]
    fn is_as_exact_as_signed_credit(
        rate in up_to(2_000_000_000, 1 << 62),
        burst in up_to(20_000, u64::MAX),
        steps in prop::collection::vec((up_to(3_000_000, u64::MAX), up_to(2_000, u32::MAX.into()), 0..4u8), 1..60),
    ) {
        let mut bucket = bucket(rate, burst);
        let mut now = Instant::ZERO;
        let burst = bytes(burst).nanobits();
        let mut exact = Exact { rate, burst, credit: burst, updated: now };
        let mut last = 1;
        for (gap, size, step) in steps {
            // Often the size is that of the frame before.
            last = if gap % 3 == 0 { last } else { size };
            let size = last;
            // Now and then, time goes backwards.
            now = if gap % 16 == 1 { at(now.nanos() / 2) } else { now + Duration::from_nanos(gap) };
            let size = bytes(size.max(1));
            let frame = FrameLengths {
                l2_bytes: u32::try_from(size.whole_bytes().bytes()).unwrap(),
                l3_offset: 14,
            };
            let overflow = exact.refill(now);
            match step {
                0 => prop_assert_eq!(bucket.wait_until(frame, now), exact.wait_until(size.nanobits())),
                1 => {
                    bucket.charge(frame, now);
                    exact.credit -= size.nanobits();
                }
                2 => {
                    bucket.refill(now);
                    prop_assert_eq!(bucket.try_spend(size), exact.try_spend(size.nanobits()));
                }
                _ => prop_assert_eq!(bucket.refill_with_overflow(now).nanobits(), overflow),
            }
            prop_assert_eq!(bucket.credit().nanobits(), exact.credit);
        }
    }

    #[test]
    fn time_going_backwards_earns_nothing(
        rate in 1..2_000_000_000u64,
        times in prop::collection::vec(0..1_000_000_000u64, 1..60),
    ) {
        let mut bucket = bucket(rate, u64::MAX);
        bucket.set_credit(Credit::ZERO);
        let mut latest = 0;
        for nanos in times {
            latest = latest.max(nanos);
            let credit = bucket.refill(at(nanos));
            prop_assert_eq!(credit, Credit::earned(BitRate::new(rate), Duration::from_nanos(latest)));
        }
    }

    #[test]
    fn is_ready_at_the_first_nanosecond_it_says(
        rate in 1..2_000_000_000u64,
        debt in 0..100_000u64,
        burst in 1..20_000u64,
    ) {
        let mut bucket = bucket(rate, burst);
        bucket.set_credit(-bytes(debt));
        let cost = bytes(burst);
        let ready = bucket.ready_at(cost).unwrap();
        let mut early = bucket;
        prop_assert!(early.refill(at(ready.nanos() - 1)) < cost);
        prop_assert_eq!(early.ready_at(cost), Some(ready), "asking early changes nothing");
        prop_assert!(bucket.refill(ready) >= cost);
    }

    #[test]
    fn overflow_and_credit_sum_to_what_was_earned(
        rate in 1..2_000_000_000u64,
        burst in 0..20_000u64,
        steps in steps(),
    ) {
        let mut bucket = bucket(rate, burst);
        let mut now = Instant::ZERO;
        for (gap, size) in steps {
            let before = bucket.credit();
            let gap = Duration::from_nanos(gap);
            now += gap;
            let overflow = bucket.refill_with_overflow(now);
            prop_assert!(overflow >= Credit::ZERO);
            prop_assert_eq!(bucket.credit() + overflow, before + Credit::earned(BitRate::new(rate), gap));
            prop_assert!(overflow == Credit::ZERO || bucket.credit() == bytes(burst));
            bucket.spend(bytes(size));
        }
    }
}
