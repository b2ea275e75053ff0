//! Drives a pipeline over a link of a given rate, the way an egress port does.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses a part of it"
)]

use slicewise_dataplane::{Change, Frame, LinkClock, Pipeline, PipelineParams, Verdict};
use slicewise_model::{
    ClassMap, ClassSpec, Colour, Condition, Discipline, MatchMode, PolicySpec, PrioritySpec,
    QueueLimitSpec, RateSpec, RedCurve, ShaperParams, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::{Ecn, Headers, IpVersion, TrafficClass};
use std::collections::BTreeMap;

/// A frame offered to the pipeline.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub at: u64,
    pub vlan: u16,
    pub bytes: u32,
}

pub const fn arrival(at: u64, vlan: u16, bytes: u32) -> Arrival {
    Arrival { at, vlan, bytes }
}

/// A frame that left, in order of departure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// When its first bit left, ns.
    pub at: u64,
    pub vlan: u16,
    pub bytes: u32,
    /// Order of arrival.
    pub sequence: u64,
    /// The colour that meters gave it.
    pub colour: Colour,
}

pub fn vlan_class(vlan: u16) -> ClassSpec {
    ClassSpec::new(ClassMap {
        name: format!("vlan{vlan}"),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(vlan..=vlan)],
    })
}

/// A class for each VLAN and weight, with a queue for everything, in deficit round robin.
pub fn drr(weights: &[(u16, u32)]) -> PolicySpec {
    let classes = weights
        .iter()
        .map(|&(vlan, weight)| {
            let mut class = vlan_class(vlan);
            class.weight = Some(weight);
            class.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
            class
        })
        .collect();
    PolicySpec {
        discipline: Discipline::DeficitRoundRobin,
        ..policy(classes)
    }
}

/// A class shaped to a rate.
pub fn shaped(vlan: u16, text: &str, burst_bits: u64) -> ClassSpec {
    let mut class = vlan_class(vlan);
    class.shape = Some(ShaperSpec {
        rate: RateSpec::Absolute(rate(text)),
        committed_burst_bits: Some(burst_bits.into()),
        excess_burst_bits: None,
        peak: false,
        accounting: Accounting::L2,
    });
    class.queue.limit = Some(QueueLimitSpec::Packets(1_000_000));
    class
}

pub const fn priority(level: u8) -> PrioritySpec {
    PrioritySpec {
        level,
        rate: None,
        burst: None,
        accounting: Accounting::L2,
    }
}

/// RED of DSCP 0 with these thresholds, whose average is mostly the newest sample.
pub fn red(min_packets: u32, max_packets: u32, mark_denominator: u32) -> WredSpec {
    let curve = RedCurve {
        min_packets,
        max_packets,
        mark_denominator,
    };
    WredSpec {
        key: WredKey::Dscp,
        curves: vec![(0, curve.into())],
        exponential_weight: Some(1),
        ecn: false,
    }
}

pub fn policy(classes: Vec<ClassSpec>) -> PolicySpec {
    PolicySpec {
        name: "test".into(),
        classes,
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    }
}

pub fn rate(text: &str) -> BitRate {
    text.parse().unwrap()
}

pub fn headers(vlan: u16) -> Headers {
    Headers {
        vlan_tags: 1,
        outer_vlan: vlan,
        ip_version: IpVersion::V4,
        protocol: 17,
        source: u128::from(vlan),
        has_ports: true,
        l3_offset: 18,
        ..Headers::default()
    }
}

pub fn frame(sequence: u64, vlan: u16, bytes: u32) -> Frame {
    Frame {
        handle: sequence << 16 | u64::from(vlan),
        lengths: FrameLengths {
            l2_bytes: bytes,
            l3_offset: 18,
        },
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    }
}

/// An egress port: a pipeline and a link, or a link so fast that only the pipeline decides.
pub struct Port {
    pub pipeline: Pipeline,
    link: Option<LinkClock>,
    now: u64,
    pub sequence: u64,
    pub departures: Vec<Departure>,
    pub dropped: u64,
    /// By VLAN and code point: the class that the classifier last found, and its revision then.
    known: BTreeMap<(u16, u8), (u64, u32)>,
}

impl Port {
    pub fn new(spec: &PolicySpec, link: Option<BitRate>) -> Self {
        Self::with_shaper(spec, link, None)
    }

    pub fn with_shaper(
        spec: &PolicySpec,
        link: Option<BitRate>,
        port_shaper: Option<ShaperParams>,
    ) -> Self {
        let policy = spec.resolve(link.unwrap_or(rate("1 Gbit/s"))).unwrap();
        let params = PipelineParams {
            policy,
            port_shaper,
            seed: 1,
        };
        Self {
            pipeline: Pipeline::new(&params, Instant::ZERO).unwrap(),
            link: link.map(LinkClock::new),
            now: 0,
            sequence: 0,
            departures: Vec::new(),
            dropped: 0,
            known: BTreeMap::new(),
        }
    }

    pub fn apply(&mut self, spec: &PolicySpec) {
        let policy = spec.resolve(rate("1 Gbit/s")).unwrap();
        let now = Instant::from_nanos(self.now);
        drop(self.pipeline.apply(Change::Policy(policy), now).unwrap());
        self.collect_dropped();
    }

