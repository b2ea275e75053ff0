//! Class maps as BPF programs match exactly what class maps match.

use crate::support::bpf_machine::{Packet, run};
use proptest::prelude::*;
use slicewise_formats::tc::{FilterError, INSTRUCTIONS_MAX, compile_class_map};
use slicewise_model::{AccessEntry, AccessList, ClassMap, Condition, IpPrefix, MatchMode};
use slicewise_wire::{LinkType, parse_frame};
use std::net::IpAddr;

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// A frame of few values, so that conditions often match.
#[derive(Debug, Clone)]
struct FrameSpec {
    tags: Vec<(u16, u16)>,
    network: Network,
    transport: u8,
    ports: (u16, u16),
    /// Bytes taken away from the end.
    cut: usize,
}

#[derive(Debug, Clone)]
enum Network {
    Other(u16),
    V4 {
        dscp: u8,
        addresses: (u32, u32),
        options: u8,
        fragment: u16,
        stated: i32,
    },
    V6 {
        dscp: u8,
        addresses: (u128, u128),
        extensions: Vec<(u8, u8)>,
        fragment: u16,
        stated: i32,
    },
}

impl FrameSpec {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        for (kind, vlan) in &self.tags {
            bytes.extend(kind.to_be_bytes());
            bytes.extend((vlan | 0x6000).to_be_bytes());
        }
        let mut transport = Vec::new();
        transport.extend(self.ports.0.to_be_bytes());
        transport.extend(self.ports.1.to_be_bytes());
        transport.extend([0; 8]);
        transport.extend([0x50, 0, 0, 0, 0, 0, 0, 0, 9, 9]);
        match &self.network {
            Network::Other(kind) => {
                bytes.extend(kind.to_be_bytes());
                bytes.extend([0; 46]);
            }
            Network::V4 {
                dscp,
                addresses,
                options,
                fragment,
                stated,
            } => {
                bytes.extend([8, 0, 0x40 | (5 + options), dscp << 2 | 1]);
                let length = 20 + 4 * usize::from(*options) + transport.len();
                bytes.extend(stated_length(length, *stated));
                bytes.extend([0, 7]);
                bytes.extend(fragment.to_be_bytes());
                bytes.extend([64, self.transport, 0, 0]);
                bytes.extend(addresses.0.to_be_bytes());
                bytes.extend(addresses.1.to_be_bytes());
                bytes.extend(vec![1; 4 * usize::from(*options)]);
                bytes.extend(&transport);
            }
            Network::V6 {
                dscp,
                addresses,
                extensions,
                fragment,
                stated,
            } => {
                let mut rest = Vec::new();
                for (index, (kind, units)) in extensions.iter().enumerate() {
                    let next = extensions.get(index + 1).map_or(self.transport, |e| e.0);
                    let (stated, length) = match kind {
                        44 => (0, 8),
                        51 => (*units + 1, (usize::from(*units) + 3) * 4),
                        _ => (*units, (usize::from(*units) + 1) * 8),
                    };
                    let mut header = vec![0; length];
                    header[..2].copy_from_slice(&[next, stated]);
                    if *kind == 44 {
                        header[2..4].copy_from_slice(&fragment.to_be_bytes());
                    }
                    rest.extend(header);
                }
                rest.extend(&transport);
                bytes.extend([0x86, 0xdd, 0x60 | dscp >> 2, dscp << 6 | 5, 0, 0]);
                bytes.extend(stated_length(rest.len(), *stated));
                bytes.extend([extensions.first().map_or(self.transport, |e| e.0), 64]);
                bytes.extend(addresses.0.to_be_bytes());
                bytes.extend(addresses.1.to_be_bytes());
                bytes.extend(rest);
            }
        }
        // Headers of a link and its tags are there in every frame.
        let least = 14 + 4 * self.tags.len();
        bytes.truncate(bytes.len().saturating_sub(self.cut).max(least));
        bytes
    }
}

fn stated_length(length: usize, stated: i32) -> [u8; 2] {
    let stated = i32::try_from(length).unwrap() + stated;
    u16::try_from(stated.max(0)).unwrap().to_be_bytes()
}

