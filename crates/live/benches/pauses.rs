//! How long forwarding stops for what takes time for each class: another policy in both directions as a whole, and the longest step
//! of a look at the metrics.
//!
//! `cargo bench -p slicewise-live --bench pauses`
//!
//! Processor time of the thread that forwards; what can be prepared is prepared on another, as in the gateway.
#![allow(missing_docs, unsafe_code, reason = "the processor time of a thread")]
#![allow(
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation
)]

#[path = "../../dataplane/benches/classifier/kinds.rs"]
mod kinds;

use kinds::{Kind, clock};
use slicewise_live::memory::MemoryPort;
use slicewise_live::metrics::{LOOKED_AT_ONCE, Look};
use slicewise_live::sys::heap;
use slicewise_live::{DirectionParams, Engine, EngineParams};
use slicewise_model::Rate;
use slicewise_units::{BitRate, Duration, Instant};

const LINK: BitRate = BitRate::new(400_000_000_000);
const ROUNDS: usize = 5;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    // As in the gateway.
    heap::keep_what_is_freed();
    println!("ms that forwarding stops, median and most of {ROUNDS} rounds");
    println!("{:<10} {:>17} {:>17}", "slices", "commit", "metrics");
    for slices in [1_000, 10_000, 100_000] {
        let (committed, looked): (Vec<u64>, Vec<u64>) = (0..ROUNDS).map(|_| round(slices)).unzip();
        println!("{slices:<10} {} {}", figures(committed), figures(looked));
    }
}

fn figures(mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let [median, most] = [ROUNDS / 2, ROUNDS - 1].map(|at| times[at] as f64 / 1e6);
    format!("{median:>8.2} {most:>8.2}")
}

/// Both directions, with a policy of this name.
fn directions(name: &str, slices: u32) -> [DirectionParams; 2] {
    let mut policy = Kind::VlanPair.policy(slices, LINK);
    policy.name = name.to_owned();
    let direction = DirectionParams {
        link: Rate::l2(LINK),
        policy: policy.into(),
        seed: 1,
    };
    [direction.clone(), direction]
}

/// How long a commit takes while a frame of each slice waits, also of the one that goes, and the longest step of a look at the
/// metrics.
fn round(slices: u32) -> (u64, u64) {
    let params = EngineParams {
        directions: directions("before", slices),
        largest_frame: 1_522,
        receive_queues: [0; 2],
        memory_bytes: 4 << 30,
        adds_slices: false,
    };
    let mut engine = Engine::new(&params, Instant::ZERO).expect("it can be built");
    arrive(&mut engine, slices, Instant::ZERO);
    let mut now = Instant::ZERO;
    while engine.backlog() > 0 {
        now = now.saturating_add(Duration::from_millis(1));
        engine.poll(&mut ports(), &mut || now);
    }
    // The first do what the C library has put off when memory was freed.
    let looked = [
        longest_look(&engine),
        longest_look(&engine),
        longest_look(&engine),
    ][2];
    arrive(&mut engine, slices, now);
    let basis = engine.basis();
    let prepare = || basis.prepare(&directions("after", slices - 1), now);
    let prepared = std::thread::scope(|scope| scope.spawn(prepare).join());
    let prepared = prepared.expect("it does not panic");
    let prepared = prepared.expect("it can be built");
    let (committed, replaced) = timed(|| engine.commit(prepared, now));
    drop(replaced.expect("nothing came in between"));
    (committed, looked)
}

fn ports() -> [MemoryPort; 2] {
    [0, 1].map(|_| MemoryPort::new(1_500, usize::MAX))
}

/// A frame of each slice arrives on each side, longer ones of later slices: these are what a look at the metrics takes longest for.
fn arrive(engine: &mut Engine, slices: u32, now: Instant) {
    let mut ports = ports();
    for slice in 0..slices {
        let headers = Kind::VlanPair.headers(slice);
        let mut frame = vec![0; 64 + slice as usize * 900 / slices as usize];
        for (at, id) in [(12, headers.outer_vlan), (16, headers.inner_vlan)] {
            frame[at..at + 2].copy_from_slice(&[0x81, 0]);
            frame[at + 2..at + 4].copy_from_slice(&id.to_be_bytes());
        }
        // For local experiments (IEEE 802): their VLANs tell slices apart.
        frame[20..22].copy_from_slice(&[0x88, 0xb5]);
        ports.iter_mut().for_each(|port| port.arrive(frame.clone()));
    }
    while {
        let round = engine.poll(&mut ports, &mut || now);
        round.is_unfinished || round.received > 0
    } {}
}

fn longest_look(engine: &Engine) -> u64 {
    let (mut look, mut longest) = (Look::default(), 0);
    loop {
        let (took, snapshot) = timed(|| look.advance(engine, LOOKED_AT_ONCE));
        longest = longest.max(took);
        if snapshot.is_some() {
            return longest;
        }
    }
}

fn timed<T>(act: impl FnOnce() -> T) -> (u64, T) {
    // The first system call after a while does what the kernel has postponed.
    std::hint::black_box(clock());
    let start = clock();
    let done = act();
    (clock() - start, done)
}
