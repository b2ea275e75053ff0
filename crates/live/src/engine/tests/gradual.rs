//! Policies that are put in force slice by slice.

use super::slices::*;
use super::*;
use crate::engine::{GradualChange, Progress};

/// The rates of some slices, kbit/s, in both directions.
fn policies(kbit: &[u64]) -> [DirectionParams; 2] {
    let classes = (10..).zip(kbit).map(|(id, kbit)| slice(id, *kbit));
    directions(classes.collect(), [LINK; 2])
}

fn prepared(bench: &Bench, before: &[u64], after: &[u64]) -> GradualChange {
    let basis = bench.engine.basis();
    let change = basis.gradual(&policies(before), &policies(after));
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
    let remaining = |change: &GradualChange| change.remaining();
    assert_eq!(remaining(&change), 10);
    let mut left = Vec::new();
    while bench.engine.advance(&mut change, bench.now).unwrap() == Progress::More {
        left.push(remaining(&change));
    }
    assert_eq!(left, [2]);
    assert_eq!(
        bench
            .engine
            .basis()
            .gradual(&policies(&before), &policies(&after))
            .unwrap()
            .remaining(),
        0
    );
    assert_eq!(bench.run().len(), 10);
    bench.assert_conserved();
}

#[test]
fn a_slice_gets_what_another_gives_up_once_its_deadlines_have_passed() {
    let mut bench = bench([LINK; 2]);
    bench.apply(&policies(&[8_000, 1_000]));
    let mut change = prepared(&bench, &[8_000, 1_000], &[1_000, 8_000]);
    let begun = bench.now;
    while bench.engine.advance(&mut change, bench.now).unwrap() != Progress::Done {
        bench.now += Duration::from_millis(1);
    }
    let waited = bench.now.saturating_since(begun);
    let ms = Duration::from_millis;
    assert!((ms(17)..=ms(21)).contains(&waited), "{waited}");
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
fn a_link_or_a_slice_more_is_no_gradual_change_and_a_version_tells_that_slices_have_changed() {
    let mut bench = bench([LINK; 2]);
    bench.apply(&policies(&[100]));
    let versions = bench.engine.basis().versions();
    assert_eq!(bench.engine.versions(), versions);
    let added = directed([None, Some(add(30, 100))]);
    bench.engine.change_slice(added, bench.now).unwrap();
    assert_ne!(bench.engine.versions(), versions);
    let basis = bench.engine.basis();
    let (before, mut after) = (policies(&[100]), policies(&[200]));
    assert_eq!(basis.gradual(&before, &after).unwrap().remaining(), 2);
    assert!(basis.gradual(&before, &policies(&[100, 100])).is_none());
    after[1].link = Rate::l2(BitRate::new(LINK - 1));
    assert!(basis.gradual(&before, &after).is_none());
}

/// Where memory suffices, each queue may take what it needs, as after a reload as a whole; otherwise memory has to be divided anew.
#[test]
fn memory_follows_queue_limits_where_it_suffices_for_all() {
    let policies = |limits: [u32; 2]| {
        let classes = (10..)
            .zip(limits)
            .map(|(id, packets)| limited(slice(id, 100), packets));
        directions(classes.collect(), [LINK; 2])
    };
    let of = |limits: [u32; 2], adds_slices, memory_bytes| {
        Bench::of(&EngineParams {
            directions: policies(limits),
            largest_frame: 1_522,
            receive_queues: [0; 2],
            memory_bytes,
            adds_slices,
        })
    };
    let gradual = |bench: &Bench, from, to| {
        let basis = bench.engine.basis();
        basis.gradual(&policies(from), &policies(to))
    };
    // Without slices to be added, there is as much memory as the first policy needs.
    let scarce = of([20, 40], false, 8 << 20);
    assert!(gradual(&scarce, [20, 40], [20, 80]).is_none());
    assert!(gradual(&scarce, [20, 40], [20, 40]).is_some());
    for (mut bench, to) in [(scarce, [40, 20]), (of([20, 40], true, 8 << 20), [400, 40])] {
        let mut change = gradual(&bench, [20, 40], to).unwrap();
        assert_eq!(
            bench.engine.advance(&mut change, bench.now).unwrap(),
            Progress::Done
        );
        let needed = bench.engine.memory_needed();
        (0..to[0]).for_each(|i| bench.arrive(tagged(10, 1_500, i)));
        bench.poll();
        assert_eq!(bench.engine.refused_frames(), 0, "{to:?}");
        assert_eq!(bench.engine.backlog(), to[0] - 1);
        bench.apply(&policies(to));
        assert_eq!(bench.engine.memory_needed(), needed);
        bench.run();
        bench.assert_conserved();
    }
}
