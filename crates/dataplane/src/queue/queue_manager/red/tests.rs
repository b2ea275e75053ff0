mod reference;

use super::{RedDecision, RedState};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use reference::ReferenceRed;
use slicewise_model::{RedCurve, WredParams};
use slicewise_units::{Duration, Instant};

use RedDecision::{Admit, DropEarly, DropForced};

const PACKET: Duration = Duration::from_micros(100);

fn curve(min_packets: u32, max_packets: u32, mark_denominator: u32) -> RedCurve {
    RedCurve {
        min_packets,
        max_packets,
        mark_denominator,
    }
}

fn params(curve: RedCurve, exponential_weight: u8) -> WredParams {
    WredParams {
        curves: vec![curve; 64],
        exponential_weight,
        typical_transmission: PACKET,
        ecn: false,
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A source that must not be used, and one that always returns the same number.
struct Fixed(Option<u32>);

impl rand_core::TryRng for Fixed {
    type Error = std::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.0.expect("no random number is needed here"))
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.try_next_u32().map(u64::from)
    }
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
        unreachable!("RED draws one word at a time")
    }
}

/// The state of a queue that has long held `queue_packets`; weight 1/2, so that it soon is.
fn settled(curve: RedCurve, queue_packets: u32) -> RedState {
    let mut red = RedState::new(&params(curve, 1));
    for _ in 0..80 {
        red.average.sample(queue_packets);
    }
    assert_eq!(
        red.average_packets_milli(),
        u64::from(queue_packets) * 1_000
    );
    red
}

#[test]
fn equal_thresholds_are_a_step() {
    for exponent in [1, 9, 16] {
        let mut red = RedState::new(&params(curve(5, 5, 1), exponent));
        let mut admitted = 0u32;
        while red.on_arrival(10, 0, Instant::ZERO, &mut Fixed(None)) == Admit {
            admitted += 1;
        }
        // 10·(1 − (1 − w)^n) ≥ 5 first holds at n = ln 2 / −ln(1 − w).
        let weight = 0.5f64.powi(i32::from(exponent));
        let expected = (0.5f64.ln() / (1.0 - weight).ln()).ceil();
        assert_eq!(f64::from(admitted + 1), expected, "weight 2^-{exponent}");
        assert_eq!(
            red.on_arrival(10, 0, Instant::ZERO, &mut Fixed(None)),
            DropForced
        );
    }
}

#[test]
fn thresholds_1_1_1_allow_a_queue_of_one_packet_forever() {
    let mut red = RedState::new(&params(curve(1, 1, 1), 9));
    for _ in 0..1_000_000 {
        assert_eq!(red.on_arrival(1, 0, Instant::ZERO, &mut Fixed(None)), Admit);
    }
    assert_eq!(red.average_packets_milli(), 999, "close to 1, never there");
    assert_eq!(
        red.on_arrival(2, 0, Instant::ZERO, &mut Fixed(None)),
        DropForced
    );
}

#[test]
fn at_min_exactly_nothing_is_dropped() {
    let mut red = settled(curve(10, 20, 10), 10);
    for _ in 0..1_000 {
        assert_eq!(
            red.on_arrival(10, 0, Instant::ZERO, &mut Fixed(Some(0))),
            Admit
        );
    }
}

/// At 15 packets between 10 and 20 with a denominator of 5, p_b is 1/10. The figure's count is 1
/// for the packet after a drop, so gaps are uniform over 1 to 9.
#[test]
fn drops_are_spread_evenly() {
    let mut red = settled(curve(10, 20, 5), 15);
    let mut random = random(1);
    let mut gaps = [0u32; 12];
    let mut gap = 0;
    let mut drops = 0u32;
    while drops < 90_001 {
        gap += 1;
        if red.on_arrival(15, 0, Instant::ZERO, &mut random) == DropEarly {
            if drops > 0 {
                gaps[gap] += 1;
            }
            drops += 1;
            gap = 0;
        }
    }
    assert_eq!((gaps[0], gaps[10], gaps[11]), (0, 0, 0));
    // 10,000 expected of each, standard deviation 94.
    assert!(
        gaps[1..=9].iter().all(|n| n.abs_diff(10_000) < 5 * 94),
        "{gaps:?}"
    );
}

