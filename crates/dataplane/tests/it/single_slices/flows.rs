//! Flows of a slice: weights that count them, queues of their own, and elephants.

use super::*;
use slicewise_dataplane::{FlowsSeen, LinkClock, Pipeline, PipelineParams, Weighed};
use slicewise_model::{
    CoDelParams, Detector, ElephantsParams, FlowQueueParams, FlowsParams, PriorityLevels,
    QueueLimitSpec,
};
use slicewise_wire::Headers;
use std::collections::BTreeMap;

/// It drops nothing for its delay.
pub const PATIENT: FlowQueueParams = FlowQueueParams {
    flows: FlowsParams {
        flows: 64,
        quantum: 1_514,
        levels: PriorityLevels::ONE,
    },
    codel: CoDelParams {
        target: Duration::from_millis(1_900),
        interval: Duration::from_millis(3_800),
        ecn: false,
    },
};

pub fn elephants(bytes: u64, millis: u64) -> ElephantsParams {
    ElephantsParams {
        queue: String::new(),
        threshold: ByteCount::new(bytes),
        detector: Detector::HeavyHitters,
        interval: Duration::from_millis(millis),
        times: 2,
        flows: 64,
    }
}

/// One flow of a VLAN, which sends frames of a length at a rate.
#[derive(Debug, Clone, Copy)]
struct Flow {
    vlan: u16,
    port: u16,
    bytes: u32,
    kbit: u64,
}

const fn flow(vlan: u16, port: u16, bytes: u32, kbit: u64) -> Flow {
    Flow {
        vlan,
        port,
        bytes,
        kbit,
    }
}

fn headers_of(flow: Flow) -> Headers {
    Headers {
        source_port: flow.port,
        ..headers(flow.vlan)
    }
}

/// A pipeline with best-effort slices of VLAN 1 and 2 behind a link of 10 Mbit/s, and when each frame was sent and how long it
/// had waited, by VLAN and port.
struct Rig {
    pipeline: Pipeline,
    link: LinkClock,
    now: u64,
    sent: BTreeMap<(u16, u16), Vec<(u64, u64)>>,
    offered: Vec<(Flow, u64)>,
}

impl Rig {
    fn new() -> Self {
        let mut classes = vec![];
        for vlan in [1, 2] {
            let mut class = class(&(vlan..=vlan), BEST_EFFORT);
            class.queue.limit = Some(QueueLimitSpec::Packets(1_000));
            classes.push(class);
        }
        let spec = PolicySpec {
            discipline: Discipline::Guaranteed,
            ..policy(classes)
        };
        let params = PipelineParams {
            policy: spec.resolve(LINK).unwrap(),
            port_shaper: None,
            seed: 1,
        };
        Self {
            pipeline: Pipeline::new(&params, Instant::ZERO).unwrap(),
            link: LinkClock::new(LINK),
            now: 0,
            sent: BTreeMap::new(),
            offered: Vec::new(),
        }
    }

    fn set(&mut self, vlan: u16, flows: SliceFlows) -> Result<SliceChanged, SliceChangeError> {
        let now = Instant::from_nanos(self.now);
        let change = flows_of(&(vlan..=vlan), flows);
        self.pipeline.change_slice(change, now)
    }

    fn seen(&mut self, vlan: u16) -> Option<FlowsSeen> {
        let class = self.pipeline.class_of(&name(&(vlan..=vlan))).unwrap();
        let now = Instant::from_nanos(self.now);
        self.pipeline.poll_flows(class, now)
    }

    fn send_until(&mut self, until: u64) {
        while let Some(poll) = self.pipeline.poll_at() {
            let at = poll.nanos().max(self.link.free_at().nanos()).max(self.now);
            if at >= until {
                break;
            }
            self.now = at;
            let now = Instant::from_nanos(at);
            if let Some(frame) = self.pipeline.poll_egress(now) {
                let bytes = ByteCount::new(frame.lengths.l2_bytes.into());
                self.link.send(bytes, now);
                let (flow, arrived) = self.offered[usize::try_from(frame.handle >> 16).unwrap()];
                let sent = self.sent.entry((flow.vlan, flow.port)).or_default();
                sent.push((at, at - arrived));
            }
        }
        self.now = self.now.max(until);
    }

