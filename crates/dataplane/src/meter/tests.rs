mod reference;

use super::MeterState;
use proptest::prelude::*;
use reference::Reference;
use slicewise_model::{Colour, ColourMode, MeterAlgorithm, Rate};
use slicewise_units::{Accounting, BitRate, ByteCount, Credit, Duration, FrameLengths, Instant};

use Colour::{Green, Red, Yellow};

const BYTE_PER_NANO: u64 = 8_000_000_000;
/// Rates of the first and the second bucket, where a test does not choose them.
const RATES: [u64; 2] = [1, 2];

fn rate(bytes_per_nano: u64) -> Rate {
    Rate::l2(BitRate::new(bytes_per_nano * BYTE_PER_NANO))
}

fn size(bytes: u64) -> ByteCount {
    ByteCount::new(bytes)
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn frame(bytes: u32) -> FrameLengths {
    FrameLengths {
        l2_bytes: bytes,
        l3_offset: 14,
    }
}

fn single_rate(cbs: u64) -> MeterAlgorithm {
    MeterAlgorithm::SingleRateTwoColour {
        cir: rate(RATES[0]),
        cbs: size(cbs),
    }
}

fn sr_tcm(cbs: u64, ebs: u64) -> MeterAlgorithm {
    MeterAlgorithm::SingleRateThreeColour {
        cir: rate(RATES[0]),
        cbs: size(cbs),
        ebs: size(ebs),
    }
}

fn tr_tcm(cbs: u64, pbs: u64) -> MeterAlgorithm {
    MeterAlgorithm::TwoRateThreeColour {
        cir: rate(RATES[0]),
        cbs: size(cbs),
        pir: rate(RATES[1]),
        pbs: size(pbs),
    }
}

fn rfc4115(cbs: u64, ebs: u64) -> MeterAlgorithm {
    MeterAlgorithm::TwoRateThreeColourEfficient {
        cir: rate(RATES[0]),
        cbs: size(cbs),
        eir: rate(RATES[1]),
        ebs: size(ebs),
    }
}

fn blind(algorithm: MeterAlgorithm) -> MeterState {
    MeterState::new(algorithm, ColourMode::Blind, Instant::ZERO)
}

/// The colours of frames of 100 bytes, by their colour and time of arrival in ns.
fn colours<const N: usize>(meter: &mut MeterState, arrivals: [(Colour, u64); N]) -> [Colour; N] {
    arrivals.map(|(incoming, nanos)| meter.colour(frame(100), incoming, at(nanos)))
}

#[test]
fn each_rate_counts_frames_its_own_way() {
    let l3 = Rate {
        rate: BitRate::new(BYTE_PER_NANO),
        accounting: Accounting::L3,
    };
    let mut meter = blind(MeterAlgorithm::TwoRateThreeColour {
        cir: l3,
        cbs: size(86),
        pir: rate(1),
        pbs: size(100),
    });
    // 100 bytes of frame are 86 bytes of packet: both buckets hold exactly one.
    assert_eq!(colours(&mut meter, [(Green, 0), (Green, 0)]), [Green, Red]);
}

#[test]
fn new_parameters_give_no_fresh_burst() {
    let changes = [
        (single_rate(200), single_rate(300), [Red, Red]),
        (sr_tcm(100, 100), sr_tcm(300, 300), [Red, Red]),
        (tr_tcm(100, 200), tr_tcm(300, 300), [Red, Red]),
        (rfc4115(100, 100), rfc4115(300, 300), [Red, Red]),
        // Another algorithm has other buckets, and starts fresh.
        (single_rate(200), sr_tcm(100, 100), [Green, Yellow]),
    ];
    for (before, after, expected) in changes {
        let mut old = blind(before);
        let emptied = (0..5).any(|_| old.colour(frame(100), Green, at(10)) == Red);
        assert!(emptied, "{before:?}");
        let mut new = MeterState::new(after, ColourMode::Blind, at(10));
        new.resume_from(&old, at(10));
        assert_eq!(
            colours(&mut new, [(Green, 10), (Green, 10)]),
            expected,
            "{before:?}"
        );
    }
}

#[test]
fn rfc_2697_gives_the_excess_bucket_what_overflowed_before_a_change() {
    let mut old = blind(sr_tcm(100, 100));
    colours(&mut old, [(Green, 0), (Green, 0)]);
    let mut new = MeterState::new(sr_tcm(100, 100), ColourMode::Blind, at(200));
    new.resume_from(&old, at(200));
    assert_eq!(
        colours(&mut new, [(Green, 200), (Green, 200), (Green, 200)]),
        [Green, Yellow, Red]
    );
}

/// The same meter with other rates, in bit/s.
fn with_rates(algorithm: MeterAlgorithm, first: u64, second: u64) -> MeterAlgorithm {
    let (cir, second) = (
        Rate::l2(BitRate::new(first)),
        Rate::l2(BitRate::new(second)),
    );
    match algorithm {
        MeterAlgorithm::SingleRateTwoColour { cbs, .. } => {
            MeterAlgorithm::SingleRateTwoColour { cir, cbs }
        }
        MeterAlgorithm::SingleRateThreeColour { cbs, ebs, .. } => {
            MeterAlgorithm::SingleRateThreeColour { cir, cbs, ebs }
        }
        MeterAlgorithm::TwoRateThreeColour { cbs, pbs, .. } => MeterAlgorithm::TwoRateThreeColour {
            cir,
            cbs,
            pir: second,
            pbs,
        },
        MeterAlgorithm::TwoRateThreeColourEfficient { cbs, ebs, .. } => {
            MeterAlgorithm::TwoRateThreeColourEfficient {
                cir,
                cbs,
                eir: second,
                ebs,
            }
        }
    }
}

/// A byte takes 10 ns. RFC 2697 adds it at 10, 20, 30 ns…, here it is earned continuously: of a
/// bucket emptied at 5 ns, 99 1/2 bytes are back at 1000 ns and not 100.
#[test]
fn a_frame_that_costs_all_tokens_of_the_rfc_may_conform_up_to_a_byte_s_time_later() {
    let algorithm = with_rates(sr_tcm(100, 100), BYTE_PER_NANO / 10, 0);
    let mut meter = blind(algorithm);
    let mut reference = Reference::new(algorithm, false);
    for expected in [Green, Yellow, Red] {
        assert_eq!(meter.colour(frame(100), Green, at(5)), expected);
        assert_eq!(reference.colour(100, Green, 5), expected);
    }
    assert_eq!(reference.colour(100, Green, 1_000), Green);
    assert_eq!(meter.colour(frame(100), Green, at(1_000)), Red);
    assert_eq!(meter.colour(frame(100), Green, at(1_004)), Red);
    assert_eq!(meter.colour(frame(100), Green, at(1_005)), Green);
}

fn algorithm() -> impl Strategy<Value = MeterAlgorithm> {
    let burst = 1..400u64;
    (0..4u8, burst.clone(), burst).prop_map(|(kind, first, second)| match kind {
        0 => single_rate(first),
        1 => sr_tcm(first, second),
        2 => tr_tcm(first, second),
        _ => rfc4115(first, second),
    })
}

fn colour() -> impl Strategy<Value = Colour> {
    prop_oneof![Just(Green), Just(Yellow), Just(Red)]
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, Colour)>> {
    prop::collection::vec((0..120u64, 1..200u32, colour()), 1..80)
}

/// A bound on output: at most `burst + rate·t` in any window.
fn holds_bound(passed: &[(u64, u32)], bytes_per_nano: u64, burst: u64) -> bool {
    (0..passed.len()).all(|first| {
        let mut output = 0;
        passed[first..].iter().all(|&(end, bytes)| {
            output += u64::from(bytes);
            output <= burst + bytes_per_nano * (end - passed[first].0)
        })
    })
}

fn every(interval: u64, algorithm: MeterAlgorithm, now: u64) -> MeterState {
    let interval = Some(Duration::from_nanos(interval));
    MeterState::with_interval(algorithm, ColourMode::Blind, interval, at(now))
}

#[test]
fn a_bucket_is_replenished_at_multiples_of_its_interval_and_not_between() {
    let mut meter = every(1_000, single_rate(100), 0);
    let seen = colours(
        &mut meter,
        [(Green, 0), (Green, 999), (Green, 1_000), (Green, 1_001)],
    );
    assert_eq!(seen, [Green, Red, Green, Red]);
    // Intervals are counted from time zero, whenever the meter began.
    let mut meter = every(1_000, single_rate(100), 1_900);
    let seen = colours(&mut meter, [(Green, 1_900), (Green, 1_999), (Green, 2_000)]);
    assert_eq!(seen, [Green, Red, Green]);
}

#[test]
fn a_bucket_below_rate_times_interval_loses_what_it_cannot_hold() {
    // A byte a nanosecond, 1,000 bytes an interval: of these 300 or all, and a frame of 100 every 100 ns.
    for (burst, expected) in [(300, 3), (1_000, 10), (2_000, 10)] {
        let mut meter = every(1_000, single_rate(burst), 0);
        for _ in 0..20 {
            let _ = meter.colour(frame(100), Green, at(0));
        }
        let mut green = 0;
        for n in 10..110 {
            green += u32::from(meter.colour(frame(100), Green, at(n * 100)) == Green);
        }
        assert_eq!(green, 10 * expected, "{burst}");
    }
}

#[test]
fn a_change_within_an_interval_earns_nothing_before_its_end() {
    let mut old = every(1_000, single_rate(100), 0);
    colours(&mut old, [(Green, 10)]);
    let mut new = every(1_000, single_rate(200), 500);
    new.resume_from(&old, at(500));
    assert_eq!(
        colours(&mut new, [(Green, 600), (Green, 1_000)]),
        [Red, Green]
    );
    // Replenished continuously from then on, it has earned since the last multiple.
    let mut continuous = blind(single_rate(200));
    continuous.resume_from(&old, at(500));
    assert_eq!(colours(&mut continuous, [(Green, 500)]), [Green]);
}

proptest! {
    /// Of any algorithm: a meter with an interval knows no time between its multiples.
    #[test]
    fn colours_as_if_all_frames_of_an_interval_came_at_its_start(
        algorithm in algorithm(),
        is_aware in any::<bool>(),
        interval in 1..500u64,
        arrivals in arrivals(),
    ) {
        let mode = if is_aware { ColourMode::Aware } else { ColourMode::Blind };
        let duration = Some(Duration::from_nanos(interval));
        let mut meter = MeterState::with_interval(algorithm, mode, duration, Instant::ZERO);
        let mut reference = Reference::new(algorithm, is_aware);
        let mut now = 0;
        for (gap, bytes, incoming) in arrivals {
            now += gap;
            let expected = reference.colour(u64::from(bytes), incoming, now / interval * interval);
            prop_assert_eq!(meter.colour(frame(bytes), incoming, at(now)), expected);
        }
    }

    /// The reference adds token by token, as the RFCs word it. A nanosecond earns whole bytes.
    #[test]
    fn colours_as_the_rfc_text_does(
        algorithm in algorithm(),
        is_aware in any::<bool>(),
        arrivals in arrivals(),
    ) {
        let mode = if is_aware { ColourMode::Aware } else { ColourMode::Blind };
        let mut meter = MeterState::new(algorithm, mode, Instant::ZERO);
        let mut reference = Reference::new(algorithm, is_aware);
        let mut now = 0;
        for (gap, bytes, incoming) in arrivals {
            now += gap;
            let expected = reference.colour(u64::from(bytes), incoming, now);
            prop_assert_eq!(meter.colour(frame(bytes), incoming, at(now)), expected);
        }
    }

    /// At any rate: a frame is coloured otherwise only where it costs exactly what a counter of
    /// the RFC holds, and never better.
    #[test]
    fn colours_otherwise_than_the_rfc_text_only_where_the_last_token_decides(
        algorithm in algorithm(),
        is_aware in any::<bool>(),
        first in 40_000_000..2 * BYTE_PER_NANO,
        more in 0..2 * BYTE_PER_NANO,
        stretch in 1..20u64,
        arrivals in arrivals(),
    ) {
        let algorithm = with_rates(algorithm, first, first + more);
        let mode = if is_aware { ColourMode::Aware } else { ColourMode::Blind };
        let mut meter = MeterState::new(algorithm, mode, Instant::ZERO);
        let mut reference = Reference::new(algorithm, is_aware);
        let strict = matches!(algorithm, MeterAlgorithm::TwoRateThreeColourEfficient { .. });
        let mut now = 0;
        for (gap, bytes, incoming) in arrivals {
            now += gap * stretch;
            let expected = reference.colour(u64::from(bytes), incoming, now);
            let colour = meter.colour(frame(bytes), incoming, at(now));
            if colour != expected {
                let left = u64::from(strict);
                prop_assert!(colour > expected);
                prop_assert!(reference.committed == left || reference.second == left);
                break;
            }
        }
    }

    #[test]
    fn green_and_yellow_stay_within_rate_and_burst(
        algorithm in algorithm(),
        is_aware in any::<bool>(),
        arrivals in arrivals(),
    ) {
        let mode = if is_aware { ColourMode::Aware } else { ColourMode::Blind };
        let mut meter = MeterState::new(algorithm, mode, Instant::ZERO);
        let (mut green, mut yellow, mut either) = (Vec::new(), Vec::new(), Vec::new());
        let mut now = 0;
        for (gap, bytes, incoming) in arrivals {
            now += gap;
            match meter.colour(frame(bytes), incoming, at(now)) {
                Green => green.push((now, bytes)),
                Yellow => yellow.push((now, bytes)),
                Red => continue,
            }
            either.push((now, bytes));
        }
        let [cir, second] = RATES;
        match algorithm {
            MeterAlgorithm::SingleRateTwoColour { cbs, .. } => {
                prop_assert!(holds_bound(&green, cir, cbs.bytes()));
                prop_assert!(yellow.is_empty());
            }
            MeterAlgorithm::SingleRateThreeColour { cbs, ebs, .. } => {
                prop_assert!(holds_bound(&green, cir, cbs.bytes()));
                prop_assert!(holds_bound(&either, cir, cbs.bytes() + ebs.bytes()));
            }
            MeterAlgorithm::TwoRateThreeColour { cbs, pbs, .. } => {
                prop_assert!(holds_bound(&green, cir, cbs.bytes()));
                prop_assert!(holds_bound(&either, second, pbs.bytes()));
            }
            MeterAlgorithm::TwoRateThreeColourEfficient { cbs, ebs, .. } => {
                prop_assert!(holds_bound(&green, cir, cbs.bytes()));
                prop_assert!(holds_bound(&yellow, second, ebs.bytes()));
            }
        }
    }

    /// A billion packets pass in one leap: what is green over any time is what the rate earned.
    #[test]
    fn does_not_drift_over_years(rate in 1..400_000_000_000u64, years in 1..50u64) {
        let cbs = Credit::earned(BitRate::new(rate), Duration::from_secs(1)).whole_bytes();
        let cir = Rate::l2(BitRate::new(rate));
        let mut meter = blind(MeterAlgorithm::SingleRateTwoColour { cir, cbs });
        let whole = FrameLengths { l2_bytes: u32::try_from(cbs.bytes().clamp(1, 1 << 31)).unwrap(), l3_offset: 0 };
        let fits = cbs.bytes() >= u64::from(whole.l2_bytes);
        let later = Instant::ZERO + Duration::from_secs(31_557_600) * years;
        for now in [Instant::ZERO, later] {
            let expected = if fits { cbs.bytes() / u64::from(whole.l2_bytes) } else { 0 };
            for _ in 0..expected {
                prop_assert_eq!(meter.colour(whole, Green, now), Green);
            }
            prop_assert_eq!(meter.colour(whole, Green, now), Red);
        }
    }
}
