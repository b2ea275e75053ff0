//! How long frames stay in the device's scheduler, for comparison with the bound that a guarantee proves.
//!
//! The bound counts from a frame's eligible time. Frames of a class leave in the order in which they were
//! queued, so the token bucket that determines this time can be computed as they leave. It differs from the
//! scheduler's bucket: it saves no credit and is charged for every frame, including those sent as excess. Such a
//! charge only makes later frames eligible later, so a bound that the scheduler keeps from its own eligible
//! times also holds from these.

use crate::packet::Packet;
use slicewise_dataplane::Classifier;
use slicewise_model::{GuaranteeParams, PolicyParams};
use slicewise_stats::record::SchedulerFigures;
use slicewise_units::{Accounting, Instant, NANOS_PER_SECOND};
use slicewise_wire::Headers;

/// The longest time in the scheduler for each slice of a run.
#[derive(Debug, Clone, Default)]
pub struct SchedulerDelays {
    /// Bytes of a frame that the guarantees count.
    accounting: Accounting,
    /// One a class of the policy.
    classes: Vec<Option<Eligibility>>,
    /// The class of each flow of the network.
    class_of_flow: Vec<usize>,
    /// By slice; those of which no frame has left may be missing.
    slices: Vec<Longest>,
}

/// The longest times of a slice.
#[derive(Debug, Clone, Copy, Default)]
struct Longest {
    delay_ns: u64,
    /// [`UNKNOWN`] if that of any frame is.
    after_eligible_ns: u64,
    /// On a link faster than a terabit per second a frame may leave in no time.
    has_left: bool,
}

/// No time, and longer than any: that of a class without a guarantee.
const UNKNOWN: u64 = u64::MAX;

impl SchedulerDelays {
    /// Of a device under `policy`, and of the flows with these headers, in the network's order.
    #[must_use]
    pub fn new<'h>(policy: &PolicyParams, flows: impl Iterator<Item = &'h Headers>) -> Self {
        let Some(guaranteed) = &policy.guaranteed else {
            return Self::default();
        };
        let classes = policy.classes.iter().map(|class| {
            let guarantee = class.slice?.guarantee?;
            // Frames of a flow queue overtake each other.
            class
                .queue
                .keeps_order()
                .then(|| Eligibility::new(guarantee))
        });
        let classifier = Classifier::new(policy);
        let class = |headers| classifier.classify(headers) as usize;
        Self {
            accounting: guaranteed.accounting,
            classes: classes.collect(),
            class_of_flow: flows.map(class).collect(),
            slices: Vec::new(),
        }
    }

    /// The last bit of a packet of `slice` leaves at `left`.
    #[inline(always)]
    pub fn on_forwarded(&mut self, slice: usize, packet: &Packet, left: Instant) {
        let delay_ns = left.saturating_since(packet.queued_at).nanos();
        let longest = match self.slices.get_mut(slice) {
            Some(longest) => longest,
            None => self.add_slices(slice),
        };
        longest.delay_ns = longest.delay_ns.max(delay_ns);
        longest.has_left = true;
        if !self.classes.is_empty() {
            self.on_eligible(slice, packet, left);
        }
    }

    /// The same under a policy with guarantees. Not inlined, as most policies have none.
    #[inline(never)]
    fn on_eligible(&mut self, slice: usize, packet: &Packet, left: Instant) {
        let after_eligible_ns = self.after_eligible(packet, left).unwrap_or(UNKNOWN);
        let longest = &mut self.slices[slice].after_eligible_ns;
        *longest = after_eligible_ns.max(*longest);
    }

    #[cold]
    fn add_slices(&mut self, last: usize) -> &mut Longest {
        self.slices.resize(last + 1, Longest::default());
        &mut self.slices[last]
    }

    /// How long after its eligible time a packet leaves, if its class has a guarantee.
    fn after_eligible(&mut self, packet: &Packet, left: Instant) -> Option<u64> {
        let class = *self.class_of_flow.get(usize::from(packet.flow))?;
        let class = self.classes.get_mut(class)?.as_mut()?;
        let bytes = self.accounting.count(packet.lengths()).bytes();
        let eligible_at = class.on_frame(packet.queued_at, bytes);
        Some(left.saturating_since(eligible_at).nanos())
    }

    /// The longest times of a slice; `None` if none of its frames has left.
    #[must_use]
    pub fn of_slice(&self, slice: usize) -> Option<SchedulerFigures> {
        let longest = self.slices.get(slice).filter(|longest| longest.has_left)?;
        let after_eligible_ns = longest.after_eligible_ns;
        let is_known = !self.classes.is_empty() && after_eligible_ns != UNKNOWN;
        Some(SchedulerFigures {
            delay_max_ns: longest.delay_ns,
            after_eligible_max_ns: is_known.then_some(after_eligible_ns),
        })
    }
}

