//! `ShapedDevices.csv`: a device in each row, thirteen columns, of which the third to last four are rates.

use super::{CIRCUITS_MAX, Circuit, TEXT_BYTES_MAX, megabits};
use crate::error::{Report, Span, TextError, quoted};
use slicewise_model::IpPrefix;
use slicewise_units::BitRate;
use std::collections::BTreeMap;

/// The columns that are read, by their position: LibreQoS goes by that, too.
const CIRCUIT_ID: usize = 0;
const CIRCUIT_NAME: usize = 1;
const PARENT: usize = 4;
const IPV4: usize = 6;
const IPV6: usize = 7;
const DOWNLOAD_MINIMUM: usize = 8;
const DOWNLOAD_MAXIMUM: usize = 10;
/// The columns that a row has at least.
const COLUMNS: usize = 12;

/// A value of a row, and where it is.
struct Field {
    text: String,
    span: Span,
}

impl Field {
    fn error(&self, message: &str) -> TextError {
        TextError::at(self.span, format!("{} {message}", quoted(&self.text)))
    }
}

pub(super) fn read(text: &str) -> Result<Vec<Circuit>, Vec<TextError>> {
    TextError::check_length(text, TEXT_BYTES_MAX).map_err(|error| vec![error])?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut report = Report::default();
    let (mut circuits, mut places) = (Vec::<Circuit>::new(), BTreeMap::new());
    // The first row has the names of columns.
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match row(&fields(line, number)) {
            Ok((circuit, span)) => match places.get(&circuit.id) {
                None => {
                    places.insert(circuit.id.clone(), circuits.len());
                    circuits.push(circuit);
                }
                Some(&place) => {
                    if let Some(earlier) = circuits.get_mut(place) {
                        report.add_failure(join(earlier, circuit, span));
                    }
                }
            },
            Err(error) => report.add(|| error),
        }
    }
    if circuits.is_empty() && report.is_empty() {
        let expected = "a row for each device below the names of the columns";
        report.add(|| TextError::at(Span::BEGIN, "the file has no circuit").expected(expected));
    }
    if circuits.len() > CIRCUITS_MAX {
        let message = format!("the file has {} circuits", circuits.len());
        let help = "leave rows out, for example all but those of one site";
        report.add(|| {
            TextError::at(Span::BEGIN, message)
                .expected(format!("at most {CIRCUITS_MAX}"))
                .help(help)
        });
    }
    match report.is_empty() {
        true => Ok(circuits),
        false => Err(report.into_errors()),
    }
}

/// A further device of a circuit, whose rates are those of the circuit.
fn join(circuit: &mut Circuit, other: Circuit, at: Span) -> Result<(), TextError> {
    let of = |it: &Circuit| (it.parent.clone(), it.minimum, it.maximum);
    if of(circuit) != of(&other) {
        let message = format!("circuit {} has another row", quoted(&circuit.id));
        return Err(TextError::at(at, message).expected("the same parent node and rates in each"));
    }
    circuit.addresses.extend(other.addresses);
    Ok(())
}

fn row(fields: &[Field]) -> Result<(Circuit, Span), TextError> {
    let (Some(first), Some(_)) = (fields.first(), fields.get(COLUMNS - 1)) else {
        let end = fields.last().map_or(Span::BEGIN, |last| last.span);
        let message = format!("the row has {} columns", fields.len());
        let expected = format!("{COLUMNS} at least, of `Circuit ID` to `Upload Max Mbps`");
        return Err(TextError::at(end, message).expected(expected));
    };
    let text = |column: usize| fields.get(column).map_or("", |field| field.text.trim());
    let mut addresses = Vec::new();
    for column in [IPV4, IPV6] {
        if let Some(field) = fields.get(column) {
            addresses.extend(prefixes(field, column == IPV4)?);
        }
    }
    if addresses.is_empty() {
        let message = format!("circuit {} has no address", quoted(text(CIRCUIT_ID)));
        return Err(TextError::at(first.span, message).expected("one in `IPv4` or `IPv6`"));
    }
    let (minimum, _) = rate(fields, DOWNLOAD_MINIMUM)?;
    let (maximum, at) = rate(fields, DOWNLOAD_MAXIMUM)?;
    if maximum < minimum {
        let message = format!("the maximum of {maximum} is below the minimum");
        return Err(TextError::at(at, message).expected(format!("{minimum} or more")));
    }
    // Every device without an id is a circuit of its own.
    let id = match text(CIRCUIT_ID) {
        "" => format!("line {}", first.span.line),
        id => id.to_owned(),
    };
    let circuit = Circuit {
        id,
        name: text(CIRCUIT_NAME).to_owned(),
        parent: match text(PARENT) {
            "none" | "None" => String::new(),
            parent => parent.to_owned(),
        },
        addresses,
        minimum,
        maximum,
    };
    Ok((circuit, first.span))
}

fn rate(fields: &[Field], column: usize) -> Result<(BitRate, Span), TextError> {
    let Some(field) = fields.get(column) else {
        return Ok((BitRate::ZERO, Span::BEGIN));
    };
    match megabits(&field.text) {
        Some(rate) => Ok((rate, field.span)),
        None => Err(field
            .error("is not a rate")
            .expected("a number of Mbit/s above 0, such as `25`")),
    }
}

/// The addresses of a field, with commas between them.
fn prefixes(field: &Field, is_ipv4: bool) -> Result<Vec<IpPrefix>, TextError> {
    let texts = field.text.split(',').map(str::trim);
    let texts = texts.filter(|text| !text.is_empty());
    let read = texts.map(|text| {
        let prefix = text.parse::<IpPrefix>().ok();
        let prefix = prefix.filter(|prefix| prefix.address().is_ipv4() == is_ipv4);
        prefix.ok_or_else(|| {
            let expected = match is_ipv4 {
                true => "IPv4 addresses such as `100.64.0.1`, or prefixes",
                false => "IPv6 addresses such as `2001:db8::1`, or prefixes",
            };
            field.error("is not read").expected(expected)
        })
    });
    read.collect()
}

/// The fields of a line: commas between them, double quotes around one with commas, and two of them for one.
fn fields(line: &str, number: usize) -> Vec<Field> {
    let mut fields = Vec::new();
    let (mut text, mut start, mut is_quoted) = (String::new(), 1, false);
    let characters = line.chars().chain([',']);
    let end = line.chars().count() + 1;
    let mut before = None;
    for (column, c) in (1..).zip(characters) {
        match c {
            '"' => {
                // The second one within quotes is one of the text.
                if !is_quoted && before == Some('"') {
                    text.push('"');
                }
                is_quoted = !is_quoted;
            }
            ',' if !is_quoted || column == end => {
                fields.push(Field {
                    text: std::mem::take(&mut text),
                    span: Span {
                        line: number,
                        column: start,
                        length: (column - start).max(1),
                    },
                });
                start = column + 1;
            }
            c => text.push(c),
        }
        before = Some(c);
    }
    fields
}
