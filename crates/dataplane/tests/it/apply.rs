//! Changes while frames wait: nothing lost, reordered or reset.

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::{Change, DropReason, Stale, Verdict};
use slicewise_model::{
    BurstSpec, ClassSpec, Condition, Discipline, FlowQueueSpec, GuaranteeSpec, ManagerSpec,
    MaximumSpec, PolicySpec, QueueLimitSpec, QueueSpec, RateSpec,
};
use slicewise_units::{ByteCount, Duration, Instant};
use std::ops::RangeInclusive;

/// What a class of the random policies is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Absent,
    Plain,
    Priority,
    Shaped,
    Minimum,
}

fn class(vlan: u16, kind: Kind) -> Option<ClassSpec> {
    let mut class = vlan_class(vlan);
    match kind {
        Kind::Absent => return None,
        Kind::Plain => {}
        Kind::Priority => {
            class.priority = Some(priority(1));
        }
        Kind::Shaped => {
            class.shape = Some(RateSpec::Absolute(rate("3 Mbit/s")).into());
        }
        Kind::Minimum => class.minimum = Some(RateSpec::Absolute(rate("2 Mbit/s"))),
    }
    Some(class)
}

/// The class with the frames of these VLANs.
fn with_vlans(class: &ClassSpec, vlans: RangeInclusive<u16>) -> ClassSpec {
    let mut class = class.clone();
    if let Some(map) = &mut class.matches {
        map.conditions = vec![Condition::OuterVlan(vlans)];
    }
    class
}

/// The same kinds as slices of a guaranteed policy.
fn slice(vlan: u16, kind: Kind) -> Option<ClassSpec> {
    let mut class = vlan_class(vlan);
    let guarantee = |burst| {
        Some(GuaranteeSpec {
            rate: RateSpec::Absolute(rate("1 Mbit/s")),
            burst: Some(BurstSpec::Size(ByteCount::new(burst))),
            delay: Some(Duration::from_millis(80)),
            smallest_frame: None,
        })
    };
    match kind {
        Kind::Absent => return None,
        Kind::Plain => class.weight = Some(3),
        Kind::Priority => class.guarantee = guarantee(4_000),
        Kind::Minimum => class.guarantee = guarantee(1_522),
        Kind::Shaped => {
            class.maximum = Some(MaximumSpec {
                rate: RateSpec::Absolute(rate("3 Mbit/s")),
                burst: None,
            });
        }
    }
    Some(class)
}

#[derive(Debug, Clone)]
enum Step {
    Offer {
        vlan: u16,
        bytes: u32,
        gap: u64,
    },
    Apply {
        kinds: [Kind; 3],
        reversed: bool,
        guaranteed: bool,
        /// The class of VLAN 1 also matches VLAN 2.
        wide: bool,
    },
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Absent),
        Just(Kind::Plain),
        Just(Kind::Priority),
        Just(Kind::Shaped),
        Just(Kind::Minimum)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0u16..4, 60u32..1522, 0u64..800_000)
            .prop_map(|(vlan, bytes, gap)| Step::Offer { vlan, bytes, gap }),
        1 => ([kind(), kind(), kind()], any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(kinds, reversed, guaranteed, wide)| Step::Apply { kinds, reversed, guaranteed, wide }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_change_loses_or_reorders_a_frame(steps in prop::collection::vec(step(), 1..400)) {
        let mut port = Port::new(&policy(vec![vlan_class(0), vlan_class(1)]), Some(rate("5 Mbit/s")));
        let mut at = 0;
        for step in steps {
            match step {
                Step::Offer { vlan, bytes, gap } => {
                    at += gap;
                    let _ = port.offer(arrival(at, vlan, bytes));
                }
                Step::Apply { kinds, reversed, guaranteed, wide } => {
                    let class = if guaranteed { slice } else { class };
                    let mut classes: Vec<ClassSpec> =
                        (0u16..).zip(kinds).filter_map(|(vlan, kind)| class(vlan, kind)).collect();
                    if let Some(class) = classes.iter_mut().find(|class| wide && class.name == "vlan1") {
                        *class = with_vlans(class, 1..=2);
                    }
                    if reversed {
                        classes.reverse();
                    }
                    let before = port.pipeline.backlog();
                    let mut spec = policy(classes);
                    if guaranteed {
                        spec.discipline = Discipline::Guaranteed;
                    }
                    port.apply(&spec);
                    prop_assert_eq!(port.pipeline.backlog(), before, "a change loses nothing");
                }
            }
        }
        port.run_until(u64::MAX / 2);
        prop_assert_eq!(port.pipeline.backlog(), 0, "everything drains");
        prop_assert_eq!(port.offered(), port.departures.len() as u64 + port.dropped);
        assert_in_order(&port.departures);
    }
}

