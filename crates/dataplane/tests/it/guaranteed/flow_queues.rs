//! Slices with flow queues and levels of priority inside: the guarantee stays that of the slice.

use super::rig::{
    Arrival, Conformance, LARGEST_FRAME, Rig, arrival, best_effort, flow_queue, guaranteed, params,
};
use proptest::prelude::*;
use slicewise_dataplane::DropReason;
use slicewise_dataplane::guaranteed::{Selected, Selection, SliceId};
use slicewise_model::{CoDelSpec, FlowQueueParams, FlowQueueSpec, FlowsSpec, SliceParams};
use slicewise_units::{Duration, Instant};

const LINK: u64 = 1_000_000_000;
const RATE: u64 = 100_000_000;
const BURST: u64 = 4 * LARGEST_FRAME;
const OBJECTIVE: Duration = Duration::from_millis(1);

/// Three levels: EF, two of AF, the rest.
fn levels(target: Duration) -> FlowQueueParams {
    let spec = FlowQueueSpec {
        flows: FlowsSpec {
            flows: Some(64),
            priority: vec![vec![46], vec![34, 36]],
            ..FlowsSpec::default()
        },
        codel: CoDelSpec {
            target: Some(target),
            interval: Some(target + target),
            ..CoDelSpec::default()
        },
    };
    flow_queue(spec, LINK)
}

/// So long that nothing is dropped.
const PATIENT: Duration = Duration::from_millis(1_900);

/// Code point and flow from the handle, in no order.
fn tag(handle: u64) -> (u8, u16) {
    let mixed = handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let dscp = [0, 0, 0, 34, 36, 46][(mixed % 6) as usize];
    (dscp, ((mixed >> 8) % 5 * 1_000) as u16)
}

fn level(dscp: u8) -> usize {
    match dscp {
        46 => 0,
        34 | 36 => 1,
        _ => 2,
    }
}

/// Seven slices that send without end, the one with the flow queue, and best effort. Together
/// they pass the admission test: 8 · 6072 B + 1518 B take 0.4 ms.
fn rig(inner: &FlowQueueParams) -> (Rig, u32) {
    let mut slices = vec![guaranteed(RATE, BURST, OBJECTIVE); 7];
    slices.push(best_effort(1));
    let mut rig = Rig::new(&params(&[1]), &slices, LINK);
    let own = guaranteed(RATE, BURST, OBJECTIVE);
    let id = rig
        .scheduler
        .add_flow_queued_slice(&own, inner, Instant::ZERO)
        .unwrap();
    rig.tag = tag;
    (rig, id.index())
}

/// Frames of those who keep to nothing, until `until`.
fn floods(until: u64) -> Vec<Arrival> {
    let gap = LARGEST_FRAME * 8 * 4;
    let frames = (0..8)
        .flat_map(|slice| (0..until / gap).map(move |n| arrival(n * gap, slice, LARGEST_FRAME)));
    frames.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The slice as a whole conforms, its frames overtake each other by level and flow: by the
    /// time a byte is due of one queue in order of arrival, as many bytes have left.
    #[test]
    fn a_conforming_slice_meets_the_bound_of_its_aggregate(
        frames in prop::collection::vec((0u64..400_000, 60u64..=LARGEST_FRAME), 50..300),
    ) {
        let (mut rig, id) = rig(&levels(PATIENT));
        let mut bucket = Conformance::new(RATE, BURST);
        let mut at = 0;
        let own: Vec<Arrival> = frames
            .iter()
            .map(|&(gap, bytes)| {
                // As early as it may, but for a pause now and then.
                at = bucket.earliest(at + gap.saturating_sub(300_000), bytes);
                bucket.on_frame(at, bytes);
                arrival(at, id, bytes)
            })
            .collect();
        let mut all = floods(at + 5_000_000);
        all.extend(&own);
        all.sort();
        rig.run(&all);

        let (mut left, mut arrived) = (0, 0);
        let mut arrivals = own.iter();
        let mut reached = 0;
        for sent in rig.sent.iter().filter(|sent| sent.slice == id) {
            left += sent.bytes;
            while arrived < left {
                let arrival = arrivals.next().unwrap();
                arrived += arrival.bytes;
                reached = arrival.at;
            }
            prop_assert!(
                sent.end <= reached + OBJECTIVE.nanos(),
                "byte {left} came at {reached} and left at {}", sent.end
            );
        }
        prop_assert_eq!(left, own.iter().map(|arrival| arrival.bytes).sum::<u64>());
    }
}

fn collect(rig: &mut Rig, dropped: &mut Vec<DropReason>) {
    while rig.pool.count_dropped().is_some() {}
    while let Some(frame) = rig.pool.poll_dropped() {
        dropped.push(frame.reason);
    }
}

/// A second of a busy link, on which the slice offers `rate` in frames of 1,000 B and gets what
/// it is guaranteed. Returns what was dropped, too.
fn overloaded(inner: &FlowQueueParams, rate: u64, tag: fn(u64) -> (u8, u16)) -> Overloaded {
    let until = 1_000_000_000;
    let (mut rig, id) = rig(inner);
    rig.tag = tag;
    let mut all = floods(until);
    let gap = 1_000 * 8 * 1_000_000_000 / rate;
    all.extend((0..until / gap).map(|n| arrival(n * gap, id, 1_000)));
    all.sort();
    let mut dropped = Vec::new();
    for arrival in &all {
        rig.send_until(arrival.at);
        rig.arrive(*arrival).unwrap();
        collect(&mut rig, &mut dropped);
    }
    let own = rig.sent.iter().filter(|sent| sent.slice == id);
    Overloaded {
        waits: own
            .map(|sent| (tag(sent.handle), sent.end - sent.arrival))
            .collect(),
        dropped,
    }
}

