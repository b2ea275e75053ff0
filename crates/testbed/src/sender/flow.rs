//! The flows of a sender, and their sockets.

use super::stamp::{self, Stamp};
use super::{SendingFlow, TimeZero};
use hdrhistogram::Histogram;
use slicewise_live::sys::{socket, time};
use slicewise_stats::testbed::SenderRecord;
use slicewise_traffic::{Departure, Source};
use slicewise_units::{Duration, Instant};
use slicewise_wire::{Headers, IpVersion, put_checksum, put_gtp_u, put_ip, put_udp};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::os::fd::AsFd;

/// Largest lateness recorded. Larger values count as this, except in the maximum.
const LATEST: Duration = Duration::from_secs(60);
/// Precision of lateness, in decimal digits.
const DIGITS: u8 = 3;
/// Longest payload of UDP over IPv4, bytes: 65,535 with both headers (RFC 768, RFC 791).
const MAX_PAYLOAD_BYTES: usize = 65_507;
/// Bytes of the header of UDP.
const UDP_BYTES: u32 = 8;
/// Time to live of packets in a tunnel.
const TTL: u8 = 64;
/// Largest code point (RFC 2474).
const MAX_DSCP: u8 = 63;

/// A socket, shared by all flows of one local address.
#[derive(Debug)]
struct Outlet {
    socket: UdpSocket,
    is_v6: bool,
    /// Its current DSCP.
    dscp: u8,
}

impl Outlet {
    fn open(local: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            is_v6: local.is_ipv6(),
            dscp: 0,
        })
    }

    /// Not connected, so that no ICMP reply becomes an error of a later datagram.
    fn send(&mut self, payload: &[u8], to: SocketAddr, dscp: u8) -> io::Result<()> {
        if self.dscp != dscp {
            socket::set_dscp(self.socket.as_fd(), self.is_v6, dscp)?;
            self.dscp = dscp;
        }
        self.socket.send_to(payload, to).map(|_| ())
    }
}

/// A flow and its counters.
#[derive(Debug)]
struct Flow {
    name: String,
    source: Source,
    /// Index of its socket.
    outlet: usize,
    remote: SocketAddr,
    dscp: u8,
    header_bytes: u32,
    /// The longest payload: others are the beginning of it.
    payload: Vec<u8>,
    /// Bytes of the payload that is due next.
    next_bytes: usize,
    inner: Option<Headers>,
    /// The packet in the tunnel that was sent last.
    packet: Vec<u8>,
    number: u32,
    sequence: u32,
    sent_frames: u64,
    refused_frames: u64,
    lateness: Histogram<u64>,
    lateness_max_ns: u64,
}

impl Flow {
    fn new(flow: SendingFlow, number: usize, outlet: usize) -> io::Result<Self> {
        let invalid = |why: &dyn Display| {
            let message = format!("source `{}`: {why}", flow.name);
            io::Error::new(io::ErrorKind::InvalidInput, message)
        };
        let bytes = usize::try_from(flow.payload_bytes)
            .ok()
            .filter(|bytes| *bytes <= MAX_PAYLOAD_BYTES)
            .ok_or_else(|| invalid(&format!("more than {MAX_PAYLOAD_BYTES} bytes of payload")))?;
        if flow.dscp > MAX_DSCP {
            return Err(invalid(&format!("a code point above {MAX_DSCP}")));
        }
        if flow.local.is_ipv4() != flow.remote.is_ipv4() {
            return Err(invalid(
                &"source and destination have different IP versions",
            ));
        }
        let lateness = Histogram::new_with_bounds(1, LATEST.nanos(), DIGITS);
        Ok(Self {
            lateness: lateness.map_err(|error| invalid(&error))?,
            number: u32::try_from(number).map_err(|error| invalid(&error))?,
            header_bytes: flow.header_bytes,
            payload: stamp::pattern(bytes),
            next_bytes: 0,
            inner: flow.inner,
            packet: Vec::new(),
            name: flow.name,
            source: flow.source,
            outlet,
            remote: flow.remote,
            dscp: flow.dscp,
            sequence: 0,
            sent_frames: 0,
            refused_frames: 0,
            lateness_max_ns: 0,
        })
    }

    /// When the next packet is due after time zero; `None` once the source has ended.
    fn next_departure(&mut self) -> Option<Instant> {
        let Departure { at, l2_bytes } = self.source.next_departure()?;
        let bytes = l2_bytes.saturating_sub(self.header_bytes);
        self.next_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Some(at)
    }

