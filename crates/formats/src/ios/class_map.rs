//! `class-map` and the `match` lines in it.

use super::code_point;
use super::definition::Reference;
use super::definition::Source;
use super::lexer;
use super::port_name::{TCP, UDP};
use super::words::Words;
use crate::error::Span;
use crate::error::{TextError, one_of, quoted, suggestion};
use slicewise_model::{AccessEntry, AccessList, CLASS_DEFAULT, Condition, IpPrefix, MatchMode};
use std::ops::RangeInclusive;

/// A class map as read.
#[derive(Debug, Clone)]
pub(super) struct ClassMapText {
    pub name: String,
    pub span: Span,
    pub mode: MatchMode,
    pub matches: Vec<MatchLine>,
    pub source: Source,
}

/// Criterion of one `match` line, or a part of it.
#[derive(Debug, Clone)]
pub(super) enum MatchLine {
    Condition(Condition),
    AccessGroup {
        list: Reference,
        negated: bool,
    },
    /// A criterion that the classifier does not see, such as the application.
    Unseen {
        criterion: String,
        /// After `not`.
        negated: bool,
        error: TextError,
    },
}

/// IOS takes so many DSCP values on a line.
pub(super) const DSCP_VALUES_MAX: usize = 8;
/// IOS takes so many precedence values on a line.
pub(super) const PRECEDENCE_VALUES_MAX: usize = 4;
/// Prefix of the name of an access list that stands for one `match` line. No name in IOS has a space.
pub(super) const LINE_PREFIX: &str = "match ";
const ICMP: u8 = 1;
const IPINIP: u8 = 4;
const GRE: u8 = 47;
const EIGRP: u8 = 88;
const OSPF: u8 = 89;

const CRITERIA: &str = "`any`, `vlan`, `dscp`, `precedence`, `ip dscp`, `ip precedence`, \
                        `access-group` or `protocol`";

/// Criteria of IOS that cannot be matched here, and why.
const REFUSED: [(&str, &str); 14] = [
    (
        "application",
        "payloads are not inspected: match an `access-group` with the application's ports",
    ),
    ("atm", "there are no ATM cells here"),
    (
        "class-map",
        "class maps do not nest here: repeat its match lines",
    ),
    (
        "cos",
        "the priority bits of a VLAN tag are not matched: match `dscp` or `vlan`",
    ),
    (
        "destination-address",
        "MAC addresses are not matched: match an `access-group`",
    ),
    ("discard-class", "it is internal to the device"),
    ("fr-dlci", "there is no Frame Relay here"),
    ("input-interface", "a policy sees one link: match `vlan`"),
    ("ipv6", "`dscp` and `precedence` match IPv6 too"),
    ("mpls", "there are no MPLS labels here"),
    ("packet", "packet lengths are not matched"),
    (
        "qos-group",
        "it is internal to the device: match what set the group",
    ),
    (
        "source-address",
        "MAC addresses are not matched: match an `access-group`",
    ),
    ("traffic-class", "it is internal to the device"),
];

impl ClassMapText {
    pub fn new(span: Span) -> Self {
        Self {
            name: String::new(),
            span,
            mode: MatchMode::All,
            matches: Vec::new(),
            source: Source::default(),
        }
    }
}

/// Reads the rest of a line after `class-map`.
pub(super) fn header(words: &mut Words<'_, '_>, map: &mut ClassMapText) -> Result<(), TextError> {
    const EXPECTED: &str = "`match-any`, `match-all` or the name of the class map";
    let mut mode_is_open = false;
    words.take_queueing_type();
    if words.take_if("match-any").is_some() {
        map.mode = MatchMode::Any;
    } else if words.take_if("match-all").is_none() {
        mode_is_open = true;
    }
    let name = words.name(EXPECTED)?;
    if name.text == CLASS_DEFAULT {
        return Err(TextError::at(name.span, "`class-default` exists already")
            .expected("another name")
            .help("it gets every packet that no other class matches"));
    }
    map.name = name.text.to_owned();
    map.span = name.span;
    if mode_is_open && words.peek().is_some() {
        let help = suggestion(name.text, ["match-any", "match-all"].into_iter());
        let message = format!("unexpected {}", quoted(name.text));
        let expected = "`match-any` or `match-all` before the name";
        return Err(TextError::at(name.span, message)
            .expected(expected)
            .maybe_help(help));
    }
    words.end()
}

