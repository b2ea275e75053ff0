//! Policies: ordered classes, their treatment, and how they share the link.

use crate::{
    AdmissionParams, BurstSpec, ClassMap, ElephantsParams, ElephantsSpec, GuaranteedParams,
    HqosParams, HqosSpec, NamedQueueParams, NamedQueueSpec, PolicerParams, PolicerSpec,
    PriorityParams, PrioritySpec, QueueParams, QueueSpec, Rate, RateSpec, ShaperParams, ShaperSpec,
    SliceParams,
};
use slicewise_units::{Accounting, ByteCount, Duration, FrameLengths};
use std::sync::Arc;

/// A frame with an IP packet of 1500 B behind two VLAN tags.
const DEFAULT_FRAME: FrameLengths = FrameLengths {
    l2_bytes: 1522,
    l3_offset: 22,
};

/// Name of the class for frames no other class matches; it always exists.
pub const CLASS_DEFAULT: &str = "class-default";

/// How classes without priority share the remaining rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Discipline {
    /// Guaranteed minimums first, then the excess by weight (deficit round robin).
    #[default]
    MinimumShare,
    /// Deficit round robin by weight alone; minimums are not allowed.
    DeficitRoundRobin,
    /// One queue for all of them, in arrival order.
    Fifo,
    /// Guaranteed rates with a delay bound first (earliest deadline first), then the excess by
    /// weight, tenant by tenant and class by class; guarantees have passed an admission test.
    Guaranteed,
}

/// A guarantee with a delay bound, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuaranteeSpec {
    /// Committed rate (CIR).
    pub rate: RateSpec,
    /// Committed burst (CBS); default 4 ms at the rate, at least two largest frames.
    pub burst: Option<BurstSpec>,
    /// Delay bound of frames within both; default the time the rate takes to send the burst.
    pub delay: Option<Duration>,
    /// The smallest frame, as `counts` counts it: smaller ones are charged as this. Default any.
    pub smallest_frame: Option<ByteCount>,
}

impl From<RateSpec> for GuaranteeSpec {
    /// A guarantee of `rate` with the default burst and delay.
    fn from(rate: RateSpec) -> Self {
        Self {
            rate,
            burst: None,
            delay: None,
            smallest_frame: None,
        }
    }
}

/// The most a slice may send, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaximumSpec {
    /// Peak rate (PIR).
    pub rate: RateSpec,
    /// Peak burst (PBS); default 4 ms at the rate, at least two largest frames.
    pub burst: Option<BurstSpec>,
}

impl From<RateSpec> for MaximumSpec {
    /// At most `rate`, with the default burst.
    fn from(rate: RateSpec) -> Self {
        Self { rate, burst: None }
    }
}

/// Parameters common to the classes of a guaranteed policy, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteedSpec {
    /// Accounting of guaranteed and maximum rates and bursts, the largest frame and the buffer.
    pub accounting: Accounting,
    /// The largest possible frame; default 1522 B of L2, as `accounting` counts them.
    pub largest_frame: Option<ByteCount>,
    /// The shortest delay that can be promised.
    pub shortest_delay: Duration,
    /// The longest delay class.
    pub longest_delay: Duration,
    /// Tenants and their weights; a policy without any has one tenant for all its classes.
    pub tenants: Vec<(String, u32)>,
    /// Buffer of all classes together, if limited.
    pub buffer: Option<ByteCount>,
}

impl Default for GuaranteedSpec {
    /// Frames of up to 1522 B as L2 counts them, delays from 10 us to 100 ms, no tenants.
    fn default() -> Self {
        Self {
            accounting: Accounting::L2,
            largest_frame: None,
            shortest_delay: Duration::from_micros(10),
            longest_delay: Duration::from_millis(100),
            tenants: Vec::new(),
            buffer: None,
        }
    }
}

impl GuaranteedSpec {
    /// The largest possible frame, as `accounting` counts it.
    #[must_use]
    pub fn largest_frame(&self) -> ByteCount {
        let default = || self.accounting.count(DEFAULT_FRAME);
        self.largest_frame.unwrap_or_else(default)
    }
}

