//! Names of DSCP and IP precedence values (RFC 2474, 2597, 3246; RFC 791).

use super::words::Words;
use crate::error::{TextError, quoted, suggestion};
use std::borrow::Cow;

/// DSCP by name. The first name of a value is the one written.
const DSCP_NAMES: [(&str, u8); 22] = [
    ("default", 0),
    ("cs0", 0),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

const PRECEDENCE_NAMES: [(&str, u8); 8] = [
    ("routine", 0),
    ("priority", 1),
    ("immediate", 2),
    ("flash", 3),
    ("flash-override", 4),
    ("critical", 5),
    ("internet", 6),
    ("network", 7),
];

/// A DSCP by name or number.
pub(super) fn dscp(words: &mut Words<'_, '_>) -> Result<u8, TextError> {
    named(
        words,
        &DSCP_NAMES,
        63,
        "a DSCP: 0 to 63, `default`, `ef`, `af11` to `af43`, `cs0` to `cs7`",
    )
}

/// An IP precedence by name or number.
pub(super) fn precedence(words: &mut Words<'_, '_>) -> Result<u8, TextError> {
    named(
        words,
        &PRECEDENCE_NAMES,
        7,
        "an IP precedence: 0 to 7, or `routine` to `network`",
    )
}

/// The DSCP that stands for a precedence: its class selector (RFC 2474, section 4.2.2).
pub(super) const fn class_selector(precedence: u8) -> u8 {
    (precedence & 7) << 3
}

/// The name of a DSCP, or its number where it has none.
pub(super) fn dscp_name(dscp: u8) -> Cow<'static, str> {
    DSCP_NAMES
        .iter()
        .find(|&&(_, value)| value == dscp)
        .map_or_else(|| dscp.to_string().into(), |&(name, _)| name.into())
}

fn named(
    words: &mut Words<'_, '_>,
    names: &[(&str, u8)],
    largest: u8,
    expected: &str,
) -> Result<u8, TextError> {
    let word = words.require(expected)?;
    if let Some(&(_, value)) = names.iter().find(|(name, _)| word.is(name)) {
        return Ok(value);
    }
    if word.text.bytes().all(|b| b.is_ascii_digit())
        && let Ok(value) = word.text.parse()
        && value <= largest
    {
        return Ok(value);
    }
    let error = TextError::at(word.span, format!("{} does not exist", quoted(word.text)));
    let help = suggestion(word.text, names.iter().map(|&(name, _)| name));
    let error = error.expected(expected);
    // `set dscp cos` takes it from another field.
    let is_word = word.text.bytes().all(|b| b.is_ascii_alphabetic());
    Err(if is_word { error.unmodelled() } else { error }.maybe_help(help))
}
