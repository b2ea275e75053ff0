//! Network of a validated study: integers in SI units, every default filled in.
//!
//! These are the types an executor reads. The path of a frame is
//! host → link → device under test → link → host; both links are [`StudyLink`].

use slicewise_model::{ClassMap, PolicyParams, PolicySpec, PortParams, Rate};
use slicewise_stats::objective::Objective;
pub use slicewise_traffic::application::{
    AdaptationRule, ApplicationParams, ApplicationSourceParams, BulkParams, FlowArrivals,
    RequestsParams, ServerParams, ShortFlowsParams, TransferSizes, VideoParams,
};
pub use slicewise_traffic::impairments::{
    DelayDistribution, DelayVariationParams, ImpairmentParams, LinkImpairments, LossParams,
};
pub use slicewise_traffic::scenario::{
    CRYSTAL_PPB, HostTiming, MAX_SLOWNESS_PPB, OnOffParams, PacketSize, PatternParams, Periods,
    SizesParams, SourceHeaders, SourceParams, TunnelParams, WeightedSize,
};
pub use slicewise_traffic::transport::{CongestionControl, TcpProfile, TransportParams};
use slicewise_units::{BitRate, ByteCount, Duration};
use std::collections::BTreeSet;

/// The links between the hosts and the device under test; but for impairments both are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyLink {
    /// Rate, and which bytes of a frame occupy it (L1 for Ethernet).
    pub rate: Rate,
    /// Propagation delay of each.
    pub propagation: Duration,
    /// Longest IP packet it carries, bytes.
    pub mtu_bytes: u32,
    /// Frames lost and delayed on each.
    pub impairments: LinkImpairments,
}

/// Which device is modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DutModel {
    /// Cisco ISR 4221: ports of one rate, and a licence that limits what all of them forward.
    Isr4221,
    /// One egress port and nothing else.
    Port,
    /// A switch: a port with a few queues, which share a buffer.
    Switch(SwitchParams),
    /// A port behind the threads and rings of `qos_sched`, DPDK's sample application, which move packets in bursts.
    QosSched(QosSchedParams),
    /// The live gateway, or another program that paces departures: as a port, but a frame is handed on,
    /// whole, at the moment when its first bit would leave such a port.
    Gateway,
    /// Linux traffic control: a token bucket of this depth, in counted bytes, stands for the link, and takes one frame
    /// ahead of time from what is below it. Only for predictions.
    Tc {
        /// Depth of the bucket.
        burst: ByteCount,
    },
}

impl DutModel {
    /// The threads of `qos_sched`: its own, or those of the sample application.
    pub(crate) fn threads_or_sample(self) -> Self {
        match self {
            Self::QosSched(_) => self,
            _ => Self::QosSched(QosSchedParams::SAMPLE),
        }
    }
}

/// The egress port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchParams {
    /// Queues of the port: a policy that needs more is refused.
    pub queues: u32,
    /// Packets that wait in all of them together; `None`: what their limits add up to.
    pub buffer_packets: Option<u32>,
    /// After a packet that a full queue has dropped, none is admitted before the queue is shorter by so many packets; 0:
    /// as soon as there is room.
    pub hysteresis_packets: u32,
    /// How much of its minimum and of its maximum an idle queue saves, as time at that rate; `None`: what the policy says.
    pub credit: Option<Duration>,
    /// Pause frames that it sends; `None` for none.
    pub flow_control: Option<FlowControlParams>,
}

/// The threads of `qos_sched`, the sample application of DPDK: what they move at once, and what fits between them.
///
/// Defaults are those of version 22.11 (`examples/qos_sched/main.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QosSchedParams {
    /// Who hands packets to the interface.
    pub threads: QosSchedThreads,
    /// Packets that threads move at once (`--bsz`).
    pub burst: QosSchedBursts,
    /// Sizes of rings (`--rsz`).
    pub ring: QosSchedRings,
    /// How long after its last packets the thread that hands packets to the interface sends what it has collected.
    pub drain: Duration,
}

/// The threads of a direction of `qos_sched` (`--pfc`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QosSchedThreads {
    /// A receive thread, a worker and a transmit thread, with a ring between any two: `--pfc` of five items.
    #[default]
    Separate,
    /// A receive thread and a worker that also transmits: `--pfc` of four items.
    Mixed,
}

/// Packets that the threads of `qos_sched` move at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QosSchedBursts {
    /// Most that the receive thread reads from the interface.
    pub receive: u32,
    /// Most that the worker takes from the receive thread and enqueues.
    pub enqueue: u32,
    /// Most that the worker dequeues; the transmit thread takes so many from the ring, or none.
    pub dequeue: u32,
    /// Packets that the transmit thread collects before it sends them to the interface.
    pub transmit: u32,
}

/// The rings of `qos_sched`: entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QosSchedRings {
    /// Descriptors of the receiving interface.
    pub receive: u32,
    /// Each of the rings between the threads: a power of two, of which one entry stays empty.
    pub software: u32,
    /// Descriptors of the sending interface.
    pub transmit: u32,
}

