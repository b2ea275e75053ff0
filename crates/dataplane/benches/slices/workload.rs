//! The three scenarios, for any scheduler: the same packets, in distribution, as the peer's.

use crate::contender::Contender;
use std::time::Instant;

/// Packets in a call to enqueue or dequeue.
pub const BURST: usize = 64;
/// Bytes of each packet.
pub const PACKET_BYTES: u32 = 1500;
/// Rate of the link in virtual time.
pub const LINK_BITS_PER_SECOND: u64 = 100_000_000_000;
/// Shaped: the sum of all slices' maxima.
pub const SHAPED_BITS_PER_SECOND: u64 = LINK_BITS_PER_SECOND / 8;
/// Shaped: the burst a slice may send at its maximum.
pub const SHAPED_BURST_BYTES: u32 = 2 * PACKET_BYTES;
/// Packets that fit into a slice's queue.
pub const QUEUE_PACKETS: usize = 64;

/// Packets per round. The median over many rounds is reported, because other processes interrupt some of
/// them.
const ROUND_PACKETS: u64 = 2_000;
const PACKET_BITS: u64 = PACKET_BYTES as u64 * 8;
const WARM_UP_PACKETS: u64 = 100_000;
/// Calls in a row that may return nothing while packets wait that no limit holds back.
const EMPTY_CALLS: u32 = 1_000;

/// Load of the slices. `docs/benchmarks/slices.md` defines each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Every slice backlogged, none limited.
    Deep,
    /// Bursts into empty queues.
    Shallow,
    /// Every slice backlogged and at its maximum.
    Shaped,
}

impl Scenario {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Deep, Self::Shallow, Self::Shaped];

    /// Name on the peer's command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deep => "deep",
            Self::Shallow => "shallow",
            Self::Shaped => "shaped",
        }
    }

    /// The scenario of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|scenario| scenario.name() == name)
    }
}

/// A slice's maximum rate in bit/s.
pub fn maximum_bits_per_second(scenario: Scenario, slices: u32) -> u64 {
    match scenario {
        Scenario::Shaped => SHAPED_BITS_PER_SECOND / u64::from(slices),
        Scenario::Deep | Scenario::Shallow => LINK_BITS_PER_SECOND,
    }
}

/// Packets that wait in a slice on average: at most 4 million in all.
pub fn depth(scenario: Scenario, slices: u32) -> u32 {
    match scenario {
        Scenario::Shaped => 4,
        Scenario::Deep | Scenario::Shallow => ((4 << 20) / slices).clamp(1, 16),
    }
}

/// Result of one run.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    pub ns_per_packet: f64,
    /// The longest call to dequeue of a round.
    pub longest_call_us: f64,
    pub packets_per_call: f64,
    pub drop_ratio: f64,
    pub bytes_per_slice: f64,
}

impl Measurement {
    /// Parse the output line of a run. The peer calls a slice a pipe.
    pub fn from_json(line: &str) -> Option<Self> {
        let field = |name: &str| {
            let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
            rest.split([',', '}']).next()?.trim().parse().ok()
        };
        Some(Self {
            ns_per_packet: field("ns_per_packet")?,
            longest_call_us: field("longest_call_us")?,
            packets_per_call: field("packets_per_call")?,
            drop_ratio: field("drop_ratio")?,
            bytes_per_slice: field("bytes_per_pipe")?,
        })
    }

    /// The line [`Self::from_json`] reads.
    pub fn to_json(self) -> String {
        format!(
            "{{\"ns_per_packet\":{:.2},\"longest_call_us\":{:.2},\"packets_per_call\":{:.1},\
             \"drop_ratio\":{:.5},\"bytes_per_pipe\":{:.1}}}",
            self.ns_per_packet,
            self.longest_call_us,
            self.packets_per_call,
            self.drop_ratio,
            self.bytes_per_slice
        )
    }

    /// The median of each quantity over several runs; `None` without runs.
    pub fn median(runs: &[Self]) -> Option<Self> {
        let of = |quantity: fn(&Self) -> f64| median(runs.iter().map(quantity).collect());
        Some(Self {
            ns_per_packet: of(|run| run.ns_per_packet)?,
            longest_call_us: of(|run| run.longest_call_us)?,
            packets_per_call: of(|run| run.packets_per_call)?,
            drop_ratio: of(|run| run.drop_ratio)?,
            bytes_per_slice: of(|run| run.bytes_per_slice)?,
        })
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Xorshift64, and a multiplication instead of a modulus.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let scaled = ((self.0 >> 32) * u64::from(limit)) >> 32;
        u32::try_from(scaled).unwrap_or(0) // below `limit` by construction
    }
}

/// A scheduler under one scenario, with the durations of its calls so far.
pub struct Workload<C> {
    contender: C,
    scenario: Scenario,
    slices: u32,
    random: Random,
    now_ns: u64,
    /// Shaped: packets whose time has come since the beginning.
    due: u64,
    next_handle: u64,
    arriving: Vec<(u32, u32, u64)>,
    leaving: Vec<(u32, u64)>,
    busy_ns: u64,
    longest_ns: u64,
    sent: u64,
    calls: u64,
    offered: u64,
    dropped: u64,
    state_bytes: usize,
}

impl<C: Contender> Workload<C> {
    /// A scheduler in the steady state of `scenario`.
    pub fn new(slices: u32, scenario: Scenario) -> Self {
        let contender = C::new(slices, scenario);
        let state_bytes = contender.state_bytes();
        let mut workload = Self {
            contender,
            scenario,
            slices,
            random: Random(0x9e37_79b9_7f4a_7c15),
            now_ns: 0,
            due: 0,
            next_handle: 0,
            arriving: Vec::with_capacity(BURST),
            leaving: Vec::with_capacity(BURST),
            busy_ns: 0,
            longest_ns: 0,
            sent: 0,
            calls: 0,
            offered: 0,
            dropped: 0,
            state_bytes,
        };
        workload.begin();
        workload
    }

