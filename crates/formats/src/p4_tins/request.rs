//! A list of slice requests.

use super::fields::{Fields, burst, rate, wrong};
use super::flows;
use crate::error::{Report, Span, TextError, quoted};
use crate::flow::{FLOWS_MAX, Flow};
use crate::json::{self, Node, Value};
use slicewise_model::CLASS_DEFAULT;
use slicewise_units::{BitRate, ByteCount};
use std::collections::BTreeMap;

/// Largest text that is read.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
const NAME_CHARS_MAX: usize = 64;
const KNOWN: [&str; 6] = [
    "name",
    "minRate",
    "maxRate",
    "allowBurst",
    "peakBurst",
    "flows",
];
/// The class of UDP that belongs to no slice.
pub(super) const UDP_CLASS: &str = "udp";

/// Classes of the data planes themselves.
pub(super) const RESERVED: [&str; 2] = [CLASS_DEFAULT, UDP_CLASS];

/// Requests for slices that do not contradict each other, in the order written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceRequests {
    pub(super) slices: Vec<Slice>,
}

/// A request for one slice, with the places of its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) name: String,
    /// True if the request states the name.
    pub(super) is_named: bool,
    pub(super) min_rate: (BitRate, Span),
    pub(super) max_rate: BitRate,
    pub(super) allow_burst: ByteCount,
    pub(super) peak_burst: ByteCount,
    /// Each with its place.
    pub(super) flows: Vec<(Flow, Span)>,
    pub(super) span: Span,
}

impl SliceRequests {
    /// Names that [`parse`] gave to requests without one: `slice-1` for the first of the text, and so on.
    pub fn given_names(&self) -> impl Iterator<Item = &str> {
        let unnamed = self.slices.iter().filter(|slice| !slice.is_named);
        unnamed.map(|slice| slice.name.as_str())
    }
}

/// Read a list of requests, or one request.
///
/// # Errors
/// The independent errors in the order of their places, [`ERRORS_MAX`](crate::ERRORS_MAX) at most: text that
/// is not JSON, members that are unknown, missing or of a wrong type, `minRate` above `maxRate`, a burst below
/// one largest frame, two slices of one name or with overlapping flows, more than [`FLOWS_MAX`] flows.
pub fn parse(text: &str) -> Result<SliceRequests, Vec<TextError>> {
    TextError::check_length(text, TEXT_BYTES_MAX).map_err(|error| vec![error])?;
    let root = json::parse(text).map_err(|error| vec![error])?;
    let mut report = Report::default();
    let requests = match &root.value {
        Value::List(requests) => requests.as_slice(),
        Value::Object(_) => std::slice::from_ref(&root),
        _ => {
            let expected = "a list of requests, or one request";
            return Err(vec![wrong(&root, "the text", expected)]);
        }
    };
    if requests.is_empty() {
        report
            .add(|| TextError::at(root.span, "the list is empty").expected("at least one request"));
    }
    let numbered = requests.iter().zip(1usize..);
    let slices: Vec<Slice> = numbered
        .filter_map(|(node, number)| slice(node, number, &mut report))
        .collect();
    check_names(&slices, &mut report);
    check_flows(&slices, &mut report);
    match report.is_empty() {
        true => Ok(SliceRequests { slices }),
        false => Err(report.into_errors()),
    }
}

