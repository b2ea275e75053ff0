//! Queues of classes and named queues: limit, manager and separation of flows.

use crate::file::{Placed, Problems};
use crate::spec::Dscp;
use crate::{problem, settings};
use slicewise_model::queue::{DualPi2Spec, PieSpec};
use slicewise_model::{
    CoDelSpec, FlowQueueSpec, QueueLimitSpec, QueueSpec, RedCurve, WredKey, WredSpec,
};

/// Default mark probability denominator of a curve (IOS).
const MARK_DENOMINATOR: u32 = 10;

/// Settings of a queue, as a class or a named queue has them.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueSettings {
    pub(super) limit: Option<QueueLimitSpec>,
    pub(super) wred: Option<WredSpec>,
    pub(super) flow_queue: Option<FlowQueueSpec>,
    pub(super) pie: Option<PieSpec>,
    pub(super) codel: Option<CoDelSpec>,
    pub(super) dualpi2: Option<DualPi2Spec>,
}

/// [`settings!`] of something with a queue: a field `own_queue` of [`QueueSettings`].
macro_rules! queue_settings {
    (
        $(#[doc = $doc:literal])*
        impl $name:ident as $shown:literal = $start:expr; { $($settings:tt)* }
    ) => {
        $crate::settings! {
            $(#[doc = $doc])*
            impl $name as $shown = $start; {
                $($settings)*
                /// How much may wait, as `64 packets`, `100 kB` or `10 ms` at its own rate.
                queue_limit => own_queue.limit,
                /// Drop at random before the queue is full.
                wred => own_queue.wred,
                /// A queue for each flow with `CoDel`, instead of one for all.
                flow_queue => own_queue.flow_queue,
                /// Drop at random so that frames wait for a target time on average; with `flow_queue`, in the queue of each
                /// flow.
                pie => own_queue.pie,
                /// Drop when frames wait too long, in one queue for all flows.
                codel => own_queue.codel,
                /// A queue for frames with ECT(1) or CE and one for the others, marked and dropped together.
                dualpi2 => own_queue.dualpi2,
            }
        }
    };
}
pub(super) use queue_settings;

impl QueueSettings {
    /// The queue of `owner`; `None` where settings contradict each other.
    pub(super) fn resolve<T>(
        &self,
        owner: &Placed<T>,
        problems: &mut Problems,
    ) -> Option<QueueSpec> {
        let Self {
            limit,
            wred,
            flow_queue,
            pie,
            codel,
            dualpi2,
        } = self.clone();
        let mut refuse = |setting, problem: &str| {
            let at = owner.place(setting)?;
            problem!(problems, at => "`{setting}` {problem}");
            None
        };
        let alone = [
            ("dualpi2", dualpi2.map(QueueSpec::from)),
            ("codel", codel.map(QueueSpec::from)),
        ];
        let is_set = |(setting, queue)| Some((setting, queue?));
        if let Some((setting, queue)) = alone.into_iter().find_map(is_set) {
            let others = [
                ("wred", wred.is_some()),
                ("pie", pie.is_some()),
                ("flow_queue", flow_queue.is_some()),
                ("codel", codel.is_some() && dualpi2.is_some()),
            ];
            let Some((other, _)) = others.into_iter().find(|(_, is_set)| *is_set) else {
                return Some(queue.with_limit(limit));
            };
            let problem = format!("manages the queue by itself: remove `{other}`");
            return refuse(setting, &problem);
        }
        let queue: QueueSpec = match (wred, pie, flow_queue) {
            (Some(_), Some(_), _) => {
                return refuse("pie", "drops early by itself: set either this or `wred`");
            }
            (Some(_), None, Some(_)) => {
                return refuse(
                    "flow_queue",
                    "drops early by itself: set either this or `wred`",
                );
            }
            (None, Some(pie), Some(flow_queue)) if flow_queue.codel == CoDelSpec::default() => {
                QueueSpec {
                    flows: Some(flow_queue.flows),
                    ..pie.into()
                }
            }
            (None, Some(_), Some(_)) => {
                let problem = "has settings of CoDel, and `pie` is used instead: leave `target`, `interval` and `ecn` out";
                return refuse("flow_queue", problem);
            }
            (Some(wred), None, None) => wred.into(),
            (None, Some(pie), None) => pie.into(),
            (None, None, Some(flow_queue)) => flow_queue.into(),
            (None, None, None) => QueueSpec::default(),
        };
        Some(queue.with_limit(limit))
    }
}

settings! {
    /// Random early detection, with a curve for each kind of packet.
    impl WredSpec as "WredFileSpec", strict = Self {
        key: WredKey::Dscp,
        curves: Vec::new(),
        exponential_weight: None,
        ecn: false,
    };
    {
        /// Key that chooses the curve of a packet: `dscp` (default) or `precedence`.
        by => key,
        /// Curves that differ from the default.
        curves: Vec<Curve> = |wred, curves| {
            wred.curves = curves.iter().map(|curve| (curve.key.0, curve.red.into())).collect();
        },
        /// The newest sample's weight in the average is 2^-n. Default 9.
        weight_exponent => exponential_weight,
        /// Mark packets of transports with ECN where others are dropped by chance. Default no.
        ecn,
    }
}

/// A curve, and which packets it is for.
#[derive(Debug, Clone, Copy)]
struct Curve {
    key: Dscp,
    red: RedCurve,
}

settings! {
    /// A drop curve: nothing below `min`, rising to one packet in `denominator` at `max`, everything
    /// from there on.
    impl Curve as "CurveSpec", strict = Self {
        key: Dscp::default(),
        red: RedCurve {
            min_packets: 0,
            max_packets: 0,
            mark_denominator: MARK_DENOMINATOR,
        },
    };
    {
        /// The code point or precedence it is for.
        [required] for => key,
        /// Average queue from which packets are dropped, packets.
        [required] min => red.min_packets,
        /// Average queue from which all are dropped, packets.
        [required] max => red.max_packets,
        /// One packet in so many is dropped just below `max`. Default 10.
        denominator => red.mark_denominator,
    }
}

settings! {
    /// A queue for each flow, each kept short by `CoDel` (RFC 8289, RFC 8290), and levels of strict
    /// priority.
    impl FlowQueueSpec as "FlowQueueFileSpec", strict = Self::default(); {
        /// Queues that flows are hashed to. Default 1024; 1 is `CoDel` alone.
        flows => flows.flows,
        /// How long frames may wait. Default 5 ms.
        target => codel.target,
        /// How long all must wait longer before one is dropped. Default 100 ms.
        interval => codel.interval,
        /// Bytes that a flow sends in its turn. Default 1514 B.
        quantum => flows.quantum,
        /// Mark instead of dropping, where the transport understands it. Default yes.
        ecn => codel.ecn,
        /// Code points of each level of strict priority, the first served first; the others form
        /// the last.
        priority: Vec<PriorityLevel> = |queue, levels| {
            let code_points = |level: PriorityLevel| level.dscp.iter().map(|dscp| dscp.0).collect();
            queue.flows.priority = levels.into_iter().map(code_points).collect();
        },
    }
}

settings! {
    /// `CoDel` (RFC 8289).
    impl CoDelSpec as "CoDelFileSpec", strict = Self::default(); {
        /// How long frames may wait. Default 5 ms.
        target,
        /// How long all must wait longer before one is dropped. Default 100 ms.
        interval,
        /// Mark instead of dropping, where the transport understands it. Default yes.
        ecn,
    }
}

settings! {
    /// PIE (RFC 8033).
    impl PieSpec as "PieFileSpec", strict = Self::default(); {
        /// Time for which frames wait on average. Default 15 ms.
        target,
        /// Time between two updates of the probability. Default 15 ms.
        update,
        /// Time for which nothing is dropped when a burst comes after a calm. Default 150 ms.
        burst,
        /// Mark packets of transports with ECN where others are dropped, while the probability is below 10 %. Default no.
        ecn,
    }
}

settings! {
    /// `DualPI2` (RFC 9332).
    impl DualPi2Spec as "DualPi2FileSpec", strict = Self::default(); {
        /// Time for which frames of the classic queue wait. Default 15 ms.
        target,
        /// Time between two updates of the probability. Default 16 ms.
        update,
        /// Waiting time from which all frames of the low-latency queue are marked. Default 1 ms.
        step,
        /// Factor between the base probability and that of marks in the low-latency queue. Default 2.
        coupling,
        /// Bytes that the low-latency queue sends for each byte of the classic one while both have frames. Default 15.
        weight,
    }
}

settings! {
    /// A level of strict priority.
    struct PriorityLevel as "PriorityLevelSpec", strict {
        /// Its code points.
        [required] dscp: Vec<Dscp>,
    }
}
