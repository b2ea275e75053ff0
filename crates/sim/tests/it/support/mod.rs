//! What the tests of networks share: an observer that keeps everything, and short ways to say
//! what a frame, a link and a policy are.

#![allow(dead_code, reason = "each test file uses its part")]

use slicewise_dataplane::Pipeline;
use slicewise_model::{ClassMap, ClassSpec, Condition, Discipline, MatchMode, PolicySpec, Rate};
use slicewise_sim::device::DeviceParams;
use slicewise_sim::device::port::port;
use slicewise_sim::link::LinkParams;
use slicewise_sim::packet::Packet;
use slicewise_sim::{FlowId, FlowParams, Node, Observer, PortId, Topology};
use slicewise_study::{MemoryFiles, Study};
use slicewise_traffic::{Cbr, Pace, Pattern, Random, Sizes, Source};
use slicewise_units::{Accounting, BitRate, Duration, Instant};
use slicewise_wire::{Headers, IpVersion};

/// A study without other files.
pub fn parsed(text: &str) -> Study {
    Study::parse(text, "study.yaml", &MemoryFiles::default())
        .unwrap_or_else(|found| panic!("{found}\n{text}"))
}

/// What became of a packet, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Received { sent: u64, at: u64 },
    Lost { sent: u64, at: u64 },
}

/// Keeps the fate of every packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorder {
    pub sent: Vec<(u16, u64, u64)>,
    /// Slice, number in its flow, fate; in the order reported.
    pub fates: Vec<(u16, u64, Fate)>,
}

impl Recorder {
    /// One-way delays of a slice's received packets, in order of arrival.
    pub fn delays(&self, slice: u16) -> Vec<u64> {
        let delay = |fate| match fate {
            Fate::Received { sent, at } => Some(at - sent),
            Fate::Lost { .. } => None,
        };
        self.fates
            .iter()
            .filter(|f| f.0 == slice)
            .filter_map(|f| delay(f.2))
            .collect()
    }

    /// Times of arrival of a slice's received packets.
    pub fn arrivals(&self, slice: u16) -> Vec<u64> {
        let at = |fate| match fate {
            Fate::Received { at, .. } => Some(at),
            Fate::Lost { .. } => None,
        };
        self.fates
            .iter()
            .filter(|f| f.0 == slice)
            .filter_map(|f| at(f.2))
            .collect()
    }

    pub fn lost(&self) -> usize {
        self.fates
            .iter()
            .filter(|f| matches!(f.2, Fate::Lost { .. }))
            .count()
    }
}

impl Observer for Recorder {
    fn on_sent(&mut self, flow: &FlowId, packet: &Packet) {
        self.sent
            .push((flow.slice, packet.sequence, packet.sent_at.nanos()));
    }

    fn on_received(&mut self, flow: &FlowId, packet: &Packet, now: Instant) {
        let fate = Fate::Received {
            sent: packet.sent_at.nanos(),
            at: now.nanos(),
        };
        self.fates.push((flow.slice, packet.sequence, fate));
    }

    fn on_lost(&mut self, flow: &FlowId, packet: &Packet, now: Instant) {
        let fate = Fate::Lost {
            sent: packet.sent_at.nanos(),
            at: now.nanos(),
        };
        self.fates.push((flow.slice, packet.sequence, fate));
    }
}

/// A recorder that does not need packets of several flows in order.
#[derive(Debug, Default)]
pub struct Unordered(pub Recorder);

impl Observer for Unordered {
    const ORDERED: bool = false;

    fn on_sent(&mut self, flow: &FlowId, packet: &Packet) {
        self.0.on_sent(flow, packet);
    }

    fn on_received(&mut self, flow: &FlowId, packet: &Packet, at: Instant) {
        self.0.on_received(flow, packet, at);
    }

    fn on_lost(&mut self, flow: &FlowId, packet: &Packet, now: Instant) {
        self.0.on_lost(flow, packet, now);
    }
}

