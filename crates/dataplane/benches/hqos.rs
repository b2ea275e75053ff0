//! ns/packet of the hierarchical scheduler, beside the library whose arithmetic it has.
//!
//! `cargo bench -p slicewise-dataplane --bench hqos [-- --repeats N]`
//!
//! Scenarios, packets and peer are those of the benchmark `slices` (`docs/benchmarks/slices.md`); a slice is a pipe on
//! both sides. Each run is a process of its own, and both sides take turns.
#![allow(
    missing_docs,
    dead_code,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation
)]

#[path = "slices/contender.rs"]
mod contender;
#[path = "peers/librte_sched.rs"]
mod librte_sched;
#[path = "slices/workload.rs"]
mod workload;

use contender::Contender;
use librte_sched::{LibrteSched, TrafficClass};
use slicewise_dataplane::Frame;
use slicewise_dataplane::hqos::{Hqos, HqosOffer, HqosPlace};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_model::hqos::{
    HqosPipeProfile, HqosPipeRange, HqosRates, HqosSubport, TRAFFIC_CLASSES,
};
use slicewise_model::{Colour, HqosParams, HqosSpec};
use slicewise_units::{BitRate, FrameLengths, Instant};
use std::process::Command;
use workload::{
    BURST, LINK_BITS_PER_SECOND, Measurement, PACKET_BYTES, SHAPED_BITS_PER_SECOND,
    SHAPED_BURST_BYTES, Scenario, Workload,
};

const PIPES: u32 = 4_096;
const REPEATS: usize = 5;
/// Most frames in all queues.
const POOL_FRAMES: u32 = 1 << 18;
/// Time in which a burst of packets earns its credit.
const SHAPED_INTERVAL_NS: u64 =
    BURST as u64 * PACKET_BYTES as u64 * 8 * 1_000_000_000 / SHAPED_BITS_PER_SECOND;
/// The port of the shaped scenario for the rate of a pipe.
const SHAPED_PART: u64 = 8;

/// Our scheduler with the packets of every pipe in one class, which is called as the library is, or `ASKED` for the next
/// packet at the times that it announces, as a pipeline does.
struct Pipes<const CLASS: usize, const ASKED: bool> {
    scheduler: Hqos,
    pool: FramePool,
    /// Shaped: packets that arrive before the steady state.
    filling: Option<usize>,
    /// Shaped: time that has passed beyond that of the workload.
    ahead_ns: u64,
    /// Asked: when it was last.
    asked_at: Instant,
}

fn params<const CLASS: usize>(pipes: u32, scenario: Scenario) -> HqosParams {
    let port = BitRate::new(LINK_BITS_PER_SECOND);
    let rate = LINK_BITS_PER_SECOND / 8;
    let rates = |tb_rate, tb_size| HqosRates {
        tb_rate,
        tb_size,
        tc_rates: std::array::from_fn(|class| match class {
            12 => tb_rate,
            class if class == CLASS => tb_rate,
            _ => 0,
        }),
        tc_period: 10_000,
    };
    let is_shaped = scenario == Scenario::Shaped;
    let (pipe_rate, size) = match is_shaped {
        true => (
            rate / SHAPED_PART / u64::from(pipes),
            u64::from(SHAPED_BURST_BYTES),
        ),
        false => (rate, 1_000_000),
    };
    let mut queue_sizes = [0; TRAFFIC_CLASSES];
    queue_sizes[12] = 1;
    queue_sizes[CLASS] = 64;
    let spec = HqosSpec {
        frame_overhead: 0,
        subports: vec![HqosSubport {
            profile: 0,
            pipes,
            queue_sizes,
            assigned: vec![HqosPipeRange {
                first: 0,
                last: pipes - 1,
                profile: 0,
            }],
        }],
        subport_profiles: vec![HqosRates {
            tc_rates: [rate; TRAFFIC_CLASSES],
            ..rates(rate, 100_000_000)
        }],
        pipe_profiles: vec![HqosPipeProfile {
            rates: rates(pipe_rate, size),
            oversubscription_weight: 1,
            wrr_weights: [1; 4],
        }],
        ..HqosSpec::default()
    };
    let mut params = spec.resolve(port).expect("the parameters are valid");
    if is_shaped {
        // Exactly the rate at which the workload lets time pass.
        params.pipe_profiles[0].credits.tb_period = SHAPED_PART * u64::from(pipes);
    }
    params
}

