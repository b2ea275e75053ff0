//! Integers that do not drift, and what happens at their ends.

use proptest::prelude::*;
use slicewise_units::{Accounting, BitRate, ByteCount, Credit, Duration, FrameLengths, Instant};

#[test]
fn a_second_at_a_rate_earns_exactly_its_bits() {
    let rate = BitRate::new(17_500_000);
    let earned = Credit::earned(rate, Duration::from_secs(1));
    assert_eq!(earned, Credit::for_bytes(ByteCount::new(2_187_500)));
    assert_eq!(
        rate.bytes_in(Duration::from_millis(250)),
        ByteCount::new(546_875)
    );
}

#[test]
fn the_time_of_a_frame_rounds_up_to_a_nanosecond() {
    let rate = BitRate::new(400_000_000_000);
    // 64 · 8 / 400 = 1.28 ns.
    assert_eq!(
        rate.time_to_send(ByteCount::new(64)),
        Some(Duration::from_nanos(2))
    );
    assert_eq!(
        rate.time_to_send(ByteCount::new(6_400)),
        Some(Duration::from_nanos(128))
    );
    let mbit = BitRate::new(35_000_000);
    assert_eq!(
        mbit.time_to_send(ByteCount::new(1_500)),
        Some(Duration::from_nanos(342_858))
    );
}

#[test]
fn nothing_is_ever_sent_at_rate_zero() {
    assert_eq!(BitRate::ZERO.time_to_send(ByteCount::new(1)), None);
    assert_eq!(
        Credit::for_bytes(ByteCount::new(1)).time_to_earn(BitRate::ZERO),
        None
    );
    assert_eq!(
        Credit::ZERO.time_to_earn(BitRate::ZERO),
        Some(Duration::ZERO)
    );
    assert_eq!(
        (-Credit::for_bytes(ByteCount::new(1))).time_to_earn(BitRate::ZERO),
        Some(Duration::ZERO)
    );
    assert_eq!(Credit::earned(BitRate::ZERO, Duration::MAX), Credit::ZERO);
}

#[test]
fn credit_saturates_and_never_turns_into_debt() {
    let most = Credit::earned(BitRate::new(u64::MAX), Duration::MAX);
    assert_eq!(most.nanobits(), i128::MAX);
    assert_eq!(most + most, most);
    assert!(most + most > Credit::ZERO);
    assert_eq!((-most - most).nanobits(), i128::MIN);
    assert_eq!(-(-most - most), most);
    // The largest rate of a text over all of time still fits without saturating.
    let real = Credit::earned(BitRate::MAX, Duration::MAX);
    assert_eq!(real.nanobits(), i128::from(u64::MAX) * 100_000_000_000_000);
}

#[test]
fn debt_pays_for_no_byte() {
    assert_eq!(
        (-Credit::for_bytes(ByteCount::new(3))).whole_bytes(),
        ByteCount::ZERO
    );
    let almost = Credit::for_bytes(ByteCount::new(3))
        - Credit::earned(BitRate::new(1), Duration::from_nanos(1));
    assert_eq!(almost.whole_bytes(), ByteCount::new(2));
    assert_eq!(
        Credit::for_bytes(ByteCount::new(u64::MAX)).whole_bytes(),
        ByteCount::new(u64::MAX)
    );
}

#[test]
fn sums_and_products_saturate_instead_of_wrapping() {
    let second = Duration::from_secs(1);
    assert_eq!(Instant::MAX + second, Instant::MAX);
    assert_eq!(Duration::MAX + second, Duration::MAX);
    assert_eq!(second * u64::MAX, Duration::MAX);
    assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
    assert_eq!(Duration::from_millis(u64::MAX), Duration::MAX);
    assert_eq!(Duration::from_micros(u64::MAX), Duration::MAX);
    assert_eq!(
        ByteCount::new(u64::MAX) + ByteCount::new(1),
        ByteCount::new(u64::MAX)
    );
    assert_eq!(ByteCount::new(u64::MAX).bits(), u64::MAX);
    assert_eq!(
        BitRate::new(u64::MAX) + BitRate::new(1),
        BitRate::new(u64::MAX)
    );
    assert_eq!(BitRate::new(u64::MAX).checked_add(BitRate::new(1)), None);
    assert_eq!(
        BitRate::new(u64::MAX).scaled(u64::MAX, 1),
        BitRate::new(u64::MAX)
    );
    assert_eq!(
        BitRate::new(u64::MAX).bytes_in(Duration::MAX),
        ByteCount::new(u64::MAX)
    );
    assert_eq!(BitRate::new(1).time_to_send(ByteCount::new(u64::MAX)), None);
    assert_eq!(
        Credit::for_bytes(ByteCount::new(u64::MAX)).time_to_earn(BitRate::new(1)),
        None
    );
}