#[test]
fn a_change_of_rate_keeps_the_credit_and_the_counters() {
    let shaped = |text: &str| {
        let mut class = class(1, Kind::Shaped).unwrap();
        class.shape.as_mut().unwrap().rate = RateSpec::Absolute(rate(text));
        class.shape.as_mut().unwrap().committed_burst_bits = Some(16_000.into());
        policy(vec![class])
    };
    let mut port = Port::new(&shaped("8 Mbit/s"), None);
    port.offer_all(&[arrival(0, 1, 1000); 10]);
    port.run_until(1);
    assert_eq!(port.departures.len(), 2, "the burst of 2,000 B");
    port.apply(&shaped("4 Mbit/s"));
    port.run_until(1_999_000);
    assert_eq!(
        port.departures.len(),
        2,
        "a change gives no new burst: 1,000 B take 2 ms at 4 Mbit/s"
    );
    port.run_until(2_001_000);
    assert_eq!(port.departures.len(), 3);
    let counters = port.pipeline.counters().next().unwrap();
    assert_eq!(
        (
            counters.offered_frames,
            counters.sent_frames,
            counters.queued_frames
        ),
        (10, 3, 7)
    );
}

fn change_to(spec: &PolicySpec) -> Change {
    Change::Policy(spec.resolve(rate("1 Gbit/s")).unwrap())
}

#[test]
fn a_rejected_change_leaves_the_old_policy_active() {
    let mut port = Port::new(&policy(vec![vlan_class(1)]), Some(rate("1 Mbit/s")));
    // No file says so: it is refused when it is read.
    let classes = (1..=64u16).map(|vlan| class(vlan, Kind::Priority).unwrap());
    let spec = policy(classes.collect());
    let mut too_many = spec.resolve(rate("1 Gbit/s")).unwrap();
    let priorities = too_many
        .classes
        .iter_mut()
        .filter_map(|class| class.priority.as_mut());
    for (priority, level) in priorities.zip(1..) {
        priority.level = level;
    }
    let too_many = Change::Policy(too_many);
    assert!(port.pipeline.apply(too_many, Instant::ZERO).is_err());
    let _ = port.offer(arrival(0, 1, 1000));
    let class = port.pipeline.counters().next().unwrap();
    assert_eq!((class.class.as_str(), class.queued_frames), ("vlan1", 1));
}

#[test]
fn frames_of_several_queues_drain_in_order_of_arrival() {
    // Those of the last are of the first before the change.
    let classes = || {
        (1..=3)
            .map(|vlan| with_vlans(&vlan_class(vlan), 1..=vlan))
            .collect()
    };
    let mut port = Port::new(&policy(classes()), Some(rate("1 Mbit/s")));
    let offer = |port: &mut Port, vlan| {
        let at = port.now() + 1;
        let _ = port.offer(arrival(at, vlan, 100));
    };
    for vlan in [3, 1, 2, 2, 1, 3, 1] {
        offer(&mut port, vlan);
    }
    let first = port.departures.len();
    let mut reordered: Vec<ClassSpec> = classes();
    reordered.reverse();
    port.apply(&policy(reordered));
    for vlan in [1, 2] {
        offer(&mut port, vlan);
    }
    port.run_until(u64::MAX / 2);
    let order: Vec<u64> = port.departures[first..]
        .iter()
        .map(|left| left.sequence)
        .take(7 - first)
        .collect();
    assert!(first <= 1 && order.is_sorted(), "{order:?}");
}

/// Their frames leave in the order of arrival if they drain, and those of the class with priority before if both queues are kept.
#[test]
fn classes_that_no_other_takes_frames_from_keep_their_queues_wherever_they_stand() {
    let priority = |vlans| with_vlans(&class(1, Kind::Priority).unwrap(), vlans);
    let plain = || with_vlans(&vlan_class(2), 2..=3);
    let classes = || vec![plain(), priority(1..=1)];
    let new = |vlans| with_vlans(&vlan_class(9), vlans);
    for (after, is_kept) in [
        (vec![priority(1..=1), plain()], true),
        (vec![new(9..=9), plain(), priority(1..=1)], true),
        (vec![new(1..=3), plain(), priority(1..=1)], false),
        (vec![new(0..=1), plain(), priority(1..=1)], true),
        (vec![priority(1..=2), plain()], false),
    ] {
        let mut port = Port::new(&policy(classes()), Some(rate("1 Mbit/s")));
        for vlan in [2, 2, 2, 1] {
            let _ = port.offer(arrival(port.now(), vlan, 1_000));
        }
        port.apply(&policy(after.clone()));
        port.run_until(u64::MAX / 2);
        let left = port.departures.iter().map(|left| left.vlan);
        let order: Vec<u16> = left.collect();
        let kept = order == [1, 2, 2, 2];
        assert_eq!(kept, is_kept, "{order:?} {after:?}");
        assert!(kept || order == [2, 2, 2, 1], "{order:?}");
    }
}

