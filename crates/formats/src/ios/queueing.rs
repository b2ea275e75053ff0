//! The commands of a class other than `police`: shaping, sharing, queueing and marking.

use super::code_point;
use super::number::{self, AMOUNT_UNITS, BYTES_MAX, Burst, Unit};
use super::policy_map::{ClassText, Share};
use super::rules::Command;
use super::words::Words;
use crate::error::TextError;
use slicewise_model::{
    BurstBits, PrioritySpec, QueueLimitSpec, RateSpec, RedCurveSpec, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, ByteCount, Duration};

/// Priority levels that exist on some IOS device; how many a given one has, its model says.
pub(super) const PRIORITY_LEVEL_MAX: u8 = 7;
/// Largest `bandwidth remaining ratio` of IOS XE.
pub(super) const RATIO_MAX: u32 = 1_000;
/// Longest queue limit in time: one hour, far above the seconds that IOS allows.
pub(super) const QUEUE_LIMIT_MAX: Duration = Duration::from_secs(3_600);
/// Largest exponent of the WRED average's weight (IOS).
pub(super) const WRED_EXPONENT_MAX: u8 = 16;
/// Largest mark probability denominator (IOS).
pub(super) const MARK_DENOMINATOR_MAX: u32 = 65_536;
/// The mark probability denominator that IOS takes where none is written.
const MARK_DENOMINATOR: u32 = 10;

/// `shape {average | peak} {RATE | percent P} [BC [BE]] [account …]`, bursts in bits, or in ms.
pub(super) fn shape(words: &mut Words<'_, '_>, class: &mut ClassText) -> Result<(), TextError> {
    let span = words.last_span();
    if let Some(word) = words.peek_number() {
        return Err(TextError::at(word.span, "the kind of shaping is missing")
            .expected("`average` or `peak`")
            .help(format!("write `shape average {}`", word.text)));
    }
    let peak = words.choose(&[("average", false), ("peak", true)])?;
    let rate = number::rate_or_percent(words)?;
    let committed_burst_bits = shaper_burst(words, rate, ("Bc", "committed", 1))?;
    let excess_burst_bits = match committed_burst_bits {
        // Zero is allowed here: it turns excess off.
        Some(_) => shaper_burst(words, rate, ("Be", "excess", 0))?,
        None => None,
    };
    class.unmodelled.extend(number::account(words, &[]));
    words.end()?;
    class.once("shape", span)?;
    class.ruled.push((Command::Shape, span));
    class.spec.shape = Some(ShaperSpec {
        rate,
        committed_burst_bits,
        excess_burst_bits,
        peak,
        accounting: Accounting::L2,
    });
    Ok(())
}

/// A burst beside `rate`, if one follows: in bits, or in a unit; in milliseconds where the rate is a percentage, as in IOS.
fn shaper_burst(
    words: &mut Words<'_, '_>,
    rate: RateSpec,
    (short, name, least): (&str, &str, u64),
) -> Result<Option<BurstBits>, TextError> {
    let Some(word) = words.peek_number() else {
        return Ok(None);
    };
    let (unit, plain) = match rate {
        RateSpec::Absolute(_) => ("bits", "bit"),
        RateSpec::PercentMilli(_) => ("ms", "ms"),
    };
    let what = format!("the {name} burst {short} in {unit}");
    let burst = number::burst(words, &what, least..=BYTES_MAX)?;
    let bits = match (burst, rate) {
        (Burst::Plain(bits), RateSpec::Absolute(_)) => Some(bits.into()),
        (Burst::Bytes(bytes), RateSpec::Absolute(_)) => {
            bytes.bytes().checked_mul(8).map(BurstBits::Bits)
        }
        (Burst::Time(time), RateSpec::Absolute(rate)) => {
            Some(BurstBits::Bits(BurstBits::Time(time).at(rate)))
        }
        (Burst::Time(time), RateSpec::PercentMilli(_)) => {
            number::is_whole_millis(time).then_some(time.into())
        }
        (Burst::Plain(_) | Burst::Bytes(_), RateSpec::PercentMilli(_)) => None,
    };
    let bits = bits.filter(|bits| match bits {
        BurstBits::Bits(bits) => (least..=BYTES_MAX).contains(bits),
        BurstBits::Time(_) => true,
    });
    bits.map(Some).ok_or_else(|| {
        TextError::at(word.span, format!("this is no burst in {unit}"))
            .expected(format!("{what}, such as `{} {plain}`", least.max(4)))
            .help("bursts beside a percentage are times: write `shape average percent P MS ms`")
    })
}