    fn begin(&mut self) {
        let (slices, depth) = (self.slices, depth(self.scenario, self.slices));
        match self.scenario {
            Scenario::Shallow => self.run(WARM_UP_PACKETS),
            Scenario::Deep => {
                for slice in 0..slices {
                    self.arrive(slice, depth);
                }
                self.run(2 * u64::from(slices) * u64::from(depth));
            }
            Scenario::Shaped => {
                self.begin_shaped(depth);
                self.run(u64::from(slices));
            }
        }
    }

    /// Slices begin one after the other, in random order, over the time in which a slice's maximum
    /// is worth one packet: so their token buckets fill at times spread evenly.
    fn begin_shaped(&mut self, depth: u32) {
        let mut order: Vec<u32> = (0..self.slices).collect();
        for i in (1..self.slices).rev() {
            let j = self.random.below(i + 1);
            order.swap(i as usize, j as usize);
        }
        self.pass(2 * u64::from(self.slices));
        for slice in order {
            self.pass(1);
            self.dequeue();
            self.return_what_left();
            self.arrive(slice, depth);
        }
        // A call finds 64 that are due, and 64 more stay: see `run_shaped` of the peer.
        self.pass(BURST as u64);
    }

    /// Advance time until the slices together have credit for this many more packets.
    fn pass(&mut self, packets: u64) {
        self.due += packets;
        let bits = u128::from(self.due) * u128::from(PACKET_BITS);
        let ns = bits * 1_000_000_000 / u128::from(SHAPED_BITS_PER_SECOND);
        self.now_ns = u64::try_from(ns).unwrap_or(u64::MAX);
    }

    fn arrive(&mut self, slice: u32, packets: u32) {
        self.arriving.clear();
        for _ in 0..packets {
            self.arriving.push((slice, PACKET_BYTES, self.next_handle));
            self.next_handle += 1;
        }
        self.enqueue();
    }

    fn arrive_anywhere(&mut self, packets: usize) {
        self.arriving.clear();
        for _ in 0..packets {
            let slice = self.random.below(self.slices);
            self.arriving.push((slice, PACKET_BYTES, self.next_handle));
            self.next_handle += 1;
        }
        self.enqueue();
    }

    fn return_what_left(&mut self) {
        self.arriving.clear();
        for &(slice, handle) in &self.leaving {
            self.arriving.push((slice, PACKET_BYTES, handle));
        }
        self.enqueue();
    }

    fn enqueue(&mut self) {
        let start = Instant::now();
        let accepted = self.contender.enqueue(&self.arriving, self.now_ns);
        self.busy_ns += elapsed_ns(start);
        self.offered += self.arriving.len() as u64;
        self.dropped += (self.arriving.len() - accepted) as u64;
    }

    fn dequeue(&mut self) {
        self.leaving.clear();
        let start = Instant::now();
        self.contender
            .dequeue(&mut self.leaving, BURST, self.now_ns);
        let took = elapsed_ns(start);
        self.busy_ns += took;
        self.longest_ns = self.longest_ns.max(took);
        self.sent += self.leaving.len() as u64;
        self.calls += 1;
    }

    /// Send at least `packets` packets.
    pub fn run(&mut self, packets: u64) {
        let until = self.sent + packets;
        let burst_ns = BURST as u64 * PACKET_BITS * 1_000_000_000 / LINK_BITS_PER_SECOND;
        while self.sent < until {
            match self.scenario {
                Scenario::Deep => {
                    self.now_ns += burst_ns;
                    self.dequeue();
                    self.arrive_anywhere(self.leaving.len());
                }
                Scenario::Shallow => {
                    self.now_ns += burst_ns;
                    self.arrive_anywhere(BURST);
                    self.send_all();
                }
                Scenario::Shaped => {
                    self.pass(BURST as u64);
                    self.dequeue();
                    self.return_what_left();
                }
            }
        }
    }

    fn send_all(&mut self) {
        let until = self.sent + BURST as u64;
        let mut empty = 0;
        while self.sent < until {
            self.dequeue();
            empty = if self.leaving.is_empty() {
                empty + 1
            } else {
                0
            };
            assert!(empty < EMPTY_CALLS, "packets wait and none is sent");
        }
    }

    /// Measure `packets` packets, in whole rounds.
    pub fn measure(&mut self, packets: u64) -> Measurement {
        (self.offered, self.dropped, self.calls) = (0, 0, 0);
        let first = self.sent;
        let (mut cost, mut longest) = (Vec::new(), Vec::new());
        for _ in 0..packets.div_ceil(ROUND_PACKETS) {
            let before = self.sent;
            (self.busy_ns, self.longest_ns) = (0, 0);
            self.run(ROUND_PACKETS);
            cost.push(self.busy_ns as f64 / (self.sent - before) as f64);
            longest.push(self.longest_ns as f64 / 1e3);
        }
        Measurement {
            ns_per_packet: median(cost).unwrap_or(f64::NAN),
            longest_call_us: median(longest).unwrap_or(f64::NAN),
            packets_per_call: (self.sent - first) as f64 / self.calls as f64,
            drop_ratio: self.dropped as f64 / self.offered as f64,
            bytes_per_slice: self.state_bytes as f64 / f64::from(self.slices),
        }
    }
}

fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
