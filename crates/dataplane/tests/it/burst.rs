//! Bursts: the same outcome as frame by frame.

use crate::elephants;
use crate::support::{self, frame, headers, policy, rate, shaped, vlan_class};
use proptest::prelude::*;
use slicewise_dataplane::{
    Change, ClassCounters, Departure, DropReason, Frame, FrameOwner, Pipeline, PipelineParams,
    TrafficClass, Verdict,
};
use slicewise_model::{
    Action, ClassMap, ClassSpec, CoDelSpec, Condition, Discipline, FlowQueueSpec, ManagerSpec,
    MatchMode, PolicerSpec, PolicySpec, PrioritySpec, QueueLimitSpec, QueueSpec, RateSpec,
    ShaperParams, WredSpec,
};
use slicewise_units::{Accounting, ByteCount, Duration, Instant};
use slicewise_wire::{Ecn, Headers};
use std::ops::ControlFlow;

/// Policies over the VLANs 1 to 4, of which every mechanism is in one.
fn policies() -> Vec<PolicySpec> {
    let mut priority = vlan_class(1);
    priority.priority = Some(PrioritySpec {
        level: 1,
        rate: Some(RateSpec::Absolute(rate("100 Mbit/s"))),
        burst: None,
        accounting: Accounting::L2,
    });
    // Strict priority and nothing else.
    let levels = [1, 2, 3].map(|level| {
        let mut class = vlan_class(level.into());
        class.priority = Some(support::priority(level));
        class
    });
    let levels = levels.to_vec();
    let mut policed = vlan_class(2);
    policed.police = Some(PolicerSpec {
        exceed: Some(Action::SetDscp(8)),
        violate: Some(Action::Drop),
        pir: Some(RateSpec::Absolute(rate("300 Mbit/s"))),
        ..PolicerSpec::new(RateSpec::Absolute(rate("100 Mbit/s")))
    });
    let mut red = vlan_class(3);
    red.queue.manager = ManagerSpec::Red(WredSpec {
        exponential_weight: Some(1),
        ..WredSpec::default()
    });
    let mut by_flow = vlan_class(2);
    by_flow.queue = QueueSpec {
        limit: by_flow.queue.limit,
        ..FlowQueueSpec {
            codel: CoDelSpec {
                target: Some(Duration::from_micros(50)),
                interval: Some(Duration::from_micros(500)),
                ecn: Some(true),
            },
            ..FlowQueueSpec::default()
        }
        .into()
    };
    let mut minimum = vlan_class(1);
    minimum.minimum = Some(RateSpec::Absolute(rate("200 Mbit/s")));
    let mut guaranteed = vlan_class(1);
    guaranteed.guarantee = Some(RateSpec::Absolute(rate("100 Mbit/s")).into());
    let mut narrow = shaped(4, "50 Mbit/s", 20_000);
    narrow.weight = Some(2);
    let turns = [(1, 1), (2, 3), (3, 2)].map(|(vlan, weight)| {
        let mut class = vlan_class(vlan);
        class.weight = Some(weight);
        class
    });
    let mut parent = ClassSpec::new(ClassMap {
        name: "parent".into(),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(2..=3)],
    });
    parent.child = Some(Box::new(PolicySpec {
        discipline: Discipline::DeficitRoundRobin,
        ..policy(turns[1..].to_vec())
    }));
    let specs = [
        (Discipline::Fifo, vec![]),
        (Discipline::DeficitRoundRobin, turns.to_vec()),
        (Discipline::DeficitRoundRobin, vec![vlan_class(1), parent]),
        (Discipline::MinimumShare, levels),
        (Discipline::MinimumShare, vec![priority, policed, red]),
        (
            Discipline::MinimumShare,
            vec![minimum, by_flow.clone(), narrow.clone()],
        ),
        (
            Discipline::DeficitRoundRobin,
            vec![vlan_class(1), by_flow.clone(), narrow],
        ),
        (
            Discipline::Guaranteed,
            vec![guaranteed, by_flow, vlan_class(3)],
        ),
    ];
    let with_limits = |(discipline, mut classes): (Discipline, Vec<_>)| {
        classes.iter_mut().for_each(limit_queues);
        PolicySpec {
            discipline,
            ..policy(classes)
        }
    };
    let of_elephants = elephants::of("20 Mbit/s", Duration::from_micros(700));
    let with_elephants = elephants::two_queues(of_elephants, 12);
    let specs = specs.into_iter().map(with_limits);
    specs.chain([with_elephants]).collect()
}