/// Reads the rest of a line after `match` in a class map of `mode`.
pub(super) fn match_line(
    words: &mut Words<'_, '_>,
    mode: MatchMode,
) -> Result<Vec<MatchLine>, TextError> {
    let negated = words.take_if("not").is_some();
    if words.take_if("access-group").is_some() {
        let expected = "the number of an access list, or `name` and its name";
        let named = words.take_if("name").is_some();
        let name = words.name(if named {
            "the name of an access list"
        } else {
            expected
        })?;
        if !named && !name.text.bytes().all(|b| b.is_ascii_digit()) {
            let message = format!("{} is not a number", quoted(name.text));
            return Err(TextError::at(name.span, message)
                .expected(expected)
                .help(format!("write `match access-group name {}`", name.text)));
        }
        words.end()?;
        let list = Reference::new(name);
        return Ok(vec![MatchLine::AccessGroup { list, negated }]);
    }
    let text = quoted(&words.rest());
    let read = match unseen(words) {
        Some(error) => Err(error),
        None => criterion(words).and_then(|read| words.end().map(|()| read)),
    };
    let criterion = match read {
        Err(error) if error.is_unmodelled => {
            return Ok(vec![MatchLine::Unseen {
                criterion: text.trim_matches('`').to_owned(),
                negated,
                error,
            }]);
        }
        read => read?,
    };
    Ok(criterion
        .into_conditions(mode, negated)
        .into_iter()
        .map(MatchLine::Condition)
        .collect())
}

/// How the conditions of one line combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combination {
    AnyOf,
    AllOf,
}

/// One `match` line but for `not`.
#[derive(Debug)]
struct Criterion {
    combination: Combination,
    /// At least one.
    conditions: Vec<Condition>,
    /// The line in canonical form, without `match`.
    text: String,
}

impl Criterion {
    fn single(condition: Condition) -> Self {
        let text = String::new();
        Self {
            combination: Combination::AllOf,
            conditions: vec![condition],
            text,
        }
    }

    /// As conditions of a class map: several where the map combines them as the line does (or,
    /// negated, the other way round: De Morgan), otherwise one.
    fn into_conditions(self, mode: MatchMode, negated: bool) -> Vec<Condition> {
        let any = (mode == MatchMode::Any) != negated;
        let as_map = any == (self.combination == Combination::AnyOf);
        let conditions = if as_map || self.conditions.len() == 1 {
            self.conditions
        } else {
            vec![self.into_list()]
        };
        let negate = |c| {
            if negated {
                Condition::Not(Box::new(c))
            } else {
                c
            }
        };
        conditions.into_iter().map(negate).collect()
    }

    /// As one condition: an access list that carries the line as its name.
    fn into_list(self) -> Condition {
        if let [list @ Condition::AccessList(_)] = &self.conditions[..] {
            return list.clone();
        }
        let permit = |conditions| AccessEntry {
            permit: true,
            conditions,
        };
        let entries = match self.combination {
            Combination::AnyOf => self
                .conditions
                .into_iter()
                .map(|c| permit(vec![c]))
                .collect(),
            Combination::AllOf => vec![permit(self.conditions)],
        };
        Condition::AccessList(AccessList {
            name: format!("{LINE_PREFIX}{}", self.text),
            entries,
        })
    }
}

/// The condition that `line`, such as `match vlan 10 20`, is read as where a class map cannot hold
/// its parts side by side.
pub(super) fn line_as_list(line: &str) -> Option<Condition> {
    let line = lexer::lines(line).next()?;
    let mut words = Words::new(&line);
    words.take_if("match")?;
    let criterion = criterion(&mut words).ok()?;
    words.end().ok()?;
    Some(criterion.into_list())
}

/// Why what comes next cannot be matched, if IOS can match it and the classifier cannot.
fn unseen(words: &Words<'_, '_>) -> Option<TextError> {
    let word = words.peek()?;
    let keyword = word.text.to_ascii_lowercase();
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == keyword) {
        let error = TextError::at(word.span, format!("`match {keyword}` is not supported"));
        return Some(error.expected(CRITERIA).help(*why).unmodelled());
    }
    let application = words.at(1).filter(|_| word.is("protocol"))?;
    let names = protocol_names();
    if names.iter().any(|name| application.is(name)) {
        return None;
    }
    let shown = quoted(application.text);
    let error = TextError::at(
        application.span,
        format!("protocol {shown} is not recognised"),
    )
    .expected(one_of(&names))
    .help("payloads are not inspected: match an `access-group` with the application's ports");
    Some(error.unmodelled())
}

