//! DPDK's hierarchical scheduler (`librte_sched` 22.11): port, subports, pipes, 13 traffic classes, 16 queues.
//!
//! A [`HqosSpec`] holds what a profile file of the sample application `qos_sched` holds, in its units: rates
//! in byte/s, sizes in bytes, periods in milliseconds. [`HqosSpec::resolve`] validates it for a port and
//! converts it into [`HqosParams`], in which time is counted in bytes at the rate of the port, as in the
//! library.

mod check;
mod error;
mod fraction;

pub use error::{HqosError, HqosSection};

/// Traffic classes of a pipe: 0 to 11 in strict priority, and best effort.
pub const TRAFFIC_CLASSES: usize = 13;
/// The traffic class served last: best effort.
pub const BEST_EFFORT: usize = TRAFFIC_CLASSES - 1;
/// Queues of the best-effort class, served by weighted round robin.
pub const BEST_EFFORT_QUEUES: usize = 4;
/// Queues of a pipe: one for each class with strict priority, then those of best effort.
pub const QUEUES: usize = BEST_EFFORT + BEST_EFFORT_QUEUES;
/// Most subports of a port (`MAX_SCHED_SUBPORTS` of the sample application).
pub const MAX_SUBPORTS: usize = 8;
/// Most pipes of a subport (`MAX_SCHED_PIPES` of the sample application).
pub const MAX_PIPES: u32 = 4096;
/// Most pipe profiles (`MAX_SCHED_PIPE_PROFILES` of the sample application).
pub const MAX_PIPE_PROFILES: usize = 256;
/// Most subport profiles (`MAX_SCHED_SUBPORT_PROFILES` of the sample application).
pub const MAX_SUBPORT_PROFILES: usize = 8;
/// Colours that early detection tells apart: green, yellow, red.
pub const COLOURS: usize = 3;

/// A queue's name in results, from its subport, its pipe, and its number in the pipe: `subport 0 pipe 9 tc 3`, and for
/// best effort, which has four, `subport 0 pipe 9 tc 12 queue 1`.
#[must_use]
pub fn queue_name(subport: u32, pipe: u32, queue: u32) -> String {
    let number = queue as usize;
    let class = number.min(BEST_EFFORT);
    let name = format!("subport {subport} pipe {pipe} tc {class}");
    match number.checked_sub(BEST_EFFORT) {
        Some(queue) => format!("{name} queue {queue}"),
        None => name,
    }
}

/// The scheduler of a port, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HqosSpec {
    /// Bytes of the largest frame, L2 without FCS. The profile file has no key for it; the sample application
    /// uses 1522.
    pub mtu: u32,
    /// Bytes that the port needs for each frame beside it: `frame overhead`.
    pub frame_overhead: u32,
    /// Subports, by their number. A power of two.
    pub subports: Vec<HqosSubport>,
    /// The sections `[subport profile N]`, by their number.
    pub subport_profiles: Vec<HqosRates>,
    /// The sections `[pipe profile N]`, by their number.
    pub pipe_profiles: Vec<HqosPipeProfile>,
    /// The section `[red]`: curves by traffic class and colour. `None` where it is missing; a curve that is
    /// `None` has thresholds of zero in the file, and drops nothing early.
    pub red: Option<HqosRed>,
}

/// Curves of early detection by traffic class and colour.
pub type HqosRed = Box<[[Option<HqosRedCurve>; COLOURS]; TRAFFIC_CLASSES]>;

impl Default for HqosSpec {
    /// No subports and no profiles; the other settings are those of the sample application.
    fn default() -> Self {
        Self {
            mtu: 1522,
            frame_overhead: 24,
            subports: Vec::new(),
            subport_profiles: Vec::new(),
            pipe_profiles: Vec::new(),
            red: None,
        }
    }
}

/// A section `[subport N]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HqosSubport {
    /// Its subport profile. The sample application uses 0 for every subport.
    pub profile: u32,
    /// `number of pipes per subport`: a power of two.
    pub pipes: u32,
    /// `queue sizes` by traffic class, packets: powers of two, or 0 for a class without queue.
    pub queue_sizes: [u16; TRAFFIC_CLASSES],
    /// Which pipe has which profile.
    pub assigned: Vec<HqosPipeRange>,
}