fn limit_queues(class: &mut ClassSpec) {
    match &mut class.child {
        Some(child) => child.classes.iter_mut().for_each(limit_queues),
        None => class.queue.limit = Some(QueueLimitSpec::Packets(12)),
    }
}

fn pipeline(spec: &PolicySpec, is_shaped: bool) -> Pipeline {
    let port_shaper = is_shaped.then(|| ShaperParams {
        rate: slicewise_model::Rate::l2(rate("400 Mbit/s")),
        burst: ByteCount::new(3_000),
        priority_borrows: false,
    });
    let params = PipelineParams {
        policy: spec.resolve(rate("1 Gbit/s")).unwrap(),
        port_shaper,
        seed: 1,
    };
    Pipeline::new(&params, Instant::ZERO).unwrap()
}

/// Frames that arrive after a pause of so many microseconds, and how many may leave then.
#[derive(Debug, Clone)]
struct Step {
    pause: u64,
    /// VLAN, length, flow and whether it is ECN-capable.
    arrivals: Vec<(u16, u32, u16, bool)>,
    departures: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let arrival = (1u16..6, 0u32..1_500, 0u16..4, any::<bool>());
    let arrivals = prop::collection::vec(arrival, 0..80);
    let step = (0u64..400, arrivals, 0usize..40);
    let step = step.prop_map(|(pause, arrivals, departures)| Step {
        pause,
        arrivals,
        departures,
    });
    prop::collection::vec(step, 1..12)
}

/// All that can be seen of a pipeline.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Handles of frames that were dropped on arrival or while others arrived, in order.
    dropped: Vec<(u64, DropReason)>,
    departures: Vec<(Instant, Departure)>,
    /// Handles of frames that were dropped while others left, in order.
    dropped_late: Vec<(u64, DropReason)>,
    poll_at: Vec<Option<Instant>>,
    counters: Vec<ClassCounters>,
}

/// Where memory is scarce, every third frame finds none.
struct Owner {
    is_scarce: bool,
    seen: Seen,
}

impl FrameOwner for Owner {
    fn try_hold(&mut self, frame: &Frame, class: u32) -> bool {
        !self.is_scarce || !(frame.handle + u64::from(class)).is_multiple_of(3)
    }

    fn on_dropped(&mut self, frame: &Frame, reason: DropReason) {
        self.seen.dropped.push((frame.handle, reason));
    }
}

/// How frames are offered and polled.
#[derive(Debug, Clone, Copy)]
enum Form {
    Single,
    Bursts(usize),
}

/// The frames of a step, numbered from `first`, and their headers.
fn offered(step: &Step, first: u64) -> (Vec<Frame>, Vec<Headers>) {
    let offered = step.arrivals.iter().zip(first..);
    let offered = offered.map(|(&(vlan, bytes, flow, capable), handle)| {
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let frame = Frame {
            handle,
            traffic_class: TrafficClass::new(0, ecn),
            ..frame(0, 0, bytes)
        };
        let headers = Headers {
            source_port: flow,
            ..headers(vlan)
        };
        (frame, headers)
    });
    offered.unzip()
}

