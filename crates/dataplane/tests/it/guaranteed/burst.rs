//! Bursts decide as the same calls one by one do.

use super::rig::{Arrival, LARGEST_FRAME, arrival, best_effort, guaranteed, params, with_maximum};
use proptest::prelude::*;
use slicewise_dataplane::guaranteed::{self as scheduler, Guaranteed, Selection, SliceId};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_dataplane::{DropReason, Frame};
use slicewise_model::{Colour, QueueLimitParams};
use slicewise_units::{ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::TrafficClass;

/// How long a frame takes, ns: bursts leave at once, as a device's ring takes them.
const STEP: u64 = 12_000;

fn rig() -> (Guaranteed, FramePool) {
    let mut limited = best_effort(2);
    limited.queue_limit = QueueLimitParams {
        packets: 3,
        bytes: ByteCount::new(u64::MAX),
        hysteresis: 0,
    };
    let slices = [
        guaranteed(5_000_000, 3_036, Duration::from_millis(5)),
        best_effort(1),
        limited,
        with_maximum(best_effort(1), 2_000_000, 3_036),
    ];
    let params = params(&[1]);
    let mut scheduler = Guaranteed::new(&params, slices.len());
    for slice in &slices {
        scheduler.add_slice(slice, Instant::ZERO).unwrap();
    }
    (scheduler, FramePool::with_capacity(1 << 12))
}

fn queued(handle: u64, arrival: Arrival) -> QueuedFrame {
    QueuedFrame::new(
        &Frame {
            handle,
            lengths: FrameLengths {
                l2_bytes: arrival.bytes as u32,
                l3_offset: 14,
            },
            traffic_class: TrafficClass::DEFAULT,
            colour: Colour::Green,
        },
        arrival.slice,
        Instant::from_nanos(arrival.at),
        0,
    )
}

/// Handles that left or were dropped, with the reason.
type Fate = Vec<(u64, Option<DropReason>)>;

fn in_bursts(rounds: &[(Vec<(u32, u64)>, usize)]) -> Fate {
    let (mut scheduler, mut pool) = rig();
    let (mut fate, mut handle) = (Vec::new(), 0);
    for (round, (arrivals, limit)) in (0..).zip(rounds) {
        let at = round * STEP;
        let arrivals: Vec<scheduler::Arrival> = arrivals
            .iter()
            .map(|&(slice, bytes)| {
                handle += 1;
                scheduler::Arrival {
                    slice: SliceId::new(slice),
                    queued: queued(handle, Arrival { at, slice, bytes }),
                }
            })
            .collect();
        scheduler.enqueue_burst(&arrivals, &mut pool, |arrival, reason| {
            fate.push((arrival.queued.handle(), Some(reason)));
        });
        let mut left = Vec::new();
        let now = Instant::from_nanos(at);
        let taken = scheduler.dequeue_burst(*limit, &mut left, &mut pool, now);
        assert_eq!(taken, left.len());
        assert!(taken <= *limit);
        fate.extend(left.iter().map(|left| (left.queued.handle(), None)));
    }
    fate
}

fn one_by_one(rounds: &[(Vec<(u32, u64)>, usize)]) -> Fate {
    let (mut scheduler, mut pool) = rig();
    let (mut fate, mut handle) = (Vec::new(), 0);
    for (round, (arrivals, limit)) in (0..).zip(rounds) {
        let at = round * STEP;
        for &(slice, bytes) in arrivals {
            handle += 1;
            let frame = queued(handle, arrival(at, slice, bytes));
            if let Err(reason) = scheduler.try_enqueue(SliceId::new(slice), frame, &mut pool) {
                fate.push((handle, Some(reason)));
            }
        }
        let now = Instant::from_nanos(at);
        for _ in 0..*limit {
            let Selection::Ready(next) = scheduler.select(&pool, now) else {
                break;
            };
            let left = scheduler.take(next.slice, next.guaranteed, &mut pool, now);
            fate.push((left.handle(), None));
        }
    }
    fate
}

proptest! {
    #[test]
    fn bursts_drop_and_send_what_the_same_calls_one_by_one_do(
        rounds in prop::collection::vec(
            (prop::collection::vec((0..4u32, 60..=LARGEST_FRAME), 0..40), 0..40usize),
            1..30,
        )
    ) {
        let fate = in_bursts(&rounds);
        prop_assert_eq!(&fate, &one_by_one(&rounds));
    }
}