/// `bandwidth {KBPS | percent P | remaining {percent P | ratio N}}`.
pub(super) fn bandwidth(words: &mut Words<'_, '_>, class: &mut ClassText) -> Result<(), TextError> {
    let span = words.last_span();
    if words.take_if("remaining").is_some() {
        let share = if words.choose(&[("percent", true), ("ratio", false)])? {
            Share::Percent(words.small("a whole percentage", 1..=100)?)
        } else {
            Share::Ratio(words.small("a ratio", 1..=RATIO_MAX)?)
        };
        class.unmodelled.extend(number::account(words, &[]));
        words.end()?;
        class.once("bandwidth remaining", span)?;
        class.share = Some((share, span));
        class.ruled.push((
            match share {
                Share::Percent(_) => Command::RemainingPercent,
                Share::Ratio(_) => Command::RemainingRatio,
            },
            span,
        ));
        return Ok(());
    }
    let minimum = if words.take_if("percent").is_some() {
        number::percent(words)?
    } else if words.peek_number().is_some() {
        number::kilobits(words)?
    } else {
        return Err(words.missing("a rate in kbit/s, `percent` or `remaining`"));
    };
    class.unmodelled.extend(number::account(words, &[]));
    words.end()?;
    class.once("bandwidth", span)?;
    class.ruled.push((Command::of_minimum(minimum), span));
    class.spec.minimum = Some(minimum);
    Ok(())
}

/// `priority [level N] [{KBPS | percent P} [BURST]]`, burst in bytes.
pub(super) fn priority(words: &mut Words<'_, '_>, class: &mut ClassText) -> Result<(), TextError> {
    let span = words.last_span();
    let (command, level) = match words.take_if("level") {
        Some(_) => (
            Command::PriorityLevel,
            words.small("a priority level", 1..=PRIORITY_LEVEL_MAX)?,
        ),
        None => (Command::Priority, 1),
    };
    let rate = if words.take_if("percent").is_some() {
        Some(number::percent(words)?)
    } else if words.peek().is_some_and(|word| !word.is("account")) {
        if words.peek_number().is_none() {
            return Err(
                words.missing("a rate in kbit/s, `percent`, `level` or the end of the line")
            );
        }
        Some(number::kilobits(words)?)
    } else {
        None
    };
    let burst = match rate.and_then(|_| words.peek_number()) {
        Some(_) => Some(ByteCount::new(
            words.number("a burst in bytes", 1..=BYTES_MAX)?,
        )),
        None => None,
    };
    class.unmodelled.extend(number::account(words, &[]));
    words.end()?;
    class.once("priority", span)?;
    class.ruled.push((command, span));
    class.spec.priority = Some(PrioritySpec {
        level,
        rate,
        burst,
        accounting: Accounting::L2,
    });
    Ok(())
}

/// `queue-limit N [packets | bytes | ms | us]`.
pub(super) fn queue_limit(
    words: &mut Words<'_, '_>,
    class: &mut ClassText,
) -> Result<(), TextError> {
    let span = words.last_span();
    if let Some(word) = words.peek().filter(|_| words.peek_number().is_none()) {
        return Err(TextError::at(
            word.span,
            "limits by code point or in percent are not supported",
        )
        .unmodelled()
        .expected("one limit for all packets of the class")
        .help("write `queue-limit N packets`, `N bytes` or `N ms`"));
    }
    let limit = amount(words, "a queue limit", 1)?;
    words.end()?;
    class.once("queue-limit", span)?;
    class.spec.queue.limit = Some(limit);
    Ok(())
}

/// `N [packets | bytes | ms | us]`: how much of a queue, `least` of its unit or more.
fn amount(words: &mut Words<'_, '_>, what: &str, least: u64) -> Result<QueueLimitSpec, TextError> {
    let number = words.number(what, least..=BYTES_MAX)?;
    let value = words.last_span();
    let has_unit = words
        .peek()
        .is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_alphabetic()));
    let unit = match has_unit {
        true => words.choose(&AMOUNT_UNITS)?,
        false => Unit::Packets,
    };
    let amount = match unit {
        Unit::Packets => u32::try_from(number).ok().map(QueueLimitSpec::Packets),
        Unit::Bytes(each) => number
            .checked_mul(each)
            .filter(|&bytes| bytes <= BYTES_MAX)
            .map(|bytes| QueueLimitSpec::Bytes(ByteCount::new(bytes))),
        Unit::Time(nanos) => number
            .checked_mul(nanos)
            .map(Duration::from_nanos)
            .filter(|&time| time <= QUEUE_LIMIT_MAX)
            .map(QueueLimitSpec::Time),
    };
    amount.ok_or_else(|| {
        let most = format!("at most {} packets, or {QUEUE_LIMIT_MAX}", u32::MAX);
        TextError::at(value, format!("{what} is out of range")).expected(most)
    })
}

