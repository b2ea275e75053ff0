//! Policies that are put in force slice by slice.

use super::slices::*;
use super::*;
use crate::engine::{Progress, StepwiseChange};
use slicewise_dataplane::SliceChange;
use slicewise_model::{ClassSpec, PolicerSpec, RateSpec};
use slicewise_units::{ByteCount, Way};
use std::collections::BTreeMap;

/// The rates of some slices, kbit/s, in both directions.
fn policies(kbit: &[u64]) -> [DirectionParams; 2] {
    let classes = (10..).zip(kbit).map(|(id, kbit)| slice(id, *kbit));
    directions(classes.collect(), [LINK; 2])
}

fn prepared(bench: &Bench, before: &[u64], after: &[u64]) -> StepwiseChange {
    let basis = bench.engine.basis();
    let change = basis.stepwise(&policies(before), &policies(after));
    change.unwrap()
}

#[test]
fn slices_are_changed_a_few_at_a_time_while_frames_wait() {
    let (before, after): ([u64; 5], [u64; 5]) = ([100; 5], [110; 5]);
    let mut bench = bench([LINK; 2]);
    bench.apply(&policies(&before));
    (0..10).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.poll();
    let mut change = prepared(&bench, &before, &after);
    let remaining = |change: &StepwiseChange| change.remaining();
    assert_eq!(remaining(&change), 10);
    let mut left = Vec::new();
    while bench.engine.advance(&mut change, bench.now).unwrap() == Progress::More {
        left.push(remaining(&change));
    }
    assert_eq!(left, [6, 2]);
    assert_eq!(
        bench
            .engine
            .basis()
            .stepwise(&policies(&before), &policies(&after))
            .unwrap()
            .remaining(),
        0
    );
    assert_eq!(bench.run().len(), 10);
    bench.assert_conserved();
}

#[test]
fn marks_and_policers_change_between_frames() {
    let with = |change: fn(&mut ClassSpec)| {
        let mut class = slice(10, 100);
        change(&mut class);
        directions(vec![class], [LINK; 2])
    };
    let mut bench = bench([LINK; 2]);
    let policies = [
        with(|_| {}),
        with(|class| class.set_dscp = Some(46)),
        with(|class| {
            class.police = Some(PolicerSpec::new(RateSpec::Absolute(BitRate::new(8_000))))
        }),
        with(|_| {}),
    ];
    bench.apply(&policies[0]);
    let mut sent = Vec::new();
    for policies in policies.windows(2) {
        let change = bench.engine.basis().stepwise(&policies[0], &policies[1]);
        let mut change = change.unwrap();
        assert_eq!(change.remaining(), 2, "in each direction");
        assert_eq!(
            bench.engine.advance(&mut change, bench.now),
            Ok(Progress::Done)
        );
        (0..19).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
        let frames = bench.run();
        sent.push((frames.len(), frames[0][19]));
    }
    let unmarked = tagged(10, 1_000, 0)[19];
    let [marked, policed, rest] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(*marked, (19, 46 << 2));
    assert!(
        (1..19).contains(&policed.0) && policed.1 == unmarked,
        "{policed:?}"
    );
    assert_eq!(*rest, (19, unmarked));
    bench.assert_conserved();
}

#[test]
fn a_slice_gets_what_another_gives_up_once_no_frame_waits_under_a_guarantee() {
    let mut bench = bench([LINK; 2]);
    bench.apply(&policies(&[8_000, 1_000]));
    let mut change = prepared(&bench, &[8_000, 1_000], &[1_000, 8_000]);
    let begun = bench.now;
    (0..3).for_each(|i| bench.arrive(tagged(11, 1_000, i)));
    bench.poll();
    while bench.engine.advance(&mut change, bench.now).unwrap() != Progress::Done {
        let later = bench.now.saturating_add(Duration::from_micros(200));
        bench.run_until(later);
        bench.now = later;
    }
    // The last of them has begun to leave.
    let waited = bench.now.saturating_since(begun);
    assert_eq!(waited, Duration::from_micros(1_600));
    // What was given up is free, and what was given is not.
    let changed = |kbit| both(&slices::change(10, kbit));
    bench
        .engine
        .change_slice(changed(2_001), bench.now)
        .unwrap_err();
    bench
        .engine
        .change_slice(changed(1_900), bench.now)
        .unwrap();
}

#[test]
fn another_link_needs_a_commit_and_a_version_tells_that_slices_have_changed() {
    let mut bench = bench([LINK; 2]);
    bench.apply(&policies(&[100]));
    let versions = bench.engine.basis().versions();
    assert_eq!(bench.engine.versions(), versions);
    let added = directed([None, Some(add(30, 100))]);
    bench.engine.change_slice(added, bench.now).unwrap();
    assert_ne!(bench.engine.versions(), versions);
    let basis = bench.engine.basis();
    let (before, mut after) = (policies(&[100]), policies(&[200]));
    assert_eq!(basis.stepwise(&before, &after).unwrap().remaining(), 2);
    let rate = after[1].link.rate;
    after[1].link.accounting = Accounting::L1;
    assert!(basis.stepwise(&before, &after).is_none());
    after[1].link = Rate::l2(BitRate::new(rate.bits_per_second() * 2));
    assert!(basis.stepwise(&before, &after).is_none());
}

