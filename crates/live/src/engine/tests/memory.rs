//! No queue takes the memory that reception or another slice needs.

use super::*;
use crate::engine::EngineError;
use slicewise_model::{CLASS_DEFAULT, NamedQueueSpec, QueueLimitSpec};
use slicewise_units::Way;

/// A class with a queue far longer than there is memory for.
fn bulk() -> ClassSpec {
    let bulk = ClassMap {
        name: "bulk".to_owned(),
        mode: MatchMode::All,
        conditions: vec![Condition::OuterVlan(20..=20)],
    };
    limited(ClassSpec::new(bulk), 200_000)
}

/// A voice slice beside [`bulk`], over ports that receive into memory lent before, as AF_XDP does.
fn flooded(memory_bytes: u64, receive_queues: u32) -> Bench {
    let direction = direction(100_000_000, vec![priority(vlan(10)), bulk()]);
    let mut bench = Bench::of(&EngineParams {
        directions: [direction.clone(), direction],
        largest_frame: 1_522,
        receive_queues: [receive_queues; 2],
        memory_bytes,
        adds_slices: false,
    });
    for side in 0..2 {
        let budget = bench.engine.port_budget(side);
        let port = MemoryPort::new(1_500, budget.transmit.max(64) as usize);
        bench.ports[side] = port.lending(budget.receive as usize);
    }
    bench.poll();
    bench
}

#[test]
fn a_flood_into_a_long_queue_leaves_reception_and_the_other_slice_their_memory() {
    let mut bench = flooded(32 << 20, 1);
    // 150,000 frames/s for 0.4 s, more than all of the memory.
    for number in 0..60_000 {
        bench.arrive(tagged(20, 1_000, number));
        if number % 64 == 63 {
            bench.now = bench.now.saturating_add(Duration::from_micros(427));
            bench.poll();
        }
    }
    let bulk = bench.ports[1].take_sent().len();
    assert!((4_900..5_100).contains(&bulk), "{bulk}");
    let mut arrived = 0;
    for number in 0..1_500 {
        bench.arrive(tagged(10, 200, number));
        let until = bench.now.saturating_add(Duration::from_micros(100));
        let sent = bench.run_until(until);
        bench.now = until;
        arrived += sent
            .iter()
            .filter(|(_, frame)| vlan_of(frame) == 10)
            .count();
    }
    assert_eq!(arrived, 1_500);
    let (flooding, _) = bench.engine.classes(Way::Forward).nth(1).unwrap();
    assert_eq!(
        flooding.dropped(DropReason::BufferFull),
        bench.engine.refused_frames()
    );
    assert!(bench.engine.refused_frames() > 40_000);
    assert_eq!(bench.engine.most_refused(), "forward: bulk");
    assert_eq!(
        bench.ports[0].counters(),
        crate::port::PortCounters::default()
    );
    bench.assert_conserved();
    bench.run();
    for port in &mut bench.ports {
        port.close(&mut bench.engine.memory);
    }
    assert_eq!(bench.engine.memory.free_chunks(), bench.chunks);
}

#[test]
fn sixteen_receive_queues_on_both_sides_leave_each_other_their_memory() {
    let mut bench = flooded(256 << 20, 16);
    for number in 0..1_000 {
        for side in 0..2 {
            bench.ports[side].arrive(tagged(10, 200, number));
        }
        bench.now = bench.now.saturating_add(Duration::from_micros(100));
        bench.poll();
    }
    for mut port in bench.ports {
        assert_eq!(port.take_sent().len(), 1_000);
        assert_eq!(port.counters(), crate::port::PortCounters::default());
    }
}

#[test]
fn too_little_memory_is_refused_and_the_message_says_how_much_is_needed() {
    let direction = direction(GIGABIT, vec![limited(vlan(10), 1_000)]);
    let params = EngineParams {
        directions: [direction.clone(), direction],
        largest_frame: 1_522,
        receive_queues: [16, 1],
        memory_bytes: 2 << 20,
        adds_slices: false,
    };
    let refused = Engine::new(&params, Instant::ZERO).unwrap_err();
    assert!(matches!(refused, EngineError::TooLittleMemory { .. }));
    insta::assert_snapshot!(refused, @"`memory` is 2 MiB, and at least 3 MiB are required for 17 receive queues and 4 queues of classes (97 MiB to fill all of them): raise `memory`, or reduce receive queues (`ethtool -L`)");
}

#[test]
fn a_class_that_a_reload_removes_keeps_its_frames_and_the_new_one_gets_its_part_of_the_memory() {
    let mut bench = flooded(4 << 20, 0);
    (0..5_000).for_each(|number| bench.arrive(tagged(20, 1_000, number)));
    bench.poll();
    let waiting = bench.engine.backlog();
    let after = direction(
        100_000_000,
        vec![priority(vlan(10)), limited(vlan(30), 100)],
    );
    bench.apply(&[after.clone(), after]);
    assert_eq!(bench.engine.backlog(), waiting);
    bench.run();
    bench.assert_conserved();
    (0..100).for_each(|number| bench.arrive(tagged(30, 1_000, number)));
    let sent = bench.run();
    assert_eq!(
        sent.iter().filter(|frame| vlan_of(frame) == 30).count(),
        100
    );
    bench.assert_conserved();
}