    /// Send the packet that was due at `due` after time zero.
    fn send(&mut self, outlet: &mut Outlet, due: Instant, zero: TimeZero) -> io::Result<()> {
        let since_zero = time::now().saturating_since(zero.monotonic);
        let stamp = Stamp {
            sequence: self.sequence,
            flow: self.number,
            sent_ns: zero.unix_ns.saturating_add(since_zero.nanos()),
        };
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = self.next_bytes.min(self.payload.len());
        let payload = self.payload.get_mut(..bytes).unwrap_or_default();
        stamp.write(payload);
        let datagram = match &self.inner {
            Some(inner) => {
                encapsulate(&mut self.packet, inner, stamp.sequence, payload);
                &self.packet
            }
            None => &*payload,
        };
        match outlet.send(datagram, self.remote, self.dscp) {
            Ok(()) => {
                let late_ns = since_zero.nanos().saturating_sub(due.nanos());
                self.sent_frames += 1;
                self.lateness.saturating_record(late_ns);
                self.lateness_max_ns = self.lateness_max_ns.max(late_ns);
                Ok(())
            }
            Err(error) if socket::was_refused(&error) => {
                self.refused_frames += 1;
                Ok(())
            }
            Err(error) => Err(io::Error::new(
                error.kind(),
                format!(
                    "source `{}`: sending to {}: {error}",
                    self.name, self.remote
                ),
            )),
        }
    }

    fn into_record(self) -> SenderRecord {
        // The histogram returns the largest value of a bucket.
        let quantile = |q| self.lateness.value_at_quantile(q).min(self.lateness_max_ns);
        SenderRecord {
            sent_frames: self.sent_frames,
            refused_frames: self.refused_frames,
            lateness_p50_ns: quantile(0.5),
            lateness_p99_ns: quantile(0.99),
            lateness_max_ns: self.lateness_max_ns,
            source: self.name,
        }
    }
}

/// Writes a datagram with this payload and these headers, in GTP-U.
fn encapsulate(packet: &mut Vec<u8>, inner: &Headers, sequence: u32, payload: &[u8]) {
    packet.clear();
    let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let udp_bytes = bytes.saturating_add(UDP_BYTES);
    let ip_bytes = udp_bytes.saturating_add(match inner.ip_version {
        IpVersion::V6 => 40,
        _ => 20,
    });
    put_gtp_u(packet, inner.teid.unwrap_or(NonZeroU32::MIN), ip_bytes);
    let [.., high, low] = sequence.to_be_bytes();
    put_ip(
        packet,
        inner,
        TTL,
        u16::from_be_bytes([high, low]),
        ip_bytes,
    );
    let transport_at = packet.len();
    put_udp(packet, inner, udp_bytes);
    packet.extend_from_slice(payload);
    put_checksum(packet, inner, transport_at, udp_bytes);
}

/// All flows of a sender, with their sockets open.
#[derive(Debug)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    outlets: Vec<Outlet>,
}

impl Flows {
    /// Open a socket for every local address, in the namespace of this thread.
    pub(super) fn open(flows: Vec<SendingFlow>) -> io::Result<Self> {
        let mut outlets = Vec::new();
        let mut places = BTreeMap::new();
        let mut opened = Vec::with_capacity(flows.len());
        for (number, flow) in flows.into_iter().enumerate() {
            let outlet = match places.get(&flow.local) {
                Some(place) => *place,
                None => {
                    let outlet = Outlet::open(flow.local).map_err(|error| {
                        let message =
                            format!("source `{}`: UDP port {}: {error}", flow.name, flow.local);
                        io::Error::new(error.kind(), message)
                    })?;
                    outlets.push(outlet);
                    places.insert(flow.local, outlets.len() - 1);
                    outlets.len() - 1
                }
            };
            opened.push(Flow::new(flow, number, outlet)?);
        }
        Ok(Self {
            flows: opened,
            outlets,
        })
    }

    /// Number of flows.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// When the next packet of a flow is due after time zero; `None` once it has ended.
    pub(super) fn next_departure(&mut self, flow: usize) -> Option<Instant> {
        self.flows.get_mut(flow)?.next_departure()
    }

    /// Send the packet of a flow that was due at `due` after time zero.
    pub(super) fn send(&mut self, flow: usize, due: Instant, zero: TimeZero) -> io::Result<()> {
        let Some(flow) = self.flows.get_mut(flow) else {
            return Ok(());
        };
        let Some(outlet) = self.outlets.get_mut(flow.outlet) else {
            return Ok(());
        };
        flow.send(outlet, due, zero)
    }

    pub(super) fn into_records(self) -> Vec<SenderRecord> {
        self.flows.into_iter().map(Flow::into_record).collect()
    }
}
