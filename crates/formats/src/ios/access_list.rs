//! Access lists: numbered and named, standard and extended. IPv4 only, as in IOS.

use super::code_point;
use super::definition::Source;
use super::port_name::{self, PORT_OPERATORS};
use super::words::Words;
use crate::error::Span;
use crate::error::{TextError, one_of, quoted};
use slicewise_model::{AccessEntry, AccessList, Condition, IpPrefix};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

/// Criteria that the entries of a list can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    /// Source addresses.
    Standard,
    /// Protocol, addresses, ports and DSCP.
    Extended,
}

/// An access list as read.
#[derive(Debug, Clone)]
pub(super) struct AccessListText {
    pub name: String,
    pub span: Span,
    pub kind: ListKind,
    /// Made of `access-list` lines, rather than under `ip access-list`.
    pub flat: bool,
    /// Entries in the order written, until [`sort`](Self::sort).
    pub entries: Vec<NumberedEntry>,
    pub largest_number: u32,
    pub source: Source,
}

/// An entry with the number that orders it.
#[derive(Debug, Clone)]
pub(super) struct NumberedEntry {
    pub number: u32,
    pub span: Span,
    pub entry: AccessEntry,
}

/// Distance of entries that have no number, as in IOS.
const SEQUENCE_STEP: u32 = 10;
/// Ports that IOS takes after one `eq`.
const PORTS_MAX: usize = 10;

impl AccessListText {
    pub fn new(span: Span) -> Self {
        Self {
            name: String::new(),
            span,
            kind: ListKind::Extended,
            flat: false,
            entries: Vec::new(),
            largest_number: 0,
            source: Source::default(),
        }
    }

    pub fn access_list(&self) -> AccessList {
        let entries = self
            .entries
            .iter()
            .map(|numbered| numbered.entry.clone())
            .collect();
        AccessList {
            name: self.name.clone(),
            entries,
        }
    }

    /// Put the entries in the order of their numbers.
    pub fn sort(&mut self) -> Result<(), TextError> {
        self.entries.sort_by_key(|numbered| numbered.number);
        let mut pairs = self.entries.iter().zip(self.entries.iter().skip(1));
        // Entries of one line have its number.
        match pairs.find(|(a, b)| a.number == b.number && a.span != b.span) {
            None => Ok(()),
            Some((_, second)) => {
                let message = format!(
                    "entry {} of {} exists already",
                    second.number,
                    quoted(&self.name)
                );
                Err(TextError::at(second.span, message).expected("another number"))
            }
        }
    }

    fn push(&mut self, number: u32, span: Span, entry: AccessEntry) {
        self.largest_number = self.largest_number.max(number);
        self.entries.push(NumberedEntry {
            number,
            span,
            entry,
        });
    }
}

/// The kind of list a number stands for; `None` where IPv4 lists have no such number.
pub(super) fn kind_of_number(number: u32) -> Option<ListKind> {
    match number {
        1..=99 | 1300..=1999 => Some(ListKind::Standard),
        100..=199 | 2000..=2699 => Some(ListKind::Extended),
        _ => None,
    }
}

/// Returns the number where a name is one; lists by number are written in another way.
pub(super) fn number_of_name(name: &str) -> Option<u32> {
    name.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| name.parse().ok())
        .flatten()
}

/// Reads the rest of a line after `ip access-list`.
pub(super) fn header(
    words: &mut Words<'_, '_>,
    list: &mut AccessListText,
) -> Result<(), TextError> {
    let kinds = [
        ("extended", ListKind::Extended),
        ("standard", ListKind::Standard),
    ];
    list.kind = words.choose(&kinds)?;
    let name = words.name("the name of the access list")?;
    let starts_with_digit = name.text.starts_with(|c: char| c.is_ascii_digit());
    let by_number = number_of_name(name.text).and_then(kind_of_number);
    if starts_with_digit && by_number != Some(list.kind) {
        let kind = if list.kind == ListKind::Standard {
            "a standard"
        } else {
            "an extended"
        };
        let message = format!("{} does not name {kind} access list", quoted(name.text));
        return Err(TextError::at(name.span, message)
            .expected("a name that does not begin with a digit, or a number of that kind"));
    }
    list.name = name.text.to_owned();
    list.span = name.span;
    words.end()
}

