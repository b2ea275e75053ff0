//! Slices that come, change and go while frames are forwarded in both directions.

use super::*;
use crate::engine::DirectedChange;
use crate::gateway::{Answer, Request, control};
use slicewise_dataplane::{Conditioning, NewSlice, SliceChange, SliceChangeError};
use slicewise_model::{
    BurstSpec, CLASS_DEFAULT, CoDelSpec, FlowQueueSpec, GuaranteeSpec, GuaranteedSpec,
    PolicyParams, QueueSpec, RateSpec, SliceParams, TenantParams,
};
use slicewise_units::{ByteCount, Way};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const LINK: u64 = 10_000_000;

/// A slice of a VLAN with a guarantee of some kbit/s, or none.
pub(super) fn slice(id: u16, kbit: u64) -> ClassSpec {
    let mut class = limited(vlan(id), 20);
    class.guarantee = (kbit > 0).then(|| GuaranteeSpec {
        rate: RateSpec::Absolute(BitRate::new(kbit * 1_000)),
        burst: Some(BurstSpec::Size(ByteCount::new(3_044))),
        delay: Some(Duration::from_millis(20)),
        smallest_frame: None,
    });
    class
}

fn policy(classes: Vec<ClassSpec>, rate: u64) -> PolicyParams {
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes,
        discipline: Discipline::Guaranteed,
        guaranteed: Some(GuaranteedSpec::default()),
        queues: Vec::new(),
    };
    spec.resolve(BitRate::new(rate)).unwrap()
}

fn params(kbit: u64) -> SliceParams {
    policy(vec![slice(1, kbit)], LINK).classes[0].slice.unwrap()
}

pub(super) fn add(id: u16, kbit: u64) -> SliceChange {
    let class = policy(vec![slice(id, kbit)], LINK).classes.swap_remove(0);
    SliceChange::Add(Box::new(NewSlice {
        name: class.name,
        matches: class.matches.unwrap(),
        params: class.slice.unwrap(),
        conditioning: Conditioning::default(),
        flow_queue: None,
        is_of_policy: false,
    }))
}

pub(super) fn change(id: u16, kbit: u64) -> SliceChange {
    SliceChange::Change {
        name: format!("vlan{id}"),
        params: params(kbit),
    }
}

pub(super) fn remove(id: u16) -> SliceChange {
    SliceChange::Remove {
        name: format!("vlan{id}"),
    }
}

pub(super) fn directed(directions: [Option<SliceChange>; 2]) -> DirectedChange {
    DirectedChange {
        directions: directions.into(),
        tenant: None,
    }
}

pub(super) fn both(change: &SliceChange) -> DirectedChange {
    directed([Some(change.clone()), Some(change.clone())])
}

pub(super) fn directions(classes: Vec<ClassSpec>, rates: [u64; 2]) -> [DirectionParams; 2] {
    rates.map(|rate| DirectionParams {
        link: Rate::l2(BitRate::new(rate)),
        policy: policy(classes.clone(), rate).into(),
        seed: 1,
    })
}

/// A bench whose links have these rates.
pub(super) fn bench(rates: [u64; 2]) -> Bench {
    Bench::of(&EngineParams {
        directions: directions(vec![], rates),
        largest_frame: 1_522,
        receive_queues: [0; 2],
        memory_bytes: 8 << 20,
        adds_slices: true,
    })
}

fn names(bench: &Bench, direction: usize) -> Vec<String> {
    let classes = bench.engine.classes(Way::ALL[direction]);
    classes.map(|(class, _)| class.class.clone()).collect()
}

