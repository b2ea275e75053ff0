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
    let mut addresses = Addresses::default();
    for fields in rows(text) {
        let read = fields.and_then(|fields| {
            let (circuit, span) = row(&fields)?;
            addresses.add(&circuit, &fields)?;
            Ok((circuit, span))
        });
        match read {
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

/// The rows below the names of the columns, as RFC 4180 has them; without comments, and rows that say nothing.
fn rows(text: &str) -> impl Iterator<Item = Result<Vec<Field>, TextError>> {
    let mut options = csv::ReaderBuilder::new();
    let reader = options.flexible(true).comment(Some(b'#'));
    let records = reader.from_reader(text.as_bytes()).into_records();
    // Text is UTF-8, and rows may differ in length: reading cannot fail.
    let records: Vec<csv::StringRecord> = records.filter_map(Result::ok).collect();
    let start = |record: &csv::StringRecord| {
        let byte = record.position().map_or(0, csv::Position::byte);
        usize::try_from(byte).unwrap_or(text.len())
    };
    let ends = records.iter().skip(1).map(start).chain([text.len()]);
    let places: Vec<(usize, usize)> = records.iter().map(start).zip(ends).collect();
    let rows = records.into_iter().zip(places);
    let said = rows.filter(|(record, _)| record.iter().any(|field| !field.trim().is_empty()));
    said.map(move |(record, place)| {
        let fields = fields(text, &record, place);
        let row = text.get(place.0..place.1).unwrap_or_default();
        match fields.first() {
            // It would hold the rows after it.
            Some(first) if row.matches('"').count() % 2 == 1 => {
                let error = TextError::at(first.span, "a quote in this row is not closed");
                Err(error.expected("`\"` at the end of the field, and `\"\"` for one within it"))
            }
            _ => Ok(fields),
        }
    })
}

/// The addresses of circuits, each with its circuit and line.
#[derive(Default)]
struct Addresses(Vec<(IpPrefix, String, usize)>);

impl Addresses {
    /// Note the addresses of a row. None may be another circuit's, or contain one: packets would be of both.
    fn add(&mut self, circuit: &Circuit, row: &[Field]) -> Result<(), TextError> {
        for prefix in &circuit.addresses {
            let column = match prefix.address().is_ipv4() {
                true => IPV4,
                false => IPV6,
            };
            let Some(at) = row.get(column).map(|field| field.span) else {
                continue;
            };
            let mut others = self.0.iter().filter(|(_, id, _)| *id != circuit.id);
            if let Some((other, id, line)) = others.find(|(other, ..)| overlap(*prefix, *other)) {
                let message = format!("{prefix} belongs to circuit {}, too", quoted(id));
                return Err(TextError::at(at, message)
                    .expected("each address in one circuit")
                    .help(format!("{other} is on line {line}")));
            }
            self.0.push((*prefix, circuit.id.clone(), at.line));
        }
        Ok(())
    }
}

fn overlap(one: IpPrefix, other: IpPrefix) -> bool {
    let shorter = one.length().min(other.length());
    IpPrefix::new(one.address(), shorter) == IpPrefix::new(other.address(), shorter)
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

/// The fields of a record, which begins at `start` of `text` and ends at `end`.
fn fields(text: &str, record: &csv::StringRecord, (start, end): (usize, usize)) -> Vec<Field> {
    let mut at = start;
    let field = |value: &str| {
        // Where it stands: what quotes hide is searched for by its first line.
        let first = value.lines().next().unwrap_or_default();
        let rest = text.get(at..end).unwrap_or_default();
        let begin = at + rest.find(first).unwrap_or_default();
        at = (begin + value.len()).min(end);
        let before = text.get(..begin).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        Field {
            text: value.to_owned(),
            span: Span {
                line: before.matches('\n').count() + 1,
                column: line.chars().count() + 1,
                length: first.chars().count().max(1),
            },
        }
    };
    record.iter().map(field).collect()
}
