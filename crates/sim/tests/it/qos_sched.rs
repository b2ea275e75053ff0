//! `qos_sched`: threads that hand packets on in bursts.

use crate::support::{changed, headers};
use proptest::prelude::*;
use slicewise_dataplane::{DropReason, Frame, Verdict};
use slicewise_model::{Colour, RateSpec, ShaperSpec};
use slicewise_sim::Simulator;
use slicewise_sim::device::Forwarding;
use slicewise_sim::device::qos_sched::QosSched;
use slicewise_stats::record::RunRecord;
use slicewise_study::{
    Backend, QosSchedBursts, QosSchedParams, QosSchedRings, QosSchedThreads, RunFilter, Study,
};
use slicewise_units::{BitRate, Duration, FrameLengths, Instant};
use slicewise_wire::TrafficClass;
use std::collections::VecDeque;

/// 1000 packets a second from the thin slice alone.
const STUDY: &str = "\
name: threads
link: {rate: 10 Gbit/s}
dut: {model: qos_sched, burst: 64}
slices:
  thin: {match: {vlan: 10}, share: 60 %, headers: {vlan: 10}}
  rest: {match: {vlan: 20}, share: 40 %, headers: {vlan: 20}}
sources:
  thin: {slice: thin, pattern: cbr, rate: 8 Mbit/s, counts: payload, payload: 1000 B}
scenarios:
  alone: {reference: true}
policies:
  two:
    classes:
      - {name: thin, slice: thin, minimum: 60 %}
repetitions: 1
duration: 6400 ms # a hundred bursts of 64
";
const MILLISECOND: u64 = 1_000_000;

fn run(changes: &[(&str, &str)]) -> RunRecord {
    let study = changed(STUDY, changes);
    let runs = study.runs(&RunFilter::default()).unwrap();
    Simulator::default().run(&study, &runs[0]).unwrap()
}

/// Mean and largest delay of the thin slice, in ms, to a tenth.
fn delay(changes: &[(&str, &str)]) -> (f64, f64) {
    let record = run(changes);
    let delay = &record.slices[0].whole.delay;
    let ms = |ns: f64| (ns / 1e5).round() / 10.0;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    (ms(delay.mean_ns), ms(delay.max_ns as f64))
}

#[test]
fn the_first_of_a_burst_waits_until_a_thin_flow_has_filled_it() {
    // (b - 1) / r, and half of that on average: 63 ms and 31.5 ms for b = 64 and r = 1000 packets/s.
    assert_eq!(delay(&[]), (31.5, 63.0));
    assert_eq!(delay(&[("burst: 64", "burst: 8")]), (3.5, 7.0));
    assert_eq!(delay(&[("burst: 64", "burst: 1")]), (0.0, 0.0));
}

#[test]
fn other_traffic_completes_bursts_sooner() {
    let other = (
        "alone: {reference: true}",
        "alone: {reference: true, sources: {rest: {slice: rest, pattern: cbr, rate: 72 Mbit/s, counts: payload, payload: 1000 B}}}",
    );
    let (mean, _) = delay(&[other]);
    assert!((3.0..3.3).contains(&mean), "{mean}");
}

#[test]
fn what_the_transmit_thread_has_collected_goes_out_after_a_while_and_what_is_in_the_ring_does_not()
{
    // Bursts of one packet from the ring, and of 64 to the interface.
    let one = ("burst: 64", "burst: {dequeue: 1}");
    assert_eq!(delay(&[one]), (0.1, 0.1));
    // The time counts from the last packet, so a longer one than the gap between two changes nothing but the end.
    let (mean, _) = delay(&[one, ("burst:", "drain: 5 ms, burst:")]);
    assert!((31.4..31.7).contains(&mean), "{mean}");
    // 32 from the ring, as in the sample application: one after 31 ms, and 0.1 ms.
    let (mean, largest) = delay(&[("burst: 64", "burst: {}")]);
    assert_eq!((mean, largest), (15.6, 31.1));
}

#[test]
fn a_worker_that_transmits_sends_the_rest_of_a_burst_after_a_while_without_packets() {
    let mixed = |more: &'static str| [("burst: 64", more)];
    // A gap of 1 ms is longer than the drain: every packet waits for it, whatever the burst of the scheduler.
    assert_eq!(delay(&mixed("threads: mixed, burst: 64")), (0.1, 0.1));
    // A longer drain begins anew with each packet, so bursts are as long as with a transmit thread.
    let long = delay(&mixed("threads: mixed, burst: 64, drain: 3 ms"));
    assert!((31.4..31.7).contains(&long.0) && long.1 == 63.0, "{long:?}");
    // Packets do not wait for the 32 of the scheduler.
    assert_eq!(
        delay(&mixed("threads: mixed, burst: {transmit: 1}")),
        (0.0, 0.0)
    );
}

#[test]
fn packets_that_nobody_joins_leave_when_the_sources_have_stopped() {
    let record = run(&[
        ("duration: 6400 ms", "duration: 50 ms"),
        ("repetitions", "measure: {bin: 10 ms}\nrepetitions"),
    ]);
    assert_eq!(record.slices[0].whole.sent_frames, 50);
    assert_eq!(record.slices[0].whole.lost_frames, 0);
}

#[test]
fn a_policy_can_be_on_a_device_of_its_own() {
    let policies = "  two:\n    dut: {model: port}\n";
    assert_eq!(delay(&[("  two:\n", policies)]), (0.0, 0.0));
    let policies = "  two:\n    dut: {burst: 8}\n";
    assert_eq!(delay(&[("  two:\n", policies)]), (3.5, 7.0));
}

