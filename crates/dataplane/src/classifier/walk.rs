//! Which class a frame belongs to: the first whose class map matches, else class-default.
//!
//! Class maps are evaluated in the order of the policy; the result for a set of headers is kept in a
//! direct-mapped cache, so that in the common case (packets of known flows) the work does not depend on
//! the number of classes.

use slicewise_model::{ClassMap, Condition, IpPrefix, MatchMode, PolicyParams};
use slicewise_wire::{Headers, IpVersion};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// A compiled policy tree: headers in, leaf class out.
#[derive(Debug, Clone)]
pub struct Classifier {
    levels: Vec<Vec<Rule>>,
    cache: Box<[CacheEntry]>,
}

#[derive(Debug, Clone)]
struct Rule {
    /// `None` matches everything: class-default.
    map: Option<CompiledClassMap>,
    target: Target,
}

#[derive(Debug, Clone, Copy)]
enum Target {
    Leaf(u32),
    /// Classified further by this level.
    Level(usize),
}

#[derive(Debug, Clone, Copy)]
struct CacheEntry {
    headers: Headers,
    /// `EMPTY` where the entry is not in use.
    leaf: u32,
}

const EMPTY: u32 = u32::MAX;
/// Entries in the cache; a power of two. 1,024 flows fit well in a second-level cache.
const CACHE_ENTRIES: usize = 1_024;

impl Classifier {
    /// Compile `policy`. Leaves are numbered from 0 in depth-first order of the classes.
    #[must_use]
    pub fn new(policy: &PolicyParams) -> Self {
        let mut levels = Vec::new();
        let mut next_leaf = 0;
        compile_level(policy, &mut levels, &mut next_leaf);
        let empty = CacheEntry {
            headers: Headers::default(),
            leaf: EMPTY,
        };
        Self {
            levels,
            cache: vec![empty; CACHE_ENTRIES].into_boxed_slice(),
        }
    }

    /// The leaf class of a frame with these headers.
    #[inline]
    pub fn classify(&mut self, headers: &Headers) -> u32 {
        let slot = slot_of(headers);
        let entry = &self.cache[slot];
        // No rule matches congestion marks: a marked frame of the flow has the same key.
        let ecn = entry.headers.ecn;
        if entry.leaf != EMPTY && entry.headers == (Headers { ecn, ..*headers }) {
            return entry.leaf;
        }
        let leaf = self.evaluate(headers);
        self.cache[slot] = CacheEntry {
            headers: *headers,
            leaf,
        };
        leaf
    }

    /// The same without the cache: walks the class maps in order.
    #[must_use]
    pub fn evaluate(&self, headers: &Headers) -> u32 {
        let mut level = 0;
        loop {
            // Every level ends with class-default, so one rule always matches.
            let rule = self.levels[level]
                .iter()
                .find(|rule| rule.map.as_ref().is_none_or(|map| map.matches(headers)));
            match rule.map(|rule| rule.target) {
                Some(Target::Leaf(leaf)) => return leaf,
                Some(Target::Level(next)) => level = next,
                None => return 0,
            }
        }
    }
}

fn compile_level(policy: &PolicyParams, levels: &mut Vec<Vec<Rule>>, leaf: &mut u32) -> usize {
    let level = levels.len();
    levels.push(Vec::new());
    for class in &policy.classes {
        let target = match &class.child {
            Some(child) => Target::Level(compile_level(child, levels, leaf)),
            None => {
                *leaf += 1;
                Target::Leaf(*leaf - 1)
            }
        };
        let map = class.matches.as_ref().map(CompiledClassMap::new);
        levels[level].push(Rule { map, target });
    }
    level
}

/// The entry of the cache: mixes the fields that distinguish flows; the multiplier is 2^64 / golden
/// ratio (Knuth).
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "truncation is fine for a hash"
)]
fn slot_of(h: &Headers) -> usize {
    let fold = |address: u128| (address as u64) ^ ((address >> 64) as u64);
    let ports = u64::from(h.source_port) << 48
        | u64::from(h.destination_port) << 32
        | u64::from(h.outer_vlan) << 16
        | u64::from(h.inner_vlan);
    let rest = u64::from(h.dscp) << 8 | u64::from(h.protocol);
    let mixed =
        (fold(h.source).rotate_left(17) ^ fold(h.destination) ^ ports.rotate_left(31) ^ rest)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The upper bits are those that every bit of a field reaches.
    (mixed >> (u64::BITS - CACHE_ENTRIES.ilog2())) as usize
}

/// A single class map, for classification without a policy.
#[derive(Debug, Clone)]
pub struct CompiledClassMap {
    mode: MatchMode,
    conditions: Vec<Compiled>,
}

impl CompiledClassMap {
    /// Compile a class map.
    #[must_use]
    pub fn new(map: &ClassMap) -> Self {
        Self {
            mode: map.mode,
            conditions: map.conditions.iter().map(Compiled::new).collect(),
        }
    }

