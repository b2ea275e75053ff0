//! Flows: header fields that must all hold. A class map in disjunctive form is a list of them.

use slicewise_model::{AccessEntry, AccessList, ClassMap, Condition, IpPrefix, MatchMode};
use std::ops::RangeInclusive;

/// Most flows that one text may list and one class map may expand to.
pub const FLOWS_MAX: usize = 4096;

/// Header fields of a frame; those that are not given may have any value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) vlan: Option<RangeInclusive<u16>>,
    pub(crate) source: Option<IpPrefix>,
    pub(crate) destination: Option<IpPrefix>,
    pub(crate) protocol: Option<u8>,
    pub(crate) source_ports: Option<RangeInclusive<u16>>,
    pub(crate) destination_ports: Option<RangeInclusive<u16>>,
    /// Bit `n` stands for code point `n`.
    pub(crate) dscp: Option<u64>,
    /// TEID of the GTP-U tunnel; the fields above are then those of the packet inside.
    pub(crate) teid: Option<u32>,
}

impl Flow {
    /// Returns true if it is about IPv4 alone, false if about IPv6 alone, as far as its addresses tell.
    pub(crate) fn is_ipv4(&self) -> Option<bool> {
        let prefix = self.source.or(self.destination)?;
        Some(prefix.address().is_ipv4())
    }

    /// The same with any code point.
    pub(crate) fn without_dscp(&self) -> Self {
        Self {
            dscp: None,
            ..self.clone()
        }
    }

    /// Returns the flow of frames that belong to both; `None` where no frame does.
    pub(crate) fn intersection(&self, other: &Self) -> Option<Self> {
        let ranges = |a: &Option<RangeInclusive<u16>>, b: &Option<RangeInclusive<u16>>| {
            both(a.clone(), b.clone(), |a, b| {
                let common = *a.start().max(b.start())..=*a.end().min(b.end());
                (!common.is_empty()).then_some(common)
            })
        };
        let flow = Self {
            vlan: ranges(&self.vlan, &other.vlan)?,
            source: both(self.source, other.source, nested)?,
            destination: both(self.destination, other.destination, nested)?,
            protocol: both(self.protocol, other.protocol, |a, b| (a == b).then_some(a))?,
            source_ports: ranges(&self.source_ports, &other.source_ports)?,
            destination_ports: ranges(&self.destination_ports, &other.destination_ports)?,
            dscp: both(self.dscp, other.dscp, |a, b| {
                Some(a & b).filter(|&set| set != 0)
            })?,
            teid: both(self.teid, other.teid, |a, b| (a == b).then_some(a))?,
        };
        let versions = [flow.source, flow.destination].map(|p| p.map(|p| p.address().is_ipv4()));
        match versions {
            [Some(source), Some(destination)] if source != destination => None,
            _ => Some(flow),
        }
    }

    fn conditions(&self) -> Vec<Condition> {
        let mut conditions = Vec::new();
        conditions.extend(self.vlan.clone().map(Condition::OuterVlan));
        conditions.extend(self.source.map(Condition::Source));
        conditions.extend(self.destination.map(Condition::Destination));
        conditions.extend(self.protocol.map(Condition::Protocol));
        conditions.extend(self.source_ports.clone().map(Condition::SourcePort));
        conditions.extend(
            self.destination_ports
                .clone()
                .map(Condition::DestinationPort),
        );
        conditions.extend(self.dscp.map(Condition::Dscp));
        conditions.extend(self.teid.map(|teid| Condition::GtpTeid(teid..=teid)));
        if conditions.is_empty() {
            conditions.push(Condition::Everything);
        }
        conditions
    }
}

/// Returns the values that two settings allow together; the outer `None` where there are none.
#[expect(
    clippy::option_option,
    reason = "nothing in common, and not restricted"
)]
fn both<T>(a: Option<T>, b: Option<T>, common: impl Fn(T, T) -> Option<T>) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) => common(a, b).map(Some),
        (a, b) => Some(a.or(b)),
    }
}

/// The longer of two prefixes, where it lies within the other.
fn nested(a: IpPrefix, b: IpPrefix) -> Option<IpPrefix> {
    let (long, short) = match a.length() >= b.length() {
        true => (a, b),
        false => (b, a),
    };
    let cut = IpPrefix::new(long.address(), short.length());
    (cut == Some(short)).then_some(long)
}

/// The class map `name` of the frames that belong to one of `flows`.
pub(crate) fn class_map(name: &str, flows: &[Flow]) -> ClassMap {
    let (mode, conditions) = match flows {
        [flow] => (MatchMode::All, flow.conditions()),
        _ => (MatchMode::Any, flows.iter().map(condition).collect()),
    };
    ClassMap {
        name: name.to_owned(),
        mode,
        conditions,
    }
}

