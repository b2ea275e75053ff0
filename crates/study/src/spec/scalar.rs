//! Single values, and what they may look like.

use crate::file::{Decode, Entry, Problems, Schemas};
use serde_json::{Value, json};
use slicewise_model::{BurstSpec, IpPrefix, RateSpec};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, QuantityError};
use std::net::IpAddr;

/// A type that a single value can be read as.
pub(crate) trait Scalar: Sized {
    /// Name of the type in the schema.
    const NAME: &'static str;

    /// Read it; the error is a sentence for people.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Returns the schema, for editors.
    fn accepted() -> Value;
}

/// Types of single values: how one is read, and what an editor should accept.
macro_rules! scalars {
    ($($(#[doc = $doc:literal])* $type:ty as $shown:literal: $read:expr, accepting $accepted:expr;)*) => {
        $(impl Scalar for $type {
            const NAME: &'static str = $shown;

            fn from_text(text: &str) -> Result<Self, String> {
                let read: fn(&str) -> Result<Self, String> = $read;
                read(text)
            }

            fn accepted() -> serde_json::Value {
                $accepted
            }
        })*
    };
}
pub(crate) use scalars;

/// Types that narrow another: what of it is allowed.
macro_rules! narrowed {
    ($($(#[$attribute:meta])* $name:ident($inner:ty) as $shown:literal: $read:expr;)*) => {
        $(
            $(#[$attribute])*
            #[derive(Debug, Clone, Default, PartialEq, PartialOrd)]
            pub(crate) struct $name(pub(crate) $inner);

            impl Scalar for $name {
                const NAME: &'static str = $shown;

                fn from_text(text: &str) -> Result<Self, String> {
                    let read: fn(&str) -> Result<$inner, String> = $read;
                    read(text).map(Self)
                }

                fn accepted() -> serde_json::Value {
                    <$inner as Scalar>::accepted()
                }
            }
        )*
    };
}
pub(crate) use narrowed;

/// A name: it becomes the name of a folder, a file or a column of results.
#[derive(Debug, Clone, Default, PartialEq, PartialOrd)]
pub(crate) struct Name(pub(crate) String);

/// Longest name, characters.
pub(crate) const MAX_NAME_LENGTH: usize = 64;
/// Letters, digits and `. _ -`, starting with a letter or digit, not ending with a full stop.
pub(super) const NAME_PATTERN: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$";
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
        } else if text.len() > MAX_NAME_LENGTH {
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
        let shown: String = text.chars().take(MAX_NAME_LENGTH).collect();
        Err(format!("the name `{shown}` {problem}"))
    }

    fn accepted() -> Value {
        json!({ "type": ["string", "integer"], "pattern": NAME_PATTERN })
    }
}

impl AsRef<str> for Reference {
    fn as_ref(&self) -> &str {
        &self.0.0
    }
}

narrowed! {
    /// A name that something has: which, is looked up.
    Reference(Name) as "Name": |text| Ok(Name(text.to_owned()));
    /// Text as it is written, blanks around it included.
    Verbatim(String) as "Text": |text| Ok(text.to_owned());
}

scalars! {
    String as "Text": |text| Ok(text.trim().to_owned()), accepting json!({ "type": ["string", "number", "boolean"] });
}

/// Digits, with underscores between them and a point before, among or after them.
pub(crate) const NUMBER: &str = "([0-9]+(_[0-9]+)*(\\.([0-9]+(_[0-9]+)*)?)?|\\.[0-9]+(_[0-9]+)*)";

const PERCENT: &str = "[0-9]+(\\.[0-9]{1,3}0*)? *%";

fn quantity_schema(units: &str, examples: &[&str]) -> Value {
    json!({
        "type": "string",
        "pattern": format!("^ *{NUMBER} *({units}) *$"),
        "examples": examples,
    })
}

const RATE_UNITS: &str = "bit/s|kbit/s|Mbit/s|Gbit/s|Tbit/s|B/s|kB/s|MB/s|GB/s";
pub(crate) const SIZE_UNITS: &str = "B|byte|bytes|kB|MB|GB|KiB|MiB|GiB";
pub(crate) const TIME_UNITS: &str = "ns|us|µs|\u{3bc}s|ms|s|min|h";

/// Types of numbers with a unit.
macro_rules! quantities {
    ($($type:ty, $name:literal, $units:expr, $examples:expr;)*) => {
        $(impl Scalar for $type {
            const NAME: &'static str = $name;

            fn from_text(text: &str) -> Result<Self, String> {
                text.parse()
                    .map_err(|error: QuantityError| error.to_string())
            }

            fn accepted() -> Value {
                quantity_schema($units, &$examples)
            }
        })*
    };
}

quantities! {
    BitRate, "Rate", RATE_UNITS, ["17.5 Mbit/s", "1 Gbit/s"];
    ByteCount, "Size", SIZE_UNITS, ["1500 B", "64 kB"];
    Duration, "Duration", TIME_UNITS, ["40 s", "10 ms"];
}

narrowed! {
    /// A rate at which something passes.
    #[derive(Copy)]
    PassingRate(BitRate) as "Rate": |text| match BitRate::from_text(text)? {
        BitRate::ZERO => Err("a rate of zero: nothing could pass".to_owned()),
        rate => Ok(rate),
    };
    /// A time longer than zero.
    #[derive(Copy)]
    Positive(Duration) as "Duration": |text| match Duration::from_text(text)? {
        Duration::ZERO => Err("this must be longer than zero".to_owned()),
        duration => Ok(duration),
    };
    /// A fraction of a whole, written in percent.
    #[derive(Copy)]
    Fraction(f64) as "Percent": |text| Percent::from_text(text)?.of_all();
}

scalars! {
    /// A fraction, written in percent.
    f64 as "Percent": |text| Percent::from_text(text).map(Percent::fraction), accepting Percent::accepted();
}

/// A percentage in thousandths of a percent: 100 % is 100,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u32);

impl Percent {
    /// 100 %.
    pub(crate) const ALL: Self = Self(100_000);

    /// As a fraction, where it is no more than all.
    pub(crate) fn of_all(self) -> Result<f64, String> {
        match self.0 <= Self::ALL.0 {
            true => Ok(self.fraction()),
            false => Err("this is more than 100 %".to_owned()),
        }
    }

    /// As a fraction: 50 % is 0.5.
    pub(crate) fn fraction(self) -> f64 {
        f64::from(self.0) / 100_000.0
    }
}

impl Scalar for Percent {
    const NAME: &'static str = "Percent";

    fn from_text(text: &str) -> Result<Self, String> {
        percent_digits(text, 3).map(Self)
    }

    fn accepted() -> Value {
        json!({
            "type": "string",
            "pattern": format!("^ *{PERCENT} *$"),
            "examples": ["45 %"],
        })
    }
}

/// The digits of a percentage, with `places` after the point: with three, `45 %` is 45,000.
pub(crate) fn percent_digits<T: std::str::FromStr>(text: &str, places: usize) -> Result<T, String> {
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
    if fraction.trim_end_matches('0').len() > places {
        let most = match places {
            3 => "three",
            _ => "seven",
        };
        return Err(format!(
            "`{trimmed}` has more than {most} digits after the point"
        ));
    }
    let zeros = "0".repeat(places);
    let fraction: String = fraction.chars().chain(zeros.chars()).take(places).collect();
    format!("{whole}{fraction}")
        .parse()
        .map_err(|_| format!("`{trimmed}` is too large for a percentage"))
}

/// A small fraction in parts per million, also written as a percentage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd)]
pub(crate) struct PartsPerMillion(pub(crate) u32);

impl PartsPerMillion {
    /// Parts per billion.
    pub(crate) const fn ppb(self) -> u32 {
        self.0.saturating_mul(1_000)
    }
}

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

    fn accepted() -> Value {
        quantity_schema("ppm|%", &["100 ppm", "0.1 %"])
    }
}

/// A rate, or a percentage of one that the place states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share(pub(crate) RateSpec);

scalars! {
    Share as "RateOrPercent": |text| {
        if text.trim_end().ends_with('%') {
            return Percent::from_text(text).map(|p| Self(RateSpec::PercentMilli(p.0)));
        }
        BitRate::from_text(text).map(|rate| Self(RateSpec::Absolute(rate)))
    },
    accepting json!({
        "type": "string",
        "pattern": format!("^ *({PERCENT}|{NUMBER} *({RATE_UNITS})) *$"),
        "examples": ["45 %", "17.5 Mbit/s"],
    });
    /// A rate, or a percentage of at most all of it.
    RateSpec as "RateOrPercent": |text| {
        let Share(rate) = Share::from_text(text)?;
        match rate {
            Self::PercentMilli(share) => Percent(share).of_all().map(|_| rate),
            Self::Absolute(_) => Ok(rate),
        }
    },
    accepting Share::accepted();
}

/// Returns what was probably meant by a text that is none of several quantities.
pub(super) fn meant(errors: &[&QuantityError]) -> Option<String> {
    let with_unit = errors.iter().find(|error| error.meant().is_some());
    with_unit.map(ToString::to_string)
}

scalars! {
    /// An amount of bytes, or of time at a rate that the place states.
    BurstSpec as "SizeOrDuration": |text| match (text.parse(), text.parse()) {
        (Ok(size), _) => Ok(Self::Size(size)),
        (_, Ok(time)) => Ok(Self::Time(time)),
        (Err(size), Err(time)) => Err(meant(&[&size, &time]).unwrap_or_else(|| {
            format!(
                "`{}` is neither a size nor a duration: write for example `15 kB` or `10 ms`",
                text.trim()
            )
        })),
    },
    accepting quantity_schema(&format!("{SIZE_UNITS}|{TIME_UNITS}"), &["15 kB", "1 s"]);
    bool as "YesOrNo": |text| match text.trim() {
        "true" | "True" | "yes" | "Yes" => Ok(true),
        "false" | "False" | "no" | "No" => Ok(false),
        other => Err(format!("`{other}` is neither `true` nor `false`")),
    },
    accepting json!({ "enum": [true, false, "yes", "Yes", "no", "No"] });
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Repetitions(pub(crate) u32);

/// Most repetitions of one cell.
const MAX_REPETITIONS: u32 = 10_000;

scalars! {
    Repetitions as "Repetitions": |text| match u32::from_text(text)? {
        repetitions @ 1..=MAX_REPETITIONS => Ok(Self(repetitions)),
        _ => Err(format!("there must be 1 to {MAX_REPETITIONS} repetitions")),
    },
    accepting json!({ "type": "integer", "minimum": 1, "maximum": MAX_REPETITIONS });
}

/// Types of whole numbers.
macro_rules! numbers {
    ($($type:ty, $name:literal, $up_to:literal;)*) => {
        $(impl Scalar for $type {
            const NAME: &'static str = $name;

            fn from_text(text: &str) -> Result<Self, String> {
                number(text, concat!("a whole number from 0 to ", $up_to))
            }

            fn accepted() -> Value {
                json!({ "type": "integer", "minimum": 0, "maximum": Self::MAX })
            }
        })*
    };
}

numbers! {
    u8, "SmallNumber", "255";
    u16, "Port", "65,535";
    u32, "Number", "4,294,967,295";
    u64, "LargeNumber", "2^64 − 1";
}

/// A number that must be at least 1: an editor says so, and whoever uses it says what is wrong with 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtLeastOne<T>(pub(crate) T);

impl<T: Scalar> Decode for AtLeastOne<T> {
    fn decode(entry: Entry<'_>, problems: &mut Problems) -> Option<Self> {
        T::decode(entry, problems).map(Self)
    }

    fn schema(schemas: &mut Schemas) -> Value {
        let mut schema = <T as Decode>::schema(schemas);
        if let Value::Object(schema) = &mut schema {
            schema.insert("minimum".to_owned(), 1.into());
        }
        schema
    }
}

/// One number or a range of them: `10` or `10-19`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd)]
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
    /// Description of a bound.
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

    fn accepted() -> Value {
        let (smallest, largest): (u32, u32) = (T::SMALLEST.into(), T::LARGEST.into());
        json!({
            "anyOf": [
                { "type": "integer", "minimum": smallest, "maximum": largest },
                { "type": "string", "pattern": "^ *[0-9]+ *(- *[0-9]+ *)?$" },
            ],
        })
    }
}

scalars! {
    IpPrefix as "AddressPrefix": |text| text.trim().parse(),
    accepting json!({ "type": "string", "examples": ["10.0.10.0/24", "2001:db8::/32"] });
    IpAddr as "Address": |text| {
        let trimmed = text.trim();
        trimmed.parse().map_err(|_| {
            format!("`{trimmed}` is not an address: write for example `10.0.10.1` or `2001:db8::1`")
        })
    },
    accepting json!({ "type": "string", "examples": ["10.0.10.1", "2001:db8::1"] });
    Accounting as "Accounting": |text| text.parse(), accepting counted_of(&["L1", "L2", "L3"]);
}

/// Returns the schema of words, and of layers with what a link adds to each frame.
pub(super) fn counted_of(words: &[&str]) -> Value {
    json!({
        "anyOf": [
            { "enum": words },
            {
                "type": "string",
                "pattern": format!("^ *L[123] *([+-] *{NUMBER} *({SIZE_UNITS}))?( in ATM cells)? *$"),
                "examples": ["L2 + 8 B", "L3 + 40 B in ATM cells"],
            },
        ],
    })
}