fn pass_singly(pipeline: &mut Pipeline, step: &Step, first: u64, at: Instant, owner: &mut Owner) {
    let (frames, fields) = offered(step, first);
    for (frame, fields) in frames.iter().zip(&fields) {
        if let Verdict::Dropped(reason) = pipeline.on_frame(*frame, fields, at) {
            owner.on_dropped(frame, reason);
        }
        while let Some(dropped) = pipeline.poll_dropped() {
            owner.on_dropped(&dropped.frame, dropped.reason);
        }
    }
    let polled = std::iter::from_fn(|| pipeline.poll_departure(at));
    let polled = polled.take(step.departures).map(|sent| (at, sent));
    owner.seen.departures.extend(polled);
}

fn pass_in_bursts(
    pipeline: &mut Pipeline,
    step: &Step,
    first: u64,
    at: Instant,
    owner: &mut Owner,
    most: usize,
) {
    let (frames, fields) = offered(step, first);
    for (frames, fields) in frames.chunks(most).zip(fields.chunks(most)) {
        pipeline.enqueue_burst(frames, fields, at, owner);
    }
    let mut left = step.departures;
    while left > 0 {
        let mut room = most.min(left);
        left -= room;
        let ended = pipeline.dequeue_burst(at, |departure| {
            owner.seen.departures.push((at, departure));
            room -= 1;
            if room > 0 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        if ended.is_continue() {
            return;
        }
    }
}

/// `change` comes before the second half of the steps.
fn drive(
    mut pipeline: Pipeline,
    steps: &[Step],
    form: Form,
    is_scarce: bool,
    change: &PolicySpec,
) -> Seen {
    let seen = Seen::default();
    let mut owner = Owner { is_scarce, seen };
    let (mut now, mut first) = (0, 0);
    for (index, step) in steps.iter().enumerate() {
        now += step.pause * 1_000;
        let at = Instant::from_nanos(now);
        if index == steps.len() / 2 {
            let policy = change.resolve(rate("1 Gbit/s")).unwrap();
            let _ = pipeline.apply(Change::Policy(policy), at).unwrap();
        }
        match form {
            Form::Single => pass_singly(&mut pipeline, step, first, at, &mut owner),
            Form::Bursts(most) => {
                pass_in_bursts(&mut pipeline, step, first, at, &mut owner, most);
            }
        }
        first += step.arrivals.len() as u64;
        while let Some(dropped) = pipeline.poll_dropped() {
            let dropped = (dropped.frame.handle, dropped.reason);
            owner.seen.dropped_late.push(dropped);
        }
        owner.seen.poll_at.push(pipeline.poll_at());
    }
    owner.seen.counters = pipeline.counters().cloned().collect();
    owner.seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn bursts_of_any_length_give_what_single_frames_give(
        steps in steps(),
        most in 1usize..70,
        is_shaped in any::<bool>(),
        reversed in any::<bool>(),
    ) {
        for spec in policies() {
            let new = || pipeline(&spec, is_shaped);
            // Classes in another order: what waits in their queues leaves before all else.
            let mut other = spec.clone();
            other.classes.reverse();
            let change = if reversed { &other } else { &spec };
            let single = drive(new(), &steps, Form::Single, false, change);
            let bursts = drive(new(), &steps, Form::Bursts(most), false, change);
            prop_assert_eq!(single, bursts, "{:?}", spec.discipline);
        }
    }

    #[test]
    fn memory_is_asked_for_each_frame_of_a_burst_as_for_one_alone(
        steps in steps(),
        most in 2usize..70,
    ) {
        for spec in policies() {
            let new = || pipeline(&spec, false);
            let alone = drive(new(), &steps, Form::Bursts(1), true, &spec);
            let bursts = drive(new(), &steps, Form::Bursts(most), true, &spec);
            let full = |seen: &Seen| {
                let counters = seen.counters.iter();
                counters.map(|class| class.dropped(DropReason::BufferFull)).sum::<u64>()
            };
            let offered: u64 = alone.counters.iter().map(|class| class.offered_frames).sum();
            prop_assert!(offered < 200 || full(&alone) > 0, "no frame lacked memory");
            prop_assert_eq!(alone, bursts, "{:?}", spec.discipline);
        }
    }
}