#[test]
fn a_slice_that_one_direction_refuses_is_in_none() {
    let mut bench = bench([LINK, 5_000_000]);
    let refused = bench.engine.change_slice(both(&add(10, 6_000)), bench.now);
    insta::assert_snapshot!(
        refused.unwrap_err(),
        @"backward: slice `vlan10`: guarantees 6 Mbit/s (L2), but only 5 Mbit/s (L2) of the link is free: write a rate of at most 5 Mbit/s"
    );
    assert_eq!([names(&bench, 0), names(&bench, 1)], [[CLASS_DEFAULT]; 2]);
    // Nothing of it is reserved, in the direction that would have accepted it, either.
    let all = directed([Some(add(11, 10_000)), None]);
    bench.engine.change_slice(all, bench.now).unwrap();
    let refused = bench.engine.change_slice(both(&change(11, 500)), bench.now);
    let error = refused.unwrap_err();
    assert_eq!(error.direction, Way::Backward);
    assert!(matches!(error.error, SliceChangeError::Unknown { .. }));
    let refused = bench
        .engine
        .change_slice(directed([Some(add(12, 500)), None]), bench.now);
    assert!(refused.is_err(), "slice 11 still has all of the link");
}

#[test]
fn a_slice_that_was_added_has_frame_memory_and_delays_of_its_own() {
    let mut bench = bench([LINK; 2]);
    bench
        .engine
        .change_slice(both(&add(10, 4_000)), bench.now)
        .unwrap();
    // A flood of class-default is there first.
    (0..5_000).for_each(|i| bench.arrive(tagged(20, 1_000, i)));
    (0..3).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    let sent = bench.run();
    assert_eq!(sent.iter().filter(|frame| vlan_of(frame) == 10).count(), 3);
    let (class, delay) = bench.engine.classes(Way::Forward).nth(1).unwrap();
    assert_eq!((class.class.as_str(), class.sent_frames), ("vlan10", 3));
    assert_eq!(delay.count(), 3);
    bench.assert_conserved();
}

#[test]
fn a_slice_that_was_removed_is_gone_when_its_last_frame_has_left() {
    let mut bench = bench([LINK; 2]);
    bench
        .engine
        .change_slice(both(&add(10, 4_000)), bench.now)
        .unwrap();
    (0..3).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.poll();
    bench
        .engine
        .change_slice(both(&remove(10)), bench.now)
        .unwrap();
    bench.poll();
    let gone = bench.engine.poll_gone().unwrap();
    assert_eq!(
        (gone.direction, gone.counters.class.as_str()),
        (Way::Backward, "vlan10")
    );
    assert_eq!(bench.engine.poll_gone(), None, "frames of it wait");
    bench.arrive(tagged(10, 1_000, 3));
    assert_eq!(bench.run().len(), 4, "what arrives meanwhile leaves, too");
    let gone = bench.engine.poll_gone().unwrap();
    let counters = &gone.counters;
    assert_eq!(gone.direction, Way::Forward);
    assert_eq!((counters.sent_frames, counters.dropped_total()), (3, 0));
    assert_eq!(names(&bench, 0), [CLASS_DEFAULT]);
    bench.assert_conserved();
}

#[test]
fn a_purged_slice_is_gone_with_its_drops_and_gives_its_memory_back() {
    let mut bench = bench([LINK; 2]);
    let slice = |change| directed([Some(change), None]);
    let changed =
        |bench: &mut Bench, change| bench.engine.change_slice(slice(change), bench.now).unwrap();
    changed(&mut bench, add(10, 4_000));
    (0..5).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.poll();
    changed(&mut bench, remove(10));
    let name = "vlan10".to_owned();
    let waiting = bench.engine.backlog();
    assert!(waiting > 0);
    changed(&mut bench, SliceChange::Purge { name });
    assert_eq!(bench.engine.backlog(), 0);
    changed(&mut bench, add(10, 4_000));
    let sent = bench.run().len();
    let counters = bench.engine.poll_gone().unwrap().counters;
    assert_eq!(
        counters.dropped(DropReason::SliceRemoved),
        u64::from(waiting)
    );
    assert_eq!(counters.sent_frames + counters.dropped_total(), 5);
    assert_eq!(counters.sent_frames, sent as u64);
    bench.assert_conserved();
}

