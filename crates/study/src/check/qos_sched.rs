//! The threads and rings of `qos_sched`, DPDK's sample application; and policies that run on another device than the
//! study's.

use super::Checker;
use super::application::Count;
use crate::file::Placed;
use crate::params::{
    DutModel, DutParams, QosSchedBursts, QosSchedParams, QosSchedRings, QosSchedThreads,
};
use crate::spec::{PassingRate, Positive, Scalar, Short, narrowed};
use crate::{problem, settings};
use slicewise_model::Rate;

/// Settings of a `qos_sched` alone.
pub(super) const OF_THREADS: [&str; 4] = ["threads", "burst", "ring", "drain"];
/// Bursts are 16 bits wide in the application (`struct burst_conf`).
const MAX_BURST: u32 = 65_535;
/// More than any host has memory for, at one pointer an entry.
const MAX_RING: u32 = 1 << 24;

narrowed! {
    /// Packets that a thread moves at once.
    #[derive(Copy)]
    Burst(Count) as "Count": |text| match Count::from_text(text)? {
        Count(packets) if packets <= MAX_BURST => Ok(Count(packets)),
        Count(_) => Err(format!("a burst is at most {MAX_BURST} packets")),
    };
    /// Entries of a ring between threads.
    #[derive(Copy)]
    Ring(Count) as "Count": |text| match Count::from_text(text)? {
        Count(entries) if entries > MAX_RING => Err(format!("a ring has at most {MAX_RING} entries")),
        Count(entries) if entries < 2 || !entries.is_power_of_two() => {
            Err(format!("a ring of DPDK has a power of two of entries: {entries} is none"))
        }
        entries => Ok(entries),
    };
}

/// The same for all threads, or for each.
pub(super) type BurstsSpec = Short<Burst, QosSchedBursts>;

impl From<Burst> for QosSchedBursts {
    fn from(Burst(Count(packets)): Burst) -> Self {
        Self::all(packets)
    }
}

settings! {
    /// Packets that the threads of `qos_sched` move at once (option `--bsz`).
    impl QosSchedBursts as "BurstsSpec" = QosSchedParams::SAMPLE.burst; {
        /// Most that the receive thread reads from the interface. Default 64. The simulated thread reads each packet as
        /// it arrives.
        receive: Burst = |burst, of| burst.receive = of.0.0,
        /// Most that the worker takes from the receive thread and enqueues. Default 64.
        enqueue: Burst = |burst, of| burst.enqueue = of.0.0,
        /// Most that the worker dequeues. A separate transmit thread takes so many from the ring, or none. Default 32.
        dequeue: Burst = |burst, of| burst.dequeue = of.0.0,
        /// Packets that the thread that transmits collects before it sends them to the interface. Default 64.
        transmit: Burst = |burst, of| burst.transmit = of.0.0,
    }
}

settings! {
    /// Sizes of the rings of `qos_sched`, in packets (option `--rsz`).
    impl QosSchedRings as "RingsSpec" = QosSchedParams::SAMPLE.ring; {
        /// Descriptors of the receiving interface. Default 1024. The simulated thread never leaves a packet there.
        receive: Ring = |ring, of| ring.receive = of.0.0,
        /// Entries of each of the two rings between the threads, a power of two. Default 8192.
        software: Ring = |ring, of| ring.software = of.0.0,
        /// Descriptors of the sending interface. Default 1024.
        transmit: Ring = |ring, of| ring.transmit = of.0.0,
    }
}

settings! {
    /// The device that runs a policy, where it is another one than the study's: what is said here replaces the settings of
    /// `dut`.
    struct PolicyDutSpec as "PolicyDutSpec" {
        /// Which device: `port`, `gateway` or `qos_sched`.
        model: Option<DutModel>,
        /// Rate of its egress port.
        port_rate: Option<PassingRate>,
        /// Of a `qos_sched`: who transmits.
        threads: Option<QosSchedThreads>,
        /// Of a `qos_sched`: what its threads move at once.
        burst: Option<BurstsSpec>,
        /// Of a `qos_sched`: sizes of its rings.
        ring: Option<QosSchedRings>,
        /// Of a `qos_sched`: how long after the last packets from the scheduler what has been collected is sent.
        drain: Option<Positive>,
    }
}

