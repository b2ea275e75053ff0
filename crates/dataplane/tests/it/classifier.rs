//! Which class a frame belongs to.

use crate::support::{headers, policy, rate};
use proptest::prelude::*;
use slicewise_dataplane::Classifier;
use slicewise_model::{
    AccessEntry, AccessList, ClassMap, ClassSpec, Condition, MatchMode, PolicySpec,
};
use slicewise_wire::{Headers, IpVersion};

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
fn the_first_class_that_matches_takes_the_frame() {
    let any = || class("any", MatchMode::Any, vec![Condition::Everything]);
    let vlan = || class("ten", MatchMode::Any, vec![Condition::OuterVlan(10..=10)]);
    assert_eq!(
        classifier(&policy(vec![vlan(), any()])).classify(&headers(10)),
        0
    );
    assert_eq!(
        classifier(&policy(vec![any(), vlan()])).classify(&headers(10)),
        0
    );
    assert_eq!(
        classifier(&policy(vec![vlan(), any()])).classify(&headers(11)),
        1
    );
}

#[test]
fn unmatched_frames_go_to_class_default() {
    let spec = policy(vec![class(
        "ten",
        MatchMode::Any,
        vec![Condition::OuterVlan(10..=10)],
    )]);
    assert_eq!(classifier(&spec).classify(&headers(20)), 1);
    assert_eq!(
        classifier(&spec).classify(&Headers::default()),
        1,
        "an untagged frame has no VLAN 0"
    );
}

#[test]
fn match_any_needs_one_condition_and_match_all_needs_every_one() {
    let conditions = || vec![Condition::OuterVlan(10..=10), Condition::Dscp(1 << 46)];
    let marked = Headers {
        dscp: 46,
        ..headers(10)
    };
    for (mode, frame, expected) in [
        (MatchMode::Any, headers(10), 0),
        (
            MatchMode::Any,
            Headers {
                dscp: 46,
                ..headers(20)
            },
            0,
        ),
        (MatchMode::Any, headers(20), 1),
        (MatchMode::All, headers(10), 1),
        (MatchMode::All, marked, 0),
    ] {
        let spec = policy(vec![class("c", mode, conditions())]);
        assert_eq!(
            classifier(&spec).classify(&frame),
            expected,
            "{mode:?} {frame:?}"
        );
    }
    for mode in [MatchMode::Any, MatchMode::All] {
        let nothing = policy(vec![class("c", mode, vec![])]);
        assert_eq!(
            classifier(&nothing).classify(&marked),
            1,
            "no condition matches nothing"
        );
    }
}

#[test]
fn prefixes_do_not_match_across_ip_versions() {
    let everything_v4 = policy(vec![class(
        "v4",
        MatchMode::Any,
        vec![Condition::Source("0.0.0.0/0".parse().unwrap())],
    )]);
    let mut classifier = classifier(&everything_v4);
    assert_eq!(classifier.classify(&ipv4([10, 0, 0, 1], 80)), 0);
    let v6 = Headers {
        ip_version: IpVersion::V6,
        ..ipv4([10, 0, 0, 1], 80)
    };
    assert_eq!(classifier.classify(&v6), 1);
    let not_ip = Headers {
        ip_version: IpVersion::None,
        ..headers(10)
    };
    assert_eq!(classifier.classify(&not_ip), 1);
}

#[test]
fn an_access_list_is_decided_by_its_first_matching_entry() {
    let entry = |permit, text: &str| AccessEntry {
        permit,
        conditions: vec![Condition::Source(text.parse().unwrap())],
    };
    let list = AccessList {
        name: "101".into(),
        entries: vec![entry(false, "10.0.0.0/30"), entry(true, "10.0.0.0/24")],
    };
    let spec = policy(vec![class(
        "listed",
        MatchMode::Any,
        vec![Condition::AccessList(list)],
    )]);
    let mut classifier = classifier(&spec);
    assert_eq!(
        classifier.classify(&ipv4([10, 0, 0, 2], 80)),
        1,
        "denied first"
    );
    assert_eq!(
        classifier.classify(&ipv4([10, 0, 0, 9], 80)),
        0,
        "permitted"
    );
    assert_eq!(
        classifier.classify(&ipv4([10, 0, 1, 9], 80)),
        1,
        "an end without entry denies"
    );
}

