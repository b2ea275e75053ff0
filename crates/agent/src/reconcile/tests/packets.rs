//! Slices that get other packets, or another tenant.

use super::*;
use proptest::prelude::*;
use slicewise_dataplane::ClassCounters;
use slicewise_units::Way;

/// Returns the counters of a slice in the first direction.
fn counted(world: &World, name: &str) -> Option<ClassCounters> {
    let mut classes = world.engine.classes(Way::Forward);
    let found = classes.find(|(class, _)| class.class == name);
    found.map(|(class, _)| class.clone())
}

fn frames(world: &World, name: &str) -> [u64; 3] {
    counted(world, name).map_or([0; 3], |class| {
        [
            class.offered_frames,
            class.sent_frames,
            class.dropped_total(),
        ]
    })
}

#[test]
fn a_slice_that_gets_another_tenant_waits_for_its_frames_and_others_do_not() {
    let mut world = World::with(vec![put("a", &terms(1, 500, 20), 1)]);
    world.offer(0, 1, 5);
    world.take(changes(
        2,
        vec![of_tenant("other", "a", &terms(1, 500, 20), 2)],
    ));
    world.take(changes(3, vec![put("b", &terms(2, 500, 20), 1)]));
    assert_eq!(world.acknowledged(), 1);
    assert_eq!(world.names(1), ["b"]);
    world.pass(ms(100));
    assert_eq!(world.acknowledged(), 3);
    assert_eq!([world.names(0), world.names(1)], [["a", "b"], ["a", "b"]]);
    assert!(
        world.reconciler.acknowledgement().gone.is_empty(),
        "it was not removed"
    );
}

#[test]
fn a_slice_gets_other_packets_while_it_is_in_force_and_none_is_lost() {
    let mut world = World::with(vec![put("a", &terms(1, 500, 20), 1)]);
    world.offer(0, 1, 5);
    world.take(changes(2, vec![put("a", &terms(3, 600, 20), 2)]));
    assert_eq!(world.acknowledged(), 2, "at once");
    world.arrive(0, 1, 2);
    world.offer(0, 3, 4);
    world.pass(ms(100));
    assert_eq!(frames(&world, "a"), [9, 9, 0]);
    assert_eq!(frames(&world, "class-default"), [2, 2, 0]);
    assert_eq!(world.reconciler.acknowledgement().refused, []);
}

#[test]
fn packets_that_move_between_two_slices_in_one_generation_are_of_the_second_when_the_first_has_sent_them()
 {
    let (one, two) = (terms(1, 500, 20), terms(2, 500, 20));
    let mut world = World::with(vec![put("a", &one, 1), put("b", &two, 1)]);
    world.offer(0, 1, 5);
    let exchanged = vec![put("b", &one, 2), put("a", &two, 2)];
    world.take(changes(2, exchanged));
    assert_eq!(world.acknowledged(), 1, "`a` has sent none of them yet");
    world.offer(0, 1, 1);
    world.pass(ms(100));
    assert_eq!(world.acknowledged(), 2);
    world.offer(0, 1, 3);
    world.pass(ms(100));
    assert_eq!(frames(&world, "a"), [5, 5, 0]);
    assert_eq!(frames(&world, "b"), [3, 3, 0]);
    assert_eq!(frames(&world, "class-default"), [1, 1, 0]);
}

#[test]
fn a_slice_whose_packets_no_table_finds_goes_and_comes_again() {
    let mut world = World::new(Kept::default());
    let mut wide = terms(1, 500, 20);
    wide.matches[0].destination_port = Some("1000-2000".to_owned());
    world.take(changes(1, vec![put("a", &wide, 1)]));
    world.take(changes(2, vec![put("a", &terms(1, 500, 20), 2)]));
    world.pass(ms(100));
    assert_eq!(world.acknowledged(), 2);
    world.offer(0, 1, 3);
    assert_eq!(frames(&world, "a")[0], 3);
}

#[test]
fn a_slice_whose_new_packets_still_leave_elsewhere_does_not_hold_up_others() {
    let mut world = World::new(Kept::default());
    let mut slow = terms(2, 0, 0);
    slow.maximum = Some(slicewise_api::Maximum {
        rate_bps: 40_000,
        burst_bytes: 1_522,
    });
    world.take(changes(
        1,
        vec![put("a", &terms(1, 500, 20), 1), put("b", &slow, 1)],
    ));
    world.offer(0, 2, 40);
    world.take(changes(2, vec![remove("b")]));
    world.take(changes(3, vec![put("a", &terms(2, 500, 20), 2)]));
    world.take(changes(4, vec![put("c", &terms(3, 500, 20), 1)]));
    let mut waited = 0;
    while !world.names(1).contains(&"c".to_owned()) && waited < 60_000 {
        world.pass(ms(100));
        waited += 100;
    }
    assert!(waited < 1_000, "c waited {waited} ms");
}