#[test]
fn a_reload_prepared_while_a_removed_slice_drains_is_in_force_in_both_directions() {
    let mut bench = bench([LINK; 2]);
    bench
        .engine
        .change_slice(both(&add(10, 4_000)), bench.now)
        .unwrap();
    (0..3).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.poll();
    bench
        .engine
        .change_slice(both(&remove(10)), bench.now)
        .unwrap();
    let other = directions(vec![slice(20, 1_000)], [LINK; 2]);
    let prepared = bench.engine.basis().prepare(&other, bench.now).unwrap();
    assert_eq!(bench.run().len(), 3, "its last frame leaves");
    let _replaced = bench.engine.commit(prepared, bench.now).unwrap();
    for direction in 0..2 {
        assert_eq!(names(&bench, direction), ["vlan20", CLASS_DEFAULT]);
    }
    let gone: Vec<_> = std::iter::from_fn(|| bench.engine.poll_gone()).collect();
    let gone: Vec<_> = gone
        .iter()
        .map(|gone| (gone.direction, gone.counters.sent_frames))
        .collect();
    assert_eq!(gone, [(Way::Backward, 0), (Way::Forward, 3)]);
    bench.assert_conserved();
}

#[test]
fn a_reload_leaves_slices_that_were_added_and_is_refused_where_they_do_not_fit() {
    let mut bench = bench([LINK; 2]);
    bench
        .engine
        .change_slice(both(&add(10, 4_000)), bench.now)
        .unwrap();
    (0..3).for_each(|i| bench.arrive(tagged(10, 1_000, i)));
    bench.poll();
    let refused = |classes, rates| {
        let basis = bench.engine.basis();
        let prepared = basis.prepare(&directions(classes, rates), bench.now);
        prepared.unwrap_err().to_string()
    };
    insta::assert_snapshot!(
        refused(vec![], [3_000_000; 2]),
        @"slice `vlan10`, which was added while running, cannot be kept: guarantees 4 Mbit/s (L2), but only 3 Mbit/s (L2) of the link is free: write a rate of at most 3 Mbit/s"
    );
    insta::assert_snapshot!(
        refused(vec![slice(10, 0)], [LINK; 2]),
        @"slice `vlan10`, which was added while running, cannot be kept: the new policy has a class of this name"
    );
    let stale = bench
        .engine
        .basis()
        .prepare(&directions(vec![slice(30, 1_000)], [LINK; 2]), bench.now);
    bench.apply(&directions(vec![slice(20, 1_000)], [2 * LINK; 2]));
    bench.engine.commit(stale.unwrap(), bench.now).unwrap_err();
    assert_eq!(names(&bench, 0), ["vlan20", "vlan10", CLASS_DEFAULT]);
    // It is a slice that was added, still: the next reload leaves it, too, and it can be removed.
    bench.apply(&directions(vec![], [LINK; 2]));
    assert_eq!(names(&bench, 0), ["vlan10", CLASS_DEFAULT]);
    assert_eq!(bench.run().len(), 3);
    let (class, delay) = bench.engine.classes(Way::Forward).next().unwrap();
    assert_eq!((class.sent_frames, delay.count()), (3, 3));
    bench
        .engine
        .change_slice(both(&remove(10)), bench.now)
        .unwrap();
    bench.assert_conserved();
}

#[test]
fn flows_of_a_slice_are_counted_while_somebody_asks_for_them() {
    let mut bench = bench([LINK; 2]);
    bench
        .engine
        .change_slice(both(&add(10, 0)), bench.now)
        .unwrap();
    let names = ["vlan10".to_owned(), "none".to_owned()];
    assert!(bench.engine.watch_flows(&names).is_empty());
    for i in 0..3 {
        bench.arrive(tagged(10, 1_000, i));
        bench.arrive(tagged(20, 1_000, i));
    }
    bench.run();
    let counted = bench.engine.watch_flows(&[]);
    let [forward, backward] = counted.as_slice() else {
        panic!("{counted:?}");
    };
    assert_eq!((forward.name.as_str(), backward.flows.len()), ("vlan10", 0));
    let [(key, count)] = forward.flows.as_slice() else {
        panic!("{forward:?}");
    };
    assert_eq!(key.source.to_string(), "10.0.0.1");
    assert_eq!(
        (key.protocol, key.source_port, key.destination_port),
        (17, 12_345, 5_201)
    );
    assert_eq!((count.frames, count.bytes), (3, 3_000));
    assert!(bench.engine.watch_flows(&[]).is_empty());
}

