//! Whether a source's packets belong to a class.

use slicewise_model::{ClassMap, Condition, IpPrefix, MatchMode};
use slicewise_traffic::SourceHeaders;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Whether packets with these headers belong to the class.
pub(crate) fn matches(map: &ClassMap, headers: &SourceHeaders) -> bool {
    let mut results = map
        .conditions
        .iter()
        .map(|condition| holds(condition, headers));
    match map.mode {
        MatchMode::Any => results.any(|holds| holds),
        MatchMode::All => !map.conditions.is_empty() && results.all(|holds| holds),
    }
}

fn holds(condition: &Condition, headers: &SourceHeaders) -> bool {
    let within = |range: &RangeInclusive<u16>, value| range.contains(&value);
    match condition {
        Condition::Everything => true,
        Condition::OuterVlan(range) => headers.vlan.is_some_and(|vlan| within(range, vlan)),
        Condition::InnerVlan(range) => headers.inner_vlan.is_some_and(|vlan| within(range, vlan)),
        Condition::Source(prefix) => contains(*prefix, headers.source),
        Condition::Destination(prefix) => contains(*prefix, headers.destination),
        Condition::Protocol(protocol) => headers.protocol == *protocol,
        Condition::SourcePort(range) => headers.has_ports() && within(range, headers.source_port),
        Condition::DestinationPort(range) => {
            headers.has_ports() && within(range, headers.destination_port)
        }
        Condition::Dscp(set) => set & (1 << (headers.dscp & 63)) != 0,
        Condition::AccessList(list) => list
            .entries
            .iter()
            .find(|entry| entry.conditions.iter().all(|c| holds(c, headers)))
            .is_some_and(|entry| entry.permit),
        Condition::Not(inner) => !holds(inner, headers),
    }
}

fn contains(prefix: IpPrefix, address: IpAddr) -> bool {
    address.is_ipv4() == prefix.address().is_ipv4()
        && IpPrefix::new(address, prefix.length()) == Some(prefix)
}
