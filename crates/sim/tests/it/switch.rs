//! The switch: its queues share a buffer.

use crate::support::{changed, headers};
use proptest::prelude::*;
use slicewise_dataplane::{DropReason, Frame, Verdict};
use slicewise_model::Colour;
use slicewise_sim::Simulator;
use slicewise_sim::device::Forwarding;
use slicewise_sim::device::switch::Switch;
use slicewise_stats::record::RunRecord;
use slicewise_study::{Backend, RunFilter, Study};
use slicewise_units::{FrameLengths, Instant};
use slicewise_wire::TrafficClass;

const STUDY: &str = "\
name: switch
link: {rate: 100 Mbit/s}
dut: {model: switch, buffer: 40 packets, processing_delay: 3 us, port_rate: 10 Mbit/s}
slices:
  gold: {match: {vlan: 10}, share: 60 %, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 40 %, headers: {vlan: 20}}
sources:
  gold: {slice: gold, pattern: poisson, rate: 4 Mbit/s, payload: 1000 B}
scenarios:
  both: {reference: true, sources: {rest: {slice: rest, pattern: cbr, rate: 40 Mbit/s, payload: 1000 B}}}
policies:
  two:
    classes:
      - {name: gold, slice: gold, minimum: 60 %, queue_limit: 100 packets}
      - {name: rest, slice: rest, queue_limit: 100 packets}
repetitions: 1
duration: 1 s
";

fn run(changes: &[(&str, &str)]) -> RunRecord {
    let study = changed(STUDY, changes);
    let runs = study.runs(&RunFilter::default()).unwrap();
    Simulator::default().run(&study, &runs[0]).unwrap()
}

fn dropped(record: &RunRecord, class: &str) -> Vec<(String, u64)> {
    let drops = record.drops.iter().filter(|drop| drop.class == class);
    drops
        .map(|drop| (drop.reason.clone(), drop.frames))
        .collect()
}

#[test]
fn one_class_can_take_the_buffer_from_another() {
    let record = run(&[]);
    // No queue is at its limit; the buffer is full, and frames of both are dropped.
    for class in ["gold", "rest"] {
        let drops = dropped(&record, class);
        assert_eq!(drops.len(), 1, "{drops:?}");
        assert_eq!(drops[0].0, DropReason::BufferFull.name());
    }
    // 40 frames of 1070 B at 10 Mbit/s.
    let longest = record.slices.iter().map(|slice| slice.whole.delay.max_ns);
    assert!(longest.max().unwrap() < 80_000_000);
}

#[test]
fn without_a_buffer_of_its_own_the_limits_of_the_queues_decide() {
    let record = run(&[("buffer: 40 packets, ", "")]);
    assert_eq!(dropped(&record, "gold"), []);
    assert_eq!(dropped(&record, "rest")[0].0, DropReason::QueueFull.name());
    // As a port, but for the time it takes to process a frame.
    let port = run(&[(
        "model: switch, buffer: 40 packets, processing_delay: 3 us",
        "model: port, processing_delay: 3 us",
    )]);
    assert_eq!(port.slices, record.slices);
}

#[test]
fn a_frame_is_processed_for_a_fixed_time() {
    let smallest = |processing: &str| {
        let record = run(&[("processing_delay: 3 us", processing)]);
        record.slices[0].whole.delay.min_ns
    };
    assert_eq!(
        smallest("processing_delay: 9 us") - smallest("processing_delay: 3 us"),
        6_000
    );
}

proptest! {
    /// Every frame is queued or dropped with one reason, and the buffer never holds more than it may.
    #[test]
    fn a_buffer_holds_no_more_than_it_may_and_every_frame_is_accounted_for(
        buffer in 1u32..20,
        steps in prop::collection::vec((any::<bool>(), prop_oneof![Just(10u16), Just(20), Just(30)]), 1..200),
    ) {
        let study: Study = changed(STUDY, &[]);
        let mut switch = Switch::new(study.policies[0].params.clone(), Some(buffer), 1).unwrap();
        let (mut queued, mut offered, mut dropped) = (0u32, 0u64, 0u64);
        for (time, (arrives, vlan)) in (1u64..).zip(steps) {
            let now = Instant::from_nanos(time * 1_000_000);
            if arrives {
                offered += 1;
                let verdict = switch.on_frame(frame(offered), &headers(vlan), now);
                let full = Verdict::Dropped(DropReason::BufferFull);
                prop_assert_eq!(verdict, if queued < buffer { Verdict::Queued } else { full });
                queued += u32::from(queued < buffer);
                dropped += u64::from(verdict != Verdict::Queued);
            } else if switch.poll_egress(now).is_some() {
                queued -= 1;
            }
            prop_assert_eq!(switch.pipeline().backlog(), queued);
        }
        let counted: u64 = switch.pipeline().counters().map(|c| c.dropped(DropReason::BufferFull)).sum();
        prop_assert_eq!(counted, dropped);
        let all: u64 = switch.pipeline().counters().map(|c| c.offered_frames).sum();
        prop_assert_eq!(all, offered);
    }
}

fn frame(handle: u64) -> Frame {
    Frame {
        handle,
        lengths: FrameLengths {
            l2_bytes: 1000,
            l3_offset: 18,
        },
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    }
}