    /// Whether a frame with these headers belongs to it.
    #[must_use]
    pub fn matches(&self, headers: &Headers) -> bool {
        let mut conditions = self.conditions.iter();
        match self.mode {
            MatchMode::Any => conditions.any(|c| c.matches(headers)),
            MatchMode::All => !self.conditions.is_empty() && conditions.all(|c| c.matches(headers)),
        }
    }
}

#[derive(Debug, Clone)]
enum Compiled {
    Everything,
    OuterVlan(RangeInclusive<u16>),
    InnerVlan(RangeInclusive<u16>),
    Source(Prefix),
    Destination(Prefix),
    Protocol(u8),
    SourcePort(RangeInclusive<u16>),
    DestinationPort(RangeInclusive<u16>),
    Dscp(u64),
    AccessList(Vec<(bool, Vec<Compiled>)>),
    Not(Box<Compiled>),
}

#[derive(Debug, Clone, Copy)]
struct Prefix {
    version: IpVersion,
    value: u128,
    mask: u128,
}

impl Prefix {
    fn new(prefix: IpPrefix) -> Self {
        let length = u32::from(prefix.length());
        match prefix.address() {
            IpAddr::V4(a) => {
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                Self {
                    version: IpVersion::V4,
                    value: u32::from(a).into(),
                    mask: mask.into(),
                }
            }
            IpAddr::V6(a) => {
                let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
                Self {
                    version: IpVersion::V6,
                    value: a.into(),
                    mask,
                }
            }
        }
    }

    fn contains(&self, version: IpVersion, address: u128) -> bool {
        version == self.version && address & self.mask == self.value
    }
}

impl Compiled {
    fn new(condition: &Condition) -> Self {
        match condition {
            Condition::Everything => Self::Everything,
            Condition::OuterVlan(range) => Self::OuterVlan(range.clone()),
            Condition::InnerVlan(range) => Self::InnerVlan(range.clone()),
            Condition::Source(prefix) => Self::Source(Prefix::new(*prefix)),
            Condition::Destination(prefix) => Self::Destination(Prefix::new(*prefix)),
            Condition::Protocol(protocol) => Self::Protocol(*protocol),
            Condition::SourcePort(range) => Self::SourcePort(range.clone()),
            Condition::DestinationPort(range) => Self::DestinationPort(range.clone()),
            Condition::Dscp(set) => Self::Dscp(*set),
            Condition::AccessList(list) => Self::AccessList(
                list.entries
                    .iter()
                    .map(|e| (e.permit, e.conditions.iter().map(Self::new).collect()))
                    .collect(),
            ),
            Condition::Not(inner) => Self::Not(Box::new(Self::new(inner))),
        }
    }

    fn matches(&self, h: &Headers) -> bool {
        let is_ip = h.ip_version != IpVersion::None;
        match self {
            Self::Everything => true,
            Self::OuterVlan(range) => h.vlan_tags >= 1 && range.contains(&h.outer_vlan),
            Self::InnerVlan(range) => h.vlan_tags >= 2 && range.contains(&h.inner_vlan),
            Self::Source(prefix) => prefix.contains(h.ip_version, h.source),
            Self::Destination(prefix) => prefix.contains(h.ip_version, h.destination),
            Self::Protocol(protocol) => is_ip && h.protocol == *protocol,
            Self::SourcePort(range) => h.has_ports && range.contains(&h.source_port),
            Self::DestinationPort(range) => h.has_ports && range.contains(&h.destination_port),
            Self::Dscp(set) => is_ip && set >> (h.dscp & 63) & 1 == 1,
            Self::AccessList(entries) => entries
                .iter()
                .find(|(_, conditions)| conditions.iter().all(|c| c.matches(h)))
                .is_some_and(|(permit, _)| *permit),
            Self::Not(inner) => !inner.matches(h),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Headers that differ in one field, or in one part of it.
    type Changed = fn(&mut Headers, u8);

    #[test]
    fn flows_that_differ_in_one_field_have_entries_of_their_own() {
        let changes: [Changed; 12] = [
            |h, n| h.source_port = n.into(),
            |h, n| h.destination_port = n.into(),
            |h, n| h.protocol = n,
            |h, n| h.dscp = n,
            |h, n| h.outer_vlan = n.into(),
            |h, n| h.inner_vlan = n.into(),
            |h, n| h.source = n.into(),
            |h, n| h.source = u128::from(n) << 64,
            |h, n| h.source = u128::from(n) << 112,
            |h, n| h.destination = n.into(),
            |h, n| h.destination = u128::from(n) << 64,
            |h, n| h.destination = u128::from(n) << 112,
        ];
        for (field, change) in changes.iter().enumerate() {
            let slots: BTreeSet<usize> = (0..64)
                .map(|n| {
                    let mut headers = Headers::default();
                    change(&mut headers, n);
                    slot_of(&headers)
                })
                .collect();
            // At random, 64 of 1,024 fall into 62 places.
            assert!(slots.len() >= 48, "field {field}: {}", slots.len());
        }
    }
}