fn condition(flow: &Flow) -> Condition {
    let mut conditions = flow.conditions();
    match conditions.pop() {
        Some(only) if conditions.is_empty() => only,
        last => {
            conditions.extend(last);
            Condition::AccessList(AccessList {
                name: "all-of".to_owned(),
                entries: vec![AccessEntry {
                    permit: true,
                    conditions,
                }],
            })
        }
    }
}

/// The flows that belong to a class map.
///
/// # Errors
/// A part that flows cannot express, as the end of a sentence that begins with the class.
pub(crate) fn flows_of(map: &ClassMap) -> Result<Vec<Flow>, String> {
    let flows = match map.mode {
        MatchMode::Any => any_of(&map.conditions)?,
        MatchMode::All if map.conditions.is_empty() => Vec::new(),
        MatchMode::All => all_of(&map.conditions)?,
    };
    match flows.as_slice() {
        [] => Err("matches no frame".to_owned()),
        _ => Ok(flows),
    }
}

/// The flows that belong to a class map, for devices that look at the outermost packet.
///
/// # Errors
/// As [`flows_of`], and where they are told by the TEID.
pub(crate) fn outermost_flows_of(map: &ClassMap) -> Result<Vec<Flow>, String> {
    let flows = flows_of(map)?;
    match flows.iter().any(|flow| flow.teid.is_some()) {
        true => Err("matches the TEID of a tunnel".to_owned()),
        false => Ok(flows),
    }
}

fn any_of(conditions: &[Condition]) -> Result<Vec<Flow>, String> {
    let mut flows = Vec::new();
    for condition in conditions {
        flows.append(&mut of_condition(condition)?);
        limited(&flows)?;
    }
    Ok(flows)
}

fn all_of(conditions: &[Condition]) -> Result<Vec<Flow>, String> {
    let mut flows = vec![Flow::default()];
    for condition in conditions {
        let more = of_condition(condition)?;
        let mut common = Vec::new();
        for flow in &flows {
            common.extend(more.iter().filter_map(|other| flow.intersection(other)));
            limited(&common)?;
        }
        flows = common;
    }
    Ok(flows)
}

fn limited(flows: &[Flow]) -> Result<(), String> {
    match flows.len() {
        0..=FLOWS_MAX => Ok(()),
        _ => Err(format!("expands to more than {FLOWS_MAX} flows")),
    }
}

fn of_condition(condition: &Condition) -> Result<Vec<Flow>, String> {
    let mut flow = Flow::default();
    match condition {
        Condition::Everything => {}
        Condition::OuterVlan(range) => flow.vlan = Some(range.clone()),
        Condition::Source(prefix) => flow.source = Some(*prefix),
        Condition::Destination(prefix) => flow.destination = Some(*prefix),
        Condition::Protocol(protocol) => flow.protocol = Some(*protocol),
        Condition::SourcePort(range) => flow.source_ports = Some(range.clone()),
        Condition::DestinationPort(range) => flow.destination_ports = Some(range.clone()),
        Condition::Dscp(set) => flow.dscp = Some(*set),
        Condition::AccessList(list) => {
            let mut flows = Vec::new();
            for entry in &list.entries {
                if !entry.permit {
                    let name = &list.name;
                    return Err(format!("has an access list `{name}` that denies"));
                }
                flows.append(&mut all_of(&entry.conditions)?);
                limited(&flows)?;
            }
            return Ok(flows);
        }
        Condition::InnerVlan(_) => return Err("matches the inner VLAN id".to_owned()),
        Condition::GtpTeid(range) if range.start() == range.end() => {
            flow.teid = Some(*range.start());
        }
        Condition::GtpTeid(_) => return Err("matches a range of TEIDs".to_owned()),
        Condition::Ethertype(_) => return Err("matches an EtherType".to_owned()),
        Condition::IcmpType(_) => return Err("matches a type of ICMP".to_owned()),
        Condition::Not(_) => return Err("matches what a condition does not hold for".to_owned()),
    }
    Ok(vec![flow])
}