struct Overloaded {
    /// How long each frame of the slice waited, and its tag.
    waits: Vec<((u8, u16), u64)>,
    dropped: Vec<DropReason>,
}

impl Overloaded {
    /// The longest wait of the frames of a kind.
    fn longest(&self, kind: impl Fn(u8, u16) -> bool) -> u64 {
        let waits = self.waits.iter();
        let of_kind = waits.filter(|((dscp, flow), _)| kind(*dscp, *flow));
        of_kind.map(|(_, wait)| *wait).max().unwrap()
    }
}

#[test]
fn a_higher_level_of_a_slice_does_not_wait_for_a_lower_one() {
    // EF is a quarter of the guarantee, AF half of it, the rest three quarters.
    let overloaded = overloaded(&levels(PATIENT), RATE * 3 / 2, tag);
    let longest = |wanted| overloaded.longest(|dscp, _| level(dscp) == wanted);
    assert!(longest(0) <= OBJECTIVE.nanos(), "{}", longest(0));
    assert!(longest(2) > 100_000_000, "{}", longest(2));
    assert!(overloaded.dropped.is_empty());
}

/// One frame in 29 is of a flow of its own.
fn mostly_one_flow(handle: u64) -> (u8, u16) {
    let flow = if handle.is_multiple_of(29) { 4_000 } else { 0 };
    (0, flow)
}

#[test]
fn one_flow_of_a_slice_does_not_delay_another() {
    let spec = FlowQueueSpec {
        flows: FlowsSpec {
            flows: Some(64),
            ..FlowsSpec::default()
        },
        ..FlowQueueSpec::default()
    };
    let inner = flow_queue(spec, LINK);
    let overloaded = overloaded(&inner, 3 * RATE, mostly_one_flow);
    let longest = |wanted| overloaded.longest(|_, flow| flow == wanted);
    assert!(longest(4_000) <= OBJECTIVE.nanos(), "{}", longest(4_000));
    assert!(longest(0) > 100_000_000, "{}", longest(0));
    let dropped = &overloaded.dropped;
    assert!(dropped.len() > 10 && dropped.iter().all(|&reason| reason == DropReason::CoDel));
}

#[test]
fn a_removed_slice_gives_its_flow_queue_back() {
    let inner = levels(PATIENT);
    let (mut rig, id) = rig(&inner);
    let params: SliceParams = guaranteed(RATE, BURST, OBJECTIVE);
    let mut id = SliceId::new(id);
    for n in 0..10u64 {
        let at = Instant::from_nanos(n * 1_000_000);
        rig.arrive(arrival(at.nanos(), id.index(), 100)).unwrap();
        let _ = rig.scheduler.remove_slice(id, at).unwrap();
        rig.send_until((n + 1) * 1_000_000);
        id = rig
            .scheduler
            .add_flow_queued_slice(&params, &inner, at)
            .unwrap();
    }
    assert_eq!(rig.sent.len(), 10);
    assert_eq!(rig.scheduler.slices(), 9);
}

/// The first frame is of the lowest level, all others of the highest.
fn urgent_after_the_first(handle: u64) -> (u8, u16) {
    (if handle == 0 { 0 } else { 46 }, 0)
}

fn first(rig: &mut Rig, at: u64) -> Selected {
    match rig.scheduler.select(&rig.pool, Instant::from_nanos(at)) {
        Selection::Ready(selected) => selected,
        other => panic!("a frame may leave: {other:?}"),
    }
}

#[test]
fn a_frame_that_overtakes_within_its_slice_is_due_when_the_overtaken_one_was() {
    let (mut rig, id) = rig(&levels(PATIENT));
    rig.tag = urgent_after_the_first;
    // Another slice's frame is due between the two of this one, counted from their arrivals.
    for (at, slice) in [(0, id), (200_000, 0), (500_000, id)] {
        rig.arrive(arrival(at, slice, 1_000)).unwrap();
    }
    let selected = first(&mut rig, 500_000);
    assert_eq!((selected.slice.index(), selected.guaranteed), (id, true));
}

#[test]
fn a_short_frame_that_overtakes_one_without_tokens_may_use_those_that_are_there() {
    let inner = levels(PATIENT);
    let mut rig = Rig::new(&params(&[1]), &[best_effort(1)], LINK);
    let own = guaranteed(1_000_000, LARGEST_FRAME, OBJECTIVE);
    let id = rig
        .scheduler
        .add_flow_queued_slice(&own, &inner, Instant::ZERO)
        .unwrap();
    // All tokens are spent at first. The next frame earns its own in 12 ms.
    rig.tag = |handle| (if handle < 2 { 0 } else { 46 }, 0);
    let arrival = |at, bytes| arrival(at, id.index(), bytes);
    rig.arrive(arrival(0, LARGEST_FRAME)).unwrap();
    rig.arrive(arrival(0, LARGEST_FRAME)).unwrap();
    rig.send_until(1);
    // In 1 ms it earns 125 B.
    rig.arrive(arrival(1_000_000, 60)).unwrap();
    let selected = first(&mut rig, 1_000_000);
    assert_eq!((selected.lengths.l2_bytes, selected.guaranteed), (60, true));
}
