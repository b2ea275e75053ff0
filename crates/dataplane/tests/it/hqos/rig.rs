//! A pipeline with a hierarchy and a link, and frames by pipe and queue.

use slicewise_dataplane::hqos::{HqosCounters, HqosPlace};
use slicewise_dataplane::{Change, Frame, LinkClock, Pipeline, PipelineParams, Verdict};
use slicewise_model::hqos::{
    HqosPipeProfile, HqosPipeRange, HqosRates, HqosSubport, TRAFFIC_CLASSES,
};
use slicewise_model::{ClassSpec, Colour, HqosSpec, PolicySpec};
use slicewise_units::{BitRate, ByteCount, FrameLengths, Instant};
use slicewise_wire::{Headers, IpVersion, TrafficClass};

pub(crate) const CLASSES: usize = TRAFFIC_CLASSES;
pub(crate) const MS: u64 = 1_000_000;
/// Bytes that a frame needs on the link beside its own, as in the scheduler.
const OVERHEAD: u64 = 24;

/// A frame that was offered, and when it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: u64,
    pub(crate) handle: u64,
    pub(crate) pipe: u32,
    pub(crate) queue: u32,
    pub(crate) bytes: u32,
}

/// A profile in which every class may use the whole rate, byte/s, with a bucket of a hundredth of a second.
pub(crate) fn profile(rate: u64, port: BitRate) -> HqosPipeProfile {
    let port = port.bits_per_second() / 8;
    HqosPipeProfile {
        rates: HqosRates {
            tb_rate: rate.min(port),
            tb_size: (rate / 100).max(2_000),
            tc_rates: [rate.min(port); CLASSES],
            tc_period: 40,
        },
        oversubscription_weight: 1,
        wrr_weights: [1; 4],
    }
}

pub(crate) fn subport(pipes: u32, assigned: Vec<HqosPipeRange>) -> HqosSubport {
    HqosSubport {
        profile: 0,
        pipes,
        queue_sizes: [64; CLASSES],
        assigned,
    }
}

/// A pipe of each rate in byte/s, with a profile of its own.
pub(crate) fn of_pipes(rates: &[u64], port: BitRate) -> HqosSpec {
    let ranges = (0..rates.len() as u32).map(|pipe| HqosPipeRange {
        first: pipe,
        last: pipe,
        profile: pipe,
    });
    let whole = profile(u64::MAX, port).rates;
    HqosSpec {
        subports: vec![subport(
            (rates.len() as u32).next_power_of_two(),
            ranges.collect(),
        )],
        subport_profiles: vec![HqosRates {
            tb_size: 1_000_000,
            tc_period: 10,
            ..whole
        }],
        pipe_profiles: rates.iter().map(|rate| profile(*rate, port)).collect(),
        ..HqosSpec::default()
    }
}

pub(crate) fn policy(hqos: &HqosSpec) -> PolicySpec {
    crate::support::policy(vec![ClassSpec {
        hqos: Some(Box::new(hqos.clone())),
        ..ClassSpec::class_default()
    }])
}

pub(crate) fn addressed(outer: u16, inner: u16, octets: [u8; 4]) -> Headers {
    Headers {
        vlan_tags: 2,
        outer_vlan: outer,
        inner_vlan: inner,
        ip_version: IpVersion::V4,
        destination: u32::from_be_bytes(octets).into(),
        l3_offset: 22,
        ..Headers::default()
    }
}

pub(crate) fn frame(handle: u64, bytes: u32) -> Frame {
    Frame {
        handle,
        lengths: FrameLengths {
            l2_bytes: bytes,
            l3_offset: 22,
        },
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    }
}

pub(crate) struct Rig {
    pub(crate) pipeline: Pipeline,
    link: LinkClock,
    now: u64,
    offered: Vec<Sent>,
    pub(crate) departures: Vec<Sent>,
    pub(crate) dropped: u64,
    pub(crate) polls: u64,
}

impl Rig {
    pub(crate) fn new(hqos: &HqosSpec, port: BitRate) -> Self {
        Self::of_policy(&policy(hqos), port)
    }

    pub(crate) fn of_policy(policy: &PolicySpec, port: BitRate) -> Self {
        let params = PipelineParams {
            policy: policy.resolve(port).unwrap(),
            port_shaper: None,
            seed: 1,
        };
        Self {
            pipeline: Pipeline::new(&params, Instant::ZERO).unwrap(),
            link: LinkClock::new(port),
            now: 0,
            offered: Vec::new(),
            departures: Vec::new(),
            dropped: 0,
            polls: 0,
        }
    }

