//! The flows of slices that somebody asks about.
//!
//! Counted as frames leave, and only of classes that are watched: nobody else pays for it.

use slicewise_wire::{Headers, IpVersion, LinkType, parse_frame};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Classes of a direction that can be watched at a time.
pub(crate) const MOST_WATCHED: usize = 8;
/// Flows of a class that are told apart; frames of further ones are not counted.
const MOST_FLOWS: usize = 1024;

/// Packets with the same addresses, protocol and ports; in a GTP-U tunnel those of the inner packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Source port; 0 if there is none.
    pub source_port: u16,
    /// Destination port; 0 if there is none.
    pub destination_port: u16,
}

impl FlowKey {
    /// The flow of a frame with these headers; `None` if it is not IP.
    #[must_use]
    pub fn of(headers: &Headers) -> Option<Self> {
        let address = |address: u128| match headers.ip_version {
            // It is in the low 32 bits.
            IpVersion::V4 => u32::try_from(address & u128::from(u32::MAX))
                .ok()
                .map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
            IpVersion::V6 => Some(IpAddr::V6(Ipv6Addr::from_bits(address))),
            IpVersion::None => None,
        };
        let port = |port: u16| if headers.has_ports { port } else { 0 };
        Some(Self {
            source: address(headers.source)?,
            destination: address(headers.destination)?,
            protocol: headers.protocol,
            source_port: port(headers.source_port),
            destination_port: port(headers.destination_port),
        })
    }
}

impl std::fmt::Display for FlowKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.protocol {
            1 => f.write_str("icmp")?,
            6 => f.write_str("tcp")?,
            17 => f.write_str("udp")?,
            58 => f.write_str("icmpv6")?,
            132 => f.write_str("sctp")?,
            number => write!(f, "protocol {number}")?,
        }
        let ends = [
            (self.source, self.source_port),
            (self.destination, self.destination_port),
        ];
        for ((address, port), separator) in ends.into_iter().zip([" ", " → "]) {
            match port {
                0 => write!(f, "{separator}{address}")?,
                port => write!(f, "{separator}{}", SocketAddr::new(address, port))?,
            }
        }
        Ok(())
    }
}

/// Counters of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCount {
    /// Frames.
    pub frames: u64,
    /// Their bytes, L2 without FCS.
    pub bytes: u64,
}

/// A class and its flows.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) name: String,
    pub(crate) class: u32,
    flows: HashMap<FlowKey, FlowCount>,
}

impl Watched {
    pub(crate) fn new(name: String, class: u32) -> Self {
        Self {
            name,
            class,
            flows: HashMap::with_capacity(MOST_FLOWS),
        }
    }

    /// A frame leaves, whose first bytes these are.
    #[cold]
    pub(crate) fn on_departure(&mut self, head: &[u8], length: u32) {
        let parsed = parse_frame(LinkType::ETHERNET, head, length);
        let Some(key) = FlowKey::of(&parsed.headers) else {
            return;
        };
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&key) {
            return;
        }
        let count = self.flows.entry(key).or_default();
        count.frames += 1;
        count.bytes += u64::from(length);
    }

    /// The flows, in no order.
    pub(crate) fn into_flows(self) -> Vec<(FlowKey, FlowCount)> {
        self.flows.into_iter().collect()
    }
}