/// One entry: `permit …`, `deny …` or `remark …`, with a number before it in a named list.
pub(super) fn entry(words: &mut Words<'_, '_>, list: &mut AccessListText) -> Result<(), TextError> {
    let mut number = None;
    if !list.flat && words.peek_number().is_some() {
        number = Some(words.small::<u32>("the number of an entry", 1..=2_147_483_647)?);
    }
    let span = words.span();
    #[derive(Clone, Copy)]
    enum Verb {
        Permit,
        Deny,
        Remark,
    }
    let verbs = [
        ("permit", Verb::Permit),
        ("deny", Verb::Deny),
        ("remark", Verb::Remark),
    ];
    let permit = match words.choose(&verbs)? {
        Verb::Permit => true,
        Verb::Deny => false,
        Verb::Remark => {
            words.take_text();
            return Ok(());
        }
    };
    let alternatives = match list.kind {
        ListKind::Standard => vec![standard(words)?],
        ListKind::Extended => extended(words)?,
    };
    let number = number.unwrap_or(list.largest_number.saturating_add(SEQUENCE_STEP));
    for conditions in alternatives {
        list.push(number, span, AccessEntry { permit, conditions });
    }
    Ok(())
}

fn standard(words: &mut Words<'_, '_>) -> Result<Vec<Condition>, TextError> {
    let only_sources =
        |error: TextError| error.help("a standard list matches source addresses, nothing else");
    let source = address(words, true).map_err(only_sources)?;
    words.take_if("log");
    words.end().map_err(only_sources)?;
    Ok(vec![Condition::Source(source)])
}

/// Conditions in the order in which they are written: one set for each combination of ports. The
/// source is always among them, because it is what says IPv4.
fn extended(words: &mut Words<'_, '_>) -> Result<Vec<Vec<Condition>>, TextError> {
    let protocol = port_name::protocol(words)?;
    let source = address(words, false)?;
    let from = ports(words, protocol)?;
    let destination = address(words, false)?;
    let to = ports(words, protocol)?;
    if from.len() * to.len() > PORTS_MAX {
        let message = format!("{} pairs of ports in one entry", from.len() * to.len());
        return Err(TextError::at(words.last_span(), message)
            .expected(format!("at most {PORTS_MAX}"))
            .help("write several entries"));
    }
    let code_point = if words.take_if("dscp").is_some() {
        Some(Condition::Dscp(1 << code_point::dscp(words)?))
    } else if words.take_if("precedence").is_some() {
        let precedence = code_point::precedence(words)?;
        Some(Condition::precedence(precedence))
    } else {
        None
    };
    if words.take_if("log").is_none() && words.peek().is_some() {
        let mut expected = vec!["dscp", "precedence", "log"];
        if protocol.is_some_and(port_name::has_ports) {
            expected.extend(PORT_OPERATORS);
        }
        return Err(words.missing(format!("{} or the end of the line", one_of(&expected))));
    }
    words.end()?;
    let entry = |from: &Option<RangeInclusive<u16>>, to: &Option<RangeInclusive<u16>>| {
        let destination = Some(destination).filter(|&d| d != IpPrefix::ALL_IPV4);
        let mut conditions: Vec<Condition> = Vec::new();
        conditions.extend(protocol.map(Condition::Protocol));
        conditions.push(Condition::Source(source));
        conditions.extend(from.clone().map(Condition::SourcePort));
        conditions.extend(destination.map(Condition::Destination));
        conditions.extend(to.clone().map(Condition::DestinationPort));
        conditions.extend(code_point.clone());
        conditions
    };
    let entries = from
        .iter()
        .flat_map(|from| to.iter().map(move |to| entry(from, to)));
    Ok(entries.collect())
}

