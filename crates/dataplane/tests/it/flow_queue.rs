//! Flow queues in a pipeline: under every scheduler, behind shapers, and while policies change.
#![allow(clippy::cast_possible_truncation)]

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::DropReason;
use slicewise_model::{
    ClassMap, ClassSpec, CoDelSpec, Condition, Discipline, FlowQueueSpec, FlowsSpec, MatchMode,
    PolicySpec, QueueSpec, RateSpec,
};
use slicewise_units::Duration;
use slicewise_wire::Ecn;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

/// VLANs `first` to `first + 3`: four flows.
fn four_flows(first: u16) -> ClassSpec {
    ClassSpec::new(ClassMap {
        name: format!("from {first}"),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(first..=first + 3)],
    })
}

fn impatient() -> FlowQueueSpec {
    FlowQueueSpec {
        flows: FlowsSpec {
            flows: Some(256),
            priority: vec![vec![46]],
            ..FlowsSpec::default()
        },
        codel: CoDelSpec {
            target: Some(Duration::from_micros(500)),
            interval: Some(Duration::from_millis(3)),
            ..CoDelSpec::default()
        },
    }
}

fn shaped(mut class: ClassSpec) -> ClassSpec {
    class.shape = Some(RateSpec::Absolute(rate("3 Mbit/s")).into());
    class
}

/// How classes share, and what becomes of one of them.
#[derive(Debug, Clone, Copy)]
enum Kind {
    MinimumShare,
    DeficitRoundRobin,
    Priority,
    Shaped,
    Fifo,
    Guaranteed,
}

/// Two classes of four flows each and class-default, with flow queues where `by_flow`.
fn of_kind(kind: Kind, by_flow: [bool; 3]) -> PolicySpec {
    let mut classes = [four_flows(1), four_flows(5), ClassSpec::class_default()];
    for (class, by_flow) in classes.iter_mut().zip(by_flow) {
        if by_flow && (!matches!(kind, Kind::Fifo) || class.matches.is_none()) {
            class.queue = QueueSpec {
                limit: class.queue.limit,
                ..impatient().into()
            };
        }
    }
    let [mut first, second, default] = classes;
    let mut discipline = Discipline::MinimumShare;
    match kind {
        Kind::MinimumShare => first.minimum = Some(RateSpec::PercentMilli(30_000)),
        Kind::DeficitRoundRobin => discipline = Discipline::DeficitRoundRobin,
        Kind::Priority => {
            first.priority = Some(priority(1));
        }
        Kind::Shaped => first = shaped(first),
        Kind::Fifo => discipline = Discipline::Fifo,
        Kind::Guaranteed => {
            discipline = Discipline::Guaranteed;
            first.guarantee = Some(RateSpec::PercentMilli(30_000).into());
        }
    }
    let mut policy = policy(vec![first, second, default]);
    policy.discipline = discipline;
    policy
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::MinimumShare),
        Just(Kind::DeficitRoundRobin),
        Just(Kind::Priority),
        Just(Kind::Shaped),
        Just(Kind::Fifo),
        Just(Kind::Guaranteed),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Offer {
        vlan: u16,
        bytes: u32,
        gap: u64,
        frames: u8,
        ecn: u8,
    },
    Apply(Kind, [bool; 3]),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (1u16..12, 60u32..1522, 0..3 * MS, 1u8..6, 0u8..4).prop_map(
            |(vlan, bytes, gap, frames, ecn)| Step::Offer { vlan, bytes, gap, frames, ecn }
        ),
        1 => (kind(), any::<[bool; 3]>()).prop_map(|(kind, flows)| Step::Apply(kind, flows)),
    ]
}

