//! Quantities as text: what goes in, what comes out, and what a refusal says.

use insta::assert_snapshot;
use proptest::prelude::*;
use slicewise_units::{
    Accounting, BitRate, ByteCount, Duration, Instant, Layer, MAX_OVERHEAD_BYTES, QuantityError,
};

fn rate(text: &str) -> Result<u64, QuantityError> {
    text.parse::<BitRate>().map(BitRate::bits_per_second)
}

fn size(text: &str) -> Result<u64, QuantityError> {
    text.parse::<ByteCount>().map(ByteCount::bytes)
}

fn duration(text: &str) -> Result<u64, QuantityError> {
    text.parse::<Duration>().map(Duration::nanos)
}

#[test]
fn reads_every_unit_exactly() {
    let rates = [
        ("1 bit/s", 1),
        ("17.5 Mbit/s", 17_500_000),
        ("35000 kbit/s", 35_000_000),
        ("0.000000001 Gbit/s", 1),
        ("400 Gbit/s", 400_000_000_000),
        ("100 Tbit/s", 100_000_000_000_000),
        ("1.5 B/s", 12),
        ("1 kB/s", 8_000),
        ("1 MB/s", 8_000_000),
        ("1 GB/s", 8_000_000_000),
    ];
    for (text, value) in rates {
        assert_eq!(rate(text), Ok(value), "{text}");
    }
    let sizes = [
        ("1500 B", 1_500),
        ("1 byte", 1),
        ("2 bytes", 2),
        ("546.875 kB", 546_875),
        ("1 MB", 1_000_000),
        ("1 GB", 1_000_000_000),
        ("1 KiB", 1_024),
        ("1.5 MiB", 1_572_864),
        ("1 GiB", 1_073_741_824),
    ];
    for (text, value) in sizes {
        assert_eq!(size(text), Ok(value), "{text}");
    }
    let durations = [
        ("1 ns", 1),
        ("1 us", 1_000),
        ("1 \u{b5}s", 1_000),
        ("1 \u{3bc}s", 1_000),
        ("0.7355 ms", 735_500),
        ("40 s", 40_000_000_000),
        ("1.5 min", 90_000_000_000),
        ("1 h", 3_600_000_000_000),
    ];
    for (text, value) in durations {
        assert_eq!(duration(text), Ok(value), "{text}");
    }
}

#[test]
fn does_not_mind_spaces_underscores_and_trailing_zeros() {
    for text in [
        "10ms",
        " 10 ms ",
        "10   ms",
        "010 ms",
        "10.000 ms",
        "10. ms",
        "1_0 ms",
        ".01 s",
    ] {
        assert_eq!(duration(text), Ok(10_000_000), "`{text}`");
    }
    let many_zeros = format!("10.{} ms", "0".repeat(200));
    assert_eq!(duration(&many_zeros), Ok(10_000_000));
}

#[test]
fn refuses_what_is_not_a_number() {
    let texts = [
        "",
        " ",
        ".",
        "_ ms",
        "._5 ms",
        "1__0 ms",
        "_1 ms",
        "1_ ms",
        "1.2.3 ms",
        "1,5 ms",
        "1e6 ms",
        "1 000 ms",
        "+1 ms",
        "ms",
        "NaN",
        "-",
        "-ms",
        "0x10 ms",
        "\u{661} ms",
    ];
    for text in texts {
        let error = duration(text).unwrap_err();
        assert!(
            matches!(error, QuantityError::NotANumber { .. }),
            "`{text}`: {error}"
        );
    }
}

