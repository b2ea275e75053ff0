//! Single values as they are written, and what they may look like.
//!
//! A value is kept as text with its place until it is checked: so each bad value is reported,
//! not only the first, and in the words of the type it should have been.

use crate::file::{At, Problems, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use slicewise_model::{IpPrefix, RateSpec};
use slicewise_units::{BitRate, ByteCount, Duration, Layer, QuantityError};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::net::IpAddr;

/// A type that a single value can be read as.
pub(crate) trait Scalar: Sized {
    /// Name of the type in the schema.
    const NAME: &'static str;

    /// Read it; the error is a sentence for people.
    fn from_text(text: &str) -> Result<Self, String>;

    /// What an editor should accept.
    fn schema() -> Schema;
}

/// A single value: its text, its place, and what it should be.
#[derive(Debug, Clone)]
pub(crate) struct Text<T> {
    text: String,
    span: Span,
    is: PhantomData<fn() -> T>,
}

impl<T: Scalar> Text<T> {
    /// One that is not written as a value of its own.
    pub(crate) fn at(text: &str, span: Span) -> Self {
        Self {
            text: text.to_owned(),
            span,
            is: PhantomData,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The value; where it is none, `problems` says so.
    pub(crate) fn read(&self, problems: &mut Problems) -> Option<T> {
        T::from_text(&self.text)
            .map_err(|message| problems.add(self.span, message))
            .ok()
    }
}

impl<'de, T> Deserialize<'de> for Text<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let At { value, span } = At::<String>::deserialize(deserializer)?;
        Ok(Self {
            text: value,
            span,
            is: PhantomData,
        })
    }
}

impl<T: Scalar> JsonSchema for Text<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::schema()
    }
}

/// A name: it becomes the name of a folder, a file or a column of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

/// Longest name, characters.
const NAME_LENGTH: usize = 64;
/// Letters, digits and `. _ -`, starting with a letter or digit, not ending with a full stop.
const NAME_PATTERN: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$";
/// Names that are devices on Windows, whatever their extension.
const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];

impl Scalar for Name {
    const NAME: &'static str = "Name";

    fn from_text(text: &str) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let stem = text
            .split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let is_reserved = RESERVED.contains(&stem.as_str())
            || (stem.len() == 4
                && (stem.starts_with("com") || stem.starts_with("lpt"))
                && stem.ends_with(|c: char| c.is_ascii_digit()));
        let problem = if text.is_empty() {
            "is empty"
        } else if text.len() > NAME_LENGTH {
            "is longer than 64 characters"
        } else if !text.chars().all(allowed) {
            "has an invalid character: letters, digits, `.`, `_` and `-` are allowed"
        } else if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            "does not start with a letter or digit"
        } else if text.ends_with('.') {
            "ends with a full stop"
        } else if is_reserved {
            "is reserved by an operating system: results could not be stored in a folder of it"
        } else {
            return Ok(Self(text.to_owned()));
        };
        let shown: String = text.chars().take(NAME_LENGTH).collect();
        Err(format!("the name `{shown}` {problem}"))
    }

    fn schema() -> Schema {
        name_schema()
    }
}

/// The schema of a name, also for keys that are names.
pub(crate) fn name_schema() -> Schema {
    json_schema!({ "type": ["string", "integer"], "pattern": NAME_PATTERN })
}

impl Scalar for String {
    const NAME: &'static str = "Text";

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.trim_end().to_owned())
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// Digits, with underscores between them and a point before, among or after them.
pub(super) const NUMBER: &str = "([0-9]+(_[0-9]+)*(\\.([0-9]+(_[0-9]+)*)?)?|\\.[0-9]+(_[0-9]+)*)";

const PERCENT: &str = "[0-9]+(\\.[0-9]{1,3}0*)? *%";

fn quantity_schema(units: &str, examples: &[&str]) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": format!("^ *{NUMBER} *({units}) *$"),
        "examples": examples,
    })
}

const RATE_UNITS: &str = "bit/s|kbit/s|Mbit/s|Gbit/s|Tbit/s|B/s|kB/s|MB/s|GB/s";
pub(super) const SIZE_UNITS: &str = "B|byte|bytes|kB|MB|GB|KiB|MiB|GiB";
pub(super) const TIME_UNITS: &str = "ns|us|µs|\u{3bc}s|ms|s|min|h";

impl Scalar for BitRate {
    const NAME: &'static str = "Rate";

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: QuantityError| error.to_string())
    }

    fn schema() -> Schema {
        quantity_schema(RATE_UNITS, &["17.5 Mbit/s", "1 Gbit/s"])
    }
}

impl Scalar for ByteCount {
    const NAME: &'static str = "Size";

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: QuantityError| error.to_string())
    }

    fn schema() -> Schema {
        quantity_schema(SIZE_UNITS, &["1500 B", "64 kB"])
    }
}