#[test]
fn a_tenant_that_comes_with_a_slice_stays_with_it_over_a_reload_and_may_get_another_weight() {
    let tenant = |weight| TenantParams {
        name: "portal".to_owned(),
        weight,
    };
    let of = |change: &SliceChange, weight| DirectedChange {
        tenant: Some(tenant(weight)),
        ..both(change)
    };
    let mut bench = bench([LINK; 2]);
    bench
        .engine
        .change_slice(of(&add(10, 0), 1), bench.now)
        .unwrap();
    bench
        .engine
        .change_slice(of(&add(11, 0), 3), bench.now)
        .unwrap();
    bench.apply(&directions(vec![slice(12, 0)], [LINK; 2]));
    let of_ten = |bench: &mut Bench| {
        for i in 0..19 {
            bench.arrive(tagged(10, 1_000, i));
            bench.arrive(tagged(12, 1_000, i));
        }
        let sent = bench.run();
        let of_ten = sent[..16].iter().filter(|frame| vlan_of(frame) == 10);
        of_ten.count()
    };
    // Three of four frames of the excess are the tenant's.
    let own = of_ten(&mut bench);
    assert!((11..=13).contains(&own), "{own} of 16");
    bench
        .engine
        .change_slice(of(&change(10, 0), 3), bench.now)
        .unwrap();
    // Without a tenant it shares that of the policy.
    bench
        .engine
        .change_slice(both(&change(10, 0)), bench.now)
        .unwrap();
    let own = of_ten(&mut bench);
    assert!((7..=9).contains(&own), "{own} of 16");
}

#[test]
fn a_reload_prepared_before_a_slice_changed_in_one_direction_is_stale_in_both() {
    let mut bench = bench([LINK; 2]);
    let prepared = bench
        .engine
        .basis()
        .prepare(&directions(vec![slice(30, 0)], [LINK; 2]), bench.now);
    bench
        .engine
        .change_slice(directed([None, Some(add(10, 0))]), bench.now)
        .unwrap();
    bench
        .engine
        .commit(prepared.unwrap(), bench.now)
        .unwrap_err();
    assert_eq!(names(&bench, 0), [CLASS_DEFAULT]);
    assert_eq!(names(&bench, 1), [CLASS_DEFAULT, "vlan10"]);
}

#[test]
fn requests_are_answered_in_their_order_a_few_in_each_round() {
    let mut bench = bench([LINK; 2]);
    let (sender, answers) = std::sync::mpsc::channel();
    let answered = move |answer| drop(sender.send(answer));
    let (control, controlled) = control(Box::new(answered)).unwrap();
    for id in 1..=20 {
        control
            .request(Request::Change(Box::new(both(&add(id, 0)))))
            .unwrap();
    }
    control
        .request(Request::Count {
            direction: Way::Backward,
            from: 0,
        })
        .unwrap();
    let mut rounds = 1;
    while controlled.carry_out(&mut bench.engine, bench.now) {
        rounds += 1;
    }
    assert_eq!(rounds, 4);
    for class in 1..=20 {
        let Some(Answer::Changed(Ok(changed))) = answers.try_recv().ok() else {
            panic!("a change");
        };
        assert_eq!(changed.forward.unwrap().class, class);
        assert!(changed.backward.is_some());
    }
    let Some(Answer::Counted(counted)) = answers.try_recv().ok() else {
        panic!("counters");
    };
    assert_eq!((counted.classes.len(), counted.next), (21, None));
    assert!(answers.try_recv().is_err());
    drop(controlled);
    control
        .request(Request::Change(Box::default()))
        .unwrap_err();
}