    /// These flows send for a time, and what waits goes on waiting.
    fn run(&mut self, flows: &[Flow], millis: u64) {
        let (from, until) = (self.now, self.now + millis * 1_000_000);
        let mut frames: Vec<(u64, Flow)> = Vec::new();
        for (number, flow) in (0u64..).zip(flows) {
            let gap = u64::from(flow.bytes) * 8_000_000 / flow.kbit;
            let first = from + number * 1_000;
            let times = (0..).map(|n| first + n * gap).take_while(|&at| at < until);
            frames.extend(times.map(|at| (at, *flow)));
        }
        frames.sort_by_key(|(at, _)| *at);
        for (at, flow) in frames {
            self.send_until(at);
            let frame = frame(self.offered.len() as u64, flow.vlan, flow.bytes);
            self.offered.push((flow, at));
            let now = Instant::from_nanos(at);
            let _ = self.pipeline.on_frame(frame, &headers_of(flow), now);
        }
        self.send_until(until);
    }

    /// Frames of a VLAN sent since a time.
    fn frames(&self, vlan: u16, since: u64) -> usize {
        let of_vlan = self.sent.iter().filter(|((one, _), _)| *one == vlan);
        let sent = of_vlan.flat_map(|(_, sent)| sent);
        sent.filter(|(at, _)| *at >= since).count()
    }
}

#[test]
fn a_weight_counts_the_active_flows_until_it_does_not_any_more() {
    let mut rig = Rig::new();
    let many: Vec<Flow> = (0..6).map(|port| flow(1, port, 1_000, 4_000)).collect();
    let all = [&many[..], &[flow(2, 0, 1_000, 20_000)]].concat();
    let share = |rig: &mut Rig| {
        // What is decided holds from the next interval on.
        rig.run(&all, 300);
        let since = rig.now;
        rig.run(&all, 1_000);
        rig.frames(1, since) as f64 / rig.frames(2, since) as f64
    };
    assert!((share(&mut rig) - 1.0).abs() < 0.05);
    assert_eq!(rig.seen(1), None, "nothing is counted");
    rig.set(
        1,
        SliceFlows {
            weigh: true,
            ..SliceFlows::default()
        },
    )
    .unwrap();
    assert!((share(&mut rig) - 6.0).abs() < 0.3);
    let seen = rig.seen(1).unwrap().weighed.unwrap();
    assert_eq!(
        seen,
        Weighed {
            flows: 6,
            weight: 6
        }
    );
    // Another weight of one flow counts at once.
    let twice = Kind {
        weight: 2,
        ..BEST_EFFORT
    };
    let now = Instant::from_nanos(rig.now);
    let changed = change(&(1..=1), twice);
    rig.pipeline.change_slice(changed, now).unwrap();
    assert_eq!(rig.seen(1).unwrap().weighed.unwrap().weight, 12);
    // A change of the whole policy keeps what was counted.
    let mut class = class(&(1..=1), twice);
    class.queue.limit = Some(QueueLimitSpec::Packets(1_000));
    let policy = PolicySpec {
        discipline: Discipline::Guaranteed,
        ..policy(vec![class])
    };
    let whole = Change::Policy(policy.resolve(LINK).unwrap());
    drop(rig.pipeline.apply(whole, now).unwrap());
    assert_eq!(rig.seen(1).unwrap().weighed.unwrap().flows, 6);
    // Nothing is sent any more.
    rig.send_until(rig.now + 500_000_000);
    let seen = rig.seen(1).unwrap().weighed.unwrap();
    assert_eq!((seen.flows, seen.weight), (0, 2));
    rig.set(1, SliceFlows::default()).unwrap();
    assert_eq!(rig.seen(1), None);
}

