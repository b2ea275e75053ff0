//! Class maps and access lists.

use super::{Problem, Section};
use crate::ios::access_list::{ListKind, kind_of_number, number_of_name};
use crate::ios::class_map::{
    DSCP_VALUES_MAX, LINE_PREFIX, PRECEDENCE_VALUES_MAX, line_as_list, protocols, range_text,
    set_values,
};
use crate::ios::code_point::dscp_name;
use crate::ios::port_name::{has_ports, protocol_name};
use crate::ios::words::valid_name;
use slicewise_model::{AccessEntry, AccessList, ClassMap, Condition, IpPrefix, MatchMode};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

/// A class map; the access lists it needs go to `lists`.
pub(super) fn class_map(map: &ClassMap, lists: &mut Section) -> Result<String, Problem> {
    let mode = match map.mode {
        MatchMode::Any => "match-any",
        MatchMode::All => "match-all",
    };
    let mut text = format!("class-map {mode} {}\n", map.name);
    for (index, condition) in map.conditions.iter().enumerate() {
        let (condition, negated) = match condition {
            Condition::Not(inner) => (inner.as_ref(), true),
            condition => (condition, false),
        };
        let generated = format!("{}-{}", map.name, index + 1);
        let lines = match condition {
            // Several lines mean the same where the map combines them as the set does.
            Condition::Dscp(set) => code_points(*set, (map.mode == MatchMode::Any) != negated)?,
            condition => vec![criterion(condition, generated, lists)?],
        };
        for line in lines {
            let not = if negated { "not " } else { "" };
            text.push_str(&format!(" match {not}{line}\n"));
        }
    }
    Ok(text)
}

/// One line but for `match` and `not`.
fn criterion(
    condition: &Condition,
    generated: String,
    lists: &mut Section,
) -> Result<String, Problem> {
    if let Some((name, _)) = protocols()
        .iter()
        .find(|(_, protocol)| protocol == condition)
    {
        return Ok(format!("protocol {name}"));
    }
    match condition {
        Condition::Everything => Ok("any".into()),
        Condition::OuterVlan(range) => Ok(format!("vlan {}", vlans(range)?)),
        Condition::InnerVlan(range) => Ok(format!("vlan inner {}", vlans(range)?)),
        Condition::Source(_) | Condition::Destination(_) => {
            let entry = AccessEntry {
                permit: true,
                conditions: vec![condition.clone()],
            };
            access_group(
                &AccessList {
                    name: generated,
                    entries: vec![entry],
                },
                lists,
            )
        }
        Condition::AccessList(list) => match list.name.strip_prefix(LINE_PREFIX) {
            // A list that stands for one line, unless somebody chose that name.
            Some(line) if line_as_list(&list.name).as_ref() == Some(condition) => Ok(line.into()),
            _ => access_group(list, lists),
        },
        Condition::Protocol(_) | Condition::SourcePort(_) | Condition::DestinationPort(_) => Err(
            "protocols that `match protocol` does not name, and ports, stand only in access \
             lists, beside an IPv4 address"
                .into(),
        ),
        Condition::GtpTeid(_) => Err("class maps do not match the TEID of a GTP-U tunnel".into()),
        Condition::Ethertype(_) => Err("class maps are not written for an EtherType".into()),
        Condition::IcmpType(_) => Err("class maps are not written for a type of ICMP".into()),
        Condition::Not(_) => Err("a condition negated twice".into()),
        // Written by the caller.
        Condition::Dscp(set) => code_points(*set, false).map(|lines| lines.concat()),
    }
}

fn vlans(range: &RangeInclusive<u16>) -> Result<String, Problem> {
    if range.is_empty() || *range.start() == 0 || *range.end() > 4094 {
        return Err(format!(
            "VLANs {} to {}: ids go from 1 to 4094",
            range.start(),
            range.end()
        ));
    }
    Ok(range_text(range))
}

/// The lines for a set of DSCPs: one, unless `several` may be written.
fn code_points(set: u64, several: bool) -> Result<Vec<String>, Problem> {
    let (keyword, values) = set_values(set);
    let most = if keyword == "dscp" {
        DSCP_VALUES_MAX
    } else {
        PRECEDENCE_VALUES_MAX
    };
    let lines: Vec<String> = values
        .chunks(most)
        .map(|values| format!("{keyword} {}", values.join(" ")))
        .collect();
    match lines.len() {
        0 => Err("an empty set of DSCPs".into()),
        1 => Ok(lines),
        _ if several => Ok(lines),
        _ => Err(format!(
            "more than {most} values of {keyword} in one condition"
        )),
    }
}

fn access_group(list: &AccessList, lists: &mut Section) -> Result<String, Problem> {
    let in_list = |problem| format!("access list `{}`: {problem}", list.name);
    let text = access_list(list).map_err(in_list)?;
    lists.define("access list", &list.name, text)?;
    let name = if number_of_name(&list.name).is_some() {
        ""
    } else {
        "name "
    };
    Ok(format!("access-group {name}{}", list.name))
}