#[derive(Debug, Clone)]
enum Step {
    /// So many frames of a VLAN arrive at a port.
    Arrive(usize, u16, u32),
    Pass(u64),
    Add(u16, u64),
    AddOneWay(usize, u16, u64),
    Change(u16, u64),
    Remove(u16),
    Reload(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let id = 1u16..6;
    let kbit = prop_oneof![Just(0u64), 100u64..6_000];
    prop_oneof![
        8 => (0usize..2, 1u16..8, 1u32..8).prop_map(|(side, id, n)| Step::Arrive(side, id, n)),
        4 => (0u64..4_000_000).prop_map(Step::Pass),
        3 => (id.clone(), kbit.clone()).prop_map(|(id, kbit)| Step::Add(id, kbit)),
        1 => (0usize..2, id.clone(), kbit.clone()).prop_map(|(side, id, kbit)| Step::AddOneWay(side, id, kbit)),
        3 => (id.clone(), kbit).prop_map(|(id, kbit)| Step::Change(id, kbit)),
        2 => id.prop_map(Step::Remove),
        1 => any::<bool>().prop_map(Step::Reload),
    ]
}

/// Frames that have arrived and left, by direction and VLAN.
#[derive(Default)]
struct Traffic {
    arrived: [BTreeMap<u16, u32>; 2],
    left: [BTreeMap<u16, Vec<u32>>; 2],
}

impl Traffic {
    fn collect(&mut self, bench: &mut Bench) {
        for (direction, left) in self.left.iter_mut().enumerate() {
            for frame in bench.ports[1 - direction].take_sent() {
                left.entry(vlan_of(&frame))
                    .or_default()
                    .push(number(&frame));
            }
        }
    }