    pub(crate) fn apply(&mut self, policy: &PolicySpec, port: BitRate) {
        let change = Change::Policy(policy.resolve(port).unwrap());
        let now = Instant::from_nanos(self.now);
        drop(self.pipeline.apply(change, now).unwrap());
    }

    /// A frame of a pipe of the first subport.
    pub(crate) fn offer(&mut self, pipe: u32, queue: u32, bytes: u32) -> Verdict {
        let handle = self.offered.len() as u64;
        self.offered.push(Sent {
            at: 0,
            handle,
            pipe,
            queue,
            bytes,
        });
        let headers = addressed(0, pipe as u16, [10, 0, 0, queue as u8]);
        let now = Instant::from_nanos(self.now);
        let verdict = self.pipeline.on_frame(frame(handle, bytes), &headers, now);
        self.dropped += u64::from(verdict != Verdict::Queued);
        verdict
    }

    pub(crate) fn offered(&self) -> u64 {
        self.offered.len() as u64
    }

    /// A queue has frames all the time.
    pub(crate) fn keep_full(&mut self, pipe: u32, queue: u32, bytes: u32, until: u64) {
        for now in (self.now..until).step_by(100_000) {
            self.run_until(now);
            while self.offer(pipe, queue, bytes) == Verdict::Queued {}
        }
    }

    /// Send whatever may leave before `until`.
    pub(crate) fn run_until(&mut self, until: u64) {
        while let Some(poll) = self.pipeline.poll_at() {
            let free = self.link.free_at().nanos();
            let at = poll.nanos().max(free).max(self.now);
            if at >= until {
                break;
            }
            self.now = at;
            self.poll();
        }
        self.now = self.now.max(until);
    }

    /// Poll every `step` ns, and at the times that are announced.
    pub(crate) fn poll_until(&mut self, until: u64, step: u64) {
        while self.now < until {
            let free = self.link.free_at().nanos();
            let next = (self.now / step + 1) * step;
            let announced = self
                .pipeline
                .poll_at()
                .map_or(next, |poll| poll.nanos().max(self.now));
            let at = next.min(announced).max(free).max(self.now);
            if at >= until || self.pipeline.backlog() == 0 {
                break;
            }
            let before = self.departures.len();
            let is_same = at == self.now;
            self.now = at;
            self.poll();
            if self.departures.len() == before && is_same {
                self.now += 1;
            }
        }
        self.now = self.now.max(until);
    }

    /// Poll now, whether the link is free or not.
    pub(crate) fn poll(&mut self) {
        let now = Instant::from_nanos(self.now);
        self.polls += 1;
        if let Some(frame) = self.pipeline.poll_egress(now) {
            let bytes = u64::from(frame.lengths.l2_bytes) + OVERHEAD;
            self.link.send(ByteCount::new(bytes), now);
            self.departures.push(Sent {
                at: self.now,
                ..self.offered[frame.handle as usize]
            });
        }
    }

    /// Bytes that have left since `from`.
    pub(crate) fn bytes_sent(&self, which: impl Fn(&Sent) -> bool, from: u64) -> u64 {
        let sent = self.departures.iter();
        let sent = sent.filter(|frame| frame.at >= from && which(frame));
        sent.map(|frame| u64::from(frame.bytes)).sum()
    }

    pub(crate) fn counters(&self) -> Vec<(HqosPlace, HqosCounters)> {
        let hierarchies = self.pipeline.hierarchies();
        hierarchies.flat_map(|(_, hqos)| hqos.counters()).collect()
    }

    /// Each frame has left, waits, or was dropped; and each queue has kept its order.
    pub(crate) fn assert_conserved_in_order(&self) {
        let waiting = u64::from(self.pipeline.backlog());
        let left = self.departures.len() as u64;
        assert_eq!(self.offered(), left + waiting + self.dropped);
        for class in self.pipeline.counters() {
            let after = class.sent_frames + class.queued_frames + class.dropped_total();
            assert_eq!(class.offered_frames, after);
        }
        let mut last = std::collections::BTreeMap::new();
        for frame in &self.departures {
            let before = last.insert((frame.pipe, frame.queue), frame.handle);
            assert!(
                before.is_none_or(|before| before < frame.handle),
                "{frame:?}"
            );
        }
    }
}