#[test]
fn a_change_prepared_for_a_configuration_that_has_changed_since_is_refused() {
    let mut port = Port::new(&policy(vec![vlan_class(1)]), None);
    let now = Instant::ZERO;
    let basis = port.pipeline.basis();
    let prepare = |vlan| basis.prepare(change_to(&policy(vec![vlan_class(vlan)])), now);
    let (first, second) = (prepare(2).unwrap(), prepare(3).unwrap());
    let _ = port.offer(arrival(0, 1, 1000));
    assert!(port.pipeline.commit(first, now).is_ok());
    assert_eq!(port.pipeline.commit(second, now).unwrap_err(), Stale);
    let classes = |port: &Port| -> Vec<String> {
        let counters = port.pipeline.counters();
        counters.map(|class| class.class.clone()).collect()
    };
    assert_eq!(classes(&port)[0], "vlan2", "the first stays in force");
    let again = port.pipeline.basis();
    let again = again.prepare(change_to(&policy(vec![vlan_class(3)])), now);
    assert!(port.pipeline.commit(again.unwrap(), now).is_ok());
    assert_eq!(classes(&port)[0], "vlan3");
}

#[test]
fn a_change_can_be_prepared_on_another_thread() {
    let mut port = Port::new(&policy(vec![vlan_class(1)]), None);
    let basis = port.pipeline.basis();
    let change = change_to(&policy(vec![vlan_class(2)]));
    let prepare = move || basis.prepare(change, Instant::ZERO).unwrap();
    let prepared = std::thread::spawn(prepare).join().unwrap();
    let replaced = port.pipeline.commit(prepared, Instant::ZERO).unwrap();
    std::thread::spawn(move || drop(replaced)).join().unwrap();
}

#[test]
fn frames_leave_in_order_where_classes_keep_their_names_and_swap_their_class_maps() {
    let named = |name: &str, vlan| {
        let mut class = vlan_class(vlan);
        class.name = name.into();
        class.matches.as_mut().unwrap().name = name.into();
        class
    };
    let classes = |a, b| policy(vec![named("a", a), named("b", b)]);
    let mut port = Port::new(&classes(1, 2), Some(rate("1 Mbit/s")));
    port.offer_all(&[arrival(0, 1, 1000); 20]);
    port.apply(&classes(2, 1));
    let _ = port.offer(arrival(port.now(), 1, 60));
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 21);
    assert_in_order(&port.departures);
}

#[test]
fn a_queue_that_begins_to_keep_flows_apart_lets_those_before_it_leave_first() {
    let mut port = Port::new(&policy(vec![vlan_class(1)]), Some(rate("1 Mbit/s")));
    let mut by_flow = vlan_class(1);
    by_flow.queue = QueueSpec {
        limit: by_flow.queue.limit,
        ..FlowQueueSpec::default().into()
    };
    port.offer_all(&[arrival(0, 1, 1000); 20]);
    port.apply(&policy(vec![by_flow]));
    let at = port.now();
    let _ = port.offer(arrival(at, 1, 60));
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 21);
    assert_in_order(&port.departures);
}

#[test]
fn a_slice_keeps_its_deadlines_over_a_change_of_another() {
    let guaranteed = |classes: Vec<ClassSpec>| {
        let mut spec = policy(classes);
        spec.discipline = Discipline::Guaranteed;
        spec
    };
    let kept = slice(1, Kind::Priority).unwrap();
    let mut port = Port::new(
        &guaranteed(vec![kept.clone(), vlan_class(2)]),
        Some(rate("5 Mbit/s")),
    );
    for vlan in [2, 2, 2, 1, 1] {
        let _ = port.offer(arrival(0, vlan, 1500));
    }
    let heavier = slice(2, Kind::Plain).unwrap();
    port.apply(&guaranteed(vec![kept, heavier]));
    port.run_until(u64::MAX / 2);
    let order: Vec<u16> = port.departures.iter().map(|d| d.vlan).collect();
    // Its first frames were eligible when they came, before the change.
    assert_eq!(order[..3], [1, 1, 2]);
    assert_in_order(&port.departures);
}