impl Scalar for Duration {
    const NAME: &'static str = "Duration";

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: QuantityError| error.to_string())
    }

    fn schema() -> Schema {
        quantity_schema(TIME_UNITS, &["40 s", "10 ms"])
    }
}

/// A percentage in thousandths of a percent: 100 % is 100,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u32);

impl Percent {
    /// 100 %.
    pub(crate) const ALL: Self = Self(100_000);

    /// As a fraction: 50 % is 0.5.
    pub(crate) fn fraction(self) -> f64 {
        f64::from(self.0) / 100_000.0
    }
}

impl Scalar for Percent {
    const NAME: &'static str = "Percent";

    fn from_text(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let expected = || format!("`{trimmed}` is not a percentage: write for example `45 %`");
        if trimmed.starts_with('-') {
            return Err(format!(
                "`{trimmed}` is negative: a percentage must be at least 0"
            ));
        }
        let Some(number) = trimmed.strip_suffix('%') else {
            let is_number = trimmed.parse::<f64>().is_ok();
            let bare = || format!("`{trimmed}` is a number without a unit: write `{trimmed} %`");
            return Err(if is_number { bare() } else { expected() });
        };
        let (whole, fraction) = number
            .trim()
            .split_once('.')
            .unwrap_or((number.trim(), "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(expected());
        }
        if fraction.trim_end_matches('0').len() > 3 {
            return Err(format!(
                "`{trimmed}` has more than three digits after the point"
            ));
        }
        let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
        format!("{whole}{thousandths}")
            .parse()
            .map(Self)
            .map_err(|_| format!("`{trimmed}` is too large for a percentage"))
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": format!("^ *{PERCENT} *$"),
            "examples": ["45 %"],
        })
    }
}

/// A small fraction in parts per million, also written as a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartsPerMillion(pub(crate) u32);

impl Scalar for PartsPerMillion {
    const NAME: &'static str = "PartsPerMillion";

    fn from_text(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed.ends_with('%') {
            return Percent::from_text(trimmed).map(|percent| Self(percent.0.saturating_mul(10)));
        }
        let whole = trimmed
            .strip_suffix("ppm")
            .map(|number| number.trim().replace('_', ""));
        let whole = whole.filter(|number| number.bytes().all(|b| b.is_ascii_digit()));
        whole.and_then(|number| number.parse().ok()).map(Self).ok_or_else(|| {
            format!(
                "`{trimmed}` is not a number of parts per million: write for example `100 ppm` or \
                 `0.1 %`"
            )
        })
    }

    fn schema() -> Schema {
        quantity_schema("ppm|%", &["100 ppm", "0.1 %"])
    }
}

/// A rate, or a percentage of one that the place states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share(pub(crate) RateSpec);

impl Scalar for Share {
    const NAME: &'static str = "RateOrPercent";

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim_end().ends_with('%') {
            return Percent::from_text(text).map(|p| Self(RateSpec::PercentMilli(p.0)));
        }
        BitRate::from_text(text).map(|rate| Self(RateSpec::Absolute(rate)))
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": format!("^ *({PERCENT}|{NUMBER} *({RATE_UNITS})) *$"),
            "examples": ["45 %", "17.5 Mbit/s"],
        })
    }
}

/// What a text may have been meant as that is none of several quantities.
pub(super) fn meant(errors: &[&QuantityError]) -> Option<String> {
    let with_unit = errors.iter().find(|error| error.meant().is_some());
    with_unit.map(ToString::to_string)
}

/// An amount of bytes, or of time at a rate that the place states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Size(ByteCount),
    Time(Duration),
}

impl Scalar for Amount {
    const NAME: &'static str = "SizeOrDuration";

    fn from_text(text: &str) -> Result<Self, String> {
        match (text.parse(), text.parse()) {
            (Ok(size), _) => Ok(Self::Size(size)),
            (_, Ok(time)) => Ok(Self::Time(time)),
            (Err(size), Err(time)) => Err(meant(&[&size, &time]).unwrap_or_else(|| {
                format!(
                    "`{}` is neither a size nor a duration: write for example `15 kB` or `10 ms`",
                    text.trim()
                )
            })),
        }
    }

    fn schema() -> Schema {
        quantity_schema(&format!("{SIZE_UNITS}|{TIME_UNITS}"), &["15 kB", "1 s"])
    }
}

impl Scalar for bool {
    const NAME: &'static str = "YesOrNo";

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "true" | "True" | "yes" | "Yes" => Ok(true),
            "false" | "False" | "no" | "No" => Ok(false),
            other => Err(format!("`{other}` is neither `true` nor `false`")),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "enum": [true, false, "yes", "Yes", "no", "No"] })
    }
}