    /// Send whatever may leave before `until`, then move the clock there.
    pub fn run_until(&mut self, until: u64) {
        loop {
            let free = self.link.as_ref().map_or(0, |link| link.free_at().nanos());
            let Some(poll) = self.pipeline.poll_at() else {
                break;
            };
            let at = poll.nanos().max(free).max(self.now);
            if at >= until {
                break;
            }
            self.now = at;
            let sent = self.pipeline.poll_egress(Instant::from_nanos(at));
            self.collect_dropped();
            if let Some(frame) = sent {
                let bytes = frame.lengths.l2_bytes;
                if let Some(link) = &mut self.link {
                    link.send(ByteCount::new(bytes.into()), Instant::from_nanos(at));
                }
                self.departures.push(Departure {
                    at,
                    vlan: (frame.handle & 0xffff) as u16,
                    bytes,
                    sequence: frame.handle >> 16,
                    colour: frame.colour,
                });
            }
        }
        self.now = self.now.max(until);
    }

    pub fn offer(&mut self, arrival: Arrival) -> Verdict {
        self.offer_marked(arrival, 0, Ecn::NotEct)
    }

    pub fn offer_marked(&mut self, arrival: Arrival, dscp: u8, ecn: Ecn) -> Verdict {
        self.run_until(arrival.at);
        let frame = Frame {
            traffic_class: TrafficClass::new(dscp, ecn),
            ..frame(self.sequence, arrival.vlan, arrival.bytes)
        };
        let headers = Headers {
            dscp,
            ecn,
            ..headers(arrival.vlan)
        };
        self.sequence += 1;
        let classifier = self.pipeline.classifier();
        let found = (classifier.revision(), classifier.classify(&headers));
        if let Some(known) = self.known.insert((arrival.vlan, dscp), found)
            && known.0 == found.0
        {
            assert_eq!(known, found, "another class without another revision");
        }
        let verdict = self
            .pipeline
            .on_frame(frame, &headers, Instant::from_nanos(self.now));
        self.collect_dropped();
        if matches!(verdict, Verdict::Dropped(_)) {
            self.dropped += 1;
        }
        verdict
    }

    fn collect_dropped(&mut self) {
        while self.pipeline.has_dropped() {
            assert!(self.pipeline.poll_dropped().is_some());
            self.dropped += 1;
        }
        assert!(self.pipeline.poll_dropped().is_none());
    }

    pub fn offer_all(&mut self, arrivals: &[Arrival]) {
        for arrival in arrivals {
            let _ = self.offer(*arrival);
        }
    }

    pub fn offered(&self) -> u64 {
        self.sequence
    }

    pub fn now(&self) -> u64 {
        self.now
    }
}

/// Bytes that left for a VLAN in `[from, to)` ns.
pub fn bytes_sent(departures: &[Departure], vlan: u16, from: u64, to: u64) -> u64 {
    departures
        .iter()
        .filter(|d| d.vlan == vlan && (from..to).contains(&d.at))
        .map(|d| u64::from(d.bytes))
        .sum()
}

/// Frames of one VLAN, `bytes` long, at a constant rate from 0 to `until` ns.
pub fn constant(vlan: u16, bytes: u32, rate: BitRate, until: Duration) -> Vec<Arrival> {
    let gap = u64::from(bytes) * 8 * 1_000_000_000 / rate.bits_per_second();
    (0..until.nanos() / gap)
        .map(|n| arrival(n * gap, vlan, bytes))
        .collect()
}

pub fn merged(mut flows: Vec<Vec<Arrival>>) -> Vec<Arrival> {
    let mut all: Vec<Arrival> = flows.drain(..).flatten().collect();
    all.sort_by_key(|a| (a.at, a.vlan));
    all
}

/// Every offered frame is sent, queued, or counted under exactly one reason.
pub fn assert_conserved(port: &Port) {
    let (mut offered, mut accounted) = (0, 0);
    for class in port.pipeline.counters() {
        assert_eq!(
            class.offered_frames,
            class.sent_frames + class.queued_frames + class.dropped_total(),
            "class {}",
            class.class
        );
        offered += class.offered_frames;
        accounted += class.sent_frames + class.queued_frames + class.dropped_total();
    }
    assert_eq!(offered, port.offered());
    assert_eq!(accounted, port.offered());
    assert_eq!(
        port.offered(),
        port.departures.len() as u64 + port.dropped + u64::from(port.pipeline.backlog())
    );
}

/// Frames of one VLAN and colour leave in the order they came.
pub fn assert_colours_in_order(departures: &[Departure]) {
    for colour in Colour::ALL {
        let of_colour = departures.iter().filter(|left| left.colour == colour);
        assert_in_order(&of_colour.copied().collect::<Vec<_>>());
    }
}

/// Frames of one VLAN leave in the order they came.
pub fn assert_in_order(departures: &[Departure]) {
    let mut last = BTreeMap::new();
    for d in departures {
        if let Some(previous) = last.insert(d.vlan, d.sequence) {
            assert!(
                previous < d.sequence,
                "vlan {} reordered: {previous} then {}",
                d.vlan,
                d.sequence
            );
        }
    }
}
