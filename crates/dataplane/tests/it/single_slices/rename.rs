//! Slices that get other names.

use super::gradual::{carry_out, slots, steps, steps_to};
use super::*;

fn rename(from: &str, to: &str) -> SliceChange {
    SliceChange::Rename {
        name: from.to_owned(),
        to: to.to_owned(),
    }
}

fn counters<'a>(port: &'a Port, name: &str) -> Vec<&'a ClassCounters> {
    let counters = port.pipeline.counters();
    counters.filter(|class| class.class == name).collect()
}

fn offer(port: &mut Port, vlan: u16) {
    let (at, bytes) = (port.now(), 1_000);
    let _ = port.offer(Arrival { at, vlan, bytes });
}

const KIND: Kind = guaranteed(1_000, 3_000, Duration::from_millis(20));

#[test]
fn a_slice_with_another_name_keeps_its_frames_counters_and_policer() {
    let policed = Kind {
        police: Some(8),
        ..KIND
    };
    let mut port = Port::new(&spec(&[(1..=1, policed)]), Some(LINK));
    (0..30).for_each(|_| offer(&mut port, 1));
    let before = counters(&port, "vlan1-1")[0].clone();
    assert!(before.dropped_total() > 0 && before.queued_frames > 0);
    apply(&mut port, rename("vlan1-1", "other")).unwrap();
    let after = ClassCounters {
        class: "other".to_owned(),
        ..before
    };
    assert_eq!(counters(&port, "other"), [&after]);
    assert!(counters(&port, "vlan1-1").is_empty());
    assert!(port.pipeline.class_of("vlan1-1").is_none());
    assert_eq!(port.pipeline.class_of("other"), Some(0));
    // A whole policy knows it by its new name, and so its policer.
    let mut policy = spec(&[(1..=1, policed)]);
    policy.classes[0].name = "other".to_owned();
    policy.classes[0].matches.as_mut().unwrap().name = "other".to_owned();
    port.apply(&policy);
    (0..30).for_each(|_| offer(&mut port, 1));
    let counted = counters(&port, "other")[0];
    assert_eq!(counted.queued_frames, after.queued_frames, "it has a debt");
    assert_eq!(counted.offered_frames, after.offered_frames + 30);
}

#[test]
fn a_name_that_is_in_use_is_given_to_no_other_slice() {
    let mut port = Port::new(&spec(&[(1..=1, KIND), (2..=2, KIND)]), Some(LINK));
    let refused = |port: &mut Port, from, to| apply(port, rename(from, to)).unwrap_err();
    for (from, to) in [("vlan1-1", "vlan2-2"), ("vlan1-1", CLASS_DEFAULT)] {
        let refused = refused(&mut port, from, to);
        let name = to.to_owned();
        assert_eq!(refused, SliceChangeError::NameTaken { name });
    }
    let refused_default = refused(&mut port, CLASS_DEFAULT, "other");
    assert_eq!(refused_default, SliceChangeError::Default);
    (0..3).for_each(|_| offer(&mut port, 2));
    apply(&mut port, remove(&(2..=2))).unwrap();
    let draining = refused(&mut port, "vlan1-1", "vlan2-2");
    assert!(draining.is_temporary(), "{draining}");
    port.run_until(1_000_000_000);
    apply(&mut port, rename("vlan1-1", "vlan2-2")).unwrap();
    apply(&mut port, add(&(3..=3), KIND)).unwrap();
    apply(&mut port, rename("vlan2-2", "vlan1-1")).unwrap();
    // What a class counted that a whole policy removed while frames of it waited is kept.
    (0..3).for_each(|_| offer(&mut port, 3));
    port.apply(&spec(&[(1..=1, KIND)]));
    let retired = refused(&mut port, "vlan1-1", "vlan3-3");
    assert!(retired.is_temporary(), "{retired}");
    port.run_until(2_000_000_000);
    apply(&mut port, rename("vlan1-1", "vlan3-3")).unwrap();
    offer(&mut port, 1);
    let [counted] = counters(&port, "vlan3-3")[..] else {
        panic!("it is there once")
    };
    assert_eq!((counted.offered_frames, counted.sent_frames), (4, 3));
}

#[test]
fn slices_of_a_policy_are_renamed_by_their_class_maps_and_change_beside() {
    let more = Kind {
        cir: Some(2_000),
        ..KIND
    };
    let old = [Some((1..=2, KIND)), Some((3..=3, KIND))];
    let mut port = Port::new(&slots(&old, false), Some(LINK));
    for vlan in [1, 2, 3] {
        offer(&mut port, vlan);
    }
    let new = slots(
        &[None, None, Some((3..=3, more)), Some((1..=2, KIND))],
        false,
    );
    let found = steps(&port, &new).unwrap();
    let named = |name: &str| name.to_owned();
    let expected = [rename("s0", "s3"), rename("s1", "s2")].map(GradualStep::Slice);
    assert_eq!(found[..2], expected);
    assert!(
        matches!(&found[2..], [GradualStep::Slice(SliceChange::Change { name, .. })] if *name == named("s2")),
        "{found:?}"
    );
    let policy = new.resolve(LINK).unwrap();
    for step in found {
        carry_out(&mut port, step).unwrap();
    }
    assert_eq!(steps_to(&port, &policy), Some(vec![]));
    let queued = |name| counters(&port, name)[0].queued_frames;
    assert_eq!((queued("s3"), queued("s2")), (2, 1));
    // A slice that exchanges names with another exchanges class maps with it.
    let exchanged = slots(
        &[None, None, Some((1..=2, KIND)), Some((3..=3, KIND))],
        false,
    );
    let found = steps(&port, &exchanged).unwrap();
    assert!(
        matches!(&found[..], [GradualStep::ClassMaps(_), GradualStep::Slice(SliceChange::Change { name, .. })] if *name == named("s2")),
        "{found:?}"
    );
    // Of two class maps that meet the first stays.
    let twice = slots(&[Some((1..=2, KIND)), Some((1..=2, more))], false);
    let port = Port::new(&twice, Some(LINK));
    let once = slots(&[None, None, Some((1..=2, KIND))], false);
    let found = steps(&port, &once).unwrap();
    let remove = SliceChange::Remove { name: named("s1") };
    assert!(
        matches!(&found[..], [first, last]
            if *first == GradualStep::Slice(rename("s0", "s2")) && *last == GradualStep::Slice(remove.clone())),
        "{found:?}"
    );
}