#[test]
fn time_saturates_at_its_origin_where_asked_to() {
    let early = Instant::from_nanos(1);
    let late = Instant::from_nanos(5);
    assert_eq!(late - early, Duration::from_nanos(4));
    assert_eq!(late.saturating_since(early), Duration::from_nanos(4));
    assert_eq!(early.saturating_since(late), Duration::ZERO);
    assert_eq!(
        ByteCount::new(1).saturating_sub(ByteCount::new(2)),
        ByteCount::ZERO
    );
    assert_eq!(
        BitRate::new(1).saturating_sub(BitRate::new(2)),
        BitRate::ZERO
    );
}

#[test]
fn what_was_added_is_there_and_is_gone_when_taken_away() {
    let (five, two) = (ByteCount::new(5), ByteCount::new(2));
    let mut size = five;
    size += two;
    assert_eq!(size, ByteCount::new(7));
    assert_eq!(size - five, two);
    size -= two;
    assert_eq!(size, five);

    let (five, two) = (BitRate::new(5), BitRate::new(2));
    let mut rate = five;
    rate += two;
    assert_eq!(rate, BitRate::new(7));
    assert_eq!(rate - five, two);
    assert_eq!(five.checked_add(two), Some(rate));

    let (five, two) = (Duration::from_nanos(5), Duration::from_nanos(2));
    assert_eq!(five - two, Duration::from_nanos(3));
    let mut now = Instant::from_nanos(5);
    now += two;
    assert_eq!(now.nanos(), 7);

    let [five, two] = [5, 2].map(|bytes| Credit::for_bytes(ByteCount::new(bytes)));
    let mut credit = five;
    credit -= two;
    assert_eq!(credit.whole_bytes(), ByteCount::new(3));
    assert_eq!((five.min(two), two.min(five)), (two, two));
    credit -= five;
    assert!(credit < Credit::ZERO);
}

#[test]
fn a_duration_is_told_in_seconds_for_people() {
    let half = Duration::from_millis(500).as_secs_f64();
    assert!((half - 0.5).abs() < 1e-12, "{half}");
    let hour = Duration::from_secs(3_600).as_secs_f64();
    assert!((hour - 3_600.0).abs() < 1e-9, "{hour}");
}

#[test]
fn a_rate_scales_by_a_ratio_rounded_down() {
    let rate = BitRate::new(35_000_000);
    assert_eq!(rate.scaled(50_000, 100_000), BitRate::new(17_500_000));
    assert_eq!(BitRate::new(10).scaled(1, 3), BitRate::new(3));
    assert_eq!(
        BitRate::new(10).scaled(1, 0),
        BitRate::new(10),
        "no division by zero"
    );
}

#[test]
fn each_layer_counts_what_it_sees_of_a_frame() {
    // 1448 B of payload, UDP and IPv4 in an 802.1Q-tagged frame.
    let tagged = FrameLengths {
        l2_bytes: 1448 + 8 + 20 + 18,
        l3_offset: 18,
    };
    assert_eq!(Accounting::L2.count(tagged), ByteCount::new(1_494));
    assert_eq!(Accounting::L3.count(tagged), ByteCount::new(1_476));
    assert_eq!(Accounting::L1.count(tagged), ByteCount::new(1_518));
    // Two tags and a PPPoE header: as no reservation expects more than two tags, the header counts.
    let encapsulated = FrameLengths {
        l2_bytes: 1_476 + 30,
        l3_offset: 30,
    };
    assert_eq!(Accounting::L3.count(encapsulated), ByteCount::new(1_484));
    // A frame shorter than Ethernet's minimum is padded on the wire: 64 with FCS, 84 in all.
    let short = FrameLengths {
        l2_bytes: 42,
        l3_offset: 14,
    };
    assert_eq!(Accounting::L1.count(short), ByteCount::new(84));
    assert_eq!(Accounting::L2.count(short), ByteCount::new(42));
}