#[test]
fn a_slice_that_has_to_go_in_one_direction_gives_up_its_packets_in_the_other_at_once() {
    let mut world = World::new(Kept::default());
    let mut wide = terms(1, 0, 0);
    wide.matches[0].destination_port = Some("1000-2000".to_owned());
    wide.maximum = Some(slicewise_api::Maximum {
        rate_bps: 40_000,
        burst_bytes: 1_522,
    });
    let both = |backward: &GatewayTerms, forward: &GatewayTerms, version| {
        let both = [Some(forward.clone()), Some(backward.clone())];
        GatewayChange::Put(Box::new(slice("a", both, version)))
    };
    let mut narrow = terms(1, 0, 0);
    narrow.maximum = wide.maximum;
    world.take(changes(1, vec![both(&narrow, &terms(2, 0, 0), 1)]));
    world.offer(1, 1, 40);
    world.take(changes(2, vec![both(&wide, &terms(3, 0, 0), 2)]));
    world.take(changes(3, vec![put("c", &terms(4, 500, 20), 1)]));
    let mut waited = 0;
    while !world.names(0).contains(&"c".to_owned()) && waited < 60_000 {
        world.pass(ms(100));
        waited += 100;
    }
    assert!(waited < 1_000, "c waited {waited} ms");
}

#[test]
fn slices_are_added_though_others_are_removed_all_the_time() {
    const SLICES: u16 = 60;
    let mut world = World::new(Kept::default());
    let old = (0..SLICES).map(|n| put(&format!("s{n}"), &terms(n + 1, 0, 0), 1));
    world.take(changes(1, old.collect()));
    let mut pending = Vec::new();
    let mut answered = 0;
    for n in 0..SLICES {
        let both = vec![
            remove(&format!("s{n}")),
            put(&format!("t{n}"), &terms(n + 1_000, 0, 0), 1),
        ];
        world
            .reconciler
            .take(changes(u64::from(n) + 2, both))
            .unwrap();
        let mut asked = Vec::new();
        while let Some(change) = world.reconciler.poll_change(world.now) {
            asked.push(change);
        }
        for change in std::mem::replace(&mut pending, asked) {
            let outcome = world.engine.change_slice(change, world.now);
            world.reconciler.on_changed(outcome, world.now);
            answered += 1;
        }
    }
    let added = world
        .names(0)
        .into_iter()
        .filter(|name| name.starts_with('t'))
        .count();
    assert!(added > 20, "of {answered} changes {added} were additions");
}

/// VLANs of a slice, how much of the link is guaranteed to it, and what is done about its flows.
type Held = (BTreeSet<u16>, u8, bool);

#[derive(Debug, Clone)]
enum Step {
    /// In one generation slices, by number, get what is stated, or are removed.
    Change(Vec<(u8, Option<Held>)>),
    /// Frames of a VLAN arrive at a port.
    Arrive(usize, u16, usize),
    Pass(u64),
    /// The gateway's own configuration is put in force again.
    Reload,
}

fn step() -> impl Strategy<Value = Step> {
    let vlans = prop::collection::btree_set(0u16..8, 1..6);
    let held = (vlans, 0u8..4, any::<bool>());
    let change = (0u8..4, prop::option::weighted(0.8, held));
    prop_oneof![
        6 => prop::collection::vec(change, 1..5).prop_map(Step::Change),
        12 => (0usize..2, 0u16..8, 1usize..6).prop_map(|(side, vlan, n)| Step::Arrive(side, vlan, n)),
        8 => (0u64..6_000).prop_map(Step::Pass),
        1 => Just(Step::Reload),
    ]
}

fn name_of(slice: u8) -> String {
    format!("s{slice}")
}

fn wanted(slice: u8, (vlans, kbit, by_flow): &Held, version: u64) -> GatewayChange {
    let kbit = [0, 100, 900, 1_900][usize::from(*kbit)];
    let mut wanted = terms(0, kbit, 50);
    let of = |&vlan: &u16| Match {
        vlan: Some(vlan),
        ..Match::default()
    };
    wanted.matches = vlans.iter().map(of).collect();
    wanted.flows.flow_queueing = *by_flow;
    put(&name_of(slice), &wanted, version)
}