#[test]
fn a_queue_that_goes_on_beside_other_classes_has_its_memory_once() {
    let mut bench = flooded(4 << 20, 0);
    (0..5_000).for_each(|number| bench.arrive(tagged(20, 1_000, number)));
    bench.poll();
    let (waiting, refused) = (bench.engine.backlog(), bench.engine.refused_frames());
    assert!(refused > 0, "it has all that it can get");
    // It has another number.
    let after = direction(
        100_000_000,
        vec![limited(vlan(30), 1), priority(vlan(10)), bulk()],
    );
    bench.apply(&[after.clone(), after]);
    (0..1_000).for_each(|number| bench.arrive(tagged(20, 1_000, number)));
    bench.poll();
    // The memory of the first frame was with the interface before.
    let waiting_after = bench.engine.backlog();
    assert!(
        (waiting..=waiting + 1).contains(&waiting_after),
        "{waiting_after} of {waiting}"
    );
    assert_eq!(bench.engine.most_refused(), "forward: bulk");
    bench.run();
    bench.assert_conserved();
    let delays: Vec<(&str, u64)> = bench
        .engine
        .classes(Way::Forward)
        .map(|(class, delays)| (class.class.as_str(), delays.count()))
        .collect();
    let sent = u64::from(waiting_after) + 1;
    let expected = [
        ("vlan30", 0),
        ("vlan10", 0),
        ("bulk", sent),
        ("class-default", 0),
    ];
    assert_eq!(delays, expected);
}

/// Class-default with a queue of so many packets.
fn default_of(packets: u32) -> ClassSpec {
    ClassSpec {
        name: CLASS_DEFAULT.to_owned(),
        matches: None,
        ..limited(vlan(1), packets)
    }
}

/// Both directions, with a named queue for the classes that have one.
fn policies(discipline: Discipline, classes: Vec<ClassSpec>) -> [DirectionParams; 2] {
    let link = Rate::l2(BitRate::new(100_000_000));
    let is_named = classes.iter().any(|class| class.named_queue.is_some());
    let named = NamedQueueSpec {
        name: "bulk".to_owned(),
        priority: None,
        minimum: None,
        weight: None,
        per_flow: false,
        shape: None,
        queue: QueueLimitSpec::Packets(200_000).into(),
    };
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes,
        discipline,
        guaranteed: None,
        queues: is_named.then_some(named).into_iter().collect(),
    };
    let direction = DirectionParams {
        link,
        policy: spec.resolve(link.rate).unwrap().into(),
        seed: 1,
    };
    [direction.clone(), direction]
}

/// A class of the named queue.
fn in_bulk(id: u16) -> ClassSpec {
    ClassSpec {
        named_queue: Some("bulk".to_owned()),
        ..vlan(id)
    }
}

fn small(directions: [DirectionParams; 2]) -> Bench {
    Bench::of(&EngineParams {
        directions,
        largest_frame: 1_522,
        receive_queues: [0; 2],
        memory_bytes: 4 << 20,
        adds_slices: false,
    })
}

/// Frames of a VLAN that find no memory, of 20 that arrive.
fn refused(bench: &mut Bench, id: u16) -> u64 {
    (0..20).for_each(|number| bench.arrive(tagged(id, 200, number)));
    bench.poll();
    let name = format!("vlan{id}");
    let (class, _) = bench
        .engine
        .classes(Way::Forward)
        .find(|(class, _)| class.class == name)
        .unwrap();
    class.dropped(DropReason::BufferFull)
}

#[test]
fn a_class_that_gets_a_queue_of_its_own_does_not_get_what_others_have_filled() {
    let shared = vec![
        (Discipline::Fifo, vec![vlan(10), default_of(200_000)]),
        (
            Discipline::MinimumShare,
            vec![in_bulk(10), in_bulk(20), default_of(10)],
        ),
    ];
    let after = [
        vec![limited(priority(vlan(10)), 64), default_of(200_000)],
        vec![limited(priority(vlan(10)), 64), in_bulk(20), default_of(10)],
    ];
    for ((discipline, before), after) in shared.into_iter().zip(after) {
        let mut bench = small(policies(discipline, before));
        (0..5_000).for_each(|number| bench.arrive(tagged(20, 1_000, number)));
        bench.poll();
        bench.apply(&policies(Discipline::MinimumShare, after));
        assert_eq!(refused(&mut bench, 10), 0, "after {discipline:?}");
        bench.run();
        bench.assert_conserved();
        assert_eq!(bench.engine.memory.free_chunks(), bench.chunks);
    }
}

#[test]
fn a_class_that_comes_back_while_its_frames_wait_takes_no_memory_of_another() {
    let own = |classes| policies(Discipline::MinimumShare, classes);
    let fifo = vec![vlan(10), vlan(20), default_of(5_000)];
    let mut bench = small(policies(Discipline::Fifo, fifo));
    (0..500).for_each(|number| bench.arrive(tagged(20, 1_000, number)));
    bench.poll();
    let (small, large) = (|id| limited(vlan(id), 64), |id| limited(vlan(id), 200_000));
    bench.apply(&own(vec![small(10), small(20), default_of(64)]));
    bench.apply(&own(vec![small(10), large(30), default_of(64)]));
    (0..700).for_each(|number| bench.ports[1].arrive(tagged(30, 1_000, number)));
    bench.poll();
    bench.apply(&own(vec![
        priority(small(20)),
        small(10),
        large(30),
        default_of(64),
    ]));
    assert_eq!(refused(&mut bench, 20), 0);
    bench.run();
    bench.assert_conserved();
    assert_eq!(bench.engine.memory.free_chunks(), bench.chunks);
}
