//! Parameters of sources and their hosts: integers in SI units, every default filled in.
//!
//! A study file, a test or another program gives these; [`Sources`](crate::Sources) makes departures of them.

use slicewise_units::{Accounting, BitRate, Duration, FrameLengths};
pub use slicewise_wire::Ecn;
use slicewise_wire::{GTP_U_PORT, Headers, IpVersion, PROTOCOL_UDP};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Parts per billion in a whole.
const PPB: u32 = 1_000_000_000;

/// The hosts that send and receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostTiming {
    /// Period of the timer on which an [`PatternParams::Iperf3`] source wakes.
    pub timer: Duration,
    /// By how much the clock of each machine is slower than that of the one before it, parts per
    /// billion; 0 where all are one clock. Every source has a machine of its own.
    pub clock_drift_ppb: u32,
    /// How late the operating system may wake it: uniform between zero and this.
    pub timer_slack: Duration,
    /// Least time between two packets one source sends back to back: the cost of the system call.
    pub send_cost: Duration,
    /// Longest wait of the receiving interface before it raises an interrupt, which is when frames
    /// get their time stamps; zero where each frame is stamped as it arrives.
    pub interrupt_moderation: Duration,
}

/// By how much the slowest clock is slower at most, parts per billion: the machines after it begin
/// with the first clock again.
pub const MAX_SLOWNESS_PPB: u32 = 100_000_000;
/// By how much a crystal may be off its frequency (IEEE 802.3), parts per billion.
pub const CRYSTAL_PPB: u32 = 100_000;
/// 2³² divided by the golden ratio: its multiples modulo 2³² are spread evenly, and no two of them
/// are close (D. E. Knuth, *The Art of Computer Programming*, volume 3, section 6.4).
const GOLDEN: u32 = 2_654_435_769;

impl HostTiming {
    /// Period of the pacing timer on a machine. Timers of one period would tick in step: for a whole
    /// run the packets of one source would come just before those of another, or just after them.
    #[must_use]
    pub fn timer_of(&self, machine: u32) -> Duration {
        let clocks = MAX_SLOWNESS_PPB
            .checked_div(self.clock_drift_ppb)
            .unwrap_or(1)
            .max(1);
        let steps = u128::from(machine % clocks + 1);
        let slower = u128::from(self.timer.nanos()) * u128::from(self.clock_drift_ppb) * steps;
        let slower = (slower + u128::from(PPB / 2)) / u128::from(PPB);
        let slower = u64::try_from(slower).unwrap_or(u64::MAX);
        Duration::from_nanos(self.timer.nanos().saturating_add(slower))
    }

    /// By how much a source of constant bit rate on a machine is slower than its rate, parts per
    /// billion. Unlike that of iperf3 its rate is its clock's, so that it is off by what a crystal may
    /// be and no more.
    #[must_use]
    pub fn cbr_slowness_ppb(&self, machine: u32) -> u32 {
        let most = u64::from(self.clock_drift_ppb.min(CRYSTAL_PPB));
        let place = u64::from(machine.wrapping_add(1).wrapping_mul(GOLDEN));
        u32::try_from((most * place) >> 32).unwrap_or(CRYSTAL_PPB)
    }
}

/// A traffic source: one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceParams {
    /// Name, unique in its scenario.
    pub name: String,
    /// The machine that it is on, from 0: its name's place among those of all sources of the study. So it
    /// has the same clock in every scenario.
    pub machine: u32,
    /// The host that it is on: sources of one host share its adapter and its link. `None`: the host of all sources
    /// that name none.
    pub host: Option<String>,
    /// Index of its slice in the study.
    pub slice: usize,
    /// Header fields of its packets.
    pub headers: SourceHeaders,
    /// Its largest packet.
    pub largest: PacketSize,
    /// How long its packets are.
    pub sizes: SizesParams,
    /// Mean rate while sending, of the `counted_bytes` of its packets.
    pub rate: BitRate,
    /// When packets leave.
    pub pattern: PatternParams,
    /// Sends for a while, is silent for a while; starts sending. `None`: sends all the time.
    pub on_off: Option<OnOffParams>,
    /// First moment of sending, from the start of the run.
    pub start: Duration,
    /// No packet leaves from here on; at most the study's duration.
    pub stop: Duration,
    /// A random part added to `start`, uniform between zero and this: drawn once a repetition, so
    /// that two sources do not lock phase.
    pub start_spread: Duration,
}