#[test]
fn inner_vlan_needs_two_tags() {
    let spec = policy(vec![class(
        "inner",
        MatchMode::Any,
        vec![Condition::InnerVlan(5..=7)],
    )]);
    let mut classifier = classifier(&spec);
    let one_tag = Headers {
        inner_vlan: 5,
        ..headers(10)
    };
    assert_eq!(classifier.classify(&one_tag), 1);
    assert_eq!(
        classifier.classify(&Headers {
            vlan_tags: 2,
            ..one_tag
        }),
        0
    );
}

#[test]
fn conditions_of_ip_and_of_ports_match_only_frames_that_have_them() {
    let without_ip = Headers {
        ip_version: IpVersion::None,
        has_ports: false,
        protocol: 17,
        dscp: 46,
        destination_port: 80,
        ..headers(10)
    };
    let udp = Headers {
        ip_version: IpVersion::V4,
        has_ports: true,
        ..without_ip
    };
    let other = Headers {
        protocol: 6,
        dscp: 0,
        destination_port: 81,
        ..udp
    };
    for condition in [
        Condition::Protocol(17),
        Condition::Dscp(1 << 46),
        Condition::DestinationPort(80..=80),
    ] {
        let spec = policy(vec![class("one", MatchMode::Any, vec![condition.clone()])]);
        let classes = [udp, other, without_ip].map(|h| classifier(&spec).classify(&h));
        assert_eq!(classes, [0, 1, 1], "{condition:?}");
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        Just(Condition::Everything),
        (0u16..4, 0u16..4).prop_map(|(a, b)| Condition::OuterVlan(a.min(b)..=a.max(b))),
        (0u16..3).prop_map(|a| Condition::InnerVlan(a..=a)),
        (0u32..4, 30u8..=32).prop_map(|(a, length)| Condition::Source(
            slicewise_model::IpPrefix::new(std::net::Ipv4Addr::from(a).into(), length).unwrap()
        )),
        prop_oneof![Just(6u8), Just(17)].prop_map(Condition::Protocol),
        (0u16..3).prop_map(|p| Condition::DestinationPort(p..=p)),
        any::<u64>().prop_map(Condition::Dscp),
    ];
    leaf.prop_recursive(1, 4, 1, |inner| {
        inner.prop_map(|c| Condition::Not(Box::new(c)))
    })
}

fn any_headers() -> impl Strategy<Value = Headers> {
    (
        0u8..3,
        0u16..4,
        0u16..3,
        0u128..4,
        0u8..8,
        0u16..3,
        any::<bool>(),
    )
        .prop_map(
            |(vlan_tags, outer_vlan, inner_vlan, source, dscp, destination_port, ip)| Headers {
                vlan_tags,
                outer_vlan,
                inner_vlan,
                source,
                dscp,
                destination_port,
                protocol: if dscp % 2 == 0 { 17 } else { 6 },
                has_ports: dscp > 2,
                ip_version: if ip { IpVersion::V4 } else { IpVersion::None },
                ..Headers::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The cache may never answer for other headers than those asked about.
    #[test]
    fn the_cache_agrees_with_the_class_maps(
        maps in prop::collection::vec((any::<bool>(), prop::collection::vec(condition(), 0..4)), 0..6),
        frames in prop::collection::vec(any_headers(), 1..200),
    ) {
        let classes = maps
            .into_iter()
            .enumerate()
            .map(|(n, (any, conditions))| {
                let mode = if any { MatchMode::Any } else { MatchMode::All };
                class(&format!("c{n}"), mode, conditions)
            })
            .collect();
        let mut classifier = classifier(&policy(classes));
        for frame in frames.iter().chain(&frames) {
            let expected = classifier.evaluate(frame);
            prop_assert_eq!(classifier.classify(frame), expected);
        }
    }
}
