//! Conditions on headers: from a study's form to a class map's.

use crate::settings;
use crate::spec::{Dscp, EtherType, NumberRange, OneOrMany, Protocol, Scalar, narrowed};
use slicewise_model::{AccessEntry, AccessList, ClassMap, Condition, IpPrefix, MatchMode};
use std::ops::RangeInclusive;

/// The largest VLAN id that can be used (IEEE 802.1Q).
pub(super) const MAX_VLAN: u16 = 4094;

/// Conditions that must all hold; several values of one key are one condition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions(Vec<Condition>);

/// Alternatives, one of which must hold.
pub(crate) type Matches = OneOrMany<Conditions>;

narrowed! {
    /// VLAN ids.
    #[derive(Copy)]
    VlanRange(NumberRange) as "NumberOrRange": |text| match NumberRange::from_text(text)? {
        range if range.last > MAX_VLAN => Err(format!("this is above {MAX_VLAN}, the largest")),
        range => Ok(range),
    };
    /// IP precedence.
    #[derive(Copy)]
    Precedence(u8) as "SmallNumber": |text| match u8::from_text(text)? {
        0..=7 => u8::from_text(text),
        _ => Err("a precedence is a number from 0 to 7".to_owned()),
    };
}

settings! {
    /// Conditions on the headers of a frame; all must hold. A list stands for any one of its items.
    impl Conditions as "MatchSpec", strict = Self::default(); {
        /// VLAN id of the outermost tag: a number, a range like `10-19`, or a list of them.
        vlan: OneOrMany<VlanRange> = |all, ids| all.any(ids, |id| Condition::OuterVlan(id.0.bounds())),
        /// VLAN id of the second tag.
        inner_vlan: OneOrMany<VlanRange> = |all, ids| all.any(ids, |id| Condition::InnerVlan(id.0.bounds())),
        /// `EtherType` after all VLAN tags: a number, or a name as `arp`, `lldp`, `lacp`, `ptp` or `stp`.
        ethertype: OneOrMany<EtherType> = |all, them| all.any(them, |it| Condition::Ethertype(it.0)),
        /// Source address or prefix.
        source: OneOrMany<IpPrefix> = |all, prefixes| all.any(prefixes, Condition::Source),
        /// Destination address or prefix.
        destination: OneOrMany<IpPrefix> = |all, prefixes| all.any(prefixes, Condition::Destination),
        /// IP protocol: a number or a name.
        protocol: OneOrMany<Protocol> = |all, them| all.any(them, |it| Condition::Protocol(it.0)),
        /// Type of an ICMP or ICMPv6 message.
        icmp_type: OneOrMany<u8> = |all, them| all.any(them, Condition::IcmpType),
        /// Source port of UDP, TCP or SCTP.
        source_port: OneOrMany<NumberRange> = |all, ports| all.any(ports, |it| Condition::SourcePort(it.bounds())),
        /// Destination port of UDP, TCP or SCTP.
        destination_port: OneOrMany<NumberRange> = |all, ports| all.any(ports, |it| Condition::DestinationPort(it.bounds())),
        /// Tunnel endpoint identifier of the GTP-U tunnel around the packet: a number, a range like `1-1000`, or a list
        /// of them.
        teid: OneOrMany<NumberRange<u32>> = |all, them| all.any(them, |it| Condition::GtpTeid(it.bounds())),
        /// Differentiated-services code point: a number or a name.
        dscp: OneOrMany<Dscp> = |all, them| all.any(them, |it| Condition::Dscp(1 << it.0)),
        /// IP precedence, 0 to 7.
        precedence: OneOrMany<Precedence> = |all, them| all.any(them, |it| Condition::precedence(it.0)),
        /// Conditions that must not hold together.
        not: Self = |all, not| all.0.push(Condition::Not(Box::new(all_of(not.0)))),
    }
}

impl Conditions {
    /// One of these values must be there.
    fn any<T>(&mut self, values: OneOrMany<T>, condition: impl Fn(T) -> Condition) {
        let alternatives = values.0.into_iter().map(condition);
        let alternatives = union_of_code_points(alternatives.collect());
        if !alternatives.is_empty() {
            self.0.push(any_of(alternatives));
        }
    }
}

impl<T> NumberRange<T> {
    fn bounds(self) -> RangeInclusive<T> {
        self.first..=self.last
    }
}

/// The class map `name` for a list of alternatives.
pub(super) fn class_map(name: &str, any_of: &Matches) -> ClassMap {
    let mut alternatives: Vec<Vec<Condition>> = any_of.0.iter().map(|all| all.0.clone()).collect();
    let (mode, conditions) = match alternatives.len() {
        1 => {
            // One mapping: its keys must all hold. A lone list of values reads better as any-of.
            let mut all = alternatives.swap_remove(0);
            if all.is_empty() {
                all.push(Condition::Everything);
            }
            let single = match all.as_slice() {
                [Condition::AccessList(list)] => single_conditions(list),
                _ => None,
            };
            single.map_or((MatchMode::All, all), |each| (MatchMode::Any, each))
        }
        _ => (
            MatchMode::Any,
            alternatives.into_iter().map(all_of).collect(),
        ),
    };
    ClassMap {
        name: name.to_owned(),
        mode,
        conditions,
    }
}

/// Sets of code points are one condition already.
fn union_of_code_points(conditions: Vec<Condition>) -> Vec<Condition> {
    let union = conditions
        .iter()
        .fold(0, |union, condition| match condition {
            Condition::Dscp(set) => union | set,
            _ => union,
        });
    match union {
        0 => conditions,
        _ => vec![Condition::Dscp(union)],
    }
}

/// One of these. A class map has no "or" inside an "and": an access list says it.
fn any_of(mut alternatives: Vec<Condition>) -> Condition {
    if alternatives.len() == 1 {
        return alternatives.swap_remove(0);
    }
    let entries = alternatives
        .into_iter()
        .map(|condition| AccessEntry {
            permit: true,
            conditions: vec![condition],
        })
        .collect();
    Condition::AccessList(AccessList {
        name: "any-of".to_owned(),
        entries,
    })
}

/// All of these.
fn all_of(mut conditions: Vec<Condition>) -> Condition {
    match conditions.len() {
        0 => Condition::Everything,
        1 => conditions.swap_remove(0),
        _ => {
            let entry = AccessEntry {
                permit: true,
                conditions,
            };
            Condition::AccessList(AccessList {
                name: "all-of".to_owned(),
                entries: vec![entry],
            })
        }
    }
}

/// The conditions of a list whose entries permit on one condition each.
fn single_conditions(list: &AccessList) -> Option<Vec<Condition>> {
    let single = |entry: &AccessEntry| match entry.conditions.as_slice() {
        [condition] if entry.permit => Some(condition.clone()),
        _ => None,
    };
    list.entries.iter().map(single).collect()
}
