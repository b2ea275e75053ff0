//! Quantities as people write them: a decimal number and a unit, exactly.

use std::fmt;

/// One unit a quantity may be written in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    symbol: &'static str,
    /// How many base units one of these is.
    factor: u64,
}

impl Unit {
    pub(crate) const fn new(symbol: &'static str, factor: u64) -> Self {
        Self { symbol, factor }
    }
}

/// Why a text is not a quantity. Its message says what was expected and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuantityError {
    /// A number with no unit.
    MissingUnit {
        /// What the text should have been: "rate", "size", "duration".
        quantity: &'static str,
        /// The text as written.
        text: String,
        /// The units that would do.
        units: String,
    },
    /// A unit that is not one of this quantity's.
    UnknownUnit {
        /// What the text should have been.
        quantity: &'static str,
        /// The unit as written.
        unit: String,
        /// The units that would do.
        units: String,
    },
    /// No number where one should be.
    NotANumber {
        /// What the text should have been.
        quantity: &'static str,
        /// The text as written.
        text: String,
        /// A text that would do.
        example: &'static str,
    },
    /// A negative number.
    Negative {
        /// What the text should have been.
        quantity: &'static str,
        /// The text as written.
        text: String,
    },
    /// More digits after the point than the base unit has.
    NotWhole {
        /// What the text should have been.
        quantity: &'static str,
        /// The text as written.
        text: String,
        /// The base unit.
        base: &'static str,
    },
    /// A number past the largest one allowed.
    TooLarge {
        /// What the text should have been.
        quantity: &'static str,
        /// The text as written.
        text: String,
    },
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingUnit { quantity, text, units } => {
                write!(f, "`{text}` is a number without a unit: a {quantity} needs one of {units}")
            }
            Self::UnknownUnit { quantity, unit, units } => {
                write!(f, "`{unit}` is not a unit of a {quantity}: use one of {units}")
            }
            Self::NotANumber { quantity, text, example } => {
                write!(f, "`{text}` is not a {quantity}: write for example `{example}`")
            }
            Self::Negative { quantity, text } => {
                write!(f, "`{text}` is negative: a {quantity} cannot be")
            }
            Self::NotWhole { quantity, text, base } => {
                write!(f, "`{text}` is not a whole number of {base}: a {quantity} is counted in whole {base}")
            }
            Self::TooLarge { quantity, text } => {
                write!(f, "`{text}` is too large for a {quantity}")
            }
        }
    }
}

impl std::error::Error for QuantityError {}

/// Parse `text` into base units, exactly: no float is involved.
pub(crate) fn parse(
    text: &str,
    quantity: &'static str,
    units: &'static [Unit],
    example: &'static str,
    max: u64,
) -> Result<u64, QuantityError> {
    let trimmed = text.trim();
    let owned = || trimmed.to_owned();
    if trimmed.starts_with('-') {
        return Err(QuantityError::Negative { quantity, text: owned() });
    }
    let number_end = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(QuantityError::NotANumber { quantity, text: owned(), example });
    }
    let unit = unit.trim();
    let symbols =
        || units.iter().map(|u| u.symbol).collect::<Vec<_>>().join(", ");
    if unit.is_empty() {
        return Err(QuantityError::MissingUnit { quantity, text: owned(), units: symbols() });
    }
    let Some(unit) = units.iter().find(|u| u.symbol == unit) else {
        return Err(QuantityError::UnknownUnit { quantity, unit: unit.to_owned(), units: symbols() });
    };
    let too_large = || QuantityError::TooLarge { quantity, text: owned() };
    let digits = |s: &str| -> Result<u128, QuantityError> {
        s.bytes().filter(u8::is_ascii_digit).try_fold(0u128, |value, digit| {
            let value = value.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
            (value <= u128::from(u64::MAX)).then_some(value)
        }).ok_or_else(too_large)
    };
    let mut base = digits(whole)? * u128::from(unit.factor);
    // Trailing zeros say nothing; past 19 digits no unit could hold the fraction.
    let fraction = fraction.trim_end_matches(['0', '_']);
    let places = fraction.bytes().filter(u8::is_ascii_digit).count();
    if places > 0 {
        let not_whole =
            || QuantityError::NotWhole { quantity, text: owned(), base: units[0].symbol };
        let scale = u32::try_from(places).ok().and_then(|p| 10u128.checked_pow(p)).filter(|_| places <= 19)
            .ok_or_else(not_whole)?;
        let scaled = digits(fraction)? * u128::from(unit.factor);
        if scaled % scale != 0 {
            return Err(not_whole());
        }
        base += scaled / scale;
    }
    u64::try_from(base).ok().filter(|&b| b <= max).ok_or_else(too_large)
}

/// Write `value` in the largest unit that needs at most three decimals, else in the base unit:
/// reading the text back gives the same value.
pub(crate) fn format(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let Some(&(base, _)) = units.last() else { return write!(f, "{value}") };
    for &(symbol, factor) in units {
        let step = (factor / 1_000).max(1);
        if value >= factor && value % step == 0 {
            let whole = value / factor;
            let thousandths = (value % factor) / step;
            let text = if thousandths == 0 || factor < 1_000 {
                format!("{whole} {symbol}")
            } else {
                let decimals = format!("{thousandths:03}");
                format!("{whole}.{} {symbol}", decimals.trim_end_matches('0'))
            };
            return f.pad(&text);
        }
    }
    f.pad(&format!("{value} {base}"))
}