/// Settings of the threads as written for a device or for a policy.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadsSpec {
    pub(super) threads: Option<QosSchedThreads>,
    pub(super) burst: Option<BurstsSpec>,
    pub(super) ring: Option<QosSchedRings>,
    pub(super) drain: Option<Positive>,
}

impl ThreadsSpec {
    /// Puts what is written on top of `base`.
    fn on(self, base: QosSchedParams) -> QosSchedParams {
        QosSchedParams {
            threads: self.threads.unwrap_or(base.threads),
            burst: self.burst.map_or(base.burst, |burst| burst.value),
            ring: self.ring.unwrap_or(base.ring),
            drain: self.drain.map_or(base.drain, |Positive(drain)| drain),
        }
    }
}

impl Checker<'_> {
    /// The device `qos_sched` as a study describes it.
    pub(super) fn qos_sched<T>(&mut self, written: &Placed<T>, threads: ThreadsSpec) -> DutModel {
        let params = threads.on(QosSchedParams::SAMPLE);
        self.check_threads(params, written);
        DutModel::QosSched(params)
    }

    /// The device of a policy that says which; `dut` is the study's.
    pub(super) fn dut_of_policy(
        &mut self,
        written: &Placed<PolicyDutSpec>,
        dut: &DutParams,
    ) -> Option<DutParams> {
        let spec = &written.value;
        let at = written.place("model").unwrap_or(written.span);
        let help = "leave `dut` of the policy out, or make two studies of it";
        let fits = |model| {
            matches!(
                model,
                DutModel::Port | DutModel::Gateway | DutModel::QosSched(_)
            )
        };
        if !fits(dut.model) || dut.licence.is_some() {
            let message = "policies on devices of their own need a `dut` that is a `port`, `gateway` or `qos_sched`";
            self.problems.add_with_help(at, message, help);
            return None;
        }
        if self.key_at(&["path"]).is_some() {
            problem!(self.problems, at => "on a path, each device has the policies: `dut` of a policy and `path` \
                exclude each other");
            return None;
        }
        let model = match (spec.model.unwrap_or(dut.model), dut.model) {
            (DutModel::QosSched(base), own) => {
                let base = match own {
                    DutModel::QosSched(own) => own,
                    _ => base,
                };
                let threads = ThreadsSpec {
                    threads: spec.threads,
                    burst: spec.burst,
                    ring: spec.ring,
                    drain: spec.drain,
                };
                let params = threads.on(base);
                self.check_threads(params, written);
                DutModel::QosSched(params)
            }
            (model, _) if fits(model) => {
                self.check_has_none(written, &OF_THREADS, "qos_sched");
                model
            }
            _ => {
                let message = "a policy can be on a `port`, a `gateway` or a `qos_sched`";
                self.problems.add_with_help(at, message, help);
                return None;
            }
        };
        let rate = spec.port_rate.map_or(dut.port_rate.rate, |rate| rate.0);
        let port_rate = Rate {
            rate,
            ..dut.port_rate
        };
        Some(DutParams {
            model,
            port_rate,
            ..*dut
        })
    }

    /// A burst fits in the ring that it goes through, if any: the worker waits for room for all of it. And what is written
    /// has an effect.
    fn check_threads<T>(&mut self, params: QosSchedParams, written: &Placed<T>) {
        let room = params.ring.software.saturating_sub(1);
        let has_ring = params.threads == QosSchedThreads::Separate;
        if has_ring && params.burst.dequeue > room {
            let at = written.place("burst").unwrap_or(written.span);
            problem!(self.problems, at => "the worker would wait forever: a burst of {} packets, and a ring of {} \
                entries holds {room}", params.burst.dequeue, params.ring.software;
                "lower `burst.dequeue`, or give a larger `ring.software`");
        }
        if let Some(at) = written.place("ring")
            && params.ring.receive != QosSchedParams::SAMPLE.ring.receive
        {
            let message = "`ring.receive` has no effect: a receive thread that polls without pause leaves nothing in the \
                           interface. What waits for the worker is in the ring of `ring.software`";
            self.problems.warn(at, message);
        }
    }
}
