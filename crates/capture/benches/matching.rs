//! What matching costs per sighting: 2 million packets of 1500 B at 10 Gbit/s, of one flow in order, and of
//! 16 flows with a tenth of the packets reordered, at several loss ratios. A time-out of 1 s is a window
//! of 826 thousand packets.
//!
//! `cargo bench -p slicewise-capture --bench matching` prints nanoseconds of processor time per sighting;
//! under `valgrind --tool=callgrind`, `BINARY --count PACKETS LOST_OF_1000` does the work of 16 flows
//! once, to count instructions (`--toggle-collect='*drive'` excludes packet generation).
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

use slicewise_capture::matching::{MatchObserver, MatchParams, Matcher, SendOrder, drive};
use slicewise_capture::{Direction, Sighting};
use std::hint::black_box;
use std::time::Instant;

const PACKETS: u64 = 2_000_000;
const GAP_NS: u64 = 1_210;
const REPEATS: usize = 3;

/// Sums, so that the observer calls cannot be optimised away.
#[derive(Debug, Default)]
struct Sums {
    sent: u64,
    lost: u64,
    delay_ns: u64,
}

impl MatchObserver for Sums {
    fn on_sent(&mut self, _: &Sighting) {
        self.sent += 1;
    }

    fn on_received(&mut self, sent: &Sighting, received: &Sighting, _: SendOrder) {
        self.delay_ns += received.time_ns - sent.time_ns;
    }

    fn on_lost(&mut self, _: &Sighting, _: u64) {
        self.lost += 1;
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, packets, loss] = arguments.as_slice()
        && flag == "--count"
    {
        let packets = packets.parse().expect("a number of packets");
        let loss = loss.parse().expect("lost packets of 1000");
        let (sent, received) = captures(packets, 16, loss);
        black_box(run(&sent, &received, 100));
        return;
    }
    println!("flows   lost  time-out  ns/sighting  memory");
    for (flows, lost_of_1000, timeout_ms) in [
        (1, 0, 5_000),
        (1, 0, 100),
        (16, 0, 100),
        (16, 0, 1_000),
        (16, 10, 1_000),
        (16, 500, 1_000),
    ] {
        let (sent, received) = captures(PACKETS, flows, lost_of_1000);
        let sightings = sent.len() + received.len();
        let mut best = f64::INFINITY;
        let mut memory_bytes = 0;
        for _ in 0..REPEATS {
            let clock = Clock::start();
            memory_bytes = black_box(run(&sent, &received, timeout_ms));
            best = best.min(clock.elapsed_ns() as f64 / sightings as f64);
        }
        let loss = f64::from(u32::try_from(lost_of_1000).unwrap_or(0)) / 10.0;
        println!(
            "{flows:>5}  {loss:>3} %  {timeout_ms:>5} ms  {best:>11.1}  {} MB",
            memory_bytes / 1_000_000
        );
    }
}

/// Processor time, where the kernel provides it, so that other work does not count.
struct Clock {
    start: Instant,
    on_processor_ns: Option<u64>,
}

impl Clock {
    fn start() -> Self {
        Self {
            start: Instant::now(),
            on_processor_ns: on_processor_ns(),
        }
    }

    fn elapsed_ns(&self) -> u64 {
        let wall_ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let on_processor = on_processor_ns().zip(self.on_processor_ns);
        on_processor.map_or(wall_ns, |(end, start)| end - start)
    }
}

fn on_processor_ns() -> Option<u64> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    statistics.split(' ').next()?.parse().ok()
}

fn run(sent: &[Sighting], received: &[Sighting], timeout_ms: u64) -> usize {
    let mut matcher = Matcher::new(MatchParams {
        timeout_ns: timeout_ms * 1_000_000,
        ..MatchParams::default()
    });
    let mut sums = Sums::default();
    let (sent, received) = (source(sent), source(received));
    drive(&mut matcher, sent, received, &mut sums);
    black_box(&sums);
    matcher.memory_bytes()
}

fn source(sightings: &[Sighting]) -> impl FnMut(&mut Vec<Sighting>) -> bool {
    let mut chunks = sightings.chunks(4_096);
    move |batch| match chunks.next() {
        Some(chunk) => {
            batch.extend_from_slice(chunk);
            true
        }
        None => false,
    }
}

/// Packets of flows in random order, delayed by 20 ms; with several flows, some by a little more, so
/// that others overtake them.
fn captures(packets: u64, flows: u64, lost_of_1000: u64) -> (Vec<Sighting>, Vec<Sighting>) {
    let mut random = 1_u64;
    let mut draw = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut sent = Vec::new();
    let mut received = Vec::new();
    for number in 0..packets {
        let drawn = draw();
        let packet = Sighting {
            time_ns: 1_700_000_000_000_000_000 + number * GAP_NS,
            key: draw(),
            flow: u32::try_from(drawn % flows).unwrap_or(0),
            l2_bytes: 1_514,
            ttl: 64,
            dscp: 0,
            direction: Direction::Unknown,
            time_is_restored: false,
        };
        sent.push(packet);
        if (drawn >> 8) % 1_000 >= lost_of_1000 {
            let overtaken = if flows > 1 && (drawn >> 32) % 10 == 0 {
                100_000
            } else {
                0
            };
            received.push(Sighting {
                time_ns: packet.time_ns + 20_000_000 + overtaken,
                ttl: 62,
                ..packet
            });
        }
    }
    received.sort_by_key(|one| one.time_ns);
    (sent, received)
}