/// When the frames of a class are eligible: virtual scheduling, as in ITU-T I.371.
#[derive(Debug, Clone, Copy)]
struct Eligibility {
    /// bit/s.
    rate: u128,
    /// Nanobits.
    burst: u128,
    /// Cost of the smallest frame, nanobits.
    smallest: u128,
    /// The time at which the rate will have paid for all frames so far, times the rate, nanobits.
    paid_at: u128,
}

impl Eligibility {
    fn new(guarantee: GuaranteeParams) -> Self {
        Self {
            rate: u128::from(guarantee.rate.bits_per_second().max(1)),
            burst: nanobits(guarantee.burst.bytes()),
            smallest: nanobits(guarantee.smallest_frame.bytes()),
            paid_at: 0,
        }
    }

    /// When the next frame of the class is eligible, which was queued at `queued_at`.
    #[inline]
    fn on_frame(&mut self, queued_at: Instant, bytes: u64) -> Instant {
        let cost = nanobits(bytes).max(self.smallest);
        // A frame longer than the burst waits for all of it.
        let due = (self.paid_at + cost.min(self.burst)).saturating_sub(self.burst);
        let due = u64::try_from(due.div_ceil(self.rate)).unwrap_or(u64::MAX);
        let eligible_at = queued_at.max(Instant::from_nanos(due));
        let from = u128::from(eligible_at.nanos()) * self.rate;
        self.paid_at = self.paid_at.max(from) + cost;
        eligible_at
    }
}

fn nanobits(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * u128::from(NANOS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slicewise_dataplane::TokenBucket;
    use slicewise_model::Rate;
    use slicewise_units::{BitRate, ByteCount, Duration, FrameLengths};
    use slicewise_wire::TrafficClass;

    #[test]
    fn a_frame_that_leaves_in_no_time_has_left() {
        let packet = Packet {
            sent_at: Instant::ZERO,
            queued_at: Instant::from_nanos(5),
            sequence: 0,
            l2_bytes: 60,
            flow: 0,
            l3_offset: 14,
            traffic_class: TrafficClass::DEFAULT,
        };
        let mut delays = SchedulerDelays::default();
        assert!(delays.of_slice(0).is_none());
        delays.on_forwarded(0, &packet, Instant::from_nanos(5));
        assert_eq!(
            delays.of_slice(0).map(|figures| figures.delay_max_ns),
            Some(0)
        );
    }

    proptest! {
        /// Compare with the data plane's token bucket, which stores credit instead.
        #[test]
        fn a_frame_is_eligible_once_a_token_bucket_pays_for_it(
            rate in 1_000u64..100_000_000,
            burst in 1_514u64..10_000,
            frames in prop::collection::vec((0u64..3_000_000, 60u32..1_515), 1..200),
        ) {
            let guarantee = GuaranteeParams {
                rate: BitRate::new(rate),
                burst: ByteCount::new(burst),
                delay: Duration::from_millis(1),
                smallest_frame: ByteCount::ZERO,
            };
            let rate = Rate { rate: guarantee.rate, accounting: Accounting::L2 };
            let mut bucket = TokenBucket::full(rate, guarantee.burst, Instant::ZERO);
            let (mut class, mut now) = (Eligibility::new(guarantee), Instant::ZERO);
            let mut last = Instant::ZERO;
            for (gap, l2_bytes) in frames {
                now = now.saturating_add(Duration::from_nanos(gap));
                let cost = bucket.cost(FrameLengths { l2_bytes, l3_offset: 14 });
                bucket.refill(now.max(last));
                let expected = now.max(last).max(bucket.ready_at(cost).unwrap());
                bucket.refill(expected);
                bucket.spend(cost);
                last = class.on_frame(now, u64::from(l2_bytes));
                prop_assert_eq!(last, expected);
            }
        }
    }
}
