//! Class maps that meet others, exchanged at once on the way to another policy.

use super::gradual::{carry_out, slot, slots, steps, steps_to};
use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const KIND: Kind = guaranteed(1_000, 3_000, Duration::from_millis(20));
const VLANS: std::ops::Range<u16> = 0..11;

fn of(vlans: RangeInclusive<u16>) -> Option<(RangeInclusive<u16>, Kind)> {
    Some((vlans, KIND))
}

/// Also with a range that does not compile into tables.
fn wide_or_not() -> impl Strategy<Value = Option<(RangeInclusive<u16>, Kind)>> {
    (slot(), prop::bool::weighted(0.1)).prop_map(|(slot, is_wide)| {
        let (vlans, kind) = slot?;
        let last = if is_wide {
            vlans.start() + 16
        } else {
            *vlans.end()
        };
        Some((*vlans.start()..=last, kind))
    })
}

/// The name of the first class of which frames of a VLAN are.
fn first_match(policy: &PolicySpec, vlan: u16) -> &str {
    let classes = policy.classes.iter();
    let mut matching = classes.filter(|class| {
        let map = class.matches.as_ref();
        map.is_some_and(|map| map.matches(&headers(vlan)))
    });
    matching.next().map_or(CLASS_DEFAULT, |class| &class.name)
}

/// A frame of a VLAN arrives; the name of the class that counts it.
fn class_of_next(port: &mut Port, vlan: u16) -> String {
    let counted = |port: &Port| -> Vec<u64> {
        let classes = port.pipeline.counters();
        classes.map(|class| class.offered_frames).collect()
    };
    // What was on its way may end with it.
    let at = port.now();
    let _ = port.offer(Arrival {
        at,
        vlan,
        bytes: 500,
    });
    let before = counted(port);
    let _ = port.offer(Arrival {
        at,
        vlan,
        bytes: 500,
    });
    let after = counted(port);
    let classes = before.iter().zip(&after);
    let grown: Vec<usize> = classes
        .enumerate()
        .filter_map(|(class, (before, after))| (before < after).then_some(class))
        .collect();
    assert_eq!(grown.len(), 1, "one class counts it");
    let class = port.pipeline.counters().nth(grown[0]);
    class.unwrap().class.clone()
}

