//! Elephants: found in time, and moved without a frame lost or reordered.

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::{Change, DropReason, ElephantCounters, Verdict};
use slicewise_model::{
    ClassMap, ClassSpec, Condition, Detector, Discipline, ElephantsSpec, MatchMode, NamedQueueSpec,
    PolicySpec, QueueLimitSpec, RateSpec,
};
use slicewise_units::{Duration, Instant};

const MS: u64 = 1_000_000;

pub fn queue(name: &str, weight: u32, packets: u32) -> NamedQueueSpec {
    NamedQueueSpec {
        weight: Some(weight),
        queue: QueueLimitSpec::Packets(packets).into(),
        ..NamedQueueSpec::new(name)
    }
}

/// Flows above `rate` in two intervals in a row wait in the queue `elephants`.
pub fn of(rate_of_one: &str, interval: Duration) -> ElephantsSpec {
    ElephantsSpec {
        queue: "elephants".into(),
        rate: RateSpec::Absolute(rate(rate_of_one)),
        detector: Detector::HeavyHitters,
        interval: Some(interval),
        times: None,
        flows: None,
    }
}

/// A class for flows, each with its VLAN, which wait in the queue `mice` unless they are elephants.
pub fn class_of(
    name: &str,
    vlans: std::ops::RangeInclusive<u16>,
    elephants: Option<ElephantsSpec>,
) -> ClassSpec {
    ClassSpec {
        named_queue: Some("mice".into()),
        elephants,
        ..ClassSpec::new(ClassMap {
            name: name.into(),
            mode: MatchMode::Any,
            conditions: vec![Condition::OuterVlan(vlans)],
        })
    }
}

fn spec(queues: Vec<NamedQueueSpec>, classes: Vec<ClassSpec>) -> PolicySpec {
    PolicySpec {
        discipline: Discipline::DeficitRoundRobin,
        queues,
        ..policy(classes)
    }
}

/// One class with elephants, in queues of so many packets.
pub fn two_queues(of_elephants: ElephantsSpec, packets: u32) -> PolicySpec {
    let queues = ["mice", "elephants"].map(|name| queue(name, 1, packets));
    spec(
        queues.to_vec(),
        vec![class_of("all", 0..=4000, Some(of_elephants))],
    )
}

fn port(of_elephants: ElephantsSpec, link: &str) -> Port {
    Port::new(&two_queues(of_elephants, 100_000), Some(rate(link)))
}

fn counters(port: &Port) -> ElephantCounters {
    port.pipeline.elephants().next().unwrap().1
}

/// When a flow of 1 Gbit/s that begins at `start` is tagged, beside nine times as much of many flows.
fn tagged_after(detector: Detector, interval: Duration, start: u64) -> u64 {
    let of_elephants = ElephantsSpec {
        detector,
        ..of("300 Mbit/s", interval)
    };
    let mut port = port(of_elephants, "10 Gbit/s");
    let mut at = start.saturating_sub(4 * MS);
    for number in 0u64.. {
        at += 1_250;
        // In their own order: flows of 45 Mbit/s each.
        let vlan = 1 + (number * 7919 % 200) as u16;
        let _ = port.offer(arrival(at, vlan, 1406));
        if at >= start && number % 9 == 0 {
            let _ = port.offer(arrival(at, 0, 1406));
        }
        if counters(&port).tagged > 0 {
            assert!(at >= start, "it was the flow that is one");
            return at - start;
        }
        assert!(at < start + 30_000 * MS, "never tagged");
    }
    unreachable!()
}

#[test]
fn a_flow_of_1_gbit_s_among_10_is_tagged_within_5_ms() {
    let interval = Duration::from_millis(2);
    let starts = (0..40).map(|tenth| 20 * MS + tenth * MS / 10);
    let worst = starts
        .map(|start| tagged_after(Detector::HeavyHitters, interval, start))
        .max();
    assert!(worst.unwrap() < 4 * MS, "{worst:?} ns");
}

#[test]
fn counters_are_read_at_the_end_of_every_interval() {
    let interval = Duration::from_millis(50);
    for (start, read) in [(100, 100), (101, 100), (130, 100), (149, 150)] {
        let after = tagged_after(Detector::Counters, interval, start * MS);
        let second_read = read * MS + 2 * interval.nanos() - start * MS;
        assert!(
            (second_read..second_read + MS / 10).contains(&after),
            "{start}: {after}"
        );
    }
}

/// Offer frames of a flow at a rate for so long.
fn send(port: &mut Port, vlan: u16, gap: u64, length: u64) {
    let until = port.now() + length;
    while port.now() < until {
        let at = port.now() + gap;
        let _ = port.offer(arrival(at, vlan, 1000));
    }
}