#[test]
fn a_change_of_another_class_gives_a_slice_no_fresh_burst() {
    let guaranteed = |other: u16| {
        let mut limited = vlan_class(2);
        limited.maximum = Some(MaximumSpec {
            rate: RateSpec::Absolute(rate("1 Mbit/s")),
            burst: Some(BurstSpec::Size(ByteCount::new(3_044))),
        });
        let mut spec = policy(vec![vlan_class(other), limited]);
        spec.discipline = Discipline::Guaranteed;
        spec
    };
    let mut port = Port::new(&guaranteed(1), Some(rate("1 Gbit/s")));
    let burst = |at| [at, at].map(|at| arrival(at, 2, 1_500));
    port.offer_all(&burst(0));
    port.run_until(100_000);
    assert_eq!(port.departures.len(), 2, "the burst");
    // Which frames are of the second class now reads otherwise, and it is the same class.
    port.apply(&guaranteed(3));
    port.offer_all(&burst(100_000));
    port.run_until(1_000_000);
    assert_eq!(port.departures.len(), 2, "not another one");
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 4);
}

#[test]
fn a_removed_class_counts_its_frames_until_the_last_has_left() {
    let mut port = Port::new(&policy(vec![vlan_class(1)]), Some(rate("1 Mbit/s")));
    port.offer_all(&[arrival(0, 1, 1000); 3]);
    let counted = |port: &Port| {
        let class = port.pipeline.counters().find(|c| c.class == "vlan1");
        class.map(|c| (c.sent_frames, c.queued_frames))
    };
    port.apply(&policy(vec![vlan_class(2)]));
    assert_eq!(counted(&port), Some((0, 3)));
    port.run_until(9_000_000);
    assert_eq!(counted(&port), Some((2, 1)), "8 ms a frame");
    port.run_until(u64::MAX / 2);
    port.apply(&policy(vec![vlan_class(3)]));
    assert_eq!(counted(&port), None, "nothing refers to it");
}

#[test]
fn the_buffer_holds_what_all_queues_may_hold_and_a_frame_more_for_each() {
    let limited = |vlan, packets| {
        let mut class = vlan_class(vlan);
        class.queue.limit = Some(QueueLimitSpec::Packets(packets));
        class
    };
    let spec = policy(vec![limited(1, 10), limited(2, 20)]);
    // Beside the two classes there is the default class.
    let port = Port::new(&spec, None);
    let default = spec.resolve(rate("1 Gbit/s")).unwrap();
    let default = default.classes.last().unwrap().queue.limit.packets;
    assert_eq!(port.pipeline.capacity(), 11 + 21 + default + 1);
}

#[test]
fn after_a_change_the_buffer_also_holds_what_was_waiting() {
    let limited = |packets| {
        let mut class = vlan_class(1);
        class.queue.limit = Some(QueueLimitSpec::Packets(packets));
        policy(vec![class])
    };
    let mut port = Port::new(&limited(10), Some(rate("1 Mbit/s")));
    port.offer_all(&[arrival(0, 1, 1000); 8]);
    let waiting = port.pipeline.backlog();
    assert!(waiting > 1);
    port.apply(&limited(5_000));
    let default = limited(5_000).resolve(rate("1 Gbit/s")).unwrap();
    let default = default.classes.last().unwrap().queue.limit.packets;
    assert_eq!(port.pipeline.capacity(), 5_001 + default + 1 + waiting);
}

#[test]
fn early_detection_goes_on_with_its_average_after_a_change() {
    let limited = |limit| {
        let mut class = vlan_class(1);
        class.queue.manager = ManagerSpec::Red(red(1, 2, 1));
        class.queue.limit = Some(QueueLimitSpec::Packets(limit));
        policy(vec![class])
    };
    let mut port = Port::new(&limited(50), Some(rate("1 Mbit/s")));
    let offer = |port: &mut Port| {
        let at = port.now();
        port.offer(arrival(at, 1, 1000))
    };
    let mut verdict = Verdict::Queued;
    for _ in 0..20 {
        verdict = offer(&mut port);
    }
    assert_eq!(verdict, Verdict::Dropped(DropReason::RedForced));
    port.apply(&limited(60));
    assert_eq!(offer(&mut port), Verdict::Dropped(DropReason::RedForced));
}
