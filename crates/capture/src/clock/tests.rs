//! Synthetic clocks whose offset and drift are known.

use super::{ClockEstimate, ClockMethod, ClockReport, ClockVerdict, DelayFloor};
use proptest::prelude::*;

const START_NS: u64 = 1_700_000_000_000_000_000;
const FLOOR_NS: u64 = 2_000_000;

/// The clock of the receiving point when that of the sending point is at `time_ns`.
fn other_clock(time_ns: u64, offset_ns: i64, drift_ppb: i64) -> u64 {
    let elapsed = i128::from(time_ns) - i128::from(START_NS);
    let drifted = elapsed * i128::from(drift_ppb) / 1_000_000_000;
    u64::try_from(i128::from(time_ns) + i128::from(offset_ns) + drifted).unwrap()
}

/// Both directions of a minute of packets, each delayed by 2 ms and by queues.
fn floors(offset_ns: i64, drift_ppb: i64, seed: u64) -> (DelayFloor, DelayFloor) {
    let (mut forward, mut reverse) = (DelayFloor::forward(), DelayFloor::reverse());
    let mut random = seed | 1;
    for packet in 0..20_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Queues of up to 10 ms, short ones more often.
        let uniform = random % 1_000;
        let queue_ns = uniform * uniform * 10;
        let left = START_NS + packet * 3_000_000;
        let arrived = left + FLOOR_NS + queue_ns;
        if random >> 20 & 1 == 0 {
            forward.add(left, other_clock(arrived, offset_ns, drift_ppb));
        } else {
            reverse.add(arrived, other_clock(left, offset_ns, drift_ppb));
        }
    }
    (forward, reverse)
}

/// Error of the estimate at the end of the minute.
fn error_ns(estimate: &ClockEstimate, offset_ns: i64, drift_ppb: i64) -> i64 {
    let end = START_NS + 60_000_000_000;
    let corrected = estimate.correct(other_clock(end, offset_ns, drift_ppb));
    i64::try_from(i128::from(corrected) - i128::from(end)).unwrap()
}

fn drift() -> impl Strategy<Value = i64> {
    (1_000_i64..100_000, any::<bool>()).prop_map(|(ppb, back)| if back { -ppb } else { ppb })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn both_directions_give_offset_and_drift(
        offset_ns in -1_000_000_000_000_i64..1_000_000_000_000,
        drift_ppb in drift(),
        seed in any::<u64>(),
    ) {
        let (forward, reverse) = floors(offset_ns, drift_ppb, seed);
        let estimate = ClockReport::new(&forward, &reverse).estimate.unwrap();
        prop_assert_eq!(estimate.method, ClockMethod::BothDirections);
        prop_assert!((estimate.offset_ns - offset_ns).abs() < 50_000);
        prop_assert!((estimate.drift_ppb - drift_ppb as f64).abs() < 1_000.0);
        prop_assert!(error_ns(&estimate, offset_ns, drift_ppb).abs() < 50_000);
        let uncertainty_ns = estimate.offset_uncertainty_ns.unwrap();
        prop_assert!(uncertainty_ns.abs_diff(FLOOR_NS) < 50_000, "half of the round trip");
        prop_assert!(estimate.drift_uncertainty_ppb.unwrap() < 1_000.0);
    }

    #[test]
    fn one_direction_gives_drift_and_the_offset_up_to_the_smallest_delay(
        offset_ns in -1_000_000_000_000_i64..1_000_000_000_000,
        drift_ppb in drift(),
        seed in any::<u64>(),
    ) {
        let (forward, reverse) = floors(offset_ns, drift_ppb, seed);
        let none = DelayFloor::reverse();
        let estimate = ClockReport::new(&forward, &none).estimate.unwrap();
        prop_assert_eq!(estimate.method, ClockMethod::ForwardOnly);
        prop_assert_eq!(estimate.offset_uncertainty_ns, None);
        prop_assert!((estimate.drift_ppb - drift_ppb as f64).abs() < 1_000.0);
        let floor = FLOOR_NS.cast_signed();
        prop_assert!((estimate.offset_ns - offset_ns - floor).abs() < 50_000);

        let none = DelayFloor::forward();
        let estimate = ClockReport::new(&none, &reverse).estimate.unwrap();
        prop_assert_eq!(estimate.method, ClockMethod::ReverseOnly);
        prop_assert!((estimate.drift_ppb - drift_ppb as f64).abs() < 1_000.0);
        prop_assert!((estimate.offset_ns - offset_ns + floor).abs() < 50_000);
    }

    #[test]
    fn no_packet_is_below_the_line(
        points in proptest::collection::vec((0_u64..4_000, 0_u64..1_000_000), 2..200),
    ) {
        let mut floor = DelayFloor::forward();
        // At most one packet per span of 1 ms, so that each is kept or lies above one that is.
        let mut spans = std::collections::BTreeMap::new();
        for (span, delay) in points {
            spans.insert(span, delay);
        }
        for (&span, &delay) in &spans {
            let sent = START_NS + span * 1_000_000;
            floor.add(sent, sent + delay);
        }
        let Some(line) = floor.line() else {
            prop_assert_eq!(spans.len(), 1);
            return Ok(());
        };
        for (&span, &delay) in &spans {
            let sent = (START_NS + span * 1_000_000).cast_signed();
            prop_assert!(line.at(sent) <= delay as f64 + 1e-3);
        }
    }
}

