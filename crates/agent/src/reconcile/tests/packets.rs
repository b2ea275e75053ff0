//! Slices that get other packets, or another tenant.

use super::*;
use slicewise_dataplane::ClassCounters;

/// What a slice has counted in the first direction.
fn counted(world: &World, name: &str) -> Option<ClassCounters> {
    let mut classes = world.engine.classes(0);
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
    let mut world = World::new(Kept::default());
    world.take(changes(1, vec![put("a", &terms(1, 500, 20), 1)]));
    world.arrive(0, 1, 5);
    world.poll();
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
    let mut world = World::new(Kept::default());
    world.take(changes(1, vec![put("a", &terms(1, 500, 20), 1)]));
    world.arrive(0, 1, 5);
    world.poll();
    world.take(changes(2, vec![put("a", &terms(3, 600, 20), 2)]));
    assert_eq!(world.acknowledged(), 2, "at once");
    world.arrive(0, 1, 2);
    world.arrive(0, 3, 4);
    world.poll();
    world.pass(ms(100));
    assert_eq!(frames(&world, "a"), [9, 9, 0]);
    assert_eq!(frames(&world, "class-default"), [2, 2, 0]);
    assert_eq!(world.reconciler.acknowledgement().refused, []);
}

#[test]
fn packets_that_move_between_two_slices_in_one_generation_are_of_the_second_when_the_first_has_sent_them()
 {
    let mut world = World::new(Kept::default());
    let (one, two) = (terms(1, 500, 20), terms(2, 500, 20));
    world.take(changes(1, vec![put("a", &one, 1), put("b", &two, 1)]));
    world.arrive(0, 1, 5);
    world.poll();
    let exchanged = vec![put("b", &one, 2), put("a", &two, 2)];
    world.take(changes(2, exchanged));
    assert_eq!(world.acknowledged(), 1, "`a` has sent none of them yet");
    world.arrive(0, 1, 1);
    world.poll();
    world.pass(ms(100));
    assert_eq!(world.acknowledged(), 2);
    world.arrive(0, 1, 3);
    world.poll();
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
    world.arrive(0, 1, 3);
    world.poll();
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
    world.arrive(0, 2, 40);
    world.poll();
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