/// Carry out steps as soon as they are accepted, and look at the classes of frames before the first and after each.
fn change_watched(
    port: &mut Port,
    steps: Vec<GradualStep>,
    watch: &mut impl FnMut(&mut Port, &GradualStep) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    for step in steps {
        let begun = port.now();
        while let Err(error) = carry_out(port, step.clone()) {
            let waited = port.now() - begun;
            prop_assert!(
                error.is_temporary() && waited < 1_000_000_000,
                "{step:?}: {error}"
            );
            let at = port.now() + 10_000_000;
            port.run_until(at);
            // A slice with a queue for each flow has to become empty.
            if waited.is_multiple_of(50_000_000) {
                watch(port, &step)?;
            }
        }
        watch(port, &step)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    /// Each frame is of the class that the old or the new class maps say, as a walk over them finds it; once of the new one, it stays
    /// there; and none is lost for the change or overtakes.
    #[test]
    fn every_frame_is_of_its_old_or_its_new_class_after_each_step(
        slices in prop::collection::vec((wide_or_not(), wide_or_not(), any::<bool>()), 1..10),
        is_reversed in any::<[bool; 2]>(),
        frames in prop::collection::vec((VLANS, 60u32..1522), 0..40),
    ) {
        let old: Vec<_> = slices.iter().map(|(old, _, _)| old.clone()).collect();
        let new: Vec<_> = slices
            .iter()
            .map(|(old, new, is_same)| if *is_same { old.clone() } else { new.clone() })
            .collect();
        let [before, after] = [slots(&old, is_reversed[0]), slots(&new, is_reversed[1])];
        let (Ok(_), Ok(policy)) = (before.resolve(LINK), after.resolve(LINK)) else {
            return Ok(());
        };
        let mut port = Port::new(&before, Some(LINK));
        for (vlan, bytes) in frames {
            let _ = port.offer(Arrival { at: 0, vlan, bytes });
        }
        let Some(steps) = steps_to(&port, &policy) else { return Ok(()); };
        let renamed = steps.iter().filter_map(|step| match step {
            GradualStep::Slice(SliceChange::Rename { name, to }) => Some((name.clone(), to.clone())),
            _ => None,
        });
        let renamed: HashMap<String, String> = renamed.collect();
        let mut is_new = [false; VLANS.end as usize];
        change_watched(&mut port, steps, &mut |port, step| {
            for vlan in VLANS {
                let found = class_of_next(port, vlan);
                let [old, new] = [&before, &after].map(|policy| first_match(policy, vlan));
                let as_before = found == old || renamed.get(old) == Some(&found);
                prop_assert!(
                    found == new || as_before && !is_new[usize::from(vlan)],
                    "{vlan}: {found} after {step:?}, {old} to {new}"
                );
                is_new[usize::from(vlan)] |= found == new && !as_before;
            }
            Ok(())
        })?;
        for vlan in VLANS {
            prop_assert_eq!(class_of_next(&mut port, vlan), first_match(&after, vlan));
        }
        port.run_until(u64::MAX / 2);
        prop_assert_eq!(port.offered(), port.departures.len() as u64 + port.dropped);
        assert_in_order(&port.departures);
        let classes = port.pipeline.counters();
        let removed = classes.map(|class| class.dropped_frames[DropReason::SliceRemoved as usize]);
        prop_assert_eq!(removed.sum::<u64>(), 0);
    }
}

fn offer(port: &mut Port, vlan: u16) -> Verdict {
    let at = port.now();
    port.offer(Arrival {
        at,
        vlan,
        bytes: 1_000,
    })
}

fn vlans_sent(port: &Port) -> Vec<u16> {
    port.departures.iter().map(|left| left.vlan).collect()
}

/// A slice for VLAN 1 ahead of one for VLANs 1 and 2, which has two frames of each.
fn with_one_ahead() -> (Port, Vec<GradualStep>) {
    let mut port = Port::new(&slots(&[None, of(1..=2)], false), Some(LINK));
    for vlan in [2, 1, 1, 2] {
        let _ = offer(&mut port, vlan);
    }
    let ahead = slots(&[of(1..=1), of(1..=2)], false);
    let steps = steps(&port, &ahead).unwrap();
    (port, steps)
}

#[test]
fn a_slice_ahead_of_another_waits_for_the_frames_of_that_alone() {
    let (mut port, steps) = with_one_ahead();
    assert!(
        matches!(
            &steps[..],
            [
                GradualStep::Slice(SliceChange::Add(_)),
                GradualStep::ClassMaps(_),
                GradualStep::Slice(SliceChange::Change { .. }),
            ]
        ),
        "{steps:?}"
    );
    for step in steps {
        carry_out(&mut port, step).unwrap();
    }
    for vlan in [1, 1, 2] {
        assert_eq!(offer(&mut port, vlan), Verdict::Queued);
    }
    assert_eq!((offered(&port, "s0"), offered(&port, "s1")), (2, 5));
    assert_eq!(port.pipeline.backlog(), 7);
    assert!(port.pipeline.is_removing(), "it is not complete");
    port.run_until(u64::MAX / 2);
    let order = vlans_sent(&port);
    assert_eq!(order[..4], [2, 1, 1, 2], "those that were there");
    assert_eq!(order.len(), 7);
    // Its frames do not wait any more, and have found out.
    let now = Instant::from_nanos(port.now());
    assert_eq!(port.pipeline.poll_removed(now), None);
    assert!(!port.pipeline.is_removing());
    let class = port.pipeline.class_of("s0").unwrap();
    assert_eq!(port.pipeline.classifier().classify(&headers(1)), class);
}

#[test]
fn frames_that_go_to_a_slice_wait_under_the_limit_of_its_queue() {
    let (mut port, steps) = with_one_ahead();
    for step in steps {
        carry_out(&mut port, step).unwrap();
    }
    let queued = (0..50).filter(|_| offer(&mut port, 1) == Verdict::Queued);
    assert_eq!(queued.count(), 40);
}

#[test]
fn what_takes_part_in_an_exchange_stays_until_it_is_complete() {
    let (mut port, steps) = with_one_ahead();
    let exchange = steps[1].clone();
    for step in steps.into_iter().take(2) {
        carry_out(&mut port, step).unwrap();
    }
    let named = |name: &str| name.to_owned();
    let refused = [
        SliceChange::Remove { name: named("s1") },
        SliceChange::Rename {
            name: named("s0"),
            to: named("other"),
        },
        add(&(1..=2), KIND),
        SliceChange::Flows {
            name: named("s1"),
            flows: Box::new(SliceFlows {
                queue: Some(flows::PATIENT),
                ..SliceFlows::default()
            }),
        },
    ];
    let text = "packets that it is to have were those of slice `s1`, of which 4 frames still wait";
    for change in refused {
        let error = apply(&mut port, change).unwrap_err();
        assert!(
            error.is_temporary() && error.to_string().contains(text),
            "{error}"
        );
    }
    let error = carry_out(&mut port, exchange).unwrap_err();
    assert!(
        error.is_temporary() && error.to_string().contains(text),
        "{error}"
    );
    apply(&mut port, add(&(3..=3), KIND)).unwrap();
    port.run_until(u64::MAX / 2);
    apply(&mut port, SliceChange::Remove { name: named("s1") }).unwrap();
    apply(&mut port, add(&(1..=2), KIND)).unwrap();
}

#[test]
fn a_slice_that_goes_leaves_its_frames_to_the_one_behind_it() {
    let mut port = Port::new(&slots(&[of(1..=1), of(1..=2)], false), Some(LINK));
    let without = slots(&[None, of(1..=2)], false);
    for _ in 0..3 {
        let _ = offer(&mut port, 1);
    }
    let steps = steps(&port, &without).unwrap();
    let [maps @ GradualStep::ClassMaps(_), remove] = &steps[..] else {
        panic!("{steps:?}");
    };
    carry_out(&mut port, maps.clone()).unwrap();
    assert_eq!(offer(&mut port, 1), Verdict::Queued);
    assert_eq!((offered(&port, "s0"), offered(&port, "s1")), (3, 1));
    let refused = carry_out(&mut port, remove.clone()).unwrap_err();
    assert!(refused.is_temporary(), "its frames wait: {refused}");
    let other = SliceChange::Remove {
        name: "s1".to_owned(),
    };
    let refused = apply(&mut port, other).unwrap_err();
    assert!(refused.is_temporary(), "it gets frames: {refused}");
    port.run_until(10_000_000);
    carry_out(&mut port, remove.clone()).unwrap();
    assert_eq!(vlans_sent(&port), [1; 4]);
    assert_eq!(offer(&mut port, 1), Verdict::Queued);
}

/// A commit finds frames that wait, and others of their flow that are before them.
#[test]
fn a_policy_that_is_committed_during_an_exchange_keeps_the_order() {
    let (mut port, steps) = with_one_ahead();
    for step in steps.into_iter().take(2) {
        carry_out(&mut port, step).unwrap();
    }
    for vlan in [1, 2, 3] {
        let _ = offer(&mut port, vlan);
    }
    let ahead = slots(&[of(1..=1), of(1..=2)], false);
    port.apply(&ahead);
    for vlan in [1, 2, 3] {
        let _ = offer(&mut port, vlan);
    }
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 10);
    assert_in_order(&port.departures);
}