#[test]
fn clocks_agree_where_no_delay_is_negative() {
    let (forward, reverse) = floors(1_000_000, 0, 1);
    let report = ClockReport::new(&forward, &reverse);
    assert_eq!(report.verdict, ClockVerdict::Agree);
    assert_eq!(report.negative_delays, 0);
    assert_eq!(report.packets, 20_000);
    assert!(report.smallest_delay_ns.unwrap() >= 3_000_000);
}

#[test]
fn clocks_disagree_where_packets_arrive_before_they_are_sent() {
    let (forward, reverse) = floors(-5_000_000, 0, 1);
    let report = ClockReport::new(&forward, &reverse);
    let ClockVerdict::Disagree { by_more_than_ns } = report.verdict else {
        panic!("{report:?}");
    };
    assert!((2_900_000..=3_000_000).contains(&by_more_than_ns));
    assert_eq!(report.negative_delays, forward.negative_delays());
    assert!(report.negative_delays > 1_000);
}

#[test]
fn a_packet_going_back_too_early_shows_that_clocks_disagree() {
    let (forward, reverse) = floors(5_000_000, 0, 1);
    assert_eq!(forward.negative_delays(), 0);
    let report = ClockReport::new(&forward, &reverse);
    assert!(matches!(report.verdict, ClockVerdict::Disagree { .. }));
}

#[test]
fn no_verdict_if_nothing_was_compared() {
    let report = ClockReport::new(&DelayFloor::forward(), &DelayFloor::reverse());
    assert_eq!(report.verdict, ClockVerdict::Unknown);
    assert_eq!(report.estimate, None);
    assert_eq!(report.smallest_delay_ns, None);
}

#[test]
fn one_packet_gives_a_verdict_but_no_estimate() {
    let mut forward = DelayFloor::forward();
    forward.add(1_000, 900);
    let report = ClockReport::new(&forward, &DelayFloor::reverse());
    assert_eq!(
        report.verdict,
        ClockVerdict::Disagree {
            by_more_than_ns: 100
        }
    );
    assert_eq!(report.estimate, None);
}

#[test]
fn a_day_of_packets_takes_no_more_memory_than_an_hour() {
    let mut floor = DelayFloor::forward();
    for second in 0..86_400 {
        let sent = START_NS + second * 1_000_000_000;
        floor.add(sent, other_clock(sent + FLOOR_NS, 0, 20_000));
    }
    let estimate = ClockReport::new(&floor, &DelayFloor::reverse())
        .estimate
        .unwrap();
    assert!((estimate.drift_ppb - 20_000.0).abs() < 1.0);
    assert!(floor.memory_bytes() < 300_000);
}