/// How long the packets of a source are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizesParams {
    /// All as long as the largest.
    Equal,
    /// Drawn for each packet by weight: at least two, no two alike, in order of size.
    Mix(Vec<WeightedSize>),
    /// Sizes of the IP packets of the capture that is replayed, as far as the source's own headers fit in them; the
    /// largest is the link's MTU.
    Capture,
}

/// One size of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightedSize {
    /// The size.
    pub size: PacketSize,
    /// How often it is drawn relative to the others, at least 1.
    pub weight: u32,
}

/// How long a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSize {
    /// Bytes of payload behind the transport header.
    pub payload_bytes: u32,
    /// Bytes from the destination address to the end of the payload, tags included, without FCS.
    pub l2_bytes: u32,
    /// Of these the bytes that the source's rate counts (payload, or a layer).
    pub counted_bytes: u32,
}

impl SourceParams {
    /// The sizes of its packets and the weight of each; of a capture, the largest.
    pub fn weighted_sizes(&self) -> impl Iterator<Item = WeightedSize> {
        let (mix, only) = match &self.sizes {
            SizesParams::Mix(sizes) => (sizes.as_slice(), None),
            SizesParams::Equal | SizesParams::Capture => (
                [].as_slice(),
                Some(WeightedSize {
                    size: self.largest,
                    weight: 1,
                }),
            ),
        };
        mix.iter().copied().chain(only)
    }

    /// Of all sizes, what `of` says of each times its weight, added up.
    pub fn weighted_sum(&self, of: impl Fn(&PacketSize) -> u64) -> u128 {
        self.weighted_sizes()
            .map(|WeightedSize { size, weight }| u128::from(of(&size)) * u128::from(weight))
            .sum()
    }

    /// Returns the average rate while it sends, bit/s as `accounting` counts.
    #[must_use]
    pub fn offered(&self, accounting: Accounting) -> u128 {
        let counted = self.weighted_sum(|size| u64::from(size.counted_bytes));
        let occupied = self.weighted_sum(|size| {
            let lengths = FrameLengths {
                l2_bytes: size.l2_bytes,
                l3_offset: self.headers.l3_offset(),
            };
            accounting.count(lengths).bytes()
        });
        u128::from(self.rate.bits_per_second()) * occupied / counted.max(1)
    }

    /// Packets a second while it sends, on average and rounded down; `None` where its rate counts no
    /// byte of them.
    #[must_use]
    pub fn packets_per_second(&self) -> Option<u64> {
        let bits = self.weighted_sum(|size| u64::from(size.counted_bytes)) * 8;
        let rate = u128::from(self.rate.bits_per_second()) * self.weighted_sum(|_| 1);
        u64::try_from(rate.checked_div(bits)?).ok()
    }

    /// Bytes of its packets on average, rounded up, that its rate counts.
    #[must_use]
    pub fn mean_counted_bytes(&self) -> u64 {
        let sum = self.weighted_sum(|size| u64::from(size.counted_bytes));
        u64::try_from(sum.div_ceil(self.weighted_sum(|_| 1).max(1))).unwrap_or(u64::MAX)
    }
}

/// When a source's packets leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternParams {
    /// At each tick of the host's timer, every packet that is owed, back to back.
    Iperf3,
    /// Evenly spaced.
    Cbr,
    /// Independent exponential gaps.
    Poisson,
    /// The gaps between the packets of a capture, whatever those contain; headers are the source's own.
    /// `rate` is zero.
    Replay {
        /// The capture file.
        pcap: PathBuf,
        /// SHA-256 of its contents.
        sha256: [u8; 32],
    },
}

/// A source that pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnOffParams {
    /// How long it sends; where periods are random, on average.
    pub on: Duration,
    /// How long it is silent; where periods are random, on average.
    pub off: Duration,
    /// How long each period is.
    pub periods: Periods,
}