    fn run_until(&mut self, bench: &mut Bench, end: Instant) {
        loop {
            bench.poll();
            self.collect(bench);
            match bench.engine.poll_at() {
                Some(at) if at <= end => bench.now = at.max(bench.now),
                _ => break,
            }
        }
        if end < Instant::MAX {
            bench.now = end;
        }
    }
}

/// Every frame that arrived is sent, waits, or is counted under one reason, in each direction.
fn assert_conserved(bench: &Bench) {
    for direction in Way::ALL {
        let counters = bench.engine.counters(direction);
        let discarded: u64 = counters.discarded.iter().sum();
        let classes = bench.engine.classes(direction);
        let of_classes: u64 = classes
            .map(|(c, _)| c.dropped_total() + c.queued_frames)
            .sum();
        assert_eq!(
            counters.received_frames,
            counters.sent_frames + discarded + of_classes + counters.dropped_by_removed_frames
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// All changes are in both directions or in none, and no frame is lost but those that a full queue or a slice that is
    /// being removed drops and counts.
    #[test]
    fn any_sequence_of_changes_under_traffic_loses_and_reorders_no_frame(
        steps in proptest::collection::vec(step(), 1..250),
    ) {
        let mut bench = bench([LINK; 2]);
        let mut traffic = Traffic::default();
        let mut live: [BTreeSet<String>; 2] = Default::default();
        for step in steps {
            let waiting = bench.engine.backlog();
            let before = [names(&bench, 0), names(&bench, 1)];
            let change = match step {
                Step::Arrive(side, id, count) => {
                    for _ in 0..count {
                        let sequence = traffic.arrived[side].entry(id).or_default();
                        bench.ports[side].arrive(tagged(id, 1_000, *sequence));
                        *sequence += 1;
                    }
                    bench.poll();
                    traffic.collect(&mut bench);
                    continue;
                }
                Step::Pass(nanos) => {
                    let end = bench.now.saturating_add(Duration::from_nanos(nanos));
                    traffic.run_until(&mut bench, end);
                    continue;
                }
                Step::Reload(more) => {
                    let classes = if more { vec![slice(7, 500)] } else { vec![] };
                    let directions = directions(classes, [LINK; 2]);
                    if let Ok(prepared) = bench.engine.basis().prepare(&directions, bench.now) {
                        let _replaced = bench.engine.commit(prepared, bench.now).unwrap();
                    }
                    prop_assert_eq!(bench.engine.backlog(), waiting);
                    for (direction, live) in live.iter().enumerate() {
                        let now = names(&bench, direction);
                        prop_assert!(live.iter().all(|name| now.contains(name)), "{live:?}, {now:?}");
                    }
                    continue;
                }
                Step::Add(id, kbit) => both(&add(id, kbit)),
                Step::AddOneWay(side, id, kbit) => {
                    let mut changes = [None, None];
                    changes[side] = Some(add(id, kbit));
                    directed(changes)
                }
                Step::Change(id, kbit) => both(&change(id, kbit)),
                Step::Remove(id) => both(&remove(id)),
            };
            let asked = change.clone();
            let changed = bench.engine.change_slice(change, bench.now);
            for (live, (_, change)) in live.iter_mut().zip(asked.directions).filter(|_| changed.is_ok()) {
                match change {
                    Some(SliceChange::Add(slice)) => prop_assert!(live.insert(slice.name)),
                    Some(SliceChange::Remove { name }) => prop_assert!(live.remove(&name)),
                    _ => {}
                }
            }
            prop_assert_eq!(bench.engine.backlog(), waiting, "a change loses nothing");
            let after = [names(&bench, 0), names(&bench, 1)];
            for ((before, after), live) in before.iter().zip(&after).zip(&live) {
                prop_assert!(live.iter().all(|name| after.contains(name)));
                // Removals that have ended may have been found.
                let is_new = |name: &String| !before.contains(name);
                prop_assert!(changed.is_ok() || !after.iter().any(is_new));
            }
            while bench.engine.poll_gone().is_some() {}
            bench.poll();
            traffic.collect(&mut bench);
            assert_conserved(&bench);
        }
        traffic.run_until(&mut bench, Instant::MAX);
        assert_conserved(&bench);
        prop_assert_eq!(bench.engine.backlog(), 0);
        prop_assert_eq!(bench.engine.memory.free_chunks(), bench.chunks, "all memory is back");
        for (direction, left) in Way::ALL.into_iter().zip(&traffic.left) {
            let classes = bench.engine.classes(direction);
            let dropped: u64 = classes.map(|(class, _)| class.dropped_total()).sum();
            let counters = bench.engine.counters(direction);
            let dropped = dropped + counters.dropped_by_removed_frames;
            prop_assert_eq!(counters.received_frames, counters.sent_frames + dropped);
            for (id, left) in left {
                prop_assert!(left.is_sorted_by(|a, b| a < b), "VLAN {id}: {left:?}");
            }
        }
    }
}

#[test]
fn frames_that_codel_drops_during_a_reload_are_counted_by_their_class() {
    let mut class = slice(1, 3_000);
    class.queue.limit = None;
    class.queue = QueueSpec {
        limit: class.queue.limit,
        ..FlowQueueSpec {
            codel: CoDelSpec {
                target: Some(Duration::from_micros(500)),
                interval: Some(Duration::from_millis(3)),
                ..CoDelSpec::default()
            },
            ..FlowQueueSpec::default()
        }
        .into()
    };
    let directions = directions(vec![class], [LINK; 2]);
    let mut bench = bench([LINK; 2]);
    bench.apply(&directions);
    let dropped = |bench: &Bench| -> u64 {
        let classes = bench.engine.classes(Way::Forward);
        classes.map(|(class, _)| class.dropped_total()).sum()
    };
    // Twice what the link carries, and a reload every 5 ms.
    let mut by_reloads = 0;
    for number in 0..1_000 {
        let now = Instant::from_nanos(u64::from(number) * 500_000);
        bench.run_until(now);
        bench.now = now;
        bench.arrive(tagged(1, 1_250, number));
        bench.poll();
        if number % 10 == 9 {
            let before = dropped(&bench);
            bench.apply(&directions);
            by_reloads += dropped(&bench) - before;
            bench.assert_conserved();
        }
    }
    assert!(by_reloads > 5, "{by_reloads} frames");
    let counters = bench.engine.counters(Way::Forward);
    assert_eq!(counters.dropped_by_removed_frames, 0);
}