#[test]
fn a_slice_comes_between_two_again_and_again() {
    let outer = |count: u16| -> Vec<_> {
        // Each has a VLAN of those of the next.
        let slices = (0..count).map(|n| 10 - n..=10).chain([1..=10]);
        slices.map(|vlans| Some((vlans, BEST_EFFORT))).collect()
    };
    let mut port = Port::new(&slots(&[of(10..=10)], false), Some(LINK));
    for count in [3, 1, 5, 2, 7, 0, 8] {
        let policy = slots(&outer(count), false);
        for step in steps(&port, &policy).unwrap() {
            let later = port.now() + 100_000_000;
            port.run_until(later);
            carry_out(&mut port, step).unwrap();
        }
        for vlan in VLANS {
            assert_eq!(class_of_next(&mut port, vlan), first_match(&policy, vlan));
        }
    }
}

/// Each comes behind the one before it, and ahead of one for all.
#[test]
fn where_the_order_has_no_position_left_a_commit_makes_room() {
    let nested = |count: u16| -> Vec<_> {
        let slices = (0..count).map(|n| Some((17 - n..=17, BEST_EFFORT)));
        slices.chain([Some((2..=17, BEST_EFFORT))]).collect()
    };
    let all = |count: u16| {
        let mut policy = slots(&nested(count), false);
        if let Some(last) = policy.classes.last_mut() {
            "all".clone_into(&mut last.name);
            "all".clone_into(&mut last.matches.as_mut().unwrap().name);
        }
        policy
    };
    let mut port = Port::new(&all(0), Some(LINK));
    let mut commits = 0;
    for count in 1..16 {
        let policy = all(count);
        if let Some(steps) = steps(&port, &policy) {
            for step in steps {
                carry_out(&mut port, step).unwrap();
            }
        } else {
            port.apply(&policy);
            commits += 1;
        }
        for vlan in 1..19 {
            assert_eq!(class_of_next(&mut port, vlan), first_match(&policy, vlan));
        }
        let later = port.now() + 1_000_000_000;
        port.run_until(later);
    }
    assert_eq!(commits, 1);
}

