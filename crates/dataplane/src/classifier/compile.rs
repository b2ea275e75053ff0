//! Class maps as patterns: a frame belongs to the map if one of them matches.

use super::key::{self, Field, Pattern, Present};
use slicewise_model::{ClassMap, Condition, IpPrefix, MatchMode};
use slicewise_wire::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_MPLS, ETHERTYPE_MPLS_UPSTREAM,
    ETHERTYPE_PPPOE_SESSION,
};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Most patterns per class map; a map of more is evaluated condition by condition.
pub(super) const PATTERNS_MAX: usize = 64;
/// A range of up to this many values becomes one pattern per value. They share a mask, so ranges of
/// different classes share a table.
const VALUES_MAX: u64 = 16;

/// The patterns of a class map. `None` if it has conditions that are not a few patterns: negations,
/// access lists with `deny`, and wide ranges.
pub(super) fn patterns(map: &ClassMap) -> Option<Vec<Pattern>> {
    let mut patterns = match map.mode {
        MatchMode::All if map.conditions.is_empty() => Vec::new(),
        MatchMode::All => all_of(&map.conditions)?,
        MatchMode::Any => any_of(map.conditions.iter().map(patterns_of))?,
    };
    // Equal patterns would hide each other in a table.
    let mut distinct = 0;
    for index in 0..patterns.len() {
        if !patterns[..distinct].contains(&patterns[index]) {
            patterns.swap(distinct, index);
            distinct += 1;
        }
    }
    patterns.truncate(distinct);
    Some(patterns)
}

fn patterns_of(condition: &Condition) -> Option<Vec<Pattern>> {
    let exactly = |needs, field, value| Some(vec![Pattern::equal(needs, field, value, 0)]);
    match condition {
        Condition::Everything => Some(vec![Pattern::all(Present::NOTHING)]),
        Condition::OuterVlan(range) => range_of(Present::TAG, key::OUTER_VLAN, range),
        Condition::InnerVlan(range) => range_of(Present::SECOND_TAG, key::INNER_VLAN, range),
        Condition::Source(source) => Some(vec![prefix(*source, key::SOURCE)]),
        Condition::Destination(destination) => Some(vec![prefix(*destination, key::DESTINATION)]),
        Condition::Ethertype(ETHERTYPE_IPV4) => Some(vec![Pattern::all(Present::V4)]),
        Condition::Ethertype(ETHERTYPE_IPV6) => Some(vec![Pattern::all(Present::V6)]),
        Condition::Ethertype(number) => {
            // Which of these hold IP packets; for all other types, IP frames need no look-up.
            let needs = match *number {
                ETHERTYPE_PPPOE_SESSION | ETHERTYPE_MPLS | ETHERTYPE_MPLS_UPSTREAM => {
                    Present::NOTHING
                }
                _ => Present::NO_IP,
            };
            exactly(needs, key::ETHERTYPE, (*number).into())
        }
        Condition::IcmpType(number) => exactly(Present::ICMP, key::ICMP_TYPE, (*number).into()),
        Condition::Protocol(protocol) => exactly(Present::IP, key::PROTOCOL, (*protocol).into()),
        Condition::SourcePort(range) => range_of(Present::PORTS, key::SOURCE_PORT, range),
        Condition::DestinationPort(range) => range_of(Present::PORTS, key::DESTINATION_PORT, range),
        Condition::Dscp(u64::MAX) => Some(vec![Pattern::all(Present::IP)]),
        Condition::Dscp(set) => any_of(
            (0..64)
                .filter(|dscp| set >> dscp & 1 == 1)
                .map(|dscp| exactly(Present::IP, key::DSCP, dscp)),
        ),
        Condition::GtpTeid(range) => range_of(Present::TUNNEL, key::TEID, range),
        Condition::AccessList(list) if list.entries.iter().all(|entry| entry.permit) => {
            any_of(list.entries.iter().map(|entry| all_of(&entry.conditions)))
        }
        Condition::AccessList(_) | Condition::Not(_) => None,
    }
}

fn any_of(alternatives: impl Iterator<Item = Option<Vec<Pattern>>>) -> Option<Vec<Pattern>> {
    let mut any = Vec::new();
    for patterns in alternatives {
        any.extend(patterns?);
        if any.len() > PATTERNS_MAX {
            return None;
        }
    }
    Some(any)
}

fn all_of(conditions: &[Condition]) -> Option<Vec<Pattern>> {
    let mut all = vec![Pattern::all(Present::NOTHING)];
    for condition in conditions {
        let patterns = patterns_of(condition)?;
        if all.len() * patterns.len() > PATTERNS_MAX {
            return None;
        }
        all = all
            .iter()
            .flat_map(|a| patterns.iter().filter_map(|b| a.and(b)))
            .collect();
    }
    Some(all)
}

fn range_of<T: Copy + Into<u32>>(
    needs: Present,
    field: Field,
    range: &RangeInclusive<T>,
) -> Option<Vec<Pattern>> {
    let (first, last): (u32, u32) = ((*range.start()).into(), (*range.end()).into());
    if first > last {
        return Some(Vec::new());
    }
    let count = u64::from(last - first) + 1;
    if count <= VALUES_MAX {
        let exactly = |value| Pattern::equal(needs, field, value, 0);
        return Some((first..=last).map(exactly).collect());
    }
    let is_block = count.is_power_of_two() && u64::from(first) % count == 0;
    is_block.then(|| vec![Pattern::equal(needs, field, first, count.trailing_zeros())])
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low word of an address"
)]
fn prefix(prefix: IpPrefix, low: usize) -> Pattern {
    let length = u32::from(prefix.length());
    match prefix.address() {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Pattern::all(Present::V4).with_word(low, mask.into(), u32::from(address).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            let value = u128::from(address);
            Pattern::all(Present::V6)
                .with_word(low, mask as u64, value as u64)
                .with_word(low + 1, (mask >> 64) as u64, (value >> 64) as u64)
        }
    }
}
