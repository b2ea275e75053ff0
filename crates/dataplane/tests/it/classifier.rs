//! Which class a frame belongs to.

use crate::support::{headers, policy, rate};
use proptest::prelude::*;
use slicewise_dataplane::{Classifier, InsertError};
use slicewise_model::{
    AccessEntry, AccessList, ClassMap, ClassSpec, Condition, IpPrefix, MatchMode, PolicyParams,
    PolicySpec,
};
use slicewise_wire::{Headers, IpVersion};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

fn class(name: &str, mode: MatchMode, conditions: Vec<Condition>) -> ClassSpec {
    ClassSpec::new(ClassMap {
        name: name.into(),
        mode,
        conditions,
    })
}

fn classifier(spec: &PolicySpec) -> Classifier {
    Classifier::new(&spec.resolve(rate("1 Gbit/s")).unwrap())
}

fn ipv4(source: [u8; 4], destination_port: u16) -> Headers {
    Headers {
        source: u128::from(u32::from_be_bytes(source)),
        destination_port,
        ..headers(10)
    }
}

#[test]
fn the_first_class_that_matches_takes_the_frame_and_class_default_the_rest() {
    let any = || class("any", MatchMode::Any, vec![Condition::Everything]);
    let vlan = || class("ten", MatchMode::Any, vec![Condition::OuterVlan(10..=10)]);
    let class_of = |classes, vlan| classifier(&policy(classes)).classify(&headers(vlan));
    assert_eq!(class_of(vec![vlan(), any()], 10), 0);
    assert_eq!(class_of(vec![any(), vlan()], 10), 0);
    assert_eq!(class_of(vec![vlan(), any()], 11), 1);
    assert_eq!(class_of(vec![vlan()], 20), 1);
    let untagged = classifier(&policy(vec![vlan()])).classify(&Headers::default());
    assert_eq!(untagged, 1, "it has no VLAN 0");
}

fn is_matched(mode: MatchMode, conditions: Vec<Condition>, headers: Headers) -> bool {
    classifier(&policy(vec![class("c", mode, conditions)])).classify(&headers) == 0
}

#[test]
fn match_any_needs_one_condition_and_match_all_needs_every_one() {
    let conditions = || vec![Condition::OuterVlan(10..=10), Condition::Dscp(1 << 46)];
    let frames = [(10, 46), (10, 0), (20, 46), (20, 0)].map(|(vlan, dscp)| Headers {
        dscp,
        ..headers(vlan)
    });
    let matched = |mode| frames.map(|frame| is_matched(mode, conditions(), frame));
    assert_eq!(matched(MatchMode::Any), [true, true, true, false]);
    assert_eq!(matched(MatchMode::All), [true, false, false, false]);
    for mode in [MatchMode::Any, MatchMode::All] {
        assert!(
            !is_matched(mode, vec![], frames[0]),
            "no condition matches nothing"
        );
    }
}

/// Conditions, each with a frame that it matches, and others.
#[test]
fn a_condition_matches_only_frames_that_have_its_field() {
    let udp = Headers {
        dscp: 46,
        ..ipv4([10, 0, 0, 1], 80)
    };
    let not_ip = Headers {
        ip_version: IpVersion::None,
        has_ports: false,
        ..udp
    };
    let tags = |vlan_tags| Headers {
        vlan_tags,
        inner_vlan: 5,
        ..udp
    };
    let tunnel = |teid| Headers {
        teid: NonZeroU32::new(teid),
        ..udp
    };
    let v6 = Headers {
        ip_version: IpVersion::V6,
        ..udp
    };
    let other = Headers {
        protocol: 6,
        dscp: 0,
        destination_port: 81,
        ..udp
    };
    let entry = |permit, text: &str| AccessEntry {
        permit,
        conditions: vec![Condition::Source(text.parse().unwrap())],
    };
    let list = AccessList {
        name: "101".into(),
        entries: vec![entry(false, "10.0.0.0/30"), entry(true, "10.0.0.0/24")],
    };
    let source = Condition::Source("0.0.0.0/0".parse().unwrap());
    for (condition, matched, others) in [
        (Condition::Protocol(17), udp, vec![other, not_ip]),
        (Condition::Dscp(1 << 46), udp, vec![other, not_ip]),
        (
            Condition::DestinationPort(80..=80),
            udp,
            vec![other, not_ip],
        ),
        (Condition::InnerVlan(5..=7), tags(2), vec![tags(1)]),
        (
            Condition::GtpTeid(7..=9),
            tunnel(7),
            [0, 6, 10].map(tunnel).to_vec(),
        ),
        (source, udp, vec![v6, not_ip]),
        // Denied first, permitted, and an end without entry.
        (
            Condition::AccessList(list),
            ipv4([10, 0, 0, 9], 80),
            vec![ipv4([10, 0, 0, 2], 80), ipv4([10, 0, 1, 9], 80)],
        ),
    ] {
        let is_matched = |frame| is_matched(MatchMode::Any, vec![condition.clone()], frame);
        assert!(is_matched(matched), "{condition:?}");
        assert!(!others.into_iter().any(is_matched), "{condition:?}");
    }
}

