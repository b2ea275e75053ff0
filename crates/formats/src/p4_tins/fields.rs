//! The members of a JSON object, each known and given once.

use crate::error::{Report, Span, TextError, closest, one_of, quoted};
use crate::json::{Node, Value};
use slicewise_units::{BitRate, ByteCount};

/// The members of one object.
pub(super) struct Fields<'n> {
    entries: Vec<(&'static str, &'n Node)>,
    /// Where something is missing.
    pub(super) span: Span,
}

impl<'n> Fields<'n> {
    /// Members of `node`, which is `what`; unknown and repeated ones are reported.
    pub(super) fn of(
        node: &'n Node,
        what: &str,
        known: &[&'static str],
        report: &mut Report,
    ) -> Option<Self> {
        let Value::Object(members) = &node.value else {
            report.add(|| wrong(node, what, &format!("an object with {}", one_of(known))));
            return None;
        };
        let mut entries: Vec<(&'static str, &Node)> = Vec::new();
        for (key, value) in members {
            let Some(&name) = known.iter().find(|name| **name == key.text) else {
                report.add(|| {
                    let message = format!("{what} has no {}", quoted(&key.text));
                    let help = closest(&key.text, known.iter().copied());
                    TextError::at(key.span, message)
                        .expected(one_of(known))
                        .maybe_help(help.map(|name| format!("did you mean `{name}`?")))
                });
                continue;
            };
            if entries.iter().any(|(given, _)| *given == name) {
                let message = format!("`{name}` is given twice");
                report.add(|| TextError::at(key.span, message).expected("each member once"));
                continue;
            }
            entries.push((name, value));
        }
        let span = node.span;
        Some(Self { entries, span })
    }

    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        let found = self.entries.iter().find(|(given, _)| *given == name);
        found.map(|(_, node)| *node)
    }

    pub(super) fn require(
        &self,
        name: &str,
        expected: &str,
        report: &mut Report,
    ) -> Option<&'n Node> {
        let found = self.get(name);
        if found.is_none() {
            let message = format!("`{name}` is missing");
            report.add(|| TextError::at(self.span, message).expected(expected));
        }
        found
    }
}

/// That `node`, called `what`, should have been something else.
pub(super) fn wrong(node: &Node, what: &str, expected: &str) -> TextError {
    let message = format!("{what} is {}", node.value.kind());
    TextError::at(node.span, message).expected(expected)
}

/// A rate: a whole number of bit/s, or text with a unit.
pub(super) fn rate(node: &Node, name: &str) -> Result<BitRate, TextError> {
    const EXPECTED: &str = "a rate: a whole number of bit/s, or text such as \"7 Gbit/s\"";
    let what = format!("`{name}`");
    let rate = match &node.value {
        Value::Number(text) => {
            let whole = whole(node, text, BitRate::MAX.bits_per_second(), EXPECTED)?;
            BitRate::new(whole)
        }
        Value::Text(text) => text.parse().map_err(|error| at(node, &error))?,
        _ => return Err(wrong(node, &what, EXPECTED)),
    };
    match rate {
        BitRate::ZERO => {
            Err(TextError::at(node.span, format!("{what} is 0")).expected("a rate above 0"))
        }
        rate => Ok(rate),
    }
}

/// A burst: a whole number of bytes, or text with a unit.
pub(super) fn burst(node: &Node, name: &str) -> Result<ByteCount, TextError> {
    const EXPECTED: &str = "a burst: a whole number of bytes, or text such as \"1.25 MB\"";
    let what = format!("`{name}`");
    let burst = match &node.value {
        Value::Number(text) => {
            let whole = whole(node, text, ByteCount::MAX.bytes(), EXPECTED)?;
            ByteCount::new(whole)
        }
        Value::Text(text) => text.parse().map_err(|error| at(node, &error))?,
        _ => return Err(wrong(node, &what, EXPECTED)),
    };
    let least = super::LARGEST_FRAME;
    if burst < least {
        let message = format!("{what} is {burst}, less than one largest frame");
        return Err(TextError::at(node.span, message).expected(format!("{least} or more")));
    }
    Ok(burst)
}

/// A whole number as JSON writes it.
pub(super) fn whole(node: &Node, text: &str, max: u64, expected: &str) -> Result<u64, TextError> {
    let is_whole = text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse::<u64>().ok().filter(|&number| number <= max);
    let problem = match (is_whole, number) {
        (true, Some(number)) => return Ok(number),
        (true, None) => "is too large",
        (false, _) => "is not a whole number",
    };
    let message = format!("{} {problem}", quoted(text));
    Err(TextError::at(node.span, message).expected(expected))
}

/// An error of a text with a unit. It quotes the text itself.
fn at(node: &Node, error: &slicewise_units::QuantityError) -> TextError {
    let shown: String = error
        .to_string()
        .chars()
        .flat_map(char::escape_debug)
        .collect();
    TextError::at(node.span, shown)
}