/// A line `pipe FIRST-LAST = PROFILE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HqosPipeRange {
    /// The first pipe.
    pub first: u32,
    /// The last pipe.
    pub last: u32,
    /// The pipe profile of all of them.
    pub profile: u32,
}

/// Settings that subport profiles and pipe profiles have in common: a token bucket, and credits of each traffic class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HqosRates {
    /// `tb rate`: rate of the token bucket, byte/s.
    pub tb_rate: u64,
    /// `tb size`: size of the token bucket, bytes.
    pub tb_size: u64,
    /// `tc 0 rate` to `tc 12 rate`: limit of each traffic class, byte/s.
    pub tc_rates: [u64; TRAFFIC_CLASSES],
    /// `tc period`: time after which the credits of the traffic classes are renewed, milliseconds.
    pub tc_period: u64,
}

/// A section `[pipe profile N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HqosPipeProfile {
    /// Token bucket and traffic classes.
    pub rates: HqosRates,
    /// `tc 12 oversubscription weight`: share of best effort where a subport has less than its pipes may send.
    pub oversubscription_weight: u8,
    /// `tc 12 wrr weights`: shares of the best-effort queues.
    pub wrr_weights: [u8; BEST_EFFORT_QUEUES],
}

/// A curve of early detection (`tc N red min`, `max`, `inv prob`, `weight`) for one colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HqosRedCurve {
    /// Average queue from which packets are dropped.
    pub min_packets: u16,
    /// Average queue from which every packet is dropped.
    pub max_packets: u16,
    /// Inverse of the probability just below `max_packets`.
    pub inverse_probability: u16,
    /// The newest sample has the weight 2^-n in the average.
    pub weight: u16,
}

/// A validated scheduler, as the library holds it: time and credits are bytes at the rate of the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HqosParams {
    /// Rate of the port, byte/s; not zero.
    pub rate: u64,
    /// Bytes of the largest frame, overhead included.
    pub mtu: u32,
    /// Bytes that each frame costs beside its own.
    pub frame_overhead: u32,
    /// Subports, by their number: a power of two.
    pub subports: Vec<HqosSubportParams>,
    /// Pipe profiles, by their number. Never empty.
    pub pipe_profiles: Vec<HqosPipeParams>,
    /// Curves of early detection.
    pub red: Option<HqosRed>,
}

impl HqosParams {
    /// Packets that all queues hold together.
    #[must_use]
    pub fn packets(&self) -> u64 {
        let pipe = |sizes: [u16; TRAFFIC_CLASSES]| {
            let strict: u64 = sizes.into_iter().map(u64::from).sum();
            strict + u64::from(sizes[BEST_EFFORT]) * (BEST_EFFORT_QUEUES as u64 - 1)
        };
        let subports = self.subports.iter();
        subports
            .map(|subport| u64::from(subport.pipes) * pipe(subport.queue_sizes))
            .sum()
    }
}

/// A validated subport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HqosSubportParams {
    /// Pipes: a power of two.
    pub pipes: u32,
    /// Packets of each queue by traffic class: powers of two, or 0.
    pub queue_sizes: [u16; TRAFFIC_CLASSES],
    /// Token bucket and credits by class of all its pipes together.
    pub credits: HqosCredits,
    /// Profiles of pipes; ranges do not overlap, and pipes in none have profile 0 and start without credits.
    pub assigned: Vec<HqosPipeRange>,
}

/// A token bucket and credits of each traffic class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HqosCredits {
    /// Bytes of port time after which the token bucket earns `tb_credits_per_period`; not zero.
    pub tb_period: u64,
    /// Bytes that it earns.
    pub tb_credits_per_period: u64,
    /// Most bytes in it.
    pub tb_size: u64,
    /// Bytes of port time after which the credits of the traffic classes are renewed.
    pub tc_period: u64,
    /// Credits of each traffic class in a period, bytes.
    pub tc_credits_per_period: [u64; TRAFFIC_CLASSES],
}

/// A validated pipe profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HqosPipeParams {
    /// Token bucket and credits by class.
    pub credits: HqosCredits,
    /// Limit of best effort, byte/s.
    pub best_effort_rate: u64,
    /// Share of best effort where its subport is oversubscribed, at least 1.
    pub oversubscription_weight: u8,
    /// Tokens that a byte costs in each best-effort queue: the least common multiple of the weights divided by
    /// the weight, of which the library keeps eight bits.
    pub wrr_costs: [u8; BEST_EFFORT_QUEUES],
}
