//! A link behind a guaranteed scheduler, and a plain token bucket to check conformance.

use slicewise_dataplane::guaranteed::{Guaranteed, Selection, SliceId, WAKES_PER_CALL};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_dataplane::{DropReason, Frame, LinkClock};
use slicewise_model::{
    ClassSpec, Colour, DelayRange, Discipline, FlowQueueParams, FlowQueueSpec, GuaranteeParams,
    GuaranteedParams, MaximumParams, PolicySpec, QueueLimitParams, SliceParams, TenantParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::{Ecn, TrafficClass};

pub const LARGEST_FRAME: u64 = 1518;

pub fn params(tenants: &[u32]) -> GuaranteedParams {
    GuaranteedParams {
        accounting: Accounting::L2,
        largest_frame: ByteCount::new(LARGEST_FRAME),
        delays: DelayRange::new(Duration::from_micros(10), Duration::from_millis(50)),
        tenants: tenants
            .iter()
            .map(|&weight| TenantParams {
                name: format!("tenant of weight {weight}"),
                weight,
            })
            .collect(),
    }
}

/// Flow queues of a class on a link of `link` bit/s; by default the target is 5 ms, and the interval 100 ms.
pub fn flow_queue(spec: FlowQueueSpec, link: u64) -> FlowQueueParams {
    let class = ClassSpec {
        queue: spec.into(),
        ..ClassSpec::class_default()
    };
    let policy = PolicySpec {
        name: "p".into(),
        classes: vec![class],
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    };
    let policy = policy.resolve(BitRate::new(link)).unwrap();
    policy.classes[0].queue.flow_queue().unwrap()
}

/// Best effort, with room for everything.
pub fn best_effort(weight: u32) -> SliceParams {
    SliceParams {
        guarantee: None,
        maximum: None,
        weight,
        tenant: 0,
        queue_limit: QueueLimitParams {
            packets: u32::MAX,
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 0,
        },
    }
}

pub fn guaranteed(rate: u64, burst: u64, objective: Duration) -> SliceParams {
    SliceParams {
        guarantee: Some(GuaranteeParams {
            rate: BitRate::new(rate),
            burst: ByteCount::new(burst),
            delay: objective,
            smallest_frame: ByteCount::ZERO,
        }),
        ..best_effort(1)
    }
}

pub fn with_maximum(mut slice: SliceParams, rate: u64, burst: u64) -> SliceParams {
    slice.maximum = Some(MaximumParams {
        rate: BitRate::new(rate),
        burst: ByteCount::new(burst),
    });
    slice
}

/// A frame that left.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub slice: u32,
    pub handle: u64,
    pub bytes: u64,
    pub arrival: u64,
    /// When its last bit had left.
    pub end: u64,
    /// When its first bit left.
    pub start: u64,
    pub guaranteed: bool,
    /// It carries a mark of congestion.
    pub marked: bool,
}

/// A frame to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    pub at: u64,
    pub slice: u32,
    pub bytes: u64,
}

pub const fn arrival(at: u64, slice: u32, bytes: u64) -> Arrival {
    Arrival { at, slice, bytes }
}

pub struct Rig {
    pub scheduler: Guaranteed,
    pub pool: FramePool,
    pub link: LinkClock,
    pub sent: Vec<Sent>,
    pub handles: u64,
    /// Code point and flow of a frame, by its handle.
    pub tag: fn(u64) -> (u8, u16),
    /// Of frames that arrive.
    pub ecn: Ecn,
    now: u64,
}

impl Rig {
    pub fn new(params: &GuaranteedParams, slices: &[SliceParams], rate: u64) -> Self {
        let mut scheduler = Guaranteed::new(params, slices.len());
        for slice in slices {
            scheduler.add_slice(slice, Instant::ZERO).unwrap();
        }
        Self {
            scheduler,
            pool: FramePool::with_capacity(1 << 20),
            link: LinkClock::new(BitRate::new(rate)),
            sent: Vec::new(),
            handles: 0,
            tag: |_| (0, 0),
            ecn: Ecn::NotEct,
            now: 0,
        }
    }