impl QosSchedBursts {
    /// All of one size.
    #[must_use]
    pub const fn all(packets: u32) -> Self {
        Self {
            receive: packets,
            enqueue: packets,
            dequeue: packets,
            transmit: packets,
        }
    }
}

impl Default for QosSchedParams {
    fn default() -> Self {
        Self::SAMPLE
    }
}

impl QosSchedParams {
    pub(crate) const SAMPLE: Self = Self {
        threads: QosSchedThreads::Separate,
        burst: QosSchedBursts {
            receive: 64,
            enqueue: 64,
            dequeue: 32,
            transmit: 64,
        },
        ring: QosSchedRings {
            receive: 1024,
            software: 8192,
            transmit: 1024,
        },
        drain: Duration::from_micros(100),
    };
}

/// Flow control of the links that lead to a device: pause frames of IEEE 802.3x (annex 31B), or, for each priority, of
/// IEEE 802.1Qbb.
///
/// Sizes are bytes of frames without FCS, and of one link; with priorities, of one priority on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowControlParams {
    /// True if each of the eight priorities is paused for itself; otherwise the whole link is paused.
    pub per_priority: bool,
    /// Room in the device for frames that arrived by a link; further frames are dropped.
    pub buffer: ByteCount,
    /// Above it, the sender at the other end is paused.
    pub high: ByteCount,
    /// At or below it, it may go on.
    pub low: ByteCount,
    /// Packets that wait in the adapter of a paused host when its sources stop sending.
    pub host_queue: u32,
}

impl FlowControlParams {
    /// Longest pause that a frame can ask for: 65,535 quanta of 512 bit times.
    pub const MAX_PAUSE_BIT_TIMES: u64 = 65_535 * 512;
    /// Bytes of a pause frame on the wire, preamble and gap included.
    pub const FRAME_BYTES_L1: u64 = 84;

    /// Longest time from the reception of a pause frame until no frame is begun (IEEE 802.3, 31B.3.7), in bit times.
    #[must_use]
    pub const fn reaction_bit_times(rate: BitRate) -> u64 {
        512 * match rate.bits_per_second() {
            0..=100_000_000 => 1,
            100_000_001..=1_000_000_000 => 2,
            1_000_000_001..=10_000_000_000 => 60,
            10_000_000_001..=40_000_000_000 => 118,
            _ => 394,
        }
    }

    /// How long that many bits take at `rate`, rounded up.
    #[must_use]
    pub fn bit_times(bits: u64, rate: BitRate) -> Duration {
        let per_second = u128::from(rate.bits_per_second().max(1));
        let nanos = (u128::from(bits) * 1_000_000_000).div_ceil(per_second);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Bytes that can arrive by `link` after the high mark is exceeded: those sent until the sender stops, of frames up
    /// to `largest_frame_l1` bytes on the wire. The pause frame may wait for a frame of that size, travels to the sender,
    /// who may have begun a frame; what is on the wire and in processing arrives, too.
    #[must_use]
    pub fn on_the_wire(link: &StudyLink, processing: Duration, largest_frame_l1: u64) -> ByteCount {
        let rate = link.rate.rate;
        let bits =
            8 * (3 * largest_frame_l1 + Self::FRAME_BYTES_L1) + Self::reaction_bit_times(rate);
        let travelling = link.propagation.nanos().saturating_mul(2);
        let waiting = travelling.saturating_add(processing.nanos());
        let travelling = rate.bytes_in(Duration::from_nanos(waiting)).bytes();
        ByteCount::new(bits.div_ceil(8).saturating_add(travelling))
    }
}

impl Default for SwitchParams {
    /// Eight queues, as the ports of the Intel Tofino have in the study of Chen et al. (2022).
    fn default() -> Self {
        Self::TOFINO
    }
}

impl SwitchParams {
    pub(crate) const TOFINO: Self = Self {
        queues: 8,
        buffer_packets: None,
        hysteresis_packets: 0,
        credit: None,
        flow_control: None,
    };
}

/// The device under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutParams {
    /// Which device.
    pub model: DutModel,
    /// Rate of its egress port, and which bytes of a frame occupy it.
    pub port_rate: Rate,
    /// From the last bit received to the earliest departure.
    pub processing_delay: Duration,
    /// The licence; `None` but for [`DutModel::Isr4221`].
    pub licence: Option<LicenceParams>,
}

impl DutParams {
    /// The port that policies are resolved for.
    #[must_use]
    pub fn port(&self) -> PortParams {
        let hysteresis = match self.model {
            DutModel::Switch(switch) => switch.hysteresis_packets,
            _ => 0,
        };
        PortParams {
            rate: self.port_rate,
            admissible: self.capacity(),
            hysteresis,
        }
    }

    /// The rate slices share: the licence where there is one, else the egress port.
    #[must_use]
    pub fn capacity(&self) -> Rate {
        self.licence.map_or(self.port_rate, |licence| licence.rate)
    }
}

/// A device of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct HopParams {
    /// Name.
    pub name: String,
    /// The device.
    pub device: DutParams,
    /// The policy it is under, for each policy of the study: that policy as it is on this device, or always the
    /// device's own.
    pub policies: Vec<PolicyParams>,
    /// The device's own policy as written, where it has one.
    pub own: Option<PolicySpec>,
}