#[test]
fn a_refusal_says_what_to_write() {
    let message = |result: Result<u64, QuantityError>| result.unwrap_err().to_string();
    assert_snapshot!(message(rate("17500000")), @"`17500000` is a number without a unit: a rate needs one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, GB/s");
    assert_snapshot!(message(size("1500")), @"`1500` is a number without a unit: a size needs one of B, byte, bytes, kB, MB, GB, KiB, MiB, GiB");
    assert_snapshot!(message(duration("10")), @"`10` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h");
    assert_snapshot!(message(rate("17.5 Mbps")), @"`Mbps` is not a unit of a rate: did you mean `Mbit/s`?");
    assert_snapshot!(message(rate("10 ms")), @"`ms` is not a unit of a rate: use one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, GB/s");
    assert_snapshot!(message(size("64 KB")), @"`KB` is not a unit of a size: did you mean `kB`?");
    assert_snapshot!(message(duration("10 msec")), @"`msec` is not a unit of a duration: did you mean `ms`?");
    assert_snapshot!(message(rate("fast")), @"`fast` is not a rate: write for example `17.5 Mbit/s`");
    assert_snapshot!(message(rate("1e6 bit/s")), @"`1e6 bit/s` is not a rate: write for example `17.5 Mbit/s`");
    assert_snapshot!(message(size("")), @"`` is not a size: write for example `1500 B`");
    assert_snapshot!(message(duration("1,5 ms")), @"`1,5 ms` is not a duration: write for example `10 ms`");
    assert_snapshot!(message(duration("-1 ms")), @"`-1 ms` is negative: a duration must be at least 0");
    assert_snapshot!(message(rate("0.5 bit/s")), @"`0.5 bit/s` is not a whole number of bit/s: a rate is counted in whole bit/s");
    assert_snapshot!(message(duration("1.0000000001 s")), @"`1.0000000001 s` is not a whole number of ns: a duration is counted in whole ns");
    assert_snapshot!(message(rate("101 Tbit/s")), @"`101 Tbit/s` is too large for a rate");
}

#[test]
fn a_refusal_repeats_at_most_a_line_of_the_text() {
    let text = "é".repeat(1_000_000);
    let message = duration(&text).unwrap_err().to_string();
    assert_eq!(message.matches('é').count(), 60);
    let digits = "9".repeat(1_000_000) + " s";
    let error = duration(&digits).unwrap_err();
    assert!(matches!(error, QuantityError::TooLarge { .. }));
    assert!(error.to_string().len() < 200);
}

#[test]
fn reads_up_to_the_largest_and_not_beyond() {
    assert_eq!(
        rate("100000000000000 bit/s"),
        Ok(BitRate::MAX.bits_per_second())
    );
    assert!(rate("100000000000001 bit/s").is_err());
    assert_eq!(size("1000000000 GB"), Ok(ByteCount::MAX.bytes()));
    assert!(size("1000000000.000000001 GB").is_err());
    assert_eq!(
        duration("9223372036854775807 ns"),
        Ok(i64::MAX.unsigned_abs())
    );
    assert!(duration("9223372036854775808 ns").is_err());
    // u64::MAX of the largest unit overflows 64 bits twice over.
    assert!(duration("18446744073709551615 h").is_err());
    assert!(duration("18446744073709551616 ns").is_err());
    assert!(duration("0.99999999999999999999 h").is_err(), "20 places");
}

