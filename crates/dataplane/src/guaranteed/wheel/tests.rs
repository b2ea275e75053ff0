//! Slices that are to wake, but that one call may not wake any more.

use super::*;
use crate::frame::Frame;
use crate::guaranteed::{Guaranteed, Removal, SliceId};
use crate::queue::{FramePool, QueuedFrame};
use slicewise_model::{
    Colour, GuaranteeParams, GuaranteedParams, QueueLimitParams, SliceParams, TenantParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::TrafficClass;

const FRAME_BYTES: u32 = 1_000;

fn scheduler() -> (Guaranteed, FramePool) {
    let params = GuaranteedParams {
        accounting: Accounting::L2,
        largest_frame: ByteCount::new(u64::from(FRAME_BYTES)),
        delays: DelayRange::new(Duration::from_millis(1), Duration::from_millis(50)),
        tenants: vec![TenantParams {
            name: "all".into(),
            weight: 1,
        }],
    };
    (Guaranteed::new(&params, 0), FramePool::with_capacity(1_000))
}

/// Adds a slice whose bucket holds one frame, with two frames; takes the first out.
fn waiting_slice(scheduler: &mut Guaranteed, pool: &mut FramePool, rate: u64, now: Instant) {
    let params = SliceParams {
        guarantee: Some(GuaranteeParams {
            rate: BitRate::new(rate),
            burst: ByteCount::new(u64::from(FRAME_BYTES)),
            delay: Duration::from_millis(1),
            smallest_frame: ByteCount::ZERO,
        }),
        maximum: None,
        weight: 1,
        tenant: 0,
        queue_limit: QueueLimitParams {
            packets: 2,
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 0,
        },
    };
    let id = scheduler.add_slice(&params, now).unwrap();
    let frame = Frame {
        handle: 0,
        lengths: FrameLengths {
            l2_bytes: FRAME_BYTES,
            l3_offset: 14,
        },
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    };
    let queued = QueuedFrame::new(&frame, id.index(), now, 0);
    for _ in 0..2 {
        scheduler.try_enqueue(id, queued, pool).unwrap();
    }
    let first = scheduler.dequeue(pool, now);
    assert_eq!(first.map(|(slice, _)| slice), Some(id));
}

/// The calendar reaches 2.1 s. Slices that wait for longer are checked then, and take the wakes of the first call.
#[test]
fn a_slice_that_is_still_to_be_woken_makes_the_link_busy() {
    let (mut scheduler, mut pool) = scheduler();
    for _ in 0..WAKES_PER_CALL {
        waiting_slice(&mut scheduler, &mut pool, 1_000, Instant::ZERO);
    }
    let later = Instant::from_nanos(1_000_000_000);
    // Eligible after 1.5 s more.
    waiting_slice(&mut scheduler, &mut pool, 5_333, later);
    let stalled = Instant::from_nanos(2_600_000_000);
    assert!(scheduler.busy_period(stalled).is_some());
    assert!(scheduler.deadlines.front().is_none(), "it is not awake yet");
    assert!(scheduler.has_eligible(stalled));
    assert_eq!(
        scheduler.deadlines.front(),
        Some(WAKES_PER_CALL),
        "the second call wakes it"
    );
}

#[test]
fn slices_wake_early_by_the_frame_times_of_the_calls_that_take() {
    let (mut scheduler, mut pool) = scheduler();
    let rate = 10_000;
    let slices = 4 * WAKES_PER_CALL;
    for _ in 0..slices {
        waiting_slice(&mut scheduler, &mut pool, rate, Instant::ZERO);
    }
    let frame_time = u64::from(FRAME_BYTES) * 8 * 1_000_000_000 / rate / u64::from(slices);
    assert_eq!(scheduler.wheel.ahead, AHEAD_MAX * (512 << COARSER));
    assert!(scheduler.wheel.ahead < 4 * frame_time);
    // The same rate among fewer.
    scheduler.set_rates(100_000_000);
    assert_eq!(scheduler.wheel.ahead, 4 * 80_000);
    let removed = scheduler.remove_slice(SliceId::new(0), Instant::ZERO);
    assert_eq!(removed, Ok(Removal::Draining { packets: 1 }));
    assert_eq!(scheduler.rates, 100_000_000 - u128::from(rate));
}