/// A token bucket over everything a device forwards. It starts full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LicenceParams {
    /// Rate at which credit is earned, and which bytes of a frame are charged.
    pub rate: Rate,
    /// Most credit that can be saved, in counted bytes.
    pub credit: ByteCount,
    /// Frames of priority classes leave at once and are charged into debt; otherwise they wait
    /// for credit like any frame.
    pub priority_borrows: bool,
}

/// A slice: which frames belong to it and what it was promised.
#[derive(Debug, Clone, PartialEq)]
pub struct StudySlice {
    /// Name.
    pub name: String,
    /// Which frames belong to it.
    pub matches: ClassMap,
    /// Its share: guaranteed where `guaranteed`, its fair part otherwise; L2 without FCS.
    pub share: BitRate,
    /// True where its isolation is judged; false for best effort.
    pub guaranteed: bool,
    /// Objectives in absolute terms, where the study states them.
    pub objective: Option<Objective>,
}

/// A scenario: who sends what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioParams {
    /// Name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// No slice exceeds what was promised: the reference of isolation.
    pub reference: bool,
    /// Its place on the axis of charts: a number and its unit; empty if it states none.
    pub x: String,
    /// Sources, in order; none in a study of populations.
    pub sources: Vec<SourceParams>,
    /// Sources that react, in order: applications over TCP.
    pub applications: Vec<ApplicationSourceParams>,
    /// Slices of each of the study's populations.
    pub populations: Vec<u32>,
}

/// Many equal slices, measured together as one slice of the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PopulationParams {
    /// Index of that slice; the classes of the same name say what each is promised.
    pub slice: usize,
    /// Length of its frames, bytes, L2 without FCS.
    pub frame_bytes: u32,
    /// Traffic of each slice.
    pub pattern: PopulationPatternParams,
    /// Weights in the excess, given in turn; empty for the class's.
    pub weights: Vec<u32>,
}

/// Frames that a backlogged slice of a population has waiting.
pub const BACKLOG_FRAMES: u32 = 2;
/// Bursts that a slice of a population may have waiting before frames are dropped for lack of room.
const WAITING_BURSTS: u32 = 64;
/// Most frames that may wait in all slices of populations together: 4 GiB of descriptors.
pub const MAX_WAITING_FRAMES: u32 = 1 << 27;

impl PopulationParams {
    /// Frames that may wait in one of its slices, whose queue holds `queue_frames`.
    #[must_use]
    pub fn waiting_frames(&self, queue_frames: u32) -> u32 {
        let frames = match self.pattern {
            PopulationPatternParams::Backlog => BACKLOG_FRAMES + 1,
            PopulationPatternParams::Bursts { frames, .. } => frames.saturating_mul(WAITING_BURSTS),
        };
        frames.min(queue_frames)
    }
}

/// Traffic of each slice of a population.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PopulationPatternParams {
    /// There is always a frame waiting.
    Backlog,
    /// All slices of the population send so many frames at the same moment, again and again.
    Bursts {
        /// Frames of a burst, at least one.
        frames: u32,
        /// Time from burst to burst.
        every: Duration,
    },
}

impl ScenarioParams {
    /// The slice of each of its sources.
    pub fn slices(&self) -> impl Iterator<Item = usize> {
        self.slices_and_hosts().map(|(slice, _)| slice)
    }

    /// The hosts that send, each once, in the order in which sources name them; `None` is that of sources that name
    /// none.
    #[must_use]
    pub fn hosts(&self) -> Vec<Option<&str>> {
        let mut known = BTreeSet::new();
        let hosts = self.slices_and_hosts().map(|(_, host)| host);
        hosts.filter(|host| known.insert(*host)).collect()
    }

    fn slices_and_hosts(&self) -> impl Iterator<Item = (usize, Option<&str>)> {
        let of_applications = self.applications.iter();
        let of_applications = of_applications.map(|s| (s.slice, s.host.as_deref()));
        let of_sources = self.sources.iter();
        of_sources
            .map(|s| (s.slice, s.host.as_deref()))
            .chain(of_applications)
    }

    /// The longest on/off cycle of its sources; zero where none pauses.
    #[must_use]
    pub fn cycle(&self) -> Duration {
        let cycle = |on_off: OnOffParams| {
            Duration::from_nanos(on_off.on.nanos().saturating_add(on_off.off.nanos()))
        };
        self.sources
            .iter()
            .filter_map(|s| s.on_off)
            .map(cycle)
            .max()
            .unwrap_or(Duration::ZERO)
    }
}

/// How what happened is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasureParams {
    /// Width of a bin of the time series.
    pub bin: Duration,
    /// How often the lengths of queues are looked at; `None` for never.
    pub queue_lengths: Option<Duration>,
    /// How late departures of a device on real packets may be.
    pub lateness: Duration,
    /// True if medians of delay are kept from several moments on: on a testbed, where runs are compared with their
    /// prediction.
    pub medians: bool,
}