/// Slices with the numbers and queue limits that are given.
fn with_limits(slices: &[(u16, u32)]) -> [DirectionParams; 2] {
    let classes = slices
        .iter()
        .map(|&(id, packets)| limited(slice(id, 0), packets));
    directions(classes.collect(), [LINK; 2])
}

fn with_memory(slices: &[(u16, u32)], adds_slices: bool, memory_bytes: u64) -> Bench {
    Bench::of(&EngineParams {
        directions: with_limits(slices),
        largest_frame: 1_522,
        receive_queues: [0; 2],
        memory_bytes,
        adds_slices,
    })
}

/// Put other slices in force, step by step until time does not help any more, or by a commit where there are no steps.
fn change_to(bench: &mut Bench, before: &[(u16, u32)], after: &[(u16, u32)]) {
    let basis = bench.engine.basis();
    let (before, after) = (with_limits(before), with_limits(after));
    let Some(mut change) = basis.stepwise(&before, &after) else {
        return bench.apply(&after);
    };
    let mut waits = 0;
    loop {
        match bench.engine.advance(&mut change, bench.now).unwrap() {
            Progress::Done => return,
            Progress::More => {}
            Progress::Waits(_) => {
                waits += 1;
                assert!(waits < 1_000, "{change:?}");
                let end = bench.now.saturating_add(Duration::from_millis(1));
                bench.run_until(end);
                bench.now = end;
            }
        }
    }
}

/// Add a slice with a queue for this many packets.
fn add_long(id: u16, packets: u32) -> SliceChange {
    let mut change = add(id, 0);
    if let SliceChange::Add(slice) = &mut change {
        let limit = &mut slice.params.queue_limit;
        (limit.packets, limit.bytes) = (packets, ByteCount::new(u64::from(u32::MAX)));
    }
    change
}

/// Frames that wait in each slice when more have arrived than there is memory for.
fn flooded(bench: &mut Bench, slices: &[(u16, u32)]) -> Vec<(String, u64)> {
    bench.run();
    for round in 0..2_000 {
        for &(id, _) in slices {
            bench.arrive(tagged(id, 1_500, round));
        }
        bench.poll();
    }
    let classes = bench.engine.classes(Way::Forward);
    let waiting = classes.map(|(class, _)| (class.class.clone(), class.queued_frames));
    let mut waiting: Vec<_> = waiting.collect();
    waiting.sort();
    waiting
}

/// Each queue may use what it could use after a reload as a whole, whether memory suffices for all queues or does not.
#[test]
fn memory_is_divided_among_slices_that_come_change_and_go_as_by_a_commit() {
    let few = [(10, 20), (11, 40)];
    let other = [(10, 20), (11, 80)];
    let less = [(10, 4)];
    let many: Vec<_> = (10..30).map(|id| (id, 300)).collect();
    let mixed: Vec<_> = (20..40).map(|id| (id, u32::from(id) * 10)).collect();
    for (added, memory_bytes) in [
        (None, 64 << 20),
        (Some(0), 64 << 20),
        (Some(0), 4 << 20),
        (Some(600), 4 << 20),
        (Some(1_700), 4 << 20),
    ] {
        for [before, after] in [
            [&few[..], &other[..]],
            [&other, &few],
            [&few, &less],
            [&few, &many],
            [&many, &few],
            [&many, &mixed],
            [&mixed, &many],
            [&mixed, &less],
        ] {
            let bench = || {
                let mut bench = with_memory(before, added.is_some(), memory_bytes);
                if let Some(packets) = added.filter(|packets| *packets > 0) {
                    let change = directed([Some(add_long(50, packets)), None]);
                    bench.engine.change_slice(change, bench.now).unwrap();
                }
                bench
            };
            let [mut stepwise, mut whole] = [bench(), bench()];
            change_to(&mut stepwise, before, after);
            whole.apply(&with_limits(after));
            let told =
                |bench: &Bench| (bench.engine.memory_needed(), bench.engine.basis().division);
            assert_eq!(told(&stepwise), told(&whole), "{before:?} {after:?}");
            let [mut filled, mut expected] =
                [&mut stepwise, &mut whole].map(|bench| flooded(bench, after));
            filled.retain(|(class, _)| !class.is_empty());
            expected.retain(|(class, _)| !class.is_empty());
            assert_eq!(filled, expected, "{before:?} {after:?}");
            // A commit afterwards finds the shares.
            stepwise.apply(&with_limits(after));
            assert_eq!(told(&stepwise), told(&whole));
            stepwise.run();
            stepwise.assert_conserved();
        }
    }
}