/// The blocks of port numbers that make up a range: first port and number of bits that are fixed.
pub(crate) fn port_blocks(range: &RangeInclusive<u16>) -> Vec<(u16, u32)> {
    let (mut first, end) = (u32::from(*range.start()), u32::from(*range.end()) + 1);
    let mut blocks = Vec::new();
    while first < end {
        let aligned = first.trailing_zeros().min(16);
        let fitting = (end - first).ilog2();
        let bits = aligned.min(fitting);
        // The first port is below 2^16, because the end of the range is.
        blocks.push((u16::try_from(first).unwrap_or(u16::MAX), 16 - bits));
        first += 1 << bits;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use slicewise_wire::{Headers, IpVersion};
    use std::num::NonZeroU32;

    fn prefix() -> impl Strategy<Value = IpPrefix> {
        let texts = [
            "10.0.0.0/30",
            "10.0.0.2/32",
            "10.0.0.0/31",
            "0.0.0.0/0",
            "::/0",
            "::2/127",
        ];
        select(texts.to_vec()).prop_map(|text| text.parse().unwrap())
    }

    fn range() -> impl Strategy<Value = RangeInclusive<u16>> {
        (0..4u16, 0..4u16).prop_map(|(a, b)| a.min(b)..=a.max(b))
    }

    fn flow() -> impl Strategy<Value = Flow> {
        use prop::option::of;
        let ports = (of(range()), of(range()));
        let addresses = (of(prefix()), of(prefix()));
        (
            of(range()),
            addresses,
            of(select(vec![6u8, 17])),
            ports,
            (of(1..8u64), of(1..4u32)),
        )
            .prop_map(
                |(
                    vlan,
                    (source, destination),
                    protocol,
                    (source_ports, destination_ports),
                    (dscp, teid),
                )| Flow {
                    vlan,
                    source,
                    destination,
                    protocol,
                    source_ports,
                    destination_ports,
                    dscp,
                    teid,
                },
            )
    }

    fn headers() -> impl Strategy<Value = Headers> {
        let version = select(vec![IpVersion::V4, IpVersion::V6]);
        let address = |v4: bool, low: u128| if v4 { 0x0a00_0000 + low } else { low };
        (
            version,
            0..4u128,
            0..4u128,
            0..2u8,
            0..4u16,
            0..4u16,
            0..4u16,
            0..4u8,
            (any::<bool>(), 0..4u32),
        )
            .prop_map(
                move |(version, from, to, tags, vlan, source, destination, dscp, (tcp, teid))| {
                    let v4 = version == IpVersion::V4;
                    Headers {
                        source: address(v4, from),
                        destination: address(v4, to),
                        vlan_tags: tags,
                        ip_version: version,
                        protocol: if tcp { 6 } else { 17 },
                        dscp,
                        outer_vlan: if tags == 0 { 0 } else { vlan },
                        has_ports: true,
                        source_port: source,
                        destination_port: destination,
                        teid: NonZeroU32::new(teid),
                        ..Headers::EMPTY
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn a_class_map_of_flows_gives_them_back(flows in prop::collection::vec(flow(), 1..4)) {
            let possible = |flow: &Flow| flow.intersection(&Flow::default()).is_some();
            prop_assume!(flows.iter().all(possible));
            prop_assert_eq!(flows_of(&class_map("m", &flows)).unwrap(), flows);
        }

        #[test]
        fn a_frame_belongs_to_the_intersection_if_it_belongs_to_both(
            a in flow(), b in flow(), frames in prop::collection::vec(headers(), 50)
        ) {
            let is_in = |flow: &Flow, frame: &Headers| class_map("m", std::slice::from_ref(flow)).matches(frame);
            let common = a.intersection(&b);
            for frame in &frames {
                let expected = is_in(&a, frame) && is_in(&b, frame);
                prop_assert_eq!(common.as_ref().is_some_and(|flow| is_in(flow, frame)), expected);
            }
        }

        #[test]
        fn blocks_are_the_ports_of_a_range(a in any::<u16>(), b in any::<u16>()) {
            let range = a.min(b)..=a.max(b);
            let mut next = u32::from(*range.start());
            for (first, fixed) in port_blocks(&range) {
                prop_assert_eq!(u32::from(first), next);
                prop_assert_eq!(u32::from(first) % (1 << (16 - fixed)), 0);
                next += 1 << (16 - fixed);
            }
            prop_assert_eq!(next, u32::from(*range.end()) + 1);
        }
    }

    #[test]
    fn what_flows_cannot_express_is_told() {
        let not = Condition::Not(Box::new(Condition::Everything));
        for (condition, part) in [
            (Condition::InnerVlan(1..=2), "inner VLAN"),
            (Condition::GtpTeid(1..=2), "TEID"),
            (Condition::Ethertype(0x0806), "EtherType"),
            (Condition::IcmpType(8), "ICMP"),
            (not, "does not hold"),
        ] {
            let map = ClassMap {
                name: "m".to_owned(),
                mode: MatchMode::All,
                conditions: vec![condition],
            };
            let problem = flows_of(&map).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
        let in_a_tunnel = Flow {
            teid: Some(7),
            ..Flow::default()
        };
        let problem = outermost_flows_of(&class_map("m", &[in_a_tunnel])).unwrap_err();
        assert!(problem.contains("TEID"), "{problem}");
    }
}