fn frame() -> impl Strategy<Value = FrameSpec> {
    let stated = || prop_oneof![8 => Just(0i32), 1 => -40i32..40, 1 => Just(-1000)];
    let fragment = |later: u16| prop_oneof![6 => Just(0u16), 1 => Just(0x2000), 1 => Just(later)];
    let v4 = (0u8..64, 0u32..4, 0u32..4, 0u8..4, fragment(3), stated()).prop_map(
        |(dscp, source, destination, options, fragment, stated)| Network::V4 {
            dscp,
            addresses: (0x0a00_0000 + source, 0x0a00_0000 + destination),
            options,
            fragment,
            stated,
        },
    );
    let kinds = vec![0u8, 43, 44, 51, 60, 135, 139, 140];
    let extension = (prop::sample::select(kinds), 0u8..3);
    let v6 = (
        0u8..64,
        (0u128..4, 0u128..4),
        prop::collection::vec(extension, 0..10),
        prop_oneof![Just(0u16), Just(1), Just(8)],
        stated(),
    )
        .prop_map(
            |(dscp, (source, destination), extensions, fragment, stated)| {
                let base = 0x2001_0db8u128 << 96;
                Network::V6 {
                    dscp,
                    addresses: (base + source, base + destination),
                    extensions,
                    fragment,
                    stated,
                }
            },
        );
    let other = prop_oneof![Just(0x0806u16), Just(0x0800), Just(0x86dd)].prop_map(Network::Other);
    (
        prop::collection::vec((prop::sample::select(TAGS.to_vec()), 0u16..4), 0..5),
        prop_oneof![4 => v4, 4 => v6, 1 => other],
        prop_oneof![Just(6u8), Just(17), Just(132), Just(1)],
        (0u16..4, 0u16..4),
        prop_oneof![6 => Just(0usize), 1 => 0usize..120],
    )
        .prop_map(|(tags, network, transport, ports, cut)| FrameSpec {
            tags,
            network,
            transport,
            ports,
            cut,
        })
}

fn prefix() -> impl Strategy<Value = IpPrefix> {
    let v4 = (0u32..4, prop_oneof![30u8..=32, Just(0), Just(8)])
        .prop_map(|(a, length)| (IpAddr::V4((0x0a00_0000 + a).into()), length));
    let v6 = (
        0u128..4,
        prop_oneof![126u8..=128, Just(0), Just(32), Just(40), Just(64)],
    )
        .prop_map(|(a, length)| (IpAddr::V6(((0x2001_0db8u128 << 96) + a).into()), length));
    prop_oneof![v4, v6].prop_map(|(address, length)| IpPrefix::new(address, length).unwrap())
}

fn condition() -> impl Strategy<Value = Condition> {
    let range = || (0u16..4, 0u16..4).prop_map(|(a, b)| a.min(b)..=a.max(b));
    let leaf = prop_oneof![
        Just(Condition::Everything),
        range().prop_map(Condition::OuterVlan),
        range().prop_map(Condition::InnerVlan),
        prefix().prop_map(Condition::Source),
        prefix().prop_map(Condition::Destination),
        prop_oneof![Just(6u8), Just(17), Just(1), Just(44), Just(60)].prop_map(Condition::Protocol),
        range().prop_map(Condition::SourcePort),
        range().prop_map(Condition::DestinationPort),
        any::<u64>().prop_map(|set| Condition::Dscp(set.max(1))),
        (0u8..8).prop_map(Condition::precedence),
        Just(Condition::Dscp(u64::MAX)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let entry = (any::<bool>(), prop::collection::vec(inner.clone(), 0..3))
            .prop_map(|(permit, conditions)| AccessEntry { permit, conditions });
        prop_oneof![
            inner.prop_map(|c| Condition::Not(Box::new(c))),
            prop::collection::vec(entry, 0..3).prop_map(|entries| {
                Condition::AccessList(AccessList {
                    name: "l".into(),
                    entries,
                })
            }),
        ]
    })
}

fn class_map() -> impl Strategy<Value = ClassMap> {
    (any::<bool>(), prop::collection::vec(condition(), 0..4)).prop_map(|(all, conditions)| {
        ClassMap {
            name: "c".into(),
            mode: if all { MatchMode::All } else { MatchMode::Any },
            conditions,
        }
    })
}