impl World {
    fn count_of(&self, name: &str) -> u64 {
        frames(self, name)[0]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// No two slices are to have the same packets: however these pass from one to another, each frame leaves, in its order,
    /// and in the end each is of the slice that is to have it.
    #[test]
    fn packets_that_pass_from_slice_to_slice_are_neither_lost_nor_reordered(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut world = World::new(Kept::default());
        let mut store: BTreeMap<u8, Held> = BTreeMap::new();
        let mut generation = 0;
        for step in steps {
            match step {
                Step::Change(list) => {
                    generation += 1;
                    let before = store.clone();
                    for (slice, held) in list {
                        store.remove(&slice);
                        let Some(mut held) = held else { continue };
                        for (others, ..) in store.values() {
                            held.0.retain(|vlan| !others.contains(vlan));
                        }
                        if !held.0.is_empty() {
                            store.insert(slice, held);
                        }
                    }
                    let gone = before.keys().filter(|slice| !store.contains_key(slice));
                    let gone = gone.map(|&slice| remove(&name_of(slice)));
                    let new = store.iter().filter(|&(slice, held)| before.get(slice) != Some(held));
                    let new = new.map(|(&slice, held)| wanted(slice, held, generation));
                    world.take(changes(generation, gone.chain(new).collect()));
                }
                Step::Arrive(side, vlan, frames) => {
                    world.offer(side, vlan, frames);
                }
                Step::Pass(micros) => world.pass(Duration::from_micros(micros)),
                Step::Reload => world.reload(LINK),
            }
        }
        world.pass(Duration::from_secs(30));
        prop_assert!(world.reconciler.is_settled());
        for direction in 0..2 {
            let mut names = world.names(direction);
            names.dedup();
            prop_assert_eq!(names, world.names(direction), "each has one name");
        }
        prop_assert_eq!(world.acknowledged(), generation);
        prop_assert_eq!(world.reconciler.acknowledgement().refused, []);
        for (arrived, left) in world.arrived.iter().zip(&world.left) {
            prop_assert_eq!(*arrived as usize, left.len(), "none is lost");
            let mut last = BTreeMap::new();
            for &(vlan, number) in left {
                let before = last.insert(vlan, number);
                prop_assert!(before.is_none_or(|before| before < number), "VLAN {}", vlan);
            }
        }
        for vlan in 0..8 {
            let owner = store.iter().find(|(_, (vlans, ..))| vlans.contains(&vlan));
            let owner = owner.map_or("class-default".to_owned(), |(&slice, _)| name_of(slice));
            let before = world.count_of(&owner);
            world.offer(0, vlan, 1);
            prop_assert_eq!(world.count_of(&owner), before + 1, "VLAN {} is of {}", vlan, owner);
        }
    }
}

#[test]
fn a_slice_that_is_removed_while_the_gateway_reloads_and_comes_again_is_counted_once() {
    let mut world = World::with(vec![put("a", &terms(1, 500, 20), 1)]);
    world.offer(0, 1, 5);
    world.take(changes(2, vec![remove("a")]));
    world.reload(LINK);
    world.take(changes(3, vec![put("a", &terms(2, 500, 20), 2)]));
    assert_eq!(world.names(0), ["a"]);
    world.pass(ms(100));
    world.offer(0, 2, 3);
    assert_eq!(frames(&world, "a"), [8, 6, 0], "with those from before");
    world.reload(LINK);
    assert_eq!(world.names(0), ["a"]);
}

#[test]
fn what_is_still_reserved_is_tried_again_later() {
    let mut world = World::with(vec![put("a", &terms(1, 6_000, 40), 1)]);
    // A frame of `a` waits for one that is on the link.
    world.offer(0, 9, 1);
    world.offer(0, 1, 1);
    world.take(changes(2, vec![put("a", &terms(1, 1_000, 40), 2)]));
    world.take(changes(3, vec![put("b", &terms(2, 6_000, 40), 1)]));
    assert_eq!(world.acknowledged(), 2);
    let refused = world.reconciler.acknowledgement().refused;
    assert_eq!(refused, [], "only for now");
    world.pass(ms(50));
    assert_eq!(world.acknowledged(), 3);
    assert_eq!(world.names(0), ["a", "b"]);
}
