//! Quantities as people write them: a decimal number and a unit, exactly.

use std::fmt;

/// One unit a quantity may be written in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    symbol: &'static str,
    /// How many base units one of these is.
    factor: u64,
    /// Another way to write a unit, which messages do not list.
    is_alias: bool,
}

impl Unit {
    pub(crate) const fn new(symbol: &'static str, factor: u64) -> Self {
        Self {
            symbol,
            factor,
            is_alias: false,
        }
    }

    pub(crate) const fn alias(symbol: &'static str, factor: u64) -> Self {
        Self {
            symbol,
            factor,
            is_alias: true,
        }
    }
}

/// Why a text is not a quantity. Its message says what was expected and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuantityError {
    /// A number with no unit.
    MissingUnit {
        /// Quantity that was expected: "rate", "size", "duration".
        quantity: &'static str,
        /// The text as written.
        text: String,
        /// The units that would do.
        units: String,
    },
    /// A unit that is not one of this quantity's.
    UnknownUnit {
        /// Quantity that was expected.
        quantity: &'static str,
        /// The unit as written.
        unit: String,
        /// The one that was probably meant.
        meant: Option<&'static str>,
        /// The units that would do.
        units: String,
    },
    /// No number where one should be.
    NotANumber {
        /// Quantity that was expected.
        quantity: &'static str,
        /// The text as written.
        text: String,
        /// A text that would do.
        example: &'static str,
    },
    /// A negative number.
    Negative {
        /// Quantity that was expected.
        quantity: &'static str,
        /// The text as written.
        text: String,
    },
    /// More digits after the point than the base unit has.
    NotWhole {
        /// Quantity that was expected.
        quantity: &'static str,
        /// The text as written.
        text: String,
        /// The base unit.
        base: &'static str,
    },
    /// A number past the largest one allowed.
    TooLarge {
        /// Quantity that was expected.
        quantity: &'static str,
        /// The text as written.
        text: String,
    },
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingUnit {
                quantity,
                text,
                units,
            } => {
                write!(
                    f,
                    "`{text}` is a number without a unit: a {quantity} needs one of {units}"
                )
            }
            Self::UnknownUnit {
                quantity,
                unit,
                meant,
                units,
            } => {
                write!(f, "`{unit}` is not a unit of a {quantity}: ")?;
                match meant {
                    Some(meant) => write!(f, "did you mean `{meant}`?"),
                    None => write!(f, "use one of {units}"),
                }
            }
            Self::NotANumber {
                quantity,
                text,
                example,
            } => {
                write!(
                    f,
                    "`{text}` is not a {quantity}: write for example `{example}`"
                )
            }
            Self::Negative { quantity, text } => {
                write!(f, "`{text}` is negative: a {quantity} must be at least 0")
            }
            Self::NotWhole {
                quantity,
                text,
                base,
            } => {
                write!(
                    f,
                    "`{text}` is not a whole number of {base}: a {quantity} is counted in whole {base}"
                )
            }
            Self::TooLarge { quantity, text } => {
                write!(f, "`{text}` is too large for a {quantity}")
            }
        }
    }
}

impl std::error::Error for QuantityError {}

impl QuantityError {
    /// The unit that was probably meant, where the unit is the mistake.
    #[must_use]
    pub const fn meant(&self) -> Option<&'static str> {
        match self {
            Self::UnknownUnit { meant, .. } => *meant,
            _ => None,
        }
    }
}

/// A quantity: what it is called, its units, a text that is one, and which unit another word means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    pub(crate) name: &'static str,
    pub(crate) units: &'static [Unit],
    pub(crate) example: &'static str,
    pub(crate) meant: fn(&str) -> Option<&'static str>,
}