#[test]
fn overhead_is_added_to_each_frame_and_never_leaves_less_than_a_byte() {
    let frame = FrameLengths {
        l2_bytes: 100,
        l3_offset: 14,
    };
    let more = Accounting {
        overhead_bytes: 24,
        ..Accounting::L2
    };
    assert_eq!(more.count(frame), ByteCount::new(124));
    let less = Accounting {
        overhead_bytes: i16::MIN,
        ..Accounting::L3
    };
    assert_eq!(less.count(frame), ByteCount::new(1));
    let largest = FrameLengths {
        l2_bytes: u32::MAX,
        l3_offset: 0,
    };
    let most = Accounting {
        overhead_bytes: i16::MAX,
        ..Accounting::L1
    };
    assert_eq!(
        most.count(largest),
        ByteCount::new(u64::from(u32::MAX) + 24 + 32_767)
    );
}

/// A frame of an IP packet without tags, as `text` counts it.
fn packet(text: &str, l3_bytes: u32) -> u64 {
    let frame = FrameLengths {
        l2_bytes: l3_bytes + 14,
        l3_offset: 14,
    };
    text.parse::<Accounting>().unwrap().count(frame).bytes()
}

#[test]
fn links_of_modems_count_what_they_carry() {
    assert_eq!(packet("L2 + 8 B", 1_500), 1_522, "PPPoE on Ethernet");
    // PPPoA with VC multiplexing, PPPoE in bridged frames with LLC/SNAP (tc-stab(8)).
    assert_eq!(packet("L3 + 10 B in ATM cells", 40), 2 * 53);
    assert_eq!(packet("L3 + 10 B in ATM cells", 1_500), 32 * 53);
    assert_eq!(packet("L3 + 40 B in ATM cells", 1_500), 33 * 53);
    // A cell is full with 48 bytes.
    assert_eq!(packet("L3 in ATM cells", 48), 53);
    assert_eq!(packet("L3 in ATM cells", 49), 106);
    assert_eq!(packet("L3 - 1500 B in ATM cells", 40), 53, "never none");
}

#[test]
fn digests_of_studies_without_cells_see_no_cells() {
    let shown = |text: &str| format!("{:?}", text.parse::<Accounting>().unwrap());
    assert_eq!(shown("L2"), "Accounting { layer: L2, overhead_bytes: 0 }");
    assert_ne!(shown("L2"), shown("L2 + 8 B"));
    assert_ne!(shown("L2"), shown("L2 in ATM cells"));
}

proptest! {
    #[test]
    fn earning_in_steps_equals_earning_at_once(
        bits in 0..=BitRate::MAX.bits_per_second(),
        steps in prop::collection::vec(0..1_000_000_000u64, 1..50),
    ) {
        let rate = BitRate::new(bits);
        let mut credit = Credit::ZERO;
        for &step in &steps {
            credit += Credit::earned(rate, Duration::from_nanos(step));
        }
        let total = Duration::from_nanos(steps.iter().sum());
        prop_assert_eq!(credit, Credit::earned(rate, total));
    }

    #[test]
    fn who_waits_as_long_as_told_has_enough_and_a_nanosecond_less_is_too_short(
        bits in 1..=BitRate::MAX.bits_per_second(),
        bytes in 1..=1_000_000_000u64,
    ) {
        let rate = BitRate::new(bits);
        let missing = Credit::for_bytes(ByteCount::new(bytes));
        let wait = missing.time_to_earn(rate).unwrap();
        prop_assert!(Credit::earned(rate, wait) >= missing);
        let shorter = Duration::from_nanos(wait.nanos() - 1);
        prop_assert!(Credit::earned(rate, shorter) < missing);
        prop_assert_eq!(rate.time_to_send(ByteCount::new(bytes)), Some(wait));
    }

    #[test]
    fn bytes_in_a_time_are_what_that_time_sends(
        bits in 1..=BitRate::MAX.bits_per_second(),
        nanos in 0..1_000_000_000_000u64,
    ) {
        let rate = BitRate::new(bits);
        let duration = Duration::from_nanos(nanos);
        let bytes = rate.bytes_in(duration);
        prop_assert_eq!(Credit::earned(rate, duration).whole_bytes(), bytes);
        prop_assert!(rate.time_to_send(bytes).unwrap() <= duration);
        prop_assert!(rate.time_to_send(bytes + ByteCount::new(1)).unwrap() > duration);
    }
}