/// Linux takes the outer tag of 802.1Q and 802.1ad out of the packet.
fn untagged(bytes: &[u8]) -> Packet {
    let kind = u16::from_be_bytes([bytes[12], bytes[13]]);
    if kind != 0x8100 && kind != 0x88a8 {
        return Packet {
            bytes: bytes.to_vec(),
            tag_beside: None,
        };
    }
    let mut rest = bytes[..12].to_vec();
    rest.extend(&bytes[16..]);
    Packet {
        bytes: rest,
        tag_beside: Some(u16::from_be_bytes([bytes[14], bytes[15]])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_program_matches_what_its_class_map_matches(
        map in class_map(),
        frames in prop::collection::vec(frame(), 20),
    ) {
        let program = compile_class_map(&map).unwrap();
        for frame in frames {
            let bytes = frame.bytes();
            let wire_bytes = u32::try_from(bytes.len()).unwrap();
            let headers = parse_frame(LinkType::ETHERNET, &bytes, wire_bytes).headers;
            let expected = if map.matches(&headers) { u32::MAX } else { 0 };
            let beside = untagged(&bytes);
            let within = Packet { bytes, tag_beside: None };
            for packet in [within, beside] {
                prop_assert_eq!(run(&program, &packet), expected, "{:?} of {:?}", headers, frame);
            }
        }
    }
}

fn vlans(vlans: impl Iterator<Item = u16>) -> ClassMap {
    ClassMap {
        name: "c".into(),
        mode: MatchMode::Any,
        conditions: vlans
            .map(|vlan| Condition::OuterVlan(vlan..=vlan))
            .collect(),
    }
}

fn tagged(vlan: u16) -> Packet {
    Packet {
        bytes: vec![0; 60],
        tag_beside: Some(vlan),
    }
}

#[test]
fn jumps_further_than_a_conditional_jump_reaches() {
    // Hundreds of conditions, each of which jumps to the end where it holds.
    let program = compile_class_map(&vlans((0..650).map(|index| 2 * index))).unwrap();
    assert!(program.instructions().len() > 1_800);
    for vlan in [0, 2, 254, 256, 510, 512, 514, 1_000, 1_296, 1_298] {
        assert_eq!(run(&program, &tagged(vlan)), u32::MAX, "{vlan}");
        assert_eq!(run(&program, &tagged(vlan + 1)), 0, "{vlan}");
    }
}

#[test]
fn a_program_too_long_for_a_request_is_refused_with_its_length() {
    let refusal = compile_class_map(&vlans(1..4_000)).unwrap_err();
    assert!(
        matches!(refusal, FilterError::TooLong { instructions } if instructions > INSTRUCTIONS_MAX)
    );
}

#[test]
fn a_class_map_that_matches_a_teid_is_refused() {
    let map = ClassMap {
        conditions: vec![Condition::Not(Box::new(Condition::GtpTeid(7..=7)))],
        ..vlans(1..2)
    };
    let refusal = compile_class_map(&map).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the exported filters look at the outermost IP packet, not at the TEID of a GTP-U tunnel: match the \
         addresses of the tunnel's ends"
    );
}

#[test]
fn a_program_is_written_as_tc_reads_it() {
    let program = compile_class_map(&ClassMap {
        name: "c".into(),
        mode: MatchMode::All,
        conditions: vec![Condition::Everything],
    });
    insta::assert_snapshot!(program.unwrap(), @"2,6 0 0 4294967295,6 0 0 0");
    let program = compile_class_map(&vlans([10, 30].into_iter()));
    insta::assert_snapshot!(program.unwrap(), @"27,0 0 0 4294967295,2 0 0 0,48 0 0 4294963248,21 3 0 0,40 0 0 4294963244,84 0 0 4095,2 0 0 0,40 0 0 12,21 5 0 33024,21 4 0 34984,21 3 0 37120,1 0 0 14,3 0 0 3,5 0 0 6,40 0 0 14,84 0 0 4095,7 0 0 0,96 0 0 0,21 0 1 4294967295,3 0 0 0,96 0 0 0,21 3 0 10,96 0 0 0,21 1 0 30,5 0 0 1,6 0 0 4294967295,6 0 0 0");
}