/// One class of a policy, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSpec {
    /// Which frames; `None` only for [`CLASS_DEFAULT`].
    pub matches: Option<ClassMap>,
    /// The name of the class; `matches.name` where that is set.
    pub name: String,
    /// Meter and act at ingress.
    pub police: Option<PolicerSpec>,
    /// Set the DSCP of every packet of the class.
    pub set_dscp: Option<u8>,
    /// Low-latency queue.
    pub priority: Option<PrioritySpec>,
    /// Guaranteed minimum.
    pub minimum: Option<RateSpec>,
    /// Share of the excess relative to the other classes; default 1.
    pub weight: Option<u32>,
    /// Token-bucket shaping.
    pub shape: Option<ShaperSpec>,
    /// Its queue.
    pub queue: QueueSpec,
    /// DPDK's hierarchical scheduler instead of one queue.
    pub hqos: Option<Box<HqosSpec>>,
    /// The named queue of the policy in which it waits, instead of a queue of its own.
    pub named_queue: Option<String>,
    /// Its elephants wait in another queue.
    pub elephants: Option<ElephantsSpec>,
    /// Child policy that divides the class.
    pub child: Option<Box<PolicySpec>>,
    /// Guaranteed rate with a delay bound; only under [`Discipline::Guaranteed`].
    pub guarantee: Option<GuaranteeSpec>,
    /// Its maximum; only under [`Discipline::Guaranteed`].
    pub maximum: Option<MaximumSpec>,
    /// The tenant whose share of the excess it belongs to; only under [`Discipline::Guaranteed`].
    pub tenant: Option<String>,
}

impl ClassSpec {
    /// A class with nothing configured: one queue, best effort.
    #[must_use]
    pub fn new(matches: ClassMap) -> Self {
        Self {
            name: matches.name.clone(),
            matches: Some(matches),
            ..Self::class_default()
        }
    }

    /// The implicit class for everything else.
    #[must_use]
    pub fn class_default() -> Self {
        Self {
            matches: None,
            name: CLASS_DEFAULT.to_owned(),
            police: None,
            set_dscp: None,
            priority: None,
            minimum: None,
            weight: None,
            shape: None,
            queue: QueueSpec::default(),
            hqos: None,
            named_queue: None,
            elephants: None,
            child: None,
            guarantee: None,
            maximum: None,
            tenant: None,
        }
    }
}

/// A policy as written: classes in order of match. Class-default is added where absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySpec {
    /// The policy's name.
    pub name: String,
    /// Classes; a frame belongs to the first that matches.
    pub classes: Vec<ClassSpec>,
    /// How classes without priority share.
    pub discipline: Discipline,
    /// Parameters common to the classes of a guaranteed policy; not allowed under another discipline.
    pub guaranteed: Option<GuaranteedSpec>,
    /// Queues that several classes may use; not under the disciplines FIFO and guaranteed.
    pub queues: Vec<NamedQueueSpec>,
}

/// One validated class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassParams {
    /// The class's name.
    pub name: String,
    /// Which frames; `None` for class-default, which takes the rest.
    pub matches: Option<ClassMap>,
    /// Meter and act at ingress.
    pub police: Option<PolicerParams>,
    /// Set the DSCP of every packet of the class.
    pub set_dscp: Option<u8>,
    /// Low-latency queue.
    pub priority: Option<PriorityParams>,
    /// Guaranteed minimum and its burst.
    pub minimum: Option<(Rate, ByteCount)>,
    /// Share of the excess, at least 1.
    pub weight: u32,
    /// Token-bucket shaping.
    pub shape: Option<ShaperParams>,
    /// Its queue.
    pub queue: QueueParams,
    /// DPDK's hierarchical scheduler instead of one queue. The limit of `queue` is what its queues hold together.
    pub hqos: Option<Arc<HqosParams>>,
    /// The named queue in which it waits. Its settings count then, and not those of the class.
    pub named_queue: Option<String>,
    /// Its elephants wait in another queue.
    pub elephants: Option<ElephantsParams>,
    /// Child policy that divides the class; then it has no queue of its own.
    pub child: Option<Box<PolicyParams>>,
    /// The class as a slice of a guaranteed scheduler: set if and only if the discipline is
    /// [`Discipline::Guaranteed`].
    pub slice: Option<SliceParams>,
}