impl<const CLASS: usize, const ASKED: bool> Contender for Pipes<CLASS, ASKED> {
    const NAME: &'static str = "hqos";

    fn new(slices: u32, scenario: Scenario) -> Self {
        let params = params::<CLASS>(slices, scenario);
        Self {
            scheduler: Hqos::new(&params, 1, Instant::ZERO),
            pool: FramePool::with_capacity(POOL_FRAMES),
            filling: match scenario {
                Scenario::Shaped => Some((slices * workload::depth(scenario, slices)) as usize),
                Scenario::Deep | Scenario::Shallow => None,
            },
            ahead_ns: 0,
            asked_at: Instant::ZERO,
        }
    }

    fn state_bytes(&self) -> usize {
        self.scheduler.state_bytes()
    }

    fn enqueue(&mut self, burst: &[(u32, u32, u64)], now_ns: u64) -> usize {
        let place = |pipe| HqosPlace {
            subport: 0,
            pipe,
            queue: CLASS as u32,
            colour: 0,
        };
        let places = burst.iter().map(|&(pipe, _, _)| place(pipe));
        self.scheduler.arrivals_ahead(places, &self.pool);
        let queued = burst.iter().filter(|&&(pipe, l2_bytes, handle)| {
            let lengths = FrameLengths {
                l2_bytes,
                l3_offset: 14,
            };
            let frame = Frame {
                handle,
                lengths,
                traffic_class: slicewise_wire::TrafficClass::DEFAULT,
                colour: Colour::Green,
            };
            let queued = QueuedFrame::new(&frame, pipe, Instant::from_nanos(now_ns), 0);
            self.scheduler
                .try_enqueue(place(pipe), queued, &mut self.pool)
                .is_ok()
        });
        let queued = queued.count();
        self.filling = self.filling.map(|left| left.saturating_sub(queued));
        queued
    }

    fn dequeue(&mut self, out: &mut Vec<(u32, u64)>, max: usize, now_ns: u64) {
        if ASKED && self.filling.unwrap_or(0) == 0 {
            return self.ask(out, max, Instant::from_nanos(now_ns));
        }
        let now = Instant::from_nanos(now_ns + self.ahead_ns);
        self.scheduler.begin(now);
        for _ in 0..max {
            let Some(queued) = self.scheduler.next(&mut self.pool) else {
                // As the peer does: nothing is left over from earlier, and is made up for.
                self.ahead_ns += u64::from(self.filling == Some(0)) * SHAPED_INTERVAL_NS;
                return;
            };
            out.push((queued.class(), queued.handle()));
        }
    }
}

