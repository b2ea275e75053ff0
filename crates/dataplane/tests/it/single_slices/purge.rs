//! Slices that were removed and are ended before their last frame has left.

use super::reserved::{FRAME, burst, ms};
use super::*;

pub(super) fn purge(vlans: &RangeInclusive<u16>) -> SliceChange {
    SliceChange::Purge { name: name(vlans) }
}

fn order(port: &mut Port) -> Vec<u16> {
    port.run_until(u64::MAX / 2);
    let left = port.departures.iter().map(|left| left.vlan);
    left.collect()
}

/// Slices of VLANs 1 and 2, each with five frames, of which VLAN 1 is removed and sends three more, of class-default.
fn draining(kind: Kind) -> Port {
    let mut port = Port::new(&spec(&[(1..=1, kind), (2..=2, BEST_EFFORT)]), Some(LINK));
    burst(&mut port, 2, 5);
    burst(&mut port, 1, 5);
    let removed = apply(&mut port, remove(&(1..=1))).unwrap();
    assert_eq!(removed.waiting, 5);
    burst(&mut port, 1, 3);
    port
}

#[test]
fn a_purged_slice_is_gone_and_what_waits_for_it_goes_on() {
    // Its frames are in the ring, eligible, on the wheel, or by flow.
    let slow = guaranteed(100, 1_600, ms(80));
    for kind in [
        BEST_EFFORT,
        guaranteed(100, 15_000, ms(80)),
        slow,
        Kind {
            by_flow: true,
            ..slow
        },
    ] {
        let mut port = draining(kind);
        let purged = apply(&mut port, purge(&(1..=1))).unwrap();
        assert_eq!(purged.waiting, 0);
        assert_eq!(port.pipeline.backlog(), 8);
        let now = Instant::from_nanos(port.now());
        let counters = port.pipeline.poll_removed(now).unwrap();
        assert_eq!(counters.dropped(DropReason::SliceRemoved), 5);
        assert_eq!((counters.offered_frames, counters.sent_frames), (5, 0));
        assert_eq!(port.dropped, 0, "the caller has not been told");
        // Its name and packets are free; the new slice waits for those that are of class-default.
        assert_eq!(apply(&mut port, add(&(1..=1), kind)).unwrap().waiting, 3);
        burst(&mut port, 1, 1);
        let left = order(&mut port);
        assert_eq!(left.iter().filter(|&&vlan| vlan == 1).count(), 4);
        assert_eq!((left.len(), port.dropped), (9, 5));
        assert_in_order(&port.departures);
    }
}

#[test]
fn frames_of_a_slice_that_still_waited_for_class_default_stay_there() {
    let mut port = Port::new(&spec(&[]), Some(LINK));
    burst(&mut port, 1, 2);
    apply(&mut port, add(&(1..=1), guaranteed(100, 9_000, ms(80)))).unwrap();
    burst(&mut port, 1, 3);
    apply(&mut port, remove(&(1..=1))).unwrap();
    let purged = apply(&mut port, purge(&(1..=1))).unwrap();
    assert_eq!(purged.waiting, 3);
    apply(&mut port, add(&(2..=2), BEST_EFFORT)).unwrap();
    burst(&mut port, 2, 1);
    assert_eq!(order(&mut port), [1, 1, 1, 1, 1, 2]);
    assert_eq!(port.dropped, 0);
}

/// Frames that came before the slice are in class-default's queue, counted as the slice's: they stay.
#[test]
fn only_frames_of_the_slice_itself_are_dropped() {
    let mut port = Port::new(&spec(&[(1..=1, BEST_EFFORT)]), Some(LINK));
    burst(&mut port, 9, 4);
    let wider = SliceChange::Matches {
        name: name(&(1..=1)),
        matches: Box::new(params_of(&(1..=2))),
    };
    apply(&mut port, wider).unwrap();
    burst(&mut port, 2, 2);
    apply(&mut port, remove(&(1..=1))).unwrap();
    let purged = apply(&mut port, purge(&(1..=1))).unwrap();
    assert_eq!((purged.waiting, port.pipeline.backlog()), (2, 6));
    assert_eq!(order(&mut port), [9, 9, 9, 9, 2, 2]);
}

fn params_of(vlans: &RangeInclusive<u16>) -> ClassMap {
    let SliceChange::Add(new) = add(vlans, BEST_EFFORT) else {
        unreachable!()
    };
    new.matches
}

/// What another slice waits for until the busy period has ended is not released because the frames are dropped.
#[test]
fn capacity_is_released_as_if_the_last_frame_had_left() {
    let short = guaranteed(100, 9_000, ms(10));
    let long = guaranteed(100, 48_000, ms(50));
    let mut port = Port::new(&spec(&[(1..=1, short), (2..=2, long)]), Some(LINK));
    burst(&mut port, 1, 6);
    burst(&mut port, 2, 32);
    port.run_until(3 * FRAME);
    apply(&mut port, remove(&(1..=1))).unwrap();
    apply(&mut port, purge(&(1..=1))).unwrap();
    let come = apply(&mut port, add(&(3..=3), short)).unwrap_err();
    assert!(come.is_temporary(), "{come}");
    port.run_until(u64::MAX / 4);
    apply(&mut port, add(&(3..=3), short)).unwrap();
}

#[test]
fn only_a_slice_that_drains_is_purged() {
    let mut port = draining(BEST_EFFORT);
    let why = |refused: Result<SliceChanged, SliceChangeError>| refused.unwrap_err().to_string();
    assert_eq!(
        why(apply(&mut port, purge(&(2..=2)))),
        "slice `vlan2-2` is in force: remove it first"
    );
    assert_eq!(
        why(apply(&mut port, purge(&(7..=7)))),
        "there is no slice `vlan7-7`"
    );
    apply(&mut port, purge(&(1..=1))).unwrap();
    assert_eq!(
        why(apply(&mut port, purge(&(1..=1)))),
        "there is no slice `vlan1-1`"
    );
}

/// Frames of a policy before are ahead of it, and wait for the port's shaper.
#[test]
fn a_purge_of_all_that_waits_under_a_policy_leaves_what_drains_before_it() {
    let slow = slicewise_model::ShaperParams {
        rate: slicewise_model::Rate::l2(rate("1 Mbit/s")),
        burst: ByteCount::new(1_500),
        priority_borrows: false,
    };
    let mut port = Port::with_shaper(&spec(&[(3..=3, BEST_EFFORT)]), Some(LINK), Some(slow));
    burst(&mut port, 3, 4);
    kept::replace(&mut port, &spec(&[(1..=1, BEST_EFFORT)])).unwrap();
    burst(&mut port, 1, 4);
    apply(&mut port, remove(&(1..=1))).unwrap();
    apply(&mut port, purge(&(1..=1))).unwrap();
    port.run_until(FRAME);
    // The shaper alone says when the next may leave.
    let next = port.pipeline.poll_at().unwrap();
    assert!(next.nanos() > port.now() + FRAME, "{next:?}");
    burst(&mut port, 9, 1);
    assert_eq!(order(&mut port), [3, 3, 3, 3, 9]);
}