fn device(
    threads: QosSchedThreads,
    burst: QosSchedBursts,
    (software, transmit): (u32, u32),
    shape: Option<u64>,
) -> QosSched {
    let study: Study = changed(STUDY, &[]);
    let mut spec = study.policies[0].spec.clone();
    spec.classes[0].minimum = None;
    spec.classes[0].shape = shape.map(|rate| ShaperSpec {
        committed_burst_bits: Some(8_000.into()),
        ..RateSpec::Absolute(BitRate::new(rate)).into()
    });
    let params = QosSchedParams {
        threads,
        burst,
        ring: QosSchedRings {
            software,
            transmit,
            ..QosSchedParams::default().ring
        },
        drain: Duration::from_millis(1),
    };
    let policy = spec.resolve_for(study.dut.port()).unwrap();
    QosSched::new(policy, params, 1).unwrap()
}

#[test]
fn full_rings_hold_up_the_worker_and_then_packets_are_dropped_as_they_arrive() {
    let (queued, mut device) = filled(QosSchedThreads::Separate);
    // Two descriptors, two that are handed over, two in the ring, two that the worker holds, three in the first ring. The
    // worker dequeues each packet as it comes, so it holds one, and there are three in the ring.
    assert_eq!(queued, 2 + 2 + 3 + 1 + 3);
    leaves_in_order(&mut device, queued - queued % 2);
}

#[test]
fn a_worker_that_transmits_waits_for_descriptors_and_takes_nothing_meanwhile() {
    let (queued, mut device) = filled(QosSchedThreads::Mixed);
    // Two descriptors, two that are handed over, three in the only ring.
    assert_eq!(queued, 2 + 2 + 3);
    leaves_in_order(&mut device, queued);
}

/// A device with bursts of two and small rings after twenty packets, and how many of them it has queued.
fn filled(threads: QosSchedThreads) -> (usize, QosSched) {
    let mut device = device(threads, QosSchedBursts::all(2), (4, 2), None);
    let verdicts: Vec<Verdict> = (1..=20)
        .map(|n| device.on_frame(frame(n), &headers(10), Instant::from_nanos(n)))
        .collect();
    let queued = verdicts
        .iter()
        .take_while(|it| **it == Verdict::Queued)
        .count();
    assert_eq!(device.in_threads(), queued);
    let full = Verdict::Dropped(DropReason::BufferFull);
    assert!(verdicts[queued..].iter().all(|it| *it == full));
    (queued, device)
}

/// Nothing is lost of what was queued, and its order is kept; `whole` leave before any drain.
fn leaves_in_order(device: &mut QosSched, whole: usize) {
    let at = |ns| Instant::from_nanos(ns);
    let mut left = |now| -> Vec<u64> {
        let frames = std::iter::from_fn(|| device.poll_egress(now));
        frames.map(|frame| frame.id().into()).collect()
    };
    let mut ids = left(at(MILLISECOND / 2));
    ids.extend(left(at(3 * MILLISECOND)));
    assert_eq!(ids, (1..=whole as u64).collect::<Vec<_>>());
}

proptest! {
    /// Whatever bursts and rings are: what is queued leaves in order, and everything else was dropped and counted.
    #[test]
    fn every_packet_leaves_in_order_or_is_dropped_and_counted(
        threads in prop::sample::select(vec![QosSchedThreads::Separate, QosSchedThreads::Mixed]),
        (receive, enqueue, dequeue, transmit) in (1u32..5, 1u32..9, 1u32..8, 1u32..12),
        rings in (prop::sample::select(vec![8u32, 16]), 1u32..16),
        shape in prop::option::of(1_000_000u64..100_000_000),
        steps in prop::collection::vec((0u64..200_000, any::<bool>()), 1..300),
    ) {
        let burst = QosSchedBursts { receive, enqueue, dequeue, transmit };
        let mut device = device(threads, burst, rings, shape);
        let (mut now, mut offered, mut dropped) = (0, 0u64, 0u64);
        let mut waiting = VecDeque::new();
        let leave = |device: &mut QosSched, at, waiting: &mut VecDeque<u64>, dropped: &mut u64| {
            let left = device.poll_egress(at);
            while let Some(lost) = device.poll_dropped() {
                waiting.retain(|handle| *handle != lost.handle);
                *dropped += 1;
            }
            left.map(|packet| (u64::from(packet.id()), waiting.pop_front()))
        };
        for (step, arrives) in steps {
            now += step;
            let at = Instant::from_nanos(now);
            if arrives {
                offered += 1;
                match device.on_frame(frame(offered), &headers(10), at) {
                    Verdict::Queued => waiting.push_back(offered),
                    Verdict::Dropped(_) => dropped += 1,
                }
            }
            if let Some((handle, expected)) = leave(&mut device, at, &mut waiting, &mut dropped) {
                prop_assert_eq!(Some(handle), expected);
            }
            prop_assert_eq!(waiting.len(), device.in_threads() + device.pipeline().backlog() as usize);
        }
        // With time and a link that is free, less than a burst stays in the second ring; nothing is taken and kept.
        for _ in 0..2_000 {
            now += 2 * MILLISECOND;
            let left = leave(&mut device, Instant::from_nanos(now), &mut waiting, &mut dropped);
            if let Some((handle, expected)) = left {
                prop_assert_eq!(Some(handle), expected);
            }
        }
        let most = if threads == QosSchedThreads::Mixed { 0 } else { dequeue as usize - 1 };
        prop_assert!(waiting.len() <= most, "{} wait", waiting.len());
        let counters = device.pipeline().counters();
        let counted: u64 = counters.map(|class| DropReason::ALL.into_iter().map(|reason| class.dropped(reason)).sum::<u64>()).sum();
        prop_assert_eq!(counted, dropped);
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