#[test]
fn writes_the_largest_unit_with_at_most_three_decimals() {
    let shown = [
        BitRate::ZERO.to_string(),
        BitRate::new(1).to_string(),
        BitRate::new(999).to_string(),
        BitRate::new(1_234).to_string(),
        BitRate::new(17_500_000).to_string(),
        BitRate::new(17_500_001).to_string(),
        BitRate::new(400_000_000_000).to_string(),
        BitRate::MAX.to_string(),
        ByteCount::new(1_500).to_string(),
        ByteCount::new(546_875).to_string(),
        ByteCount::new(64).to_string(),
        Duration::ZERO.to_string(),
        Duration::from_nanos(735_500).to_string(),
        Duration::from_millis(1_500).to_string(),
        Duration::MAX.to_string(),
        Instant::from_nanos(8_000_000_001).to_string(),
        format!("[{:>12}]", Duration::from_millis(10)),
    ];
    assert_snapshot!(shown.join("\n"), @r"
    0 bit/s
    1 bit/s
    999 bit/s
    1.234 kbit/s
    17.5 Mbit/s
    17500.001 kbit/s
    400 Gbit/s
    100000 Gbit/s
    1.5 kB
    546.875 kB
    64 B
    0 ns
    735.5 µs
    1.5 s
    18446744073709551.615 µs
    8000000.001 µs
    [       10 ms]
    ");
}

/// Values of every magnitude, most of them round in some unit.
fn value(max: u64) -> impl Strategy<Value = u64> {
    let round =
        (0u32..=18, 0..1_000_000u64).prop_map(|(zeros, n)| n.saturating_mul(10u64.pow(zeros)));
    prop_oneof![0..=max, round].prop_map(move |v| v.min(max))
}

proptest! {
    #[test]
    fn what_is_written_reads_back_as_the_same(
        bits in value(BitRate::MAX.bits_per_second()),
        bytes in value(ByteCount::MAX.bytes()),
        nanos in value(i64::MAX.unsigned_abs()),
    ) {
        prop_assert_eq!(rate(&BitRate::new(bits).to_string()), Ok(bits));
        prop_assert_eq!(size(&ByteCount::new(bytes).to_string()), Ok(bytes));
        prop_assert_eq!(duration(&Duration::from_nanos(nanos).to_string()), Ok(nanos));
    }

    #[test]
    fn a_fraction_is_worth_what_its_digits_say(whole in 0..1_000_000u64, millionths in 0..1_000_000u64) {
        let text = format!("{whole}.{millionths:06} Mbit/s");
        prop_assert_eq!(rate(&text), Ok(whole * 1_000_000 + millionths));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,40}", number in "[0-9._-]{0,30}", unit in "[a-zA-Zµμ/, ]{0,8}") {
        let _ = duration(&text);
        let _ = rate(&format!("{number}{unit}"));
        let _ = size(&format!("{number} {unit}"));
    }
}

#[test]
fn reads_what_a_rate_counts() {
    for (text, shown) in [
        (" L1 ", "L1"),
        ("L2+8 bytes", "L2 + 8 B"),
        ("L2 + 0.5 kB", "L2 + 500 B"),
        ("L1 -4 B", "L1 - 4 B"),
        ("L3 - 0 B", "L3"),
        ("L3 +40B in ATM cells", "L3 + 40 B in ATM cells"),
    ] {
        assert_eq!(text.parse::<Accounting>().unwrap().to_string(), shown);
    }
}

#[test]
fn says_why_a_text_is_nothing_that_a_rate_counts() {
    let refused = |text: &str| text.parse::<Accounting>().unwrap_err();
    assert_snapshot!(refused("l2"), @"`l2` is not what a rate can count: expected L1, L2 or L3, with the bytes that a link adds to each frame, for example `L2 + 8 B` or `L3 + 40 B in ATM cells`");
    assert_snapshot!(refused("L2 8 B"), @"`L2 8 B` is not what a rate can count: expected L1, L2 or L3, with the bytes that a link adds to each frame, for example `L2 + 8 B` or `L3 + 40 B in ATM cells`");
    assert_snapshot!(refused("L2 + 8"), @"`8` is a number without a unit: a size needs one of B, byte, bytes, kB, MB, GB, KiB, MiB, GiB");
    assert_snapshot!(refused("L2 + -8 B"), @"`-8 B` is negative: a size must be at least 0");
    assert_snapshot!(refused("L2 + 1501 B"), @"an overhead of 1.501 kB per frame is too large: at most 1500 B");
    assert_snapshot!(refused("L1 + 8 B in ATM cells"), @"`L1 + 8 B in ATM cells` puts the preamble and gap of Ethernet in ATM cells: write L2 or L3 and the bytes that are added");
    assert_snapshot!(refused("L2 + 8 B in cells"), @"`B in cells` is not a unit of a size: use one of B, byte, bytes, kB, MB, GB, KiB, MiB, GiB");
}

proptest! {
    #[test]
    fn what_a_rate_counts_reads_back_as_written(
        layer in prop::sample::select(vec![Layer::L1, Layer::L2, Layer::L3]),
        overhead_bytes in -MAX_OVERHEAD_BYTES..=MAX_OVERHEAD_BYTES,
        in_atm_cells: bool,
    ) {
        let in_atm_cells = in_atm_cells && layer != Layer::L1;
        let accounting = Accounting { layer, overhead_bytes, in_atm_cells };
        prop_assert_eq!(accounting.to_string().parse(), Ok(accounting));
    }
}
