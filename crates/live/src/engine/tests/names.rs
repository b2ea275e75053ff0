//! Slices with the names of others that were removed.

use super::slices::*;
use super::*;
use crate::engine::Progress;
use crate::histogram::Histogram;
use slicewise_dataplane::ClassCounters;
use slicewise_units::Way;

fn of_class(bench: &Bench, name: &str) -> (ClassCounters, Histogram) {
    let mut classes = bench.engine.classes(Way::Forward);
    let (counters, delays) = classes.find(|(class, _)| class.class == name).unwrap();
    (counters.clone(), delays.clone())
}

/// Three frames of slice 10 have left, which a commit has removed while they waited, and one of slice 11.
fn with_a_removed_class() -> Bench {
    let mut bench = bench([LINK; 2]);
    bench.apply(&directions(vec![slice(10, 100), slice(11, 100)], [LINK; 2]));
    (0..3).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.arrive(tagged(11, 1_000, 3));
    bench.poll();
    bench.apply(&directions(vec![slice(11, 100)], [LINK; 2]));
    assert_eq!(bench.run().len(), 4);
    assert_eq!(of_class(&bench, "vlan10").1.count(), 3);
    bench
}

#[test]
fn a_slice_with_the_name_of_a_removed_class_goes_on_with_its_counters_and_delays() {
    let mut bench = with_a_removed_class();
    let waited = of_class(&bench, "vlan10").1.sum();
    let now = bench.now;
    bench.engine.change_slice(both(&add(10, 100)), now).unwrap();
    bench.now = bench.now.saturating_add(Duration::from_millis(1));
    bench.arrive(tagged(10, 1_000, 4));
    bench.run();
    let (counters, delays) = of_class(&bench, "vlan10");
    assert_eq!((counters.sent_frames, delays.count()), (4, 4));
    assert_eq!(delays.sum(), waited, "the last one does not wait");
    bench.assert_conserved();
}

#[test]
fn a_removal_is_reported_with_its_own_counters_where_one_of_the_same_name_came_before() {
    for is_asked_for in [true, false] {
        let mut bench = bench([LINK; 2]);
        let of_slice = directions(vec![slice(10, 100)], [LINK; 2]);
        bench.apply(&of_slice);
        bench.arrive(tagged(10, 1_000, 0));
        bench.run();
        if is_asked_for {
            let change = both(&remove(10));
            bench.engine.change_slice(change, bench.now).unwrap();
        } else {
            let none = directions(vec![], [LINK; 2]);
            let change = bench.engine.basis().stepwise(&of_slice, &none);
            let (mut change, now) = (change.unwrap(), bench.now);
            assert_eq!(bench.engine.advance(&mut change, now), Ok(Progress::Done));
        }
        // Nobody has looked since.
        for change in [add(10, 100), remove(10)] {
            let change = directed([Some(change), None]);
            bench.engine.change_slice(change, bench.now).unwrap();
        }
        bench.poll();
        let gone = std::iter::from_fn(|| bench.engine.poll_gone());
        let gone: Vec<_> = gone
            .filter(|gone| gone.direction == Way::Forward)
            .map(|gone| gone.counters.sent_frames)
            .collect();
        let expected: &[u64] = if is_asked_for { &[1, 0] } else { &[0] };
        assert_eq!(gone, expected);
    }
}