/// One request; `None` where it is too wrong to be compared with others.
fn slice(node: &Node, number: usize, report: &mut Report) -> Option<Slice> {
    let fields = Fields::of(node, "a request", &KNOWN, report)?;
    let (name, span) = match fields.get("name").map(|node| (&node.value, node)) {
        None => (format!("slice-{number}"), node.span),
        Some((Value::Text(name), node)) => {
            report.add_failure(check_name(name, node));
            (name.clone(), node.span)
        }
        Some((_, node)) => {
            report.add(|| wrong(node, "`name`", "text"));
            (String::new(), node.span)
        }
    };
    let mut read_rate = |name| {
        let node = fields.require(name, "a rate such as \"7 Gbit/s\"", report)?;
        let read = rate(node, name);
        noted(read, report).map(|rate| (rate, node.span))
    };
    let (min_rate, max_rate) = (read_rate("minRate"), read_rate("maxRate"));
    let mut read_burst = |name| {
        let node = fields.require(name, "a burst such as \"1.25 MB\"", report)?;
        noted(burst(node, name), report)
    };
    let (allow_burst, peak_burst) = (read_burst("allowBurst"), read_burst("peakBurst"));
    let flows = read_flows(&fields, report);
    if let (Some((min, _)), Some((max, at))) = (min_rate, max_rate)
        && max < min
    {
        let message = format!("`maxRate` {max} is below `minRate` {min}");
        report.add(|| TextError::at(at, message).expected(format!("{min} or more")));
    }
    Some(Slice {
        name,
        is_named: fields.get("name").is_some(),
        min_rate: min_rate?,
        max_rate: max_rate?.0,
        allow_burst: allow_burst?,
        peak_burst: peak_burst?,
        flows,
        span,
    })
}

fn noted<T>(result: Result<T, TextError>, report: &mut Report) -> Option<T> {
    result.map_err(|error| report.add(|| error)).ok()
}

fn read_flows(fields: &Fields<'_>, report: &mut Report) -> Vec<(Flow, Span)> {
    const EXPECTED: &str = "a list of flows, each an object with header fields";
    let Some(node) = fields.require("flows", EXPECTED, report) else {
        return Vec::new();
    };
    let Value::List(flows) = &node.value else {
        report.add(|| wrong(node, "`flows`", EXPECTED));
        return Vec::new();
    };
    if flows.is_empty() {
        report.add(|| {
            TextError::at(node.span, "the slice has no flow").expected("at least one flow")
        });
    }
    flows
        .iter()
        .filter_map(|node| flows::read(node, report).map(|flow| (flow, node.span)))
        .collect()
}

fn check_name(name: &str, node: &Node) -> Result<(), TextError> {
    let is_shown = |c: char| !slicewise_units::is_hidden(c);
    let fail = |problem: &str, expected: &str| {
        let message = format!("{} {problem}", quoted(name));
        Err(TextError::at(node.span, message).expected(expected))
    };
    if RESERVED.contains(&name) {
        return fail("is a class of the data plane itself", "another name");
    }
    let length = name.chars().count();
    if !(1..=NAME_CHARS_MAX).contains(&length) || !name.chars().all(is_shown) {
        let expected = format!("1 to {NAME_CHARS_MAX} visible characters");
        return fail("is not a name", &expected);
    }
    Ok(())
}

fn check_names(slices: &[Slice], report: &mut Report) {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for slice in slices {
        let Some(line) = lines.get(slice.name.as_str()) else {
            lines.insert(&slice.name, slice.span.line);
            continue;
        };
        report.add(|| {
            let message = format!("two slices are named {}", quoted(&slice.name));
            TextError::at(slice.span, message)
                .expected(format!("another name than that on line {line}"))
        });
    }
}

/// Two slices cannot have a packet in common: it would have two meters.
fn check_flows(slices: &[Slice], report: &mut Report) {
    let flows: Vec<(&Slice, &Flow, Span)> = slices
        .iter()
        .flat_map(|slice| slice.flows.iter().map(move |(flow, at)| (slice, flow, *at)))
        .collect();
    if let Some((_, _, at)) = flows.get(FLOWS_MAX) {
        let message = format!("this is more than {FLOWS_MAX} flows");
        report.add(|| TextError::at(*at, message).expected("fewer flows, or prefixes and ranges"));
        return;
    }
    for (index, (slice, flow, at)) in flows.iter().enumerate() {
        let mut before = flows.iter().take(index);
        let other = before.find(|(other, those, _)| {
            !std::ptr::eq(*other, *slice) && flow.intersection(those).is_some()
        });
        let Some((other, _, there)) = other else {
            continue;
        };
        report.add(|| {
            let (slice, other) = (quoted(&slice.name), quoted(&other.name));
            let message = format!("this flow of slice {slice} overlaps one of slice {other}");
            TextError::at(*at, message).expected(format!(
                "flows that have no packet in common with that on line {}",
                there.line
            ))
        });
        if report.is_full() {
            return;
        }
    }
}