/// Every mask costs a look-up per frame, so their number is limited.
#[test]
fn more_combinations_of_fields_than_there_may_be_tables_still_match() {
    let both = |source: u8, destination: u8| {
        let prefix = |length| IpPrefix::new(Ipv4Addr::new(10, 0, 0, 1).into(), length).unwrap();
        vec![
            Condition::Source(prefix(source)),
            Condition::Destination(prefix(destination)),
        ]
    };
    // The longest first, so that each class matches frames that no earlier one does.
    let lengths = || {
        (20..32u8)
            .rev()
            .flat_map(|s| (20..32u8).rev().map(move |d| (s, d)))
    };
    let classes = lengths().map(|(s, d)| class(&format!("c{s}-{d}"), MatchMode::All, both(s, d)));
    let spec = policy(classes.collect());
    let classifier = classifier(&spec);
    let outside = |length: u8| u128::from(0x0a00_0001u32 ^ 1 << (31 - length));
    for (expected, (source, destination)) in (0..).zip(lengths()) {
        let frame = Headers {
            source: outside(source),
            destination: outside(destination),
            ..headers(10)
        };
        assert_eq!(classifier.classify(&frame), expected);
    }
}

#[test]
fn a_class_hidden_by_an_equal_one_appears_when_that_is_removed() {
    let ten = ClassMap {
        name: "ten".into(),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(10..=10)],
    };
    let mut classifier = classifier(&policy(vec![]));
    for class in [7, 5, 6] {
        assert_eq!(classifier.insert(0, class, &ten), Ok(()));
    }
    // In the order in which they were added, whatever their numbers.
    for class in [7, 5, 6] {
        assert_eq!(classifier.classify(&headers(10)), class);
        assert!(classifier.remove(0, class, &ten));
        assert!(!classifier.remove(0, class, &ten), "it is gone");
    }
    assert_eq!(classifier.classify(&headers(10)), 0);
}

#[test]
fn a_class_that_cannot_be_added_is_refused() {
    let map = ClassMap {
        name: "all".into(),
        mode: MatchMode::Any,
        conditions: vec![Condition::Everything],
    };
    let mut classifier = classifier(&policy(vec![]));
    let refusals = [(1, 1), (0, 1 << 31)].map(|(level, class)| {
        let refusal: InsertError = classifier.insert(level, class, &map).unwrap_err();
        refusal.to_string()
    });
    assert_eq!(
        refusals,
        [
            "the policy has no level 1",
            "class number 2147483648 is above 2147483647, the largest"
        ]
    );
    assert!(!classifier.remove(1, 1, &map));
    assert_eq!(classifier.classify(&headers(10)), 0, "nothing was added");
}

/// Like `Classifier`, but class map by class map: the classes of `policy` in order, then those of the class found.
fn walk(policy: &PolicyParams, leaf: &mut u32, headers: &Headers) -> Option<u32> {
    let mut found = None;
    for class in &policy.classes {
        let matches = class
            .matches
            .as_ref()
            .is_none_or(|map| map.matches(headers));
        let is_first = matches && found.is_none();
        if let Some(child) = &class.child {
            let within = walk(child, leaf, headers);
            found = if is_first { within } else { found };
        } else {
            found = if is_first { Some(*leaf) } else { found };
            *leaf += 1;
        }
    }
    found
}