    pub fn arrive(&mut self, arrival: Arrival) -> Result<(), DropReason> {
        let (dscp, flow) = (self.tag)(self.handles);
        let frame = Frame {
            handle: self.handles,
            lengths: FrameLengths {
                l2_bytes: arrival.bytes as u32,
                l3_offset: 14,
            },
            traffic_class: TrafficClass::new(dscp, self.ecn),
            colour: Colour::Green,
        };
        self.handles += 1;
        let id = SliceId::new(arrival.slice);
        let queued = QueuedFrame::new(&frame, arrival.slice, Instant::from_nanos(arrival.at), flow);
        self.scheduler.try_enqueue(id, queued, &mut self.pool)
    }

    pub fn arrive_all(&mut self, arrivals: impl IntoIterator<Item = Arrival>) {
        for arrival in arrivals {
            self.arrive(arrival).unwrap();
        }
    }

    /// Send what can be sent before `until`. The link is never left idle while a frame may go.
    pub fn send_until(&mut self, until: u64) {
        loop {
            let now = self.now.max(self.link.free_at().nanos());
            if now >= until {
                return;
            }
            self.now = now;
            let at = Instant::from_nanos(now);
            let asleep = self.scheduler.sleeping_slices();
            let selection = self.scheduler.select(&self.pool, at);
            let woken = asleep.saturating_sub(self.scheduler.sleeping_slices());
            assert!(woken <= WAKES_PER_CALL, "{woken} slices woken in a call");
            match selection {
                Selection::Ready(selected) => {
                    let queued = self.scheduler.take(
                        selected.slice,
                        selected.guaranteed,
                        &mut self.pool,
                        at,
                    );
                    let bytes = u64::from(queued.lengths().l2_bytes);
                    let end = self.link.send(ByteCount::new(bytes), at);
                    self.sent.push(Sent {
                        slice: selected.slice.index(),
                        handle: queued.handle(),
                        bytes,
                        arrival: queued.arrival().nanos(),
                        start: now,
                        end: end.nanos(),
                        guaranteed: selected.guaranteed,
                        marked: queued.is_marked(),
                    });
                }
                Selection::Wait(next) => {
                    assert!(next > at, "a wait ends later");
                    self.now = next.nanos().min(until);
                }
                Selection::Empty => {
                    self.now = until;
                    return;
                }
            }
        }
    }

    /// Offer `arrivals`, in order of time, and send everything. Nothing may be dropped.
    pub fn run(&mut self, arrivals: &[Arrival]) {
        for arrival in arrivals {
            self.send_until(arrival.at);
            self.arrive(*arrival).unwrap();
        }
        self.send_until(u64::MAX);
        assert_eq!(self.scheduler.backlog(), 0);
    }

    /// Every slice's frames left in the order they came.
    pub fn assert_in_order(&self) {
        let slices = self.sent.iter().map(|sent| sent.slice).max().unwrap_or(0) as usize + 1;
        let mut last = vec![None; slices];
        for sent in &self.sent {
            let last = &mut last[sent.slice as usize];
            assert!(
                *last < Some(sent.handle),
                "slice {} is reordered",
                sent.slice
            );
            *last = Some(sent.handle);
        }
    }
}

/// Computes how much a slice may send to conform: in exact fractions, and written differently from
/// what is tested.
#[derive(Debug, Clone, Copy)]
pub struct Conformance {
    rate: u128,
    burst: u128,
    /// Theoretical arrival time × rate, nanobits (ITU-T I.371's virtual scheduling).
    theoretical: u128,
}

impl Conformance {
    pub fn new(rate: u64, burst: u64) -> Self {
        Self {
            rate: u128::from(rate),
            burst: u128::from(burst) * 8_000_000_000,
            theoretical: 0,
        }
    }

    /// The earliest time, not before `at`, at which a frame of `bytes` conforms.
    pub fn earliest(&self, at: u64, bytes: u64) -> u64 {
        let cost = u128::from(bytes) * 8_000_000_000;
        let needed = (self.theoretical + cost).saturating_sub(self.burst);
        at.max(needed.div_ceil(self.rate) as u64)
    }

    pub fn on_frame(&mut self, at: u64, bytes: u64) {
        let cost = u128::from(bytes) * 8_000_000_000;
        self.theoretical = self.theoretical.max(u128::from(at) * self.rate) + cost;
    }
}
