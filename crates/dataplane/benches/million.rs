//! A million slices with a guarantee each, classified and scheduled through one pipeline: ns/packet and bytes per
//! slice. Every frame is of another slice than the frames around it, in random order, and no flow is seen twice
//! before all others have been.
//!
//! `cargo bench -p slicewise-dataplane --bench million`
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
#![allow(unsafe_code, reason = "a global allocator that counts")]

#[path = "classifier/kinds.rs"]
mod kinds;
#[path = "million/together.rs"]
mod together;

use kinds::{ALLOCATED, KINDS, Kind, MILLION, clock, frames};
use slicewise_dataplane::{
    Conditioning, DropReason, Frame, FrameOwner, NewSlice, Pipeline, PipelineParams, SliceChange,
    Verdict,
};
use slicewise_model::{Colour, PolicyParams};
use slicewise_units::{BitRate, FrameLengths, Instant};
use slicewise_wire::{Headers, TrafficClass};
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::atomic::Ordering;

#[global_allocator]
static ALLOCATOR: kinds::Counting = kinds::Counting;

const LINK: BitRate = BitRate::new(400_000_000_000);
const ROUNDS: usize = 5;
const BURST: usize = 32;
/// Frames that wait while others come and go, so that the slice that sends is not the one that just received.
const WAITING: usize = 100_000;
/// Virtual time between two frames, ns: a slice sends 64 bytes in 10 ms, within its guarantee.
const GAP: u64 = 10;
/// Bytes of a frame's descriptor, for which room is reserved.
const DESCRIPTOR: usize = 32;

fn policy(kind: Kind, slices: u32) -> PolicyParams {
    kind.policy(slices, LINK)
}

/// A pipeline, its bytes without room for frames, and the seconds it took to build.
fn pipeline(kind: Kind, slices: u32) -> (Pipeline, usize, f64) {
    let params = PipelineParams {
        policy: policy(kind, slices),
        port_shaper: None,
        seed: 1,
    };
    let (bytes, start) = (ALLOCATED.load(Ordering::Relaxed), clock());
    let pipeline = Pipeline::new(&params, Instant::ZERO).expect("it can be built");
    let seconds = (clock() - start) as f64 / 1e9;
    let bytes = ALLOCATED.load(Ordering::Relaxed) - bytes;
    let frames = pipeline.capacity() as usize * DESCRIPTOR;
    (pipeline, bytes - frames, seconds)
}

const fn frame(handle: u64) -> Frame {
    Frame {
        handle,
        lengths: FrameLengths {
            l2_bytes: 64,
            l3_offset: 22,
        },
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    }
}

/// Every frame is queued.
struct NoneDropped;

impl FrameOwner for NoneDropped {
    fn on_dropped(&mut self, frame: &Frame, reason: DropReason) {
        panic!("{frame:?}: {reason:?}");
    }
}

/// Offers frames one after the other, and takes as many out.
struct Run {
    pipeline: Pipeline,
    now: u64,
}

impl Run {
    fn singly(&mut self, headers: &[Headers]) {
        for headers in headers {
            self.now += GAP;
            let now = Instant::from_nanos(self.now);
            let verdict = self.pipeline.on_frame(frame(self.now), headers, now);
            assert_eq!(verdict, Verdict::Queued);
            assert!(self.pipeline.poll_egress(now).is_some());
        }
    }

