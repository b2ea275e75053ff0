//! The tables against a map.

use super::Classifier;
use super::buckets::{Buckets, Entry};
use super::direct::Direct;
use super::overlap::tests::map;
use proptest::prelude::*;
use slicewise_model::{ClassMap, ClassSpec, Condition, Discipline, PolicySpec};
use slicewise_units::BitRate;
use slicewise_wire::{Headers, IpVersion};
use std::collections::BTreeMap;

const fn entry(number: u32) -> Entry {
    Entry::new(number, number)
}

/// Adds and removes keys, in phases that grow and shrink the table, and compares it with a map.
fn check<const W: usize, const S: usize>(
    steps: &[(u64, bool)],
    key: impl Fn(u64) -> [u64; W],
) -> Result<(), TestCaseError> {
    let mut table = Buckets::<W, S>::new();
    let mut map = BTreeMap::new();
    for (number, &(value, removes)) in (0..).zip(steps) {
        let key = key(value);
        if removes {
            let expected: Option<Entry> = map.remove(&key);
            let target = expected.map_or(number, |entry| entry.target());
            prop_assert_eq!(table.remove(&key, target), expected);
        } else {
            let is_new = !map.contains_key(&key);
            prop_assert_eq!(table.try_insert(key, entry(number)), is_new);
            map.entry(key).or_insert(entry(number));
        }
        prop_assert_eq!(table.len(), map.len());
        prop_assert_eq!(
            table.find(&key),
            map.get(&key).copied().unwrap_or(Entry::NONE)
        );
    }
    for (key, entry) in &map {
        prop_assert_eq!(table.find(key), *entry);
        prop_assert_eq!(
            table.remove(key, entry.target() + 1),
            None,
            "of another class"
        );
    }
    for (key, entry) in &map {
        prop_assert_eq!(table.remove(key, entry.target()), Some(*entry));
        prop_assert_eq!(table.find(key), Entry::NONE);
    }
    prop_assert_eq!(table.len(), 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_table_holds_what_was_added_and_not_removed(
        values in prop::sample::select(vec![4u64, 50, 3_000]),
        growing in 1usize..3_000,
        seed in any::<u64>(),
    ) {
        // Mostly additions, then mostly removals.
        let mut random = seed | 1;
        let steps: Vec<(u64, bool)> = (0..2 * growing)
            .map(|step| {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let removes = (random >> 60 < 4) ^ (step > growing);
                ((random >> 20) % values, removes)
            })
            .collect();
        check::<1, 3>(&steps, |value| [value])?;
        check::<1, 3>(&steps, |value| [value << 48])?;
        check::<2, 2>(&steps, |value| [value % 3, value])?;
        check::<6, 1>(&steps, |value| [value, 0, 0, value >> 4, 0, value])?;
    }
}

#[test]
fn only_values_of_few_bits_are_positions() {
    for (mask, is_narrow) in [
        (0, false),
        (0xffff, true),
        (0x1_ffff, false),
        (u64::MAX, false),
    ] {
        assert_eq!(Direct::new(mask).is_some(), is_narrow, "{mask:#x}");
    }
    assert!(Direct::new(0xffff << 48).is_some() && Direct::new(0x1_0001 << 20).is_none());
}

/// Two thirds full; few frames need a second access; and no change moves more than the entries of two chains.
#[test]
fn a_million_consecutive_keys_are_spread_evenly() {
    for shift in [0, 16, 32, 40] {
        let mut table = Buckets::<1, 3>::new();
        for number in 0..1_000_000 {
            table.try_insert([u64::from(number) << shift], entry(number));
        }
        let (buckets, spilled, longest) = table.shape();
        assert!((490_000..=510_000).contains(&buckets), "{buckets} buckets");
        assert!(spilled < 100_000, "shift {shift}: {spilled} spill buckets");
        assert!(longest <= 5, "shift {shift}: {longest} in one chain");
    }
}

fn headers() -> impl Strategy<Value = Headers> {
    let fields = (0u16..10, 0u16..5, 0u32..4, 0u32..3, 0u8..3, 0u8..3);
    fields.prop_map(|(outer, inner, network, host, protocol, tags)| Headers {
        vlan_tags: tags,
        outer_vlan: outer,
        inner_vlan: inner,
        ip_version: IpVersion::V4,
        source: u128::from(network << 24 | host),
        destination: u128::from(host << 24 | network),
        protocol,
        ..Headers::default()
    })
}

/// Also one that is walked.
fn any_map() -> impl Strategy<Value = ClassMap> {
    let wide = Condition::OuterVlan(1..=900);
    prop_oneof![
        8 => map(),
        1 => map().prop_map(move |map| ClassMap { conditions: vec![wide.clone()], ..map }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever comes in between, and whatever goes.
    #[test]
    fn class_maps_are_tested_in_the_order_of_their_positions(
        maps in prop::collection::vec((any_map(), 1u32..1_000), 1..12),
        of_policy in 0usize..4,
        kept in any::<[bool; 12]>(),
        frames in prop::collection::vec(headers(), 1..12),
    ) {
        let classes = maps.iter().take(of_policy).map(|(map, _)| ClassSpec::new(map.clone()));
        let spec = PolicySpec {
            name: String::new(),
            classes: (0..).zip(classes).map(|(number, class)| named(number, class)).collect(),
            discipline: Discipline::MinimumShare,
            guaranteed: None,
            queues: Vec::new(),
        };
        let Ok(policy) = spec.resolve(BitRate::new(1_000_000_000)) else { return Ok(()); };
        let mut classifier = Classifier::new(&policy);
        let default = u32::try_from(policy.classes.len()).unwrap() - 1;
        let mut expected: Vec<(u32, u32, &ClassMap)> = Vec::new();
        for (number, (map, order)) in (0..).zip(&maps) {
            let is_of_policy = number < default;
            // Each at another position.
            let order = if is_of_policy { number } else { order * 16 + number };
            let class = if is_of_policy { number } else { number + 100 };
            if !is_of_policy {
                classifier.insert_at(order, class, map);
            }
            expected.push((order, class, map));
        }
        prop_assert!(classifier.next_order() > expected.iter().map(|(order, ..)| *order).max().unwrap());
        let mut index = 0;
        expected.retain(|(_, class, map)| {
            index += 1;
            let stays = kept[index - 1];
            if !stays {
                classifier.remove(0, *class, map);
            }
            stays
        });
        expected.sort_by_key(|(order, ..)| *order);
        let first = |headers: &Headers, but: Option<u32>| {
            let mut matching = expected.iter().filter(|(_, class, map)| {
                Some(*class) != but && map.matches(headers)
            });
            matching.next().map_or(default, |(_, class, _)| *class)
        };
        let mut burst = vec![0; frames.len()];
        classifier.classify_burst(&frames, &mut burst);
        for (headers, of_burst) in frames.iter().zip(burst) {
            let found = classifier.classify(headers);
            prop_assert_eq!((found, of_burst), (first(headers, None), found));
            let but = classifier.entry_but(headers, found).target();
            prop_assert_eq!(but, first(headers, Some(found)));
        }
    }
}

fn named(number: u32, class: ClassSpec) -> ClassSpec {
    let name = format!("class{number}");
    ClassSpec {
        matches: class.matches.map(|map| ClassMap {
            name: name.clone(),
            ..map
        }),
        name,
        ..class
    }
}