fn criterion(words: &mut Words<'_, '_>) -> Result<Criterion, TextError> {
    let Some(word) = words.peek() else {
        return Err(words.missing(CRITERIA));
    };
    let keyword = word.text.to_ascii_lowercase();
    match keyword.as_str() {
        "any" => {
            words.take();
            Ok(Criterion::single(Condition::Everything))
        }
        "vlan" => {
            words.take();
            vlans(words)
        }
        "dscp" => {
            words.take();
            if words.take_if("ipv4").is_some() {
                return Ok(ipv4(dscp_set(words)?));
            }
            Ok(Criterion::single(Condition::Dscp(dscp_set(words)?)))
        }
        "precedence" => {
            words.take();
            if words.take_if("ipv4").is_some() {
                return Ok(ipv4(precedence_set(words)?));
            }
            Ok(Criterion::single(Condition::Dscp(precedence_set(words)?)))
        }
        "ip" => {
            words.take();
            ip(words)
        }
        "protocol" => {
            words.take();
            protocol(words)
        }
        _ => {
            let names = [
                "any",
                "vlan",
                "dscp",
                "precedence",
                "ip",
                "access-group",
                "protocol",
            ];
            let help = suggestion(word.text, names.into_iter());
            Err(words.missing(CRITERIA).maybe_help(help))
        }
    }
}

/// `vlan 10 20-30`, `vlan inner 10`.
fn vlans(words: &mut Words<'_, '_>) -> Result<Criterion, TextError> {
    let inner = words.take_if("inner").is_some();
    let mut ranges = vec![vlan_range(words)?];
    while words.peek_number().is_some() {
        ranges.push(vlan_range(words)?);
    }
    let mut text = String::from(if inner { "vlan inner" } else { "vlan" });
    for range in &ranges {
        text.push(' ');
        text.push_str(&range_text(range));
    }
    let condition = if inner {
        Condition::InnerVlan
    } else {
        Condition::OuterVlan
    };
    let conditions = ranges.into_iter().map(condition).collect();
    Ok(Criterion {
        combination: Combination::AnyOf,
        conditions,
        text,
    })
}

/// A VLAN range as IOS writes it.
pub(super) fn range_text(range: &RangeInclusive<u16>) -> String {
    if range.start() == range.end() {
        range.start().to_string()
    } else {
        format!("{}-{}", range.start(), range.end())
    }
}

fn vlan_range(words: &mut Words<'_, '_>) -> Result<RangeInclusive<u16>, TextError> {
    const EXPECTED: &str = "a VLAN id, 1 to 4094, or a range such as `10-20`";
    let word = words.require(EXPECTED)?;
    let id = |text: &str| {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|id| digits && (1..=4094).contains(id))
    };
    let (start, end) = word.text.split_once('-').unwrap_or((word.text, word.text));
    match (id(start), id(end)) {
        (Some(start), Some(end)) if start <= end => Ok(start..=end),
        _ => {
            let message = format!("{} is not a VLAN", quoted(word.text));
            Err(TextError::at(word.span, message).expected(EXPECTED))
        }
    }
}

/// One bit for each DSCP named.
fn dscp_set(words: &mut Words<'_, '_>) -> Result<u64, TextError> {
    let mut set = 1 << code_point::dscp(words)?;
    for _ in 1..DSCP_VALUES_MAX {
        if words.peek().is_none() {
            break;
        }
        set |= 1 << code_point::dscp(words)?;
    }
    Ok(set)
}

fn precedence_set(words: &mut Words<'_, '_>) -> Result<u64, TextError> {
    let mut set = precedence_bits(code_point::precedence(words)?);
    for _ in 1..PRECEDENCE_VALUES_MAX {
        if words.peek().is_none() {
            break;
        }
        set |= precedence_bits(code_point::precedence(words)?);
    }
    Ok(set)
}

/// The code points of one precedence.
pub(super) const fn precedence_bits(precedence: u8) -> u64 {
    0xff << (code_point::class_selector(precedence))
}