/// The one that had another class map before is where it was in the order.
#[test]
fn a_slice_comes_behind_one_that_has_got_another_class_map() {
    let apart = [of(5..=5), of(6..=6)];
    let with = |slices: [_; 2]| slots(&[&slices[..], &apart].concat(), false);
    let mut port = Port::new(&with([of(1..=1), None]), Some(LINK));
    let wider = of(1..=2);
    for policy in [with([wider.clone(), None]), with([wider, of(2..=3)])] {
        for step in steps(&port, &policy).unwrap() {
            carry_out(&mut port, step).unwrap();
        }
        for vlan in VLANS {
            assert_eq!(class_of_next(&mut port, vlan), first_match(&policy, vlan));
        }
        port.run_until(u64::MAX / 2);
    }
}

#[test]
fn more_than_a_step_can_look_at_need_a_commit() {
    let many = |count: u16| -> Vec<_> {
        let slices = (1..=count).map(|vlan| of(vlan * 2..=vlan * 2 + 1));
        slices.collect()
    };
    let ahead = |count: u16| {
        let wide = Some((2..=2 * count + 1, BEST_EFFORT));
        [vec![wide], many(count).split_off(1)].concat()
    };
    let [few, more] = [32, 200].map(|count| {
        let kinds = |slices: Vec<Option<(RangeInclusive<u16>, Kind)>>| -> Vec<_> {
            let slices = slices.into_iter().flatten();
            slices
                .map(|(vlans, _)| Some((vlans, BEST_EFFORT)))
                .collect()
        };
        let port = Port::new(&slots(&kinds(many(count)), false), Some(LINK));
        steps(&port, &slots(&kinds(ahead(count)), false))
    });
    assert!(few.is_some());
    assert_eq!(more, None);
}

