//! Numbers for people: a few digits and a suitable unit.

/// A rate in bit/s: "17.5 Mbit/s".
#[must_use]
pub fn rate(bits_per_second: f64) -> String {
    in_unit(
        bits_per_second,
        &[
            ("Gbit/s", 1e9),
            ("Mbit/s", 1e6),
            ("kbit/s", 1e3),
            ("bit/s", 1.0),
        ],
    )
}

/// A time in ns: 735 500 is "735.5 µs".
#[must_use]
pub fn time(ns: f64) -> String {
    in_unit(ns, &[("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)])
}

/// A ratio: 0.25 is "25 %". Three decimals at most: less is noise.
#[must_use]
pub fn percent(ratio: f64) -> String {
    format!("{} %", digits((ratio * 1e5).round() / 1e3, 3))
}

/// A ratio that may be very small: 0.0001 is "0.01 %", 0.000003 is "3·10⁻⁶".
#[must_use]
pub fn share(ratio: f64) -> String {
    if !(f64::MIN_POSITIVE..1e-5).contains(&ratio) {
        return percent(ratio);
    }
    let exponent = ratio.log10().floor();
    // 9.96 is 10.
    let mantissa = digits(ratio / 10f64.powf(exponent), 2);
    let (mantissa, exponent) = match mantissa.as_str() {
        "10" => ("1", exponent + 1.0),
        mantissa => (mantissa, exponent),
    };
    let superscript = |digit: char| match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0'..='9' => {
            char::from_u32(u32::from(digit) - u32::from('0') + u32::from('⁰')).unwrap_or(digit)
        }
        _ => '⁻',
    };
    let exponent: String = format!("{exponent}").chars().map(superscript).collect();
    format!("{mantissa}·10{exponent}")
}

/// A difference of two ratios: 0.001 is "0.1 points", so that it is not read as relative.
#[must_use]
pub fn points(difference: f64) -> String {
    percent(difference).replace('%', "points")
}

/// A relative change with its sign; from tenfold on, as a multiple: "5820-fold".
#[must_use]
pub fn change(ratio: f64) -> String {
    if ratio >= MULTIPLE_FROM {
        format!("{}-fold", digits(1.0 + ratio, 3))
    } else {
        signed(&percent(ratio))
    }
}

/// With its sign; values that round to zero have none.
#[must_use]
pub fn signed(text: &str) -> String {
    if !text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        return text.trim_start_matches('−').to_owned();
    }
    if text.starts_with('−') {
        text.to_owned()
    } else {
        format!("+{text}")
    }
}

/// From this relative change on, a multiple is clearer than a percentage.
const MULTIPLE_FROM: f64 = 9.0;

/// `significant` digits, no trailing zeros, no exponent, a true minus sign.
#[must_use]
pub fn digits(value: f64, significant: i32) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = if value == 0.0 {
        0.0
    } else {
        value.abs().log10().floor()
    };
    // A float's exponent is far inside an integer's range, and the clamp inside a usize's.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the exponent of a float is small"
    )]
    let decimals = (significant - 1 - magnitude as i32)
        .clamp(0, MOST_DECIMALS)
        .unsigned_abs() as usize;
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    match text.strip_prefix('-') {
        Some("0") => "0".to_owned(),
        Some(positive) => format!("−{positive}"),
        None => text.to_owned(),
    }
}

/// "1 run", "2 runs"; "1 policy", "2 policies".
#[must_use]
pub fn count(number: u64, thing: &str) -> String {
    match thing.strip_suffix('y') {
        _ if number == 1 => format!("1 {thing}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {thing}s"),
    }
}

fn in_unit(value: f64, units: &[(&str, f64)]) -> String {
    let fits = units
        .iter()
        .find(|(_, factor)| value.abs() >= *factor)
        .or(units.last());
    fits.map_or_else(String::new, |(symbol, factor)| {
        format!("{} {symbol}", digits(value / factor, 4))
    })
}

const MOST_DECIMALS: i32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_few_digits_in_a_suitable_unit() {
        assert_eq!(rate(17_500_000.0), "17.5 Mbit/s");
        assert_eq!(time(735_500.0), "735.5 µs");
        assert_eq!(time(4e10), "40 s");
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(percent(0.001), "0.1 %");
        assert_eq!(percent(-0.1234), "−12.3 %");
        assert_eq!(percent(12.5), "1250 %");
        assert_eq!(percent(-0.000_000_4), "0 %");
    }

    #[test]
    fn counts_things() {
        assert_eq!(count(1, "run"), "1 run");
        assert_eq!(count(0, "run"), "0 runs");
        assert_eq!(count(1, "policy"), "1 policy");
        assert_eq!(count(2, "policy"), "2 policies");
    }

    #[test]
    fn writes_changes_with_a_sign_and_zero_without() {
        assert_eq!(change(1.04), "+104 %");
        assert_eq!(change(-0.5), "−50 %");
        assert_eq!(change(5_819.42), "5820-fold");
        assert_eq!(signed(&percent(1.04)), "+104 %");
        assert_eq!(signed(&percent(-0.02)), "−2 %");
        assert_eq!(signed(&percent(0.0)), "0 %");
        assert_eq!(signed(&percent(-1e-13)), "0 %");
    }

    #[test]
    fn writes_non_numbers_as_a_dash() {
        assert_eq!(digits(f64::NAN, 3), "–");
        assert_eq!(digits(f64::INFINITY, 3), "–");
    }
}
