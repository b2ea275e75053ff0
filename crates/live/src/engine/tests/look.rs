//! Metrics of many classes are looked at a few classes at a time.

use super::*;
use crate::metrics::{DirectionSnapshot, Look, TOP_CLASSES};
use slicewise_units::Way;
use std::cmp::Reverse;

/// Both directions, looked at so many classes at a time.
fn look(engine: &Engine, most: u32) -> [DirectionSnapshot; 2] {
    let mut look = Look::default();
    loop {
        if let Some(directions) = look.advance(engine, most) {
            return directions;
        }
    }
}

fn names(snapshot: &DirectionSnapshot) -> Vec<&str> {
    let classes = snapshot.classes.iter();
    classes.map(|class| class.counters.class.as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Frames of 200 bytes, so many of each class.
    #[test]
    fn those_with_the_most_bytes_are_reported_and_the_others_together_however_many_are_looked_at_at_once(
        frames in prop::collection::vec(0u32..4, 1..80),
    ) {
        let vlans = || (1u16..).zip(&frames);
        let classes = vlans().map(|(id, _)| vlan(id)).collect();
        let mut bench = Bench::new(GIGABIT, classes);
        for (id, &frames) in vlans() {
            (0..frames).for_each(|number| bench.arrive(tagged(id, 200, number)));
        }
        bench.poll();
        let [all, back] = look(&bench.engine, u32::MAX);
        let mut expected: Vec<_> = bench.engine.classes(Way::Forward).collect();
        if expected.len() > TOP_CLASSES {
            expected.sort_by_key(|(class, _)| Reverse(class.offered_bytes));
        }
        let (top, others) = expected.split_at(expected.len().min(TOP_CLASSES));
        for (class, (counters, delay)) in all.classes.iter().zip(top) {
            prop_assert_eq!((&class.counters, &class.delay), (*counters, *delay));
        }
        prop_assert_eq!(all.classes.len(), top.len());
        prop_assert_eq!(all.others.is_some(), !others.is_empty());
        if let Some(sum) = &all.others {
            let offered: u64 = others.iter().map(|(class, _)| class.offered_frames).sum();
            let queued: u64 = others.iter().map(|(class, _)| class.queued_frames).sum();
            prop_assert_eq!((sum.offered_frames, sum.queued_frames), (offered, queued));
        }
        prop_assert_eq!(all.backlog, u64::from(bench.engine.backlog()));
        for most in [1, 7, 32] {
            prop_assert_eq!(&look(&bench.engine, most), &[all.clone(), back.clone()]);
        }
    }
}

#[test]
fn a_step_looks_at_no_more_classes_than_it_may() {
    let bench = Bench::new(GIGABIT, (1..10).map(vlan).collect());
    let mut look = Look::default();
    // 10 classes in each direction.
    let steps = (1..).find(|_| look.advance(&bench.engine, 3).is_some());
    assert_eq!(steps, Some(7));
}

#[test]
fn a_few_classes_are_reported_in_the_order_of_the_policy() {
    let mut bench = Bench::new(GIGABIT, vec![vlan(10), vlan(20)]);
    (0..3).for_each(|number| bench.arrive(tagged(20, 200, number)));
    bench.poll();
    let [forward, _] = look(&bench.engine, 1);
    assert_eq!(names(&forward), ["vlan10", "vlan20", "class-default"]);
    assert_eq!(forward.others, None);
}