/// A number without a unit. YAML 1.2 reads one with underscores as text, so other programs would not read
/// it as this one does.
pub(crate) fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    let trimmed = text.trim();
    trimmed.parse().map_err(|_| {
        let plain = trimmed.replace('_', "");
        if plain != trimmed && plain.parse::<T>().is_ok() {
            return format!(
                "`{trimmed}` has underscores, which YAML 1.2 reads as text: write {plain}"
            );
        }
        format!("`{trimmed}` is not {what}")
    })
}

/// How often something is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repetitions(pub(crate) u32);

/// Most repetitions of one cell.
const MAX_REPETITIONS: u32 = 10_000;

impl Scalar for Repetitions {
    const NAME: &'static str = "Repetitions";

    fn from_text(text: &str) -> Result<Self, String> {
        match u32::from_text(text)? {
            repetitions @ 1..=MAX_REPETITIONS => Ok(Self(repetitions)),
            _ => Err(format!("there must be 1 to {MAX_REPETITIONS} repetitions")),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX_REPETITIONS })
    }
}

impl Scalar for u32 {
    const NAME: &'static str = "Number";

    fn from_text(text: &str) -> Result<Self, String> {
        number(text, "a whole number from 0 to 4,294,967,295")
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

impl Scalar for u64 {
    const NAME: &'static str = "LargeNumber";

    fn from_text(text: &str) -> Result<Self, String> {
        number(text, "a whole number from 0 to 2^64 − 1")
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
    }
}

impl Scalar for u8 {
    const NAME: &'static str = "SmallNumber";

    fn from_text(text: &str) -> Result<Self, String> {
        number(text, "a whole number from 0 to 255")
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": 255 })
    }
}

impl Scalar for u16 {
    const NAME: &'static str = "Port";

    fn from_text(text: &str) -> Result<Self, String> {
        number(text, "a whole number from 0 to 65,535")
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": 65535 })
    }
}

/// One number or a range of them: `10` or `10-19`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberRange<T = u16> {
    pub(crate) first: T,
    pub(crate) last: T,
}

/// A number that ranges are written of.
pub(crate) trait RangeBound:
    std::str::FromStr + std::fmt::Display + Copy + PartialOrd + Into<u32>
{
    /// Name of the range in the schema.
    const NAME: &'static str;
    /// What a bound is.
    const EXPECTED: &'static str;
    const SMALLEST: Self;
    const LARGEST: Self;
}

impl RangeBound for u16 {
    const NAME: &'static str = "NumberOrRange";
    const EXPECTED: &'static str = "a whole number from 0 to 65,535, or a range like `10-19`";
    const SMALLEST: Self = 0;
    const LARGEST: Self = Self::MAX;
}

/// TEIDs of user packets; 0 is for other messages (3GPP TS 29.281, section 5.1).
impl RangeBound for u32 {
    const NAME: &'static str = "TeidOrRange";
    const EXPECTED: &'static str =
        "a whole number from 1 to 4,294,967,295, or a range like `1-1000`";
    const SMALLEST: Self = 1;
    const LARGEST: Self = Self::MAX;
}

impl<T: RangeBound> Scalar for NumberRange<T> {
    const NAME: &'static str = T::NAME;

    fn from_text(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let bound = |text: &str| match number::<T>(text, T::EXPECTED)? {
            small if small < T::SMALLEST => {
                Err(format!("`{}` is not {}", text.trim(), T::EXPECTED))
            }
            bound => Ok(bound),
        };
        let range = Self {
            first: bound(first)?,
            last: bound(last)?,
        };
        if range.first > range.last {
            return Err(format!("the range `{}` ends before it starts", text.trim()));
        }
        Ok(range)
    }

    fn schema() -> Schema {
        let (smallest, largest): (u32, u32) = (T::SMALLEST.into(), T::LARGEST.into());
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": smallest, "maximum": largest },
                { "type": "string", "pattern": "^ *[0-9]+ *(- *[0-9]+ *)?$" },
            ],
        })
    }
}

impl Scalar for IpPrefix {
    const NAME: &'static str = "AddressPrefix";

    fn from_text(text: &str) -> Result<Self, String> {
        text.trim().parse()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "examples": ["10.0.10.0/24", "2001:db8::/32"] })
    }
}

impl Scalar for IpAddr {
    const NAME: &'static str = "Address";

    fn from_text(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        trimmed.parse().map_err(|_| {
            format!("`{trimmed}` is not an address: write for example `10.0.10.1` or `2001:db8::1`")
        })
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "examples": ["10.0.10.1", "2001:db8::1"] })
    }
}

impl Scalar for Layer {
    const NAME: &'static str = "Layer";

    fn from_text(text: &str) -> Result<Self, String> {
        text.trim().parse()
    }

    fn schema() -> Schema {
        json_schema!({ "enum": ["L1", "L2", "L3"] })
    }
}