/// `random-detect` in all its forms.
pub(super) fn random_detect(
    words: &mut Words<'_, '_>,
    class: &mut ClassText,
) -> Result<(), TextError> {
    #[derive(Clone, Copy)]
    enum Form {
        Enable(WredKey),
        Curve(WredKey),
        Weight,
        Ecn,
    }
    let forms = [
        ("dscp-based", Form::Enable(WredKey::Dscp)),
        ("precedence-based", Form::Enable(WredKey::Precedence)),
        ("prec-based", Form::Enable(WredKey::Precedence)),
        ("dscp", Form::Curve(WredKey::Dscp)),
        ("precedence", Form::Curve(WredKey::Precedence)),
        ("exponential-weighting-constant", Form::Weight),
        ("ecn", Form::Ecn),
    ];
    let span = words.last_span();
    let form = match words.peek() {
        // IOS: by precedence where nothing else is said.
        None => Form::Enable(WredKey::Precedence),
        Some(word) if words.peek_number().is_some() => {
            let message = "thresholds without a code point or precedence are not supported";
            return Err(TextError::at(word.span, message)
                .unmodelled()
                .expected("`dscp VALUE` or `precedence VALUE` before them")
                .help("write `random-detect`, and `random-detect precedence N MIN ms MAX ms` for each precedence 0 to 7"));
        }
        Some(_) => words.choose(&forms)?,
    };
    if let Form::Enable(key) = form {
        words.end()?;
        class.once("random-detect", span)?;
        class.wred = Some(WredSpec {
            key,
            ..WredSpec::default()
        });
        return Ok(());
    }
    if class.wred.is_none() {
        let kind = if matches!(form, Form::Curve(WredKey::Dscp)) {
            " dscp-based"
        } else {
            ""
        };
        return Err(TextError::at(span, "WRED is not enabled in this class")
            .unmodelled()
            .expected(format!("`random-detect{kind}` on a line before")));
    }
    if let Form::Curve(key) = form {
        return wred_curve(words, class, key);
    }
    if let Form::Ecn = form {
        words.end()?;
        class.once("random-detect ecn", span)?;
        if let Some(wred) = &mut class.wred {
            wred.ecn = true;
        }
        return Ok(());
    }
    let weight = words.small("an exponent", 1..=WRED_EXPONENT_MAX)?;
    words.end()?;
    class.once("random-detect exponential-weighting-constant", span)?;
    if let Some(wred) = &mut class.wred {
        wred.exponential_weight = Some(weight);
    }
    Ok(())
}

/// `VALUE MIN [UNIT] MAX [UNIT] [DENOMINATOR]`, thresholds in packets where no unit is given.
fn wred_curve(
    words: &mut Words<'_, '_>,
    class: &mut ClassText,
    key: WredKey,
) -> Result<(), TextError> {
    let keyword = words.last_span();
    let value = match key {
        WredKey::Dscp => code_point::dscp(words)?,
        WredKey::Precedence => code_point::precedence(words)?,
    };
    let value_span = words.last_span();
    if let Some(word) = words.take_if("percent") {
        return Err(
            TextError::at(word.span, "thresholds in percent are not supported")
                .unmodelled()
                .expected("thresholds in packets, `bytes`, `ms` or `us`")
                .help("write them as parts of the class's `queue-limit`, in its unit"),
        );
    }
    let min = amount(words, "the minimum threshold", 0)?;
    let max = amount(words, "the maximum threshold", 0)?;
    let mark_denominator = match words.peek_number() {
        Some(_) => words.small("the mark probability denominator", 1..=MARK_DENOMINATOR_MAX)?,
        None => MARK_DENOMINATOR,
    };
    words.end()?;
    let Some(wred) = &mut class.wred else {
        return Ok(());
    };
    if wred.key != key {
        let (has, wants) = match key {
            WredKey::Dscp => ("precedence", "random-detect dscp-based"),
            WredKey::Precedence => ("DSCP", "random-detect"),
        };
        return Err(
            TextError::at(keyword, format!("WRED goes by {has} in this class"))
                .expected(format!("`{wants}` on a line before")),
        );
    }
    if wred.curves.iter().any(|&(other, _)| other == value) {
        return Err(TextError::at(value_span, "this value has a curve already")
            .expected("one curve for each value"));
    }
    wred.curves.push((
        value,
        RedCurveSpec {
            min,
            max,
            mark_denominator,
        },
    ));
    Ok(())
}

/// `set [ip] {dscp | precedence} VALUE`.
pub(super) fn set(words: &mut Words<'_, '_>, class: &mut ClassText) -> Result<(), TextError> {
    let span = words.last_span();
    words.take_if("ip");
    let by_dscp = words.choose(&[("dscp", true), ("precedence", false)])?;
    if let Some(word) = words.peek().filter(|word| word.is("tunnel")) {
        return Err(TextError::at(word.span, "tunnel headers are not marked")
            .unmodelled()
            .expected("a value"));
    }
    let dscp = if by_dscp {
        code_point::dscp(words)?
    } else {
        code_point::class_selector(code_point::precedence(words)?)
    };
    words.end()?;
    class.once("set", span)?;
    class.spec.set_dscp = Some(dscp);
    Ok(())
}