/// A validated policy for a link of known rate. The last class is class-default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyParams {
    /// The policy's name.
    pub name: String,
    /// Classes; a frame belongs to the first that matches. Never empty.
    pub classes: Vec<ClassParams>,
    /// How classes without priority share.
    pub discipline: Discipline,
    /// Parameters common to its slices: set if and only if the discipline is [`Discipline::Guaranteed`].
    pub guaranteed: Option<GuaranteedParams>,
    /// The links that have admitted the guarantees of its slices: none unless the discipline is
    /// [`Discipline::Guaranteed`].
    pub links: Vec<AdmissionParams>,
    /// Its named queues.
    pub queues: Vec<NamedQueueParams>,
}

impl ClassParams {
    /// Returns true if its frames are neither shaped nor marked, and no policer drops or changes any.
    #[must_use]
    pub fn only_waits(&self) -> bool {
        let police = self.police.as_ref();
        self.shape.is_none()
            && self.set_dscp.is_none()
            && police.is_none_or(PolicerParams::passes_all)
    }
}

impl PolicyParams {
    /// Returns true if all frames wait in one queue, the queue of the last class, or of the child policy of the only
    /// one, and nothing else happens to them.
    #[must_use]
    pub fn is_one_queue(&self) -> bool {
        let is_only = self.classes.len() == 1;
        let is_shared = is_only || self.discipline == Discipline::Fifo;
        let only_waits =
            |class: &ClassParams| class.only_waits() && (is_only || class.child.is_none());
        is_shared && self.classes.iter().all(only_waits)
    }

    /// True if some queue drops packets early at random.
    #[must_use]
    pub fn drops_at_random(&self) -> bool {
        self.has_queue(&|queue| queue.manager.is_random())
    }

    /// True if some queue marks ECN-capable packets instead of dropping them (RFC 3168).
    #[must_use]
    pub fn marks(&self) -> bool {
        self.has_queue(&|queue| queue.manager.marks())
    }

    /// True if a queue of a class, also of a child, or a named one is such.
    fn has_queue(&self, is: &dyn Fn(&QueueParams) -> bool) -> bool {
        let of_class = |class: &ClassParams| {
            is(&class.queue)
                || class
                    .child
                    .as_deref()
                    .is_some_and(|child| child.has_queue(is))
        };
        self.classes.iter().any(of_class) || self.queues.iter().any(|named| is(&named.queue))
    }

    /// Returns the bytes that a round of deficit round robin sends if every class takes its turn; 0 under another
    /// discipline. Quanta are proportional to the weights, and the smallest is a largest frame.
    #[must_use]
    pub fn round_bytes(&self) -> u64 {
        if self.discipline != Discipline::DeficitRoundRobin {
            return 0;
        }
        let own = |class: &&ClassParams| class.priority.is_none() && class.named_queue.is_none();
        let classes = self.classes.iter().filter(own).map(|class| class.weight);
        let shared = |queue: &&NamedQueueParams| queue.priority.is_none();
        let queues = self.queues.iter().filter(shared).map(|queue| queue.weight);
        let weights = classes.chain(queues).map(|weight| u64::from(weight.max(1)));
        let least = weights.clone().min().unwrap_or(1);
        weights.sum::<u64>() * u64::from(DEFAULT_FRAME.l2_bytes) / least
    }

    /// The policy where one length of a frame is known, and all policers, priorities, minimums and shapers count it.
    #[must_use]
    pub fn counted_as(mut self, accounting: Accounting) -> Self {
        for class in &mut self.classes {
            if let Some(police) = &mut class.police {
                police.algorithm = police.algorithm.counted_as(accounting);
            }
            let priority = class.priority.as_mut();
            let priority = priority.and_then(|priority| priority.police.as_mut());
            let rates = [priority, class.minimum.as_mut()].into_iter().flatten();
            let rates = rates.map(|(rate, _)| rate);
            for rate in rates.chain(class.shape.as_mut().map(|shape| &mut shape.rate)) {
                *rate = rate.counted_as(accounting);
            }
            let child = class.child.take();
            class.child = child.map(|child| Box::new(child.counted_as(accounting)));
        }
        self
    }
}