#[test]
fn an_elephant_moves_behind_its_own_frames_and_lets_mice_pass() {
    let mut port = port(of("8 Mbit/s", Duration::from_millis(2)), "10 Mbit/s");
    // 40 Mbit/s: the second interval makes it an elephant, when many of its frames wait.
    send(&mut port, 1, 200_000, 6 * MS);
    assert_eq!(counters(&port).tagged, 1);
    assert_eq!(counters(&port).moved, 0, "its frames wait in the old queue");
    let waiting = port.pipeline.backlog();
    assert!(waiting > 20, "{waiting}");
    let _ = port.offer(arrival(port.now() + 1, 2, 1000));
    port.run_until(u64::MAX / 2);
    assert_eq!(counters(&port).moved, 1);
    assert_in_order(&port.departures);
    assert_conserved(&port);
    let last = port.departures.last().unwrap();
    assert_eq!(
        last.vlan, 1,
        "the mouse did not wait for all of the elephant"
    );
}

#[test]
fn a_flow_moves_back_when_it_has_sent_less_for_as_long() {
    let mut port = port(of("20 Mbit/s", Duration::from_millis(2)), "100 Mbit/s");
    send(&mut port, 1, 200_000, 20 * MS);
    assert_eq!((counters(&port).moved, counters(&port).moved_back), (1, 0));
    // 16 Mbit/s is more than half of the rate.
    send(&mut port, 1, 500_000, 20 * MS);
    assert_eq!((counters(&port).moved, counters(&port).moved_back), (1, 0));
    // 8 Mbit/s.
    send(&mut port, 1, MS, 20 * MS);
    assert_eq!((counters(&port).moved, counters(&port).moved_back), (1, 1));
    assert_eq!(counters(&port).tagged, 1);
}

#[test]
fn a_flow_that_ends_is_forgotten() {
    let spec = ElephantsSpec {
        flows: Some(10),
        ..of("20 Mbit/s", Duration::from_millis(2))
    };
    let mut port = port(spec, "200 Mbit/s");
    for vlan in 0..40 {
        send(&mut port, vlan, 200_000, 10 * MS);
    }
    assert_eq!(counters(&port).tagged, 40);
    assert_eq!(counters(&port).unfollowed_frames, 0);
}

#[test]
fn flows_beyond_the_counters_stay_mice_and_are_counted() {
    let spec = ElephantsSpec {
        detector: Detector::Counters,
        flows: Some(3),
        ..of("5 Mbit/s", Duration::from_millis(4))
    };
    let mut port = port(spec, "200 Mbit/s");
    for round in 0..200u64 {
        for vlan in 0..5 {
            let _ = port.offer(arrival(round * 200_000, vlan, 1000));
        }
    }
    assert_eq!(counters(&port).tagged, 3);
    assert_eq!(counters(&port).unfollowed_frames, 2 * 200);
}

#[test]
fn frames_that_wait_to_move_count_against_the_limit_of_the_new_queue() {
    let queues = vec![queue("mice", 1, 1000), queue("elephants", 1, 5)];
    let of_elephants = of("8 Mbit/s", Duration::from_millis(2));
    let into_elephants = ClassSpec {
        named_queue: Some("elephants".into()),
        ..class_of("other", 9..=9, None)
    };
    let spec = spec(
        queues,
        vec![class_of("all", 0..=8, Some(of_elephants)), into_elephants],
    );
    let mut port = Port::new(&spec, Some(rate("10 Mbit/s")));
    while counters(&port).tagged == 0 {
        send(&mut port, 1, 200_000, 1);
    }
    let mut offered = |vlan| {
        let at = port.now() + 1;
        port.offer(arrival(at, vlan, 1000))
    };
    let full = Verdict::Dropped(DropReason::QueueFull);
    // The first frame of the elephant was put aside when it was tagged.
    assert_eq!([9, 1, 9].map(&mut offered), [Verdict::Queued; 3]);
    assert_eq!([1, 1, 9].map(&mut offered), [Verdict::Queued, full, full]);
    port.run_until(u64::MAX / 2);
    // The limit is what it was.
    let verdicts = [9; 8].map(|vlan| {
        let at = port.now() + 1;
        port.offer(arrival(at, vlan, 1000))
    });
    let queued = verdicts
        .iter()
        .filter(|&&verdict| verdict == Verdict::Queued);
    assert_eq!(queued.count(), 6, "five, and one on the wire");
    assert_conserved(&port);
}

/// What changes of configuration do to a policy with elephants.
#[derive(Debug, Clone, Copy)]
struct Variant {
    of_first: Option<(Detector, u64)>,
    of_second: Option<u64>,
    has_second: bool,
    is_reversed: bool,
    limit: u32,
    weight: u32,
}