/// How long the periods of a source that pauses are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Periods {
    /// All alike.
    #[default]
    Fixed,
    /// Independent and exponentially distributed.
    Exponential,
}

/// Header fields of a source's packets, as `slicewise_wire::Headers` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceHeaders {
    /// VLAN id of the outermost tag, where there is one.
    pub vlan: Option<u16>,
    /// VLAN id of the second tag; only where there is an outermost one.
    pub inner_vlan: Option<u16>,
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same IP version.
    pub destination: IpAddr,
    /// IP protocol number.
    pub protocol: u8,
    /// Source port; 0 where the protocol has none.
    pub source_port: u16,
    /// Destination port; 0 where the protocol has none.
    pub destination_port: u16,
    /// Differentiated-services code point, 0 to 63.
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// The GTP-U tunnel around its packets, whose fields above are those of the inner packet.
    pub tunnel: Option<TunnelParams>,
}

/// A GTP-U tunnel over IPv4 (3GPP TS 29.281).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelParams {
    /// Tunnel endpoint identifier.
    pub teid: NonZeroU32,
    /// Source address of the outer packet.
    pub source: Ipv4Addr,
    /// Destination address of the outer packet.
    pub destination: Ipv4Addr,
}

impl TunnelParams {
    /// Bytes around a packet: headers of IPv4, UDP and GTP-U without optional fields.
    pub const BYTES: u32 = 20 + 8 + 8;
}

impl SourceHeaders {
    /// Bytes before the IP header: 14, and 4 more for each VLAN tag.
    #[must_use]
    pub fn l3_offset(&self) -> u8 {
        14 + 4 * (u8::from(self.vlan.is_some()) + u8::from(self.inner_vlan.is_some()))
    }

    /// Bytes from the first IP header to the transport header (RFC 791, RFC 8200; no options or extensions), with those of
    /// a tunnel.
    #[must_use]
    pub fn ip_bytes(&self) -> u32 {
        let own = if self.source.is_ipv4() { 20 } else { 40 };
        own + self.tunnel.map_or(0, |_| TunnelParams::BYTES)
    }

    /// Headers of the outermost packet, with the same tags and traffic class.
    #[must_use]
    pub fn outermost(&self) -> Self {
        self.tunnel.map_or(*self, |tunnel| Self {
            source: tunnel.source.into(),
            destination: tunnel.destination.into(),
            protocol: PROTOCOL_UDP,
            source_port: GTP_U_PORT,
            destination_port: GTP_U_PORT,
            tunnel: None,
            ..*self
        })
    }

    /// Bytes of the transport header: 20 for TCP, 8 for UDP and ICMP, 12 for SCTP, else none.
    #[must_use]
    pub fn transport_bytes(&self) -> u32 {
        match self.protocol {
            6 => 20,
            132 => 12,
            1 | 17 | 58 => 8,
            _ => 0,
        }
    }

    /// Returns true if the protocol has ports.
    #[must_use]
    pub fn has_ports(&self) -> bool {
        matches!(self.protocol, 6 | 17 | 132)
    }
}

impl From<&SourceHeaders> for Headers {
    fn from(source: &SourceHeaders) -> Self {
        let address = |address| match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        Self {
            source: address(source.source),
            destination: address(source.destination),
            vlan_tags: u8::from(source.vlan.is_some()) + u8::from(source.inner_vlan.is_some()),
            ip_version: if source.source.is_ipv4() {
                IpVersion::V4
            } else {
                IpVersion::V6
            },
            protocol: source.protocol,
            dscp: source.dscp,
            ecn: source.ecn,
            outer_vlan: source.vlan.unwrap_or(0),
            inner_vlan: source.inner_vlan.unwrap_or(0),
            has_ports: source.has_ports(),
            source_port: source.source_port,
            destination_port: source.destination_port,
            l3_offset: source.l3_offset(),
            teid: source.tunnel.map(|tunnel| tunnel.teid),
            ..Self::EMPTY
        }
    }
}