/// In an order that does not depend on when packets were reported.
pub fn sorted(mut recorder: Recorder) -> Recorder {
    recorder.sent.sort_unstable();
    recorder
        .fates
        .sort_unstable_by_key(|(slice, number, _)| (*slice, *number));
    recorder
}

pub const GIGABIT: BitRate = BitRate::new(1_000_000_000);
/// A datagram of 1448 B of payload under UDP, IPv4, one VLAN tag and Ethernet.
pub const FRAME_BYTES: u32 = 1494;

pub fn ethernet(bits_per_second: u64) -> LinkParams {
    let rate = Rate {
        rate: BitRate::new(bits_per_second),
        accounting: Accounting::L1,
    };
    LinkParams {
        rate,
        propagation: Duration::ZERO,
        handover: slicewise_sim::link::Handover::LastBit,
    }
}

pub fn headers(vlan: u16) -> Headers {
    Headers {
        vlan_tags: 1,
        outer_vlan: vlan,
        ip_version: IpVersion::V4,
        protocol: 17,
        l3_offset: 18,
        ..Headers::default()
    }
}

pub fn vlan_class(name: &str, vlan: u16) -> ClassSpec {
    ClassSpec::new(ClassMap {
        name: name.to_owned(),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(vlan..=vlan)],
    })
}

pub fn policy(classes: Vec<ClassSpec>) -> PolicySpec {
    PolicySpec {
        name: "policy".to_owned(),
        classes,
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    }
}

/// A port without policy, for a link of `rate`.
pub fn plain_port(rate: BitRate) -> Pipeline {
    port(policy(Vec::new()).resolve(rate).unwrap(), 1).unwrap()
}

/// A device that processes a frame for `processing`.
pub fn device(topology: &mut Topology<Pipeline>, processing: Duration) -> Node {
    topology.device(DeviceParams {
        processing,
        flow_control: None,
    })
}

/// Joins two nodes, the first of which is an endpoint, by a link between new ports; returns the first.
pub fn join(topology: &mut Topology<Pipeline>, from: Node, to: Node, params: LinkParams) -> PortId {
    let [from, to] = [from, to].map(|node| topology.port(node));
    topology.link(from, to, params);
    from
}

/// Joins a device to a node by a link between new ports; returns that of the device, which sends what
/// `forwarding` decides.
pub fn join_egress(
    topology: &mut Topology<Pipeline>,
    device: Node,
    forwarding: Pipeline,
    to: Node,
    params: LinkParams,
) -> PortId {
    let (from, to) = (topology.egress(device, forwarding), topology.port(to));
    topology.link(from, to, params);
    from
}

/// A flow of CBR frames of [`FRAME_BYTES`] from `start` on, at `rate` of whole frames, from one endpoint to
/// another.
pub fn cbr(slice: u16, ends: [Node; 2], rate: u64, start: Duration, until: Duration) -> FlowParams {
    let pace = Pace::new(FRAME_BYTES, BitRate::new(rate)).unwrap();
    let source = Source::new(
        Pattern::Cbr(Cbr::new(pace)),
        Sizes::Equal(FRAME_BYTES),
        Instant::ZERO.saturating_add(start),
        Duration::ZERO,
        Instant::ZERO.saturating_add(until),
        Random::stream(1, u64::from(slice)),
    );
    flow(slice, ends, source)
}

pub fn flow(slice: u16, [sender, receiver]: [Node; 2], source: Source) -> FlowParams {
    FlowParams {
        id: FlowId { slice, source: 0 },
        sender,
        receiver,
        headers: headers(10 * (slice + 1)),
        outer: None,
        source,
    }
}

/// The study of `text`, in which each old piece is replaced once by the new one.
pub fn changed(text: &str, changes: &[(&str, &str)]) -> Study {
    let mut text = text.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "`{old}` is not in the study");
        text = text.replacen(old, new, 1);
    }
    Study::parse(&text, "study.yaml", &MemoryFiles::new())
        .map_err(|mistakes| mistakes.to_string())
        .unwrap()
}