/// Ranges of few values, aligned blocks, and ranges that are neither.
fn range() -> impl Strategy<Value = RangeInclusive<u16>> {
    prop_oneof![
        (1u16..5, 0u16..4).prop_map(|(first, more)| first..=first + more),
        Just(0..=31u16),
        Just(2..=33u16),
    ]
}

fn prefix() -> impl Strategy<Value = IpPrefix> {
    let v4 = (0u32..4, prop::sample::select(vec![0u8, 24, 30, 31, 32]))
        .prop_map(|(address, length)| IpPrefix::new(Ipv4Addr::from(address).into(), length));
    let v6 = (
        (0u128..3, 0u128..3),
        prop::sample::select(vec![0u8, 63, 64, 65, 127, 128]),
    )
        .prop_map(|((high, low), length)| {
            IpPrefix::new(Ipv6Addr::from(high << 64 | low).into(), length)
        });
    prop_oneof![v4, v6].prop_map(Option::unwrap)
}

fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        Just(Condition::Everything),
        range().prop_map(Condition::OuterVlan),
        range().prop_map(Condition::InnerVlan),
        prefix().prop_map(Condition::Source),
        prefix().prop_map(Condition::Destination),
        prop_oneof![Just(6u8), Just(17)].prop_map(Condition::Protocol),
        range().prop_map(Condition::SourcePort),
        range().prop_map(Condition::DestinationPort),
        prop_oneof![1u64..16, Just(u64::MAX), any::<u64>()]
            .prop_map(|set| Condition::Dscp(set.max(1))),
        range().prop_map(|r| Condition::GtpTeid(u32::from(*r.start()).max(1)..=(*r.end()).into())),
        Just(Condition::GtpTeid(1..=u32::MAX)),
        prop::sample::select(vec![0x42u16, 0x806, 0x800, 0x86dd, 0x8847, 0x8864])
            .prop_map(Condition::Ethertype),
        (0u8..4).prop_map(Condition::IcmpType),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let entry = (any::<bool>(), prop::collection::vec(inner.clone(), 0..3));
        let permits = prop::collection::vec(prop::collection::vec(inner.clone(), 0..3), 0..3);
        let list = |entries| {
            Condition::AccessList(AccessList {
                name: "list".into(),
                entries,
            })
        };
        let listed = |(permit, conditions)| AccessEntry { permit, conditions };
        prop_oneof![
            1 => inner.prop_map(|c| Condition::Not(Box::new(c))),
            1 => prop::collection::vec(entry.prop_map(listed), 0..3).prop_map(list),
            3 => permits.prop_map(move |entries| {
                list(entries.into_iter().map(|c| listed((true, c))).collect())
            }),
        ]
    })
}

fn class_map() -> impl Strategy<Value = ClassMap> {
    (any::<bool>(), prop::collection::vec(condition(), 0..4)).prop_map(|(any, conditions)| {
        ClassMap {
            name: "map".into(),
            mode: if any { MatchMode::Any } else { MatchMode::All },
            conditions,
        }
    })
}

/// Class maps of a policy, each with those of its child, if it has one.
type Maps = Vec<(ClassMap, Vec<ClassMap>)>;

fn maps() -> impl Strategy<Value = Maps> {
    let child = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec(class_map(), 1..4),
    ];
    prop::collection::vec((class_map(), child), 0..8)
}

fn policy_of(maps: Maps) -> PolicyParams {
    let classes = |maps: Vec<ClassMap>| {
        let named = |(index, map): (usize, ClassMap)| ClassMap {
            name: format!("c{index}"),
            ..map
        };
        maps.into_iter()
            .enumerate()
            .map(named)
            .map(ClassSpec::new)
            .collect::<Vec<_>>()
    };
    let (outer, inner): (Vec<_>, Vec<_>) = maps.into_iter().unzip();
    let mut spec = policy(classes(outer));
    for (class, inner) in spec.classes.iter_mut().zip(inner) {
        if !inner.is_empty() {
            class.child = Some(Box::new(policy(classes(inner))));
        }
    }
    spec.resolve(rate("1 Gbit/s")).unwrap()
}

