//! The longest calls when a million slices become eligible at one moment.

use crate::kinds::{MILLION, clock};
use slicewise_dataplane::Frame;
use slicewise_dataplane::guaranteed::{Guaranteed, Selection, SliceId};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_model::{
    Colour, DelayRange, GuaranteeParams, GuaranteedParams, MaximumParams, QueueLimitParams,
    SliceParams, TenantParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::TrafficClass;

const LINK_BITS_PER_SECOND: u64 = 100_000_000_000;
const FRAME_BYTES: u32 = 1_500;
const FRAME_NS: u64 = FRAME_BYTES as u64 * 8 * 1_000_000_000 / LINK_BITS_PER_SECOND;
/// bit/s of a slice: 90 % of the link in all.
const RATE: u64 = LINK_BITS_PER_SECOND / MILLION as u64 / 10 * 9;

/// Processor time in ns of the longest call, and of the longest but for one in 1,000: interrupts make single calls long.
/// Two frames of each slice come at once. What counts is from when all of the first have left; the second is eligible at
/// the same time in all slices.
pub fn longest_calls() -> (u64, u64) {
    let (mut scheduler, mut pool) = scheduler();
    for id in (0..MILLION).map(SliceId::new) {
        for _ in 0..2 {
            let queued = scheduler.try_enqueue(id, frame(id), &mut pool);
            queued.expect("the queue has room");
        }
    }
    let (mut now, mut left) = (0, 0);
    let mut calls = Vec::with_capacity(2 * MILLION as usize);
    while left < 2 * MILLION {
        let at = Instant::from_nanos(now);
        let start = clock();
        let selection = scheduler.select(&pool, at);
        if let Selection::Ready(next) = selection {
            scheduler.take(next.slice, next.guaranteed, &mut pool, at);
        }
        let took = clock() - start;
        if left >= MILLION {
            calls.push(took);
        }
        match selection {
            Selection::Ready(_) => (now, left) = (now + FRAME_NS, left + 1),
            Selection::Wait(until) => now = until.nanos(),
            Selection::Empty => unreachable!("frames wait"),
        }
    }
    calls.sort_unstable();
    (
        calls[calls.len() - 1],
        calls[calls.len() - calls.len() / 1_000],
    )
}

fn scheduler() -> (Guaranteed, FramePool) {
    let delays = DelayRange::new(Duration::from_micros(10), Duration::from_millis(200));
    let (rate, burst) = (BitRate::new(RATE), ByteCount::new(u64::from(FRAME_BYTES)));
    let slice = SliceParams {
        guarantee: Some(GuaranteeParams {
            rate,
            burst,
            delay: delays.longest(),
            smallest_frame: ByteCount::ZERO,
        }),
        maximum: Some(MaximumParams { rate, burst }),
        weight: 1,
        tenant: 0,
        queue_limit: QueueLimitParams {
            packets: 2,
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 0,
        },
    };
    let params = GuaranteedParams {
        accounting: Accounting::L2,
        largest_frame: burst,
        delays,
        tenants: vec![TenantParams {
            name: "all".into(),
            weight: 1,
        }],
    };
    let mut scheduler = Guaranteed::new(&params, MILLION as usize);
    for _ in 0..MILLION {
        let added = scheduler.add_slice(&slice, Instant::ZERO);
        added.expect("the tenant exists");
    }
    (scheduler, FramePool::with_capacity(2 * MILLION))
}

fn frame(slice: SliceId) -> QueuedFrame {
    let descriptor = Frame {
        handle: 0,
        lengths: FrameLengths {
            l2_bytes: FRAME_BYTES,
            l3_offset: 14,
        },
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    };
    QueuedFrame::new(&descriptor, slice.index(), Instant::ZERO, 0)
}