impl<const CLASS: usize, const ASKED: bool> Pipes<CLASS, ASKED> {
    /// Take so many packets, each when it may leave.
    fn ask(&mut self, out: &mut Vec<(u32, u64)>, max: usize, now: Instant) {
        self.asked_at = self.asked_at.max(now);
        while out.len() < max {
            match self.scheduler.select(&mut self.pool, self.asked_at) {
                HqosOffer::Ready(_) => {
                    let taken = self.scheduler.take();
                    out.extend(taken.map(|queued| (queued.class(), queued.handle())));
                }
                HqosOffer::Wait(until) => self.asked_at = until,
                HqosOffer::Empty => return,
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "--run", calls, class, scenario] => {
            let scenario = Scenario::from_name(scenario).expect("the name of a scenario");
            let measured = match (*calls, *class) {
                (LIKE_THE_LIBRARY, STRICT) => measured::<Pipes<0, false>>(scenario),
                (LIKE_THE_LIBRARY, _) => measured::<Pipes<12, false>>(scenario),
                (_, STRICT) => measured::<Pipes<0, true>>(scenario),
                _ => measured::<Pipes<12, true>>(scenario),
            };
            println!("{}", measured.to_json());
        }
        [_, "--repeats", repeats, ..] => report(repeats.parse().expect("a number of runs")),
        _ => report(REPEATS),
    }
}

/// What a run of its own is told.
const LIKE_THE_LIBRARY: &str = "like-the-library";
const WHEN_ANNOUNCED: &str = "when-announced";
const STRICT: &str = "strict";

fn measured<C: Contender>(scenario: Scenario) -> Measurement {
    Workload::<C>::new(PIPES, scenario).measure(packets(scenario))
}

fn packets(scenario: Scenario) -> u64 {
    match scenario {
        Scenario::Shaped => 100_000,
        Scenario::Deep | Scenario::Shallow => 1_000_000,
    }
}

fn ours(calls: &str, scenario: Scenario, class: TrafficClass) -> Measurement {
    let itself = std::env::current_exe().expect("the path of this benchmark");
    let class = match class {
        TrafficClass::Strict => STRICT,
        TrafficClass::BestEffort => "best-effort",
    };
    let output = Command::new(itself)
        .args(["--run", calls, class, scenario.name()])
        // Huge pages for allocations, as for the peer.
        .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
        .output()
        .expect("this benchmark starts itself");
    let line = String::from_utf8_lossy(&output.stdout);
    Measurement::from_json(&line)
        .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn report(repeats: usize) {
    let peer = LibrteSched::build();
    match &peer {
        Ok(peer) => println!("peer: librte_sched of DPDK {}", peer.version),
        Err(why) => println!("peer: librte_sched is skipped, only our numbers follow: {why}"),
    }
    println!("{PIPES} pipes, bursts of 64; medians of {repeats} runs, both sides in turn");
    println!("asked: a packet at a time, at the times that are announced, as a pipeline does\n");
    println!(
        "scenario class        ns/packet  library  ratio    asked   call µs  library   B/pipe  library"
    );
    for scenario in Scenario::ALL {
        for class in [TrafficClass::Strict, TrafficClass::BestEffort] {
            let (mut own, mut asked, mut its) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..repeats {
                own.push(ours(LIKE_THE_LIBRARY, scenario, class));
                asked.push(ours(WHEN_ANNOUNCED, scenario, class));
                let Ok(peer) = &peer else { continue };
                match peer.run(scenario, PIPES, packets(scenario), class) {
                    Ok(run) => its.push(run),
                    Err(why) => eprintln!("librte_sched, {}: {why}", scenario.name()),
                }
            }
            let median = |runs: &[_]| Measurement::median(runs).expect("at least one run");
            let own = [median(&own), median(&asked)];
            print_row(scenario, class, own, Measurement::median(&its));
        }
    }
}

fn print_row(
    scenario: Scenario,
    class: TrafficClass,
    [own, asked]: [Measurement; 2],
    its: Option<Measurement>,
) {
    let class = match class {
        TrafficClass::Strict => STRICT,
        TrafficClass::BestEffort => "best effort",
    };
    let its = |quantity: fn(&Measurement) -> f64| its.as_ref().map_or(f64::NAN, quantity);
    println!(
        "{:<8} {class:<12} {:>9.1} {:>8.1} {:>6.2} {:>8.1} {:>9.1} {:>8.1} {:>8.0} {:>8.0}",
        scenario.name(),
        own.ns_per_packet,
        its(|run| run.ns_per_packet),
        own.ns_per_packet / its(|run| run.ns_per_packet),
        asked.ns_per_packet,
        own.longest_call_us,
        its(|run| run.longest_call_us),
        own.bytes_per_slice,
        its(|run| run.bytes_per_slice),
    );
}