/// However many come and go behind it: it keeps what it matches of all of them.
#[test]
fn a_class_map_at_the_head_that_stays_makes_no_slice_behind_it_wait_for_an_exchange() {
    let behind_a_head = |own: RangeInclusive<u16>| -> Vec<_> {
        let slices =
            (1..=300).map(|vlan| own.contains(&vlan).then_some((vlan..=vlan, BEST_EFFORT)));
        let head = Some((64..=127, BEST_EFFORT));
        [head].into_iter().chain(slices).collect()
    };
    let mut port = Port::new(&slots(&behind_a_head(1..=200), false), Some(LINK));
    let wanted = slots(&behind_a_head(101..=300), false);
    let found = steps(&port, &wanted).unwrap();
    assert!(
        !found
            .iter()
            .any(|step| matches!(step, GradualStep::ClassMaps(_)))
    );
    for step in found {
        carry_out(&mut port, step).unwrap();
    }
    for vlan in [64, 101, 127] {
        assert_eq!(class_of_next(&mut port, vlan), "s0", "{vlan}");
    }
    assert_eq!(class_of_next(&mut port, 50), CLASS_DEFAULT);
    assert!(class_of_next(&mut port, 299) != CLASS_DEFAULT);
}

/// A slice that no frame reaches while another has its class map is found again, also if an exchange had its position meanwhile.
#[test]
fn a_slice_behind_another_is_found_again_after_an_exchange_at_its_position() {
    let inner = || Some((5..=5, BEST_EFFORT));
    let outer = || Some((5..=6, BEST_EFFORT));
    let others = || [of(1..=1), of(1..=2), of(5..=6)];
    let others = || others().map(|slot| slot.map(|(vlans, _)| (vlans, BEST_EFFORT)));
    let with = |first: [_; 2], more: bool| {
        let more = if more { others() } else { [None, None, None] };
        slots(&[&first[..], &more].concat(), false)
    };
    let mut port = Port::new(&with([None, outer()], false), Some(LINK));
    for policy in [
        with([inner(), outer()], false),
        with([inner(), outer()], true),
        with([None, outer()], true),
    ] {
        for step in steps(&port, &policy).unwrap() {
            carry_out(&mut port, step).unwrap();
            for _ in 0..2 {
                let found = class_of_next(&mut port, 5);
                assert_ne!(found, "s4");
            }
            let later = port.now() + 100_000_000;
            port.run_until(later);
        }
        for vlan in VLANS {
            assert_eq!(class_of_next(&mut port, vlan), first_match(&policy, vlan));
        }
        port.run_until(u64::MAX / 2);
    }
}

/// What was of a slice before it was classified, as one of a burst, is of the slice that it is of now, whatever has its class number.
#[test]
fn a_frame_of_a_burst_does_not_follow_its_class_number() {
    let mut port = Port::new(&slots(&[of(1..=1), None, of(3..=4)], false), Some(LINK));
    for vlan in [1, 3, 3, 3, 4] {
        let _ = offer(&mut port, vlan);
    }
    // VLAN 1 is on its way to class-default, and VLAN 3 to `s1`.
    let leaves = slots(&[of(2..=2), of(3..=3), of(3..=4)], false);
    let mut steps = steps(&port, &leaves).unwrap();
    let is_map =
        |step: &GradualStep| matches!(step, GradualStep::Slice(SliceChange::Matches { .. }));
    let index = steps.iter().position(is_map).unwrap();
    let leaves = steps.remove(index);
    carry_out(&mut port, leaves).unwrap();
    for step in steps {
        carry_out(&mut port, step).unwrap();
    }
    // That of VLAN 1 leaves.
    let now = Instant::from_nanos(port.now());
    let sent = port.pipeline.poll_egress(now).unwrap();
    assert_eq!(sent.handle & 0xffff, 1);
    let vlans = [1, 3, 1];
    let frames = vlans.map(|vlan| frame(10, vlan, 1_000));
    let headers = vlans.map(headers);
    let mut dropped = Dropped(0);
    port.pipeline
        .enqueue_burst(&frames, &headers, now, &mut dropped);
    assert_eq!(dropped.0, 0);
    let counted = ["s0", "s1", "s2", CLASS_DEFAULT].map(|name| offered(&port, name));
    assert_eq!(counted, [1, 1, 4, 2]);
}