fn variant() -> impl Strategy<Value = Variant> {
    let detector = prop_oneof![3 => Just(Detector::HeavyHitters), 1 => Just(Detector::Counters)];
    // Mostly the same setting, with which tags and moves survive.
    let of_first =
        prop::option::weighted(0.8, (detector, prop_oneof![4 => Just(2u64), 1 => Just(3)]));
    let of_second = prop::option::weighted(0.6, Just(1u64));
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.2));
    (of_first, of_second, flags, 4u32..60, 1u32..4).prop_map(
        |(of_first, of_second, (has_second, is_reversed), limit, weight)| Variant {
            of_first,
            of_second,
            has_second,
            is_reversed,
            limit,
            weight,
        },
    )
}

impl Variant {
    fn spec(self) -> PolicySpec {
        let of = |(detector, mbit): (Detector, u64)| ElephantsSpec {
            detector,
            flows: Some(9),
            ..of(&format!("{mbit} Mbit/s"), Duration::from_millis(13))
        };
        let first = class_of("first", 0..=3, self.of_first.map(of));
        let of_second = self
            .of_second
            .map(|mbit| of((Detector::HeavyHitters, mbit)));
        let mut classes = vec![first];
        if self.has_second {
            classes.push(class_of("second", 4..=5, of_second));
        }
        if self.is_reversed {
            classes.reverse();
        }
        let queues = vec![
            queue("elephants", self.weight, self.limit),
            queue("mice", 2, 40),
        ];
        spec(queues, classes)
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Frames of a flow, with the same gap.
    Offer {
        vlan: u16,
        bytes: u32,
        frames: u32,
        gap: u64,
    },
    Pause(u64),
    Apply(Variant),
}

fn step() -> impl Strategy<Value = Step> {
    let offer = (0u16..7, 60u32..1522, 1u32..30, 0u64..900_000);
    prop_oneof![
        20 => offer.prop_map(|(vlan, bytes, frames, gap)| Step::Offer { vlan, bytes, frames, gap }),
        2 => (0..60 * MS).prop_map(Step::Pause),
        2 => variant().prop_map(Step::Apply),
    ]
}

/// Every frame is sent, queued or dropped, also of classes that are no longer there.
fn assert_accounted(port: &Port) {
    let waiting = u64::from(port.pipeline.backlog());
    let accounted = port.departures.len() as u64 + port.dropped + waiting;
    assert_eq!(port.offered(), accounted);
    let queued = port.pipeline.counters().map(|class| class.queued_frames);
    assert_eq!(queued.sum::<u64>(), waiting);
    for class in port.pipeline.counters() {
        let accounted = class.sent_frames + class.queued_frames + class.dropped_total();
        assert_eq!(class.offered_frames, accounted, "{}", class.class);
    }
}

/// Drive random traffic through changes, and check that nothing is lost or reordered.
fn assert_whole(first: Variant, steps: Vec<Step>) -> ElephantCounters {
    let mut port = Port::new(&first.spec(), Some(rate("9 Mbit/s")));
    let mut at = 0;
    for step in steps {
        match step {
            Step::Offer {
                vlan,
                bytes,
                frames,
                gap,
            } => {
                for _ in 0..frames {
                    at += gap;
                    let _ = port.offer(arrival(at, vlan, bytes));
                }
            }
            Step::Pause(time) => at += time,
            Step::Apply(variant) => {
                port.run_until(at);
                let before = port.pipeline.backlog();
                let policy = variant.spec().resolve(rate("9 Mbit/s")).unwrap();
                let change = Change::Policy(policy);
                drop(
                    port.pipeline
                        .apply(change, Instant::from_nanos(at))
                        .unwrap(),
                );
                assert_eq!(port.pipeline.backlog(), before, "a change loses nothing");
            }
        }
        assert_accounted(&port);
    }
    let counters = port
        .pipeline
        .elephants()
        .next()
        .map_or_else(ElephantCounters::default, |it| it.1);
    port.run_until(u64::MAX / 2);
    assert_eq!(port.pipeline.backlog(), 0, "everything leaves");
    assert_accounted(&port);
    assert_in_order(&port.departures);
    counters
}

proptest! {
    #[test]
    fn nothing_is_lost_or_reordered_while_flows_move_and_policies_change(
        first in variant(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        assert_whole(first, steps);
    }
}

/// The link sends as long as anything waits, also frames aside.
#[test]
fn no_link_idles_because_of_frames_aside() {
    let mut port = port(of("8 Mbit/s", Duration::from_millis(2)), "10 Mbit/s");
    for _ in 0..20 {
        send(&mut port, 1, 200_000, 9 * MS);
        send(&mut port, 1, 5 * MS, 30 * MS);
    }
    port.run_until(u64::MAX / 2);
    let ends = port.departures.iter().map(|left| left.at + 800_000);
    let starts = port.departures.iter().skip(1).map(|left| left.at);
    let gaps: Vec<u64> = ends.zip(starts).map(|(end, start)| start - end).collect();
    assert!(counters(&port).moved > 0);
    assert_eq!(gaps.iter().filter(|&&gap| gap > 0).count(), 0, "{gaps:?}");
}