/// At 15 packets p_b is 1/10: the largest random number is still admitted up to a count of 8, and
/// nothing is at 9.
#[test]
fn the_count_continues_at_min_and_restarts_below_it() {
    const LAST: Fixed = Fixed(Some(u32::MAX));
    let after = |between: u32| {
        let mut red = settled(curve(10, 20, 5), 15);
        for _ in 0..9 {
            assert_eq!(red.on_arrival(15, 0, Instant::ZERO, &mut { LAST }), Admit);
        }
        red.average.value = u64::from(between) << super::FRACTION_BITS;
        assert_eq!(
            red.on_arrival(between, 0, Instant::ZERO, &mut { LAST }),
            Admit
        );
        red.average.value = 15 << super::FRACTION_BITS;
        red.on_arrival(15, 0, Instant::ZERO, &mut { LAST })
    };
    assert_eq!(after(10), DropEarly);
    assert_eq!(after(9), Admit);
}

#[test]
fn extreme_parameters_neither_overflow_nor_divide_by_zero() {
    let extreme = WredParams {
        curves: vec![
            curve(0, u32::MAX, u32::MAX),
            curve(u32::MAX, u32::MAX, 0),
            curve(3, 2, 0),
        ],
        exponential_weight: 0,
        typical_transmission: Duration::ZERO,
        ecn: false,
    };
    for exponent in [0, 1, 16, 255] {
        let mut red = RedState::new(&WredParams {
            exponential_weight: exponent,
            ..extreme.clone()
        });
        for dscp in [0, 1, 2, 255] {
            for (queue_packets, nanos) in [(u32::MAX, 0), (0, u64::MAX), (u32::MAX, 5), (0, 3)] {
                for word in [0, u32::MAX] {
                    let _ = red.on_arrival(queue_packets, dscp, at(nanos), &mut Fixed(Some(word)));
                    red.on_empty(at(nanos));
                }
            }
        }
    }
}

/// Arrivals: ns since the last one, change of the queue, code point.
fn arrivals() -> impl Strategy<Value = Vec<(u64, i8, u8)>> {
    let gap = prop_oneof![0..10_000u64, 0..10_000_000u64];
    prop::collection::vec((gap, -6..9i8, 0..2u8), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn follows_the_paper_in_floating_point(
        exponent in 1..=16u8,
        curves in [(0..8u32, 0..40u32, 1..50u32), (0..8u32, 0..40u32, 1..50u32)],
        arrivals in arrivals(),
        seed in any::<u64>(),
    ) {
        let curves = curves.map(|(min, range, denominator)| curve(min, (min + range).max(1), denominator));
        let mut params = params(curves[0], exponent);
        params.curves[1] = curves[1];
        let mut red = RedState::new(&params);
        let mut reference = ReferenceRed::new(exponent, PACKET);
        let mut random = random(seed);
        let (mut now, mut queue_packets) = (Instant::ZERO, 0u32);
        for (gap, change, dscp) in arrivals {
            now += Duration::from_nanos(gap);
            let left = queue_packets.saturating_add_signed(i32::from(change));
            if left == 0 && queue_packets > 0 {
                red.on_empty(now);
                reference.on_empty(now);
            }
            queue_packets = left;
            let mut same = random.clone();
            let decision = red.on_arrival(queue_packets, dscp, now, &mut random);
            let curve = curves[usize::from(dscp)];
            reference.check_arrival(queue_packets, usize::from(dscp), curve, now, same.next_u32(), decision)?;
            let average = reference.average_packets();
            let milli = f64::from(u32::try_from(red.average_packets_milli()).unwrap());
            prop_assert!((milli / 1_000.0 - average).abs() < 0.001 + 1e-6, "{} beside {}", milli, average);
            queue_packets += u32::from(decision == Admit);
        }
    }

    /// Packets that find the queue empty and are dropped do not make the average decay faster.
    #[test]
    fn idle_time_decays_alike_in_one_piece_or_many(
        exponent in 1..=16u8,
        gaps in prop::collection::vec(0..5_000_000u64, 1..40),
    ) {
        let full = |_| {
            let mut red = RedState::new(&params(curve(1, 1, 1), exponent));
            red.average.value = 1_000 << super::FRACTION_BITS;
            red.on_empty(Instant::ZERO);
            red
        };
        let [mut once, mut often] = [0, 1].map(full);
        let mut now = Instant::ZERO;
        for &gap in &gaps {
            now += Duration::from_nanos(gap);
            let _ = often.on_arrival(0, 0, now, &mut Fixed(None));
        }
        let _ = once.on_arrival(0, 0, now, &mut Fixed(None));
        prop_assert!(once.average.value.abs_diff(often.average.value) <= 2_000);
        prop_assert_eq!(once.average.idle_since, often.average.idle_since);
    }
}