fn access_list(list: &AccessList) -> Result<String, Problem> {
    valid_name("access list", &list.name)?;
    if list.entries.is_empty() {
        return Err("it has no entries".into());
    }
    let kind = number_of_name(&list.name).and_then(kind_of_number);
    if kind.is_none() && list.name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("its name begins with a digit and is not the number of an IPv4 list".into());
    }
    let mut text = match kind {
        Some(_) => String::new(),
        None => format!("ip access-list extended {}\n", list.name),
    };
    for entry in &list.entries {
        let verb = if entry.permit { "permit" } else { "deny" };
        let fields = Fields::of(entry)?;
        let line = match kind {
            Some(ListKind::Standard) => fields.standard()?,
            _ => fields.extended()?,
        };
        match kind {
            Some(_) => text.push_str(&format!("access-list {} {verb} {line}\n", list.name)),
            None => text.push_str(&format!(" {verb} {line}\n")),
        }
    }
    Ok(text)
}

/// The conditions of an entry, each at its place.
#[derive(Default)]
struct Fields<'a> {
    protocol: Option<u8>,
    source: Option<IpPrefix>,
    source_port: Option<&'a RangeInclusive<u16>>,
    destination: Option<IpPrefix>,
    destination_port: Option<&'a RangeInclusive<u16>>,
    dscp: Option<u64>,
}

impl<'a> Fields<'a> {
    fn of(entry: &'a AccessEntry) -> Result<Self, Problem> {
        let mut fields = Self::default();
        for condition in &entry.conditions {
            let taken = match condition {
                Condition::Protocol(p) => fields.protocol.replace(*p).is_some(),
                Condition::Source(prefix) => fields.source.replace(*prefix).is_some(),
                Condition::Destination(prefix) => fields.destination.replace(*prefix).is_some(),
                Condition::SourcePort(range) => fields.source_port.replace(range).is_some(),
                Condition::DestinationPort(range) => {
                    fields.destination_port.replace(range).is_some()
                }
                Condition::Dscp(set) => fields.dscp.replace(*set).is_some(),
                Condition::Everything
                | Condition::OuterVlan(_)
                | Condition::InnerVlan(_)
                | Condition::GtpTeid(_)
                | Condition::Ethertype(_)
                | Condition::IcmpType(_)
                | Condition::AccessList(_)
                | Condition::Not(_) => {
                    return Err(
                        "an entry matches more than protocol, addresses, ports and DSCP".into(),
                    );
                }
            };
            if taken {
                return Err("an entry has two conditions on the same field".into());
            }
        }
        Ok(fields)
    }

    fn standard(&self) -> Result<String, Problem> {
        match self {
            Self {
                protocol: None,
                source: Some(source),
                source_port: None,
                destination: None,
                destination_port: None,
                dscp: None,
            } => address(*source),
            _ => Err("a standard list matches source addresses, nothing else".into()),
        }
    }

    fn extended(&self) -> Result<String, Problem> {
        if self.source.is_none() && self.destination.is_none() {
            return Err("an entry without an address matches IPv6 too".into());
        }
        let mut line = match self.protocol {
            None => "ip".into(),
            Some(0) => return Err("protocol 0".into()),
            Some(protocol) => protocol_name(protocol),
        };
        let sides = [
            (self.source, self.source_port),
            (self.destination, self.destination_port),
        ];
        for (prefix, ports) in sides {
            line.push(' ');
            line.push_str(&address(prefix.unwrap_or(IpPrefix::ALL_IPV4))?);
            if let Some(ports) = ports {
                if !self.protocol.is_some_and(has_ports) {
                    return Err("ports without TCP, UDP or SCTP".into());
                }
                line.push(' ');
                line.push_str(&port_text(ports)?);
            }
        }
        if let Some(set) = self.dscp {
            line.push_str(&code_point(set)?);
        }
        Ok(line)
    }
}

fn address(prefix: IpPrefix) -> Result<String, Problem> {
    let IpAddr::V4(address) = prefix.address() else {
        return Err(format!("{prefix}: IPv6 access lists are not written"));
    };
    Ok(match prefix.length() {
        0 => "any".into(),
        32 => format!("host {address}"),
        length => format!("{address} {}", Ipv4Addr::from(u32::MAX >> length)),
    })
}

fn port_text(range: &RangeInclusive<u16>) -> Result<String, Problem> {
    let (first, last) = (*range.start(), *range.end());
    if range.is_empty() {
        return Err("an empty range of ports".into());
    }
    Ok(match (first, last) {
        _ if first == last => format!("eq {first}"),
        (0, last) if last < u16::MAX => format!("lt {}", last + 1),
        (first, u16::MAX) if first > 0 => format!("gt {}", first - 1),
        _ => format!("range {first} {last}"),
    })
}

/// An entry takes one DSCP or one precedence.
fn code_point(set: u64) -> Result<String, Problem> {
    let precedence = (0..8).find(|&p| Condition::precedence(p) == Condition::Dscp(set));
    let dscp = (0..64u8).find(|&dscp| set == 1 << dscp);
    match (precedence, dscp) {
        (Some(precedence), _) => Ok(format!(" precedence {precedence}")),
        (None, Some(dscp)) => Ok(format!(" dscp {}", dscp_name(dscp))),
        (None, None) => Err("an entry with several DSCPs: write one entry for each".into()),
    }
}
