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
    assert!(bench.engine.is_current(&change));
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
    // One direction after the other.
    let ms = Duration::from_millis;
    assert!((ms(34)..=ms(42)).contains(&waited), "{waited}");
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
fn a_gradual_change_is_of_the_slices_as_they_were() {
    let mut bench = bench([LINK; 2]);
    bench.apply(&policies(&[100]));
    let change = prepared(&bench, &[100], &[200]);
    bench
        .engine
        .change_slice(directed([None, Some(add(30, 100))]), bench.now)
        .unwrap();
    assert!(!bench.engine.is_current(&change));
    let basis = bench.engine.basis();
    let (before, mut after) = (policies(&[100]), policies(&[200]));
    assert_eq!(basis.gradual(&before, &after).unwrap().remaining(), 2);
    assert!(basis.gradual(&before, &policies(&[100, 100])).is_none());
    after[1].link = Rate::l2(BitRate::new(LINK - 1));
    assert!(basis.gradual(&before, &after).is_none());
}