/// It gets frames of a slice, and none of class-default.
#[test]
fn a_slice_that_takes_frames_of_another_does_not_wait_for_class_default() {
    let mut port = Port::new(&slots(&[None, of(1..=2)], false), Some(LINK));
    for _ in 0..30 {
        let _ = offer(&mut port, 9);
    }
    let ahead = slots(&[of(1..=1), of(1..=2)], false);
    for step in steps(&port, &ahead).unwrap() {
        carry_out(&mut port, step).unwrap();
    }
    let _ = offer(&mut port, 1);
    port.run_until(5_000_000);
    assert!(vlans_sent(&port).contains(&1), "under its guarantee");
}

/// Its frames may be among those of class-default, for which it waits itself.
#[test]
fn frames_of_a_slice_that_is_held_follow_those_of_class_default() {
    let mut port = Port::new(&slots(&[None, None, of(9..=9)], false), Some(LINK));
    for _ in 0..5 {
        let _ = offer(&mut port, 1);
    }
    for first in [None, of(1..=1)] {
        let policy = slots(&[first, of(1..=2), of(9..=9)], false);
        for step in steps(&port, &policy).unwrap() {
            carry_out(&mut port, step).unwrap();
        }
    }
    for vlan in [1, 2, 1] {
        let _ = offer(&mut port, vlan);
    }
    assert_eq!((offered(&port, "s0"), offered(&port, "s1")), (2, 1));
    port.run_until(u64::MAX / 2);
    assert_eq!(port.departures.len(), 8);
    assert_in_order(&port.departures);
}

#[test]
fn a_slice_with_a_queue_for_each_flow_is_empty_before_it_loses_frames() {
    let by_flow = Kind {
        by_flow: true,
        ..KIND
    };
    let wide = || Some((1..=2, by_flow));
    let mut port = Port::new(&slots(&[None, wide()], false), Some(LINK));
    let _ = (offer(&mut port, 1), offer(&mut port, 2));
    let steps = steps(&port, &slots(&[of(1..=1), wide()], false)).unwrap();
    carry_out(&mut port, steps[0].clone()).unwrap();
    let refused = carry_out(&mut port, steps[1].clone()).unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    port.run_until(10_000_000);
    carry_out(&mut port, steps[1].clone()).unwrap();
    // Frames that come now do not keep the exchange from its end.
    let _ = (offer(&mut port, 2), offer(&mut port, 1));
    assert_eq!((offered(&port, "s0"), offered(&port, "s1")), (1, 3));
    let now = Instant::from_nanos(port.now());
    assert_eq!(port.pipeline.poll_removed(now), None);
    assert!(!port.pipeline.is_removing());
}

/// Each meets the next one, so none may change before another.
#[test]
fn all_class_maps_of_a_chain_are_exchanged_in_one_step() {
    let chain: Vec<_> = (1..7).map(|vlan| of(vlan..=vlan + 1)).collect();
    let mut port = Port::new(&slots(&chain, false), Some(LINK));
    for vlan in VLANS {
        let _ = offer(&mut port, vlan);
    }
    let reversed = slots(&chain, true);
    let steps = steps(&port, &reversed).unwrap();
    let [maps @ GradualStep::ClassMaps(_)] = &steps[..] else {
        panic!("{steps:?}");
    };
    carry_out(&mut port, maps.clone()).unwrap();
    for vlan in VLANS {
        assert_eq!(class_of_next(&mut port, vlan), first_match(&reversed, vlan));
    }
    port.run_until(u64::MAX / 2);
    assert_in_order(&port.departures);
}