/// `any`, `host ADDRESS`, `ADDRESS WILDCARD`, and in standard lists a bare `ADDRESS`.
fn address(words: &mut Words<'_, '_>, bare: bool) -> Result<IpPrefix, TextError> {
    const EXPECTED: &str = "`any`, `host` and an IPv4 address, or an address and a wildcard mask";
    if words.take_if("any").is_some() {
        return Ok(IpPrefix::ALL_IPV4);
    }
    let host = words.take_if("host").is_some();
    let word = words.require(if host { "an IPv4 address" } else { EXPECTED })?;
    let not_an_address = || {
        TextError::at(
            word.span,
            format!("{} is not an IPv4 address", quoted(word.text)),
        )
        .expected(if host {
            "an address such as `10.0.10.2`"
        } else {
            EXPECTED
        })
    };
    let address: Ipv4Addr = word.text.parse().map_err(|_| not_an_address())?;
    let mut length = 32;
    if !host && (!bare || words.peek_number().is_some()) {
        length = wildcard(words)?;
    }
    IpPrefix::new(IpAddr::V4(address), length).ok_or_else(not_an_address)
}

/// A wildcard mask: one bits are free. Only masks that make a prefix can be matched.
fn wildcard(words: &mut Words<'_, '_>) -> Result<u8, TextError> {
    const EXPECTED: &str = "a wildcard mask such as `0.0.0.255`";
    let word = words.require(EXPECTED)?;
    let Ok(mask) = word.text.parse::<Ipv4Addr>() else {
        let message = format!("{} is not a wildcard mask", quoted(word.text));
        return Err(TextError::at(word.span, message).expected(EXPECTED));
    };
    let free = u32::from(mask).trailing_ones();
    if free != u32::from(mask).count_ones() {
        let message = format!("wildcard mask {} does not make a prefix", quoted(word.text));
        let error = TextError::at(word.span, message).expected("ones only at its end");
        let looks_like_netmask = u32::from(mask).leading_ones() == u32::from(mask).count_ones();
        let help = || {
            format!(
                "a wildcard is the inverse of a netmask: write `{}`",
                Ipv4Addr::from(!u32::from(mask))
            )
        };
        return Err(error.maybe_help(looks_like_netmask.then(help)));
    }
    // At most 32 bits are free.
    Ok(32 - u8::try_from(free).unwrap_or(32))
}

/// `eq PORT …`, `range FIRST LAST`, `lt PORT` or `gt PORT`, where the protocol has ports: the ports, of
/// which any may match. Where nothing is written, that is no condition.
fn ports(
    words: &mut Words<'_, '_>,
    protocol: Option<u8>,
) -> Result<Vec<Option<RangeInclusive<u16>>>, TextError> {
    let Some(operator) = words.peek() else {
        return Ok(vec![None]);
    };
    if operator.is("neq") || operator.is("established") {
        return Err(TextError::at(
            operator.span,
            format!("{} is not supported", quoted(operator.text)),
        )
        .unmodelled()
        .expected(port_name::operators()));
    }
    if !PORT_OPERATORS.iter().any(|known| operator.is(known)) {
        return Ok(vec![None]);
    }
    let Some(protocol) = protocol.filter(|&p| port_name::has_ports(p)) else {
        return Err(TextError::at(operator.span, "this protocol has no ports")
            .expected("`tcp`, `udp` or `sctp` as protocol"));
    };
    words.take();
    let first = port_name::port(words, protocol)?;
    let empty = |expected: &str| {
        Err(TextError::at(words.last_span(), "no port satisfies this").expected(expected))
    };
    let ports = match operator.text.to_ascii_lowercase().as_str() {
        "lt" => match first.checked_sub(1) {
            Some(last) => 0..=last,
            None => return empty("a port of at least 1"),
        },
        "gt" => match first.checked_add(1) {
            Some(first) => first..=u16::MAX,
            None => return empty("a port below 65535"),
        },
        "range" => {
            let last = port_name::port(words, protocol)?;
            if last < first {
                return Err(
                    TextError::at(words.last_span(), "the range ends before it begins")
                        .expected(format!("a port of at least {first}")),
                );
            }
            first..=last
        }
        _ => {
            let mut ports = vec![Some(first..=first)];
            // An address follows, or a keyword: the next port is what has no dot.
            while let Some(word) = words.peek_number()
                && !word.text.contains('.')
            {
                if ports.len() == PORTS_MAX {
                    return Err(words.missing(format!("at most {PORTS_MAX} ports")));
                }
                let port = port_name::port(words, protocol)?;
                ports.push(Some(port..=port));
            }
            return Ok(ports);
        }
    };
    Ok(vec![Some(ports)])
}