/// `ip dscp` and `ip precedence`: as without `ip`, but only IPv4 packets match.
fn ip(words: &mut Words<'_, '_>) -> Result<Criterion, TextError> {
    let by_dscp = words.choose(&[("dscp", true), ("precedence", false)])?;
    let set = if by_dscp {
        dscp_set(words)?
    } else {
        precedence_set(words)?
    };
    Ok(ipv4(set))
}

/// IPv4 packets of a set of code points.
fn ipv4(set: u64) -> Criterion {
    let conditions = vec![Condition::Source(IpPrefix::ALL_IPV4), Condition::Dscp(set)];
    let (keyword, values) = set_values(set);
    let text = format!("ip {keyword} {}", values.join(" "));
    Criterion {
        combination: Combination::AllOf,
        conditions,
        text,
    }
}

/// A set of DSCPs in the words of IOS: precedences where they say it, else DSCPs.
pub(super) fn set_values(set: u64) -> (&'static str, Vec<String>) {
    let is_in = |&precedence: &u8| set & precedence_bits(precedence) == precedence_bits(precedence);
    let precedences = (0..8).filter(is_in);
    if precedences
        .clone()
        .fold(0, |bits, p| bits | precedence_bits(p))
        == set
    {
        return ("precedence", precedences.map(|p| p.to_string()).collect());
    }
    let dscps = (0..64u8).filter(|dscp| set >> dscp & 1 == 1);
    (
        "dscp",
        dscps
            .map(|dscp| code_point::dscp_name(dscp).into())
            .collect(),
    )
}

/// `match protocol`: what the headers show, without looking into the payload.
pub(super) fn protocols() -> [(&'static str, Condition); 9] {
    [
        ("ip", Condition::Source(IpPrefix::ALL_IPV4)),
        ("ipv6", Condition::Source(IpPrefix::ALL_IPV6)),
        ("eigrp", Condition::Protocol(EIGRP)),
        ("gre", Condition::Protocol(GRE)),
        ("icmp", Condition::Protocol(ICMP)),
        ("ipinip", Condition::Protocol(IPINIP)),
        ("ospf", Condition::Protocol(OSPF)),
        ("tcp", Condition::Protocol(TCP)),
        ("udp", Condition::Protocol(UDP)),
    ]
}

/// Applications that NBAR knows by their port: IP protocols, and port.
const APPLICATIONS: [(&str, &[u8], RangeInclusive<u16>); 9] = [
    ("bgp", &[TCP, UDP], 179..=179),
    ("dhcp", &[UDP], 67..=68),
    ("dns", &[TCP, UDP], 53..=53),
    ("ntp", &[TCP, UDP], 123..=123),
    ("rip", &[UDP], 520..=520),
    ("snmp", &[TCP, UDP], 161..=162),
    ("ssh", &[TCP], 22..=22),
    ("syslog", &[UDP], 514..=514),
    ("telnet", &[TCP], 23..=23),
];

/// Returns the names that `match protocol` takes.
fn protocol_names() -> Vec<&'static str> {
    let of_headers = protocols();
    let of_ports = APPLICATIONS.iter().map(|(name, ..)| *name);
    of_headers
        .iter()
        .map(|(name, _)| *name)
        .chain(of_ports)
        .collect()
}

fn protocol(words: &mut Words<'_, '_>) -> Result<Criterion, TextError> {
    let names = protocol_names();
    let Some(word) = words.take() else {
        return Err(words.missing(one_of(&names)));
    };
    if let Some((_, condition)) = protocols().into_iter().find(|(name, _)| word.is(name)) {
        return Ok(Criterion::single(condition));
    }
    let Some((name, protocols, ports)) = APPLICATIONS.iter().find(|(name, ..)| word.is(name))
    else {
        let message = format!("unexpected {}", quoted(word.text));
        return Err(TextError::at(word.span, message).expected(one_of(&names)));
    };
    let sides = [Condition::SourcePort, Condition::DestinationPort];
    let entries = protocols.iter().flat_map(|&protocol| {
        sides.map(|side| AccessEntry {
            permit: true,
            conditions: vec![Condition::Protocol(protocol), side(ports.clone())],
        })
    });
    Ok(Criterion::single(Condition::AccessList(AccessList {
        name: format!("{LINE_PREFIX}protocol {name}"),
        entries: entries.collect(),
    })))
}