/// Neither the steps that were carried out nor those that were not stand in the way of a whole policy, the new one or the one before.
#[test]
fn a_reload_that_is_refused_in_the_middle_is_completed_or_taken_back_by_a_commit() {
    let (before, after): ([u64; 4], [u64; 4]) = ([100; 4], [200, 200, 200, 9_000]);
    for is_taken_back in [false, true] {
        let mut bench = bench([LINK; 2]);
        bench.apply(&policies(&before));
        let mut change = prepared(&bench, &before, &after);
        // The last slice does not fit beside one that comes meanwhile.
        let meanwhile = directed([Some(add(30, 4_000)), None]);
        bench.engine.change_slice(meanwhile, bench.now).unwrap();
        for (id, i) in (10..14).flat_map(|id| (0..5).map(move |i| (id, i))) {
            bench.arrive(tagged(id, 1_000, i));
        }
        bench.poll();
        let refused = loop {
            match bench.engine.advance(&mut change, bench.now) {
                Ok(Progress::More) => {}
                other => break other.unwrap_err(),
            }
        };
        assert_eq!(refused.direction, Way::Forward);
        assert!(!refused.error.is_temporary(), "{refused}");
        assert!((1..8).contains(&change.remaining()), "{change:?}");
        let waiting = bench.engine.backlog();
        bench
            .engine
            .change_slice(directed([Some(remove(30)), None]), bench.now)
            .unwrap();
        let wanted = if is_taken_back { &before } else { &after };
        bench.apply(&policies(wanted));
        assert_eq!(bench.engine.backlog(), waiting);
        let left = bench.engine.basis();
        let left = left.stepwise(&policies(wanted), &policies(wanted));
        assert_eq!(left.unwrap().remaining(), 0, "all of it is in force");
        let mut last = BTreeMap::new();
        for frame in bench.run() {
            let before = last.insert(vlan_of(&frame), number(&frame));
            assert!(before.is_none_or(|before| before < number(&frame)));
        }
        assert_eq!(last, (10..14).map(|id| (id, 4)).collect());
        bench.assert_conserved();
    }
}

/// Also of slices that have nothing left, which nobody has noticed when the next policy comes.
#[test]
fn what_removed_slices_have_dropped_is_counted_whenever_a_commit_comes() {
    let before: Vec<_> = (100..300).map(|id| (id, 2 + u32::from(id) % 7)).collect();
    for delay in 0..40 {
        let mut bench = with_memory(&before, true, 64 << 20);
        for i in 0..10 {
            before
                .iter()
                .for_each(|&(id, _)| bench.arrive(tagged(id, 500, i)));
            bench.poll();
        }
        let basis = bench.engine.basis();
        let change = basis.stepwise(&with_limits(&before), &with_limits(&[(1, 20)]));
        let mut change = change.unwrap();
        while bench.engine.advance(&mut change, bench.now).unwrap() == Progress::More {}
        let end = bench
            .now
            .saturating_add(Duration::from_millis(20 + 10 * delay));
        bench.run_until(end);
        bench.now = end;
        bench.apply(&with_limits(&[(1, 20), (2, 20)]));
        bench.assert_conserved();
    }
}

#[test]
fn frames_of_a_slice_that_a_reload_removes_leave_and_are_counted_and_nobody_is_told() {
    let (before, after) = ([(10, 20), (11, 20)], [(11, 20), (12, 20)]);
    let mut bench = with_memory(&before, true, 8 << 20);
    (0..30).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.poll();
    let dropped = bench
        .engine
        .classes(Way::Forward)
        .next()
        .unwrap()
        .0
        .dropped_total();
    assert_eq!(dropped, 10, "its queue is full");
    change_to(&mut bench, &before, &after);
    assert!(bench.engine.backlog() >= 19);
    (0..5).for_each(|i| bench.arrive(tagged(12, 1_000, i)));
    let sent = bench.run();
    assert_eq!(sent.iter().filter(|frame| vlan_of(frame) == 10).count(), 20);
    assert_eq!(sent.iter().filter(|frame| vlan_of(frame) == 12).count(), 5);
    bench.poll();
    assert_eq!(bench.engine.poll_gone(), None);
    let counters = bench.engine.counters(Way::Forward);
    assert_eq!(counters.dropped_by_removed_frames, 10);
    let classes = bench.engine.classes(Way::Forward);
    let names: Vec<_> = classes.map(|(class, _)| class.class.clone()).collect();
    assert!(!names.contains(&"vlan10".to_owned()), "{names:?}");
    bench.assert_conserved();
    // One that somebody removes is reported, as ever.
    let change = both(&remove(12));
    bench.engine.change_slice(change, bench.now).unwrap();
    bench.poll();
    assert!(bench.engine.poll_gone().is_some());
}
