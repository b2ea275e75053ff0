//! A scheduler of slices behind the few calls the scenarios need.

use crate::workload::{
    LINK_BITS_PER_SECOND, PACKET_BYTES, QUEUE_PACKETS, SHAPED_BURST_BYTES, Scenario,
    maximum_bits_per_second,
};
use slicewise_dataplane::Frame;
use slicewise_dataplane::guaranteed::{Guaranteed, READ_AHEAD, SliceId};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_model::{
    Colour, DelayRange, GuaranteeParams, GuaranteedParams, MaximumParams, QueueLimitParams,
    SliceParams, TenantParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::TrafficClass;

/// A scheduler under measurement.
pub trait Contender {
    /// Its name in the report.
    const NAME: &'static str;

    /// A scheduler of `slices` empty slices, numbered from 0, with the limits `scenario` sets.
    fn new(slices: u32, scenario: Scenario) -> Self;

    /// Bytes of state of all slices while their queues are empty.
    fn state_bytes(&self) -> usize;

    /// Take packets (slice, bytes, handle). Returns how many were not dropped.
    fn enqueue(&mut self, burst: &[(u32, u32, u64)], now_ns: u64) -> usize;

    /// Append up to `max` packets (slice, handle) that may be sent now to `out`.
    fn dequeue(&mut self, out: &mut Vec<(u32, u64)>, max: usize, now_ns: u64);
}

/// The scheduler of this project. Every slice has a guarantee with a delay bound, a weight and,
/// where shaped, a maximum.
pub struct GuaranteedSlices {
    scheduler: Guaranteed,
    pool: FramePool,
    slices: Vec<SliceId>,
}

/// Lengths of every frame of the benchmark.
const LENGTHS: FrameLengths = FrameLengths {
    l2_bytes: PACKET_BYTES,
    l3_offset: 14,
};
/// Most frames in all queues.
const POOL_FRAMES: u32 = 8 << 20;

fn slice_params(slices: u32, scenario: Scenario) -> SliceParams {
    let maximum = maximum_bits_per_second(scenario, slices);
    let burst = ByteCount::new(u64::from(SHAPED_BURST_BYTES));
    // Nine tenths of the link, or of the maximum, are guaranteed.
    let promised = maximum.min(LINK_BITS_PER_SECOND / u64::from(slices)) / 10 * 9;
    SliceParams {
        guarantee: Some(GuaranteeParams {
            rate: BitRate::new(promised.max(1)),
            burst: ByteCount::new(u64::from(PACKET_BYTES)),
            delay: Duration::from_millis(10),
            smallest_frame: ByteCount::ZERO,
        }),
        maximum: (maximum < LINK_BITS_PER_SECOND).then_some(MaximumParams {
            rate: BitRate::new(maximum),
            burst,
        }),
        weight: 1,
        tenant: 0,
        queue_limit: QueueLimitParams {
            packets: u32::try_from(QUEUE_PACKETS).unwrap_or(u32::MAX),
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 0,
        },
    }
}

impl Contender for GuaranteedSlices {
    const NAME: &'static str = "guaranteed: every slice with a delay bound and a weight";

    fn new(slices: u32, scenario: Scenario) -> Self {
        let slice = slice_params(slices, scenario);
        let params = GuaranteedParams {
            accounting: Accounting::L2,
            largest_frame: ByteCount::new(1518),
            delays: DelayRange::new(Duration::from_micros(10), Duration::from_millis(10)),
            tenants: vec![TenantParams {
                name: "all".into(),
                weight: 1,
            }],
        };
        let mut scheduler = Guaranteed::new(&params, slices as usize);
        for _ in 0..slices {
            scheduler
                .add_slice(&slice, Instant::ZERO)
                .expect("the tenant exists");
        }
        Self {
            scheduler,
            pool: FramePool::with_capacity(POOL_FRAMES),
            slices: Vec::with_capacity(64),
        }
    }

    fn state_bytes(&self) -> usize {
        self.scheduler.slices() as usize * Guaranteed::bytes_per_slice()
            + Guaranteed::bytes_of_calendars()
    }

    fn enqueue(&mut self, burst: &[(u32, u32, u64)], now_ns: u64) -> usize {
        self.slices.clear();
        self.slices
            .extend(burst.iter().map(|&(slice, ..)| SliceId::new(slice)));
        self.scheduler.arrivals_ahead(&self.slices, &self.pool);
        let mut is_queued = |&(slice, _, handle): &(u32, u32, u64)| {
            let frame = Frame {
                handle,
                lengths: LENGTHS,
                traffic_class: TrafficClass::DEFAULT,
                colour: Colour::Green,
            };
            let queued = QueuedFrame::new(&frame, 0, Instant::from_nanos(now_ns), 0);
            let slice = SliceId::new(slice);
            let queued = self.scheduler.try_enqueue(slice, queued, &mut self.pool);
            queued.is_ok()
        };
        burst.iter().filter(|frame| is_queued(frame)).count()
    }

    fn dequeue(&mut self, out: &mut Vec<(u32, u64)>, max: usize, now_ns: u64) {
        let now = Instant::from_nanos(now_ns);
        for number in 0..max {
            if number % READ_AHEAD == 0 {
                self.scheduler.departures_ahead(&self.pool, now);
            }
            let Some((slice, queued)) = self.scheduler.dequeue(&mut self.pool, now) else {
                return;
            };
            out.push((slice.index(), queued.handle()));
        }
    }
}