/// A code point for each flow, so that no flow is on two levels.
fn code_point(vlan: u16) -> u8 {
    if vlan.is_multiple_of(4) { 46 } else { 0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Under any scheduler, and whatever is applied: every frame is sent, waits, or is counted
    /// under one reason and given back, and no flow is reordered.
    #[test]
    fn every_frame_is_accounted_for_and_no_flow_reordered(
        first in kind(),
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let mut port = Port::new(&of_kind(first, [true; 3]), Some(rate("10 Mbit/s")));
        let mut at = 0;
        for step in steps {
            match step {
                Step::Apply(kind, by_flow) => port.apply(&of_kind(kind, by_flow)),
                Step::Offer { vlan, bytes, gap, frames, ecn } => {
                    at += gap;
                    for _ in 0..frames {
                        let arrival = arrival(at, vlan, bytes);
                        let _ = port.offer_marked(arrival, code_point(vlan), Ecn::from_bits(ecn));
                    }
                }
            }
            assert_conserved(&port);
        }
        port.run_until(u64::MAX);
        prop_assert_eq!(port.pipeline.backlog(), 0);
        assert_conserved(&port);
        assert_in_order(&port.departures);
    }
}

/// A link of 10 Mbit/s in whose class VLAN 1 floods and VLAN 2 sends a tenth: the longest wait
/// of each.
fn beside_a_flood(class: ClassSpec, ecn: Ecn) -> (BTreeMap<u16, u64>, Port) {
    let mut port = Port::new(&policy(vec![class]), Some(rate("10 Mbit/s")));
    let until = Duration::from_millis(2_000);
    let arrivals = merged(vec![
        constant(1, 1250, rate("20 Mbit/s"), until),
        constant(2, 1250, rate("300 kbit/s"), until),
    ]);
    for &arrival in &arrivals {
        let _ = port.offer_marked(arrival, 0, ecn);
    }
    port.run_until(until.nanos());
    let mut longest = BTreeMap::new();
    for departure in &port.departures {
        let wait = departure.at - arrivals[departure.sequence as usize].at;
        let longest = longest.entry(departure.vlan).or_insert(0);
        *longest = wait.max(*longest);
    }
    assert_conserved(&port);
    (longest, port)
}

#[test]
fn a_flow_beside_a_flood_waits_for_a_frame_and_not_for_the_flood() {
    let mut class = four_flows(1);
    class.queue.limit = Some(slicewise_model::QueueLimitSpec::Packets(200));
    let (longest, _) = beside_a_flood(class.clone(), Ecn::NotEct);
    assert!(longest[&2] > 100 * MS, "{longest:?}");
    class.queue = QueueSpec {
        limit: class.queue.limit,
        ..FlowQueueSpec::default().into()
    };
    let (longest, port) = beside_a_flood(class.clone(), Ecn::NotEct);
    // The frame on the link and one that was staged.
    assert!(longest[&2] <= 2 * MS, "{longest:?}");
    let counters = port.pipeline.counters().next().unwrap();
    assert!(counters.dropped(DropReason::CoDel) > 0);
    assert!(counters.dropped(DropReason::Overlimit) > 0);
    // Behind a shaper the next frame is staged early: a frame more to wait for.
    let (longest, _) = beside_a_flood(shaped(class), Ecn::NotEct);
    assert!(longest[&2] <= 2 * 4 * MS, "{longest:?}");
}

#[test]
fn ecn_capable_frames_are_marked_and_counted_by_class() {
    let mut class = four_flows(1);
    class.queue = QueueSpec {
        limit: class.queue.limit,
        ..FlowQueueSpec::default().into()
    };
    class.queue.limit = Some(slicewise_model::QueueLimitSpec::Packets(10_000));
    let (_, port) = beside_a_flood(class, Ecn::Ect0);
    let counters = port.pipeline.counters().next().unwrap();
    assert!(counters.marked_frames > 10);
    assert_eq!(counters.dropped_total(), 0);
}

#[test]
fn codel_state_survives_a_change() {
    let mut class = four_flows(1);
    class.queue = QueueSpec {
        limit: class.queue.limit,
        ..FlowQueueSpec::default().into()
    };
    class.queue.limit = Some(slicewise_model::QueueLimitSpec::Packets(10_000));
    let run = |is_changed: bool| {
        let spec = policy(vec![class.clone()]);
        let mut port = Port::new(&spec, Some(rate("10 Mbit/s")));
        let flood = constant(1, 1250, rate("20 Mbit/s"), Duration::from_millis(1_000));
        for (n, &arrival) in flood.iter().enumerate() {
            if is_changed && n % 100 == 99 {
                port.apply(&spec);
            }
            let _ = port.offer(arrival);
        }
        let counters = port.pipeline.counters().next().unwrap();
        counters.dropped(DropReason::CoDel)
    };
    let undisturbed = run(false);
    assert!(undisturbed > 10);
    assert!(run(true).abs_diff(undisturbed) <= 1);
}

#[test]
fn frames_that_codel_drops_during_a_change_are_counted_and_given_back() {
    let policy = of_kind(Kind::Guaranteed, [true; 3]);
    let mut port = Port::new(&policy, Some(rate("10 Mbit/s")));
    let flood = constant(1, 1250, rate("20 Mbit/s"), Duration::from_millis(500));
    let mut by_changes = 0;
    for (n, &arrival) in flood.iter().enumerate() {
        let _ = port.offer(arrival);
        if n % 10 == 9 {
            let before = port.dropped;
            port.apply(&policy);
            assert_conserved(&port);
            by_changes += port.dropped - before;
        }
    }
    assert!(by_changes > 5, "{by_changes} frames");
}