#[test]
fn flows_get_queues_of_their_own_when_frames_from_before_have_left() {
    let by_flow = || SliceFlows {
        queue: Some(PATIENT),
        ..SliceFlows::default()
    };
    let mut rig = Rig::new();
    let (large, small) = (flow(1, 1, 1_500, 40_000), flow(1, 2, 100, 100));
    rig.run(&[large, small], 20);
    let waiting = rig.pipeline.backlog();
    assert!(waiting > 40, "{waiting}");
    let refused = rig.set(1, by_flow()).unwrap_err().to_string();
    assert!(
        refused
            .ends_with("frames wait that came before its flows were told apart: repeat it later"),
        "{refused}"
    );
    assert_eq!(rig.pipeline.backlog(), waiting);
    // They leave in the time that they take, while others come.
    rig.run(&[flow(1, 1, 1_500, 9_000), small], 20);
    assert!(rig.set(1, by_flow()).is_err());
    rig.run(&[flow(1, 1, 1_500, 9_000), small], 100);
    let waiting = rig.pipeline.backlog();
    rig.set(1, by_flow()).unwrap();
    assert_eq!(rig.pipeline.backlog(), waiting, "frames wait, and move");
    rig.send_until(u64::MAX / 2);
    let sent: usize = rig.sent.values().map(Vec::len).sum();
    assert_eq!(sent, rig.offered.len(), "nothing is lost");
    // Each flow in its order: who came later left later.
    for sent in rig.sent.values() {
        let came = sent.iter().map(|(at, waited)| at - waited);
        assert!(came.is_sorted());
    }
}

/// `cargo test -p slicewise-dataplane --test it -- --nocapture an_elephant_does_not_delay_mice_of_its_slice` prints the delays.
#[test]
fn an_elephant_does_not_delay_mice_of_its_slice_that_has_flow_queueing() {
    let elephant = flow(1, 1, 1_500, 11_000);
    let mice: Vec<Flow> = (2..12).map(|port| flow(1, port, 200, 50)).collect();
    let all = [&mice[..], &[elephant]].concat();
    let largest = |queue| {
        let mut rig = Rig::new();
        let flows = SliceFlows {
            queue,
            elephants: Some(elephants(50_000, 100)),
            ..SliceFlows::default()
        };
        rig.set(1, flows).unwrap();
        rig.run(&all, 2_000);
        let seen = rig.seen(1).unwrap().elephants.unwrap();
        assert_eq!((seen.now, seen.became.flows), (1, 1));
        assert_eq!(seen.became.named, [headers_of(elephant)]);
        let of_mice = rig.sent.iter().filter(|((_, port), _)| *port != 1);
        let waited = of_mice.flat_map(|(_, sent)| sent.iter().map(|(_, waited)| *waited));
        Duration::from_nanos(waited.max().unwrap())
    };
    let [together, apart] = [None, Some(PATIENT)].map(largest);
    println!("mice wait at most {together} in one queue, {apart} in queues of their own");
    // The frame that is being sent, a turn of the elephant, and one of each mouse.
    assert!(
        apart <= Duration::from_micros(2 * 1_200 + 10 * 160),
        "{apart}"
    );
    assert!(together > Duration::from_millis(200), "{together}");
}

#[test]
fn a_flow_that_ceases_to_be_an_elephant_is_named_also_where_nothing_comes_any_more() {
    let mut rig = Rig::new();
    let flows = SliceFlows {
        elephants: Some(elephants(50_000, 100)),
        ..SliceFlows::default()
    };
    rig.set(1, flows).unwrap();
    let (large, small) = (flow(1, 1, 1_500, 8_000), flow(1, 2, 1_500, 1_000));
    rig.run(&[large, small], 150);
    assert_eq!(rig.seen(1).unwrap().elephants.unwrap().now, 0);
    rig.run(&[large, small], 150);
    let seen = rig.seen(1).unwrap().elephants.unwrap();
    assert_eq!(seen.became.named, [headers_of(large)]);
    rig.run(&[large, small], 300);
    let seen = rig.seen(1).unwrap().elephants.unwrap();
    assert_eq!((seen.now, seen.became.flows, seen.ceased.flows), (1, 0, 0));
    rig.send_until(rig.now + 1_000_000_000);
    let seen = rig.seen(1).unwrap().elephants.unwrap();
    assert_eq!((seen.now, seen.became.flows), (0, 0));
    assert_eq!(seen.ceased.named, [headers_of(large)]);
}