/// Parse `text` into base units, exactly: no float is involved.
///
/// A number is decimal digits, optionally with a point, and with underscores between digits;
/// a sign, an exponent or a comma is refused rather than guessed at.
pub(crate) fn parse(
    text: &str,
    Quantity {
        name: quantity,
        units,
        example,
        meant,
    }: Quantity,
    max: u64,
) -> Result<u64, QuantityError> {
    let text = text.trim();
    let not_a_number = || QuantityError::NotANumber {
        quantity,
        text: quoted(text),
        example,
    };
    let is_number_char = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
    if let Some(positive) = text.strip_prefix('-') {
        return Err(if positive.trim_start().starts_with(is_number_char) {
            QuantityError::Negative {
                quantity,
                text: quoted(text),
            }
        } else {
            not_a_number()
        });
    }
    let number_end = text.find(|c| !is_number_char(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let (whole, fraction) = split_number(number).ok_or_else(not_a_number)?;
    let unit = unit.trim_start();
    let symbols = || {
        units
            .iter()
            .filter(|u| !u.is_alias)
            .map(|u| u.symbol)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if unit.is_empty() {
        return Err(QuantityError::MissingUnit {
            quantity,
            text: quoted(text),
            units: symbols(),
        });
    }
    if unit.contains(|c: char| c == ',' || c.is_ascii_digit()) {
        return Err(not_a_number());
    }
    // Unicode has two micro signs that look alike.
    let normalised = unit.replace('\u{3bc}', "\u{b5}");
    let Some(unit) = units.iter().find(|u| u.symbol == normalised) else {
        return Err(QuantityError::UnknownUnit {
            quantity,
            unit: quoted(unit),
            meant: meant(unit),
            units: symbols(),
        });
    };
    let too_large = || QuantityError::TooLarge {
        quantity,
        text: quoted(text),
    };
    let whole = digits(whole).ok_or_else(too_large)? * u128::from(unit.factor);
    let fraction = fraction_in_base(fraction, unit.factor).ok_or_else(|| {
        let base = units.first().map_or("", |u| u.symbol);
        QuantityError::NotWhole {
            quantity,
            text: quoted(text),
            base,
        }
    })?;
    u64::try_from(whole + fraction)
        .ok()
        .filter(|&base| base <= max)
        .ok_or_else(too_large)
}

/// The digits before and after the point; `None` where `number` is not one.
fn split_number(number: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let well_formed = |part: &str| {
        part.is_empty()
            || part
                .split('_')
                .all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()))
    };
    let some_digits = !(whole.is_empty() && fraction.is_empty());
    (some_digits && well_formed(whole) && well_formed(fraction)).then_some((whole, fraction))
}

/// The value of a run of digits; `None` past `u64::MAX`.
fn digits(text: &str) -> Option<u128> {
    text.bytes()
        .filter(u8::is_ascii_digit)
        .try_fold(0u128, |value, digit| {
            let value = value * 10 + u128::from(digit - b'0');
            (value <= u128::from(u64::MAX)).then_some(value)
        })
}

/// Returns the value of the digits after the point in base units; `None` where it is not whole.
fn fraction_in_base(fraction: &str, factor: u64) -> Option<u128> {
    // Trailing zeros say nothing; past 19 digits no unit could make the fraction whole.
    let fraction = fraction.trim_end_matches(['0', '_']);
    let places = fraction.bytes().filter(u8::is_ascii_digit).count();
    let places = u32::try_from(places).ok().filter(|&places| places <= 19)?;
    let scale = 10u128.pow(places);
    let scaled = digits(fraction)? * u128::from(factor);
    (scaled % scale == 0).then_some(scaled / scale)
}

/// `text` as an error message repeats it: not more than a line of it.
fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Write `value` in the largest unit that needs at most three decimals, else in the base unit:
/// reading the text back gives the same value.
pub(crate) fn format(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let Some(&(base, _)) = units.last() else {
        return write!(f, "{value}");
    };
    for &(symbol, factor) in units {
        let step = (factor / 1_000).max(1);
        if value >= factor && value.is_multiple_of(step) {
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

/// Returns true if a character changes a terminal or the direction of text instead of being shown: text that others
/// wrote is printed with such characters escaped.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
