//! Rates and percentages as IOS writes them.

use super::definition::UnmodelledLine;
use super::lexer::Word;
use super::words::Words;
use crate::error::{TextError, quoted};
use slicewise_model::RateSpec;
use slicewise_units::{BitRate, ByteCount, Duration};

const RATE_EXPECTED: &str = "a rate in bit/s such as `17500000` or `17.5m`";
/// Largest burst and queue: as large as units can tell.
pub(super) const BYTES_MAX: u64 = ByteCount::MAX.bytes();

/// Longest burst in time (IOS: 2 s).
pub(super) const BURST_MILLIS_MAX: u64 = 2_000;

/// A unit of bursts, queue limits and thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Packets.
    Packets,
    /// So many bytes each.
    Bytes(u64),
    /// So many nanoseconds each.
    Time(u64),
}

/// Their names.
pub(super) const AMOUNT_UNITS: [(&str, Unit); 7] = [
    ("packets", Unit::Packets),
    ("bytes", Unit::Bytes(1)),
    ("kbytes", Unit::Bytes(1_000)),
    ("mbytes", Unit::Bytes(1_000_000)),
    ("gbytes", Unit::Bytes(1_000_000_000)),
    ("ms", Unit::Time(1_000_000)),
    ("us", Unit::Time(1_000)),
];

/// A burst as written, before its rate is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Burst {
    /// A number without a unit.
    Plain(u64),
    /// Bytes.
    Bytes(ByteCount),
    /// Data that the rate sends in this time.
    Time(Duration),
}

/// A burst: a number, with a unit of size or of time if any; `what` names it with the unit of a plain number.
pub(super) fn burst(
    words: &mut Words<'_, '_>,
    what: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Burst, TextError> {
    let number = words.number(what, range)?;
    let place = words.last_span();
    let word = words.peek();
    let unit = AMOUNT_UNITS
        .iter()
        .find(|(name, _)| word.is_some_and(|word| word.is(name)));
    let burst = match unit {
        None | Some((_, Unit::Packets)) => return Ok(Burst::Plain(number)),
        Some((_, Unit::Bytes(each))) => number
            .checked_mul(*each)
            .filter(|&bytes| bytes <= BYTES_MAX)
            .map(|bytes| Burst::Bytes(ByteCount::new(bytes))),
        Some((_, Unit::Time(nanos))) => number
            .checked_mul(*nanos)
            .map(Duration::from_nanos)
            .filter(|&time| time <= Duration::from_millis(BURST_MILLIS_MAX))
            .map(Burst::Time),
    };
    words.take();
    burst.ok_or_else(|| {
        TextError::at(place, "the burst is out of range")
            .expected(format!("at most {BURST_MILLIS_MAX} ms"))
    })
}

/// True where IOS can write the time: in milliseconds.
pub(super) fn is_whole_millis(time: Duration) -> bool {
    time.nanos().is_multiple_of(1_000_000)
}

/// The suffix `account …` of a rate, up to a word of `ends`: what the rate counts beside a frame, which is not modelled.
pub(super) fn account(words: &mut Words<'_, '_>, ends: &[&str]) -> Option<UnmodelledLine> {
    let first = words.take_if("account")?;
    let mut command = first.text.to_owned();
    while let Some(word) = words
        .peek()
        .filter(|word| !ends.iter().any(|end| word.is(end)))
    {
        words.take();
        command = format!("{command} {}", word.text);
    }
    let error = TextError::at(
        first.span,
        "rates count frames without FCS, and nothing beside them",
    );
    Some(UnmodelledLine {
        command,
        error: error.unmodelled().expected("the end of the line"),
    })
}

/// Units of IOS XR, which follow the number, and the suffixes that say the same.
const UNITS: [(&str, &str); 4] = [("bps", ""), ("kbps", "k"), ("mbps", "m"), ("gbps", "g")];

/// A rate in bit/s: a whole number, or a decimal one with the suffix `k`, `m` or `g`, or followed by a unit of IOS XR.
pub(super) fn rate(words: &mut Words<'_, '_>) -> Result<BitRate, TextError> {
    let word = words.require(RATE_EXPECTED)?;
    let unit = unit(words.peek());
    if unit.is_some() {
        words.take();
    }
    let text = format!("{}{}", word.text, unit.unwrap_or_default());
    bits_per_second(&text).map(BitRate::new).ok_or_else(|| {
        TextError::at(word.span, format!("{} is not a rate", quoted(word.text)))
            .expected(RATE_EXPECTED)
    })
}

/// A rate, or `percent` and a share.
pub(super) fn rate_or_percent(words: &mut Words<'_, '_>) -> Result<RateSpec, TextError> {
    match words.take_if("percent") {
        Some(_) => percent(words),
        None => rate(words).map(RateSpec::Absolute),
    }
}

/// Reads the percentage after `percent`.
pub(super) fn percent(words: &mut Words<'_, '_>) -> Result<RateSpec, TextError> {
    let percent = words.small::<u32>("a whole percentage", 1..=100)?;
    Ok(RateSpec::PercentMilli(percent * 1_000))
}

/// The suffix that stands for the unit `word`.
fn unit(word: Option<Word<'_>>) -> Option<&'static str> {
    let word = word?;
    let found = UNITS.iter().find(|(unit, _)| word.is(unit));
    found.map(|&(_, suffix)| suffix)
}

/// A rate in kbit/s, the unit of `bandwidth` and `priority`, unless a unit follows.
pub(super) fn kilobits(words: &mut Words<'_, '_>) -> Result<RateSpec, TextError> {
    if unit(words.at(1)).is_some() {
        return rate(words).map(RateSpec::Absolute);
    }
    let largest = BitRate::MAX.bits_per_second() / 1_000;
    let kilobits = words.number("a rate in kbit/s", 1..=largest)?;
    Ok(RateSpec::Absolute(BitRate::new(kilobits * 1_000)))
}

fn bits_per_second(text: &str) -> Option<u64> {
    let (number, places) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 3),
        b'm' => (&text[..text.len() - 1], 6),
        b'g' => (&text[..text.len() - 1], 9),
        _ => (text, 0),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    if whole.is_empty() || fraction.len() > places {
        return None;
    }
    // The fraction, padded to the places of the suffix, continues the whole digits.
    let zeros = std::iter::repeat_n(b'0', places - fraction.len());
    let bits = whole
        .bytes()
        .chain(fraction.bytes())
        .chain(zeros)
        .try_fold(0u64, |sum, b| {
            let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        })?;
    (1..=BitRate::MAX.bits_per_second())
        .contains(&bits)
        .then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::bits_per_second;

    #[test]
    fn reads_suffixes_exactly() {
        assert_eq!(bits_per_second("17500000"), Some(17_500_000));
        assert_eq!(bits_per_second("17.5m"), Some(17_500_000));
        assert_eq!(bits_per_second("8K"), Some(8_000));
        assert_eq!(bits_per_second("1.000000001g"), Some(1_000_000_001));
        assert_eq!(bits_per_second("100000g"), Some(100_000_000_000_000));
    }

    #[test]
    fn refuses_what_is_not_a_whole_number_of_bits() {
        for text in [
            "",
            "k",
            ".5k",
            "5.",
            "1.2345k",
            "0",
            "-8k",
            "1e6",
            "17_500",
            "100001g",
            "99999999999999999999",
            "1.5",
            "８",
        ] {
            assert_eq!(bits_per_second(text), None, "{text}");
        }
    }
}
