//! Any sequence of frames, changes of slices and time keeps every frame, in order, and ends.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use slicewise_dataplane::{Frame, TrafficClass};
use slicewise_dataplane::guaranteed::{Guaranteed, Selection, SliceId};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_model::{
    Colour, DelayRange, GuaranteeParams, GuaranteedParams, MaximumParams, QueueLimitParams,
    SliceParams, TenantParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Instant};

const LARGEST_FRAME: u64 = 1522;

#[derive(Debug, Arbitrary)]
struct Promise {
    guarantee: Option<(u64, u32, u32)>,
    maximum: Option<(u64, u32)>,
    weight: u32,
    tenant: bool,
    packets: u8,
}

#[derive(Debug, Arbitrary)]
enum Step {
    Frame { slice: u8, bytes: u16 },
    Add(Promise),
    Change(u8, Promise),
    Remove(u8),
    Send { frames: u8 },
    Pass { nanos: u32 },
}

fn slice(promise: &Promise, delays: DelayRange) -> SliceParams {
    let burst = |bytes: u32| ByteCount::new(u64::from(bytes).max(LARGEST_FRAME));
    SliceParams {
        guarantee: promise.guarantee.map(|(rate, bytes, micros)| GuaranteeParams {
            rate: BitRate::new(rate.clamp(1, BitRate::MAX.bits_per_second())),
            burst: burst(bytes),
            delay: Duration::from_micros(u64::from(micros)).clamp(delays.shortest(), delays.longest()),
            smallest_frame: ByteCount::new(rate % LARGEST_FRAME),
        }),
        maximum: promise.maximum.map(|(rate, bytes)| MaximumParams {
            rate: BitRate::new(rate.clamp(1, BitRate::MAX.bits_per_second())),
            burst: burst(bytes),
        }),
        weight: promise.weight,
        tenant: u32::from(promise.tenant),
        queue_limit: QueueLimitParams {
            packets: u32::from(promise.packets),
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 0,
        },
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let delays = DelayRange::new(Duration::from_micros(10), Duration::from_millis(100));
    let tenant = |weight| TenantParams {
        name: weight_name(weight),
        weight,
    };
    let params = GuaranteedParams {
        accounting: Accounting::L2,
        largest_frame: ByteCount::new(LARGEST_FRAME),
        delays,
        tenants: vec![tenant(1), tenant(3)],
    };
    let mut scheduler = Guaranteed::new(&params, 0);
    let mut pool = FramePool::with_capacity(1 << 12);
    let mut now = 0u64;
    let (mut accepted, mut sent) = (0u64, 0u64);
    for step in steps {
        let at = Instant::from_nanos(now);
        match step {
            Step::Frame { slice, bytes } => {
                let frame = Frame {
                    handle: accepted,
                    lengths: FrameLengths {
                        l2_bytes: u32::from(bytes),
                        l3_offset: 14,
                    },
                    traffic_class: TrafficClass::DEFAULT,
                    colour: Colour::Green,
                };
                let queued = QueuedFrame::new(&frame, 0, at, 0);
                let id = SliceId::new(u32::from(slice));
                accepted += u64::from(scheduler.try_enqueue(id, queued, &mut pool).is_ok());
            }
            Step::Add(promise) => drop(scheduler.add_slice(&slice(&promise, delays), at)),
            Step::Change(id, promise) => {
                let id = SliceId::new(u32::from(id));
                let _ = scheduler.change_slice(id, &slice(&promise, delays), &pool, at);
            }
            Step::Remove(id) => drop(scheduler.remove_slice(SliceId::new(u32::from(id)), at)),
            Step::Send { frames } => {
                for _ in 0..frames {
                    sent += u64::from(scheduler.dequeue(&mut pool, at).is_some());
                }
            }
            Step::Pass { nanos } => now += u64::from(nanos),
        }
    }
    while scheduler.backlog() > 0 {
        match scheduler.select(&pool, Instant::from_nanos(now)) {
            Selection::Ready(next) => {
                let at = Instant::from_nanos(now);
                scheduler.take(next.slice, next.guaranteed, &mut pool, at);
                sent += 1;
            }
            Selection::Wait(until) => {
                assert!(until.nanos() > now, "a wait ends later");
                now = until.nanos();
            }
            Selection::Empty => unreachable!("frames wait"),
        }
    }
    assert_eq!(sent, accepted);
});

fn weight_name(weight: u32) -> String {
    format!("weight {weight}")
}
