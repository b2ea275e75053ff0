//! Which class maps have a frame in common with another.

use super::compile::{self, PATTERNS_MAX};
use super::key::{Mask, Pattern, WORDS};
use slicewise_model::ClassMap;
use std::collections::HashMap;

/// With more combinations of bits than this no class map counts as apart: each is compared with each.
const MASKS_MAX: usize = PATTERNS_MAX;

/// Of the patterns with one combination of bits, each with its owner.
type Group = (Mask, Vec<(usize, [u64; WORDS])>);

/// For each of `owners`, whether a frame may be of a class map of it and of one of another owner. O(class maps · masks).
///
/// A class map that does not compile into tables counts as one that every frame may be of.
pub(crate) fn overlapping<'a>(
    owners: usize,
    maps: impl IntoIterator<Item = (usize, &'a ClassMap)>,
) -> Vec<bool> {
    let mut groups: Vec<Group> = Vec::new();
    for (owner, map) in maps {
        let Some(patterns) = compile::patterns(map) else {
            return vec![true; owners];
        };
        for Pattern { mask, value } in patterns {
            match groups.iter_mut().find(|(of, _)| *of == mask) {
                Some((_, group)) => group.push((owner, value)),
                None => groups.push((mask, vec![(owner, value)])),
            }
        }
        if groups.len() > MASKS_MAX {
            return vec![true; owners];
        }
    }
    let mut overlap = vec![false; owners];
    for (mask, group) in &groups {
        for (other, others) in &groups {
            if Pattern::all(mask.needs)
                .and(&Pattern::all(other.needs))
                .is_some()
            {
                mark(group, others, mask.common_words(other), &mut overlap);
            }
        }
    }
    overlap
}

/// Mark the owners in `group` of values that, in these bits, are those of another owner in `others`.
fn mark(
    group: &[(usize, [u64; WORDS])],
    others: &[(usize, [u64; WORDS])],
    words: [u64; WORDS],
    overlap: &mut [bool],
) {
    let key = |value: &[u64; WORDS]| -> [u64; WORDS] {
        std::array::from_fn(|word| value[word] & words[word])
    };
    // `None`: several.
    let mut owners: HashMap<[u64; WORDS], Option<usize>> = HashMap::with_capacity(others.len());
    for (owner, value) in others {
        let found = owners.entry(key(value)).or_insert(Some(*owner));
        if *found != Some(*owner) {
            *found = None;
        }
    }
    for (owner, value) in group {
        if owners
            .get(&key(value))
            .is_some_and(|other| *other != Some(*owner))
            && let Some(place) = overlap.get_mut(*owner)
        {
            *place = true;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::classifier::Part;
    use proptest::prelude::*;
    use slicewise_model::{Condition, IpPrefix, MatchMode};
    use std::net::{IpAddr, Ipv4Addr};

    fn condition() -> impl Strategy<Value = Condition> {
        let prefix = || {
            let address = (0u32..4, 0u32..3);
            (address, 6u8..=32).prop_filter_map("a prefix", |((a, d), length)| {
                let address = IpAddr::V4(Ipv4Addr::from(a << 24 | d));
                IpPrefix::new(address, length)
            })
        };
        prop_oneof![
            (1u16..8, 0u16..3).prop_map(|(first, more)| Condition::OuterVlan(first..=first + more)),
            (1u16..4).prop_map(|vlan| Condition::InnerVlan(vlan..=vlan)),
            prefix().prop_map(Condition::Source),
            prefix().prop_map(Condition::Destination),
            (0u8..3).prop_map(Condition::Protocol),
        ]
    }

    pub(in crate::classifier) fn map() -> impl Strategy<Value = ClassMap> {
        let mode = prop_oneof![Just(MatchMode::All), Just(MatchMode::Any)];
        (mode, prop::collection::vec(condition(), 0..3)).prop_map(|(mode, conditions)| ClassMap {
            name: String::new(),
            mode,
            conditions,
        })
    }

    proptest! {
        #[test]
        fn those_are_found_that_a_comparison_of_each_with_each_finds(
            maps in prop::collection::vec((0usize..5, map()), 0..8),
        ) {
            let parts: Vec<_> = maps.iter().map(|(owner, map)| (*owner, Part::whole(map))).collect();
            let meets = |owner| parts.iter().any(|(of, part)| {
                *of == owner && parts.iter().any(|(other, with)| *other != owner && part.overlaps(with))
            });
            let expected: Vec<bool> = (0..5).map(meets).collect();
            let maps = maps.iter().map(|(owner, map)| (*owner, map));
            prop_assert_eq!(overlapping(5, maps), expected);
        }
    }

    #[test]
    fn a_class_map_that_is_walked_leaves_none_apart() {
        let vlan = |vlan| ClassMap {
            name: String::new(),
            mode: MatchMode::All,
            conditions: vec![Condition::OuterVlan(vlan..=vlan)],
        };
        let walked = ClassMap {
            conditions: vec![Condition::OuterVlan(1..=900)],
            ..vlan(1)
        };
        let (one, two) = (vlan(1), vlan(2));
        assert_eq!(overlapping(2, [(0, &one), (1, &two)]), [false; 2]);
        assert_eq!(
            overlapping(3, [(0, &one), (1, &two), (2, &walked)]),
            [true; 3]
        );
    }
}