/// Values near those of the conditions, present or not.
fn any_headers() -> impl Strategy<Value = Headers> {
    let address = || (0u128..3, 0u128..5).prop_map(|(high, low)| high << 64 | low);
    let number = || prop_oneof![4 => 0u16..10, 1 => 30u16..36];
    let version = prop::sample::select(vec![IpVersion::None, IpVersion::V4, IpVersion::V6]);
    (
        (0u8..3, number(), number()),
        (version, address(), address(), 0u8..20),
        (any::<bool>(), number(), number()),
        prop::option::of(number()),
        (
            prop::sample::select(vec![0x42u16, 0x806, 0x8847, 0x8864]),
            prop::option::of(0u8..4),
        ),
    )
        .prop_map(|(tags, ip, ports, teid, (ethertype, icmp_type))| {
            let is_ip = ip.0 != IpVersion::None;
            let has_ports = ports.0 && is_ip;
            Headers {
                vlan_tags: tags.0,
                outer_vlan: tags.1,
                inner_vlan: tags.2,
                ip_version: ip.0,
                source: ip.1,
                destination: ip.2,
                dscp: ip.3,
                protocol: if ip.3 % 3 == 0 { 17 } else { 6 },
                has_ports,
                source_port: if has_ports { ports.1 } else { 0 },
                destination_port: if has_ports { ports.2 } else { 0 },
                teid: teid
                    .and_then(|teid| NonZeroU32::new(teid.into()))
                    .filter(|_| is_ip),
                ethertype: if is_ip && ethertype < 0x8847 {
                    0
                } else {
                    ethertype
                },
                icmp_type: icmp_type.filter(|_| is_ip && !has_ports),
                ..Headers::default()
            }
        })
}

fn any_frames() -> impl Strategy<Value = Vec<Headers>> {
    prop::collection::vec(any_headers(), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn the_tables_agree_with_the_class_maps_walked_in_order(maps in maps(), frames in any_frames()) {
        let policy = policy_of(maps);
        let classifier = Classifier::new(&policy);
        let expected: Vec<u32> = frames
            .iter()
            .map(|frame| walk(&policy, &mut 0, frame).unwrap())
            .collect();
        let mut burst = vec![u32::MAX; frames.len()];
        classifier.classify_burst(&frames, &mut burst);
        prop_assert_eq!(&burst, &expected);
        let single: Vec<u32> = frames.iter().map(|frame| classifier.classify(frame)).collect();
        prop_assert_eq!(single, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever was added and removed, the classifier is one of the remaining classes in order of addition.
    #[test]
    fn classes_added_and_removed_one_by_one_are_those_of_a_policy(
        maps in prop::collection::vec(class_map(), 0..5),
        changes in prop::collection::vec((class_map(), any::<prop::sample::Index>(), any::<bool>()), 1..12),
        frames in any_frames(),
    ) {
        let policy = policy_of(maps.iter().cloned().map(|map| (map, Vec::new())).collect());
        let default = u32::try_from(maps.len()).unwrap();
        let mut present: Vec<(u32, ClassMap)> = (0..).zip(maps).collect();
        let mut classifier = Classifier::new(&policy);
        for (number, (map, index, removes)) in (default + 1..).zip(changes) {
            let before = classifier.revision();
            if removes && !present.is_empty() {
                let (class, map) = present.remove(index.index(present.len()));
                prop_assert!(classifier.remove(0, class, &map));
            } else {
                prop_assert_eq!(classifier.insert(0, number, &map), Ok(()));
                present.push((number, map));
            }
            prop_assert!(classifier.revision() > before, "who keeps classes of frames looks again");
            for frame in &frames {
                let first = present
                    .iter()
                    .find(|(_, map)| map.matches(frame));
                let expected = first.map_or(default, |(class, _)| *class);
                prop_assert_eq!(classifier.classify(frame), expected);
            }
        }
    }
}