    fn in_bursts(&mut self, headers: &[Headers]) {
        for headers in headers.chunks(BURST) {
            let count = headers.len();
            self.now += GAP * count as u64;
            let now = Instant::from_nanos(self.now);
            let frames: [Frame; BURST] = std::array::from_fn(|n| frame(self.now + n as u64));
            let pipeline = &mut self.pipeline;
            pipeline.enqueue_burst(&frames[..count], headers, now, &mut NoneDropped);
            let mut left = 0;
            let _ = pipeline.dequeue_burst(now, |_| {
                left += 1;
                if left < count {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            assert_eq!(left, count);
        }
    }

    fn fill(&mut self, headers: &[Headers]) {
        for headers in headers {
            self.now += GAP;
            let now = Instant::from_nanos(self.now);
            let verdict = self.pipeline.on_frame(frame(self.now), headers, now);
            assert_eq!(verdict, Verdict::Queued);
        }
    }
}

/// Median ns per frame of several rounds over all of them.
fn nanos(frames: &[Headers], mut round: impl FnMut(&[Headers])) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = clock();
            round(frames);
            (clock() - start) as f64 / frames.len() as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn measure(name: &str, kind: Kind, slices: u32) {
    let frames = frames(kind, slices);
    let (pipeline, bytes, seconds) = pipeline(kind, slices);
    let mut run = Run { pipeline, now: 0 };
    let single = nanos(&frames, |frames| run.singly(frames));
    let burst = nanos(&frames, |frames| run.in_bursts(frames));
    // Those that wait are of the slices whose frames come last in a round.
    run.fill(&frames[frames.len() - WAITING..]);
    let waiting_single = nanos(&frames, |frames| run.singly(frames));
    let waiting_burst = nanos(&frames, |frames| run.in_bursts(frames));
    println!(
        "{name:<18} {slices:>9} {single:>8.0} {burst:>8.0} {waiting_single:>8.0} {waiting_burst:>8.0} {:>9} {seconds:>7.2}",
        if slices < 1_000 {
            "-".to_owned()
        } else {
            format!("{:.0}", bytes as f64 / f64::from(slices))
        },
    );
}

/// A million slices added one by one to a policy without any.
fn add_singly(kind: Kind) {
    let (mut pipeline, _, _) = pipeline(kind, 0);
    let class = policy(kind, 1).classes.swap_remove(0);
    let params = class.slice.expect("it is a slice");
    let start = clock();
    for slice in 0..MILLION {
        let mut matches = kind.map(slice);
        matches.name = format!("slice{slice}");
        let new = NewSlice {
            name: matches.name.clone(),
            matches,
            params,
            conditioning: Conditioning::default(),
            flow_queue: None,
            is_of_policy: false,
        };
        let added = pipeline.change_slice(SliceChange::Add(Box::new(new)), Instant::ZERO);
        added.expect("it is admitted");
    }
    let seconds = (clock() - start) as f64 / 1e9;
    println!("a million slices added one by one: {seconds:.2} s");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.as_slice() {
        [_, flag, kind, slices] if flag == "--run" => {
            let (name, kind) = KINDS[kind.parse::<usize>().expect("a number")];
            measure(name, kind, slices.parse().expect("a number"));
        }
        [_, flag] if flag == "--add" => add_singly(Kind::VlanPair),
        [_, flag] if flag == "--together" => {
            let (longest, usual) = together::longest_calls();
            println!(
                "a million slices become eligible at once: the longest call takes {:.1} µs, but for one in 1,000 {:.1} µs",
                longest as f64 / 1e3,
                usual as f64 / 1e3
            );
        }
        _ => {
            let itself = std::env::current_exe().expect("the path of this benchmark");
            let run = |arguments: &[&str]| {
                let run = Command::new(&itself)
                    .args(arguments)
                    // Huge pages for allocations.
                    .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
                    .status();
                assert!(run.expect("this benchmark starts itself").success());
            };
            println!(
                "ns/packet: one leaves for each that comes, singly and in bursts of {BURST}, and behind {WAITING} that wait\n"
            );
            println!(
                "{:<18} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9} {:>7}",
                "told apart by",
                "slices",
                "singly",
                "bursts",
                "waiting",
                "bursts",
                "B/slice",
                "new, s"
            );
            for kind in ["0", "1", "3"] {
                for slices in ["100000", "1000000"] {
                    run(&["--run", kind, slices]);
                }
            }
            run(&["--add"]);
            run(&["--together"]);
        }
    }
}
